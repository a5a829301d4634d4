//! Our side of benches/against_jax.py: serves a case, or times it alone.
//!
//! `cargo bench --bench sides` prints seconds per run; with `--serve CASE` it reads how often to run from each line of
//! standard input and answers with seconds per run, or with the peak memory in MB for the line `memory`.

use std::io::{BufRead, Write};
use std::time::Instant;

use sinexp::array::{Array, DType};
use sinexp::error::Result;
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::nn::siren::Siren;
use sinexp::random::Key;
use sinexp::runtime::{Buffer, Device, Executable, tune_allocator};
use sinexp::train::{StepOptions, regression_step};

/// A program with its arguments, and how many leading arguments each run replaces by results.
struct Case {
    executable: Executable,
    arguments: Vec<Buffer>,
    state: usize,
}

impl Case {
    fn open(device: &Device, name: &str) -> Result<Case> {
        match name {
            "step" => step(device),
            "call" => call(device),
            _ => panic!("unknown case {name}: step or call"),
        }
    }

    /// Seconds per run; the last result is read, so that everything has been computed.
    fn run(&mut self, times: usize) -> Result<f64> {
        let start = Instant::now();
        for i in 0..times {
            let mut results = self.executable.run(&self.arguments.iter().collect::<Vec<_>>())?;
            if i + 1 == times
                && let Some(last) = results.last()
            {
                last.to_host()?;
            }
            results.truncate(self.state);
            for (argument, result) in self.arguments.iter_mut().zip(results) {
                *argument = result;
            }
        }
        Ok(start.elapsed().as_secs_f64() / times as f64)
    }
}

/// One training step of a SIREN: N 256, L 11, 16,384 samples.
fn step(device: &Device) -> Result<Case> {
    let siren = Siren::new(2, 256, 11, 1);
    let program =
        regression_step(&siren, 16384, &StepOptions { fast_sine: device.is_cpu(), ..StepOptions::default() })?;
    let keys = Key::new(0).split(program.inputs.len());
    let mut arguments = Vec::new();
    for ((name, shape), key) in program.inputs.iter().zip(keys) {
        let uniform = |b: f32| Array::from_ndarray(&key.uniform::<f32>(&shape.dims, -b, b));
        let value = match name.as_str() {
            "learning_rate" => Array::scalar(1e-4f32),
            "omega0" => Array::scalar(82.0f32),
            "omega_h" => Array::scalar(1.0f32),
            "x" | "y" => uniform(1.0),
            "W.0" => uniform(0.5),
            name if name.starts_with("W.") => uniform((6.0f32 / 256.0).sqrt()),
            name if name.starts_with("b.") => uniform(0.1),
            _ => Array::full(DType::F32, &shape.dims, 0.0),
        };
        arguments.push(device.put(&value)?);
    }
    let state = program.outputs.len() - 1;
    Ok(Case { executable: device.compile(&program)?, arguments, state })
}

/// Ten arguments of three numbers, one result: nothing but the cost of a call.
fn call(device: &Device) -> Result<Case> {
    let x: Vec<Tensor> = (0..10).map(|i| Tensor::parameter(&format!("x{i}"), Shape::new(DType::F32, &[3]))).collect();
    let sum = x[1..].iter().fold(x[0].clone(), |sum, t| sum + t);
    let program = Program::new("call", &x, &[("sum", sum)])?;
    let one = Array::full(DType::F32, &[3], 1.0);
    let arguments = (0..10).map(|_| device.put(&one)).collect::<Result<_>>()?;
    Ok(Case { executable: device.compile(&program)?, arguments, state: 0 })
}

/// Peak resident memory in MB, without the pages of mapped files (the libraries' code), which processes share.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
    };
    field("VmHWM:") - field("RssFile:")
}

fn main() -> Result<()> {
    tune_allocator();
    let device = Device::open("cpu")?;
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name] = &arguments[..]
        && flag == "--serve"
    {
        let mut case = Case::open(&device, name)?;
        for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
            let answer = if line == "memory" { peak_memory() } else { case.run(line.parse().unwrap_or(1))? };
            println!("{answer:e}");
            let _ = std::io::stdout().flush();
        }
        return Ok(());
    }
    for (name, times) in [("step", 5), ("call", 100_000)] {
        let mut case = Case::open(&device, name)?;
        case.run(2)?;
        println!("{name}: {:.3e} s per run", case.run(times)?);
    }
    Ok(())
}
