//! Training: step programs whose state stays on the device.

mod step;

pub use step::{StepOptions, regression_step};
