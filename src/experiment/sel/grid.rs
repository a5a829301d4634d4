//! Grids of language runs: widths x depths x variants x seeds, as Tables 1 to 6 and Figure 5 share them.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::arguments::{DataArguments, LanguageArguments, LanguageSizes};
use super::estimate::estimate;
use super::runs::{LanguageOutcome, LanguageRuns};
use super::variant::Variant;
use crate::cli::{DeviceArguments, RunRecord, say};
use crate::data::text::Dataset;
use crate::error::{Error, Result};
use crate::experiment::output::default_folder;
use crate::experiment::preset::Preset;
use crate::files::ensure_writable_folder;
use crate::nn::sel::beta_for_width;
use crate::runtime::set_verbose;
use crate::train::language::{LanguageConfig, Saving};
use crate::train::sweep::Shard;

/// Options of the SEL experiments, beside those of a run.
#[derive(Args, Clone, Debug)]
pub struct GridArguments {
    #[command(flatten)]
    language: LanguageArguments,
    #[command(flatten)]
    data: DataArguments,
    /// Widths, separated by commas [default: the preset's]
    #[arg(long, value_name = "D,...", value_delimiter = ',')]
    widths: Option<Vec<usize>>,
    /// Depths, separated by commas [default: the preset's]
    #[arg(long, value_name = "COUNT,...", value_delimiter = ',')]
    depths: Option<Vec<usize>>,
    /// Seeds, separated by commas [default: the preset's]
    #[arg(long, value_name = "SEED,...", value_delimiter = ',')]
    seeds: Option<Vec<u64>>,
    /// Curvature beta for all widths [default: the paper's values in preset paper, by width otherwise]
    #[arg(long, value_name = "BETA")]
    beta: Option<f64>,
    /// Folder for tables and figures; made if need be [default: runs/NAME/PRESET]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Folder for the runs, which the SEL experiments share [default: runs/sel-grid/PRESET]
    #[arg(long, value_name = "FOLDER")]
    runs: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArguments,
    /// Does only part K of N of the runs (1/4 .. 4/4), on this machine or another
    #[arg(long, value_name = "K/N", default_value = "1/1")]
    shard: Shard,
    /// Updates between checkpoints
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    checkpoint_every: usize,
    /// Only prints the estimate of memory and time
    #[arg(long)]
    estimate: bool,
    /// Shows XLA's own messages
    #[arg(short, long)]
    verbose: bool,
}

/// Widths and depths of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    /// (width, depth) of each cell, in the order of the table.
    pub cells: Vec<(usize, usize)>,
    /// Seeds of every cell and variant.
    pub seeds: Vec<u64>,
    /// Updates, where they are not the preset's.
    pub steps: Option<usize>,
    /// Curvature, where it is not the width's.
    pub beta: Option<f64>,
}

impl Cells {
    /// Every width with every depth.
    pub fn product(widths: &[usize], depths: &[usize], seeds: &[u64]) -> Self {
        let cells = widths.iter().flat_map(|w| depths.iter().map(|d| (*w, *d))).collect();
        Cells { cells, seeds: seeds.to_vec(), steps: None, beta: None }
    }

    /// The one cell of the ablations of Tables 5 and 6 in each preset; the paper's has 100,000 steps and beta 7.
    pub fn ablation(preset: Preset) -> Self {
        match preset {
            Preset::Smoke => Cells::product(&[32], &[2], &[0, 1]),
            Preset::Cpu => Cells::product(&[128], &[4], &[0, 1, 2]),
            Preset::Paper => Cells { steps: Some(100_000), beta: Some(7.0), ..Cells::product(&[1024], &[12], &[0]) },
        }
    }
}

/// One cell's outcomes by variant, in the order of the variants and seeds asked for.
#[derive(Clone, Debug)]
pub struct Cell {
    /// d.
    pub width: usize,
    /// Blocks.
    pub depth: usize,
    /// Curvature.
    pub beta: f64,
    /// Variants with one outcome per seed.
    pub outcomes: Vec<(Variant, Vec<LanguageOutcome>)>,
}

impl Cell {
    /// Outcomes of a variant; empty where it was not run.
    pub fn of(&self, variant: Variant) -> &[LanguageOutcome] {
        self.outcomes.iter().find(|(v, _)| *v == variant).map_or(&[], |(_, o)| o)
    }
}

/// Everything an experiment needs to make its table.
pub struct Grid {
    /// Cells in order.
    pub cells: Vec<Cell>,
    /// What the table and figures say of their making.
    pub note: String,
    /// Tokens of one update.
    pub tokens_per_step: usize,
    /// Where they go.
    pub folder: PathBuf,
    /// Its record.
    pub record: RunRecord,
}

/// beta for a width: the paper's (Section 5.2) at its widths, where preset `paper` runs; by the rule elsewhere.
pub(super) fn beta_of(preset: Preset, width: usize) -> f64 {
    match (preset, width) {
        (Preset::Paper, 1024) => 7.5,
        // The paper names 12, 12.5 and 15 for its three depths without saying which is whose.
        (Preset::Paper, 2048) => 12.5,
        (Preset::Paper, 3072) => 20.0,
        _ => beta_for_width(width),
    }
}

impl GridArguments {
    /// The preset.
    pub fn preset(&self) -> Preset {
        self.language.preset
    }

    /// Trains what is not done; None when runs of other shards are missing, or only an estimate was asked for.
    ///
    /// **Errors** as [`LanguageRuns::run`], and when an option makes no sense.
    pub fn run(&self, name: &str, preset: Cells, variants: &[Variant]) -> Result<Option<Grid>> {
        set_verbose(self.verbose);
        for (option, given) in [("--width", self.language.width), ("--depth", self.language.depth)] {
            if let Some(value) = given {
                return Err(Error::argument(option, value, format!("this experiment takes {option}s, a list")));
            }
        }
        let cells = self.cells(preset)?;
        let base = LanguageSizes::of(self.preset());
        let data = self.data.dataset(base.tokenizer)?;
        let devices = self.device.open_group(self.language.replicas)?;
        let mut configs = Vec::new();
        for &(width, depth) in &cells.cells {
            for variant in variants {
                for seed in &cells.seeds {
                    configs.push(self.config(&base, (width, depth), &cells, *variant, *seed, &data)?);
                }
            }
        }
        if self.preset() == Preset::Paper || self.estimate {
            say(&estimate(devices.device(), &configs)?);
            if self.estimate {
                return Ok(None);
            }
        }
        configs[0].check_data(&data)?; // all have the same sequence
        let preset_name = self.preset().name();
        let folder = self.out.clone().unwrap_or_else(|| default_folder(name, self.preset()));
        let runs = self.runs.clone().unwrap_or_else(|| Path::new("runs/sel-grid").join(preset_name));
        ensure_writable_folder(&folder)?;
        let saving = Saving { every: self.checkpoint_every, keep: 1 };
        let runs = LanguageRuns::new(devices, runs, self.shard, saving)?;
        let mut record =
            RunRecord::new(name, cells.seeds.first().copied().unwrap_or(0), &runs.devices().device().describe());
        runs.run(&configs, &data)?;
        let Some(outcomes) = runs.outcomes(&configs)? else { return Ok(None) };
        record.set("preset", json!(preset_name));
        record.set("seeds", json!(cells.seeds));
        record.set("data", json!(data.description()));
        record.set("runs", json!(configs.iter().map(|c| runs.run_folder(c)).collect::<Result<Vec<_>>>()?));
        record.set("example_config", json!(configs[0]));
        let seconds: f64 =
            outcomes.iter().zip(&configs).map(|(o, c)| o.training_seconds(c.step.tokens_per_step())).sum();
        record.set("training_seconds", json!(seconds));

        let mut outcomes = outcomes.into_iter();
        let mut take = || -> Vec<LanguageOutcome> { outcomes.by_ref().take(cells.seeds.len()).collect() };
        let cell = |&(width, depth): &(usize, usize)| Cell {
            width,
            depth,
            beta: self.beta(&cells, width),
            outcomes: variants.iter().map(|v| (*v, take())).collect(),
        };
        let grid = cells.cells.iter().map(cell).collect();
        let tokens_per_step = configs[0].step.tokens_per_step();
        Ok(Some(Grid { cells: grid, note: self.note(&configs[0], &cells, &data), tokens_per_step, folder, record }))
    }

    fn beta(&self, cells: &Cells, width: usize) -> f64 {
        self.beta.or(cells.beta).unwrap_or_else(|| beta_of(self.preset(), width))
    }

    fn cells(&self, preset: Cells) -> Result<Cells> {
        let distinct = |values: Vec<usize>| {
            let mut seen = Vec::new();
            values.into_iter().for_each(|v| {
                if !seen.contains(&v) {
                    seen.push(v)
                }
            });
            seen
        };
        let widths = self.widths.clone().unwrap_or_else(|| distinct(preset.cells.iter().map(|c| c.0).collect()));
        let depths = self.depths.clone().unwrap_or_else(|| distinct(preset.cells.iter().map(|c| c.1).collect()));
        let seeds = self.seeds.clone().unwrap_or(preset.seeds.clone());
        for (option, ok) in
            [("--widths", !widths.is_empty()), ("--depths", !depths.is_empty()), ("--seeds", !seeds.is_empty())]
        {
            if !ok {
                return Err(Error::argument(option, "", "expected at least one"));
            }
        }
        if seeds.iter().enumerate().any(|(i, s)| seeds[..i].contains(s)) {
            return Err(Error::argument("--seeds", format!("{seeds:?}"), "one is given twice"));
        }
        if self.widths.is_none() && self.depths.is_none() {
            return Ok(Cells { seeds, ..preset });
        }
        Ok(Cells {
            steps: preset.steps,
            beta: preset.beta,
            ..Cells::product(&distinct(widths), &distinct(depths), &seeds)
        })
    }

    fn config(
        &self,
        base: &LanguageSizes,
        (width, depth): (usize, usize),
        cells: &Cells,
        variant: Variant,
        seed: u64,
        data: &Dataset,
    ) -> Result<LanguageConfig> {
        let mut sizes = self.language.sizes(LanguageSizes { width, depth, ..base.clone() });
        if self.language.steps.is_none() {
            let paper = (self.preset() == Preset::Paper && width > 1024).then_some(150_000);
            sizes.steps = cells.steps.or(paper).unwrap_or(sizes.steps);
        }
        self.language.config(&sizes, variant.projection(self.beta(cells, width)), seed, data)
    }

    fn note(&self, config: &LanguageConfig, cells: &Cells, data: &Dataset) -> String {
        let s = &config.step;
        format!(
            "Preset {}: {} steps of {} tokens (sequence {}), learning rate {:.0e}, {} tokens of {}; {} seed{}.",
            self.preset().name(),
            s.schedule.total,
            s.tokens_per_step(),
            s.sequence,
            s.schedule.peak,
            data.tokenizer().id(),
            data.corpus(),
            cells.seeds.len(),
            if cells.seeds.len() == 1 { "" } else { "s" },
        )
    }
}
