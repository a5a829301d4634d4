//! The `spectrum` program from outside: one clear line and exit code 2 for each mistake, nothing half-written, and a
//! small run whose files agree with what it prints.

use std::path::Path;
use std::process::{Command, Output};

fn spectrum(arguments: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spectrum"));
    command.args(arguments).arg("--out").arg(out);
    command.output().expect("spectrum starts")
}

/// Runs it and expects one `error:` line that holds every one of `parts`, exit code 2, and no output folder.
fn refused(arguments: &[&str], parts: &[&str]) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let out = folder.path().join("out");
    let output = spectrum(arguments, &out);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    assert!(text.starts_with("error: "), "{arguments:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: `{text}` does not say `{part}`");
    }
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(!out.exists(), "{arguments:?} left a folder behind");
}

#[test]
fn options_out_of_range_are_refused() {
    refused(&["--width", "0"], &["--width", "0"]);
    refused(&["--width", "x"], &["--width", "x"]);
    refused(&["--depths", "4,1"], &["--depths", "1", "at least 2"]);
    refused(&["--depths", "4,8,4"], &["--depths", "4", "twice"]);
    refused(&["--inits", "sm20,siren"], &["--inits", "siren", "uniform-mm"]);
    refused(&["--networks", "0"], &["--networks"]);
    refused(&["--points", "0"], &["--points"]);
    refused(&["--seed", "-1"], &["--seed"]);
    refused(&["--format", "pdf"], &["--format", "pdf", "parquet"]);
    refused(&["--domain", "1,1"], &["--domain", "smaller"]);
    refused(&["--omega0", "nan"], &["--omega0"]);
    refused(&["--widht", "3"], &["--widht", "--width"]);
    refused(&["--device", "gpu9"], &["gpu9"]);
    refused(&["--weights", "x.safetensors", "--depths", "4"], &["--weights", "--depths"]);
}

#[test]
fn plugins_that_are_not_there_or_not_plugins_are_refused() {
    refused(&["--device", "plugin:/no/such/plugin.so"], &["/no/such/plugin.so"]);
    let folder = tempfile::tempdir().expect("temporary folder");
    let text = folder.path().join("plugin.so");
    std::fs::write(&text, "not a library").expect("written");
    refused(&["--device", &format!("plugin:{}", text.display())], &["plugin.so"]);
}

#[test]
fn places_that_cannot_be_written_are_refused_before_any_work() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").expect("written");
    for out in [file.clone(), file.join("below")] {
        let started = std::time::Instant::now();
        let output = spectrum(&[], &out);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
        assert!(text.contains("--out"), "{text}");
        assert!(started.elapsed().as_secs() < 20, "the default run began");
    }
    assert_eq!(std::fs::read(&file).expect("untouched"), b"in the way");
}

/// Weights of a SIREN with two inputs, width 3 and L = 2, after `change`, as a safetensors file.
fn weights(path: &Path, change: impl FnOnce(&mut Vec<(String, Vec<usize>, Vec<f32>)>)) {
    let mut tensors = Vec::new();
    for (i, [rows, columns]) in [[3, 2], [3, 3], [3, 3], [1, 3]].into_iter().enumerate() {
        let values = (0..rows * columns).map(|v| ((7 * v + 3 * i) % 11) as f32 / 11.0 - 0.45).collect();
        tensors.push((format!("W.{i}"), vec![rows, columns], values));
        tensors.push((format!("b.{i}"), vec![rows], vec![0.1 * i as f32; rows]));
    }
    change(&mut tensors);
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|t| t.2.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let views: Vec<_> = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, shape, _), b)| {
            let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), b);
            (name.as_str(), view.expect("shape fits"))
        })
        .collect();
    std::fs::write(path, safetensors::serialize(views, None).expect("serialises")).expect("written");
}

#[test]
fn weight_files_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("w.safetensors");
    let file = path.to_str().expect("UTF-8");
    let omega = ["--omega0", "30", "--omega-h", "1"];
    let check = |parts: &[&str]| refused(&[&["--weights", file], &omega[..]].concat(), parts);
    check(&["w.safetensors"]); // not there
    weights(&path, |t| t[2].2[4] = f32::NAN);
    check(&["w.safetensors", "`W.1`", "NaN", "position 4"]);
    weights(&path, |t| (t[2].1, t[2].2) = (vec![3, 2], vec![0.0; 6]));
    check(&["w.safetensors", "`W.1`", "[3, 2]"]);
    weights(&path, |t| t.truncate(4));
    check(&["w.safetensors", "2 weight matrices"]);
    weights(&path, |t| t.iter_mut().for_each(|t| t.0 = format!("layer-{}", t.0)));
    check(&["w.safetensors", "layer-W.0", "--names"]);
    weights(&path, |_| {});
    refused(&["--weights", file], &["--omega0"]);
    let whole = std::fs::read(&path).expect("file");
    for keep in [0, 7, 40, whole.len() - 1] {
        std::fs::write(&path, &whole[..keep]).expect("written");
        check(&["w.safetensors"]);
    }
    let mut hostile = whole.clone();
    hostile[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    std::fs::write(&path, &hostile).expect("written");
    check(&["w.safetensors"]);
}

#[test]
fn a_foreign_network_gets_its_spectrum() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (path, out) = (folder.path().join("trained.safetensors"), folder.path().join("out"));
    weights(&path, |_| {});
    let file = path.to_str().expect("UTF-8");
    let arguments = ["--weights", file, "--omega0", "30", "--omega-h", "1", "--points", "4", "--format", "csv"];
    let output = spectrum(&arguments, &out);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(out.join("spectra.csv")).expect("spectra");
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|l| l.split(',').collect()).collect();
    assert_eq!(rows.len(), 4 * 3, "{text}");
    // J = diag(cos z_2) W.2: no singular value exceeds W.2's largest, 0.78617 by numpy.linalg.svd.
    for row in &rows {
        let value: f64 = row[5].parse().expect("number");
        assert!(row[0] == "trained" && row[1] == "2" && (0.0..0.7862).contains(&value), "{row:?}");
    }
    assert!(!out.join("fig3.png").exists(), "only CSV was asked for");
}

#[test]
fn a_small_run_writes_what_it_prints() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let run = |out: &Path| {
        let arguments = ["--width", "16", "--depths", "2,4", "--networks", "3", "--points", "2", "--seed", "7"];
        let output = spectrum(&arguments, out);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let (first, second) = (folder.path().join("a"), folder.path().join("b/c"));
    let printed = run(&first);
    let mut names: Vec<String> = std::fs::read_dir(&first)
        .expect("folder")
        .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let expected = [
        "fig3.curves.parquet",
        "fig3.png",
        "fig3.svg",
        "run.json",
        "spectra.csv",
        "spectra.parquet",
        "summary.csv",
        "summary.md",
        "summary.parquet",
    ];
    assert_eq!(names, expected);
    let summary = std::fs::read_to_string(first.join("summary.csv")).expect("summary");
    assert_eq!(summary.lines().count(), 1 + 4 * 2);
    for line in summary.lines().skip(1) {
        let (init, largest) = (line.split(',').next().expect("init"), line.split(',').nth(2).expect("largest"));
        let rounded = format!("{:.3}", largest.parse::<f64>().expect("number"));
        let row = printed.lines().find(|l| l.starts_with(init) && l.contains(&rounded));
        assert!(row.is_some(), "{init} {rounded} is not in\n{printed}");
    }
    // The mean square of the summary is the mean of the squares of the spectra.
    let spectra = std::fs::read_to_string(first.join("spectra.csv")).expect("spectra");
    let squares: Vec<f64> = spectra
        .lines()
        .filter(|l| l.starts_with("sm20,4,"))
        .map(|l| l.rsplit(',').next().expect("value").parse::<f64>().expect("number").powi(2))
        .collect();
    assert_eq!(squares.len(), 3 * 2 * 16);
    let row = summary.lines().find(|l| l.starts_with("sm20,4,")).expect("row");
    let mean: f64 = row.split(',').nth(5).expect("mean square").parse().expect("number");
    assert!((squares.iter().sum::<f64>() / squares.len() as f64 - mean).abs() < 1e-12 * mean);
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(first.join("run.json")).expect("record")).expect("JSON");
    assert_eq!((&record["config"]["width"], &record["seed"]), (&serde_json::json!(16), &serde_json::json!(7)));
    // The same seed gives the same numbers, and a run of one cell the same as a run of all.
    run(&second);
    assert_eq!(std::fs::read(second.join("spectra.csv")).expect("spectra"), spectra.as_bytes());
    let one = folder.path().join("one");
    let arguments = [
        "--width",
        "16",
        "--depths",
        "4",
        "--inits",
        "sm20",
        "--networks",
        "3",
        "--points",
        "2",
        "--seed",
        "7",
        "--format",
        "csv",
    ];
    assert_eq!(spectrum(&arguments, &one).status.code(), Some(0));
    let alone = std::fs::read_to_string(one.join("spectra.csv")).expect("spectra");
    let part: Vec<&str> = spectra.lines().filter(|l| l.starts_with("sm20,4,")).collect();
    assert_eq!(alone.lines().skip(1).collect::<Vec<_>>(), part);
}
