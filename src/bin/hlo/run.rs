//! `hlo show` and `hlo run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use sinexp::array::{Array, Weights};
use sinexp::cli::{DeviceArguments, say};
use sinexp::error::Error;
use sinexp::graph::Program;
use sinexp::interop::jax_export::DisabledCheck;
use sinexp::interop::program::Foreign;
use sinexp::interop::{arrays, safetensors};
use sinexp::runtime::{Device, Executable};

/// Prints a program's format, name, inputs and results, and the custom calls it makes.
#[derive(Args, Debug)]
pub struct Show {
    /// HLO text, an HLO protocol buffer, StableHLO text, a portable artifact or a file of jax.export
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
    /// Prints the program as HLO text, with all its constants, instead
    #[arg(long)]
    text: bool,
}

/// Runs a program once and writes its results.
///
/// Inputs are found by name in the files given, also by a pytree's path in another spelling; where a file has none of the
/// names, its arrays are taken in the order of the inputs (numpy.savez's arr_0, arr_1 ...).
#[derive(Args, Debug)]
pub struct Run {
    /// HLO text, an HLO protocol buffer, StableHLO text, a portable artifact or a file of jax.export
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
    /// Inputs by name: .safetensors or .npz; repeatable
    #[arg(long, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// Results by name, as safetensors [default: only their shapes are printed]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArguments,
}

pub fn show(arguments: &Show) -> Result<()> {
    let foreign = Foreign::open(&arguments.program)?;
    if arguments.text {
        say(&foreign.text);
    } else {
        say(&format!("{}: {}", foreign.format, foreign.signature));
        if let Some(exported) = &foreign.exported {
            let ignored = exported.in_avals.len() - exported.kept.len();
            let orders = std::iter::successors(exported.vjp.as_deref(), |vjp| vjp.vjp.as_deref()).count();
            let any = exported.disabled_checks.contains(&DisabledCheck::Platform);
            let devices = if any { "any device".to_owned() } else { exported.platforms.join(", ") };
            say(&format!("for {devices}; {ignored} inputs ignored; differentiable {orders} times"));
        }
    }
    Ok(())
}

pub fn run(arguments: &Run) -> Result<()> {
    let foreign = Foreign::open(&arguments.program)?;
    say(&format!("{}: {}", foreign.format, foreign.signature));
    let device = arguments.device.open()?;
    let foreign = foreign.on(&device.platform()).map_err(|e| Error::file(&arguments.program, e))?;
    let program = foreign.program().map_err(|e| Error::file(&arguments.program, e))?;
    let inputs = inputs(&program, &arguments.inputs)?;
    let started = Instant::now();
    let compiled = compile(&device, &foreign, &program, &arguments.program)?;
    let compile = started.elapsed();
    let started = Instant::now();
    let results = compiled.call(&inputs.iter().collect::<Vec<_>>())?;
    say(&format!(
        "compiled in {:.2} s, ran in {:.3} s on {}",
        compile.as_secs_f64(),
        started.elapsed().as_secs_f64(),
        device.name()
    ));
    let names = program.outputs.iter().map(|(name, _)| name.clone());
    if let Some(out) = &arguments.out {
        let tensors: Weights = names.zip(results).collect();
        safetensors::write(out, &safetensors::Tensors { tensors, metadata: BTreeMap::new() })?;
        say(&format!("Written to {}", out.display()));
    }
    Ok(())
}

/// Compiles it; a custom call that the device lacks is named.
fn compile(device: &Device, foreign: &Foreign, program: &Program, path: &Path) -> Result<Executable> {
    device.compile(program).map_err(|error| {
        let text = error.to_string();
        let lacking = foreign.signature.custom_calls.iter().find(|target| text.contains(target.as_str()));
        match lacking {
            Some(target) => {
                let reason = format!(
                    "makes the custom call `{target}`, which device {} has not: it is a function of the library that the program was written for",
                    device.name()
                );
                Error::file(path, reason).into()
            }
            None => error.into(),
        }
    })
}

/// The program's inputs from the files, in order.
fn inputs(program: &Program, files: &[PathBuf]) -> Result<Vec<Array>> {
    let names: Vec<String> = program.inputs.iter().map(|(name, _)| name.clone()).collect();
    let mut found: BTreeMap<usize, Array> = BTreeMap::new();
    for path in files {
        found.extend(arrays::assign(&names, arrays::read(path)?.tensors, path)?);
    }
    let mut all = Vec::new();
    for (i, (name, shape)) in program.inputs.iter().enumerate() {
        let missing = || Error::tensor(name, format!("{shape}, is in none of the files given with --inputs"));
        all.push(found.remove(&i).ok_or_else(missing)?);
    }
    Ok(all)
}
