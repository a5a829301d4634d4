//! Adam (Kingma and Ba 2015, Algorithm 1), as `optax.adam`.

use crate::graph::Tensor;

/// Decay rates and epsilon. The learning rate is a tensor given at each step, so that a schedule or a sweep needs no new
/// program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment. With 0, an entry whose gradient has always been 0 does not move.
    pub eps: f64,
}

impl Default for Adam {
    /// 0.9, 0.999, 1e-8.
    fn default() -> Self {
        Adam { beta1: 0.9, beta2: 0.999, eps: 1e-8 }
    }
}

/// First and second moment of one parameter, of its shape, in f32 or f64.
#[derive(Clone, Debug)]
pub struct AdamState {
    /// Running mean of the gradient.
    pub m: Tensor,
    /// Running mean of its square.
    pub v: Tensor,
}

impl AdamState {
    /// The moments after one more gradient.
    pub(super) fn next(&self, gradient: &Tensor, beta1: f64, beta2: f64) -> AdamState {
        let m = beta1 * &self.m + (1.0 - beta1) * gradient;
        let v = beta2 * &self.v + (1.0 - beta2) * gradient.square();
        AdamState { m, v }
    }
}

/// The bias correction 1 - beta^t, a scalar.
pub(super) fn correction(beta: f64, step: &Tensor) -> Tensor {
    1.0 - step.full_like(beta).pow(step)
}

impl Adam {
    /// One update: the new parameter and state.
    ///
    /// `step` is the float scalar t, 1 in the first update; `learning_rate` a scalar. Both of the parameter's dtype.
    #[track_caller]
    pub fn update(
        &self,
        parameter: &Tensor,
        gradient: &Tensor,
        state: &AdamState,
        step: &Tensor,
        learning_rate: &Tensor,
    ) -> (Tensor, AdamState) {
        self.update_with_eps(parameter, gradient, state, step, learning_rate, &step.full_like(self.eps))
    }

    /// [`Adam::update`] with epsilon as a scalar tensor, 0 allowed; `self.eps` is not used.
    #[track_caller]
    pub fn update_with_eps(
        &self,
        parameter: &Tensor,
        gradient: &Tensor,
        state: &AdamState,
        step: &Tensor,
        learning_rate: &Tensor,
        eps: &Tensor,
    ) -> (Tensor, AdamState) {
        let new = state.next(gradient, self.beta1, self.beta2);
        let first = &new.m / correction(self.beta1, step);
        let direction = quotient(&first, &((&new.v / correction(self.beta2, step)).sqrt() + eps));
        (parameter - learning_rate * direction, new)
    }
}

/// a / b, and 0 where b is 0: with epsilon 0 that is where the gradient has been 0 throughout (and a is 0 too).
fn quotient(a: &Tensor, b: &Tensor) -> Tensor {
    let still = b.eq(&b.zeros_like());
    still.select(&b.zeros_like(), &(a / still.select(&b.ones_like(), b)))
}
