//! From weights to raw weights: the Newton start of training, and the inverse of any mode under any scales.

use ndarray::ArrayD;
use rayon::prelude::*;

use super::{Mode, Sel};
use crate::error::{Error, Result};

/// Newton iterations of the start (2607.09967, Appendix A); f64 converges in 4 to 6.
pub const ITERATIONS: usize = 10;

/// Raw weights x with f(x) = sgn(x) (exp(beta |x|) - 1) / beta + x / beta = `target` (Eq. 13-15), in f64.
///
/// **Errors** when the worst residual is above 1e-6 of the largest target, or a target is not finite.
pub fn newton(target: &ArrayD<f64>, beta: f64) -> Result<ArrayD<f64>> {
    let solve = |y: f64| (0..ITERATIONS).fold(y, |x, _| newton_step(x, y, beta));
    let flat: Vec<f64> = target.iter().copied().collect();
    let solved: Vec<f64> = flat.into_par_iter().map(solve).collect();
    let raw = ArrayD::from_shape_vec(target.raw_dim(), solved).map_err(|e| Error::numeric("initial weights", e))?;
    let largest = target.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    let worst = raw.iter().zip(target).map(|(&x, &y)| (congruent(x, beta) - y).abs()).fold(0.0, nan_max);
    if worst <= 1e-6 * largest || worst == 0.0 {
        return Ok(raw);
    }
    let reason = format!(
        "Newton's iterations leave a residual of {worst:.1e} for targets up to {largest:.1e} at beta {beta}: choose a smaller beta"
    );
    Err(Error::numeric("initial weights", reason))
}

/// The larger one; NaN wins.
fn nan_max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// f of Eq. 13 with e_w = l_w = 1 / beta.
fn congruent(x: f64, beta: f64) -> f64 {
    ((beta * x.abs()).exp_m1().copysign(x) + x) / beta
}

/// One step of Eq. 15.
fn newton_step(x: f64, target: f64, beta: f64) -> f64 {
    x - (congruent(x, beta) - target) / ((beta * x.abs()).exp() + 1.0 / beta)
}

/// The scales at one element of a weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// e_w.
    pub e: f64,
    /// l_w.
    pub l: f64,
    /// m; with `absorb_beta`, beta m.
    pub m: f64,
    /// s.
    pub s: f64,
    /// n.
    pub n: f64,
}

/// Raw weights for given weights.
#[derive(Clone, Debug)]
pub struct Inverse {
    /// Raw weights; where there is no preimage, that of the nearest weight that has one.
    pub raw: ArrayD<f64>,
    /// Positions, in row-major order, of the weights that no raw weight gives.
    pub missing: Vec<usize>,
}

impl Sel {
    /// The scales at the start of training.
    pub fn initial_point(&self) -> Point {
        let start = |offset: Option<super::Offset>| offset.map_or(0.0, |o| o.initial);
        let outer = self.outer_initial();
        Point { e: outer, l: outer, m: self.inner_initial(), s: start(self.shift), n: start(self.offset) }
    }

    /// The effective weight at raw weight `w` under the scales of one element, without the residual: what
    /// [`Sel::effective`] computes, on numbers.
    pub fn value(&self, point: &Point, w: f64) -> f64 {
        let Point { e, l, m, s, n } = *point;
        let sign = if w > 0.0 || (w == 0.0 && self.positive_at_zero) { 1.0 } else { -f64::from(w < 0.0) };
        if self.mode == Mode::Damped {
            let a = w.abs();
            let exponential = sign * (self.beta * a).exp_m1() * (-n).exp() / (self.beta * a.exp());
            return exponential - w * (-n * a.exp()).exp_m1();
        }
        let z = if self.absorb_beta { w * m } else { self.beta * w * m };
        let a = z.abs() + s;
        let amplitude = if s == 0.0 { a.exp_m1() * (-n).exp() } else { (a - n).exp() - (-n).exp() };
        let (exponential, linear) = (e * amplitude, w * l);
        let sum = match self.mode {
            Mode::Congruent => sign * exponential + linear,
            Mode::Mismatch => sign * (exponential + linear),
            Mode::Oppose => sign * exponential - linear,
            Mode::Sinh => e * z.sinh() + linear,
            Mode::SinhOnly => e * z.sinh(),
            Mode::ExpOnly | Mode::Damped => sign * exponential,
        };
        let sum = if self.normalize_by_inner_mult { sum / m } else { sum };
        sum * self.front()
    }

    /// The slope of [`Sel::value`] in `w`; at 0, where it may jump, that of the side that sgn(0) belongs to.
    pub fn slope(&self, point: &Point, w: f64) -> f64 {
        let Point { e, l, m, s, n } = *point;
        let sign = if w > 0.0 || (w == 0.0 && self.positive_at_zero) { 1.0 } else { -f64::from(w < 0.0) };
        if self.mode == Mode::Damped {
            let a = w.abs();
            let exponential = ((self.beta - 1.0) * (self.beta * a).exp() + 1.0) * (-n - a).exp() / self.beta;
            let grown = n * a.exp();
            return exponential - (-grown).exp_m1() + a * grown * (-grown).exp();
        }
        let rate = if self.absorb_beta { m } else { self.beta * m };
        let z = rate * w;
        // The sign of w times the slope of E, whose |z| turns with the sign of z.
        let exponential = e * (z.abs() + s - n).exp() * rate.abs();
        let sum = match self.mode {
            Mode::Congruent => exponential + l,
            Mode::Mismatch => exponential + sign * l,
            Mode::Oppose => exponential - l,
            Mode::Sinh => e * z.cosh() * rate + l,
            Mode::SinhOnly => e * z.cosh() * rate,
            Mode::ExpOnly | Mode::Damped => exponential,
        };
        let sum = if self.normalize_by_inner_mult { sum / m } else { sum };
        sum * self.front()
    }

    /// The raw weight that `target` is the effective weight of under these scales; None when there is none.
    ///
    /// Of several (a mode need not be monotone near 0) it is one on the side of the target's sign, else one on the
    /// other side. The answer is exact to a few units in the last place of f64.
    pub fn invert_point(&self, point: &Point, target: f64) -> Option<f64> {
        if !target.is_finite() {
            return None;
        }
        let side = if target < 0.0 { -1.0 } else { 1.0 };
        self.on_side(point, target, side).or_else(|| self.on_side(point, target, -side))
    }

    /// A root of value(w) - target for w from 0 to the side of `side`: the first change of sign on a geometric grid,
    /// then bisection.
    fn on_side(&self, point: &Point, target: f64, side: f64) -> Option<f64> {
        let f = |x: f64| self.value(point, side * x) - target;
        // The limit from this side: with a shift the function jumps at 0.
        let start = f(f64::MIN_POSITIVE);
        if start == 0.0 || f(0.0) == 0.0 {
            return Some(0.0);
        }
        // Positive until the root.
        let left = |x: f64| f(x) * start.signum();
        let mut low = (0.0, start.abs());
        let mut before = low;
        let mut high = 1e-9f64;
        loop {
            let at_high = left(high);
            if !at_high.is_finite() || high > 1e6 {
                return None;
            }
            if at_high <= 0.0 {
                break;
            }
            // Where the function turns round, both of its roots may lie between two points of the grid.
            if low.1 < at_high
                && low.1 <= before.1
                && let Some(x) = dip(left, before.0, high)
            {
                (low.0, high) = (before.0, x);
                break;
            }
            (before, low) = (low, (high, at_high));
            high *= 1.25;
        }
        let mut low = low.0;
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if left(middle) > 0.0 { low = middle } else { high = middle }
        }
        let nearer = if f(low).abs() <= f(high).abs() { low } else { high };
        Some(side * nearer)
    }

    /// Raw weights for `target`, element by element, under the scales of each element (`points` in row-major order, one
    /// for all or one each). The residual Delta is not looked at: subtract it from the target first.
    ///
    /// **Errors** when the number of points is neither 1 nor that of the elements, or a target is not finite.
    pub fn invert(&self, target: &ArrayD<f64>, points: &[Point]) -> Result<Inverse> {
        let count = target.len();
        if points.len() != 1 && points.len() != count {
            let reason = format!("{} points for {count} weights", points.len());
            return Err(Error::numeric("inversion", reason));
        }
        let flat: Vec<f64> = target.iter().copied().collect();
        if let Some(i) = flat.iter().position(|y| !y.is_finite()) {
            return Err(Error::numeric("inversion", format!("weight {i} is {}", flat[i])));
        }
        let at = |i: usize| &points[if points.len() == 1 { 0 } else { i }];
        let found: Vec<Option<f64>> = flat.par_iter().enumerate().map(|(i, &y)| self.invert_point(at(i), y)).collect();
        let missing: Vec<usize> = (0..count).filter(|&i| found[i].is_none()).collect();
        let raw: Vec<f64> =
            found.iter().enumerate().map(|(i, x)| x.unwrap_or_else(|| self.nearest(at(i), flat[i]))).collect();
        let raw = ArrayD::from_shape_vec(target.raw_dim(), raw);
        let raw = raw.map_err(|e| Error::numeric("inversion", e))?;
        Ok(Inverse { raw, missing })
    }

    /// The raw weight on a geometric grid whose weight is nearest to `target`.
    pub(super) fn nearest(&self, point: &Point, target: f64) -> f64 {
        let steps = (0..160).map(|i| 1e-9 * 1.25f64.powi(i));
        let candidates = std::iter::once(0.0).chain(steps.flat_map(|x| [x, -x]));
        let distance = |x: &f64| (self.value(point, *x) - target).abs();
        let finite = candidates.filter(|x| distance(x).is_finite());
        finite.min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0.0)
    }
}

/// A point between `low` and `high` where `f`, which falls and then rises, is not positive.
fn dip(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> Option<f64> {
    for _ in 0..120 {
        let third = (high - low) / 3.0;
        let (a, b) = (low + third, high - third);
        let (at_a, at_b) = (f(a), f(b));
        if at_a <= 0.0 {
            return Some(a);
        }
        if at_b <= 0.0 {
            return Some(b);
        }
        if at_a < at_b { high = b } else { low = a }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{Offset, Pattern, Scale};
    use super::*;
    use crate::optim::Anneal;
    use crate::random::Key;

    fn shifted(sel: Sel, s: f64) -> Sel {
        let scale = Scale { pattern: Pattern::Global, multiplier: Anneal::ONE, decay: false };
        Sel { shift: Some(Offset { scale, initial: s }), ..sel }
    }

    /// Every mode, scales off their start: value(invert(y)) = y.
    #[test]
    fn every_mode_inverts() {
        let draws = Key::new(3).uniform::<f64>(&[400], -0.4, 0.4);
        for mode in Mode::ALL {
            let sel = Sel::new(7.5).with_mode(mode);
            let point = Point { e: 0.15, l: 0.08, m: 1.1, s: 0.0, n: 0.2 };
            let inverse = sel.invert(&draws, &[point]).expect("valid");
            assert!(inverse.missing.is_empty(), "{mode}: {:?}", inverse.missing);
            for (x, y) in inverse.raw.iter().zip(&draws) {
                let back = sel.value(&point, *x);
                assert!((back - y).abs() <= 1e-14 * y.abs().max(1e-3), "{mode}: {y} -> {x} -> {back}");
            }
        }
    }

    /// A shift makes a gap around 0: what lies in it has no preimage, and is named; what lies outside has one.
    #[test]
    fn a_gap_is_named() {
        let sel = shifted(Sel::new(7.5).with_mode(Mode::Congruent), 0.5);
        let point = sel.initial_point();
        let gap = point.e * (0.5f64.exp() - 1.0);
        let target = ArrayD::from_shape_vec(vec![4], vec![0.5 * gap, 2.0 * gap, -0.5 * gap, -2.0 * gap]).expect("four");
        let inverse = sel.invert(&target, &[point]).expect("valid");
        assert_eq!(inverse.missing, [0, 2]);
        assert!((sel.value(&point, inverse.raw[1]) - 2.0 * gap).abs() < 1e-12);
    }

    /// With a steep linear pathway a mismatch weight rises before it falls: both roots lie close to the top.
    #[test]
    fn a_weight_near_a_turn_is_found() {
        let sel = Sel::new(7.5);
        let point = Point { e: 0.1, l: 1.0, m: 1.0, s: 0.0, n: 0.0 };
        // The slope of w l - e expm1(beta |w|) is 0 there.
        let top = (1.0f64 / 0.75).ln() / 7.5;
        for share in [0.5, 0.9, 0.99, 1.0 - 1e-9] {
            let target = sel.value(&point, -top * share);
            let found = sel.invert_point(&point, target).expect("a preimage");
            assert!((sel.value(&point, found) - target).abs() <= 1e-16, "{share}");
        }
        assert!(sel.on_side(&point, 1.001 * sel.value(&point, -top), -1.0).is_none());
    }

    #[test]
    fn newton_refuses_what_it_cannot_solve() {
        let far = ArrayD::from_elem(vec![2], 30.0);
        let error = newton(&far, 20.0).expect_err("far outside");
        assert!(error.to_string().contains("smaller beta"), "{error}");
        assert!(newton(&ArrayD::from_elem(vec![1], f64::NAN), 7.5).is_err());
    }
}
