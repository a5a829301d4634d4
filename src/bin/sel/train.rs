//! `sel train`.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::json;
use sinexp::cli::{DeviceArguments, Progress, RunRecord, say, stop_on_signal};
use sinexp::data::text::Dataset;
use sinexp::error::Error;
use sinexp::experiment::sel::{DataArguments, LanguageArguments, LanguageSizes, SelArguments};
use sinexp::files::ensure_writable_folder;
use sinexp::runtime::set_verbose;
use sinexp::train::language::{
    Checkpoint, LanguageConfig, LanguageTrainer, Metrics, Outcome, Pretrained, Saving, checkpoint, metrics, train,
};

use crate::init::{init_sizes, starting_from};
use crate::options::{first_difference, given};

const CHECKPOINT_EVERY: &str = "500";
const KEEP: &str = "2";

/// Trains a transformer on text. Its folder holds run.json, metrics.parquet and checkpoints.
///
/// Ctrl-C finishes the step, writes a checkpoint and exits with 130; a second one exits at once. `--resume` goes on from
/// the newest checkpoint of the folder, or from the one given, with the options that the run was begun with; they may be
/// given again, but not others. On CPU the numbers are the same bits as those of a run that was never stopped.
#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub struct Arguments {
    /// Folder of the run; made if need be [default: that of the checkpoint given to --resume, or else runs/sel]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Goes on from the newest checkpoint in the folder, or from this one
    #[arg(long, value_name = "CHECKPOINT", num_args = 0..=1)]
    resume: Option<Option<PathBuf>>,
    /// Starts from these weights: a file of `sel fold` (with --mode standard), or what `sel invert` made of one
    #[arg(long, value_name = "WEIGHTS", conflicts_with = "resume")]
    init: Option<PathBuf>,
    #[command(flatten)]
    sel: SelArguments,
    #[command(flatten)]
    language: LanguageArguments,
    #[command(flatten)]
    data: DataArguments,
    /// Seed of the start and of the batches
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    device: DeviceArguments,
    /// Updates between checkpoints
    #[arg(long, value_name = "COUNT", default_value = CHECKPOINT_EVERY)]
    checkpoint_every: usize,
    /// Checkpoints that are kept
    #[arg(long, value_name = "COUNT", default_value = KEEP, value_parser = clap::value_parser!(u16).range(1..))]
    keep: u16,
    /// Shows XLA's own messages
    #[arg(short, long)]
    verbose: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    set_verbose(arguments.verbose);
    let given = arguments.resume.as_ref().and_then(Option::as_deref);
    let given = given.map(|path| path.canonicalize().unwrap_or(path.to_owned()));
    let home = given.as_deref().and_then(checkpoint::run_of);
    let folder = arguments.out.as_deref().or(home).unwrap_or(Path::new("runs/sel"));
    let from = match &arguments.resume {
        None => None,
        Some(None) => Some(Checkpoint::newest(folder)?),
        Some(Some(path)) => Some(Checkpoint::read(path)?),
    };
    let same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    let elsewhere = given.is_some() && home.is_none_or(|run| !same(run, folder));
    if (from.is_none() || elsewhere) && !checkpoint::list(folder).is_empty() {
        let reason = "holds a run already: --resume goes on with it, another --out begins a new one";
        return Err(Error::file(folder, reason).into());
    }
    let init = arguments.init.as_deref().map(Pretrained::open).transpose()?;
    let mut preset = LanguageSizes::of(arguments.language.preset);
    if let Some(init) = &init {
        init_sizes(&mut preset, init)?;
    }
    let sizes = arguments.language.sizes(preset);
    let tokenizer = match &from {
        Some(checkpoint) => checkpoint.config.tokenizer.parse()?,
        None => sizes.tokenizer,
    };
    let data = arguments.data.dataset(tokenizer)?;
    let asked = || arguments.language.config(&sizes, arguments.sel.projection(sizes.width)?, arguments.seed, &data);
    let config = match &from {
        Some(checkpoint) => {
            let config = resumed(checkpoint, &data)?;
            if settles_the_run() {
                differing(&config, &asked()?)?;
            }
            config
        }
        None => match &init {
            Some(init) => starting_from(init, asked()?)?,
            None => asked()?,
        },
    };
    let metrics = match &from {
        Some(checkpoint) => Metrics::read(home.filter(|_| elsewhere).unwrap_or(folder), Some(checkpoint.step))?,
        None => Metrics::default(),
    };
    if let (Some(loss), true) = (metrics.final_eval_loss(), from.as_ref().is_some_and(|c| c.step >= config.steps())) {
        say(&format!(
            "The run in {} is complete: eval loss {loss:.4} after {} steps",
            folder.display(),
            config.steps()
        ));
        return Ok(());
    }
    config.check_data(&data)?;
    let devices = arguments.device.open_group(config.step.replicas)?;
    ensure_writable_folder(folder)?;
    let mut record = RunRecord::new("sel train", config.seed, &devices.device().describe());
    record.set("config", json!(config));
    record.set("data", json!(data.description()));
    let path = record.write(folder)?;

    let begun = from.as_ref().map_or(0, |checkpoint| checkpoint.step);
    say(&introduction(&config, begun));
    let trainer = LanguageTrainer::new(&devices, &config)?;
    say(&format!("compiled in {:.1} s", trainer.compile_time().as_secs_f64()));
    let mut run = match from {
        Some(checkpoint) => trainer.resume(&data, checkpoint, metrics)?,
        None => match init {
            Some(init) => trainer.start_from(&data, config.seed, init.parameters)?,
            None => trainer.start(&data, config.seed)?,
        },
    };
    let stop = stop_on_signal()?;
    let mut progress = Progress::new("train", (config.steps() - begun) as u64);
    let saving = Saving { every: arguments.checkpoint_every, keep: usize::from(arguments.keep) };
    let mut eval = String::new();
    let outcome = train(&mut run, folder, saving, &stop, |run, row| {
        if let Some(loss) = row.and_then(|row| row.eval_loss) {
            eval = format!(", eval loss {loss:.4}");
        }
        // Losses are read in groups: the newest may be some steps old.
        let loss = row.map(|row| row.loss).filter(|loss| !loss.is_nan());
        let loss = loss.map_or(String::new(), |loss| format!(", loss {loss:.4}"));
        progress.step(&format!("step {}/{}{loss}{eval}", run.steps(), config.steps()));
    });
    drop(progress);
    let outcome = outcome?;
    record.set("compile_seconds", json!(trainer.compile_time().as_secs_f64()));
    record.set("steps", json!(run.steps()));
    record.set("eval_loss", json!(run.metrics().final_eval_loss()));
    record.set("files", json!([path, metrics::path(folder)]));
    record.write(folder)?;
    match outcome {
        Outcome::Finished => {
            let loss = run.metrics().final_eval_loss().unwrap_or(f64::NAN);
            say(&format!("eval loss {loss:.4} after {} steps\nWritten to {}", run.steps(), folder.display()));
            Ok(())
        }
        Outcome::Stopped => Err(Error::Interrupted(stopped(run.steps(), folder, arguments)).into()),
    }
}

/// Where it stopped, and the command that goes on.
fn stopped(step: usize, folder: &Path, arguments: &Arguments) -> String {
    let mut words = vec![format!("sel train --resume --out {}", folder.display())];
    words.extend(arguments.data.corpus.as_ref().map(|path| format!("--corpus {}", path.display())));
    let unusual = |name: &str, value: &dyn Display, default: &str| {
        Some(value.to_string()).filter(|value| value != default).map(|value| format!("--{name} {value}"))
    };
    words.extend(arguments.device.words());
    words.extend(unusual("checkpoint-every", &arguments.checkpoint_every, CHECKPOINT_EVERY));
    words.extend(unusual("keep", &arguments.keep, KEEP));
    format!("stopped after step {step}; go on with: {}", words.join(" "))
}

/// The run of a checkpoint, which needs the tokens that it was begun with.
fn resumed(checkpoint: &Checkpoint, data: &Dataset) -> Result<LanguageConfig> {
    let config = checkpoint.config.clone();
    let given = &data.description().corpus_sha256[..12];
    if !config.corpus.ends_with(given) {
        let (name, wanted) = (data.corpus(), &config.corpus);
        let reason = format!("another text (sha256 {given}) than the run was begun with, {wanted}; give that one");
        return Err(Error::argument("--corpus", name, reason).into());
    }
    if config.tokenizer != data.tokenizer().id() {
        let reason = format!("the run was begun with {}", config.tokenizer);
        return Err(Error::argument("--tokenizer", data.tokenizer().id(), reason).into());
    }
    Ok(config)
}

/// Whether the command line has an option that a run's numbers depend on.
fn settles_the_run() -> bool {
    const FREE: [&str; 7] = ["out", "resume", "corpus", "tokenizer", "checkpoint_every", "keep", "verbose"];
    const DEVICE: [&str; 5] = ["device", "deterministic", "autotune_cache", "memory_fraction", "no_preallocate"];
    given().iter().any(|id| !FREE.contains(&id.as_str()) && !DEVICE.contains(&id.as_str()))
}

/// Refuses options that make another run than the checkpoint's, by the first choice that differs.
fn differing(config: &LanguageConfig, asked: &LanguageConfig) -> Result<()> {
    let Some((name, begun, asked)) = first_difference("", &json!(config), &json!(asked)) else { return Ok(()) };
    let reason =
        format!("the run was begun with {begun}; leave its options out, or begin a new run with another --out");
    Err(Error::argument(name, asked, reason).into())
}

fn introduction(config: &LanguageConfig, begun: usize) -> String {
    let t = &config.transformer;
    let trained: usize = config.model().parameters().iter().map(|p| p.dims.iter().product::<usize>()).sum();
    let from = if begun > 0 { format!(", from step {begun}") } else { String::new() };
    format!(
        "width {}, depth {}, {} heads, {} weights, {trained} trained numbers; {} tokens a step, {} steps{from}; {} of {}",
        t.width,
        t.depth,
        t.heads,
        t.size(),
        config.step.tokens_per_step(),
        config.steps(),
        config.tokenizer,
        config.corpus
    )
}
