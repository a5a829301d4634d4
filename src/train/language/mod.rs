//! Training of language models.
//!
//! | file | holds |
//! | --- | --- |
//! | `step.rs` | the training step and the loss as programs |

mod step;

pub use step::{StepSettings, effective_program, loss_program, step_program, tracked_program};
