//! Tables as they were written: rounded cells from Markdown, full numbers from Parquet or CSV.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use polars::prelude::{AnyValue, CsvReadOptions, DataFrame, ParquetReader, SerReader};

use crate::error::{Error, Result};
use crate::files::reason;
use crate::report::significant;

/// A cell as shown, and its number where it is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Rounded.
    pub shown: String,
    /// Unrounded where the file has it.
    pub number: Option<f64>,
}

/// A table to be shown.
#[derive(Clone, Debug)]
pub struct Grid {
    /// File name without extension.
    pub stem: String,
    /// Title; empty for a file that has none.
    pub title: String,
    /// Lines under the title.
    pub notes: Vec<String>,
    /// Headers, with units in square brackets.
    pub header: Vec<String>,
    /// Which columns hold numbers.
    pub numeric: Vec<bool>,
    /// Rows of as many cells as there are headers.
    pub rows: Vec<Vec<Cell>>,
}

/// A table by its file name without extension.
pub(super) fn grid<'a>(grids: &'a [Grid], stem: &str) -> Option<&'a Grid> {
    grids.iter().find(|g| g.stem == stem)
}

impl Grid {
    /// From `folder/stem.md`: a title behind `#`, notes, a pipe table.
    ///
    /// **Errors** when it cannot be read or holds no table.
    pub fn markdown(folder: &Path, stem: &str) -> Result<Self> {
        let path = folder.join(format!("{stem}.md"));
        let fail = |what: String| Error::file(&path, what);
        let text = std::fs::read(&path).map_err(|e| fail(format!("cannot be read: {}", reason(&e))))?;
        let text = String::from_utf8(text).map_err(|_| fail("is damaged: not UTF-8".into()))?;
        Grid::parse(stem, &text).ok_or_else(|| fail("holds no table: expected lines that begin with |".into()))
    }

    fn parse(stem: &str, text: &str) -> Option<Self> {
        let above = text.lines().take_while(|line| !line.starts_with('|')).map(str::trim).filter(|l| !l.is_empty());
        let (titles, notes): (Vec<&str>, Vec<&str>) = above.partition(|line| line.starts_with("# "));
        let mut lines = text.lines().filter(|line| line.starts_with('|')).map(cells);
        let (header, rules) = (lines.next()?, lines.next()?);
        let width = header.len();
        let numeric = (0..width).map(|i| rules.get(i).is_some_and(|rule| rule.ends_with(':'))).collect();
        let cell = |shown: String| Cell { number: number(&shown), shown };
        let rows = lines.map(|row| {
            let mut row: Vec<Cell> = row.into_iter().map(cell).collect();
            row.resize(width, Cell { shown: String::new(), number: None });
            row
        });
        Some(Grid {
            stem: stem.to_owned(),
            title: titles.first().map_or(String::new(), |t| t[2..].to_owned()),
            notes: notes.into_iter().map(str::to_owned).collect(),
            header,
            numeric,
            rows: rows.collect(),
        })
    }

    /// Of a frame without a Markdown version: four significant digits.
    pub fn of(stem: &str, frame: &DataFrame) -> Self {
        let columns = frame.columns();
        let cell = |value: AnyValue| {
            let number = exact(&value);
            let shown = match &value {
                AnyValue::Null => "–".to_owned(),
                AnyValue::Float32(_) | AnyValue::Float64(_) => significant(number.unwrap_or(f64::NAN), 4),
                AnyValue::String(text) => (*text).to_owned(),
                AnyValue::StringOwned(text) => text.to_string(),
                other => other.to_string(),
            };
            Cell { shown, number }
        };
        let row = |i: usize| columns.iter().map(|c| cell(c.get(i).unwrap_or(AnyValue::Null))).collect();
        Grid {
            stem: stem.to_owned(),
            title: String::new(),
            notes: Vec::new(),
            header: columns.iter().map(|c| c.name().to_string()).collect(),
            numeric: columns.iter().map(|c| c.dtype().is_primitive_numeric()).collect(),
            rows: (0..frame.height()).map(row).collect(),
        }
    }

    /// Takes the unrounded numbers of `frame` where it has the same shape; of several files the first that fits.
    pub fn exact(&mut self, frame: &DataFrame) {
        if frame.width() != self.header.len() || frame.height() != self.rows.len() {
            return;
        }
        for (j, column) in frame.columns().iter().enumerate().filter(|(_, c)| c.dtype().is_primitive_numeric()) {
            for (i, row) in self.rows.iter_mut().enumerate() {
                row[j].number = column.get(i).ok().and_then(|v| exact(&v));
            }
        }
    }

    /// The index of the column `name`, with or without a unit.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|h| h.split(" [").next() == Some(name))
    }

    /// The cell of column `name` in the first row whose first cells begin with `row`.
    pub fn cell(&self, row: &[&str], name: &str) -> Option<&Cell> {
        let column = self.column(name)?;
        let begins = |cells: &&Vec<Cell>| row.iter().all(|text| cells.iter().any(|c| c.shown == *text));
        self.rows.iter().find(begins).map(|cells| &cells[column])
    }
}

/// The cells of a line of a pipe table; `\|` is a bar.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').replace("\\|", "\u{1}");
    let inner = inner.strip_suffix('|').unwrap_or(&inner);
    inner.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// A finite number as tables print it.
fn number(text: &str) -> Option<f64> {
    text.replace('\u{2212}', "-").parse().ok().filter(|v: &f64| v.is_finite())
}

fn exact(value: &AnyValue) -> Option<f64> {
    match value {
        AnyValue::Boolean(_) => None,
        other => other.try_extract::<f64>().ok().filter(|v| v.is_finite()),
    }
}

/// A Parquet or CSV file.
///
/// **Errors** when it cannot be read, in one line.
pub fn frame(path: &Path) -> Result<DataFrame> {
    let file = File::open(path).map_err(|e| Error::file(path, format!("cannot be read: {}", reason(&e))))?;
    let read = || match path.extension().is_some_and(|e| e == "csv") {
        true => CsvReadOptions::default().with_infer_schema_length(None).into_reader_with_file_handle(file).finish(),
        false => ParquetReader::new(file).finish(),
    };
    let damaged = |why: &str| {
        let why = why.lines().next().unwrap_or_default();
        Error::file(path, format!("is damaged: {why}; run its program again"))
    };
    // The reader of some damaged files panics; the report goes on without them.
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(frame)) => Ok(frame),
        Ok(Err(error)) => Err(damaged(&error.to_string())),
        Err(_) => Err(damaged("its parts do not fit together")),
    }
}

#[cfg(test)]
mod tests {
    use polars::prelude::{Column, IntoColumn, NamedFrom, Series};

    use super::*;

    const TEXT: &str = "# Table 9: |w| & <b>\nPreset cpu.\nThe paper: more\n\n\
        | init    | max \\|w\\| [nats] | n |\n|---------|------:|--:|\n| a \\| b | 1.5 | − 2 |\n| c | -2.5e-4 | – |\n";

    #[test]
    fn markdown_is_read_as_it_was_written() {
        let grid = Grid::parse("t", TEXT).expect("a table");
        assert_eq!((grid.title.as_str(), grid.notes.len()), ("Table 9: |w| & <b>", 2));
        assert_eq!(grid.header, ["init", "max |w| [nats]", "n"]);
        assert_eq!(grid.numeric, [false, true, true]);
        assert_eq!(grid.cell(&["c"], "max |w|").expect("there").number, Some(-2.5e-4));
        assert_eq!((grid.rows[0][0].shown.as_str(), grid.rows[0][0].number), ("a | b", None));
        assert!(grid.cell(&["d"], "n").is_none() && grid.cell(&["c"], "m").is_none());
        assert!(Grid::parse("t", "# only a title\n").is_none());
        assert!(Grid::parse("t", "| a | b |\n|---|---|\n| short |\n").expect("a table").rows[0].len() == 2);
    }

    #[test]
    fn unrounded_numbers_come_from_the_other_file_if_it_fits() {
        let mut grid = Grid::parse("t", TEXT).expect("a table");
        let column = |name: &str, values: [f64; 2]| Series::new(name.into(), values).into_column();
        let names = Column::new("init".into(), ["a", "c"]);
        let frame = |columns| DataFrame::new_infer_height(columns).expect("fits");
        grid.exact(&frame(vec![names.clone(), column("w", [1.0, 2.0])]));
        assert_eq!(grid.rows[0][1].number, Some(1.5));
        grid.exact(&frame(vec![names, column("w", [1.4999, f64::NAN]), column("n", [1.0, 2.0])]));
        assert_eq!((grid.rows[0][1].number, grid.rows[1][1].number), (Some(1.4999), None));
        assert_eq!(grid.rows[0][1].shown, "1.5");
    }

    #[test]
    fn damaged_files_are_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.parquet");
        let table = crate::report::Table::new("t", vec![Column::new("x".into(), (0..500).collect::<Vec<i64>>())]);
        table.expect("fits").write(&path, crate::report::TableFormat::Parquet).expect("written");
        let whole = std::fs::read(&path).expect("bytes");
        assert_eq!(frame(&path).expect("whole").height(), 500);
        for cut in [0, 4, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).expect("written");
            let line = frame(&path).expect_err("damaged").to_string();
            assert!(line.contains("t.parquet: is damaged") && !line.contains('\n'), "{line}");
        }
    }
}
