//! A network's values at many points, and how far they are from the samples.

use ndarray::Array2;

use super::trainer::Weights;
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::nn::siren::{Activation, Params, Siren};
use crate::runtime::{Device, Executable};
use crate::transform::fast_sine;

/// A compiled forward pass, applied block by block, so that any number of points fits in memory.
pub struct Evaluator {
    forward: Executable,
    device: Device,
    siren: Siren,
    block: usize,
}

impl Evaluator {
    /// For blocks of `block` points.
    ///
    /// **Errors** when XLA cannot compile it.
    pub fn new(device: &Device, siren: &Siren, block: usize) -> Result<Self> {
        let mut params: Params = siren.inputs(DType::F32);
        let scalar = |name: &str| (name.to_owned(), Tensor::parameter(name, Shape::new(DType::F32, &[])));
        if siren.activation == Activation::Sine {
            params.extend([scalar("omega0"), scalar("omega_h")]);
        }
        if siren.encoding > 0 {
            let shape = Shape::new(DType::F32, &[siren.encoding, siren.inputs]);
            params.insert("pe".into(), Tensor::parameter("pe", shape));
        }
        let x = Tensor::parameter("x", Shape::new(DType::F32, &[block, siren.inputs]));
        let mut y = vec![siren.apply(&params, &x)];
        if device.is_cpu() {
            y = fast_sine(&y);
        }
        let inputs: Vec<Tensor> = params.into_values().chain([x]).collect();
        let program = Program::new("siren_forward", &inputs, &[("y", y.remove(0))])?;
        Ok(Evaluator { forward: device.compile(&program)?, device: device.clone(), siren: siren.clone(), block })
    }

    /// f(x) for `x` of shape (points, N_in): (points, N_out).
    ///
    /// **Errors** when a weight is missing or x has another number of coordinates.
    pub fn predict(&self, weights: &Weights, x: &Array) -> Result<Array2<f32>> {
        let &[points, d] = x.dims() else {
            return Err(Error::numeric("points", format!("shape {:?}, expected (points, N_in)", x.dims())));
        };
        let x: Vec<f32> = x.cast(DType::F32).to_vec()?;
        let mut arguments = Vec::new();
        for (name, _) in self.forward.inputs().filter(|(name, _)| *name != "x") {
            let weight = weights.get(name).ok_or_else(|| Error::tensor(name, "missing from the weights"))?;
            arguments.push(self.device.put(&weight.cast(DType::F32))?);
        }
        let mut values = Vec::with_capacity(points * self.siren.outputs);
        for rows in x.chunks(self.block * d) {
            let mut padded = rows.to_vec();
            padded.resize(self.block * d, 0.0);
            let x = self.device.put(&Array::from_slice(&[self.block, d], &padded))?;
            let buffers: Vec<_> = arguments.iter().chain([&x]).collect();
            let y: Vec<f32> = self.forward.run(&buffers)?[0].to_host()?.to_vec()?;
            values.extend(&y[..rows.len() / d * self.siren.outputs]);
        }
        Array2::from_shape_vec((points, self.siren.outputs), values).map_err(|e| Error::numeric("predictions", e))
    }
}

/// Mean squared error over all samples and channels, summed in f64.
pub fn mean_squared_error(prediction: &Array2<f32>, y: &Array2<f32>) -> f64 {
    let squares = prediction.iter().zip(y).map(|(p, y)| (f64::from(*p) - f64::from(*y)).powi(2));
    squares.sum::<f64>() / y.len().max(1) as f64
}

/// Signal-to-noise ratio in dB, 10 log10(Var(y) / MSE), the variance over the whole array (2609.30633, Eq. 25).
pub fn snr_db(y: &Array2<f32>, mse: f64) -> f64 {
    let n = y.len().max(1) as f64;
    let mean = y.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
    let variance = y.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / n;
    10.0 * (variance / mse).log10()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn errors_and_ratios_are_their_formulas() {
        let (y, p) = (array![[1.0f32, 3.0], [1.0, 3.0]], array![[1.0f32, 3.0], [1.2, 2.8]]);
        let mse = mean_squared_error(&p, &y);
        assert!((mse - 0.02).abs() < 1e-7, "{mse}");
        // Var = 1.
        assert!((snr_db(&y, mse) - 10.0 * 50f64.log10()).abs() < 1e-4);
    }
}
