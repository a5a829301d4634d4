//! Table 2 and Figure 4 of the uniform-phase SIREN paper: the Cameraman by narrow networks (Section 4.3).

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::{Cameraman, Preset, SirenArguments, Sizes};
use sinexp::runtime::tune_allocator;

/// Fits the Cameraman picture with networks of width 16 from every initialisation, several seeds each.
///
/// The presets `cpu` and `paper` are the same but for the number of seeds (5 and 10): the paper's sizes fit two cores.
#[derive(Parser, Debug)]
#[command(name = "siren-table2", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    siren: SirenArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let paper = |seeds: u64| Sizes { width: 16, seeds: (0..seeds).collect(), ..Sizes::picture() };
        let sizes = match arguments.siren.preset {
            Preset::Smoke => Sizes { train: 32, eval: 64, hidden: 3, steps: 200, seeds: vec![0, 1], ..paper(2) },
            Preset::Cpu => paper(5),
            Preset::Paper => paper(10),
        };
        Ok(EXPERIMENT.run(&arguments.siren, sizes)?)
    })
}

const EXPERIMENT: Cameraman = Cameraman {
    name: "siren-table2",
    figure: "fig4",
    title: "Table 2: Cameraman by narrow networks; mean and standard error over seeds, spread: standard deviation of the SNR",
    claim: |init| match init {
        "uniform-mm" => "10.28 dB, the best",
        "cvp26-s0" | "cvp26-s1" => "CVP26 6.8 dB below MM",
        _ => "below MM",
    },
};
