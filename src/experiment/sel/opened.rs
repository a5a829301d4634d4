//! A finished or unfinished language run, read back from its folder for analysis.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::nn::language_model::Weights;
use crate::nn::sel::Sel;
use crate::random::Key;
use crate::train::language::{Checkpoint, LanguageConfig, Metrics, Projection, checkpoint, metrics};

/// A folder of `sel train`, or one of a grid.
#[derive(Clone, Debug)]
pub struct OpenedRun {
    /// The folder.
    pub folder: PathBuf,
    /// What the run is.
    pub config: LanguageConfig,
    /// Everything measured.
    pub metrics: Metrics,
}

impl OpenedRun {
    /// Reads configuration (from `run.json`) and metrics; no checkpoint need be there.
    ///
    /// **Errors** say what is missing or cannot be read.
    pub fn open(folder: &Path) -> Result<Self> {
        if !folder.is_dir() {
            return Err(Error::file(folder, "is not a folder; give one of `sel train` or of a grid's runs"));
        }
        let path = folder.join("run.json");
        let not_a_run = |missing: &str| {
            Error::file(folder, format!("is not a language run: it holds no {missing}; give a folder of `sel train`"))
        };
        let text = std::fs::read_to_string(&path).map_err(|_| not_a_run("run.json"))?;
        let record: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| Error::file(&path, format!("cannot be read: {e}")))?;
        let config: LanguageConfig = serde_json::from_value(record["config"].clone())
            .map_err(|e| Error::file(&path, format!("has no configuration of a language run: {e}")))?;
        if !metrics::path(folder).is_file() {
            return Err(not_a_run("metrics.parquet"));
        }
        let metrics = Metrics::read(folder, None)?;
        Ok(OpenedRun { folder: folder.to_owned(), config, metrics })
    }

    /// The transform of its projections.
    ///
    /// **Errors** where they are stored as they are.
    pub fn sel(&self) -> Result<&Sel> {
        match &self.config.projection {
            Projection::Sel(sel) => Ok(sel),
            Projection::Standard => {
                Err(Error::file(&self.folder, "is a run of the baseline (ordinary weights), expected one of SEL"))
            }
        }
    }

    /// **Errors** where its projections go through the transform.
    pub fn expect_baseline(&self) -> Result<()> {
        match &self.config.projection {
            Projection::Standard => Ok(()),
            Projection::Sel(sel) => {
                let reason = format!("is a run of SEL (mode {}), expected the baseline with --baseline", sel.mode);
                Err(Error::file(&self.folder, reason))
            }
        }
    }

    /// The newest checkpoint.
    ///
    /// **Errors** when there is none, it is of an older version, damaged, or of another run than `run.json` says.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        let Some((_, path)) = checkpoint::list(&self.folder).pop() else {
            return Err(Error::file(&self.folder, "holds no checkpoint: train it with --checkpoint-every"));
        };
        let checkpoint = Checkpoint::read(&path)?;
        if checkpoint.config != self.config {
            return Err(Error::file(path, "is of another configuration than run.json beside it"));
        }
        Ok(checkpoint)
    }

    /// The parameters that it started with: they follow from configuration and seed.
    ///
    /// **Errors** when it started from given weights, which it does not hold, or the parameterisation cannot start.
    pub fn initial(&self) -> Result<Weights> {
        if let Some(name) = &self.config.init {
            let reason = format!(
                "began with the weights {name} of --init, which it does not hold: give a run that began at its own start"
            );
            return Err(Error::file(&self.folder, reason));
        }
        self.config.model().initial(self.config.start, Key::new(self.config.seed).fold_in(0))
    }

    /// `baseline`, or the mode and beta.
    pub fn description(&self) -> String {
        let t = &self.config.transformer;
        let projection = match &self.config.projection {
            Projection::Standard => "baseline".to_owned(),
            Projection::Sel(sel) => {
                let residual = if sel.residual.is_some() { " + residual" } else { "" };
                format!("SEL {}{residual}, β {:.2}", sel.mode, sel.beta)
            }
        };
        format!("width {}, depth {}, {projection}, seed {}", t.width, t.depth, self.config.seed)
    }
}
