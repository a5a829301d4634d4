//! What a language run is: everything that its numbers depend on.

use serde::{Deserialize, Serialize};

use super::step::StepSettings;
use crate::data::text::Dataset;
use crate::error::{Error, Result};
use crate::nn::language_model::{LanguageModel, Start};
use crate::nn::parameterization::Standard;
use crate::nn::sel::Sel;
use crate::nn::transformer::Transformer;
use crate::random::Key;

/// How projections are stored.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)] // one per run
pub enum Projection {
    /// As they are: the baseline.
    Standard,
    /// Through the SEL transform.
    Sel(Sel),
}

impl Projection {
    /// A transformer with its projections stored so.
    pub fn model(&self, transformer: &Transformer) -> LanguageModel {
        match self {
            Projection::Standard => LanguageModel::new(transformer.clone(), Standard),
            Projection::Sel(sel) => LanguageModel::new(transformer.clone(), sel.clone()),
        }
    }
}

/// The resolved configuration of a run. Two runs of equal configurations on one device give the same numbers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LanguageConfig {
    /// The network.
    pub transformer: Transformer,
    /// How its projections are stored.
    pub projection: Projection,
    /// How it starts.
    pub start: Start,
    /// The weights that it starts from instead, by name and digest; see [`Pretrained`](super::Pretrained).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<String>,
    /// The training step; `schedule.total` is the length of the run.
    pub step: StepSettings,
    /// Seed of the start and of the batches.
    pub seed: u64,
    /// Name and digest of the corpus.
    pub corpus: String,
    /// Tokenizer.
    pub tokenizer: String,
    /// Steps between two evaluations.
    pub eval_every: usize,
    /// Batches of the validation split in an evaluation.
    pub eval_batches: usize,
}

impl LanguageConfig {
    /// Steps of the whole run.
    pub fn steps(&self) -> usize {
        self.step.schedule.total
    }

    /// The model.
    pub fn model(&self) -> LanguageModel {
        self.projection.model(&self.transformer)
    }

    /// Whether both splits of `data` have room for a sequence.
    ///
    /// **Errors** name the one that does not.
    pub fn check_data(&self, data: &Dataset) -> Result<()> {
        data.batch(Key::new(0), 0, 1, self.step.sequence)?;
        data.validation_batches(1, self.step.sequence, 1).map(|_| ())
    }

    /// Whether sizes and choices make sense together.
    ///
    /// **Errors** name the option that does not.
    pub fn check(&self) -> Result<()> {
        let t = &self.transformer;
        for (name, value) in [("--width", t.width), ("--depth", t.depth), ("--heads", t.heads), ("hidden", t.hidden)] {
            if value == 0 {
                return Err(Error::argument(name, value, "expected at least 1"));
            }
        }
        if !t.width.is_multiple_of(t.heads) || !t.head_dim().is_multiple_of(2) {
            let reason = format!("expected a divisor of the width {} with an even quotient", t.width);
            return Err(Error::argument("--heads", t.heads, reason));
        }
        let s = &self.step;
        for (name, value) in [
            ("--sequence", s.sequence),
            ("--batch", s.batch),
            ("--accumulation", s.accumulation),
            ("--replicas", s.replicas),
            ("--steps", s.schedule.total),
            ("--eval-every", self.eval_every),
            ("--eval-batches", self.eval_batches),
        ] {
            if value == 0 {
                return Err(Error::argument(name, value, "expected at least 1"));
            }
        }
        for (name, value) in [("--learning-rate", s.schedule.peak), ("--clip", s.clip)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::argument(name, value, "expected a positive number"));
            }
        }
        if !(s.optimizer.weight_decay >= 0.0 && s.optimizer.weight_decay.is_finite()) {
            return Err(Error::argument("--weight-decay", s.optimizer.weight_decay, "expected 0 or a positive number"));
        }
        match &self.projection {
            Projection::Standard => Ok(()),
            Projection::Sel(sel) => sel.check(),
        }
    }
}
