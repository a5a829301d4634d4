//! Sizes of a trained network, from its file.

use std::collections::BTreeMap;
use std::path::Path;

use crate::array::{Array, DType};
use crate::convert;
use crate::error::{Error, Result};
use crate::interop::safetensors::Reader;
use crate::nn::siren::{Activation, Siren};
use crate::train::language::checkpoint;
use crate::train::language::{Checkpoint, LanguageConfig, Pretrained, Projection};

/// The coordinate network of a file, and the names of the constants it has beside the trained parameters. Its activation
/// is `activation`, else the one that the file of `fit` was trained with, else the sine.
///
/// **Errors** name the tensor that is missing or does not fit.
pub(super) fn siren_constants(path: &Path, activation: Option<Activation>) -> Result<(Siren, Vec<&'static str>)> {
    let reader = Reader::open(path)?;
    // Only shapes count: no bytes are read.
    let mut shapes = BTreeMap::new();
    for name in reader.names().map(str::to_owned).collect::<Vec<_>>() {
        if let Some((Some(dtype), dims)) = reader.shape(&name) {
            shapes.insert(name, (dtype, dims.to_vec()));
        }
    }
    let own = |name: &str| name == "pe" || name.starts_with("W.") || name.starts_with("b.");
    let weights: BTreeMap<String, Array> = shapes
        .iter()
        .filter(|(name, _)| own(name))
        .map(|(name, (dtype, dims))| (name.clone(), Array::full(*dtype, dims, 0.0)))
        .collect();
    let siren = Siren::from_weights(&weights).map_err(|e| Error::file(path, e))?;
    let expected = siren.parameters();
    if let Some(name) = weights.keys().find(|n| *n != "pe" && expected.iter().all(|(known, _)| known != *n)) {
        let reason = format!("tensor `{name}` is of no layer: W.{} is missing", siren.hidden + 2);
        return Err(Error::file(path, reason));
    }
    let scalar = |name: &&&'static str| shapes.get(**name).is_some_and(|(_, dims)| dims.is_empty());
    let mut constants: Vec<&'static str> = ["omega0", "omega_h"].iter().filter(scalar).copied().collect();
    if siren.encoding > 0 {
        constants.push("pe");
    }
    let trained = reader.metadata.get("config").and_then(|text| trained_with(text));
    Ok((Siren { activation: activation.or(trained).unwrap_or(Activation::Sine), ..siren }, constants))
}

/// The activation that goes with the initialisation named in the configuration of `fit`.
fn trained_with(config: &str) -> Option<Activation> {
    let config: serde_json::Value = serde_json::from_str(config).ok()?;
    Some(match config.get("init")?.as_str()? {
        "tanh-pe" => Activation::Tanh,
        "relu" => Activation::Relu,
        "silu" => Activation::Silu,
        "gelu" => Activation::Gelu { approximate: config.get("gelu_tanh").and_then(|v| v.as_bool()).unwrap_or(true) },
        _ => Activation::Sine,
    })
}

/// A language model: of a run's folder (its newest checkpoint), a checkpoint, or weights of `sel fold` or `sel invert`.
pub(super) enum Language {
    /// With everything about its training.
    Run(Box<LanguageConfig>),
    /// The network, how its projections are stored, the length of its sequences, whether activations are bf16.
    Weights(Box<Pretrained>),
}

impl Language {
    /// **Errors** say what the file is instead, or how it is damaged.
    pub(super) fn open(path: &Path) -> Result<Self> {
        if path.is_dir() && !checkpoint::list(path).is_empty() {
            return Ok(Language::Run(Box::new(Checkpoint::newest(path)?.config)));
        }
        let metadata = if path.is_dir() { None } else { Some(Reader::open(path)?.metadata) };
        let format = metadata.as_ref().and_then(|m| m.get("format")).map(String::as_str).unwrap_or_default();
        if format.starts_with("sinexp language checkpoint") {
            return Ok(Language::Run(Box::new(Checkpoint::read(path)?.config)));
        }
        if metadata.is_some() && format != convert::FORMAT && !format.starts_with("sinexp language weights") {
            let reason = "is no language model of `sel`: expected a run's folder, a checkpoint, or weights of `sel fold` or `sel invert`";
            return Err(Error::file(path, reason));
        }
        Ok(Language::Weights(Box::new(Pretrained::open(path)?)))
    }

    pub(super) fn transformer(&self) -> &crate::nn::transformer::Transformer {
        match self {
            Language::Run(config) => &config.transformer,
            Language::Weights(pretrained) => &pretrained.origin.transformer,
        }
    }

    pub(super) fn projection(&self) -> &Projection {
        match self {
            Language::Run(config) => &config.projection,
            Language::Weights(pretrained) => &pretrained.projection,
        }
    }

    pub(super) fn sequence(&self) -> usize {
        match self {
            Language::Run(config) => config.step.sequence,
            Language::Weights(pretrained) => pretrained.origin.sequence,
        }
    }

    pub(super) fn dtype(&self) -> DType {
        let bf16 = match self {
            Language::Run(config) => config.step.bf16,
            Language::Weights(pretrained) => pretrained.origin.bf16,
        };
        if bf16 { DType::BF16 } else { DType::F32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_activation_is_that_of_the_initialisation() {
        let of = |config: &str| trained_with(config);
        assert_eq!(of(r#"{"init": "sm20"}"#), Some(Activation::Sine));
        assert_eq!(of(r#"{"init": "tanh-pe", "gelu_tanh": null}"#), Some(Activation::Tanh));
        assert_eq!(of(r#"{"init": "gelu", "gelu_tanh": false}"#), Some(Activation::Gelu { approximate: false }));
        assert_eq!(of(r#"{"width": 3}"#), None);
        assert_eq!(of("no JSON"), None);
    }
}
