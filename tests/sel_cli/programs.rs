//! The training step as a program: memory with and without rematerialisation, size against depth, bf16 against f32.

use sinexp::array::{Array, DType};
use sinexp::nn::language_model::LanguageModel;
use sinexp::nn::sel::Sel;
use sinexp::nn::transformer::Transformer;
use sinexp::optim::{AdamW, Decay, Schedule};
use sinexp::random::Key;
use sinexp::runtime::{Buffer, memory_stats};
use sinexp::train::language::{StepSettings, step_program};

use super::common::cpu;

fn model(depth: usize, remat: bool) -> LanguageModel {
    let mut transformer = Transformer::new(64, 32, depth);
    transformer.heads = 2;
    transformer.remat = remat;
    LanguageModel::new(transformer, Sel::new(7.5))
}

fn settings(batch: usize, sequence: usize, bf16: bool) -> StepSettings {
    StepSettings {
        batch,
        sequence,
        accumulation: 1,
        optimizer: AdamW::default(),
        clip: 1.0,
        schedule: Schedule { peak: 1e-3, warmup: 2, total: 10, decay: Decay::Linear },
        anneal_steps: 10,
        bf16,
        replicas: 1,
    }
}

#[test]
fn rematerialisation_lowers_the_memory_planned() {
    let temporaries = |remat: bool| {
        let program = step_program(&model(8, remat), &settings(8, 64, false)).expect("a program");
        memory_stats(&program).expect("a plan").temporaries
    };
    let (kept, again) = (temporaries(false), temporaries(true));
    println!("temporaries: {kept} bytes kept, {again} rematerialised");
    assert!(again * 5 < kept, "{again} is not a fifth of {kept}");
}

#[test]
fn the_program_does_not_grow_with_depth() {
    let size = |depth: usize| {
        let text = step_program(&model(depth, false), &settings(2, 16, false)).expect("a program").text;
        text.len() as f64
    };
    let (shallow, deep) = (size(2), size(36));
    println!("{shallow} bytes of text at depth 2, {deep} at 36");
    assert!((deep / shallow - 1.0).abs() < 0.05, "{shallow} {deep}");
}

/// Losses of 10 steps on a batch that stays the same.
fn losses(bf16: bool) -> Vec<f64> {
    let (model, settings) = (model(2, false), settings(4, 16, bf16));
    let program = cpu().compile(&step_program(&model, &settings).expect("a program")).expect("compiled");
    let start = model.initial(Default::default(), Key::new(1)).expect("a start");
    let tokens: Vec<i32> = (0..4 * 17).map(|i| (i * i * 7 + i / 17) % 61).collect();
    let inputs: Vec<Array> = program
        .inputs()
        .map(|(name, shape)| match name {
            "tokens" => Array::from_slice(&[1, 4, 17], &tokens),
            "finite" => Array::scalar(1f32),
            name => start.get(name).cloned().unwrap_or_else(|| Array::full(DType::F32, &shape.dims, 0.0)),
        })
        .collect();
    let tokens = cpu().put(inputs.last().expect("tokens")).expect("a buffer");
    let mut state: Vec<Buffer> = inputs[..inputs.len() - 1].iter().map(|a| cpu().put(a).expect("a buffer")).collect();
    let step = |_| {
        let arguments: Vec<&Buffer> = state.iter().chain([&tokens]).collect();
        let mut results = program.run(&arguments).expect("a step");
        let measured = results.split_off(state.len());
        state = results;
        measured[0].to_host().expect("a loss").to_f64_vec()[0]
    };
    (0..10).map(step).collect()
}

#[test]
fn bf16_follows_f32() {
    let (narrow, wide) = (losses(true), losses(false));
    println!("f32 {wide:.4?}\nbf16 {narrow:.4?}");
    assert!(wide[9] < wide[0] - 0.05, "it learns: {wide:?}");
    for (a, b) in narrow.iter().zip(&wide) {
        // 8 bits of mantissa, averaged over 64 tokens.
        assert!((a - b).abs() < 1e-3 * b, "{narrow:?} {wide:?}");
    }
    assert_ne!(narrow, wide);
}
