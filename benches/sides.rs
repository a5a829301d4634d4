//! Our side of benches/against_jax.py: serves a case, or times it alone.
//!
//! `cargo bench --bench sides` prints seconds per run; with `--serve CASE` it reads how often to run from each line of
//! standard input and answers with seconds per run, or with the peak memory in MB for the line `memory`.

use std::io::{BufRead, Write};
use std::time::Instant;

use sinexp::array::{Array, DType};
use sinexp::error::Result;
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::nn::cvp26::Cvp26;
use sinexp::nn::language_model::{LanguageModel, Start as StartOf};
use sinexp::nn::parameterization::Standard;
use sinexp::nn::sel::Sel;
use sinexp::nn::siren::Siren;
use sinexp::nn::siren_init::Initialization;
use sinexp::nn::transformer::Transformer;
use sinexp::optim::{AdamW, Decay, Schedule};
use sinexp::random::Key;
use sinexp::runtime::{Buffer, Device, Executable, tune_allocator};
use sinexp::train::language::{StepSettings, step_program};
use sinexp::train::{Start, StepOptions, Trainer, regression_step};

/// What a case does: so many runs.
type Case = Box<dyn FnMut(usize) -> Result<()>>;

fn open(device: &Device, name: &str) -> Result<Case> {
    match name.split_once(':').unwrap_or((name, "1")) {
        ("step", _) => step(device),
        ("call", _) => call(device),
        ("narrow", _) => sweep(device, 16, 1, 1),
        ("sweep", together) => sweep(device, 16, 21, together.parse().unwrap_or(1)),
        ("gpt", _) => language(device, 256, false, false),
        ("gpt-sel", _) => language(device, 256, true, false),
        ("gpt-bf16", _) => language(device, 256, false, true),
        ("gpt-sel-bf16", _) => language(device, 256, true, true),
        ("gpt-bpe", _) => language(device, 50257, false, false),
        ("gpt-bpe-sel", _) => language(device, 50257, true, false),
        _ => panic!("unknown case {name}: see benches/against_jax.py"),
    }
}

/// A program with its arguments, of which each run replaces the first `state` by results.
fn program(executable: Executable, mut arguments: Vec<Buffer>, state: usize) -> Case {
    Box::new(move |times| {
        for i in 0..times {
            let mut results = executable.run(&arguments.iter().collect::<Vec<_>>())?;
            if i + 1 == times
                && let Some(last) = results.last()
            {
                last.to_host()?; // so that everything has been computed
            }
            results.truncate(state);
            for (argument, result) in arguments.iter_mut().zip(results) {
                *argument = result;
            }
        }
        Ok(())
    })
}

/// Training steps of `runs` SIRENs that differ in omega0: L 11, 16,384 samples; `together` at a time in one program.
fn sweep(device: &Device, width: usize, runs: usize, together: usize) -> Result<Case> {
    let init = |omega0: f64| Initialization::Cvp26 { family: Cvp26::SIGMA_A_0, omega0, omega_h: 1.0 };
    let siren = init(1.0).siren(2, width, 11, 1);
    let trainer = Trainer::new(device, &siren, 16384, (together > 1).then_some(together), None)?;
    // Compiled programs live as long as the process.
    let trainer: &'static Trainer = Box::leak(Box::new(trainer));
    let [kx, ky] = [Key::new(1), Key::new(2)];
    let x = Array::from_ndarray(&kx.uniform::<f32>(&[16384, 2], -1.0, 1.0));
    let y = Array::from_ndarray(&ky.uniform::<f32>(&[16384, 1], 0.0, 1.0));
    let mut trainings = Vec::new();
    for first in (0..runs).step_by(together) {
        let starts: Vec<Start> = (first..first + together)
            .map(|i| {
                let omega0 = 82.0 * 10f64.powf(-2.0 + 4.0 * i as f64 / 20.0);
                let weights = init(omega0).draw(&siren, Key::new(0))?;
                Ok(Start { weights, learning_rate: 1e-4, matrix_learning_rate: 1e-4, eps: 1e-8 })
            })
            .collect::<Result<_>>()?;
        trainings.push(trainer.start(&x, &y, &starts)?);
    }
    Ok(Box::new(move |times| trainings.iter_mut().try_for_each(|t| t.advance(times))))
}

/// One training step of a SIREN: N 256, L 11, 16,384 samples.
fn step(device: &Device) -> Result<Case> {
    let siren = Siren::new(2, 256, 11, 1);
    let step = regression_step(&siren, 16384, &StepOptions { fast_sine: device.is_cpu(), ..StepOptions::default() })?;
    let keys = Key::new(0).split(step.inputs.len());
    let mut arguments = Vec::new();
    for ((name, shape), key) in step.inputs.iter().zip(keys) {
        let uniform = |b: f32| Array::from_ndarray(&key.uniform::<f32>(&shape.dims, -b, b));
        let value = match name.as_str() {
            "learning_rate" => Array::scalar(1e-4f32),
            "omega0" => Array::scalar(82.0f32),
            "omega_h" => Array::scalar(1.0f32),
            "x" | "y" => uniform(1.0),
            "W.0" => uniform(0.5),
            name if name.starts_with("W.") => uniform((6.0f32 / 256.0).sqrt()),
            name if name.starts_with("b.") => uniform(0.1),
            _ => Array::full(DType::F32, &shape.dims, 0.0),
        };
        arguments.push(device.put(&value)?);
    }
    let state = step.outputs.len() - 1;
    Ok(program(device.compile(&step)?, arguments, state))
}

/// One training step of a transformer: d 256, depth 4, 4 heads, sequence 256, batch 4; SEL is mismatch at beta 7.5.
fn language(device: &Device, vocabulary: usize, sel: bool, bf16: bool) -> Result<Case> {
    let transformer = Transformer { looped: false, ..Transformer::new(vocabulary, 256, 4) };
    let model = match sel {
        true => LanguageModel::new(transformer, Sel::new(7.5)),
        false => LanguageModel::new(transformer, Standard),
    };
    let settings = StepSettings {
        batch: 4,
        sequence: 256,
        accumulation: 1,
        optimizer: AdamW::default(),
        clip: 1.0,
        schedule: Schedule { peak: 3e-4, warmup: 250, total: 10_000, decay: Decay::Linear },
        anneal_steps: 10_000,
        bf16,
        replicas: 1,
    };
    let step = step_program(&model, &settings)?;
    let start = model.initial(StartOf::default(), Key::new(0))?;
    let mut arguments = Vec::new();
    for (name, shape) in &step.inputs {
        let value = match (start.get(name), name.as_str()) {
            (Some(value), _) => value.clone(),
            (_, "tokens") => Array::from_ndarray(&Key::new(1).randint(&shape.dims, 0, vocabulary as i32)),
            (_, "finite") => Array::scalar(1f32),
            _ => Array::full(DType::F32, &shape.dims, 0.0),
        };
        arguments.push(device.put(&value)?);
    }
    let state = step.outputs.len() - 2;
    Ok(program(device.compile(&step)?, arguments, state))
}

/// Ten arguments of three numbers, one result: nothing but the cost of a call.
fn call(device: &Device) -> Result<Case> {
    let x: Vec<Tensor> = (0..10).map(|i| Tensor::parameter(&format!("x{i}"), Shape::new(DType::F32, &[3]))).collect();
    let sum = x[1..].iter().fold(x[0].clone(), |sum, t| sum + t);
    let call = Program::new("call", &x, &[("sum", sum)])?;
    let one = Array::full(DType::F32, &[3], 1.0);
    let arguments = (0..10).map(|_| device.put(&one)).collect::<Result<_>>()?;
    Ok(program(device.compile(&call)?, arguments, 0))
}

/// Peak resident memory in MB, without the pages of mapped files (the libraries' code), which processes share.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
    };
    field("VmHWM:") - field("RssFile:")
}

fn main() -> Result<()> {
    tune_allocator();
    let device = Device::open("cpu")?;
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name] = &arguments[..]
        && flag == "--serve"
    {
        let mut case = open(&device, name)?;
        for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
            let answer = if line == "memory" { peak_memory() } else { seconds(&mut case, line.parse().unwrap_or(1))? };
            println!("{answer:e}");
            let _ = std::io::stdout().flush();
        }
        return Ok(());
    }
    for (name, times) in [("step", 5), ("call", 100_000), ("narrow", 64)] {
        let mut case = open(&device, name)?;
        case(2)?;
        println!("{name}: {:.3e} s per run", seconds(&mut case, times)?);
    }
    Ok(())
}

/// Seconds per run.
fn seconds(case: &mut Case, times: usize) -> Result<f64> {
    let start = Instant::now();
    case(times)?;
    Ok(start.elapsed().as_secs_f64() / times as f64)
}
