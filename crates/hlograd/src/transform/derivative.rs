//! Local derivatives of the elementwise operations, shared by the forward and the reverse rules.
//!
//! Where a derivative is a choice, it is JAX's: |x| has +1 at 0, a tie of `max` or `min` gives half to each side,
//! `pow` has 0 where the formula would be 0 * infinity, and the piecewise constant functions have none.

use crate::graph::{Binary, Tensor, Unary};

/// What a tangent or cotangent is multiplied by.
pub(super) enum Factor {
    /// 1.
    One,
    /// -1.
    MinusOne,
    /// An elementwise factor.
    By(Tensor),
}

impl Factor {
    /// The factor applied to `t`.
    pub(super) fn times(&self, t: &Tensor) -> Tensor {
        match self {
            Factor::One => t.clone(),
            Factor::MinusOne => -t,
            Factor::By(f) => t * f,
        }
    }
}

/// d op(x) / dx, given x and y = op(x); None where it is zero everywhere.
pub(super) fn unary(op: Unary, x: &Tensor, y: &Tensor) -> Option<Factor> {
    use Unary::*;
    if !x.dtype().is_float() {
        return None;
    }
    let by = match op {
        Neg => return Some(Factor::MinusOne),
        Sign | Floor | Ceil | RoundNearestEven | IsFinite | Not | PopulationCount => return None,
        Abs => x.eq(&x.zeros_like()).select(&x.ones_like(), &x.sign()),
        Exp => y.clone(),
        Expm1 => y + 1.0,
        Log => x.reciprocal(),
        Log1p => (x + 1.0).reciprocal(),
        Sin => x.cos(),
        Cos => -x.sin(),
        Tan => y.square() + 1.0,
        Tanh => 1.0 - y.square(),
        Erf => std::f64::consts::FRAC_2_SQRT_PI * (-x.square()).exp(),
        Sqrt => 0.5 / y,
        Rsqrt => -0.5 * (y / x),
        Cbrt => y / (3.0 * x),
        Logistic => y * (1.0 - y),
    };
    Some(Factor::By(by))
}

/// Derivatives of op(a, b) by a and by b; None where zero everywhere.
pub(super) fn binary(op: Binary, a: &Tensor, b: &Tensor, y: &Tensor) -> (Option<Factor>, Option<Factor>) {
    use Binary::*;
    if !a.dtype().is_float() {
        return (None, None);
    }
    let by = |t: Tensor| Some(Factor::By(t));
    match op {
        Add => (Some(Factor::One), Some(Factor::One)),
        Sub => (Some(Factor::One), Some(Factor::MinusOne)),
        Mul => (by(b.clone()), by(a.clone())),
        Div => (by(b.reciprocal()), by(-(y / b))),
        Max => (by(tie(&a.gt(b), &a.eq(b), a)), by(tie(&b.gt(a), &a.eq(b), a))),
        Min => (by(tie(&a.lt(b), &a.eq(b), a)), by(tie(&b.lt(a), &a.eq(b), a))),
        Pow => {
            let (zero, one) = (a.zeros_like(), a.ones_like());
            let flat = b.eq(&zero);
            let lower = a.pow(&flat.select(&one, &(b - 1.0)));
            let log = a.eq(&zero).select(&one, a).log();
            (by(flat.select(&zero, &(b * lower))), by(log * y))
        }
        Rem => {
            let q = a / b;
            (Some(Factor::One), by(-(q.sign() * q.abs().floor())))
        }
        Atan2 => {
            let r2 = a.square() + b.square();
            (by(b / &r2), by(-(a / &r2)))
        }
        And | Or | Xor | ShiftLeft | ShiftRightLogical | ShiftRightArithmetic => (None, None),
    }
}

/// 1 where `wins`, one half where `ties`, else 0.
fn tie(wins: &Tensor, ties: &Tensor, like: &Tensor) -> Tensor {
    wins.select(&like.ones_like(), &ties.select(&like.full_like(0.5), &like.zeros_like()))
}

/// 1 strictly inside the interval of a clamp, as a factor for the clamped operand.
pub(super) fn clamp(min: &Tensor, x: &Tensor, max: &Tensor) -> Tensor {
    x.gt(min).bitwise_and(&x.lt(max)).convert(x.dtype())
}

/// Which operand of a clamp the result comes from: below `min`, above `max` (the ends themselves count as outside).
pub(super) fn clamp_ends(min: &Tensor, x: &Tensor, max: &Tensor) -> (Tensor, Tensor) {
    let below = x.le(min).bitwise_and(&min.lt(max));
    let above = x.ge(max).bitwise_or(&min.ge(max));
    (below.convert(x.dtype()), above.convert(x.dtype()))
}
