//! Learning rates over a run: warm-up and decay, and the multipliers k(t) of parameter groups.
//!
//! Each is a function of the step number t, 0 at the first update: of a tensor inside a program, or of a number.

use std::f64::consts::PI;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::graph::Tensor;

/// How the learning rate falls after the warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// Not at all.
    Constant,
    /// Linearly to 0 (2607.09967, Section 5.1).
    #[default]
    Linear,
    /// Half a cosine to 0, as `optax.cosine_decay_schedule`.
    Cosine,
}

impl FromStr for Decay {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "constant" => Ok(Decay::Constant),
            "linear" => Ok(Decay::Linear),
            "cosine" => Ok(Decay::Cosine),
            _ => Err(Error::argument("decay", name, "expected constant, linear or cosine")),
        }
    }
}

/// Learning rate: a linear warm-up, then a decay that would reach 0 one step after the last.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Schedule {
    /// Highest learning rate.
    pub peak: f64,
    /// Steps of warm-up; the first update takes peak / warmup. 0 for none.
    pub warmup: usize,
    /// Steps of the whole run.
    pub total: usize,
    /// What follows the warm-up.
    pub decay: Decay,
}

impl Schedule {
    /// The rate of update `t`, a float scalar, 0 for the first.
    #[track_caller]
    pub fn tensor(&self, t: &Tensor) -> Tensor {
        let rising = (t + 1.0) / self.warmup.max(1) as f64;
        let left = self.total.saturating_sub(self.warmup).max(1) as f64;
        let part = ((t - self.warmup as f64) / left).clamp(&t.zeros_like(), &t.ones_like());
        let falling = match self.decay {
            Decay::Constant => t.ones_like(),
            Decay::Linear => 1.0 - part,
            Decay::Cosine => (1.0 + (part * PI).cos()) * 0.5,
        };
        t.lt(&t.full_like(self.warmup as f64)).select(&rising, &falling) * self.peak
    }

    /// The rate of update `t`, 0 for the first.
    pub fn at(&self, t: usize) -> f64 {
        if t < self.warmup {
            return self.peak * (t + 1) as f64 / self.warmup as f64;
        }
        let left = self.total.saturating_sub(self.warmup).max(1) as f64;
        let part = ((t - self.warmup) as f64 / left).clamp(0.0, 1.0);
        self.peak
            * match self.decay {
                Decay::Constant => 1.0,
                Decay::Linear => 1.0 - part,
                Decay::Cosine => (1.0 + (part * PI).cos()) * 0.5,
            }
    }
}

/// A learning-rate multiplier k(t) that moves from `start` to `end` along a cosine in log space (2607.09967, Eq. 11).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Anneal {
    /// k at step 0; positive.
    pub start: f64,
    /// k from step T on; positive.
    pub end: f64,
}

impl Anneal {
    /// The multiplier 1.
    pub const ONE: Anneal = Anneal { start: 1.0, end: 1.0 };

    /// The same multiplier throughout.
    pub fn constant(k: f64) -> Self {
        Anneal { start: k, end: k }
    }

    /// k(t) with `total` = T.
    pub fn at(&self, t: f64, total: usize) -> f64 {
        let part = (t / total.max(1) as f64).min(1.0);
        (self.start.ln() + (self.end / self.start).ln() / 2.0 * (1.0 - (PI * part).cos())).exp()
    }

    /// k(t) of a float scalar, with `total` = T.
    #[track_caller]
    pub fn tensor(&self, t: &Tensor, total: usize) -> Tensor {
        if self.start == self.end {
            return t.full_like(self.start);
        }
        let part = (t / total.max(1) as f64).minimum(&t.ones_like());
        (self.start.ln() + (self.end / self.start).ln() / 2.0 * (1.0 - (PI * part).cos())).exp()
    }
}

impl FromStr for Anneal {
    type Err = Error;

    /// `50:8`, or `0.5` for a constant.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (start, end) = text.split_once(':').unwrap_or((text, text));
        match (start.trim().parse::<f64>(), end.trim().parse::<f64>()) {
            (Ok(start), Ok(end)) if start > 0.0 && end > 0.0 && start.is_finite() && end.is_finite() => {
                Ok(Anneal { start, end })
            }
            _ => Err(Error::argument("k", text, "expected a positive number, or START:END")),
        }
    }
}
