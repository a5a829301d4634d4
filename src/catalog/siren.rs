//! Sine networks: forward, the Jacobian between hidden layers, a training step.

use super::choices::{Resolved, data, network};
use super::file::siren_constants;
use super::function::{Argument, Function, dict, leaf};
use super::{Entry, Network, Size};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::interop::jax_export::Tree;
use crate::nn::siren::{Activation, Siren};
use crate::train::{StepOptions, regression_step};
use crate::transform::{jacobian, vmap};

const SIZES: &[Size] =
    &[network("inputs", 2), network("width", 16), network("hidden", 3), network("outputs", 1), data("samples", 8)];
const JACOBIAN_SIZES: &[Size] = &[network("inputs", 1), network("width", 8), network("hidden", 3), data("samples", 2)];

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "siren_forward",
        about: "f(x) of a sine network at a batch of coordinates",
        sizes: SIZES,
        numbers: &[],
        dtypes: &[DType::F32, DType::F64],
        network: Network::Siren,
        orders: 1,
        build: forward,
    },
    Entry {
        name: "hidden_jacobian",
        about: "dh_L/dh_1 of a sine network at a batch of coordinates, by jvp and vmap",
        sizes: JACOBIAN_SIZES,
        numbers: &[],
        dtypes: &[DType::F64, DType::F32],
        network: Network::Siren,
        orders: 1,
        build: hidden_jacobian,
    },
    Entry {
        name: "regression_step",
        about: "one Adam step of a sine network on the mean squared error; the state is donated",
        sizes: SIZES,
        numbers: &[],
        dtypes: &[DType::F32, DType::F64],
        network: Network::Siren,
        orders: 1,
        build: step,
    },
];

/// The network, and the names of what it takes beside the trained parameters: `omega0`, `omega_h`, `pe`.
fn network_of(r: &Resolved) -> Result<(Siren, Vec<&'static str>)> {
    let (siren, constants) = match r.weights() {
        Some(path) => siren_constants(path, r.activation())?,
        None => {
            let siren = Siren::new(r.size("inputs"), r.size("width"), r.size("hidden"), r.size("outputs"));
            (Siren { activation: r.activation().unwrap_or(Activation::Sine), ..siren }, Vec::new())
        }
    };
    r.check_size("matrices", &[siren.width, siren.width.max(siren.inputs).max(siren.outputs)])?;
    r.check_size("layers", &[r.size("samples"), siren.width.max(siren.inputs).max(siren.outputs)])?;
    r.check_size("parameters", &[siren.hidden, 1 << 24])?;
    Ok((siren, constants))
}

fn constant(siren: &Siren, name: &str, dtype: DType) -> Tensor {
    let pe = [siren.encoding, siren.inputs];
    Tensor::parameter(name, Shape::new(dtype, if name == "pe" { &pe } else { &[] }))
}

/// Trained parameters and constants, as inputs in this order.
fn inputs(siren: &Siren, constants: &[&str], dtype: DType) -> Vec<Tensor> {
    let trained = siren.parameters();
    let trained = trained.iter().map(|(name, dims)| Tensor::parameter(name, Shape::new(dtype, dims)));
    trained.chain(constants.iter().map(|name| constant(siren, name, dtype))).collect()
}

fn forward(r: &Resolved) -> Result<Function> {
    let (siren, constants) = network_of(r)?;
    let params = inputs(&siren, &constants, r.dtype());
    let x = Tensor::parameter("x", Shape::new(r.dtype(), &[r.size("samples"), siren.inputs]));
    let named = params.iter().map(|t| (t.name().to_owned(), t.clone())).collect();
    let y = siren.apply(&named, &x);
    let program = Program::new(r.name(), &[params.clone(), vec![x]].concat(), &[("y", y)])?;
    let names = params.iter().map(Tensor::name);
    let arguments = vec![Argument::new("params", dict(names)), Argument::new("x", leaf("x"))];
    Function::new(program, arguments, leaf("y"))
}

fn hidden_jacobian(r: &Resolved) -> Result<Function> {
    let (siren, constants) = network_of(r)?;
    if siren.hidden == 0 {
        return Err(Error::argument("--weights", r.name(), "the network has no hidden layers"));
    }
    let all = inputs(&siren, &constants, r.dtype());
    let x = Tensor::parameter("x", Shape::new(r.dtype(), &[r.size("samples"), siren.inputs]));
    let named = all.iter().map(|t| (t.name().to_owned(), t.clone())).collect();
    let j = vmap(&[x.clone()], &[Some(0)], |x| {
        let h = siren.layers(&named, &x[0]).activations;
        Ok(vec![jacobian(&h[siren.hidden], &h[1])?])
    })?;
    // The output layer does not matter.
    let output = format!(".{}", siren.hidden + 1);
    let params: Vec<Tensor> = all.into_iter().filter(|t| !t.name().ends_with(&output)).collect();
    let program = Program::new(r.name(), &[params.clone(), vec![x]].concat(), &[("J", j[0].clone())])?;
    let names = params.iter().map(Tensor::name);
    let arguments = vec![Argument::new("params", dict(names)), Argument::new("x", leaf("x"))];
    Function::new(program, arguments, leaf("J"))
}

fn step(r: &Resolved) -> Result<Function> {
    let (siren, constants) = network_of(r)?;
    let omegas = constants.contains(&"omega0");
    let options = StepOptions { omegas, dtype: r.dtype(), ..StepOptions::default() };
    let program = regression_step(&siren, r.size("samples"), &options)?;
    let names = siren.parameters();
    let moments =
        |prefix: &str| Tree::dict(names.iter().map(|(name, _)| (name.as_str(), Tree::Leaf(format!("{prefix}{name}")))));
    let state = Tree::dict([("params", moments("")), ("m", moments("m.")), ("v", moments("v.")), ("t", leaf("t"))]);
    let mut arguments = vec![
        Argument::new("state", state.clone()),
        Argument::new("x", leaf("x")),
        Argument::new("y", leaf("y")),
        Argument::new("learning_rate", leaf("learning_rate")),
    ];
    if !constants.is_empty() {
        arguments.push(Argument::new("constants", dict(constants)));
    }
    Function::new(program, arguments, Tree::Tuple(vec![state, leaf("loss")]))
}
