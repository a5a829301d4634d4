//! Figures of sweeps: test MSE against the input frequency (Figure 2), loss against the learning rate (Figure 6).
//!
//! ```
//! use sinexp::report::FigureFiles;
//! use sinexp::report::siren::sweeps::{SweepPanel, omega_figure};
//! let points = vec![(16.0, 0.02), (64.0, 0.004), (256.0, 0.05)];
//! let curves = vec![("sm20".to_owned(), points)];
//! let panel = SweepPanel { title: "Camera".into(), row: "grayscale".into(), curves, matched: Some(0.003) };
//! let figure = omega_figure(&[panel], 4, ""); // figure.write_with_curves("fig2")
//! // A line, the star at its smallest error, and the level of moment matching.
//! let table = figure.curves()?.unwrap();
//! let column = |name: &str| table.frame().column(name).unwrap().f64().unwrap().clone();
//! let kinds = table.frame().column("kind").unwrap().str().unwrap();
//! let star = kinds.iter().position(|kind| kind == Some("points")).unwrap();
//! assert_eq!((column("x").get(star), column("y").get(star)), (Some(64.0), Some(0.004)));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use crate::report::style::{self, Color, Dash, LineStyle, Marker, TEXT_WIDTH, label, named};
use crate::report::table::{distinct, readable};
use panelplot::{Axis, Figure, Legend, Mark, Panel};

/// The level of the method that needs no sweep.
const RED: Color = Color(0xc0, 0x10, 0x20);
/// Losses above this many times the middle one are cut off: a diverged run would squeeze all others together.
const TALL: f64 = 30.0;

/// The points that a log-log panel can show.
fn positive(points: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let usable = |v: f64| v.is_finite() && v > 0.0;
    points.into_iter().filter(|p| usable(p.0) && usable(p.1)).collect()
}

/// One image's sweep: a panel of [`omega_figure`].
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPanel {
    /// The image's name, as "Camera".
    pub title: String,
    /// The row it belongs to: "grayscale", "RGB", "CIELAB".
    pub row: String,
    /// Method's command-line name, and its (omega0, test MSE) points in order of omega0.
    pub curves: Vec<(String, Vec<(f64, f64)>)>,
    /// Test MSE of the uniform-phase, moment-matched initialisation: a dashed red line.
    pub matched: Option<f64>,
}

/// Figure 2: test MSE against omega0, both logarithmic, `columns` panels side by side, each row name on its own line.
/// A star marks each curve's smallest value; each panel has its own vertical range. A curve has a gap where a value
/// is not finite or not positive.
pub fn omega_figure(panels: &[SweepPanel], columns: usize, note: &str) -> Figure {
    let columns = columns.max(1);
    // Each row name begins a line, so the places left over in the line before stay empty.
    let mut grid: Vec<Option<(&SweepPanel, bool)>> = Vec::new();
    for row in distinct(panels, |p| p.row.as_str()) {
        let members: Vec<_> = panels.iter().filter(|p| p.row == row).collect();
        grid.resize(grid.len().next_multiple_of(columns), None);
        grid.extend(members.into_iter().enumerate().map(|(i, p)| Some((p, i == 0))));
    }
    let mut figure = Figure::new(TEXT_WIDTH, columns).aspect(0.78).note(note);
    for (i, place) in grid.iter().enumerate() {
        let Some((sweep, first)) = place else {
            figure = figure.panel(Panel::blank());
            continue;
        };
        let below = grid.get(i + columns).is_some_and(Option::is_some);
        let x = Axis::log(if below { "" } else { "input frequency ω₀" });
        let y = Axis::log(if i.is_multiple_of(columns) { "test MSE" } else { "" });
        let mut panel = Panel::new(&sweep.title, x, y);
        if *first {
            panel = panel.row_title(&sweep.row);
        }
        if let Some(mse) = sweep.matched {
            let style = LineStyle::new(RED, Dash::Dashed, Marker::None).with_width(1.2);
            panel = panel.mark(Mark::Level { y: mse, style, label: Some(label("uniform-mm").into()) });
        }
        for (k, (id, points)) in sweep.curves.iter().enumerate() {
            let (label, style) = named(id, k, sweep.curves.len());
            panel = panel.line(label, style, points.clone());
        }
        // Stars last: no curve covers another's.
        for (k, (id, points)) in sweep.curves.iter().enumerate() {
            let (_, style) = named(id, k, sweep.curves.len());
            panel = panel.star_at_minimum(style.color, &positive(points.iter().copied()));
        }
        figure = figure.panel(panel);
    }
    figure
}

/// One initialisation under one scaling: a panel of [`rate_figure`].
#[derive(Clone, Debug, PartialEq)]
pub struct RatePanel {
    /// The method's command-line name: the row.
    pub id: String,
    /// How the learning rate and the output layer follow the width, as "muP (LR)": the column.
    pub scaling: String,
    /// Width N, and its (learning rate, loss) points in order of the learning rate.
    pub curves: Vec<(usize, Vec<(f64, f64)>)>,
}

/// Figure 6: time-averaged training loss against the learning rate, both logarithmic and the same in all panels. Rows
/// are initialisations, columns are scalings, both in order of first appearance; curves go from light (small N) to
/// dark (large N), each with a star at its smallest loss. Losses far above the others are cut off, and the note says so.
pub fn rate_figure(panels: &[RatePanel], note: &str) -> Figure {
    let rows = distinct(panels, |p| p.id.as_str());
    let columns = distinct(panels, |p| p.scaling.as_str());
    let mut widths: Vec<usize> = panels.iter().flat_map(|p| p.curves.iter().map(|c| c.0)).collect();
    widths.sort_unstable();
    widths.dedup();
    let points = positive(panels.iter().flat_map(|p| p.curves.iter().flat_map(|c| c.1.iter().copied())));
    let (rates, _) = range(points.iter().map(|p| p.0), f64::INFINITY);
    let (losses, cut) = range(points.iter().map(|p| p.1), TALL);
    let cut = if cut { format!("Losses above {} are not shown. ", readable(losses.1)) } else { String::new() };
    let mut figure = Figure::new(TEXT_WIDTH, columns.len().max(1))
        .aspect(0.62)
        .legend(Legend::Below, Some("width N:"))
        .note(format!("{cut}{note}"));
    for (r, row) in rows.iter().enumerate() {
        for (c, column) in columns.iter().enumerate() {
            let Some(found) = panels.iter().find(|p| p.id == *row && p.scaling == *column) else {
                figure = figure.panel(Panel::blank());
                continue;
            };
            let last = r + 1 == rows.len();
            let x = Axis::log(if last { "learning rate η" } else { "" }).range(rates.0, rates.1);
            let y = Axis::log(if c == 0 { "training MSE" } else { "" }).range(losses.0, losses.1);
            let title = if r == 0 { greek(column) } else { String::new() };
            let mut panel = Panel::new(title, x, y).numbers(last, c == 0);
            if c == 0 {
                panel = panel.row_title(label(row));
            }
            // The ramp goes from dark to light.
            let shade = |width: &usize| {
                let place = widths.binary_search(width).unwrap_or(0);
                style::sequence(widths.len() - 1 - place, widths.len())
            };
            for (width, points) in &found.curves {
                panel = panel.line(width.to_string(), shade(width), points.clone());
            }
            for (width, points) in &found.curves {
                panel = panel.star_at_minimum(shade(width).color, &positive(points.iter().copied()));
            }
            figure = figure.panel(panel);
        }
    }
    figure
}

/// "muP" as it is written on paper.
fn greek(scaling: &str) -> String {
    scaling.replace("muP", "µP")
}

/// Smallest and largest of the positive `values` with a little room, the upper end at most `tall` times their median,
/// and whether that cuts anything off.
fn range(values: impl Iterator<Item = f64>, tall: f64) -> ((f64, f64), bool) {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return ((1.0, 10.0), false) };
    let limit = values[values.len() / 2] * tall;
    let top = high.min(limit);
    let room = (top / low).powf(0.04).max(1.05);
    ((low / room, top * room), high > top * room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stars(figure: &Figure, panel: usize) -> Vec<(f64, f64)> {
        let all = figure.panels[panel].marks.iter();
        all.filter_map(|m| match m {
            Mark::Points { points, marker: Marker::Star, .. } => Some(points[0]),
            _ => None,
        })
        .collect()
    }

    fn sweep(title: &str, row: &str) -> SweepPanel {
        let curve = |id: &str, best: f64| {
            let at = |q: i32| (10f64.powi(q), 1e-3 * best * (1.0 + (f64::from(q) - best).powi(2)));
            (id.to_owned(), (-1..=3).map(at).collect::<Vec<_>>())
        };
        let mut broken = curve("sm20", 2.0);
        broken.1.extend([(1e4, f64::NAN), (1e5, 0.0), (1e6, -1.0)]);
        SweepPanel {
            title: title.into(),
            row: row.into(),
            curves: vec![curve("cvp26-s0", 1.0), broken],
            matched: Some(8e-4),
        }
    }

    #[test]
    fn each_row_begins_a_line_and_each_curve_has_its_star() {
        let panels = [
            sweep("Brick", "grayscale"),
            sweep("Hubble", "RGB"),
            sweep("Skin", "RGB"),
            sweep("Clock", "grayscale"),
            sweep("Camera", "grayscale"),
        ];
        let figure = omega_figure(&panels, 2, "Seed 0.");
        let titles: Vec<_> = figure.panels.iter().map(|p| p.title.as_str()).collect();
        assert_eq!(titles, ["Brick", "Clock", "Camera", "", "Hubble", "Skin"]);
        assert_eq!(
            figure.panels.iter().map(|p| p.blank).collect::<Vec<_>>(),
            [false, false, false, true, false, false]
        );
        let rows: Vec<_> = figure.panels.iter().map(|p| p.row.as_str()).collect();
        assert_eq!(rows, ["grayscale", "", "", "", "RGB", ""]);
        assert_eq!(stars(&figure, 0), [(10.0, 1e-3), (100.0, 2e-3)]);
        let svg = figure.to_svg().expect("draws");
        for text in ["input frequency ω₀", "test MSE", "uniform-phase MM", "CIELAB"] {
            assert_eq!(svg.contains(text), text != "CIELAB", "{text}");
        }
        // Under Clock, whose lower neighbour is empty, and at the bottom.
        assert_eq!(svg.matches("input frequency").count(), 3);
        assert!(figure.to_png().is_ok());
    }

    #[test]
    fn panels_have_their_own_ranges() {
        let figure = omega_figure(&[sweep("Brick", "RGB"), sweep("Clock", "RGB")], 2, "");
        assert!(!figure.shared && figure.panels.iter().all(|panel| panel.y.range.is_none()));
    }

    #[test]
    fn rates_form_a_grid_from_light_to_dark() {
        let loss = |n: usize| -> Vec<(f64, f64)> {
            let value = |e: i32| (f64::from(e + 8)).abs() + 8.0 / n as f64 + if e == 2 { 1e9 } else { 0.0 };
            (-18..=2).map(|e| (2f64.powi(e), value(e))).collect()
        };
        let panel = |id: &str, scaling: &str| RatePanel {
            id: id.into(),
            scaling: scaling.into(),
            curves: [8, 64, 512].into_iter().map(|n| (n, loss(n))).collect(),
        };
        let panels = [panel("uniform-mm", "muP (LR)"), panel("uniform-mm", "standard"), panel("sm20", "standard")];
        let figure = rate_figure(&panels, "Seed 0.");
        assert_eq!((figure.panels.len(), figure.columns), (4, 2));
        assert!(figure.panels[2].blank && !figure.panels[3].blank);
        assert_eq!(stars(&figure, 3).iter().map(|p| p.0).collect::<Vec<_>>(), [2f64.powi(-8); 3]);
        let light: Vec<f64> = figure.panels[0]
            .marks
            .iter()
            .filter_map(|m| match m {
                Mark::Line { style, .. } => Some(style.color.luminance()),
                _ => None,
            })
            .collect();
        assert!(light.len() == 3 && light[0] > light[1] && light[1] > light[2], "{light:?}");
        let svg = figure.to_svg().expect("draws");
        for text in ["µP (LR)", "standard", "width N:", "512", "learning rate η", "are not shown. Seed 0."] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(figure.to_png().is_ok());
    }

    #[test]
    fn nothing_to_show_is_drawn_as_nothing() {
        let bad = vec![("sm20".to_owned(), vec![(f64::NAN, f64::NAN), (1.0, f64::INFINITY), (-1.0, 0.0)])];
        let hollow = SweepPanel { title: "x".into(), row: "y".into(), curves: bad, matched: Some(f64::NAN) };
        for panels in [vec![], vec![SweepPanel { curves: vec![], ..hollow.clone() }], vec![hollow]] {
            let figure = omega_figure(&panels, 0, "");
            assert!(figure.to_svg().is_ok() && (0..panels.len()).all(|i| stars(&figure, i).is_empty()));
        }
        let bad =
            RatePanel { id: "z".into(), scaling: "w".into(), curves: vec![(8, vec![(1.0, f64::NAN)]), (16, vec![])] };
        for panels in [vec![], vec![bad]] {
            assert!(rate_figure(&panels, "").to_svg().is_ok());
        }
    }
}
