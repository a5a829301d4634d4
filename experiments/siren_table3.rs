//! Table 3 of the uniform-phase SIREN paper: test error against omega0, grayscale pictures (Section 4.4); its row of Figure 2 and
//! Figure 7.

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::{Color, OmegaSweep, SirenArguments, omega_sizes};
use sinexp::runtime::tune_allocator;

/// Fits grayscale pictures from the moment-matched initialisation, once each, and from three others at many values of omega0.
///
/// Preset `paper` is the paper's grid: N 256, 3000 steps, 21 values; days on two cores, so split it with --shard. Preset
/// `cpu` has N 64, 300 steps on 48 pixels, 11 values.
#[derive(Parser, Debug)]
#[command(name = "siren-table3", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    siren: SirenArguments,
    /// Values of omega0, evenly spaced on a logarithmic axis over four decades [default: the preset's]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(2..=1000))]
    frequencies: Option<u64>,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let (sizes, count) = omega_sizes(arguments.siren.preset);
        let count = arguments.frequencies.map_or(count, |n| n as usize);
        Ok(EXPERIMENT.run(&arguments.siren, sizes, count)?)
    })
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
