//! Devices, executables and buffers: what runs, and what is refused with which words.

mod common;

use common::cpu;
use sinexp::array::{Array, DType};
use sinexp::graph::{Program, Shape, Tensor, optimization_barrier};
use sinexp::runtime::Device;

fn input(name: &str, dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::parameter(name, Shape::new(dtype, dims))
}

/// x + y and x * y of f32[2].
fn pair() -> Program {
    let (x, y) = (input("x", DType::F32, &[2]), input("y", DType::F32, &[2]));
    Program::new("pair", &[x.clone(), y.clone()], &[("sum", &x + &y), ("product", &x * &y)]).expect("a program")
}

fn error<T: std::fmt::Debug>(result: Result<T, impl std::fmt::Display>) -> String {
    result.expect_err("refused").to_string()
}

#[test]
fn results_come_one_buffer_each() {
    let run = cpu().compile(&pair()).expect("compiles");
    let (x, y) = (Array::from_slice(&[2], &[1.0f32, 2.0]), Array::from_slice(&[2], &[3.0f32, 4.0]));
    let got = run.call(&[&x, &y]).expect("a run");
    assert_eq!(got[0].to_vec::<f32>().expect("f32"), [4.0, 6.0]);
    assert_eq!(got[1].to_vec::<f32>().expect("f32"), [3.0, 8.0]);
    assert_eq!(run.outputs().map(|(n, _)| n).collect::<Vec<_>>(), ["sum", "product"]);
}

#[test]
fn every_dtype_and_shape_goes_there_and_back() {
    for dtype in DType::ALL {
        for dims in [&[][..], &[1], &[0], &[2, 3], &[3, 0, 2], &[1, 1, 5]] {
            let x = input("x", dtype, dims);
            let y = optimization_barrier(&[x.clone()]).swap_remove(0);
            let program = Program::new("identity", &[x], &[("y", y)]).expect("a program");
            let n: usize = dims.iter().product();
            let values: Vec<f64> = (0..n).map(|i| (i % 2) as f64).collect();
            let value = Array::from_slice(dims, &values).cast(dtype);
            let got = cpu().compile(&program).expect("compiles").call(&[&value]).expect("a run");
            assert_eq!(got[0], value, "{dtype}{dims:?}");
        }
    }
}

/// A constant of every dtype survives printing and parsing bit for bit.
#[test]
fn constants_are_exact() {
    let floats = [0.0, -0.0, 1.0 / 3.0, -2.5e-7, 65504.0, f64::INFINITY, f64::NEG_INFINITY, 1e-40, 3.0e38];
    for dtype in DType::ALL {
        let values: Vec<f64> = if dtype.is_float() { floats.to_vec() } else { vec![0.0, 1.0, 100.0, 127.0] };
        let want = Array::from_slice(&[values.len()], &values).cast(dtype);
        let y = Tensor::constant(want.clone());
        let got = common::evaluate(&[], &[y], &[]);
        assert_eq!(got[0].bytes(), want.bytes(), "{dtype}");
    }
    let nan =
        common::evaluate(&[], &[Tensor::scalar(f32::NAN), Tensor::scalar(u64::MAX), Tensor::scalar(i64::MIN)], &[]);
    assert!(nan[0].to_f64_vec()[0].is_nan());
    assert_eq!(nan[1].to_vec::<u64>().expect("u64"), [u64::MAX]);
    assert_eq!(nan[2].to_vec::<i64>().expect("i64"), [i64::MIN]);
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let run = cpu().compile(&pair()).expect("compiles");
    let good = Array::from_slice(&[2], &[1.0f32, 2.0]);
    let text = error(run.call(&[&good]));
    assert!(text.contains("program `pair`") && text.contains("1 arguments given, it takes 2"), "{text}");
    let text = error(run.call(&[&good, &good.cast(DType::I32)]));
    assert!(text.contains("argument 1 `y`: is int32[2], expected float32[2]"), "{text}");
    // The same number of bytes in another shape: the crate itself would take it.
    let column = Array::from_bytes(DType::F32, &[2, 1], good.bytes()).expect("an array");
    let text = error(run.call(&[&column, &good]));
    assert!(text.contains("argument 0 `x`: is float32[2,1], expected float32[2]"), "{text}");
}

#[test]
fn donated_buffers_are_used_up_once() {
    let (s, x) = (input("state", DType::F32, &[4]), input("x", DType::F32, &[4]));
    let inputs = [s.clone(), x.clone()];
    let program = Program::with_donation("step", &inputs, &[("state", &s + &x)], &[(0, 0)]).expect("a program");
    let step = cpu().compile(&program).expect("compiles");
    let put = || cpu().put(&Array::full(DType::F32, &[4], 1.0)).expect("a buffer");
    let (state, x) = (put(), put());
    let next = step.run(&[&state, &x]).expect("a step").swap_remove(0);
    assert!(state.is_donated() && !x.is_donated());
    let text = error(step.run(&[&state, &x]));
    assert!(text.contains("argument 0 `state`: its buffer was donated"), "{text}");
    assert!(error(state.to_host()).contains("donated"));
    let text = error(step.run(&[&next, &next]));
    assert!(text.contains("argument 1 `x`") && text.contains("twice in this one"), "{text}");
    // Refused calls use nothing up.
    let last = step.run(&[&next, &x]).expect("the refused call left its buffers alone");
    assert_eq!(last[0].to_host().expect("values").to_f64_vec(), [3.0; 4]);
}

/// 10,000 steps of a donated training program: the process does not grow.
#[test]
fn ten_thousand_donated_steps_in_flat_memory() {
    use sinexp::nn::siren::Siren;
    use sinexp::train::{StepOptions, regression_step};
    let program = regression_step(&Siren::new(2, 32, 2, 1), 128, &StepOptions::default()).expect("a program");
    let step = cpu().compile(&program).expect("compiles");
    let mut buffers: Vec<_> = program
        .inputs
        .iter()
        .map(|(name, s)| {
            let value =
                if name == "learning_rate" { 1e-4 } else { f64::from(u8::from(!name.contains(['m', 'v', 't']))) };
            cpu().put(&Array::full(s.dtype, &s.dims, value)).expect("a buffer")
        })
        .collect();
    let state = program.outputs.len() - 1;
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        let pages: u64 = statm.split_whitespace().nth(1).and_then(|w| w.parse().ok()).expect("a number");
        pages * 4 / 1024
    };
    let mut after_warm_up = 0;
    for i in 0..10_000 {
        let mut results = step.run(&buffers.iter().collect::<Vec<_>>()).expect("a step");
        let loss = results.pop().expect("a loss");
        buffers.splice(..state, results);
        if i % 1000 == 999 {
            assert!(loss.to_host().expect("a value").to_f64_vec()[0].is_finite());
        }
        if i == 1999 {
            after_warm_up = resident();
        }
    }
    let grown = resident().saturating_sub(after_warm_up);
    // 8,000 leaked losses and states would be over 100 MB; other tests of this process run beside this one.
    assert!(grown < 48, "grew by {grown} MB over 8000 steps");
}

#[test]
fn two_threads_share_an_executable() {
    let run = std::sync::Arc::new(cpu().compile(&pair()).expect("compiles"));
    let threads: Vec<_> = (0..2)
        .map(|k| {
            let run = run.clone();
            std::thread::spawn(move || {
                let (x, y) = (Array::from_slice(&[2], &[k as f32, 1.0]), Array::from_slice(&[2], &[2.0f32, 3.0]));
                for _ in 0..200 {
                    let got = run.call(&[&x, &y]).expect("a run");
                    assert_eq!(got[0].to_vec::<f32>().expect("f32"), [k as f32 + 2.0, 4.0]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().expect("no panic"));
}

#[test]
fn devices_that_are_not_there_are_errors() {
    let text = error(Device::open("gpu"));
    assert!(text.contains("device = gpu") && text.contains("cpu, cuda, tpu or plugin:"), "{text}");
    let text = error(Device::open("plugin:/nowhere/plugin.so"));
    assert!(text.contains("/nowhere/plugin.so") && text.contains("No such file"), "{text}");
    let text = error(Device::open(&format!("plugin:{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"))));
    assert!(text.contains("Cargo.toml") && text.contains("invalid ELF header"), "{text}");
    let libm = "/usr/lib/x86_64-linux-gnu/libm.so.6";
    if std::path::Path::new(libm).exists() {
        let text = error(Device::open(&format!("plugin:{libm}")));
        assert!(text.contains("does not export GetPjrtApi"), "{text}");
    }
}

/// A real PJRT plugin, where one is installed: the CPU plugin in the folder that `./setup --jax` makes.
#[test]
fn a_cpu_plugin_computes_the_same() {
    let Some(path) = common::cpu_plugin() else {
        println!("no CPU plugin in .venv: run ./setup --jax to test with one");
        return;
    };
    let options = sinexp::runtime::DeviceOptions { cpu_devices: Some(1), ..Default::default() };
    let plugin = Device::open_with(&format!("plugin:{}", path.display()), &options).expect("the plugin starts");
    assert_eq!(plugin.device_count(), 1);
    let (x, y) = (Array::from_slice(&[2], &[1.0f32, 2.0]), Array::from_slice(&[2], &[3.0f32, 4.0]));
    let run = plugin.compile(&pair()).expect("compiles");
    assert_eq!(run.call(&[&x, &y]).expect("a run")[1].to_vec::<f32>().expect("f32"), [3.0, 8.0]);
    let (here, there) = (plugin.put(&x).expect("a buffer"), cpu().put(&y).expect("a buffer"));
    let text = error(run.run(&[&here, &there]));
    assert!(text.contains("argument 1 `y`: lives on another device"), "{text}");
}

#[test]
fn programs_name_what_they_lack() {
    let (x, y) = (input("x", DType::F32, &[]), input("weights.3", DType::F32, &[]));
    let text = error(Program::new("open", &[x.clone()], &[("z", &x * &y)]));
    assert!(text.contains("program `open`: uses parameter `weights.3` float32[], which is not an input"), "{text}");
}
