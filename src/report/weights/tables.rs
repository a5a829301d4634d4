//! Tables of a checkpoint's weights.

use polars::prelude::Column;

use crate::analysis::weights::{Report, Summary, Survey, Wanted, Whole};
use crate::error::Result;
use crate::report::table::{Table, significant};

/// Name of the row of all weight matrices together.
const ALL: &str = "linear layers";

/// Label and statistics of each row: roles, then all matrices.
fn rows(survey: &Survey) -> Vec<(String, &Summary)> {
    let roles = survey.roles.iter().map(|(role, summary)| (role.to_string(), summary));
    roles.chain(survey.all.iter().map(|all| (ALL.to_owned(), &all.summary))).collect()
}

fn known(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// The share of `part` in the summary's weights, in percent.
fn percent(part: u64, summary: &Summary) -> Option<f64> {
    known(100.0 * part as f64 / summary.count as f64)
}

/// The table for the screen: a row per role, and one for all matrices. `threshold` is the place of the one shown.
///
/// **Errors** never, but for columns of one name.
pub fn role_table(title: &str, survey: &Survey, wanted: &Wanted, threshold: usize) -> Result<Table> {
    let rows = rows(survey);
    let number = |name: &str, of: &dyn Fn(&Summary) -> Option<f64>| {
        Column::new(name.into(), rows.iter().map(|r| of(r.1)).collect::<Vec<_>>())
    };
    let above = format!("|w| > {}", wanted.thresholds.get(threshold).copied().unwrap_or_default());
    let columns = vec![
        Column::new("role".into(), rows.iter().map(|r| r.0.as_str()).collect::<Vec<_>>()),
        Column::new("tensors".into(), rows.iter().map(|r| r.1.tensors as i64).collect::<Vec<_>>()),
        Column::new("weights".into(), rows.iter().map(|r| r.1.count as i64).collect::<Vec<_>>()),
        number("std", &|s| known(s.central.std())),
        number("std / Xavier", &|s| known(s.growth_std())),
        number("max |w|", &|s| known(s.max_abs())),
        number("max / Xavier", &|s| known(s.growth_max())),
        number(&above, &|s| s.above.get(threshold).and_then(|n| percent(*n, s))),
        number("excess kurtosis", &|s| known(s.central.kurtosis())),
        number("Hill", &|s| s.hill.1),
        number("stable rank", &|s| s.stable_rank),
    ];
    let table = Table::new(title, columns)?.unit(&above, "%").unit("std / Xavier", "×").unit("max / Xavier", "×");
    Ok(["std / Xavier", "max / Xavier", &above, "excess kurtosis", "Hill", "stable rank"]
        .into_iter()
        .fold(table, |t, name| t.digits(name, 3)))
}

/// Every statistic as a column, for each row of the summaries.
fn statistics(summaries: &[&Summary], wanted: &Wanted) -> Vec<Column> {
    let number = |name: String, of: &dyn Fn(&Summary) -> Option<f64>| {
        Column::new(name.into(), summaries.iter().map(|s| of(s)).collect::<Vec<_>>())
    };
    let count = |name: &str, of: &dyn Fn(&Summary) -> u64| {
        Column::new(name.into(), summaries.iter().map(|s| of(s) as i64).collect::<Vec<_>>())
    };
    let mut columns = vec![
        count("weights", &|s| s.count),
        count("zeros", &|s| s.zeros),
        count("not finite", &|s| s.not_finite),
        number("mean".into(), &|s| (s.count > 0).then_some(s.central.mean)),
        number("std".into(), &|s| known(s.central.std())),
        number("min".into(), &|s| known(s.range.0)),
        number("max".into(), &|s| known(s.range.1)),
        number("max |w|".into(), &|s| (s.count > 0).then(|| s.max_abs())),
        number("skewness".into(), &|s| known(s.central.skew())),
        number("excess kurtosis".into(), &|s| known(s.central.kurtosis())),
        number("Xavier max".into(), &|s| known(s.xavier.max())),
        number("Xavier std".into(), &|s| known(s.xavier.std())),
        number("growth of max".into(), &|s| known(s.growth_max())),
        number("growth of std".into(), &|s| known(s.growth_std())),
        number("above Xavier max [%]".into(), &|s| {
            (s.xavier.count() > 0).then(|| percent(s.above_xavier, s)).flatten()
        }),
        count("tail k", &|s| s.hill.0),
        number("Hill".into(), &|s| s.hill.1),
        number("stable rank".into(), &|s| s.stable_rank),
    ];
    for (i, x) in wanted.thresholds.iter().enumerate() {
        columns.push(number(format!("|w| > {x} [%]"), &|s| percent(s.above[i], s)));
    }
    for (i, p) in wanted.percents.iter().enumerate() {
        columns.push(number(format!("w {p} %"), &|s| known(s.percentiles[i])));
    }
    for (i, p) in wanted.percents.iter().enumerate() {
        columns.push(number(format!("|w| {p} %"), &|s| known(s.magnitudes[i])));
    }
    columns
}

/// Every statistic of each role and of all matrices: `role`, `tensors`, `weights`, `zeros`, ...
///
/// **Errors** when a threshold or percentile occurs twice.
pub fn summary_table(title: &str, survey: &Survey, wanted: &Wanted) -> Result<Table> {
    let rows = rows(survey);
    let mut columns = vec![
        Column::new("role".into(), rows.iter().map(|r| r.0.as_str()).collect::<Vec<_>>()),
        Column::new("tensors".into(), rows.iter().map(|r| r.1.tensors as i64).collect::<Vec<_>>()),
    ];
    columns.extend(statistics(&rows.iter().map(|r| r.1).collect::<Vec<_>>(), wanted));
    Table::new(title, columns)
}

/// Every statistic of each tensor: `tensor`, `role`, `layer`, `dtype`, `shape`, `inputs`, `outputs`, `counted` (among all
/// matrices), ...
///
/// **Errors** as [`summary_table`].
pub fn tensor_table(survey: &Survey, wanted: &Wanted) -> Result<Table> {
    let all = &survey.tensors;
    let text =
        |name: &str, of: &dyn Fn(&Report) -> String| Column::new(name.into(), all.iter().map(of).collect::<Vec<_>>());
    let whole = |name: &str, of: &dyn Fn(&Report) -> Option<usize>| {
        Column::new(name.into(), all.iter().map(|r| of(r).map(|n| n as i64)).collect::<Vec<_>>())
    };
    let mut columns = vec![
        text("tensor", &|r| r.name.clone()),
        text("role", &|r| r.placed.role.to_string()),
        whole("layer", &|r| r.placed.layer),
        text("dtype", &|r| format!("{:?}", r.dtype)),
        text("shape", &|r| r.dims.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ")),
        whole("inputs", &|r| r.placed.fans.map(|f| f.inputs)),
        whole("outputs", &|r| r.placed.fans.map(|f| f.outputs)),
        Column::new("counted".into(), all.iter().map(|r| r.counted).collect::<Vec<_>>()),
    ];
    columns.extend(statistics(&all.iter().map(|r| &r.summary).collect::<Vec<_>>(), wanted));
    Table::new("Tensors", columns)
}

/// The histogram of all matrices: `low`, `high`, `weights`, `Xavier` (expected).
///
/// **Errors** never, but for columns of one name.
pub fn histogram_table(all: &Whole) -> Result<Table> {
    let pairs: Vec<&[f64]> = all.edges.windows(2).collect();
    let expected = |p: &&[f64]| all.summary.count as f64 * all.summary.xavier.between(p[0], p[1]);
    Table::new(
        "Histogram of the weights of linear layers",
        vec![
            Column::new("low".into(), pairs.iter().map(|p| p[0]).collect::<Vec<_>>()),
            Column::new("high".into(), pairs.iter().map(|p| p[1]).collect::<Vec<_>>()),
            Column::new("weights".into(), all.heights.iter().map(|n| *n as i64).collect::<Vec<_>>()),
            Column::new("Xavier".into(), pairs.iter().map(expected).collect::<Vec<_>>()),
        ],
    )
}

/// Every singular value of each matrix, largest first: `tensor`, `role`, `layer`, `rank` (from 0), `value`.
///
/// **Errors** never, but for columns of one name.
pub fn singular_table(spectra: &[(&Report, Vec<f64>)]) -> Result<Table> {
    let each = || spectra.iter().flat_map(|(report, values)| values.iter().enumerate().map(move |v| (*report, v)));
    Table::new(
        "Singular values",
        vec![
            Column::new("tensor".into(), each().map(|(r, _)| r.name.as_str()).collect::<Vec<_>>()),
            Column::new("role".into(), each().map(|(r, _)| r.placed.role.to_string()).collect::<Vec<_>>()),
            Column::new("layer".into(), each().map(|(r, _)| r.placed.layer.map(|l| l as i64)).collect::<Vec<_>>()),
            Column::new("rank".into(), each().map(|(_, (i, _))| i as i64).collect::<Vec<_>>()),
            Column::new("value".into(), each().map(|(_, (_, v))| *v).collect::<Vec<_>>()),
        ],
    )
}

/// The claims of the paper's Section 3 computed for this model, beside what it says of Qwen3-4B-Instruct.
pub fn claims(all: &Whole, reports: &[Report], threshold: (usize, f64)) -> Result<Table> {
    let s = &all.summary;
    let mut growth: Vec<f64> = reports.iter().filter(|r| r.counted).map(|r| r.summary.growth_max()).collect();
    growth.sort_by(f64::total_cmp);
    let middle = growth.get(growth.len() / 2).copied().unwrap_or(f64::NAN);
    let ends = (growth.first().copied().unwrap_or(f64::NAN), growth.last().copied().unwrap_or(f64::NAN));
    let show = |v: f64| significant(v, 3);
    let share = s.above.get(threshold.0).and_then(|n| percent(*n, s)).unwrap_or(f64::NAN);
    let rows: [(String, String, &str); 7] = [
        (
            "max |w|, over Xavier's".into(),
            format!("{} / {} = {} ×", show(s.max_abs()), show(s.xavier.max()), show(s.growth_max())),
            "1.23 / 0.04 = 30 ×",
        ),
        (
            "std, over Xavier's".into(),
            format!("{} / {} = {} ×", show(s.central.std()), show(s.xavier.std()), show(s.growth_std())),
            "1.7 ×",
        ),
        (format!("share of |w| > {}", threshold.1), format!("{} %", show(share)), "0.05 %"),
        (
            "growth of the max per matrix".into(),
            format!("{} to {} ×, median {} ×", show(ends.0), show(ends.1), show(middle)),
            "most 5 to 15 ×",
        ),
        ("excess kurtosis (Xavier: -1.2 per matrix)".into(), show(s.central.kurtosis()), "–"),
        (format!("Hill's tail index, k = {}", s.hill.0), s.hill.1.map_or("–".into(), show), "–"),
        (
            "weights above their Xavier max".into(),
            format!("{} %", show(percent(s.above_xavier, s).unwrap_or(f64::NAN))),
            "–",
        ),
    ];
    Table::new(
        format!("{ALL}: {} matrices, {} weights, against Xavier's uniform law", s.tensors, s.count),
        vec![
            Column::new("quantity".into(), rows.iter().map(|r| r.0.as_str()).collect::<Vec<_>>()),
            Column::new("this model".into(), rows.iter().map(|r| r.1.as_str()).collect::<Vec<_>>()),
            Column::new("the paper's Qwen3-4B".into(), rows.iter().map(|r| r.2).collect::<Vec<_>>()),
        ],
    )
}
