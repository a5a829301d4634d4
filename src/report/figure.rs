//! Writing figures: pictures, and beside them their curves as numbers, which the report's interactive charts are made of.

use std::path::{Path, PathBuf};

use polars::prelude::Column;

use super::style::{Color, Dash};
use super::table::{Table, TableFormat};
use crate::error::Result;
use crate::files::write_bytes;
use panelplot::Scale;
use panelplot::{Figure, Mark};

/// What follows the figure's name in the name of the file.
pub const CURVES: &str = ".curves.parquet";

/// Points that a curve keeps; of a longer one every second, third ... is kept, and the last.
const MOST: usize = 1500;

/// How a mark is told apart in the table's column `kind`.
pub(super) const KINDS: [&str; 3] = ["line", "points", "level"];

#[derive(Default)]
struct Rows {
    panel: Vec<i64>,
    text: [Vec<String>; 7],
    log: [Vec<bool>; 2],
    width: Vec<f64>,
    point: [Vec<f64>; 2],
}

/// Files of a figure: pictures, each complete or absent, and its curves as numbers.
pub trait FigureFiles {
    /// Writes a PNG, 300 dots per inch at the printed size, and returns its path. **Errors** when it cannot be written.
    fn write_png(&self, path: impl Into<PathBuf>) -> Result<PathBuf>;

    /// Writes an SVG and returns its path. **Errors** when it cannot be written.
    fn write_svg(&self, path: impl Into<PathBuf>) -> Result<PathBuf>;

    /// Lines, points and levels of all panels, one point a row; None for a figure without any. Columns: `panel` (its number),
    /// `title`, `x label`, `y label`, `curve` (its legend entry), `kind` (`line`, `points` or `level`), `color` (#rrggbb),
    /// `dash` (CSS-like names), `x log`, `y log`, `width` (points of the page), `x`, `y` (in data units). Of a curve with more than 1500
    /// points every second, third ... is kept.
    ///
    /// **Errors** are the table's.
    fn curves(&self) -> Result<Option<Table>>;

    /// Writes `stem.png` and `stem.svg`. **Errors** when a file cannot be written.
    fn write(&self, stem: impl AsRef<Path>) -> Result<[PathBuf; 2]> {
        let stem = stem.as_ref();
        Ok([self.write_png(with(stem, ".png"))?, self.write_svg(with(stem, ".svg"))?])
    }

    /// [`FigureFiles::write`], and the curves as `stem.curves.parquet`, which `report` makes an interactive chart of.
    ///
    /// **Errors** when a file cannot be written.
    fn write_with_curves(&self, stem: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        let mut files = self.write(&stem)?.to_vec();
        if let Some(table) = self.curves()? {
            let path = with(stem.as_ref(), CURVES);
            table.write(&path, TableFormat::Parquet)?;
            files.push(path);
        }
        Ok(files)
    }
}

/// A name may hold dots, so that an extension is not replaced but added.
fn with(stem: &Path, extension: &str) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    path.push(extension);
    path.into()
}

impl FigureFiles for Figure {
    fn write_png(&self, path: impl Into<PathBuf>) -> Result<PathBuf> {
        let path = path.into();
        write_bytes(&path, &self.to_png()?).map(|()| path)
    }

    fn write_svg(&self, path: impl Into<PathBuf>) -> Result<PathBuf> {
        let path = path.into();
        write_bytes(&path, self.to_svg()?.as_bytes()).map(|()| path)
    }

    fn curves(&self) -> Result<Option<Table>> {
        let mut rows = Rows::default();
        let mut row = "";
        for (number, panel) in self.panels.iter().enumerate() {
            // The first panel of a row carries its name.
            row = if panel.row.is_empty() { row } else { &panel.row };
            if panel.bare() {
                continue;
            }
            let parts = [row, panel.title.as_str()].map(|t| t.replace('\n', " "));
            let title = parts.iter().filter(|t| !t.is_empty()).map(String::as_str).collect::<Vec<_>>().join(": ");
            for mark in &panel.marks {
                let (kind, label, points, color, dash, width) = match mark {
                    Mark::Line { points, style, label } => {
                        (KINDS[0], label, points.clone(), style.color, style.dash, style.width)
                    }
                    Mark::Points { points, color, label, .. } => {
                        (KINDS[1], label, points.clone(), *color, Dash::Solid, 1.0)
                    }
                    Mark::Level { y, style, label } => {
                        (KINDS[2], label, vec![(0.0, *y)], style.color, style.dash, style.width)
                    }
                    Mark::Band { .. } | Mark::Upright { .. } | Mark::Bars { .. } => continue,
                };
                let each = points.len().div_ceil(MOST).max(1);
                let last = points.len().saturating_sub(1);
                for (_, point) in points.iter().enumerate().filter(|(i, _)| i % each == 0 || *i == last) {
                    let label = label.clone().unwrap_or_default();
                    let axes = [&panel.x, &panel.y];
                    let [x, y] = axes.map(|a| a.label.replace('\n', " "));
                    let text = [title.clone(), x, y, label, kind.to_owned(), hex(color), name(dash).to_owned()];
                    rows.panel.push(number as i64);
                    rows.text.iter_mut().zip(text).for_each(|(column, value)| column.push(value));
                    rows.log.iter_mut().zip(axes).for_each(|(column, a)| column.push(a.scale == Scale::Log));
                    rows.width.push(width);
                    rows.point.iter_mut().zip([point.0, point.1]).for_each(|(column, value)| column.push(value));
                }
            }
        }
        if rows.panel.is_empty() {
            return Ok(None);
        }
        let names = ["title", "x label", "y label", "curve", "kind", "color", "dash"];
        let mut columns = vec![Column::new("panel".into(), rows.panel)];
        columns.extend(names.iter().zip(rows.text).map(|(name, values)| Column::new((*name).into(), values)));
        columns.extend(["x log", "y log"].into_iter().zip(rows.log).map(|(n, values)| Column::new(n.into(), values)));
        columns.push(Column::new("width".into(), rows.width));
        columns.extend(["x", "y"].into_iter().zip(rows.point).map(|(name, values)| Column::new(name.into(), values)));
        Table::new("Curves", columns).map(Some)
    }
}

fn hex(color: Color) -> String {
    format!("#{:02x}{:02x}{:02x}", color.0, color.1, color.2)
}

fn name(dash: Dash) -> &'static str {
    match dash {
        Dash::Solid => "solid",
        Dash::Dashed => "dash",
        Dash::Dotted => "dot",
        Dash::DashDot => "dashdot",
        Dash::LongDash => "longdash",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::style::{LineStyle, Marker, PALETTE};
    use panelplot::Axis;
    use panelplot::Panel;

    #[test]
    fn every_curve_is_there_and_long_ones_are_thinned() {
        let style = LineStyle::new(PALETTE[0], Dash::Dashed, Marker::None);
        let long = (0..4000).map(|i| (f64::from(i), 1.0)).collect();
        let panel = Panel::new("a\nb", Axis::linear("step"), Axis::log("loss")).row_title("gray");
        let panel = panel.line("short", style, vec![(1.0, 2.0), (3.0, f64::NAN)]).line("long", style, long);
        let figure = Figure::new(3.0, 2).panel(Panel::blank()).panel(panel);
        let table = figure.curves().expect("a table").expect("curves");
        assert_eq!(table.height(), 2 + 1334);
        let at =
            |column: &str, row: usize| table.frame().column(column).expect("there").get(row).expect("row").to_string();
        assert_eq!(
            (at("panel", 0), at("title", 0), at("y log", 0)),
            ("1".into(), "\"gray: a b\"".into(), "true".into())
        );
        assert_eq!((at("x", 1335), at("dash", 5)), ("3999.0".into(), "\"dash\"".into()));
        assert!(Figure::new(3.0, 1).panel(Panel::blank()).curves().expect("none").is_none());
        let folder = tempfile::tempdir().expect("a folder");
        let files = figure.write_with_curves(folder.path().join("f")).expect("written");
        assert!(files[2].ends_with("f.curves.parquet") && files[2].is_file());
    }
}
