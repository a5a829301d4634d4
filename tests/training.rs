//! Training runs: checkpoints, several runs at once, blocks of samples, numbers that are no longer finite.

mod common;

use std::collections::BTreeMap;

use sinexp::array::{Array, DType};
use sinexp::nn::cvp26::Cvp26;
use sinexp::nn::siren::Siren;
use sinexp::nn::siren_init::Initialization;
use sinexp::random::Key;
use sinexp::train::{Start, StepOptions, Trainer, Training, Weights, regression_step};

use common::cpu;

const SAMPLES: usize = 100;

fn init(omega0: f64) -> Initialization {
    Initialization::Cvp26 { family: Cvp26::SIGMA_A_1, omega0, omega_h: 1.0 }
}

fn siren() -> Siren {
    init(1.0).siren(2, 8, 3, 2)
}

/// Coordinates and values of a field that is no constant.
fn samples() -> (Array, Array) {
    let x = Key::new(5).uniform::<f32>(&[SAMPLES, 2], -1.0, 1.0);
    let y = Key::new(6).uniform::<f32>(&[SAMPLES, 2], 0.0, 1.0);
    (Array::from_ndarray(&x), Array::from_ndarray(&y))
}

fn start(omega0: f64, seed: u64, rate: f64) -> Start {
    let weights = init(omega0).draw(&siren(), Key::new(seed)).expect("a network");
    Start { weights, learning_rate: rate, matrix_learning_rate: 0.5 * rate, eps: 1e-8 }
}

fn trainer(runs: Option<usize>, block: Option<usize>) -> Trainer {
    Trainer::new(cpu(), &siren(), SAMPLES, runs, block).expect("compiles")
}

fn bits(weights: &Weights) -> BTreeMap<String, Vec<u8>> {
    weights.iter().map(|(name, a)| (name.clone(), a.bytes().to_vec())).collect()
}

/// Largest difference over the largest magnitude, of all tensors.
fn difference(a: &Weights, b: &Weights) -> f64 {
    let mut worst = 0f64;
    for (name, a) in a {
        let (a, b) = (a.to_f64_vec(), b[name].to_f64_vec());
        let scale = b.iter().fold(f64::MIN_POSITIVE, |m, v| m.max(v.abs()));
        worst = a.iter().zip(&b).fold(worst, |m, (a, b)| m.max((a - b).abs() / scale));
    }
    worst
}

fn finished(training: &mut Training, steps: usize) -> Vec<Weights> {
    training.advance(steps).expect("steps");
    training.weights().expect("weights")
}

/// N steps are k steps, a checkpoint, and N - k steps, for k inside and at the end of the device's buffer of losses.
#[test]
fn a_resumed_run_is_the_uninterrupted_one() {
    let (x, y) = samples();
    let trainer = trainer(None, None);
    let starts = [start(10.0, 1, 1e-2)];
    let mut whole = trainer.start(&x, &y, &starts).expect("starts");
    let want = finished(&mut whole, 150);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("checkpoint.safetensors");
    for k in [1, 40, 64, 128, 149] {
        let mut first = trainer.start(&x, &y, &starts).expect("starts");
        first.advance(k).expect("steps");
        first.save(&path, "key").expect("written");
        drop(first);
        let mut second = trainer.resume(&x, &y, &starts, &path, "key").expect("resumes");
        assert_eq!(second.steps(), k);
        assert_eq!(bits(&finished(&mut second, 150 - k)[0]), bits(&want[0]), "k {k}");
        assert_eq!(second.losses(), whole.losses(), "k {k}");
    }
    let other = trainer.resume(&x, &y, &starts, &path, "other").err().expect("another key").to_string();
    assert!(other.contains("checkpoint of another training"), "{other}");
    std::fs::write(&path, b"no checkpoint").expect("written");
    assert!(trainer.resume(&x, &y, &starts, &path, "key").is_err());
}

/// The losses are those of the plain step program, step by step, and the first is the network's own error.
#[test]
fn losses_are_those_of_the_plain_step() {
    let (x, y) = samples();
    let mut training = trainer(None, None);
    let one = start(10.0, 1, 1e-2);
    let one = Start { matrix_learning_rate: one.learning_rate, ..one };
    let mut run = training_of(&mut training, &x, &y, &one);
    run.advance(70).expect("steps");

    let options = StepOptions { fast_sine: true, ..StepOptions::default() };
    let program = regression_step(&siren(), SAMPLES, &options).expect("a program");
    let step = cpu().compile(&program).expect("compiles");
    let mut buffers: Vec<_> = program
        .inputs
        .iter()
        .map(|(name, shape)| {
            let value = match name.as_str() {
                "x" => x.clone(),
                "y" => y.clone(),
                "learning_rate" => Array::scalar(1e-2f32),
                name => one.weights.get(name).cloned().unwrap_or_else(|| Array::full(DType::F32, &shape.dims, 0.0)),
            };
            cpu().put(&value).expect("a buffer")
        })
        .collect();
    for (i, got) in run.losses()[0].iter().enumerate() {
        let mut results = step.run(&buffers.iter().collect::<Vec<_>>()).expect("a step");
        let want = results.pop().expect("a loss").to_host().expect("read").to_f64_vec()[0];
        assert!((f64::from(*got) - want).abs() <= 1e-5 * want, "step {i}: {got} for {want}");
        let state = results.len();
        buffers.splice(..state, results);
    }
    assert!(run.losses()[0][69] < 0.5 * run.losses()[0][0], "it learns: {:?}", run.losses()[0]);
}

fn training_of<'a>(trainer: &'a mut Trainer, x: &Array, y: &Array, start: &Start) -> Training<'a> {
    trainer.start(x, y, std::slice::from_ref(start)).expect("starts")
}

/// Runs with other omega0, seed and learning rate train together as they do alone.
#[test]
fn runs_together_are_runs_alone() {
    let (x, y) = samples();
    let starts = [start(3.0, 1, 1e-2), start(30.0, 2, 1e-3), start(10.0, 1, 3e-3)];
    let (single, together) = (trainer(None, None), trainer(Some(3), None));
    let mut batch = together.start(&x, &y, &starts).expect("starts");
    let got = finished(&mut batch, 100);
    for (i, one) in starts.iter().enumerate() {
        let mut alone = single.start(&x, &y, std::slice::from_ref(one)).expect("starts");
        let want = finished(&mut alone, 100);
        let worst = difference(&got[i], &want[0]);
        assert!(worst <= 2e-4, "run {i}: {worst:e}");
        let (a, b) = (batch.losses()[i][99], alone.losses()[0][99]);
        assert!((a - b).abs() <= 2e-4 * b, "run {i}: loss {a} for {b}");
    }
    let refused = together.start(&x, &y, &starts[..2]).err().expect("too few").to_string();
    assert!(refused.contains("2 starts for a program of 3 runs"), "{refused}");
}

/// A gradient summed over blocks of samples, with a rest, is the whole gradient but for the order of summation.
#[test]
fn blocks_of_samples_sum_to_the_whole() {
    let (x, y) = samples();
    let one = [start(10.0, 1, 1e-2)];
    let (whole, blocks) = (trainer(None, None), trainer(None, Some(32)));
    let mut a = whole.start(&x, &y, &one).expect("starts");
    let mut b = blocks.start(&x, &y, &one).expect("starts");
    // Adam's first steps hardly depend on a gradient's size: compare after a few.
    let worst = difference(&finished(&mut a, 5)[0], &finished(&mut b, 5)[0]);
    assert!(worst <= 1e-4, "{worst:e}");
    for (a, b) in a.losses()[0].iter().zip(&b.losses()[0]) {
        assert!((a - b).abs() <= 1e-5 * a, "{a} for {b}");
    }
}

/// A run whose numbers overflow stops by itself, says at which step, and keeps the weights from before it; others go on.
#[test]
fn a_run_that_is_no_longer_finite_stops_with_its_last_good_state() {
    let (x, y) = samples();
    let good = start(10.0, 1, 1e-2);
    // The first update makes weights of 1e30, whose squares are infinite in the second loss.
    let bad = start(10.0, 1, 1e30);
    let trainer = trainer(Some(2), None);
    let mut both = trainer.start(&x, &y, &[good.clone(), bad.clone()]).expect("starts");
    both.advance(1).expect("a step");
    let before = both.weights().expect("weights");
    assert_eq!(both.stopped(), [None, None]);
    both.advance(80).expect("steps");
    assert_eq!(both.stopped(), [None, Some(1)]);
    let after = both.weights().expect("weights");
    assert_eq!(bits(&after[1]), bits(&before[1]), "the state from before step 1");
    assert!(after[1].values().all(|a| a.to_f64_vec().iter().all(|v| v.is_finite())));
    let losses = both.losses();
    assert!(losses[1][0].is_finite() && losses[1][1..].iter().all(|l| l.is_nan()) && losses[1].len() == 81);
    assert!(losses[0].iter().all(|l| l.is_finite()) && losses[0][80] < losses[0][0]);
    // A checkpoint of a stopped run stays stopped.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("checkpoint.safetensors");
    both.save(&path, "key").expect("written");
    let again = trainer.resume(&x, &y, &[good, bad], &path, "key").expect("resumes");
    assert_eq!(again.stopped(), [None, Some(1)]);
    // Values so large that the first loss is infinite: nothing moves at all.
    let y = Array::full(DType::F32, &[SAMPLES, 2], 1e30);
    let single = self::trainer(None, None);
    let one = start(10.0, 1, 1e-2);
    let mut training = single.start(&x, &y, std::slice::from_ref(&one)).expect("starts");
    training.advance(3).expect("steps");
    assert_eq!(training.stopped(), [Some(0)]);
    let kept = &training.weights().expect("weights")[0];
    assert_eq!(kept["W.1"], one.weights["W.1"]);
}

/// What does not fit is named before anything runs.
#[test]
fn weights_that_do_not_fit_are_named() {
    let (x, y) = samples();
    let trainer = trainer(None, None);
    let mut one = start(10.0, 1, 1e-2);
    one.weights.insert("W.2".into(), Array::full(DType::F32, &[8, 7], 0.0));
    let text = |s: &Start| trainer.start(&x, &y, std::slice::from_ref(s)).err().expect("refused").to_string();
    assert!(text(&one).contains("`W.2`: shape [8, 7], expected [8, 8]"), "{}", text(&one));
    one.weights.remove("W.2");
    assert!(text(&one).contains("`W.2`: missing"), "{}", text(&one));
}
