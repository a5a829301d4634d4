//! Every experiment at its preset `smoke`, on the fetched pictures and texts: it ends well and writes, whole, every kind of
//! table and figure that its committed results in `figures/` have.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::cli::{check_whole, files};
use serde_json::Value;
use sinexp::data::audio::{Encoding, write_wav};
use tempfile::TempDir;

macro_rules! programs {
    ($($name:literal)*) => { [$(($name, env!(concat!("CARGO_BIN_EXE_", $name)))),*] };
}

const SIREN: [(&str, &str); 7] =
    programs! { "siren-table1" "siren-table2" "siren-table3" "siren-table4" "siren-table5" "siren-audio" "siren-mup" };
/// They share their runs.
const SEL: [(&str, &str); 8] = programs! {
    "sel-table1" "sel-table2" "sel-table3" "sel-table4" "sel-table5" "sel-table6" "sel-table7" "sel-fig5"
};
/// These have no preset; the last two read runs.
const SEL_FIGURES: [(&str, &str); 4] = programs! { "sel-curves" "sel-mismatch" "sel-shapes" "sel-weights" };

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs it into a folder of its own and looks at what it wrote. The seconds are printed: `cargo test -- --nocapture`.
fn run(program: (&str, &str), arguments: &[&str], folder: &TempDir) -> PathBuf {
    let (name, path) = program;
    let out = folder.path().join(name);
    let output = Command::new(path).args(arguments).arg("--out").arg(&out).output().expect("starts");
    assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(!output.stdout.is_empty(), "{name} prints its table or where its figures are");

    let written = files(&out);
    written.values().for_each(|path| check_whole(path));
    let names: BTreeSet<&str> = written.keys().map(String::as_str).collect();
    for result in committed(name) {
        assert!(names.contains(result.as_str()), "{name}: there is no {result} among {names:?}");
    }
    let record: Value =
        serde_json::from_str(&fs::read_to_string(out.join("run.json")).expect("a record")).expect("JSON");
    println!("{name}: {:.1} s", record["seconds"].as_f64().expect("seconds"));
    out
}

/// Pictures and tables for reading, without single runs', in `figures/`: of the preset `cpu`, or of a program without presets.
fn committed(name: &str) -> Vec<String> {
    let folder = root().join("figures").join(name);
    let cpu = folder.join("cpu");
    let folder = if cpu.is_dir() { cpu } else { folder };
    let results: Vec<String> = files(&folder)
        .into_keys()
        .filter(|f| !f.contains('/') && (f.ends_with(".png") || f.ends_with(".md")))
        .collect();
    assert!(!results.is_empty(), "{} has no results", folder.display());
    results
}

#[test]
fn the_lists_have_every_experiment() {
    let sources = files(&root().join("experiments"));
    let programs: BTreeSet<String> = sources.keys().map(|name| name.replace('_', "-").replace(".rs", "")).collect();
    let listed: BTreeSet<String> = [&SIREN[..], &SEL, &SEL_FIGURES].concat().iter().map(|p| p.0.to_owned()).collect();
    assert_eq!(programs, listed);
}

#[test]
fn the_experiments_with_sine_networks() {
    let folder = tempfile::tempdir().expect("temporary folder");
    // The recording is not fetched: a tone that swells stands in for it.
    let wav = folder.path().join("tone.wav");
    let samples: Vec<f64> = (0..4000).map(|i| (f64::from(i) * 0.05).sin() * f64::from(i) / 4000.0).collect();
    write_wav(&wav, &samples, 8000, Encoding::Int16).expect("a sound");
    for program in SIREN {
        let mut arguments = vec!["--preset", "smoke"];
        if program.0 == "siren-audio" {
            arguments.extend(["--wav", wav.to_str().expect("UTF-8")]);
        }
        run(program, &arguments, &folder);
    }
}

#[test]
fn the_experiments_with_transformers() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let runs = folder.path().join("runs");
    for program in SEL {
        let mut arguments = vec!["--preset", "smoke"];
        // The table of times trains nothing.
        if program.0 != "sel-table7" {
            arguments.extend(["--runs", runs.to_str().expect("UTF-8")]);
        }
        run(program, &arguments, &folder);
    }

    let (baseline, ours) = (run_of(&runs, "standard"), run_of(&runs, "mismatch"));
    for program in SEL_FIGURES {
        let arguments: &[&str] = match program.0 {
            "sel-shapes" => &[&ours],
            "sel-weights" => &[&ours, "--baseline", &baseline, "--per-role"],
            "sel-mismatch" => &["--width", "256"],
            _ => &[],
        };
        run(program, arguments, &folder);
    }
}

/// The first of the trained runs of one block, in the order of their names, with ordinary weights or with SEL in this mode.
fn run_of(runs: &Path, kind: &str) -> String {
    let wanted = |path: &PathBuf| {
        let record: Value = serde_json::from_str(&fs::read_to_string(path).expect("a record")).expect("JSON");
        let (projection, depth) = (&record["config"]["projection"], &record["config"]["transformer"]["depth"]);
        depth == 1 && (projection == kind || projection["sel"]["mode"] == kind)
    };
    let record = files(runs).into_values().filter(|path| path.ends_with("run.json")).find(wanted);
    let record = record.unwrap_or_else(|| panic!("no run with {kind}"));
    record.parent().expect("a folder").to_str().expect("UTF-8").to_owned()
}
