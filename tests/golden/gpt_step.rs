//! The language model's programs: a stored AdamW step, accumulated gradients, folded weights, numbers that are no longer
//! finite.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use sinexp::array::{Array, DType};
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::nn::language_model::{LanguageModel, Start, Weights};
use sinexp::optim::{AdamW, Decay, Schedule};
use sinexp::random::Key;
use sinexp::runtime::Executable;
use sinexp::train::language::{StepSettings, effective_program, loss_program, step_program, tracked_program};

use crate::common::cpu;
use crate::gpt::{Golden, inputs, moments, reshaped};
use crate::relative;

/// The stored step: learning rate 1e-3, T such that k(9) here is the stored k(100) at T = 1000.
fn settings(accumulation: usize, batch: usize) -> StepSettings {
    StepSettings {
        batch,
        sequence: 32,
        accumulation,
        optimizer: AdamW::default(),
        clip: 1.0,
        schedule: Schedule { peak: 1e-3, warmup: 0, total: 1000, decay: Decay::Constant },
        anneal_steps: 90,
        bf16: false,
        replicas: 1,
    }
}

/// The stored step's program, compiled once.
fn stored_step() -> &'static (Program, Executable) {
    static STEP: OnceLock<(Program, Executable)> = OnceLock::new();
    STEP.get_or_init(|| {
        let program = step_program(&Golden::read("mismatch").model(true, false), &settings(1, 2)).expect("a program");
        let executable = cpu().compile(&program).expect("compiles");
        (program, executable)
    })
}

fn call(executable: &Executable, values: &[Array]) -> Vec<Array> {
    executable.call(&values.iter().collect::<Vec<_>>()).expect("a run")
}

fn run(program: &Program, values: &[Array]) -> Vec<Array> {
    call(&cpu().compile(program).expect("compiles"), values)
}

/// The arguments before the stored step, tokens `[accumulation, batch, 33]`.
fn before(golden: &Golden, model: &LanguageModel, accumulation: usize, batch: usize) -> Vec<Array> {
    let gradients = golden.below("grad");
    let mut state = golden.parameters(model, DType::F32);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for p in model.parameters() {
        let (m, v) = moments(&model.stack(&p.name, &p.dims, &gradients).expect("stored").to_f64_vec());
        first.push(Array::from_slice(&p.dims, &m).cast(DType::F32));
        second.push(Array::from_slice(&p.dims, &v).cast(DType::F32));
    }
    state.extend(first);
    state.extend(second);
    state.extend([9.0f32, 1.0].map(Array::scalar));
    state.push(reshaped(&golden.tokens(), &[accumulation, batch, 33]));
    state
}

fn number(a: &Array) -> f64 {
    a.to_f64_vec()[0]
}

/// New - old of every stored tensor, to 2e-5 of its maximum and the rounding of the new parameter.
#[test]
fn one_step() {
    let golden = Golden::read("mismatch");
    let model = golden.model(true, false);
    let old = before(&golden, &model, 1, 2);
    let (program, step) = stored_step();
    let names: Vec<String> = program.outputs.iter().map(|(name, _)| name.clone()).collect();
    let new = call(step, &old);
    let of = |name: &str| &new[names.iter().position(|n| n == name).expect("a result")];
    assert_eq!((number(of("t")), number(of("finite"))), (10.0, 1.0));
    relative("loss", of("loss"), &golden.file["loss.f64"], 2e-6);
    relative("norm", of("grad_norm"), &golden.file["grad_norm"], 2e-6);

    let count = model.parameters().len();
    let stacked =
        |values: &[Array]| -> Weights { names.iter().cloned().zip(values[..count].iter().cloned()).collect() };
    let [old, new] = [&old, &new].map(|values| model.split(&stacked(values)).expect("two blocks"));
    let mut compared = 0;
    for (name, want) in golden.below("delta") {
        let want = want.to_f64_vec();
        let largest = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let both = old[&name].to_f64_vec().into_iter().zip(new[&name].to_f64_vec());
        for (i, ((old, new), want)) in both.zip(want).enumerate() {
            let tolerance = 2e-5 * largest + 0.5 * f64::from(f32::EPSILON) * new.abs();
            let got = new - old;
            assert!((got - want).abs() <= tolerance, "{name} {i}: {got}, expected {want} to {tolerance:e}");
        }
        compared += 1;
    }
    assert_eq!(compared, 71);
}

/// Two passes over one sequence each are one pass over both.
#[test]
fn accumulation_is_one_batch() {
    let golden = Golden::read("mismatch");
    let model = golden.model(true, false);
    let program = step_program(&model, &settings(2, 1)).expect("a program");
    let twice = cpu().compile(&program).expect("compiles");
    let results = [(1, 2, &stored_step().1), (2, 1, &twice)].map(|(accumulation, batch, step)| {
        let mut values = before(&golden, &model, accumulation, batch);
        // Without a first moment the new one is the gradient.
        let count = model.parameters().len();
        for m in &mut values[count..2 * count] {
            *m = Array::full(DType::F32, m.dims(), 0.0);
        }
        call(step, &values)
    });
    for ((name, _), (whole, parts)) in program.outputs.iter().zip(results[0].iter().zip(&results[1])) {
        relative(name, parts, whole, if name.starts_with("m.") { 1e-5 } else { 1e-6 });
    }
}

/// A step whose loss or gradient is not finite changes nothing and says so; no later step changes anything.
#[test]
fn nothing_is_trained_on_what_is_not_finite() {
    let golden = Golden::read("mismatch");
    let model = golden.model(true, false);
    let (program, step) = stored_step();
    let run = |values: &[Array]| call(step, values);
    let healthy = before(&golden, &model, 1, 2);
    let finite = program.inputs.iter().position(|(name, _)| name == "finite").expect("a flag");
    let bytes = |values: &[Array]| values[..finite].iter().map(|a| a.bytes().to_vec()).collect::<Vec<_>>();

    let after = run(&healthy);
    assert!(bytes(&after).iter().zip(bytes(&healthy)).all(|(a, b)| *a != b), "a good step changes every tensor");

    let mut poisoned = Vec::new();
    for (name, value) in [("emb", f32::NAN), ("blocks.q.W.w", f32::INFINITY), ("blocks.ff1.b.w", 60.0)] {
        let at = program.inputs.iter().position(|(n, _)| n == name).expect(name);
        let mut values = healthy.clone();
        let mut entries = values[at].to_vec::<f32>().expect("f32");
        entries[number(&golden.file["tokens"]) as usize * if name == "emb" { 64 } else { 0 }] = value;
        values[at] = Array::from_slice(values[at].dims(), &entries);
        let after = run(&values);
        assert_eq!(number(&after[finite]), 0.0, "{name} {value}");
        assert!(!(number(&after[finite + 1]) + number(&after[finite + 2])).is_finite(), "{name} {value}");
        assert!(bytes(&after) == bytes(&values), "{name} {value}");
        poisoned = after;
    }
    // The state stays as it is even where the step itself would be fine.
    let mut values = healthy.clone();
    values[finite] = poisoned[finite].clone();
    let after = run(&values);
    assert!(bytes(&after) == bytes(&values));
    assert_eq!(number(&after[finite]), 0.0);
    assert!(number(&after[finite + 1]).is_finite());
}

/// How often each operation occurs in a program's text.
fn operations(program: &Program) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for line in program.text.lines() {
        let Some((_, right)) = line.split_once(" = ") else { continue };
        // `f32[2,3]{1,0} add(...)`, or a tuple's shape first.
        let shape_end = if right.starts_with('(') { right.find(") ").map(|i| i + 1) } else { right.find(' ') };
        let operation = shape_end.and_then(|i| right[i..].trim_start().split_once('(')).expect("an operation").0;
        *count.entry(operation.to_owned()).or_default() += 1;
    }
    count
}

/// The logits of a model as a program of its parameters.
fn logits(model: &LanguageModel) -> Program {
    let (tensors, params) = inputs(model, DType::F32);
    let tokens = Tensor::parameter("tokens", Shape::new(DType::I32, &[2, 32]));
    let logits = model.transformer.logits(&model.effective(&params), &tokens, DType::F32);
    Program::new("logits", &[tensors, vec![tokens]].concat(), &[("logits", logits)]).expect("a program")
}

/// The loss of a model as a program of its parameters.
fn loss_of(model: &LanguageModel) -> Program {
    let (tensors, params) = inputs(model, DType::F32);
    let tokens = Tensor::parameter("tokens", Shape::new(DType::I32, &[2, 33]));
    let loss = model.transformer.loss(&model.effective(&params), &tokens, DType::F32);
    Program::new("loss", &[tensors, vec![tokens]].concat(), &[("loss", loss)]).expect("a program")
}

/// Weights made once and used as an ordinary network give the training graph's logits to 1e-6 (other fusions round
/// otherwise), by the operations of a network without SEL.
#[test]
fn folded() {
    let standard = Golden::read("baseline").model(true, false);
    for tag in ["mismatch", "offset_lora"] {
        let golden = Golden::read(tag);
        let model = golden.model(true, false);
        let parameters = golden.parameters(&model, DType::F32);
        let program = effective_program(&model).expect("a program");
        let names: Vec<String> = program.outputs.iter().map(|(name, _)| name.clone()).collect();
        let weights: Weights = names.into_iter().zip(run(&program, &parameters)).collect();
        let order: Vec<Array> = standard.parameters().iter().map(|p| weights[&p.name].clone()).collect();
        assert_eq!(order.len(), weights.len());

        let (training, plain) = (logits(&model), logits(&standard));
        assert_ne!(operations(&training), operations(&plain));
        let inputs = [golden.file["tokens"].clone()];
        let want = run(&training, &[&parameters[..], &inputs].concat());
        let got = run(&plain, &[&order[..], &inputs].concat());
        relative(&format!("{tag} folded logits"), &got[0], &want[0], 1e-6);

        let loss = loss_program(&model.transformer, 2, 32, false).expect("a program");
        let alphabetical: Vec<Array> = weights.values().cloned().collect();
        assert_eq!(operations(&loss), operations(&loss_of(&standard)), "{tag}");
        let got = run(&loss, &[alphabetical, vec![golden.tokens()]].concat());
        relative(&format!("{tag} folded loss"), &got[0], &golden.file["loss.f64"], 2e-6);
    }
}

/// A start has every parameter with its shape and another draw in each block; all that is tracked is 1 there.
#[test]
fn starts() {
    for tag in ["baseline", "mismatch", "offset_lora"] {
        let model = Golden::read(tag).model(true, false);
        let start = model.initial(Start { uniform_biases: true, ..Start::default() }, Key::new(4)).expect("a start");
        let parameters = model.parameters();
        assert_eq!(start.len(), parameters.len(), "{tag}");
        for p in &parameters {
            let value = &start[&p.name];
            assert_eq!((value.dtype(), value.dims()), (DType::F32, &p.dims[..]), "{tag} {}", p.name);
            if p.name.ends_with(".w") || p.name.ends_with("d.A") {
                let (first, second) = value.bytes().split_at(value.bytes().len() / 2);
                assert!(first != second, "{tag} {}", p.name);
            }
        }
        let Some(program) = tracked_program(&model).expect("a program") else {
            assert_eq!(tag, "baseline");
            continue;
        };
        let values: Vec<Array> = parameters.iter().map(|p| start[&p.name].clone()).collect();
        let names: Vec<&str> = program.outputs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.len(), 18);
        assert!(["q.e_w", "ff1.l_w", "o.m"].iter().all(|name| names.contains(name)), "{names:?}");
        let values = run(&program, &values);
        assert!(values.iter().all(|v| (number(v) - 1.0).abs() < 1e-5), "{tag} {values:?}");
    }
}
