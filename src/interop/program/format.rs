//! Which format a program is in, by its bytes.

use std::fmt;

use crate::error::{Error, Result};

/// How a program is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// HLO text: `HloModule ...`.
    HloText,
    /// A serialised `HloModuleProto`.
    HloProto,
    /// StableHLO or VHLO text: `module ...`.
    Stablehlo,
    /// MLIR bytecode: a portable artifact of StableHLO.
    Artifact,
    /// A file of `jax.export`.
    JaxExport,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::HloText => "HLO text",
            Format::HloProto => "HLO protocol buffer",
            Format::Stablehlo => "StableHLO text",
            Format::Artifact => "StableHLO portable artifact",
            Format::JaxExport => "jax.export file",
        })
    }
}

impl Format {
    /// The format of `bytes`; `extension` decides where they do not tell: between a protocol buffer and a file of
    /// `jax.export`, which have no mark of their own.
    ///
    /// **Errors** when it is none of them.
    pub fn of(bytes: &[u8], extension: &str) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::numeric("program", "is empty"));
        }
        if bytes.starts_with(b"ML\xefR") {
            return Ok(Format::Artifact);
        }
        if let Some(first) = first_word(bytes) {
            if first == "HloModule" {
                return Ok(Format::HloText);
            }
            let mlir =
                first.starts_with('#') || matches!(first, "module" | "builtin.module" | "func.func" | "vhlo.func_v1");
            if mlir || matches!(extension, "mlir" | "stablehlo") {
                return Ok(Format::Stablehlo);
            }
        }
        if extension == "jax_export" {
            return Ok(Format::JaxExport);
        }
        let text = std::str::from_utf8(bytes).is_ok_and(|t| !t.chars().any(|c| c.is_control() && !c.is_whitespace()));
        if text {
            let known = "expected HLO text (HloModule ...), StableHLO text (module ...), an HLO protocol buffer, a portable artifact or a jax.export file";
            return Err(Error::numeric("program", format!("is in no known format: {known}")));
        }
        if looks_exported(bytes) { Ok(Format::JaxExport) } else { Ok(Format::HloProto) }
    }
}

/// The first word that is in no comment.
fn first_word(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(1 << 16)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.valid_up_to() + 4 >= head.len() => std::str::from_utf8(&head[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).next().map(|word| word.split(['{', ',', '(']).next().unwrap_or(word))
}

/// Whether the bytes begin as a flat buffer does: the place of its root table, and before that table a distance back to a
/// table of slots within the file.
fn looks_exported(bytes: &[u8]) -> bool {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let Some(root) = word(0).map(|r| r as usize).filter(|r| *r >= 4 && r.is_multiple_of(2)) else { return false };
    let Some(back) = word(root).map(|b| b as i32) else { return false };
    let slots = root as i64 - i64::from(back);
    let size =
        usize::try_from(slots).ok().and_then(|at| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    size.is_some_and(|size| size >= 4 && size.is_multiple_of(2) && size <= 128)
}
