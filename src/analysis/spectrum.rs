//! What the singular values of many Jacobians have in common: order statistics, mean squares, conditioning.
//!
//! Theorem 1 of the uniform-phase paper fixes the mean squared singular value of J = ∂h_L/∂h_1 at one and leaves the
//! shape of the spectrum open; Appendix A.4 looks at that shape. A [`Cell`] holds the spectra of one initialisation at
//! one depth, a [`Summary`] the numbers printed for it.
//!
//! ```
//! use ndarray::Array3;
//! use sinexp::analysis::spectrum::Cell;
//! use sinexp::array::DType;
//! // Two networks, three points, four singular values each.
//! let cell = Cell::new("uniform-mm", 4, Array3::from_elem((2, 3, 4), 1.0), DType::F64)?;
//! assert_eq!(cell.summary().mean_square, 1.0); // Theorem 1
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use ndarray::{Array1, Array3, Axis};

use crate::array::DType;
use crate::error::{Error, Result};

/// The spectra of one initialisation at one depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    name: String,
    depth: usize,
    values: Array3<f64>,
    epsilon: f64,
}

impl Cell {
    /// From singular values of shape (networks, points, N), in any order within a spectrum; `precision` is the type
    /// that the Jacobians were computed in (it decides which values are rounding noise).
    ///
    /// **Errors** when an axis is empty, or a value is negative, NaN or infinite.
    pub fn new(name: impl Into<String>, depth: usize, mut values: Array3<f64>, precision: DType) -> Result<Self> {
        let name = name.into();
        let what = || format!("singular values of `{name}` at depth {depth}");
        if values.is_empty() {
            return Err(Error::numeric(what(), format!("shape {:?} holds none", values.shape())));
        }
        if let Some((at, v)) = values.indexed_iter().find(|(_, v)| !v.is_finite() || **v < 0.0) {
            let reason = format!("{v} at network {}, point {}, rank {}", at.0, at.1, at.2);
            return Err(Error::numeric(what(), reason));
        }
        for mut spectrum in values.lanes_mut(Axis(2)) {
            let mut sorted = spectrum.to_vec();
            sorted.sort_by(|a, b| b.total_cmp(a));
            spectrum.assign(&Array1::from(sorted));
        }
        let epsilon = match precision {
            DType::BF16 => 2f64.powi(-7),
            DType::F16 => 2f64.powi(-10),
            DType::F32 => 2f64.powi(-23),
            _ => f64::EPSILON,
        };
        Ok(Cell { name, depth, values, epsilon })
    }

    /// The initialisation's command-line name, or the file the weights came from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// L.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Singular values, (networks, points, N), each spectrum from the largest to the smallest.
    pub fn values(&self) -> &Array3<f64> {
        &self.values
    }

    /// The spectrum averaged rank by rank over all networks and points, from the largest to the smallest: a curve of
    /// Figure 3.
    pub fn rank_means(&self) -> Vec<f64> {
        let (networks, points, n) = self.values.dim();
        let sums = self.values.sum_axis(Axis(0)).sum_axis(Axis(0));
        (0..n).map(|r| sums[r] / (networks * points) as f64).collect()
    }

    /// Up to this, an averaged singular value is rounding noise: the largest averaged one times N times the spacing of
    /// numbers at one (the machine epsilon) of the type that the Jacobians were computed in, as in NumPy's `matrix_rank`.
    /// What lies below depends on the order of sums, hence on the machine.
    pub fn noise(&self) -> f64 {
        self.rank_means()[0] / self.most_conditioned()
    }

    /// From this on, a condition number is rounding noise: one over N times the machine epsilon.
    fn most_conditioned(&self) -> f64 {
        1.0 / (self.values.dim().2 as f64 * self.epsilon)
    }

    /// The numbers of the printed table.
    pub fn summary(&self) -> Summary {
        let means = self.rank_means();
        let (n, most_conditioned) = (means.len(), self.most_conditioned());
        let noise = means[0] / most_conditioned;
        let (networks, points, _) = self.values.dim();
        let per_network: Vec<f64> = self
            .values
            .outer_iter()
            .map(|spectra| spectra.iter().map(|s| s * s).sum::<f64>() / (points * n) as f64)
            .collect();
        let mean_square = per_network.iter().sum::<f64>() / networks as f64;
        let standard_error = (networks > 1).then(|| {
            let squares: f64 = per_network.iter().map(|m| (m - mean_square).powi(2)).sum();
            (squares / (networks - 1) as f64 / networks as f64).sqrt()
        });
        let conditions = self.values.lanes(Axis(2)).into_iter().map(|s| match s[n - 1] {
            0.0 => f64::INFINITY,
            smallest => s[0] / smallest,
        });
        Summary {
            largest: means[0],
            median: median(means.clone()),
            smallest: means[n - 1],
            mean_square,
            standard_error,
            condition: median(conditions.collect()),
            resolved: means.iter().filter(|s| **s > noise).count(),
            noise,
            most_conditioned,
        }
    }
}

/// One row of the spectrum table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Largest singular value, averaged over all spectra.
    pub largest: f64,
    /// Median over ranks of the averaged spectrum (the mean of the middle two when N is even, as NumPy's).
    pub median: f64,
    /// Smallest singular value, averaged over all spectra.
    pub smallest: f64,
    /// Mean of the squared singular values over ranks, points and networks (Theorem 1: one for uniform-phase).
    pub mean_square: f64,
    /// Standard error of [`Summary::mean_square`] over networks: points of one network are not independent. `None`
    /// for a single network.
    pub standard_error: Option<f64>,
    /// Median over the spectra of largest over smallest; infinite where the smallest is zero.
    pub condition: f64,
    /// How many ranks of the averaged spectrum are above the rounding noise ([`Cell::noise`]).
    pub resolved: usize,
    /// [`Cell::noise`]: a `smallest` up to this says how well the arithmetic resolves, not what the network does.
    pub noise: f64,
    /// One over N times the machine epsilon: a `condition` from this on says as little.
    pub most_conditioned: f64,
}

impl Summary {
    /// The smallest averaged singular value; `None` where it is rounding noise.
    pub fn known_smallest(&self) -> Option<f64> {
        (self.smallest > self.noise).then_some(self.smallest)
    }

    /// The condition number; `None` where it is rounding noise.
    pub fn known_condition(&self) -> Option<f64> {
        (self.condition < self.most_conditioned).then_some(self.condition)
    }
}

/// The median as NumPy computes it; NaN for no values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => 0.5 * (values[n / 2 - 1] + values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMPY: [f64; 6] =
        [5.375, 3.083333333333333, 0.9583333333333334, 12.760416666666666, 1.6013232375479698, 5.958333333333334];

    /// ((7 i) mod 24 + 1) / 4 for i = 0 .. 23, as (3, 2, 4).
    fn sample() -> Cell {
        let values = Array3::from_shape_fn((3, 2, 4), |(n, p, r)| ((7 * (n * 8 + p * 4 + r)) % 24 + 1) as f64 / 4.0);
        Cell::new("sample", 4, values, DType::F64).expect("valid")
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-14 * b.abs(), "{a} instead of {b}");
    }

    #[test]
    fn summary_agrees_with_numpy() {
        // a = np.sort(v, axis=2)[:, :, ::-1]; m = a.mean((0, 1)); s = (a**2).mean((1, 2))
        let s = sample().summary();
        close(s.largest, NUMPY[0]); // m[0]
        close(s.median, NUMPY[1]); // np.median(m)
        close(s.smallest, NUMPY[2]); // m[-1]
        close(s.mean_square, NUMPY[3]); // s.mean()
        close(s.standard_error.expect("three networks"), NUMPY[4]); // s.std(ddof=1) / np.sqrt(3)
        close(s.condition, NUMPY[5]); // np.median(a[:, :, 0] / a[:, :, -1])
        assert_eq!(s.resolved, 4);
    }

    #[test]
    fn spectra_are_sorted_and_averaged_by_rank() {
        let means = sample().rank_means();
        assert!(means.windows(2).all(|w| w[0] >= w[1]), "{means:?}");
        let total: f64 = sample().values().iter().sum();
        close(means.iter().sum::<f64>(), total / 6.0);
    }

    #[test]
    fn one_network_has_no_standard_error_and_zero_no_finite_condition() {
        let cell = Cell::new("one", 2, Array3::from_shape_vec((1, 1, 2), vec![0.0, 3.0]).expect("shape"), DType::F32);
        let summary = cell.expect("valid").summary();
        assert_eq!((summary.standard_error, summary.condition, summary.resolved), (None, f64::INFINITY, 1));
    }

    #[test]
    fn noise_depends_on_the_precision_of_the_jacobian() {
        let values = Array3::from_shape_vec((1, 1, 3), vec![2.0, 1e-6, 1e-8]).expect("shape");
        let resolved = |d| Cell::new("x", 2, values.clone(), d).expect("valid").summary().resolved;
        assert_eq!((resolved(DType::F64), resolved(DType::F32), resolved(DType::BF16)), (3, 2, 1));
    }

    #[test]
    fn bad_values_name_their_place() {
        let mut values = Array3::from_elem((2, 2, 2), 1.0);
        values[[1, 0, 1]] = f64::NAN;
        let error = Cell::new("sm20", 8, values, DType::F64).expect_err("NaN").to_string();
        assert!(error.contains("`sm20` at depth 8") && error.contains("network 1, point 0, rank 1"), "{error}");
        assert!(Cell::new("sm20", 8, Array3::zeros((0, 1, 1)), DType::F64).is_err());
    }
}
