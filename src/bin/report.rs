//! `report`: all results as one HTML file, or as the results table of the book.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sinexp::cli::{self, say, warn};
use sinexp::files::write_bytes;
use sinexp::report::page::{find, html, readme};

/// Gathers tables, figures and records of runs into one HTML file that needs no network.
///
/// RUNS are folders; every folder in and below them with a run.json, a table or a figure is a result. What cannot be read is
/// named on stderr and on the page, and the rest is reported. Charts can be zoomed where a figure's curves lie beside it
/// (NAME.curves.parquet), and for the losses of `fit` and `sel train`.
#[derive(Parser, Debug)]
#[command(name = "report", version)]
struct Arguments {
    /// Folders of results
    #[arg(value_name = "RUNS", default_value = "figures")]
    runs: Vec<PathBuf>,
    /// The HTML file to write
    #[arg(long, value_name = "FILE", default_value = "report.html", conflicts_with = "readme")]
    out: PathBuf,
    /// Heading of the page
    #[arg(long, value_name = "TEXT", default_value = "Results")]
    title: String,
    /// Rewrites the results table in this file, between its two markers, instead of writing HTML
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = readme::PAGE)]
    readme: Option<PathBuf>,
}

fn main() -> ExitCode {
    cli::run(|arguments: Arguments| {
        let runs = find(&arguments.runs)?;
        for problem in runs.iter().flat_map(|run| &run.problems) {
            warn(&format!("left out: {problem}"));
        }
        if let Some(path) = &arguments.readme {
            readme::write(path, &runs)?;
            say(&format!("{} results in the table of {}", runs.len(), path.display()));
            return Ok(());
        }
        let page = html(&arguments.title, &runs)?;
        write_bytes(&arguments.out, page.as_bytes())?;
        let size = page.len() as f64 / 1e6;
        say(&format!("{} results written to {}, {size:.1} MB", runs.len(), arguments.out.display()));
        Ok(())
    })
}
