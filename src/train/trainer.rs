//! Training with the state on the device: thousands of steps, read back only for the losses.
//!
//! A [`Trainer`] is one compiled [`training_step`](super::training_step); a [`Training`] is one run, or several at once
//! over the same samples, each with its own weights and hyperparameters.

use std::collections::BTreeMap;
use std::path::Path;

use super::step::{StepOptions, training_step};
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::interop::safetensors::{self, Tensors};
use crate::nn::siren::Siren;
use crate::runtime::{Buffer, Device, Executable};

pub use crate::array::Weights;

/// Steps between two reads of the losses.
const HISTORY: usize = 64;

/// What a run can vary without another program.
#[derive(Clone, Debug)]
pub struct Start {
    /// Initial parameters, with `omega0`, `omega_h` and `pe` where the network has them; f32.
    pub weights: Weights,
    /// Learning rate of the input matrix and all biases.
    pub learning_rate: f64,
    /// Learning rate of the hidden and output matrices.
    pub matrix_learning_rate: f64,
    /// Adam's epsilon; 0 is allowed.
    pub eps: f64,
}

/// A compiled training program for networks of one shape and samples of one number.
pub struct Trainer {
    step: Executable,
    siren: Siren,
    runs: Option<usize>,
    device: Device,
}

/// Runs in progress. Dropped without harm at any time.
pub struct Training<'a> {
    trainer: &'a Trainer,
    /// The state, then what stays.
    buffers: Vec<Buffer>,
    state: usize,
    /// Steps taken.
    steps: usize,
    /// Losses before each update, per run.
    losses: Vec<Vec<f32>>,
    /// Where each run stopped by itself.
    stopped: Vec<Option<usize>>,
}

impl Trainer {
    /// Compiles the step for `samples` samples, and `runs` networks at once where given. On CPU the sine is
    /// [`fast_sine`](crate::transform::fast_sine)'s. `block` is [`StepOptions::block`].
    ///
    /// **Errors** when XLA cannot compile it.
    pub fn new(
        device: &Device,
        siren: &Siren,
        samples: usize,
        runs: Option<usize>,
        block: Option<usize>,
    ) -> Result<Self> {
        use crate::nn::siren::Activation;
        let options = StepOptions {
            fast_sine: device.is_cpu(),
            omegas: siren.activation == Activation::Sine,
            block,
            ..StepOptions::default()
        };
        let program = training_step(siren, samples, runs, HISTORY, &options)?;
        Ok(Trainer { step: device.compile(&program)?, siren: siren.clone(), runs, device: device.clone() })
    }

    /// Networks trained at once.
    pub fn runs(&self) -> usize {
        self.runs.unwrap_or(1)
    }

    /// Puts samples `x` `(samples, N_in)`, `y` `(samples, N_out)` and one start per run on the device.
    ///
    /// **Errors** when the number of starts is not [`Trainer::runs`], or a tensor is missing or of another shape.
    pub fn start(&self, x: &Array, y: &Array, starts: &[Start]) -> Result<Training<'_>> {
        if starts.len() != self.runs() {
            let reason = format!("{} starts for a program of {} runs", starts.len(), self.runs());
            return Err(Error::numeric("training", reason));
        }
        let mut buffers = Vec::new();
        for (name, shape) in self.step.inputs() {
            let value = match name {
                "x" => x.cast(DType::F32),
                "y" => y.cast(DType::F32),
                _ => self.stacked(starts.iter().map(|s| s.value(name, shape.dims.last().copied(), &self.siren)))?,
            };
            buffers.push(self.device.put(&value)?);
        }
        let state = self.step.outputs().count();
        Ok(Training {
            trainer: self,
            buffers,
            state,
            steps: 0,
            losses: vec![Vec::new(); self.runs()],
            stopped: vec![None; self.runs()],
        })
    }

    /// Continues from a checkpoint written by [`Training::save`] with the same samples, starts and `key`.
    ///
    /// **Errors** as [`Trainer::start`], and when the file is not a checkpoint of this training, saying why.
    pub fn resume(&self, x: &Array, y: &Array, starts: &[Start], path: &Path, key: &str) -> Result<Training<'_>> {
        let mut training = self.start(x, y, starts)?;
        let file = safetensors::read(path).map_err(|e| match e {
            Error::File { reason, .. } => Error::file(path, format!("{reason}; move it away to start anew")),
            other => other,
        })?;
        if file.metadata.get("training").map(String::as_str) != Some(key) {
            return Err(Error::file(path, "is a checkpoint of another training; move it away to start anew"));
        }
        let get = |name: &str| {
            let missing = || Error::file(path, format!("holds no tensor `{name}`: not a checkpoint of this training"));
            file.tensors.get(name).ok_or_else(missing)
        };
        let history = get("history")?;
        let &[runs, steps] = history.dims() else {
            return Err(Error::file(path, format!("its history has shape {:?}", history.dims())));
        };
        if runs != self.runs() {
            return Err(Error::file(path, format!("is of {runs} runs, expected {}", self.runs())));
        }
        let names: Vec<(String, Vec<usize>)> =
            self.step.inputs().take(training.state).map(|(n, s)| (n.to_owned(), s.dims.clone())).collect();
        for (i, (name, dims)) in names.iter().enumerate() {
            let value = get(&format!("state.{name}"))?;
            if value.dims() != dims || value.dtype() != DType::F32 {
                let reason = format!("`state.{name}` has shape {:?}, expected {dims:?} in f32", value.dims());
                return Err(Error::file(path, reason));
            }
            training.buffers[i] = self.device.put(value)?;
        }
        training.steps = steps;
        let flat: Vec<f32> = history.to_vec()?;
        training.losses = (0..runs).map(|r| flat[r * steps..(r + 1) * steps].to_vec()).collect();
        training.find_stopped()?;
        Ok(training)
    }

    /// One tensor from one per run, with a dimension in front where the program has several runs.
    fn stacked(&self, values: impl Iterator<Item = Result<Array>>) -> Result<Array> {
        let values = values.collect::<Result<Vec<Array>>>()?;
        let Some(runs) = self.runs else { return Ok(values[0].clone()) };
        let dims = [&[runs], values[0].dims()].concat();
        let bytes = values.iter().flat_map(|v| v.bytes().iter().copied()).collect::<Vec<u8>>();
        Ok(Array::from_bytes(DType::F32, &dims, bytes)?)
    }
}

impl Start {
    /// The argument `name` of the step program; `last` is its last dimension.
    fn value(&self, name: &str, last: Option<usize>, siren: &Siren) -> Result<Array> {
        let scalar = |v: f64| Ok(Array::scalar(v as f32));
        let of_weight = name.strip_prefix("m.").or_else(|| name.strip_prefix("v."));
        match name {
            "t" => scalar(0.0),
            "losses" => Ok(Array::full(DType::F32, &[last.unwrap_or(HISTORY)], 0.0)),
            "learning_rate" => scalar(self.learning_rate),
            "matrix_learning_rate" => scalar(self.matrix_learning_rate),
            "eps" => scalar(self.eps),
            _ => {
                let missing = || Error::tensor(of_weight.unwrap_or(name), "missing from the initial weights");
                let weight = self.weights.get(of_weight.unwrap_or(name)).ok_or_else(missing)?.cast(DType::F32);
                let declared = siren.parameters().into_iter().find(|(n, _)| n == of_weight.unwrap_or(name));
                if let Some((n, dims)) = declared.filter(|(_, dims)| dims != weight.dims()) {
                    return Err(Error::tensor(n, format!("shape {:?}, expected {dims:?}", weight.dims())));
                }
                Ok(if of_weight.is_some() { Array::full(DType::F32, weight.dims(), 0.0) } else { weight })
            }
        }
    }
}

impl Training<'_> {
    /// Steps taken so far.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Losses before each update, one list per run.
    pub fn losses(&self) -> &[Vec<f32>] {
        &self.losses
    }

    /// Takes `count` more steps and reads their losses.
    pub fn advance(&mut self, count: usize) -> Result<()> {
        let end = self.steps + count;
        while self.steps < end {
            // Up to the next full buffer of losses.
            let part = (HISTORY - self.steps % HISTORY).min(end - self.steps);
            for _ in 0..part {
                let results = self.trainer.step.run(&self.buffers.iter().collect::<Vec<_>>())?;
                self.buffers.splice(..self.state, results);
            }
            let read: Vec<f32> = self.buffers[self.state - 1].to_host()?.to_vec()?;
            let first = self.steps % HISTORY;
            for (losses, row) in self.losses.iter_mut().zip(read.chunks(HISTORY)) {
                losses.extend(&row[first..first + part]);
            }
            self.steps += part;
            self.find_stopped()?;
        }
        Ok(())
    }

    /// For each run, the first step (counted from 0) that it did not take because a number was no longer finite.
    ///
    /// Its weights are those at the start of that step, and its losses end with it: NaN from there on.
    pub fn stopped(&self) -> &[Option<usize>] {
        &self.stopped
    }

    /// A run that stopped has its t left behind.
    fn find_stopped(&mut self) -> Result<()> {
        let t: Vec<f32> = self.buffers[self.state - 2].to_host()?.to_vec()?;
        self.stopped = t.iter().map(|t| Some(*t as usize).filter(|t| *t < self.steps)).collect();
        for (losses, stopped) in self.losses.iter_mut().zip(&self.stopped) {
            if let Some(step) = *stopped {
                losses[step..].fill(f32::NAN);
            }
        }
        Ok(())
    }

    /// The weights of each run as they are now, with its `omega0`, `omega_h` and `pe`.
    pub fn weights(&self) -> Result<Vec<Weights>> {
        let mut all = vec![Weights::new(); self.trainer.runs()];
        let count = self.trainer.siren.parameters().len();
        for (i, (name, _)) in self.trainer.step.inputs().enumerate() {
            if i >= count && !matches!(name, "omega0" | "omega_h" | "pe") {
                continue;
            }
            let value = self.buffers[i].to_host()?;
            let dims = if self.trainer.runs.is_some() { &value.dims()[1..] } else { value.dims() };
            let size = value.bytes().len() / all.len();
            for (weights, bytes) in all.iter_mut().zip(value.bytes().chunks(size)) {
                weights.insert(name.to_owned(), Array::from_bytes(DType::F32, dims, bytes.to_vec())?);
            }
        }
        Ok(all)
    }

    /// Writes all that [`Trainer::resume`] needs into a safetensors file: the state as `state.NAME`, the losses as
    /// `history` `(runs, steps)`. `key` says which training it is. N steps are k steps, a checkpoint, and N - k steps,
    /// bit for bit on CPU.
    pub fn save(&self, path: &Path, key: &str) -> Result<()> {
        let mut tensors = Weights::new();
        for (buffer, (name, _)) in self.buffers.iter().zip(self.trainer.step.inputs()).take(self.state) {
            tensors.insert(format!("state.{name}"), buffer.to_host()?);
        }
        let flat = self.losses.concat();
        tensors.insert("history".into(), Array::from_slice(&[self.losses.len(), self.steps], &flat));
        let metadata = BTreeMap::from([("training".to_owned(), key.to_owned())]);
        safetensors::write(path, &Tensors { tensors, metadata })
    }
}
