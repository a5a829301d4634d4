//! The Jacobian spectrum's table, data file and Figure 3.
//!
//! ```
//! use ndarray::Array3;
//! use sinexp::analysis::spectrum::Cell;
//! use sinexp::array::DType;
//! use sinexp::report::FigureFiles;
//! use sinexp::report::siren::spectrum::{figure, spectra_table, summary_table};
//! // Two depths, each with two networks, three points and four singular values.
//! let cell = |depth, value| Cell::new("uniform-mm", depth, Array3::from_elem((2, 3, 4), value), DType::F64);
//! let cells = [cell(4, 1.0)?, cell(8, 0.5)?];
//! let table = summary_table("Singular values", &cells)?;
//! let squares = table.frame().column("mean square").unwrap().f64().unwrap();
//! assert_eq!((squares.get(0), squares.get(1)), (Some(1.0), Some(0.25)));
//! assert_eq!(spectra_table(&cells)?.height(), 2 * 2 * 3 * 4);
//! assert_eq!(figure(&cells, "").curves()?.unwrap().height(), 2 * 4); // a curve per depth
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use polars::prelude::Column;

use crate::analysis::spectrum::Cell;
use crate::error::Result;
use crate::report::noise;
use crate::report::style::{self, COLUMN_WIDTH, label};
use crate::report::table::Table;
use panelplot::{Axis, Figure, Legend, Panel};

/// One row per initialisation and depth, in the order given: `init`, `depth`, `largest`, `median`, `smallest`,
/// `mean square`, `standard error` (over networks; empty for one), `condition`, `resolved` (ranks above the rounding
/// noise). `smallest` and `condition` are empty where they are rounding noise, and say so where people read the table. See [`crate::analysis::spectrum::Summary`].
pub fn summary_table(title: &str, cells: &[Cell]) -> Result<Table> {
    let rows: Vec<_> = cells.iter().map(Cell::summary).collect();
    let column = |name: &str, f: &dyn Fn(&crate::analysis::spectrum::Summary) -> f64| {
        Column::new(name.into(), rows.iter().map(f).collect::<Vec<f64>>())
    };
    let [smallest, condition] = noise::columns(&rows);
    let table = Table::new(
        title,
        vec![
            Column::new("init".into(), cells.iter().map(Cell::name).collect::<Vec<_>>()),
            Column::new("depth".into(), cells.iter().map(|c| c.depth() as i64).collect::<Vec<_>>()),
            column("largest", &|s| s.largest),
            column("median", &|s| s.median),
            smallest,
            column("mean square", &|s| s.mean_square),
            Column::new("standard error".into(), rows.iter().map(|s| s.standard_error).collect::<Vec<_>>()),
            condition,
            Column::new("resolved".into(), rows.iter().map(|s| s.resolved as i64).collect::<Vec<_>>()),
        ],
    )?;
    Ok(noise::mark(table, &rows).digits("standard error", 2))
}

/// Every singular value: `init`, `depth`, `network`, `point`, `rank` (all from 0, rank 0 the largest), `value`.
pub fn spectra_table(cells: &[Cell]) -> Result<Table> {
    let count: usize = cells.iter().map(|c| c.values().len()).sum();
    let mut names = Vec::with_capacity(count);
    let mut numbers: [Vec<u32>; 4] = std::array::from_fn(|_| Vec::with_capacity(count));
    let mut values = Vec::with_capacity(count);
    for cell in cells {
        for ((network, point, rank), value) in cell.values().indexed_iter() {
            names.push(cell.name());
            for (column, v) in numbers.iter_mut().zip([cell.depth(), network, point, rank]) {
                column.push(v as u32);
            }
            values.push(*value);
        }
    }
    let mut columns = vec![Column::new("init".into(), names)];
    for (name, numbers) in ["depth", "network", "point", "rank"].into_iter().zip(numbers) {
        columns.push(Column::new(name.into(), numbers));
    }
    columns.push(Column::new("value".into(), values));
    Table::new("Singular values", columns)
}

/// The lowest value Figure 3 shows: below it the curves of deep networks are rounding noise in every precision.
const FLOOR: f64 = 1e-9;

/// Figure 3 of the uniform-phase paper: one panel per initialisation, one curve per depth, the averaged singular value
/// (log) against its rank. A curve ends where its values fall into the rounding noise of the Jacobian's arithmetic,
/// or at 1e-9; `note` is added beneath.
pub fn figure(cells: &[Cell], note: &str) -> Figure {
    let mut names: Vec<&str> = Vec::new();
    let mut depths: Vec<usize> = Vec::new();
    for cell in cells {
        if !names.contains(&cell.name()) {
            names.push(cell.name());
        }
        depths.push(cell.depth());
    }
    depths.sort_unstable();
    depths.dedup();
    let shown = |cell: &Cell| -> Vec<(f64, f64)> {
        let floor = cell.noise().max(FLOOR);
        let means = cell.rank_means().into_iter().take_while(|s| *s > floor);
        means.enumerate().map(|(rank, s)| ((rank + 1) as f64, s)).collect()
    };
    let width = cells.iter().map(|c| c.values().dim().2).max().unwrap_or(1);
    let columns = if names.len() == 1 { 1 } else { 2 };
    let mut figure = Figure::new(COLUMN_WIDTH, columns)
        .aspect(if columns == 1 { 0.7 } else { 0.86 })
        .shared_axes()
        .legend(Legend::Below, Some("depth L:"))
        .note(format!("A curve ends where it reaches the rounding noise of its Jacobian, or 1e-9. {note}"));
    for name in names {
        let x = Axis::linear("rank of the singular value").range(1.0, (width as f64).max(2.0));
        let x = if width % 4 == 0 { x.ticks(&[1, 2, 3, 4].map(|q| (q * width / 4) as f64)) } else { x };
        let mut panel = Panel::new(label(name), x, Axis::log("singular value"));
        for cell in cells.iter().filter(|c| c.name() == name) {
            let place = depths.binary_search(&cell.depth()).unwrap_or(0);
            panel = panel.line(cell.depth().to_string(), style::sequence(place, depths.len()), shown(cell));
        }
        figure = figure.panel(panel);
    }
    figure
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ndarray::Array3;

    use super::*;
    use crate::array::DType;
    use crate::report::FigureFiles;

    const NUMPY: [[f64; 3]; 2] = [
        [0.21386280853125683, 1.0020106924295311, 737028926.2083405],
        [7.120244308424044e-06, 272.620742768619, 1.442408093958727e+19],
    ];

    /// The averaged spectra of the independent JAX program at the paper's size, as cells of one network and point.
    fn golden() -> Vec<Cell> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/spectrum.safetensors");
        let bytes = std::fs::read(path).expect("golden file");
        let file = safetensors::SafeTensors::deserialize(&bytes).expect("golden file");
        let mut cells = Vec::new();
        for name in ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20"] {
            for depth in [4, 8, 16, 32] {
                let key = format!("avg.{}.L{depth}", name.replace('-', "_"));
                let data = file.tensor(&key).expect("entry").data().to_vec();
                let values = data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight"))).collect();
                let values = Array3::from_shape_vec((1, 1, 256), values).expect("256 values");
                cells.push(Cell::new(name, depth, values, DType::F64).expect("valid"));
            }
        }
        cells
    }

    #[test]
    fn table_rows_agree_with_numpy() {
        let table = summary_table("golden", &golden()).expect("table");
        assert_eq!(table.height(), 16);
        let column = |name: &str, row: usize| {
            let column = table.frame().column(name).expect("column").f64().expect("f64").get(row);
            column.expect("not null")
        };
        // np.median(a), (a**2).mean(), a[0] / a[-1] of avg.uniform_mm.L4, the first two of avg.sm20.L32
        for (row, numpy, known) in [(0, NUMPY[0], 3), (15, NUMPY[1], 2)] {
            for (name, expected) in ["median", "mean square", "condition"].into_iter().zip(numpy).take(known) {
                let got = column(name, row);
                assert!((got - expected).abs() < 1e-12 * expected, "{name} of row {row}: {got} instead of {expected}");
            }
        }
        // The last one, a[0] / a[-1] = 1.4e19, is rounding noise: 1 / (256 x 2.2e-16) is resolved, and 146.3 times its inverse.
        for (name, shown) in [("condition", "> 2e13 (noise)"), ("smallest", "< 8e-12 (noise)")] {
            assert_eq!(table.frame().column(name).expect("column").f64().expect("f64").get(15), None);
            assert!(table.to_markdown().lines().nth(17).is_some_and(|l| l.contains(shown)), "{}", table.to_markdown());
        }
        let resolved: Vec<_> = table.frame().column("resolved").expect("column").i64().expect("i64").iter().collect();
        assert!(resolved[0] == Some(256) && resolved[15] < Some(220), "{resolved:?}");
    }

    #[test]
    fn the_data_file_has_every_value_in_its_place() {
        let values = Array3::from_shape_fn((2, 3, 4), |(n, p, r)| (100 * n + 10 * p + (3 - r)) as f64);
        let table = spectra_table(&[Cell::new("sm20", 8, values, DType::F64).expect("valid")]).expect("table");
        assert_eq!(table.height(), 24);
        let row = 4 * 3 + 4 + 2; // network 1, point 1, rank 2
        for (name, expected) in [("depth", 8.0), ("network", 1.0), ("point", 1.0), ("rank", 2.0), ("value", 111.0)] {
            let cell = table.frame().column(name).expect("column").get(row).expect("row");
            assert_eq!(cell.try_extract::<f64>().expect("number"), expected, "{name}");
        }
    }

    #[test]
    fn the_figure_has_a_panel_per_initialisation_and_a_curve_per_depth() {
        let figure = figure(&golden(), "Golden values.");
        let svg = figure.to_svg().expect("draws");
        for text in ["uniform-phase MM", "SM20", "depth L:", "rank of the singular value", "Golden values."] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(svg.contains("font-family=\"sans-serif\"") && !svg.contains("DejaVu"));
        for i in 0..4 {
            let c = style::sequence(i, 4).color;
            assert!(svg.contains(&format!("#{:02X}{:02X}{:02X}", c.0, c.1, c.2)), "curve {i} is missing");
        }
        let folder = tempfile::tempdir().expect("temporary folder");
        let keep = std::env::var_os("SINEXP_KEEP_FIGURES").map(std::path::PathBuf::from);
        let stem = keep.as_deref().unwrap_or(folder.path()).join("fig3");
        let [png, svg] = figure.write(&stem).expect("written");
        let reader = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(png).expect("png")))
            .read_info()
            .expect("header");
        // 3.25 inches at 300 dots per inch.
        assert_eq!(reader.info().width, 975);
        assert!(std::fs::read_to_string(svg).expect("svg").ends_with("</svg>\n"));
    }
}
