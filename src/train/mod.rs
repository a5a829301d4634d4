//! Training: step programs whose state stays on the device, runs over them, and sweeps of runs.
//!
//! `step.rs` builds the programs; `trainer.rs` holds runs in progress; `evaluate.rs` measures what came out; `sweep.rs`
//! decides which runs are still to do and keeps their results.
//!
//! ```
//! use sinexp::nn::siren::Siren;
//! use sinexp::train::{StepOptions, regression_step};
//! // State in, state out: weights, moments, step; then the samples and the learning rate.
//! let step = regression_step(&Siren::new(2, 16, 3, 1), 64, &StepOptions::default())?;
//! assert_eq!(step.outputs.last().unwrap().0, "loss");
//! assert_eq!(step.aliases.len() + 1, step.outputs.len()); // all of the state is donated
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod evaluate;
pub mod language;
mod step;
pub mod sweep;
mod trainer;

pub use evaluate::{Evaluator, mean_squared_error, snr_db};
pub use step::{StepOptions, regression_step, training_step};
pub use trainer::{Start, Trainer, Training, Weights};
