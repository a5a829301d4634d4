//! What came of a run, as one row of a Parquet file, and of several runs together.

use polars::prelude::{Column, DataFrame, DataType, NamedFrom, Series};

use super::config::RunConfig;
use crate::error::{Error, Result};
use crate::report::Table;

/// A run's results.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Mean squared error over the training samples, by the final weights.
    pub train_mse: f64,
    /// The same over the evaluation samples.
    pub eval_mse: f64,
    /// 10 log10(Var(y) / MSE) over the evaluation samples, in dB.
    pub snr_db: f64,
    /// The step it stopped at because a number was no longer finite.
    pub stopped: Option<usize>,
    /// Training losses before each update.
    pub losses: Vec<f32>,
    /// Seconds of training in the process that finished it, shared by the runs of a batch.
    pub seconds: f64,
    /// Runs in its batch.
    pub batch: usize,
}

impl Outcome {
    /// Arithmetic mean of the pre-update losses; infinite for a run that stopped.
    pub fn mean_loss(&self) -> f64 {
        self.average(|v| v, |v| v)
    }

    /// Geometric mean of the pre-update losses; infinite for a run that stopped.
    pub fn geometric_mean_loss(&self) -> f64 {
        self.average(f64::ln, f64::exp)
    }

    fn average(&self, to: impl Fn(f64) -> f64, from: impl Fn(f64) -> f64) -> f64 {
        match self.stopped {
            Some(_) => f64::INFINITY,
            None => from(self.losses.iter().map(|l| to(f64::from(*l))).sum::<f64>() / self.losses.len() as f64),
        }
    }

    /// One row: the configuration's main numbers and all of it as JSON, then the results.
    pub fn row(&self, config: &RunConfig, hash: &str, device: &str) -> Result<Table> {
        let json = serde_json::to_string(config).map_err(|e| Error::numeric("configuration", e))?;
        let text = |name: &str, value: &str| Column::new(name.into(), [value]);
        let number = |name: &str, value: f64| Column::new(name.into(), [value]);
        let whole = |name: &str, value: usize| Column::new(name.into(), [value as i64]);
        let color = config.field.color.map(|c| format!("{c:?}").to_lowercase()).unwrap_or_default();
        let losses = Series::new("losses".into(), self.losses.as_slice());
        Table::new(
            config.describe(),
            vec![
                text("hash", hash),
                text("field", &config.field.name),
                text("color", &color),
                text("init", &config.method.init),
                Column::new("omega0".into(), [config.method.omega0]),
                whole("width", config.width),
                whole("hidden", config.hidden),
                whole("steps", config.steps),
                whole("seed", config.seed as usize),
                number("learning_rate", config.learning_rate),
                number("matrix_rate", config.matrix_rate),
                number("output_scale", config.output_scale),
                number("train_mse", self.train_mse),
                number("eval_mse", self.eval_mse),
                number("snr_db", self.snr_db),
                number("mean_loss", self.mean_loss()),
                number("geometric_mean_loss", self.geometric_mean_loss()),
                Column::new("stopped".into(), [self.stopped.map(|s| s as i64)]),
                number("seconds", self.seconds),
                whole("batch", self.batch),
                text("device", device),
                text("config", &json),
                Column::new("losses".into(), [losses]),
            ],
        )
    }

    /// Back from [`Outcome::row`].
    ///
    /// **Errors** name the column that is missing.
    pub fn from_row(row: &DataFrame) -> Result<Self> {
        let missing = |name: &str| Error::numeric("result of a run", format!("has no column `{name}`"));
        let value = |name: &str| row.column(name).ok().and_then(|c| c.get(0).ok()).ok_or_else(|| missing(name));
        let number = |name: &str| value(name).map(|v| v.try_extract::<f64>().unwrap_or(f64::NAN));
        let losses = row.column("losses").ok().and_then(|c| c.list().ok()).and_then(|l| l.get_as_series(0));
        let losses = losses.and_then(|s| s.cast(&DataType::Float32).ok()).ok_or_else(|| missing("losses"))?;
        let losses = losses.f32().map_err(|_| missing("losses"))?;
        Ok(Outcome {
            train_mse: number("train_mse")?,
            eval_mse: number("eval_mse")?,
            snr_db: number("snr_db")?,
            stopped: value("stopped")?.try_extract::<i64>().ok().map(|s| s as usize),
            losses: losses.iter().map(|l| l.unwrap_or(f32::NAN)).collect(),
            seconds: number("seconds")?,
            batch: number("batch")? as usize,
        })
    }
}

/// Seconds of training behind a table: of every run, in the process that finished it; runs of a batch share theirs.
pub(super) fn training_seconds(outcomes: &[Vec<Outcome>]) -> f64 {
    outcomes.iter().flatten().map(|o| o.seconds / o.batch.max(1) as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::super::config::Method;
    use super::super::field::Field;
    use super::*;
    use crate::data::audio::fugue_subject;
    use crate::train::sweep::Store;

    /// A result is the same after it has been a Parquet file.
    #[test]
    fn a_row_reads_back() {
        let field = Field::sound("fugue", &fugue_subject(8000, 0.1), "made".into(), 1).expect("a field");
        let config = RunConfig {
            version: 1,
            field: field.id.clone(),
            method: Method::new("relu", 1.0, 1.0, 1.0, true),
            width: 8,
            hidden: 3,
            steps: 3,
            seed: 1,
            learning_rate: 1e-3,
            matrix_rate: 1.0,
            output_scale: 1.0,
            eps: 1e-8,
            block: None,
            platform: "cpu".into(),
        };
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path());
        for stopped in [None, Some(2)] {
            let outcome = Outcome {
                train_mse: 0.1,
                eval_mse: 0.2,
                snr_db: -3.0,
                stopped,
                losses: vec![0.5, 0.25, 0.125],
                seconds: 1.5,
                batch: 2,
            };
            store.put("ab", &outcome.row(&config, "ab", "cpu").expect("a row")).expect("written");
            let row = store.get("ab").expect("readable").expect("there");
            assert_eq!(Outcome::from_row(&row).expect("complete"), outcome);
            assert_eq!(row.column("omega0").expect("a column").null_count(), 1);
        }
    }

    #[test]
    fn a_batch_shares_its_seconds() {
        let one = |seconds, batch| Outcome {
            train_mse: 0.0,
            eval_mse: 0.0,
            snr_db: 0.0,
            stopped: None,
            losses: Vec::new(),
            seconds,
            batch,
        };
        assert_eq!(training_seconds(&[vec![one(6.0, 2), one(6.0, 2)], vec![one(1.5, 1)]]), 7.5);
    }

    #[test]
    fn mean_losses_are_their_formulas() {
        let outcome = Outcome {
            train_mse: 0.0,
            eval_mse: 0.0,
            snr_db: 0.0,
            stopped: None,
            losses: vec![1.0, 4.0, 16.0],
            seconds: 0.0,
            batch: 1,
        };
        assert!((outcome.mean_loss() - 7.0).abs() < 1e-12 && (outcome.geometric_mean_loss() - 4.0).abs() < 1e-12);
        assert_eq!(Outcome { stopped: Some(1), ..outcome }.mean_loss(), f64::INFINITY);
    }
}
