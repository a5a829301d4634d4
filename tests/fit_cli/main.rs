//! The `fit` program from outside, with the files that people have: each works or gets one clear line, results agree
//! with what is printed, and nothing of an earlier fit is taken for this one's.

mod inputs;
mod results;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use image::{ImageFormat, RgbImage, RgbaImage};
use tempfile::TempDir;

const SMALL: [&str; 10] =
    ["--width", "16", "--hidden", "2", "--steps", "20", "--train-size", "16", "--eval-size", "24"];

fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary folder")
}

fn command(file: &Path, out: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fit"));
    // Options given twice are a mistake, so the small ones give way.
    let small = SMALL.chunks(2).filter(|pair| !options.contains(&pair[0])).flatten();
    command.arg(file).arg("--out").arg(out).args(small).args(options);
    command
}

fn fit(file: &Path, out: &Path, options: &[&str]) -> Output {
    command(file, out, options).output().expect("fit starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it, expects success, and gives what it printed.
fn fitted(file: &Path, out: &Path, options: &[&str]) -> String {
    let output = fit(file, out, options);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{}: {errors}", file.display());
    assert!(errors.lines().all(|l| l.starts_with("fit ")), "only progress: {errors}");
    assert_eq!(names(out), results(if out.join("reconstruction.wav").exists() { "wav" } else { "png" }));
    text(&output.stdout)
}

/// Expects one `error:` line that holds every one of `parts`, exit code 2, nothing printed and no output folder.
fn refused(file: &Path, options: &[&str], parts: &[&str]) {
    let folder = folder();
    let out = folder.path().join("out");
    let output = fit(file, &out, options);
    let errors = text(&output.stderr);
    let asked = format!("{} {options:?}: {errors}", file.display());
    assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{asked}");
    assert!(errors.starts_with("error: ") && errors.len() < 320, "{asked}");
    for part in parts {
        assert!(errors.contains(part), "{asked} does not say `{part}`");
    }
    assert!(output.stdout.is_empty() && !out.exists(), "{asked}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("folder");
    let mut all: Vec<String> = entries.map(|e| e.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

fn results(kind: &str) -> Vec<String> {
    let reconstruction = format!("reconstruction.{kind}");
    ["comparison.png", "comparison.svg", "losses.parquet", &reconstruction, "run.json", "weights.safetensors"]
        .map(str::to_owned)
        .to_vec()
}

fn color_at(x: u32, y: u32) -> [u8; 3] {
    let (x, y) = (f64::from(x), f64::from(y));
    [(x / 7.0).sin(), (y / 5.0).cos(), ((x + y) / 9.0).sin()].map(|v| (127.0 + 100.0 * v) as u8)
}

/// A picture of 40 x 30 pixels as a PNG.
fn picture(folder: &Path, name: &str, pixel: impl Fn(u32, u32) -> [u8; 3]) -> PathBuf {
    let path = folder.join(name);
    RgbImage::from_fn(40, 30, |x, y| image::Rgb(pixel(x, y))).save_with_format(&path, ImageFormat::Png).expect("saved");
    path
}

fn colors(folder: &Path) -> PathBuf {
    picture(folder, "colors.png", color_at)
}

/// Transparent on the left.
fn sticker(folder: &Path) -> PathBuf {
    let path = folder.join("sticker.png");
    let pixel = |x, y| {
        let [r, g, b] = color_at(x, y);
        image::Rgba([r, g, b, if x < 15 { 40 } else { 255 }])
    };
    RgbaImage::from_fn(40, 30, pixel).save(&path).expect("saved");
    path
}

/// 0.05 s of two decaying tones.
fn tones() -> Vec<f64> {
    (0..400).map(|i| f64::from(i) / 8000.0).map(|t| 0.3 * (1400.0 * t).sin() * (-9.0 * t).exp()).collect()
}

/// As a recorder writes it: stereo, 24 bits.
fn recording(folder: &Path) -> PathBuf {
    let path = folder.join("recording.wav");
    let spec =
        hound::WavSpec { channels: 2, sample_rate: 8000, bits_per_sample: 24, sample_format: hound::SampleFormat::Int };
    let mut writer = hound::WavWriter::create(&path, spec).expect("created");
    for v in tones() {
        for gain in [0.5, 1.0] {
            writer.write_sample((gain * v * 8_388_607.0) as i32).expect("written");
        }
    }
    writer.finalize().expect("complete");
    path
}
