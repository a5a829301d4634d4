//! What people read: tables and figures.
//!
//! A [`Table`] is a polars frame with a title, units and sensible digits; a [`Figure`] is panels of marks. Both are
//! written to a temporary name first and renamed, so a file is complete or absent.
//! With the feature `notebook` both show themselves in Jupyter (the Rust kernel evcxr).

mod axis;
mod canvas;
mod draw;
mod figure;
pub mod fitting;
mod image;
mod layout;
pub mod losses;
#[cfg(feature = "notebook")]
mod notebook;
mod output;
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
pub use figure::{Figure, Legend, Mark, Panel};
pub use image::Raster;
pub use table::{Table, TableFormat, significant};
