//! What each initialisation draws each parameter from: law, mean, standard deviation, and what omega multiplies.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use ndarray::{Array1, Array2};
use polars::prelude::Column;
use sinexp::cli;
use sinexp::data::image::Alpha;
use sinexp::error::{Error, Result};
use sinexp::experiment::{Color, Field, METHODS, Method, PAPER_OMEGA0, background, field_of_file};
use sinexp::nn::init::Law;
use sinexp::nn::siren_init::{Initialization, Moments};
use sinexp::report::{Table, TableFormat, significant};

/// Prints the law of every parameter of a network, for one initialisation or all.
///
/// uniform-mm matches the moments of --field; without one it is shown for a field of mean 0, covariance I and Omega I.
#[derive(Parser, Debug)]
#[command(name = "explain-init", version, allow_negative_numbers = true)]
struct Arguments {
    /// Initialisations, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values = METHODS,
          value_parser = clap::builder::PossibleValuesParser::new(METHODS))]
    init: Vec<String>,
    /// A picture or a sound (WAV) whose moments uniform-mm matches; it also settles the dimensions
    #[arg(long, value_name = "FILE")]
    field: Option<PathBuf>,
    /// Channels of a picture [default: gray for a gray one, else rgb]
    #[arg(long, value_enum, requires = "field")]
    color: Option<Color>,
    /// What shows through transparent pixels: white, black or R,G,B from 0 to 255 [default: refuse such pictures]
    #[arg(long, value_name = "COLOUR", requires = "field", value_parser = background)]
    background: Option<Alpha>,
    /// Larger side of a picture's training grid, to which it is resized; 0: as it is
    #[arg(long, value_name = "PIXELS", default_value = "128", value_parser = clap::value_parser!(u64).range(0..=4096))]
    train_size: u64,
    /// Coordinates, N_in [default: 2, or the field's]
    #[arg(long, value_name = "COUNT", conflicts_with = "field", value_parser = clap::value_parser!(u64).range(1..=64))]
    inputs: Option<u64>,
    /// Channels, N_out [default: 1, or the field's]
    #[arg(long, value_name = "COUNT", conflicts_with = "field", value_parser = clap::value_parser!(u64).range(1..=64))]
    outputs: Option<u64>,
    /// Width N
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u64).range(2..=65536))]
    width: u64,
    /// Hidden layers L after the input layer
    #[arg(long, value_name = "L", default_value = "11", value_parser = clap::value_parser!(u64).range(1..=1024))]
    hidden: u64,
    /// Frequency of the input layer [default: 64 pi / sqrt 6; for a sound 30]
    #[arg(long, value_name = "OMEGA")]
    omega0: Option<f64>,
    /// Frequency of the hidden layers
    #[arg(long, value_name = "OMEGA", default_value_t = 1.0)]
    omega_h: f64,
    /// Standard deviation of the positional encoding's frequencies
    #[arg(long, value_name = "SIGMA", default_value_t = 32.0)]
    sigma: f64,
    /// GELU exactly, by erf
    #[arg(long)]
    gelu_erf: bool,
    /// Also writes the table into this file: .csv, .parquet or .md
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    cli::run(|arguments: Arguments| Ok(explain(&arguments)?))
}

fn explain(arguments: &Arguments) -> Result<()> {
    let omega0 = arguments.omega0.unwrap_or(PAPER_OMEGA0);
    for (option, value) in [("--omega0", omega0), ("--omega-h", arguments.omega_h), ("--sigma", arguments.sigma)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::argument(option, value, "give a positive number"));
        }
    }
    let format = arguments.out.as_ref().map(|path| format_of(path)).transpose()?;
    let network = Network::new(arguments)?;
    let rows: Vec<Row> =
        arguments.init.iter().map(|init| rows(arguments, init, &network)).collect::<Result<Vec<_>>>()?.concat();
    let matched = match (&network.field, arguments.init.iter().any(|init| init == "uniform-mm")) {
        (_, false) => String::new(),
        (Some(field), true) => format!("\nuniform-mm matches {} ({})", field.id.name, field.about),
        (None, true) => "\nuniform-mm as for a field of mean 0, Sigma = I, Omega = I (--field names a real one)".into(),
    };
    let sine = match rows.iter().any(|row| row.omega.is_some()) {
        true => {
            "\nSine layers are sin(omega (W x + b)): omega multiplies the bias too. `omega x std` is the spread that \
             reaches the sine."
        }
        false => "",
    };
    let title = format!(
        "Initialisations, N = {}, L = {}, N_in = {}, N_out = {}{matched}{sine}",
        arguments.width, arguments.hidden, network.inputs, network.outputs
    );
    let text = |name: &str, f: fn(&Row) -> &str| Column::new(name.into(), rows.iter().map(f).collect::<Vec<_>>());
    let number = |name: &str, f: fn(&Row) -> f64| Column::new(name.into(), rows.iter().map(f).collect::<Vec<_>>());
    let omega: Vec<Option<f64>> = rows.iter().map(|r| r.omega).collect();
    let effective: Vec<f64> = rows.iter().map(|r| r.omega.unwrap_or(1.0) * r.std).collect();
    let table = Table::new(
        title,
        vec![
            text("init", |r| r.init.as_str()),
            text("parameter", |r| r.parameter.as_str()),
            text("shape", |r| r.shape.as_str()),
            text("law", |r| r.law.as_str()),
            number("mean", |r| r.mean),
            number("std", |r| r.std),
            Column::new("omega".into(), omega),
            Column::new("omega x std".into(), effective),
        ],
    )?;
    if let (Some(path), Some(format)) = (&arguments.out, format) {
        table.write(path, format)?;
    }
    cli::say(&table.to_string());
    Ok(())
}

/// What the networks shown have in common.
struct Network {
    field: Option<Field>,
    inputs: usize,
    outputs: usize,
    omega0: f64,
}

impl Network {
    fn new(arguments: &Arguments) -> Result<Self> {
        let alpha = arguments.background.unwrap_or(Alpha::Refuse);
        let read = |path: &PathBuf| field_of_file(path, arguments.color, (arguments.train_size as usize, 1), alpha);
        let field = arguments.field.as_ref().map(read).transpose()?;
        let (inputs, outputs) = match &field {
            Some(field) => (field.train.shape.len(), field.train.y.ncols()),
            None => (arguments.inputs.unwrap_or(2) as usize, arguments.outputs.unwrap_or(1) as usize),
        };
        let omega0 = arguments.omega0.unwrap_or_else(|| field.as_ref().map_or(PAPER_OMEGA0, Field::omega0));
        Ok(Network { field, inputs, outputs, omega0 })
    }

    /// The field's, or those of a field of mean 0 and unit covariance and derivatives.
    fn moments(&self) -> Result<Moments> {
        let (i, o) = (self.inputs, self.outputs);
        let unit = || Moments { mu: Array1::zeros(o), sigma: Array2::eye(o), omega: Array2::eye(i) };
        self.field.as_ref().map_or_else(|| Ok(unit()), |field| field.moments().cloned())
    }
}

#[derive(Clone)]
struct Row {
    init: String,
    parameter: String,
    shape: String,
    law: String,
    mean: f64,
    std: f64,
    omega: Option<f64>,
}

/// One row per parameter; hidden layers, which are all alike, share theirs.
fn rows(arguments: &Arguments, init: &str, network: &Network) -> Result<Vec<Row>> {
    let method = Method::new(init, network.omega0, arguments.omega_h, arguments.sigma, !arguments.gelu_erf);
    let init: Initialization = method.with_moments(|| network.moments())?;
    let hidden = arguments.hidden as usize;
    let siren = init.siren(network.inputs, arguments.width as usize, hidden, network.outputs);
    let frequencies = init.frequencies();
    let mut all = Vec::new();
    for (name, dims, law) in init.laws(&siren) {
        let layer: Option<usize> = name.split_once('.').and_then(|(_, l)| l.parse().ok());
        if layer.is_some_and(|l| (2..=hidden).contains(&l)) {
            continue;
        }
        let parameter = match layer {
            Some(1) if hidden > 1 => format!("{name} .. {}.{hidden}", &name[..1]),
            _ => name.clone(),
        };
        let omega = match (layer, frequencies) {
            (Some(0), Some((omega0, _))) => Some(omega0),
            (Some(l), Some((_, omega_h))) if l <= hidden => Some(omega_h),
            _ => None,
        };
        let shape = format!("{dims:?}");
        let (mean, std) = (law.mean(), law.std());
        all.push(Row { init: method.init.clone(), parameter, shape, law: in_words(&law), mean, std, omega });
    }
    Ok(all)
}

/// A law on one line, with few digits.
fn in_words(law: &Law) -> String {
    let list = |values: &mut dyn Iterator<Item = &f64>| {
        let texts: Vec<String> = values.map(|v| significant(*v, 4)).collect();
        format!("[{}]", texts.join(", "))
    };
    let matrix = |c: &Array2<f64>| c.rows().into_iter().map(|r| list(&mut r.iter())).collect::<Vec<_>>().join(", ");
    match law {
        Law::Constant(values) => list(&mut values.iter()),
        Law::GaussianRows(c) => format!("rows ~ N(0, [{}])", matrix(c)),
        Law::GaussianColumns(c) => format!("columns ~ N(0, [{}])", matrix(c)),
        Law::Uniform { lo, hi } => format!("U({}, {})", significant(*lo, 4), significant(*hi, 4)),
        Law::Normal { std } => format!("N(0, {}^2)", significant(*std, 4)),
        Law::Zeros => law.to_string(),
    }
}

fn format_of(path: &Path) -> Result<TableFormat> {
    match path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
        Some("csv") => Ok(TableFormat::Csv),
        Some("parquet") => Ok(TableFormat::Parquet),
        Some("md") => Ok(TableFormat::Markdown),
        _ => Err(Error::argument("--out", path.display(), "the name must end in .csv, .parquet or .md")),
    }
}
