//! The initialisation family of Combette et al. 2026 ("CVP26" in 2609.30633, Appendix A).
//!
//! Hidden weights are U(-c_w / sqrt N, c_w / sqrt N), biases N(0, c_b^2). In the limit of width and depth the
//! preactivations become N(0, sigma_a^2) with the fixed point of Eq. 13, and the layer Jacobian's entries have variance
//! sigma_g / N with Eq. 17's sigma_g; stable gradients need sigma_g = 1.
//!
//! ```
//! use sinexp::nn::cvp26::Cvp26;
//! // Stable gradients at every sigma_a: the layer Jacobian's entries have variance 1 / N.
//! assert!((Cvp26::stable(1.0)?.gradient_factor() - 1.0).abs() < 1e-12);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use crate::error::{Error, Result};

/// A member of the family, at omega_h = 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cvp26 {
    /// Weight scale.
    pub c_w: f64,
    /// Standard deviation of the biases.
    pub c_b: f64,
}

impl Cvp26 {
    /// sigma_a = 0: c_w = sqrt 3, no biases.
    pub const SIGMA_A_0: Cvp26 = Cvp26 { c_w: 1.7320508075688772, c_b: 0.0 };
    /// sigma_a = 1: c_w^2 = 6 / (1 + e^-2), c_b^2 = c_w^2 e^-2 / 3.
    pub const SIGMA_A_1: Cvp26 = Cvp26 { c_w: 2.298865474069175, c_b: 0.4882682091271508 };

    /// The member with sigma_g = 1 whose preactivations have variance `sigma_a^2`:
    /// c_w^2 = 6 / (1 + e^(-2 sigma_a^2)), c_b^2 = sigma_a^2 - c_w^2 (1 - e^(-2 sigma_a^2)) / 6.
    ///
    /// sigma_a = 0 gives c_w = sqrt 3, c_b = 0; sigma_a = 1 gives c_w^2 = 6 / (1 + e^-2), c_b^2 = c_w^2 e^-2 / 3.
    ///
    /// **Errors** for a negative or non-finite sigma_a.
    pub fn stable(sigma_a: f64) -> Result<Self> {
        if !(sigma_a.is_finite() && sigma_a >= 0.0) {
            return Err(Error::argument("sigma_a", sigma_a, "expected a number of at least 0"));
        }
        let decay = (-2.0 * sigma_a * sigma_a).exp();
        let c_w2 = 6.0 / (1.0 + decay);
        let c_b2 = sigma_a * sigma_a - c_w2 * (1.0 - decay) / 6.0;
        Ok(Cvp26 { c_w: c_w2.sqrt(), c_b: c_b2.max(0.0).sqrt() })
    }

    /// Whether both are the same member but for rounding.
    pub(super) fn is(&self, other: Cvp26) -> bool {
        (self.c_w - other.c_w).abs() < 1e-12 && (self.c_b - other.c_b).abs() < 1e-12
    }

    /// Fixed point sigma_a^2 of the preactivations' variance (Eq. 13; W_0 is the principal Lambert W).
    pub fn preactivation_variance(&self) -> f64 {
        let (w2, b2) = (self.c_w * self.c_w, self.c_b * self.c_b);
        let argument = -w2 / 3.0 * (-w2 / 3.0 - 2.0 * b2).exp();
        let value = b2 + w2 / 6.0 + 0.5 * lambert_w::lambert_w0(argument);
        value.max(0.0)
    }

    /// Gradient factor sigma_g (Eq. 17): N times the variance of a layer Jacobian's entries in the limit.
    pub fn gradient_factor(&self) -> f64 {
        self.c_w * self.c_w / 6.0 * (1.0 + (-2.0 * self.preactivation_variance()).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::Cvp26;

    #[test]
    fn the_papers_two_members_fall_out() {
        let zero = Cvp26::stable(0.0).expect("sigma_a = 0");
        assert!((zero.c_w - 3f64.sqrt()).abs() < 1e-15 && zero.c_b == 0.0);
        // W_0 has a branch point here, so half the digits are all there are.
        assert!(zero.preactivation_variance().abs() < 1e-7, "{}", zero.preactivation_variance());
        let one = Cvp26::stable(1.0).expect("sigma_a = 1");
        let e2 = (-2f64).exp();
        assert!((one.c_w.powi(2) - 6.0 / (1.0 + e2)).abs() < 1e-14);
        assert!((one.c_b.powi(2) - one.c_w.powi(2) * e2 / 3.0).abs() < 1e-14);
        for (stable, named) in [(zero, Cvp26::SIGMA_A_0), (one, Cvp26::SIGMA_A_1)] {
            assert!((stable.c_w - named.c_w).abs() < 1e-15 && (stable.c_b - named.c_b).abs() < 1e-15);
        }
        assert!((one.preactivation_variance() - 1.0).abs() < 1e-12, "{}", one.preactivation_variance());
    }

    /// The fixed point solves v = c_b^2 + c_w^2 (1 - e^(-2 v)) / 6, the recursion it is the limit of.
    #[test]
    fn the_fixed_point_is_one() {
        for c_w in [0.5, 1.0, 2.0, 2.4, 3.0] {
            for c_b in [0.0, 0.1, 0.7, 3.0] {
                let v = Cvp26 { c_w, c_b }.preactivation_variance();
                let next = c_b * c_b + c_w * c_w * (1.0 - (-2.0 * v).exp()) / 6.0;
                assert!((v - next).abs() < 1e-10, "c_w {c_w}, c_b {c_b}: {v} goes to {next}");
            }
        }
        for sigma_a in [0.3, 0.5, 1.0, 2.0] {
            let member = Cvp26::stable(sigma_a).expect("a member");
            assert!((member.gradient_factor() - 1.0).abs() < 1e-9, "sigma_a {sigma_a}");
        }
        assert!(Cvp26::stable(-1.0).is_err() && Cvp26::stable(f64::NAN).is_err());
    }
}
