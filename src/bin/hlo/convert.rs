//! `hlo convert`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use sinexp::cli::say;
use sinexp::files::write_bytes;
use sinexp::interop::program::Foreign;

use crate::export::foreign_bytes;
use crate::formats::{Details, To};

/// Writes a program in another format.
#[derive(Args, Debug)]
pub struct Convert {
    /// HLO text, an HLO protocol buffer, StableHLO text, a portable artifact or a file of jax.export
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
    /// Format to write
    #[arg(long, value_enum)]
    to: To,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    details: Details,
}

pub fn run(arguments: &Convert) -> Result<()> {
    arguments.details.check(arguments.to)?;
    let foreign = Foreign::open(&arguments.program)?;
    let (bytes, _) = foreign_bytes(&foreign, arguments.to, &arguments.details)?;
    write_bytes(&arguments.out, &bytes)?;
    say(&format!("{} bytes written to {}", bytes.len(), arguments.out.display()));
    Ok(())
}
