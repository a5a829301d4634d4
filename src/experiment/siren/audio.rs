//! The audio experiment with Figure 5: the Bach recording from every initialisation (2609.30633, Section 4.2).
//!
//! ```
//! use sinexp::data::audio::{Encoding, write_wav};
//! use sinexp::experiment::{Field, audio::recording};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("tone.wav");
//! let samples: Vec<f64> = (0..801).map(|i| 0.25 * (i as f64 * 0.3).sin()).collect();
//! write_wav(&path, &samples, 8000, Encoding::Int16)?;
//! let (name, sound, digest) = recording(Some(&path))?;
//! let field = Field::sound(&name, &sound, digest, 2)?; // every second sample, on [-100, 100]
//! assert_eq!((name.as_str(), field.train.x.dims()), ("tone", &[401, 1][..]));
//! // It is divided by its largest magnitude.
//! assert_eq!(field.train.y.iter().fold(0f32, |m, v| m.max(v.abs())), 1.0);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::path::PathBuf;

use polars::prelude::Column;
use serde_json::json;

use super::arguments::{SirenArguments, Sizes};
use super::cameraman::{collect, loss_curves};
use super::config::{Method, RunConfig};
use super::field::Field;
use super::outcome::training_seconds;
use super::runner::Keep;
use crate::cli::say;
use crate::data::audio::{Sound, fugue_subject};
use crate::data::datasets::{bach, sha256};
use crate::error::Result;
use crate::experiment::output::conclude;
use crate::experiment::summary::Summary;
use crate::report::fitting::loss_figure;
use crate::report::siren::sound::{SoundRow, sound_figure};
use crate::report::style::label;
use crate::report::{FigureFiles, Table, TableFormat};

const NAME: &str = "siren-audio";

/// Order of the paper's figure.
const INITS: [&str; 8] = ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "tanh-pe", "relu", "silu", "gelu"];

/// Samples per block of the gradient: all activations of a block stay near the processor, and a whole recording needs
/// no more memory than a picture.
const BLOCK: usize = 16_384;

/// `--wav`'s recording, else the paper's where it was put, else a synthesised one; with its SHA-256.
///
/// **Errors** when the file cannot be read as a sound.
pub fn recording(given: Option<&PathBuf>) -> Result<(String, Sound, String)> {
    match bach(given.map(PathBuf::as_path)) {
        Some(path) => {
            let name = path.file_stem().map_or_else(|| "sound".into(), |s| s.to_string_lossy().into_owned());
            Ok((name, Sound::read(&path)?, sha256(&path)?))
        }
        None => Ok(("fugue".into(), fugue_subject(44_100, 7.0), "synthesised fugue subject, 7 s".into())),
    }
}

/// Trains what is not done, prints the table, writes it and the figures. Every `stride`-th sample is used.
///
/// **Errors** as the runner's.
pub fn run(arguments: &SirenArguments, preset: Sizes, wav: Option<&PathBuf>, stride: usize) -> Result<()> {
    let sizes = arguments.sizes(preset)?;
    let (name, sound, digest) = recording(wav)?;
    let field = Field::sound(&name, &sound, digest, stride)?;
    let mut runner = arguments.runner(NAME, Keep { fit: true, weights: true })?;
    let mut record = arguments.record(NAME, &sizes, &[&field], &runner);
    let platform = runner.platform();
    let inits = arguments.methods(&INITS);
    let config = |init: &String, seed: u64| {
        // The code that SM20's experiment comes from has omega_h 30.
        let omega_h = if init.starts_with("sm20") { 30.0 } else { 1.0 };
        let method = Method::new(init, 30.0, omega_h, 10.0, !arguments.gelu_erf);
        RunConfig { block: Some(BLOCK), ..arguments.config(&field, method, &sizes, seed, &platform) }
    };
    let configs: Vec<Vec<RunConfig>> =
        inits.iter().map(|init| sizes.seeds.iter().map(|seed| config(init, *seed)).collect()).collect();
    runner.run(NAME, &configs.concat(), |_| Ok(&field))?;
    let Some(outcomes) = collect(&runner, &configs)? else { return Ok(()) };
    record.set("training_seconds", json!(training_seconds(&outcomes)));

    let samples = field.train.y.nrows();
    let note = format!(
        "Preset {}: {name} ({}), {samples} samples, N = {}, L = {}, {} steps, {}.",
        arguments.preset.name(),
        field.about,
        sizes.width,
        sizes.hidden,
        sizes.steps,
        sizes.seeds_in_words()
    );
    let snr: Vec<Summary> =
        outcomes.iter().map(|o| Summary::of(&o.iter().map(|o| o.snr_db).collect::<Vec<_>>())).collect();
    let mse: Vec<f64> = outcomes.iter().map(|o| o.iter().map(|o| o.eval_mse).sum::<f64>() / o.len() as f64).collect();
    let labels: Vec<&str> = inits.iter().map(|i| label(i)).collect();
    let claims: Vec<&str> = inits.iter().map(|i| claim(i)).collect();
    let table = Table::new(
        format!("Audio fitting; 5000 steps in the paper\n{note}"),
        vec![
            Column::new("initialisation".into(), labels),
            Column::new("MSE".into(), mse),
            Column::new("SNR".into(), snr.iter().map(|s| s.mean).collect::<Vec<_>>()),
            Column::new("± SNR".into(), snr.iter().map(|s| s.error).collect::<Vec<_>>()),
            Column::new("paper".into(), claims),
        ],
    )?
    .unit("SNR", "dB")
    .unit("± SNR", "dB")
    .digits("± SNR", 2);
    say(&table.to_string());
    let folder = arguments.folder(NAME);
    let formats = [TableFormat::Csv, TableFormat::Parquet, TableFormat::Markdown];
    let mut files = table.write_all(&folder, "table", &formats)?;

    let truth: Vec<f64> = field.train.y.iter().map(|v| f64::from(*v)).collect();
    let mut rows = Vec::new();
    for (runs, outcomes) in configs.iter().zip(&outcomes) {
        let prediction = Sound::read(&runner.kept(&runs[0], "wav")?)?.samples;
        rows.push(SoundRow { id: runs[0].method.init.clone(), prediction, snr_db: outcomes[0].snr_db });
    }
    let figure = sound_figure(&truth, field.rate.unwrap_or(44_100), &rows, 1000.min(samples), &note);
    files.extend(figure.write(folder.join("fig5"))?);
    files.extend(loss_figure(&loss_curves(&configs, &outcomes), &note).write_with_curves(folder.join("losses"))?);
    record.set("stride", json!(stride));
    record.set("block", json!(BLOCK));
    conclude(record, &files, &folder)
}

fn claim(init: &str) -> &'static str {
    match init {
        "uniform-mm" => "29.33 dB",
        "sm20" => "31.15 dB, the best",
        "cvp26-s0" | "cvp26-s1" => "CVP26 nearly 20 dB below MM",
        "relu" | "silu" | "gelu" => "near 0 dB",
        _ => "",
    }
}
