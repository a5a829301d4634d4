//! Table 6 of the SEL paper: curvature fixed or absorbed in m, pathways divided by m or not (Section 5.3.4).

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::sel::{Cells, GridArguments, Variant, ablations};
use sinexp::runtime::tune_allocator;

/// Trains the four combinations of --absorb-beta and --normalize-by-inner-mult, and the baseline.
#[derive(Parser, Debug)]
#[command(name = "sel-table6", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    grid: GridArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let cells = Cells::ablation(arguments.grid.preset());
        match arguments.grid.run("sel-table6", cells, &Variant::CURVATURES)? {
            Some(grid) => Ok(ablations::table6(grid)?),
            None => Ok(()),
        }
    })
}
