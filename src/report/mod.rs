//! What people read: tables and figures.
//!
//! A [`Table`] is a polars frame with a title, units and sensible digits; a [`Figure`] is panels of marks. Both are
//! written to a temporary name first and renamed, so a file is complete or absent.
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

mod axis;
mod canvas;
mod curves;
mod draw;
mod figure;
pub mod fitting;
mod image;
mod layout;
pub mod losses;
#[cfg(any(feature = "notebook", test))]
mod notebook;
mod output;
pub mod page;
pub mod program_spectrum;
pub mod scales;
pub mod sel_curves;
pub mod sel_mismatch;
pub mod sel_shapes;
pub mod sel_weights;
pub mod sound;
pub mod spectrum;
pub mod style;
pub mod sweeps;
mod table;
mod text;
pub mod weights;

pub use axis::{Axis, Scale};
pub use curves::CURVES;
pub use figure::{Figure, Legend, Mark, Panel};
pub use image::Raster;
pub use table::{Table, TableFormat, significant};
