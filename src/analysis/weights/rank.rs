//! Singular values of stored matrices, and how many of them carry the weight.

use ndarray::{Array1, Array2, ArrayView2};

use super::role::Fans;
use crate::analysis::svd::singular_values;
use crate::error::{Error, Result};
use crate::interop::safetensors::{ShardTensor, Shards, to_f32, to_f64};
use crate::random::Key;

/// Up to this many rows or columns (the fewer) all singular values are computed for the largest.
const SMALL: usize = 256;
/// Elements that are converted at a time.
const BLOCK: usize = 1 << 16;
/// Steps of the iteration at most.
const STEPS: usize = 100;
/// Relative change of the estimate at which it ends.
const TOLERANCE: f64 = 1e-7;

/// The matrix of a linear map or convolution, `(outputs, inputs)` or as it is stored, in f32.
///
/// **Errors** when an element is not finite in f32, or the tensor is no matrix.
pub fn matrix(shards: &Shards, tensor: &ShardTensor, fans: &Fans) -> Result<Array2<f32>> {
    let mut values = Vec::with_capacity(tensor.len());
    to_f32(tensor.dtype, shards.bytes(tensor), &mut values)?;
    shards.release(tensor);
    shaped(values, tensor, fans)
}

/// |W|_F^2 / |W|_2^2 of such a matrix, whose largest magnitude is `largest_magnitude`; `None` for zeros. It is computed of
/// W over a power of two near that, so that no square overflows or vanishes.
///
/// **Errors** as [`matrix`] and [`largest`].
pub fn stable_rank(shards: &Shards, tensor: &ShardTensor, fans: &Fans, largest_magnitude: f64) -> Result<Option<f64>> {
    if largest_magnitude == 0.0 {
        return Ok(None);
    }
    // A power of two, so that f32 values keep their bits.
    let scale = largest_magnitude.log2().floor().exp2();
    let mut values = Vec::with_capacity(tensor.len());
    let (bytes, size) = (shards.bytes(tensor), tensor.byte_len() / tensor.len().max(1));
    let mut block = Vec::with_capacity(BLOCK);
    for bytes in bytes.chunks(BLOCK * size) {
        block.clear();
        to_f64(tensor.dtype, bytes, &mut block)?;
        values.extend(block.iter().map(|v| (v / scale) as f32));
    }
    shards.release(tensor);
    let squares: f64 = values.iter().map(|v| f64::from(*v).powi(2)).sum();
    let norm = largest(shaped(values, tensor, fans)?.view())?;
    Ok((norm > 0.0).then(|| squares / (norm * norm)))
}

fn shaped(values: Vec<f32>, tensor: &ShardTensor, fans: &Fans) -> Result<Array2<f32>> {
    if values.iter().any(|v| !v.is_finite()) {
        return Err(Error::tensor(&tensor.name, "holds numbers that are not finite, so it has no singular values"));
    }
    // A convolution's rows are its outputs.
    let rows = if fans.inputs_first { fans.inputs } else { tensor.dims.first().copied().unwrap_or(0) };
    let columns = values.len() / rows.max(1);
    Array2::from_shape_vec((rows, columns), values).map_err(|e| Error::tensor(&tensor.name, e))
}

/// The largest singular value: from all of them where one side is at most 256, else by power iteration on W^T W from a
/// random start (to a relative change of 1e-7 in a step, at most 100 steps: never above the true value).
///
/// **Errors** when LAPACK's iteration does not converge.
pub fn largest(matrix: ArrayView2<f32>) -> Result<f64> {
    if matrix.nrows().min(matrix.ncols()) <= SMALL {
        return Ok(singular_values(matrix.mapv(f64::from).view())?.first().copied().unwrap_or(0.0));
    }
    let mut x: Array1<f32> = Array1::from(Key::new(0).normal::<f32>(&[matrix.ncols()]).into_raw_vec_and_offset().0);
    let norm = |v: &Array1<f32>| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    let mut last = 0.0;
    for _ in 0..STEPS {
        let length = norm(&x);
        if length == 0.0 {
            return Ok(0.0);
        }
        x.mapv_inplace(|v| (f64::from(v) / length) as f32);
        let y = matrix.dot(&x);
        let value = norm(&y);
        if (value - last).abs() <= TOLERANCE * value {
            return Ok(value);
        }
        last = value;
        x = matrix.t().dot(&y);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iteration_finds_what_lapack_finds() {
        let z: Array2<f32> = Key::new(7).normal(&[300, 280]).into_dimensionality().expect("a matrix");
        let mut w = z.clone();
        // One direction stands out, as in trained matrices.
        w.column_mut(3).mapv_inplace(|v| 4.0 * v);
        let exact = singular_values(w.mapv(f64::from).view()).expect("values")[0];
        let found = largest(w.view()).expect("found");
        assert!((found / exact - 1.0).abs() < 1e-5, "{found} for {exact}");
        // Without one, the largest values are close to each other, and so is the answer.
        let exact = singular_values(z.mapv(f64::from).view()).expect("values")[0];
        let found = largest(z.view()).expect("found");
        assert!((0.995..1.0 + 1e-6).contains(&(found / exact)), "{found} for {exact}");
        assert_eq!(largest(Array2::zeros((300, 300)).view()).expect("zero"), 0.0);
        assert!((largest(z.slice(ndarray::s![..5, ..]).view()).expect("small") > 10.0));
    }
}
