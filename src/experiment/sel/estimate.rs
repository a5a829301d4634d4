//! What a grid would take on a device: memory from the sizes of what is kept, time from a measured rate.

use std::time::Instant;

use crate::array::{Array, DType};
use crate::error::Result;
use crate::graph::{Program, Shape, Tensor};
use crate::report::Table;
use crate::runtime::{Buffer, Device};
use crate::train::language::{LanguageConfig, Projection};

/// One line per width, depth and kind: memory on the device, seconds per step and days per run; and the sum.
///
/// The rate is that of products of matrices of the first configuration's width, measured now (a second or two).
pub fn estimate(device: &Device, configs: &[LanguageConfig]) -> Result<String> {
    let Some(first) = configs.first() else { return Ok("no runs".into()) };
    let rate = matrix_rate(device, first.transformer.width.max(256), first.step.bf16)?;
    let mut kinds: Vec<(String, &LanguageConfig, usize)> = Vec::new();
    for config in configs {
        let t = &config.transformer;
        let name = format!("{} x {} {}", t.width, t.depth, kind(config));
        match kinds.iter_mut().find(|(n, ..)| *n == name) {
            Some((.., count)) => *count += 1,
            None => kinds.push((name, config, 1)),
        }
    }
    let (mut names, mut counts, mut memory, mut step, mut days) = (vec![], vec![], vec![], vec![], vec![]);
    let mut sum = 0.0;
    for (name, config, count) in kinds {
        let seconds = operations_per_step(config) / rate;
        let whole = seconds * config.steps() as f64 / 86_400.0;
        names.push(name);
        counts.push(count as i64);
        memory.push(bytes(config) / 1e9);
        step.push(seconds);
        days.push(whole);
        sum += whole * count as f64;
    }
    let number = |name: &str, values: Vec<f64>| polars::prelude::Column::new(name.into(), values);
    let table = Table::new(
        format!("Estimate for {} at {:.0} GFLOP/s of matrix products", device.describe(), rate / 1e9),
        vec![
            polars::prelude::Column::new("model".into(), names),
            polars::prelude::Column::new("runs".into(), counts),
            number("memory", memory),
            number("step", step),
            number("run", days),
        ],
    )?;
    let table = table
        .unit("memory", "GB")
        .unit("step", "s")
        .unit("run", "days")
        .digits("memory", 2)
        .digits("step", 2)
        .digits("run", 2);
    Ok(format!("{table}\nAll runs one after another: {sum:.1} days"))
}

/// One line per configuration of a profile: memory on the device, and minutes for `rounds` rounds of forward, forward and
/// backward, optimizer and step.
///
/// The rate is measured as in [`estimate`]; compiling and making the start on the host come on top.
pub fn estimate_profile(device: &Device, configs: &[&LanguageConfig], rounds: usize) -> Result<String> {
    let Some(first) = configs.first() else { return Ok("no sizes".into()) };
    let rate = matrix_rate(device, first.transformer.width.max(256), first.step.bf16)?;
    let name = |c: &&LanguageConfig| format!("{} x {} {}", c.transformer.width, c.transformer.depth, kind(c));
    // Two steps, and a third of one for the loss alone.
    let minutes = |c: &&LanguageConfig| operations_per_step(c) / rate * rounds as f64 * 7.0 / 3.0 / 60.0;
    let number = |name: &str, values: Vec<f64>| polars::prelude::Column::new(name.into(), values);
    let table = Table::new(
        format!("Estimate for {} at {:.0} GFLOP/s of matrix products", device.describe(), rate / 1e9),
        vec![
            polars::prelude::Column::new("model".into(), configs.iter().map(name).collect::<Vec<_>>()),
            number("memory", configs.iter().map(|c| bytes(c) / 1e9).collect()),
            number("rounds", configs.iter().map(minutes).collect()),
        ],
    )?;
    Ok(table.unit("memory", "GB").unit("rounds", "min").digits("memory", 2).digits("rounds", 2).to_string())
}

fn kind(config: &LanguageConfig) -> &'static str {
    if config.projection == Projection::Standard { "baseline" } else { "SEL" }
}

/// Floating-point operations of a training step; a rematerialised block is computed once more.
fn operations_per_step(config: &LanguageConfig) -> f64 {
    let again = if config.transformer.remat { 4.0 / 3.0 } else { 1.0 };
    config.transformer.flops_per_token(config.step.sequence) * again * config.step.tokens_per_step() as f64
}

/// Bytes on the device: parameters, two moments, gradients and effective weights in f32; what the reverse pass reads of
/// each block (its input alone where it is rematerialised, and one block's values); logits with their gradient.
fn bytes(config: &LanguageConfig) -> f64 {
    let (t, s) = (&config.transformer, &config.step);
    let trained: usize = config.model().parameters().iter().map(|p| p.dims.iter().product::<usize>()).sum();
    let effective = t.size();
    let narrow = if s.bf16 { 2.0 } else { 4.0 };
    let positions = (s.batch * s.sequence) as f64;
    let block =
        positions * ((8 * t.width + 4 * t.hidden) as f64 * narrow + (t.heads * s.sequence) as f64 * (4.0 + narrow));
    let input = positions * t.width as f64 * narrow;
    let blocks = if t.remat { t.depth as f64 * input + block } else { t.depth as f64 * block };
    let logits = positions * t.vocabulary as f64 * 8.0;
    trained as f64 * 16.0 + effective as f64 * (4.0 + narrow) + blocks + logits
}

/// Floating-point operations per second of a square matrix product.
fn matrix_rate(device: &Device, n: usize, bf16: bool) -> Result<f64> {
    let n = n.min(2048);
    let dtype = if bf16 { DType::BF16 } else { DType::F32 };
    let x = Tensor::parameter("x", Shape::new(dtype, &[n, n]));
    let program = device.compile(&Program::new("rate", &[x.clone()], &[("y", x.matmul(&x) / n as f64)])?)?;
    let mut buffer = device.put(&Array::full(dtype, &[n, n], 1.0))?;
    let run = |buffer: &Buffer| -> Result<Buffer> { Ok(program.run(&[buffer])?.swap_remove(0)) };
    buffer = run(&buffer)?;
    buffer.to_host()?;
    let (started, mut times) = (Instant::now(), 0);
    while started.elapsed().as_secs_f64() < 1.0 {
        for _ in 0..4 {
            buffer = run(&buffer)?;
        }
        times += 4;
        buffer.to_host()?;
    }
    Ok(2.0 * (n as f64).powi(3) * f64::from(times) / started.elapsed().as_secs_f64())
}
