//! Figures for papers: panels of curves, bands, points, bars and pictures in a grid, on plotters.
//!
//! plotters draws lines and text; what a printed figure needs besides, it leaves to its users. Here a [`Figure`] is data:
//! a width in inches and [`Panel`]s of [`Mark`]s. Margins follow from measured text, panels of a column begin at the same
//! place, entries of all panels share one legend, ticks are where a person would put them, and a note stands beneath.
//! One drawing function makes both formats, so a PNG (300 dots per inch) and an SVG show the same.
//!
//! ```
//! use panelplot::style::{COLUMN_WIDTH, sequence};
//! use panelplot::{Axis, Figure, Legend, Panel};
//! // Two curves against logarithmic axes, with a star where the second one is lowest.
//! let points = |scale: f64| (1..=50).map(|i| (f64::from(i), scale / f64::from(i))).collect::<Vec<_>>();
//! let panel = Panel::new("decay", Axis::log("step"), Axis::log("error [dB]"))
//!     .line("one", sequence(0, 2), points(1.0))
//!     .line("two", sequence(1, 2), points(3.0))
//!     .star_at_minimum(sequence(1, 2).color, &points(3.0));
//! let figure = Figure::new(COLUMN_WIDTH, 1).panel(panel).legend(Legend::Below, Some("run:")).note("Seed 0.");
//! let svg = figure.to_svg()?; // and to_png(), the bytes of a file
//! assert!(svg.contains("run:") && svg.contains("error [dB]"));
//! # Ok::<(), panelplot::Error>(())
//! ```
//!
//! # A tour
//! * [`Figure`], [`Panel`], [`Mark`], [`Axis`], [`Raster`]: what is shown. Their fields are public: what draws a figure in
//!   another way, as on a page, reads them.
//! * [`style`]: sizes of pages and text, a palette for colour-blind readers, dashes and markers; [`style::sequence`] gives
//!   styles from dark to light, which differ in grayscale too.
//! * Inside: `axis` finds ticks, `text` and `layout` find the place of everything, `canvas` draws in points on any backend
//!   of plotters, `draw` draws a laid-out figure, `output` makes files of it.
//! * [`notebook`]: a figure that ends a cell in Jupyter (kernel evcxr) shows itself.

#![deny(unsafe_code)]

mod axis;
mod canvas;
mod draw;
mod error;
mod figure;
mod layout;
pub mod notebook;
mod output;
mod raster;
pub mod style;
mod text;

pub use axis::{Axis, Scale};
pub use error::{Error, Result};
pub use figure::{Figure, Legend, Mark, Panel};
pub use raster::Raster;
