//! The statistics of a checkpoint: of each tensor, of each role, and of all weight matrices together.
//!
//! 8- and 16-bit tensors are read once: the counts of their bit patterns say everything. Large f32 and f64 tensors are
//! read twice: first counted in bins, then the values are counted in those few bins where a percentile, a threshold or
//! the tail falls. So every number is exact, of pools too, in a memory that does not grow with the tensors.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::central::Central;
use super::count::{Counted, collect, count};
use super::order::{Known, Needs, Order, Questions, end};
use super::rank::stable_rank;
use super::role::{Fans, Placed, Role, RoleRules};
use super::xavier::Xavier;
use crate::error::Result;
use crate::interop::safetensors::{Dtype, ShardTensor, Shards, is_real};

/// What to compute.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Percentiles of w and |w|, in percent.
    pub percents: Vec<f64>,
    /// Magnitudes above which weights are counted.
    pub thresholds: Vec<f64>,
    /// Share of the largest magnitudes that Hill's index is estimated from: k = this share of the count, rounded, at least
    /// [`LEAST_TAIL`] (or none, where that is a tenth of the count or more).
    pub tail: f64,
    /// Matrices of at most so many elements get a stable rank.
    pub stable_rank: usize,
    /// More thresholds for all matrices together.
    pub curve: Vec<f64>,
    /// Percentiles for all matrices together.
    pub fine_percents: Vec<f64>,
    /// Histogram bins over all matrices together, of equal width, symmetric about 0. The last millionth of the weights is left
    /// out where it is more than twice as large as the others.
    pub bins: usize,
}

/// Fewest order statistics for Hill's index.
pub const LEAST_TAIL: u64 = 10;

/// Statistics of a set of weights, over the finite ones.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Tensors.
    pub tensors: usize,
    /// Finite weights.
    pub count: u64,
    /// Weights that are 0.
    pub zeros: u64,
    /// Weights that are infinite or NaN.
    pub not_finite: u64,
    /// Moments.
    pub central: Central,
    /// Smallest and largest.
    pub range: (f64, f64),
    /// Percentiles of w, as `numpy.percentile`.
    pub percentiles: Vec<f64>,
    /// Percentiles of |w|.
    pub magnitudes: Vec<f64>,
    /// Weights with a magnitude above each threshold.
    pub above: Vec<u64>,
    /// Order statistics in Hill's index, and the index.
    pub hill: (u64, Option<f64>),
    /// What the weights would be if drawn anew; empty for no matrices.
    pub xavier: Xavier,
    /// Weights above the largest that their own matrix can be drawn with.
    pub above_xavier: u64,
    /// |W|_F^2 / |W|_2^2; the median over a role's matrices.
    pub stable_rank: Option<f64>,
}

impl Summary {
    /// Largest magnitude; 0 for no weights.
    pub fn max_abs(&self) -> f64 {
        self.range.1.max(-self.range.0).max(0.0)
    }

    /// Largest magnitude over the largest that Xavier's law can draw; NaN without a matrix.
    pub fn growth_max(&self) -> f64 {
        self.max_abs() / self.xavier.max()
    }

    /// Standard deviation over that of Xavier's law.
    pub fn growth_std(&self) -> f64 {
        self.central.std() / self.xavier.std()
    }
}

/// A tensor's statistics.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: Dtype,
    /// Shape.
    pub dims: Vec<usize>,
    /// Role, layer, fans.
    pub placed: Placed,
    /// Whether it counts among all weight matrices.
    pub counted: bool,
    /// What was found.
    pub summary: Summary,
}

/// All matrices together, for the figures.
#[derive(Clone, Debug)]
pub struct Whole {
    /// Statistics.
    pub summary: Summary,
    /// Borders of the histogram.
    pub edges: Vec<f64>,
    /// Weights in each of its bins, the last one closed: as `numpy.histogram`.
    pub heights: Vec<u64>,
    /// Weights above each of [`Wanted::curve`].
    pub curve: Vec<u64>,
    /// Percentiles of |w| at [`Wanted::fine_percents`].
    pub magnitudes: Vec<f64>,
}

/// What a checkpoint holds.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Tensors of real numbers, in the order of the files.
    pub tensors: Vec<Report>,
    /// Roles in their order, each with the tensors of it.
    pub roles: Vec<(Role, Summary)>,
    /// Weight matrices of linear layers; `None` if there are none.
    pub all: Option<Whole>,
    /// Tensors that are no real numbers, or empty: name and why.
    pub skipped: Vec<(String, String)>,
}

/// A set of weights while it is filled.
#[derive(Default)]
struct Pool {
    known: Known,
    tensors: usize,
    not_finite: u64,
    central: Central,
    xavier: Xavier,
    above_xavier: u64,
    ranks: Vec<f64>,
}

impl Pool {
    fn add(&mut self, found: &Counted, fans: Option<Fans>) {
        self.known.add_bins(&found.bins);
        if let Some(values) = &found.values {
            self.known.add_values(values);
        }
        self.tensors += 1;
        self.not_finite += found.not_finite;
        self.central = self.central.merged(&found.central);
        if let Some(fans) = fans {
            self.xavier.add(found.central.count, fans.xavier_max());
        }
    }

    fn questions(&self, wanted: &Wanted) -> Questions {
        let count = self.central.count;
        let k = ((count as f64 * wanted.tail).round() as u64).max(LEAST_TAIL);
        let tail = if k.saturating_mul(10) <= count { k } else { 0 };
        Questions { percents: wanted.percents.clone(), thresholds: wanted.thresholds.clone(), edges: Vec::new(), tail }
    }

    /// How far from 0 the histogram goes, in two digits: beyond the largest magnitude, or, where that is more than twice as
    /// far, beyond those of all but a millionth of the weights, and of Xavier's.
    fn span(&self) -> f64 {
        let absolute = self.known.orders().1;
        let up = |rank: u64| {
            let magnitude = end(absolute.bin_at(rank).0);
            let digit = 10f64.powf(magnitude.log10().floor() - 1.0);
            (magnitude / digit).ceil() * digit
        };
        let last = absolute.total().saturating_sub(1);
        let near = up((last as f64 * (1.0 - 1e-6)) as u64).max(1.2 * self.xavier.max());
        if up(last) > 2.0 * near { near } else { up(last) }
    }

    fn summary(&self, questions: &Questions, (signed, absolute): &(Order, Order)) -> Summary {
        let mut ranks = self.ranks.clone();
        ranks.sort_by(f64::total_cmp);
        let above = |x: &f64| absolute.total() - absolute.count(*x, true);
        Summary {
            tensors: self.tensors,
            count: self.central.count,
            zeros: signed.count(0.0, true) - signed.count(0.0, false),
            not_finite: self.not_finite,
            central: self.central,
            range: (signed.at(0), signed.at(signed.total().saturating_sub(1))),
            percentiles: questions.percents.iter().map(|p| signed.percentile(*p)).collect(),
            magnitudes: questions.percents.iter().map(|p| absolute.percentile(*p)).collect(),
            above: questions.thresholds.iter().map(above).collect(),
            hill: (questions.tail, absolute.hill(questions.tail)),
            xavier: self.xavier.clone(),
            above_xavier: self.above_xavier,
            stable_rank: (!ranks.is_empty()).then(|| 0.5 * (ranks[(ranks.len() - 1) / 2] + ranks[ranks.len() / 2])),
        }
    }
}

/// A tensor between the two readings.
struct Half<'a> {
    tensor: &'a ShardTensor,
    placed: Placed,
    counted: bool,
    pool: Pool,
    questions: Questions,
    needs: Option<Needs>,
    summary: Option<Summary>,
}

impl Half<'_> {
    /// The tensor's own answers, and how many of its weights are above Xavier's largest.
    fn finish(&mut self, wanted: &Wanted) -> u64 {
        let orders = self.pool.known.orders();
        if let Some(fans) = self.placed.fans {
            self.pool.above_xavier = orders.1.total() - orders.1.count(fans.xavier_max(), true);
        }
        let mut summary = self.pool.summary(&self.questions, &orders);
        summary.above.truncate(wanted.thresholds.len());
        self.summary = Some(summary);
        self.pool.known = Known::default();
        self.pool.above_xavier
    }
}

/// Goes through the tensors for which `take` holds. `counts` says which roles are weight matrices of linear layers; `step`
/// is called with the name after each tensor and reading.
///
/// **Errors** when the singular values of a matrix do not converge.
pub fn survey(
    shards: &Shards,
    rules: &RoleRules,
    wanted: &Wanted,
    take: impl Fn(&str, &Role) -> bool,
    counts: impl Fn(&Role) -> bool,
    mut step: impl FnMut(&str),
) -> Result<Survey> {
    let mut skipped = Vec::new();
    let mut halves: Vec<Half> = Vec::new();
    let mut roles: BTreeMap<Role, Pool> = BTreeMap::new();
    let mut all = Pool::default();
    for tensor in shards.tensors() {
        let placed = rules.place(&tensor.name, &tensor.dims);
        if !take(&tensor.name, &placed.role) {
            continue;
        }
        if !is_real(tensor.dtype) || tensor.is_empty() {
            let why = if tensor.is_empty() { "empty".into() } else { format!("{:?}, no real numbers", tensor.dtype) };
            skipped.push((tensor.name.clone(), why));
            continue;
        }
        let found = count(shards, tensor)?;
        let mut pool = Pool::default();
        pool.add(&found, placed.fans);
        if let Some(fans) = placed.fans.filter(|_| tensor.len() <= wanted.stable_rank && found.not_finite == 0) {
            pool.ranks.extend(stable_rank(shards, tensor, &fans, found.largest_magnitude())?);
        }
        let counted = placed.fans.is_some() && counts(&placed.role);
        let role = roles.entry(placed.role.clone()).or_default();
        for pool_of_many in [Some(role), counted.then_some(&mut all)].into_iter().flatten() {
            pool_of_many.add(&found, placed.fans);
            pool_of_many.ranks.extend(&pool.ranks);
        }
        let mut questions = pool.questions(wanted);
        // Its own bound is one more threshold.
        questions.thresholds.extend(placed.fans.map(|f| f.xavier_max()));
        let needs = found.values.is_none().then(|| pool.known.needs(&questions));
        let mut half = Half { tensor, placed, counted, pool, questions, needs, summary: None };
        if half.needs.is_none() {
            finish(&mut half, wanted, &mut roles, &mut all);
        }
        step(&tensor.name);
        halves.push(half);
    }

    let role_needs: BTreeMap<Role, (Questions, Needs)> = roles
        .iter()
        .map(|(role, pool)| {
            let questions = pool.questions(wanted);
            let needs = pool.known.needs(&questions);
            (role.clone(), (questions, needs))
        })
        .collect();
    let largest = all.span();
    let edges: Vec<f64> = (0..=wanted.bins).map(|i| largest * (2.0 * i as f64 / wanted.bins as f64 - 1.0)).collect();
    let mut questions = all.questions(wanted);
    let mut fine = questions.clone();
    fine.edges = edges.clone();
    fine.thresholds.extend(&wanted.curve);
    fine.percents.extend(&wanted.fine_percents);
    let all_needs = all.known.needs(&fine);
    questions.tail = fine.tail;

    for half in &mut halves {
        let Some(own) = half.needs.take() else { continue };
        let role = &role_needs[&half.placed.role];
        let mut needs = vec![&own, &role.1];
        needs.extend(half.counted.then_some(&all_needs));
        let values = collect(shards, half.tensor, half.pool.known.bins(), &needs);
        let add = |known: &mut Known, needs: &Needs| known.add_values(&needs.among(&values));
        let role_pool = roles.get_mut(&half.placed.role);
        let to_all = half.counted.then_some(&mut all.known);
        rayon::join(
            || add(&mut half.pool.known, &own),
            || {
                rayon::join(
                    || role_pool.into_iter().for_each(|pool| add(&mut pool.known, &role.1)),
                    || to_all.into_iter().for_each(|known| add(known, &all_needs)),
                )
            },
        );
        finish(half, wanted, &mut roles, &mut all);
        step(&half.tensor.name);
    }

    let roles: Vec<(Role, Summary)> = roles
        .into_iter()
        .map(|(role, pool)| {
            let summary = pool.summary(&role_needs[&role].0, &pool.known.orders());
            (role, summary)
        })
        .collect();
    let all = (all.tensors > 0).then(|| {
        let orders = all.known.orders();
        let below: Vec<u64> = edges.iter().map(|x| orders.0.count(*x, false)).collect();
        let mut heights: Vec<u64> = below.windows(2).map(|w| w[1] - w[0]).collect();
        if let (Some(last), Some(edge)) = (heights.last_mut(), edges.last()) {
            *last += orders.0.count(*edge, true) - orders.0.count(*edge, false);
        }
        Whole {
            summary: all.summary(&questions, &orders),
            heights,
            curve: wanted.curve.iter().map(|x| orders.1.total() - orders.1.count(*x, true)).collect(),
            magnitudes: wanted.fine_percents.iter().map(|p| orders.1.percentile(*p)).collect(),
            edges,
        }
    });
    let report = |half: Half| {
        Some(Report {
            name: half.tensor.name.clone(),
            dtype: half.tensor.dtype,
            dims: half.tensor.dims.clone(),
            placed: half.placed,
            counted: half.counted,
            summary: half.summary?,
        })
    };
    Ok(Survey { tensors: halves.into_iter().filter_map(report).collect(), roles, all, skipped })
}

/// Completes a tensor, and what its pools know of it.
fn finish(half: &mut Half, wanted: &Wanted, roles: &mut BTreeMap<Role, Pool>, all: &mut Pool) {
    let above = half.finish(wanted);
    if let Some(pool) = roles.get_mut(&half.placed.role) {
        pool.above_xavier += above;
    }
    if half.counted {
        all.above_xavier += above;
    }
}
