//! Folded models: effective weights computed once, an ordinary transformer in a file (2607.09967, Section 6).

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::checkpoint::{Checkpoint, list};
use super::pretrained::Pretrained;
use super::step::{effective_program, effective_signature};
use crate::array::Array;
use crate::convert;
use crate::error::{Error, Result};
use crate::interop::safetensors::{self, Tensors};
use crate::nn::language_model::{LanguageModel, Weights};
use crate::nn::parameterization::Standard;
use crate::nn::transformer::Transformer;
use crate::runtime::Device;

/// What the file says of the model beside its weights.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// The network.
    pub transformer: Transformer,
    /// Tokenizer of its vocabulary.
    pub tokenizer: String,
    /// What it was trained on.
    pub corpus: String,
    /// Tokens of the sequences it was trained on.
    pub sequence: usize,
    /// Steps it was trained for.
    pub step: usize,
    /// Whether its activations were bf16.
    pub bf16: bool,
}

/// An ordinary transformer: no raw weights, no scales.
#[derive(Clone, Debug)]
pub struct Folded {
    /// What it is.
    pub origin: Origin,
    /// Weights, stacked, f32.
    pub weights: Weights,
}

pub(super) const FORMAT: &str = "sinexp language weights 1";

impl Folded {
    /// Computes the effective weights of a checkpoint.
    pub fn of_checkpoint(device: &Device, checkpoint: &Checkpoint) -> Result<Self> {
        let config = &checkpoint.config;
        let weights = effective_weights(device, &config.model(), &checkpoint.parameters)?;
        let origin = Origin {
            transformer: config.transformer.clone(),
            tokenizer: config.tokenizer.clone(),
            corpus: config.corpus.clone(),
            sequence: config.step.sequence,
            step: checkpoint.step,
            bf16: config.step.bf16,
        };
        Ok(Folded { origin, weights })
    }

    /// Computes the effective weights of leaves that `sel invert` made.
    pub fn of_pretrained(device: &Device, pretrained: &Pretrained) -> Result<Self> {
        let weights = effective_weights(device, &pretrained.model(), &pretrained.parameters)?;
        Ok(Folded { origin: pretrained.origin.clone(), weights })
    }

    /// Opens a folded file, one of `sel invert`, a checkpoint, or the newest checkpoint of a run's folder.
    ///
    /// **Errors** say what the file is instead, or how it is damaged.
    pub fn open(device: &Device, path: &Path) -> Result<Self> {
        if path.is_dir() {
            if list(path).is_empty() {
                return Err(Error::file(path, "holds no checkpoint: expected a folder of `sel train` or a file"));
            }
            return Self::of_checkpoint(device, &Checkpoint::newest(path)?);
        }
        let metadata = safetensors::Reader::open(path)?.metadata;
        match metadata.get("format").map(String::as_str) {
            Some(FORMAT) => Self::read(path),
            Some(convert::FORMAT) => Self::of_pretrained(device, &Pretrained::open(path)?),
            _ => Self::of_checkpoint(device, &Checkpoint::read(path)?),
        }
    }

    fn read(path: &Path) -> Result<Self> {
        let file = safetensors::read(path)?;
        let origin = file.metadata.get("origin").ok_or_else(|| Error::file(path, "has no `origin`"))?;
        let origin: Origin = serde_json::from_str(origin).map_err(|e| Error::file(path, format!("its origin: {e}")))?;
        let model = LanguageModel::new(origin.transformer.clone(), Standard);
        let names = effective_signature(&origin.transformer);
        let weight = |(name, dims): (String, Vec<usize>)| {
            let value = model.stack(&name, &dims, &file.tensors).map_err(|e| Error::file(path, e))?;
            Ok((name, value))
        };
        Ok(Folded { weights: names.into_iter().map(weight).collect::<Result<_>>()?, origin })
    }

    /// Writes the weights, one tensor per block, with all that [`Folded::open`] needs.
    pub fn write(&self, path: &Path) -> Result<()> {
        let model = LanguageModel::new(self.origin.transformer.clone(), Standard);
        let origin = serde_json::to_string(&self.origin).map_err(|e| Error::file(path, e))?;
        let metadata = BTreeMap::from([("format".to_owned(), FORMAT.to_owned()), ("origin".to_owned(), origin)]);
        safetensors::write(path, &Tensors { tensors: model.split(&self.weights)?, metadata })
    }
}

/// The weights that the model `model` uses, stacked, from its parameters.
///
/// **Errors** when a parameter is missing, and when the device fails.
pub fn effective_weights(device: &Device, model: &LanguageModel, parameters: &Weights) -> Result<Weights> {
    let program = device.compile(&effective_program(model)?)?;
    let parameter = |name: &str| parameters.get(name).ok_or_else(|| Error::tensor(name, "is missing"));
    let arguments: Vec<&Array> = program.inputs().map(|(name, _)| parameter(name)).collect::<Result<_>>()?;
    let values = program.call(&arguments)?;
    Ok(program.outputs().map(|(name, _)| name.to_owned()).zip(values).collect())
}
