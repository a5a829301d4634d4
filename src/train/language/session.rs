//! A language run with its folder: evaluations, metrics, checkpoints, and stopping when asked.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::metrics::Row;
use super::run::LanguageRun;
use crate::error::{Error, Result};

/// When checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saving {
    /// Steps between two; also at the end and when stopped.
    pub every: usize,
    /// How many are kept.
    pub keep: usize,
}

/// How [`train`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All steps are taken.
    Finished,
    /// It was asked to stop, finished its step and wrote a checkpoint.
    Stopped,
}

/// Trains to the end of the run, or until `stop` is set. `each` sees the newest row after every step.
///
/// Writes `metrics.parquet` and then a checkpoint into `folder`, so that the metrics always reach as far as the newest
/// checkpoint.
///
/// **Errors** when a number is not finite (the metrics so far are written) or a file cannot be written (the checkpoints
/// that were there stay).
pub fn train(
    run: &mut LanguageRun<'_>,
    folder: &Path,
    saving: Saving,
    stop: &AtomicBool,
    mut each: impl FnMut(&LanguageRun<'_>, Option<&Row>),
) -> Result<Outcome> {
    let total = run.config().steps();
    let every = run.config().eval_every;
    let outcome = (|| {
        if run.metrics().rows.is_empty() {
            run.evaluate()?;
        }
        while run.steps() < total {
            run.step()?;
            let steps = run.steps();
            if steps.is_multiple_of(every) || steps == total {
                run.evaluate()?;
            }
            each(run, run.metrics().rows.last());
            let stopped = stop.load(Ordering::Relaxed);
            if steps == total || stopped || steps.is_multiple_of(saving.every.max(1)) {
                run.flush()?;
                run.metrics().write(folder)?;
                run.checkpoint()?.save(folder, saving.keep)?;
            }
            if stopped && steps < total {
                return Ok(Outcome::Stopped);
            }
        }
        Ok(Outcome::Finished)
    })();
    if let Err(Error::Numeric { .. }) = &outcome {
        run.metrics().write(folder)?;
    }
    outcome
}
