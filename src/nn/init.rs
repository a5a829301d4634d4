//! Laws that parameters are drawn from: what each is, its mean and spread, and how it is drawn.
//!
//! ```
//! use sinexp::nn::init::Law;
//! use sinexp::random::Key;
//! let law = Law::xavier_uniform(64, 64);
//! assert!((law.std() - (2.0f64 / 128.0).sqrt()).abs() < 1e-15);
//! let w = law.draw(Key::new(0), &[64, 64])?; // jax.nn.initializers.xavier_uniform's numbers
//! assert_eq!(w.dims(), [64, 64]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::fmt;

use ndarray::{Array2, ArrayD, Axis};
use ndarray_linalg::{Cholesky, UPLO};

use crate::array::Array;
use crate::error::{Error, Result};
use crate::random::Key;

/// A distribution of a whole parameter tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// 0 everywhere.
    Zeros,
    /// These values, the same in every draw; as many as the tensor has entries.
    Constant(Vec<f64>),
    /// Independent, uniform on [lo, hi).
    Uniform {
        /// Lower end.
        lo: f64,
        /// Upper end.
        hi: f64,
    },
    /// Independent, normal with mean 0.
    Normal {
        /// Standard deviation.
        std: f64,
    },
    /// Independent rows of a matrix, each normal with mean 0 and this covariance (columns x columns).
    GaussianRows(Array2<f64>),
    /// Independent columns of a matrix, each normal with mean 0 and this covariance (rows x rows).
    GaussianColumns(Array2<f64>),
}

impl Law {
    /// Uniform on [-bound, bound).
    pub fn symmetric(bound: f64) -> Law {
        Law::Uniform { lo: -bound, hi: bound }
    }

    /// `jax.nn.initializers.xavier_uniform`: bound sqrt(6 / (fan_in + fan_out)).
    pub fn xavier_uniform(fan_in: usize, fan_out: usize) -> Law {
        Law::symmetric((6.0 / (fan_in + fan_out) as f64).sqrt())
    }

    /// Xavier normal: variance 2 / (fan_in + fan_out).
    pub fn xavier_normal(fan_in: usize, fan_out: usize) -> Law {
        Law::Normal { std: (2.0 / (fan_in + fan_out) as f64).sqrt() }
    }

    /// `jax.nn.initializers.he_uniform` (Kaiming): bound sqrt(6 / fan_in).
    pub fn kaiming_uniform(fan_in: usize) -> Law {
        Law::symmetric((6.0 / fan_in as f64).sqrt())
    }

    /// What PyTorch's `nn.Linear` draws its bias (and weight) from: bound 1 / sqrt(fan_in).
    pub fn torch_uniform(fan_in: usize) -> Law {
        Law::symmetric(1.0 / (fan_in as f64).sqrt())
    }

    /// Mean over entries.
    pub fn mean(&self) -> f64 {
        match self {
            Law::Constant(values) => values.iter().sum::<f64>() / values.len().max(1) as f64,
            Law::Uniform { lo, hi } => (lo + hi) / 2.0,
            Law::Zeros | Law::Normal { .. } | Law::GaussianRows(_) | Law::GaussianColumns(_) => 0.0,
        }
    }

    /// Standard deviation of a random entry over draws: the root of the mean variance where entries differ.
    pub fn std(&self) -> f64 {
        match self {
            Law::Zeros | Law::Constant(_) => 0.0,
            Law::Uniform { lo, hi } => (hi - lo) / 12f64.sqrt(),
            Law::Normal { std } => *std,
            Law::GaussianRows(c) | Law::GaussianColumns(c) => c.diag().mean().unwrap_or(0.0).sqrt(),
        }
    }

    /// A draw in f32.
    ///
    /// **Errors** when a covariance is not positive definite or does not fit `dims`, or a constant has another size.
    pub fn draw(&self, key: Key, dims: &[usize]) -> Result<Array> {
        let fits = match self {
            Law::Constant(values) => values.len() == dims.iter().product::<usize>(),
            Law::GaussianRows(c) => dims.len() == 2 && c.nrows() == dims[1],
            Law::GaussianColumns(c) => dims.len() == 2 && c.nrows() == dims[0],
            Law::Zeros | Law::Uniform { .. } | Law::Normal { .. } => true,
        };
        if !fits {
            return Err(Error::numeric("initialisation", format!("{self} does not fit the shape {dims:?}")));
        }
        let values: ArrayD<f32> = match self {
            Law::Zeros => ArrayD::zeros(dims),
            Law::Constant(values) => return Ok(Array::from_slice(dims, values).cast(crate::array::DType::F32)),
            Law::Uniform { lo, hi } => key.uniform(dims, *lo as f32, *hi as f32),
            Law::Normal { std } => key.normal::<f32>(dims).mapv(|z| z * *std as f32),
            Law::GaussianRows(c) => return rows(key, dims[0], c).map(|w| Array::from_ndarray(&w)),
            Law::GaussianColumns(c) => return rows(key, dims[1], c).map(|w| Array::from_ndarray(&w.reversed_axes())),
        };
        Ok(Array::from_ndarray(&values))
    }
}

/// `n` rows z L^T with covariance L L^T.
fn rows(key: Key, n: usize, covariance: &Array2<f64>) -> Result<Array2<f32>> {
    let factor = covariance.cholesky(UPLO::Lower).map_err(|_| {
        Error::numeric("initialisation", format!("the covariance {covariance} is not positive definite"))
    })?;
    let z = key.normal::<f32>(&[n, covariance.nrows()]).mapv(f64::from);
    let mut out = Array2::zeros((n, covariance.nrows()));
    for (z, mut row) in z.axis_iter(Axis(0)).zip(out.axis_iter_mut(Axis(0))) {
        for (i, value) in row.iter_mut().enumerate() {
            *value = (0..=i).map(|j| factor[[i, j]] * z[[j]]).sum::<f64>() as f32;
        }
    }
    Ok(out)
}

impl fmt::Display for Law {
    /// As in the papers: `U(-0.1, 0.1)`, `N(0, 0.088^2)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Zeros => f.write_str("0"),
            Law::Constant(values) => write!(f, "{values:?}"),
            Law::Uniform { lo, hi } => write!(f, "U({lo:.6}, {hi:.6})"),
            Law::Normal { std } => write!(f, "N(0, {std:.6}^2)"),
            Law::GaussianRows(c) => write!(f, "rows ~ N(0, {c})"),
            Law::GaussianColumns(c) => write!(f, "columns ~ N(0, {c})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    /// Mean and standard deviation of many draws lie within five standard errors of the law's.
    #[test]
    fn draws_have_the_moments_of_their_law() {
        let laws = [
            Law::Uniform { lo: -0.5, hi: 2.0 },
            Law::xavier_uniform(64, 32),
            Law::xavier_normal(64, 32),
            Law::kaiming_uniform(64),
            Law::torch_uniform(64),
            Law::Normal { std: 0.3 },
        ];
        for (i, law) in laws.iter().enumerate() {
            let n = 200_000;
            let values = law.draw(Key::new(3).fold_in(i as u32), &[n]).expect("a draw").to_f64_vec();
            let mean = values.iter().sum::<f64>() / n as f64;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
            let error = law.std() / (n as f64).sqrt();
            assert!((mean - law.mean()).abs() < 5.0 * error, "{law}: mean {mean}");
            assert!((variance.sqrt() - law.std()).abs() < 5.0 * error, "{law}: std {}", variance.sqrt());
        }
    }

    #[test]
    fn gaussian_rows_and_columns_have_their_covariance() {
        let c = array![[4.0, 1.0], [1.0, 0.5]];
        let n = 100_000;
        let r = Law::GaussianRows(c.clone()).draw(Key::new(1), &[n, 2]).expect("a draw");
        let k = Law::GaussianColumns(c.clone()).draw(Key::new(1), &[2, n]).expect("a draw");
        let r = r.to_ndarray::<f32>().expect("f32").into_dimensionality::<ndarray::Ix2>().expect("a matrix");
        let k = k.to_ndarray::<f32>().expect("f32").into_dimensionality::<ndarray::Ix2>().expect("a matrix");
        assert_eq!(r, k.t(), "columns are the rows of the transpose");
        let r = r.mapv(f64::from);
        let found = r.t().dot(&r) / n as f64;
        assert!((&found - &c).iter().all(|d| d.abs() < 0.08), "{found}");
        let refused = Law::GaussianRows(array![[1.0, 2.0], [2.0, 1.0]]).draw(Key::new(1), &[3, 2]);
        assert!(refused.is_err_and(|e| e.to_string().contains("not positive definite")));
        assert!(Law::Constant(vec![1.0]).draw(Key::new(0), &[2]).is_err());
    }
}
