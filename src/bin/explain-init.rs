//! What each initialisation draws each parameter from: law, mean, standard deviation, and what omega multiplies.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use ndarray::{Array1, Array2};
use polars::prelude::Column;
use sinexp::cli;
use sinexp::data::image::Alpha;
use sinexp::error::{Error, Result};
use sinexp::experiment::{Color, METHODS, Method, PAPER_OMEGA0, field_of_file};
use sinexp::nn::siren_init::{Initialization, Moments};
use sinexp::report::{Table, TableFormat};

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
    /// Channels of a picture
    #[arg(long, value_enum, default_value = "rgb")]
    color: Color,
    /// Largest dimension of a picture's training grid; 0: as it is
    #[arg(long, value_name = "PIXELS", default_value = "128")]
    train_size: usize,
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
    /// Frequency of the input layer [default: 64 pi / sqrt 6]
    #[arg(long, value_name = "OMEGA", default_value_t = PAPER_OMEGA0)]
    omega0: f64,
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
    for (option, value) in
        [("--omega0", arguments.omega0), ("--omega-h", arguments.omega_h), ("--sigma", arguments.sigma)]
    {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::argument(option, value, "give a positive number"));
        }
    }
    let format = arguments.out.as_deref().map(format_of).transpose()?;
    let field = arguments
        .field
        .as_ref()
        .map(|path| field_of_file(path, Some(arguments.color), (arguments.train_size, 0), Alpha::Over([1.0; 3])));
    let field = field.transpose()?;
    let (moments, from) = match &field {
        Some(field) => (field.moments()?.clone(), format!("{} ({})", field.id.name, field.about)),
        None => {
            let (inputs, outputs) = (arguments.inputs.unwrap_or(2) as usize, arguments.outputs.unwrap_or(1) as usize);
            let unit = Moments { mu: Array1::zeros(outputs), sigma: Array2::eye(outputs), omega: Array2::eye(inputs) };
            (unit, "no field: mean 0, Sigma = I, Omega = I".into())
        }
    };
    let rows: Vec<Row> =
        arguments.init.iter().map(|init| rows(arguments, init, &moments)).collect::<Result<Vec<_>>>()?.concat();
    let title = format!(
        "Initialisations, N = {}, L = {}, {} coordinates, {} channels\nuniform-mm matches {from}\nSine layers are sin(omega \
         (W x + b)): omega multiplies the bias too. `omega x std` is the spread that reaches the sine.",
        arguments.width,
        arguments.hidden,
        moments.omega.nrows(),
        moments.mu.len()
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
    cli::say(&table.to_string());
    match (&arguments.out, format) {
        (Some(path), Some(format)) => table.write(path, format),
        _ => Ok(()),
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
fn rows(arguments: &Arguments, init: &str, moments: &Moments) -> Result<Vec<Row>> {
    let method = Method::new(init, arguments.omega0, arguments.omega_h, arguments.sigma, !arguments.gelu_erf);
    let init: Initialization = method.with_moments(|| Ok(moments.clone()))?;
    let hidden = arguments.hidden as usize;
    let siren = init.siren(moments.omega.nrows(), arguments.width as usize, hidden, moments.mu.len());
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
        all.push(Row { init: method.init.clone(), parameter, shape, law: law.to_string(), mean, std, omega });
    }
    Ok(all)
}

fn format_of(path: &Path) -> Result<TableFormat> {
    match path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
        Some("csv") => Ok(TableFormat::Csv),
        Some("parquet") => Ok(TableFormat::Parquet),
        Some("md") => Ok(TableFormat::Markdown),
        _ => Err(Error::argument("--out", path.display(), "the name must end in .csv, .parquet or .md")),
    }
}
