//! Mean and central moments of many numbers, in parts that are merged.

/// Count, mean, and sums of the second to fourth powers of the deviations from the mean, in f64.
///
/// Parts merge by the formulas of Pébay (2008), which keep the digits that sums of plain powers lose where the mean is
/// large beside the spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Central {
    /// How many numbers.
    pub count: u64,
    /// Their mean; 0 for none.
    pub mean: f64,
    sums: [f64; 3],
}

/// Partial sums that the compiler keeps in vector registers.
const LANES: usize = 8;

impl Central {
    /// Of a slice, which should fit the cache: it is gone through twice.
    pub fn of<T: Copy + Into<f64>>(values: &[T]) -> Central {
        if values.is_empty() {
            return Central::default();
        }
        let (chunks, rest) = values.as_chunks::<LANES>();
        let mut sum = [0.0; LANES];
        for chunk in chunks {
            for (s, v) in sum.iter_mut().zip(chunk) {
                *s += (*v).into();
            }
        }
        let mean = (sum.iter().sum::<f64>() + rest.iter().map(|v| (*v).into()).sum::<f64>()) / values.len() as f64;
        let mut sums = [[0.0; LANES]; 3];
        for chunk in chunks {
            for (i, v) in chunk.iter().enumerate() {
                let d = (*v).into() - mean;
                let square = d * d;
                sums[0][i] += square;
                sums[1][i] += square * d;
                sums[2][i] += square * square;
            }
        }
        let tail = |power: i32| rest.iter().map(|v| ((*v).into() - mean).powi(power)).sum::<f64>();
        let sums = std::array::from_fn(|i| sums[i].iter().sum::<f64>() + tail(i as i32 + 2));
        Central { count: values.len() as u64, mean, sums }
    }

    /// Of values that occur as often as their second entries say.
    pub fn of_counted(values: &[(f64, u64)]) -> Central {
        let count: u64 = values.iter().map(|v| v.1).sum();
        if count == 0 {
            return Central::default();
        }
        let mean = values.iter().map(|(v, n)| v * *n as f64).sum::<f64>() / count as f64;
        let mut sums = [0.0; 3];
        for (v, n) in values {
            let (d, n) = (v - mean, *n as f64);
            for (sum, power) in sums.iter_mut().zip([d * d, d * d * d, d * d * d * d]) {
                *sum += n * power;
            }
        }
        Central { count, mean, sums }
    }

    /// Whether all numbers were, and no power of theirs left the range of f64.
    pub(super) fn is_finite(&self) -> bool {
        self.mean.is_finite() && self.sums.iter().all(|s| s.is_finite())
    }

    /// Of both parts together.
    pub fn merged(&self, other: &Central) -> Central {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { *other } else { *self };
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let (n, d) = (a + b, other.mean - self.mean);
        let ([a2, a3, a4], [b2, b3, b4]) = (self.sums, other.sums);
        let second = a2 + b2 + d * d * a * b / n;
        let third = a3 + b3 + d.powi(3) * a * b * (a - b) / (n * n) + 3.0 * d * (a * b2 - b * a2) / n;
        let fourth = a4
            + b4
            + d.powi(4) * a * b * (a * a - a * b + b * b) / n.powi(3)
            + 6.0 * d * d * (a * a * b2 + b * b * a2) / (n * n)
            + 4.0 * d * (a * b3 - b * a3) / n;
        Central { count: self.count + other.count, mean: self.mean + d * b / n, sums: [second, third, fourth] }
    }

    /// Standard deviation, as `numpy.std`: the root of the mean squared deviation; NaN for no numbers.
    pub fn std(&self) -> f64 {
        (self.sums[0] / self.count as f64).sqrt()
    }

    /// Skewness, as `scipy.stats.skew`; NaN where all are equal.
    pub fn skew(&self) -> f64 {
        self.sums[1] / self.count as f64 / self.std().powi(3)
    }

    /// Excess kurtosis (0 for a normal law, -1.2 for a uniform one), as `scipy.stats.kurtosis`; NaN where all are equal.
    pub fn kurtosis(&self) -> f64 {
        let n = self.count as f64;
        self.sums[2] / n / (self.sums[0] / n).powi(2) - 3.0
    }

    /// Sum of the squares of the numbers themselves.
    pub fn squares(&self) -> f64 {
        self.sums[0] + self.count as f64 * self.mean * self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    #[test]
    fn parts_counts_and_slices_agree_where_the_mean_is_large() {
        let z = Key::new(1).normal::<f64>(&[10_001]).into_raw_vec_and_offset().0;
        for (shift, spread) in [(0.0, 1.0), (1.0, 1e-3), (-300.0, 2.0)] {
            let values: Vec<f64> = z.iter().map(|z| shift + spread * z * z * z.signum()).collect();
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let moment = |p: i32| values.iter().map(|v| (v - mean).powi(p)).sum::<f64>() / n;
            let parts = values.chunks(37).map(Central::of).fold(Central::default(), |a, b| a.merged(&b));
            let counted = Central::of_counted(&values.iter().map(|v| (*v, 1)).collect::<Vec<_>>());
            for c in [Central::of(&values), parts, counted] {
                let close = |got: f64, want: f64| {
                    assert!((got - want).abs() < 1e-10 * want.abs().max(1e-3), "{got} for {want} at {shift}");
                };
                assert_eq!(c.count, 10_001);
                close(c.mean, mean);
                close(c.std(), moment(2).sqrt());
                close(c.skew(), moment(3) / moment(2).powf(1.5));
                close(c.kurtosis(), moment(4) / moment(2).powi(2) - 3.0);
                close(c.squares() / n, values.iter().map(|v| v * v).sum::<f64>() / n);
            }
        }
    }

    #[test]
    fn few_and_equal_numbers() {
        assert!(Central::default().std().is_nan());
        let one = Central::of(&[2.5f32]);
        assert_eq!((one.mean, one.std()), (2.5, 0.0));
        assert!(one.kurtosis().is_nan());
        assert_eq!(Central::default().merged(&one), one);
        assert_eq!(one.merged(&Central::default()), one);
    }
}
