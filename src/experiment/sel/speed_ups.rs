//! Speed-ups in steps from the table of `sel-table1`, for the wall-clock estimates of Table 7.

use std::fs::File;
use std::path::{Path, PathBuf};

use polars::prelude::{DataType, ParquetReader, SerReader};

use super::size::Size;
use crate::error::{Error, Result};

/// What `sel-table1` measured.
#[derive(Clone, Debug)]
pub struct Table1 {
    path: PathBuf,
    rows: Vec<Row1>,
}

/// A row of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row1 {
    width: i64,
    depth: i64,
    variant: String,
    speed_up: f64,
}

impl Table1 {
    /// Reads `table.parquet` of `sel-table1`.
    ///
    /// **Errors** when the file cannot be read or lacks a column of that table.
    pub fn read(path: &Path) -> Result<Self> {
        let wrong = |e: &dyn std::fmt::Display| {
            Error::file(path, format!("is no Table 1 ({e}): give table.parquet of sel-table1"))
        };
        let file = File::open(path).map_err(|e| Error::file(path, format!("cannot be opened: {e}")))?;
        let frame = ParquetReader::new(file).finish().map_err(|e| wrong(&e))?;
        let column = |name: &str| frame.column(name).map_err(|_| wrong(&format!("no column `{name}`")));
        let typed = |name: &str, dtype: DataType| column(name)?.strict_cast(&dtype).map_err(|e| wrong(&e));
        let (widths, depths) = (typed("width", DataType::Int64)?, typed("depth", DataType::Int64)?);
        let (variants, speeds) = (typed("best SEL", DataType::String)?, typed("speed-up", DataType::Float64)?);
        let (widths, depths) = (widths.i64().map_err(|e| wrong(&e))?, depths.i64().map_err(|e| wrong(&e))?);
        let (variants, speeds) = (variants.str().map_err(|e| wrong(&e))?, speeds.f64().map_err(|e| wrong(&e))?);
        let row = |i: usize| {
            let (width, depth) = (widths.get(i)?, depths.get(i)?);
            let variant = variants.get(i)?.to_owned();
            Some(Row1 { width, depth, variant, speed_up: speeds.get(i).unwrap_or(f64::NAN) })
        };
        Ok(Table1 { path: path.to_owned(), rows: (0..frame.height()).filter_map(row).collect() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn row(&self, size: Size) -> Option<&Row1> {
        self.rows.iter().find(|r| r.width == size.width as i64 && r.depth == size.depth as i64)
    }
}

/// The speed-up in steps for a size, and what to say of where it is from.
pub(super) fn speed_up(table1: Option<&Table1>, size: Size) -> (Option<f64>, String) {
    let Some(table1) = table1 else { return (None, "no Table 1".into()) };
    match table1.row(size) {
        None => (None, format!("no row {size}")),
        Some(row) if row.speed_up.is_finite() => (Some(row.speed_up), format!("row {size}, {}", row.variant)),
        Some(row) => (None, format!("row {size}, {}: baseline not reached", row.variant)),
    }
}

/// A Table 1 with a speed-up and one that was not reached.
#[cfg(test)]
pub(super) fn example(folder: &Path) -> PathBuf {
    use polars::prelude::Column;

    use super::tables::{numbers, whole};
    use crate::report::{Table, TableFormat};

    let columns = vec![
        whole("width", [128, 128].into_iter()),
        whole("depth", [2, 4].into_iter()),
        Column::new("best SEL".into(), ["SEL mismatch", "SEL sinh"]),
        numbers("speed-up", vec![1.5, f64::NAN]),
    ];
    let path = folder.join("table.parquet");
    Table::new("Table 1", columns).expect("fits").write(&path, TableFormat::Parquet).expect("written");
    path
}

#[cfg(test)]
mod tests {
    use super::super::tables::whole;
    use super::*;
    use crate::report::{Table, TableFormat};

    #[test]
    fn speed_ups_are_found_by_width_and_depth() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let table1 = Table1::read(&example(folder.path())).expect("a Table 1");
        let of = |width, depth| speed_up(Some(&table1), Size { width, depth });
        assert_eq!(of(128, 2), (Some(1.5), "row 128 × 2, SEL mismatch".into()));
        assert_eq!(of(128, 4), (None, "row 128 × 4, SEL sinh: baseline not reached".into()));
        assert_eq!(of(256, 4), (None, "no row 256 × 4".into()));
        assert_eq!(speed_up(None, Size { width: 1, depth: 1 }).0, None);
    }

    #[test]
    fn other_files_are_no_table_1() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let refused = |path: &Path| Table1::read(path).expect_err("refused").to_string();
        let other = folder.path().join("other.parquet");
        Table::new("x", vec![whole("width", [1].into_iter())])
            .expect("fits")
            .write(&other, TableFormat::Parquet)
            .expect("written");
        assert!(refused(&other).contains("no column `depth`"), "{}", refused(&other));
        let text = folder.path().join("table.md");
        std::fs::write(&text, "| width |").expect("written");
        assert!(refused(&text).contains("is no Table 1"), "{}", refused(&text));
        assert!(refused(&folder.path().join("none")).contains("cannot be opened"));
    }
}
