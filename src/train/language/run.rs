//! Language runs in progress: the state on the device, batches from the data, losses read back in groups.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::checkpoint::Checkpoint;
use super::config::LanguageConfig;
use super::diagnosis::diagnose;
use super::metrics::{Metrics, Row};
use super::step::{effective_program, loss_program, step_program, tracked_program};
use crate::array::{Array, DType};
use crate::data::text::Dataset;
use crate::error::{Error, Result};
use crate::nn::language_model::{LanguageModel, Weights};
use crate::random::Key;
use crate::runtime::{DeviceGroup, ReplicatedBuffer, ReplicatedExecutable};

/// Steps between two reads of losses: a read waits for the device.
const PENDING: usize = 16;

/// The compiled programs of a configuration. Runs that differ in nothing but the seed share one.
///
/// ```no_run
/// use sinexp::{cli::stop_on_signal, files::ensure_writable_folder};
/// use sinexp::data::text::{Corpus, Tokenizer, default_cache, prepare};
/// use sinexp::nn::{sel::{Sel, beta_for_width}, transformer::Transformer};
/// use sinexp::optim::{AdamW, Schedule};
/// use sinexp::runtime::{DeviceGroup, DeviceOptions};
/// use sinexp::train::language::{LanguageConfig, LanguageTrainer, Projection, Saving, StepSettings, train};
/// let data = prepare(&Corpus::package()?, Tokenizer::Bytes, default_cache(), &mut |_, _| ())?;
/// let (batch, sequence, accumulation, steps) = (8, 128, 1, 2000);
/// let schedule = Schedule { peak: 1e-3, warmup: 100, total: steps, decay: Default::default() };
/// let (optimizer, clip, bf16, replicas) = (AdamW::default(), 1.0, false, 1);
/// let config = LanguageConfig {
///     transformer: Transformer::new(256, 128, 4),
///     projection: Projection::Sel(Sel::new(beta_for_width(128))),
///     start: Default::default(),
///     init: None,
///     step: StepSettings {
///         batch, sequence, accumulation, optimizer, clip, schedule, anneal_steps: steps, bf16, replicas
///     },
///     seed: 0,
///     corpus: data.corpus().to_owned(),
///     tokenizer: data.tokenizer().to_string(),
///     eval_every: 200,
///     eval_batches: 10,
/// };
/// let trainer = LanguageTrainer::new(&DeviceGroup::open("cpu", 1, &DeviceOptions::default())?, &config)?;
/// let mut run = trainer.start(&data, config.seed)?;
/// let folder = std::path::Path::new("runs/mine");
/// ensure_writable_folder(folder)?;
/// let stop = stop_on_signal()?; // Ctrl-C ends it with a checkpoint
/// train(&mut run, folder, Saving { every: 500, keep: 2 }, &stop, |run, _| println!("{}", run.steps()))?;
/// # Ok::<(), sinexp::error::Error>(())
/// ```
pub struct LanguageTrainer {
    config: LanguageConfig,
    model: LanguageModel,
    devices: DeviceGroup,
    step: ReplicatedExecutable,
    effective: ReplicatedExecutable,
    loss: ReplicatedExecutable,
    tracked: Option<ReplicatedExecutable>,
    compile_time: Duration,
}

/// A run in progress. Dropped without harm at any time.
pub struct LanguageRun<'a> {
    trainer: &'a LanguageTrainer,
    data: &'a Dataset,
    config: LanguageConfig,
    /// Parameters, moments, t, finite.
    state: Vec<ReplicatedBuffer>,
    steps: usize,
    /// Loss and gradient norm of steps not read yet.
    pending: Vec<Vec<ReplicatedBuffer>>,
    validation: Vec<ReplicatedBuffer>,
    metrics: Metrics,
    /// Tokens and time since the last speed that was noted.
    learnt: usize,
    busy: Duration,
}

impl LanguageTrainer {
    /// Compiles the programs of `config`.
    ///
    /// **Errors** as [`LanguageConfig::check`], and when XLA cannot compile them.
    pub fn new(devices: &DeviceGroup, config: &LanguageConfig) -> Result<Self> {
        config.check()?;
        if devices.replicas() != config.step.replicas {
            let reason = format!("the programs are for {} devices", config.step.replicas);
            return Err(Error::argument("replicas", devices.replicas(), reason));
        }
        let started = Instant::now();
        let model = config.model();
        let s = &config.step;
        let step = devices.compile(&step_program(&model, s)?)?;
        let effective = devices.compile(&effective_program(&model)?)?;
        let loss = devices.compile(&loss_program(&config.transformer, s.batch, s.sequence, s.bf16)?)?;
        let tracked = tracked_program(&model)?.map(|program| devices.compile(&program)).transpose()?;
        let compile_time = started.elapsed();
        Ok(LanguageTrainer {
            config: config.clone(),
            model,
            devices: devices.clone(),
            step,
            effective,
            loss,
            tracked,
            compile_time,
        })
    }

    /// Time that compiling took.
    pub fn compile_time(&self) -> Duration {
        self.compile_time
    }

    /// The model.
    pub fn model(&self) -> &LanguageModel {
        &self.model
    }

    /// A new run with this seed.
    ///
    /// **Errors** when the data are of another tokenizer, or the parameterisation cannot start.
    pub fn start<'a>(&'a self, data: &'a Dataset, seed: u64) -> Result<LanguageRun<'a>> {
        let parameters = self.model.initial(self.config.start, Key::new(seed).fold_in(0))?;
        self.start_from(data, seed, parameters)
    }

    /// A new run with this seed from these parameters, by name and stacked.
    ///
    /// **Errors** as [`LanguageTrainer::start`], and when a parameter is missing.
    pub fn start_from<'a>(&'a self, data: &'a Dataset, seed: u64, parameters: Weights) -> Result<LanguageRun<'a>> {
        let config = LanguageConfig { seed, ..self.config.clone() };
        let zeros: Weights =
            parameters.iter().map(|(n, p)| (n.clone(), Array::full(DType::F32, p.dims(), 0.0))).collect();
        let checkpoint = Checkpoint { step: 0, config, parameters, m: zeros.clone(), v: zeros };
        self.resume(data, checkpoint, Metrics::default())
    }

    /// Goes on from a checkpoint, with the metrics up to its step.
    ///
    /// **Errors** when the checkpoint is of another configuration (but for the seed), or the data of another tokenizer.
    pub fn resume<'a>(
        &'a self,
        data: &'a Dataset,
        checkpoint: Checkpoint,
        metrics: Metrics,
    ) -> Result<LanguageRun<'a>> {
        let Checkpoint { step, config, parameters, m, v } = checkpoint;
        if (LanguageConfig { seed: self.config.seed, ..config.clone() }) != self.config {
            return Err(Error::numeric("checkpoint", "is of a run with another configuration"));
        }
        if data.tokenizer().vocabulary() > config.transformer.vocabulary {
            let reason = format!("the model knows {}", config.transformer.vocabulary);
            return Err(Error::argument("tokenizer", data.tokenizer().id(), reason));
        }
        let missing = |name: &str| Error::tensor(name, "is missing from the checkpoint");
        let mut state = Vec::new();
        for (name, _) in self.step.inputs().take(self.step.outputs().count() - 2) {
            let of = |weights: &Weights, name: &str| -> Result<ReplicatedBuffer> {
                self.devices.put_all(weights.get(name).ok_or_else(|| missing(name))?)
            };
            state.push(match (name, name.strip_prefix("m."), name.strip_prefix("v.")) {
                ("t", ..) => self.devices.put_all(&Array::scalar(step as f32))?,
                ("finite", ..) => self.devices.put_all(&Array::scalar(1f32))?,
                (_, Some(name), _) => of(&m, name)?,
                (_, _, Some(name)) => of(&v, name)?,
                _ => of(&parameters, name)?,
            });
        }
        let s = &config.step;
        let validation = data.validation_batches(s.batch, s.sequence, config.eval_batches)?;
        let validation = validation.iter().map(|batch| self.devices.put_all(batch)).collect::<Result<Vec<_>>>()?;
        Ok(LanguageRun {
            trainer: self,
            data,
            config,
            state,
            steps: step,
            pending: Vec::new(),
            validation,
            metrics,
            learnt: 0,
            busy: Duration::ZERO,
        })
    }
}

impl LanguageRun<'_> {
    /// The run.
    pub fn config(&self) -> &LanguageConfig {
        &self.config
    }

    /// Steps taken.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// What was measured; the last few steps may be missing until [`LanguageRun::flush`].
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Tokens of step `step`, one array `i32[accumulation, batch, sequence + 1]` per device: a function of seed and step
    /// alone. Devices share the rows that one device with a larger batch would have.
    fn batch(&self, step: usize) -> Result<Vec<Array>> {
        let s = &self.config.step;
        let key = Key::new(self.config.seed).fold_in(1);
        let rows = self.data.batch(key, step as u64, s.replicas * s.accumulation * s.batch, s.sequence)?;
        let dims = [s.accumulation, s.batch, s.sequence + 1];
        let parts = rows.bytes().chunks(rows.bytes().len() / s.replicas);
        parts.map(|part| Ok(Array::from_bytes(DType::I32, &dims, part.to_vec())?)).collect()
    }

    /// Takes one step.
    ///
    /// **Errors** when a loss or gradient was not finite, naming step and parameter. It may be found some steps late; the
    /// state stays that before the step.
    pub fn step(&mut self) -> Result<()> {
        let started = Instant::now();
        let tokens = self.trainer.devices.put_each(&self.batch(self.steps)?)?;
        let arguments: Vec<&ReplicatedBuffer> = self.state.iter().chain([&tokens]).collect();
        let mut results = self.trainer.step.run(&arguments)?;
        self.pending.push(results.split_off(self.state.len()));
        self.state = results;
        self.steps += 1;
        self.learnt += self.config.step.tokens_per_step();
        let full = self.pending.len() >= PENDING;
        let outcome = if full { self.flush() } else { Ok(()) };
        self.busy += started.elapsed();
        outcome
    }

    /// Reads the losses of all steps taken.
    ///
    /// **Errors** as [`LanguageRun::step`].
    pub fn flush(&mut self) -> Result<()> {
        for pair in std::mem::take(&mut self.pending) {
            let read = |buffer: &ReplicatedBuffer| -> Result<f64> { Ok(buffer.to_host(0)?.to_f64_vec()[0]) };
            let (loss, grad_norm) = (read(&pair[0])?, read(&pair[1])?);
            let step = self.metrics.rows.last().map_or(0, |row| row.step);
            if !(loss.is_finite() && grad_norm.is_finite()) {
                return Err(self.stopped(&format!("at step {}", step + 1), step, &format!("loss {loss}"))?);
            }
            let learning_rate = self.config.step.schedule.at(step);
            self.metrics.rows.push(Row { step: step + 1, loss, grad_norm, learning_rate, ..Row::default() });
        }
        Ok(())
    }

    /// The error of a run that is not finite: what can be seen with the batch of step `step`, counted from 0.
    fn stopped(&self, when: &str, step: usize, loss: &str) -> Result<Error> {
        let tokens = self.batch(step)?;
        let t = self.trainer;
        let what = diagnose(&t.devices, &t.model, &self.config.step, &self.parameters(), &tokens)?;
        let advice = "try a smaller learning rate, beta or k, or a longer warm-up";
        Ok(Error::numeric("training", format!("stopped {when}: {what} ({loss}); {advice}")))
    }

    /// Measures the validation loss and what is tracked, and notes them and the speed in the last step's row.
    ///
    /// **Errors** as [`LanguageRun::flush`], and when the validation loss is not finite.
    pub fn evaluate(&mut self) -> Result<f64> {
        let started = Instant::now();
        self.flush()?;
        self.busy += started.elapsed();
        let eval_loss = self.validation_loss()?;
        self.check(eval_loss)?;
        let tracked = self.tracked()?;
        if self.metrics.rows.is_empty() {
            let (loss, grad_norm, learning_rate) = (f64::NAN, f64::NAN, f64::NAN);
            self.metrics.rows.push(Row { loss, grad_norm, learning_rate, ..Row::default() });
        }
        let seconds = self.busy.as_secs_f64();
        let speed = Some(self.learnt as f64 / seconds).filter(|_| self.learnt > 0 && seconds > 0.0);
        (self.learnt, self.busy) = (0, Duration::ZERO);
        if let Some(row) = self.metrics.rows.last_mut() {
            row.eval_loss = Some(eval_loss);
            row.tracked = tracked;
            row.tokens_per_second = speed;
        }
        Ok(eval_loss)
    }

    fn parameters(&self) -> Vec<&ReplicatedBuffer> {
        self.state[..self.trainer.model.parameters().len()].iter().collect()
    }

    /// Mean loss over the batches of the validation split, with folded weights.
    pub fn validation_loss(&self) -> Result<f64> {
        self.loss_over(&self.validation)
    }

    fn loss_over(&self, batches: &[ReplicatedBuffer]) -> Result<f64> {
        let weights = self.trainer.effective.run(&self.parameters())?;
        let mut sum = 0.0;
        for tokens in batches {
            let arguments: Vec<&ReplicatedBuffer> = weights.iter().chain([tokens]).collect();
            sum += self.trainer.loss.run(&arguments)?[0].to_host(0)?.to_f64_vec()[0];
        }
        Ok(sum / batches.len() as f64)
    }

    fn check(&self, validation_loss: f64) -> Result<()> {
        if validation_loss.is_finite() {
            return Ok(());
        }
        let (when, loss) = (format!("after step {}", self.steps), format!("validation loss {validation_loss}"));
        Err(self.stopped(&when, self.steps, &loss)?)
    }

    fn tracked(&self) -> Result<BTreeMap<String, f64>> {
        let Some(program) = &self.trainer.tracked else { return Ok(BTreeMap::new()) };
        let values = program.run(&self.parameters())?;
        let names = program.outputs().map(|(name, _)| name.to_owned());
        names.zip(&values).map(|(name, value)| Ok((name, value.to_host(0)?.to_f64_vec()[0]))).collect()
    }

    /// The state as it is now.
    ///
    /// **Errors** when the loss of a validation batch is not finite: a last step with finite gradients can leave weights
    /// that are not.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        self.check(self.loss_over(&self.validation[..1])?)?;
        let names: Vec<String> = self.trainer.model.parameters().into_iter().map(|p| p.name).collect();
        let n = names.len();
        let part = |from: usize| -> Result<Weights> {
            names.iter().zip(&self.state[from..from + n]).map(|(name, b)| Ok((name.clone(), b.to_host(0)?))).collect()
        };
        let (parameters, m, v) = (part(0)?, part(n)?, part(2 * n)?);
        Ok(Checkpoint { step: self.steps, config: self.config.clone(), parameters, m, v })
    }
}
