//! The inverse of the transform for many weights under the same scales, as they are at the start of training.

use rayon::prelude::*;

use super::{Point, Sel};

/// The inverse of [`Sel::value`] under one [`Point`]: a table over the upper half of the bits of an f32 (sign, exponent
/// and seven bits of the fraction) gives a start, a few Newton steps the rest. Some 50 times faster than
/// [`Sel::invert_point`], which stands in wherever they do not converge.
pub struct InverseTable<'a> {
    sel: &'a Sel,
    point: Point,
    /// By the upper bits; NaN where there is no preimage.
    starts: Vec<f64>,
}

/// Newton steps from the table's start; four are usual.
const STEPS: usize = 8;

impl<'a> InverseTable<'a> {
    /// Solves for the 65,536 weights of the table.
    pub fn new(sel: &'a Sel, point: Point) -> Self {
        let solve = |upper: u32| {
            let target = f64::from(f32::from_bits(upper << 16));
            sel.invert_point(&point, target).unwrap_or(f64::NAN)
        };
        InverseTable { sel, point, starts: (0..1u32 << 16).into_par_iter().map(solve).collect() }
    }

    /// The raw weight whose effective weight is `target`, to a few units in the last place of f64; None when there is
    /// none, or `target` is not finite.
    pub fn invert(&self, target: f64) -> Option<f64> {
        let upper = (target as f32).to_bits() >> 16;
        self.newton(self.starts[upper as usize], target).or_else(|| self.sel.invert_point(&self.point, target))
    }

    fn newton(&self, start: f64, target: f64) -> Option<f64> {
        let mut w = start;
        for _ in 0..STEPS {
            let step = (self.sel.value(&self.point, w) - target) / self.sel.slope(&self.point, w);
            let next = w - step;
            // The function may jump or bend at 0: there, bisection.
            if !next.is_finite() || next * start <= 0.0 {
                return None;
            }
            w = next;
            if step.abs() <= 4.0 * f64::EPSILON * w.abs() {
                return Some(w);
            }
        }
        None
    }

    /// The raw weight whose weight is nearest to `target`, which has no preimage.
    pub fn nearest(&self, target: f64) -> f64 {
        self.sel.nearest(&self.point, target)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;
    use crate::random::Key;

    fn points() -> [Point; 2] {
        [Point { e: 0.15, l: 0.08, m: 1.1, s: 0.0, n: 0.2 }, Point { e: 0.1, l: 0.4, m: 0.9, s: 0.0, n: 0.0 }]
    }

    #[test]
    fn slopes_are_central_differences() {
        for mode in Mode::ALL {
            for (normalize, absorb) in [(false, false), (true, false), (false, true)] {
                let sel = Sel { normalize_by_inner_mult: normalize, absorb_beta: absorb, ..Sel::new(7.5) };
                let sel = sel.with_mode(mode);
                for point in points().into_iter().chain([Point { m: -1.2, s: 0.1, ..points()[0] }]) {
                    for w in [-0.3, -0.02, 1e-3, 0.2] {
                        let h = 1e-6 * f64::abs(w);
                        let difference = (sel.value(&point, w + h) - sel.value(&point, w - h)) / (2.0 * h);
                        let slope = sel.slope(&point, w);
                        let scale = 1.0 + slope.abs();
                        assert!((difference - slope).abs() < 1e-7 * scale, "{mode} {w}: {difference} and {slope}");
                    }
                }
            }
        }
    }

    /// Over 60 decades, both signs, ends of the range, and where there is no preimage: the slow inverse's answers.
    #[test]
    fn the_table_agrees_with_bisection() {
        let exponents = Key::new(5).uniform::<f64>(&[300], -40.0, 1.0);
        for mode in Mode::ALL {
            let sel = Sel::new(7.5).with_mode(mode);
            for point in points() {
                let table = InverseTable::new(&sel, point);
                let drawn =
                    exponents.iter().enumerate().map(|(i, e)| 10f64.powf(*e) * if i % 2 == 0 { 1.0 } else { -1.0 });
                for target in drawn.chain([0.0, -0.0, 1e300, f64::from(f32::MIN_POSITIVE) / 3.0]) {
                    let (fast, slow) = (table.invert(target), sel.invert_point(&point, target));
                    let Some(fast) = fast else {
                        assert!(slow.is_none(), "{mode} {target:e}");
                        continue;
                    };
                    let back = sel.value(&point, fast);
                    assert!(
                        (back - target).abs() <= 1e-14 * target.abs(),
                        "{mode} {target:e}: {fast:e} gives {back:e}"
                    );
                }
                assert_eq!(table.invert(f64::NAN), None);
                assert_eq!(table.invert(f64::INFINITY), None);
            }
        }
    }
}
