//! The full-batch regression step of the SIREN experiments as one donated program.
//!
//! [`regression_step`] is the plain step. [`training_step`] is the one that long runs use: it gathers its losses on the
//! device, takes its hyperparameters as arguments, stops by itself where a number is no longer finite, and can train
//! several runs at once.

use crate::array::DType;
use crate::error::Result;
use crate::graph::{Program, Shape, Tensor, scan};
use crate::nn::siren::{Params, Siren};
use crate::optim::{Adam, AdamState};
use crate::transform::{fast_sine, grad, vmap};
use hlograd::error::Result as Traced;

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
    /// Samples per block of the loss and its gradient, which are then summed over blocks by a loop: less memory, and
    /// another order of summation. None takes all samples at once.
    pub block: Option<usize>,
}

impl Default for StepOptions {
    /// Adam's defaults in f32, XLA's own sine, omegas given, all samples at once.
    fn default() -> Self {
        StepOptions { adam: Adam::default(), dtype: DType::F32, fast_sine: false, omegas: true, block: None }
    }
}

/// One Adam step on the mean squared error over all samples and channels (2609.30633, Appendix C).
///
/// Arguments: the parameters in [`Siren::parameters`]' order, their first moments `m.NAME`, their second moments
/// `v.NAME`, the step number `t` (0 before the first), all donated; then `x` `(samples, N_in)`, `y` `(samples, N_out)`,
/// `learning_rate`, and `omega0`, `omega_h` and `pe` where the network has them. Results: the new state in the same
/// order, then `loss`, the error before the update.
pub fn regression_step(siren: &Siren, samples: usize, options: &StepOptions) -> Result<Program> {
    let a = Arguments::new(siren, samples, options, None);
    let rates = Rates { all: &a.learning_rate, matrices: &a.learning_rate, eps: None };
    let (mut results, loss) = update(siren, options, &a, &rates)?;
    results.push(loss);
    let fixed = [vec![a.x.clone(), a.y.clone(), a.learning_rate.clone()], a.constants.clone()].concat();
    donated("regression_step", a.state(), fixed, results, &["loss"], options)
}

/// [`regression_step`] for long runs of one or several (`runs`) networks on the same samples.
///
/// The state, all donated, is that of [`regression_step`] followed by `losses`, `[history]`: the loss of step t is
/// written to its entry t mod `history`. After the state come `x`, `y`, `learning_rate`, `matrix_learning_rate` (for
/// `W.1` .. `W.{L+1}`, the hidden and output matrices, which muP scales apart), Adam's `eps` (0 allowed), and `omega0`,
/// `omega_h`, `pe` where the network has them. The results are the new state.
///
/// A step whose loss or new second moments are not finite leaves the state as it was, but for its loss: t stays, and so
/// do all later steps. (A gradient that is not finite, or whose square is not, shows in the second moments.)
///
/// With `runs`, every argument but `x` and `y` has one more dimension in front, one entry per run, and each run takes
/// the same steps that it would take alone.
pub fn training_step(
    siren: &Siren,
    samples: usize,
    runs: Option<usize>,
    history: usize,
    options: &StepOptions,
) -> Result<Program> {
    let one = |a: &Arguments| -> Traced<Vec<Tensor>> {
        let [matrix_rate, eps, losses] = [&a.hyper[0], &a.hyper[1], &a.hyper[2]];
        let rates = Rates { all: &a.learning_rate, matrices: matrix_rate, eps: Some(eps) };
        let (state, loss) = update(siren, options, a, &rates)?;
        let second = 2 * a.weights.len();
        let sums = state[second..3 * a.weights.len()].iter().fold(loss.clone(), |sum, v| sum + v.sum_all());
        let finite = sums.is_finite();
        let keep = |(new, old): (&Tensor, &Tensor)| finite.select(new, old);
        let mut results: Vec<Tensor> = state.iter().zip(&a.state()).map(keep).collect();
        let t = a.t.convert(DType::I32);
        let place = &t % t.full_like(history as f64);
        results.push(losses.dynamic_update_slice(&loss.expand_dims(0), &[place]));
        Ok(results)
    };
    let Some(runs) = runs else {
        let a = Arguments::new(siren, samples, options, Some(history));
        let results = one(&a)?;
        return donated("training_step", a.training_state(), a.fixed(), results, &[], options);
    };
    // The same arguments with a dimension in front, but for the samples.
    let single = Arguments::new(siren, samples, options, Some(history));
    let (x, y) = (single.x.clone(), single.y.clone());
    let batched = |t: &Tensor| {
        let dims = [&[runs], t.dims()].concat();
        if t.key() == x.key() || t.key() == y.key() {
            t.clone()
        } else {
            Tensor::parameter(t.name(), t.shape().with_dims(&dims))
        }
    };
    let (state, fixed) = (single.training_state(), single.fixed());
    let all: Vec<Tensor> = state.iter().chain(&fixed).map(batched).collect();
    let shared = |t: &Tensor| t.key() == x.key() || t.key() == y.key();
    let varied: Vec<Tensor> = all.iter().filter(|t| !shared(t)).cloned().collect();
    let axes = vec![Some(0); varied.len()];
    let results = vmap(&varied, &axes, |examples| one(&single.with(examples)))?;
    donated("training_step", all[..state.len()].to_vec(), all[state.len()..].to_vec(), results, &[], options)
}

/// The inputs of a step.
#[derive(Clone)]
struct Arguments {
    weights: Vec<Tensor>,
    m: Vec<Tensor>,
    v: Vec<Tensor>,
    t: Tensor,
    x: Tensor,
    y: Tensor,
    learning_rate: Tensor,
    /// `matrix_learning_rate`, `eps`, `losses`; empty for the plain step.
    hyper: Vec<Tensor>,
    /// `omega0`, `omega_h`, `pe`, as far as the network has them.
    constants: Vec<Tensor>,
}

impl Arguments {
    fn new(siren: &Siren, samples: usize, options: &StepOptions, history: Option<usize>) -> Self {
        let input = |name: &str, dims: &[usize]| Tensor::parameter(name, Shape::new(options.dtype, dims));
        let named = |prefix: &str| -> Vec<Tensor> {
            siren.parameters().iter().map(|(name, dims)| input(&format!("{prefix}{name}"), dims)).collect()
        };
        let hyper = history.map(|n| vec![input("matrix_learning_rate", &[]), input("eps", &[]), input("losses", &[n])]);
        let mut constants = Vec::new();
        if options.omegas {
            constants.extend([input("omega0", &[]), input("omega_h", &[])]);
        }
        if siren.encoding > 0 {
            constants.push(input("pe", &[siren.encoding, siren.inputs]));
        }
        Arguments {
            weights: named(""),
            m: named("m."),
            v: named("v."),
            t: input("t", &[]),
            x: input("x", &[samples, siren.inputs]),
            y: input("y", &[samples, siren.outputs]),
            learning_rate: input("learning_rate", &[]),
            hyper: hyper.unwrap_or_default(),
            constants,
        }
    }

    fn state(&self) -> Vec<Tensor> {
        [&self.weights[..], &self.m, &self.v, &[self.t.clone()]].concat()
    }

    fn training_state(&self) -> Vec<Tensor> {
        [self.state(), self.hyper[2..].to_vec()].concat()
    }

    fn fixed(&self) -> Vec<Tensor> {
        let first = vec![self.x.clone(), self.y.clone(), self.learning_rate.clone()];
        [first, self.hyper[..2].to_vec(), self.constants.clone()].concat()
    }

    /// The same with other tensors for all but the samples: those of `training_state`, then of `fixed`.
    fn with(&self, tensors: &[Tensor]) -> Self {
        let n = self.weights.len();
        let mut rest = tensors.iter().cloned();
        let mut take = |n: usize| -> Vec<Tensor> { rest.by_ref().take(n).collect() };
        let (weights, m, v) = (take(n), take(n), take(n));
        let scalars = take(5);
        let [t, losses, learning_rate, matrix_rate, eps] = &scalars[..] else { unreachable!("as many as in `fixed`") };
        Arguments {
            weights,
            m,
            v,
            t: t.clone(),
            x: self.x.clone(),
            y: self.y.clone(),
            learning_rate: learning_rate.clone(),
            hyper: vec![matrix_rate.clone(), eps.clone(), losses.clone()],
            constants: take(self.constants.len()),
        }
    }
}

/// Learning rates, and epsilon where it is a tensor.
struct Rates<'a> {
    all: &'a Tensor,
    matrices: &'a Tensor,
    eps: Option<&'a Tensor>,
}

/// The new weights, moments and step number, and the loss before the update.
fn update(siren: &Siren, options: &StepOptions, a: &Arguments, rates: &Rates) -> Traced<(Vec<Tensor>, Tensor)> {
    let names: Vec<String> = siren.parameters().into_iter().map(|(name, _)| name).collect();
    let (loss, gradients) = loss_and_gradients(siren, options, a, &names)?;
    let step = &a.t + 1.0;
    let mut state: [Vec<Tensor>; 3] = Default::default();
    for (i, gradient) in gradients.iter().enumerate() {
        let moments = AdamState { m: a.m[i].clone(), v: a.v[i].clone() };
        let rate = if names[i].starts_with("W.") && names[i] != "W.0" { rates.matrices } else { rates.all };
        let (weight, moments) = match rates.eps {
            Some(eps) => options.adam.update_with_eps(&a.weights[i], gradient, &moments, &step, rate, eps),
            None => options.adam.update(&a.weights[i], gradient, &moments, &step, rate),
        };
        for (list, tensor) in state.iter_mut().zip([weight, moments.m, moments.v]) {
            list.push(tensor);
        }
    }
    Ok(([state.concat(), vec![step]].concat(), loss))
}

/// The mean squared error over all samples and channels, and its gradient by each weight.
fn loss_and_gradients(
    siren: &Siren,
    options: &StepOptions,
    a: &Arguments,
    names: &[String],
) -> Traced<(Tensor, Vec<Tensor>)> {
    let (samples, count) = (a.x.dims()[0], a.y.size() as f64);
    let params = |weights: &[Tensor]| -> Params {
        let constants = a.constants.iter().zip(constant_names(siren, options));
        let weights = names.iter().cloned().zip(weights.iter().cloned());
        weights.chain(constants.map(|(t, name)| (name.to_string(), t.clone()))).collect()
    };
    let squares = |weights: &[Tensor], x: &Tensor, y: &Tensor| (siren.apply(&params(weights), x) - y).square();
    let Some(block) = options.block.filter(|b| *b < samples) else {
        let loss = squares(&a.weights, &a.x, &a.y).mean_all();
        let gradients = grad(&loss, &a.weights)?;
        return Ok((loss, gradients));
    };
    let of_block = |x: &Tensor, y: &Tensor| -> Traced<Vec<Tensor>> {
        let loss = squares(&a.weights, x, y).sum_all() / count;
        Ok([vec![loss.clone()], grad(&loss, &a.weights)?].concat())
    };
    let (blocks, whole) = (samples / block, samples / block * block);
    let rows = |t: &Tensor| t.slice_in_dim(0, 0, whole).reshape(&[blocks, block, t.dims()[1]]);
    let zeros: Vec<Tensor> =
        [vec![Tensor::full(options.dtype, &[], 0.0)], a.weights.iter().map(Tensor::zeros_like).collect()].concat();
    let mut failed = None;
    let (mut sums, _) = scan(&zeros, &[rows(&a.x), rows(&a.y)], None, false, |sums, slices| {
        let parts = of_block(&slices[0], &slices[1]).unwrap_or_else(|e| {
            failed = Some(e);
            zeros.clone()
        });
        (sums.iter().zip(parts).map(|(sum, part)| sum + part).collect(), vec![])
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if whole < samples {
        let rest = |t: &Tensor| t.slice_in_dim(0, whole, samples);
        let parts = of_block(&rest(&a.x), &rest(&a.y))?;
        sums = sums.iter().zip(parts).map(|(sum, part)| sum + part).collect();
    }
    let gradients = sums.split_off(1);
    Ok((sums[0].clone(), gradients))
}

fn constant_names(siren: &Siren, options: &StepOptions) -> Vec<&'static str> {
    let omegas: &[&'static str] = if options.omegas { &["omega0", "omega_h"] } else { &[] };
    let encoding: &[&'static str] = if siren.encoding > 0 { &["pe"] } else { &[] };
    [omegas, encoding].concat()
}

/// The program from `state` and `fixed` to `results`, of which the first take over the state's memory and name.
fn donated(
    name: &str,
    state: Vec<Tensor>,
    fixed: Vec<Tensor>,
    results: Vec<Tensor>,
    further: &[&str],
    options: &StepOptions,
) -> Result<Program> {
    let results = if options.fast_sine { fast_sine(&results) } else { results };
    let names: Vec<&str> = state.iter().map(Tensor::name).chain(further.iter().copied()).collect();
    let outputs: Vec<(&str, Tensor)> = names.into_iter().zip(results).collect();
    let aliases: Vec<(usize, usize)> = (0..state.len()).map(|i| (i, i)).collect();
    Ok(Program::with_donation(name, &[state.clone(), fixed].concat(), &outputs, &aliases)?)
}
