//! `sel train`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::json;
use sinexp::cli::{Progress, RunRecord, say, stop_on_signal};
use sinexp::error::Error;
use sinexp::experiment::language::{DataArguments, LanguageArguments, LanguageSizes, SelArguments};
use sinexp::files::ensure_writable_folder;
use sinexp::runtime::{DeviceGroup, DeviceOptions, set_verbose};
use sinexp::train::language::{
    Checkpoint, LanguageConfig, LanguageTrainer, Metrics, Outcome, Saving, checkpoint, metrics, train,
};

/// Trains a transformer on text. Its folder holds run.json, metrics.parquet and checkpoints.
///
/// Ctrl-C finishes the step, writes a checkpoint and exits with 130; a second one exits at once. `--resume` goes on from
/// the newest checkpoint of the folder, or from the one given, with the options that the run was begun with; on CPU the
/// numbers are the same bits as those of a run that was never stopped.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Folder of the run; made if need be
    #[arg(long, value_name = "FOLDER", default_value = "runs/sel")]
    out: PathBuf,
    /// Goes on from the newest checkpoint in the folder, or from this one
    #[arg(long, value_name = "CHECKPOINT", num_args = 0..=1)]
    resume: Option<Option<PathBuf>>,
    #[command(flatten)]
    sel: SelArguments,
    #[command(flatten)]
    language: LanguageArguments,
    #[command(flatten)]
    data: DataArguments,
    /// Seed of the start and of the batches
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to compute: cpu, cuda, tpu or plugin:/path/to/plugin.so
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Updates between checkpoints
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    checkpoint_every: usize,
    /// Checkpoints that are kept
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    keep: u16,
    /// Shows XLA's own messages
    #[arg(short, long)]
    verbose: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    set_verbose(arguments.verbose);
    let folder = &arguments.out;
    let from = match &arguments.resume {
        None => None,
        Some(None) => Some(Checkpoint::newest(folder)?),
        Some(Some(path)) => Some(Checkpoint::read(path)?),
    };
    if from.is_none() && !checkpoint::list(folder).is_empty() {
        let reason = "holds a run already: --resume goes on with it, another --out begins a new one";
        return Err(Error::file(folder, reason).into());
    }
    ensure_writable_folder(folder)?;
    let sizes = arguments.language.sizes(LanguageSizes::of(arguments.language.preset));
    let tokenizer = match &from {
        Some(checkpoint) => checkpoint.config.tokenizer.parse()?,
        None => sizes.tokenizer,
    };
    let data = arguments.data.dataset(tokenizer)?;
    let config = match &from {
        Some(checkpoint) => resumed(checkpoint, &data.description().corpus_sha256)?,
        None => arguments.language.config(&sizes, arguments.sel.projection(sizes.width)?, arguments.seed, &data)?,
    };
    let devices = DeviceGroup::open(&arguments.device, config.step.replicas, &DeviceOptions::default())?;
    let mut record = RunRecord::new("sel train", config.seed, &devices.device().describe());
    record.set("config", json!(config));
    record.set("preset", json!(arguments.language.preset.name()));
    record.set("data", json!(data.description()));
    let path = record.write(folder)?;

    let trainer = LanguageTrainer::new(&devices, &config)?;
    let begun = from.as_ref().map_or(0, |checkpoint| checkpoint.step);
    say(&introduction(&config, &trainer, begun));
    let mut run = match from {
        Some(checkpoint) => {
            let metrics = Metrics::read(folder, checkpoint.step)?;
            trainer.resume(&data, checkpoint, metrics)?
        }
        None => trainer.start(&data, config.seed)?,
    };
    let stop = stop_on_signal()?;
    let mut progress = Progress::new("step", (config.steps() - begun) as u64);
    let saving = Saving { every: arguments.checkpoint_every, keep: usize::from(arguments.keep) };
    let mut eval = String::new();
    let outcome = train(&mut run, folder, saving, &stop, |_, row| {
        if let Some(row) = row {
            if let Some(loss) = row.eval_loss {
                eval = format!(", eval {loss:.4}");
            }
            progress.step(&format!("loss {:.4}{eval}", row.loss));
        }
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
        Outcome::Stopped => Err(Error::Interrupted(stopped(run.steps(), folder)).into()),
    }
}

fn stopped(step: usize, folder: &Path) -> String {
    format!("stopped after step {step}; go on with: sel train --resume --out {}", folder.display())
}

/// The run of a checkpoint, which needs the text that it was begun with.
fn resumed(checkpoint: &Checkpoint, corpus: &str) -> Result<LanguageConfig> {
    let config = checkpoint.config.clone();
    if !config.corpus.ends_with(&corpus[..12]) {
        let reason = format!("another text than the run was begun with ({})", config.corpus);
        return Err(Error::argument("--corpus", &corpus[..12], reason).into());
    }
    if checkpoint.step >= config.steps() {
        let reason = format!("the run is complete: all {} steps are taken", config.steps());
        return Err(Error::argument("--resume", checkpoint.step, reason).into());
    }
    Ok(config)
}

fn introduction(config: &LanguageConfig, trainer: &LanguageTrainer, begun: usize) -> String {
    let t = &config.transformer;
    let trained: usize = trainer.model().parameters().iter().map(|p| p.dims.iter().product::<usize>()).sum();
    let from = if begun > 0 { format!(", from step {begun}") } else { String::new() };
    format!(
        "width {}, depth {}, {} heads, {} weights, {trained} trained numbers; {} tokens a step, {} steps{from}; {} of {}; compiled in {:.1} s",
        t.width,
        t.depth,
        t.heads,
        t.size(),
        config.step.tokens_per_step(),
        config.steps(),
        config.tokenizer,
        config.corpus,
        trainer.compile_time().as_secs_f64()
    )
}
