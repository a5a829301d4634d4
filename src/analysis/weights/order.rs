//! Order statistics of more numbers than fit memory: counts in bins of all, and the values themselves in the few bins
//! where they are asked for.
//!
//! A bin holds the numbers whose sign, exponent and first 11 bits of mantissa agree. Its key rises with the numbers in
//! it, is the same for every element type, and changes sign with them.

use std::collections::BTreeSet;

/// Bits of the mantissa that a key holds.
pub(super) const KEPT: u32 = 11;

/// The bin of a number: 0 for those nearest to 0, the opposite for the opposite number. Infinite ones have one too.
pub(super) fn key(x: f64) -> i32 {
    // In f32's terms, whatever the type: below its smallest normal number bins are equally wide.
    let top = (x.abs().to_bits() >> (52 - KEPT)) as i32 - (896 << KEPT);
    let magnitude = if top < 1 << KEPT { (x.abs() * 137f64.exp2()) as i32 } else { top };
    if x < 0.0 { -magnitude } else { magnitude }
}

/// The magnitude below which all numbers of a bin are.
pub(super) fn end(key: i32) -> f64 {
    let next = key.unsigned_abs() as u64 + 1;
    if next < 1 << KEPT {
        next as f64 * (-137f64).exp2()
    } else {
        f64::from_bits((next + (896 << KEPT)) << (52 - KEPT))
    }
}

/// Sorted pairs with equal first entries added up.
pub(super) fn merged<T: PartialOrd + Copy>(a: &[(T, u64)], b: &[(T, u64)]) -> Vec<(T, u64)> {
    let mut out: Vec<(T, u64)> = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if y.0 < x.0 => b.next(),
            (Some(_), _) => a.next(),
            (None, _) => b.next(),
        };
        let Some(&(value, count)) = next else { return out };
        match out.last_mut() {
            Some(last) if last.0 == value => last.1 += count,
            _ => out.push((value, count)),
        }
    }
}

/// Values as sorted pairs of value and count. -0 counts as 0.
pub(super) fn counted(mut values: Vec<f64>) -> Vec<(f64, u64)> {
    values.iter_mut().for_each(|v| *v += 0.0);
    values.sort_unstable_by(f64::total_cmp);
    let mut out: Vec<(f64, u64)> = Vec::new();
    for value in values {
        match out.last_mut() {
            Some(last) if last.0 == value => last.1 += 1,
            _ => out.push((value, 1)),
        }
    }
    out
}

/// Numbers in order, by value or by magnitude.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Key and how many numbers are in bins before it.
    bins: Vec<(i32, u64)>,
    total: u64,
    /// Value and count, sorted; all those of a bin or none (then the bin is never asked about).
    values: Vec<(f64, u64)>,
}

impl Order {
    pub(super) fn new(bins: &[(i32, u64)], values: Vec<(f64, u64)>) -> Order {
        let mut total = 0;
        let mut before = |(key, count): &(i32, u64)| {
            let entry = (*key, total);
            total += count;
            entry
        };
        let bins = bins.iter().map(&mut before).collect();
        Order { bins, total, values }
    }

    /// How many numbers.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The bin of the `rank`-th number, from 0.
    pub(super) fn bin_at(&self, rank: u64) -> (i32, u64) {
        let place = self.bins.partition_point(|b| b.1 <= rank).saturating_sub(1);
        self.bins.get(place).copied().unwrap_or_default()
    }

    fn inside(&self, key_of_bin: i32) -> &[(f64, u64)] {
        let start = self.values.partition_point(|v| key(v.0) < key_of_bin);
        let end = self.values.partition_point(|v| key(v.0) <= key_of_bin);
        &self.values[start..end]
    }

    /// The `rank`-th number, from 0; NaN if there are none.
    pub(super) fn at(&self, rank: u64) -> f64 {
        let (bin, mut before) = self.bin_at(rank.min(self.total.saturating_sub(1)));
        for (value, count) in self.inside(bin) {
            before += count;
            if before > rank {
                return *value;
            }
        }
        f64::NAN
    }

    /// How many numbers are below `x`, or not above it.
    pub(super) fn count(&self, x: f64, or_equal: bool) -> u64 {
        let bin = key(x);
        let place = self.bins.partition_point(|b| b.0 < bin);
        match self.bins.get(place) {
            None => self.total,
            Some((_, before)) => {
                let below = |v: &&(f64, u64)| if or_equal { v.0 <= x } else { v.0 < x };
                before + self.inside(bin).iter().filter(below).map(|v| v.1).sum::<u64>()
            }
        }
    }

    /// The `percent`-th percentile, as `numpy.percentile` with its default method `linear`.
    pub fn percentile(&self, percent: f64) -> f64 {
        let (low, high, part) = ranks(self.total, percent);
        let (a, b) = (self.at(low), self.at(high));
        if part >= 0.5 { b - (b - a) * (1.0 - part) } else { a + (b - a) * part }
    }

    /// The pairs from the `rank`-th number on.
    fn tail(&self, rank: u64) -> impl Iterator<Item = (f64, u64)> {
        let (bin, mut before) = self.bin_at(rank);
        let start = self.values.partition_point(|v| key(v.0) < bin);
        self.values[start..].iter().filter_map(move |(value, count)| {
            let (first, end) = (before, before + count);
            before = end;
            (end > rank).then(|| (*value, end - rank.max(first)))
        })
    }

    /// Hill's estimate of the tail index from the `k` largest numbers: `k / sum of ln(X_i / X_{k+1})` over them. `None`
    /// where X_{k+1} is 0 or all are equal.
    pub fn hill(&self, k: u64) -> Option<f64> {
        let rank = self.total.checked_sub(k).filter(|rank| *rank > 0)?;
        let limit = self.at(rank - 1);
        let sum: f64 = self.tail(rank).map(|(value, count)| count as f64 * (value / limit).ln()).sum();
        (k > 0 && limit > 0.0 && sum > 0.0).then_some(k as f64 / sum)
    }
}

/// The two ranks that a percentile lies between, and how far it is from the first to the second.
fn ranks(total: u64, percent: f64) -> (u64, u64, f64) {
    let last = total.saturating_sub(1);
    let place = last as f64 * (percent / 100.0);
    let low = (place.floor() as u64).min(last);
    (low, (low + 1).min(last), place - place.floor())
}

/// What is to be known of a set of numbers.
#[derive(Clone, Debug)]
pub struct Questions {
    /// Percentiles of the numbers and of their magnitudes.
    pub percents: Vec<f64>,
    /// Magnitudes above which are counted.
    pub thresholds: Vec<f64>,
    /// Borders of histogram bins.
    pub edges: Vec<f64>,
    /// Number of largest magnitudes for Hill's index.
    pub tail: u64,
}

/// A set of numbers, known as well as it need be.
#[derive(Clone, Debug, Default)]
pub struct Known {
    bins: Vec<(i32, u64)>,
    values: Vec<(f64, u64)>,
}

impl Known {
    /// The sorted bins.
    pub(super) fn bins(&self) -> &[(i32, u64)] {
        &self.bins
    }

    /// Adds numbers by their sorted bins.
    pub(super) fn add_bins(&mut self, bins: &[(i32, u64)]) {
        self.bins = merged(&self.bins, bins);
    }

    /// Adds the values in bins that were added.
    pub(super) fn add_values(&mut self, values: &[(f64, u64)]) {
        self.values = merged(&self.values, values);
    }

    /// The numbers by value and by magnitude.
    pub fn orders(&self) -> (Order, Order) {
        (Order::new(&self.bins, self.values.clone()), Order::new(&folded(&self.bins), folded(&self.values)))
    }

    /// Whose values these questions need.
    pub(super) fn needs(&self, questions: &Questions) -> Needs {
        let (signed, absolute) = (Order::new(&self.bins, Vec::new()), Order::new(&folded(&self.bins), Vec::new()));
        // Zeros, the smallest and the largest are always asked for.
        let ends = [0, signed.bin_at(0).0, signed.bin_at(signed.total.saturating_sub(1)).0];
        let mut keys: BTreeSet<i32> = questions.edges.iter().map(|x| key(*x)).chain(ends).collect();
        let mut magnitudes: BTreeSet<i32> = questions.thresholds.iter().map(|x| key(*x)).collect();
        for percent in &questions.percents {
            let (low, high, _) = ranks(signed.total, *percent);
            for rank in [low, high] {
                keys.insert(signed.bin_at(rank).0);
                magnitudes.insert(absolute.bin_at(rank).0);
            }
        }
        let cutoff = match absolute.total.checked_sub(questions.tail + 1) {
            Some(rank) if questions.tail > 0 => absolute.bin_at(rank).0,
            _ => i32::MAX,
        };
        magnitudes.insert(cutoff);
        keys.extend(magnitudes.iter().flat_map(|m| [*m, -m]));
        Needs { keys, cutoff }
    }
}

/// Sorted pairs by the magnitude of their first entries.
fn folded<T: Copy + PartialOrd + Default + std::ops::Neg<Output = T>>(pairs: &[(T, u64)]) -> Vec<(T, u64)> {
    let split = pairs.partition_point(|p| p.0 < T::default());
    let negative: Vec<(T, u64)> = pairs[..split].iter().rev().map(|(v, n)| (-*v, *n)).collect();
    merged(&negative, &pairs[split..])
}

/// Bins whose values are needed.
#[derive(Clone, Debug)]
pub(super) struct Needs {
    /// These.
    pub(super) keys: BTreeSet<i32>,
    /// And all of at least this magnitude; fewer numbers than asked for are beyond it.
    pub(super) cutoff: i32,
}

impl Needs {
    /// Those of sorted values that are needed.
    pub(super) fn among(&self, values: &[(f64, u64)]) -> Vec<(f64, u64)> {
        let runs = values.chunk_by(|a, b| key(a.0) == key(b.0));
        runs.filter(|run| self.has(key(run[0].0))).flatten().copied().collect()
    }

    /// Whether the values of a bin are needed.
    pub(super) fn has(&self, key: i32) -> bool {
        key.abs() >= self.cutoff || self.keys.contains(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    fn known(values: &[f64]) -> Known {
        let pairs = counted(values.to_vec());
        let mut known = Known::default();
        for (value, count) in &pairs {
            known.add_bins(&[(key(*value), *count)]);
        }
        known.add_values(&pairs);
        known
    }

    #[test]
    fn keys_rise_with_numbers_and_change_sign_with_them() {
        let mut numbers: Vec<f64> = (-1074..1023).step_by(7).map(|e| f64::from(e).exp2()).collect();
        numbers.extend([0.0, 1e-45, 1.1754942e-38, 1.1754944e-38, f64::MAX, f64::INFINITY, 1.0, 1.0001, 1.001]);
        numbers.sort_by(f64::total_cmp);
        assert!(numbers.windows(2).all(|w| key(w[0]) <= key(w[1])));
        assert!(numbers.iter().all(|x| key(-x) == -key(*x)));
        for x in [1e-45, 1e-40, 0.37, 1.0, 1e300] {
            assert!(end(key(x)) > x && key(end(key(x))) == key(x) + 1 && end(key(x)) == end(key(-x)), "{x}");
        }
        assert!(key(1.0) < key(1.0005) && key(1.0) == key(1.0004));
        // A key of f32 is its bits without the lowest twelve.
        for x in [1e-44f32, 1e-40, f32::MIN_POSITIVE, 0.37, 3e38] {
            assert_eq!(key(f64::from(x)), (x.to_bits() >> 12) as i32, "{x:e}");
        }
    }

    #[test]
    fn percentiles_counts_and_hill_are_those_of_sorted_numbers() {
        let mut values = Key::new(4).normal::<f64>(&[3001]).mapv(|z| z * z * z).into_raw_vec_and_offset().0;
        values.extend([0.0, -0.0, 0.25, 0.25, -0.25]);
        let (signed, absolute) = known(&values).orders();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let mut magnitudes: Vec<f64> = values.iter().map(|v| v.abs()).collect();
        magnitudes.sort_by(f64::total_cmp);
        for percent in [0.0f64, 0.1, 12.5, 50.0, 99.99, 100.0] {
            for (order, sorted) in [(&signed, &sorted), (&absolute, &magnitudes)] {
                let place = 3005.0 * percent / 100.0;
                let (a, b) = (sorted[place as usize], sorted[(place as usize + 1).min(3005)]);
                let want = a + (b - a) * place.fract();
                assert!((order.percentile(percent) - want).abs() <= 1e-12 * want.abs(), "{percent}");
            }
        }
        for x in [-1.0, -0.25, 0.0, 0.25, 0.1, 99.0, -99.0] {
            assert_eq!(signed.count(x, false), values.iter().filter(|v| **v < x).count() as u64, "{x}");
            assert_eq!(absolute.count(x, true), values.iter().filter(|v| v.abs() <= x).count() as u64, "{x}");
        }
        let (top, limit) = (&magnitudes[3006 - 50..], magnitudes[3006 - 51]);
        let hill = 50.0 / top.iter().map(|v| (v / limit).ln()).sum::<f64>();
        assert!((absolute.hill(50).expect("a tail") - hill).abs() < 1e-12 * hill);
    }

    #[test]
    fn few_equal_and_no_numbers() {
        let (none, _) = Known::default().orders();
        assert!(none.percentile(50.0).is_nan() && none.hill(1).is_none() && none.count(1.0, true) == 0);
        let (one, _) = known(&[-3.0]).orders();
        assert_eq!((one.percentile(0.0), one.percentile(99.0), one.hill(1)), (-3.0, -3.0, None));
        let (_, equal) = known(&[2.0, -2.0, 2.0]).orders();
        assert_eq!((equal.percentile(50.0), equal.hill(1)), (2.0, None));
        let (_, zeros) = known(&[0.0, -0.0, 0.0]).orders();
        assert_eq!((zeros.percentile(100.0), zeros.hill(2), zeros.count(0.0, true)), (0.0, None, 3));
        // A tie across the border of the tail counts in part.
        let (_, tied) = known(&[1.0, 2.0, 4.0, 4.0, 4.0]).orders();
        assert_eq!(tied.hill(4).expect("a tail"), 4.0 / (2f64.ln() + 3.0 * 4f64.ln()));
        assert_eq!(tied.hill(2), None);
    }

    #[test]
    fn needs_name_the_bins_of_every_answer() {
        let values = Key::new(9).normal::<f64>(&[5000]).into_raw_vec_and_offset().0;
        let all = known(&values);
        let questions =
            Questions { percents: vec![1.0, 50.0, 99.9], thresholds: vec![0.5, 70.0], edges: vec![-0.3], tail: 5 };
        let needs = all.needs(&questions);
        let some: Vec<(f64, u64)> = all.values.iter().copied().filter(|v| needs.has(key(v.0))).collect();
        assert!(some.len() < 100, "{} of 5000", some.len());
        let few = Known { bins: all.bins.clone(), values: some };
        let ((signed, absolute), (all_signed, all_absolute)) = (few.orders(), all.orders());
        for percent in questions.percents {
            assert_eq!(signed.percentile(percent), all_signed.percentile(percent));
            assert_eq!(absolute.percentile(percent), all_absolute.percentile(percent));
        }
        assert_eq!(absolute.count(0.5, true), all_absolute.count(0.5, true));
        assert_eq!((absolute.count(70.0, true), signed.count(-0.3, false)), (5000, all_signed.count(-0.3, false)));
        assert_eq!(absolute.hill(5), all_absolute.hill(5));
    }
}
