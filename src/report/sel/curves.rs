//! Drawings of the SEL transform by itself (2607.09967, Figures 2, 3, 10, 11).
//!
//! ```
//! use sinexp::analysis::sel_curves::{Request, at_start, curves};
//! use sinexp::report::sel::curves::curve_table;
//! use sinexp::{nn::sel::Mode, runtime::Device};
//! let sel = at_start(Mode::Congruent, 8.0, 0.0);
//! let request = Request { figure: "mine", panel: 0, label: "congruent".into(), sel, range: 0.1 };
//! let (found, _) = curves(&Device::open("cpu")?, vec![request])?;
//! let table = curve_table(&found)?; // table.write("curves.csv", TableFormat::Csv)
//! let last = table.frame().column("effective").unwrap().f64().unwrap().get(400).unwrap();
//! assert!((last - (0.8f64.exp_m1() + 0.1) / 8.0).abs() < 1e-12); // Eq. 13 at raw weight 0.1
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use polars::prelude::Column;

use crate::analysis::sel_curves::{Curve, CurveSettings};
use crate::error::Result;
use crate::report::style::{COLUMN_WIDTH, Color, Dash, LineStyle, Marker, PALETTE, TEXT_WIDTH};
use crate::report::table::Table;
use panelplot::{Axis, Figure, Legend, Mark, Panel};

const IDENTITY: LineStyle = LineStyle::new(Color(0x77, 0x77, 0x77), Dash::Dashed, Marker::None).with_width(0.7);

/// Curve `i` of a panel: each with its own dash and marker.
fn style(i: usize) -> LineStyle {
    const DASHES: [Dash; 5] = [Dash::Solid, Dash::LongDash, Dash::DashDot, Dash::Dashed, Dash::Dotted];
    const MARKERS: [Marker; 7] =
        [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Down, Marker::Cross, Marker::Star];
    const COLORS: [usize; 7] = [0, 1, 2, 3, 4, 6, 5];
    LineStyle::new(PALETTE[COLORS[i % 7]], DASHES[i % 5], MARKERS[i % 7])
}

/// The style of a mode, the same in every figure.
pub fn mode_style(mode: &str) -> LineStyle {
    let order = ["mismatch", "congruent", "oppose", "exp_only", "damped", "sinh", "sinh_only"];
    style(order.iter().position(|m| *m == mode).unwrap_or(0))
}

/// A name of a mode or curve as a reader sees it.
fn shown(label: &str) -> String {
    match label {
        "exp_only" => "exponential only".into(),
        "sinh_only" => "sinh only".into(),
        other => other.into(),
    }
}

fn axes() -> (Axis, Axis) {
    (Axis::linear("raw weight w"), Axis::linear("effective weight"))
}

/// A panel with the identity and these curves.
fn panel(title: String, curves: &[&Curve], style_of: impl Fn(usize, &Curve) -> LineStyle) -> Panel {
    let (x, y) = axes();
    let range = curves.iter().map(|c| c.request.range).fold(0.0, f64::max);
    let mut panel = Panel::new(title, x, y).line("identity", IDENTITY, vec![(-range, -range), (range, range)]);
    for (i, curve) in curves.iter().enumerate() {
        panel = panel.line(shown(&curve.request.label), style_of(i, curve), curve.points.clone());
    }
    panel
}

fn number(value: f64) -> String {
    format!("{value}").replace('-', "\u{2212}")
}

/// The figures `fig2`, `fig3`, `fig10`, `fig11` and `modes`, by name. `curves` are those of `settings`.
pub fn figures(settings: &CurveSettings, curves: &[Curve]) -> Vec<(&'static str, Figure)> {
    let of = |figure: &str, panel: usize| -> Vec<&Curve> {
        curves.iter().filter(|c| c.request.figure == figure && c.request.panel == panel).collect()
    };
    let beta = number(settings.beta);
    let plain = |i: usize, _: &Curve| style(i);
    let by_mode = |_: usize, c: &Curve| mode_style(c.request.sel.mode.id());

    let fig2 = Figure::new(TEXT_WIDTH, 3)
        .aspect(0.95)
        .panel(panel("symexp and identity".into(), &of("fig2", 0), plain))
        .panel(panel(format!("effect of n (β = {beta})"), &of("fig2", 1), |i, _| style(i + 1)))
        .panel(panel("effect of β (n = 0)".into(), &of("fig2", 2), |i, _| style(i + 1 + settings.offsets.len())))
        .note("Exponential pathway with e_w = 1/β, m = 1; symexp is the one at β = 1.");

    let both = of("fig3", 0);
    let fig3 = Figure::new(TEXT_WIDTH, 2)
        .aspect(0.68)
        .panel(panel(format!("congruent and mismatch, β = {beta}"), &both, by_mode))
        .panel(difference(&both))
        .note("e_w = l_w = 1/β, m = 1, n = 0. The curves coincide for w > 0.");

    let (betas, offsets) = &settings.grid;
    let mut fig10 = Figure::new(if offsets.len() > 2 { TEXT_WIDTH } else { COLUMN_WIDTH }, offsets.len())
        .aspect(0.8)
        .shared_axes()
        .note("e_w = l_w = 1/β, m = 1.");
    for (row, beta) in betas.iter().enumerate() {
        for (column, n) in offsets.iter().enumerate() {
            let title = format!("β = {}, n = {}", number(*beta), number(*n));
            fig10 = fig10.panel(panel(title, &of("fig10", row * offsets.len() + column), plain));
        }
    }

    let fig11 = Figure::new(TEXT_WIDTH, 2)
        .aspect(0.68)
        .panel(panel("standard symexp".into(), &of("fig11", 0), plain))
        .panel(panel("SEL's symmetric-exponential pathway".into(), &of("fig11", 1), |i, _| style(i + 1)))
        .note("symexp has fixed curvature; SEL's pathway has e_w = 1/β, m = 1, n = 0.");

    let modes = Figure::new(TEXT_WIDTH, 2)
        .aspect(0.8)
        .legend(Legend::Below, None)
        .panel(panel(format!("n = 0, β = {beta}"), &of("modes", 0), by_mode))
        .panel(panel(format!("n = {}, β = {beta}", number(settings.modes_offset)), &of("modes", 1), by_mode))
        .note(
            "e_w = l_w = 1/β, m = 1. Mismatch is congruent for w > 0 and oppose for w < 0. With n = 0 the damped form \
             has no linear pathway; hyperbolic sines have no n.",
        );
    vec![("fig2", fig2), ("fig3", fig3), ("fig10", fig10), ("fig11", fig11), ("modes", modes)]
}

/// Mismatch minus congruent.
fn difference(both: &[&Curve]) -> Panel {
    let panel = Panel::new("difference", Axis::linear("raw weight w"), Axis::linear("difference of effective weights"));
    let [congruent, mismatch] = both else { return panel };
    let points = congruent.points.iter().zip(&mismatch.points).map(|(c, m)| (c.0, m.1 - c.1)).collect();
    let zero = Mark::Level { y: 0.0, style: IDENTITY, label: None };
    panel.mark(zero).line("mismatch \u{2212} congruent", style(2), points)
}

/// Every point of every curve: `figure`, `panel` (from 0), `curve`, `mode`, `beta`, `n`, `raw`, `effective`.
pub fn curve_table(curves: &[Curve]) -> Result<Table> {
    let rows = || curves.iter().flat_map(|c| c.points.iter().map(move |p| (c, p)));
    let text =
        |name: &str, f: &dyn Fn(&Curve) -> String| Column::new(name.into(), rows().map(|r| f(r.0)).collect::<Vec<_>>());
    let number = |name: &str, f: &dyn Fn(&Curve, &(f64, f64)) -> f64| {
        Column::new(name.into(), rows().map(|r| f(r.0, r.1)).collect::<Vec<_>>())
    };
    Table::new(
        "Effective over raw weights",
        vec![
            text("figure", &|c| c.request.figure.into()),
            Column::new("panel".into(), rows().map(|r| r.0.request.panel as u32).collect::<Vec<_>>()),
            text("curve", &|c| c.request.label.clone()),
            text("mode", &|c| c.request.sel.mode.to_string()),
            number("beta", &|c, _| c.request.sel.beta),
            number("n", &|c, _| c.request.sel.initial_point().n),
            number("raw", &|_, p| p.0),
            number("effective", &|_, p| p.1),
        ],
    )
}
