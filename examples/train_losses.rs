//! Trains every initialisation for a few steps on the camera picture and prints the losses as JSON, for
//! `python/checks/check_training.py` to lay beside JAX's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::{Map, Value, json};
use sinexp::array::Array;
use sinexp::cli::{self, say};
use sinexp::error::{Error, Result};
use sinexp::experiment::{Color, Field, METHODS, Method, PAPER_OMEGA0, RunConfig};
use sinexp::interop::safetensors::{self, Tensors};
use sinexp::nn::siren::Siren;
use sinexp::runtime::Device;
use sinexp::train::{Start, Trainer, Weights};

/// Frequency of the hidden layers of the baselines.
const OMEGA_H: f64 = 1.0;
/// Standard deviation of the positional encoding's frequencies.
const PE_SIGMA: f64 = 32.0;

/// Trains every initialisation of the SIREN experiments on the camera picture, in gray, and prints one JSON object.
///
/// For each initialisation it has the losses before steps 1, 2 ... STEPS + 1, so that the last one is the loss after
/// STEPS steps, and mean and mean square of every initial parameter.
#[derive(Parser, Debug)]
#[command(name = "train_losses")]
struct Arguments {
    /// Width N
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u64).range(2..=8192))]
    width: u64,
    /// Hidden layers L after the input layer
    #[arg(long, value_name = "L", default_value = "11", value_parser = clap::value_parser!(u64).range(1..=256))]
    hidden: u64,
    /// Adam steps
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    steps: u64,
    /// Largest dimension of the training grid
    #[arg(long, value_name = "PIXELS", default_value = "128", value_parser = clap::value_parser!(u64).range(2..=4096))]
    train_size: u64,
    /// Also writes the samples, as `x` and `y`, and the initial parameters, as `INIT.NAME`, into this safetensors file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    cli::run(|arguments: Arguments| Ok(losses(&arguments)?))
}

fn losses(arguments: &Arguments) -> Result<()> {
    let (steps, size) = (arguments.steps as usize, arguments.train_size as usize);
    let field = Field::named("camera", Color::Gray, (size, size), &[])?;
    let (x, y) = (&field.train.x, Array::from_ndarray(&field.train.y));
    let device = Device::open("cpu")?;
    let mut kept = BTreeMap::from([("x".to_owned(), x.clone()), ("y".to_owned(), y.clone())]);
    let mut inits = Map::new();
    // Networks of one shape share a program.
    let mut trainers: Vec<(Siren, Trainer)> = Vec::new();
    for init in METHODS {
        let config = config(arguments, &field, init);
        let (siren, start) = (config.siren(&field)?, config.start(&field)?);
        if !trainers.iter().any(|(s, _)| *s == siren) {
            let trainer = Trainer::new(&device, &siren, y.dims()[0], None, None)?;
            trainers.push((siren.clone(), trainer));
        }
        let found = trainers.iter().find(|(s, _)| *s == siren);
        let (_, trainer) = found.ok_or_else(|| Error::numeric(init, "no program for its network"))?;
        let mut training = trainer.start(x, &y, &[start.clone()])?;
        training.advance(steps + 1)?;
        inits.insert(init.to_owned(), report(&training.losses()[0], &start));
        kept.extend(start.weights.into_iter().map(|(name, value)| (format!("{init}.{name}"), value)));
    }
    say(&json!({
        "field": field.id,
        "shape": field.train.shape,
        "width": arguments.width,
        "hidden": arguments.hidden,
        "steps": steps,
        "omega0": PAPER_OMEGA0,
        "omega_h": OMEGA_H,
        "pe_sigma": PE_SIGMA,
        "inits": inits,
    })
    .to_string());
    match &arguments.out {
        Some(path) => safetensors::write(path, &Tensors { tensors: kept, metadata: BTreeMap::new() }),
        None => Ok(()),
    }
}

/// `init` with the paper's numbers, seed 0, learning rate 1e-4.
fn config(arguments: &Arguments, field: &Field, init: &str) -> RunConfig {
    RunConfig {
        version: 1,
        field: field.id.clone(),
        method: Method::new(init, PAPER_OMEGA0, OMEGA_H, PE_SIGMA, true),
        width: arguments.width as usize,
        hidden: arguments.hidden as usize,
        steps: arguments.steps as usize,
        seed: 0,
        learning_rate: 1e-4,
        matrix_rate: 1.0,
        output_scale: 1.0,
        eps: 1e-8,
        block: None,
        platform: "cpu".into(),
    }
}

fn report(losses: &[f32], start: &Start) -> Value {
    json!({
        "losses": losses,
        "learning_rate": start.learning_rate,
        "eps": start.eps,
        "parameters": checksums(&start.weights),
    })
}

/// Mean and mean square of every tensor.
fn checksums(weights: &Weights) -> Value {
    let of = |value: &Array| {
        let values = value.to_f64_vec();
        let mean = |f: fn(f64) -> f64| values.iter().map(|v| f(*v)).sum::<f64>() / values.len() as f64;
        json!({ "mean": mean(|v| v), "mean_square": mean(|v| v * v) })
    };
    weights.iter().map(|(name, value)| (name.clone(), of(value))).collect::<Map<_, _>>().into()
}
