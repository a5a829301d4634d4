//! Programs of others: HLO as text or protocol buffer, StableHLO as text or portable artifact, `jax.export` files.
//!
//! [`Foreign::open`] recognises the format, refuses what would compute something else than was meant, and finds names and
//! shapes of inputs and results; [`Foreign::program`] is what a [`Device`](crate::runtime::Device) compiles.
//!
//! XLA ends the process on some damaged programs. Programs of this toolkit that open files of others therefore do it in a
//! child process: see [`crate::cli::supervised`].
//!
//! ```
//! use sinexp::interop::program::{Foreign, Format};
//! use sinexp::{array::Array, runtime::Device};
//! let text = "HloModule f
//!     ENTRY main {
//!       x.1 = f32[3] parameter(0)
//!       ROOT square.1 = f32[3] multiply(x.1, x.1)
//!     }";
//! let foreign = Foreign::from_bytes(text.as_bytes(), "txt")?; // Foreign::open for a file
//! assert_eq!((foreign.format, foreign.signature.inputs[0].shape.as_str()), (Format::HloText, "f32[3]"));
//! let square = Device::open("cpu")?.compile(&foreign.program()?)?;
//! let found = square.call(&[&Array::from_slice(&[3], &[1f32, 2.0, 3.0])])?;
//! assert_eq!(found[0].to_vec::<f32>()?, [1.0, 4.0, 9.0]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod exported;
mod format;
mod signature;

use std::path::Path;

pub use self::format::Format;
use self::signature::row_major;
pub(crate) use self::signature::without_attribute;
pub use self::signature::{Port, Signature};
use crate::error::{Error, Result};
use crate::files::unreadable;
use crate::graph::{Program, Shape};
use crate::interop::jax_export::Exported;
use crate::runtime::translate::{hlo_text_to_proto, proto_to_hlo_text, stablehlo_to_proto, stablehlo_version};

/// A program of others, ready to be compiled.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// What it was read as.
    pub format: Format,
    /// A serialised `HloModuleProto`.
    pub module: Vec<u8>,
    /// The same as HLO text, with all constants, as XLA prints it.
    pub text: String,
    /// Name, inputs, results.
    pub signature: Signature,
    /// What else a `jax.export` file holds: pytrees, platforms, the derivative.
    pub exported: Option<Box<Exported>>,
}

impl Foreign {
    /// Opens a file.
    ///
    /// **Errors** when it cannot be read, is in no known format, is damaged, or has elided constants. **May abort the
    /// process** where XLA does, on some damaged HLO texts.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return Err(Error::file(path, "is a folder; give a program"));
        }
        let bytes = std::fs::read(path).map_err(|e| unreadable(path, &e))?;
        let extension = path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
        Self::from_bytes(&bytes, &extension).map_err(|e| Error::file(path, in_one_line(&e)))
    }

    /// Reads a program; `extension` is that of its file name, which tells only where the bytes do not.
    ///
    /// **Errors** as [`Foreign::open`].
    pub fn from_bytes(bytes: &[u8], extension: &str) -> Result<Self> {
        let format = Format::of(bytes, extension)?;
        let module = match format {
            Format::HloText => {
                let text = utf8(bytes)?;
                if let Some(line) = elided(text) {
                    let why = "its constants are elided, `{...}`, so their numbers are lost: print them with print_large_constants, or write a protocol buffer";
                    return Err(Error::numeric(format!("line {line}"), why));
                }
                hlo_text_to_proto(text)?
            }
            Format::HloProto => bytes.to_vec(),
            Format::Stablehlo => {
                let text = utf8(bytes)?;
                if let Some(line) = text.lines().position(|l| l.contains("dense_resource<__elided__>")) {
                    return Err(Error::numeric(
                        format!("line {}", line + 1),
                        "its constants are elided, so their numbers are lost",
                    ));
                }
                of_stablehlo(bytes)?
            }
            Format::Artifact => of_stablehlo(bytes)?,
            Format::JaxExport => return exported::foreign(Exported::read(bytes)?, None),
        };
        let (module, text) = printed(module)?;
        let signature = Signature::of(&text)?;
        Ok(Foreign { format, module, text, signature, exported: None })
    }
}

impl Foreign {
    /// This for a device of `platform` (see [`Device::platform`](crate::runtime::Device::platform)): a `jax.export` file may
    /// hold several programs, and may be for some platforms only. Other formats stay as they are.
    ///
    /// **Errors** when a `jax.export` file is not for the platform, naming those that it is for.
    pub fn on(self, platform: &str) -> Result<Self> {
        match self.exported {
            // XLA calls it so on some versions.
            Some(exported) => exported::foreign(*exported, Some(if platform == "host" { "cpu" } else { platform })),
            None => Ok(self),
        }
    }

    /// As a program to compile.
    ///
    /// **Errors** when an input or result has an element type or shape that this toolkit does not pass.
    pub fn program(&self) -> Result<Program> {
        let ports = |ports: &[Port]| -> Result<Vec<(String, Shape)>> {
            ports.iter().map(|port| Ok((port.name.clone(), port.shape()?))).collect()
        };
        Ok(Program {
            name: self.signature.name.clone(),
            inputs: ports(&self.signature.inputs)?,
            outputs: ports(&self.signature.outputs)?,
            aliases: self.signature.donations.clone(),
            text: self.text.clone(),
        })
    }
}

/// Text, bytecode or a portable artifact of StableHLO as a module. What is too new for this XLA is named, with both versions.
fn of_stablehlo(bytes: &[u8]) -> Result<Vec<u8>> {
    stablehlo_to_proto(bytes).map_err(|error| {
        let text = error.to_string();
        let after = |mark: &str| text.split_once(mark).map(|(_, rest)| rest);
        let Some(operation) = after("unregistered operation '").and_then(|rest| rest.split('\'').next()) else {
            return error;
        };
        let version = |c: char| !(c.is_ascii_digit() || c == '.');
        let writer = after("produced by: StableHLO_v").and_then(|rest| rest.split(version).next());
        let writer = writer.map_or(String::new(), |v| format!(", as StableHLO {} that wrote it does", v.trim_end_matches('.')));
        let here = stablehlo_version().unwrap_or_default();
        let why = format!("has the operation `{operation}`, which StableHLO {here} here does not know{writer}: write it for an older version, as python/export.py does, or as HLO");
        Error::numeric("StableHLO", why)
    })
}

/// A module and its text, both with arrays in row-major order.
fn printed(module: Vec<u8>) -> Result<(Vec<u8>, String)> {
    let text = proto_to_hlo_text(&module)?;
    match row_major(&text)? {
        Some(text) => Ok((hlo_text_to_proto(&text)?, text)),
        None => Ok((module, text)),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| Error::numeric(format!("byte {}", e.valid_up_to()), "is no UTF-8"))
}

/// The line of an elided constant.
fn elided(text: &str) -> Option<usize> {
    text.lines().position(|line| line.contains("constant(") && line.contains("{...}")).map(|i| i + 1)
}

fn in_one_line(error: &Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
