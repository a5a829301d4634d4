//! The programs that draw Figures 2, 3 and 6 to 12 of the SEL paper, from outside: numbers against formulas, and one clear
//! line for every mistake.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::cli::{check_whole, files, numbers, table, texts};
use polars::prelude::{CsvReadOptions, DataFrame, SerReader};
use serde_json::json;
use sinexp::array::{Array, DType};
use sinexp::interop::safetensors::{self, Tensors};
use sinexp::nn::language_model::{Start, Weights};
use sinexp::nn::sel::{Mode, Sel};
use sinexp::nn::transformer::Transformer;
use sinexp::optim::{AdamW, Decay, Schedule};
use sinexp::random::Key;
use sinexp::train::language::metrics::Row;
use sinexp::train::language::{Checkpoint, LanguageConfig, Metrics, Projection, StepSettings};
use tempfile::tempdir;

const BETA: f64 = 4.0;

fn run(program: &str, arguments: &[&str], out: &Path) -> Output {
    let path = match program {
        "sel-curves" => env!("CARGO_BIN_EXE_sel-curves"),
        "sel-mismatch" => env!("CARGO_BIN_EXE_sel-mismatch"),
        "sel-shapes" => env!("CARGO_BIN_EXE_sel-shapes"),
        _ => env!("CARGO_BIN_EXE_sel-weights"),
    };
    Command::new(path).args(arguments).arg("--out").arg(out).output().expect("starts")
}

/// Runs it into a new folder, expects success, and checks every file and that exactly `figures` are drawn.
fn drawn(program: &str, arguments: &[&str], out: &Path, figures: &[&str]) -> String {
    let output = run(program, arguments, out);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    let all = files(out);
    all.values().for_each(|path| check_whole(path));
    let pictures: Vec<&str> = all.keys().filter_map(|name| name.strip_suffix(".png")).collect();
    assert_eq!(pictures, figures, "{program}");
    assert!(figures.iter().all(|name| all.contains_key(&format!("{name}.svg"))));
    assert!(all.contains_key("run.json"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Expects one `error:` line that holds every one of `parts`, exit code 2, and no output folder.
fn refused(program: &str, arguments: &[&str], parts: &[&str]) {
    let folder = tempdir().expect("temporary folder");
    let out = folder.path().join("out");
    let output = run(program, arguments, &out);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{program} {arguments:?}: {text}");
    assert!(text.starts_with("error: "), "{text}");
    for part in parts {
        assert!(text.contains(part), "{program} {arguments:?}: `{text}` does not say `{part}`");
    }
    assert!(!out.exists(), "{program} {arguments:?} left a folder behind");
}

fn csv(path: &Path) -> DataFrame {
    let reader = CsvReadOptions::default().try_into_reader_with_file_path(Some(path.to_owned())).expect("opens");
    reader.finish().expect("parses")
}

fn near(got: f64, want: f64, tolerance: f64, what: &str) {
    assert!((got - want).abs() <= tolerance, "{what}: {got} instead of {want}");
}

#[test]
fn curves_follow_the_papers_equations() {
    let folder = tempdir().expect("temporary folder");
    let options = ["--beta", "5", "--offsets=-0.5,0,2", "--modes-offset", "0.3"];
    drawn("sel-curves", &options, folder.path(), &["fig10", "fig11", "fig2", "fig3", "modes"]);
    let curves = table(&folder.path().join("curves.parquet"));
    let (figure, curve, mode) = (texts(&curves, "figure"), texts(&curves, "curve"), texts(&curves, "mode"));
    let (panel, beta, n) = (numbers(&curves, "panel"), numbers(&curves, "beta"), numbers(&curves, "n"));
    let (raw, effective) = (numbers(&curves, "raw"), numbers(&curves, "effective"));
    let mut seen = BTreeMap::new();
    for i in 0..raw.len() {
        let (b, n, w) = (beta[i], n[i], raw[i]);
        let sign = if w < 0.0 { -1.0 } else { 1.0 };
        // Eq. 5, 6, 8, 9, 12, 16, 17 with e_w = l_w = 1 / beta, m = 1.
        let e = ((b * w.abs() - n).exp() - (-n).exp()) / b;
        let l = w / b;
        let want = match mode[i].as_str() {
            "congruent" => sign * e + l,
            "mismatch" => sign * (e + l),
            "oppose" => sign * e - l,
            "exp_only" => sign * e,
            "sinh" => (b * w).sinh() / b + l,
            "sinh_only" => (b * w).sinh() / b,
            _ => sign * e / w.abs().exp() + w * (1.0 - (-n * w.abs().exp()).exp()),
        };
        near(effective[i], want, 1e-12 * want.abs().max(1.0), &format!("{} {} at {w}", figure[i], curve[i]));
        *seen.entry((figure[i].clone(), panel[i] as usize)).or_insert(0) += 1;
    }
    let curves_of = |figure: &str, panel: usize| seen.get(&(figure.to_owned(), panel)).copied().unwrap_or(0) / 401;
    assert_eq!([0, 1, 2].map(|p| curves_of("fig2", p)), [1, 3, 3]);
    assert_eq!((curves_of("fig3", 0), [0, 1, 2, 3].map(|p| curves_of("fig10", p))), (2, [1; 4]));
    assert_eq!([0, 1].map(|p| curves_of("fig11", p)), [1, 1]);
    assert_eq!([0, 1].map(|p| curves_of("modes", p)), [7, 5]);
}

#[test]
fn mistakes_with_curves_and_starts_are_refused() {
    refused("sel-curves", &["--beta", "0"], &["--beta", "positive"]);
    refused("sel-curves", &["--betas", "7,x"], &["--betas", "x"]);
    refused("sel-curves", &["--modes", "mismatch,bent"], &["bent", "sinh_only"]);
    refused("sel-curves", &["--range", "-1"], &["--range", "positive"]);
    refused("sel-curves", &["--range", "1e5"], &["--range", "smaller"]);
    refused("sel-mismatch", &["--beta", "nan"], &["--beta", "positive"]);
    refused("sel-mismatch", &["--shape", "8"], &["--shape", "two sizes"]);
    refused("sel-mismatch", &["--width", "1"], &["--width"]);
    refused("sel-mismatch", &["--target", "he"], &["--target", "xavier_normal"]);
    refused("sel-mismatch", &["--width", "16", "--beta", "900"], &["smaller beta"]);
}

/// The numbers of an independent program for width 1024 and beta 7.5: negative over positive weights .781 (.765 to .796),
/// singular values 3.22 and 1.78 (each seed's target has a mean of its own: 0.03 either way).
#[test]
fn the_start_has_the_ratio_and_the_outlier() {
    let folder = tempdir().expect("temporary folder");
    let said = drawn("sel-mismatch", &["--seed", "3"], folder.path(), &["fig12", "singular_values"]);
    assert!(said.contains("75-80 %"), "{said}");
    let signs = csv(&folder.path().join("by_sign.csv"));
    let column = |name: &str| numbers(&signs, name);
    assert_eq!(texts(&signs, "target"), ["positive", "negative", "all"]);
    for (name, want) in [("actual / target", 0.781), ("least", 0.765), ("most", 0.796)] {
        near(column(name)[0], 1.0, 1e-5, &format!("positive {name}"));
        near(column(name)[1], want, 6e-4, &format!("negative {name}"));
    }
    near(column("least")[1], 6.5 / 8.5, 1e-4, "the limit of small weights");
    let outliers = csv(&folder.path().join("outliers.csv"));
    let column = |name: &str| numbers(&outliers, name);
    near(column("σ₁")[1], 3.22, 0.06, "largest singular value");
    near(column("σ₂")[1], 1.78, 0.02, "the next");
    near(column("σ₁ by the mean")[1], column("σ₁")[1], 0.03, "what the mean predicts");
    near(column("σ₁")[0], 2.0, 0.02, "the target has none");
}

/// In congruent mode the start is the target; the mean is that of the target.
#[test]
fn a_congruent_start_is_its_target() {
    let folder = tempdir().expect("temporary folder");
    let options = ["--mode", "congruent", "--shape", "96,64", "--target", "xavier_normal"];
    drawn("sel-mismatch", &options, folder.path(), &["fig12", "singular_values"]);
    let signs = csv(&folder.path().join("by_sign.csv"));
    assert!(numbers(&signs, "actual / target").iter().all(|r| (r - 1.0).abs() < 1e-5));
    let values = table(&folder.path().join("singular_values.parquet"));
    assert_eq!(values.height(), 64);
    for (target, actual) in numbers(&values, "target").into_iter().zip(numbers(&values, "actual")) {
        near(actual, target, 1e-5, "singular value");
    }
}

fn config(projection: Projection, width: usize) -> LanguageConfig {
    let schedule = Schedule { peak: 1e-3, warmup: 0, total: 20, decay: Decay::Linear };
    let step = StepSettings {
        batch: 2,
        sequence: 8,
        accumulation: 1,
        optimizer: AdamW::default(),
        clip: 1.0,
        schedule,
        anneal_steps: 20,
        bf16: false,
        replicas: 1,
    };
    LanguageConfig {
        transformer: Transformer::new(11, width, 2),
        projection,
        init: None,
        start: Start::default(),
        step,
        seed: 5,
        corpus: "none".into(),
        tokenizer: "bytes".into(),
        eval_every: 5,
        eval_batches: 1,
    }
}

/// A run's folder as `sel train` leaves it: its start, changed, as the checkpoint of step 20.
fn run_folder(folder: &Path, config: &LanguageConfig, change: impl FnOnce(&mut Weights)) {
    let mut parameters = config.model().initial(config.start, Key::new(config.seed).fold_in(0)).expect("starts");
    change(&mut parameters);
    let zeros: Weights =
        parameters.iter().map(|(name, p)| (name.clone(), Array::full(DType::F32, p.dims(), 0.0))).collect();
    let (m, v) = (zeros.clone(), zeros);
    Checkpoint { step: 20, config: config.clone(), parameters, m, v }.save(folder, 1).expect("saved");
    let tracked = |step: usize| ["q", "ff1"].map(|role| (format!("{role}.e_w"), 1.0 + step as f64 / 100.0)).into();
    let row = |step: usize| Row {
        step,
        loss: 3.0,
        eval_loss: Some(4.0 - step as f64 / 20.0),
        tracked: tracked(step),
        ..Row::default()
    };
    Metrics { rows: [0, 5, 10, 15, 20].map(row).to_vec() }.write(folder).expect("written");
    fs::write(folder.join("run.json"), json!({ "config": config }).to_string()).expect("written");
}

/// Multiplies entries of a parameter from `from` to `to` along its last dimension.
fn scale(weights: &mut Weights, name: &str, from: usize, to: usize, factor: f32) {
    let mut values = weights[name].to_ndarray::<f32>().expect("f32");
    let last = values.ndim() - 1;
    for mut lane in values.lanes_mut(ndarray::Axis(last)) {
        lane.iter_mut().skip(from).take(to - from).for_each(|v| *v *= factor);
    }
    weights.insert(name.to_owned(), Array::from_ndarray(&values));
}

#[test]
fn shapes_show_the_scales_of_each_role() {
    let folder = tempdir().expect("temporary folder");
    let (trained, out) = (folder.path().join("run"), folder.path().join("out"));
    let config = config(Projection::Sel(Sel::new(BETA)), 16);
    let hidden = config.transformer.hidden;
    run_folder(&trained, &config, |weights| {
        scale(weights, "blocks.q.W.e.r", 0, 16, 1.5);
        // The gate is the first half of the fused matrix's rows.
        scale(weights, "blocks.ff1.W.l.r", 0, hidden, 2.0);
        scale(weights, "blocks.ff2.W.m.c", 0, hidden, 3.0);
    });
    let path = trained.to_str().expect("a path");
    let said = drawn("sel-shapes", &[path, "--positions", "300"], &out, &["fig6", "fig8", "fig9"]);
    assert!(said.contains("e_w 1.200"), "{said}");
    let roles = csv(&out.join("roles.csv"));
    assert_eq!(texts(&roles, "role"), ["q", "k", "v", "o", "gate", "up", "down"]);
    let column = |name: &str| numbers(&roles, name);
    let (e, l, m) = ([1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0], [1.0; 6]);
    for role in 0..7 {
        let m = m.get(role).copied().unwrap_or(3.0);
        near(column("e_w / start")[role], e[role], 1e-6, "e_w");
        near(column("l_w / start")[role], l[role], 1e-6, "l_w");
        near(column("m / start")[role], m, 1e-6, "m");
        near(column("slope at 0+")[role], e[role] * m + l[role] / BETA, 1e-4, "slope from the right");
        near(column("slope at 0−")[role], e[role] * m - l[role] / BETA, 1e-4, "slope from the left");
        near(column("0+ at start")[role], 1.0 + 1.0 / BETA, 1e-4, "slope at the start");
        let x = column("largest |raw|")[role];
        let gain = (e[role] * (BETA * m * x).exp_m1() / BETA + l[role] * x / BETA) / x;
        near(column("gain at +")[role], gain, 1e-5, "gain");
    }
    // All positions of a role are alike here, so every band is the curve itself.
    let shapes = table(&out.join("shapes.parquet"));
    let (role, raw, initial) = (texts(&shapes, "role"), numbers(&shapes, "raw"), numbers(&shapes, "initial"));
    for q in ["q0.1", "q1", "q5", "q50", "q95", "q99", "q99.9"] {
        let values = numbers(&shapes, q);
        for i in (0..role.len()).filter(|i| role[*i] == "o") {
            near(values[i], initial[i], 1e-6, &format!("{q} at {}", raw[i]));
        }
    }
    // Two runs: both evaluation curves, told apart by their multipliers or their folders.
    let other = folder.path().join("other");
    run_folder(&other, &config, |_| {});
    let against = other.to_str().expect("a path");
    drawn("sel-shapes", &[path, "--against", against], &folder.path().join("two"), &["fig6", "fig8", "fig9"]);
    let svg = fs::read_to_string(folder.path().join("two/fig6.svg")).expect("drawn");
    assert!(svg.contains("annealed multipliers, run") && svg.contains("annealed multipliers, other"));
}

#[test]
fn weights_are_compared_with_the_baseline() {
    let folder = tempdir().expect("temporary folder");
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().expect("a path").to_owned();
    run_folder(&path("sel"), &config(Projection::Sel(Sel::new(BETA)), 16), |weights| {
        scale(weights, "blocks.q.W.e.r", 0, 16, 2.0);
    });
    run_folder(&path("baseline"), &config(Projection::Standard, 16), |_| {});
    let (sel, baseline) = (text("sel"), text("baseline"));
    let options = [sel.as_str(), "--baseline", &baseline, "--per-role"];
    drawn("sel-weights", &options, &path("out"), &["fig7", "fig7_roles"]);
    let rows = csv(&path("out/weights.csv"));
    let (run, time, role) = (texts(&rows, "run"), texts(&rows, "time"), texts(&rows, "role"));
    let value = |wanted: [&str; 3], name: &str| {
        let at = (0..run.len()).find(|i| [run[*i].as_str(), time[*i].as_str(), role[*i].as_str()] == wanted);
        numbers(&rows, name)[at.expect("a row")]
    };
    assert_eq!(run.len(), 4 * 8);
    // Positive weights start at their targets, so the largest are the same; negative ones shrink.
    near(value(["SEL", "start", "v"], "max"), value(["baseline", "start", "v"], "max"), 0.03, "largest at the start");
    assert!(value(["SEL", "start", "v"], "std") < 0.9 * value(["baseline", "start", "v"], "std"));
    near(value(["baseline", "start", "v"], "excess kurtosis"), -1.2, 0.15, "a uniform law");
    near(value(["SEL", "end", "v"], "max / start"), 1.0, 1e-6, "untouched");
    assert_eq!(value(["SEL", "end", "v"], "beyond start"), 0.0);
    assert!(value(["SEL", "end", "q"], "max / start") > 1.5 && value(["SEL", "end", "q"], "beyond start") > 0.1);
    let bins = table(&path("out/histograms.parquet"));
    let total: f64 = (0..bins.height())
        .map(|i| numbers_at(&bins, "density", i) * (numbers_at(&bins, "high", i) - numbers_at(&bins, "low", i)))
        .sum();
    near(total, 32.0, 1e-9, "each of 32 histograms has an integral of one");
}

fn numbers_at(table: &DataFrame, name: &str, row: usize) -> f64 {
    table.column(name).expect("a column").get(row).expect("a row").try_extract().expect("a number")
}

#[test]
fn folders_of_the_wrong_kind_are_refused() {
    let folder = tempdir().expect("temporary folder");
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().expect("a path").to_owned();
    let sel_config = config(Projection::Sel(Sel::new(BETA).with_mode(Mode::Sinh)), 16);
    for (name, of) in [("sel", &sel_config), ("empty", &sel_config), ("old", &sel_config), ("other", &sel_config)] {
        run_folder(&path(name), of, |_| {});
    }
    run_folder(&path("baseline"), &config(Projection::Standard, 16), |_| {});
    run_folder(&path("wide"), &config(Projection::Standard, 32), |_| {});
    let file = |run: &str| path(run).join("checkpoints/step-00000020.safetensors");
    fs::remove_file(file("empty")).expect("removed");
    let mut old = safetensors::read(file("old")).expect("a checkpoint");
    old.metadata.insert("format".into(), "sinexp language checkpoint 1".into());
    let Tensors { tensors, metadata } = old;
    safetensors::write(file("old"), &Tensors { tensors, metadata }).expect("written");
    let continued = LanguageConfig { init: Some("raw.safetensors, sha256 0123".into()), ..sel_config.clone() };
    run_folder(&path("continued"), &continued, |_| {});
    let changed = LanguageConfig { seed: 6, ..sel_config };
    fs::write(path("other").join("run.json"), json!({ "config": changed }).to_string()).expect("written");
    fs::create_dir(path("nothing")).expect("made");

    for program in ["sel-shapes", "sel-weights"] {
        let with = |run: &str, parts: &[&str]| {
            let run = text(run);
            let mut arguments = vec![run.as_str()];
            let baseline = text("baseline");
            if program == "sel-weights" {
                arguments.extend(["--baseline", &baseline]);
            }
            refused(program, &arguments, parts);
        };
        with("baseline", &["baseline", "expected one of SEL"]);
        with("empty", &["empty", "no checkpoint"]);
        with("old", &["old", "checkpoint 1", "checkpoint 2"]);
        with("other", &["another configuration"]);
        with("nothing", &["nothing", "run.json"]);
        with("absent", &["absent", "not a folder"]);
    }
    let [sel, wide, baseline] = ["sel", "wide", "baseline"].map(text);
    refused("sel-weights", &[&sel, "--baseline", &sel], &["run of SEL", "sinh", "--baseline"]);
    refused("sel-weights", &[&sel, "--baseline", &wide], &["wide", "width 32", "16"]);
    refused("sel-weights", &[&text("continued"), "--baseline", &baseline], &["continued", "raw.safetensors", "--init"]);
    refused("sel-shapes", &[&sel, "--range", "0"], &["--range"]);
    refused("sel-shapes", &[&sel, "--positions", "0"], &["--positions"]);
    refused("sel-shapes", &[&sel, "--against", &text("absent")], &["absent"]);
    let out = path("fine");
    drawn("sel-weights", &[&sel, "--baseline", &baseline], &out, &["fig7"]);
}
