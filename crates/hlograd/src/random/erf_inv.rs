//! The inverse error function, by which normals are made from uniforms.

// Digits as printed there.
#![allow(clippy::excessive_precision)]

/// Coefficients of Giles's single-precision approximation (M. Giles, "Approximating the erfinv function", GPU Computing
/// Gems 2, 2011, Table 5), highest power first: |x| small, and the tails.
const CENTRAL: [f32; 9] = [
    2.810_226_4e-8,
    3.432_739_4e-7,
    -3.523_387_6e-6,
    -4.391_506_6e-6,
    0.000_218_580_87,
    -0.001_253_725_03,
    -0.004_177_681_64,
    0.246_640_727,
    1.501_409_41,
];
const TAIL: [f32; 9] = [
    -0.000_200_214_257,
    0.000_100_950_558,
    0.001_349_343_22,
    -0.003_673_428_44,
    0.005_739_507_73,
    -0.007_622_461_3,
    0.009_438_870_47,
    1.001_674_06,
    2.832_976_82,
];

/// -ln(1 - x^2) of the rounded square.
fn exponent(x: f32) -> f32 {
    -((1.0 - f64::from(x * x)).ln() as f32)
}

/// erf_inv(x) by its polynomial in w = [`exponent`] of x, as XLA computes it: with fused steps. (They go through f64,
/// which is vector code; its second rounding shows in about one of 10^8.)
fn polynomial(x: f32, w: f32) -> f32 {
    let step = |p: f32, w: f32, c: f32| (f64::from(p) * f64::from(w) + f64::from(c)) as f32;
    let tail = w >= 5.0;
    let w = if tail { w.sqrt() - 3.0 } else { w - 2.5 };
    let c = |i: usize| if tail { TAIL[i] } else { CENTRAL[i] };
    let p = (1..CENTRAL.len()).fold(c(0), |p, i| step(p, w, c(i)));
    x * if x.abs() == 1.0 { f32::INFINITY } else { p }
}

/// f32, in place.
pub(super) fn erf_inv_f32(x: &mut [f32]) {
    // The logarithm is a call; in a loop of its own it does not keep the rest from becoming vector code.
    const AT_ONCE: usize = 1024;
    let mut w = [0f32; AT_ONCE];
    for x in x.chunks_mut(AT_ONCE) {
        w.iter_mut().zip(x.iter()).for_each(|(w, x)| *w = exponent(*x));
        x.iter_mut().zip(w).for_each(|(x, w)| *x = polynomial(*x, w));
    }
}

/// f64: the f32 value refined by Halley steps on erf, to a few units in the last place.
pub(super) fn erf_inv_f64(x: f64) -> f64 {
    if x.abs() == 1.0 {
        return x * f64::INFINITY;
    }
    // Near 1 the f32 start is infinite; the tail expansion starts there instead.
    let mut y = f64::from(polynomial(x as f32, exponent(x as f32)));
    if !y.is_finite() {
        y = (-(-x.abs()).ln_1p()).sqrt().copysign(x);
    }
    for _ in 0..4 {
        // erf(y) - x, by erfc in the tails where erf has no digits left.
        let excess = if y > 1.0 {
            (1.0 - x) - libm::erfc(y)
        } else if y < -1.0 {
            libm::erfc(-y) - (1.0 + x)
        } else {
            libm::erf(y) - x
        };
        let newton = excess / (std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp());
        let step = newton / (1.0 + y * newton);
        y -= step;
        if step.abs() <= 1e-16 * y.abs() {
            break;
        }
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of SciPy 1.17, out to the last number before 1; f32 within 4 units in the last place of them.
    #[test]
    fn known_values() {
        let near_one = |bits: i32| 1.0 - (-f64::from(bits)).exp2();
        for (x, want) in [
            (1e-300, 8.86226925452758e-301),
            (1e-10, 8.862269254527581e-11),
            (0.3, 0.2724627147267544),
            (-0.97, -1.5344856217777176),
            (near_one(24), 3.8325068569007104),
            (near_one(26), 4.004131885114475),
            (near_one(40), 5.05125408524939),
            (-near_one(53), -5.8635847487551676),
        ] {
            let got = erf_inv_f64(x);
            assert!((got - want).abs() <= 4e-16 * want.abs(), "erf_inv({x}) = {got}, not {want}");
            // As f32 the input itself moves; only those that are f32 numbers can be compared.
            if f64::from(x as f32) == x {
                let mut single = [x as f32];
                erf_inv_f32(&mut single);
                assert!((f64::from(single[0]) - want).abs() <= 5e-7 * want.abs(), "{} for {want}", single[0]);
            }
        }
        let mut ends = [1.0, -1.0, 0.0, f32::NAN];
        erf_inv_f32(&mut ends);
        assert!(ends[..3] == [f32::INFINITY, f32::NEG_INFINITY, 0.0] && ends[3].is_nan());
        assert_eq!((erf_inv_f64(1.0), erf_inv_f64(-1.0)), (f64::INFINITY, f64::NEG_INFINITY));
    }
}
