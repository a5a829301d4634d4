//! `hlo export` and `hlo list`: what is written is read back, and computes what the graph does.

use std::collections::BTreeMap;
use std::path::Path;

use sinexp::array::{Array, DType, Weights};
use sinexp::catalog::{Choices, Function, entries, find};
use sinexp::graph::Shape;
use sinexp::interop::jax_export::Exported;
use sinexp::interop::safetensors::{self, Tensors};
use sinexp::nn::language_model::Start;
use sinexp::nn::sel::Sel;
use sinexp::nn::transformer::Transformer;
use sinexp::optim::{AdamW, Decay, Schedule};
use sinexp::random::Key;
use sinexp::runtime::Device;
use sinexp::train::language::{Checkpoint, Folded, LanguageConfig, Projection, StepSettings, loss_program};

use super::{hlo, prints, refuses, text};

const FORMATS: [&str; 5] = ["hlo", "proto", "stablehlo", "artifact", "jax-export"];

fn extension(format: &str) -> &str {
    match format {
        "hlo" => "hlo.txt",
        "proto" => "pb",
        "stablehlo" => "mlir",
        "artifact" => "bc",
        _ => "jax_export",
    }
}

fn draw(i: usize, shape: &Shape) -> Array {
    let key = Key::new(7).fold_in(i as u32);
    if shape.dtype == DType::I32 {
        let floats = key.uniform::<f64>(&shape.dims, 0.0, 32.0);
        return Array::from_ndarray(&floats.mapv(|x| x as i32));
    }
    Array::from_ndarray(&key.uniform::<f64>(&shape.dims, 0.1, 0.6)).cast(shape.dtype)
}

/// Results by name of the library's own program on arrays by name.
fn expected(function: &Function, inputs: &Weights) -> Vec<Array> {
    let device = Device::open("cpu").expect("a CPU");
    let compiled = device.compile(&function.program).expect("compiles");
    let arguments: Vec<&Array> = function.program.inputs.iter().map(|(name, _)| &inputs[name]).collect();
    compiled.call(&arguments).expect("runs")
}

fn save(path: &Path, tensors: Weights) {
    safetensors::write(path, &Tensors { tensors, metadata: BTreeMap::new() }).expect("written");
}

/// Every format of some programs: shown, run, and the numbers of the graph.
#[test]
fn every_format_computes_what_the_graph_does() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["siren_forward", "sel_offset_residual", "transformer_loss", "regression_step"] {
        let function = find(name).and_then(|e| e.build(&Choices::default())).expect("builds");
        let draws = function.program.inputs.iter().enumerate();
        let inputs: Weights = draws.map(|(i, (name, shape))| (name.clone(), draw(i, shape))).collect();
        let want = expected(&function, &inputs);
        for format in FORMATS {
            let path = folder.path().join(format!("{name}.{}", extension(format)));
            let printed = prints(&["export", name, "--to", format, "--out", text(&path)]);
            let bytes = std::fs::metadata(&path).expect("written").len();
            assert!(printed.contains(&format!("{bytes} bytes written to")), "{printed}");
            let shown = prints(&["show", text(&path)]);
            assert!(shown.contains(name), "{shown}");
            // Files of jax.export name inputs by pytree, in its order; every other format keeps the program's names.
            let (leaves, results) = (function.inputs(), function.outputs());
            let jax = format == "jax-export";
            let place = |i: usize| if jax { leaves[i].0 } else { i };
            let numbered =
                (0..inputs.len()).map(|i| (format!("x_{i}"), inputs[&function.program.inputs[place(i)].0].clone()));
            let given = folder.path().join("inputs.safetensors");
            save(&given, if jax { numbered.collect() } else { inputs.clone() });
            let out = folder.path().join("out.safetensors");
            prints(&["run", text(&path), "--inputs", text(&given), "--out", text(&out)]);
            let got = safetensors::read(&out).expect("written").tensors;
            assert_eq!(got.len(), want.len());
            for (k, want) in want.iter().enumerate() {
                let single = want_name(&got, jax, k, &results);
                let pairs = want.to_f64_vec().into_iter().zip(got[&single].to_f64_vec());
                let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(worst <= 1e-6, "{name} as {format}: result {k} ({single}) off by {worst:e}");
            }
        }
        let path = folder.path().join(format!("{name}.jax_export"));
        let exported = Exported::read(&std::fs::read(&path).expect("there")).expect("whole");
        assert!(exported.vjp.is_some(), "{name}");
        let paths: Vec<String> = exported.in_tree.argument_paths();
        for (path, (_, ours, _)) in paths.iter().zip(function.inputs()) {
            let below = |path: &str| path.find("['").map_or(String::new(), |at| path[at..].to_owned());
            assert_eq!(below(path), below(&ours));
        }
    }
}

/// The name in the file of the program's result `k`.
fn want_name(got: &Weights, jax: bool, k: usize, results: &[(usize, String, &Shape)]) -> String {
    if jax {
        let found = results.iter().find(|(i, ..)| *i == k).expect("every result is a leaf");
        return found.1.clone();
    }
    let number = format!("output.{k}");
    assert!(got.contains_key(&number), "{:?}", got.keys());
    number
}

/// Sizes, types, derivatives and versions as asked for.
#[test]
fn options_are_what_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.jax_export");
    let out = ["--to", "jax-export", "--out", text(&path)];
    let read = || Exported::read(&std::fs::read(&path).expect("there")).expect("whole");
    let export = |more: &[&str]| prints(&[&["export"], &more[..1], &out, &more[1..]].concat());
    let printed = export(&["siren_forward", "--width", "5", "--samples", "3", "--dtype", "f64", "--orders", "2"]);
    assert!(printed.contains("params['W.0']") && printed.contains("float64[5,2]"), "{printed}");
    let exported = read();
    assert_eq!(exported.out_avals[0].to_string(), "float64[3,1]");
    assert!(exported.vjp.is_some_and(|first| first.vjp.is_some_and(|second| second.vjp.is_none())));
    export(&["sel_sinh", "--rows", "4", "--beta", "3", "--orders", "0", "--serialization-version", "12"]);
    let exported = read();
    assert!(exported.vjp.is_none() && exported.serialization_version == 12);
    export(&["transformer_loss", "--dtype", "bf16", "--depth", "1"]);
    assert!(read().in_avals.iter().all(|a| !a.to_string().starts_with("bf")), "weights stay f32");

    let listed = prints(&["list"]);
    for entry in entries() {
        assert!(listed.contains(&format!("{}(", entry.name)), "{listed}");
    }
}

/// A program file, with the derivative that the graph finds; pytrees by the names that JAX gives.
#[test]
fn a_file_is_exported_with_its_derivative() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, path) = (folder.path().join("f.hlo.txt"), folder.path().join("f.jax_export"));
    let program = |operation: &str| {
        format!(
            "HloModule jit_f\n\nENTRY main {{\n  a = f32[3,3] parameter(0), metadata={{op_name=\"p[\\'a\\']\"}}\n  \
             n = s32[] parameter(1), metadata={{op_name=\"n\"}}\n  {operation}\n}}\n"
        )
    };
    std::fs::write(&source, program("ROOT y = f32[3,3] sine(a)")).expect("written");
    let to = ["--to", "jax-export", "--out", text(&path)];
    let printed = prints(&[&["export", text(&source)], &to[..]].concat());
    assert!(!printed.contains("not differentiable"), "{printed}");
    let exported = Exported::read(&std::fs::read(&path).expect("there")).expect("whole");
    assert_eq!(exported.in_tree.argument_paths(), ["args[0]['a']", "args[1]"]);
    assert!(exported.vjp.is_some() && exported.out_tree.leaves().len() == 1);
    // Again from there: the same pytrees, a second order.
    let again = folder.path().join("again.jax_export");
    prints(&["export", text(&path), "--to", "jax-export", "--out", text(&again), "--orders", "2"]);
    let second = Exported::read(&std::fs::read(&again).expect("there")).expect("whole");
    assert_eq!((second.in_tree, second.out_tree), (exported.in_tree, exported.out_tree));
    assert!(second.vjp.is_some_and(|first| first.vjp.is_some()));

    let decomposed = "ROOT y = f32[3,3] cholesky(a), lower=true";
    std::fs::write(&source, program(decomposed)).expect("written");
    let printed = prints(&[&["export", text(&source)], &to[..]].concat());
    assert!(printed.contains("not differentiable in JAX: ") && printed.contains("cholesky"), "{printed}");
    let exported = Exported::read(&std::fs::read(&path).expect("there")).expect("whole");
    assert!(exported.vjp.is_none());
    let output = hlo(&[&["export", text(&source), "--orders", "1"], &to[..]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("cholesky") && error.lines().count() == 1, "{error}");
}

/// The shapes of trained files.
#[test]
fn weights_decide_the_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (weights, path) = (folder.path().join("w.safetensors"), folder.path().join("f.hlo.txt"));
    let choices = Choices { sizes: [("width".into(), 6)].into(), ..Choices::default() };
    let function = find("siren_forward").and_then(|e| e.build(&choices)).expect("builds");
    let trained = function.program.inputs.iter().filter(|(name, _)| name != "x");
    let mut tensors: Weights = trained.enumerate().map(|(i, (name, shape))| (name.clone(), draw(i, shape))).collect();
    tensors.extend(["omega0", "omega_h"].map(|name| (name.to_owned(), Array::scalar(30f32))));
    save(&weights, tensors.clone());
    let export = ["export", "siren_forward", "--to", "hlo", "--out", text(&path), "--weights", text(&weights)];
    let printed = prints(&export);
    for part in ["params['omega0']", "float32[6,6]", "omega_h"] {
        assert!(printed.contains(part), "{printed}");
    }
    let step = prints(&["export", "regression_step", "--to", "hlo", "--out", text(&path), "--weights", text(&weights)]);
    assert!(step.contains("constants['omega_h']"), "{step}");

    std::fs::remove_file(&path).expect("there");
    let error = refuses(&[&export[..], &["--width", "4"]].concat());
    assert!(error.contains("--width") && error.contains("leave it out"), "{error}");
    tensors.remove("W.2");
    save(&weights, tensors);
    let error = refuses(&export);
    assert!(error.contains("w.safetensors") && error.contains("W.2"), "{error}");
    let error =
        refuses(&["export", "transformer_loss", "--to", "hlo", "--out", text(&path), "--weights", text(&weights)]);
    assert!(error.contains("is no language model"), "{error}");
    assert!(!path.exists(), "half-written");
}

/// Files of language models: each block's tensors by their own names, so that the file is an argument as it is.
#[test]
fn a_language_model_is_exported_for_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, tokens) = (folder.path().join("f.hlo.txt"), folder.path().join("tokens.safetensors"));
    let transformer = Transformer { heads: 2, ..Transformer::new(32, 16, 3) };
    let config = LanguageConfig {
        transformer: transformer.clone(),
        projection: Projection::Sel(Sel::new(5.0)),
        start: Start::default(),
        init: None,
        step: StepSettings {
            batch: 3,
            sequence: 6,
            accumulation: 2,
            optimizer: AdamW::default(),
            clip: 1.0,
            schedule: Schedule { peak: 1e-3, warmup: 2, total: 9, decay: Decay::Cosine },
            anneal_steps: 9,
            bf16: false,
            replicas: 1,
        },
        seed: 0,
        corpus: "none".into(),
        tokenizer: "bytes".into(),
        eval_every: 1,
        eval_batches: 1,
    };
    let model = config.model();
    let parameters = model.initial(config.start, Key::new(1)).expect("starts");
    let zeros = |all: &Weights| -> Weights {
        all.iter().map(|(n, a)| (n.clone(), Array::full(a.dtype(), a.dims(), 0.0))).collect()
    };
    let (m, v) = (zeros(&parameters), zeros(&parameters));
    let saved = Checkpoint { step: 4, config: config.clone(), parameters, m, v };
    let checkpoint = saved.save(folder.path(), 1).expect("saved");
    let device = Device::open("cpu").expect("a CPU");
    let folded = Folded::of_checkpoint(&device, &saved).expect("folds");
    let plain = folder.path().join("plain.safetensors");
    folded.write(&plain).expect("written");

    let drawn = draw(3, &Shape::new(DType::I32, &[2, 7]));
    save(&tokens, [("tokens".to_owned(), drawn.clone())].into());
    let program = loss_program(&transformer, 2, 6, false).expect("built");
    let arguments: Vec<&Array> = folded.weights.values().chain([&drawn]).collect();
    let want = device.compile(&program).and_then(|p| p.call(&arguments)).expect("runs")[0].to_f64_vec()[0];
    for file in [folder.path(), &checkpoint, &plain] {
        let printed =
            prints(&["export", "transformer_loss", "--to", "hlo", "--out", text(&path), "--weights", text(file)]);
        assert!(printed.contains("params['blocks.2.q.W") && printed.contains("int32[2,7]"), "{printed}");
        let weights = if file == plain { &plain } else { &checkpoint };
        let out = folder.path().join("out.safetensors");
        let inputs = ["--inputs", text(weights), "--inputs", text(&tokens), "--out", text(&out)];
        prints(&[&["run", text(&path)], &inputs[..]].concat());
        let got = safetensors::read(&out).expect("written").tensors["output.0"].to_f64_vec()[0];
        assert!((got - want).abs() < 1e-5, "{}: {got} for {want}", file.display());
    }
    // The run's own step: its batch, accumulation and SEL leaves.
    let export = ["export", "language_step", "--to", "hlo", "--out", text(&path), "--weights", text(&checkpoint)];
    let printed = prints(&export);
    assert!(printed.contains("int32[2,3,7]") && printed.contains("blocks.q.W.e.r"), "{printed}");
    let error = refuses(&[&export[..], &["--depth", "2"]].concat());
    assert!(error.contains("--depth") && error.contains("leave it out"), "{error}");
}

/// Mistakes are one line, and nothing is written.
#[test]
fn mistakes_are_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out");
    let fails = |arguments: &[&str], parts: &[&str]| {
        let error = refuses(&[&["export", "--out", text(&path)], arguments].concat());
        for part in parts {
            assert!(error.contains(part), "{arguments:?}: no `{part}` in {error}");
        }
        assert!(!path.exists(), "{arguments:?} wrote a file");
    };
    fails(&["siren", "--to", "hlo"], &["program = siren", "expected a file, or one of siren_forward"]);
    fails(&["siren_forward", "--to", "text"], &["--to", "jax-export"]);
    fails(&["siren_forward", "--to", "hlo", "--depth", "2"], &["--depth", "no such option, only --inputs"]);
    fails(&["siren_forward", "--to", "hlo", "--width", "0"], &["--width", "at least 1"]);
    fails(&["siren_forward", "--to", "hlo", "--width", "-3"], &["--width"]);
    fails(&["siren_forward", "--to", "hlo", "--width", "999999999"], &["smaller sizes"]);
    fails(&["siren_forward", "--to", "hlo", "--orders", "2"], &["--orders", "not --to hlo"]);
    fails(&["siren_forward", "--to", "proto", "--stablehlo-version", "1.0.0"], &["--stablehlo-version", "--to proto"]);
    fails(&["siren_forward", "--to", "artifact", "--stablehlo-version", "99.9.9"], &["99.9.9", "none after"]);
    fails(&["siren_forward", "--to", "jax-export", "--stablehlo-version", "new"], &["--stablehlo-version", "1.0.0"]);
    fails(&["siren_forward", "--to", "hlo", "--dtype", "bf16"], &["--dtype", "f32, f64"]);
    fails(&["siren_forward", "--to", "hlo", "--dtype", "float"], &["--dtype", "float"]);
    fails(&["siren_forward", "--to", "hlo", "--activation", "cos"], &["--activation", "sine, tanh"]);
    fails(&["sel_mismatch", "--to", "hlo", "--beta", "-1"], &["--beta", "positive"]);
    fails(&["sel_mismatch", "--to", "hlo", "--weights", "w.safetensors"], &["--weights", "sizes only"]);
    fails(&["transformer_loss", "--to", "hlo", "--heads", "3"], &["--heads", "divisor"]);
    fails(&["language_step", "--to", "hlo", "--weights", "/nowhere"], &["/nowhere"]);
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/hlo/siren_forward.hlo.txt");
    fails(&[stored, "--to", "proto", "--width", "4"], &["is a file"]);
    let nowhere = folder.path().join("missing/out");
    let error = refuses(&["export", "siren_forward", "--to", "hlo", "--out", text(&nowhere)]);
    assert!(error.contains("missing"), "{error}");
}
