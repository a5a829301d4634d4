//! The parts of a training step as programs of their own, made of the functions that the step is made of, to be timed.
//!
//! Together they do what [`step_program`](super::step_program) does, but XLA fuses them differently. Cut into parts,
//! gradients are written to memory as results and read again by the optimizer; in one program the last operation of a
//! gradient can be fused with its share of the norm. The loss alone keeps nothing for a reverse pass, so that
//! writing what the reverse pass reads counts as backward. Their times therefore add up to about the whole step's only:
//! `sel-table7` measures both.

use super::StepSettings;
use super::step::{
    State, loss_and_gradients, mean_loss, named, parameter_inputs, signature, state_inputs, token_input, update,
};
use crate::array::DType;
use crate::error::Result;
use crate::graph::{Program, Shape, Tensor};
use crate::nn::language_model::LanguageModel;

/// Forward: the effective weights and the loss, over all micro batches of a step.
///
/// Arguments: the parameters in the order of [`LanguageModel::parameters`], then `tokens`
/// `i32[accumulation, batch, sequence + 1]`. Result: `loss`.
pub fn forward_program(model: &LanguageModel, settings: &StepSettings) -> Result<Program> {
    let names = signature(model);
    let weights = parameter_inputs(&names, "");
    let tokens = token_input(settings);
    let loss = mean_loss(model, settings, &named(&names, &weights), &tokens)?;
    Ok(Program::new("forward", &[weights, vec![tokens]].concat(), &[("loss", loss)])?)
}

/// Forward and backward: arguments as [`forward_program`]; results: `loss`, then the gradient `g.NAME` by each parameter.
pub fn gradients_program(model: &LanguageModel, settings: &StepSettings) -> Result<Program> {
    let names = signature(model);
    let weights = parameter_inputs(&names, "");
    let tokens = token_input(settings);
    let (loss, gradients) = loss_and_gradients(model, settings, &named(&names, &weights), &weights, &tokens)?;
    let labels: Vec<String> = names.iter().map(|(name, _)| format!("g.{name}")).collect();
    let outputs: Vec<(&str, Tensor)> =
        std::iter::once(("loss", loss)).chain(labels.iter().map(String::as_str).zip(gradients)).collect();
    Ok(Program::new("forward_backward", &[weights, vec![tokens]].concat(), &outputs)?)
}

/// The optimizer: clipping and AdamW, with the state donated as in the step.
///
/// Arguments: the state in the order of [`step_program`](super::step_program), then `loss` and `g.NAME` as
/// [`gradients_program`] gives them. Results: the new state, then `grad_norm` (before clipping).
pub fn update_program(model: &LanguageModel, settings: &StepSettings) -> Result<Program> {
    let names = signature(model);
    let state = state_inputs(&names);
    let loss = Tensor::parameter("loss", Shape::new(DType::F32, &[]));
    let gradients = parameter_inputs(&names, "g.");
    let updated = update(model, settings, &state, loss.clone(), gradients.clone());
    let State { weights, m, v, t, finite } = state;
    let donated = [weights, m, v, vec![t, finite]].concat();
    let mut outputs: Vec<(&str, Tensor)> = donated.iter().map(Tensor::name).zip(updated.state).collect();
    let aliases: Vec<(usize, usize)> = (0..outputs.len()).map(|i| (i, i)).collect();
    outputs.push(("grad_norm", updated.grad_norm));
    let arguments = [donated.clone(), vec![loss], gradients].concat();
    Ok(Program::with_donation("optimizer", &arguments, &outputs, &aliases)?)
}
