//! One HTML file of all results: tables, pictures and charts, without a network; and the results table of a README.
//!
//! [`find`] reads folders, [`html`] makes the page, [`readme`] the table. The page's own text, style and script are
//! `page.html`, `page.css` and `page.js`; charts are drawn by plotly.js, from the crate `plotly`.

mod catalog;
mod chart;
mod folder;
mod grid;
mod headline;
mod html;
pub mod readme;
mod record;
mod section;

pub use catalog::Experiment;
pub use chart::Chart;
pub use folder::{Drawing, Run, find};
pub use grid::{Cell, Grid};
pub use html::html;
pub use record::{Record, duration};
