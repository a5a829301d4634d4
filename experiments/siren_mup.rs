//! Figure 6 of the uniform-phase SIREN paper: learning rates across widths under muP (Section 4.5).

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::SirenArguments;
use sinexp::experiment::mup::{Grids, run};
use sinexp::runtime::tune_allocator;

/// Trains every width at every learning rate under three scalings, each baseline at its best omega0.
///
/// Preset `paper` has widths 8 to 512 and 21 learning rates; weeks on two cores, so split it with --shard. Preset `cpu` has
/// widths 8 to 128, 10 learning rates, 300 steps on 32 x 32 pixels. --width is not used.
#[derive(Parser, Debug)]
#[command(name = "siren-mup", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    siren: SirenArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| Ok(run(&arguments.siren, Grids::of(arguments.siren.preset))?))
}
