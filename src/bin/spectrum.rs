//! Singular values of a deep sine network's hidden-to-hidden Jacobian: the uniform-phase paper's Figure 3.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use serde_json::json;
use sinexp::analysis::protocol::{Protocol, SINE_INITS, Weights, moment_field, sampled_points, spectra};
use sinexp::analysis::spectrum::Cell;
use sinexp::cli::{self, DeviceArguments, Progress, RunRecord};
use sinexp::error::{Error, Result};
use sinexp::files::ensure_writable_folder;
use sinexp::nn::siren_weights::{LayerNames, SirenWeights};
use sinexp::report::spectrum::{figure, spectra_table, summary_table};
use sinexp::report::{Figure, Table, TableFormat};
use sinexp::runtime::{Device, set_verbose, tune_allocator};

/// Singular values of J = dh_L/dh_1 at random inputs, by initialisation and depth. The defaults are the protocol of
/// the uniform-phase paper (arXiv 2609.30633, Appendix C): its Figure 3.
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
    #[arg(long, value_name = "FOLDER", default_value = "figures/spectrum")]
    out: PathBuf,
    /// What to write, separated by commas
    #[arg(long, value_name = "FORMAT,...", default_value = "png,svg,csv,parquet,md", value_delimiter = ',',
          value_parser = ["png", "svg", "csv", "parquet", "md"])]
    format: Vec<String>,
    /// Takes a trained or foreign SIREN from this safetensors file instead of drawing networks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["width", "depths", "inits", "networks"])]
    weights: Option<PathBuf>,
    /// How FILE names weight/bias of layer {i}, e.g. W.{i}/b.{i}; several pairs by commas
    #[arg(long, value_name = "PATTERNS", requires = "weights")]
    names: Option<String>,
    /// Shows XLA's own messages
    #[arg(short, long)]
    verbose: bool,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(spectrum)
}

fn spectrum(arguments: Arguments) -> anyhow::Result<()> {
    set_verbose(arguments.verbose);
    once("--depths", &arguments.depths)?;
    once("--inits", &arguments.inits)?;
    // Whatever the person can have got wrong is found before anything is written.
    let foreign = arguments.weights.as_deref().map(|path| read_weights(path, &arguments)).transpose()?;
    let device = arguments.device.open()?;
    ensure_writable_folder(&arguments.out)?;

    let mut record = RunRecord::new("spectrum", arguments.seed, &device.describe());
    let (cells, config) = match foreign {
        Some((name, siren)) => foreign_cells(&arguments, &device, &name, siren)?,
        None => drawn_cells(&arguments, &device)?,
    };
    let what = config["what"].as_str().unwrap_or_default().to_owned();
    record.set("config", config);
    let summary = summary_table(&format!("Singular values of J = dh_L/dh_1: {what}"), &cells)?;
    cli::say(&summary.to_string());
    let files = write(&arguments, &cells, &summary, &figure(&cells, &what))?;
    record.set("files", json!(files));
    record.write(&arguments.out)?;
    cli::say(&format!("\nWritten to {}: {}, run.json", arguments.out.display(), files.join(", ")));
    Ok(())
}

/// The networks of the paper's protocol: one cell for each initialisation and depth.
fn drawn_cells(arguments: &Arguments, device: &Device) -> anyhow::Result<(Vec<Cell>, serde_json::Value)> {
    let protocol = Protocol {
        width: arguments.width as usize,
        networks: arguments.networks as usize,
        points: arguments.points as usize,
        seed: arguments.seed,
        omega0: arguments.omega0.unwrap_or(30.0),
        omega_h: arguments.omega_h.unwrap_or(1.0),
        domain: arguments.domain.unwrap_or((-std::f64::consts::PI, std::f64::consts::PI)),
    };
    let moments = match arguments.inits.iter().any(|i| i == "uniform-mm") {
        true => Some(moment_field(device, &protocol)?),
        false => None,
    };
    let total = arguments.inits.len() * arguments.depths.len() * protocol.networks;
    let mut progress = Progress::new("spectrum", total as u64);
    let mut cells = Vec::new();
    for depth in &arguments.depths {
        let jacobian = protocol.jacobian(device, *depth)?;
        for init in &arguments.inits {
            cells.push(protocol.cell(&jacobian, init, *depth, moments.as_ref(), || {
                progress.step(&format!("{init} L {depth}"));
            })?);
        }
    }
    drop(progress);
    // Grouped as in the paper: by initialisation, then depth, each in the order given.
    let place = |c: &Cell| arguments.inits.iter().position(|i| i == c.name());
    cells.sort_by_key(place);
    let what = format!(
        "N = {}, {} networks × {} points on [{:.4}, {:.4}], seed {}.",
        protocol.width, protocol.networks, protocol.points, protocol.domain.0, protocol.domain.1, protocol.seed
    );
    let config = json!({
        "what": what,
        "width": protocol.width,
        "depths": arguments.depths,
        "inits": arguments.inits,
        "networks": protocol.networks,
        "points": protocol.points,
        "omega0": protocol.omega0,
        "omega_h": protocol.omega_h,
        "domain": protocol.domain,
        "moments": moments.map(|m| json!({ "mu": m.mu.to_vec(), "sigma": m.sigma.iter().collect::<Vec<_>>(),
                                           "omega": m.omega.iter().collect::<Vec<_>>() })),
    });
    Ok((cells, config))
}

/// The one network of a file.
fn foreign_cells(
    arguments: &Arguments,
    device: &Device,
    name: &str,
    siren: SirenWeights,
) -> anyhow::Result<(Vec<Cell>, serde_json::Value)> {
    let domain = arguments.domain.unwrap_or((-1.0, 1.0));
    let (width, depth, omega0, omega_h) = (siren.width, siren.depth, siren.omega0, siren.omega_h);
    let points = sampled_points(arguments.seed, arguments.points as usize, siren.n_in, domain);
    let (network, weights): (_, Weights) = siren.clone().network();
    let jacobian = sinexp::analysis::jacobian::HiddenJacobian::new(device, &network, arguments.points as usize)?;
    let cell = spectra(&jacobian, name, network.hidden, 1, |_| Ok((weights.clone(), points.clone())), || {})?;
    let what = format!(
        "{name}, N = {}, L = {}, ω₀ = {}, ω = {}, {} points on [{}, {}], seed {}.",
        width, depth, omega0, omega_h, arguments.points, domain.0, domain.1, arguments.seed
    );
    let config = json!({
        "what": what,
        "weights": arguments.weights,
        "width": width,
        "depths": [depth],
        "points": arguments.points,
        "omega0": omega0,
        "omega_h": omega_h,
        "domain": domain,
    });
    Ok((vec![cell], config))
}

/// The network in a file, and the file's name without its extension.
fn read_weights(path: &Path, arguments: &Arguments) -> anyhow::Result<(String, SirenWeights)> {
    let names = arguments.names.as_deref().map_or_else(|| Ok(LayerNames::default()), LayerNames::parse)?;
    let file = sinexp::interop::safetensors::read(path)?;
    let omega = (arguments.omega0, arguments.omega_h);
    let siren = SirenWeights::find(&file.tensors, &file.metadata, &names, omega);
    let siren = siren.with_context(|| path.display().to_string())?;
    let name = path.file_stem().map_or_else(|| "network".into(), |s| s.to_string_lossy().into_owned());
    Ok((name, siren))
}

/// Writes what --format asks for and returns the files' names.
fn write(arguments: &Arguments, cells: &[Cell], summary: &Table, figure: &Figure) -> Result<Vec<String>> {
    let wants = |name: &str| arguments.format.iter().any(|f| f == name);
    let formats: Vec<TableFormat> = [TableFormat::Csv, TableFormat::Parquet, TableFormat::Markdown]
        .into_iter()
        .filter(|f| wants(f.extension()))
        .collect();
    let data: Vec<TableFormat> = formats.iter().copied().filter(|f| *f != TableFormat::Markdown).collect();
    let mut paths = Vec::new();
    if wants("png") {
        paths.push(figure.write_png(arguments.out.join("fig3.png"))?);
    }
    if wants("svg") {
        paths.push(figure.write_svg(arguments.out.join("fig3.svg"))?);
    }
    paths.extend(summary.write_all(&arguments.out, "summary", &formats)?);
    if !data.is_empty() {
        paths.extend(spectra_table(cells)?.write_all(&arguments.out, "spectra", &data)?);
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
        Err(_) => Err("not a whole number".into()),
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
