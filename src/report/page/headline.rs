//! The main numbers of each experiment, from its tables.

use super::grid::{Cell, Grid, grid};
use crate::report::table::distinct;

/// `value ± error` with the error's decimals, at least `decimals`, or the value alone where the error is no number.
fn with_error(value: &Cell, error: Option<&Cell>, decimals: usize) -> String {
    match (value.number, error.filter(|e| e.number.is_some_and(|e| e > 0.0))) {
        (Some(number), Some(error)) if !error.shown.contains('e') => {
            let of_error = error.shown.split_once('.').map_or(0, |(_, behind)| behind.len());
            format!("{} ± {}", fixed(number, decimals.max(of_error)), error.shown)
        }
        (_, Some(error)) => format!("{} ± {}", minus(&value.shown), error.shown),
        (Some(number), None) => fixed(number, decimals),
        (None, None) => value.shown.clone(),
    }
}

/// With a real minus, and none before zero.
fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| c == '0' || c == '.') => zero.to_owned(),
        _ => minus(&text),
    }
}

/// With a real minus.
fn minus(text: &str) -> String {
    text.replace('-', "\u{2212}")
}

fn table(grids: &[Grid]) -> Option<&Grid> {
    grid(grids, "table")
}

/// The smallest and the largest number of a column, in the rows that `of` takes.
fn range_of(grid: &Grid, name: &str, decimals: usize, of: impl Fn(&[Cell]) -> bool) -> Option<(String, String)> {
    let column = grid.column(name)?;
    let all = || grid.rows.iter().filter(|row| of(row)).filter_map(|row| row[column].number);
    let (least, most) = (all().min_by(f64::total_cmp)?, all().max_by(f64::total_cmp)?);
    Some((fixed(least, decimals), fixed(most, decimals)))
}

/// A column's smallest and largest number.
fn range(grid: &Grid, name: &str, decimals: usize) -> Option<(String, String)> {
    range_of(grid, name, decimals, |_| true)
}

fn to(range: (String, String)) -> String {
    if range.0 == range.1 { range.0 } else { format!("{} to {}", range.0, range.1) }
}

pub(super) fn spectrum(grids: &[Grid]) -> Option<String> {
    let grid = grid(grids, "summary")?;
    let (_, deepest) = range(grid, "depth", 0)?;
    let one = |init: &str| {
        let row = [init, deepest.as_str()];
        Some(with_error(grid.cell(&row, "mean square")?, grid.cell(&row, "standard error"), 0))
    };
    let matched = one("uniform-mm")?;
    let other = one("sm20").map_or(String::new(), |v| format!("; SM20 {v}"));
    Some(format!("mean square at L = {deepest}: uniform-phase {matched}{other}"))
}

/// SNR of uniform-phase, and of the best of the others.
pub(super) fn cameraman(grids: &[Grid]) -> Option<String> {
    let grid = table(grids)?;
    let (name, snr) = (grid.column("initialisation")?, grid.column("SNR")?);
    let one = |row: &Vec<Cell>| with_error(&row[snr], grid.column("± SNR").map(|e| &row[e]), 2);
    let matched = grid.rows.iter().find(|row| row[name].shown == "uniform-phase MM")?;
    let others = grid.rows.iter().filter(|row| row[name] != matched[name] && row[snr].number.is_some());
    let best = others.max_by(|a, b| a[snr].number.unwrap_or(f64::NAN).total_cmp(&b[snr].number.unwrap_or(f64::NAN)))?;
    Some(format!("MM {} dB; best of the others {}: {}", one(matched), best[name].shown, one(best)))
}

pub(super) fn audio(grids: &[Grid]) -> Option<String> {
    let grid = table(grids)?;
    let (name, snr) = (grid.column("initialisation")?, grid.column("SNR")?);
    let short = |text: &str| text.replace("uniform-phase MM", "MM");
    let one = |row: &Vec<Cell>| format!("{}: {}", short(&row[name].shown), with_error(&row[snr], None, 1));
    Some(format!("dB of {}", grid.rows.iter().map(one).collect::<Vec<_>>().join("; ")))
}

/// MM over the best baseline, picture by picture.
pub(super) fn sweep(grids: &[Grid]) -> Option<String> {
    let grid = table(grids)?;
    let (name, ratio) = (grid.column("image")?, grid.column("MM / best")?);
    let one = |row: &Vec<Cell>| format!("{} {}", row[name].shown, row[ratio].shown);
    Some(format!("test MSE, MM / best baseline: {}", grid.rows.iter().map(one).collect::<Vec<_>>().join(", ")))
}

/// Best rates of uniform-phase at the smallest and the largest width, as the figure's curves have them.
pub(super) fn mup(grids: &[Grid]) -> Option<String> {
    let grid = table(grids)?;
    let (init, scaling) = (grid.column("initialisation")?, grid.column("scaling")?);
    let (width, rate) = (grid.column("N")?, grid.column("log2 rate, geometric")?);
    let rows = |kind: &str| -> Vec<&Vec<Cell>> {
        let of = |row: &&Vec<Cell>| row[init].shown == "uniform-phase MM" && row[scaling].shown == kind;
        grid.rows.iter().filter(of).collect()
    };
    let power = |row: &Vec<Cell>| row[rate].number.map_or("?".to_owned(), |v| minus(&format!("{v:.0}")));
    let one = |kind: &str| {
        let rows = rows(kind);
        Some(format!("{kind} {} to {}", power(rows.first()?), power(rows.last()?)))
    };
    let all = rows("standard");
    let (first, last) = (&all.first()?[width].shown, &all.last()?[width].shown);
    let kinds: Vec<String> = ["standard", "μP (LR)", "μP (LR+LL)"].into_iter().filter_map(one).collect();
    Some(format!("log2 of MM's best rate (geometric mean of the losses), N {first} to {last}: {}", kinds.join(", ")))
}

pub(super) fn weights(grids: &[Grid]) -> Option<String> {
    let grid = grid(grids, "claims")?;
    let cell = grid.rows.first()?.get(1)?;
    Some(format!("largest {}", cell.shown))
}

pub(super) fn table1(grids: &[Grid]) -> Option<String> {
    let grid = table(grids)?;
    let gap = to(range(grid, "Δ", 3)?);
    let faster = match range(grid, "speed-up", 2) {
        Some(values) => format!("; speed-up {}", to(values)),
        None => "; the baseline's loss is not reached".to_owned(),
    };
    let missed = grid.column("speed-up").map_or(0, |c| grid.rows.iter().filter(|r| r[c].number.is_none()).count());
    let missed = if missed > 0 { format!(" (none in {missed} of {} sizes)", grid.rows.len()) } else { String::new() };
    Some(format!("Δ {gap} nats{faster}{missed}"))
}

/// Differences to the baseline, by variant.
pub(super) fn variants(grids: &[Grid]) -> Option<String> {
    let grid = table(grids)?;
    let name = grid.column("variant")?;
    let kinds = distinct(&grid.rows, |row| row[name].shown.as_str());
    let one = |kind: &str| {
        let range = range_of(grid, "Δ", 3, |row| row[name].shown == kind)?;
        Some(format!("{kind}: {}", to(range)))
    };
    let all: Vec<String> = kinds.into_iter().filter(|kind| *kind != "baseline").filter_map(one).collect();
    (!all.is_empty()).then(|| format!("Δ to the baseline in nats, {}", all.join("; ")))
}

/// Final losses, by variant.
pub(super) fn variants_named(grids: &[Grid]) -> Option<String> {
    let grid = table(grids)?;
    let (name, loss, error) = (grid.column("variant")?, grid.column("eval loss")?, grid.column("± eval")?);
    let one = |row: &Vec<Cell>| format!("{}: {}", row[name].shown, with_error(&row[loss], Some(&row[error]), 3));
    Some(format!("nats of {}", grid.rows.iter().map(one).collect::<Vec<_>>().join("; ")))
}

pub(super) fn multipliers(grids: &[Grid]) -> Option<String> {
    let grid = table(grids)?;
    let one = |kind: &str| Some(with_error(grid.cell(&[kind], "eval loss")?, grid.cell(&[kind], "± eval"), 3));
    Some(format!("annealed {}, fixed {} nats", one("annealed")?, one("fixed")?))
}

pub(super) fn cost(grids: &[Grid]) -> Option<String> {
    let grid = table(grids)?;
    let overhead = to(range(grid, "overhead", 0)?);
    let faster =
        range(grid, "est. speed-up", 2).map_or(String::new(), |r| format!(", {} times faster to the same loss", to(r)));
    Some(format!("{overhead} % overhead{faster}"))
}

pub(super) fn mismatch(grids: &[Grid]) -> Option<String> {
    let grid = grid(grids, "by_sign")?;
    Some(format!(
        "negative weights have {} of their target",
        with_error(grid.cell(&["negative"], "actual / target")?, None, 3)
    ))
}

/// The scales at the end, as means over roles.
pub(super) fn shapes(grids: &[Grid]) -> Option<String> {
    let grid = grid(grids, "scales")?;
    let [scale, role, step, value] = ["scale", "role", "step", "value"].map(|name| grid.column(name));
    let (scale, role, step, value) = (scale?, role?, step?, value?);
    let last = |name: &str| {
        let of = |row: &&Vec<Cell>| row[scale].shown == name && row[role].shown == "mean";
        let by = |a: &&Vec<Cell>, b: &&Vec<Cell>| {
            let at = |row: &Vec<Cell>| row[step].number.unwrap_or(f64::NEG_INFINITY);
            at(a).total_cmp(&at(b))
        };
        Some(format!("{name} {:.2}", grid.rows.iter().filter(of).max_by(by)?[value].number?))
    };
    Some(format!("{}, {}, {} of their start, means over roles", last("e_w")?, last("l_w")?, last("m")?))
}

pub(super) fn growth(grids: &[Grid]) -> Option<String> {
    let grid = grid(grids, "weights")?;
    let one = |which: &str| grid.cell(&[which, "end", "all"], "max / start").map(|c| with_error(c, None, 1));
    Some(format!("the largest weight grows {} times, the baseline's {}", one("SEL")?, one("baseline")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_decimals_of_their_errors() {
        let cell = |shown: &str, number| Cell { shown: shown.into(), number: Some(number) };
        let value = cell("8.118", 8.118_09);
        assert_eq!(with_error(&value, Some(&cell("0.38", 0.379)), 1), "8.12 ± 0.38");
        assert_eq!(with_error(&cell("281.2", 281.2), Some(&cell("18", 17.9)), 0), "281 ± 18");
        assert_eq!(with_error(&cell("1.681", 1.681_27), Some(&cell("0.02", 0.02)), 3), "1.681 ± 0.02");
        let none = Cell { shown: "NaN".into(), number: None };
        assert_eq!(with_error(&value, Some(&none), 1), "8.1");
        assert_eq!([fixed(-0.015, 1), fixed(-0.15, 1), fixed(0.0, 0)], ["0.0", "\u{2212}0.1", "0"]);
    }

    /// The headlines of the committed results are there, and are those of their tables.
    #[test]
    fn every_committed_result_has_a_headline() {
        let figures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("figures");
        let runs = super::super::find(&[figures]).expect("results");
        for run in &runs {
            assert!(run.problems.is_empty(), "{:?}", run.problems);
            let experiment = run.experiment.expect("a known program");
            let ours = (experiment.ours)(&run.grids);
            assert_eq!(ours.is_some(), experiment.program != "sel-curves", "{}", experiment.program);
            assert!(ours.is_none_or(|text| !text.contains("NaN") && !text.contains('?')), "{}", experiment.program);
        }
    }
}
