//! Figures 8 and 9 of the SEL paper (2607.09967): learned transforms by module role, and the table beside them.
//!
//! ```
//! use sinexp::analysis::sel_shapes::{ShapeSettings, shapes};
//! use sinexp::nn::language_model::{LanguageModel, Start};
//! use sinexp::nn::{sel::Sel, transformer::Transformer};
//! use sinexp::report::sel::shapes::{shape_curves, shape_table};
//! # use sinexp::random::Key;
//! let (transformer, sel) = (Transformer::new(32, 16, 1), Sel::new(8.0));
//! let parameters = LanguageModel::new(transformer.clone(), sel.clone()).initial(Start::default(), Key::new(0))?;
//! let settings = ShapeSettings { positions: 20, seed: 0, range: None, extremes: 2 };
//! let found = shapes(&sel, &transformer, &parameters, &settings)?;
//! let table = shape_table("Roles", &found)?;
//! assert_eq!(table.height(), 7); // q, k, v, o, gate, up, down
//! let slope = table.frame().column("0+ at start").unwrap().f64().unwrap().get(0).unwrap();
//! assert!((slope - 1.125).abs() < 1e-5, "{slope}"); // 1 + 1 / beta
//! assert_eq!(shape_curves(&found)?.height(), 7 * found[0].grid.len());
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use polars::prelude::Column;

use crate::analysis::sel_shapes::{QUANTILES, RoleShape, RoleSummary};
use crate::error::Result;
use crate::report::style::{Color, Dash, LineStyle, Marker, PALETTE, TEXT_WIDTH};
use crate::report::table::Table;
use panelplot::{Axis, Figure, Legend, Mark, Panel};

const GRAY: Color = Color(0x77, 0x77, 0x77);
const IDENTITY: LineStyle = LineStyle::new(GRAY, Dash::Dashed, Marker::None).with_width(0.7);
const INITIAL: LineStyle = LineStyle::new(Color::INK, Dash::Dotted, Marker::None).with_width(0.7);
const MEDIAN: LineStyle = LineStyle::new(PALETTE[0], Dash::Solid, Marker::None).with_width(1.2);
const USED: LineStyle = LineStyle::new(GRAY, Dash::LongDash, Marker::None).with_width(0.5);
const BY_RAW: LineStyle = LineStyle::new(PALETTE[1], Dash::Solid, Marker::None).with_width(0.5);
const BY_EFFECTIVE: LineStyle = LineStyle::new(PALETTE[2], Dash::DashDot, Marker::None).with_width(0.5);

fn grid(note: &str) -> Figure {
    Figure::new(TEXT_WIDTH, 4).aspect(0.95).shared_axes().legend(Legend::Below, None).note(note)
}

fn panel(shape: &RoleShape) -> Panel {
    let x = Axis::linear("raw weight").ticks_about_zero(shape.grid.last().copied().unwrap_or(1.0));
    Panel::new(shape.role, x, Axis::linear("effective weight"))
}

fn zip(shape: &RoleShape, values: &[f64]) -> Vec<(f64, f64)> {
    shape.grid.iter().copied().zip(values.iter().copied()).collect()
}

/// The region between two quantiles.
fn band(shape: &RoleShape, low: f64, high: f64, strength: f64, label: &str) -> Mark {
    let (low, high) = (shape.quantile(low), shape.quantile(high));
    let points = shape.grid.iter().zip(low.iter().zip(high)).map(|(x, (l, h))| (*x, *l, *h)).collect();
    Mark::Band { points, color: PALETTE[0], strength, label: Some(label.into()) }
}

/// Identity, the initial transform, and the ends of the raw weights in use.
fn references(panel: Panel, shape: &RoleShape) -> Panel {
    let (low, high) = (shape.grid[0], shape.grid[shape.grid.len() - 1]);
    let mut panel = panel;
    for x in [shape.used.0, shape.used.1] {
        panel = panel.mark(Mark::Upright { x, style: USED, label: Some("range of raw weights".into()) });
    }
    panel.line("identity", IDENTITY, vec![(low, low), (high, high)]).line(
        "at the start",
        INITIAL,
        zip(shape, &shape.initial),
    )
}

/// Figure 8: the median and the 5-95 % band of each role's transforms, the identity (dashed), the transform at the start
/// (dotted), and the range of the role's raw weights (upright lines).
pub fn figure8(shapes: &[RoleShape], note: &str) -> Figure {
    let one = |shape: &RoleShape| {
        let banded = panel(shape).mark(band(shape, 0.05, 0.95, 0.3, "5–95 %"));
        references(banded, shape).line("median", MEDIAN, zip(shape, shape.quantile(0.5)))
    };
    shapes.iter().fold(grid(note), |figure, shape| figure.panel(one(shape)))
}

/// Figure 9: the 1-99 % and 0.1-99.9 % bands, the median, and the curves of the sampled positions with the largest raw and
/// effective weights.
pub fn figure9(shapes: &[RoleShape], note: &str) -> Figure {
    let one = |shape: &RoleShape| {
        // The outer band in two parts, so that no shade lies on another.
        let mut panel = panel(shape)
            .mark(band(shape, 0.001, 0.01, 0.2, "0.1–99.9 %"))
            .mark(band(shape, 0.99, 0.999, 0.2, "0.1–99.9 %"))
            .mark(band(shape, 0.01, 0.99, 0.45, "1–99 %"));
        for extreme in &shape.extremes {
            let (style, marker, label) = match extreme.by {
                "raw" => (BY_RAW, Marker::Circle, "largest raw weights"),
                _ => (BY_EFFECTIVE, Marker::Triangle, "largest effective weights"),
            };
            // The mark is where the weight is, once on each curve; the legend shows both.
            let (points, color) = (vec![(extreme.position.raw, extreme.position.effective)], style.color);
            panel = panel
                .mark(Mark::Line { points: zip(shape, &extreme.curve), style, label: None })
                .mark(Mark::Points { points, marker, size: 2.2, color, label: None })
                .line(label, style.with_marker(marker), vec![]);
        }
        references(panel, shape).line("median", MEDIAN, zip(shape, shape.quantile(0.5)))
    };
    shapes.iter().fold(grid(note), |figure, shape| figure.panel(one(shape)))
}

/// One row per role: slopes at the origin from both sides, effective over raw weight at the largest raw one, means of the
/// scales relative to their start. Medians over sampled positions; see [`RoleSummary`].
pub fn shape_table(title: &str, shapes: &[RoleShape]) -> Result<Table> {
    let rows: Vec<RoleSummary> = shapes.iter().map(RoleShape::summary).collect();
    let number =
        |name: &str, f: &dyn Fn(&RoleSummary) -> f64| Column::new(name.into(), rows.iter().map(f).collect::<Vec<_>>());
    Table::new(
        title,
        vec![
            Column::new("role".into(), shapes.iter().map(|s| s.role).collect::<Vec<_>>()),
            number("slope at 0−", &|r| r.slope[0]),
            number("slope at 0+", &|r| r.slope[1]),
            number("0− at start", &|r| r.initial_slope[0]),
            number("0+ at start", &|r| r.initial_slope[1]),
            number("largest |raw|", &|r| r.largest),
            number("gain at −", &|r| r.amplification[0]),
            number("gain at +", &|r| r.amplification[1]),
            number("− at start", &|r| r.initial_amplification[0]),
            number("+ at start", &|r| r.initial_amplification[1]),
            number("e_w / start", &|r| r.relative[0]),
            number("l_w / start", &|r| r.relative[1]),
            number("m / start", &|r| r.relative[2]),
        ],
    )
}

/// The curves: `role`, `raw`, `initial`, and a column for each quantile, `q0.1` to `q99.9` in percent.
pub fn shape_curves(shapes: &[RoleShape]) -> Result<Table> {
    let count = shapes.first().map_or(0, |s| s.grid.len());
    let all = |f: &dyn Fn(&RoleShape) -> Vec<f64>| shapes.iter().flat_map(f).collect::<Vec<f64>>();
    let mut columns = vec![
        Column::new("role".into(), shapes.iter().flat_map(|s| vec![s.role; count]).collect::<Vec<_>>()),
        Column::new("raw".into(), all(&|s| s.grid.clone())),
        Column::new("initial".into(), all(&|s| s.initial.clone())),
    ];
    for q in QUANTILES {
        columns.push(Column::new(format!("q{}", (1000.0 * q).round() / 10.0).into(), all(&|s| s.quantile(q).to_vec())));
    }
    Table::new("Effective over raw weight by role", columns)
}

/// The positions whose curves Figure 9 shows: `role`, `by`, block, row, column (within the role), weights and scales.
pub fn extreme_table(shapes: &[RoleShape]) -> Result<Table> {
    let rows: Vec<_> = shapes.iter().flat_map(|s| s.extremes.iter().map(move |e| (s.role, e))).collect();
    let text = |name: &str, f: &dyn Fn(usize) -> &'static str| {
        Column::new(name.into(), (0..rows.len()).map(f).collect::<Vec<_>>())
    };
    let whole = |name: &str, k: usize| {
        Column::new(name.into(), rows.iter().map(|r| r.1.position.at[k] as u32).collect::<Vec<_>>())
    };
    let number = |name: &str, f: &dyn Fn(&crate::analysis::sel_shapes::Position) -> f64| {
        Column::new(name.into(), rows.iter().map(|r| f(&r.1.position)).collect::<Vec<_>>())
    };
    Table::new(
        "Positions with the largest weights among those sampled",
        vec![
            text("role", &|i| rows[i].0),
            text("by", &|i| rows[i].1.by),
            whole("block", 0),
            whole("row", 1),
            whole("column", 2),
            number("raw", &|p| p.raw),
            number("effective", &|p| p.effective),
            number("e_w", &|p| p.point.e),
            number("l_w", &|p| p.point.l),
            number("m", &|p| p.point.m),
            number("s", &|p| p.point.s),
            number("n", &|p| p.point.n),
        ],
    )
}
