//! Data parallel programs on the virtual devices of a CPU plugin, and on those of the in-process CPU.

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use sinexp::array::{Array, DType};
use sinexp::error::{Error, Result};
use sinexp::graph::{Combine, Program, Shape, Tensor, fori_loop};
use sinexp::nn::siren::{Params, Siren};
use sinexp::optim::{Adam, AdamState};
use sinexp::random::Key;
use sinexp::runtime::{DeviceGroup, DeviceOptions, ReplicatedBuffer};
use sinexp::transform::{grad, jvp, vmap};

fn options(devices: usize) -> DeviceOptions {
    DeviceOptions { cpu_devices: Some(devices), ..Default::default() }
}

/// The CPU plugin with as many devices as replicas; None, said aloud, where it is not installed.
fn plugin(replicas: usize) -> Option<DeviceGroup> {
    let Some(path) = common::cpu_plugin() else {
        println!("no CPU plugin in .venv: run ./setup --jax to test with one");
        return None;
    };
    let group = DeviceGroup::open(&format!("plugin:{}", path.display()), replicas, &options(replicas));
    Some(group.expect("as many devices as replicas"))
}

fn input(name: &str, dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::parameter(name, Shape::new(dtype, dims))
}

fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    let text = result.expect_err("refused").to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

/// The first result of a program of one input, on each replica.
fn on_each(group: &DeviceGroup, x: &Tensor, y: &Tensor, values: &[Array]) -> Vec<Array> {
    let program = Program::new("test", &[x.clone()], &[("y", y.clone())]).expect("a program");
    let run = group.compile(&program).unwrap_or_else(|e| panic!("{e}\n{}", program.text));
    let y = run.run(&[&group.put_each(values).expect("buffers")]).expect("a run").swap_remove(0);
    (0..group.replicas()).map(|r| y.to_host(r).expect("values")).collect()
}

/// Every way to combine, of types whose sums are exact.
fn reduces(group: &DeviceGroup) {
    let n = group.replicas();
    let values: Vec<Vec<f64>> = (0..n).map(|r| vec![1.0 + r as f64, 8.0 - 3.0 * r as f64, 2.0]).collect();
    type Rule = fn(f64, f64) -> f64;
    let kinds: [(Combine, Rule); 3] =
        [(Combine::Add, |a, b| a + b), (Combine::Max, f64::max), (Combine::Min, f64::min)];
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::I32] {
        let arrays: Vec<Array> = values.iter().map(|v| Array::from_slice(&[3], v).cast(dtype)).collect();
        for (kind, combine) in kinds {
            let x = input("x", dtype, &[3]);
            let want: Vec<f64> =
                (0..3).map(|i| values.iter().map(|v| v[i]).reduce(combine).expect("a replica")).collect();
            for got in on_each(group, &x, &x.all_reduce(kind), &arrays) {
                assert_eq!((got.dtype(), got.to_f64_vec()), (dtype, want.clone()), "{kind:?} {n} replicas");
            }
        }
    }
    let x = input("x", DType::Bool, &[3]);
    let mut flags: Vec<Array> = vec![Array::from_slice(&[3], &[true, true, false]); n];
    flags[n - 1] = Array::from_slice(&[3], &[true, false, false]);
    for (kind, middle) in [(Combine::And, false), (Combine::Or, n > 1)] {
        for got in on_each(group, &x, &x.all_reduce(kind), &flags) {
            assert_eq!(got.to_vec::<bool>().expect("flags"), [true, middle, false], "{kind:?} {n} replicas");
        }
    }
}

#[test]
fn all_reduce_combines_what_the_replicas_have() {
    for n in [1, 2, 4] {
        let Some(group) = plugin(n) else { return };
        assert_eq!((group.replicas(), group.device().device_count()), (n, n));
        reduces(&group);
    }
}

/// The in-process CPU has several devices when XLA is told so before it starts: in a process of its own.
#[test]
fn the_in_process_cpu_has_replicas_too() {
    const INNER: &str = "SINEXP_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        let group = DeviceGroup::open("cpu", 3, &DeviceOptions::default()).expect("four devices");
        assert_eq!((group.replicas(), group.device().device_count()), (3, 4));
        reduces(&group);
        for n in [2, 4] {
            trains_as_one(&DeviceGroup::open("cpu", n, &DeviceOptions::default()).expect("four devices"));
        }
        return;
    }
    let mut command = Command::new(std::env::current_exe().expect("this test's path"));
    command.args(["--exact", "the_in_process_cpu_has_replicas_too", "--nocapture"]);
    command.env(INNER, "1").env("XLA_FLAGS", "--xla_force_host_platform_device_count=4");
    let output = command.output().expect("this test again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// Inside a loop, under vmap, and differentiated.
#[test]
fn all_reduce_goes_through_loops_and_transforms() {
    let Some(group) = plugin(2) else { return };
    let scalar = |v: f32| Array::scalar(v);
    let x = input("x", DType::F32, &[]);
    // x -> x1 + x2 three times: both have 4 (x1 + x2) at the end.
    let y = fori_loop(3, &[x.clone()], |_, x| vec![x[0].all_reduce(Combine::Add)]).swap_remove(0);
    for got in on_each(&group, &x, &y, &[scalar(1.0), scalar(10.0)]) {
        assert_eq!(got.to_f64_vec(), [44.0]);
    }
    let rows = input("x", DType::F32, &[2, 2]);
    let each = vmap(&[rows.clone()], &[Some(0)], |row| Ok(vec![row[0].all_reduce(Combine::Max)])).expect("vmap");
    let values = [[1.0f32, 9.0, 3.0, -4.0], [5.0, 2.0, 3.0, -1.0]].map(|v| Array::from_slice(&[2, 2], &v));
    for got in on_each(&group, &rows, &each[0], &values) {
        assert_eq!(got.to_f64_vec(), [5.0, 9.0, 3.0, -1.0]);
    }
    // Replica r has f_r = x_r s^2 with s = x_1 + x_2. The sum of both, s^3, has the derivative 3 s^2 by each x_r.
    let s = x.all_reduce(Combine::Add);
    let f = &x * s.square();
    let back = grad(&f, &[x.clone()]).expect("a gradient");
    for got in on_each(&group, &x, &back[0], &[scalar(1.0), scalar(2.0)]) {
        assert_eq!(got.to_f64_vec(), [27.0]);
    }
    // Forward, with tangents t_r = x_r: f_r' = t_r s^2 + 2 x_r s (t_1 + t_2) = 3 x_r s^2.
    let forward = jvp(&[f], &[x.clone()], &[x.clone()]).expect("a tangent");
    let got = on_each(&group, &x, &forward[0], &[scalar(1.0), scalar(2.0)]);
    assert_eq!(got.iter().map(|a| a.to_f64_vec()[0]).collect::<Vec<_>>(), [27.0, 54.0]);
}

const SAMPLES: usize = 64;
const STEPS: usize = 20;

/// A step on `samples` samples that averages its loss and its gradients over `replicas`; the state is donated.
fn step(siren: &Siren, samples: usize, replicas: usize) -> Program {
    let names: Vec<(String, Vec<usize>)> = siren.parameters();
    let named = |prefix: &str| -> Vec<Tensor> {
        names.iter().map(|(name, dims)| input(&format!("{prefix}{name}"), DType::F32, dims)).collect()
    };
    let (weights, m, v) = (named(""), named("m."), named("v."));
    let t = input("t", DType::F32, &[]);
    let (x, y) = (input("x", DType::F32, &[samples, 2]), input("y", DType::F32, &[samples, 1]));
    let params: Params = names.iter().map(|(name, _)| name.clone()).zip(weights.iter().cloned()).collect();
    let loss = (siren.apply(&params, &x) - &y).square().mean_all();
    let average = |t: &Tensor| t.all_reduce(Combine::Add) / replicas as f64;
    let gradients: Vec<Tensor> = grad(&loss, &weights).expect("gradients").iter().map(average).collect();
    let next = &t + 1.0;
    let rate = Tensor::scalar(1e-2f32);
    // With the usual epsilon Adam would hide a wrong scale of the gradients.
    let adam = Adam { eps: 0.1, ..Adam::default() };
    let updated: Vec<(Tensor, AdamState)> = (0..weights.len())
        .map(|i| {
            let moments = AdamState { m: m[i].clone(), v: v[i].clone() };
            adam.update(&weights[i], &gradients[i], &moments, &next, &rate)
        })
        .collect();
    let state = [weights, m, v, vec![t]].concat();
    let mut results: Vec<Tensor> = updated.iter().map(|(w, _)| w.clone()).collect();
    results.extend(updated.iter().map(|(_, s)| s.m.clone()));
    results.extend(updated.iter().map(|(_, s)| s.v.clone()));
    results.push(next);
    let mut outputs: Vec<(&str, Tensor)> = state.iter().map(Tensor::name).zip(results).collect();
    outputs.push(("loss", average(&loss)));
    let aliases: Vec<(usize, usize)> = (0..state.len()).map(|i| (i, i)).collect();
    Program::with_donation("step", &[state.clone(), vec![x, y]].concat(), &outputs, &aliases).expect("a program")
}

/// The state at the start: drawn weights, zero moments.
fn start(program: &Program) -> Vec<Array> {
    let state = &program.inputs[..program.aliases.len()];
    let draw = |(i, (name, shape)): (usize, &(String, Shape))| match name.starts_with(['W', 'b']) {
        true => Array::from_ndarray(&Key::new(i as u64).uniform::<f32>(&shape.dims, -0.5, 0.5)),
        false => Array::full(shape.dtype, &shape.dims, 0.0),
    };
    state.iter().enumerate().map(draw).collect()
}

/// Trains on all samples in one piece and on the replicas' parts, and compares.
fn trains_as_one(group: &DeviceGroup) {
    let (siren, n) = (Siren::new(2, 16, 2, 1), group.replicas());
    let x = Key::new(100).uniform::<f32>(&[SAMPLES, 2], -1.0, 1.0);
    let y = Key::new(101).uniform::<f32>(&[SAMPLES, 1], -1.0, 1.0);
    let (x, y) = (Array::from_ndarray(&x), Array::from_ndarray(&y));

    let program = step(&siren, SAMPLES, 1);
    let whole = common::cpu().compile(&program).expect("compiles");
    let put = |a: &Array| common::cpu().put(a).expect("a buffer");
    let mut state: Vec<_> = start(&program).iter().chain([&x, &y]).map(put).collect();
    let mut want = Vec::new();
    for _ in 0..STEPS {
        let mut results = whole.run(&state.iter().collect::<Vec<_>>()).expect("a step");
        want.push(results.pop().expect("a loss").to_host().expect("a value").to_f64_vec()[0]);
        state.splice(..results.len(), results);
    }

    let program = step(&siren, SAMPLES / n, n);
    let run = group.compile(&program).expect("compiles");
    let part = |a: &Array| -> ReplicatedBuffer {
        let dims = [&[SAMPLES / n], &a.dims()[1..]].concat();
        let parts: Vec<Array> = a
            .bytes()
            .chunks(a.bytes().len() / n)
            .map(|bytes| Array::from_bytes(a.dtype(), &dims, bytes).expect("a part"))
            .collect();
        group.put_each(&parts).expect("buffers")
    };
    let mut worst = 0f64;
    let mut parts: Vec<ReplicatedBuffer> =
        start(&program).iter().map(|a| group.put_all(a).expect("buffers")).chain([part(&x), part(&y)]).collect();
    for (i, want) in want.iter().enumerate() {
        let mut results = run.run(&parts.iter().collect::<Vec<_>>()).expect("a step");
        assert!(parts[..results.len() - 1].iter().all(ReplicatedBuffer::is_donated));
        let loss = results.pop().expect("a loss");
        for r in 0..n {
            let got = loss.to_host(r).expect("a value").to_f64_vec()[0];
            worst = worst.max((got - want).abs() / want);
            assert!(worst <= TOLERANCE, "step {i}, replica {r} of {n}: {got} against {want}");
        }
        parts.splice(..results.len(), results);
    }
    println!("{n} replicas: losses differ by {worst:.1e} at most");
    assert!(want[STEPS - 1] < 0.9 * want[0], "{want:?}: it trains");
    // Every replica took the same steps, bit for bit.
    for (buffer, (name, _)) in parts.iter().zip(&program.inputs[..program.aliases.len()]) {
        let values: BTreeSet<Vec<u8>> = (0..n).map(|r| buffer.to_host(r).expect("values").bytes().to_vec()).collect();
        assert_eq!(values.len(), 1, "`{name}` differs between replicas");
    }
}

/// Of the losses, relative: the order in which f32 is added up differs.
const TOLERANCE: f64 = 1e-6;

#[test]
fn replicas_with_parts_of_the_batch_train_as_one_device_with_all_of_it() {
    for n in [1, 2, 4] {
        let Some(group) = plugin(n) else { return };
        trains_as_one(&group);
    }
}

#[test]
fn donated_buffers_are_used_up_on_all_replicas() {
    let Some(group) = plugin(2) else { return };
    let (s, x) = (input("state", DType::F32, &[4]), input("x", DType::F32, &[4]));
    let sum = &s + x.all_reduce(Combine::Add);
    let program = Program::with_donation("step", &[s, x], &[("state", sum)], &[(0, 0)]).expect("a program");
    let step = group.compile(&program).expect("compiles");
    let put = |value| group.put_all(&Array::full(DType::F32, &[4], value)).expect("buffers");
    let (state, x) = (put(1.0), put(1.0));
    let next = step.run(&[&state, &x]).expect("a step").swap_remove(0);
    assert!(state.is_donated() && !x.is_donated());
    assert!(refused(step.run(&[&state, &x])).contains("argument 0 `state`: its buffer was donated"));
    assert!((0..2).all(|r| refused(state.to_host(r)).contains("donated")));
    assert!(refused(step.run(&[&next, &next])).contains("argument 1 `x`"));
    // Refused calls use nothing up.
    let last = step.run(&[&next, &x]).expect("the refused call left its buffers alone");
    assert!((0..2).all(|r| last[0].to_host(r).expect("values").to_f64_vec() == [5.0; 4]));
}

/// Steps in a row that nobody waits for, from two threads at once: XLA's collectives never wait for each other for ever.
#[test]
fn calls_without_a_pause_end() {
    for n in [2, 4] {
        let Some(group) = plugin(n) else { return };
        let (s, x) = (input("state", DType::F32, &[4]), input("x", DType::F32, &[4]));
        let sum = &s + x.all_reduce(Combine::Add);
        let program = Program::with_donation("step", &[s, x], &[("state", sum)], &[(0, 0)]).expect("a program");
        let step = group.compile(&program).expect("compiles");
        let put = |value| group.put_all(&Array::full(DType::F32, &[4], value)).expect("buffers");
        let started = std::time::Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let (mut state, x) = (put(0.0), put(1.0));
                    for _ in 0..300 {
                        state = step.run(&[&state, &x]).expect("a step").swap_remove(0);
                    }
                    let want = [300.0 * n as f64; 4];
                    assert!((0..n).all(|r| state.to_host(r).expect("values").to_f64_vec() == want));
                });
            }
        });
        println!("{n} replicas: {:.0} us per call", started.elapsed().as_secs_f64() / 600.0 * 1e6);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let Some(group) = plugin(2) else { return };
    let (x, y) = (input("x", DType::F32, &[2]), input("y", DType::F32, &[2]));
    let program = Program::new("add", &[x.clone(), y.clone()], &[("sum", &x + &y)]).expect("a program");
    let run = group.compile(&program).expect("compiles");
    let array = Array::full(DType::F32, &[2], 1.0);
    let good = group.put_all(&array).expect("buffers");
    assert!(refused(run.run(&[&good])).contains("program `add`: 1 arguments given, it takes 2"));
    let other = group.put_all(&array.cast(DType::I32)).expect("buffers");
    assert!(refused(run.run(&[&good, &other])).contains("argument 1 `y`: is int32[2], expected float32[2]"));
    let elsewhere = plugin(2).expect("again").put_all(&array).expect("buffers");
    assert!(refused(run.run(&[&good, &elsewhere])).contains("argument 1 `y`: lives on another device"));

    assert!(refused(group.put_each(&[array.clone()])).contains("1 tensors given for 2 replicas"));
    let text = refused(group.put_each(&[array.clone(), Array::full(DType::F32, &[3], 1.0)]));
    assert!(text.contains("replica 1's is float32[3], replica 0's float32[2]"), "{text}");
    assert!(refused(good.to_host(2)).contains("replica = 2: expected less than 2"));
}

#[test]
fn too_many_replicas_are_refused() {
    let open = |name: &str, replicas, devices| DeviceGroup::open(name, replicas, &options(devices));
    assert!(refused(open("cpu", 0, 1)).contains("replicas = 0: expected 1 or more"));
    let have = common::cpu().device_count();
    let error = open("cpu", have + 1, 1).expect_err("refused");
    assert!(matches!(error, Error::Device { .. }) && error.is_user_mistake());
    let text = error.to_string();
    assert!(text.contains(&format!("{} replicas need one each", have + 1)), "{text}");
    assert!(text.contains("XLA_FLAGS=--xla_force_host_platform_device_count="), "{text}");
    let Some(path) = common::cpu_plugin() else { return };
    let text = refused(open(&format!("plugin:{}", path.display()), 3, 2));
    assert!(text.contains("has 2 devices, 3 replicas need one each; open it with cpu_devices = 3"), "{text}");
}
