//! Table 7: the training step of baseline and SEL timed in parts (2607.09967, Section 6, "Training and inference cost").

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde_json::json;

use super::arguments::{LanguageArguments, LanguageSizes};
use super::estimate::estimate_profile;
use super::grid::beta_of;
use super::profile_table::{Profiled, write};
use super::size::Size;
use super::speed_ups::Table1;
use super::variant::Variant;
use crate::cli::{DeviceArguments, Progress, RunRecord, say, stop_on_signal};
use crate::data::text::Tokenizer;
use crate::error::{Error, Result};
use crate::experiment::output::default_folder;
use crate::experiment::preset::Preset;
use crate::files::ensure_writable_folder;
use crate::runtime::{DeviceGroup, set_verbose};
use crate::train::language::{LanguageConfig, PartTimes, Profiler};

/// Effective weights above which two models with gradients and moments are not kept on one device together.
const TOGETHER: usize = 1_000_000_000;

/// Options of the profile, beside those of a run.
#[derive(Args, Clone, Debug)]
pub struct ProfileArguments {
    #[command(flatten)]
    language: LanguageArguments,
    /// Widths and depths, separated by commas [default: the preset's]
    #[arg(long, value_name = "DxDEPTH,...", value_delimiter = ',')]
    sizes: Option<Vec<Size>>,
    /// What is timed beside the baseline
    #[arg(long, value_name = "ID", value_enum, default_value = Variant::Mismatch.id())]
    variant: Variant,
    /// Curvature beta for all widths [default: the paper's values in preset paper, by width otherwise]
    #[arg(long, value_name = "BETA")]
    beta: Option<f64>,
    /// Tokens, for the size of the vocabulary: bytes or gpt2 [default: the preset's]
    #[arg(long, value_name = "NAME")]
    tokenizer: Option<Tokenizer>,
    /// Rounds that count; each times every part once [default: the preset's]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,
    /// Rounds before those
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    warmup_rounds: u32,
    /// Times one model after the other instead of in turn, where two do not fit on the device; always above 1e9 weights
    #[arg(long)]
    apart: bool,
    /// Table 1 whose speed-ups are divided by the overhead [default: runs/sel-table1/PRESET/table.parquet, where it is]
    #[arg(long, value_name = "FILE.parquet")]
    table1: Option<PathBuf>,
    /// Seed of start and tokens
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Folder for the tables; made if need be [default: runs/sel-table7/PRESET]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArguments,
    /// Only prints the estimate of memory and time
    #[arg(long)]
    estimate: bool,
    /// Shows XLA's own messages
    #[arg(short, long)]
    verbose: bool,
}

impl ProfileArguments {
    fn sizes_and_rounds(&self) -> (Vec<Size>, usize) {
        let size = |(width, depth)| Size { width, depth };
        let (sizes, rounds): (&[(usize, usize)], usize) = match self.language.preset {
            Preset::Smoke => (&[(32, 1), (32, 2)], 4),
            Preset::Cpu => (&[(128, 2), (128, 4), (256, 4)], 30),
            Preset::Paper => (&[(1024, 12), (3072, 36)], 20),
        };
        let sizes = self.sizes.clone().unwrap_or_else(|| sizes.iter().copied().map(size).collect());
        (sizes, self.rounds.map_or(rounds, |rounds| rounds as usize))
    }

    /// Refuses options that mean nothing here.
    fn check(&self) -> Result<()> {
        let text = |given: Option<usize>| given.map(|v| v.to_string());
        let l = &self.language;
        for (option, given, reason) in [
            ("--width", text(l.width), "this experiment takes --sizes, a list of WIDTHxDEPTH"),
            ("--depth", text(l.depth), "this experiment takes --sizes, a list of WIDTHxDEPTH"),
            ("--eval-every", text(l.eval_every), "nothing is evaluated here"),
            ("--eval-batches", text(l.eval_batches), "nothing is evaluated here"),
        ] {
            if let Some(value) = given {
                return Err(Error::argument(option, value, reason));
            }
        }
        if self.variant == Variant::Baseline {
            return Err(Error::argument("--variant", "baseline", "the baseline is timed in any case: name another"));
        }
        Ok(())
    }

    /// The configurations of the baseline and of the other variant at one size.
    fn configs(&self, size: Size) -> Result<[LanguageConfig; 2]> {
        let base = LanguageSizes::of(self.language.preset);
        let tokenizer = self.tokenizer.unwrap_or(base.tokenizer);
        let sizes = self.language.sizes(LanguageSizes { width: size.width, depth: size.depth, ..base });
        let config = |variant: Variant| {
            let projection = variant.projection(self.beta_at(size.width));
            let text = ("random tokens".to_owned(), tokenizer.id().to_owned());
            self.language.config_for(&sizes, projection, self.seed, tokenizer.vocabulary(), text)
        };
        Ok([config(Variant::Baseline)?, config(self.variant)?])
    }

    fn beta_at(&self, width: usize) -> f64 {
        self.beta.unwrap_or_else(|| beta_of(self.language.preset, width))
    }

    /// The Table 1 to take speed-ups from: the one given, or the preset's where there is one.
    fn speed_ups(&self) -> Result<Option<Table1>> {
        let usual = || default_folder("sel-table1", self.language.preset).join("table.parquet");
        match &self.table1 {
            Some(path) => Table1::read(path).map(Some),
            None if usual().is_file() => Table1::read(&usual()).map(Some),
            None => Ok(None),
        }
    }

    /// Times all sizes and writes Table 7.
    ///
    /// **Errors** when an option makes no sense, a model has no room on the device, or a file cannot be read or written.
    pub fn run(&self) -> Result<()> {
        set_verbose(self.verbose);
        self.check()?;
        let (sizes, rounds) = self.sizes_and_rounds();
        let pairs = sizes.iter().map(|size| self.configs(*size)).collect::<Result<Vec<_>>>()?;
        let table1 = self.speed_ups()?;
        let devices = self.device.open_group(self.language.replicas)?;
        if self.language.preset == Preset::Paper || self.estimate {
            let all: Vec<&LanguageConfig> = pairs.iter().flatten().collect();
            say(&estimate_profile(devices.device(), &all, rounds + self.warmup_rounds as usize)?);
            if self.estimate {
                return Ok(());
            }
        }
        let preset = self.language.preset.name();
        let folder = self.out.clone().unwrap_or_else(|| default_folder("sel-table7", self.language.preset));
        ensure_writable_folder(&folder)?;
        let stop = stop_on_signal()?;
        let mut record = RunRecord::new("sel-table7", self.seed, &devices.device().describe());
        record.set("preset", json!(preset));
        record.set("configs", json!(pairs));
        record.set("rounds", json!({ "counted": rounds, "before": self.warmup_rounds }));
        record.set("table1", json!(table1.as_ref().map(Table1::path)));
        let mut profiled = Vec::new();
        for (i, (size, pair)) in sizes.iter().zip(&pairs).enumerate() {
            let label = format!("run {}/{}, {size}:", i + 1, sizes.len());
            let apart = self.apart || pair[0].transformer.size() > TOGETHER;
            let [baseline, sel] = self.time(&devices, pair, rounds, apart, &label, &stop)?;
            profiled.push(Profiled { size: *size, beta: self.beta_at(size.width), apart, baseline, sel });
        }
        let note = self.note(&pairs[0][0], rounds, &devices.device().describe());
        write(&profiled, self.variant, table1.as_ref(), &note, &folder, record)
    }

    /// `rounds` of both, in turn or one after the other.
    fn time(
        &self,
        devices: &DeviceGroup,
        pair: &[LanguageConfig; 2],
        rounds: usize,
        apart: bool,
        label: &str,
        stop: &AtomicBool,
    ) -> Result<[Vec<PartTimes>; 2]> {
        let before = self.warmup_rounds as usize;
        let mut progress = Progress::new(label, 2 * (before + rounds) as u64);
        let mut times = [Vec::new(), Vec::new()];
        let groups: &[&[usize]] = if apart { &[&[0], &[1]] } else { &[&[0, 1]] };
        for group in groups {
            let profilers = group.iter().map(|i| Profiler::new(devices, &pair[*i])).collect::<Result<Vec<_>>>()?;
            let mut both: Vec<(usize, Profiler)> = group.iter().copied().zip(profilers).collect();
            for round in 0..before + rounds {
                for (i, profiler) in &mut both {
                    if stop.load(Ordering::Relaxed) {
                        return Err(Error::Interrupted(format!("stopped in {label} nothing is written")));
                    }
                    let taken = profiler.round()?;
                    if round >= before {
                        times[*i].push(taken);
                    }
                    progress.step(["baseline", self.variant.id()][*i]);
                }
                both.reverse(); // neither is always the one that comes first
            }
            both.iter().try_for_each(|(_, profiler)| profiler.check())?;
        }
        Ok(times)
    }

    fn note(&self, config: &LanguageConfig, rounds: usize, device: &str) -> String {
        let s = &config.step;
        format!(
            "Preset {}: {} sequence{} of {} tokens x {} on {}, {} activations{}, {} tokens; medians ± half the \
             interquartile range of {rounds} rounds on {device}.",
            self.language.preset.name(),
            s.batch,
            if s.batch == 1 { "" } else { "s" },
            s.sequence,
            s.accumulation,
            if s.replicas == 1 { "one device".into() } else { format!("each of {} devices", s.replicas) },
            if s.bf16 { "bf16" } else { "f32" },
            if config.transformer.remat { ", blocks computed again in the reverse pass" } else { "" },
            config.tokenizer,
        )
    }
}
