//! Sine and cosine in ordinary operations, for CPU.
//!
//! XLA's CPU backend calls the scalar sine of libm, one element at a time: a third of a SIREN step in f32, a quarter of a
//! Jacobian in f64. This transform replaces every f32 and f64 sine and cosine by a Cody-Waite reduction, x = q pi/2 + r
//! with |r| <= pi/4, and a pair of polynomials in r, which the compiler vectorises. The sine and the cosine of one tensor
//! share the reduction.
//!
//! **Accuracy** (tested against libm): absolute error below 1.3e-7 for |x| <= 100 and below 2e-7 for |x| <= 1e4 in f32;
//! below 4e-16 for |x| <= 1e4 in f64. Beyond, the reduction loses accuracy as q loses bits, until results mean nothing
//! (they are held within [-1.0001, 1.0001]). NaN and infinities give NaN. On GPU XLA's own sine is good: do not apply this
//! there.

#![allow(clippy::excessive_precision)] // digits as the fits gave them

use std::collections::HashMap;

use crate::array::DType;
use crate::graph::{Op, Tensor, Unary, rewrite};

/// What the approximation needs for one element type. Polynomials have the highest power first; they are Chebyshev fits
/// on |r| <= pi/4.
struct Constants {
    /// pi/2 in three parts, the first two short enough that their products with |q| <= 6400 are exact.
    half_pi: [f64; 3],
    /// S in sin(r) = r + r^3 S(r^2).
    sin: &'static [f64],
    /// C in cos(r) = 1 - r^2/2 + r^4 C(r^2).
    cos: &'static [f64],
}

/// Relative error of the sine 1.4e-8, error of the cosine 8e-10.
const SINGLE: Constants = Constants {
    half_pi: [1.5703125, 4.837_512_969_970_703e-4, 7.549_789_948_768_648e-8],
    sin: &[-1.958_794_987_204_379e-4, 8.332_748_634_609_777e-3, -1.666_666_466_512_298e-1],
    cos: &[2.454_799_131_428_893e-5, -1.388_830_333_962_973e-3, 4.166_664_661_845_695e-2],
};

/// Relative error of the sine 2.3e-17, error of the cosine 1e-17.
const DOUBLE: Constants = Constants {
    half_pi: [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21],
    sin: &[
        1.59158322784289563e-10,
        -2.50511012792323615e-8,
        2.7557315967585379e-6,
        -1.98412698365400554e-4,
        8.33333333333085083e-3,
        -1.66666666666666657e-1,
    ],
    cos: &[
        -1.13903820068342015e-11,
        2.08762550963426769e-9,
        -2.75573178136067914e-7,
        2.48015872999167019e-5,
        -1.38888888888883582e-3,
        4.16666666666666505e-2,
    ],
};

/// The graph with f32 and f64 sines and cosines replaced, also inside loops and branches.
pub fn fast_sine(outputs: &[Tensor]) -> Vec<Tensor> {
    let mut reduced: HashMap<(u64, usize), Reduced> = HashMap::new();
    rewrite(outputs, &mut |node, operands| {
        let Op::Unary(op @ (Unary::Sin | Unary::Cos)) = node.op else { return None };
        let constants = match node.shapes[0].dtype {
            DType::F32 => &SINGLE,
            DType::F64 => &DOUBLE,
            _ => return None,
        };
        let x = &operands[0];
        let r = reduced.entry(x.key()).or_insert_with(|| Reduced::new(x, constants));
        Some(vec![r.quadrant(op == Unary::Cos)])
    })
}

/// Both polynomials at the reduced argument.
struct Reduced {
    q: Tensor,
    sin: Tensor,
    cos: Tensor,
}

impl Reduced {
    fn new(x: &Tensor, c: &Constants) -> Self {
        let n = (x * std::f64::consts::FRAC_2_PI).round();
        let r = ((x - &n * c.half_pi[0]) - &n * c.half_pi[1]) - &n * c.half_pi[2];
        // Far out the reduction fails; without this the polynomials would run away there.
        let r = r.clamp(&Tensor::full(x.dtype(), &[], -0.8), &Tensor::full(x.dtype(), &[], 0.8));
        let z = r.square();
        let horner = |c: &[f64]| c[1..].iter().fold(z.full_like(c[0]), |p, &c| p * &z + c);
        let sin = &r + &r * (&z * horner(c.sin));
        let cos = (1.0 - &z * 0.5) + z.square() * horner(c.cos);
        Reduced { q: n.convert(DType::I32), sin, cos }
    }

    /// sin(x), or cos(x) = sin(x + pi/2): the polynomial by the quadrant's parity, the sign by its second bit.
    fn quadrant(&self, cosine: bool) -> Tensor {
        let (zero, one) = (Tensor::scalar(0i32), Tensor::scalar(1i32));
        let q = if cosine { &self.q + &one } else { self.q.clone() };
        let value = q.bitwise_and(&one).ne(&zero).select(&self.cos, &self.sin);
        q.bitwise_and(&Tensor::scalar(2i32)).ne(&zero).select(&-&value, &value)
    }
}
