//! The runs of a grid: which are done, training those that are not, and what came out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::json;

use crate::cli::{Progress, RunRecord, say, stop_on_signal};
use crate::data::text::Dataset;
use crate::error::{Error, Result};
use crate::files::ensure_writable_folder;
use crate::runtime::DeviceGroup;
use crate::train::language::{
    Checkpoint, LanguageConfig, LanguageTrainer, Metrics, Outcome, Projection, Saving, checkpoint, train,
};
use crate::train::sweep::{Shard, stable_hash};

/// A folder of runs, one subfolder each, named by the hash of its configuration. Any number of experiments share one.
pub struct LanguageRuns {
    devices: DeviceGroup,
    folder: PathBuf,
    shard: Shard,
    saving: Saving,
    stop: Arc<AtomicBool>,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct LanguageOutcome {
    /// Everything measured.
    pub metrics: Metrics,
    /// Why it ended early, where a number was not finite.
    pub stopped: Option<String>,
}

impl LanguageOutcome {
    /// Validation loss at the end; infinite where the run ended early.
    pub fn final_loss(&self) -> f64 {
        if self.stopped.is_some() { f64::INFINITY } else { self.metrics.final_eval_loss().unwrap_or(f64::NAN) }
    }

    /// Seconds that the updates of the run took, evaluations and compiling not counted.
    pub fn training_seconds(&self, tokens_per_step: usize) -> f64 {
        let mut before = 0;
        let mut seconds = 0.0;
        for row in &self.metrics.rows {
            if let Some(speed) = row.tokens_per_second {
                seconds += ((row.step - before) * tokens_per_step) as f64 / speed;
                before = row.step;
            }
        }
        seconds
    }
}

impl LanguageRuns {
    /// Runs on `devices` in `folder`, made if need be. Ctrl-C ends them in order.
    ///
    /// **Errors** when the folder cannot be written.
    pub fn new(devices: DeviceGroup, folder: impl Into<PathBuf>, shard: Shard, saving: Saving) -> Result<Self> {
        let folder = folder.into();
        ensure_writable_folder(&folder)?;
        Ok(LanguageRuns { devices, folder, shard, saving, stop: stop_on_signal()? })
    }

    /// Where they compute.
    pub fn devices(&self) -> &DeviceGroup {
        &self.devices
    }

    /// The folder of one run.
    pub fn run_folder(&self, config: &LanguageConfig) -> Result<PathBuf> {
        Ok(self.folder.join(stable_hash(&(config, self.devices.device().platform()))?))
    }

    /// Trains the runs that are not done, as far as they belong to this shard. One that was cut off goes on from its
    /// newest checkpoint.
    ///
    /// **Errors** when it is asked to stop (what was trained is kept), and when a file cannot be written or read.
    pub fn run(&self, configs: &[LanguageConfig], data: &Dataset) -> Result<()> {
        let cost = |c: &LanguageConfig| {
            c.transformer.flops_per_token(c.step.sequence) * (c.step.tokens_per_step() * c.steps()) as f64
        };
        let mine = self.shard.share(&configs.iter().map(cost).collect::<Vec<_>>());
        let mut open = Vec::new();
        for (config, mine) in configs.iter().zip(mine) {
            if mine && self.outcome(config)?.is_none() {
                open.push(config);
            }
        }
        // Runs that differ in the seed alone share their programs.
        let mut trainer: Option<(LanguageConfig, LanguageTrainer)> = None;
        for (i, config) in open.iter().enumerate() {
            let seedless = LanguageConfig { seed: 0, ..(*config).clone() };
            let shared = match trainer.take().filter(|(of, _)| *of == seedless) {
                Some(shared) => shared,
                None => {
                    let compiled = LanguageTrainer::new(&self.devices, &seedless)?;
                    (seedless, compiled)
                }
            };
            self.train(&shared.1, config, data, &format!("run {}/{}", i + 1, open.len()))?;
            trainer = Some(shared);
        }
        Ok(())
    }

    fn train(&self, trainer: &LanguageTrainer, config: &LanguageConfig, data: &Dataset, label: &str) -> Result<()> {
        let folder = self.run_folder(config)?;
        ensure_writable_folder(&folder)?;
        let mut record = RunRecord::new("language run", config.seed, &self.devices.device().describe());
        record.set("config", json!(config));
        record.set("data", json!(data.description()));
        record.set("compile_seconds", json!(trainer.compile_time().as_secs_f64()));
        let mut run = match checkpoint::list(&folder).is_empty() {
            true => trainer.start(data, config.seed)?,
            false => {
                let from = Checkpoint::newest(&folder).map_err(|error| match error {
                    Error::File { path, reason } => Error::file(
                        path,
                        format!("{reason}; without the folder of this run, {}, it begins anew", folder.display()),
                    ),
                    other => other,
                })?;
                let metrics = Metrics::read(&folder, Some(from.step))?;
                trainer.resume(data, from, metrics)?
            }
        };
        let name = format!("{label}, {}:", in_words(config));
        let mut progress = Progress::new(name, (config.steps() - run.steps()) as u64);
        let mut eval = String::new();
        let outcome = train(&mut run, &folder, self.saving, &self.stop, |run, row| {
            if let Some(loss) = row.and_then(|row| row.eval_loss) {
                eval = format!(", eval loss {loss:.4}");
            }
            progress.step(&format!("step {}/{}{eval}", run.steps(), config.steps()));
        });
        drop(progress);
        match outcome {
            Ok(Outcome::Finished) => {}
            Ok(Outcome::Stopped) => {
                let step = run.steps();
                let text = format!("stopped after step {step} of {label}; the same command goes on from there");
                return Err(Error::Interrupted(text));
            }
            Err(Error::Numeric { reason, .. }) => {
                say(&format!("{label}, {}: {reason}", in_words(config)));
                record.set("stopped", json!(reason));
            }
            Err(error) => return Err(error),
        }
        record.set("finished", json!(true));
        record.write(&folder).map(|_| ())
    }

    /// What a run came to; None when it is not done.
    pub fn outcome(&self, config: &LanguageConfig) -> Result<Option<LanguageOutcome>> {
        let folder = self.run_folder(config)?;
        let path = folder.join("run.json");
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
        let record: serde_json::Value = serde_json::from_str(&text)
            .map_err(|e| Error::file(&path, format!("cannot be read: {e}; remove its folder to run it again")))?;
        if record["finished"] != true {
            return Ok(None);
        }
        let metrics = Metrics::read(&folder, None)?;
        Ok(Some(LanguageOutcome { metrics, stopped: record["stopped"].as_str().map(str::to_owned) }))
    }

    /// Outcomes of all, or None when some are missing, which is said.
    pub fn outcomes(&self, configs: &[LanguageConfig]) -> Result<Option<Vec<LanguageOutcome>>> {
        let found = configs.iter().map(|c| self.outcome(c)).collect::<Result<Vec<_>>>()?;
        let missing = found.iter().filter(|o| o.is_none()).count();
        if missing > 0 {
            say(&format!(
                "{missing} runs of other shards are not in {} yet: run those, then once more",
                self.folder.display()
            ));
            return Ok(None);
        }
        Ok(Some(found.into_iter().flatten().collect()))
    }

    /// The folder of all runs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// `128 x 4 mismatch seed 1`.
fn in_words(config: &LanguageConfig) -> String {
    let t = &config.transformer;
    let projection = match &config.projection {
        Projection::Standard => "baseline".to_owned(),
        Projection::Sel(sel) => {
            let annealed =
                [sel.exp_scale, sel.linear_scale, sel.inner].iter().any(|s| s.multiplier.start != s.multiplier.end);
            let parts = [
                (sel.residual.is_some(), " + offset, residual"),
                (sel.absorb_beta, ", beta absorbed"),
                (sel.normalize_by_inner_mult, ", normalized"),
                (!annealed, ", fixed multipliers"),
            ];
            parts.iter().filter(|(has, _)| *has).fold(sel.mode.to_string(), |text, (_, part)| text + part)
        }
    };
    format!("{} × {} {projection} seed {}", t.width, t.depth, config.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::language::metrics::Row;

    #[test]
    fn time_is_tokens_over_speed_interval_by_interval() {
        let row = |step, tokens_per_second| Row { step, tokens_per_second, ..Row::default() };
        let rows = vec![row(0, None), row(1, None), row(10, Some(50.0)), row(30, Some(100.0))];
        let outcome = LanguageOutcome { metrics: Metrics { rows }, stopped: None };
        assert_eq!(outcome.training_seconds(100), 20.0 + 20.0);
    }
}
