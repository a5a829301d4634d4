//! Elementwise builders and the operators `+ - * / % -x`, with NumPy broadcasting between tensors.
//!
//! A plain number on either side (`x * 2.0`) takes the tensor's dtype. Two tensors of different dtypes do not mix:
//! convert one of them. Shapes that do not fit panic with both shapes and the caller's line.

use super::super::op::{Binary, Direction, Op, Unary};
use super::super::tensor::Tensor;
use super::structure::common_shape;
use crate::array::DType;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                Tensor::apply1(Op::Unary(Unary::$op), vec![self.clone()])
            }
        )*}
    };
}

unary! {
    /// |x|. Derivative sign(x), taken as +1 at 0 and -0 (as JAX does) and NaN at NaN.
    abs => Abs;
    /// -1, 0 or 1; NaN at NaN. Derivative 0.
    sign => Sign;
    /// e^x.
    exp => Exp;
    /// e^x - 1 without cancellation near 0.
    expm1 => Expm1;
    /// Natural logarithm.
    log => Log;
    /// ln(1 + x) without cancellation near 0.
    log1p => Log1p;
    /// Sine of radians. See [`crate::transform::fast_sine`] for the faster form on CPU.
    sin => Sin;
    /// Cosine of radians. See [`crate::transform::fast_sine`].
    cos => Cos;
    /// Tangent of radians.
    tan => Tan;
    /// Hyperbolic tangent.
    tanh => Tanh;
    /// Gauss's error function.
    erf => Erf;
    /// Square root; the derivative at 0 is infinite (see [`Tensor::norm`] for the safe norm).
    sqrt => Sqrt;
    /// 1 / sqrt(x).
    rsqrt => Rsqrt;
    /// Cube root.
    cbrt => Cbrt;
    /// 1 / (1 + e^-x), without overflow on either side.
    logistic => Logistic;
    /// Largest integer not above. Derivative 0.
    floor => Floor;
    /// Smallest integer not below. Derivative 0.
    ceil => Ceil;
    /// Nearest integer, halves to even. Derivative 0.
    round => RoundNearestEven;
    /// Whether neither infinite nor NaN, to `bool`.
    is_finite => IsFinite;
    /// Bitwise or logical not.
    logical_not => Not;
    /// Number of set bits of an integer.
    population_count => PopulationCount;
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:expr;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, other: &Tensor) -> Tensor {
                let (a, b) = broadcast_pair(self, other, $op.name());
                Tensor::apply1($op, vec![a, b])
            }
        )*}
    };
}

binary! {
    /// Larger of the two; NaN wins. At a tie each side gets half of the derivative.
    maximum => Op::Binary(Binary::Max);
    /// Smaller of the two; NaN wins. At a tie each side gets half of the derivative.
    minimum => Op::Binary(Binary::Min);
    /// self^other. The derivative by the base is 0 where the exponent is 0, by the exponent 0 where the base is 0.
    pow => Op::Binary(Binary::Pow);
    /// Angle of the point (other, self).
    atan2 => Op::Binary(Binary::Atan2);
    /// Bitwise or logical and.
    bitwise_and => Op::Binary(Binary::And);
    /// Bitwise or logical or.
    bitwise_or => Op::Binary(Binary::Or);
    /// Bitwise or logical exclusive or.
    bitwise_xor => Op::Binary(Binary::Xor);
    /// Bits moved up; shifts of the width or more give 0.
    shift_left => Op::Binary(Binary::ShiftLeft);
    /// Bits moved down, zeros from above.
    shift_right_logical => Op::Binary(Binary::ShiftRightLogical);
    /// Bits moved down, copies of the sign from above.
    shift_right_arithmetic => Op::Binary(Binary::ShiftRightArithmetic);
    /// self == other; false with NaN.
    eq => Op::Compare(Direction::Eq);
    /// self != other; true with NaN.
    ne => Op::Compare(Direction::Ne);
    /// self < other.
    lt => Op::Compare(Direction::Lt);
    /// self <= other.
    le => Op::Compare(Direction::Le);
    /// self > other.
    gt => Op::Compare(Direction::Gt);
    /// self >= other.
    ge => Op::Compare(Direction::Ge);
}

impl Tensor {
    /// `on_true` where this `bool` tensor holds, else `on_false`; all three broadcast.
    ///
    /// The side not taken gets derivative 0, but 0 * inf is NaN upstream of it: where that side's function is not
    /// finite, replace its input too (`jnp.where` twice), as [`Tensor::norm`] does.
    #[track_caller]
    pub fn select(&self, on_true: &Tensor, on_false: &Tensor) -> Tensor {
        let both = common_shape(on_true.dims(), on_false.dims());
        let Some(dims) = both.and_then(|dims| common_shape(self.dims(), &dims)) else {
            panic!("select({}, {}, {}): do not broadcast", self.shape(), on_true.shape(), on_false.shape());
        };
        Tensor::apply1(
            Op::Select,
            vec![self.broadcast_to(&dims), on_true.broadcast_to(&dims), on_false.broadcast_to(&dims)],
        )
    }

    /// `min` where below it, `max` where above, as `lax.clamp`. Derivative 1 strictly inside, 0 at and beyond the ends.
    #[track_caller]
    pub fn clamp(&self, min: &Tensor, max: &Tensor) -> Tensor {
        let (min, max) = (min.broadcast_to(self.dims()), max.broadcast_to(self.dims()));
        Tensor::apply1(Op::Clamp, vec![min, self.clone(), max])
    }

    /// Converted to another element type; floats to integers towards zero. Differentiable between floats.
    #[track_caller]
    pub fn convert(&self, dtype: DType) -> Tensor {
        if dtype == self.dtype() {
            return self.clone();
        }
        Tensor::apply1(Op::Convert(dtype), vec![self.clone()])
    }

    /// The same bits read as another element type of the same width. Not differentiable.
    #[track_caller]
    pub fn bitcast_convert(&self, dtype: DType) -> Tensor {
        Tensor::apply1(Op::BitcastConvert(dtype), vec![self.clone()])
    }

    /// The value, with derivative zero, as `lax.stop_gradient`.
    #[track_caller]
    pub fn stop_gradient(&self) -> Tensor {
        Tensor::apply1(Op::StopGradient, vec![self.clone()])
    }

    /// x * x.
    #[track_caller]
    pub fn square(&self) -> Tensor {
        self * self
    }

    /// 1 / x.
    #[track_caller]
    pub fn reciprocal(&self) -> Tensor {
        1.0 / self
    }

    /// x^n by repeated multiplication, as `lax.integer_pow`.
    #[track_caller]
    pub fn integer_pow(&self, n: i32) -> Tensor {
        let mut result: Option<Tensor> = None;
        let (mut square, mut bits) = (self.clone(), n.unsigned_abs());
        while bits > 0 {
            if bits & 1 == 1 {
                result = Some(result.map_or_else(|| square.clone(), |r| &r * &square));
            }
            bits >>= 1;
            if bits > 0 {
                square = square.square();
            }
        }
        let result = result.unwrap_or_else(|| self.ones_like());
        if n < 0 { result.reciprocal() } else { result }
    }

    /// max(x, 0), as `jax.nn.relu`. Derivative 0 at 0 (not the half that [`Tensor::maximum`] gives at a tie).
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        let zero = self.zeros_like();
        self.gt(&zero).select(self, &zero)
    }

    /// x logistic(x), as `jax.nn.silu`.
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        self * self.logistic()
    }

    /// The Gaussian error linear unit, as `jax.nn.gelu`: its tanh approximation, or x (1 + erf(x / sqrt 2)) / 2.
    #[track_caller]
    pub fn gelu(&self, approximate: bool) -> Tensor {
        if approximate {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (self + 0.044715 * self.integer_pow(3));
            self * (0.5 * (1.0 + inner.tanh()))
        } else {
            0.5 * self * (1.0 + (self * std::f64::consts::FRAC_1_SQRT_2).erf())
        }
    }
}

/// Both tensors broadcast to one shape. **Panics** with both shapes when they do not fit.
#[track_caller]
fn broadcast_pair(a: &Tensor, b: &Tensor, what: &str) -> (Tensor, Tensor) {
    assert!(a.dtype() == b.dtype(), "{what}({}, {}): element types differ; convert one of them", a.shape(), b.shape());
    let Some(dims) = common_shape(a.dims(), b.dims()) else {
        panic!("{what}({}, {}): do not broadcast", a.shape(), b.shape());
    };
    (a.broadcast_to(&dims), b.broadcast_to(&dims))
}

macro_rules! operator {
    ($($trait:ident, $method:ident, $op:expr;)*) => {$(
        impl std::ops::$trait<&Tensor> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                let (a, b) = broadcast_pair(self, other, $op.name());
                Tensor::apply1($op, vec![a, b])
            }
        }
        impl std::ops::$trait<Tensor> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                std::ops::$trait::$method(self, &other)
            }
        }
        impl std::ops::$trait<&Tensor> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                std::ops::$trait::$method(&self, other)
            }
        }
        impl std::ops::$trait<Tensor> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                std::ops::$trait::$method(&self, &other)
            }
        }
        impl std::ops::$trait<f64> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: f64) -> Tensor {
                std::ops::$trait::$method(self, self.full_like(other))
            }
        }
        impl std::ops::$trait<f64> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: f64) -> Tensor {
                std::ops::$trait::$method(&self, other)
            }
        }
        impl std::ops::$trait<&Tensor> for f64 {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                std::ops::$trait::$method(other.full_like(self), other)
            }
        }
        impl std::ops::$trait<Tensor> for f64 {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                std::ops::$trait::$method(self, &other)
            }
        }
    )*};
}

operator! {
    Add, add, Op::Binary(Binary::Add);
    Sub, sub, Op::Binary(Binary::Sub);
    Mul, mul, Op::Binary(Binary::Mul);
    Div, div, Op::Binary(Binary::Div);
    Rem, rem, Op::Binary(Binary::Rem);
}

impl std::ops::Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::apply1(Op::Unary(Unary::Neg), vec![self.clone()])
    }
}

impl std::ops::Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        -&self
    }
}
