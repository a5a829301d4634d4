//! Figure 5 of the uniform-phase SIREN paper: seven seconds of Bach (Section 4.2).

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::{Preset, SirenArguments, Sizes, audio};
use sinexp::runtime::tune_allocator;

/// Fits a sound from every initialisation.
///
/// Without --wav it takes .data/gt_bach.wav, the paper's recording, where you have put it; else a fugue subject that the
/// program makes itself. Preset `cpu` trains N 64 on all samples for 200 steps at learning rate 1e-3; `paper` N 256 for 5000
/// at 5e-5: most of a day for each initialisation on two cores. It can be stopped and started again at any time.
#[derive(Parser, Debug)]
#[command(name = "siren-audio", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    siren: SirenArguments,
    /// The recording: a WAV file
    #[arg(long, value_name = "FILE")]
    wav: Option<PathBuf>,
    /// Uses every COUNT-th sample [default: the preset's; 1 but for smoke]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    stride: Option<u64>,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let paper =
            Sizes { train: 0, eval: 0, width: 256, hidden: 5, steps: 5000, learning_rate: 5e-5, seeds: vec![0] };
        let (sizes, stride) = match arguments.siren.preset {
            Preset::Smoke => (Sizes { width: 16, hidden: 2, steps: 20, ..paper }, 100),
            Preset::Cpu => (Sizes { width: 64, steps: 200, learning_rate: 1e-3, ..paper }, 1),
            Preset::Paper => (paper, 1),
        };
        let stride = arguments.stride.map_or(stride, |s| s as usize);
        Ok(audio::run(&arguments.siren, sizes, arguments.wav.as_ref(), stride)?)
    })
}
