//! Training of language models.
//!
//! | file | holds |
//! | --- | --- |
//! | `config.rs` | [`LanguageConfig`]: everything a run's numbers depend on |
//! | `step.rs` | the training step, the loss and the effective weights as programs |
//! | `parts.rs`, `profile.rs` | the parts of that step as programs, and how long they take: [`Profiler`] |
//! | `run.rs` | [`LanguageTrainer`] and [`LanguageRun`]: compiled programs, runs in progress |
//! | `session.rs` | [`train`]: a run with its folder: evaluations, metrics, checkpoints, stopping |
//! | `checkpoint.rs`, `metrics.rs` | what lies in that folder |
//! | `folded.rs`, `generate.rs` | models as ordinary weights, and text from them |
//! | `pretrained.rs` | weights that a run starts from |
//! | `diagnosis.rs` | what is wrong when a number is not finite |

pub mod checkpoint;
mod config;
mod diagnosis;
mod folded;
mod generate;
pub mod metrics;
mod parts;
mod pretrained;
mod profile;
mod run;
mod session;
mod step;

pub use checkpoint::Checkpoint;
pub use config::{LanguageConfig, Projection};
pub use folded::{Folded, Origin, effective_weights};
pub use generate::{Generator, Sampling};
pub use metrics::Metrics;
pub use parts::{forward_program, gradients_program, update_program};
pub use pretrained::Pretrained;
pub use profile::{PartTimes, Profiler};
pub use run::{LanguageRun, LanguageTrainer};
pub use session::{Outcome, Saving, train};
pub use step::{StepSettings, effective_program, loss_program, step_program, tracked_program};
