//! The numbers of a chart, as the page's script reads them.

use std::path::Path;

use polars::prelude::{AnyValue, DataFrame};
use serde::Serialize;

use super::grid::frame;
use crate::error::{Error, Result};

/// Panels of curves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// In the figure's order.
    pub panels: Vec<Panel>,
}

/// One set of axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Panel {
    title: String,
    x: String,
    y: String,
    x_log: bool,
    y_log: bool,
    curves: Vec<Curve>,
}

/// A curve, points or a level; numbers without a place are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Curve {
    name: String,
    kind: String,
    color: String,
    dash: String,
    width: f64,
    x: Vec<Option<f64>>,
    y: Vec<Option<f64>>,
}

impl Chart {
    /// From a file of `Figure::write_with_curves`.
    ///
    /// **Errors** when it is damaged or has other columns.
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_frame(&frame(path)?)
            .ok_or_else(|| Error::file(path, "does not hold the curves of a figure; run its program again"))
    }

    fn from_frame(frame: &DataFrame) -> Option<Self> {
        let text = |name: &str| frame.column(name).ok()?.str().ok();
        let flag = |name: &str| frame.column(name).ok()?.bool().ok();
        let [titles, x_labels, y_labels, names, kinds, colors, dashes] = [
            text("title")?,
            text("x label")?,
            text("y label")?,
            text("curve")?,
            text("kind")?,
            text("color")?,
            text("dash")?,
        ];
        let (x_log, y_log) = (flag("x log")?, flag("y log")?);
        let numbers = frame.column("panel").ok()?.i64().ok()?;
        let [xs, ys, widths] = ["x", "y", "width"].map(|n| frame.column(n).ok().and_then(|c| c.f64().ok()));
        let (xs, ys, widths) = (xs?, ys?, widths?);
        let mut chart = Chart { panels: Vec::new() };
        let mut before = None;
        for row in 0..frame.height() {
            let number = numbers.get(row)?;
            let word = |column: &polars::prelude::StringChunked| column.get(row).unwrap_or_default().to_owned();
            if before != Some(number) {
                chart.panels.push(Panel {
                    title: word(titles),
                    x: word(x_labels),
                    y: word(y_labels),
                    x_log: x_log.get(row)?,
                    y_log: y_log.get(row)?,
                    curves: Vec::new(),
                });
                before = Some(number);
            }
            let curves = &mut chart.panels.last_mut()?.curves;
            let (name, kind, color) = (word(names), word(kinds), word(colors));
            let x = finite(xs.get(row));
            // Curves without a name follow each other; the next one begins where x goes back.
            let same = curves.last().is_some_and(|c| {
                let back = c.name.is_empty() && c.x.last().copied().flatten() > x;
                c.name == name && c.kind == kind && c.color == color && !back
            });
            if !same {
                let (dash, width) = (word(dashes), widths.get(row).unwrap_or(1.0));
                curves.push(Curve { name, kind, color, dash, width, ..Curve::default() });
            }
            let curve = curves.last_mut()?;
            curve.x.push(x);
            curve.y.push(finite(ys.get(row)));
        }
        // Inner panels of a grid leave their labels to those at its border.
        fill(&mut chart.panels, |panel| &mut panel.x);
        fill(&mut chart.panels, |panel| &mut panel.y);
        (!chart.panels.is_empty()).then_some(chart)
    }

    /// The panel to begin with: the first of the row that the experiment's heading ends with, as in `ω₀ sweep, RGB`.
    pub fn start(&self, heading: &str) -> usize {
        let row = heading.rsplit(", ").next().unwrap_or_default();
        self.panels.iter().position(|p| p.title.split_once(": ").is_some_and(|(of, _)| of == row)).unwrap_or(0)
    }

    /// As JSON that may stand inside an HTML script element.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default().replace('<', "\\u003c")
    }

    /// What it shows, in words: axes and curves.
    pub fn describe(&self) -> String {
        let Some(first) = self.panels.first() else { return String::new() };
        let named: Vec<&str> = first.curves.iter().map(|c| c.name.as_str()).filter(|n| !n.is_empty()).collect();
        let panels = if self.panels.len() > 1 { format!(", {} panels", self.panels.len()) } else { String::new() };
        format!("{} against {}{panels}; curves: {}", first.y, first.x, named.join(", "))
    }
}

/// Gives panels without a label the first one there is.
fn fill(panels: &mut [Panel], axis: fn(&mut Panel) -> &mut String) {
    let label = panels.iter_mut().map(|p| axis(p).clone()).find(|l| !l.is_empty()).unwrap_or_default();
    panels.iter_mut().map(axis).filter(|l| l.is_empty()).for_each(|l| l.clone_from(&label));
}

/// With seven significant digits, more than a screen shows.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|v| v.is_finite()).and_then(|v| format!("{v:.6e}").parse().ok())
}

/// The losses in a file of single values by step: of `fit` (`losses.parquet`) or `sel train` (`metrics.parquet`).
pub fn of_losses(stem: &str, frame: &DataFrame) -> Option<Chart> {
    if !["losses", "metrics"].contains(&stem) {
        return None;
    }
    let column = |name: &str| -> Option<Vec<Option<f64>>> {
        let column = frame.column(name).ok()?;
        let value = |i: usize| column.get(i).unwrap_or(AnyValue::Null).try_extract::<f64>().ok();
        Some((0..column.len()).map(|i| finite(value(i))).collect())
    };
    let steps = column("step")?;
    let each = steps.len().div_ceil(3000).max(1);
    let curve = |(name, label, color): (&str, &str, &str)| {
        let points = steps.iter().zip(column(name)?).filter(|(_, y)| y.is_some());
        // Evaluations are rare: only the training losses are thinned.
        let each = if name == "loss" { each } else { 1 };
        let (x, y): (Vec<_>, Vec<_>) = points.step_by(each).map(|(x, y)| (*x, y)).unzip();
        let (kind, dash) = ("line".to_owned(), "solid".to_owned());
        (!x.is_empty()).then(|| Curve { name: label.to_owned(), kind, color: color.to_owned(), dash, width: 1.2, x, y })
    };
    let kinds = [("loss", "training loss", "#0072b2"), ("eval_loss", "evaluation loss", "#d55e00")];
    let curves: Vec<Curve> = kinds.into_iter().filter_map(curve).collect();
    let (x, y) = ("step".to_owned(), "loss".to_owned());
    let panel = Panel { x, y, y_log: stem == "losses", curves, ..Panel::default() };
    (!panel.curves.is_empty()).then(|| Chart { panels: vec![panel] })
}

#[cfg(test)]
mod tests {
    use polars::prelude::Column;

    use super::*;
    use crate::report::style::{LineStyle, Marker, PALETTE};
    use crate::report::{Axis, CURVES, Figure, FigureFiles, Panel as Drawn};

    #[test]
    fn a_figure_comes_back_panel_by_panel() {
        let style = |i: usize| LineStyle::new(PALETTE[i], crate::report::style::Dash::Solid, Marker::None);
        let points = |y: f64| vec![(1.0, y), (2.0, f64::INFINITY), (3.0, y / 3.0)];
        let panel = |title: &str| {
            let panel = Drawn::new(title, Axis::log("omega0"), Axis::linear("<MSE>"));
            panel.line("a", style(0), points(1.0)).line("b </script>", style(1), points(2.0))
        };
        let folder = tempfile::tempdir().expect("a folder");
        let figure = Figure::new(3.0, 2).panel(panel("one")).panel(panel("two"));
        figure.write_with_curves(folder.path().join("f")).expect("written");
        let chart = Chart::read(&folder.path().join(format!("f{CURVES}"))).expect("curves");
        assert_eq!(chart.panels.len(), 2);
        let second = &chart.panels[1];
        assert_eq!((second.title.as_str(), second.x_log, second.y_log, second.curves.len()), ("two", true, false, 2));
        assert_eq!(second.curves[0].y, [Some(1.0), None, Some(0.333_333_3)]);
        assert_eq!((chart.start("Sweep, RGB"), chart.start("")), (0, 0));
        assert!(!chart.json().contains('<'));
        assert_eq!(chart.describe(), "<MSE> against omega0, 2 panels; curves: a, b </script>");
    }

    #[test]
    fn losses_of_single_runs_are_charts() {
        let column = |name: &str, values: [Option<f64>; 3]| Column::new(name.into(), values);
        let step = Column::new("step".into(), [1i64, 2, 3]);
        let loss = column("loss", [Some(3.0), Some(2.0), Some(f64::NAN)]);
        let frame = DataFrame::new_infer_height(vec![step, loss, column("eval_loss", [None, Some(2.5), None])]);
        let chart = of_losses("metrics", &frame.expect("fits")).expect("a chart");
        assert_eq!((chart.panels[0].curves[0].x.len(), chart.panels[0].curves[1].y[0]), (2, Some(2.5)));
        let other = DataFrame::new_infer_height(vec![column("loss", [None; 3])]).expect("fits");
        assert!(of_losses("metrics", &other).is_none());
    }
}
