//! Tables 5 and 6 and Figure 6 from the runs of a grid (2607.09967, Sections 5.3.3, 5.3.4).
//!
//! ```
//! use std::collections::BTreeMap;
//! use sinexp::cli::RunRecord;
//! use sinexp::experiment::sel::{Cell, Grid, LanguageOutcome, Variant, ablations::table5};
//! use sinexp::train::language::{Metrics, metrics::Row};
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path().to_owned();
//! // Runs of two evaluations each, as a grid's `run` gives them; e_w of the annealed one grows by half.
//! let outcome = |loss: f64, e_w: f64| {
//!     let tracked = |value: f64| ["e_w", "l_w", "m"].map(|name| (format!("q.{name}"), value)).into();
//!     let row = |step, value, loss| Row { step, eval_loss: Some(loss), tracked: tracked(value), ..Row::default() };
//!     LanguageOutcome { metrics: Metrics { rows: vec![row(0, 1.0, 5.5), row(100, e_w, loss)] }, stopped: None }
//! };
//! let outcomes = vec![(Variant::Mismatch, vec![outcome(2.9, 1.5)]), (Variant::Fixed, vec![outcome(3.0, 1.1)])];
//! let cells = vec![Cell { width: 64, depth: 2, beta: 4.0, outcomes }];
//! let record = RunRecord::new("sel-table5", 0, "cpu");
//! table5(Grid { cells, note: "Two runs.".into(), tokens_per_step: 64, folder: folder.clone(), record })?;
//! let table = sinexp::report::page::Grid::markdown(&folder, "table")?;
//! let annealed = |column| table.cell(&["annealed"], column).unwrap().shown.as_str();
//! assert_eq!((annealed("eval loss"), annealed("Δ to fixed"), annealed("e_w")), ("2.900", "-0.10", "1.50"));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::collections::BTreeMap;

use polars::prelude::Column;

use super::grid::{Cell, Grid};
use super::runs::LanguageOutcome;
use super::tables::{FORMATS, differences_to, finals, mean_curve, numbers, stopped, whole};
use super::variant::Variant;
use crate::cli::say;
use crate::error::Result;
use crate::experiment::output::conclude;
use crate::experiment::summary::Summary;
use crate::report::scales::{NamedCurve, ScaleCurve, annealing_figure, mean_over_roles, scale_curves};
use crate::report::style::label;
use crate::report::{Figure, FigureFiles, Table};

/// The scales of Figure 6.
const SCALES: [&str; 3] = ["e_w", "l_w", "m"];

/// What the paper has for one row of Table 5: final loss, and e_w, l_w, m at the end.
fn paper5(variant: Variant) -> [Option<f64>; 4] {
    match variant {
        Variant::Mismatch => [Some(2.894), Some(1.38), Some(0.54), Some(0.98)],
        Variant::Fixed => [Some(2.899), None, None, None],
        _ => [None; 4],
    }
}

/// What runs tracked, as means over them, at the steps that all of them reached.
fn mean_tracked(outcomes: &[LanguageOutcome]) -> Vec<(usize, BTreeMap<String, f64>)> {
    let of = |o: &LanguageOutcome| -> BTreeMap<usize, BTreeMap<String, f64>> {
        let rows = o.metrics.rows.iter().filter(|row| !row.tracked.is_empty());
        rows.map(|row| (row.step, row.tracked.clone())).collect()
    };
    let all: Vec<BTreeMap<usize, BTreeMap<String, f64>>> = outcomes.iter().map(of).collect();
    let Some(first) = all.first() else { return Vec::new() };
    let mean = |(step, tracked): (&usize, &BTreeMap<String, f64>)| {
        let each = |name: &String| {
            let values: Option<Vec<f64>> = all.iter().map(|o| o.get(step)?.get(name).copied()).collect();
            values.map(|v| (name.clone(), v.iter().sum::<f64>() / v.len() as f64))
        };
        tracked.keys().map(each).collect::<Option<BTreeMap<_, _>>>().map(|means| (*step, means))
    };
    first.iter().filter_map(mean).collect()
}

/// The curves of each scale and role, means over runs.
fn scales(outcomes: &[LanguageOutcome]) -> Vec<ScaleCurve> {
    scale_curves(mean_tracked(outcomes).iter().map(|(step, tracked)| (*step, tracked)))
}

/// A scale at the end, mean over roles and runs; NaN where a run has none.
fn final_scale(outcomes: &[LanguageOutcome], scale: &str) -> f64 {
    mean_over_roles(&scales(outcomes), scale).last().map_or(f64::NAN, |(_, value)| *value)
}

/// Figure 6 of one cell.
fn figure6(cell: &Cell, note: &str) -> Figure {
    let curve = |(variant, outcomes): &(Variant, Vec<LanguageOutcome>)| NamedCurve {
        label: format!("{} multipliers", multipliers(*variant)),
        points: mean_curve(outcomes.iter().map(|o| o.metrics.evaluations()).collect()),
    };
    let curves: Vec<NamedCurve> = cell.outcomes.iter().map(curve).collect();
    let about =
        format!("Width {}, depth {}, β {:.3}; scales of the annealed runs. ", cell.width, cell.depth, cell.beta);
    annealing_figure(&curves, &scales(cell.of(Variant::Mismatch)), &(about + note))
}

/// Table 5: multipliers annealed and fixed; and Figure 6.
pub fn table5(grid: Grid) -> Result<()> {
    let rows: Vec<(&Cell, Variant)> =
        grid.cells.iter().flat_map(|c| c.outcomes.iter().map(move |(v, _)| (c, *v))).collect();
    let losses: Vec<Summary> = rows.iter().map(|(c, v)| Summary::of(&finals(c.of(*v)))).collect();
    let gaps: Vec<Summary> = rows.iter().map(|(c, v)| differences_to(c, *v, Variant::Fixed)).collect();
    let minutes = |outcomes: &[LanguageOutcome]| {
        let one = |o: &LanguageOutcome| o.training_seconds(grid.tokens_per_step) / 60.0;
        Summary::of(&outcomes.iter().map(one).collect::<Vec<f64>>())
    };
    let times: Vec<Summary> = rows.iter().map(|(c, v)| minutes(c.of(*v))).collect();
    let mut columns = vec![
        whole("width", rows.iter().map(|(c, _)| c.width)),
        whole("depth", rows.iter().map(|(c, _)| c.depth)),
        numbers("β", rows.iter().map(|(c, _)| c.beta).collect()),
        Column::new("multipliers".into(), rows.iter().map(|(_, v)| multipliers(*v)).collect::<Vec<_>>()),
        numbers("eval loss", losses.iter().map(|s| s.mean).collect()),
        numbers("± eval", losses.iter().map(|s| s.error).collect()),
        numbers("Δ to fixed", gaps.iter().map(|s| s.mean).collect()),
        numbers("± Δ", gaps.iter().map(|s| s.error).collect()),
        numbers("time", times.iter().map(|s| s.mean).collect()),
        numbers("± time", times.iter().map(|s| s.error).collect()),
    ];
    for scale in SCALES {
        let ends = rows.iter().map(|(c, v)| final_scale(c.of(*v), scale));
        columns.push(numbers(scale, ends.collect()));
    }
    columns.push(whole("stopped", rows.iter().map(|(c, v)| stopped(c.of(*v)))));
    for (i, name) in ["paper loss", "paper e_w", "paper l_w", "paper m"].into_iter().enumerate() {
        columns.push(Column::new(name.into(), rows.iter().map(|(_, v)| paper5(*v)[i]).collect::<Vec<_>>()));
    }
    let about = "e_w, l_w and m are means over all matrices at the end, relative to the start. Time is that of the \
                 updates alone, whatever else the machine did.\nThe paper: width 1024, depth 12, β 7, 100,000 steps, runtimes essentially identical";
    let table = Table::new(format!("Table 5: annealed and fixed multipliers\n{}\n{about}", grid.note), columns)?;
    let table = SCALES.iter().fold(table, |table, scale| table.digits(scale, 3).digits(&format!("paper {scale}"), 3));
    let table = table.unit("eval loss", "nats").unit("time", "min").digits("β", 3).digits("± eval", 1);
    let table = table.digits("Δ to fixed", 2).digits("± Δ", 2).digits("time", 3).digits("± time", 1);
    say(&table.to_string());
    let mut files = table.write_all(&grid.folder, "table", &FORMATS)?;
    for cell in &grid.cells {
        let name = match grid.cells.len() {
            1 => "fig6".to_owned(),
            _ => format!("fig6-{}x{}", cell.width, cell.depth),
        };
        files.extend(figure6(cell, &grid.note).write_with_curves(grid.folder.join(name))?);
    }
    conclude(grid.record, &files, &grid.folder)
}

fn multipliers(variant: Variant) -> &'static str {
    if variant == Variant::Fixed { "fixed" } else { "annealed" }
}

/// Table 6: beta fixed or absorbed in m, pathways normalised by m or not.
pub fn table6(grid: Grid) -> Result<()> {
    let rows: Vec<(&Cell, Variant)> =
        grid.cells.iter().flat_map(|c| c.outcomes.iter().map(move |(v, _)| (c, *v))).collect();
    let losses: Vec<Summary> = rows.iter().map(|(c, v)| Summary::of(&finals(c.of(*v)))).collect();
    let to = |other| rows.iter().map(move |(c, v)| differences_to(c, *v, other)).collect::<Vec<Summary>>();
    let (to_baseline, to_default) = (to(Variant::Baseline), to(Variant::Mismatch));
    let choice = |yes: &'static str, no: &'static str, has: [Variant; 2]| {
        let one = move |(_, v): &(&Cell, Variant)| match *v {
            Variant::Baseline => None,
            v => Some(if has.contains(&v) { yes } else { no }),
        };
        rows.iter().map(one).collect::<Vec<Option<&str>>>()
    };
    let title = format!(
        "Table 6: curvature\n{}\nThe paper: β absorbed and normalized best of the four (width 1024, depth 12, 100,000 steps)",
        grid.note
    );
    let table = Table::new(
        title,
        vec![
            whole("width", rows.iter().map(|(c, _)| c.width)),
            whole("depth", rows.iter().map(|(c, _)| c.depth)),
            Column::new("variant".into(), rows.iter().map(|(_, v)| label(v.id())).collect::<Vec<_>>()),
            Column::new("β".into(), choice("absorbed in m", "fixed", [Variant::Absorbed, Variant::Combined])),
            Column::new("divided by m".into(), choice("yes", "no", [Variant::Normalized, Variant::Combined])),
            numbers("eval loss", losses.iter().map(|s| s.mean).collect()),
            numbers("± eval", losses.iter().map(|s| s.error).collect()),
            numbers("Δ to baseline", to_baseline.iter().map(|s| s.mean).collect()),
            numbers("± baseline", to_baseline.iter().map(|s| s.error).collect()),
            numbers("Δ to fixed, no", to_default.iter().map(|s| s.mean).collect()),
            numbers("± fixed, no", to_default.iter().map(|s| s.error).collect()),
            whole("stopped", rows.iter().map(|(c, v)| stopped(c.of(*v)))),
        ],
    )?;
    let table = table.unit("eval loss", "nats").digits("± eval", 1).digits("Δ to baseline", 3).digits("± baseline", 2);
    let table = table.digits("Δ to fixed, no", 2).digits("± fixed, no", 2);
    say(&table.to_string());
    let files = table.write_all(&grid.folder, "table", &FORMATS)?;
    conclude(grid.record, &files, &grid.folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::language::Metrics;
    use crate::train::language::metrics::Row;

    fn outcome(rows: Vec<Row>) -> LanguageOutcome {
        LanguageOutcome { metrics: Metrics { rows }, stopped: None }
    }

    #[test]
    fn scales_are_means_over_roles_and_runs() {
        let tracked =
            |m: f64| [("q.m", m), ("k.m", m + 2.0), ("q.e_w", 5.0 * m)].map(|(n, v)| (n.to_owned(), v)).into();
        let run = |m| {
            outcome(vec![Row { step: 7, tracked: tracked(m), ..Row::default() }, Row { step: 8, ..Row::default() }])
        };
        let runs = [run(1.0), run(2.0)];
        assert_eq!(final_scale(&runs, "m"), (2.0 + 3.0) / 2.0);
        assert_eq!(final_scale(&runs, "e_w"), 7.5);
        assert!(final_scale(&runs, "l_w").is_nan() && final_scale(&[], "m").is_nan());
        // One that ended before: nothing that all have.
        assert!(final_scale(&[run(1.0), outcome(vec![])], "m").is_nan());
    }
}
