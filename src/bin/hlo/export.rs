//! `hlo export` and `hlo list`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use sinexp::array::DType;
use sinexp::catalog::{Choices, Entry, Function, Network, entries, find};
use sinexp::cli::say;
use sinexp::error::Error;
use sinexp::files::write_bytes;
use sinexp::interop::program::Foreign;
use sinexp::nn::siren::Activation;
use sinexp::runtime::translate::hlo_text_to_proto;

use crate::formats::{Details, To};

/// Writes one of the toolkit's programs, or any program, as a file for JAX and others.
///
/// `hlo list` lists the programs and their options. A file is taken as well: as a jax.export file it then has its
/// derivative, where the toolkit knows all its operations.
#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub struct Export {
    /// Name of a program, or a program file
    #[arg(value_name = "PROGRAM")]
    program: String,
    /// Format to write
    #[arg(long, value_enum)]
    to: To,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    details: Details,
    #[command(flatten)]
    choices: Options,
}

/// What a program is built with.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sizes and choices of a program")]
struct Options {
    /// Takes the network from trained weights: a safetensors file of `fit`; a run, a checkpoint or weights of `sel`
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Element type: f32, f64, or bf16 for a transformer's activations
    #[arg(long, value_name = "TYPE")]
    dtype: Option<String>,
    /// Nonlinearity of a coordinate network: sine, tanh, relu, silu, gelu or gelu-tanh
    #[arg(long, value_name = "NAME")]
    activation: Option<String>,
    /// Dimension of the coordinates
    #[arg(long, value_name = "SIZE")]
    inputs: Option<usize>,
    /// Width of the network
    #[arg(long, value_name = "SIZE")]
    width: Option<usize>,
    /// Hidden layers after the input layer
    #[arg(long, value_name = "COUNT")]
    hidden: Option<usize>,
    /// Dimension of the field
    #[arg(long, value_name = "SIZE")]
    outputs: Option<usize>,
    /// Coordinates of a batch
    #[arg(long, value_name = "COUNT")]
    samples: Option<usize>,
    /// Rows of a matrix
    #[arg(long, value_name = "SIZE")]
    rows: Option<usize>,
    /// Columns of a matrix
    #[arg(long, value_name = "SIZE")]
    columns: Option<usize>,
    /// Rank of the residual
    #[arg(long, value_name = "RANK")]
    rank: Option<usize>,
    /// Tokens known
    #[arg(long, value_name = "COUNT")]
    vocabulary: Option<usize>,
    /// Blocks of the transformer
    #[arg(long, value_name = "COUNT")]
    depth: Option<usize>,
    /// Attention heads
    #[arg(long, value_name = "COUNT")]
    heads: Option<usize>,
    /// Sequences of a batch
    #[arg(long, value_name = "COUNT")]
    batch: Option<usize>,
    /// Tokens of a sequence
    #[arg(long, value_name = "COUNT")]
    sequence: Option<usize>,
    /// Batches whose gradients are averaged
    #[arg(long, value_name = "COUNT")]
    accumulation: Option<usize>,
    /// Steps of warm-up
    #[arg(long, value_name = "COUNT")]
    warmup: Option<usize>,
    /// Steps of the whole training
    #[arg(long, value_name = "COUNT")]
    steps: Option<usize>,
    /// Curvature of the SEL transform
    #[arg(long)]
    beta: Option<f64>,
    /// Highest learning rate
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,
}

impl Options {
    fn choices(&self) -> Result<Choices> {
        let sizes = [
            ("inputs", self.inputs),
            ("width", self.width),
            ("hidden", self.hidden),
            ("outputs", self.outputs),
            ("samples", self.samples),
            ("rows", self.rows),
            ("columns", self.columns),
            ("rank", self.rank),
            ("vocabulary", self.vocabulary),
            ("depth", self.depth),
            ("heads", self.heads),
            ("batch", self.batch),
            ("sequence", self.sequence),
            ("accumulation", self.accumulation),
            ("warmup", self.warmup),
            ("steps", self.steps),
        ];
        let numbers = [("beta", self.beta), ("learning-rate", self.learning_rate)];
        Ok(Choices {
            sizes: sizes.into_iter().filter_map(|(name, size)| Some((name.to_owned(), size?))).collect(),
            numbers: numbers.into_iter().filter_map(|(name, x)| Some((name.to_owned(), x?))).collect(),
            dtype: self.dtype.as_deref().map(dtype).transpose()?,
            activation: self.activation.as_deref().map(activation).transpose()?,
            weights: self.weights.clone(),
        })
    }
}

fn dtype(name: &str) -> Result<DType> {
    let known = DType::ALL.into_iter().find(|d| d.hlo_name() == name);
    Ok(known.ok_or_else(|| Error::argument("--dtype", name, "expected f32, f64 or bf16"))?)
}

fn activation(name: &str) -> Result<Activation> {
    Ok(match name {
        "sine" => Activation::Sine,
        "tanh" => Activation::Tanh,
        "relu" => Activation::Relu,
        "silu" => Activation::Silu,
        "gelu" => Activation::Gelu { approximate: false },
        "gelu-tanh" => Activation::Gelu { approximate: true },
        _ => {
            let known = "expected sine, tanh, relu, silu, gelu or gelu-tanh";
            return Err(Error::argument("--activation", name, known).into());
        }
    })
}

pub fn run(arguments: &Export) -> Result<()> {
    let Export { to, details, .. } = arguments;
    details.check(*to)?;
    let choices = arguments.choices.choices()?;
    let path = Path::new(&arguments.program);
    let known = entries().iter().any(|e| e.name == arguments.program);
    let (function, bytes, note) = if !known && path.is_file() {
        if choices != Choices::default() {
            let reason = "is a file: its sizes and choices are what they are";
            return Err(Error::argument("program", path.display(), reason).into());
        }
        let foreign = Foreign::open(path)?;
        let (bytes, note) = foreign_bytes(&foreign, *to, details)?;
        (Function::of_foreign(&foreign)?, bytes, note)
    } else {
        let entry = find(&arguments.program)?;
        let function = entry.build(&choices)?;
        if *to == To::JaxExport {
            let (exported, note) = details.exported(&function, entry.orders, true)?;
            (function, exported.to_bytes()?, note)
        } else {
            let text = &function.program.text;
            let bytes = details.module(*to, &hlo_text_to_proto(text)?, text)?;
            (function, bytes, None)
        }
    };
    write_bytes(&arguments.out, &bytes)?;
    say(&format!("{}: {} bytes written to {}", to.words(), bytes.len(), arguments.out.display()));
    say(&ports(&function, *to));
    if let Some(reason) = note {
        say(&format!("not differentiable in JAX: {reason}"));
    }
    Ok(())
}

/// A program of others in a format, and why JAX cannot differentiate it where that is so.
pub fn foreign_bytes(foreign: &Foreign, to: To, details: &Details) -> Result<(Vec<u8>, Option<String>)> {
    if to != To::JaxExport {
        return Ok((details.module(to, &foreign.module, &foreign.text)?, None));
    }
    let function = Function::of_foreign(foreign)?;
    // Custom calls are of one platform's library.
    let (exported, note) = details.exported(&function, 1, foreign.signature.custom_calls.is_empty())?;
    Ok((exported.to_bytes()?, note))
}

/// Inputs and results in the order of the file: name, shape, place in the pytree of the function.
fn ports(function: &Function, to: To) -> String {
    let program = &function.program;
    let mut lines = vec![function.to_string()];
    let (mut inputs, mut outputs) = (function.inputs(), function.outputs());
    if to != To::JaxExport {
        inputs.sort_by_key(|p| p.0);
        outputs.sort_by_key(|p| p.0);
    }
    for (title, ports, names) in [("inputs", inputs, &program.inputs), ("results", outputs, &program.outputs)] {
        lines.push(title.into());
        let name = |i: usize| names[i].0.as_str();
        let width = ports.iter().map(|p| name(p.0).chars().count()).max().unwrap_or(0);
        let shapes = ports.iter().map(|p| p.2.to_string().len()).max().unwrap_or(0);
        for (i, path, shape) in &ports {
            lines.push(format!("  {:width$}  {:shapes$}  {path}", name(*i), shape.to_string()));
        }
    }
    lines.join("\n")
}

/// Every program with its signature at the default sizes.
pub fn list() -> Result<()> {
    for entry in entries() {
        let function = entry.build(&Choices::default())?;
        say(&format!("{function}\n    {}\n    {}", entry.about, options(&entry)));
    }
    Ok(())
}

fn options(entry: &Entry) -> String {
    let sizes = entry.sizes.iter().map(|s| format!("--{} {}", s.name, s.default));
    let numbers = entry.numbers.iter().map(|(name, x)| format!("--{name} {x}"));
    let types: Vec<&str> = entry.dtypes.iter().map(|d| d.hlo_name()).collect();
    let mut all: Vec<String> = sizes.chain(numbers).chain([format!("--dtype {}", types.join("|"))]).collect();
    if entry.network == Network::Siren {
        all.push("--activation NAME".into());
    }
    if entry.network != Network::None {
        all.push("--weights FILE".into());
    }
    all.join(" ")
}
