//! Figure 7 of the SEL paper from two runs' folders: distributions of weights at the start and at the end.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use sinexp::analysis::sel_weights::{Snapshot, distributions};
use sinexp::cli::{self, DeviceArguments, RunRecord, say};
use sinexp::error::Error;
use sinexp::experiment::sel::OpenedRun;
use sinexp::files::ensure_writable_folder;
use sinexp::report::sel::weights::{figure7, figure7_roles, histogram_table, weight_table};
use sinexp::report::{FigureFiles, TableFormat};
use sinexp::runtime::tune_allocator;
use sinexp::train::language::effective_weights;

/// Compares the effective weights of a SEL run with the weights of a baseline run of the same size.
#[derive(Parser, Debug)]
#[command(name = "sel-weights", version)]
struct Arguments {
    /// Folder of the SEL run: of `sel train` or of one run of a grid
    run: PathBuf,
    /// Folder of the baseline run (`sel train --mode standard`)
    #[arg(long, value_name = "RUN")]
    baseline: PathBuf,
    /// Also draws the weights at the end by role
    #[arg(long)]
    per_role: bool,
    #[command(flatten)]
    device: DeviceArguments,
    /// Folder for figures and tables; made if need be
    #[arg(long, value_name = "FOLDER", default_value = "runs/sel-weights")]
    out: PathBuf,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(run)
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    let run = OpenedRun::open(&arguments.run)?;
    run.sel()?;
    let baseline = OpenedRun::open(&arguments.baseline)?;
    baseline.expect_baseline()?;
    let sizes = |r: &OpenedRun| (r.config.transformer.width, r.config.transformer.depth, r.config.transformer.hidden);
    if sizes(&run) != sizes(&baseline) {
        let ((w, d, h), (bw, bd, bh)) = (sizes(&run), sizes(&baseline));
        let reason = format!("has width {bw}, depth {bd}, hidden {bh}; {} has {w}, {d}, {h}", run.folder.display());
        return Err(Error::file(&baseline.folder, reason).into());
    }
    let starts = [run.initial()?, baseline.initial()?];
    let ends = [run.checkpoint()?, baseline.checkpoint()?];
    let device = arguments.device.open()?;
    ensure_writable_folder(&arguments.out)?;
    let mut record = RunRecord::new("sel-weights", run.config.seed, &device.describe());
    let mut snapshots = Vec::new();
    let steps = ends.each_ref().map(|end| end.step);
    for (name, opened, start, end) in
        [("baseline", &baseline, &starts[1], &ends[1]), ("SEL", &run, &starts[0], &ends[0])]
    {
        let model = opened.config.model();
        let start = effective_weights(&device, &model, start)?;
        snapshots.push(Snapshot { run: name, time: "start", weights: start });
        let weights = effective_weights(&device, &model, &end.parameters)?;
        snapshots.push(Snapshot { run: name, time: "end", weights });
    }
    let all = distributions(&run.config.transformer, &snapshots)?;

    let trained = match steps {
        [a, b] if a == b => format!("{a} steps"),
        [a, b] => format!("SEL {a} steps, baseline {b}"),
    };
    let seeds = match (run.config.seed, baseline.config.seed) {
        (a, b) if a == b => String::new(),
        (_, b) => format!(" (baseline seed {b})"),
    };
    let what = format!("Run: {}{seeds}; {trained}. Matrices of all projections, without biases.", run.description());
    let table = weight_table(&format!("Weights of the baseline and effective weights of SEL. {what}"), &all)?;
    say(&table.to_string());
    let mut files = table.write_all(&arguments.out, "weights", &[TableFormat::Csv, TableFormat::Markdown])?;
    files.extend(histogram_table(&all)?.write_all(&arguments.out, "histograms", &[TableFormat::Parquet])?);
    files.extend(figure7(&all, &what).write(arguments.out.join("fig7"))?);
    if arguments.per_role {
        files.extend(figure7_roles(&all, &format!("After training. {what}")).write(arguments.out.join("fig7_roles"))?);
    }
    record.set(
        "config",
        json!({ "run": arguments.run, "baseline": arguments.baseline, "steps": steps, "per_role": arguments.per_role,
                "of": run.config, "baseline_of": baseline.config }),
    );
    record.set("files", json!(files));
    record.write(&arguments.out)?;
    say(&format!("\nWritten to {}", arguments.out.display()));
    Ok(())
}
