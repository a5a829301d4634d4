//! What an inverted checkpoint says of itself, and what is reported of its making.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::{hex, unreadable};
use crate::nn::sel::Sel;

/// Metadata entry `format` of a file of raw weights and scales.
pub const FORMAT: &str = "sinexp sel weights 1";

/// Where the transform, the layers and the source's own metadata stand.
const KEY: &str = "sel";

/// A layer that was inverted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Element type before, to which folding returns.
    pub dtype: Dtype,
    /// Shape; rows are the first axis.
    pub dims: Vec<usize>,
    /// What it does in the network: `q`, `up`, ...
    pub role: String,
    /// Other names of the same layer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// What a file of raw weights was made from and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversion {
    /// The transform.
    pub sel: Sel,
    /// Seed of what is drawn: the first factors of scales of pattern lora and of residuals.
    pub seed: u64,
    /// The source: file name, length and digest of its header.
    pub source: String,
    /// The inverted layers by name.
    pub layers: BTreeMap<String, Layer>,
    /// The source's own metadata, which folding restores.
    pub metadata: BTreeMap<String, String>,
}

impl Conversion {
    /// A digest of it all, and of the place of the source and the time of its last change: weights of another training
    /// step differ in nothing else that is cheap to read.
    pub(super) fn digest(&self, source: &Path) -> Result<String> {
        let place = source.canonicalize().and_then(|path| Ok((path.metadata()?.modified()?, path)));
        let place = place.map_err(|e| unreadable(source, &e))?;
        let mut text = serde_json::to_vec(self).map_err(|e| Error::numeric("conversion", e))?;
        text.extend(format!("{place:?}").bytes());
        Ok(hex(&Sha256::digest(text)[..8]))
    }

    /// As metadata of a file.
    pub(super) fn to_metadata(&self) -> Result<BTreeMap<String, String>> {
        let text = serde_json::to_string(self).map_err(|e| Error::numeric("conversion", e))?;
        Ok(BTreeMap::from([("format".to_owned(), FORMAT.to_owned()), (KEY.to_owned(), text)]))
    }

    /// From a file's metadata; None when it is not of this [`FORMAT`].
    ///
    /// **Errors** when its record is missing or damaged.
    pub fn of(path: &Path, metadata: &BTreeMap<String, String>) -> Result<Option<Self>> {
        if metadata.get("format").is_none_or(|format| format != FORMAT) {
            return Ok(None);
        }
        let text = metadata.get(KEY).ok_or_else(|| Error::file(path, format!("has no metadata entry `{KEY}`")))?;
        let conversion: Conversion =
            serde_json::from_str(text).map_err(|e| Error::file(path, format!("its metadata entry `{KEY}`: {e}")))?;
        conversion.sel.check().map_err(|e| Error::file(path, format!("its transform: {e}")))?;
        Ok(Some(conversion))
    }
}

/// How well a layer's weights come back from its leaves, as the training graph makes them in f32.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayerReport {
    /// What it does in the network.
    pub role: String,
    /// Its weights.
    pub count: usize,
    /// Largest |w_eff - w|, over the weights that have a preimage.
    pub worst: f64,
    /// Largest |w_eff - w| / |w|, over the weights that have a preimage and are normal f32 numbers.
    pub worst_relative: f64,
    /// Largest |w|.
    pub largest: f64,
    /// Weights that no raw weight gives.
    pub missing: usize,
    /// Weights that are not finite.
    pub not_finite: usize,
    /// The first of those without a preimage: its position, row-major, and its value in words.
    pub first: Option<(usize, String)>,
}

/// What an inversion came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InvertReport {
    /// Layers by name.
    pub layers: BTreeMap<String, LayerReport>,
    /// Tensors that were copied.
    pub copied: usize,
}

impl InvertReport {
    /// Adds another file's.
    pub(super) fn merge(&mut self, other: InvertReport) {
        self.layers.extend(other.layers);
        self.copied += other.copied;
    }

    /// Weights that were not represented: without a preimage, or not finite.
    pub fn unrepresented(&self) -> usize {
        self.layers.values().map(|l| l.missing + l.not_finite).sum()
    }
}
