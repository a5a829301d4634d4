//! Training: step programs whose state stays on the device, runs over them, and sweeps of runs.
//!
//! `step.rs` builds the programs; `trainer.rs` holds runs in progress; `evaluate.rs` measures what came out; `sweep.rs`
//! decides which runs are still to do and keeps their results.

mod evaluate;
pub mod language;
mod step;
pub mod sweep;
mod trainer;

pub use evaluate::{Evaluator, mean_squared_error, snr_db};
pub use step::{StepOptions, regression_step, training_step};
pub use trainer::{Start, Trainer, Training, Weights};
