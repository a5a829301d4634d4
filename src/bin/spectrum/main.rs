//! Singular values of Jacobians: of a deep sine network's, hidden to hidden (the uniform-phase paper's Figure 3), and of any
//! program's.

mod networks;
mod program;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde_json::{Value, json};
use sinexp::analysis::protocol::SINE_INITS;
use sinexp::cli::{self, DeviceArguments, RunRecord};
use sinexp::error::{Error, Result};
use sinexp::files::ensure_writable_folder;
use sinexp::nn::siren_weights::Layout;
use sinexp::report::spectrum::{figure, spectra_table, summary_table};
use sinexp::report::{CURVES, Figure, FigureFiles, Table, TableFormat};
use sinexp::runtime::{set_verbose, tune_allocator};

/// Singular values of J = dh_L/dh_1 at random inputs, by initialisation and depth. The defaults are the protocol of
/// the uniform-phase paper (arXiv 2609.30633, Appendix C): its Figure 3. With --weights, of a network of yours; with --hlo,
/// of any function that JAX or another library wrote as a program.
///
/// Exit code 2 means a mistake in the call or in a file, 1 a failure.
#[derive(Parser, Debug)]
#[command(name = "spectrum", version, allow_negative_numbers = true)]
struct Arguments {
    /// Units per layer, N
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u64).range(1..=4096))]
    width: u64,
    /// Hidden layers after the input layer, L; several separated by commas
    #[arg(long, value_name = "L,...", default_value = "4,8,16,32", value_parser = parse_depth, value_delimiter = ',')]
    depths: Vec<usize>,
    /// Initialisations, separated by commas
    #[arg(long, value_name = "NAME,...", default_value = "uniform-mm,cvp26-s0,cvp26-s1,sm20", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(SINE_INITS))]
    inits: Vec<String>,
    /// Independently initialised networks for each initialisation and depth
    #[arg(long, value_name = "COUNT", default_value = "5", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    networks: u64,
    /// Random inputs for each network
    #[arg(long, value_name = "COUNT", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    points: u64,
    /// Seed of all random numbers
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Frequency of the input layer [default: 30; with --weights, what the file says]
    #[arg(long, value_name = "OMEGA", value_parser = parse_frequency)]
    omega0: Option<f64>,
    /// Frequency of the hidden layers [default: 1; with --weights, what the file says]
    #[arg(long, value_name = "OMEGA", value_parser = parse_frequency)]
    omega_h: Option<f64>,
    /// Range of the random inputs, the same for each coordinate [default: -pi,pi; with --weights, -1,1]
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true, value_parser = parse_domain)]
    domain: Option<(f64, f64)>,
    #[command(flatten)]
    device: DeviceArguments,
    /// Folder for results; made if need be
    #[arg(long, value_name = "FOLDER", default_value = "runs/spectrum")]
    out: PathBuf,
    /// What to write, separated by commas
    #[arg(long, value_name = "FORMAT,...", default_value = "png,svg,csv,parquet,md", value_delimiter = ',',
          value_parser = ["png", "svg", "csv", "parquet", "md"])]
    format: Vec<String>,
    /// Takes a trained or foreign SIREN from this .safetensors or .npz file instead of drawing networks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["width", "depths", "inits", "networks"])]
    weights: Option<PathBuf>,
    /// How FILE names weight/bias of layer {i}, e.g. W.{i}/b.{i} or params/Dense_{i}/kernel/params/Dense_{i}/bias; several
    /// pairs by commas, one without {i} for the output layer [default: as this toolkit, PyTorch, Equinox and Flax do]
    #[arg(long, value_name = "PATTERNS", requires = "weights")]
    names: Option<String>,
    /// Which way FILE's matrices lie [default: in-out where they are called kernel, else out-in]
    #[arg(long, value_enum, requires = "weights")]
    layout: Option<Lies>,
    /// Differentiates this program instead: HLO text, an HLO protocol buffer, StableHLO text, a portable artifact or a file
    /// of jax.export. J = d output/d wrt, each as one vector, in the program's own types; singular values in f64
    #[arg(long, value_name = "PROGRAM", requires = "input",
          conflicts_with_all = ["weights", "width", "depths", "inits", "networks", "points", "seed", "domain", "omega0", "omega_h"])]
    hlo: Option<PathBuf>,
    /// Where to differentiate: a .safetensors or .npz file with the argument to differentiate by, of the program's shape
    /// (one point) or with one more axis in front (many points); it may hold other arguments too
    #[arg(long, value_name = "FILE", requires = "hlo")]
    input: Option<PathBuf>,
    /// The program's other arguments by name, .safetensors or .npz; repeatable. `params['a']['w']`, params/a/w and a.w are
    /// one name
    #[arg(long, value_name = "FILE", requires = "hlo")]
    params: Vec<PathBuf>,
    /// The result to differentiate, by name or number from 0 [default: the only floating-point one]
    #[arg(long, value_name = "RESULT", requires = "hlo")]
    output: Option<String>,
    /// The argument to differentiate by, by name or number from 0 [default: the only floating-point one that is not in
    /// --params, or that is in --input]
    #[arg(long, value_name = "ARGUMENT", requires = "hlo")]
    wrt: Option<String>,
    /// Takes axis 0 of argument and result as independent samples and J as each sample's own. That they do not mix is
    /// checked
    #[arg(long, requires = "hlo")]
    batched: bool,
    /// Shows XLA's own messages
    #[arg(short, long)]
    verbose: bool,
}

/// The values of --layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lies {
    /// (outputs, inputs), as PyTorch and Equinox
    OutIn,
    /// (inputs, outputs), as Flax
    InOut,
}

impl From<Lies> for Layout {
    fn from(lies: Lies) -> Layout {
        match lies {
            Lies::OutIn => Layout::OutIn,
            Lies::InOut => Layout::InOut,
        }
    }
}

/// What there is to write.
struct Outcome {
    config: Value,
    summary: Table,
    spectra: Table,
    figure: Figure,
    /// Of the figure's files.
    stem: &'static str,
}

fn main() -> ExitCode {
    // XLA ends the process on some damaged programs.
    let opens_program = std::env::args_os().any(|a| a == "--hlo" || a.to_string_lossy().starts_with("--hlo="));
    if opens_program && let Some(code) = cli::supervised("the work on this program") {
        return code;
    }
    tune_allocator();
    cli::run(spectrum)
}

fn spectrum(arguments: Arguments) -> anyhow::Result<()> {
    set_verbose(arguments.verbose);
    once("--depths", &arguments.depths)?;
    once("--inits", &arguments.inits)?;
    // Whatever the person can have got wrong is found before anything is written.
    let foreign = arguments.weights.as_deref().map(|path| networks::read_weights(path, &arguments)).transpose()?;
    let device = arguments.device.open()?;
    let opened = arguments.hlo.as_deref().map(|path| program::Opened::new(path, &arguments, &device)).transpose()?;
    ensure_writable_folder(&arguments.out)?;

    let mut record = RunRecord::new("spectrum", arguments.seed, &device.describe());
    let outcome = match (opened, foreign) {
        (Some(opened), _) => opened.outcome()?,
        (None, Some((name, siren))) => of_cells(networks::foreign_cells(&arguments, &device, &name, siren)?)?,
        (None, None) => of_cells(networks::drawn_cells(&arguments, &device)?)?,
    };
    record.set("config", outcome.config.clone());
    cli::say(&outcome.summary.to_string());
    let files = write(&arguments, &outcome)?;
    record.set("files", json!(files));
    record.write(&arguments.out)?;
    cli::say(&format!("\nWritten to {}: {}, run.json", arguments.out.display(), files.join(", ")));
    Ok(())
}

/// Tables and figure of sine networks.
fn of_cells((cells, config): (Vec<sinexp::analysis::spectrum::Cell>, Value)) -> Result<Outcome> {
    let what = config["what"].as_str().unwrap_or_default().to_owned();
    let summary = summary_table(&format!("Singular values of J = dh_L/dh_1: {what}"), &cells)?;
    Ok(Outcome { config, summary, spectra: spectra_table(&cells)?, figure: figure(&cells, &what), stem: "fig3" })
}

/// Writes what --format asks for and returns the files' names.
fn write(arguments: &Arguments, outcome: &Outcome) -> Result<Vec<String>> {
    let Outcome { summary, spectra, figure, stem, .. } = outcome;
    let wants = |name: &str| arguments.format.iter().any(|f| f == name);
    let formats: Vec<TableFormat> = [TableFormat::Csv, TableFormat::Parquet, TableFormat::Markdown]
        .into_iter()
        .filter(|f| wants(f.extension()))
        .collect();
    let data: Vec<TableFormat> = formats.iter().copied().filter(|f| *f != TableFormat::Markdown).collect();
    let mut paths = Vec::new();
    if wants("png") {
        paths.push(figure.write_png(arguments.out.join(format!("{stem}.png")))?);
    }
    if wants("svg") {
        paths.push(figure.write_svg(arguments.out.join(format!("{stem}.svg")))?);
    }
    if wants("parquet")
        && let Some(curves) = figure.curves()?
    {
        let path = arguments.out.join(format!("{stem}{CURVES}"));
        curves.write(&path, TableFormat::Parquet)?;
        paths.push(path);
    }
    paths.extend(summary.write_all(&arguments.out, "summary", &formats)?);
    if !data.is_empty() {
        paths.extend(spectra.write_all(&arguments.out, "spectra", &data)?);
    }
    let names = paths.iter().filter_map(|p| p.file_name());
    Ok(names.map(|n| n.to_string_lossy().into_owned()).collect())
}

/// **Errors** when a value of a list occurs twice.
fn once<T: PartialEq + std::fmt::Display>(option: &str, values: &[T]) -> Result<()> {
    match values.iter().enumerate().find(|(i, v)| values[..*i].contains(v)) {
        Some((_, value)) => Err(Error::argument(option, value, "given twice")),
        None => Ok(()),
    }
}

fn parse_depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(depth @ 2..=1024) => Ok(depth),
        Ok(_) => Err("dh_L/dh_1 needs a depth of at least 2, and at most 1024 layers are compiled".into()),
        Err(_) => Err("give a whole number of at least 2".into()),
    }
}

fn parse_frequency(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(omega) if omega.is_finite() && omega > 0.0 => Ok(omega),
        _ => Err("a frequency is a positive number".into()),
    }
}

fn parse_domain(text: &str) -> Result<(f64, f64), String> {
    let number = |t: &str| t.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    match text.split_once(',').map(|(low, high)| (number(low), number(high))) {
        Some((Some(low), Some(high))) if low < high => Ok((low, high)),
        Some((Some(_), Some(_))) => Err("the first number must be smaller than the second".into()),
        _ => Err("give two numbers with a comma between them, as -1,1".into()),
    }
}
