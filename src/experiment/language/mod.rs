//! The SEL paper's experiments: what the command line says of a language run, and grids of runs.

mod arguments;
mod estimate;
mod grid;
mod opened;
mod runs;
pub mod tables;
mod transform;

pub use arguments::{DataArguments, LanguageArguments, LanguageSizes};
pub use grid::{Cell, Cells, Grid, GridArguments, Variant};
pub use opened::{OpenedRun, effective_weights};
pub use runs::{LanguageOutcome, LanguageRuns};
pub use transform::SelArguments;
