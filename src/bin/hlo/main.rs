//! `hlo`: programs as files: shows, runs and converts those of JAX and others, and writes ours.

mod convert;
mod export;
mod formats;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sinexp::cli;
use sinexp::runtime::tune_allocator;

/// Programs as files: HLO as text or protocol buffer, StableHLO as text or portable artifact, files of jax.export.
#[derive(Parser, Debug)]
#[command(name = "hlo", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Prints what a program is, takes and gives
    Show(run::Show),
    /// Runs a program
    Run(run::Run),
    /// Writes a program in another format
    Convert(convert::Convert),
    /// Writes one of the toolkit's programs, or any program, for JAX and others
    Export(Box<export::Export>),
    /// Lists the toolkit's programs
    List,
}

fn main() -> ExitCode {
    // XLA ends the process on some damaged programs.
    if let Some(code) = cli::supervised("the work on this program") {
        return code;
    }
    tune_allocator();
    cli::run(|arguments: Arguments| match arguments.command {
        Command::Show(arguments) => run::show(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::List => export::list(),
    })
}
