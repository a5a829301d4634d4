//! Tables: a polars frame with a title, units and sensible digits, printed and written as CSV, Parquet and Markdown.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use polars::prelude::{AnyValue, Column, CsvWriter, DataFrame, ParquetWriter, SerWriter};

use crate::error::{Error, Result};
use crate::files::{write_atomically, write_bytes};

/// File formats of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableFormat {
    /// Comma-separated, full precision in the fewest digits that read back to the same number.
    Csv,
    /// Apache Parquet, zstd.
    Parquet,
    /// A pipe table with rounded numbers, for a README.
    Markdown,
}

impl TableFormat {
    /// The usual extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            TableFormat::Csv => "csv",
            TableFormat::Parquet => "parquet",
            TableFormat::Markdown => "md",
        }
    }
}

/// A titled frame of columns.
#[derive(Clone, Debug)]
pub struct Table {
    title: String,
    frame: DataFrame,
    units: Vec<String>,
    digits: Vec<usize>,
    instead: BTreeMap<(usize, usize), String>,
}

impl Table {
    /// From columns of one length. Numbers are shown with four significant digits until [`Table::digits`] says else.
    ///
    /// **Errors** when lengths differ or a name occurs twice.
    pub fn new(title: impl Into<String>, columns: Vec<Column>) -> Result<Self> {
        let title = title.into();
        let count = columns.len();
        let frame = DataFrame::new_infer_height(columns).map_err(|e| Error::numeric(format!("table `{title}`"), e))?;
        Ok(Table { title, frame, units: vec![String::new(); count], digits: vec![4; count], instead: BTreeMap::new() })
    }

    /// Shows `unit` in square brackets behind the column's name. A name the table does not have is ignored.
    pub fn unit(mut self, column: &str, unit: &str) -> Self {
        if let Some(i) = self.index(column) {
            self.units[i] = unit.to_owned();
        }
        self
    }

    /// Shows the column's floating-point numbers with this many significant digits (at least one).
    pub fn digits(mut self, column: &str, digits: usize) -> Self {
        if let Some(i) = self.index(column) {
            self.digits[i] = digits.max(1);
        }
        self
    }

    /// Shows `text` in this row of the column, where people read the table; the number itself, or that there is none, stays
    /// in files of numbers. A name the table does not have is ignored.
    pub fn instead(mut self, column: &str, row: usize, text: String) -> Self {
        if let Some(i) = self.index(column) {
            self.instead.insert((i, row), text);
        }
        self
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The numbers themselves, unrounded.
    pub fn frame(&self) -> &DataFrame {
        &self.frame
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.frame.height()
    }

    fn index(&self, column: &str) -> Option<usize> {
        self.frame.columns().iter().position(|c| c.name().as_str() == column)
    }

    /// Headers and rounded cells, and whether each column is numeric.
    pub(super) fn cells(&self) -> (Vec<Vec<String>>, Vec<bool>) {
        let columns = self.frame.columns();
        let mut rows = vec![Vec::with_capacity(columns.len()); self.frame.height() + 1];
        for (i, column) in columns.iter().enumerate() {
            let unit = &self.units[i];
            let header = column.name().to_string();
            rows[0].push(if unit.is_empty() { header } else { format!("{header} [{unit}]") });
            for row in 0..column.len() {
                if let Some(text) = self.instead.get(&(i, row)) {
                    rows[row + 1].push(text.clone());
                    continue;
                }
                rows[row + 1].push(match column.get(row) {
                    Ok(AnyValue::Float64(v)) => significant(v, self.digits[i]),
                    Ok(AnyValue::Float32(v)) => significant(f64::from(v), self.digits[i]),
                    Ok(AnyValue::String(text)) => text.to_owned(),
                    Ok(AnyValue::StringOwned(text)) => text.to_string(),
                    Ok(AnyValue::Null) | Err(_) => "–".to_owned(),
                    Ok(other) => other.to_string(),
                });
            }
        }
        (rows, columns.iter().map(|c| c.dtype().is_primitive_numeric()).collect())
    }

    /// As a Markdown pipe table, numbers to the right.
    pub fn to_markdown(&self) -> String {
        let (rows, numeric) = self.cells();
        let widths = widths(&rows);
        let mut out = String::new();
        for (i, row) in rows.iter().enumerate() {
            let cells: Vec<String> =
                row.iter().zip(&widths).zip(&numeric).map(|((c, w), n)| pad(&c.replace('|', "\\|"), *w, *n)).collect();
            out += &format!("| {} |\n", cells.join(" | "));
            if i == 0 {
                let rules = widths.iter().zip(&numeric).map(|(w, n)| match n {
                    true => format!("{}:", "-".repeat(*w + 1)),
                    false => "-".repeat(*w + 2),
                });
                out += &format!("|{}|\n", rules.collect::<Vec<_>>().join("|"));
            }
        }
        out
    }

    /// Writes `path` in `format`; the file is complete or absent.
    ///
    /// **Errors** when it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, format: TableFormat) -> Result<()> {
        let path = path.as_ref();
        let fail = |e: polars::error::PolarsError| Error::file(path, format!("cannot be written: {e}"));
        let mut frame = self.frame.clone();
        match format {
            TableFormat::Csv => write_atomically(path, |w| CsvWriter::new(w).finish(&mut frame).map_err(fail)),
            TableFormat::Parquet => {
                write_atomically(path, |w| ParquetWriter::new(w).finish(&mut frame).map(|_| ()).map_err(fail))
            }
            TableFormat::Markdown => {
                write_bytes(path, format!("# {}\n\n{}", self.title, self.to_markdown()).as_bytes())
            }
        }
    }

    /// Writes `folder/stem.csv` and so on, one file for each of `formats`, and returns their paths.
    pub fn write_all(&self, folder: impl AsRef<Path>, stem: &str, formats: &[TableFormat]) -> Result<Vec<PathBuf>> {
        let path = |f: &TableFormat| folder.as_ref().join(format!("{stem}.{}", f.extension()));
        formats.iter().map(|f| self.write(path(f), *f).map(|()| path(f))).collect()
    }
}

impl fmt::Display for Table {
    /// The title, a rule, aligned columns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, numeric) = self.cells();
        let widths = widths(&rows);
        writeln!(f, "{}", self.title)?;
        for (i, row) in rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().zip(&widths).zip(&numeric).map(|((c, w), n)| pad(c, *w, *n)).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
            if i == 0 {
                writeln!(f, "{}", widths.iter().map(|w| "-".repeat(*w)).collect::<Vec<_>>().join("  "))?;
            }
        }
        Ok(())
    }
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let count = rows.first().map_or(0, Vec::len);
    (0..count).map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0)).collect()
}

/// Padded to `width` characters, numbers on the right. (The standard padding counts the same way.)
fn pad(text: &str, width: usize, right: bool) -> String {
    if right { format!("{text:>width$}") } else { format!("{text:<width$}") }
}

/// `value` rounded to `digits` significant digits: plainly from 1e-3 up to below 1e6, else as `1.234e-9`.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN".into()
        } else if value > 0.0 {
            "inf".into()
        } else {
            "-inf".into()
        };
    }
    if value == 0.0 {
        return "0".into();
    }
    // Rounded first: 9.9996 with four digits is 10.00, one digit before the point more than it had.
    let rounded = format!("{value:.*e}", digits - 1);
    let exponent: i32 = rounded.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    if !(-3..6).contains(&exponent) {
        return rounded;
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    format!("{value:.decimals$}")
}

/// Three significant digits, with a real minus and a raised exponent: `0.00123`, `1.23 × 10⁻⁵`, `−∞`.
pub(super) fn readable(value: f64) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = significant(value, 3).replace("inf", "∞");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text.replace('-', "\u{2212}");
    };
    let raised = |c: char| c.to_digit(10).map_or('⁻', |d| RAISED[d as usize]);
    let exponent: String = exponent.chars().map(raised).collect();
    format!("{} × 10{exponent}", mantissa.replace('-', "\u{2212}"))
}

/// The values of `key` in order of first appearance.
pub(super) fn distinct<'a, T>(all: &'a [T], key: impl Fn(&'a T) -> &'a str) -> Vec<&'a str> {
    let mut out: Vec<&str> = Vec::new();
    for value in all.iter().map(key) {
        if !out.contains(&value) {
            out.push(value);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        Table::new(
            "Spectra",
            vec![
                Column::new("init".into(), ["uniform-mm", "σ|0"]),
                Column::new("depth".into(), [4i64, 32]),
                Column::new("largest".into(), [3.529_208_98, 1.234_567_8e-9]),
                Column::new("error".into(), [Some(0.012_345), None]),
            ],
        )
        .expect("columns fit")
        .unit("largest", "1")
        .digits("error", 2)
    }

    #[test]
    fn numbers_keep_their_significant_digits() {
        let cases = [
            (3.529_208_98, "3.529"),
            (9.999_6, "10.00"),
            (0.001_234_56, "0.001235"),
            (0.000_999_96, "0.001000"),
            (0.000_123_456, "1.235e-4"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.235e6"),
            (-2.5, "-2.500"),
            (0.0, "0"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value, 4), text);
        }
        assert_eq!(significant(0.999, 1), "1");
    }

    #[test]
    fn printed_columns_are_aligned() {
        let expected = "\
Spectra
init        depth  largest [1]  error
----------  -----  -----------  -----
uniform-mm      4        3.529  0.012
σ|0            32     1.235e-9      –
";
        assert_eq!(sample().to_string(), expected);
    }

    #[test]
    fn markdown_aligns_numbers_right_and_escapes_bars() {
        let text = sample().to_markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "|------------|------:|------------:|------:|");
        assert!(lines[3].starts_with("| σ\\|0"), "{}", lines[3]);
    }

    #[test]
    fn files_hold_the_unrounded_numbers() {
        use polars::prelude::{CsvReadOptions, ParquetReader, SerReader};
        let folder = tempfile::tempdir().expect("temporary folder");
        let table = sample();
        let formats = [TableFormat::Csv, TableFormat::Parquet, TableFormat::Markdown];
        let paths = table.write_all(folder.path(), "spectra", &formats).expect("written");
        let csv = std::fs::read_to_string(&paths[0]).expect("csv");
        assert!(csv.starts_with("init,depth,largest,error\nuniform-mm,4,3.52920898,0.012345\n"), "{csv}");
        let read = CsvReadOptions::default().try_into_reader_with_file_path(Some(paths[0].clone())).expect("opens");
        assert!(read.finish().expect("parses").equals_missing(table.frame()));
        let file = std::fs::File::open(&paths[1]).expect("parquet");
        assert!(ParquetReader::new(file).finish().expect("parses").equals_missing(table.frame()));
        assert!(std::fs::read_to_string(&paths[2]).expect("markdown").contains("| uniform-mm |"));
        let nowhere = folder.path().join("none/x.csv");
        assert!(table.write(&nowhere, TableFormat::Csv).is_err() && !nowhere.exists());
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let error = Table::new("t", vec![Column::new("a".into(), [1.0]), Column::new("b".into(), [1.0, 2.0])]);
        assert!(error.expect_err("lengths differ").to_string().contains("table `t`"));
    }
}
