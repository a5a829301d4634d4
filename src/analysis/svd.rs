//! Singular values, by LAPACK.
//!
//! ```
//! use ndarray::array;
//! use sinexp::analysis::svd::singular_values;
//! let s = singular_values(array![[3.0, 0.0], [0.0, -4.0]].view())?;
//! assert!((s[0] - 4.0).abs() < 1e-12 && (s[1] - 3.0).abs() < 1e-12);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use ndarray::{Array1, Array2, Array3, ArrayView2, Axis};
use ndarray_linalg::{JobSvd, SVDDCInto};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::runtime::with_single_threaded_blas;

/// Singular values of a matrix, largest first: `min(rows, columns)` of them.
///
/// **Errors** when an entry is not finite (LAPACK would not return) or the iteration does not converge.
pub fn singular_values(matrix: ArrayView2<f64>) -> Result<Array1<f64>> {
    if let Some(((i, j), v)) = matrix.indexed_iter().find(|(_, v)| !v.is_finite()) {
        return Err(Error::numeric("singular values", format!("entry ({i}, {j}) of the matrix is {v}")));
    }
    if matrix.is_empty() {
        return Ok(Array1::zeros(0));
    }
    let owned: Array2<f64> = matrix.as_standard_layout().into_owned();
    let (_, values, _) = owned
        .svddc_into(JobSvd::None)
        .map_err(|e| Error::numeric("singular values", format!("LAPACK's gesdd did not converge: {e}")))?;
    Ok(values)
}

/// Singular values of many matrices `(count, rows, columns)` at once, over all cores: `(count, min(rows, columns))`.
///
/// **Errors** as [`singular_values`], naming the matrix.
pub fn batched_singular_values(matrices: &Array3<f64>) -> Result<Array2<f64>> {
    let count = matrices.len_of(Axis(0));
    let rank = matrices.len_of(Axis(1)).min(matrices.len_of(Axis(2)));
    let rows: Vec<Array1<f64>> = with_single_threaded_blas(|| {
        (0..count)
            .into_par_iter()
            .map(|i| {
                singular_values(matrices.index_axis(Axis(0), i)).map_err(|e| match e {
                    Error::Numeric { what, reason } => Error::numeric(format!("{what} of matrix {i}"), reason),
                    other => other,
                })
            })
            .collect::<Result<_>>()
    })?;
    let mut all = Array2::zeros((count, rank));
    for (mut row, values) in all.axis_iter_mut(Axis(0)).zip(rows) {
        row.assign(&values);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Array3, array};

    use super::*;
    use crate::random::Key;

    #[test]
    fn known_values_of_tiny_and_rectangular_matrices() {
        let close = |m: Array2<f64>, want: &[f64]| {
            let got = singular_values(m.view()).expect("values");
            assert_eq!(got.len(), want.len());
            got.iter().zip(want).for_each(|(g, w)| assert!((g - w).abs() < 1e-14, "{got} for {want:?}"));
        };
        close(array![[-3.0]], &[3.0]);
        close(array![[3.0, 0.0], [0.0, 4.0]], &[4.0, 3.0]);
        close(array![[0.0, 1.0], [0.0, 0.0]], &[1.0, 0.0]);
        close(array![[3.0, 4.0]], &[5.0]);
        close(array![[3.0], [4.0]], &[5.0]);
        close(array![[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], &[6f64.sqrt(), 0.0]);
        close(Array2::zeros((0, 3)), &[]);
        // Columns first in memory.
        close(array![[1.0, 2.0], [0.0, 0.0]].reversed_axes(), &[5f64.sqrt(), 0.0]);
    }

    /// The sum of squares is the squared Frobenius norm, and batches equal single calls.
    #[test]
    fn sums_of_squares_and_batches() {
        let j: Array3<f64> = Key::new(5).normal(&[6, 20, 33]).into_dimensionality().expect("three axes");
        let all = batched_singular_values(&j).expect("values");
        for i in 0..6 {
            let (m, v) = (j.index_axis(Axis(0), i), all.row(i));
            let frobenius: f64 = m.iter().map(|x| x * x).sum();
            assert!((v.iter().map(|x| x * x).sum::<f64>() / frobenius - 1.0).abs() < 1e-13);
            assert_eq!(v, singular_values(m).expect("values"));
        }
    }

    #[test]
    fn entries_that_are_not_finite_are_refused() {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut j = Array3::zeros((3, 2, 2));
            j[[1, 0, 1]] = bad;
            let error = batched_singular_values(&j).expect_err("refused").to_string();
            assert!(error.contains("matrix 1") && error.contains("(0, 1)"), "{error}");
        }
    }
}
