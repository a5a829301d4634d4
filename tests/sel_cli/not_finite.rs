//! Runs that stop being finite say where, keep their metrics, and save nothing of it.

use super::common::cli::{files, numbers};
use super::{SMALL, fails, folder, metrics, train};

#[test]
fn a_run_that_is_no_longer_finite_says_where() {
    let folder = folder();
    let run = folder.path().join("run");
    let options = SMALL.replace("--checkpoint-every 20", "--checkpoint-every 1") + " --warmup 0 --learning-rate 1e9";
    let error = fails(&mut train(&options, &run), 2, &["training: stopped a", "step ", "blocks.", "try a smaller"]);
    assert!(error.contains("weight") || error.contains("gradient"), "{error}");
    let step: usize =
        error.split(" step ").nth(1).and_then(|t| t.split(':').next()).expect("a step").parse().expect("a number");
    let steps = numbers(&metrics(&run), "step");
    let (losses, last) = (numbers(&metrics(&run), "loss"), steps[steps.len() - 1]);
    assert!(last as usize <= step && step <= 20, "{error}, {steps:?}");
    assert!(losses[1..].iter().all(|loss| loss.is_finite()), "{losses:?}");
    for (name, path) in files(&run.join("checkpoints")) {
        let file = sinexp::interop::safetensors::read(path).expect("whole");
        let finite = |(_, t): (&String, &sinexp::array::Array)| t.to_f64_vec().iter().all(|x| x.is_finite());
        assert!(file.tensors.iter().all(finite), "{name}");
    }
}

#[test]
fn a_last_step_into_the_infinite_is_no_success() {
    let folder = folder();
    let run = folder.path().join("run");
    let options = SMALL.replace("--steps 300", "--steps 1") + " --warmup 0 --learning-rate 1e9";
    fails(&mut train(&options, &run), 2, &["stopped after step 1: ", "weight blocks.", "is not finite"]);
    assert!(files(&run.join("checkpoints")).is_empty());
    assert_eq!(numbers(&metrics(&run), "step"), [0.0, 1.0]);
}

#[test]
fn a_start_that_newton_does_not_reach_is_refused() {
    let folder = folder();
    let run = folder.path().join("run");
    fails(&mut train(&format!("{SMALL} --beta 1e6"), &run), 2, &["blocks.", "beta 1000000", "smaller beta"]);
    assert!(files(&run.join("checkpoints")).is_empty());
}
