//! Programs of a language model: the training step, the loss, the effective weights.

use serde::{Deserialize, Serialize};

use crate::array::DType;
use crate::error::Result;
use crate::graph::{Combine, Program, Shape, Tensor, name_scope, scan};
use crate::nn::language_model::LanguageModel;
use crate::nn::siren::Params;
use crate::nn::transformer::{Transformer, Weight};
use crate::optim::{AdamState, AdamW, Schedule, clip_coefficient, global_norm};
use crate::transform::{grad, vjp};

/// Choices of a training step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StepSettings {
    /// Sequences of one forward pass, on each device.
    pub batch: usize,
    /// Tokens of a sequence that are predicted.
    pub sequence: usize,
    /// Forward and backward passes whose gradients are averaged before one update.
    pub accumulation: usize,
    /// The update rule.
    pub optimizer: AdamW,
    /// Largest global norm of the gradient.
    pub clip: f64,
    /// Learning rate.
    pub schedule: Schedule,
    /// T of k(t) (Eq. 11), in steps.
    pub anneal_steps: usize,
    /// Whether activations are bf16 instead of f32. Parameters, moments, norms, softmax and loss stay f32.
    pub bf16: bool,
    /// Devices that share the batch; gradients are averaged over them.
    pub replicas: usize,
}

impl StepSettings {
    fn activations(&self) -> DType {
        activation_type(self.bf16)
    }

    /// Tokens that one step learns from, on all devices.
    pub fn tokens_per_step(&self) -> usize {
        self.batch * self.sequence * self.accumulation * self.replicas
    }
}

/// Type of activations.
pub(super) fn activation_type(bf16: bool) -> DType {
    if bf16 { DType::BF16 } else { DType::F32 }
}

/// A program argument for each name.
pub(super) fn parameter_inputs(names: &[(String, Vec<usize>)], prefix: &str) -> Vec<Tensor> {
    let input = |(name, dims): &(String, Vec<usize>)| {
        Tensor::parameter(&format!("{prefix}{name}"), Shape::new(DType::F32, dims))
    };
    names.iter().map(input).collect()
}

pub(super) fn named(names: &[(String, Vec<usize>)], tensors: &[Tensor]) -> Params {
    names.iter().map(|(name, _)| name.clone()).zip(tensors.iter().cloned()).collect()
}

/// Names and dimensions of the parameters.
pub(super) fn signature(model: &LanguageModel) -> Vec<(String, Vec<usize>)> {
    model.parameters().into_iter().map(|p| (p.name, p.dims)).collect()
}

/// One AdamW step (2607.09967, Section 5.1) as a donated program.
///
/// Arguments: the parameters in the order of [`LanguageModel::parameters`], their moments `m.NAME` and `v.NAME`, the step
/// number `t` (0 before the first), `finite` (1; becomes 0 at the first step whose loss or gradient is not finite), all
/// f32 and donated; then `tokens` `i32[accumulation, batch, sequence + 1]`. Results: the new state in the same order, then
/// `loss` (before the update) and `grad_norm` (before clipping).
///
/// Once `finite` is 0 no step changes parameters, moments or t. The effective weights are made once per step, whatever the
/// accumulation. With several replicas each takes its own tokens, and loss and gradients are means over all.
pub fn step_program(model: &LanguageModel, settings: &StepSettings) -> Result<Program> {
    let names = signature(model);
    let state = state_inputs(&names);
    let tokens = token_input(settings);

    let params = named(&names, &state.weights);
    let (loss, gradients) = loss_and_gradients(model, settings, &params, &state.weights, &tokens)?;
    let updated = update(model, settings, &state, loss, gradients);

    let State { weights, m, v, t, finite } = state;
    let arguments = [weights, m, v, vec![t, finite]].concat();
    let mut outputs: Vec<(&str, Tensor)> = arguments.iter().map(Tensor::name).zip(updated.state).collect();
    let aliases: Vec<(usize, usize)> = (0..outputs.len()).map(|i| (i, i)).collect();
    outputs.extend([("loss", updated.loss), ("grad_norm", updated.grad_norm)]);
    Ok(Program::with_donation("language_step", &[arguments.clone(), vec![tokens]].concat(), &outputs, &aliases)?)
}

/// What a step changes.
pub(super) struct State {
    /// Parameters.
    pub weights: Vec<Tensor>,
    /// Their first moments.
    pub m: Vec<Tensor>,
    /// Their second moments.
    pub v: Vec<Tensor>,
    /// Steps taken.
    pub t: Tensor,
    /// 1, or 0 once a step was not finite.
    pub finite: Tensor,
}

/// The state as arguments of a program.
pub(super) fn state_inputs(names: &[(String, Vec<usize>)]) -> State {
    let [weights, m, v] = ["", "m.", "v."].map(|prefix| parameter_inputs(names, prefix));
    let scalar = |name: &str| Tensor::parameter(name, Shape::new(DType::F32, &[]));
    State { weights, m, v, t: scalar("t"), finite: scalar("finite") }
}

/// The tokens of a step, `i32[accumulation, batch, sequence + 1]`, as an argument of a program.
pub(super) fn token_input(settings: &StepSettings) -> Tensor {
    let dims = [settings.accumulation, settings.batch, settings.sequence + 1];
    Tensor::parameter("tokens", Shape::new(DType::I32, &dims))
}

/// Results of [`update`].
pub(super) struct Updated {
    /// The new state, in the order of its arguments.
    pub state: Vec<Tensor>,
    /// Mean over replicas.
    pub loss: Tensor,
    /// Of the mean gradient, before clipping.
    pub grad_norm: Tensor,
}

/// Means over replicas, clipping, AdamW.
pub(super) fn update(
    model: &LanguageModel,
    settings: &StepSettings,
    state: &State,
    loss: Tensor,
    gradients: Vec<Tensor>,
) -> Updated {
    let State { weights, m, v, t, finite } = state;
    name_scope("optimizer", || {
        let mean =
            |x: Tensor| if settings.replicas > 1 { x.all_reduce(Combine::Add) / settings.replicas as f64 } else { x };
        let (loss, gradients): (Tensor, Vec<Tensor>) = (mean(loss), gradients.into_iter().map(mean).collect());
        let norm = global_norm(&gradients);
        let healthy = finite.gt(&finite.zeros_like()).bitwise_and(&(&norm + &loss).is_finite());
        let coefficient = clip_coefficient(&norm, settings.clip);
        let rate = settings.schedule.tensor(t);
        let step = t + 1.0;
        let mut lists: [Vec<Tensor>; 3] = Default::default();
        for (i, p) in model.parameters().iter().enumerate() {
            let rate = &rate * p.multiplier.tensor(t, settings.anneal_steps);
            let moments = AdamState { m: m[i].clone(), v: v[i].clone() };
            let gradient = &gradients[i] * &coefficient;
            let (new, moments) = settings.optimizer.update(&weights[i], &gradient, &moments, &step, &rate, p.decay);
            let kept = [(new, &weights[i]), (moments.m, &m[i]), (moments.v, &v[i])];
            for (list, (new, old)) in lists.iter_mut().zip(kept) {
                list.push(healthy.select(&new, old));
            }
        }
        let t = healthy.select(&step, t);
        let state = [lists.concat(), vec![t, healthy.convert(DType::F32)]].concat();
        Updated { state, loss, grad_norm: norm }
    })
}

/// Mean loss over all tokens.
pub(super) fn mean_loss(
    model: &LanguageModel,
    settings: &StepSettings,
    params: &Params,
    tokens: &Tensor,
) -> Result<Tensor> {
    let effective = name_scope("weights", || model.effective(params));
    let of_micro_batch = |tokens: &Tensor| Ok(vec![model.transformer.loss(&effective, tokens, settings.activations())]);
    Ok(micro_batch_means(settings, tokens, &[], of_micro_batch)?.swap_remove(0))
}

/// Mean loss over all tokens, and its gradient by each parameter.
pub(super) fn loss_and_gradients(
    model: &LanguageModel,
    settings: &StepSettings,
    params: &Params,
    wrt: &[Tensor],
    tokens: &Tensor,
) -> Result<(Tensor, Vec<Tensor>)> {
    let effective = name_scope("weights", || model.effective(params));
    let weights: Vec<Tensor> = effective.values().cloned().collect();
    let of_micro_batch = |tokens: &Tensor| -> Result<Vec<Tensor>> {
        let loss = model.transformer.loss(&effective, tokens, settings.activations());
        let gradients = grad(&loss, &weights)?;
        Ok([vec![loss], gradients].concat())
    };
    let mut means = micro_batch_means(settings, tokens, &weights, of_micro_batch)?;
    let by_weight = means.split_off(1);
    let gradients = vjp(&weights, &by_weight, wrt)?;
    // A parameter that no path reaches keeps still.
    let gradients = gradients.into_iter().zip(wrt).map(|(g, p)| g.unwrap_or_else(|| p.zeros_like())).collect();
    Ok((means.swap_remove(0), gradients))
}

/// Means over the micro batches of a step of what `each` makes of one: a scalar, then tensors like `like`.
fn micro_batch_means(
    settings: &StepSettings,
    tokens: &Tensor,
    like: &[Tensor],
    each: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    if settings.accumulation == 1 {
        return each(&tokens.index_in_dim(0, 0));
    }
    let zero = Tensor::full(DType::F32, &[], 0.0);
    let zeros: Vec<Tensor> = std::iter::once(zero).chain(like.iter().map(Tensor::zeros_like)).collect();
    let mut failed = None;
    let (sums, _) = scan(&zeros, &[tokens.clone()], None, false, |sums, slices| {
        let parts = each(&slices[0]).unwrap_or_else(|error| {
            failed = Some(error);
            zeros.clone()
        });
        (sums.iter().zip(parts).map(|(sum, part)| sum + part).collect(), vec![])
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(sums.into_iter().map(|s| s / settings.accumulation as f64).collect()),
    }
}

/// Mean loss of the transformer on `tokens` `i32[batch, sequence + 1]`, the last argument; the others are the effective
/// weights, by name in alphabetical order.
pub fn loss_program(transformer: &Transformer, batch: usize, sequence: usize, bf16: bool) -> Result<Program> {
    let names = effective_signature(transformer);
    let weights = parameter_inputs(&names, "");
    let tokens = Tensor::parameter("tokens", Shape::new(DType::I32, &[batch, sequence + 1]));
    let loss = transformer.loss(&named(&names, &weights), &tokens, activation_type(bf16));
    Ok(Program::new("loss", &[weights, vec![tokens]].concat(), &[("loss", loss)])?)
}

/// The effective weights, by name in alphabetical order, from the parameters in the order of
/// [`LanguageModel::parameters`].
pub fn effective_program(model: &LanguageModel) -> Result<Program> {
    let names = signature(model);
    let weights = parameter_inputs(&names, "");
    let effective = model.effective(&named(&names, &weights));
    let outputs: Vec<(&str, Tensor)> = effective.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    Ok(Program::new("effective_weights", &weights, &outputs)?)
}

/// What the parameterisation tracks ([`LanguageModel::tracked`]), from the parameters; None when it tracks nothing.
pub fn tracked_program(model: &LanguageModel) -> Result<Option<Program>> {
    let names = signature(model);
    let weights = parameter_inputs(&names, "");
    let tracked = model.tracked(&named(&names, &weights));
    if tracked.is_empty() {
        return Ok(None);
    }
    let outputs: Vec<(&str, Tensor)> = tracked.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    Ok(Some(Program::new("tracked", &weights, &outputs)?))
}

/// Names and dimensions of the effective weights, stacked, in alphabetical order.
pub(super) fn effective_signature(transformer: &Transformer) -> Vec<(String, Vec<usize>)> {
    let stacked = |w: &Weight| (w.name.clone(), transformer.full_dims(w));
    let mut all: Vec<_> = transformer.weights().iter().map(stacked).collect();
    all.sort();
    all
}
