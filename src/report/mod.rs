//! What people read: tables and figures.
//!
//! A [`Table`] is a polars frame with a title, units and sensible digits; a [`Figure`] is panels of marks. Both are
//! written to a temporary name first and renamed, so a file is complete or absent.

mod axis;
mod canvas;
mod draw;
mod figure;
mod image;
mod layout;
mod output;
pub mod spectrum;
pub mod style;
mod table;

pub use axis::{Axis, Scale};
pub use figure::{Figure, Legend, Mark, Panel};
pub use image::Raster;
pub use table::{Table, TableFormat};
