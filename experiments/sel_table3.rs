//! Table 3 of the SEL paper: start and combination at the smallest width (Section 5.3.1).

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::Preset;
use sinexp::experiment::sel::{Cells, GridArguments, Variant, tables};
use sinexp::runtime::tune_allocator;

/// Trains baseline, congruent and mismatch, the latter two without and with offset and residual, at one width.
#[derive(Parser, Debug)]
#[command(name = "sel-table3", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    grid: GridArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let cells = match arguments.grid.preset() {
            Preset::Smoke => Cells::product(&[32], &[1, 2], &[0, 1]),
            Preset::Cpu => Cells::product(&[64], &[2, 4], &[0, 1, 2]),
            Preset::Paper => Cells::product(&[1024], &[12, 24, 36], &[0]),
        };
        match arguments.grid.run("sel-table3", cells, &Variant::COMBINATIONS)? {
            Some(grid) => Ok(tables::variants(
                grid,
                "Table 3: start and combination at one width",
                "mismatch better than congruent at every depth; offset and residual better still (width 1024)",
            )?),
            None => Ok(()),
        }
    })
}
