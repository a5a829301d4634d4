//! Figures 1, 13 and 14 of 2607.09967: pretrained weights beside Xavier's initialisation.

use crate::analysis::weights::{Distances, Report, Role, Survey, Wanted, Whole};
use crate::report::style::{Color, Dash, LineStyle, Marker, PALETTE, TEXT_WIDTH};
use crate::report::table::significant;
use panelplot::{Axis, Figure, Legend, Mark, Panel};

/// The pretrained weights are vermillion, Xavier's blue; the first are solid, the second dashed.
const PRETRAINED: LineStyle = LineStyle::new(PALETTE[1], Dash::Solid, Marker::Circle);
const XAVIER: LineStyle = LineStyle::new(PALETTE[0], Dash::Dashed, Marker::None);
/// A level that is compared with.
const LIMIT: LineStyle = LineStyle::new(Color::INK, Dash::Dotted, Marker::None);

/// Figure 1. Left: share of weights per histogram bin (log), pretrained and Xavier's expectation. Middle: share of weights
/// above a threshold, both, and the largest weight that Xavier's law can draw. Right: how many matrices' largest weight
/// grew how much beyond their own Xavier maximum. `note` is added to what the histogram leaves out.
pub fn gap_figure(survey: &Survey, all: &Whole, wanted: &Wanted, note: &str) -> Figure {
    let beyond = all.summary.count - all.heights.iter().sum::<u64>();
    let left_out = match all.edges.last() {
        Some(edge) if beyond > 0 => {
            let (edge, max) = (significant(*edge, 2), significant(all.summary.max_abs(), 3));
            format!(" The histogram leaves out {} beyond ±{edge}, of up to {max}.", weights(beyond))
        }
        _ => String::new(),
    };
    Figure::new(TEXT_WIDTH, 3)
        .aspect(0.82)
        .legend(Legend::Below, None)
        .panel(histogram(all))
        .panel(thresholds(all, wanted))
        .panel(growth_histogram(survey))
        .note(format!("{note}{left_out}"))
}

fn weights(count: u64) -> String {
    if count == 1 { "1 weight".into() } else { format!("{count} weights") }
}

fn line(points: Vec<(f64, f64)>, style: LineStyle, label: &str) -> Mark {
    Mark::Line { points, style, label: (!label.is_empty()).then(|| label.to_owned()) }
}

/// Round borders for a log axis of shares: the smallest one shown, and 1.
fn shares(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let least = values.filter(|v| *v > 0.0).fold(1.0, f64::min);
    (10f64.powf(least.log10().floor()), 1.0)
}

fn histogram(all: &Whole) -> Panel {
    let count = all.summary.count as f64;
    let heights: Vec<f64> = all.heights.iter().map(|n| *n as f64 / count).collect();
    // A polygon along the bins' tops.
    let mut expected = Vec::new();
    for pair in all.edges.windows(2) {
        let share = all.summary.xavier.between(pair[0], pair[1]);
        expected.extend([(pair[0], share), (pair[1], share)]);
    }
    let (low, high) = shares(heights.iter().copied());
    // Where a bin has no share, the polygon falls to the bottom instead of breaking off.
    let expected: Vec<(f64, f64)> = expected
        .iter()
        .enumerate()
        .filter(|(i, p)| {
            p.1 > 0.0 || *i > 0 && expected[i - 1].1 > 0.0 || expected.get(i + 1).is_some_and(|n| n.1 > 0.0)
        })
        .map(|(_, p)| (p.0, p.1.max(low)))
        .collect();
    Panel::new("weights", Axis::linear("weight w"), Axis::log("share of weights per bin").range(low, high))
        .mark(Mark::Bars { edges: all.edges.clone(), heights, color: PALETTE[1], label: Some("pretrained".into()) })
        .mark(line(expected, XAVIER.with_width(1.2), "Xavier uniform"))
}

fn thresholds(all: &Whole, wanted: &Wanted) -> Panel {
    let count = all.summary.count as f64;
    let pretrained: Vec<(f64, f64)> =
        wanted.curve.iter().zip(&all.curve).map(|(x, n)| (*x, *n as f64 / count)).collect();
    let (low, high) = shares(pretrained.iter().map(|p| p.1));
    let max = all.summary.xavier.max();
    let ends = (wanted.curve.first().copied().unwrap_or(1e-3), wanted.curve.last().copied().unwrap_or(1.0));
    // The share falls to 0 at the maximum, which has no place on a log axis: closer and closer, then to the bottom.
    let close = (0..=200).map(|i| max * (1.0 - 10f64.powf(-9.0 * f64::from(i) / 200.0)));
    let far = (0..=200).map(|i| ends.0 * (max / ends.0).powf(f64::from(i) / 200.0));
    let mut at: Vec<f64> = far.chain(close).filter(|x| *x >= ends.0 && *x < max).collect();
    at.sort_by(f64::total_cmp);
    let mut xavier: Vec<(f64, f64)> = at.iter().map(|x| (*x, all.summary.xavier.above(*x))).collect();
    xavier.retain(|p| p.1 > low);
    xavier.push((max, low));
    Panel::new(
        "tail",
        Axis::log("threshold").range(ends.0, ends.1),
        Axis::log("share of |w| above it").range(low, high),
    )
    .mark(line(vec![(max, low), (max, high)], LIMIT.with_width(1.2), "Xavier max"))
    .mark(line(pretrained, PRETRAINED, "pretrained"))
    .mark(line(xavier, XAVIER.with_width(1.2), "Xavier uniform"))
}

/// Matrices that count.
fn matrices(survey: &Survey) -> impl Iterator<Item = &Report> {
    survey.tensors.iter().filter(|r| r.counted && r.summary.count > 0)
}

fn growth_histogram(survey: &Survey) -> Panel {
    let growth: Vec<f64> =
        matrices(survey).map(|r| r.summary.growth_max()).filter(|g| g.is_finite() && *g > 0.0).collect();
    // Eight bins per decade.
    let bin = |g: f64| (8.0 * g.log10()).floor() as i32;
    let (first, last) = growth.iter().fold((0, 0), |(a, b), g| (a.min(bin(*g)), b.max(bin(*g))));
    let mut heights = vec![0.0; (last - first + 1) as usize];
    for g in &growth {
        heights[(bin(*g) - first) as usize] += 1.0;
    }
    let top = heights.iter().copied().fold(1.0, f64::max) * 1.08;
    let edges: Vec<f64> = (first..=last + 1).map(|i| 10f64.powf(f64::from(i) / 8.0)).collect();
    let ends = (edges.first().copied().unwrap_or(0.1), edges.last().copied().unwrap_or(10.0));
    Panel::new(
        "growth per matrix",
        Axis::log("max |w| / Xavier max [×]").range(ends.0 / 1.1, ends.1 * 1.1),
        Axis::linear("number of matrices").range(0.0, top),
    )
    .mark(Mark::Bars { edges, heights, color: PALETTE[1], label: None })
    .mark(line(vec![(1.0, 0.0), (1.0, top)], LIMIT.with_width(1.2), "Xavier max"))
}

/// Colour and marker of each role, in order of first appearance.
fn roles(survey: &Survey) -> Vec<(&Role, Color, Marker)> {
    const MARKERS: [Marker; 6] =
        [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Down, Marker::Cross];
    let mut all: Vec<&Role> = matrices(survey).map(|r| &r.placed.role).collect();
    all.sort();
    all.dedup();
    let style = |(i, role)| (role, PALETTE[i % PALETTE.len()], MARKERS[i % MARKERS.len()]);
    all.into_iter().enumerate().map(style).collect()
}

/// The panel with one point per matrix. `at` is given its number and how far its role is moved aside, from -1 to 1.
fn scatter(mut panel: Panel, survey: &Survey, at: impl Fn(usize, f64, &Report) -> (f64, f64)) -> Panel {
    let roles = roles(survey);
    let middle = 0.5 * (roles.len().max(2) - 1) as f64;
    for (k, (role, color, marker)) in roles.iter().copied().enumerate() {
        let of_role = matrices(survey).enumerate().filter(|(_, r)| r.placed.role == *role);
        let points = of_role.map(|(i, r)| at(i, (k as f64 - middle) / middle, r)).collect();
        panel = panel.mark(Mark::Points { points, marker, size: 3.6, color, label: Some(role.to_string()) });
    }
    panel
}

/// Figure 14. Top left: growth of the largest weight beyond Xavier's, by layer. Top right: largest weight against Xavier's,
/// and their correlation. Bottom left: standard deviations likewise. Bottom right: percentiles of |w|, pretrained and
/// Xavier's.
pub fn tail_figure(survey: &Survey, all: &Whole, wanted: &Wanted, note: &str) -> Figure {
    let layered = matrices(survey).any(|r| r.placed.layer.is_some());
    let last = matrices(survey).filter_map(|r| r.placed.layer).max().unwrap_or(0);
    let growth = |i: usize, aside: f64, r: &Report| {
        let x = if layered { r.placed.layer.unwrap_or(last + 1) as f64 + 0.3 * aside } else { i as f64 };
        (x, r.summary.growth_max())
    };
    let outside = layered && matrices(survey).any(|r| r.placed.layer.is_none());
    let x = match (layered, outside) {
        (false, _) => "matrix, in the order of the file".to_owned(),
        (true, false) => "layer".to_owned(),
        (true, true) => format!("layer ({}: in no layer)", last + 1),
    };
    let x = Axis::linear(x)
        .range(-0.6, if layered { last + usize::from(outside) } else { matrices(survey).count() } as f64 + 0.6);
    let whole: Vec<f64> = (0..=last + usize::from(outside)).map(|l| l as f64).collect();
    let x = if layered && whole.len() <= 16 { x.ticks(&whole) } else { x };
    let by_layer = Panel::new("growth of the max per layer", x, Axis::log("max |w| / Xavier max [×]"))
        .mark(Mark::Level { y: 1.0, style: LIMIT.with_width(1.2), label: None });
    let maxima: Vec<(f64, f64)> = matrices(survey).map(|r| (r.summary.xavier.max(), r.summary.max_abs())).collect();
    let r = correlation(&maxima).map_or("not defined".to_owned(), |r| significant(r, 2).replace('-', "−"));
    let stds: Vec<(f64, f64)> = matrices(survey).map(|r| (r.summary.xavier.std(), r.summary.central.std())).collect();
    Figure::new(TEXT_WIDTH, 2)
        .aspect(0.6)
        .legend(Legend::Below, None)
        .panel(scatter(by_layer, survey, growth))
        .panel(scatter(
            against(&format!("max per layer, correlation r = {r}"), "max |w|", &maxima),
            survey,
            |_, aside, r| (r.summary.xavier.max() * (1.0 + 0.03 * aside), r.summary.max_abs()),
        ))
        .panel(scatter(against("standard deviation per layer", "std", &stds), survey, |_, aside, r| {
            (r.summary.xavier.std() * (1.0 + 0.03 * aside), r.summary.central.std())
        }))
        .panel(percentiles(all, wanted))
        .note(format!("{note} Points are moved aside by role where they would cover each other."))
}

/// A panel of pretrained against initial values, with the line on which they are equal.
fn against(title: &str, what: &str, points: &[(f64, f64)]) -> Panel {
    let ends = |pick: &dyn Fn(&(f64, f64)) -> f64| {
        let (low, high) = points
            .iter()
            .map(pick)
            .filter(|v| *v > 0.0)
            .fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), v| (a.min(v), b.max(v)));
        if low > high { (0.1, 1.0) } else { (low, high) }
    };
    let (x, y) = (ends(&|p| p.0), ends(&|p| p.1));
    let (x, low, high) = ((x.0 / 1.15, x.1 * 1.15), (y.0.min(x.0)) / 1.15, y.1.max(x.1) * 1.15);
    Panel::new(
        title,
        Axis::log(format!("{what} of Xavier")).range(x.0, x.1),
        Axis::log(format!("pretrained {what}")).range(low, high),
    )
    .mark(line(vec![(x.0, x.0), (x.1, x.1)], LIMIT.with_width(1.2), "no growth"))
}

fn percentiles(all: &Whole, wanted: &Wanted) -> Panel {
    let pretrained: Vec<(f64, f64)> =
        wanted.fine_percents.iter().copied().zip(all.magnitudes.iter().copied()).collect();
    let xavier: Vec<(f64, f64)> =
        wanted.fine_percents.iter().map(|p| (*p, all.summary.xavier.percentile(*p))).collect();
    Panel::new("percentiles of all weights", Axis::linear("percentile [%]").range(0.0, 101.0), Axis::log("|w|"))
        .mark(line(pretrained, PRETRAINED, "pretrained"))
        .mark(line(xavier, XAVIER.with_width(1.2), "Xavier uniform"))
}

/// Pearson's correlation; `None` where one side does not vary.
fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (x, y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| f(p.0 - x, p.1 - y)).sum::<f64>();
    let r = sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    r.is_finite().then_some(r)
}

/// Bins of the distance histogram.
const BINS: usize = 60;
/// Points of the rank plot.
const RANKS: usize = 200;

/// Figure 13. Left: distribution of the distances |w - w0| (log). Right: the least steps that each takes at `rate` per step,
/// by rank, the farthest first, both logarithmic.
pub fn distance_figure(distances: &Distances, rate: f64, note: &str) -> Figure {
    let sorted = &distances.sorted;
    let count = sorted.len();
    let largest = sorted.last().map_or(1.0, |d| f64::from(*d).max(f64::MIN_POSITIVE));
    // As in Figure 1, without the last millionth where that is far away.
    let most = distances.quantile(1.0 - 1e-6);
    let far = largest > 2.0 * most && most > 0.0;
    let end = if far { most } else { largest };
    let left_out = match far {
        true => format!(
            " The histogram leaves out {} beyond {}.",
            weights((count - sorted.partition_point(|d| f64::from(*d) <= end)) as u64),
            significant(end, 2)
        ),
        false => String::new(),
    };
    let edges: Vec<f64> = (0..=BINS).map(|i| end * i as f64 / BINS as f64).collect();
    let below = |x: f64| sorted.partition_point(|d| f64::from(*d) < x) as f64 / count as f64;
    let mut heights: Vec<f64> = edges.windows(2).map(|e| below(e[1]) - below(e[0])).collect();
    if let Some(last) = heights.last_mut() {
        *last += sorted.partition_point(|d| f64::from(*d) <= end) as f64 / count as f64 - below(end);
    }
    let (low, high) = shares(heights.iter().copied().filter(|h| *h > 1e-12));
    let mean = distances.mean();
    let histogram = Panel::new(
        "optimisation distance",
        Axis::linear("|w − w₀|").range(0.0, end),
        Axis::log("share of weights per bin").range(low, high),
    )
    .mark(Mark::Bars { edges, heights, color: PALETTE[1], label: Some("share of weights".into()) })
    .mark(line(vec![(mean, low), (mean, high)], LIMIT.with_width(1.2), "average"));
    let rank = |i: usize| (count as f64).powf(i as f64 / (RANKS - 1) as f64).round().max(1.0) as usize;
    let mut ranks: Vec<usize> = (0..RANKS).map(rank).filter(|r| *r <= count).collect();
    ranks.dedup();
    let steps = |r: &usize| (*r as f64, f64::from(sorted[count - r]) / rate);
    let curve = line(
        ranks.iter().map(steps).filter(|p| p.1 > 0.0).collect(),
        PRETRAINED.with_marker(Marker::None),
        "steps by rank",
    );
    let ends = (0.1 * mean / rate, 2.0 * largest / rate);
    let y = Axis::log("least steps |w − w₀| / rate").range(ends.0, ends.1);
    let plot = Panel::new("least steps", Axis::log("rank, the farthest first"), y).mark(curve).mark(Mark::Level {
        y: mean / rate,
        style: LIMIT.with_width(1.2),
        label: Some("average".into()),
    });
    Figure::new(TEXT_WIDTH, 2)
        .aspect(0.6)
        .legend(Legend::Below, None)
        .panel(histogram)
        .panel(plot)
        .note(format!("{note}{left_out}"))
}
