//! The command line that the SIREN experiments share.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::config::{METHODS, Method, RunConfig};
use super::field::{Field, PAPER_OMEGA0};
use super::runner::{Keep, Runner};
use crate::cli::{DeviceArguments, RunRecord, say};
use crate::data::datasets::parse_image;
use crate::error::{Error, Result};
use crate::experiment::output::default_folder;
use crate::experiment::preset::Preset;
use crate::files::ensure_writable_folder;
use crate::runtime::set_verbose;
use crate::train::sweep::{Batch, Shard};

/// What a preset settles and the command line can change.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Largest dimension of the training grid.
    pub train: usize,
    /// Largest dimension of the evaluation grid.
    pub eval: usize,
    /// N.
    pub width: usize,
    /// L.
    pub hidden: usize,
    /// Adam steps.
    pub steps: usize,
    /// Learning rate.
    pub learning_rate: f64,
    /// Seeds.
    pub seeds: Vec<u64>,
}

impl Sizes {
    /// The paper's for pictures: 128 pixels for training and 512 for evaluation along the larger side, N 256, L 11, 3000
    /// steps at 1e-4, one seed.
    pub fn picture() -> Self {
        Sizes { train: 128, eval: 512, width: 256, hidden: 11, steps: 3000, learning_rate: 1e-4, seeds: vec![0] }
    }

    /// `seed 0`, or `seeds 0,1,2`.
    pub(super) fn seeds_in_words(&self) -> String {
        format!("seed{} {}", if self.seeds.len() == 1 { "" } else { "s" }, list(&self.seeds))
    }
}

/// Options of every SIREN experiment.
#[derive(Args, Clone, Debug)]
pub struct SirenArguments {
    /// How large: `paper` has the paper's sizes, `cpu` fits two cores, `smoke` takes seconds
    #[arg(long, value_enum, default_value = "cpu")]
    pub preset: Preset,
    /// Folder for results; made if need be [default: runs/NAME/PRESET]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Initialisations, separated by commas [default: those of the experiment]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(METHODS))]
    pub methods: Option<Vec<String>>,
    /// Seeds, separated by commas [default: the preset's]
    #[arg(long, value_name = "SEED,...", value_delimiter = ',')]
    pub seeds: Option<Vec<u64>>,
    /// Adam steps [default: the preset's]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub steps: Option<u64>,
    /// Width N [default: the preset's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=8192))]
    pub width: Option<u64>,
    /// Hidden layers L [default: the preset's]
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub hidden: Option<u64>,
    /// Counts the input layer as one of the L hidden layers (2609.30633 does not settle it)
    #[arg(long)]
    pub count_first: bool,
    /// Learning rate [default: the preset's]
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// Largest dimension of the training grid [default: the preset's]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub train_size: Option<u64>,
    /// GELU exactly, by erf, instead of its tanh approximation
    #[arg(long)]
    pub gelu_erf: bool,
    /// Another file for one of the pictures, as skin=skin.jpg; may be given several times
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_image)]
    pub image: Vec<(String, PathBuf)>,
    /// Where to compute, and how
    #[command(flatten)]
    pub device: DeviceArguments,
    /// Does only part K of N of the runs (1/4 .. 4/4), on this machine or another
    #[arg(long, value_name = "K/N", default_value = "1/1")]
    pub shard: Shard,
    /// Takes over the results of other folders of this experiment before it begins; may be given several times
    #[arg(long, value_name = "FOLDER")]
    pub merge: Vec<PathBuf>,
    /// Runs that train together in one program: auto or a number
    #[arg(long, value_name = "COUNT", default_value = "auto")]
    pub batch: Batch,
    /// Seconds between checkpoints
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    pub checkpoint_every: f64,
    /// Shows XLA's own messages
    #[arg(short, long)]
    pub verbose: bool,
}

impl SirenArguments {
    /// The preset's sizes with what the command line changes.
    ///
    /// **Errors** when a number makes no sense.
    pub fn sizes(&self, preset: Sizes) -> Result<Sizes> {
        let or = |given: Option<u64>, default: usize| given.map_or(default, |v| v as usize);
        let hidden = or(self.hidden, preset.hidden);
        let learning_rate = self.learning_rate.unwrap_or(preset.learning_rate);
        if !(learning_rate.is_finite() && learning_rate > 0.0) {
            return Err(Error::argument("--learning-rate", learning_rate, "give a positive number"));
        }
        if !(self.checkpoint_every.is_finite() && self.checkpoint_every >= 0.0) {
            return Err(Error::argument("--checkpoint-every", self.checkpoint_every, "give seconds, at least 0"));
        }
        if self.count_first && hidden < 2 {
            return Err(Error::argument("--count-first", hidden, "needs L of at least 2"));
        }
        distinct("--seeds", self.seeds.as_deref().unwrap_or_default())?;
        distinct("--methods", self.methods.as_deref().unwrap_or_default())?;
        Ok(Sizes {
            train: or(self.train_size, preset.train),
            width: or(self.width, preset.width),
            hidden: hidden - usize::from(self.count_first),
            steps: or(self.steps, preset.steps),
            learning_rate,
            seeds: self.seeds.clone().unwrap_or_else(|| preset.seeds.clone()),
            ..preset
        })
    }

    /// The seed of an experiment that takes one.
    ///
    /// **Errors** when several are given.
    pub fn one_seed(&self, sizes: &Sizes) -> Result<u64> {
        match sizes.seeds[..] {
            [seed] => Ok(seed),
            _ => Err(Error::argument("--seeds", list(&sizes.seeds), "this experiment takes one seed")),
        }
    }

    /// The methods asked for, or `default`.
    pub fn methods(&self, default: &[&str]) -> Vec<String> {
        self.methods.clone().unwrap_or_else(|| default.iter().map(|m| (*m).to_owned()).collect())
    }

    /// `init` at the paper's numbers for pictures (omega_h 1, positional encoding sigma 32) and this omega0.
    pub fn picture_method(&self, init: &str, omega0: f64) -> Method {
        Method::new(init, omega0, 1.0, 32.0, !self.gelu_erf)
    }

    /// `init` at the paper's omega0 for pictures.
    pub fn paper_method(&self, init: &str) -> Method {
        self.picture_method(init, PAPER_OMEGA0)
    }

    /// The folder for `experiment`'s tables and figures.
    pub fn folder(&self, experiment: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| default_folder(experiment, self.preset))
    }

    /// A runner whose results lie in `runs/` of the experiment's folder, the results of `--merge` among them.
    ///
    /// **Errors** when a folder to merge is not there, the device does not start or the folder cannot be written.
    pub fn runner(&self, experiment: &str, keep: Keep) -> Result<Runner> {
        set_verbose(self.verbose);
        if let Some(folder) = self.merge.iter().find(|f| !f.is_dir()) {
            return Err(Error::file(folder, "is not a folder; --merge names results' folders of this experiment"));
        }
        let device = self.device.open()?;
        ensure_writable_folder(self.folder(experiment))?;
        let runs = self.folder(experiment).join("runs");
        let runner = Runner::new(device, &runs, self.shard, self.batch, keep)?;
        if !self.merge.is_empty() {
            let inside = |f: &PathBuf| if f.join("runs").is_dir() { f.join("runs") } else { f.clone() };
            let folders: Vec<PathBuf> = self.merge.iter().map(inside).collect();
            let taken = runner.store().merge(&folders)?;
            say(&format!("{taken} results taken over from {} folders", folders.len()));
        }
        Ok(runner.checkpoint_every(Duration::from_secs_f64(self.checkpoint_every)))
    }

    /// A run on `field` with everything else as the paper has it.
    pub fn config(&self, field: &Field, method: Method, sizes: &Sizes, seed: u64, platform: &str) -> RunConfig {
        RunConfig {
            version: 1,
            field: field.id.clone(),
            method,
            width: sizes.width,
            hidden: sizes.hidden,
            steps: sizes.steps,
            seed,
            learning_rate: sizes.learning_rate,
            matrix_rate: 1.0,
            output_scale: 1.0,
            eps: 1e-8,
            block: None,
            platform: platform.to_owned(),
        }
    }

    /// The record of this call, with every option resolved.
    pub fn record(&self, experiment: &str, sizes: &Sizes, fields: &[&Field], runner: &Runner) -> RunRecord {
        let mut record = RunRecord::new(experiment, sizes.seeds.first().copied().unwrap_or(0), &runner.device());
        let fields: Vec<_> = fields.iter().map(|f| json!({ "id": f.id, "about": f.about })).collect();
        record.set(
            "config",
            json!({
                "preset": self.preset.name(),
                "train_size": sizes.train,
                "eval_size": sizes.eval,
                "width": sizes.width,
                "hidden": sizes.hidden,
                "count_first": self.count_first,
                "steps": sizes.steps,
                "learning_rate": sizes.learning_rate,
                "seeds": sizes.seeds,
                "gelu": if self.gelu_erf { "erf" } else { "tanh" },
                "adam": { "beta1": 0.9, "beta2": 0.999, "eps": 1e-8 },
                "shard": format!("{:?}", self.shard),
                "fields": fields,
            }),
        );
        record
    }
}

fn list<T: Display>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// Refuses a list in which something is twice: means and standard errors would count it twice.
fn distinct<T: Display + PartialEq>(option: &str, values: &[T]) -> Result<()> {
    match values.iter().enumerate().find(|(i, v)| values[..*i].contains(v)) {
        Some((_, twice)) => Err(Error::argument(option, list(values), format!("{twice} is given twice"))),
        None => Ok(()),
    }
}
