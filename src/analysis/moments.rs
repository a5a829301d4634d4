//! Moments of a sampled field, which the uniform-phase initialisation matches (2609.30633, Eq. 11, 12 and 26).
//!
//! mu and Sigma are the mean and the sample covariance (divided by n - 1, as Appendix E's numbers are) of all samples.
//! With J_i the derivative of the field at sample i, by Sobel's operator, and Sigma_eps = Sigma + eps I,
//! Omega = mean_i J_i^T Sigma_eps^-1 J_i + eps I. All sums are in f64.
//!
//! ```
//! use std::f64::consts::TAU;
//! use ndarray::Array2;
//! use sinexp::analysis::moments::moments;
//! // Three waves of sin(3 x): Sigma is 1/2, and Omega the squared frequency.
//! let step = TAU / 400.0;
//! let field = Array2::from_shape_fn((401, 1), |(i, _)| (3.0 * step * i as f64).sin());
//! let found = moments(field.view().into_dyn(), &[step])?;
//! assert!((found.sigma[[0, 0]] - 0.5).abs() < 0.01 && (found.omega[[0, 0]] - 9.0).abs() < 0.1);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use ndarray::{Array1, Array2, ArrayD, ArrayViewD, Axis};
use ndarray_linalg::{EigValsh, Inverse, UPLO};

use crate::error::{Error, Result};
pub use crate::nn::siren_init::Moments;

/// The paper's eps.
pub const EPSILON: f64 = 1e-6;

/// Moments of a field on a regular grid of one, two or three dimensions.
///
/// `field` is `(grid dimensions ..., channels)`; `spacing[a]` is the coordinate step along grid dimension a, so Omega comes
/// in inverse squared coordinate units. Coordinate 0 is grid dimension 0 (the row of an image).
///
/// **Errors** when there are fewer than two samples along a dimension, a value or spacing is not finite, the field is
/// constant in some channel (Omega would be all eps), its channels are linearly dependent (nothing of Sigma's shape can
/// be drawn), or a moment is beyond f64.
pub fn moments(field: ArrayViewD<f64>, spacing: &[f64]) -> Result<Moments> {
    let refuse = |reason: String| Error::numeric("moments", reason);
    let d = spacing.len();
    let shape = field.shape();
    if !(1..=3).contains(&d) || shape.len() != d + 1 {
        return Err(refuse(format!(
            "a field of shape {shape:?} with {d} spacings; expected 1 to 3 grid dimensions, then channels"
        )));
    }
    if let Some(axis) = (0..d).find(|&a| shape[a] < 2) {
        return Err(refuse(format!("{} sample along dimension {axis}; derivatives need at least 2", shape[axis])));
    }
    if let Some(step) = spacing.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
        return Err(refuse(format!("grid spacing {step} is not a positive number")));
    }
    let channels = shape[d];
    if channels == 0 {
        return Err(refuse("the field has no channels".into()));
    }
    if let Some((at, v)) = field.indexed_iter().find(|(_, v)| !v.is_finite()) {
        return Err(refuse(format!("the field is {v} at {at:?}")));
    }
    let n = field.len() / channels;
    let samples = flatten(field.to_owned(), n, channels);
    let mu: Array1<f64> = samples.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(channels));
    let centred = &samples - &mu;
    let sigma = centred.t().dot(&centred) / (n - 1) as f64;
    if let Some(v) = sigma.iter().find(|v| !v.is_finite()) {
        return Err(refuse(format!("the covariance has an entry {v}: the field's squares are beyond f64; scale it")));
    }
    if let Some(c) = (0..channels).find(|&c| sigma[[c, c]] <= f64::EPSILON * mu[c] * mu[c]) {
        return Err(refuse(format!("channel {c} is constant ({}); there is no scale to match", mu[c])));
    }
    independent(&sigma).map_err(refuse)?;
    // Derivatives: one (samples, channels) matrix per coordinate.
    let jacobian: Vec<Array2<f64>> = (0..d)
        .map(|a| flatten(sobel(field.view(), a, d) / (spacing[a] * 2.0 * 4f64.powi(d as i32 - 1)), n, channels))
        .collect();
    let inverse = (&sigma + &Array2::from_diag_elem(channels, EPSILON))
        .inv()
        .map_err(|e| refuse(format!("the covariance {sigma} cannot be inverted: {e}")))?;
    let mut omega = Array2::from_diag_elem(d, EPSILON);
    for a in 0..d {
        let weighted = jacobian[a].dot(&inverse);
        for b in 0..d {
            omega[[a, b]] += (&weighted * &jacobian[b]).sum() / n as f64;
        }
    }
    match omega.iter().find(|v| !v.is_finite()) {
        Some(v) => {
            Err(refuse(format!("Omega has an entry {v}: the derivatives' squares are beyond f64; scale the field")))
        }
        None => Ok(Moments { mu, sigma, omega }),
    }
}

/// Whether the correlation matrix is of full rank, else why not.
fn independent(sigma: &Array2<f64>) -> Result<(), String> {
    const RANK: f64 = 1e-12;
    let correlation =
        Array2::from_shape_fn(sigma.raw_dim(), |(i, j)| sigma[[i, j]] / (sigma[[i, i]].sqrt() * sigma[[j, j]].sqrt()));
    if let Some(((i, j), _)) = correlation.indexed_iter().find(|((i, j), r)| i < j && r.abs() > 1.0 - RANK) {
        return Err(format!("channels {i} and {j} are the same but for scale and offset (a gray image?); keep one"));
    }
    let values =
        correlation.eigvalsh(UPLO::Lower).map_err(|e| format!("the covariance {sigma} has no spectrum: {e}"))?;
    match values.iter().any(|v| *v < RANK) {
        true => Err(format!(
            "the {} channels are linearly dependent; leave out those that follow from others",
            values.len()
        )),
        false => Ok(()),
    }
}

fn flatten(field: ArrayD<f64>, n: usize, channels: usize) -> Array2<f64> {
    let values: Vec<f64> = field.iter().copied().collect();
    Array2::from_shape_vec((n, channels), values).unwrap_or_else(|_| unreachable!("n x channels values"))
}

/// Sobel's operator as `scipy.ndimage.sobel(mode="reflect")`: a difference along `axis`, a [1 2 1] mean's numerator along
/// the other grid dimensions; the edge sample is repeated.
fn sobel(field: ArrayViewD<f64>, axis: usize, grid_dims: usize) -> ArrayD<f64> {
    let mut out = correlate(field.to_owned(), axis, [-1.0, 0.0, 1.0]);
    for other in (0..grid_dims).filter(|&a| a != axis) {
        out = correlate(out, other, [1.0, 2.0, 1.0]);
    }
    out
}

/// Correlation with three weights along `axis`, the edge sample repeated.
fn correlate(field: ArrayD<f64>, axis: usize, weights: [f64; 3]) -> ArrayD<f64> {
    let mut out = field.clone();
    for (source, mut target) in field.lanes(Axis(axis)).into_iter().zip(out.lanes_mut(Axis(axis))) {
        let last = source.len() - 1;
        for i in 0..=last {
            let (before, after) = (source[i.saturating_sub(1)], source[(i + 1).min(last)]);
            target[i] = weights[0] * before + weights[1] * source[i] + weights[2] * after;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use ndarray::{Array, IxDyn};

    use super::*;

    /// A plane has the same derivative everywhere but at the repeated edges.
    #[test]
    fn derivative_of_a_plane() {
        let field = Array::from_shape_fn(IxDyn(&[5, 7, 1]), |i| 3.0 * i[0] as f64 - 2.0 * i[1] as f64);
        let (rows, columns) = (sobel(field.view(), 0, 2) / 8.0, sobel(field.view(), 1, 2) / 8.0);
        assert!((rows[[2, 3, 0]] - 3.0).abs() < 1e-15 && (columns[[2, 3, 0]] + 2.0).abs() < 1e-15);
        assert!((rows[[0, 3, 0]] - 1.5).abs() < 1e-15, "half at an edge, where the sample is repeated");
    }

    /// f = 2 x - y + 3 z: the derivative along a is whole but at that dimension's two edges, where it is half.
    #[test]
    fn moments_of_a_field_in_three_dimensions() {
        let (n, slopes, spacing) = ([4usize, 5, 6], [2.0, -1.0, 3.0], [0.1, 0.2, 0.5]);
        let value = |i: IxDyn| (0..3).map(|a| slopes[a] * spacing[a] * i[a] as f64).sum::<f64>() + 7.0;
        let m = moments(Array::from_shape_fn(IxDyn(&[4, 5, 6, 1]), value).view(), &spacing).expect("moments");
        let mean: f64 = (0..3).map(|a| slopes[a] * spacing[a] * (n[a] - 1) as f64 / 2.0).sum();
        // A dimension's steps 0 .. n - 1 have variance (n^2 - 1) / 12.
        let variance: f64 = (0..3).map(|a| (slopes[a] * spacing[a]).powi(2) * ((n[a] * n[a] - 1) as f64) / 12.0).sum();
        let sigma = variance * 120.0 / 119.0;
        assert!((m.mu[0] - 7.0 - mean).abs() < 1e-12 && (m.sigma[[0, 0]] - sigma).abs() < 1e-12, "{m:?}");
        let (whole, half) =
            (|a: usize| (n[a] as f64 - 1.0) / n[a] as f64, |a: usize| (n[a] as f64 - 1.5) / n[a] as f64);
        for a in 0..3 {
            for b in 0..3 {
                let edges = if a == b { half(a) } else { whole(a) * whole(b) };
                let want = slopes[a] * slopes[b] * edges / (sigma + EPSILON) + if a == b { EPSILON } else { 0.0 };
                assert!((m.omega[[a, b]] - want).abs() < 1e-10, "({a}, {b}): {} for {want}", m.omega[[a, b]]);
            }
        }
    }

    /// Channels are functions of one number in [0, 1) per sample and of the sample's place.
    fn channels(of: &[&dyn Fn(f64, f64) -> f64]) -> Result<Moments> {
        let noise = crate::random::Key::new(0).uniform::<f64>(&[2, 40], 0.0, 1.0);
        let field = Array::from_shape_fn(IxDyn(&[40, of.len()]), |i| of[i[1]](noise[[0, i[0]]], noise[[1, i[0]]]));
        moments(field.view(), &[0.1])
    }

    #[test]
    fn dependent_channels_and_overflow_are_refused() {
        let refused = |of: &[&dyn Fn(f64, f64) -> f64], word: &str| {
            let error = channels(of).expect_err(word).to_string();
            assert!(error.contains(word), "{error}");
        };
        refused(&[&|u, _| u, &|_, v| v, &|u, _| 0.3 - 2.0 * u], "channels 0 and 2 are the same");
        refused(&[&|u, _| u, &|_, v| v, &|u, v| 0.2 + u - 3.0 * v], "3 channels are linearly dependent");
        refused(&[&|u, _| u * 1e200], "covariance has an entry inf");
        // Close, but each with something of its own.
        assert!(channels(&[&|u, _| u, &|u, v| u + 1e-4 * v]).is_ok());
        assert!(channels(&[&|u, _| 1e-3 * u, &|_, v| 1e4 * v]).is_ok());
    }

    #[test]
    fn fields_without_moments_are_refused_with_the_cause() {
        let refused = |dims: &[usize], spacing: &[f64], value: f64, word: &str| {
            let field = Array::from_elem(IxDyn(dims), value);
            let error = moments(field.view(), spacing).expect_err("refused").to_string();
            assert!(error.contains(word), "{error}");
        };
        refused(&[4, 4, 1], &[0.1, 0.1], 0.5, "constant");
        refused(&[1, 4, 1], &[0.1, 0.1], 0.5, "1 sample along dimension 0");
        refused(&[4, 4, 1], &[0.1, 0.1], f64::NAN, "NaN");
        refused(&[4, 4, 1], &[0.0, 0.1], 0.5, "spacing");
        refused(&[4, 4, 0], &[0.1, 0.1], 0.5, "no channels");
        refused(&[4, 4], &[0.1, 0.1], 0.5, "expected 1 to 3");
    }
}
