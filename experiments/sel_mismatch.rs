//! Figure 12 of the SEL paper: what mismatch mode makes of a start that was inverted under the congruent rule.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde_json::json;
use sinexp::analysis::sel_mismatch::{SelStart, StartSettings, small_weight_ratio};
use sinexp::cli::{self, DeviceArguments, RunRecord, say};
use sinexp::error::{Error, Result};
use sinexp::files::ensure_writable_folder;
use sinexp::nn::language_model::Target;
use sinexp::nn::sel::{Mode, Sel};
use sinexp::report::sel_mismatch::{figure12, outlier_table, sign_table, singular_figure, singular_table};
use sinexp::report::{FigureFiles, TableFormat};
use sinexp::runtime::tune_allocator;

/// Target and actual weights at the start, their ratio by sign, and the singular values of both.
#[derive(Parser, Debug)]
#[command(name = "sel-mismatch", version, allow_negative_numbers = true)]
struct Arguments {
    /// Curvature
    #[arg(long, default_value_t = 7.5)]
    beta: f64,
    /// More curvatures for the table of outliers, separated by commas
    #[arg(long, value_name = "BETA,...", value_delimiter = ',')]
    betas: Vec<f64>,
    /// Rows and columns of the matrix
    #[arg(long, value_name = "N", default_value = "1024", conflicts_with = "shape", value_parser = clap::value_parser!(u64).range(2..=8192))]
    width: u64,
    /// Rows and columns of one that is not square
    #[arg(long, value_name = "OUT,IN", value_parser = parse_shape)]
    shape: Option<[usize; 2]>,
    /// Mode of the forward pass; the inversion is congruent
    #[arg(long, default_value = "mismatch")]
    mode: Mode,
    /// Law of the target
    #[arg(long, value_enum, default_value = "xavier_uniform")]
    target: TargetName,
    /// Seed of the target
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Weights of each sign in the scatter plot
    #[arg(long, value_name = "COUNT", default_value_t = 120)]
    points: usize,
    #[command(flatten)]
    device: DeviceArguments,
    /// Folder for figures and tables; made if need be
    #[arg(long, value_name = "FOLDER", default_value = "runs/sel-mismatch")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum TargetName {
    XavierUniform,
    XavierNormal,
}

fn parse_shape(text: &str) -> Result<[usize; 2], String> {
    let sizes: Vec<usize> = text.split(',').filter_map(|t| t.trim().parse().ok()).collect();
    match sizes[..] {
        [rows @ 2..=16384, columns @ 2..=16384] => Ok([rows, columns]),
        _ => Err("give two sizes from 2 to 16384 with a comma between them, as 2752,1024".into()),
    }
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(mismatch)
}

fn mismatch(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(beta) = arguments.betas.iter().chain([&arguments.beta]).find(|b| !(b.is_finite() && **b > 0.0)) {
        return Err(Error::argument("--beta", beta, "expected a positive number").into());
    }
    let device = arguments.device.open()?;
    let shape = arguments.shape.unwrap_or([arguments.width as usize; 2]);
    let target = match arguments.target {
        TargetName::XavierUniform => Target::XavierUniform,
        TargetName::XavierNormal => Target::XavierNormal,
    };
    let sel = |beta: f64| Sel::new(beta).with_mode(arguments.mode);
    let settings = StartSettings { sel: sel(arguments.beta), shape, target, seed: arguments.seed };
    let mut starts = vec![SelStart::new(&device, settings)?];
    for beta in arguments.betas.iter().filter(|b| **b != arguments.beta) {
        starts.push(starts[0].through(&device, sel(*beta))?);
    }
    let first = &starts[0];
    ensure_writable_folder(&arguments.out)?;
    let mut record = RunRecord::new("sel-mismatch", arguments.seed, &device.describe());

    let [rows, columns] = shape;
    let law = match target {
        Target::XavierUniform => "Xavier uniform",
        Target::XavierNormal => "Xavier normal",
    };
    let what =
        format!("{rows} × {columns}, {law}, β = {}, mode {}, seed {}", arguments.beta, arguments.mode, arguments.seed);
    let by_sign = sign_table(&format!("Actual weights over their targets: {what}"), &first.by_sign())?;
    let outliers = outlier_table(
        &format!("The largest singular values: {rows} × {columns}, {law}, mode {}", arguments.mode),
        &starts,
    )?;
    say(&by_sign.to_string());
    say(&format!("\n{outliers}"));
    if arguments.mode == Mode::Mismatch {
        let (ratio, limit) = (first.sign_ratio(), small_weight_ratio(arguments.beta));
        say(&format!("\nNegative over positive: {ratio:.4}; {limit:.4} for weights near 0; the paper: 75-80 %"));
    }
    let formats = [TableFormat::Csv, TableFormat::Markdown];
    let mut files = by_sign.write_all(&arguments.out, "by_sign", &formats)?;
    files.extend(outliers.write_all(&arguments.out, "outliers", &formats)?);
    files.extend(singular_table(first)?.write_all(&arguments.out, "singular_values", &[TableFormat::Parquet])?);
    let sampled = format!(
        "{what}. Left: {} weights of each sign. Right: share in each of 60 bins; above them mean and 5–95 %.",
        arguments.points
    );
    files.extend(figure12(first, arguments.points, &sampled).write(arguments.out.join("fig12"))?);
    files.extend(singular_figure(first, &format!("{what}.")).write(arguments.out.join("singular_values"))?);
    record.set(
        "config",
        json!({ "beta": arguments.beta, "betas": arguments.betas, "shape": shape, "mode": arguments.mode.id(),
                "target": target, "points": arguments.points }),
    );
    record.set("files", json!(files));
    record.write(&arguments.out)?;
    say(&format!("\nWritten to {}", arguments.out.display()));
    Ok(())
}
