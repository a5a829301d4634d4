//! What the weights of a set of matrices would be if they were drawn anew: each from Xavier's uniform law
//! U(-b, b), b = sqrt(6 / (inputs + outputs)). Everything here is that mixture's exact expectation, not a draw.

/// Uniform laws, each with a number of weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Xavier {
    parts: Vec<(u64, f64)>,
}

impl Xavier {
    /// Adds `count` weights of bound `b`.
    pub fn add(&mut self, count: u64, b: f64) {
        match self.parts.iter_mut().find(|p| p.1 == b) {
            Some(part) => part.0 += count,
            None => self.parts.push((count, b)),
        }
    }

    /// Number of weights.
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|p| p.0).sum()
    }

    /// The largest bound; NaN for no weights.
    pub fn max(&self) -> f64 {
        self.parts.iter().map(|p| p.1).fold(f64::NAN, f64::max)
    }

    /// Standard deviation over all weights.
    pub fn std(&self) -> f64 {
        self.mean(|b| b * b / 3.0).sqrt()
    }

    /// Share of weights with a magnitude above `x`.
    pub fn above(&self, x: f64) -> f64 {
        self.mean(|b| (1.0 - x / b).clamp(0.0, 1.0))
    }

    /// Share of weights between `low` and `high`.
    pub fn between(&self, low: f64, high: f64) -> f64 {
        self.mean(|b| (high.clamp(-b, b) - low.clamp(-b, b)) / (2.0 * b))
    }

    /// The magnitude that `percent` of the weights' magnitudes do not exceed.
    pub fn percentile(&self, percent: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.max());
        // The share is a continuous, falling function of the magnitude.
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if 1.0 - self.above(middle) < percent / 100.0 { low = middle } else { high = middle }
        }
        high
    }

    fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        self.parts.iter().map(|(n, b)| *n as f64 * of(*b)).sum::<f64>() / self.count() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    #[test]
    fn expectations_are_those_of_draws() {
        let mut law = Xavier::default();
        let mut draws = Vec::new();
        for (i, (count, b)) in [(200_000, 0.1), (100_000, 0.5), (100_000, 0.1)].into_iter().enumerate() {
            law.add(count, b);
            draws.extend(Key::new(2).fold_in(i as u32).uniform(&[count as usize], -b, b));
        }
        assert_eq!((law.count(), law.max(), law.parts.len()), (400_000, 0.5, 2));
        let share = |of: &dyn Fn(f64) -> bool| draws.iter().filter(|v| of(**v)).count() as f64 / 4e5;
        for x in [0.0, 0.05, 0.1, 0.3, 0.5, 0.7] {
            assert!((law.above(x) - share(&|v| v.abs() > x)).abs() < 4e-3, "{x}");
        }
        assert!((law.between(-0.2, 0.05) - share(&|v| (-0.2..0.05).contains(&v))).abs() < 4e-3);
        assert_eq!(law.between(0.6, 0.7), 0.0);
        let square = draws.iter().map(|v| v * v).sum::<f64>() / 4e5;
        assert!((law.std() - square.sqrt()).abs() < 1e-3);
        for percent in [10.0, 75.0, 99.0] {
            let x = law.percentile(percent);
            assert!((1.0 - law.above(x) - percent / 100.0).abs() < 1e-12);
        }
        assert!((law.percentile(100.0) - 0.5).abs() < 1e-12);
        assert!(Xavier::default().max().is_nan() && Xavier::default().above(0.1).is_nan());
    }
}
