//! Coordinates of the samples of a regular grid: what a network takes in for each pixel of a picture or sample of a sound.
//!
//! ```
//! use sinexp::data::grid::{coordinates, spacing};
//! let x = coordinates(&[2, 3], -1.0, 1.0);
//! assert_eq!(x.row(1).to_vec(), [-1.0, 0.0]); // first row, middle column
//! assert_eq!(spacing(&[2, 3], -1.0, 1.0), [2.0, 1.0]);
//! ```

use ndarray::Array2;

/// Coordinates on [low, high] per dimension, both ends included (2609.30633, Appendix C): `(samples, dimensions)`.
///
/// Samples are in row-major order and coordinate 0 belongs to dimension 0, the row of a picture. A dimension with one
/// sample has it in the middle; one without samples gives no rows.
pub fn coordinates(shape: &[usize], low: f64, high: f64) -> Array2<f64> {
    let axes: Vec<Vec<f64>> = shape.iter().map(|&n| axis(n, low, high)).collect();
    let samples = shape.iter().product();
    // How many samples pass before dimension d moves on by one.
    let strides: Vec<usize> = (0..shape.len()).map(|d| shape[d + 1..].iter().product()).collect();
    Array2::from_shape_fn((samples, shape.len()), |(i, d)| axes[d][i / strides[d] % shape[d]])
}

/// The step between neighbouring samples of [`coordinates`] along each dimension: (high - low)/(n - 1).
///
/// Infinite along a dimension with one sample, where there is no neighbour.
pub fn spacing(shape: &[usize], low: f64, high: f64) -> Vec<f64> {
    shape.iter().map(|&n| (high - low) / n.saturating_sub(1) as f64).collect()
}

fn axis(n: usize, low: f64, high: f64) -> Vec<f64> {
    match n {
        0 => Vec::new(),
        1 => vec![0.5 * (low + high)],
        _ => {
            let step = (high - low) / (n - 1) as f64;
            let mut values: Vec<f64> = (0..n).map(|i| low + i as f64 * step).collect();
            values[n - 1] = high; // and not a rounding away from it
            values
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_and_row_major_order() {
        let grid = coordinates(&[2, 3, 2], -1.0, 1.0);
        assert_eq!(grid.dim(), (12, 3));
        assert_eq!(grid.row(0).to_vec(), [-1.0, -1.0, -1.0]);
        assert_eq!(grid.row(1).to_vec(), [-1.0, -1.0, 1.0]);
        assert_eq!(grid.row(2).to_vec(), [-1.0, 0.0, -1.0]);
        assert_eq!(grid.row(6).to_vec(), [1.0, -1.0, -1.0]);
        assert_eq!(grid.row(11).to_vec(), [1.0, 1.0, 1.0]);
        let line = coordinates(&[308_207], -100.0, 100.0);
        assert_eq!((line[[0, 0]], line[[154_103, 0]], line[[308_206, 0]]), (-100.0, 0.0, 100.0));
    }

    #[test]
    fn one_sample_and_none() {
        assert_eq!(coordinates(&[1], 2.0, 5.0)[[0, 0]], 3.5);
        assert_eq!(coordinates(&[1, 2], -1.0, 1.0), ndarray::arr2(&[[0.0, -1.0], [0.0, 1.0]]));
        assert_eq!(coordinates(&[3, 0], -1.0, 1.0).dim(), (0, 2));
    }

    #[test]
    fn spacing_is_the_step() {
        assert_eq!(spacing(&[5, 3, 1], -1.0, 1.0), [0.5, 1.0, f64::INFINITY]);
        let (grid, step) = (coordinates(&[96, 128], -1.0, 1.0), spacing(&[96, 128], -1.0, 1.0));
        assert!((grid[[128, 0]] - grid[[0, 0]] - step[0]).abs() < 1e-15);
        assert!((grid[[1, 1]] - grid[[0, 1]] - step[1]).abs() < 1e-15);
    }
}
