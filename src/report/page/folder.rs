//! Folders of results: which there are, and what lies in each.

use std::fs;
use std::path::{Path, PathBuf};

use super::catalog::{self, Experiment};
use super::chart::{self, Chart};
use super::grid::{self, Grid};
use super::record::Record;
use crate::error::{Error, Result};
use crate::files::reason;
use crate::report::CURVES;

/// A picture with its chart, if the numbers of its curves are there.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// File name without extension.
    pub stem: String,
    /// The picture, a PNG file's bytes; none for curves that were not drawn.
    pub png: Option<Vec<u8>>,
    /// Its curves.
    pub chart: Option<Chart>,
}

/// One folder of results.
#[derive(Clone, Debug)]
pub struct Run {
    /// The folder as it was found.
    pub folder: PathBuf,
    /// The experiment it belongs to, where its program is known.
    pub experiment: Option<&'static Experiment>,
    /// What `run.json` says; empty where there is none.
    pub record: Record,
    /// Tables in order of their names.
    pub grids: Vec<Grid>,
    /// Figures in order of their names.
    pub drawings: Vec<Drawing>,
    /// Files of numbers too long to be read as tables, with what is in them.
    pub data: Vec<String>,
    /// What could not be read: a line each.
    pub problems: Vec<String>,
}

/// Rows of a file of numbers that is shown as a table.
const MOST_ROWS: usize = 400;
/// Depth below an argument at which folders are still looked at.
const DEPTH: usize = 8;

/// The runs in and below `folders`, each once: first those of the known experiments in the papers' order, then others by name.
///
/// **Errors** when a folder is not there or none holds results.
pub fn find(folders: &[PathBuf]) -> Result<Vec<Run>> {
    let mut found = Vec::new();
    for folder in folders {
        if !folder.is_dir() {
            return Err(Error::file(folder, "is not a folder; give folders of results, such as figures/"));
        }
        walk(folder, DEPTH, &mut found)?;
    }
    let mut seen = Vec::new();
    found.retain(|folder| {
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let new = !seen.contains(&whole);
        seen.push(whole);
        new
    });
    let mut runs: Vec<Run> = found.into_iter().map(Run::read).collect();
    if runs.is_empty() {
        let names = folders.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(Error::argument("RUNS", names, "no run.json, table or figure in or below it"));
    }
    let order = |run: &Run| run.experiment.map_or(usize::MAX, catalog::position);
    runs.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| a.folder.cmp(&b.folder)));
    Ok(runs)
}

fn names(folder: &Path) -> Result<Vec<(String, bool)>> {
    let fail = |e: std::io::Error| Error::file(folder, format!("cannot be read: {}", reason(&e)));
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        // Follows links, so that a folder may be one; those that go round in circles end with the depth.
        all.push((entry.file_name().to_string_lossy().into_owned(), entry.path().is_dir()));
    }
    all.sort();
    Ok(all)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    let all = names(folder)?;
    let result =
        |name: &str| name == "run.json" || [".png", ".md", ".parquet", ".csv"].iter().any(|e| name.ends_with(e));
    if all.iter().any(|(name, is_folder)| !is_folder && result(name)) {
        found.push(folder.to_owned());
    }
    for (name, _) in all.iter().filter(|(_, is_folder)| *is_folder) {
        // Single runs of a sweep and weights are not results by themselves.
        if depth > 0 && !name.starts_with('.') && !["runs", "checkpoints"].contains(&name.as_str()) {
            walk(&folder.join(name), depth - 1, found)?;
        }
    }
    Ok(())
}

impl Run {
    /// Everything in `folder` that can be read; the rest is in `problems`.
    fn read(folder: PathBuf) -> Run {
        let mut problems = Vec::new();
        let mut keep =
            |problem: Error| problems.push(problem.to_string().lines().next().unwrap_or_default().to_owned());
        let files: Vec<String> = match names(&folder) {
            Ok(all) => all.into_iter().filter(|(_, is_folder)| !is_folder).map(|(name, _)| name).collect(),
            Err(error) => {
                keep(error);
                Vec::new()
            }
        };
        let record = if files.iter().any(|f| f == "run.json") {
            Record::read(&folder.join("run.json")).unwrap_or_else(|error| {
                keep(error);
                Record::default()
            })
        } else {
            Record::default()
        };
        let experiment = record.program().and_then(catalog::named).or_else(|| by_path(&folder));
        let stems = |extension: &str| -> Vec<&str> { files.iter().filter_map(|f| f.strip_suffix(extension)).collect() };
        let mut grids = Vec::new();
        let mut data = Vec::new();
        let mut loose = Vec::new();
        let markdown = stems(".md");
        for stem in &markdown {
            Grid::markdown(&folder, stem).map(|grid| grids.push(grid)).unwrap_or_else(&mut keep);
        }
        let (parquet, csv) = (stems(".parquet"), stems(".csv"));
        for (stem, extension) in parquet.iter().map(|s| (s, "parquet")).chain(csv.iter().map(|s| (s, "csv"))) {
            if stem.ends_with(".curves") {
                continue;
            }
            let path = folder.join(format!("{stem}.{extension}"));
            let frame = match super::grid::frame(&path) {
                Ok(frame) => frame,
                Err(error) => {
                    keep(error);
                    continue;
                }
            };
            if let Some(grid) = grids.iter_mut().find(|g| g.stem == **stem) {
                grid.exact(&frame);
            } else if let Some(chart) = chart::of_losses(stem, &frame) {
                loose.push(Drawing { stem: (*stem).to_owned(), png: None, chart: Some(chart) });
            } else if frame.height() <= MOST_ROWS && frame.columns().iter().all(|c| !c.dtype().is_nested()) {
                grids.push(Grid::of(stem, &frame));
            } else if !data.iter().any(|d: &String| d.starts_with(&format!("{stem}."))) {
                let rows = (frame.height(), frame.width());
                data.push(format!("{stem}.{extension}: {} rows of {} columns", rows.0, rows.1));
            }
        }
        let mut drawings = Vec::new();
        for stem in stems(".png") {
            let file = format!("{stem}{CURVES}");
            let chart = files.contains(&file).then(|| Chart::read(&folder.join(file)));
            let chart = chart.and_then(|c| c.map_err(&mut keep).ok());
            let png = picture(&folder.join(format!("{stem}.png"))).map_err(&mut keep).ok();
            if png.is_some() || chart.is_some() {
                drawings.push(Drawing { stem: stem.to_owned(), png, chart });
            }
        }
        drawings.extend(loose);
        // Figure 2 before Figure 10.
        drawings.sort_by_key(|drawing| {
            let name = drawing.stem.trim_end_matches(|c: char| c.is_ascii_digit());
            (name.to_owned(), drawing.stem[name.len()..].parse::<u64>().unwrap_or(0))
        });
        Run { folder, experiment, record, grids, drawings, data, problems }
    }

    /// The folder's name without that of its experiment: `cpu`, `every-8th`; empty where there is nothing more.
    pub fn variant(&self) -> String {
        let parts: Vec<String> =
            self.folder.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
        let name = self.experiment.map(|e| e.program);
        match parts.iter().rposition(|p| Some(p.as_str()) == name) {
            Some(at) => parts[at + 1..].join("/"),
            None => parts.last().cloned().unwrap_or_default(),
        }
    }

    /// A table by its file name without extension.
    pub fn grid(&self, stem: &str) -> Option<&Grid> {
        grid::grid(&self.grids, stem)
    }
}

/// The bytes of a PNG.
fn picture(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).map_err(|e| Error::file(path, format!("cannot be read: {}", reason(&e))))?;
    let whole = bytes.starts_with(b"\x89PNG") && bytes.ends_with(b"IEND\xaeB`\x82");
    if whole { Ok(bytes) } else { Err(Error::file(path, "is damaged: not a whole PNG; run its program again")) }
}

/// The experiment that a folder is named after.
fn by_path(folder: &Path) -> Option<&'static Experiment> {
    let parts: Vec<_> = folder.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    parts.iter().rev().find_map(|part| catalog::named(part))
}
