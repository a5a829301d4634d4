//! The `explain-init` program from outside: its numbers are those of the laws that networks are drawn from, with and
//! without a field, in every format; and one clear line for each mistake.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use image::{Rgb, RgbImage, Rgba, RgbaImage};
use ndarray::{Array1, Array2, ArrayD};
use polars::prelude::{DataFrame, ParquetReader, SerReader};
use sinexp::analysis::moments::moments;
use sinexp::data::audio::{Encoding, Sound, write_wav};
use sinexp::data::grid::spacing;
use sinexp::data::image::{Alpha, Picture};
use sinexp::data::resize::resize;
use sinexp::experiment::{METHODS, Method};
use sinexp::nn::siren_init::Moments;

fn explain(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_explain-init")).args(arguments).output().expect("explain-init starts")
}

/// Expects success and nothing on stderr; what it printed.
fn explained(arguments: &[&str]) -> String {
    let output = explain(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{arguments:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Expects one `error:` line that holds every one of `parts`, exit code 2, and nothing printed.
fn refused(arguments: &[&str], parts: &[&str]) {
    let output = explain(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{arguments:?}: {errors}");
    assert!(errors.starts_with("error: ") && output.stdout.is_empty(), "{arguments:?}: {errors}");
    for part in parts {
        assert!(errors.contains(part), "{arguments:?}: `{errors}` does not say `{part}`");
    }
}

fn picture(folder: &Path) -> PathBuf {
    let path = folder.join("colors.png");
    let level = |v: f64| (127.0 + 100.0 * v) as u8;
    let pixel = |x: u32, y: u32| {
        let (x, y) = (f64::from(x), f64::from(y));
        Rgb([level((x / 7.0).sin()), level((y / 5.0).cos()), level(((x + y) / 9.0).sin())])
    };
    RgbImage::from_fn(40, 30, pixel).save(&path).expect("saved");
    path
}

/// One row of the table.
#[derive(Debug)]
struct Row {
    init: String,
    parameter: String,
    shape: String,
    mean: f64,
    std: f64,
    omega: Option<f64>,
    effective: f64,
}

fn rows(path: &Path) -> Vec<Row> {
    let frame: DataFrame = ParquetReader::new(File::open(path).expect("a table")).finish().expect("Parquet");
    let column = |name: &str| frame.column(name).unwrap_or_else(|_| panic!("no column {name}")).clone();
    let text = |name: &str, i: usize| column(name).str().expect("text").get(i).expect("a value").to_owned();
    let number = |name: &str, i: usize| column(name).f64().expect("numbers").get(i);
    let row = |i| Row {
        init: text("init", i),
        parameter: text("parameter", i),
        shape: text("shape", i),
        mean: number("mean", i).expect("a mean"),
        std: number("std", i).expect("a deviation"),
        omega: number("omega", i),
        effective: number("omega x std", i).expect("a spread"),
    };
    (0..frame.height()).map(row).collect()
}

/// That the rows of `init` are the laws of the network with these moments: one row per parameter, hidden layers as one.
fn agree(rows: &[Row], init: &str, omega0: f64, m: &Moments, hidden: usize) {
    let method = Method::new(init, omega0, 1.0, 32.0, true);
    let law = method.with_moments(|| Ok(m.clone())).expect("known");
    let siren = law.siren(m.omega.nrows(), 24, hidden, m.mu.len());
    let laws = law.laws(&siren);
    let of_init: Vec<&Row> = rows.iter().filter(|r| r.init == init).collect();
    let mut seen = 0;
    for row in &of_init {
        // `W.1 .. W.5` stands for five parameters.
        let (first, last) = row.parameter.split_once(" .. ").unwrap_or((&row.parameter, &row.parameter));
        let layer = |name: &str| name.split_once('.').map_or(0, |(_, l)| l.parse::<usize>().expect("a layer"));
        for l in layer(first)..=layer(last) {
            let name = if first == "pe" { "pe".to_owned() } else { format!("{}.{l}", &first[..1]) };
            let (_, dims, law) = laws.iter().find(|(n, _, _)| *n == name).unwrap_or_else(|| panic!("{init} {name}"));
            assert_eq!((row.mean, row.std), (law.mean(), law.std()), "{init} {name}");
            assert_eq!(row.shape, format!("{dims:?}"), "{init} {name}");
            let omega = match (init, l) {
                _ if matches!(init, "tanh-pe" | "relu" | "silu" | "gelu") || l > hidden => None,
                ("uniform-mm", _) => Some(1.0),
                (_, 0) => Some(omega0),
                _ => Some(1.0),
            };
            assert_eq!(row.omega, omega, "{init} {name}");
            assert_eq!(row.effective, omega.unwrap_or(1.0) * row.std, "{init} {name}");
            seen += 1;
        }
    }
    assert_eq!(seen, laws.len(), "{init}: {of_init:?}");
}

#[test]
fn every_initialisation_s_numbers_are_its_laws() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let base = ["--width", "24", "--hidden", "5", "--inputs", "3", "--outputs", "2", "--omega0", "40", "--out"];
    let with = |name: &str| explained(&[&base[..], &[&file(name)]].concat());
    let printed = with("a.parquet");
    let rows = rows(&folder.path().join("a.parquet"));
    let unit = Moments { mu: Array1::zeros(2), sigma: Array2::eye(2), omega: Array2::eye(3) };
    METHODS.iter().for_each(|init| agree(&rows, init, 40.0, &unit, 5));
    // What is printed and the other formats hold the same rows, each on one line.
    let line = |text: &str, row: &Row| {
        text.lines().any(|l| l.contains(&row.init) && l.contains(&row.parameter) && l.contains(&row.shape))
    };
    assert_eq!(printed, with("a.csv"));
    assert_eq!(printed, with("a.md"));
    let [csv, markdown] = ["a.csv", "a.md"].map(|name| fs::read_to_string(file(name)).expect("a table"));
    assert_eq!(csv.lines().count(), 1 + rows.len());
    assert_eq!(markdown.lines().filter(|l| l.starts_with("| ") && l.ends_with(" |")).count(), 1 + rows.len());
    assert!(rows.iter().all(|r| line(&printed, r) && line(&markdown, r)), "{printed}");
    let body = printed.lines().skip_while(|l| !l.starts_with("---")).skip(1).count();
    assert_eq!(body, rows.len(), "{printed}");
    // Known by heart: 1/N_in, sqrt(6/N), the variance of U(-pi, pi).
    for part in ["U(-0.3333, 0.3333)", "U(-0.5000, 0.5000)", "rows ~ N(0, [[0.5000, 0, 0], [0, 0.5000, 0]", "1.814"] {
        assert!(printed.contains(part), "{part} is missing in\n{printed}");
    }
}

#[test]
fn a_field_s_moments_are_matched() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let table = folder.path().join("a.parquet");
    let out = table.display().to_string();
    let path = picture(folder.path());
    let file = path.display().to_string();
    let base = ["--width", "24", "--hidden", "1", "--init", "uniform-mm,sm20", "--out", &out, "--field"];
    let printed = explained(&[&base[..], &[&file, "--train-size", "20"]].concat());
    let pixels = resize(Picture::read(&path, Alpha::Refuse).expect("read").pixels.view(), (15, 20));
    let m = moments(pixels.clone().into_dyn().view(), &spacing(&[15, 20], -1.0, 1.0)).expect("moments");
    let found = rows(&table);
    let omega0 = 64.0 * std::f64::consts::PI / 6f64.sqrt();
    assert!((found.iter().find_map(|r| r.omega.filter(|o| *o > 2.0)).expect("sm20's") - omega0).abs() < 1e-9);
    agree(&found, "uniform-mm", omega0, &m, 1);
    let of = |parameter: &str| found.iter().find(|r| r.parameter == parameter).expect("a row");
    // The output's bias is the mean, and its matrix gives half the variance times N.
    assert!((of("b.2").mean - pixels.mean().expect("pixels")).abs() < 1e-12);
    let want = (m.sigma.diag().mean().expect("three") * 2.0 / 24.0).sqrt();
    assert!((of("W.2").std - want).abs() < 1e-15);
    assert!(printed.contains("uniform-mm matches colors (PNG, 8-bit RGB, 40 x 30)"), "{printed}");
    assert!(printed.contains("N_in = 2, N_out = 3"), "{printed}");

    let sound = folder.path().join("tone.wav");
    let tone: Vec<f64> = (0..500).map(|i| 0.4 * (f64::from(i) * 0.2).sin()).collect();
    write_wav(&sound, &tone, 8000, Encoding::Float32).expect("written");
    let file = sound.display().to_string();
    let printed = explained(&[&base[..], &[&file]].concat());
    let samples = Sound::read(&sound).expect("read").normalized().expect("not silent");
    let field = ArrayD::from_shape_vec(vec![500, 1], samples).expect("one channel");
    let m = moments(field.view(), &spacing(&[500], -100.0, 100.0)).expect("moments");
    let found = rows(&table);
    agree(&found, "uniform-mm", 30.0, &m, 1);
    agree(&found, "sm20", 30.0, &m, 1);
    assert!(printed.contains("N_in = 1, N_out = 1") && printed.contains("WAV, 32-bit float"), "{printed}");
}

#[test]
fn fields_without_moments_are_refused_only_where_they_are_matched() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    RgbImage::from_pixel(20, 20, Rgb([9, 99, 199])).save(path("constant.png")).expect("saved");
    refused(&["--field", &path("constant.png")], &["field `constant`", "channel 0 is constant", "sm20"]);
    let printed = explained(&["--field", &path("constant.png"), "--init", "relu,sm20"]);
    assert!(printed.contains("N_out = 3") && !printed.contains("uniform-mm"), "{printed}");
    RgbImage::from_fn(20, 20, |x, y| Rgb([(9 * x + y) as u8; 3])).save(path("gray.png")).expect("saved");
    assert!(explained(&["--field", &path("gray.png")]).contains("N_out = 1"));
    refused(&["--field", &path("gray.png"), "--color", "lab"], &["every pixel is gray", "--color gray"]);
    let sticker = |x: u32, y: u32| Rgba([(9 * x) as u8, (9 * y) as u8, (x * y) as u8, if x < 9 { 0 } else { 255 }]);
    RgbaImage::from_fn(20, 20, sticker).save(path("sticker.png")).expect("saved");
    refused(&["--field", &path("sticker.png")], &["transparent in 180 of 400 pixels", "--background"]);
    let over = |back: &str| explained(&["--field", &path("sticker.png"), "--background", back, "--init", "uniform-mm"]);
    assert!(over("white").contains("composited over white") && over("white") != over("black"));
}

#[test]
fn mistakes_get_one_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = picture(folder.path()).display().to_string();
    let path = |name: &str| folder.path().join(name).display().to_string();
    refused(&["--init", "siren"], &["--init", "siren", "uniform-mm"]);
    refused(&["--width", "1"], &["--width", "1"]);
    refused(&["--hidden", "0"], &["--hidden", "0"]);
    refused(&["--inputs", "0"], &["--inputs", "0"]);
    for option in ["--omega0", "--omega-h", "--sigma"] {
        for value in ["nan", "inf", "0", "-3"] {
            refused(&[option, value], &[option, "give a positive number"]);
        }
    }
    refused(&["--field", &file, "--outputs", "2"], &["--field", "--outputs"]);
    refused(&["--color", "gray"], &["--field"]);
    refused(&["--field", &path("none.png")], &["none.png", "no such file"]);
    refused(&["--field", &folder.path().display().to_string()], &["is a folder"]);
    refused(&["--out", &path("table.txt")], &["--out", "table.txt", ".csv, .parquet or .md"]);
    refused(&["--out", &path("no/table.csv")], &["table.csv", "cannot be written"]);
    refused(&["--out", &path("table")], &["--out", ".csv"]);
    let names: Vec<_> = fs::read_dir(folder.path()).expect("folder").map(|e| e.expect("entry").file_name()).collect();
    assert_eq!(names, ["colors.png"]);
}
