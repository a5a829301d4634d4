//! Formats that programs are written in.

use anyhow::Result;
use clap::{Args, ValueEnum};
use sinexp::catalog::Function;
use sinexp::error::Error;
use sinexp::interop::jax_export::{Exported, Options};
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
    /// A file that jax.export.deserialize reads
    JaxExport,
}

impl To {
    pub fn words(self) -> &'static str {
        match self {
            To::Hlo => "HLO text",
            To::Proto => "HLO protocol buffer",
            To::Stablehlo => "StableHLO text",
            To::Artifact => "StableHLO portable artifact",
            To::JaxExport => "jax.export file",
        }
    }
}

/// What only some of the formats have.
#[derive(Args, Debug)]
pub struct Details {
    /// StableHLO version that a portable artifact or a jax.export file is for [default: the newest that XLA here writes;
    /// 1.0.0 for jax.export]
    #[arg(long, value_name = "VERSION")]
    stablehlo_version: Option<String>,
    /// How often JAX can differentiate a jax.export file [default: once where all operations have a derivative here]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(..=8))]
    orders: Option<u8>,
    /// Number of the serialisation that a jax.export file names: 2 is read by all releases of JAX up to 0.12, 12 may be
    /// asked for by later ones [default: 2]
    #[arg(long, value_name = "NUMBER")]
    serialization_version: Option<u16>,
}

impl Details {
    /// **Errors** name an option that the format does not have.
    pub fn check(&self, to: To) -> Result<()> {
        let versioned = matches!(to, To::Artifact | To::JaxExport);
        let refuse = |option: &str, value: &dyn std::fmt::Display, which: &str| {
            Err(Error::argument(option, value, format!("only a {which} has it, not --to {}", name(to))).into())
        };
        if let Some(version) = self.stablehlo_version.as_deref().filter(|_| versioned) {
            let newest = stablehlo_version()?;
            if parsed(version).is_none_or(|asked| parsed(&newest).is_some_and(|newest| asked > newest)) {
                let reason = format!("expected a version such as 1.0.0, and none after {newest}");
                return Err(Error::argument("--stablehlo-version", version, reason).into());
            }
        }
        match (&self.stablehlo_version, self.orders, self.serialization_version) {
            (Some(version), ..) if !versioned => {
                refuse("--stablehlo-version", version, "portable artifact or jax.export file")
            }
            (_, Some(orders), _) if to != To::JaxExport => refuse("--orders", &orders, "jax.export file"),
            (.., Some(number)) if to != To::JaxExport => refuse("--serialization-version", &number, "jax.export file"),
            _ => Ok(()),
        }
    }

    /// A serialised `HloModuleProto`, or its `text`, in a format other than a jax.export file.
    pub fn module(&self, to: To, module: &[u8], text: &str) -> Result<Vec<u8>> {
        Ok(match to {
            To::Hlo | To::JaxExport => text.as_bytes().to_vec(),
            To::Proto => module.to_vec(),
            To::Stablehlo => proto_to_stablehlo_text(module)?.into_bytes(),
            To::Artifact => {
                let version = self.stablehlo_version.clone().map_or_else(stablehlo_version, Ok)?;
                proto_to_artifact(module, &version)?
            }
        })
    }

    /// A function as a jax.export file, and why JAX cannot differentiate it where nothing was said and it cannot.
    pub fn exported(
        &self,
        function: &Function,
        orders: usize,
        any_platform: bool,
    ) -> Result<(Exported, Option<String>)> {
        let mut options =
            Options { orders: self.orders.map_or(orders, usize::from), any_platform, ..Options::default() };
        if let Some(version) = &self.stablehlo_version {
            options.stablehlo_version.clone_from(version);
        }
        if let Some(number) = self.serialization_version {
            options.serialization_version = number;
        }
        match function.exported(&options) {
            Err(reason) if self.orders.is_none() => {
                options.orders = 0;
                Ok((function.exported(&options)?, Some(reason.to_string())))
            }
            result => Ok((result?, None)),
        }
    }
}

/// `1.0.0` as numbers.
fn parsed(version: &str) -> Option<[u32; 3]> {
    let numbers: Option<Vec<u32>> = version.split('.').map(|n| n.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn name(to: To) -> String {
    to.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
}
