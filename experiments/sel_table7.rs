//! Table 7 of the SEL paper: the training step in milliseconds, part by part (Section 6, "Training and inference cost").

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::experiment::sel::ProfileArguments;
use sinexp::runtime::tune_allocator;

/// Times forward, backward and optimizer of the baseline and of SEL on random tokens, and estimates the speed-up in time
/// from the speed-ups in steps of a Table 1.
///
/// Each part is a program of its own, and the whole step one more: XLA fuses across the parts of that one, so their sum
/// is about its time and not the same. In "forward" nothing is kept for the reverse pass; "optimizer" reads its gradients
/// from memory. Every round runs all four for both models.
#[derive(Parser, Debug)]
#[command(name = "sel-table7", version, allow_negative_numbers = true)]
struct Arguments {
    #[command(flatten)]
    profile: ProfileArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| Ok(arguments.profile.run()?))
}
