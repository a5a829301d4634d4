//! A set of weights, of one tensor or of many, and its statistics.

use super::central::Central;
use super::count::Counted;
use super::order::{Known, Order, Questions, end};
use super::role::Fans;
use super::xavier::Xavier;

/// Fewest order statistics for Hill's index.
pub const LEAST_TAIL: u64 = 10;

/// What to compute.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Percentiles of w and |w|, in percent.
    pub percents: Vec<f64>,
    /// Magnitudes above which weights are counted.
    pub thresholds: Vec<f64>,
    /// Share of the largest magnitudes that Hill's index is estimated from: k = this share of the count, rounded, at least
    /// [`LEAST_TAIL`](super::LEAST_TAIL) (or none, where that is a tenth of the count or more).
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

/// A set of weights while it is filled.
#[derive(Default)]
pub(super) struct Pool {
    pub(super) known: Known,
    pub(super) tensors: usize,
    not_finite: u64,
    central: Central,
    xavier: Xavier,
    pub(super) above_xavier: u64,
    pub(super) ranks: Vec<f64>,
}

impl Pool {
    pub(super) fn add(&mut self, found: &Counted, fans: Option<Fans>) {
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

    pub(super) fn questions(&self, wanted: &Wanted) -> Questions {
        let count = self.central.count;
        let k = ((count as f64 * wanted.tail).round() as u64).max(LEAST_TAIL);
        let tail = if k.saturating_mul(10) <= count { k } else { 0 };
        Questions { percents: wanted.percents.clone(), thresholds: wanted.thresholds.clone(), edges: Vec::new(), tail }
    }

    /// How far from 0 the histogram goes, in two digits: beyond the largest magnitude, or, where that is more than twice as
    /// far, beyond those of all but a millionth of the weights, and of Xavier's.
    pub(super) fn span(&self) -> f64 {
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

    pub(super) fn summary(&self, questions: &Questions, (signed, absolute): &(Order, Order)) -> Summary {
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
