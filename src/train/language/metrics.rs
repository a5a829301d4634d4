//! What a language run measures, step by step, as a Parquet table.
//!
//! ```
//! use sinexp::train::language::metrics::{Metrics, Row};
//! # let folder = tempfile::tempdir().unwrap();
//! # let run = folder.path();
//! let row = |step: usize, loss| Row { step, loss, ..Row::default() };
//! let rows = vec![row(1, 5.5), row(2, 4.0), Row { eval_loss: Some(3.25), ..row(3, 3.0) }];
//! Metrics { rows }.write(run)?; // metrics.parquet
//! let read = Metrics::read(run, Some(2))?; // as far as a checkpoint of step 2
//! assert_eq!((read.rows.len(), read.rows[1].loss, read.final_eval_loss()), (2, 4.0, None));
//! assert_eq!(Metrics::read(run, None)?.evaluations(), [(3, 3.25)]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use polars::prelude::{Column, DataFrame, ParquetReader, SerReader};

use crate::error::{Error, Result};
use crate::report::{Table, TableFormat};

/// One step's measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Steps taken when it was measured: the loss is that of step `step`, counted from 1, before its update.
    pub step: usize,
    /// Training loss of the batch in nats per token; not a number in the row of step 0.
    pub loss: f64,
    /// Global norm of the gradient before clipping.
    pub grad_norm: f64,
    /// Learning rate of the step.
    pub learning_rate: f64,
    /// Loss on the validation split after the step.
    pub eval_loss: Option<f64>,
    /// Tokens learnt from per second since the last row that has it, evaluations not counted.
    pub tokens_per_second: Option<f64>,
    /// What the parameterisation tracks, after the step: `q.e_w` ...
    pub tracked: BTreeMap<String, f64>,
}

/// All rows of a run, in order of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// The rows.
    pub rows: Vec<Row>,
}

/// The file in a run's folder.
pub fn path(run: &Path) -> PathBuf {
    run.join("metrics.parquet")
}

impl Metrics {
    /// Steps and validation losses.
    pub fn evaluations(&self) -> Vec<(usize, f64)> {
        self.rows.iter().filter_map(|row| Some((row.step, row.eval_loss?))).collect()
    }

    /// The last validation loss.
    pub fn final_eval_loss(&self) -> Option<f64> {
        self.evaluations().last().map(|(_, loss)| *loss)
    }

    /// Writes `metrics.parquet` into the run's folder: columns as the fields of [`Row`], one per tracked value; null where
    /// a step did not measure it.
    pub fn write(&self, run: &Path) -> Result<PathBuf> {
        let number = |name: &str, value: &dyn Fn(&Row) -> Option<f64>| {
            Column::new(name.into(), self.rows.iter().map(value).collect::<Vec<Option<f64>>>())
        };
        let measured = |x: f64| Some(x).filter(|x| !x.is_nan());
        let steps: Vec<u64> = self.rows.iter().map(|row| row.step as u64).collect();
        let mut columns = vec![
            Column::new("step".into(), steps),
            number("loss", &|row| measured(row.loss)),
            number("grad_norm", &|row| measured(row.grad_norm)),
            number("learning_rate", &|row| measured(row.learning_rate)),
            number("eval_loss", &|row| row.eval_loss),
            number("tokens_per_second", &|row| row.tokens_per_second),
        ];
        let names: std::collections::BTreeSet<&String> = self.rows.iter().flat_map(|row| row.tracked.keys()).collect();
        columns.extend(names.into_iter().map(|name| number(name, &|row| row.tracked.get(name).copied())));
        let path = path(run);
        Table::new("metrics", columns)?.write(&path, TableFormat::Parquet)?;
        Ok(path)
    }

    /// Reads what [`Metrics::write`] wrote, up to and including step `last` where one is given.
    ///
    /// **Errors** when the file cannot be read, or does not reach that step.
    pub fn read(run: &Path, last: Option<usize>) -> Result<Self> {
        let path = path(run);
        let bad = |e: &dyn std::fmt::Display| Error::file(&path, format!("cannot be gone on with: {e}"));
        let file = std::fs::File::open(&path).map_err(|e| bad(&e))?;
        let frame = ParquetReader::new(file).finish().map_err(|e| bad(&e))?;
        let steps = frame.column("step").and_then(|c| c.u64().cloned()).map_err(|e| bad(&e))?;
        let number = |frame: &DataFrame, name: &str| -> Result<Vec<Option<f64>>> {
            let column = frame.column(name).and_then(|c| c.f64().cloned()).map_err(|e| bad(&e))?;
            Ok(column.iter().collect())
        };
        let fixed = ["loss", "grad_norm", "learning_rate", "eval_loss", "tokens_per_second"];
        let [loss, norm, rate, eval, speed] = fixed.map(|name| number(&frame, name));
        let (loss, norm, rate, eval, speed) = (loss?, norm?, rate?, eval?, speed?);
        let names: Vec<String> = frame.get_column_names_owned().into_iter().map(|n| n.to_string()).collect();
        let tracked = names.iter().filter(|n| *n != "step" && !fixed.contains(&n.as_str()));
        let tracked = tracked.map(|n| Ok((n.clone(), number(&frame, n)?))).collect::<Result<Vec<_>>>()?;
        let row = |(i, step): (usize, Option<u64>)| Row {
            step: step.unwrap_or(0) as usize,
            loss: loss[i].unwrap_or(f64::NAN),
            grad_norm: norm[i].unwrap_or(f64::NAN),
            learning_rate: rate[i].unwrap_or(f64::NAN),
            eval_loss: eval[i],
            tokens_per_second: speed[i],
            tracked: tracked.iter().filter_map(|(n, values)| Some((n.clone(), values[i]?))).collect(),
        };
        let rows: Vec<Row> =
            steps.iter().enumerate().map(row).filter(|row| last.is_none_or(|last| row.step <= last)).collect();
        let reached = rows.last().map_or(0, |row| row.step);
        match last {
            Some(last) if reached < last => {
                Err(bad(&format!("ends at step {reached}, the checkpoint is of step {last}")))
            }
            _ => Ok(Metrics { rows }),
        }
    }
}
