//! Distributions of numbers: quantiles, moments, histograms, as NumPy and SciPy compute them.
//!
//! ```
//! use sinexp::analysis::distribution::{edges, histogram, quantile, sorted};
//! let values = sorted([3.0, 1.0, 2.0, 4.0]);
//! assert_eq!(quantile(&values, 0.5), 2.5); // numpy.quantile
//! assert_eq!(histogram(values, &edges(0.0, 4.0, 2)), [1, 3]);
//! ```

/// Quantile `q` (0 to 1) of values in ascending order, by linear interpolation (`numpy.quantile`'s default); NaN of none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = sorted[(low + 1).min(last)];
    sorted[low] + (high - sorted[low]) * part
}

/// The values in ascending order.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// What is said of a set of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Described {
    /// How many.
    pub count: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation, divided by the count.
    pub std: f64,
    /// Largest absolute value.
    pub max: f64,
    /// Fourth central moment over the squared variance, minus 3: 0 for a normal law, -1.2 for a uniform one.
    pub excess_kurtosis: f64,
}

impl Described {
    /// Of these values; NaN everywhere for none.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let moment = |k: i32| values.iter().map(|x| (x - mean).powi(k)).sum::<f64>() / n;
        let variance = moment(2);
        Described {
            count: values.len(),
            mean,
            std: variance.sqrt(),
            max: values.iter().fold(0.0, |a, x| x.abs().max(a)),
            excess_kurtosis: moment(4) / (variance * variance) - 3.0,
        }
    }
}

/// `bins` equal bins from `low` to `high`: their borders, one more than there are bins.
pub fn edges(low: f64, high: f64, bins: usize) -> Vec<f64> {
    (0..=bins).map(|i| low + (high - low) * i as f64 / bins as f64).collect()
}

/// How many of `values` lie in each of the equal bins with these borders; each bin has its lower border, the last one
/// its upper too (`numpy.histogram`). What lies outside is in none.
pub fn histogram(values: impl IntoIterator<Item = f64>, edges: &[f64]) -> Vec<u64> {
    let bins = edges.len().saturating_sub(1);
    let mut counts = vec![0; bins];
    let (Some(&low), Some(&high)) = (edges.first(), edges.last()) else { return counts };
    for value in values.into_iter().filter(|v| (low..=high).contains(v)) {
        let guess = ((value - low) / (high - low) * bins as f64) as usize;
        let mut bin = guess.min(bins - 1);
        // The quotient may be rounded over a border.
        if value < edges[bin] {
            bin -= 1;
        } else if bin + 1 < bins && value >= edges[bin + 1] {
            bin += 1;
        }
        counts[bin] += 1;
    }
    counts
}

/// Counts of bins as a density over `total` values: an integral of one where all lie in the bins.
pub fn density(counts: &[u64], edges: &[f64], total: usize) -> Vec<f64> {
    counts.iter().zip(edges.windows(2)).map(|(c, e)| *c as f64 / (total as f64 * (e[1] - e[0]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f64; 8] = [0.3, -1.0, 2.5, 0.0, 0.7, -0.2, 4.0, 0.3];

    #[test]
    fn quantiles_are_numpys() {
        let sorted = sorted(VALUES);
        // np.quantile(values, [0, .05, .25, .5, .9, .999, 1])
        let numpy = [-1.0, -0.72, -0.05, 0.3, 2.95, 3.9895, 4.0];
        for (q, want) in [0.0, 0.05, 0.25, 0.5, 0.9, 0.999, 1.0].into_iter().zip(numpy) {
            assert!((quantile(&sorted, q) - want).abs() < 1e-12, "{q}: {}", quantile(&sorted, q));
        }
        assert_eq!(quantile(&[3.0], 0.7), 3.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn moments_are_scipys() {
        let d = Described::of(&VALUES);
        // np.mean, np.std, np.abs.max, scipy.stats.kurtosis
        let want = [0.825, 1.5213070038621397, 4.0, -0.14583485417995057];
        for (got, want) in [d.mean, d.std, d.max, d.excess_kurtosis].into_iter().zip(want) {
            assert!((got - want).abs() < 1e-12, "{got} instead of {want}");
        }
    }

    #[test]
    fn bins_have_their_lower_borders() {
        // np.histogram([0, .1, .3, .3, .7, 1, 1.2, -.1], bins=10, range=(0, 1))
        let counts = histogram([0.0, 0.1, 0.3, 0.3, 0.7, 1.0, 1.2, -0.1], &edges(0.0, 1.0, 10));
        assert_eq!(counts.iter().sum::<u64>(), 6);
        assert_eq!((counts[0], counts[1], counts[9]), (1, 1, 1));
        let tens = edges(0.0, 1.0, 10);
        let on_borders = histogram(tens.iter().copied(), &tens);
        assert_eq!(on_borders, [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
        let total: f64 = density(&on_borders, &tens, 11).iter().map(|d| d * 0.1).sum();
        assert!((total - 1.0).abs() < 1e-12);
    }
}
