//! What training made of a checkpoint's weights: Figures 1, 13 and 14 of 2607.09967, and the numbers in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sinexp::analysis::svd::singular_values;
use sinexp::analysis::weights::{Distances, Report, Role, RoleRules, Survey, Wanted, distances, matrix, regex, survey};
use sinexp::cli::{self, Progress, RunRecord};
use sinexp::data::datasets;
use sinexp::error::{Error, Result};
use sinexp::files::{ensure_writable_folder, hex};
use sinexp::interop::safetensors::{Dtype, Shards};
use sinexp::random::Key;
use sinexp::report::weights::{
    claims, distance_figure, gap_figure, histogram_table, role_table, singular_table, summary_table, tail_figure,
    tensor_table,
};
use sinexp::report::{Figure, FigureFiles, Table, TableFormat, significant};
use sinexp::runtime::tune_allocator;

/// Statistics of any safetensors checkpoint against Xavier's initialisation, per tensor, per role and over all weight
/// matrices of linear layers: Figures 1, 13 and 14 of arXiv 2607.09967. Exit code 1 when something of the checkpoint was
/// missing or not finite (the rest is reported).
#[derive(Parser, Debug)]
#[command(name = "weights", version, allow_negative_numbers = true)]
struct Arguments {
    /// Safetensors files, an index (model.safetensors.index.json), or a folder with them [default: the model that
    /// ./setup --data fetches]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Role of the tensors whose names match, before the built-in rules; repeatable. NAME is q, k, v, qkv, o, gate, up,
    /// gate+up, down, head, embed, norm, bias, scale, state, other or one of yours
    #[arg(long, value_name = "NAME=REGEX")]
    role: Vec<String>,
    /// Only tensors whose names match
    #[arg(long, value_name = "REGEX")]
    tensor: Option<String>,
    /// Only tensors of these roles, separated by commas
    #[arg(long, value_name = "ROLE,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Roles whose matrices count as weights of linear layers, in the last row and the figures [default: all but embed,
    /// norm, bias, scale and state]
    #[arg(long, value_name = "ROLE,...", value_delimiter = ',')]
    linear: Vec<String>,
    /// Magnitudes above which weights are counted
    #[arg(long, value_name = "X,...", default_value = "0.01,0.02,0.05,0.1,0.2,0.5,1", value_delimiter = ',',
          value_parser = parse_positive)]
    thresholds: Vec<f64>,
    /// The threshold of the printed table
    #[arg(long, value_name = "X", default_value = "0.1", value_parser = parse_positive)]
    threshold: f64,
    /// Percentiles of w and of |w|
    #[arg(long, value_name = "PERCENT,...", default_value = "0.1,1,5,25,50,75,95,99,99.9,99.99", value_delimiter = ',',
          value_parser = parse_percent)]
    percentiles: Vec<f64>,
    /// Share of the largest |w| that Hill's tail index k / sum ln(X_i / X_k+1) is estimated from, at least 10 of them
    #[arg(long, value_name = "SHARE", default_value = "0.001", value_parser = parse_share)]
    tail: f64,
    /// Stable rank |W|_F^2 / |W|_2^2 of matrices with at most so many elements; a number or `all`
    #[arg(long, value_name = "COUNT", default_value = "4194304", value_parser = parse_count)]
    stable_rank: usize,
    /// Also writes every singular value of every matrix of linear layers (slow for large ones)
    #[arg(long)]
    singular_values: bool,
    /// Largest change of a weight in one step, for the least number of steps (an Adam step is about its learning rate)
    #[arg(long, value_name = "RATE", default_value = "0.001", value_parser = parse_positive)]
    learning_rate: f64,
    /// Weights in the distance figure at most, in blocks of 4096 spread evenly; a number or `all`
    #[arg(long, value_name = "COUNT", default_value = "16777216", value_parser = parse_count)]
    distances: usize,
    /// Seed of the drawn start w0 that distances are measured from
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Folder for results; made if need be
    #[arg(long, value_name = "FOLDER", default_value = "runs/weights")]
    out: PathBuf,
    /// What to write, separated by commas
    #[arg(long, value_name = "FORMAT,...", default_value = "png,svg,csv,parquet,md", value_delimiter = ',',
          value_parser = ["png", "svg", "csv", "parquet", "md"])]
    format: Vec<String>,
}

/// The model that is looked at when none is named, below the data folder.
const DEFAULT: &str = "models/all-minilm-l6-v2.safetensors";
/// Histogram bins.
const BINS: usize = 81;

fn main() -> ExitCode {
    tune_allocator();
    cli::run(weights)
}

fn weights(arguments: Arguments) -> anyhow::Result<()> {
    once("--thresholds", &arguments.thresholds)?;
    once("--percentiles", &arguments.percentiles)?;
    let (paths, name) = checkpoint(&arguments.paths)?;
    let shards = Shards::open(&paths)?;
    let rules = RoleRules::new(&arguments.role, shards.tensors().iter().map(|t| (t.name.as_str(), t.dims.as_slice())))?;
    let matches = arguments.tensor.as_deref().map(|t| regex("--tensor", t, t)).transpose()?;
    let only: Vec<Role> = arguments.only.iter().map(|r| Role::named(r)).collect();
    let linear: Vec<Role> = arguments.linear.iter().map(|r| Role::named(r)).collect();
    let take = |name: &str, role: &Role| {
        matches.as_ref().is_none_or(|r| r.is_match(name)) && (only.is_empty() || only.contains(role))
    };
    let counts = |role: &Role| if linear.is_empty() { role.is_linear() } else { linear.contains(role) };
    let taken: Vec<_> =
        shards.tensors().iter().filter(|t| take(&t.name, &rules.place(&t.name, &t.dims).role)).collect();
    if shards.tensors().is_empty() {
        let why = shards.problems().first().map_or("it is empty".into(), Error::to_string);
        return Err(Error::file(&paths[0], format!("holds no tensor that can be read: {why}")).into());
    }
    let roles: BTreeSet<Role> = shards.tensors().iter().map(|t| rules.place(&t.name, &t.dims).role).collect();
    for (option, asked) in [("--only", &only), ("--linear", &linear)] {
        let strange = |r: &&Role| matches!(r, Role::Named(_)) && !roles.contains(r);
        if let Some(role) = asked.iter().find(strange) {
            let known: Vec<String> = roles.iter().map(Role::to_string).collect();
            return Err(Error::argument(
                option,
                role,
                format!("no tensor has this role; there are {}", known.join(", ")),
            )
            .into());
        }
    }
    if taken.is_empty() {
        let given = arguments.tensor.clone().unwrap_or_else(|| arguments.only.join(","));
        let option = if arguments.tensor.is_some() { "--tensor" } else { "--only" };
        return Err(Error::argument(option, given, format!("none of the {} tensors", shards.tensors().len())).into());
    }
    let is_matrix = |dims: &[usize], role: &Role| dims.len() > 1 && counts(role);
    if !linear.is_empty() && !taken.iter().any(|t| is_matrix(&t.dims, &rules.place(&t.name, &t.dims).role)) {
        let reason = "no tensor looked at is a matrix of such a role";
        return Err(Error::argument("--linear", arguments.linear.join(","), reason).into());
    }
    ensure_writable_folder(&arguments.out)?;
    let mut warnings: Vec<String> = shards.problems().iter().map(Error::to_string).collect();

    let mut record = RunRecord::new("weights", arguments.seed, "host");
    let wanted = wanted(&arguments);
    // Large tensors of wide types are read twice.
    let twice = |d: Dtype| matches!(d, Dtype::F32 | Dtype::F64);
    let readings = taken.len() + taken.iter().filter(|t| twice(t.dtype) && t.len() > 1 << 16).count();
    let mut progress = Progress::new("weights", readings as u64);
    let found = survey(&shards, &rules, &wanted, take, counts, |name| progress.step(name))?;
    progress.finish("all read");
    let strange = found.tensors.iter().filter(|r| r.summary.not_finite > 0);
    warnings.extend(strange.map(|r| {
        let (bad, all) = (r.summary.not_finite, r.summary.count + r.summary.not_finite);
        format!("tensor `{}`: {bad} of {all} weights are not finite; the statistics are of the others", r.name)
    }));
    for warning in &warnings {
        cli::warn(warning);
    }

    let place = wanted.thresholds.iter().position(|t| *t == arguments.threshold).unwrap_or(0);
    let title = format!("{name}: weights by role, against Xavier's uniform law");
    let short = role_table(&title, &found, &wanted, place)?;
    cli::say(&short.to_string());
    let mut output = Output { arguments: &arguments, files: Vec::new() };
    output.table(&summary_table(&title, &found, &wanted)?, "summary", false)?;
    output.table(&short, "roles", true)?;
    output.table(&tensor_table(&found, &wanted)?, "tensors", false)?;
    if found.all.is_none() {
        cli::say("\nNo weight matrices of linear layers (see --linear and --role), so no figures.");
    }
    if let Some(all) = &found.all {
        let claims = claims(all, &found.tensors, (place, arguments.threshold))?;
        cli::say(&format!("\n{claims}"));
        output.table(&claims, "claims", true)?;
        output.table(&histogram_table(all)?, "histogram", false)?;
    }
    if arguments.singular_values {
        output.table(&spectra(&shards, &found, &mut warnings)?, "singular_values", false)?;
    }
    if ["png", "svg"].iter().any(|f| arguments.format.iter().any(|g| g == f)) && found.all.is_some() {
        let distances = moved(&shards, &found, &arguments)?;
        figures(&name, &found, &wanted, &distances, &mut output)?;
    }
    if !found.skipped.is_empty() {
        let list: Vec<String> = found.skipped.iter().map(|(name, why)| format!("{name} ({why})")).collect();
        cli::say(&format!("\nSkipped: {}", list.join(", ")));
    }
    record.set("config", config(&arguments, &found, &wanted));
    record.set("checkpoint", describe(&shards));
    record.set("warnings", json!(warnings));
    record.set("skipped", json!(found.skipped));
    record.set("files", json!(output.files));
    record.write(&arguments.out)?;
    cli::say(&format!("\nWritten to {}: {}, run.json", arguments.out.display(), output.files.join(", ")));
    match warnings.len() {
        0 => Ok(()),
        1 => bail!("one thing was wrong with the checkpoint, see the warning; the rest is reported"),
        n => bail!("{n} things were wrong with the checkpoint, see the warnings; the rest is reported"),
    }
}

/// The paths to open and the name to show.
fn checkpoint(given: &[PathBuf]) -> Result<(Vec<PathBuf>, String)> {
    let Some(first) = given.first() else {
        let path = datasets::folder().join(DEFAULT);
        return match path.is_file() {
            true => Ok((vec![path], "all-MiniLM-L6-v2".into())),
            false => Err(Error::file(path, "is not there; run ./setup --data, or name a checkpoint of yours")),
        };
    };
    // A file in a folder of its own is named as the folder is: everybody calls the file model.safetensors.
    let named = |p: &Path| p.file_name().map(|n| n.to_string_lossy().into_owned());
    let stem = named(first).unwrap_or_else(|| "checkpoint".into());
    let name = match stem.as_str() {
        "model.safetensors" | "model.safetensors.index.json" => first.parent().and_then(named).unwrap_or(stem),
        _ => stem.trim_end_matches(".index.json").trim_end_matches(".safetensors").to_owned(),
    };
    Ok((given.to_vec(), name))
}

fn wanted(arguments: &Arguments) -> Wanted {
    let mut thresholds = arguments.thresholds.clone();
    if !thresholds.contains(&arguments.threshold) {
        thresholds.push(arguments.threshold);
    }
    let fine = [1, 2].into_iter().chain((1..19).map(|i| 5 * i)).chain(92..100).map(f64::from);
    let fine = fine.chain([99.5, 99.9, 99.99, 99.999, 100.0]);
    Wanted {
        percents: arguments.percentiles.clone(),
        thresholds,
        tail: arguments.tail,
        stable_rank: arguments.stable_rank,
        // A tenth of a decade each, from 0.001 to 10.
        curve: (0..=40).map(|i| 10f64.powf(f64::from(i) / 10.0 - 3.0)).collect(),
        fine_percents: fine.collect(),
        bins: BINS,
    }
}

/// Distances of the counted matrices from a drawn start.
fn moved(shards: &Shards, found: &Survey, arguments: &Arguments) -> Result<Distances> {
    let of = |r: &Report| Some((shards.find(&r.name)?, r.placed.fans?));
    let matrices: Vec<_> = found.tensors.iter().filter(|r| r.counted).filter_map(of).collect();
    distances(shards, &matrices, Key::new(arguments.seed), arguments.distances)
}

/// Singular values of the counted matrices; what cannot be decomposed becomes a warning.
fn spectra(shards: &Shards, found: &Survey, warnings: &mut Vec<String>) -> Result<Table> {
    let counted: Vec<&Report> = found.tensors.iter().filter(|r| r.counted).collect();
    let mut progress = Progress::new("singular values", counted.len() as u64);
    let mut all = Vec::new();
    for report in counted {
        let Some((tensor, fans)) = shards.find(&report.name).zip(report.placed.fans) else { continue };
        // A matrix that is not finite has its warning already.
        if report.summary.not_finite == 0 {
            let values = matrix(shards, tensor, &fans).and_then(|w| singular_values(w.mapv(f64::from).view()));
            match values {
                Ok(values) => all.push((report, values.to_vec())),
                Err(e) => warnings.push(e.to_string()),
            }
        }
        progress.step(&report.name);
    }
    singular_table(&all)
}

fn figures(name: &str, found: &Survey, wanted: &Wanted, moved: &Distances, output: &mut Output) -> Result<()> {
    let Some(all) = &found.all else { return Ok(()) };
    let s = &all.summary;
    let set = format!(
        "{name}: {} weights in {} matrices of linear layers (no embeddings, norms, biases)",
        s.count, s.tensors
    );
    output
        .figure(&gap_figure(found, all, wanted, &format!("{set}. Xavier: the uniform law's expectation.")), "fig1")?;
    let rate = output.arguments.learning_rate;
    let mean = moved.mean();
    let ratio = |share: f64| significant(moved.quantile(share) / mean, 3);
    let outliers = format!(
        "farthest {}×, 99.99th percentile {}×, 99.9th {}× the average of {}",
        ratio(1.0),
        ratio(0.9999),
        ratio(0.999),
        significant(mean / rate, 4)
    );
    cli::say(&format!("\nLeast steps at {rate} per step, from a drawn Xavier start: {outliers}."));
    let part = if moved.every > 1 { format!(", one block of 4096 in {}", moved.every) } else { String::new() };
    let note = format!(
        "{set}{part}. w₀: drawn from Xavier's uniform law, seed {}. At most {rate} per step: {outliers}.",
        output.arguments.seed
    );
    output.figure(&distance_figure(moved, rate, &note), "fig13")?;
    output.figure(&tail_figure(found, all, wanted, &format!("{set}.")), "fig14")
}

/// Writes what --format asks for.
struct Output<'a> {
    arguments: &'a Arguments,
    files: Vec<String>,
}

impl Output<'_> {
    fn wants(&self, format: &str) -> bool {
        self.arguments.format.iter().any(|f| f == format)
    }

    fn add(&mut self, path: &Path) {
        self.files.extend(path.file_name().map(|n| n.to_string_lossy().into_owned()));
    }

    /// As data, or, for a `short` table, to be read.
    fn table(&mut self, table: &Table, stem: &str, short: bool) -> Result<()> {
        let formats: &[TableFormat] =
            if short { &[TableFormat::Markdown] } else { &[TableFormat::Csv, TableFormat::Parquet] };
        let formats: Vec<TableFormat> = formats.iter().copied().filter(|f| self.wants(f.extension())).collect();
        let paths = table.write_all(&self.arguments.out, stem, &formats)?;
        paths.iter().for_each(|p| self.add(p));
        Ok(())
    }

    fn figure(&mut self, figure: &Figure, stem: &str) -> Result<()> {
        if self.wants("png") {
            let path = figure.write_png(self.arguments.out.join(format!("{stem}.png")))?;
            self.add(&path);
        }
        if self.wants("svg") {
            let path = figure.write_svg(self.arguments.out.join(format!("{stem}.svg")))?;
            self.add(&path);
        }
        Ok(())
    }
}

/// Every option after defaults.
fn config(arguments: &Arguments, found: &Survey, wanted: &Wanted) -> Value {
    let counted: Vec<&str> = found.tensors.iter().filter(|r| r.counted).map(|r| r.name.as_str()).collect();
    json!({
        "role": arguments.role,
        "tensor": arguments.tensor,
        "only": arguments.only,
        "linear": arguments.linear,
        "counted": counted,
        "thresholds": wanted.thresholds,
        "percentiles": wanted.percents,
        "tail": wanted.tail,
        "stable_rank": wanted.stable_rank,
        "singular_values": arguments.singular_values,
        "learning_rate": arguments.learning_rate,
        "distances": arguments.distances,
        "bins": wanted.bins,
    })
}

/// The files, by what is cheap to know of them: a digest of all bytes would take longer than the statistics. Their names
/// alone: the folders above them are this machine's.
fn describe(shards: &Shards) -> Value {
    let one = |f: &sinexp::interop::safetensors::ShardFile| json!({ "file": f.path.file_name().map(|n| n.to_string_lossy()), "bytes": f.len(), "header_sha256": hex(&Sha256::digest(f.header())) });
    json!(shards.files().iter().map(one).collect::<Vec<_>>())
}

/// **Errors** when a value of a list occurs twice.
fn once<T: PartialEq + std::fmt::Display>(option: &str, values: &[T]) -> Result<()> {
    match values.iter().enumerate().find(|(i, v)| values[..*i].contains(v)) {
        Some((_, value)) => Err(Error::argument(option, value, "given twice")),
        None => Ok(()),
    }
}

fn parse_positive(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|v| v.is_finite() && *v > 0.0);
    value.ok_or_else(|| "expected a positive number".into())
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|v| (0.0..=100.0).contains(v));
    value.ok_or_else(|| "expected a number from 0 to 100".into())
}

fn parse_share(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|v| *v > 0.0 && *v <= 0.1);
    value.ok_or_else(|| "expected a share above 0 and of at most 0.1".into())
}

fn parse_count(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        _ => text.parse().map_err(|_| "expected a whole number or `all`".into()),
    }
}
