//! The transformer of 2607.09967 (Section 5.1), with ordinary or SEL weights: logits, loss, a training step.

use super::choices::{Resolved, data, network};
use super::file::Language;
use super::function::{Argument, Function, dict, leaf};
use super::{Entry, Network, Size};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor, stack};
use crate::interop::jax_export::Tree;
use crate::nn::language_model::LanguageModel;
use crate::nn::sel::Sel;
use crate::nn::siren::Params;
use crate::nn::transformer::Transformer;
use crate::optim::{AdamW, Decay, Schedule};
use crate::train::language::{Projection, StepSettings, step_program};

const SIZES: &[Size] = &[
    network("vocabulary", 32),
    network("width", 16),
    network("depth", 2),
    network("heads", 2),
    data("batch", 2),
    data("sequence", 8),
];
const RANK: Size = Size { name: "rank", default: 2, least: 0, of_network: true };
const SEL_SIZES: &[Size] = &[SIZES[0], SIZES[1], SIZES[2], SIZES[3], RANK, SIZES[4], SIZES[5]];
const STEP_SIZES: &[Size] = &[
    SIZES[0],
    SIZES[1],
    SIZES[2],
    SIZES[3],
    SIZES[4],
    SIZES[5],
    data("accumulation", 1),
    data("warmup", 10),
    data("steps", 100),
];
const SEL_STEP_SIZES: &[Size] = &[
    STEP_SIZES[0],
    STEP_SIZES[1],
    STEP_SIZES[2],
    STEP_SIZES[3],
    RANK,
    STEP_SIZES[4],
    STEP_SIZES[5],
    STEP_SIZES[6],
    STEP_SIZES[7],
    STEP_SIZES[8],
];
const BETA: (&str, f64) = ("beta", 7.5);
const RATE: (&str, f64) = ("learning-rate", 3e-4);
const ALL: &[DType] = &[DType::F32, DType::F64, DType::BF16];

const LOGITS: Entry = Entry {
    name: "transformer_logits",
    about: "logits of the transformer at every position",
    sizes: SIZES,
    numbers: &[],
    dtypes: ALL,
    network: Network::Language,
    orders: 1,
    build: logits,
};
const LOSS: Entry = Entry {
    name: "transformer_loss",
    about: "mean cross-entropy of the transformer in nats, each token from those before it",
    build: loss,
    ..LOGITS
};
const STEP: Entry = Entry {
    name: "language_step",
    about: "one AdamW step of the transformer with clipping, warm-up and decay; the state is donated",
    sizes: STEP_SIZES,
    numbers: &[RATE],
    dtypes: &[DType::F32, DType::BF16],
    build: step,
    ..LOGITS
};

pub(super) const ENTRIES: &[Entry] = &[
    LOGITS,
    Entry {
        name: "transformer_logits_sel",
        about: "its logits with SEL weights: mismatch, with an offset and a residual (neither at rank 0)",
        sizes: SEL_SIZES,
        numbers: &[BETA],
        network: Network::None,
        ..LOGITS
    },
    LOSS,
    Entry {
        name: "transformer_loss_sel",
        about: "its mean cross-entropy with SEL weights",
        sizes: SEL_SIZES,
        numbers: &[BETA],
        network: Network::None,
        ..LOSS
    },
    STEP,
    Entry {
        name: "language_step_sel",
        about: "its AdamW step with SEL weights, their scales in groups of their own (Eq. 11)",
        sizes: SEL_STEP_SIZES,
        numbers: &[RATE, BETA],
        network: Network::None,
        ..STEP
    },
];

/// Model, length of sequences, type of activations, and the file where there is one.
struct Built {
    model: LanguageModel,
    sequence: usize,
    activations: DType,
    file: Option<Language>,
}

fn build(r: &Resolved) -> Result<Built> {
    let file = r.weights().map(Language::open).transpose()?;
    let transformer = match &file {
        Some(file) => file.transformer().clone(),
        None => Transformer {
            heads: r.size("heads"),
            ..Transformer::new(r.size("vocabulary"), r.size("width"), r.size("depth"))
        },
    };
    let projection = match &file {
        Some(file) => file.projection().clone(),
        None if r.name().ends_with("_sel") => {
            let sel = Sel::new(r.number("beta"));
            let rank = r.size("rank");
            Projection::Sel(if rank > 0 { sel.with_offset_and_residual(rank) } else { sel })
        }
        None => Projection::Standard,
    };
    let Transformer { width, heads, depth, hidden, vocabulary, .. } = transformer;
    if !width.is_multiple_of(heads) || !(width / heads).is_multiple_of(2) {
        let reason = format!("expected a divisor of the width {width} with an even quotient");
        return Err(Error::argument("--heads", heads, reason));
    }
    let sequence = r.given("sequence").unwrap_or(file.as_ref().map_or(r.size("sequence"), Language::sequence));
    let activations = match &file {
        Some(file) if r.dtype() != DType::BF16 && file.dtype() == DType::BF16 => DType::BF16,
        _ => r.dtype(),
    };
    let batch = r.size("batch");
    r.check_size("weights", &[depth, 2 * hidden, width])?;
    r.check_size("embedding", &[vocabulary, width])?;
    r.check_size("attention", &[batch, heads, sequence, sequence])?;
    r.check_size("logits", &[batch, sequence, vocabulary])?;
    r.check_size("feed-forward layer", &[batch, sequence, 2 * hidden])?;
    r.check_size("residual", &[depth, hidden, r.size("rank").max(1)])?;
    Ok(Built { model: projection.model(&transformer), sequence, activations, file })
}

fn logits(r: &Resolved) -> Result<Function> {
    function(r, 0, "logits", |model, weights, tokens, activations| {
        model.transformer.logits(weights, tokens, activations)
    })
}

fn loss(r: &Resolved) -> Result<Function> {
    function(r, 1, "loss", |model, weights, tokens, activations| model.transformer.loss(weights, tokens, activations))
}

/// A function of parameters and of `further` tokens more than a sequence has.
fn function(
    r: &Resolved,
    further: usize,
    result: &str,
    f: impl FnOnce(&LanguageModel, &Params, &Tensor, DType) -> Tensor,
) -> Result<Function> {
    let Built { model, sequence, activations, file } = build(r)?;
    let dtype = if activations == DType::BF16 { DType::F32 } else { activations };
    // Of a file every block has its own tensors; they are put together in the program.
    let (inputs, params) = parameters(&model, dtype, file.is_some());
    let tokens = Tensor::parameter("tokens", Shape::new(DType::I32, &[r.size("batch"), sequence + further]));
    let value = f(&model, &model.effective(&params), &tokens, activations);
    let names = dict(inputs.iter().map(Tensor::name));
    let program = Program::new(r.name(), &[inputs.clone(), vec![tokens]].concat(), &[(result, value)])?;
    let arguments = vec![Argument::new("params", names), Argument::new("tokens", leaf("tokens"))];
    Function::new(program, arguments, leaf(result))
}

/// The inputs, and the parameters made of them: the same, or where they are `split` one input per block.
fn parameters(model: &LanguageModel, dtype: DType, split: bool) -> (Vec<Tensor>, Params) {
    let (mut inputs, mut params) = (Vec::new(), Params::new());
    let input = |name: &str, dims: &[usize]| Tensor::parameter(name, Shape::new(dtype, dims));
    for p in model.parameters() {
        let value = match p.name.strip_prefix("blocks.").filter(|_| split && p.stacked) {
            Some(rest) => {
                let one = |i| input(&format!("blocks.{i}.{rest}"), &p.dims[1..]);
                let blocks: Vec<Tensor> = (0..p.dims[0]).map(one).collect();
                inputs.extend(blocks.iter().cloned());
                stack(&blocks, 0)
            }
            None => {
                let whole = input(&p.name, &p.dims);
                inputs.push(whole.clone());
                whole
            }
        };
        params.insert(p.name, value);
    }
    (inputs, params)
}

fn step(r: &Resolved) -> Result<Function> {
    let Built { model, sequence, activations, file } = build(r)?;
    let (steps, warmup) = (r.size("steps"), r.size("warmup"));
    let drawn = StepSettings {
        batch: r.size("batch"),
        sequence,
        accumulation: r.size("accumulation"),
        optimizer: AdamW::default(),
        clip: 1.0,
        schedule: Schedule { peak: r.number("learning-rate"), warmup, total: steps, decay: Decay::Linear },
        anneal_steps: steps,
        bf16: activations == DType::BF16,
        replicas: 1,
    };
    // A run's own step, but for what is asked for.
    let settings = match &file {
        Some(Language::Run(config)) => {
            let of_run = &config.step;
            let given = |name: &str, value: usize| r.given(name).unwrap_or(value);
            StepSettings {
                batch: given("batch", of_run.batch),
                accumulation: given("accumulation", of_run.accumulation),
                optimizer: of_run.optimizer,
                clip: of_run.clip,
                schedule: Schedule {
                    warmup: given("warmup", of_run.schedule.warmup),
                    total: given("steps", of_run.schedule.total),
                    peak: r.given_number("learning-rate").unwrap_or(of_run.schedule.peak),
                    ..of_run.schedule
                },
                anneal_steps: given("steps", of_run.anneal_steps),
                ..drawn
            }
        }
        _ => drawn,
    };
    let mut program = step_program(&model, &settings)?;
    program.text = program.text.replacen(&program.name, r.name(), 1);
    program.name = r.name().to_owned();
    let names = model.parameters();
    let of_each =
        |prefix: &str| Tree::dict(names.iter().map(|p| (p.name.as_str(), Tree::Leaf(format!("{prefix}{}", p.name)))));
    let state = Tree::dict([
        ("params", of_each("")),
        ("m", of_each("m.")),
        ("v", of_each("v.")),
        ("t", leaf("t")),
        ("finite", leaf("finite")),
    ]);
    let arguments = vec![Argument::new("state", state.clone()), Argument::new("tokens", leaf("tokens"))];
    Function::new(program, arguments, Tree::Tuple(vec![state, dict(["loss", "grad_norm"])]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Choices, find};
    use crate::nn::transformer::Kind;

    /// Every weight of the model is a parameter of the function, the blocks' either stacked or one by one.
    #[test]
    fn blocks_are_stacked_or_split() {
        let transformer = Transformer { heads: 2, ..Transformer::new(32, 16, 3) };
        let model = Projection::Standard.model(&transformer);
        let (stacked, params) = parameters(&model, DType::F32, false);
        let (split, same) = parameters(&model, DType::F32, true);
        assert_eq!(params.keys().collect::<Vec<_>>(), same.keys().collect::<Vec<_>>());
        assert!(params.iter().zip(&same).all(|((_, a), (_, b))| a.shape() == b.shape()));
        let gains = transformer.weights().iter().filter(|w| w.kind == Kind::Gain && w.stacked).count();
        assert_eq!(gains, 4);
        let per_block = stacked.iter().filter(|t| t.name().starts_with("blocks.")).count();
        assert_eq!(split.len(), stacked.len() + 2 * per_block);
        assert!(split.iter().any(|t| t.name() == "blocks.2.q.W" && t.dims() == [16, 16]));
    }

    #[test]
    fn sizes_that_make_no_sense_are_named() {
        let fails = |name: &str, sizes: &[(&str, usize)]| {
            let sizes = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
            let choices = Choices { sizes, ..Choices::default() };
            find(name).and_then(|e| e.build(&choices)).expect_err("refused").to_string()
        };
        assert!(fails("transformer_loss", &[("heads", 3)]).contains("divisor of the width 16"));
        assert!(fails("transformer_loss", &[("heads", 16)]).contains("even quotient"));
        assert!(fails("transformer_loss", &[("rank", 1)]).contains("no such option"));
        assert!(fails("language_step", &[("steps", 0)]).contains("at least 1"));
        assert!(fails("transformer_logits", &[("batch", 1 << 30), ("sequence", 1 << 30)]).contains("smaller sizes"));
        assert!(fails("siren_forward", &[("width", usize::MAX)]).contains("smaller sizes"));
    }
}
