//! `sel`: trains, evaluates, samples from and folds SEL transformers, and inverts pretrained ones (2607.09967).

mod convert;
mod init;
mod options;
mod train;
mod use_model;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sinexp::cli;
use sinexp::runtime::tune_allocator;

/// Transformers whose projections are stored through the symmetric-exponential and linear transform (SEL).
#[derive(Parser, Debug)]
#[command(name = "sel", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Trains a model, or goes on with one
    Train(Box<train::Arguments>),
    /// Measures the validation loss of a model
    Eval(use_model::Eval),
    /// Writes text with a model
    Generate(use_model::Generate),
    /// Turns a checkpoint, or what `invert` made, into ordinary weights
    Fold(use_model::Fold),
    /// Turns any checkpoint's linear layers into raw weights and scales
    Invert(Box<convert::Invert>),
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| match arguments.command {
        Command::Train(arguments) => train::run(&arguments),
        Command::Eval(arguments) => use_model::eval(&arguments),
        Command::Generate(arguments) => use_model::generate(&arguments),
        Command::Fold(arguments) => use_model::fold(&arguments),
        Command::Invert(arguments) => convert::run(&arguments),
    })
}
