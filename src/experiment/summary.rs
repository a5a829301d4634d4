//! Several seeds' values as mean, standard error and spread.

/// Mean and standard error over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard error of the mean; NaN for a single value.
    pub error: f64,
    /// Sample standard deviation; NaN for a single value.
    pub deviation: f64,
}

impl Summary {
    /// Of at least one value.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Summary { mean, error: (variance / n).sqrt(), deviation: variance.sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_its_formulas() {
        let s = Summary::of(&[1.0, 2.0, 3.0, 4.0]);
        assert!((s.mean - 2.5).abs() < 1e-12 && (s.deviation - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((s.error - s.deviation / 2.0).abs() < 1e-12);
    }
}
