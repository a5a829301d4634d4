//! Sine and cosine in ordinary operations, for CPU.
//!
//! XLA's CPU backend calls the scalar `sinf` of libm, one element at a time: a third of a SIREN step. This transform
//! replaces every f32 sine and cosine by a Cody-Waite reduction, x = q pi/2 + r with |r| <= pi/4, and a pair of
//! polynomials in r, which the compiler vectorises. The sine and the cosine of one tensor share the reduction.
//!
//! **Accuracy** (tested against f64): absolute error below 1.3e-7 for |x| <= 100 and below 2e-7 for |x| <= 1e4. Beyond,
//! the reduction loses accuracy as q loses bits; results stay within [-1.0001, 1.0001]. NaN and infinities give NaN. On
//! GPU XLA's own sine is good: do not apply this there.

use std::collections::HashMap;

use super::rewrite;
use crate::array::DType;
use crate::graph::{Op, Tensor, Unary};

/// pi/2 in three parts, the first two short enough that their products with q < 2^13 are exact.
const HALF_PI: [f64; 3] = [1.5703125, 4.837_512_969_970_703e-4, 7.549_789_948_768_648e-8];

/// sin(r) = r + r^3 S(r^2) on |r| <= pi/4: Chebyshev fit, relative error 1.4e-8. Highest power first.
const SIN: [f64; 3] = [-1.958_794_987_204_379e-4, 8.332_748_634_609_777e-3, -1.666_666_466_512_298e-1];
/// cos(r) = 1 - r^2/2 + r^4 C(r^2) on |r| <= pi/4: Chebyshev fit, error 8e-10. Highest power first.
const COS: [f64; 3] = [2.454_799_131_428_893e-5, -1.388_830_333_962_973e-3, 4.166_664_661_845_695e-2];

/// The graph with f32 sines and cosines replaced, also inside loops and branches.
pub fn fast_sine(outputs: &[Tensor]) -> Vec<Tensor> {
    let mut reduced: HashMap<(u64, usize), Reduced> = HashMap::new();
    rewrite(outputs, &mut |node, operands| match node.op {
        Op::Unary(op @ (Unary::Sin | Unary::Cos)) if node.shapes[0].dtype == DType::F32 => {
            let x = &operands[0];
            let r = reduced.entry(x.key()).or_insert_with(|| Reduced::new(x));
            Some(vec![r.quadrant(op == Unary::Cos)])
        }
        _ => None,
    })
}

/// Both polynomials at the reduced argument.
struct Reduced {
    q: Tensor,
    sin: Tensor,
    cos: Tensor,
}

impl Reduced {
    fn new(x: &Tensor) -> Self {
        let n = (x * std::f64::consts::FRAC_2_PI).round();
        let r = ((x - &n * HALF_PI[0]) - &n * HALF_PI[1]) - &n * HALF_PI[2];
        let z = r.square();
        let horner = |c: &[f64]| c[1..].iter().fold(z.full_like(c[0]), |p, &c| p * &z + c);
        let sin = &r + &r * (&z * horner(&SIN));
        let cos = (1.0 - &z * 0.5) + z.square() * horner(&COS);
        Reduced { q: n.convert(DType::I32), sin, cos }
    }

    /// sin(x), or cos(x) = sin(x + pi/2): the polynomial by the quadrant's parity, the sign by its second bit.
    fn quadrant(&self, cosine: bool) -> Tensor {
        let one = Tensor::scalar(1i32);
        let q = if cosine { &self.q + &one } else { self.q.clone() };
        let odd = q.bitwise_and(&one).ne(&Tensor::scalar(0i32));
        let value = odd.select(&self.cos, &self.sin);
        let sign = q.bitwise_and(&Tensor::scalar(2i32)).shift_left(&Tensor::scalar(30i32));
        value.bitcast_convert(DType::I32).bitwise_xor(&sign).bitcast_convert(DType::F32)
    }
}
