//! Tables 1 to 4 and Figures 4 and 5 from the runs of a grid (2607.09967, Section 5.2, 5.3).
//!
//! ```
//! use sinexp::experiment::sel::{LanguageOutcome, tables::speed_up};
//! use sinexp::train::language::{Metrics, metrics::Row};
//! let run = |evaluations: &[(usize, f64)]| {
//!     let row = |(step, loss): &(usize, f64)| Row { step: *step, eval_loss: Some(*loss), ..Row::default() };
//!     LanguageOutcome { metrics: Metrics { rows: evaluations.iter().map(row).collect() }, stopped: None }
//! };
//! let baseline = run(&[(400, 3.5), (800, 3.2), (1000, 3.0)]);
//! let sel = run(&[(400, 3.3), (800, 3.0), (1000, 2.9)]);
//! // SEL is at the baseline's final loss after 800 of its 1000 steps; the baseline never gets to SEL's.
//! assert_eq!(speed_up(&baseline, &sel), Some(1.25));
//! assert_eq!(speed_up(&sel, &baseline), None);
//! ```

use polars::prelude::Column;

use super::grid::{Cell, Grid};
use super::runs::LanguageOutcome;
use super::variant::Variant;
use crate::cli::say;
use crate::error::Result;
use crate::experiment::output::conclude;
use crate::experiment::summary::Summary;
use crate::report::losses::{LossCell, LossCurve, evaluation_figure, training_figure};
use crate::report::style::label;
use crate::report::{FigureFiles, Table, TableFormat};

pub(super) const FORMATS: [TableFormat; 3] = [TableFormat::Csv, TableFormat::Parquet, TableFormat::Markdown];

/// Final validation losses of a variant over seeds.
pub(super) fn finals(outcomes: &[LanguageOutcome]) -> Vec<f64> {
    outcomes.iter().map(LanguageOutcome::final_loss).collect()
}

/// How many ended early.
pub(super) fn stopped(outcomes: &[LanguageOutcome]) -> usize {
    outcomes.iter().filter(|o| o.stopped.is_some()).count()
}

/// Differences to the baseline, seed by seed.
fn differences(cell: &Cell, variant: Variant) -> Summary {
    differences_to(cell, variant, Variant::Baseline)
}

/// Final losses of `variant` minus those of `other`, seed by seed: equal seeds have equal batches and equal targets.
pub(super) fn differences_to(cell: &Cell, variant: Variant, other: Variant) -> Summary {
    let pairs = finals(cell.of(variant)).into_iter().zip(finals(cell.of(other)));
    Summary::of(&pairs.map(|(a, b)| a - b).collect::<Vec<f64>>())
}

/// The variant of `among` with the smallest mean final loss.
fn best(cell: &Cell, among: &[Variant]) -> Variant {
    let mean = |v: &Variant| Summary::of(&finals(cell.of(*v))).mean;
    among.iter().copied().min_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or(Variant::Mismatch)
}

/// Baseline steps divided by the steps at which the other run first has the baseline's final validation loss, between two
/// evaluations by linear interpolation; None when it never has.
pub fn speed_up(baseline: &LanguageOutcome, other: &LanguageOutcome) -> Option<f64> {
    let target = baseline.final_loss();
    let steps = baseline.metrics.evaluations().last()?.0 as f64;
    let evaluations = other.metrics.evaluations();
    let reached = evaluations.iter().position(|(_, loss)| *loss <= target)?;
    let (step, loss) = evaluations[reached];
    let at = match reached.checked_sub(1).map(|i| evaluations[i]) {
        Some((before, high)) if high > loss => before as f64 + (high - target) / (high - loss) * (step - before) as f64,
        _ => step as f64,
    };
    Some(steps / at)
}

fn speed_ups(cell: &Cell, variant: Variant) -> Vec<f64> {
    let pairs = cell.of(Variant::Baseline).iter().zip(cell.of(variant));
    pairs.filter_map(|(b, o)| speed_up(b, o)).collect()
}

/// The paper's loss gap at one of its own configurations.
fn paper_gap(cell: &Cell) -> Option<f64> {
    let gaps = match cell.width {
        1024 => [-0.038, -0.040, -0.044],
        2048 => [-0.047, -0.042, -0.048],
        3072 => [-0.045, -0.052, -0.043],
        _ => return None,
    };
    [12, 24, 36].iter().position(|d| *d == cell.depth).map(|i| gaps[i])
}

pub(super) fn numbers(name: &str, values: Vec<f64>) -> Column {
    Column::new(name.into(), values)
}

pub(super) fn whole(name: &str, values: impl Iterator<Item = usize>) -> Column {
    Column::new(name.into(), values.map(|v| v as i64).collect::<Vec<_>>())
}

/// Table 1: baseline against the better of mismatch without and with offset and residual, and Figure 4.
pub fn table1(grid: Grid) -> Result<()> {
    let choices = [Variant::Mismatch, Variant::MismatchPlus];
    let cells = &grid.cells;
    let chosen: Vec<Variant> = cells.iter().map(|cell| best(cell, &choices)).collect();
    let with = |f: &dyn Fn(&Cell, Variant) -> f64| cells.iter().zip(&chosen).map(|(c, v)| f(c, *v)).collect::<Vec<_>>();
    let summary = |cell: &Cell, variant| Summary::of(&finals(cell.of(variant)));
    let reached: Vec<String> =
        cells.iter().zip(&chosen).map(|(c, v)| format!("{} of {}", speed_ups(c, *v).len(), c.of(*v).len())).collect();
    let labels: Vec<&str> = chosen.iter().map(|v| label(v.id())).collect();
    let paper: Vec<Option<f64>> = cells.iter().map(paper_gap).collect();
    let table = Table::new(
        format!("Table 1: best SEL variant against the baseline\n{}", grid.note),
        vec![
            whole("width", cells.iter().map(|c| c.width)),
            whole("depth", cells.iter().map(|c| c.depth)),
            numbers("β", cells.iter().map(|c| c.beta).collect()),
            numbers("baseline", with(&|c, _| summary(c, Variant::Baseline).mean)),
            numbers("± baseline", with(&|c, _| summary(c, Variant::Baseline).error)),
            Column::new("best SEL".into(), labels),
            numbers("SEL", with(&|c, v| summary(c, v).mean)),
            numbers("± SEL", with(&|c, v| summary(c, v).error)),
            numbers("Δ", with(&|c, v| differences(c, v).mean)),
            numbers("± Δ", with(&|c, v| differences(c, v).error)),
            numbers("speed-up", with(&|c, v| Summary::of(&speed_ups(c, v)).mean)),
            numbers("± speed-up", with(&|c, v| Summary::of(&speed_ups(c, v)).error)),
            Column::new("reached".into(), reached),
            Column::new("paper Δ".into(), paper),
            Column::new("paper speed-up".into(), vec!["1.32–1.49"; cells.len()]),
        ],
    )?;
    let table = table.unit("baseline", "nats").unit("SEL", "nats").digits("β", 3).digits("± baseline", 1);
    let table = table.digits("± SEL", 1).digits("Δ", 3).digits("± Δ", 2).digits("speed-up", 3).digits("± speed-up", 2);
    say(&table.to_string());
    let mut files = table.write_all(&grid.folder, "table", &FORMATS)?;
    let figure = evaluation_figure(&loss_cells(cells, &chosen), &grid.note);
    files.extend(figure.write_with_curves(grid.folder.join("fig4"))?);
    conclude(grid.record, &files, &grid.folder)
}

/// Mean curves of baseline and chosen variant for each cell.
fn loss_cells(cells: &[Cell], chosen: &[Variant]) -> Vec<LossCell> {
    let one = |(cell, variant): (&Cell, &Variant)| {
        let curves = [Variant::Baseline, *variant].map(|v| LossCurve {
            id: v.id().to_owned(),
            points: mean_curve(cell.of(v).iter().map(|o| o.metrics.evaluations()).collect()),
        });
        LossCell {
            width: cell.width,
            depth: cell.depth,
            curves: curves.to_vec(),
            gap: differences(cell, *variant).mean,
        }
    };
    cells.iter().zip(chosen).map(one).collect()
}

/// Mean over curves with the same steps.
pub(super) fn mean_curve(curves: Vec<Vec<(usize, f64)>>) -> Vec<(f64, f64)> {
    let shortest = curves.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |i: usize| curves.iter().map(|c| c[i].1).sum::<f64>() / curves.len() as f64;
    (0..shortest).map(|i| (curves[0][i].0 as f64, mean(i))).collect()
}

/// Tables 2 to 4: final loss of every variant, and its difference to the baseline.
pub fn variants(grid: Grid, title: &str, claim: &str) -> Result<()> {
    let rows: Vec<(&Cell, Variant)> =
        grid.cells.iter().flat_map(|c| c.outcomes.iter().map(move |(v, _)| (c, *v))).collect();
    let summaries: Vec<Summary> = rows.iter().map(|(c, v)| Summary::of(&finals(c.of(*v)))).collect();
    let gaps: Vec<Summary> = rows.iter().map(|(c, v)| differences(c, *v)).collect();
    let stopped = rows.iter().map(|(c, v)| stopped(c.of(*v)));
    let table = Table::new(
        format!("{title}\n{}\nThe paper: {claim}", grid.note),
        vec![
            whole("width", rows.iter().map(|(c, _)| c.width)),
            whole("depth", rows.iter().map(|(c, _)| c.depth)),
            numbers("β", rows.iter().map(|(c, _)| c.beta).collect()),
            Column::new("variant".into(), rows.iter().map(|(_, v)| label(v.id())).collect::<Vec<_>>()),
            numbers("eval loss", summaries.iter().map(|s| s.mean).collect()),
            numbers("± eval", summaries.iter().map(|s| s.error).collect()),
            numbers("Δ", gaps.iter().map(|s| s.mean).collect()),
            numbers("± Δ", gaps.iter().map(|s| s.error).collect()),
            whole("stopped", stopped),
        ],
    )?;
    let table = table.unit("eval loss", "nats").digits("β", 3).digits("± eval", 1).digits("Δ", 3).digits("± Δ", 2);
    say(&table.to_string());
    let files = table.write_all(&grid.folder, "table", &FORMATS)?;
    conclude(grid.record, &files, &grid.folder)
}

/// Figure 5: training loss of the full transform and of the exponential pathway alone, with the losses in a table.
pub fn figure5(grid: Grid) -> Result<()> {
    let kinds = [Variant::Baseline, Variant::Mismatch, Variant::ExpOnly];
    let cell = &grid.cells[0];
    let curve = |v: &Variant| {
        let steps = |o: &LanguageOutcome| -> Vec<(usize, f64)> {
            o.metrics.rows.iter().filter(|r| r.step > 0).map(|r| (r.step, r.loss)).collect()
        };
        LossCurve { id: v.id().to_owned(), points: mean_curve(cell.of(*v).iter().map(steps).collect()) }
    };
    let curves: Vec<LossCurve> = kinds.iter().filter(|v| !cell.of(**v).is_empty()).map(curve).collect();
    let figure = training_figure(
        &curves,
        &format!("Width {}, depth {}, β {:.3}. {}", cell.width, cell.depth, cell.beta, grid.note),
    );
    let mut files = figure.write_with_curves(grid.folder.join("fig5"))?;
    let folder = grid.folder.clone();
    let claim = "exponential-only 3.870 against 3.142 for the full transform at 31k steps (1024 × 12)";
    let table = figure5_table(&grid, claim)?;
    say(&table.to_string());
    files.extend(table.write_all(&folder, "table", &FORMATS)?);
    conclude(grid.record, &files, &folder)
}

fn figure5_table(grid: &Grid, claim: &str) -> Result<Table> {
    let cell = &grid.cells[0];
    let rows: Vec<(Variant, Summary)> = cell.outcomes.iter().map(|(v, o)| (*v, Summary::of(&finals(o)))).collect();
    let stopped = cell.outcomes.iter().map(|(_, o)| stopped(o));
    Ok(Table::new(
        format!("Figure 5: the linear pathway left out\n{}\nThe paper: {claim}", grid.note),
        vec![
            Column::new("variant".into(), rows.iter().map(|(v, _)| label(v.id())).collect::<Vec<_>>()),
            numbers("eval loss", rows.iter().map(|(_, s)| s.mean).collect()),
            numbers("± eval", rows.iter().map(|(_, s)| s.error).collect()),
            whole("stopped", stopped),
        ],
    )?
    .unit("eval loss", "nats")
    .digits("± eval", 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::language::Metrics;
    use crate::train::language::metrics::Row;

    fn run(losses: &[f64]) -> LanguageOutcome {
        let row = |(i, loss): (usize, &f64)| Row { step: 100 * i, eval_loss: Some(*loss), ..Row::default() };
        LanguageOutcome { metrics: Metrics { rows: losses.iter().enumerate().map(row).collect() }, stopped: None }
    }

    #[test]
    fn speed_up_interpolates() {
        let baseline = run(&[5.0, 4.0, 3.5, 3.2, 3.0]);
        // 3.0 is reached half-way between steps 200 and 300.
        assert_eq!(speed_up(&baseline, &run(&[5.0, 3.8, 3.2, 2.8, 2.7])), Some(400.0 / 250.0));
        assert_eq!(speed_up(&baseline, &run(&[5.0, 4.5, 4.0, 3.5, 3.1])), None);
        assert_eq!(speed_up(&baseline, &baseline), Some(1.0));
    }
}
