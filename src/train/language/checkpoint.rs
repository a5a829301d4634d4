//! Checkpoints of a language run: one safetensors file each, whole or not there.
//!
//! `RUN/checkpoints/step-00001000.safetensors` holds each block's parameters by name (`blocks.0.q.W.w`), their moments as
//! `optimizer.m.NAME` and `optimizer.v.NAME`, and in its metadata the step, the configuration and a sha256 over those and
//! all tensors. Batches depend on the seed and the step alone, so this is all that going on needs.
//!
//! ```
//! use sinexp::train::language::{Checkpoint, checkpoint};
//! # use sinexp::nn::transformer::Transformer;
//! # use sinexp::optim::{AdamW, Schedule};
//! # use sinexp::train::language::{LanguageConfig, Projection, StepSettings};
//! # let schedule = Schedule { peak: 0.01, warmup: 0, total: 10, decay: Default::default() };
//! # let (optimizer, clip, bf16, replicas) = (AdamW::default(), 1.0, false, 1);
//! # let (batch, sequence, accumulation, anneal_steps) = (1, 8, 1, 10);
//! # let config = LanguageConfig {
//! #     transformer: Transformer::new(16, 8, 2),
//! #     projection: Projection::Standard,
//! #     step: StepSettings { batch, sequence, accumulation, optimizer, clip, schedule, anneal_steps, bf16, replicas },
//! #     start: Default::default(), init: None, corpus: "book".into(), tokenizer: "bytes".into(),
//! #     seed: 0, eval_every: 5, eval_batches: 1,
//! # };
//! # let folder = tempfile::tempdir().unwrap();
//! # let run = folder.path();
//! let parameters = config.model().initial(config.start, sinexp::random::Key::new(0))?;
//! for step in [5, 10] {
//!     let (m, v) = (parameters.clone(), parameters.clone()); // the optimizer's moments, of the same names and shapes
//!     Checkpoint { step, config: config.clone(), parameters: parameters.clone(), m, v }.save(run, 1)?;
//! }
//! // Only the newest was to be kept, and it reads back bit by bit.
//! assert_eq!(checkpoint::list(run).iter().map(|(step, _)| *step).collect::<Vec<_>>(), [10]);
//! let newest = Checkpoint::newest(run)?;
//! assert_eq!((newest.parameters, newest.config), (parameters, config));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::config::LanguageConfig;
use crate::error::{Error, Result};
use crate::files;
use crate::interop::safetensors::{self, Tensors};
use crate::nn::language_model::Weights;

/// A state of training on the host.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Steps taken.
    pub step: usize,
    /// The run.
    pub config: LanguageConfig,
    /// Parameters, stacked.
    pub parameters: Weights,
    /// First moments, by parameter.
    pub m: Weights,
    /// Second moments.
    pub v: Weights,
}

/// Folder of a run's checkpoints.
pub fn folder(run: &Path) -> PathBuf {
    run.join("checkpoints")
}

/// The folder of the run that a checkpoint lies in; None where it lies elsewhere.
pub fn run_of(checkpoint: &Path) -> Option<&Path> {
    checkpoint.parent().filter(|folder| folder.ends_with("checkpoints"))?.parent()
}

/// A run's checkpoints, oldest first: step and path. None where the folder is missing.
pub fn list(run: &Path) -> Vec<(usize, PathBuf)> {
    let entries = std::fs::read_dir(folder(run)).into_iter().flatten().flatten().map(|e| e.path());
    let step = |path: &PathBuf| -> Option<usize> {
        path.file_name()?.to_str()?.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse().ok()
    };
    let mut all: Vec<(usize, PathBuf)> = entries.filter_map(|path| Some((step(&path)?, path))).collect();
    all.sort();
    all
}

impl Checkpoint {
    /// Writes it into the folder of `run` and then removes all but the last `keep` checkpoints, and those of later steps:
    /// they belong to what was left when the run went on from an earlier one. The path.
    ///
    /// **Errors** when it cannot be written (disk full); the checkpoints that were there stay.
    pub fn save(&self, run: &Path, keep: usize) -> Result<PathBuf> {
        let path = folder(run).join(format!("step-{:08}.safetensors", self.step));
        let model = self.config.model();
        let mut tensors = model.split(&self.parameters)?;
        for (prefix, moments) in [("optimizer.m.", &self.m), ("optimizer.v.", &self.v)] {
            tensors.extend(model.split(moments)?.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)));
        }
        let config = serde_json::to_string(&self.config).map_err(|e| Error::file(&path, e))?;
        let step = self.step.to_string();
        let sum = digest(&step, &config, &tensors);
        let fields = [("format", FORMAT.to_owned()), ("step", step), ("config", config), ("sha256", sum)];
        let metadata = fields.map(|(name, value)| (name.to_owned(), value)).into();
        files::ensure_writable_folder(folder(run))?;
        let kept = list(run);
        safetensors::write(&path, &Tensors { tensors, metadata }).map_err(|error| match (error, kept.last()) {
            (Error::File { path, reason }, Some((step, _))) => {
                Error::File { path, reason: format!("{reason}; the checkpoint of step {step} is still there") }
            }
            (error, _) => error,
        })?;
        let (all, later): (Vec<_>, Vec<_>) = list(run).into_iter().partition(|(step, _)| *step <= self.step);
        let old = &all[..all.len().saturating_sub(keep.max(1))];
        old.iter().chain(&later).try_for_each(|(_, path)| files::remove(path))?;
        Ok(path)
    }

    /// Reads one.
    ///
    /// **Errors** when it is not a checkpoint, or damaged: the message says how, and names the one before it.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_whole(path).map_err(|error| {
            let reason = match error {
                Error::File { reason, .. } => reason,
                other => other.to_string(),
            };
            let before = run_of(path).map_or(vec![], list).into_iter().rev().find(|(_, other)| other.as_path() < path);
            let offer = before.map(|(step, path)| format!("; go on from step {step} with --resume {}", path.display()));
            Error::file(path, format!("{reason}{}", offer.unwrap_or_default()))
        })
    }

    fn read_whole(path: &Path) -> Result<Self> {
        let file = safetensors::read(path)?;
        let field = |name: &str| {
            file.metadata
                .get(name)
                .ok_or_else(|| Error::file(path, format!("has no `{name}`: not a checkpoint of `sel train`")))
        };
        let format = field("format")?;
        if format != FORMAT {
            return Err(Error::file(path, format!("is of format `{format}`, this version reads `{FORMAT}`")));
        }
        if *field("sha256")? != digest(field("step")?, field("config")?, &file.tensors) {
            return Err(Error::file(path, "is damaged: it does not have the checksum it was saved with"));
        }
        let config: LanguageConfig = serde_json::from_str(field("config")?)
            .map_err(|e| Error::file(path, format!("its configuration cannot be read: {e}")))?;
        config.check().map_err(|e| Error::file(path, format!("its configuration makes no sense: {e}")))?;
        let step = field("step")?.parse().map_err(|e| Error::file(path, format!("its step cannot be read: {e}")))?;
        let model = config.model();
        let stacked = |prefix: &str| -> Result<Weights> {
            let one = |p: &crate::nn::language_model::Parameter| {
                let name = format!("{prefix}{}", p.name);
                Ok((p.name.clone(), model.stack(&name, &p.dims, &file.tensors)?))
            };
            model.parameters().iter().map(one).collect()
        };
        Ok(Checkpoint {
            step,
            parameters: stacked("")?,
            m: stacked("optimizer.m.")?,
            v: stacked("optimizer.v.")?,
            config,
        })
    }

    /// The newest checkpoint of a run.
    ///
    /// **Errors** as [`Checkpoint::read`], and when there is none.
    pub fn newest(run: &Path) -> Result<Self> {
        match list(run).last() {
            Some((_, path)) => Checkpoint::read(path),
            None => Err(Error::file(folder(run), "holds no checkpoint to go on from; begin without --resume")),
        }
    }
}

const FORMAT: &str = "sinexp language checkpoint 2";

/// Over step and configuration, and names, types, shapes and bytes of tensors in order of names.
fn digest(step: &str, config: &str, tensors: &Weights) -> String {
    let mut hash = Sha256::new_with_prefix(format!("{step}\n{config}\n"));
    for (name, value) in tensors {
        hash.update(format!("{name} {} {:?}\n", value.dtype().hlo_name(), value.dims()));
        hash.update(value.bytes());
    }
    files::hex(&hash.finalize())
}
