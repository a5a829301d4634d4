//! The spectrum of a program's Jacobian: table, data file and figure.
//!
//! ```
//! use ndarray::Array3;
//! use sinexp::analysis::spectrum::Cell;
//! use sinexp::array::DType;
//! use sinexp::report::FigureFiles;
//! use sinexp::report::program_spectrum::{figure, spectra_table, summary_table};
//! // Jacobians of 5 results by 4 inputs at three points, with the singular values 4, 3, 2, 1.
//! let values = Array3::from_shape_fn((1, 3, 4), |(_, _, rank)| 4.0 - rank as f64);
//! let cell = Cell::new("model.hlo.txt", 0, values, DType::F32)?;
//! let summary = summary_table("Spectrum", &cell, (5, 4))?;
//! assert_eq!(summary.frame().column("mean square").unwrap().f64().unwrap().get(0), Some(7.5));
//! assert_eq!(spectra_table(&cell, 1)?.height(), 12);
//! assert_eq!(figure(&cell, "").curves()?.unwrap().height(), 3 * 4); // the mean, the smallest and the largest
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use polars::prelude::Column;

use super::noise;
use super::style::{self, COLUMN_WIDTH};
use super::table::Table;
use crate::analysis::spectrum::Cell;
use crate::error::Result;
use panelplot::{Axis, Figure, Legend, Panel};

/// One row: `program`, `rows` and `columns` of each J, `spectra` (points times samples), then as
/// [`super::spectrum::summary_table`].
pub fn summary_table(title: &str, cell: &Cell, (rows, columns): (usize, usize)) -> Result<Table> {
    let s = cell.summary();
    let [smallest, condition] = noise::columns(&[s]);
    let count = |name: &str, n: usize| Column::new(name.into(), [n as i64]);
    let number = |name: &str, v: f64| Column::new(name.into(), [v]);
    let table = Table::new(
        title,
        vec![
            Column::new("program".into(), [cell.name()]),
            count("rows", rows),
            count("columns", columns),
            count("spectra", cell.values().dim().1),
            number("largest", s.largest),
            number("median", s.median),
            smallest,
            number("mean square", s.mean_square),
            condition,
            count("resolved", s.resolved),
        ],
    )?;
    Ok(noise::mark(table, &[s]))
}

/// Every singular value: `program`, `point`, `sample` (of a batch), `rank` (all from 0, rank 0 the largest), `value`. The
/// spectra of one point's `samples` lie one after the other.
pub fn spectra_table(cell: &Cell, samples: usize) -> Result<Table> {
    let mut numbers: [Vec<u32>; 3] = std::array::from_fn(|_| Vec::with_capacity(cell.values().len()));
    let mut values = Vec::with_capacity(cell.values().len());
    for ((_, spectrum, rank), value) in cell.values().indexed_iter() {
        for (column, v) in numbers.iter_mut().zip([spectrum / samples, spectrum % samples, rank]) {
            column.push(v as u32);
        }
        values.push(*value);
    }
    let mut columns = vec![Column::new("program".into(), vec![cell.name(); values.len()])];
    for (name, numbers) in ["point", "sample", "rank"].into_iter().zip(numbers) {
        columns.push(Column::new(name.into(), numbers));
    }
    columns.push(Column::new("value".into(), values));
    Table::new("Singular values", columns)
}

/// The averaged singular value (log) against its rank, between the smallest and the largest of all spectra. A curve ends where
/// its values fall into the rounding noise of the Jacobian's arithmetic; `note` is added beneath.
pub fn figure(cell: &Cell, note: &str) -> Figure {
    let (_, spectra, width) = cell.values().dim();
    let noise = cell.noise();
    let curve = |values: Vec<f64>| -> Vec<(f64, f64)> {
        let shown = values.into_iter().take_while(|s| *s > noise);
        shown.enumerate().map(|(rank, s)| ((rank + 1) as f64, s)).collect()
    };
    let extreme = |f: fn(f64, f64) -> f64| -> Vec<f64> {
        let ranks = 0..width;
        let of = |r: usize| cell.values().iter().skip(r).step_by(width).copied().reduce(f).unwrap_or(0.0);
        ranks.map(of).collect()
    };
    let x = Axis::linear("rank of the singular value").range(1.0, (width as f64).max(2.0));
    // An axis of nothing has no range of its own.
    let y = Axis::log("singular value");
    let y = if noise > 0.0 { y } else { y.range(0.1, 10.0) };
    let mut panel = Panel::new(cell.name(), x, y);
    if spectra > 1 {
        panel = panel.line("largest", style::sequence(1, 3), curve(extreme(f64::max)));
    }
    panel = panel.line("mean", style::sequence(0, 3), curve(cell.rank_means()));
    if spectra > 1 {
        panel = panel.line("smallest", style::sequence(2, 3), curve(extreme(f64::min)));
    }
    let note = format!("A curve ends where it reaches the rounding noise of its Jacobian. {note}");
    let title = format!("{spectra} spectra:");
    Figure::new(COLUMN_WIDTH, 1).aspect(0.7).legend(Legend::Below, Some(&title)).note(note).panel(panel)
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;

    use super::*;
    use crate::array::DType;

    fn cell(value: impl Fn(usize, usize) -> f64) -> Cell {
        let values = Array3::from_shape_fn((1, 6, 4), |(_, p, r)| value(p, r));
        Cell::new("jit_f", 0, values, DType::F32).expect("valid")
    }

    #[test]
    fn tables_have_every_value_in_its_place() {
        let cell = cell(|p, r| (10 * p + 3 - r) as f64);
        let table = spectra_table(&cell, 3).expect("table");
        assert_eq!(table.height(), 24);
        let row = 4 * 4 + 2; // point 1, sample 1, rank 2
        for (name, expected) in [("point", 1.0), ("sample", 1.0), ("rank", 2.0), ("value", 41.0)] {
            let value = table.frame().column(name).expect("column").get(row).expect("row");
            assert_eq!(value.try_extract::<f64>().expect("number"), expected, "{name}");
        }
        let summary = summary_table("title", &cell, (4, 9)).expect("table");
        for (name, expected) in
            [("rows", 4.0), ("columns", 9.0), ("spectra", 6.0), ("largest", 28.0), ("smallest", 25.0)]
        {
            let value = summary.frame().column(name).expect("column").get(0).expect("row");
            assert_eq!(value.try_extract::<f64>().expect("number"), expected, "{name}");
        }
    }

    #[test]
    fn figures_of_spectra_and_of_a_function_that_is_constant() {
        let svg = figure(&cell(|p, r| (1 + p) as f64 * 0.1f64.powi(r as i32)), "Annotated.").to_svg().expect("draws");
        for text in ["jit_f", "largest", "mean", "smallest", "6 spectra:", "Annotated."] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(figure(&cell(|_, _| 0.0), "").to_svg().expect("draws").contains("jit_f"));
    }
}
