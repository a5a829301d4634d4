//! What people read: tables and figures.
//!
//! A [`Table`] is a polars frame with a title, units and sensible digits; a [`Figure`] (of the crate [`panelplot`]) is panels
//! of marks, and [`FigureFiles`] writes it. Both are written to a temporary name first and renamed, so a file is complete or
//! absent. [`siren`] and [`sel`] hold what each paper shows, [`weights`] and [`program_spectrum`] what belongs to any
//! checkpoint or program, and [`page`] makes one HTML page of it all.
//!
//! With the feature `notebook` both show themselves in Jupyter (the Rust kernel evcxr).
//!
//! ```
//! use polars::prelude::Column;
//! use sinexp::report::Table;
//! let columns = vec![Column::new("L".into(), [4i64, 8]), Column::new("mean square".into(), [1.00251, 1.0103])];
//! let table = Table::new("Jacobians", columns)?.digits("mean square", 4);
//! assert!(table.to_markdown().contains("1.003"));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod escape;
mod figure;
mod noise;
#[cfg(any(feature = "notebook", test))]
mod notebook;
pub mod page;
pub mod program_spectrum;
pub mod sel;
pub mod siren;
pub mod style;
mod table;
pub mod weights;

pub use figure::{CURVES, FigureFiles};
pub use panelplot::{Axis, Figure, Legend, Mark, Panel, Raster, Scale};
// The names that notebooks use.
pub use sel::{curves as sel_curves, losses, mismatch as sel_mismatch, scales};
pub use siren::{fitting, spectrum};
pub use table::{Table, TableFormat, significant};
