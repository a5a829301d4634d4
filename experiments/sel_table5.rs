//! Table 5 and Figure 6 of the SEL paper: learning-rate multipliers of the scales, annealed and fixed (Section 5.3.3).

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::sel::{Cells, GridArguments, Variant, ablations};
use sinexp::runtime::tune_allocator;

/// Trains the default with multipliers that follow k(t), and with multipliers that stay at k(0).
#[derive(Parser, Debug)]
#[command(name = "sel-table5", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    grid: GridArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let cells = Cells::ablation(arguments.grid.preset());
        match arguments.grid.run("sel-table5", cells, &Variant::MULTIPLIERS)? {
            Some(grid) => Ok(ablations::table5(grid)?),
            None => Ok(()),
        }
    })
}
