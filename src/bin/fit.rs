//! Fits a person's own picture or sound with a sine network and writes everything that comes of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Parser;
use ndarray::Array2;
use polars::prelude::Column;
use serde_json::{Value, json};
use sinexp::array::Array;
use sinexp::cli::{self, DeviceArguments, Progress, RunRecord};
use sinexp::data::audio::{Encoding, write_wav};
use sinexp::data::image::{Alpha, write_png};
use sinexp::error::{Error, Result};
use sinexp::experiment::{Color, Field, METHODS, Method, RunConfig, background, field_of_file};
use sinexp::files::{ensure_writable_folder, remove};
use sinexp::interop::safetensors::{self, Tensors};
use sinexp::report::fitting::{FitColumn, fit_figure};
use sinexp::report::siren::sound::{SoundRow, sound_figure};
use sinexp::report::{FigureFiles, Table, TableFormat};
use sinexp::runtime::{Device, set_verbose, tune_allocator};
use sinexp::train::sweep::stable_hash;
use sinexp::train::{Evaluator, Trainer, Training, Weights, mean_squared_error, snr_db};

/// Fits a picture (PNG, JPEG) or a sound (WAV) with a sine network, by full-batch Adam.
///
/// Writes the weights, the reconstruction, the training losses, a comparison figure and a record into --out, and prints
/// training and evaluation error. A run that was stopped goes on where it was when called again with the same options; one that is finished
/// is left as it is.
#[derive(Parser, Debug)]
#[command(name = "fit", version, allow_negative_numbers = true)]
struct Arguments {
    /// The picture or sound
    file: PathBuf,
    /// Folder for results; made if need be. The files of an earlier fit in it are replaced
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Initialisation
    #[arg(long, value_name = "NAME", default_value = "uniform-mm",
          value_parser = clap::builder::PossibleValuesParser::new(METHODS))]
    init: String,
    /// Channels of a picture [default: gray for a gray one, else rgb]
    #[arg(long, value_enum)]
    color: Option<Color>,
    /// What shows through transparent pixels: white, black or R,G,B from 0 to 255 [default: refuse such pictures]
    #[arg(long, value_name = "COLOUR", value_parser = background)]
    background: Option<Alpha>,
    /// Larger side of a picture's training grid, to which it is resized; 0: as it is
    #[arg(long, value_name = "PIXELS", default_value = "128", value_parser = clap::value_parser!(u64).range(0..=4096))]
    train_size: u64,
    /// Larger side of a picture's evaluation grid and reconstruction; 0: as it is
    #[arg(long, value_name = "PIXELS", default_value = "512", value_parser = clap::value_parser!(u64).range(0..=8192))]
    eval_size: u64,
    /// Width N
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u64).range(2..=8192))]
    width: u64,
    /// Hidden layers L after the input layer
    #[arg(long, value_name = "L", default_value = "5", value_parser = clap::value_parser!(u64).range(1..=256))]
    hidden: u64,
    /// Adam steps
    #[arg(long, value_name = "COUNT", default_value = "500", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    steps: u64,
    /// Learning rate
    #[arg(long, value_name = "RATE", default_value_t = 3e-4)]
    learning_rate: f64,
    /// Frequency of the input layer, for initialisations that have one [default: 64 pi / sqrt 6; for a sound 30]
    #[arg(long, value_name = "OMEGA")]
    omega0: Option<f64>,
    /// Frequency of the hidden layers, for initialisations that have one
    #[arg(long, value_name = "OMEGA", default_value_t = 1.0)]
    omega_h: f64,
    /// Standard deviation of the positional encoding's frequencies, for tanh-pe
    #[arg(long, value_name = "SIGMA", default_value_t = 32.0)]
    sigma: f64,
    /// Seed of the initial weights
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Fits again from the start, in place of a finished fit or of one that was stopped
    #[arg(long)]
    restart: bool,
    /// Seconds between checkpoints
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    checkpoint_every: f64,
    #[command(flatten)]
    device: DeviceArguments,
    /// Shows XLA's own messages
    #[arg(short, long)]
    verbose: bool,
}

/// Samples per block of the gradient's sum: larger fields need no more memory than this many samples.
const BLOCK: usize = 16_384;

/// What every fit writes; the figure as PNG and SVG.
const FILES: [&str; 4] = ["weights.safetensors", "losses.parquet", "comparison.png", "comparison.svg"];
const RECONSTRUCTIONS: [&str; 2] = ["reconstruction.png", "reconstruction.wav"];
const CHECKPOINT: &str = "checkpoint.safetensors";

/// Steps between two looks at the clock.
const STRIDE: usize = 16;

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| Ok(fit(&arguments)?))
}

fn fit(arguments: &Arguments) -> Result<()> {
    set_verbose(arguments.verbose);
    // As the network's 32-bit numbers see it.
    let positive = |option: &str, value: f64| match (value as f32).is_finite() && value as f32 > 0.0 {
        true => Ok(()),
        false => Err(Error::argument(option, format!("{value:e}"), "give a positive number that 32 bits can hold")),
    };
    positive("--learning-rate", arguments.learning_rate)?;
    positive("--omega-h", arguments.omega_h)?;
    positive("--sigma", arguments.sigma)?;
    positive("--omega0", arguments.omega0.unwrap_or(1.0))?;
    if arguments.checkpoint_every.is_nan() || arguments.checkpoint_every < 0.0 {
        return Err(Error::argument("--checkpoint-every", arguments.checkpoint_every, "give 0 or more seconds"));
    }
    let alpha = arguments.background.unwrap_or(Alpha::Refuse);
    let sizes = (arguments.train_size as usize, arguments.eval_size as usize);
    let field = field_of_file(&arguments.file, arguments.color, sizes, alpha)?;
    keep_input(&arguments.file, &arguments.out)?;
    let device = arguments.device.open()?;
    let config = config(arguments, &field, &device);
    // Whatever the person can have got wrong is found before anything is written.
    let (siren, start) = (config.siren(&field)?, config.start(&field)?);
    ensure_writable_folder(&arguments.out)?;
    // What a picture was composited over is told by `about` alone.
    let key = stable_hash(&(&config, &field.about))?;
    if !arguments.restart && finished(&arguments.out, &key) {
        let folder = arguments.out.display();
        cli::say(&format!("The fit in {folder} is finished and stays as it is; --restart fits again"));
        return Ok(());
    }
    let samples = field.train.y.nrows();
    cli::say(&format!("{}: {}; training samples: {samples}", arguments.file.display(), field.about));
    let mut record = RunRecord::new("fit", arguments.seed, &device.describe());

    let trainer = Trainer::new(&device, &siren, samples, None, config.block)?;
    let y = Array::from_ndarray(&field.train.y);
    let checkpoint = arguments.out.join(CHECKPOINT);
    let mut training = match checkpoint.is_file() && !arguments.restart {
        true => trainer.resume(&field.train.x, &y, &[start], &checkpoint, &key)?,
        false => trainer.start(&field.train.x, &y, &[start])?,
    };
    let stop = cli::stop_on_signal()?;
    if training.steps() > 0 {
        cli::say(&format!("going on from step {} of {}", training.steps(), config.steps));
    }
    let saving = Saving { checkpoint: &checkpoint, key: &key, every: arguments.checkpoint_every };
    let stopped = train(&mut training, config.steps, &saving, &stop)?;

    let weights = training.weights()?.remove(0);
    // Of a run that stopped, up to the first loss that it did not act on.
    let taken = stopped.unwrap_or(config.steps);
    let losses = training.losses()[0].iter().copied().take(taken + 1).collect::<Vec<f32>>();
    drop(training);
    let evaluator = Evaluator::new(&device, &siren, BLOCK.min(samples))?;
    let train = evaluator.predict(&weights, &field.train.x)?;
    let eval = if field.rate.is_some() { train.clone() } else { evaluator.predict(&weights, &field.eval().x)? };
    let files = write(arguments, &config, &field, Fit { weights, losses, taken, train: &train, eval: &eval })?;
    let (train_mse, eval_mse) =
        (mean_squared_error(&train, &field.train.y), mean_squared_error(&eval, &field.eval().y));
    let (train_snr, eval_snr) = (snr_db(&field.train.y, train_mse), snr_db(&field.eval().y, eval_mse));
    record.set(
        "config",
        json!({ "run": config, "file": arguments.file.to_string_lossy(), "about": field.about, "hash": key }),
    );
    record.set(
        "result",
        json!({ "train_mse": train_mse, "eval_mse": eval_mse, "train_snr_db": train_snr, "eval_snr_db": eval_snr,
                "steps": taken, "stopped_at_step": stopped.map(|s| s + 1) }),
    );
    record.set("files", json!(files));
    record.write(&arguments.out)?;
    cli::say(&format!(
        "train MSE {train_mse:.4e}, SNR {train_snr:.2} dB; eval MSE {eval_mse:.4e}, SNR {eval_snr:.2} dB"
    ));
    cli::say(&format!("Written to {}: {}, run.json", arguments.out.display(), files.join(", ")));
    remove(&checkpoint)?;
    match stopped {
        Some(step) => {
            let cause = if step == 0 { "--omega0 or --omega-h" } else { "--learning-rate" };
            let step = step + 1;
            let kept = "the weights written are those before it";
            let reason = format!("no longer finite at step {step}; {kept}; try a smaller {cause}");
            Err(Error::numeric("training", reason))
        }
        None => Ok(()),
    }
}

/// Whether the folder holds all results of a fit with this hash, whose numbers were finite to the end.
fn finished(folder: &Path, key: &str) -> bool {
    let going_on = folder.join(CHECKPOINT).is_file();
    let record = std::fs::read(folder.join("run.json")).ok().filter(|_| !going_on);
    let Some(record) = record.and_then(|text| serde_json::from_slice::<Value>(&text).ok()) else { return false };
    let files = record["files"]
        .as_array()
        .is_some_and(|files| files.iter().all(|name| name.as_str().is_some_and(|name| folder.join(name).is_file())));
    files && record["config"]["hash"] == key && record["result"]["stopped_at_step"].is_null()
}

/// Refuses a folder in which a result would take the place of the file that is fitted.
fn keep_input(file: &Path, out: &Path) -> Result<()> {
    let file = file.canonicalize().ok();
    let names = FILES.into_iter().chain(RECONSTRUCTIONS).chain(["run.json", CHECKPOINT]);
    match names.map(|name| out.join(name)).find(|path| file.is_some() && path.canonicalize().ok() == file) {
        Some(path) => Err(Error::file(path, "is what is to be fitted and would be replaced; give another --out")),
        None => Ok(()),
    }
}

/// Where checkpoints go, what they are of, and the seconds between them.
struct Saving<'a> {
    checkpoint: &'a Path,
    key: &'a str,
    every: f64,
}

/// Takes the steps that are missing, with checkpoints, the last one when `stop` is set; returns the step at which a number
/// was no longer finite.
///
/// A loss that is no longer finite belongs to the step (counted from 0) that was not taken.
fn train(training: &mut Training, steps: usize, saving: &Saving, stop: &AtomicBool) -> Result<Option<usize>> {
    let mut progress = Progress::new("fit", steps.saturating_sub(training.steps()).div_ceil(STRIDE).max(1) as u64);
    let mut saved = Instant::now();
    while training.steps() < steps && training.stopped()[0].is_none() {
        training.advance(STRIDE.min(steps - training.steps()))?;
        let loss = training.losses()[0].last().copied().unwrap_or(f32::NAN);
        progress.step(&format!("step {}/{steps}, loss {loss:.3e}", training.steps()));
        let asked = stop.load(Ordering::Relaxed);
        if asked || saved.elapsed().as_secs_f64() >= saving.every {
            training.save(saving.checkpoint, saving.key)?;
            saved = Instant::now();
        }
        if asked {
            let step = training.steps();
            return Err(Error::Interrupted(format!("stopped after step {step}; the same command goes on from there")));
        }
    }
    Ok(training.stopped()[0])
}

fn config(arguments: &Arguments, field: &Field, device: &Device) -> RunConfig {
    let omega0 = arguments.omega0.unwrap_or_else(|| field.omega0());
    RunConfig {
        version: 1,
        field: field.id.clone(),
        method: Method::new(&arguments.init, omega0, arguments.omega_h, arguments.sigma, true),
        width: arguments.width as usize,
        hidden: arguments.hidden as usize,
        steps: arguments.steps as usize,
        seed: arguments.seed,
        learning_rate: arguments.learning_rate,
        matrix_rate: 1.0,
        output_scale: 1.0,
        eps: 1e-8,
        block: Some(BLOCK).filter(|b| *b < field.train.y.nrows()),
        platform: device.platform().to_lowercase(),
    }
}

/// What came of the training.
struct Fit<'a> {
    weights: Weights,
    losses: Vec<f32>,
    /// Steps.
    taken: usize,
    train: &'a Array2<f32>,
    eval: &'a Array2<f32>,
}

/// Weights, reconstruction, losses and figure; their names.
fn write(arguments: &Arguments, config: &RunConfig, field: &Field, fit: Fit) -> Result<Vec<&'static str>> {
    let Fit { weights, losses, taken, train, eval } = fit;
    let out = |name: &str| arguments.out.join(name);
    // An earlier fit's record would tell wrong things of files that are already this one's; the new one comes last.
    for old in ["run.json"].into_iter().chain(RECONSTRUCTIONS) {
        remove(out(old))?;
    }
    let json = serde_json::to_string(config).map_err(|e| Error::numeric("configuration", e))?;
    let metadata = [("config".to_owned(), json)].into();
    safetensors::write(out("weights.safetensors"), &Tensors { tensors: weights, metadata })?;
    let steps: Vec<i64> = (1..=losses.len() as i64).collect();
    let columns = vec![Column::new("step".into(), steps), Column::new("loss".into(), losses)];
    Table::new("Training loss before each step", columns)?.write(out("losses.parquet"), TableFormat::Parquet)?;
    let snr = snr_db(&field.eval().y, mean_squared_error(eval, &field.eval().y));
    let note = format!(
        "{}: {}, N = {}, L = {}, {taken} steps",
        field.id.name, config.method.init, config.width, config.hidden
    );
    let (reconstruction, figure) = match field.rate {
        Some(rate) => {
            // A run that stopped may leave values that no file holds.
            let finite = |v: f64| if v.is_nan() { 0.0 } else { v.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) };
            let undone: Vec<f64> = eval.iter().map(|v| finite(f64::from(*v) * field.peak)).collect();
            // Integers end at 1, which a file of floats may exceed.
            let encoding = if field.peak > 1.0 { Encoding::Float32 } else { Encoding::Int16 };
            write_wav(out("reconstruction.wav"), &undone, rate, encoding)?;
            let values = |y: &Array2<f32>| -> Vec<f64> { y.iter().map(|v| f64::from(*v)).collect() };
            let row = SoundRow { id: config.method.init.clone(), prediction: values(eval), snr_db: snr };
            let truth = values(&field.eval().y);
            ("reconstruction.wav", sound_figure(&truth, rate, &[row], 1000.min(truth.len()), &note))
        }
        None => {
            let shape = &field.eval().shape;
            write_png(out("reconstruction.png"), field.pixels(eval, shape)?.view())?;
            let of = |y: &Array2<f32>, shape: &[usize]| field.raster(y, shape);
            let truth = (of(&field.train.y, &field.train.shape)?, of(&field.eval().y, shape)?);
            let column = FitColumn {
                id: config.method.init.clone(),
                train: of(train, &field.train.shape)?,
                eval: of(eval, shape)?,
                snr_db: snr,
            };
            let (h, w) = (shape[0], shape[1]);
            let zoom = (h * 3 / 8, w * 3 / 8, h.div_ceil(4), w.div_ceil(4));
            ("reconstruction.png", fit_figure((&truth.0, &truth.1), &[column], zoom, &note)?)
        }
    };
    figure.write(out("comparison"))?;
    Ok(FILES.into_iter().chain([reconstruction]).collect())
}
