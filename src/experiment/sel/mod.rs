//! The SEL paper's experiments: what the command line says of a language run, grids of runs, and the profile of a step.
//!
//! ```
//! use sinexp::experiment::Preset;
//! use sinexp::experiment::sel::{Cells, LanguageSizes, Variant};
//! use sinexp::nn::sel::{Mode, Sel, beta_for_width};
//! use sinexp::train::language::Projection;
//! // A grid: widths x depths, and for each cell variants x seeds.
//! let grid = Cells::product(&[1024, 2048], &[12, 24], &[0, 1]);
//! assert_eq!(grid.cells, [(1024, 12), (1024, 24), (2048, 12), (2048, 24)]);
//! assert_eq!(LanguageSizes::of(Preset::Paper).steps, 250_000); // 2607.09967, Section 5.1
//! // What a variant trains: mismatch is the paper's main one, damped is its Eq. 17.
//! assert_eq!(Variant::Mismatch.projection(7.5), Projection::Sel(Sel::new(7.5)));
//! let Projection::Sel(damped) = Variant::Damped.projection(beta_for_width(1024)) else { unreachable!() };
//! assert!(damped.mode == Mode::Damped && damped.offset.is_some());
//! ```

pub mod ablations;
mod arguments;
mod estimate;
mod grid;
mod opened;
mod profile;
mod profile_table;
mod runs;
mod size;
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
