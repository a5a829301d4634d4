//! The SIREN paper's experiments: fields to fit, runs as resolved configurations, and what drives them.
//!
//! A [`RunConfig`] says everything that a run's result depends on; [`Runner`] trains the runs that are not done yet, in
//! batches, with checkpoints, and keeps their results in a [`Store`](crate::train::sweep::Store). The programs in
//! `experiments/` make lists of configurations and turn the results into the paper's tables and figures.

pub(crate) mod arguments;
pub mod audio;
mod cameraman;
mod config;
mod field;
pub mod language;
pub mod mup;
mod omega;
mod outcome;
mod runner;

pub use arguments::{Preset, SirenArguments, Sizes};
pub use cameraman::Cameraman;
pub use config::{METHODS, Method, PAPER_OMEGA0, RunConfig};
pub use field::{Color, Field, FieldId, Samples, background, field_of_file};
pub use omega::{OmegaArguments, OmegaSweep};
pub use outcome::{Outcome, Summary};
pub use runner::{Keep, Runner};
