//! The `weights` program from outside: mistakes, damaged checkpoints, and the files of a small run.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use common::cli::{check_whole, files, numbers, table, texts};
use ndarray::Array2;
use serde_json::Value;
use sinexp::array::{Array, DType};
use sinexp::interop::safetensors::{Tensors, write};
use sinexp::random::Key;

fn weights(arguments: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weights"));
    command.args(arguments).arg("--out").arg(out);
    command.output().expect("weights starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A small LLaMA-like model: two layers, an embedding, norms, and what `more` adds.
fn model(path: &Path, more: &[(&str, Array)]) {
    let draw = |i: u32, rows: usize, columns: usize| {
        let w: Array2<f32> = Key::new(3).fold_in(i).normal(&[rows, columns]).into_dimensionality().expect("a matrix");
        Array::from_ndarray(&w.mapv(|z| 0.1 * z * z * z)).cast(DType::BF16)
    };
    let mut tensors = BTreeMap::from([("model.embed_tokens.weight".to_owned(), draw(99, 50, 16))]);
    for layer in 0..2 {
        for (i, (name, rows, columns)) in
            [("self_attn.q_proj", 16, 16), ("mlp.up_proj", 40, 16), ("mlp.down_proj", 16, 40)].into_iter().enumerate()
        {
            let name = format!("model.layers.{layer}.{name}.weight");
            tensors.insert(name, draw(10 * layer + i as u32, rows, columns));
        }
        let norm = format!("model.layers.{layer}.input_layernorm.weight");
        tensors.insert(norm, Array::full(DType::BF16, &[16], 1.0));
    }
    tensors.extend(more.iter().map(|(n, a)| ((*n).to_owned(), a.clone())));
    write(path, &Tensors { tensors, metadata: BTreeMap::new() }).expect("written");
}

#[test]
fn mistakes_are_one_line_and_leave_nothing() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("model.safetensors");
    model(&path, &[]);
    let path = path.to_str().expect("UTF-8");
    let missing = folder.path().join("no.safetensors");
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("folder");
    let [nothing, strange] = ["nothing", "strange"].map(|n| folder.path().join(format!("{n}.safetensors")));
    write(&nothing, &Tensors::default()).expect("written");
    let header = r#"{"w":{"dtype":"X9","shape":[1],"data_offsets":[0,8]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 8]].concat();
    std::fs::write(&strange, bytes).expect("written");
    let (nothing, strange) = (nothing.to_str().expect("UTF-8"), strange.to_str().expect("UTF-8"));
    let (missing, empty) = (missing.to_str().expect("UTF-8"), empty.to_str().expect("UTF-8"));
    let cases: [(&[&str], &str); 20] = [
        (&[missing], "no.safetensors: cannot be read: no such file or directory"),
        (&[empty], "holds neither *.safetensors nor"),
        (&[path, path], "stands in both"),
        (&[path, "--role", "q"], "expected NAME=REGEX"),
        (&[path, "--role", "q=("], "unclosed group"),
        (&[path, "--tensor", "["], "--tensor = [: no regular expression: unclosed character class"),
        (&[path, "--tensor", "nothing"], "--tensor = nothing: none of the 9 tensors"),
        (&[path, "--only", "gate"], "--only = gate: none of the 9 tensors"),
        (&[path, "--linear", "gate"], "--linear = gate: no tensor looked at is a matrix of such a role"),
        (&[path, "--only", "q,keys"], "--only = keys: no tensor has this role; there are embed, q, up, down, norm"),
        (&[path, "--linear", "keys"], "--linear = keys: no tensor has this role"),
        (&[nothing], "nothing.safetensors: holds no tensor that can be read: it is empty"),
        (&[strange], "holds no tensor that can be read: tensor `w`: has the unknown element type X9"),
        (&[path, "--thresholds", "0.1,0"], "expected a positive number"),
        (&[path, "--thresholds", "0.1,0.1"], "given twice"),
        (&[path, "--percentiles", "101"], "from 0 to 100"),
        (&[path, "--tail", "0.5"], "at most 0.1"),
        (&[path, "--stable-rank", "some"], "a whole number or `all`"),
        (&[path, "--learning-rate", "-1"], "expected a positive number"),
        (&[path, "--format", "pdf"], "parquet"),
    ];
    for (arguments, part) in cases {
        let out = folder.path().join("out");
        let output = weights(arguments, &out);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.starts_with("error: ") && text.lines().count() == 1, "{arguments:?}: {text}");
        assert!(text.contains(part), "{arguments:?}: `{text}` does not say `{part}`");
        assert!(output.stdout.is_empty() && !out.exists(), "{arguments:?}");
    }
}

#[test]
fn a_small_run_writes_every_file_and_they_agree() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("tiny.safetensors");
    model(&path, &[("position_ids", Array::from_slice(&[2], &[0i64, 1]))]);
    let out = folder.path().join("out");
    let output = weights(&[path.to_str().expect("UTF-8"), "--singular-values"], &out);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let written = files(&out);
    let names: Vec<&str> = written.keys().map(String::as_str).collect();
    let expected = [
        "claims.md",
        "fig1.png",
        "fig1.svg",
        "fig13.png",
        "fig13.svg",
        "fig14.png",
        "fig14.svg",
        "histogram.csv",
        "histogram.parquet",
        "roles.md",
        "run.json",
        "singular_values.csv",
        "singular_values.parquet",
        "summary.csv",
        "summary.parquet",
        "tensors.csv",
        "tensors.parquet",
    ];
    assert_eq!(names, expected);
    written.values().for_each(|path| check_whole(path));
    let summary = table(&out.join("summary.parquet"));
    assert_eq!(texts(&summary, "role"), ["embed", "q", "up", "down", "norm", "linear layers"]);
    assert_eq!(numbers(&summary, "tensors"), [1.0, 2.0, 2.0, 2.0, 2.0, 6.0]);
    let all = 2.0 * (256.0 + 640.0 + 640.0);
    assert_eq!(numbers(&summary, "weights")[5], all);
    assert_eq!(numbers(&table(&out.join("histogram.parquet")), "weights").iter().sum::<f64>(), all);
    let tensors = table(&out.join("tensors.parquet"));
    let growth = numbers(&tensors, "growth of max");
    let bound = (6.0f64 / 32.0).sqrt();
    let at = texts(&tensors, "tensor").iter().position(|t| t.contains("1.self_attn.q")).expect("there");
    assert!((growth[at] * bound - numbers(&tensors, "max |w|")[at]).abs() < 1e-12);
    // Norms have no fans, so nothing to grow beyond.
    let norm = texts(&tensors, "role").iter().position(|r| r == "norm").expect("there");
    assert!(growth[norm].is_nan() && numbers(&tensors, "excess kurtosis")[norm].is_nan());
    let singular = table(&out.join("singular_values.parquet"));
    assert_eq!(singular.height(), 6 * 16);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in
        ["linear layers", "30 ×", "Least steps at 0.001 per step", "Skipped: position_ids (I64, no real numbers)"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let run: Value = serde_json::from_slice(&std::fs::read(out.join("run.json")).expect("file")).expect("JSON");
    assert_eq!(run["config"]["counted"].as_array().map(Vec::len), Some(6));
    assert_eq!(run["checkpoint"][0]["bytes"], std::fs::metadata(&path).expect("file").len());
    // Its name alone: the folder is this machine's.
    assert_eq!(run["checkpoint"][0]["file"], path.file_name().expect("a name").to_string_lossy().as_ref());
    // The same again: every number is the same, whichever core took which part.
    let again = folder.path().join("again");
    assert!(weights(&[path.to_str().expect("UTF-8"), "--format", "csv,svg"], &again).status.success());
    for name in ["summary.csv", "tensors.csv", "fig13.svg"] {
        let read = |folder: &Path| std::fs::read(folder.join(name)).expect("file");
        assert!(read(&out) == read(&again), "{name}");
    }
}

#[test]
fn what_is_not_finite_is_counted_and_the_rest_reported() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("tiny.safetensors");
    let bad = Array::from_slice(&[2, 2], &[f32::NAN, 1.0, f32::INFINITY, -1.0]);
    let none = Array::from_slice(&[2, 2], &[f32::NAN; 4]);
    let zero = Array::full(DType::F32, &[4, 4], 0.0);
    model(&path, &[("a.q_proj.weight", bad), ("b.q_proj.weight", none), ("c.q_proj.weight", zero)]);
    let out = folder.path().join("out");
    let output = weights(&[path.to_str().expect("UTF-8"), "--singular-values"], &out);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("warning: tensor `a.q_proj.weight`: 2 of 4 weights are not finite"), "{text}");
    assert!(text.contains("warning: tensor `b.q_proj.weight`: 4 of 4 weights"), "{text}");
    assert!(text.ends_with("error: 2 things were wrong with the checkpoint, see the warnings; the rest is reported\n"));
    let tensors = table(&out.join("tensors.parquet"));
    let at = |name: &str| texts(&tensors, "tensor").iter().position(|t| t == name).expect("there");
    assert_eq!(numbers(&tensors, "max |w|")[at("a.q_proj.weight")], 1.0);
    assert!(numbers(&tensors, "std")[at("b.q_proj.weight")].is_nan());
    assert_eq!(numbers(&tensors, "zeros")[at("c.q_proj.weight")], 16.0);
    assert!(out.join("fig1.png").is_file() && out.join("run.json").is_file());
}

#[test]
fn roles_and_filters_can_be_the_users_own() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("tiny.safetensors");
    model(
        &path,
        &[("mixer.A", Array::full(DType::F32, &[8, 8], 0.5)), ("mixer.B", Array::full(DType::F32, &[8], 0.5))],
    );
    let path = path.to_str().expect("UTF-8");
    let out = folder.path().join("out");
    let run = |more: &[&str]| {
        let arguments: Vec<&str> = [path, "--format", "parquet"].iter().chain(more).copied().collect();
        let output = weights(&arguments, &out);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let summary = table(&out.join("summary.parquet"));
        let roles = texts(&summary, "role");
        roles.into_iter().zip(numbers(&summary, "tensors")).collect::<Vec<_>>()
    };
    let pair = |name: &str, n: f64| (name.to_owned(), n);
    assert_eq!(
        run(&["--role", "mix=^mixer", "--only", "mix,q"]),
        [pair("q", 2.0), pair("mix", 2.0), pair("linear layers", 3.0)]
    );
    assert_eq!(
        run(&["--role", "mix=^mixer", "--tensor", "mixer|embed", "--linear", "embed"]),
        [pair("embed", 1.0), pair("mix", 2.0), pair("linear layers", 1.0)]
    );
    assert_eq!(run(&["--only", "norm"]), [pair("norm", 2.0)]);
}

/// Weights whose squares no f64 holds, and f64 that no f32 holds: the stable rank is that of the same matrix scaled down.
#[test]
fn stable_ranks_do_not_depend_on_the_scale() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("large.safetensors");
    // Singular values 4 and 3: (16 + 9) / 16.
    let of = |scale: f64| Array::from_slice(&[2, 2], &[0.0, 4.0 * scale, 3.0 * scale, 0.0]);
    let more = [("a.q_proj.weight", of(1.0)), ("b.q_proj.weight", of(1e300)), ("c.q_proj.weight", of(1e-300))];
    model(&path, &more);
    let out = folder.path().join("out");
    let output = weights(&[path.to_str().expect("UTF-8"), "--tensor", "^[abc]\\.", "--format", "parquet"], &out);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let ranks = numbers(&table(&out.join("tensors.parquet")), "stable rank");
    assert!(ranks.len() == 3 && ranks.iter().all(|r| (r - 25.0 / 16.0).abs() < 1e-6), "{ranks:?}");
}
