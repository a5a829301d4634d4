//! What works on this machine: versions, where XLA came from, and one small program on each device.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use ndarray::{Array1, Array2};
use sinexp::analysis::svd::singular_values;
use sinexp::array::{Array, DType};
use sinexp::cli;
use sinexp::error::{Error, Result};
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::runtime::{Device, find_plugins, set_verbose, xla_folder, xla_packages};

/// Checks the installation: versions, devices and plugins found, a small program compiled and run on each, and
/// LAPACK. Exits with 1 when one that should work does not, and says the loader's own reason.
#[derive(Parser, Debug)]
#[command(name = "doctor", version)]
struct Arguments {
    /// Devices to try: cpu, cuda, tpu or plugin:/path/to/plugin.so [default: cpu and every plugin found]
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// Shows XLA's own messages
    #[arg(short, long)]
    verbose: bool,
}

fn main() -> ExitCode {
    cli::run(doctor)
}

fn doctor(arguments: Arguments) -> anyhow::Result<()> {
    set_verbose(arguments.verbose);
    cli::say(&format!("sinexp {} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH));
    let crates = ["xla", "ndarray", "ndarray-linalg", "polars"];
    let crates = crates.map(|name| format!("{name} {}", cli::crate_version(name).unwrap_or("of unknown version")));
    cli::say(&format!("crates: {}", crates.join(", ")));
    let packages: Vec<String> = xla_packages().iter().map(|(name, version)| format!("{name} {version}")).collect();
    let packages = if packages.is_empty() { "an official build".to_owned() } else { packages.join(", ") };
    cli::say(&format!("XLA from {} ({packages})", xla_folder()));
    let plugins = find_plugins();
    for p in &plugins {
        cli::say(&format!("plugin for {}: {}", p.device, p.path.display()));
    }
    if plugins.is_empty() {
        cli::say("plugins: none found (pip packages jax-cuda13-pjrt, jax-cuda12-pjrt, libtpu)");
    }
    let mut devices = arguments.devices;
    if devices.is_empty() {
        devices.push("cpu".into());
        devices.extend(plugins.iter().map(|p| p.device.to_string()));
        devices.dedup();
    }
    let mut failed = Vec::new();
    match check_lapack() {
        Ok(line) => cli::say(&format!("lapack: {line}")),
        Err(e) => {
            cli::say(&format!("lapack: FAILED: {e}"));
            failed.push("lapack");
        }
    }
    for name in &devices {
        match check(name) {
            Ok(line) => cli::say(&format!("{name}: {line}")),
            Err(e @ Error::Argument { .. }) => return Err(e.into()),
            Err(e) => {
                cli::say(&format!("{name}: FAILED: {e}"));
                failed.push(name.as_str());
            }
        }
    }
    anyhow::ensure!(failed.is_empty(), "does not work: {}", failed.join(", "));
    Ok(())
}

/// Singular values of a diagonal matrix.
fn check_lapack() -> Result<String> {
    let diagonal: Array1<f64> = (1..=64).map(f64::from).rev().collect();
    let start = Instant::now();
    let values = singular_values(Array2::from_diag(&diagonal).view())?;
    let seconds = start.elapsed().as_secs_f64();
    let off = values.iter().zip(&diagonal).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    match off < 1e-9 {
        true => Ok(format!("works. Singular values of a 64 x 64 matrix in {:.1} ms", seconds * 1e3)),
        false => Err(Error::numeric("singular values of a diagonal matrix", format!("off by {off}"))),
    }
}

/// Opens the device and runs sum(sin(x)^2) on it.
fn check(name: &str) -> Result<String> {
    let start = Instant::now();
    let device = Device::open(name)?;
    let opened = start.elapsed();
    let x = Tensor::parameter("x", Shape::new(DType::F32, &[1000]));
    let program = Program::new("doctor", &[x.clone()], &[("y", x.sin().square().sum_all())])?;
    let start = Instant::now();
    let executable = device.compile(&program)?;
    let compiled = start.elapsed();
    let values: Vec<f32> = (0..1000).map(|i| i as f32 * 0.01).collect();
    let start = Instant::now();
    let got = executable.call(&[&Array::from_slice(&[1000], &values)])?[0].to_f64_vec()[0];
    let ran = start.elapsed();
    let want: f64 = values.iter().map(|&v| f64::from(v).sin().powi(2)).sum();
    if (got - want).abs() > 1e-4 * want {
        return Err(Error::Device { device: name.into(), reason: format!("computed {got}, expected {want}") });
    }
    let (platform, count) = (device.platform_version(), device.device_count());
    let platform = platform.lines().next().unwrap_or_default();
    Ok(format!(
        "works. {} x {} ({platform}); opened in {:.0} ms, compiled in {:.0} ms, ran in {:.1} ms",
        count,
        device.platform(),
        opened.as_secs_f64() * 1e3,
        compiled.as_secs_f64() * 1e3,
        ran.as_secs_f64() * 1e3
    ))
}
