//! Table 7 from measured times.

use std::path::Path;

use polars::prelude::Column;

use super::size::Size;
use super::speed_ups::{Table1, speed_up};
use super::tables::{FORMATS, numbers, whole};
use super::variant::Variant;
use crate::cli::{RunRecord, say};
use crate::error::Result;
use crate::experiment::output::conclude;
use crate::report::style::label;
use crate::report::{Table, TableFormat, significant};
use crate::train::language::PartTimes;

/// Times of one size, round by round.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// Width and depth.
    pub size: Size,
    /// Curvature.
    pub beta: f64,
    /// Whether one model was timed after the other.
    pub apart: bool,
    /// Of the baseline.
    pub baseline: Vec<PartTimes>,
    /// Of the other.
    pub sel: Vec<PartTimes>,
}

/// Median, and half of the distance between the quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Of all values.
    pub median: f64,
    /// Half of the interquartile range.
    pub half: f64,
}

impl Spread {
    /// Of at least one value; quantiles by linear interpolation, as NumPy's.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let at = q * (values.len() - 1) as f64;
            let (low, part) = (at as usize, at.fract());
            let high = values[(low + 1).min(values.len() - 1)];
            values[low] + part * (high - values[low])
        };
        Spread { median: quantile(0.5), half: (quantile(0.75) - quantile(0.25)) / 2.0 }
    }

    fn over(times: &[PartTimes], part: impl Fn(&PartTimes) -> f64) -> Self {
        Spread::of(times.iter().map(part).collect())
    }

    fn text(self) -> String {
        format!("{} ± {}", significant(self.median, 3), significant(self.half, 1))
    }
}

/// Medians of the parts of one model.
#[derive(Clone, Copy, Debug)]
struct Parts {
    forward: Spread,
    backward: Spread,
    optimizer: Spread,
    step: Spread,
}

impl Parts {
    fn of(times: &[PartTimes]) -> Self {
        Parts {
            forward: Spread::over(times, |t| t.forward),
            backward: Spread::over(times, PartTimes::backward),
            optimizer: Spread::over(times, |t| t.optimizer),
            step: Spread::over(times, |t| t.step),
        }
    }

    /// Sum of the medians.
    fn sum(&self) -> f64 {
        self.forward.median + self.backward.median + self.optimizer.median
    }
}

/// One part of them.
type Part = fn(&Parts) -> Spread;

/// How much longer SEL's parts take together than the baseline's, as a share.
fn overhead(baseline: &Parts, sel: &Parts) -> f64 {
    sel.sum() / baseline.sum() - 1.0
}

/// Speed-up in time of a speed-up in steps with steps that take longer by the share `overhead`.
fn wall_clock(speed_up: f64, overhead: f64) -> f64 {
    speed_up / (1.0 + overhead)
}

/// Writes Table 7, the same as numbers (`timings`) and every round (`rounds.parquet`).
pub fn write(
    profiled: &[Profiled],
    variant: Variant,
    table1: Option<&Table1>,
    note: &str,
    folder: &Path,
    record: RunRecord,
) -> Result<()> {
    let table = table7(profiled, variant, table1, note)?;
    say(&table.to_string());
    let mut files = table.write_all(folder, "table", &FORMATS)?;
    let (timings, rounds) = (timings(profiled, variant)?, rounds(profiled, variant)?);
    files.extend(timings.write_all(folder, "timings", &[TableFormat::Csv, TableFormat::Parquet])?);
    files.extend(rounds.write_all(folder, "rounds", &[TableFormat::Parquet])?);
    conclude(record, &files, folder)
}

fn table7(profiled: &[Profiled], variant: Variant, table1: Option<&Table1>, note: &str) -> Result<Table> {
    let parts: Vec<[Parts; 2]> = profiled.iter().map(|p| [&p.baseline, &p.sel].map(|t| Parts::of(t))).collect();
    let texts = |name: &str, one: &dyn Fn(&Parts) -> String| {
        let cell = |[baseline, sel]: &[Parts; 2]| format!("{} / {}", one(baseline), one(sel));
        Column::new(name.into(), parts.iter().map(cell).collect::<Vec<String>>())
    };
    let overheads: Vec<f64> = parts.iter().map(|[b, s]| overhead(b, s)).collect();
    let by_round = |p: &Profiled| {
        let ratios = p.baseline.iter().zip(&p.sel).map(|(b, s)| s.sum() / b.sum());
        100.0 * Spread::of(ratios.collect()).half
    };
    let (speeds, from): (Vec<Option<f64>>, Vec<String>) = profiled.iter().map(|p| speed_up(table1, p.size)).unzip();
    let estimates = speeds.iter().zip(&overheads).map(|(s, o)| s.map(|s| wall_clock(s, *o)));
    let source = match table1 {
        Some(table1) => format!("Speed-ups in steps from {}.", table1.path().display()),
        None => "No Table 1 for speed-ups in steps: --table1 names one.".into(),
    };
    let apart: Vec<String> = profiled.iter().filter(|p| p.apart).map(|p| p.size.to_string()).collect();
    let order = match apart.len() {
        0 => "Both models are timed in turn.".to_owned(),
        _ => format!("Both models are timed in turn, but for {}: one after the other.", apart.join(", ")),
    };
    let title = format!(
        "Table 7: milliseconds of a training step, baseline / {}\n{note} {order}\nBackward is (forward and \
         backward) - forward; the overhead is that of the summed medians, ± from round to round. {source}\nThe paper: \
         5.5 % overhead and 1.44 times fewer steps, about 1.37 times faster, for its largest profiled configuration \
         (H200)",
        label(variant.id())
    );
    let table = Table::new(
        title,
        vec![
            whole("width", profiled.iter().map(|p| p.size.width)),
            whole("depth", profiled.iter().map(|p| p.size.depth)),
            numbers("β", profiled.iter().map(|p| p.beta).collect()),
            texts("forward", &|p| p.forward.text()),
            texts("backward", &|p| p.backward.text()),
            texts("optimizer", &|p| p.optimizer.text()),
            texts("sum", &|p| significant(p.sum(), 3)),
            numbers("overhead", overheads.iter().map(|o| 100.0 * o).collect()),
            numbers("± overhead", profiled.iter().map(by_round).collect()),
            texts("one program", &|p| p.step.text()),
            texts("sum / one program", &|p| significant(p.sum() / p.step.median, 3)),
            Column::new("fewer steps".into(), speeds.clone()),
            Column::new("est. speed-up".into(), estimates.collect::<Vec<_>>()),
            Column::new("Table 1".into(), from),
        ],
    )?;
    let table = ["forward", "backward", "optimizer", "sum", "one program"].iter().fold(table, |t, c| t.unit(c, "ms"));
    let table = table.unit("overhead", "%").digits("β", 3).digits("overhead", 2).digits("± overhead", 1);
    Ok(table.unit("fewer steps", "times").digits("fewer steps", 3).digits("est. speed-up", 3))
}

/// Medians and spreads as numbers, one row per size and model.
fn timings(profiled: &[Profiled], variant: Variant) -> Result<Table> {
    let rows: Vec<(&Profiled, Variant, Parts)> = profiled
        .iter()
        .flat_map(|p| [(p, Variant::Baseline, Parts::of(&p.baseline)), (p, variant, Parts::of(&p.sel))])
        .collect();
    let mut columns = vec![
        whole("width", rows.iter().map(|(p, ..)| p.size.width)),
        whole("depth", rows.iter().map(|(p, ..)| p.size.depth)),
        Column::new("variant".into(), rows.iter().map(|(_, v, _)| v.id()).collect::<Vec<_>>()),
    ];
    let parts: [(&str, Part); 4] = [
        ("forward", |p| p.forward),
        ("backward", |p| p.backward),
        ("optimizer", |p| p.optimizer),
        ("one_program", |p| p.step),
    ];
    for (name, part) in parts {
        columns.push(numbers(&format!("{name}_ms"), rows.iter().map(|(.., p)| part(p).median).collect()));
        columns.push(numbers(&format!("{name}_half_iqr_ms"), rows.iter().map(|(.., p)| part(p).half).collect()));
    }
    columns.push(numbers("sum_ms", rows.iter().map(|(.., p)| p.sum()).collect()));
    Table::new("Times of a training step", columns)
}

/// Every round as it was measured.
fn rounds(profiled: &[Profiled], variant: Variant) -> Result<Table> {
    let of = |p: &Profiled, v: Variant, times: &[PartTimes]| -> Vec<(Size, Variant, usize, PartTimes)> {
        times.iter().enumerate().map(|(i, t)| (p.size, v, i, *t)).collect()
    };
    let both = |p: &Profiled| [of(p, Variant::Baseline, &p.baseline), of(p, variant, &p.sel)].concat();
    let rows: Vec<(Size, Variant, usize, PartTimes)> = profiled.iter().flat_map(both).collect();
    let times = |name: &str, part: fn(&PartTimes) -> f64| numbers(name, rows.iter().map(|(.., t)| part(t)).collect());
    Table::new(
        "Rounds",
        vec![
            whole("width", rows.iter().map(|r| r.0.width)),
            whole("depth", rows.iter().map(|r| r.0.depth)),
            Column::new("variant".into(), rows.iter().map(|r| r.1.id()).collect::<Vec<_>>()),
            whole("round", rows.iter().map(|r| r.2)),
            times("forward_ms", |t| t.forward),
            times("forward_backward_ms", |t| t.forward_backward),
            times("optimizer_ms", |t| t.optimizer),
            times("one_program_ms", |t| t.step),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::super::speed_ups::example;
    use super::*;

    fn times(forward: f64, backward: f64, optimizer: f64) -> PartTimes {
        PartTimes { forward, forward_backward: forward + backward, optimizer, step: forward + backward + optimizer }
    }

    #[test]
    fn spreads_are_those_of_numpy() {
        // numpy.percentile([1, 2, 4, 8], [25, 50, 75]) is 1.75, 3, 5.
        assert_eq!(Spread::of(vec![8.0, 1.0, 4.0, 2.0]), Spread { median: 3.0, half: 1.625 });
        assert_eq!(Spread::of(vec![7.0]), Spread { median: 7.0, half: 0.0 });
    }

    #[test]
    fn overhead_is_that_of_summed_medians() {
        let baseline = Parts::of(&[times(10.0, 20.0, 10.0), times(10.0, 20.0, 10.0), times(99.0, 99.0, 99.0)]);
        let sel = Parts::of(&[times(11.0, 20.5, 12.5)]);
        assert!((overhead(&baseline, &sel) - 0.1).abs() < 1e-12);
        // The paper's largest configuration: 1.44 times fewer steps, 5.5 % overhead.
        assert_eq!(significant(wall_clock(1.44, 0.055), 3), "1.36");
        assert_eq!(wall_clock(1.5, 0.0), 1.5);
    }

    #[test]
    fn the_estimate_is_in_the_table_where_there_is_a_row() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let table1 = Table1::read(&example(folder.path())).expect("a Table 1");
        let profiled = [2, 8].map(|depth| Profiled {
            size: Size { width: 128, depth },
            beta: 3.0,
            apart: false,
            baseline: vec![times(10.0, 20.0, 10.0)],
            sel: vec![times(10.0, 20.0, 20.0)],
        });
        let table = table7(&profiled, Variant::Mismatch, Some(&table1), "").expect("a table");
        let column = |name: &str| table.frame().column(name).and_then(|c| c.f64().cloned()).expect("numbers");
        assert_eq!(column("overhead").get(0), Some(25.0));
        assert_eq!(column("est. speed-up").iter().collect::<Vec<_>>(), [Some(1.2), None]);
        assert!(table.to_string().contains("10.0 ± 0 / 20.0 ± 0"), "{table}");
    }
}
