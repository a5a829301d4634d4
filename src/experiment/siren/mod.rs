//! The SIREN paper's experiments: fields to fit, runs as resolved configurations, and what drives them.
//!
//! A [`RunConfig`] says everything that a run's result depends on; [`Runner`] trains the runs that are not done yet, in
//! batches, with checkpoints, and keeps their results in a [`Store`](crate::train::sweep::Store).
//!
//! ```
//! use sinexp::experiment::METHODS;
//! use sinexp::train::sweep::{Shard, stable_hash};
//! assert!(METHODS.contains(&"uniform-mm"));
//! // A run is named by a hash of its configuration; each of four machines takes its share of the costs.
//! assert_eq!(stable_hash(&("uniform-mm", 16))?.len(), 16);
//! let first: Shard = "1/4".parse().unwrap();
//! assert_eq!(first.share(&[8.0, 4.0, 2.0, 1.0]), [true, false, false, false]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod arguments;
pub mod audio;
mod cameraman;
mod config;
mod field;
pub mod mup;
mod omega;
mod outcome;
mod runner;

pub use arguments::{SirenArguments, Sizes};
pub use cameraman::Cameraman;
pub use config::{METHODS, Method, RunConfig};
pub use field::{Color, Field, FieldId, PAPER_OMEGA0, Samples, background, field_of_file};
pub use omega::{OmegaArguments, OmegaSweep};
pub use outcome::Outcome;
pub use runner::{Keep, Runner};
