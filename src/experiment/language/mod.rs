//! The SEL paper's experiments: what the command line says of a language run, grids of runs, and the profile of a step.

pub mod ablations;
mod arguments;
mod estimate;
mod grid;
mod opened;
mod profile;
mod profile_table;
mod runs;
mod speed_ups;
pub mod tables;
mod transform;
mod variant;

pub use arguments::{DataArguments, LanguageArguments, LanguageSizes};
pub use grid::{Cell, Cells, Grid, GridArguments};
pub use opened::OpenedRun;
pub use profile::ProfileArguments;
pub use runs::{LanguageOutcome, LanguageRuns};
pub use transform::SelArguments;
pub use variant::{RESIDUAL_RANK, Variant, damped_offset};
