//! What the integration tests share: one CPU device, and a way to evaluate tensors on it.
#![allow(dead_code)] // each test binary uses its part

pub mod check;
pub mod cli;

use std::sync::OnceLock;

use sinexp::array::Array;
use sinexp::graph::{Program, Tensor};
use sinexp::runtime::Device;

/// The in-process CPU device, opened once.
pub fn cpu() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(|| Device::open("cpu").expect("the in-process CPU device"))
}

/// Values of `outputs` when `inputs` have these values.
pub fn evaluate(inputs: &[Tensor], outputs: &[Tensor], values: &[Array]) -> Vec<Array> {
    let named: Vec<(&str, Tensor)> = outputs.iter().map(|t| ("y", t.clone())).collect();
    let program = Program::new("test", inputs, &named).expect("a closed program");
    let executable = cpu().compile(&program).unwrap_or_else(|e| panic!("{e}\n{}", program.text));
    executable.call(&values.iter().collect::<Vec<_>>()).expect("a run")
}

/// The PJRT CPU plugin that `./setup --jax` installs for tests.
pub fn cpu_plugin() -> Option<std::path::PathBuf> {
    let lib = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/lib");
    let sites = std::fs::read_dir(lib).ok()?.flatten().map(|e| e.path().join("site-packages"));
    sites.flat_map(|site| PLUGINS.map(|file| site.join(file))).find(|p| p.is_file())
}

/// Where the plugin packages put their library, below site-packages.
const PLUGINS: [&str; 1] = ["lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"];
