//! `sel invert`: any checkpoint into raw weights, back with `sel fold`, and on with `sel train --init`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sinexp::array::{Array, DType};
use sinexp::interop::safetensors::{self, Tensors};
use sinexp::random::Key;

use super::common::cli::{numbers, table};
use super::{corpus, fails, folder, sel, succeeds, whole};

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn normal(seed: u32, dims: &[usize], std: f64) -> Array {
    let draws = Key::new(7).fold_in(seed).normal::<f32>(dims);
    Array::from_ndarray(&draws.mapv(|x| x * std as f32))
}

/// A small GPT-2 in bf16, of two files and an index.
fn gpt2(folder: &Path) {
    let block = |i: u32| {
        let name = |rest: &str| format!("h.{i}.{rest}");
        let layer = |rest: &str, n: u32, dims: &[usize]| {
            let weight = normal(10 * i + n, dims, 0.02).cast(DType::BF16);
            let bias = normal(10 * i + n + 5, &dims[1..], 0.3).cast(DType::BF16);
            [(name(&format!("{rest}.weight")), weight), (name(&format!("{rest}.bias")), bias)]
        };
        let layers = [
            layer("attn.c_attn", 0, &[32, 96]),
            layer("attn.c_proj", 1, &[32, 32]),
            layer("mlp.c_fc", 2, &[32, 128]),
            layer("mlp.c_proj", 3, &[128, 32]),
        ];
        let norm = (name("ln_1.weight"), normal(90, &[32], 1.0));
        layers.into_iter().flatten().chain([norm]).collect::<BTreeMap<_, _>>()
    };
    let embedding = ("wte.weight".to_owned(), normal(99, &[50, 32], 0.02).cast(DType::F16));
    let positions = ("positions".to_owned(), Array::from_slice(&[3], &[1i64, 2, 3]));
    let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    let mut map = BTreeMap::new();
    let parts = [block(0), block(1).into_iter().chain([embedding, positions]).collect()];
    for (i, tensors) in parts.into_iter().enumerate() {
        let file = format!("model-{i}.safetensors");
        map.extend(tensors.keys().map(|name| (name.clone(), file.clone())));
        safetensors::write(folder.join(file), &Tensors { tensors, metadata: metadata.clone() }).expect("written");
    }
    let index = serde_json::json!({ "metadata": {}, "weight_map": map }).to_string();
    fs::write(folder.join("model.safetensors.index.json"), index).expect("written");
}

#[test]
fn sharded_weights_come_back_bit_for_bit_in_bf16() {
    let home = folder();
    let [source, raw, back] = ["source", "raw", "back"].map(|name| home.path().join(name));
    fs::create_dir(&source).expect("a folder");
    gpt2(&source);
    let said = succeeds(&mut sel(&["invert", &shown(&source), "--out", &shown(&raw), "--beta", "7.5"]));
    assert!(said.contains("width 32, mode mismatch, beta 7.5"), "{said}");
    assert!(said.contains("16 layers inverted, 4 tensors copied"), "{said}");
    // A finished file is kept, another request is not: the second one's time of change tells.
    let second = raw.join("model-1.safetensors");
    fs::remove_file(raw.join("model-0.safetensors")).expect("there");
    let changed = || fs::metadata(&second).and_then(|m| m.modified()).expect("there");
    let before = changed();
    let again = succeeds(&mut sel(&["invert", &shown(&source), "--out", &shown(&raw), "--beta", "7.5"]));
    assert_eq!(before, changed());
    assert_eq!(said, again, "the whole report, of kept files too");
    succeeds(&mut sel(&["invert", &shown(&source), "--out", &shown(&raw), "--beta", "7", "--no-biases"]));
    assert!(before != changed());

    succeeds(&mut sel(&["fold", &shown(&raw), "--out", &shown(&back)]));
    for file in ["model-0.safetensors", "model-1.safetensors"] {
        let [a, b] = [&source, &back].map(|folder| safetensors::read(folder.join(file)).expect("whole"));
        assert_eq!(a, b, "{file}: names, types, metadata and every bit");
    }
    let index = |folder: &Path| -> serde_json::Value {
        let text = fs::read(folder.join("model.safetensors.index.json")).expect("an index");
        serde_json::from_slice::<serde_json::Value>(&text).expect("JSON")["weight_map"].clone()
    };
    assert_eq!(index(&source), index(&back));
    let file = safetensors::read(&second).expect("whole");
    let raw = &file.tensors["h.1.mlp.c_fc.weight.w"];
    assert_eq!((raw.dtype(), raw.dims()), (DType::F32, &[32, 128][..]));
    assert_eq!(file.tensors["h.1.mlp.c_fc.weight.e.c"].dims(), [128]);
    assert!(file.tensors.contains_key("h.1.mlp.c_fc.bias"), "--no-biases");
}

/// Every mode, with and without options that store the scales otherwise: folding undoes inverting, in f32. A negative weight
/// of mismatch is a difference of the pathways.
#[test]
fn every_mode_comes_back() {
    let home = folder();
    let [source, raw, back] = ["a", "raw", "back"].map(|n| home.path().join(format!("{n}.safetensors")));
    let tensors = BTreeMap::from([
        ("blocks.0.q.W".to_owned(), normal(1, &[24, 16], 0.2)),
        ("blocks.0.q.b".to_owned(), normal(2, &[24], 0.2)),
    ]);
    safetensors::write(&source, &Tensors { tensors: tensors.clone(), metadata: BTreeMap::new() }).expect("written");
    let each = [
        "--mode congruent",
        "--mode mismatch --beta 8 --residual 3 --pattern-n col --n0 0.3 --pattern-e lora --pattern-l row --pattern-m full",
        "--mode oppose --beta 8",
        "--mode exp_only --absorb-beta",
        "--mode damped --pattern-n global --n0 0.1",
        "--mode sinh --beta-in-front",
        "--mode sinh_only --normalize-by-inner-mult --absorb-beta",
    ];
    for options in each {
        let mut command = sel(&["invert", &shown(&source), "--out", &shown(&raw)]);
        succeeds(command.args(options.split_whitespace()));
        succeeds(&mut sel(&["fold", &shown(&raw), "--out", &shown(&back)]));
        let folded = safetensors::read(&back).expect("whole").tensors;
        for (name, value) in &tensors {
            for (a, b) in value.to_f64_vec().iter().zip(folded[name].to_f64_vec()) {
                assert!((a - b).abs() <= 5e-6 * a.abs().max(1e-3), "{options} {name}: {a} and {b}");
            }
        }
    }
}

#[test]
fn training_goes_on_from_an_inverted_model() {
    let home = folder();
    let path = |name: &str| shown(&home.path().join(name));
    let corpus = shown(&corpus());
    let options = ["--corpus", &corpus, "--preset", "smoke", "--sequence", "16", "--eval-batches", "2"];
    // The shared run, folded, is the pretrained model.
    succeeds(&mut sel(&["fold", &shown(whole()), "--out", &path("a.safetensors")]));
    succeeds(&mut sel(&["invert", &path("a.safetensors"), "--out", &path("raw.safetensors"), "--beta", "6"]));
    let loss = |model: &str| succeeds(&mut sel(&["eval", model, "--corpus", &corpus]));
    assert_eq!(loss(&path("a.safetensors")), loss(&path("raw.safetensors")));

    let train = |init: &str, out: &str, more: &[&str]| {
        let mut command = sel(&["train", "--init", init, "--out", out]);
        command.args(options).args(more);
        command
    };
    succeeds(&mut train(&path("raw.safetensors"), &path("sel"), &[]));
    succeeds(&mut train(&path("a.safetensors"), &path("standard"), &["--mode", "standard"]));
    let first = |run: &str| numbers(&table(&home.path().join(run).join("metrics.parquet")), "eval_loss")[0];
    let trained = numbers(&table(&whole().join("metrics.parquet")), "eval_loss")[300];
    assert!((first("sel") - trained).abs() < 1e-4, "{} and {trained}", first("sel"));
    assert!((first("standard") - trained).abs() < 1e-4, "{} and {trained}", first("standard"));
    // It goes on from its checkpoint, not from the weights again.
    let said = succeeds(&mut sel(&["train", "--resume", "--out", &path("sel"), "--corpus", &corpus]));
    assert!(said.contains("is complete"), "{said}");
    // Another multiplier is a choice of training.
    succeeds(&mut train(&path("raw.safetensors"), &path("slow"), &["--beta", "6", "--k-e", "5"]));

    for (init, more, why) in [
        ("raw", "--width 64", "--width = 64: the weights of --init have 16"),
        ("raw", "--beta 5", "beta = 5.0: the weights of --init were inverted with 6.0"),
        ("raw", "--mode congruent --beta 6", "mode = \"congruent\""),
        ("raw", "--mode standard", "are raw weights"),
        ("a", "", "are ordinary: `sel invert`"),
        ("raw", "--tokenizer gpt2", "were trained with bytes"),
    ] {
        let more: Vec<&str> = more.split_whitespace().collect();
        fails(&mut train(&path(&format!("{init}.safetensors")), &path("no"), &more), 2, &[why]);
        assert!(!home.path().join("no/run.json").exists());
    }
}

#[test]
fn what_cannot_be_inverted_is_named_and_nothing_is_written() {
    let home = folder();
    let path = |name: &str| shown(&home.path().join(name));
    let write = |name: &str, tensors: &[(&str, Array)]| {
        let tensors = tensors.iter().map(|(n, t)| ((*n).to_owned(), t.clone())).collect();
        safetensors::write(path(name), &Tensors { tensors, metadata: BTreeMap::new() }).expect("written");
    };
    let matrix = Array::from_slice(&[2, 3], &[0.5f32, -0.5, 0.001, 0.2, 0.1, -0.001]);
    write("gap.safetensors", &[("a.q_proj.weight", matrix.clone())]);
    write("nan.safetensors", &[("a.q_proj.weight", Array::from_slice(&[2, 2], &[0f32, 1.0, f32::NAN, 0.0]))]);
    write("other.safetensors", &[("a.weight", matrix.clone())]);
    write("taken.safetensors", &[("a.q_proj.weight", matrix.clone()), ("a.q_proj.weight.e.r", Array::scalar(1f32))]);
    fs::write(home.path().join("cut.safetensors"), b"nothing").expect("written");
    let out = path("out.safetensors");
    let shift = ["--beta", "7.5", "--pattern-s", "global", "--s0", "0.1"];
    for (input, more, why) in [
        ("gap", &shift[..], "`a.q_proj.weight`: 0.0010000000474974513 at [0, 2] has no preimage under mode mismatch"),
        ("nan", &[], "`a.q_proj.weight`: is NaN at [1, 0]: only finite weights can be inverted"),
        ("nan", &["--nearest"], "only finite weights can be inverted"),
        ("other", &[], "no tensor of it is known as a linear layer: name them with --role NAME=REGEX"),
        ("other", &["--role", "x"], "expected NAME=REGEX"),
        ("taken", &[], "two tensors would be named `a.q_proj.weight.e.r`"),
        ("cut", &[], "is no safetensors file"),
        ("none", &[], "none.safetensors"),
    ] {
        let mut command = sel(&["invert", &path(&format!("{input}.safetensors")), "--out", &out]);
        fails(command.args(more), 2, &[why]);
        assert!(!Path::new(&out).exists(), "{input} is written");
    }
    let said = succeeds(sel(&["invert", &path("gap.safetensors"), "--out", &out]).args(shift).arg("--nearest"));
    assert!(said.contains("2 weights have no preimage"), "{said}");
    // What was allowed then is not allowed now.
    fails(sel(&["invert", &path("gap.safetensors"), "--out", &out]).args(shift), 2, &["has no preimage"]);
    fails(&mut sel(&["invert", &out, "--out", &path("again.safetensors")]), 2, &["holds raw weights already"]);
    fails(
        &mut sel(&["invert", &path("gap.safetensors"), "--out", &path("gap.safetensors")]),
        2,
        &["would overwrite the source"],
    );
    // A leaf that is gone.
    let mut file = safetensors::read(&out).expect("whole");
    file.tensors.remove("a.q_proj.weight.e.r");
    safetensors::write(path("less.safetensors"), &file).expect("written");
    fails(
        &mut sel(&["fold", &path("less.safetensors"), "--out", &path("back.safetensors")]),
        2,
        &["`a.q_proj.weight.e.r`: is missing"],
    );
    assert!(!home.path().join("back.safetensors").exists());
    let said =
        succeeds(&mut sel(&["invert", &path("other.safetensors"), "--out", &path("o.safetensors"), "--role", "x=^a"]));
    assert!(said.contains("1 layers inverted"), "{said}");
}

/// The weights of a later step have the names, shapes and often the file name of an earlier one's.
#[test]
fn weights_that_changed_are_inverted_again() {
    let home = folder();
    let [first, second, raw] = ["1", "2", "raw"].map(|n| home.path().join(n).join("model.safetensors"));
    for (path, std) in [(&first, 0.1), (&second, 0.3)] {
        let tensors = BTreeMap::from([("a.q_proj.weight".to_owned(), normal(1, &[8, 8], std))]);
        fs::create_dir(path.parent().expect("a folder")).expect("made");
        safetensors::write(path, &Tensors { tensors, metadata: BTreeMap::new() }).expect("written");
    }
    fs::create_dir(home.path().join("raw")).expect("made");
    let made = |source: &Path| {
        succeeds(&mut sel(&["invert", &shown(source), "--out", &shown(&raw)]));
        fs::read(&raw).expect("written")
    };
    // What a killed run left goes away.
    let left = raw.with_file_name(".aB3xYz.partial");
    fs::write(&left, "a part").expect("written");
    let of_first = made(&first);
    assert!(!left.exists());
    let of_second = made(&second);
    assert!(of_first != of_second, "from another file");
    fs::copy(&second, &first).expect("copied");
    assert!(made(&first) == of_second, "from the same file, changed");
    assert!(made(&first) == of_second, "kept");
}

#[test]
fn unfit_weights_are_refused_before_training() {
    let home = folder();
    let path = |name: &str| shown(&home.path().join(name));
    succeeds(&mut sel(&["fold", &shown(whole()), "--out", &path("good.safetensors")]));
    let good = safetensors::read(path("good.safetensors")).expect("whole");
    let name = good.tensors.keys().find(|n| n.ends_with(".W")).expect("a matrix").clone();
    let corpus = shown(&corpus());
    let train = |init: &str| {
        let mut command = sel(&["train", "--init", init, "--out", &path("no"), "--corpus", &corpus]);
        command.args(["--preset", "smoke", "--mode", "standard"]);
        command
    };
    for (value, why) in [
        (good.tensors[&name].cast(DType::I32), "is int32, but weights are floating-point numbers"),
        (Array::full(DType::F32, good.tensors[&name].dims(), f64::NAN), "holds numbers that are not finite"),
    ] {
        let mut bad = good.clone();
        bad.tensors.insert(name.clone(), value);
        safetensors::write(path("bad.safetensors"), &bad).expect("written");
        fails(&mut train(&path("bad.safetensors")), 2, &[&format!("bad.safetensors: tensor `{name}` {why}")]);
    }
    let why = "--tied = true: the weights of --init have a head of their own: leave the option out";
    fails(train(&path("good.safetensors")).arg("--tied"), 2, &[why]);
    assert!(!home.path().join("no/run.json").exists());
}
