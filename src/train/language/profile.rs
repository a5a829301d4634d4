//! Timing of a training step and of its parts, on buffers that stay on the device.

use std::time::Instant;

use super::LanguageConfig;
use super::parts::{forward_program, gradients_program, update_program};
use super::step::step_program;
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::random::Key;
use crate::runtime::{DeviceGroup, ReplicatedBuffer, ReplicatedExecutable};

/// What one round took, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartTimes {
    /// Effective weights and loss.
    pub forward: f64,
    /// The same with all gradients.
    pub forward_backward: f64,
    /// Clipping and AdamW on given gradients.
    pub optimizer: f64,
    /// The whole step as one program, as it is trained.
    pub step: f64,
}

impl PartTimes {
    /// (forward + backward) - forward.
    pub fn backward(&self) -> f64 {
        self.forward_backward - self.forward
    }

    /// forward + backward + optimizer.
    pub fn sum(&self) -> f64 {
        self.forward_backward + self.optimizer
    }
}

/// The programs of one configuration with their state on the device.
pub struct Profiler {
    forward: ReplicatedExecutable,
    gradients: ReplicatedExecutable,
    optimizer: ReplicatedExecutable,
    step: ReplicatedExecutable,
    /// Parameters, moments, t, finite: one set, which optimizer and step hand on to one another.
    state: Vec<ReplicatedBuffer>,
    parameters: usize,
    tokens: ReplicatedBuffer,
}

impl Profiler {
    /// Compiles the programs of `config`, and puts the state that its training starts from and one batch of random tokens
    /// on the device. Moments are 0.
    ///
    /// **Errors** as [`LanguageConfig::check`], when the parameterisation cannot start, and when XLA cannot compile the
    /// programs or has no room for them.
    pub fn new(devices: &DeviceGroup, config: &LanguageConfig) -> Result<Self> {
        config.check()?;
        let (model, settings) = (config.model(), &config.step);
        let forward = devices.compile(&forward_program(&model, settings)?)?;
        let gradients = devices.compile(&gradients_program(&model, settings)?)?;
        let optimizer = devices.compile(&update_program(&model, settings)?)?;
        let step = devices.compile(&step_program(&model, settings)?)?;
        let key = Key::new(config.seed);
        let mut start = model.initial(config.start, key.fold_in(0))?;
        let parameters = model.parameters();
        let mut state = Vec::new();
        for p in &parameters {
            // One at a time: the host need not hold what is on the device already.
            let value = start.remove(&p.name).ok_or_else(|| Error::tensor(&p.name, "has no start"))?;
            state.push(devices.put_all(&value)?);
        }
        for p in parameters.iter().chain(&parameters) {
            state.push(devices.put_all(&Array::full(DType::F32, &p.dims, 0.0))?);
        }
        state.push(devices.put_all(&Array::scalar(0f32))?);
        state.push(devices.put_all(&Array::scalar(1f32))?);
        let dims = [settings.accumulation, settings.batch, settings.sequence + 1];
        let tokens = key.fold_in(1).randint(&dims, 0, config.transformer.vocabulary as i32);
        let tokens = devices.put_all(&Array::from_ndarray(&tokens))?;
        Ok(Profiler { forward, gradients, optimizer, step, state, parameters: parameters.len(), tokens })
    }

    /// Runs the parts and the whole step once each, and waits for each: it reads one number back, and copies nothing else.
    /// The gradients are in memory while the optimizer runs, and not while the step does.
    pub fn round(&mut self) -> Result<PartTimes> {
        let with_tokens: Vec<&ReplicatedBuffer> = self.state[..self.parameters].iter().chain([&self.tokens]).collect();
        let (forward, _) = timed(&self.forward, &with_tokens, 0)?;
        let (forward_backward, gradients) = timed(&self.gradients, &with_tokens, 0)?;
        let arguments: Vec<&ReplicatedBuffer> = self.state.iter().chain(&gradients).collect();
        let (optimizer, mut results) = timed(&self.optimizer, &arguments, self.state.len())?;
        drop(gradients);
        results.truncate(self.state.len());
        self.state = results;
        let arguments: Vec<&ReplicatedBuffer> = self.state.iter().chain([&self.tokens]).collect();
        let (step, mut results) = timed(&self.step, &arguments, self.state.len())?;
        results.truncate(self.state.len());
        self.state = results;
        Ok(PartTimes { forward, forward_backward, optimizer, step })
    }

    /// Whether all steps taken were finite: those after one that is not change nothing, and say nothing about training.
    ///
    /// **Errors** when they were not.
    pub fn check(&self) -> Result<()> {
        let finite = self.state[self.state.len() - 1].to_host(0)?.to_f64_vec()[0];
        match finite > 0.0 {
            true => Ok(()),
            false => Err(Error::numeric("profile", "a timed step was not finite: try a smaller learning rate or beta")),
        }
    }
}

/// Milliseconds of a call, until its result `scalar` is known on every replica; and the results.
fn timed(
    program: &ReplicatedExecutable,
    arguments: &[&ReplicatedBuffer],
    scalar: usize,
) -> Result<(f64, Vec<ReplicatedBuffer>)> {
    let started = Instant::now();
    let results = program.run(arguments)?;
    // All results of a call are ready at once.
    for replica in 0..results[scalar].replicas() {
        results[scalar].to_host(replica)?;
    }
    Ok((started.elapsed().as_secs_f64() * 1e3, results))
}
