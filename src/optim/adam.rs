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
        let eps = (self.eps != 0.0).then(|| step.full_like(self.eps));
        let (m_hat, root, state) = self.moments(gradient, state, step);
        let direction = match eps {
            Some(eps) => m_hat / (root + eps),
            None => quotient(&m_hat, &root),
        };
        (parameter - learning_rate * direction, state)
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
        let (m_hat, root, state) = self.moments(gradient, state, step);
        (parameter - learning_rate * quotient(&m_hat, &(root + eps)), state)
    }

    /// The first moment and the root of the second, both corrected for bias, and the new state.
    fn moments(&self, gradient: &Tensor, state: &AdamState, step: &Tensor) -> (Tensor, Tensor, AdamState) {
        let m = self.beta1 * &state.m + (1.0 - self.beta1) * gradient;
        let v = self.beta2 * &state.v + (1.0 - self.beta2) * gradient.square();
        // Bias corrections are scalars: 1 - beta^t.
        let correction = |beta: f64| 1.0 - step.full_like(beta).pow(step);
        (&m / correction(self.beta1), (&v / correction(self.beta2)).sqrt(), AdamState { m, v })
    }
}

/// m / root, and 0 where root is 0: there the gradient has been 0 throughout (and m is 0 too).
fn quotient(m: &Tensor, root: &Tensor) -> Tensor {
    let still = root.eq(&root.zeros_like());
    still.select(&root.zeros_like(), &(m / still.select(&root.ones_like(), root)))
}
