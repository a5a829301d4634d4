//! Table 3 of the uniform-phase SIREN paper: test error against omega0, grayscale pictures (Section 4.4); its row of Figure 2 and
//! Figure 7.

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::{Color, OmegaArguments, OmegaSweep};
use sinexp::runtime::tune_allocator;

/// Fits grayscale pictures from the moment-matched initialisation, once each, and from three others at many values of omega0.
///
/// Preset `paper` is the paper's grid: N 256, 3000 steps, 21 values; days on two cores, so split it with --shard. Preset
/// `cpu` has N 64, 300 steps on 48 pixels, 11 values.
#[derive(Parser, Debug)]
#[command(name = "siren-table3", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    sweep: OmegaArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| Ok(EXPERIMENT.run(&arguments.sweep)?))
}

const EXPERIMENT: OmegaSweep = OmegaSweep {
    name: "siren-table3",
    title: "Table 3, grayscale",
    row: "grayscale",
    color: Color::Gray,
    images: ["brick", "camera", "gravel", "clock"],
    figure: "fig7",
    claim: |image| match image {
        "brick" => "MM loses by 19 %",
        "gravel" => "MM loses by 12 %",
        _ => "MM best",
    },
};
