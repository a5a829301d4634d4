//! Figure 12 of the SEL paper (2607.09967): the start in mismatch mode, and the singular values that it has.
//!
//! ```
//! use sinexp::analysis::sel_mismatch::{SelStart, StartSettings};
//! use sinexp::nn::{language_model::Target, sel::Sel};
//! use sinexp::report::sel::mismatch::{outlier_table, sign_table};
//! use sinexp::runtime::Device;
//! let settings = StartSettings { sel: Sel::new(8.0), shape: [16, 16], target: Target::XavierUniform, seed: 0 };
//! let start = SelStart::new(&Device::open("cpu")?, settings)?;
//! println!("{}", sign_table("Start", &start.by_sign())?);
//! let table = outlier_table("Singular values", &[start])?; // a row for the target, one for the actual weights
//! let column = |name: &str| table.frame().column(name).unwrap().f64().unwrap().clone();
//! assert_eq!(column("limit").get(1), Some(7.0 / 9.0)); // (beta - 1) / (beta + 1)
//! assert!(column("mean").get(1) > column("mean").get(0)); // negative weights are smaller: a positive mean
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use polars::prelude::Column;

use crate::analysis::distribution::{density, edges, histogram, quantile, sorted};
use crate::analysis::sel_mismatch::{BySign, SelStart, small_weight_ratio};
use crate::error::Result;
use crate::nn::sel::Mode;
use crate::random::Key;
use crate::report::style::{COLUMN_WIDTH, Color, Dash, LineStyle, Marker, PALETTE, TEXT_WIDTH};
use crate::report::table::Table;
use panelplot::{Axis, Figure, Legend, Mark, Panel};

const GRAY: Color = Color(0x77, 0x77, 0x77);
const IDENTITY: LineStyle = LineStyle::new(GRAY, Dash::Dashed, Marker::None).with_width(0.7);
const POSITIVE: LineStyle = LineStyle::new(PALETTE[0], Dash::Solid, Marker::Circle);
const NEGATIVE: LineStyle = LineStyle::new(PALETTE[1], Dash::Dashed, Marker::Triangle);

/// Whether positive, style, legend entry.
const SIGNS: [(bool, LineStyle, &str); 2] = [(true, POSITIVE, "positive"), (false, NEGATIVE, "negative")];

/// Bins of the panels with histograms.
const BINS: usize = 60;

/// Figure 12. Left: target against actual weight of `points` weights of each sign; middle: densities of both; right: actual
/// over target by sign, the share in each of 60 bins, with mean and 5-95 %. `note` is added beneath.
pub fn figure12(start: &SelStart, points: usize, note: &str) -> Figure {
    let key = Key::new(start.settings.seed).fold_in(12);
    Figure::new(TEXT_WIDTH, 3)
        .aspect(0.95)
        .legend(Legend::Below, None)
        .panel(scatter(start, points, key))
        .panel(shift(start))
        .panel(ratio(start))
        .note(note)
}

fn scatter(start: &SelStart, points: usize, key: Key) -> Panel {
    let bound = start.target.iter().fold(0.0f64, |a, x| a.max(x.abs()));
    let axis = |name: &str| Axis::linear(name).ticks_about_zero(bound);
    let mut panel = Panel::new("target and actual", axis("target weight"), axis("actual weight"));
    panel = panel.line("identity", IDENTITY, vec![(-bound, -bound), (bound, bound)]);
    for (positive, style, label) in SIGNS {
        let pairs = start.pairs(positive);
        let order = key.fold_in(u32::from(positive)).permutation(pairs.len());
        let some = order.iter().take(points).map(|i| pairs[*i as usize]).collect();
        let (marker, color) = (style.marker, style.color);
        // The legend shows marker and dash together: the third panel has the dash.
        panel =
            panel.mark(Mark::Points { points: some, marker, size: 2.4, color, label: None }).line(label, style, vec![]);
    }
    panel
}

fn shift(start: &SelStart) -> Panel {
    let reach = start.target.iter().chain(&start.actual).fold(0.0f64, |a, x| a.max(x.abs()));
    let edges = edges(-reach, reach, BINS);
    let heights = |m: &ndarray::Array2<f64>| density(&histogram(m.iter().copied(), &edges), &edges, m.len());
    let target = Mark::Bars {
        edges: edges.clone(),
        heights: heights(&start.target),
        color: Color(0xbb, 0xbb, 0xbb),
        label: Some("target".into()),
    };
    let actual = LineStyle::new(Color::INK, Dash::Solid, Marker::None);
    Panel::new("distribution shift", Axis::linear("weight").ticks_about_zero(reach), Axis::linear("density"))
        .mark(target)
        .outline("actual", actual, &edges, &heights(&start.actual))
}

fn ratio(start: &SelStart) -> Panel {
    let ratios = SIGNS.map(|(positive, ..)| sorted(start.ratios(positive)));
    let low = ratios.iter().filter_map(|r| r.first()).copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().filter_map(|r| r.last()).copied().fold(f64::NEG_INFINITY, f64::max);
    let room = (0.06 * (high - low)).max(0.02);
    let edges = edges(low - room, high + room, BINS);
    let y = Axis::linear("share of the sign's weights").range(0.0, 1.2).ticks(&[0.0, 0.25, 0.5, 0.75, 1.0]);
    let mut panel = Panel::new("magnitude ratio by sign", Axis::linear("actual / target"), y);
    for ((_, style, label), ratios) in SIGNS.iter().zip(&ratios) {
        let counts = histogram(ratios.iter().copied(), &edges);
        let count = ratios.len().max(1) as f64;
        let shares: Vec<f64> = counts.iter().map(|c| *c as f64 / count).collect();
        // Above its bars: the mean, and a line from 5 to 95 %.
        let y = shares.iter().copied().fold(0.0, f64::max) + 0.07;
        let band = vec![(quantile(ratios, 0.05), y), (quantile(ratios, 0.95), y)];
        let mean = vec![(ratios.iter().sum::<f64>() / count, y)];
        let bar = LineStyle { dash: Dash::Solid, marker: Marker::None, width: 1.6, ..*style };
        let (marker, color) = (style.marker, style.color);
        panel = panel
            .outline(*label, *style, &edges, &shares)
            .mark(Mark::Line { points: band, style: bar, label: None })
            .mark(Mark::Points { points: mean, marker, size: 3.4, color, label: None });
    }
    panel
}

/// Singular values of target and actual weights against their rank.
pub fn singular_figure(start: &SelStart, note: &str) -> Figure {
    let points = |values: &ndarray::Array1<f64>| -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(rank, v)| ((rank + 1) as f64, *v)).collect()
    };
    let [_, (_, actual)] = start.outliers();
    let edge = LineStyle::new(GRAY, Dash::Dotted, Marker::None).with_width(0.8);
    let panel = Panel::new("", Axis::log("rank of the singular value"), Axis::linear("singular value"))
        .mark(Mark::Level { y: actual.edge, style: edge, label: Some("edge of independent entries".into()) })
        .line("target", NEGATIVE.with_marker(Marker::None), points(&start.target_values))
        .line("actual", POSITIVE.with_marker(Marker::None), points(&start.actual_values))
        .mark(Mark::Points {
            points: vec![(1.0, actual.predicted)],
            marker: Marker::Cross,
            size: 5.0,
            color: Color::INK,
            label: Some("predicted from the mean".into()),
        });
    Figure::new(COLUMN_WIDTH, 1).aspect(0.7).panel(panel).note(note)
}

/// One row per sign and one for all: see [`BySign`].
pub fn sign_table(title: &str, rows: &[BySign]) -> Result<Table> {
    let number =
        |name: &str, f: &dyn Fn(&BySign) -> f64| Column::new(name.into(), rows.iter().map(f).collect::<Vec<_>>());
    let table = Table::new(
        title,
        vec![
            Column::new("target".into(), rows.iter().map(|r| r.sign).collect::<Vec<_>>()),
            Column::new("weights".into(), rows.iter().map(|r| r.count as u64).collect::<Vec<_>>()),
            number("actual / target", &|r| r.mean_ratio),
            number("least", &|r| r.ends.0),
            number("5 %", &|r| r.band.0),
            number("95 %", &|r| r.band.1),
            number("most", &|r| r.ends.1),
            Column::new("linear share".into(), rows.iter().map(|r| r.linear_share).collect::<Vec<_>>()),
            number("mean of W_eff", &|r| r.mean),
            Column::new(
                "paper".into(),
                rows.iter()
                    .map(|r| match r.sign {
                        "positive" => "about 100 %",
                        "negative" => "75–80 %",
                        _ => "",
                    })
                    .collect::<Vec<_>>(),
            ),
        ],
    )?;
    Ok(table)
}

/// One row per matrix of each start: mean, deviation, the two largest singular values, the bulk's edge and where the mean
/// puts the largest; of mismatch starts also the ratio of negative to positive weights and its small-weight limit.
pub fn outlier_table(title: &str, starts: &[SelStart]) -> Result<Table> {
    let rows: Vec<_> = starts.iter().flat_map(|s| s.outliers().map(|o| (s, o))).collect();
    let number = |name: &str, f: &dyn Fn(&crate::analysis::sel_mismatch::Outlier) -> f64| {
        Column::new(name.into(), rows.iter().map(|r| f(&r.1.1)).collect::<Vec<_>>())
    };
    let actual = |f: &dyn Fn(&SelStart) -> f64| -> Vec<Option<f64>> {
        rows.iter()
            .map(|(s, (name, _))| (*name == "actual" && s.settings.sel.mode == Mode::Mismatch).then(|| f(s)))
            .collect()
    };
    let table = Table::new(
        title,
        vec![
            Column::new("β".into(), rows.iter().map(|r| r.0.settings.sel.beta).collect::<Vec<_>>()),
            Column::new("weights".into(), rows.iter().map(|r| r.1.0).collect::<Vec<_>>()),
            Column::new("neg. / pos.".into(), actual(&SelStart::sign_ratio)),
            Column::new("limit".into(), actual(&|s| small_weight_ratio(s.settings.sel.beta))),
            number("mean", &|o| o.mean),
            number("std", &|o| o.std),
            number("σ₁", &|o| o.first),
            number("σ₂", &|o| o.second),
            number("edge", &|o| o.edge),
            number("σ₁ by the mean", &|o| o.predicted),
        ],
    )?;
    Ok(table.digits("β", 3).digits("mean", 3))
}

/// `rank` (from 1), `target`, `actual`: all singular values.
pub fn singular_table(start: &SelStart) -> Result<Table> {
    let ranks = (1..=start.actual_values.len() as u64).collect::<Vec<_>>();
    Table::new(
        "Singular values",
        vec![
            Column::new("rank".into(), ranks),
            Column::new("target".into(), start.target_values.to_vec()),
            Column::new("actual".into(), start.actual_values.to_vec()),
        ],
    )
}
