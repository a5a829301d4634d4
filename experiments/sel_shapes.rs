//! Figures 6, 8 and 9 of the SEL paper from a run's folder: scales over training, and learned transforms by role.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use sinexp::analysis::sel_shapes::{ShapeSettings, shapes};
use sinexp::cli::{self, RunRecord, say};
use sinexp::error::Error;
use sinexp::experiment::sel::OpenedRun;
use sinexp::files::ensure_writable_folder;
use sinexp::nn::sel::Sel;
use sinexp::report::scales::{NamedCurve, annealing_figure, mean_over_roles, scale_curves, scale_table};
use sinexp::report::sel::shapes::{extreme_table, figure8, figure9, shape_curves, shape_table};
use sinexp::report::{FigureFiles, TableFormat};
use sinexp::runtime::tune_allocator;

/// From the folder of a SEL run: its scales over training (Fig. 6) and its learned transforms (Fig. 8, 9).
#[derive(Parser, Debug)]
#[command(name = "sel-shapes", version, allow_negative_numbers = true)]
struct Arguments {
    /// Folder of `sel train` or of one run of a grid
    run: PathBuf,
    /// Another run, whose evaluation loss Fig. 6 shows beside this one's: annealed against fixed multipliers
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// Positions sampled per role, over all blocks
    #[arg(long, value_name = "COUNT", default_value = "4096", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    positions: u64,
    /// Seed of the positions
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Raw weights from -R to R [default: to the largest raw weight of any role]
    #[arg(long, value_name = "R")]
    range: Option<f64>,
    /// Curves of the largest raw weights in Fig. 9, and as many of the largest effective ones
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    extremes: usize,
    /// Folder for figures and tables; made if need be
    #[arg(long, value_name = "FOLDER", default_value = "runs/sel-shapes")]
    out: PathBuf,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(run)
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(range) = arguments.range.filter(|r| !(r.is_finite() && *r > 0.0)) {
        return Err(Error::argument("--range", range, "expected a positive number").into());
    }
    let run = OpenedRun::open(&arguments.run)?;
    let sel = run.sel()?.clone();
    let against = arguments.against.as_deref().map(OpenedRun::open).transpose()?;
    let checkpoint = run.checkpoint()?;
    let settings = ShapeSettings {
        positions: arguments.positions as usize,
        seed: arguments.seed,
        range: arguments.range,
        extremes: arguments.extremes,
    };
    let shapes = shapes(&sel, &run.config.transformer, &checkpoint.parameters, &settings)?;
    ensure_writable_folder(&arguments.out)?;
    let mut record = RunRecord::new("sel-shapes", arguments.seed, "host");

    let what = format!("Run: {}, step {}", run.description(), checkpoint.step);
    let residual = if sel.residual.is_some() { " The residual is left out." } else { "" };
    let sampled = format!("{what}; {} positions per role over all blocks.{residual}", settings.positions);
    let table = shape_table(&format!("Learned transforms by role. {sampled}"), &shapes)?;
    say(&table.to_string());
    let formats = [TableFormat::Csv, TableFormat::Markdown];
    let mut files = table.write_all(&arguments.out, "roles", &formats)?;
    let scales = scale_curves(run.metrics.rows.iter().map(|row| (row.step, &row.tracked)));
    let curves = evaluation_curves(&run, &sel, against.as_ref());
    let last = |scale| mean_over_roles(&scales, scale).last().map_or(f64::NAN, |p| p.1);
    let [e, l, m] = ["e_w", "l_w", "m"].map(last);
    say(&format!("\nMeans over roles at the end, relative to the start: e_w {e:.3}, l_w {l:.3}, m {m:.3}"));
    say("The paper (1024 x 12, 100k steps): e_w 1.38, l_w 0.54, m 0.98");
    files.extend(scale_table(&scales)?.write_all(&arguments.out, "scales", &[TableFormat::Parquet])?);
    files.extend(shape_curves(&shapes)?.write_all(&arguments.out, "shapes", &[TableFormat::Parquet])?);
    files.extend(extreme_table(&shapes)?.write_all(&arguments.out, "extremes", &[TableFormat::Csv])?);
    files.extend(
        annealing_figure(&curves, &scales, &format!("Run: {}.", run.description()))
            .write_with_curves(arguments.out.join("fig6"))?,
    );
    files.extend(figure8(&shapes, &sampled).write(arguments.out.join("fig8"))?);
    let largest = format!("{sampled} Curves and marks: the {} largest of those sampled.", settings.extremes);
    files.extend(figure9(&shapes, &largest).write(arguments.out.join("fig9"))?);
    record.set(
        "config",
        json!({ "run": arguments.run, "against": arguments.against, "step": checkpoint.step, "positions": settings.positions,
                "range": settings.range, "extremes": settings.extremes, "of": run.config }),
    );
    record.set("files", json!(files));
    record.write(&arguments.out)?;
    say(&format!("\nWritten to {}", arguments.out.display()));
    Ok(())
}

/// Evaluation losses of one or two runs under names that tell them apart.
fn evaluation_curves(run: &OpenedRun, sel: &Sel, against: Option<&OpenedRun>) -> Vec<NamedCurve> {
    let points = |run: &OpenedRun| run.metrics.evaluations().into_iter().map(|(s, l)| (s as f64, l)).collect();
    let mut all = vec![NamedCurve { label: multipliers(sel), points: points(run) }];
    if let Some(other) = against {
        let label = other.sel().map_or_else(|_: Error| "baseline".to_owned(), multipliers);
        let twice = label == all[0].label;
        let folder =
            |run: &OpenedRun| run.folder.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        let named = |label: String, run: &OpenedRun| if twice { format!("{label}, {}", folder(run)) } else { label };
        all[0].label = named(all[0].label.clone(), run);
        all.push(NamedCurve { label: named(label, other), points: points(other) });
    }
    all
}

/// Whether the multipliers of the scales change.
fn multipliers(sel: &Sel) -> String {
    let k = [&sel.exp_scale, &sel.linear_scale, &sel.inner].map(|scale| scale.multiplier);
    let fixed = k.iter().all(|k| k.start == k.end);
    let word = if fixed { "fixed multipliers" } else { "annealed multipliers" };
    word.to_owned()
}
