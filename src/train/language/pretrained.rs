//! Weights that a run starts from instead of a drawn start: ordinary ones of `sel fold`, or the leaves that `sel invert`
//! makes of those (2607.09967, Section 6, "pretrained conversion and finetuning").

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::config::Projection;
use super::folded::{FORMAT, Origin};
use crate::array::{Array, DType};
use crate::convert::Conversion;
use crate::error::{Error, Result};
use crate::files::hex;
use crate::interop::safetensors::Shards;
use crate::nn::language_model::{LanguageModel, Weights};

/// A trained model as parameters of a new run.
#[derive(Clone, Debug)]
pub struct Pretrained {
    /// The network, and what it was trained on.
    pub origin: Origin,
    /// How its projections are stored.
    pub projection: Projection,
    /// Parameters, stacked, f32.
    pub parameters: Weights,
    /// Name of the file or folder, and a digest of the parameters.
    pub name: String,
}

impl Pretrained {
    /// Opens a file of `sel fold`, or a file or folder that `sel invert` made of one.
    ///
    /// **Errors** say what else it is, or which tensor does not fit.
    pub fn open(path: &Path) -> Result<Self> {
        let shards = Shards::open(&[PathBuf::from(path)])?;
        if let Some(problem) = shards.problems().first() {
            return Err(Error::file(path, format!("is not whole: {problem}")));
        }
        let metadata = &shards.files()[0].metadata;
        let (projection, metadata) = match Conversion::of(path, metadata)? {
            Some(conversion) => (Projection::Sel(conversion.sel), conversion.metadata),
            None => (Projection::Standard, metadata.clone()),
        };
        let origin = match metadata.get("format").map(String::as_str) {
            Some(FORMAT) => metadata.get("origin").ok_or_else(|| Error::file(path, "has no `origin`"))?,
            Some(format) if format.starts_with("sinexp language checkpoint") => {
                let reason =
                    "is a checkpoint: `sel train --resume` goes on with it, `sel fold` makes ordinary weights of it";
                return Err(Error::file(path, reason));
            }
            _ => {
                let reason = "is of another network: `sel train` starts from weights of `sel fold`, or what `sel invert` makes of them";
                return Err(Error::file(path, reason));
            }
        };
        let origin: Origin = serde_json::from_str(origin).map_err(|e| Error::file(path, format!("its origin: {e}")))?;
        let mut pretrained = Pretrained { origin, projection, parameters: Weights::new(), name: String::new() };
        let mut tensors = Weights::new();
        for tensor in shards.tensors() {
            let value = shards.array(&tensor.name)?;
            let unfit = |reason: String| Error::file(path, format!("tensor `{}` {reason}", tensor.name));
            if !value.dtype().is_float() {
                return Err(unfit(format!("is {}, but weights are floating-point numbers", value.dtype())));
            }
            if value.to_f64_vec().iter().any(|x| !x.is_finite()) {
                return Err(unfit("holds numbers that are not finite".into()));
            }
            tensors.insert(tensor.name.clone(), value.cast(DType::F32));
        }
        let model = pretrained.model();
        let mut digest = Sha256::new();
        for parameter in model.parameters() {
            let value: Array =
                model.stack(&parameter.name, &parameter.dims, &tensors).map_err(|e| Error::file(path, e))?;
            digest.update(value.bytes());
            pretrained.parameters.insert(parameter.name, value);
        }
        let digest = hex(&digest.finalize()[..6]);
        pretrained.name = format!("{}, sha256 {digest}", path.file_name().unwrap_or_default().to_string_lossy());
        Ok(pretrained)
    }

    /// The model.
    pub fn model(&self) -> LanguageModel {
        self.projection.model(&self.origin.transformer)
    }
}
