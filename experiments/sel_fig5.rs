//! Figure 5 of the SEL paper: the exponential pathway alone (Section 5.3.2).

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::Preset;
use sinexp::experiment::sel::{Cells, GridArguments, Variant, tables};
use sinexp::runtime::tune_allocator;

/// Trains baseline, the full transform and the exponential pathway alone at one width and depth.
#[derive(Parser, Debug)]
#[command(name = "sel-fig5", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    grid: GridArguments,
}

const VARIANTS: [Variant; 3] = [Variant::Baseline, Variant::Mismatch, Variant::ExpOnly];

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let cells = match arguments.grid.preset() {
            Preset::Smoke => Cells::product(&[32], &[2], &[0, 1]),
            Preset::Cpu => Cells::product(&[128], &[4], &[0, 1, 2]),
            Preset::Paper => Cells::product(&[1024], &[12], &[0]),
        };
        match arguments.grid.run("sel-fig5", cells, &VARIANTS)? {
            Some(grid) => Ok(tables::figure5(grid)?),
            None => Ok(()),
        }
    })
}
