//! AdamW (Loshchilov and Hutter 2019, Algorithm 2) and the clipping of gradients, as `optax.adamw` and
//! `optax.clip_by_global_norm`.

use serde::{Deserialize, Serialize};

use super::adam::{AdamState, correction};
use crate::graph::Tensor;

/// Adam with decoupled weight decay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamW {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Weight decay, multiplied by the learning rate at each step.
    pub weight_decay: f64,
}

impl Default for AdamW {
    /// 0.9, 0.999, 1e-8, 0.01 (2607.09967, Section 5.1).
    fn default() -> Self {
        AdamW { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 }
    }
}

impl AdamW {
    /// One update: the new parameter and moments.
    ///
    /// `step` is the float scalar 1 in the first update; `learning_rate` a scalar, with the group's multiplier k(t) in
    /// it, which therefore multiplies the decay too. `decay`: whether this parameter's group is decayed. All of the
    /// parameter's dtype.
    #[track_caller]
    pub fn update(
        &self,
        parameter: &Tensor,
        gradient: &Tensor,
        state: &AdamState,
        step: &Tensor,
        learning_rate: &Tensor,
        decay: bool,
    ) -> (Tensor, AdamState) {
        let moments = state.next(gradient, self.beta1, self.beta2);
        // The bias corrections go into scalars: one root and one division per element.
        let rate = learning_rate / correction(self.beta1, step);
        let root = correction(self.beta2, step).rsqrt();
        let change = rate * (&moments.m / (moments.v.sqrt() * root + self.eps));
        let shrink = if decay { self.weight_decay } else { 0.0 };
        // Decay and step are added first: the parameter is rounded once.
        let change = if shrink == 0.0 { change } else { change + (learning_rate * shrink) * parameter };
        let new = parameter - change;
        (new, moments)
    }
}

/// Root of the sum of squares over all tensors; f32 (f64) scalar.
///
/// **Panics** with no tensors.
#[track_caller]
pub fn global_norm(tensors: &[Tensor]) -> Tensor {
    let squares = tensors.iter().map(|t| t.square().sum_all()).reduce(|a, b| a + b);
    let Some(squares) = squares else { panic!("global_norm of no tensors") };
    squares.sqrt()
}

/// What gradients of this global norm are multiplied by so that the norm is at most `max`: min(1, max / (norm + 1e-6)).
#[track_caller]
pub fn clip_coefficient(norm: &Tensor, max: f64) -> Tensor {
    (max / (norm + 1e-6)).minimum(&norm.ones_like())
}
