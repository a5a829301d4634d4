//! Where the files of a converted checkpoint go, and what both directions do alike.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::record::{Conversion, InvertReport};
use crate::error::{Error, Result};
use crate::files::{ensure_writable_folder, reason, remove_leftovers, write_bytes};
use crate::interop::safetensors::{Reader, ShardTensor, Shards};

/// Bytes that are copied at a time.
const COPY: usize = 1 << 24;

/// Long work: how it is watched and stopped.
pub struct Job<'a> {
    /// Called with the bytes of the source that were done since the last call, and the tensor's name.
    pub progress: &'a mut dyn FnMut(usize, &str),
    /// Whether to stop.
    pub stop: &'a AtomicBool,
}

impl Job<'_> {
    pub(super) fn did(&mut self, bytes: usize, name: &str) {
        (self.progress)(bytes, name);
    }

    /// **Errors** when the work is to stop.
    pub(super) fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            let text = "stopped; the same command goes on with the first file that is not finished";
            return Err(Error::Interrupted(text.into()));
        }
        Ok(())
    }
}

/// What is kept of a finished file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// Digest of its [`Conversion`] and source.
    pub digest: String,
    /// What it came to.
    pub report: InvertReport,
}

/// The files that are made of a checkpoint's.
pub(super) struct Outputs {
    files: Vec<PathBuf>,
    /// Its folder, and whether an index belongs into it.
    folder: Option<PathBuf>,
    report: PathBuf,
}

impl Outputs {
    /// **Errors** when the source has a problem, two of its files have one name, or an output would be its own source.
    pub(super) fn new(shards: &Shards, out: &Path) -> Result<Self> {
        if let Some(problem) = shards.problems().first() {
            return Err(Error::file(&shards.files()[0].path, format!("is not whole: {problem}")));
        }
        let single = shards.files().len() == 1 && out.extension().is_some_and(|e| e == "safetensors");
        let outputs = if single {
            // Of a run that was killed: as large as the model.
            remove_leftovers(out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")));
            Outputs { files: vec![out.to_owned()], folder: None, report: out.with_extension("report.json") }
        } else {
            if out.extension().is_some_and(|e| e == "safetensors") {
                let reason = format!("{} files become as many: give a folder", shards.files().len());
                return Err(Error::argument("--out", out.display(), reason));
            }
            ensure_writable_folder(out)?;
            let name = |path: &Path| out.join(path.file_name().unwrap_or_default());
            let files = shards.files().iter().map(|f| name(&f.path)).collect();
            Outputs { files, folder: Some(out.to_owned()), report: out.join("report.json") }
        };
        for (i, path) in outputs.files.iter().enumerate() {
            if outputs.files[..i].contains(path) {
                return Err(Error::file(path, "two files of the checkpoint have this name: convert them apart"));
            }
            let same = |f: &Path| matches!((f.canonicalize(), path.canonicalize()), (Ok(a), Ok(b)) if a == b);
            if shards.files().iter().any(|f| same(&f.path)) {
                return Err(Error::argument("--out", out.display(), "would overwrite the source"));
            }
        }
        Ok(outputs)
    }

    /// Path and name of a file.
    pub(super) fn file(&self, index: usize) -> (PathBuf, String) {
        let path = self.files[index].clone();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (path, name)
    }

    /// Whether a file is there and was made by this conversion.
    pub(super) fn holds(&self, index: usize, conversion: &Conversion) -> bool {
        let path = &self.files[index];
        let found = Reader::open(path).and_then(|reader| Conversion::of(path, &reader.metadata));
        matches!(found, Ok(Some(found)) if found == *conversion)
    }

    /// Reports of files that were finished before; none where there are none that can be read.
    pub(super) fn read_reports(&self) -> BTreeMap<String, Report> {
        std::fs::read(&self.report).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    pub(super) fn write_reports(&self, reports: &BTreeMap<String, Report>) -> Result<()> {
        let text = serde_json::to_vec_pretty(reports).map_err(|e| Error::file(&self.report, e))?;
        write_bytes(&self.report, &text)
    }

    /// Writes the index, where files form a set, and returns all files.
    pub(super) fn finish(&self) -> Result<Vec<PathBuf>> {
        let mut all = self.files.clone();
        let Some(folder) = self.folder.as_ref().filter(|_| self.files.len() > 1) else { return Ok(all) };
        let mut map = BTreeMap::new();
        let mut total = 0;
        for index in 0..self.files.len() {
            let (path, name) = self.file(index);
            total += std::fs::metadata(&path).map_or(0, |m| m.len());
            let reader = Reader::open(&path)?;
            map.extend(reader.names().map(|tensor| (tensor.to_owned(), name.clone())));
        }
        let path = folder.join("model.safetensors.index.json");
        let text = json!({ "metadata": { "total_size": total }, "weight_map": map });
        write_bytes(&path, &serde_json::to_vec_pretty(&text).map_err(|e| Error::file(&path, e))?)?;
        all.push(path);
        Ok(all)
    }
}

/// Copies a tensor's bytes.
pub(super) fn copy(
    shards: &Shards,
    tensor: &ShardTensor,
    path: &Path,
    sink: &mut dyn Write,
    job: &mut Job,
) -> Result<()> {
    let length = tensor.byte_len();
    for start in (0..length).step_by(COPY) {
        job.check()?;
        let part = start..(start + COPY).min(length);
        write(sink, &shards.bytes(tensor)[part.clone()], path)?;
        shards.release_part(tensor, part.clone());
        job.did(part.len(), &tensor.name);
    }
    Ok(())
}

pub(super) fn write(sink: &mut dyn Write, bytes: &[u8], path: &Path) -> Result<()> {
    sink.write_all(bytes).map_err(|e| Error::file(path, format!("cannot be written: {}", reason(&e))))
}
