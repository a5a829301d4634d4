//! Where a run stopped being finite.

use super::step::{StepSettings, loss_and_gradients, named, parameter_inputs, signature};
use crate::array::{Array, DType};
use crate::error::Result;
use crate::graph::{Program, Shape, Tensor};
use crate::nn::language_model::LanguageModel;
use crate::runtime::{DeviceGroup, ReplicatedBuffer};

/// Says in words what is not finite in the loss, the effective weights and the gradients at `parameters` (in the order of
/// [`LanguageModel::parameters`]) for each device's `tokens`
/// `i32[accumulation, batch, sequence + 1]`.
pub(super) fn diagnose(
    devices: &DeviceGroup,
    model: &LanguageModel,
    settings: &StepSettings,
    parameters: &[&ReplicatedBuffer],
    tokens: &[Array],
) -> Result<String> {
    let names = signature(model);
    let inputs = parameter_inputs(&names, "");
    let tokens_in = Tensor::parameter("tokens", Shape::new(DType::I32, tokens[0].dims()));
    let params = named(&names, &inputs);
    let settings = StepSettings { replicas: 1, ..settings.clone() };
    let (loss, gradients) = loss_and_gradients(model, &settings, &params, &inputs, &tokens_in)?;
    let per_block = |name: &str, t: &Tensor| {
        let dims: Vec<usize> = (usize::from(name.starts_with("blocks."))..t.rank()).collect();
        t.abs().max(&dims)
    };
    let weights = model.effective(&params);
    let mut found: Vec<(String, Tensor)> = vec![("loss".into(), loss)];
    found.extend(weights.iter().map(|(name, t)| (format!("weight {name}"), per_block(name, t))));
    found
        .extend(names.iter().zip(&gradients).map(|((name, _), g)| (format!("gradient by {name}"), per_block(name, g))));
    let outputs: Vec<(&str, Tensor)> = found.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    let program = Program::new("diagnosis", &[inputs, vec![tokens_in]].concat(), &outputs)?;
    let executable = devices.compile(&program)?;
    let tokens = devices.put_each(tokens)?;
    let arguments: Vec<&ReplicatedBuffer> = parameters.iter().copied().chain([&tokens]).collect();
    let results = executable.run(&arguments)?;
    let mut words = Vec::new();
    for ((name, _), result) in found.iter().zip(&results) {
        // Of all devices, one after another.
        let values =
            (0..devices.replicas()).map(|i| Ok(result.to_host(i)?.to_f64_vec())).collect::<Result<Vec<_>>>()?;
        let blocks = values[0].len();
        let values = values.concat();
        let Some(block) = values.iter().position(|x| !x.is_finite()) else { continue };
        let name = name.replace("blocks.", &format!("blocks.{}.", block % blocks));
        words.push(if name == "loss" {
            format!("the loss is {}", values[block])
        } else {
            format!("the {name} is not finite")
        });
    }
    // The first of each kind is what the others follow from.
    let kinds = ["the loss", "the weight", "the gradient"];
    let firsts = kinds.iter().filter_map(|kind| words.iter().find(|w| w.starts_with(kind)).cloned());
    let firsts: Vec<String> = firsts.collect();
    Ok(if firsts.is_empty() { "the norm of the gradient overflows".into() } else { firsts.join(", ") })
}
