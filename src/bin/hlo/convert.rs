//! `hlo convert`.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use sinexp::cli::say;
use sinexp::files::write_bytes;
use sinexp::interop::program::Foreign;
use sinexp::runtime::translate::{proto_to_artifact, proto_to_stablehlo_text, stablehlo_version};

/// A format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum To {
    /// HLO text with all constants
    Hlo,
    /// Serialised HloModuleProto
    Proto,
    /// StableHLO text
    Stablehlo,
    /// StableHLO portable artifact
    Artifact,
}

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
    /// StableHLO version that a portable artifact is for [default: the newest that XLA here writes]
    #[arg(long, value_name = "VERSION")]
    stablehlo_version: Option<String>,
}

pub fn run(arguments: &Convert) -> Result<()> {
    let foreign = Foreign::open(&arguments.program)?;
    let bytes = match arguments.to {
        To::Hlo => foreign.text.into_bytes(),
        To::Proto => foreign.module,
        To::Stablehlo => proto_to_stablehlo_text(&foreign.module)?.into_bytes(),
        To::Artifact => {
            let version = arguments.stablehlo_version.clone().map_or_else(stablehlo_version, Ok)?;
            proto_to_artifact(&foreign.module, &version)?
        }
    };
    write_bytes(&arguments.out, &bytes)?;
    say(&format!("{} bytes written to {}", bytes.len(), arguments.out.display()));
    Ok(())
}
