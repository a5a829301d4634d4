//! Table 7: the parts of a step do what the step does, and the table is what the rounds come to.

use std::path::Path;
use std::process::Command;

use polars::prelude::Column;
use sinexp::array::{Array, DType, Weights};
use sinexp::nn::language_model::LanguageModel;
use sinexp::nn::sel::Sel;
use sinexp::nn::transformer::Transformer;
use sinexp::optim::{AdamW, Decay, Schedule};
use sinexp::random::Key;
use sinexp::report::{Table, TableFormat};
use sinexp::train::language::{StepSettings, forward_program, gradients_program, step_program, update_program};

use super::common::cli::{check_whole, numbers, table, texts};
use super::common::cpu;
use super::{fails, folder, program, succeeds, words};

/// The results of a program by name, from arguments by name.
fn run(program: &sinexp::graph::Program, arguments: &Weights) -> Weights {
    let program = cpu().compile(program).expect("compiled");
    let inputs: Vec<&Array> = program.inputs().map(|(name, _)| &arguments[name]).collect();
    let results = program.call(&inputs).expect("results");
    program.outputs().map(|(name, _)| name.to_owned()).zip(results).collect()
}

#[test]
fn the_parts_of_a_step_do_what_the_step_does() {
    let mut transformer = Transformer::new(61, 32, 2);
    transformer.heads = 2;
    let model = LanguageModel::new(transformer, Sel::new(5.0));
    for accumulation in [1, 3] {
        let settings = StepSettings {
            batch: 2,
            sequence: 16,
            accumulation,
            optimizer: AdamW::default(),
            clip: 0.5,
            schedule: Schedule { peak: 1e-3, warmup: 1, total: 10, decay: Decay::Linear },
            anneal_steps: 10,
            bf16: false,
            replicas: 1,
        };
        let mut state = model.initial(Default::default(), Key::new(3)).expect("a start");
        for p in model.parameters() {
            for prefix in ["m.", "v."] {
                state.insert(format!("{prefix}{}", p.name), Array::full(DType::F32, &p.dims, 0.0));
            }
        }
        state.insert("t".into(), Array::scalar(2f32));
        state.insert("finite".into(), Array::scalar(1f32));
        let tokens = Key::new(4).randint(&[accumulation, 2, 17], 0, 61);
        state.insert("tokens".into(), Array::from_ndarray(&tokens));

        let whole = run(&step_program(&model, &settings).expect("a program"), &state);
        let forward = run(&forward_program(&model, &settings).expect("a program"), &state);
        let gradients = run(&gradients_program(&model, &settings).expect("a program"), &state);
        let given = state.clone().into_iter().chain(gradients.clone()).collect();
        let updated = run(&update_program(&model, &settings).expect("a program"), &given);

        let close = |a: &Array, b: &Array, what: &str| {
            for (a, b) in a.to_f64_vec().iter().zip(b.to_f64_vec()) {
                assert!((a - b).abs() <= 2e-5 * b.abs().max(1e-2), "{what}: {a} and {b}");
            }
        };
        close(&forward["loss"], &whole["loss"], "forward");
        close(&gradients["loss"], &whole["loss"], "forward and backward");
        close(&updated["grad_norm"], &whole["grad_norm"], "norm");
        assert!(whole["grad_norm"].to_f64_vec()[0] > 0.5, "nothing is clipped");
        for (name, value) in &updated {
            close(value, &whole[name], name);
        }
        assert_eq!(updated.len() + 1, whole.len());
        let moved = |name: &str| updated[name].to_f64_vec() != state[name].to_f64_vec();
        assert!(model.parameters().iter().filter(|p| moved(&p.name)).count() > 30, "parameters stay");
    }
}

/// A Table 1 with a row for width 16 and depth 1.
fn table1(folder: &Path) -> std::path::PathBuf {
    let columns = vec![
        Column::new("width".into(), [16i64]),
        Column::new("depth".into(), [1i64]),
        Column::new("best SEL".into(), ["SEL mismatch + offset, LoRA"]),
        Column::new("speed-up".into(), [1.5]),
    ];
    let path = folder.join("one.parquet");
    Table::new("Table 1", columns).expect("fits").write(&path, TableFormat::Parquet).expect("written");
    path
}

fn profile(options: &str, out: &Path) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_sel-table7"));
    command
        .args(words("--preset smoke --sequence 16 --rounds 3 --warmup-rounds 1 --out"))
        .arg(out)
        .args(words(options));
    command
}

fn median(mut three: Vec<f64>) -> f64 {
    three.sort_by(f64::total_cmp);
    three[1]
}

#[test]
fn the_table_is_what_the_rounds_come_to() {
    let folder = folder();
    let out = folder.path().join("table7");
    let one = table1(folder.path());
    let said = succeeds(profile("--sizes 16x1,32x2 --accumulation 2", &out).arg("--table1").arg(&one));
    for part in ["Table 7: ", "baseline / SEL mismatch", "one.parquet", "± ", "row 16 × 1, SEL mismatch + offset, LoRA"]
    {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
    for name in
        ["table.md", "table.csv", "table.parquet", "timings.csv", "timings.parquet", "rounds.parquet", "run.json"]
    {
        check_whole(&out.join(name));
    }
    let (seven, timings, rounds) =
        (table(&out.join("table.parquet")), table(&out.join("timings.parquet")), table(&out.join("rounds.parquet")));
    assert_eq!(texts(&timings, "variant"), ["baseline", "sel-mismatch", "baseline", "sel-mismatch"]);
    assert_eq!((seven.height(), rounds.height()), (2, 12));
    let part = |name: &str| numbers(&rounds, name);
    let (forward, both, optimizer) = (part("forward_ms"), part("forward_backward_ms"), part("optimizer_ms"));
    let mut sums = Vec::new();
    for i in 0..4 {
        let of = |value: &dyn Fn(usize) -> f64| median((3 * i..3 * i + 3).map(value).collect());
        let medians = [of(&|r| forward[r]), of(&|r| both[r] - forward[r]), of(&|r| optimizer[r])];
        for (value, name) in medians.iter().zip(["forward_ms", "backward_ms", "optimizer_ms"]) {
            assert!((numbers(&timings, name)[i] - value).abs() < 1e-9, "{name} {i}");
        }
        assert!(medians[0] > 0.0 && medians[2] > 0.0);
        sums.push(medians.iter().sum::<f64>());
    }
    let overhead = numbers(&seven, "overhead");
    assert!((overhead[0] - 100.0 * (sums[1] / sums[0] - 1.0)).abs() < 1e-6, "{overhead:?} {sums:?}");
    assert!((overhead[1] - 100.0 * (sums[3] / sums[2] - 1.0)).abs() < 1e-6, "{overhead:?} {sums:?}");
    let estimates = numbers(&seven, "est. speed-up");
    assert!((estimates[0] - 1.5 / (1.0 + overhead[0] / 100.0)).abs() < 1e-9, "{estimates:?}");
    assert!(estimates[1].is_nan());
    assert_eq!(texts(&seven, "Table 1")[1], "no row 32 × 2");

    let said = succeeds(&mut profile("--sizes 16x1 --apart --variant sel-sinh", &folder.path().join("apart")));
    assert!(said.contains("baseline / SEL sinh") && said.contains("16 × 1: one after the other"), "{said}");
    assert!(said.contains("No Table 1") && said.contains("no Table 1"), "{said}");
    let said = succeeds(&mut profile("--estimate", &folder.path().join("none")));
    assert!(said.contains("memory [GB]") && !folder.path().join("none").exists(), "{said}");
}

#[test]
fn mistakes_of_a_profile() {
    let folder = folder();
    let out = folder.path().join("out");
    let refused = |options: &str, parts: &[&str]| {
        let mut command = program(env!("CARGO_BIN_EXE_sel-table7"));
        command.args(words("--preset smoke --out")).arg(&out).args(words(options));
        fails(&mut command, 2, parts);
        assert!(!out.exists(), "{options}");
    };
    refused("--width 16", &["--width = 16", "--sizes"]);
    refused("--depth 2", &["--depth = 2", "--sizes"]);
    refused("--eval-every 2", &["--eval-every = 2", "nothing is evaluated"]);
    refused("--sizes 16", &["--sizes", "16", "WIDTHxDEPTH"]);
    refused("--sizes 0x2", &["--sizes", "0x2"]);
    refused("--heads 3", &["--heads = 3"]);
    refused("--rounds 0", &["--rounds", "0"]);
    refused("--variant baseline", &["--variant = baseline"]);
    refused("--variant sinh", &["--variant", "sinh", "sel-sinh"]);
    refused("--beta -1", &["--beta = -1"]);
    refused("--device gpu0", &["device = gpu0"]);
    let missing = folder.path().join("none.parquet");
    refused(&format!("--table1 {}", missing.display()), &["none.parquet: cannot be opened"]);
    let other = folder.path().join("other.parquet");
    let columns = vec![Column::new("width".into(), [16i64]), Column::new("depth".into(), [1i64])];
    Table::new("other", columns).expect("fits").write(&other, TableFormat::Parquet).expect("written");
    refused(&format!("--table1 {}", other.display()), &["other.parquet: is no Table 1", "`best SEL`", "sel-table1"]);
    let text = folder.path().join("table.md");
    std::fs::write(&text, "# Table 1\n").expect("written");
    refused(&format!("--table1 {}", text.display()), &["table.md: is no Table 1", "table.parquet of sel-table1"]);
}
