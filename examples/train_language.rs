//! Trains a tiny transformer for a few steps on random tokens and writes all that `python/checks/check_transformer.py` needs to
//! train the same one in JAX.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use sinexp::array::{Array, DType};
use sinexp::cli;
use sinexp::files::ensure_writable_folder;
use sinexp::interop::safetensors::{self, Tensors};
use sinexp::nn::language_model::{LanguageModel, Start, Weights};
use sinexp::nn::parameterization::Standard;
use sinexp::nn::sel::Sel;
use sinexp::nn::transformer::Transformer;
use sinexp::optim::{AdamW, Decay, Schedule};
use sinexp::random::Key;
use sinexp::runtime::{Buffer, Device};
use sinexp::train::language::{StepSettings, step_program};

/// How projections are stored.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Variant {
    Baseline,
    Mismatch,
    OffsetLora,
}

/// Trains a transformer of width 64, depth 2, 4 heads, vocabulary 256 on random tokens, 2 sequences of 32 a step.
///
/// Writes initial.safetensors (parameters by block), tokens.safetensors (`tokens`, i32 [steps, 2, 33]) and
/// losses.safetensors (`losses` and `grad_norm`, f32 [steps]) into the folder.
#[derive(Parser, Debug)]
#[command(name = "train_language")]
struct Arguments {
    /// Folder to write into; made if need be
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Baseline, mismatch at beta 7.5, or that with offset and a residual of rank 4
    #[arg(long, value_enum)]
    variant: Variant,
    /// Updates: warm-up over 4, then linear decay
    #[arg(long, value_name = "COUNT", default_value_t = 12)]
    steps: u32,
}

const BATCH: usize = 2;
const SEQUENCE: usize = 32;
const VOCABULARY: usize = 256;

fn main() -> ExitCode {
    cli::run(|arguments: Arguments| {
        ensure_writable_folder(&arguments.out)?;
        let transformer = Transformer { heads: 4, ..Transformer::new(VOCABULARY, 64, 2) };
        let model = match arguments.variant {
            Variant::Baseline => LanguageModel::new(transformer, Standard),
            Variant::Mismatch => LanguageModel::new(transformer, Sel::new(7.5)),
            Variant::OffsetLora => LanguageModel::new(transformer, Sel::new(7.5).with_offset_and_residual(4)),
        };
        let steps = arguments.steps as usize;
        let settings = StepSettings {
            batch: BATCH,
            sequence: SEQUENCE,
            accumulation: 1,
            optimizer: AdamW::default(),
            clip: 1.0,
            schedule: Schedule { peak: 1e-3, warmup: 4, total: steps, decay: Decay::Linear },
            anneal_steps: steps,
            bf16: false,
            replicas: 1,
        };
        let initial = model.initial(Start::default(), Key::new(0))?;
        let dims = [steps, BATCH, SEQUENCE + 1];
        let tokens = Key::new(1).randint(&dims, 0, VOCABULARY as i32);
        let write = |name: &str, tensors: Weights| {
            safetensors::write(arguments.out.join(name), &Tensors { tensors, metadata: BTreeMap::new() })
        };
        write("initial.safetensors", model.split(&initial)?)?;
        write("tokens.safetensors", BTreeMap::from([("tokens".into(), Array::from_ndarray(&tokens))]))?;

        let device = Device::open("cpu")?;
        let step = device.compile(&step_program(&model, &settings)?)?;
        let start = |(name, shape): (&str, &sinexp::graph::Shape)| {
            let zeros = || Array::full(DType::F32, &shape.dims, if name == "finite" { 1.0 } else { 0.0 });
            device.put(&initial.get(name).cloned().unwrap_or_else(zeros))
        };
        let count = step.outputs().count() - 2;
        let mut state = step.inputs().take(count).map(start).collect::<sinexp::error::Result<Vec<Buffer>>>()?;
        let mut measured: [Vec<f32>; 2] = Default::default();
        for tokens in tokens.outer_iter() {
            let batch = device.put(&Array::from_ndarray(&tokens.insert_axis(ndarray::Axis(0))))?;
            let mut results = step.run(&state.iter().chain([&batch]).collect::<Vec<_>>())?;
            for (list, value) in measured.iter_mut().zip(results.split_off(count)) {
                list.extend(value.to_host()?.to_vec::<f32>()?);
            }
            state = results;
        }
        let named = ["losses", "grad_norm"].map(str::to_owned).into_iter();
        let arrays = measured.iter().map(|list| Array::from_slice(&[list.len()], list));
        Ok(write("losses.safetensors", named.zip(arrays).collect())?)
    })
}
