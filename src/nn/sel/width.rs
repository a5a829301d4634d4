//! The choice of beta for a width (2607.09967, Section 5.2).

use lambert_w::lambert_wm1;

/// Share by which expm1(beta x) departs from beta x at [`DEPARTURE_AT`] standard deviations.
pub const DEPARTURE: f64 = 0.25;

/// Where the departure is measured, in standard deviations of a square Xavier matrix.
pub const DEPARTURE_AT: f64 = 1.5;

/// beta such that expm1(beta x) = (1 + [`DEPARTURE`]) beta x at x = [`DEPARTURE_AT`] standard deviations 1 / sqrt(width)
/// of a Xavier-initialised `[width, width]` matrix: 0.288 sqrt(width).
///
/// The paper sets beta by eye, so that the curve "begins to noticeably depart from the linear regime around 1.5-2
/// standard deviations": 7.5 at width 1024, 12 to 15 at 2048, 17.5 and 20 at 3072. This rule gives 9.2, 13.0 and 16.0
/// there: the paper's values grow faster than the root of the width, so no one share gives all three.
///
/// ```
/// let beta = sinexp::nn::sel::beta_for_width(2048);
/// assert!((12.0..15.0).contains(&beta));
/// ```
pub fn beta_for_width(width: usize) -> f64 {
    departing(DEPARTURE) * (width as f64).sqrt() / DEPARTURE_AT
}

/// The y > 0 with expm1(y) = (1 + share) y: y = -1/c - W_{-1}(-exp(-1/c) / c) with c = 1 + share.
fn departing(share: f64) -> f64 {
    let c = 1.0 + share;
    -1.0 / c - lambert_wm1(-(-1.0 / c).exp() / c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_holds_and_is_near_the_paper() {
        for width in [64, 1024, 3072] {
            let y: f64 = beta_for_width(width) * DEPARTURE_AT / (width as f64).sqrt();
            assert!((y.exp_m1() / y - 1.0 - DEPARTURE).abs() < 1e-12);
        }
        for (width, paper) in [(1024, 7.5), (2048, 13.2), (3072, 18.75)] {
            let ratio = beta_for_width(width) / paper;
            assert!((0.8..1.25).contains(&ratio), "width {width}: {ratio} of the paper's");
        }
    }
}
