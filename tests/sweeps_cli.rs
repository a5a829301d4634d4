//! The experiments from outside: a sweep in parts and as a whole, in batches and one by one, mistakes, sound, learning
//! rates.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::SystemTime;

use common::cli::{files, numbers, table, texts, write_picture};
use sinexp::data::audio::{Encoding, Sound, write_wav};
use tempfile::TempDir;

const TABLE3: &str = env!("CARGO_BIN_EXE_siren-table3");
const TABLE2: &str = env!("CARGO_BIN_EXE_siren-table2");
const AUDIO: &str = env!("CARGO_BIN_EXE_siren-audio");
const MUP: &str = env!("CARGO_BIN_EXE_siren-mup");

fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// An empty folder below `target` for what several tests use: nobody would remove it at the end.
fn lasting(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweeps_cli").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn run(program: &str, arguments: &[&str], out: &Path) -> Output {
    let mut command = Command::new(program);
    // A recording that somebody put there is not for tests.
    command.env("SINEXP_DATA", DATA.as_path()).args(["--preset", "smoke"]).args(arguments).arg("--out").arg(out);
    command.output().expect("starts")
}

/// What a run that must succeed prints.
fn works(program: &str, arguments: &[&str], out: &Path) -> String {
    let output = run(program, arguments, out);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs it and expects one `error:` line with all of `parts`, and exit code 2.
fn refused(program: &str, arguments: &[&str], parts: &[&str], out: &Path) {
    let output = run(program, arguments, out);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(text.lines().count() == 1 && text.starts_with("error: "), "{arguments:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: `{text}` does not say `{part}`");
    }
    assert!(output.stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
}

/// As [`refused`], and nothing is written.
fn refused_at_once(program: &str, arguments: &[&str], parts: &[&str]) {
    let folder = folder();
    let out = folder.path().join("out");
    refused(program, arguments, parts, &out);
    assert!(!out.exists(), "{arguments:?} left a folder behind");
}

/// The fetched pictures without a recording beside them, as small ones: the same programs serve them all but `clock`.
static DATA: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = lasting("data");
    let images = folder.join("images");
    fs::create_dir(&images).expect("a folder");
    for (seed, name) in ["brick", "camera", "gravel", "clock_motion"].into_iter().enumerate() {
        write_picture(&images.join(format!("{name}.png")), 40, seed as u64);
    }
    folder
});

/// Table 3 as one call trains it, and what it printed.
static WHOLE: LazyLock<(PathBuf, String)> = LazyLock::new(|| {
    let folder = lasting("whole");
    let printed = works(TABLE3, &[], &folder);
    (folder, printed)
});

/// When the files in a folder were last written.
fn times(folder: &Path) -> BTreeMap<String, SystemTime> {
    let time = |path: &PathBuf| fs::metadata(path).and_then(|m| m.modified()).expect("a time");
    files(folder).iter().map(|(name, path)| (name.clone(), time(path))).collect()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn rows_done(folder: &Path) -> usize {
    files(&folder.join("runs")).keys().filter(|n| n.ends_with(".parquet")).count()
}

#[test]
fn parts_are_the_whole() {
    let (whole, printed) = (WHOLE.0.as_path(), &WHOLE.1);
    assert_eq!(rows_done(whole), 4 * (1 + 3 * 3));
    let folder = folder();
    let [x, y] = ["x", "y"].map(|name| folder.path().join(name));
    for (part, out) in [("1/2", &x), ("2/2", &y)] {
        let said = works(TABLE3, &["--shard", part], out);
        let missing = 40 - rows_done(out);
        assert!(said.contains(&format!("{missing} runs of other shards are not here yet")), "{part}: {said}");
        assert!(said.contains("--merge") && !out.join("table.csv").exists(), "{part}: {said}");
    }
    // 4 batches of 9 and 4 single runs: two of each for either part.
    assert_eq!((rows_done(&x), rows_done(&y)), (20, 20));
    let said = works(TABLE3, &["--shard", "1/2", "--merge", y.to_str().expect("UTF-8")], &x);
    assert!(said.starts_with("20 results taken over from 1 folders\n"), "{said}");
    for name in ["table.csv", "sweep.csv", "fig2.png", "fig7.png"] {
        assert!(fs::read(x.join(name)).expect(name) == fs::read(whole.join(name)).expect(name), "{name} differs");
    }
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|l| !l.contains("taken over") && !l.starts_with("Written")).map(str::to_owned).collect()
    };
    assert_eq!(lines(&said), lines(printed));

    // Once more: nothing is trained, the same is printed, and what a killed run leaves goes away.
    let before = times(&x.join("runs"));
    let alone =
        |name: &&String| name.ends_with(".parquet") && numbers(&table(&x.join("runs").join(name)), "batch") == [1.0];
    let hash = before.keys().find(alone).and_then(|n| n.strip_suffix(".parquet")).expect("a run of its own");
    for name in [&format!("runs/{hash}.checkpoint.safetensors"), "runs/.aB3xYz.partial", ".aB3xYz.partial"] {
        fs::write(x.join(name), b"half").expect("written");
    }
    let names: Vec<String> = files(whole).into_keys().collect();
    assert_eq!(lines(&works(TABLE3, &[], &x)), lines(printed));
    let after = times(&x.join("runs"));
    let changed: Vec<&String> = after.iter().filter(|(n, t)| before.get(*n) != Some(t)).map(|(n, _)| n).collect();
    assert!(changed.is_empty() && after.len() == before.len(), "{changed:?}");
    assert_eq!(files(&x).into_keys().collect::<Vec<_>>(), names);
}

/// Test errors of a sweep: omega0 (NaN for uniform-phase) and the error, training and test.
fn errors(folder: &Path) -> Vec<(f64, f64, f64)> {
    let sweep = table(&folder.join("sweep.parquet"));
    let [omega0, train, test] = ["omega0", "train_mse", "test_mse"].map(|name| numbers(&sweep, name));
    (0..sweep.height()).map(|i| (omega0[i], train[i], test[i])).collect()
}

#[test]
fn batches_are_the_separate_runs() {
    let whole = errors(&WHOLE.0);
    assert_eq!(whole.len(), 40);
    for batch in ["1", "7"] {
        let folder = folder();
        works(TABLE3, &["--batch", batch], folder.path());
        // Up to the ordinary omega0, and at one hundred times as much, where rounding sin(omega0 x) alone is 5e-4.
        let mut worst = [0f64; 2];
        for (a, b) in whole.iter().zip(errors(folder.path())) {
            let difference = f64::max((a.1 - b.1).abs() / a.1, (a.2 - b.2).abs() / a.2);
            let worst = &mut worst[usize::from(a.0 > 1000.0)];
            *worst = worst.max(difference);
        }
        eprintln!("--batch {batch}: largest relative differences of the errors from --batch auto: {worst:?}");
        assert!(worst[0] <= 2e-6 && worst[1] <= 2e-3, "--batch {batch}: {worst:?}");
    }
}

#[test]
fn mistakes_are_refused() {
    refused_at_once(TABLE3, &["--shard", "3/2"], &["--shard", "3/2", "1/4 .. 4/4"]);
    refused_at_once(TABLE3, &["--shard", "0/2"], &["--shard", "0/2"]);
    refused_at_once(TABLE3, &["--batch", "0"], &["--batch", "0", "auto"]);
    refused_at_once(TABLE3, &["--image", "nonsense"], &["--image", "nonsense", "NAME=PATH"]);
    refused_at_once(TABLE3, &["--image", "brik=a.png"], &["brik", "brick, camera"]);
    refused_at_once(TABLE3, &["--image", "brick=missing.png"], &["missing.png", "not there", "--image brick=PATH"]);
    refused_at_once(TABLE3, &["--methods", "foo"], &["--methods", "foo", "uniform-mm"]);
    refused_at_once(TABLE3, &["--methods", "sm20"], &["--methods", "sm20", "always"]);
    refused_at_once(TABLE3, &["--steps", "0"], &["--steps", "0"]);
    refused_at_once(TABLE3, &["--seeds", "1,2"], &["--seeds", "1,2", "one seed"]);
    refused_at_once(TABLE3, &["--frequencies", "1"], &["--frequencies", "1"]);
    refused_at_once(TABLE3, &["--learning-rate", "-1"], &["--learning-rate", "-1", "positive"]);
    refused_at_once(TABLE3, &["--checkpoint-every", "-1"], &["--checkpoint-every", "-1"]);
    refused_at_once(TABLE3, &["--merge", "no/such/folder"], &["no/such/folder", "--merge"]);
    refused_at_once(TABLE3, &["--device", "gpu9"], &["gpu9"]);
    refused_at_once(TABLE2, &["--seeds", "1,2,1"], &["--seeds", "1,2,1", "twice"]);
    refused_at_once(TABLE2, &["--methods", "relu,relu"], &["--methods", "relu", "twice"]);
    refused_at_once(TABLE2, &["--count-first", "--hidden", "1"], &["--count-first", "at least 2"]);
    refused_at_once(AUDIO, &["--wav", "missing.wav"], &["missing.wav"]);
    refused_at_once(AUDIO, &["--stride", "0"], &["--stride", "0"]);
}

#[test]
fn places_that_cannot_be_written_are_refused() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "in the way").expect("written");
    for out in [file.clone(), file.join("below")] {
        refused(TABLE3, &[], &["--out", &file.display().to_string()], &out);
    }
    assert_eq!(fs::read(&file).expect("untouched"), b"in the way");
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_result_that_is_cut_off_is_named() {
    let folder = folder();
    let out = folder.path();
    let options = ["--methods", "relu,silu", "--seeds", "0", "--steps", "5"];
    works(TABLE2, &options, out);
    let table = read(out, "table.csv");
    let path = files(&out.join("runs")).into_values().find(|p| p.extension().is_some_and(|e| e == "parquet"));
    let path = path.expect("a result");
    let bytes = fs::read(&path).expect("a result");
    for keep in [0, 3, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..keep]).expect("written");
        let before = times(out);
        refused(TABLE2, &options, &[&path.display().to_string(), "delete it"], out);
        assert_eq!(times(out), before, "{keep} bytes");
    }
    // As it says.
    fs::remove_file(&path).expect("removed");
    works(TABLE2, &options, out);
    assert_eq!(read(out, "table.csv"), table);
}

#[test]
fn sound_is_the_given_one_or_a_made_one() {
    let folder = folder();
    let (made, given) = (folder.path().join("made"), folder.path().join("given"));
    let said = works(AUDIO, &["--methods", "uniform-mm,sm20"], &made);
    assert!(said.contains("fugue (synthesised fugue subject, mono, 44100 Hz, 7.0 s), 3087 samples"), "{said}");
    assert!(read(&made, "run.json").contains("synthesised fugue subject"));

    let wav = folder.path().join("two tones.wav");
    let tones: Vec<f64> = (0..11_025).map(|i| 0.3 * (0.05 * i as f64).sin() + 0.1 * (0.11 * i as f64).sin()).collect();
    write_wav(&wav, &tones, 22_050, Encoding::Int16).expect("a sound");
    let options = ["--wav", wav.to_str().expect("UTF-8"), "--methods", "uniform-mm,relu", "--stride", "10"];
    let said = works(AUDIO, &options, &given);
    assert!(said.contains("two tones (") && said.contains("1103 samples"), "{said}");
    let kept: Vec<PathBuf> = files(&given.join("runs")).into_values().collect();
    let sounds: Vec<&PathBuf> = kept.iter().filter(|p| p.extension().is_some_and(|e| e == "wav")).collect();
    assert_eq!(sounds.len(), 2);
    for path in sounds {
        let sound = Sound::read(path).expect("a sound");
        assert_eq!((sound.samples.len(), sound.rate), (1103, 2205));
    }
    let rows = table(&given.join("table.parquet"));
    assert_eq!(texts(&rows, "initialisation"), ["uniform-phase MM", "ReLU"]);
    assert!(numbers(&rows, "SNR").iter().chain(&numbers(&rows, "MSE")).all(|v| v.is_finite()));
    for name in ["fig5.png", "losses.png", "run.json"] {
        assert!(given.join(name).is_file(), "{name}");
    }
}

#[test]
fn learning_rates_have_a_row_for_each_width_and_scaling() {
    let folder = folder();
    let said = works(MUP, &[], folder.path());
    for init in ["sm20", "cvp26-s0", "cvp26-s1"] {
        assert!(said.contains(&format!("{init}: omega0 ")), "{said}");
    }
    let rows = table(&folder.path().join("table.parquet"));
    let (inits, scalings, widths) = (texts(&rows, "initialisation"), texts(&rows, "scaling"), numbers(&rows, "N"));
    let cells: BTreeSet<_> = (0..rows.height()).map(|i| (&inits[i], &scalings[i], widths[i] as u64)).collect();
    assert_eq!((rows.height(), cells.len()), (4 * 3 * 2, 4 * 3 * 2));
    assert_eq!(inits.iter().collect::<BTreeSet<_>>().len(), 4);
    assert_eq!(scalings.iter().collect::<BTreeSet<_>>().len(), 3);
    assert!(cells.iter().all(|c| [8, 16].contains(&c.2)));
    for (rate, loss) in [("log2 rate", "mean loss"), ("log2 rate, geometric", "geometric mean loss")] {
        assert!(numbers(&rows, rate).iter().all(|r| [-12.0, -8.0, -4.0].contains(r)), "{rate}");
        assert!(numbers(&rows, loss).iter().all(|l| l.is_finite() && *l > 0.0), "{loss}");
    }
    // The geometric mean of the losses is at most the arithmetic one at the same rate, so at the best of each.
    let (mean, geometric) = (numbers(&rows, "mean loss"), numbers(&rows, "geometric mean loss"));
    assert!(mean.iter().zip(&geometric).all(|(m, g)| g <= m));
    assert!(folder.path().join("fig6.png").is_file());
}
