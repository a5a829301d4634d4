//! Figure 6 of the SEL paper (2607.09967): evaluation loss of annealed and fixed multipliers, and the scales over training.
//!
//! ```
//! use std::collections::BTreeMap;
//! use sinexp::report::sel::scales::{mean_over_roles, scale_curves, scale_table};
//! // What a language run tracks, before training and after 100 steps.
//! let tracked = |q, k| BTreeMap::from([("q.e_w".to_owned(), q), ("k.e_w".to_owned(), k)]);
//! let rows = [(0, tracked(1.0, 1.0)), (100, tracked(1.5, 2.0))];
//! let curves = scale_curves(rows.iter().map(|(step, tracked)| (*step, tracked)));
//! assert_eq!(mean_over_roles(&curves, "e_w"), [(0.0, 1.0), (100.0, 1.75)]);
//! assert_eq!(scale_table(&curves)?.height(), 6); // two roles and their mean
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use polars::prelude::Column;

use crate::error::Result;
use crate::report::style::{COLUMN_WIDTH, Color, Dash, LineStyle, Marker, PALETTE, TEXT_WIDTH};
use crate::report::table::Table;
use panelplot::{Axis, Figure, Legend, Mark, Panel};

/// Evaluation losses of a run under the name that the legend shows.
#[derive(Clone, Debug)]
pub struct NamedCurve {
    /// Legend entry, as `annealed multipliers`.
    pub label: String,
    /// Step and loss in nats per token.
    pub points: Vec<(f64, f64)>,
}

/// One scale of one role over training, relative to its start.
#[derive(Clone, Debug)]
pub struct ScaleCurve {
    /// `e_w`, `l_w` or `m`.
    pub scale: String,
    /// `q`, `k`, `v`, `o`, `ff1`, `ff2`.
    pub role: String,
    /// Step, and mean of the scale over the weights of the role divided by its value at the start.
    pub points: Vec<(f64, f64)>,
}

/// Share of the steps that the left panel leaves out, as in the paper.
pub const OMITTED: f64 = 0.4;

/// The tracked values `ROLE.SCALE` of a run (`q.e_w` ...), as curves: one for each name, in order of first appearance.
/// `rows` are steps with what was tracked there.
pub fn scale_curves<'a>(
    rows: impl Iterator<Item = (usize, &'a std::collections::BTreeMap<String, f64>)>,
) -> Vec<ScaleCurve> {
    let mut curves: Vec<ScaleCurve> = Vec::new();
    for (step, tracked) in rows {
        for (name, value) in tracked {
            let Some((role, scale)) = name.split_once('.') else { continue };
            let at = curves.iter().position(|c| c.role == role && c.scale == scale).unwrap_or_else(|| {
                curves.push(ScaleCurve { scale: scale.to_owned(), role: role.to_owned(), points: Vec::new() });
                curves.len() - 1
            });
            curves[at].points.push((step as f64, *value));
        }
    }
    curves
}

/// The mean over roles of the curves of `scale`, at the steps of the first of them. Steps that not all have are left out.
pub fn mean_over_roles(curves: &[ScaleCurve], scale: &str) -> Vec<(f64, f64)> {
    let of: Vec<&ScaleCurve> = curves.iter().filter(|c| c.scale == scale).collect();
    let Some(first) = of.first() else { return Vec::new() };
    let at = |curve: &ScaleCurve, step: f64| curve.points.iter().find(|p| p.0 == step).map(|p| p.1);
    let mean = |step: f64| {
        let values: Option<Vec<f64>> = of.iter().map(|c| at(c, step)).collect();
        values.map(|v| (step, v.iter().sum::<f64>() / v.len() as f64))
    };
    first.points.iter().filter_map(|p| mean(p.0)).collect()
}

/// How e_w, l_w and m look: label and style.
pub fn scale_style(scale: &str) -> Option<(&'static str, LineStyle)> {
    let line = |color, dash, marker| LineStyle::new(color, dash, marker).with_width(1.4);
    Some(match scale {
        "e_w" => ("e_w", line(PALETTE[0], Dash::Solid, Marker::Circle)),
        "l_w" => ("l_w", line(PALETTE[1], Dash::Dashed, Marker::Square)),
        "m" => ("m", line(PALETTE[2], Dash::DashDot, Marker::Triangle)),
        _ => return None,
    })
}

/// Figure 6. Left: evaluation loss of each of `curves` (annealed and fixed multipliers, say) with the first 40 % of the
/// steps left out; without any curve there is no such panel. Right: the mean over roles of e_w, l_w and m of one run
/// (thick), and each role by itself (thin), relative to their start. `note` is added beneath.
pub fn annealing_figure(curves: &[NamedCurve], scales: &[ScaleCurve], note: &str) -> Figure {
    let both = !curves.is_empty() && !scales.is_empty();
    let mut figure = match both {
        true => Figure::new(TEXT_WIDTH, 2).aspect(0.62),
        false => Figure::new(COLUMN_WIDTH, 1).aspect(0.75),
    };
    figure = figure.legend(Legend::Below, None);
    if !curves.is_empty() {
        figure = figure.panel(loss_panel(curves));
    }
    if !scales.is_empty() {
        figure = figure.panel(scale_panel(scales));
    }
    let omitted = if curves.is_empty() { "" } else { "Losses without the first 40 % of the steps. " };
    let thin = if scales.is_empty() {
        ""
    } else {
        "Thick: mean over roles; thin: each of q, k, v, o, ff1 (gate and up), ff2 (down). "
    };
    figure.note(format!("{omitted}{thin}{note}"))
}

fn loss_panel(curves: &[NamedCurve]) -> Panel {
    const STYLES: [LineStyle; 4] = [
        LineStyle::new(PALETTE[0], Dash::Solid, Marker::Circle),
        LineStyle::new(PALETTE[1], Dash::Dashed, Marker::Square),
        LineStyle::new(PALETTE[2], Dash::DashDot, Marker::Triangle),
        LineStyle::new(PALETTE[3], Dash::LongDash, Marker::Diamond),
    ];
    let last = curves.iter().flat_map(|c| c.points.last()).map(|p| p.0).fold(0.0, f64::max);
    let mut panel = Panel::new("evaluation loss", Axis::linear("step"), Axis::linear("eval loss [nats per token]"));
    for (curve, style) in curves.iter().zip(STYLES.iter().cycle()) {
        let late = curve.points.iter().copied().filter(|p| p.0 >= OMITTED * last);
        panel = panel.line(&curve.label, *style, late.collect());
    }
    panel
}

fn scale_panel(scales: &[ScaleCurve]) -> Panel {
    let mut panel = Panel::new("scales", Axis::linear("step"), Axis::linear("mean scale / its start"));
    let one = LineStyle::new(Color::MUTED, Dash::Dotted, Marker::None).with_width(0.6);
    panel = panel.mark(Mark::Level { y: 1.0, style: one, label: None });
    let known = || ["e_w", "l_w", "m"].into_iter().filter_map(|s| Some((s, scale_style(s)?)));
    for (scale, (_, style)) in known() {
        let thin = style.with_marker(Marker::None).with_width(0.4);
        for curve in scales.iter().filter(|c| c.scale == scale) {
            panel = panel.mark(Mark::Line { points: curve.points.clone(), style: thin, label: None });
        }
    }
    for (scale, (label, style)) in known() {
        let mean = mean_over_roles(scales, scale);
        if !mean.is_empty() {
            panel = panel.line(label, style, mean);
        }
    }
    panel
}

/// The curves behind the right panel, one row each: `scale`, `role` (`mean` for the mean over roles), `step`, `value`.
pub fn scale_table(scales: &[ScaleCurve]) -> Result<Table> {
    let mut rows: Vec<(String, String, f64, f64)> = Vec::new();
    let means = ["e_w", "l_w", "m"].map(|scale| ScaleCurve {
        scale: scale.to_owned(),
        role: "mean".to_owned(),
        points: mean_over_roles(scales, scale),
    });
    for curve in scales.iter().chain(&means) {
        rows.extend(curve.points.iter().map(|(step, v)| (curve.scale.clone(), curve.role.clone(), *step, *v)));
    }
    Table::new(
        "Scales over training, relative to their start",
        vec![
            Column::new("scale".into(), rows.iter().map(|r| r.0.as_str()).collect::<Vec<_>>()),
            Column::new("role".into(), rows.iter().map(|r| r.1.as_str()).collect::<Vec<_>>()),
            Column::new("step".into(), rows.iter().map(|r| r.2 as i64).collect::<Vec<_>>()),
            Column::new("value".into(), rows.iter().map(|r| r.3).collect::<Vec<_>>()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn rows() -> Vec<(usize, BTreeMap<String, f64>)> {
        let row = |step: usize| {
            let t = step as f64 / 10.0;
            let values = [("q.e_w", 1.0 + t), ("ff1.e_w", 1.0 + 3.0 * t), ("q.l_w", 1.0 - t)];
            (step, values.map(|(n, v)| (n.to_owned(), v)).into())
        };
        vec![row(0), row(5), row(10)]
    }

    #[test]
    fn means_are_over_roles() {
        let curves = scale_curves(rows().iter().map(|(s, t)| (*s, t)));
        assert_eq!(curves.len(), 3);
        assert_eq!(mean_over_roles(&curves, "e_w"), [(0.0, 1.0), (5.0, 2.0), (10.0, 3.0)]);
        assert_eq!(mean_over_roles(&curves, "l_w"), [(0.0, 1.0), (5.0, 0.5), (10.0, 0.0)]);
        assert!(mean_over_roles(&curves, "m").is_empty());
        assert_eq!(scale_table(&curves).expect("table").height(), 15);
    }

    #[test]
    fn the_left_panel_leaves_out_the_first_steps() {
        let points = (0..=10).map(|i| (f64::from(i), 5.0 - 0.1 * f64::from(i))).collect();
        let curves = [NamedCurve { label: "annealed".into(), points }];
        let panel = loss_panel(&curves);
        let shown: Vec<f64> = panel.data().filter_map(|p| p.0).collect();
        assert_eq!(shown, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        let svg = annealing_figure(&curves, &scale_curves(rows().iter().map(|(s, t)| (*s, t))), "Two.").to_svg();
        let svg = svg.expect("draws");
        for text in ["annealed", "e_w", "l_w", "eval loss [nats per token]", "mean scale / its start", "40 %"] {
            assert!(svg.contains(text), "{text} is missing");
        }
    }
}
