//! For tests of programs from outside: pictures to fit, and what lies in a folder of results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ndarray::Array3;
use polars::prelude::{DataFrame, ParquetReader, SerReader};
use sinexp::data::audio::Sound;
use sinexp::data::image::{Alpha, Picture, write_png};
use sinexp::interop::safetensors;

/// Writes a gray picture of `size` by `size` pixels, another one for each `seed`.
pub fn write_picture(path: &Path, size: usize, seed: u64) {
    let wave = |i: usize, k: u64| (i as f64 * (0.2 + 0.07 * (k % 5) as f64)).sin();
    let pixels = Array3::from_shape_fn((size, size, 1), |(i, j, _)| 0.5 + 0.4 * wave(i, seed) * wave(j, seed + 3));
    write_png(path, pixels.view()).expect("a picture");
}

/// All files in a folder and below, hidden ones too, by their path in it.
pub fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(files(&path).into_iter().map(|(below, path)| (format!("{name}/{below}"), path)));
        } else {
            all.insert(name, path);
        }
    }
    all
}

/// Panics where a file is not what its name says, from the first byte to the last.
pub fn check_whole(path: &Path) {
    if let Err(reason) = read_whole(path) {
        panic!("{} is damaged: {reason}", path.display());
    }
}

fn read_whole(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let text = || fs::read_to_string(path);
    match path.extension().and_then(|e| e.to_str()) {
        Some("parquet") => drop(ParquetReader::new(fs::File::open(path)?).finish()?),
        Some("png") => drop(Picture::read(path, Alpha::Refuse)?),
        Some("wav") => drop(Sound::read(path)?),
        Some("safetensors") => drop(safetensors::read(path)?),
        Some("json") => drop(serde_json::from_str::<serde_json::Value>(&text()?)?),
        Some("svg") if text()?.trim_end().ends_with("</svg>") => {}
        Some("csv" | "md") if text()?.ends_with('\n') => {}
        _ => return Err("cut off, or not a kind of file that the programs write".into()),
    }
    Ok(())
}

/// The rows of a Parquet table, for its columns by name.
pub fn table(path: &Path) -> DataFrame {
    ParquetReader::new(fs::File::open(path).expect("a table")).finish().expect("whole")
}

/// A column of numbers; NaN where there is none.
pub fn numbers(table: &DataFrame, name: &str) -> Vec<f64> {
    let column = table.column(name).unwrap_or_else(|e| panic!("{e}"));
    (0..table.height()).map(|i| column.get(i).expect("a row").try_extract().unwrap_or(f64::NAN)).collect()
}

/// A column of texts.
pub fn texts(table: &DataFrame, name: &str) -> Vec<String> {
    let column = table.column(name).unwrap_or_else(|e| panic!("{e}"));
    column.str().expect("texts").iter().map(|t| t.unwrap_or_default().to_owned()).collect()
}
