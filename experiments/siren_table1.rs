//! Table 1 and Figure 1 of the uniform-phase SIREN paper: the Cameraman by wide networks (Section 4.1).

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::{Cameraman, Preset, SirenArguments, Sizes};
use sinexp::runtime::tune_allocator;

/// Fits the Cameraman picture with networks of width 256 from every initialisation.
///
/// Preset `paper` takes 3000 steps on 128 x 128 pixels, about half an hour for each initialisation on two cores; it can
/// be stopped and started again at any time. Preset `cpu` takes 400 steps on 64 x 64 pixels.
#[derive(Parser, Debug)]
#[command(name = "siren-table1", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    siren: SirenArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let paper = Sizes::picture();
        let sizes = match arguments.siren.preset {
            Preset::Smoke => Sizes { train: 32, eval: 64, width: 32, hidden: 3, steps: 100, ..paper },
            Preset::Cpu => Sizes { train: 64, eval: 256, steps: 400, ..paper },
            Preset::Paper => paper,
        };
        Ok(EXPERIMENT.run(&arguments.siren, sizes)?)
    })
}

const EXPERIMENT: Cameraman = Cameraman {
    name: "siren-table1",
    figure: "fig1",
    title: "Table 1: Cameraman by wide networks",
    claim: |init| match init {
        "uniform-mm" => "lowest evaluation MSE, by a small margin",
        "cvp26-s0" => "second",
        _ => "behind both",
    },
};
