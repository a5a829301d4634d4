//! Weights of a baseline and effective weights of a SEL run, at the start and at the end of training (2607.09967, Figure 7).
//!
//! ```
//! use sinexp::analysis::sel_weights::{Snapshot, distributions};
//! use sinexp::nn::language_model::{LanguageModel, Start};
//! use sinexp::nn::{parameterization::Standard, transformer::Transformer};
//! use sinexp::random::Key;
//! let transformer = Transformer::new(32, 16, 2);
//! let weights = LanguageModel::new(transformer.clone(), Standard).initial(Start::default(), Key::new(0))?;
//! let all = distributions(&transformer, &[Snapshot { run: "baseline", time: "start", weights }])?;
//! // Xavier's uniform law on +-sqrt(6 / (16 + 16)).
//! let q = all.find("baseline", "start", "q").unwrap();
//! assert!(q.described.count == 2 * 16 * 16 && q.described.max <= (6.0f64 / 32.0).sqrt());
//! assert!((q.described.excess_kurtosis + 1.2).abs() < 0.2);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use super::distribution::{Described, density, edges, histogram};
use super::sel_roles::{Place, places};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::nn::language_model::Weights;
use crate::nn::transformer::Transformer;

/// All projections of a run at one time: effective weights by name, stacked.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// `baseline` or `SEL`.
    pub run: &'static str,
    /// `start` or `end`.
    pub time: &'static str,
    /// The weights.
    pub weights: Weights,
}

/// A distribution over the weights of a role.
#[derive(Clone, Debug)]
pub struct RoleWeights {
    /// A role of [`super::sel_roles::ROLES`], or `all`.
    pub role: &'static str,
    /// Of the snapshot.
    pub run: &'static str,
    /// Of the snapshot.
    pub time: &'static str,
    /// Count, spread, largest, kurtosis.
    pub described: Described,
    /// Share of weights beyond the largest that the role's baseline has at the start (by more than rounding, 1e-6).
    pub beyond: f64,
    /// Density in the bins of [`Distributions::edges`].
    pub density: Vec<f64>,
}

/// Distributions of all snapshots in common bins.
#[derive(Clone, Debug)]
pub struct Distributions {
    /// Borders of the bins, symmetric about 0.
    pub edges: Vec<f64>,
    /// By snapshot in their order, roles and then `all` within each.
    pub rows: Vec<RoleWeights>,
}

/// Bins of histograms; odd, so that one has 0 in its middle.
pub const BINS: usize = 121;

/// The role's weights in all blocks.
fn values(place: &Place, depth: usize, weights: &Weights) -> Result<Vec<f32>> {
    let array: &Array = weights.get(&place.weight).ok_or_else(|| Error::tensor(&place.weight, "is missing"))?;
    let expected = [depth, place.dims[0], place.dims[1]];
    if array.dims() != expected {
        let reason = format!("has shape {:?}, expected {expected:?}", array.dims());
        return Err(Error::tensor(&place.weight, reason));
    }
    let columns = place.dims[1];
    let all = array.to_vec::<f32>()?;
    let block = |values: &[f32]| values[place.rows.start * columns..place.rows.end * columns].to_vec();
    Ok(all.chunks(place.dims[0] * columns).flat_map(block).collect())
}

/// Compares snapshots of models of one size; among them the baseline at the start.
///
/// **Errors** when a weight is missing or of another size, not finite, or there is no baseline at the start.
pub fn distributions(transformer: &Transformer, snapshots: &[Snapshot]) -> Result<Distributions> {
    let places = places(transformer);
    let of = |snapshot: &Snapshot, place: &Place| -> Result<Vec<f64>> {
        let values = values(place, transformer.depth, &snapshot.weights)?;
        match values.iter().find(|v| !v.is_finite()) {
            Some(v) => {
                Err(Error::tensor(&place.weight, format!("holds {v} at the {} of {}", snapshot.time, snapshot.run)))
            }
            None => Ok(values.into_iter().map(f64::from).collect()),
        }
    };
    let largest = |values: &[f64]| values.iter().fold(0.0f64, |a, v| a.max(v.abs()));
    let first = snapshots.iter().find(|s| s.run == "baseline" && s.time == "start");
    let first = first.ok_or_else(|| Error::numeric("weights", "no baseline at the start to compare with"))?;
    let mut bounds = Vec::new();
    let mut reach = 0.0f64;
    for place in &places {
        bounds.push(largest(&of(first, place)?) * (1.0 + 1e-6));
        for snapshot in snapshots {
            reach = reach.max(largest(&of(snapshot, place)?));
        }
    }
    let edges = edges(-reach, reach, BINS);
    let mut rows = Vec::new();
    for snapshot in snapshots {
        let mut all = Vec::new();
        let mut beyond_all = 0usize;
        let (run, time) = (snapshot.run, snapshot.time);
        let row = |role, values: &[f64], beyond: usize| RoleWeights {
            role,
            run,
            time,
            described: Described::of(values),
            beyond: beyond as f64 / values.len() as f64,
            density: density(&histogram(values.iter().copied(), &edges), &edges, values.len()),
        };
        for (place, bound) in places.iter().zip(&bounds) {
            let values = of(snapshot, place)?;
            let beyond = values.iter().filter(|v| v.abs() > *bound).count();
            rows.push(row(place.role, &values, beyond));
            beyond_all += beyond;
            all.extend(values);
        }
        rows.push(row("all", &all, beyond_all));
    }
    Ok(Distributions { edges, rows })
}

impl Distributions {
    /// The row of these, if there is one.
    pub fn find(&self, run: &str, time: &str, role: &str) -> Option<&RoleWeights> {
        self.rows.iter().find(|r| r.run == run && r.time == time && r.role == role)
    }

    /// Largest weight and standard deviation of a row over those at the start of the same run.
    pub fn growth(&self, row: &RoleWeights) -> Option<(f64, f64)> {
        let start = self.find(row.run, "start", row.role)?.described;
        (row.time != "start").then(|| (row.described.max / start.max, row.described.std / start.std))
    }
}
