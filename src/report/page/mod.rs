//! One HTML file of all results: tables, pictures and charts, without a network; and the results table of a README.
//!
//! [`find`] reads folders, [`html`] makes the page, [`readme`] the table. The page's own text, style and script are
//! `page.html`, `page.css` and `page.js`; charts are drawn by plotly.js, from the crate `plotly`.
//!
//! ```
//! use polars::prelude::Column;
//! use sinexp::cli::RunRecord;
//! use sinexp::report::page::{find, html};
//! use sinexp::report::{Table, TableFormat};
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! // What an experiment leaves in its folder: a record, tables, figures.
//! let columns = vec![Column::new("N".into(), [16i64, 64]), Column::new("loss".into(), [0.5, 0.25])];
//! let table = Table::new("Widths", columns)?;
//! table.write_all(folder, "table", &[TableFormat::Markdown, TableFormat::Parquet])?;
//! RunRecord::new("widths", 0, "cpu").write(folder)?;
//! let runs = find(&[folder.to_owned()])?;
//! assert_eq!(runs[0].grid("table").unwrap().cell(&["64"], "loss").unwrap().number, Some(0.25));
//! let page = html("My results", &runs)?;
//! assert!(page.contains("<title>My results</title>") && page.contains("Widths"));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod catalog;
mod chart;
mod folder;
mod grid;
mod headline;
pub(super) mod html;
pub mod readme;
mod record;
mod section;

pub use catalog::Experiment;
pub use chart::Chart;
pub use folder::{Drawing, Run, find};
pub use grid::{Cell, Grid};
pub use html::html;
pub use record::{Record, duration};
