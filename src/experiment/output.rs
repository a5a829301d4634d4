//! Where experiments write, and how they end.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::preset::Preset;
use crate::cli::{RunRecord, say};
use crate::error::Result;

/// Where an experiment's tables and figures go unless `--out` names a folder: below `runs/`, which is no part of the
/// repository.
pub(crate) fn default_folder(experiment: &str, preset: Preset) -> PathBuf {
    Path::new("runs").join(experiment).join(preset.name())
}

/// Ends an experiment: its record with the names of what it wrote into `folder`, and a line that says where.
pub(crate) fn conclude(mut record: RunRecord, files: &[PathBuf], folder: &Path) -> Result<()> {
    record.set("files", json!(files));
    record.write(folder)?;
    say(&format!("\nWritten to {}", folder.display()));
    Ok(())
}
