//! Table 4 of the SEL paper: start and combination at the largest width (Section 5.3.1).

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::Preset;
use sinexp::experiment::sel::{Cells, GridArguments, Variant, tables};
use sinexp::runtime::tune_allocator;

/// Trains the five variants of `sel-table3` at the largest width and the smallest depth.
#[derive(Parser, Debug)]
#[command(name = "sel-table4", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    grid: GridArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let cells = match arguments.grid.preset() {
            Preset::Smoke => Cells::product(&[32], &[1], &[0, 1]),
            Preset::Cpu => Cells::product(&[128], &[2], &[0, 1, 2]),
            Preset::Paper => Cells::product(&[3072], &[12], &[0]),
        };
        match arguments.grid.run("sel-table4", cells, &Variant::COMBINATIONS)? {
            Some(grid) => Ok(tables::variants(
                grid,
                "Table 4: start and combination at the largest width",
                "mismatch without offset best, and better than congruent in both forms (width 3072, depth 12, β 20)",
            )?),
            None => Ok(()),
        }
    })
}
