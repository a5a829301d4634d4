//! Learned transforms: effective over raw weight under the scales of sampled positions, by module role (2607.09967,
//! Figures 8 and 9). The residual, which does not depend on the raw weight, is left out.
//!
//! ```
//! use sinexp::analysis::sel_shapes::{ShapeSettings, shapes};
//! use sinexp::nn::language_model::{LanguageModel, Start};
//! use sinexp::nn::{sel::Sel, transformer::Transformer};
//! use sinexp::random::Key;
//! let (transformer, sel) = (Transformer::new(32, 16, 1), Sel::new(8.0));
//! let parameters = LanguageModel::new(transformer.clone(), sel.clone()).initial(Start::default(), Key::new(0))?;
//! let settings = ShapeSettings { positions: 20, seed: 0, range: None, extremes: 2 };
//! let found = shapes(&sel, &transformer, &parameters, &settings)?;
//! // Nothing is learned yet: mismatch has slope 1 - 1 / beta left of 0 and 1 + 1 / beta right of it.
//! let [left, right] = found[0].summary().slope;
//! assert!((left - 0.875).abs() < 1e-5 && (right - 1.125).abs() < 1e-5);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::collections::BTreeMap;

use ndarray::{ArrayD, Axis};
use rayon::prelude::*;

use super::distribution::{quantile, sorted};
use super::sel_roles::{Place, places};
use crate::error::{Error, Result};
use crate::nn::language_model::Weights;
use crate::nn::parameterization::{LeafValues, Parameterization};
use crate::nn::sel::{Point, Sel};
use crate::nn::transformer::Transformer;
use crate::random::Key;

/// Quantiles over positions that are kept, ascending: the three bands and the median.
pub const QUANTILES: [f64; 7] = [0.001, 0.01, 0.05, 0.5, 0.95, 0.99, 0.999];

/// Raw weights in a curve; odd, so that one of them is 0.
const POINTS: usize = 161;

/// What is sampled, and where curves are evaluated.
#[derive(Clone, Copy, Debug)]
pub struct ShapeSettings {
    /// Positions per role, drawn with replacement over all blocks.
    pub positions: usize,
    /// Role i (in the order of [`super::sel_roles::ROLES`]) draws with `Key::new(seed).fold_in(i)`.
    pub seed: u64,
    /// Raw weights from minus this to this; None: as far as the largest raw weight of any role.
    pub range: Option<f64>,
    /// Curves of the positions with the largest raw weights, and as many of those with the largest effective ones.
    pub extremes: usize,
}

/// One position of a weight.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Block, row and column in the role's part of the matrix.
    pub at: [usize; 3],
    /// Its learned scales.
    pub point: Point,
    /// Its raw weight.
    pub raw: f64,
    /// Its effective weight, without the residual.
    pub effective: f64,
}

/// A position with one of the largest weights among those sampled, and its curve.
#[derive(Clone, Debug)]
pub struct Extreme {
    /// `raw` or `effective`: by which it is among the largest.
    pub by: &'static str,
    /// The position.
    pub position: Position,
    /// Effective weights on the role's grid.
    pub curve: Vec<f64>,
}

/// The learned transforms of a role.
#[derive(Clone, Debug)]
pub struct RoleShape {
    /// One of [`super::sel_roles::ROLES`].
    pub role: &'static str,
    /// Raw weights, ascending.
    pub grid: Vec<f64>,
    /// For each of [`QUANTILES`], effective weights on the grid.
    pub quantiles: Vec<Vec<f64>>,
    /// The transform at the start, on the grid.
    pub initial: Vec<f64>,
    /// Smallest and largest raw weight of all the role has.
    pub used: (f64, f64),
    /// Sampled positions.
    pub positions: Vec<Position>,
    /// Those with the largest weights.
    pub extremes: Vec<Extreme>,
    sel: Sel,
}

/// What the table says of a role.
#[derive(Clone, Copy, Debug)]
pub struct RoleSummary {
    /// Slope at the origin from the left and from the right: medians over positions.
    pub slope: [f64; 2],
    /// The same at the start of training.
    pub initial_slope: [f64; 2],
    /// Largest raw weight of the role by magnitude.
    pub largest: f64,
    /// Effective over raw weight at minus and plus that: medians over positions.
    pub amplification: [f64; 2],
    /// The same at the start of training.
    pub initial_amplification: [f64; 2],
    /// Means over positions of e_w, l_w, m relative to their start.
    pub relative: [f64; 3],
}

/// Samples every role and evaluates its curves. `parameters` are those of a checkpoint, stacked.
///
/// **Errors** when a parameter is missing or of another size.
pub fn shapes(
    sel: &Sel,
    transformer: &Transformer,
    parameters: &Weights,
    settings: &ShapeSettings,
) -> Result<Vec<RoleShape>> {
    let mut leaves: BTreeMap<String, Vec<LeafValues>> = BTreeMap::new();
    let places = places(transformer);
    for place in &places {
        if !leaves.contains_key(&place.weight) {
            leaves.insert(place.weight.clone(), blocks(sel, place, transformer.depth, parameters)?);
        }
    }
    let of = |place: &Place| &leaves[&place.weight][..];
    let used: Vec<(f64, f64)> = places.iter().map(|place| extent(place, of(place))).collect();
    let range = settings.range.unwrap_or_else(|| used.iter().fold(0.0, |a, u| a.max(-u.0).max(u.1)));
    if !(range.is_finite() && range > 0.0) {
        return Err(Error::numeric("raw weights", format!("reach to {range}: nothing to draw")));
    }
    let middle = (POINTS / 2) as f64;
    let grid: Vec<f64> = (0..POINTS).map(|i| range * (i as f64 - middle) / middle).collect();
    let mut all = Vec::new();
    for (i, (place, used)) in places.iter().zip(used).enumerate() {
        let positions = sample(sel, place, of(place), settings.positions, Key::new(settings.seed).fold_in(i as u32))?;
        let curve = |point: &Point| -> Vec<f64> { grid.iter().map(|w| sel.value(point, *w)).collect() };
        let at = |w: &f64| -> Vec<f64> {
            let values = sorted(positions.iter().map(|p| sel.value(&p.point, *w)));
            QUANTILES.iter().map(|q| quantile(&values, *q)).collect()
        };
        let by_point: Vec<Vec<f64>> = grid.par_iter().map(at).collect();
        let quantiles = (0..QUANTILES.len()).map(|q| by_point.iter().map(|values| values[q]).collect()).collect();
        let largest = |by, size: &dyn Fn(&Position) -> f64| -> Vec<Extreme> {
            let mut order: Vec<&Position> = positions.iter().collect();
            order.sort_by(|a, b| size(b).abs().total_cmp(&size(a).abs()));
            order.dedup_by_key(|p| p.at);
            let extreme = |p: &&Position| Extreme { by, position: **p, curve: curve(&p.point) };
            order.iter().take(settings.extremes).map(extreme).collect()
        };
        let mut extremes = largest("raw", &|p| p.raw);
        extremes.extend(largest("effective", &|p| p.effective));
        let initial = curve(&sel.initial_point());
        let (role, sel) = (place.role, sel.clone());
        all.push(RoleShape { role, grid: grid.clone(), quantiles, initial, used, positions, extremes, sel });
    }
    Ok(all)
}

/// Leaves of the role's weight, block by block.
fn blocks(sel: &Sel, place: &Place, depth: usize, parameters: &Weights) -> Result<Vec<LeafValues>> {
    let mut all = vec![LeafValues::new(); depth];
    for leaf in sel.leaves(&place.dims) {
        let name = format!("{}.{}", place.weight, leaf.name);
        let value = parameters.get(&name).ok_or_else(|| Error::tensor(&name, "is missing"))?;
        let stacked: ArrayD<f64> = value.to_ndarray::<f32>()?.mapv(f64::from);
        if stacked.shape().first() != Some(&depth) {
            return Err(Error::tensor(&name, format!("has shape {:?}, expected {depth} blocks", stacked.shape())));
        }
        for (block, values) in all.iter_mut().enumerate() {
            values.insert(leaf.name.clone(), stacked.index_axis(Axis(0), block).to_owned());
        }
    }
    all.iter().try_for_each(|values| sel.elements(&place.dims, values).map(|_| ()))?;
    Ok(all)
}

/// Smallest and largest raw weight of a role.
fn extent(place: &Place, blocks: &[LeafValues]) -> (f64, f64) {
    let rows = |values: &LeafValues| values["w"].slice_axis(Axis(0), place.rows.clone().into()).to_owned();
    let all = blocks.iter().flat_map(|values| rows(values).into_iter());
    all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), w| (low.min(w), high.max(w)))
}

/// Positions drawn with replacement.
fn sample(sel: &Sel, place: &Place, blocks: &[LeafValues], count: usize, key: Key) -> Result<Vec<Position>> {
    let total = i32::try_from(place.count(blocks.len()))
        .map_err(|_| Error::numeric(format!("weights of role {}", place.role), "more than 2^31"))?;
    let elements = blocks.iter().map(|values| sel.elements(&place.dims, values)).collect::<Result<Vec<_>>>()?;
    let columns = place.dims[1];
    let position = |index: i32| {
        let (row, column) = (index as usize / columns, index as usize % columns);
        let (block, row) = (row / place.rows.len(), row % place.rows.len());
        let element = &elements[block];
        let point = element.point(place.rows.start + row, column);
        let raw = element.raw(place.rows.start + row, column);
        Position { at: [block, row, column], point, raw, effective: sel.value(&point, raw) }
    };
    Ok(key.randint(&[count], 0, total).into_iter().map(position).collect())
}

impl RoleShape {
    /// The curve of quantile `q`, one of [`QUANTILES`].
    pub fn quantile(&self, q: f64) -> &[f64] {
        let at = QUANTILES.iter().position(|known| *known == q).unwrap_or(QUANTILES.len() / 2);
        &self.quantiles[at]
    }

    /// What the table says of it.
    pub fn summary(&self) -> RoleSummary {
        let largest = self.used.0.abs().max(self.used.1.abs());
        // A step from a step away, because with a shift the function jumps at 0.
        let h = 1e-6 * largest.max(1e-6);
        let slope = |point: &Point, side: f64| {
            (self.sel.value(point, 2.0 * side * h) - self.sel.value(point, side * h)) / (side * h)
        };
        let gain = |point: &Point, side: f64| self.sel.value(point, side * largest) / (side * largest);
        let median = |f: &dyn Fn(&Point) -> f64| quantile(&sorted(self.positions.iter().map(|p| f(&p.point))), 0.5);
        let mean = |f: &dyn Fn(&Point) -> f64| {
            self.positions.iter().map(|p| f(&p.point)).sum::<f64>() / self.positions.len() as f64
        };
        let start = self.sel.initial_point();
        RoleSummary {
            slope: [-1.0, 1.0].map(|side| median(&|p| slope(p, side))),
            initial_slope: [-1.0, 1.0].map(|side| slope(&start, side)),
            largest,
            amplification: [-1.0, 1.0].map(|side| median(&|p| gain(p, side))),
            initial_amplification: [-1.0, 1.0].map(|side| gain(&start, side)),
            relative: [mean(&|p| p.e / start.e), mean(&|p| p.l / start.l), mean(&|p| p.m / start.m)],
        }
    }
}
