//! PJRT plugins: what is said about those that refuse, and a real one opened twice, at once and with donation.

#[path = "../common/mod.rs"]
mod common;

use std::path::Path;
use std::process::Command;

use sinexp::array::{Array, DType};
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::runtime::{Device, DeviceOptions, xla_folder};

/// Compiles fake.cc with `flags` to `path`.
fn compile(path: &Path, flags: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = root.join(xla_folder()).join("../include");
    let mut command = Command::new("c++");
    command.args(["-shared", "-fPIC", "-std=c++17", "-w", "-isystem"]).arg(include).args(flags);
    command.arg(root.join("tests/plugins/fake.cc")).arg("-o").arg(path);
    let output = command.output().expect("the compiler that setup asks for");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn refusal(path: &Path, options: &DeviceOptions) -> String {
    let text = Device::open_with(&format!("plugin:{}", path.display()), options).expect_err("refused").to_string();
    // The path once, behind the device's name, which holds it too; one line.
    assert!(text.matches(&*path.to_string_lossy()).count() == 2 && !text.contains('\n'), "{text}");
    text
}

#[test]
fn a_plugin_that_refuses_is_quoted() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases: [(&str, &[&str], &str); 5] = [
        ("table", &["-DNO_TABLE"], "GetPjrtApi returned nothing"),
        ("major", &["-DMAJOR=1", "-DMINOR=90", "-DINITIALIZE=nullptr"], "PJRT API version"),
        ("old", &["-DMAJOR=0", "-DMINOR=3", "-DINITIALIZE=nullptr"], "PJRT API version"),
        ("start", &["-DMAJOR=0", "-DMINOR=90", "-DINITIALIZE=&initialize"], "did not start: the driver is too old"),
        ("client", &["-DMAJOR=0", "-DMINOR=90", "-DINITIALIZE=nullptr"], "no such accelerator"),
    ];
    for (name, flags, want) in cases {
        let path = folder.path().join(format!("{name}.so"));
        compile(&path, flags);
        // The second try finds the plugin registered, or not, and must say the same.
        for _ in 0..2 {
            let text = refusal(&path, &DeviceOptions::default());
            assert!(text.contains(want), "{name}: {text}");
        }
    }
}

/// XLA's registry compares names without case; each of these must be asked itself.
#[test]
fn paths_that_look_alike_are_different_plugins() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (["a-b.so", "p.so"], ["a_b.so", "P.so"]);
    for (good, other) in first.iter().zip(second) {
        compile(&folder.path().join(good), &["-DMAJOR=0", "-DMINOR=90", "-DINITIALIZE=nullptr"]);
        compile(&folder.path().join(other), &["-DMAJOR=0", "-DMINOR=90", "-DINITIALIZE=&initialize"]);
        assert!(refusal(&folder.path().join(good), &DeviceOptions::default()).contains("no such accelerator"));
        assert!(refusal(&folder.path().join(other), &DeviceOptions::default()).contains("the driver is too old"));
    }
}

#[test]
fn a_memory_fraction_that_is_none_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("client.so");
    compile(&path, &["-DMAJOR=0", "-DMINOR=90", "-DINITIALIZE=nullptr"]);
    for fraction in [0.0, -0.5, 1.5, f32::NAN] {
        let options = DeviceOptions { memory_fraction: Some(fraction), ..Default::default() };
        let text = Device::open_with(&format!("plugin:{}", path.display()), &options).expect_err("refused").to_string();
        assert!(text.contains("--memory-fraction") && text.contains("at most 1"), "{text}");
    }
}

/// Four threads open the installed plugin at once; each runs donated steps on its own client.
#[test]
fn a_real_plugin_is_opened_by_many_threads_at_once() {
    let Some(path) = common::cpu_plugin() else {
        println!("no CPU plugin in .venv: run ./setup --jax to test with one");
        return;
    };
    let name = format!("plugin:{}", path.display());
    let (s, x) = (parameter("state"), parameter("x"));
    let program = Program::with_donation("step", &[s.clone(), x.clone()], &[("state", &s + &x)], &[(0, 0)]);
    let program = program.expect("a program");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let options = DeviceOptions { cpu_devices: Some(1), ..Default::default() };
                let device = Device::open_with(&name, &options).expect("the plugin starts");
                let step = device.compile(&program).expect("compiles");
                let put = |value| device.put(&Array::full(DType::F32, &[4], value)).expect("a buffer");
                let (mut state, x) = (put(0.0), put(1.0));
                for _ in 0..200 {
                    let next = step.run(&[&state, &x]).expect("a step").swap_remove(0);
                    assert!(state.is_donated() && state.to_host().is_err());
                    state = next;
                }
                assert_eq!(state.to_host().expect("values").to_f64_vec(), [200.0; 4]);
            });
        }
    });
}

fn parameter(name: &str) -> Tensor {
    Tensor::parameter(name, Shape::new(DType::F32, &[4]))
}
