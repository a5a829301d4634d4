//! The transform itself (2607.09967, Appendix A), in graph operations.

use super::{Mode, Sel};
use crate::graph::Tensor;
use crate::nn::siren::Params;

impl Sel {
    /// The effective weight of dimensions `dims` from its leaves; f32 or f64, as they are.
    ///
    /// z = beta w m, a = |z| + s, E = e_w (exp(a - n) - exp(-n)), L = w l_w, combined as [`Mode`] says; plus A B.
    pub fn effective(&self, dims: &[usize], leaves: &Params) -> Tensor {
        let w = &leaves["w"];
        let weight = match self.mode {
            Mode::Damped => self.damped(dims, w, leaves),
            _ => self.pathways(dims, w, leaves),
        };
        match self.residual_of(dims) {
            Some(_) => weight + leaves["d.A"].matmul(&leaves["d.B"]),
            None => weight,
        }
    }

    fn pathways(&self, dims: &[usize], w: &Tensor, leaves: &Params) -> Tensor {
        let inner = self.inner_placed().value(dims, leaves);
        let z = if self.absorb_beta { w * &inner } else { (w * self.beta) * &inner };
        let scale = self.exp_placed().value(dims, leaves);
        let (exponential, sign) = match self.mode {
            Mode::Sinh | Mode::SinhOnly => (scale * sinh(&z), w.ones_like()),
            _ => (scale * self.amplitude(dims, &z, leaves), self.sign(w)),
        };
        let linear = self.mode.has_linear().then(|| w * self.linear_placed().value(dims, leaves));
        let sum = match (self.mode, linear) {
            (Mode::Mismatch, Some(linear)) => sign * (exponential + linear),
            (Mode::Congruent, Some(linear)) => sign * exponential + linear,
            (Mode::Oppose, Some(linear)) => sign * exponential - linear,
            (Mode::Sinh, Some(linear)) => exponential + linear,
            (Mode::SinhOnly, _) => exponential,
            _ => sign * exponential,
        };
        let sum = if self.normalize_by_inner_mult { sum / inner } else { sum };
        if self.beta_as_mult { sum } else { sum / self.beta }
    }

    /// exp(a - n) - exp(-n) with a = |z| + s. Without a shift through expm1: the plain form has no digits at small w.
    fn amplitude(&self, dims: &[usize], z: &Tensor, leaves: &Params) -> Tensor {
        let a = self.abs(z);
        let n = self.offset_placed().map(|n| n.value(dims, leaves));
        let Some(shift) = self.shift_placed() else {
            return match n {
                Some(n) => a.expm1() * (-n).exp(),
                None => a.expm1(),
            };
        };
        let a = a + shift.value(dims, leaves);
        match n {
            Some(n) => (a - &n).exp() - (-n).exp(),
            None => a.expm1(),
        }
    }

    /// Eq. 17.
    fn damped(&self, dims: &[usize], w: &Tensor, leaves: &Params) -> Tensor {
        let a = self.abs(w);
        let growth = (&a * self.beta).expm1();
        match self.offset_placed() {
            None => self.sign(w) * growth / (a.exp() * self.beta),
            Some(n) => {
                let n = n.value(dims, leaves);
                let exponential = self.sign(w) * growth * (-&n).exp() / (a.exp() * self.beta);
                exponential - w * (-(n * a.exp())).expm1()
            }
        }
    }

    /// sgn(w), a constant for derivatives.
    fn sign(&self, w: &Tensor) -> Tensor {
        if self.positive_at_zero { w.ge(&w.zeros_like()).select(&w.ones_like(), &w.full_like(-1.0)) } else { w.sign() }
    }

    /// |z| with derivative sgn(z).
    fn abs(&self, z: &Tensor) -> Tensor {
        if self.positive_at_zero { z.abs() } else { z * z.sign() }
    }
}

/// sinh(z) = (expm1(z) - expm1(-z)) / 2.
fn sinh(z: &Tensor) -> Tensor {
    (z.expm1() - (-z).expm1()) * 0.5
}
