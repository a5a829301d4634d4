//! Jacobians between the hidden layers of a network, from the network's own graph by `jvp` and `vmap`.
//!
//! ```
//! use sinexp::analysis::jacobian::HiddenJacobian;
//! use sinexp::array::{Array, DType};
//! use sinexp::nn::{cvp26::Cvp26, siren_init::Initialization};
//! use sinexp::{random::Key, runtime::Device};
//! let init = Initialization::Cvp26 { family: Cvp26::SIGMA_A_0, omega0: 30.0, omega_h: 1.0 };
//! let siren = init.siren(1, 16, 2, 1);
//! let mut weights = init.draw(&siren, Key::new(0))?;
//! weights.retain(|name, _| !name.starts_with("b."));
//! weights.extend(["b.0", "b.1", "b.2"].map(|name| (name.to_owned(), Array::full(DType::F32, &[16], 0.0))));
//! let jacobian = HiddenJacobian::new(&Device::open("cpu")?, &siren, 1)?;
//! // At x = 0 and without biases every cosine is 1, so that J = dh_2/dh_1 is the second hidden matrix.
//! let j = jacobian.run(&weights, &Array::full(DType::F64, &[1, 1], 0.0))?;
//! assert_eq!(j.into_iter().collect::<Vec<f64>>(), weights["W.2"].to_f64_vec());
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::collections::BTreeMap;

use ndarray::{Array3, Ix3};

use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::nn::siren::{Params, Siren};
use crate::runtime::{Device, Executable};
use crate::transform::{fast_sine, jacobian, vmap};

/// J = dh_L/dh_1 of 2609.30633's Jacobian-spectrum diagnostic (Section 4, Appendix C), compiled for one network shape.
pub struct HiddenJacobian {
    siren: Siren,
    points: usize,
    executable: Executable,
}

impl HiddenJacobian {
    /// Compiles the Jacobians of `siren` at `points` inputs at once, in f64: at depth 32 the singular values span more
    /// than f32 can hold. omega0 and omega_h are arguments, so one program serves every sine initialisation.
    ///
    /// **Errors** when there is no second hidden layer to differentiate.
    pub fn new(device: &Device, siren: &Siren, points: usize) -> Result<Self> {
        if siren.hidden < 2 {
            return Err(Error::argument("depth", siren.hidden, "dh_L/dh_1 needs at least 2 hidden layers"));
        }
        let (inputs, result) = graph(siren, points)?;
        // On CPU libm's scalar cosine would take a quarter of the time.
        let result = if device.is_cpu() { fast_sine(&[result]).swap_remove(0) } else { result };
        let program = Program::new("hidden_jacobian", &inputs, &[("J", result)])?;
        Ok(HiddenJacobian { siren: siren.clone(), points, executable: device.compile(&program)? })
    }

    /// J at each point: `(points, N, N)`, `J[p][i][j] = dh_L[i]/dh_1[j]`.
    ///
    /// `weights` holds W.l, b.l and optionally `omega0`, `omega_h` (scalars, 1 when absent), of any float dtype;
    /// `x` is `(points, N_in)`.
    pub fn run(&self, weights: &BTreeMap<String, Array>, x: &Array) -> Result<Array3<f64>> {
        if x.dims() != [self.points, self.siren.inputs] {
            let want = [self.points, self.siren.inputs];
            return Err(Error::tensor("x", format!("shape {:?}, expected {want:?}", x.dims())));
        }
        let mut arguments = Vec::new();
        for (name, _) in names(&self.siren) {
            let found = match (weights.get(&name), name.as_str()) {
                (Some(a), _) => a.cast(DType::F64),
                (None, "omega0" | "omega_h") => Array::scalar(1.0f64),
                (None, _) => return Err(Error::tensor(name, "missing from the weights")),
            };
            arguments.push(found);
        }
        arguments.push(x.cast(DType::F64));
        let results = self.executable.call(&arguments.iter().collect::<Vec<_>>())?;
        let j = results[0].to_ndarray::<f64>()?;
        j.into_dimensionality::<Ix3>().map_err(|e| Error::numeric("Jacobian", e))
    }
}

/// The arguments before `x`: what the hidden layers depend on, then the two frequencies.
fn names(siren: &Siren) -> Vec<(String, Vec<usize>)> {
    let output = siren.hidden + 1;
    let mut all = siren.parameters();
    all.retain(|(name, _)| *name != format!("W.{output}") && *name != format!("b.{output}"));
    if siren.encoding > 0 {
        all.push(("pe".into(), vec![siren.encoding, siren.inputs]));
    }
    all.push(("omega0".into(), vec![]));
    all.push(("omega_h".into(), vec![]));
    all
}

/// The graph: inputs, and J `(points, N, N)`.
fn graph(siren: &Siren, points: usize) -> Result<(Vec<Tensor>, Tensor)> {
    let mut inputs: Vec<Tensor> =
        names(siren).iter().map(|(name, dims)| Tensor::parameter(name, Shape::new(DType::F64, dims))).collect();
    let mut params: Params = names(siren).into_iter().map(|(name, _)| name).zip(inputs.iter().cloned()).collect();
    // The output layer is not part of J; any value does.
    let output = siren.hidden + 1;
    params.insert(format!("W.{output}"), Tensor::full(DType::F64, &[siren.outputs, siren.width], 0.0));
    let x = Tensor::parameter("x", Shape::new(DType::F64, &[points, siren.inputs]));
    inputs.push(x.clone());
    let j = vmap(&[x], &[Some(0)], |x| {
        let h = siren.layers(&params, &x[0]).activations;
        Ok(vec![jacobian(&h[siren.hidden], &h[1])?])
    })?;
    Ok((inputs, j[0].clone()))
}
