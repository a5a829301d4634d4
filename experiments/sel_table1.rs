//! Table 1 and Figure 4 of the SEL paper: baseline against SEL on a grid of widths and depths (Section 5.2).

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::Preset;
use sinexp::experiment::sel::{Cells, GridArguments, Variant, tables};
use sinexp::runtime::tune_allocator;

/// Trains baseline and SEL (mismatch, without and with offset and residual) on a grid of widths and depths.
///
/// Preset `paper` has the nine configurations of the paper, 250,000 steps at width 1024 and 150,000 at 2048 and 3072; it
/// prints what that takes on the device before it begins. Preset `cpu` has widths 64, 96 and 128 at depths 2 and 4 with
/// three seeds: some hours on two cores. All SEL experiments share their runs; a stopped one goes on where it was.
#[derive(Parser, Debug)]
#[command(name = "sel-table1", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    grid: GridArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let cells = match arguments.grid.preset() {
            Preset::Smoke => Cells::product(&[32], &[1, 2], &[0, 1]),
            Preset::Cpu => Cells::product(&[64, 96, 128], &[2, 4], &[0, 1, 2]),
            Preset::Paper => Cells::product(&[1024, 2048, 3072], &[12, 24, 36], &[0]),
        };
        match arguments.grid.run("sel-table1", cells, &Variant::MAIN)? {
            Some(grid) => Ok(tables::table1(grid)?),
            None => Ok(()),
        }
    })
}
