//! The statistics of a checkpoint: of each tensor, of each role, and of all weight matrices together.
//!
//! 8- and 16-bit tensors are read once: the counts of their bit patterns say everything. Large f32 and f64 tensors are
//! read twice: first counted in bins, then the values are counted in those few bins where a percentile, a threshold or
//! the tail falls. So every number is exact, of pools too, in a memory that does not grow with the tensors.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;

use super::count::{collect, count};
use super::order::{Known, Needs, Questions};
use super::pool::{Pool, Summary, Wanted};
use super::rank::stable_rank;
use super::role::{Placed, Role, RoleRules};
use crate::error::Result;
use crate::interop::safetensors::{Dtype, ShardTensor, Shards, is_real};

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

/// A tensor between the two readings.
struct Half<'a> {
    tensor: &'a ShardTensor,
    placed: Placed,
    counted: bool,
    pool: Pool,
    questions: Questions,
    /// What the second reading is for; `None` where the first said everything.
    needs: Option<Needs>,
}

impl Half<'_> {
    /// The tensor's own answers, with the `values` that its questions need.
    fn summary(&self, values: &[(f64, u64)], wanted: &Wanted) -> Summary {
        let mut known = self.pool.known.clone();
        known.add_values(values);
        let orders = known.orders();
        let mut summary = self.pool.summary(&self.questions, &orders);
        if let Some(fans) = self.placed.fans {
            summary.above_xavier = orders.1.total() - orders.1.count(fans.xavier_max(), true);
        }
        summary.above.truncate(wanted.thresholds.len());
        summary
    }
}

/// Calls `take` with what `make` makes of each item, in order, and makes the next one meanwhile.
fn ahead<T, R: Send>(
    items: &[T],
    make: impl Fn(&T) -> R + Send,
    mut take: impl FnMut(&T, R) -> Result<()>,
) -> Result<()>
where
    T: Sync,
{
    std::thread::scope(|scope| {
        let (send, made) = sync_channel(1);
        // The other end is closed where `take` failed.
        scope.spawn(move || items.iter().map(make).try_for_each(|result| send.send(result)));
        items.iter().zip(made).try_for_each(|(item, result)| take(item, result))
    })
}

/// Goes through the tensors for which `take` holds. `counts` says which roles are weight matrices of linear layers; `step`
/// is called with the name after each tensor and reading.
///
/// **Errors** when a file cannot be read, or the singular values of a matrix do not converge.
pub fn survey(
    shards: &Shards,
    rules: &RoleRules,
    wanted: &Wanted,
    take: impl Fn(&str, &Role) -> bool,
    counts: impl Fn(&Role) -> bool,
    mut step: impl FnMut(&str),
) -> Result<Survey> {
    let mut skipped = Vec::new();
    let mut tensors: Vec<(&ShardTensor, Placed)> = Vec::new();
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
        tensors.push((tensor, placed));
    }

    let mut halves: Vec<Half> = Vec::new();
    let mut summaries: Vec<Option<Summary>> = Vec::new();
    let mut roles: BTreeMap<Role, Pool> = BTreeMap::new();
    let mut all = Pool::default();
    ahead(
        &tensors,
        |(tensor, _)| count(shards, tensor),
        |(tensor, placed), found| {
            let (found, placed) = (found?, placed.clone());
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
            let mut half = Half { tensor, placed, counted, pool, questions, needs };
            summaries.push(half.needs.is_none().then(|| half.summary(&[], wanted)));
            if half.needs.is_none() {
                half.pool.known = Known::default();
            }
            step(&tensor.name);
            halves.push(half);
            Ok(())
        },
    )?;

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

    let again: Vec<(usize, &Half, &Needs)> =
        halves.iter().enumerate().filter_map(|(i, half)| Some((i, half, half.needs.as_ref()?))).collect();
    ahead(
        &again,
        |(_, half, own)| {
            let mut needs = vec![*own, &role_needs[&half.placed.role].1];
            needs.extend(half.counted.then_some(&all_needs));
            collect(shards, half.tensor, half.pool.known.bins(), &needs)
        },
        |(i, half, own), values| {
            let values = values?;
            summaries[*i] = Some(half.summary(&own.among(&values), wanted));
            if let Some(pool) = roles.get_mut(&half.placed.role) {
                pool.known.add_values(&role_needs[&half.placed.role].1.among(&values));
            }
            if half.counted {
                all.known.add_values(&all_needs.among(&values));
            }
            step(&half.tensor.name);
            Ok(())
        },
    )?;

    for (half, summary) in halves.iter().zip(summaries.iter().flatten()) {
        if let Some(pool) = roles.get_mut(&half.placed.role) {
            pool.above_xavier += summary.above_xavier;
        }
        if half.counted {
            all.above_xavier += summary.above_xavier;
        }
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
    let report = |(half, summary): (Half, Option<Summary>)| {
        Some(Report {
            name: half.tensor.name.clone(),
            dtype: half.tensor.dtype,
            dims: half.tensor.dims.clone(),
            placed: half.placed,
            counted: half.counted,
            summary: summary?,
        })
    };
    let tensors = halves.into_iter().zip(summaries).filter_map(report).collect();
    Ok(Survey { tensors, roles, all, skipped })
}
