//! The full-batch regression step of the SIREN experiments as one donated program.

use crate::array::DType;
use crate::error::Result;
use crate::graph::{Program, Shape, Tensor};
use crate::nn::siren::{Params, Siren};
use crate::optim::{Adam, AdamState};
use crate::transform::{fast_sine, grad};

/// Choices of a step program.
#[derive(Clone, Copy, Debug)]
pub struct StepOptions {
    /// The update rule.
    pub adam: Adam,
    /// Element type of parameters, moments and data.
    pub dtype: DType,
    /// Sine and cosine as [`fast_sine`]: for CPU, f32 only.
    pub fast_sine: bool,
    /// Whether omega0 and omega_h are arguments (baselines) or 1 (uniform-phase).
    pub omegas: bool,
}

impl Default for StepOptions {
    /// Adam's defaults in f32, XLA's own sine, omegas given.
    fn default() -> Self {
        StepOptions { adam: Adam::default(), dtype: DType::F32, fast_sine: false, omegas: true }
    }
}

/// One Adam step on the mean squared error over all samples and channels (2609.30633, Appendix C).
///
/// Arguments: the parameters in [`Siren::parameters`]' order, their first moments `m.NAME`, their second moments
/// `v.NAME`, the step number `t` (0 before the first), all donated; then `x` `(samples, N_in)`, `y` `(samples, N_out)`,
/// `learning_rate`, and `omega0`, `omega_h` and `pe` where the network has them. Results: the new state in the same
/// order, then `loss`, the error before the update.
pub fn regression_step(siren: &Siren, samples: usize, options: &StepOptions) -> Result<Program> {
    let dtype = options.dtype;
    let input = |name: &str, dims: &[usize]| Tensor::parameter(name, Shape::new(dtype, dims));
    let declared = siren.parameters();
    let named = |prefix: &str| -> Vec<Tensor> {
        declared.iter().map(|(name, dims)| input(&format!("{prefix}{name}"), dims)).collect()
    };
    let (weights, m, v) = (named(""), named("m."), named("v."));
    let t = input("t", &[]);
    let (x, y) = (input("x", &[samples, siren.inputs]), input("y", &[samples, siren.outputs]));
    let learning_rate = input("learning_rate", &[]);

    let mut params: Params = declared.iter().map(|(name, _)| name.clone()).zip(weights.iter().cloned()).collect();
    let mut fixed = vec![x.clone(), y.clone(), learning_rate.clone()];
    let mut extra = Vec::new();
    if options.omegas {
        extra.extend([("omega0", vec![]), ("omega_h", vec![])]);
    }
    if siren.encoding > 0 {
        extra.push(("pe", vec![siren.encoding, siren.inputs]));
    }
    for (name, dims) in extra {
        let tensor = input(name, &dims);
        params.insert(name.to_string(), tensor.clone());
        fixed.push(tensor);
    }

    let loss = (siren.apply(&params, &x) - &y).square().mean_all();
    let gradients = grad(&loss, &weights)?;
    let step = &t + 1.0;
    let mut state: [Vec<Tensor>; 3] = Default::default();
    for (i, gradient) in gradients.iter().enumerate() {
        let moments = AdamState { m: m[i].clone(), v: v[i].clone() };
        let (weight, moments) = options.adam.update(&weights[i], gradient, &moments, &step, &learning_rate);
        for (list, tensor) in state.iter_mut().zip([weight, moments.m, moments.v]) {
            list.push(tensor);
        }
    }
    let inputs = [&weights[..], &m, &v, &[t]].concat();
    let results = [state.concat(), vec![step, loss]].concat();
    let results = if options.fast_sine { fast_sine(&results) } else { results };
    let names: Vec<String> = (0..inputs.len()).map(|i| inputs[i].name().to_string()).chain(["loss".into()]).collect();
    let outputs: Vec<(&str, Tensor)> = names.iter().map(String::as_str).zip(results).collect();
    let aliases: Vec<(usize, usize)> = (0..inputs.len()).map(|i| (i, i)).collect();
    Program::with_donation("regression_step", &[inputs, fixed].concat(), &outputs, &aliases)
}
