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

/// f32, as XLA computes it: Giles's polynomial with fused steps.
pub(super) fn erf_inv_f32(x: f32) -> f32 {
    if x.abs() == 1.0 {
        return x * f32::INFINITY;
    }
    let w = -(-(x * x)).ln_1p();
    let (w, coefficients) = if w < 5.0 { (w - 2.5, &CENTRAL) } else { (w.sqrt() - 3.0, &TAIL) };
    let p = coefficients[1..].iter().fold(coefficients[0], |p, c| p.mul_add(w, *c));
    p * x
}

/// f64: the f32 value refined by Halley steps on erf, to a few units in the last place.
pub(super) fn erf_inv_f64(x: f64) -> f64 {
    if x.abs() == 1.0 {
        return x * f64::INFINITY;
    }
    // Near 1 the f32 start is infinite; the tail expansion starts there instead.
    let mut y = f64::from(erf_inv_f32(x as f32));
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
