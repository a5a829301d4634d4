//! The network, its loss, gradients and Adam steps against JAX, for every initialisation.

use std::collections::BTreeMap;

use sinexp::array::{Array, DType};
use sinexp::graph::{Shape, Tensor};
use sinexp::nn::siren::{Activation, Params, Siren};
use sinexp::optim::{Adam, AdamState};
use sinexp::train::{StepOptions, regression_step, training_step};
use sinexp::transform::{fast_sine, grad};

use crate::common::check::close;
use crate::common::{cpu, evaluate};
use crate::{golden, relative};

const INITS: [&str; 8] = ["uniform_mm", "cvp26_s0", "cvp26_s1", "sm20", "tanh_pe", "relu", "silu", "gelu"];

/// The network and its stored parameters, `pe` and frequencies included, in `dtype`.
fn network(file: &BTreeMap<String, Array>, init: &str, dtype: DType) -> (Siren, BTreeMap<String, Array>) {
    let prefix = format!("{init}.p.");
    let mut weights: BTreeMap<String, Array> =
        file.iter().filter_map(|(name, a)| Some((name.strip_prefix(&prefix)?.to_string(), a.cast(dtype)))).collect();
    if let Some(pe) = file.get(&format!("{init}.pe")) {
        weights.insert("pe".into(), pe.cast(dtype));
    }
    let mut siren = Siren::from_weights(&weights).expect("a network");
    siren.activation = match init {
        "tanh_pe" => Activation::Tanh,
        "relu" => Activation::Relu,
        "silu" => Activation::Silu,
        "gelu" => Activation::Gelu { approximate: true },
        _ => Activation::Sine,
    };
    if let Some(omega) = file.get(&format!("{init}.omega")).filter(|_| siren.activation == Activation::Sine) {
        let omega = omega.to_f64_vec();
        for (name, value) in ["omega0", "omega_h"].iter().zip(omega) {
            weights.insert(name.to_string(), Array::scalar(value).cast(dtype));
        }
    }
    (siren, weights)
}

/// One graph input per weight.
fn inputs(weights: &BTreeMap<String, Array>) -> Params {
    let input = |(name, a): (&String, &Array)| (name.clone(), Tensor::parameter(name, Shape::new(a.dtype(), a.dims())));
    weights.iter().map(input).collect()
}

/// f64: 1e-12, gradients 1e-11. f32: 2e-5 of the tensor's maximum, because omega0 = 82 amplifies the rounding of the
/// sine's argument; with `fast_sine` the same.
#[test]
fn output_loss_and_gradients() {
    let file = golden("siren.safetensors");
    for init in INITS {
        for (dtype, fast, out_tolerance, grad_tolerance) in
            [(DType::F64, false, 1e-12, 1e-11), (DType::F32, false, 2e-5, 2e-5), (DType::F32, true, 2e-5, 2e-5)]
        {
            let (siren, weights) = network(&file, init, dtype);
            let params = inputs(&weights);
            let (x, y) = (file["x"].cast(dtype), file["y"].cast(dtype));
            let (tx, ty) = (
                Tensor::parameter("x", Shape::new(dtype, x.dims())),
                Tensor::parameter("y", Shape::new(dtype, y.dims())),
            );
            let out = siren.apply(&params, &tx);
            let loss = (&out - &ty).square().mean_all();
            let names: Vec<String> = siren.parameters().into_iter().map(|(n, _)| n).collect();
            let wrt: Vec<Tensor> = names.iter().map(|n| params[n].clone()).collect();
            let mut results = vec![out, loss.clone()];
            results.extend(grad(&loss, &wrt).expect("gradients"));
            if fast {
                results = fast_sine(&results);
            }
            let tensors: Vec<Tensor> = params.values().cloned().chain([tx, ty]).collect();
            let values: Vec<Array> = weights.values().cloned().chain([x, y]).collect();
            let got = evaluate(&tensors, &results, &values);
            let want = |what: &str| &file[&format!("{init}.f64.{what}")];
            let what = |what: &str| format!("{init} {dtype} fast {fast} {what}");
            relative(&what("out"), &got[0], want("out"), out_tolerance);
            relative(&what("loss"), &got[1], want("loss"), out_tolerance);
            for (name, g) in names.iter().zip(&got[2..]) {
                relative(&what(name), g, want(&format!("grad.{name}")), grad_tolerance);
            }
        }
    }
}

/// Five steps of the donated program: losses before each update and parameters after the last.
///
/// 1e-5 in f64: the stored run corrected Adam's bias with decay rates rounded to f32, which makes each of its steps
/// 6.7e-6 shorter. `adam_is_its_formula` holds ours to the formula in f64.
#[test]
fn five_adam_steps() {
    let file = golden("siren.safetensors");
    for init in INITS {
        for (dtype, fast, tolerance) in [(DType::F64, false, 1e-5), (DType::F32, true, 5e-5)] {
            let (siren, weights) = network(&file, init, dtype);
            let omegas = weights.contains_key("omega0");
            let options = StepOptions { dtype, fast_sine: fast, omegas, ..StepOptions::default() };
            let program = regression_step(&siren, 64, &options).expect("a step program");
            let step = cpu().compile(&program).expect("compiles");
            let state = 3 * siren.parameters().len() + 1;
            let mut buffers: Vec<_> = program
                .inputs
                .iter()
                .map(|(name, shape)| {
                    let value = match name.as_str() {
                        "learning_rate" => Array::scalar(1e-4).cast(dtype),
                        "x" | "y" => file[name].cast(dtype),
                        name => weights.get(name).cloned().unwrap_or_else(|| Array::full(dtype, &shape.dims, 0.0)),
                    };
                    cpu().put(&value).expect("a buffer")
                })
                .collect();
            let mut losses = Vec::new();
            for _ in 0..5 {
                let mut results = step.run(&buffers.iter().collect::<Vec<_>>()).expect("a step");
                losses.extend(results.pop().expect("a loss").to_host().expect("a value").to_f64_vec());
                buffers.splice(..state, results);
            }
            let want = |what: &str| &file[&format!("{init}.f64.{what}")];
            relative(&format!("{init} losses"), &Array::from_slice(&[5], &losses), want("losses5"), tolerance);
            for ((name, _), buffer) in siren.parameters().iter().zip(&buffers) {
                let got = buffer.to_host().expect("a parameter");
                relative(&format!("{init} {dtype} {name} after 5"), &got, want(&format!("after5.{name}")), tolerance);
            }
        }
    }
}

/// Three steps with epsilon 0 and muP's learning rates at N 16, N0 64: hidden and output matrices at eta 64/16.
///
/// 1e-5 for the reason given at `five_adam_steps`.
#[test]
fn three_mup_steps() {
    let file = golden("siren.safetensors");
    let weights: BTreeMap<String, Array> = file
        .iter()
        .filter_map(|(name, a)| Some((name.strip_prefix("mup.p.")?.to_string(), a.cast(DType::F64))))
        .collect();
    let siren = Siren::from_weights(&weights).expect("a network");
    let eta = 2f64.powi(-8);
    let omegas = file.get("mup.omega").map(Array::to_f64_vec);
    let options = StepOptions { dtype: DType::F64, omegas: omegas.is_some(), ..StepOptions::default() };
    let program = training_step(&siren, 64, None, 4, &options).expect("a program");
    let step = cpu().compile(&program).expect("compiles");
    let mut buffers: Vec<_> = program
        .inputs
        .iter()
        .map(|(name, shape)| {
            let value = match name.as_str() {
                "learning_rate" => Array::scalar(eta),
                "matrix_learning_rate" => Array::scalar(eta * 64.0 / 16.0),
                "omega0" => Array::scalar(omegas.as_ref().expect("given")[0]),
                "omega_h" => Array::scalar(omegas.as_ref().expect("given")[1]),
                "x" | "y" => file[name].cast(DType::F64),
                name => weights.get(name).cloned().unwrap_or_else(|| Array::full(DType::F64, &shape.dims, 0.0)),
            };
            cpu().put(&value).expect("a buffer")
        })
        .collect();
    for _ in 0..3 {
        let results = step.run(&buffers.iter().collect::<Vec<_>>()).expect("a step");
        let state = results.len();
        buffers.splice(..state, results);
    }
    for ((name, _), buffer) in siren.parameters().iter().zip(&buffers) {
        let got = buffer.to_host().expect("a parameter");
        relative(&format!("mup {name}"), &got, &file[&format!("mup.f64.after3.{name}")], 1e-5);
    }
}

/// Algorithm 1 of the Adam paper written out for one number, with and without epsilon.
#[test]
fn adam_is_its_formula() {
    for eps in [1e-8, 0.0] {
        let adam = Adam { eps, ..Adam::default() };
        let input = |name: &str| Tensor::parameter(name, Shape::new(DType::F64, &[]));
        let [p, m, v, t] = ["p", "m", "v", "t"].map(input);
        let gradient = p.square() * 0.3 - 1.0;
        let state = AdamState { m: m.clone(), v: v.clone() };
        let step = &t + 1.0;
        let (new, moments) = adam.update(&p, &gradient, &state, &step, &Tensor::scalar(0.01f64));
        let mut values: Vec<Array> = [0.7, 0.0, 0.0, 0.0].map(Array::scalar::<f64>).to_vec();
        let (mut hp, mut hm, mut hv) = (0.7f64, 0.0, 0.0);
        for k in 1..=20 {
            values = evaluate(
                &[p.clone(), m.clone(), v.clone(), t.clone()],
                &[new.clone(), moments.m.clone(), moments.v.clone(), step.clone()],
                &values,
            );
            let g = 0.3 * hp * hp - 1.0;
            hm = 0.9 * hm + 0.1 * g;
            hv = 0.999 * hv + 0.001 * g * g;
            hp -= 0.01 * (hm / (1.0 - 0.9f64.powi(k))) / ((hv / (1.0 - 0.999f64.powi(k))).sqrt() + eps);
            close("adam", &values[0].to_f64_vec(), &[hp], 1e-12);
        }
    }
    // Nothing moves where the gradient is exactly 0 and epsilon is 0.
    let input = |name: &str| Tensor::parameter(name, Shape::new(DType::F32, &[2]));
    let [p, m, v] = ["p", "m", "v"].map(input);
    let adam = Adam { eps: 0.0, ..Adam::default() };
    let state = AdamState { m: m.clone(), v: v.clone() };
    let gradient = Tensor::constant(Array::from_slice(&[2], &[0.0f32, 1.0]));
    let (new, _) = adam.update(&p, &gradient, &state, &Tensor::scalar(1f32), &Tensor::scalar(0.5f32));
    let zeros = Array::full(DType::F32, &[2], 0.0);
    let got = evaluate(&[p, m, v], &[new], &[Array::from_slice(&[2], &[3.0f32, 3.0]), zeros.clone(), zeros]);
    close("eps 0", &got[0].to_f64_vec(), &[3.0, 2.5], 1e-5);
}
