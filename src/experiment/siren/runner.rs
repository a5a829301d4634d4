//! Trains what is not done yet: batches of runs, with checkpoints, into a folder of results.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ndarray::Array2;

use super::config::RunConfig;
use super::field::Field;
use super::outcome::Outcome;
use crate::array::Array;
use crate::cli::Progress;
use crate::data::audio::{Encoding, write_wav};
use crate::data::image::write_png;
use crate::error::{Error, Result};
use crate::files::{ensure_writable_folder, remove};
use crate::interop::safetensors::{self, Tensors};
use crate::nn::siren::Siren;
use crate::runtime::Device;
use crate::train::sweep::{Batch, Shard, Store, batches, stable_hash};
use crate::train::{Evaluator, Start, Trainer, Weights, mean_squared_error, snr_db};

/// Points per block of a forward pass.
const EVALUATE: usize = 16_384;

/// Steps between two looks at the clock.
const STRIDE: usize = 64;

/// Most compiled programs kept of each kind: those of a sweep over pictures of many shapes would fill the memory.
const PROGRAMS: usize = 4;

/// What is kept of a run beside its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The fit as `HASH.train.png`, `HASH.eval.png` or `HASH.wav`.
    pub fit: bool,
    /// The final weights as `HASH.safetensors`.
    pub weights: bool,
}

/// Runs configurations on one device.
pub struct Runner {
    device: Device,
    store: Store,
    shard: Shard,
    batch: Batch,
    checkpoint_every: Duration,
    keep: Keep,
    // Compiled programs, by what they depend on.
    trainers: HashMap<String, Trainer>,
    evaluators: HashMap<String, Evaluator>,
}

impl Runner {
    /// Results go to `folder`, which is made if need be.
    ///
    /// **Errors** when it cannot be written.
    pub fn new(device: Device, folder: &Path, shard: Shard, batch: Batch, keep: Keep) -> Result<Self> {
        ensure_writable_folder(folder)?;
        Ok(Runner {
            device,
            store: Store::new(folder),
            shard,
            batch,
            checkpoint_every: Duration::from_secs(60),
            keep,
            trainers: HashMap::new(),
            evaluators: HashMap::new(),
        })
    }

    /// Writes a checkpoint this often (default: once a minute).
    pub fn checkpoint_every(mut self, time: Duration) -> Self {
        self.checkpoint_every = time;
        self
    }

    /// The results' folder.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The platform that belongs into a [`RunConfig`].
    pub fn platform(&self) -> String {
        self.device.platform().to_lowercase()
    }

    /// The device, for run records.
    pub fn device(&self) -> String {
        self.device.describe()
    }

    /// Trains this shard's part of `configs` as far as it is not done; equal configurations are trained once. `field`
    /// gives the field of a configuration.
    ///
    /// **Errors** when a field has no moments to match, or a file cannot be written. What is finished stays.
    pub fn run<'f>(
        &mut self,
        label: &str,
        configs: &[RunConfig],
        field: impl Fn(&RunConfig) -> Result<&'f Field>,
    ) -> Result<()> {
        let mut runs: Vec<(String, &RunConfig)> = Vec::new();
        for config in configs {
            let hash = stable_hash(config)?;
            if !runs.iter().any(|(h, _)| *h == hash) {
                runs.push((hash, config));
            }
        }
        let key = |config: &RunConfig| {
            let field = field(config)?;
            Ok(Key::of(config, &config.siren(field)?, field.train.y.nrows()))
        };
        let keys: Vec<Key> = runs.iter().map(|(_, config)| key(config)).collect::<Result<_>>()?;
        let most = |key: &Key| match self.batch {
            Batch::AtMost(n) => n,
            Batch::Auto => key.batch(),
        };
        let batches = batches(&keys, most);
        let costs: Vec<f64> = batches.iter().map(|b| keys[b[0]].cost() * b.len() as f64).collect();
        let mut todo: Vec<Job> = Vec::new();
        for (batch, mine) in batches.into_iter().zip(self.shard.share(&costs)) {
            let batch: Vec<&(String, &RunConfig)> = batch.into_iter().map(|r| &runs[r]).collect();
            // Read, so that a damaged result is found before hours of work.
            let mut open = Vec::new();
            for run in &batch {
                if self.store.get(&run.0)?.is_none() {
                    open.push(*run);
                }
            }
            if !mine {
                continue;
            }
            let job = self.job(batch, open)?;
            if job.runs.is_empty() {
                // It may have been killed just before this.
                remove(&job.checkpoint)?;
            } else {
                todo.push(job);
            }
        }
        let steps: usize = todo.iter().map(|job| job.runs[0].1.steps.div_ceil(STRIDE)).sum();
        if steps == 0 {
            return Ok(());
        }
        let mut progress = Progress::new(label, steps as u64);
        for job in todo {
            self.train(&job, field(job.runs[0].1)?, &mut progress)?;
        }
        Ok(())
    }

    /// The result of a run, None where it is not done.
    pub fn outcome(&self, config: &RunConfig) -> Result<Option<Outcome>> {
        self.store.get(&stable_hash(config)?)?.map(|row| Outcome::from_row(&row)).transpose()
    }

    /// The path of a file kept of a run: `train.png`, `eval.png`, `wav`, `safetensors`.
    pub fn kept(&self, config: &RunConfig, suffix: &str) -> Result<PathBuf> {
        Ok(self.store.path(&stable_hash(config)?, suffix))
    }

    /// What is left of a batch. One that was cut off goes on as it was, though some of its rows may be written.
    fn job<'c>(
        &self,
        batch: Vec<&'c (String, &'c RunConfig)>,
        open: Vec<&'c (String, &'c RunConfig)>,
    ) -> Result<Job<'c>> {
        let list = |runs: &[&(String, &RunConfig)]| runs.iter().map(|(hash, _)| hash.clone()).collect::<Vec<_>>();
        let hashes = list(&batch);
        let name = if let [hash] = &hashes[..] { hash.clone() } else { stable_hash(&hashes)? };
        let checkpoint = self.store.path(&name, "checkpoint.safetensors");
        let whole = format!("{name}.checkpoint.safetensors");
        let runs = match checkpoint.is_file() && !open.is_empty() {
            false => open,
            true => {
                let key = safetensors::Reader::open(&checkpoint)?.metadata.remove("training").unwrap_or_default();
                let part: Option<Vec<_>> = key.strip_prefix(&whole).and_then(|k| k.strip_prefix(" of ")).map(|part| {
                    let part: Vec<&str> = part.split(' ').collect();
                    batch.iter().copied().filter(|(hash, _)| part.contains(&hash.as_str())).collect()
                });
                part.unwrap_or_else(|| batch.clone())
            }
        };
        let key = if runs.len() == batch.len() { whole } else { format!("{whole} of {}", list(&runs).join(" ")) };
        Ok(Job { runs, checkpoint, key })
    }

    fn train(&mut self, job: &Job, field: &Field, progress: &mut Progress) -> Result<()> {
        let Job { runs: batch, checkpoint: path, key } = job;
        let config = batch[0].1;
        let siren = config.siren(field)?;
        let starts: Vec<Start> = batch.iter().map(|(_, c)| c.start(field)).collect::<Result<_>>()?;
        let runs = (batch.len() > 1).then_some(batch.len());
        let samples = field.train.y.nrows();
        let program = format!("{siren:?} {samples} {runs:?} {:?}", config.block);
        if !self.trainers.contains_key(&program) {
            if self.trainers.len() == PROGRAMS {
                self.trainers.clear();
            }
            let trainer = Trainer::new(&self.device, &siren, samples, runs, config.block)?;
            self.trainers.insert(program.clone(), trainer);
        }
        let y = Array::from_ndarray(&field.train.y);
        let trainer = &self.trainers[&program];
        let mut training = match path.is_file() {
            true => trainer.resume(&field.train.x, &y, &starts, path, key)?,
            false => trainer.start(&field.train.x, &y, &starts)?,
        };
        let (begun, mut saved) = (Instant::now(), Instant::now());
        let mut shown = 0;
        while training.steps() < config.steps {
            let next = (training.steps() / STRIDE + 1) * STRIDE;
            training.advance(next.min(config.steps) - training.steps())?;
            while shown < training.steps().div_ceil(STRIDE) {
                shown += 1;
                progress.step(&format!("{}, step {}/{}", describe(batch), training.steps(), config.steps));
            }
            let finished = training.steps() == config.steps;
            if saved.elapsed() >= self.checkpoint_every || (finished && batch.len() > 1) {
                training.save(path, key)?;
                saved = Instant::now();
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let weights = training.weights()?;
        let (losses, stopped) = (training.losses().to_vec(), training.stopped().to_vec());
        drop(training);
        for (i, (hash, config)) in batch.iter().enumerate() {
            let outcome =
                self.finish(hash, config, field, &siren, &weights[i], (losses[i].clone(), stopped[i], seconds))?;
            let outcome = Outcome { batch: batch.len(), ..outcome };
            self.store.put(hash, &outcome.row(config, hash, &self.device())?)?;
        }
        remove(path)
    }

    /// Measures a trained network and writes what is kept of it.
    fn finish(
        &mut self,
        hash: &str,
        config: &RunConfig,
        field: &Field,
        siren: &Siren,
        weights: &Weights,
        (losses, stopped, seconds): (Vec<f32>, Option<usize>, f64),
    ) -> Result<Outcome> {
        let train = self.predict(siren, weights, &field.train.x)?;
        let eval = match field.rate {
            None => self.predict(siren, weights, &field.eval().x)?,
            Some(_) => train.clone(),
        };
        let eval_mse = mean_squared_error(&eval, &field.eval().y);
        if self.keep.fit {
            match field.rate {
                Some(rate) => write_wav(
                    self.store.path(hash, "wav"),
                    &eval
                        .iter()
                        .map(|v| f64::from(*v))
                        .map(|v| if v.is_finite() { v } else { 0.0 })
                        .collect::<Vec<_>>(),
                    rate,
                    Encoding::Float32,
                )?,
                None => {
                    let write = |suffix: &str, values: &Array2<f32>, shape: &[usize]| {
                        write_png(self.store.path(hash, suffix), field.pixels(values, shape)?.view())
                    };
                    write("train.png", &train, &field.train.shape)?;
                    write("eval.png", &eval, &field.eval().shape)?;
                }
            }
        }
        if self.keep.weights {
            let json = serde_json::to_string(config).map_err(|e| Error::numeric("configuration", e))?;
            let content = Tensors { tensors: weights.clone(), metadata: [("config".to_owned(), json)].into() };
            safetensors::write(self.store.path(hash, "safetensors"), &content)?;
        }
        Ok(Outcome {
            train_mse: mean_squared_error(&train, &field.train.y),
            eval_mse,
            snr_db: snr_db(&field.eval().y, eval_mse),
            stopped,
            losses,
            seconds,
            batch: 1,
        })
    }

    fn predict(&mut self, siren: &Siren, weights: &Weights, x: &Array) -> Result<Array2<f32>> {
        let block = EVALUATE.min(x.dims()[0]);
        let key = format!("{siren:?} {block}");
        if !self.evaluators.contains_key(&key) {
            if self.evaluators.len() == PROGRAMS {
                self.evaluators.clear();
            }
            self.evaluators.insert(key.clone(), Evaluator::new(&self.device, siren, block)?);
        }
        self.evaluators[&key].predict(weights, x)
    }
}

/// Runs that are trained together now.
struct Job<'c> {
    /// With their hashes.
    runs: Vec<&'c (String, &'c RunConfig)>,
    /// Named after the whole batch, of which they may be what other calls left.
    checkpoint: PathBuf,
    /// What the checkpoint says it is of.
    key: String,
}

fn describe(batch: &[&(String, &RunConfig)]) -> String {
    match batch {
        [(_, one)] => one.describe(),
        _ => format!("{} and {} more", batch[0].1.describe(), batch.len() - 1),
    }
}

/// Runs that can train together: the same samples, network and number of steps.
#[derive(PartialEq)]
struct Key {
    field: super::field::FieldId,
    siren: Siren,
    steps: usize,
    block: Option<usize>,
    samples: usize,
}

impl Key {
    fn of(config: &RunConfig, siren: &Siren, samples: usize) -> Self {
        let field = config.field.clone();
        Key { field, siren: siren.clone(), steps: config.steps, block: config.block, samples }
    }

    /// Multiplications of a run, in some unit.
    fn cost(&self) -> f64 {
        let network =
            self.siren.width * (self.siren.width * self.siren.hidden + self.siren.inputs + self.siren.outputs);
        self.steps as f64 * self.samples as f64 * network as f64
    }

    /// Runs at once, for `--batch auto`: many where one alone is too small to keep two cores busy. Measured at L 11, 21
    /// runs together against one after another: 0.5 to 0.75 of the time up to 65,536 values in a layer (256 or 1024
    /// samples x 16, 4096 x 16, 1024 x 64), the same or longer above (2304 x 64, 1024 x 128, 16,384 x 16).
    fn batch(&self) -> usize {
        if self.samples * self.siren.width <= 65_536 { 21 } else { 1 }
    }
}
