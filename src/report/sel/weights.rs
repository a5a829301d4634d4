//! Figure 7 of the SEL paper (2607.09967): weights of the baseline and of SEL at the start and at the end.
//!
//! ```
//! use sinexp::analysis::sel_weights::{Snapshot, distributions};
//! use sinexp::nn::language_model::{LanguageModel, Start};
//! use sinexp::nn::{parameterization::Standard, transformer::Transformer};
//! use sinexp::report::sel::weights::weight_table;
//! # use sinexp::{array::Array, random::Key};
//! let transformer = Transformer::new(32, 16, 1);
//! let start = LanguageModel::new(transformer.clone(), Standard).initial(Start::default(), Key::new(0))?;
//! let twice = |array: &Array| Array::from_ndarray(&(array.to_ndarray::<f32>().unwrap() * 2.0));
//! let end = start.iter().map(|(name, array)| (name.clone(), twice(array))).collect();
//! let snapshots = [("start", start), ("end", end)].map(|(time, weights)| Snapshot { run: "baseline", time, weights });
//! let table = weight_table("Weights", &distributions(&transformer, &snapshots)?)?;
//! assert_eq!(table.height(), 2 * 8); // seven roles and all of them, at both times
//! assert_eq!(table.frame().column("max / start").unwrap().f64().unwrap().get(8), Some(2.0));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use polars::prelude::Column;

use crate::analysis::sel_roles::ROLES;
use crate::analysis::sel_weights::{Distributions, RoleWeights};
use crate::error::Result;
use crate::report::style::{Color, Dash, LineStyle, Marker, PALETTE, TEXT_WIDTH};
use crate::report::table::Table;
use panelplot::{Axis, Figure, Legend, Panel};

const BASELINE: LineStyle = LineStyle::new(Color(0x55, 0x55, 0x55), Dash::Dashed, Marker::None);
const SEL: LineStyle = LineStyle::new(PALETTE[0], Dash::Solid, Marker::None);

/// Figure 7: densities of baseline and SEL's effective weights over all projections, at the start (left) and at the end
/// (right), on a log axis. `note` is added beneath.
pub fn figure7(all: &Distributions, note: &str) -> Figure {
    let figure = Figure::new(TEXT_WIDTH, 2).aspect(0.65).shared_axes().legend(Legend::Below, None).note(note);
    let titles = [("start", "at initialisation"), ("end", "after training")];
    titles.into_iter().fold(figure, |figure, (time, title)| figure.panel(panel(all, title, time, "all")))
}

/// The same by role, at the end only: a panel each.
pub fn figure7_roles(all: &Distributions, note: &str) -> Figure {
    let figure = Figure::new(TEXT_WIDTH, 4).aspect(0.9).shared_axes().legend(Legend::Below, None).note(note);
    ROLES.iter().fold(figure, |figure, role| figure.panel(panel(all, role, "end", role)))
}

fn panel(all: &Distributions, title: &str, time: &str, role: &str) -> Panel {
    // From the density of one weight in a bin to above the fullest bin.
    let count = all.rows.iter().map(|r| r.described.count).max().unwrap_or(1) as f64;
    let width = all.edges.windows(2).next().map_or(1.0, |e| e[1] - e[0]);
    let highest = all.rows.iter().flat_map(|r| &r.density).copied().fold(0.0, f64::max);
    let y = Axis::log("density").range(0.5 / (count * width), 2.0 * highest);
    let mut panel = Panel::new(title, Axis::linear("weight"), y);
    for (run, style, label) in [("baseline", BASELINE, "baseline"), ("SEL", SEL, "SEL, effective")] {
        if let Some(row) = all.find(run, time, role) {
            panel = panel.outline(label, style, &all.edges, &row.density);
        }
    }
    panel
}

/// One row per run, time and role: spread, largest, excess kurtosis, share beyond the start's largest, growth.
pub fn weight_table(title: &str, all: &Distributions) -> Result<Table> {
    let number = |name: &str, f: &dyn Fn(&RoleWeights) -> f64| {
        Column::new(name.into(), all.rows.iter().map(f).collect::<Vec<_>>())
    };
    let text = |name: &str, f: &dyn Fn(&RoleWeights) -> &'static str| {
        Column::new(name.into(), all.rows.iter().map(f).collect::<Vec<_>>())
    };
    let growth: Vec<Option<(f64, f64)>> = all.rows.iter().map(|r| all.growth(r)).collect();
    let table = Table::new(
        title,
        vec![
            text("run", &|r| r.run),
            text("time", &|r| r.time),
            text("role", &|r| r.role),
            Column::new("weights".into(), all.rows.iter().map(|r| r.described.count as u64).collect::<Vec<_>>()),
            number("mean", &|r| r.described.mean),
            number("std", &|r| r.described.std),
            number("max", &|r| r.described.max),
            number("excess kurtosis", &|r| r.described.excess_kurtosis),
            number("beyond start", &|r| r.beyond),
            Column::new("max / start".into(), growth.iter().map(|g| g.map(|g| g.0)).collect::<Vec<_>>()),
            Column::new("std / start".into(), growth.iter().map(|g| g.map(|g| g.1)).collect::<Vec<_>>()),
        ],
    )?;
    Ok(table.digits("mean", 2).digits("beyond start", 3))
}

/// The histograms: `run`, `time`, `role`, `low` and `high` border of the bin, `density`.
pub fn histogram_table(all: &Distributions) -> Result<Table> {
    let bins = all.edges.len() - 1;
    let text = |name: &str, f: &dyn Fn(&RoleWeights) -> &'static str| {
        Column::new(name.into(), all.rows.iter().flat_map(|r| vec![f(r); bins]).collect::<Vec<_>>())
    };
    let border = |name: &str, from: usize| {
        let column = all.rows.iter().flat_map(|_| all.edges[from..from + bins].iter().copied());
        Column::new(name.into(), column.collect::<Vec<_>>())
    };
    let density = all.rows.iter().flat_map(|r| r.density.iter().copied()).collect::<Vec<f64>>();
    Table::new(
        "Histograms of weights",
        vec![
            text("run", &|r| r.run),
            text("time", &|r| r.time),
            text("role", &|r| r.role),
            border("low", 0),
            border("high", 1),
            Column::new("density".into(), density),
        ],
    )
}
