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
//!
//! ```
//! use sinexp::array::Array;
//! use sinexp::nn::{language_model::Start, sel::Sel, transformer::Transformer};
//! use sinexp::train::language::{Projection, effective_weights, loss_program};
//! use sinexp::{random::Key, runtime::Device};
//! let transformer = Transformer::new(256, 8, 1);
//! let model = Projection::Sel(Sel::new(4.0)).model(&transformer);
//! let parameters = model.initial(Start::default(), Key::new(0))?;
//! // What is trained becomes the transformer's weights, and those with tokens (2 rows of 16 and a next one) a loss.
//! let device = Device::open("cpu")?;
//! let weights = effective_weights(&device, &model, &parameters)?;
//! let tokens = Array::from_slice(&[2, 17], &std::array::from_fn::<i32, 34, _>(|i| 7 * i as i32));
//! let arguments: Vec<&Array> = weights.values().chain([&tokens]).collect();
//! let loss = device.compile(&loss_program(&transformer, 2, 16, false)?)?.call(&arguments)?[0].to_f64_vec()[0];
//! assert!((loss - 256f64.ln()).abs() < 0.1); // before training no byte is likelier than another
//! # Ok::<(), sinexp::error::Error>(())
//! ```

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
