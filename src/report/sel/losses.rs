//! Loss curves of language models (2607.09967, Figures 4 and 5).
//!
//! ```
//! use sinexp::report::FigureFiles;
//! use sinexp::report::sel::losses::{LossCell, LossCurve, evaluation_figure};
//! let curve = |id: &str, end: f64| {
//!     let loss = |i| (100.0 * f64::from(i), 5.5 + (end - 5.5) * f64::from(i) / 10.0);
//!     LossCurve { id: id.into(), points: (0..=10).map(loss).collect() }
//! };
//! let curves = vec![curve("baseline", 3.0), curve("mine", 2.96)];
//! let figure = evaluation_figure(&[LossCell { width: 128, depth: 4, curves, gap: -0.04 }], "");
//! // Two curves from step 100 on: the first tenth is left out.
//! let table = figure.curves()?.unwrap();
//! assert_eq!((table.height(), table.frame().column("x").unwrap().f64().unwrap().get(0)), (20, Some(100.0)));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use crate::report::style::{COLUMN_WIDTH, TEXT_WIDTH, named};
use panelplot::{Axis, Figure, Legend, Panel};

/// A curve of a method.
#[derive(Clone, Debug)]
pub struct LossCurve {
    /// Name of a method (`style::method`); another one is shown as it is.
    pub id: String,
    /// Step and loss.
    pub points: Vec<(f64, f64)>,
}

/// The curves of one width and depth.
#[derive(Clone, Debug)]
pub struct LossCell {
    /// d.
    pub width: usize,
    /// Blocks.
    pub depth: usize,
    /// Its curves.
    pub curves: Vec<LossCurve>,
    /// Final loss of the last curve minus that of the first.
    pub gap: f64,
}

/// Points that a training curve keeps: means of equally many neighbours.
const SMOOTH: usize = 150;

/// Figure 4: evaluation loss against step, a row of panels per width and a column per depth. The first tenth of the steps
/// is left out, where losses are far above the rest.
pub fn evaluation_figure(cells: &[LossCell], note: &str) -> Figure {
    let mut widths: Vec<usize> = cells.iter().map(|c| c.width).collect();
    widths.dedup();
    let columns = cells.iter().filter(|c| Some(&c.width) == widths.first()).count().max(1);
    let width = if columns > 1 { TEXT_WIDTH } else { COLUMN_WIDTH };
    let mut figure = Figure::new(width, columns).aspect(0.72).legend(Legend::Below, None);
    for cell in cells {
        let last = cell.curves.iter().flat_map(|c| c.points.last()).map(|p| p.0).fold(0.0, f64::max);
        let title = format!("width {}, depth {}: Δ = {}", cell.width, cell.depth, signed(cell.gap));
        let mut panel = Panel::new(title, Axis::linear("step"), Axis::linear("eval loss [nats per token]"));
        for (i, curve) in cell.curves.iter().enumerate() {
            let (label, style) = named(&curve.id, i, cell.curves.len());
            let points = curve.points.iter().copied().filter(|p| p.0 >= 0.1 * last && p.1.is_finite()).collect();
            panel = panel.line(label, style, points);
        }
        figure = figure.panel(panel);
    }
    figure.note(note)
}

/// Figure 5: training loss against step.
pub fn training_figure(curves: &[LossCurve], note: &str) -> Figure {
    let mut panel = Panel::new("", Axis::linear("step"), Axis::linear("training loss [nats per token]"));
    let each = curves.iter().map(|c| c.points.len()).max().unwrap_or(0).div_ceil(SMOOTH).max(1);
    for (i, curve) in curves.iter().enumerate() {
        let (label, style) = named(&curve.id, i, curves.len());
        panel = panel.line(label, style, curve.points.chunks(each).map(mean).collect());
    }
    let means = if each > 1 { format!("Means of {each} steps each. ") } else { String::new() };
    Figure::new(COLUMN_WIDTH, 1).aspect(0.7).panel(panel).note(format!("{means}{note}"))
}

fn mean(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n)
}

/// With three decimals and a real minus.
fn signed(value: f64) -> String {
    format!("{value:+.3}").replace('-', "\u{2212}")
}
