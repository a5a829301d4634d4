//! Transforms: functions from graph to graph. They compose, because each returns ordinary tensors.
//!
//! | transform | JAX | file |
//! | --- | --- | --- |
//! | [`grad`], [`value_and_grad`], [`vjp`] | `jax.grad`, `jax.vjp` | `grad.rs`, rules in `vjp_rules.rs` |
//! | [`jvp`] | `jax.jvp` | `jvp.rs` |
//! | [`vmap`] | `jax.vmap` | `vmap.rs`, rules in `vmap_rules.rs` |
//! | [`jacobian`], [`jacrev`], [`hessian`] | `jax.jacfwd`, `jax.jacrev`, `jax.hessian` | `jacobian.rs` |
//! | [`checkpoint`](crate::graph::checkpoint) | `jax.checkpoint` | an operation; its reverse rule is in `control.rs` |
//! | [`fast_sine`] | | `fast_sine.rs` |
//! | [`lower`] | | `lower.rs`: what HLO has no operation for |
//!
//! ```
//! use hlograd::array::{Array, DType};
//! use hlograd::graph::{Program, Shape, Tensor};
//! use hlograd::runtime::Device;
//! use hlograd::transform::{grad, hessian, jvp, vmap};
//! // f = sum x^4 / 12 has the Hessian diag(x^2); here its product with v, forward over reverse.
//! let [x, v] = ["x", "v"].map(|name| Tensor::parameter(name, Shape::new(DType::F64, &[3])));
//! let f = |x: &Tensor| (x.square().square() / 12.0).sum_all();
//! let product = jvp(&grad(&f(&x), &[x.clone()])?, &[x.clone()], &[v.clone()])?.swap_remove(0);
//! assert_eq!(hessian(&f(&x), &x)?.dims(), [3, 3]); // the whole of it
//! // Gradients of each of two examples: vmap(grad(f)).
//! let batch = Tensor::parameter("batch", Shape::new(DType::F64, &[2, 3]));
//! assert_eq!(vmap(&[batch], &[Some(0)], |x| grad(&f(&x[0]), x))?[0].dims(), [2, 3]);
//! let program = Program::new("product", &[x, v], &[("Hv", product)])?;
//! let [x, v] = [[1.0, 2.0, 3.0], [1.0, 1.0, -1.0]].map(|values| Array::from_slice(&[3], &values));
//! let found = Device::open("cpu")?.compile(&program)?.call(&[&x, &v])?;
//! assert_eq!(found[0].to_vec::<f64>()?, [1.0, 4.0, -9.0]);
//! # Ok::<(), hlograd::error::Error>(())
//! ```

mod control;
mod derivative;
mod fast_sine;
mod grad;
mod jacobian;
mod jvp;
mod lower;
mod vjp_rules;
mod vmap;
mod vmap_control;
mod vmap_rules;

use std::collections::HashMap;
use std::sync::Arc;

pub use fast_sine::fast_sine;
pub use grad::{grad, value_and_grad, vjp};
pub use jacobian::{hessian, jacobian, jacrev};
pub use jvp::jvp;
pub use lower::lower;
pub use vmap::vmap;

use crate::graph::{Function, Node, Op, Tensor, in_scope, topological};

/// Values attached to tensors by identity.
pub(crate) type Env = HashMap<(u64, usize), Tensor>;

/// Walks the graph of `outputs` from operands to users and lets `rule` give each affected node new values.
///
/// A node is affected when one of its operands has a value in `env`. `rule` gets the node and the operands' values
/// (None where an operand has none), and returns one optional value per result. Values already in `env` are kept, so
/// that a transform can start at an intermediate tensor.
pub(crate) fn propagate<E>(
    outputs: &[Tensor],
    env: &mut Env,
    mut rule: impl FnMut(&Arc<Node>, &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>, E>,
) -> Result<(), E> {
    for node in topological(outputs) {
        let values: Vec<Option<Tensor>> = node.operands.iter().map(|t| env.get(&t.key()).cloned()).collect();
        let settled = (0..node.shapes.len()).all(|i| env.contains_key(&(node.id, i)));
        if settled || values.iter().all(Option::is_none) {
            continue;
        }
        let results = in_scope(node.scope.clone(), || rule(&node, &values))?;
        for (i, value) in results.into_iter().enumerate() {
            if let Some(value) = value {
                env.entry((node.id, i)).or_insert(value);
            }
        }
    }
    Ok(())
}

/// `outputs` with each first tensor of a pair replaced by the second, which has the same shape.
#[track_caller]
pub fn substitute(outputs: &[Tensor], pairs: &[(Tensor, Tensor)]) -> Vec<Tensor> {
    let mut env = Env::new();
    for (from, to) in pairs {
        assert!(from.shape() == to.shape(), "substitute: {} by {}", from.shape(), to.shape());
        env.insert(from.key(), to.clone());
    }
    let infallible: Result<(), std::convert::Infallible> = propagate(outputs, &mut env, |node, values| {
        let operands = with_values(node, values);
        Ok(Tensor::apply(node.op.clone(), operands).into_iter().map(Some).collect())
    });
    let Ok(()) = infallible;
    resolve(&env, outputs)
}

/// The tensors, each replaced by its value where it has one.
pub(crate) fn resolve(env: &Env, tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().map(|t| env.get(&t.key()).unwrap_or(t).clone()).collect()
}

/// The node's operands, each replaced by its value where it has one.
pub(crate) fn with_values(node: &Node, values: &[Option<Tensor>]) -> Vec<Tensor> {
    node.operands.iter().zip(values).map(|(t, v)| v.as_ref().unwrap_or(t).clone()).collect()
}

/// What to put in the place of a node, given its new operands; None keeps the operation.
pub(crate) type Replace<'a> = dyn FnMut(&Node, &[Tensor]) -> Option<Vec<Tensor>> + 'a;

/// Rebuilds the graph of `outputs`, asking `replace` for each node what to put in its place given its new operands (None
/// keeps the operation). Goes into loops, branches and calls.
pub(crate) fn rewrite(outputs: &[Tensor], replace: &mut Replace<'_>) -> Vec<Tensor> {
    let mut env = Env::new();
    for node in topological(outputs) {
        let operands = resolve(&env, &node.operands);
        let changed = operands.iter().zip(&node.operands).any(|(a, b)| a.key() != b.key());
        let results = in_scope(node.scope.clone(), || {
            replace(&node, &operands).or_else(|| {
                let op = map_functions(&node.op, &mut |f| Function {
                    inputs: f.inputs.clone(),
                    outputs: rewrite(&f.outputs, replace),
                });
                match op {
                    Some(op) => Some(Tensor::apply(op, operands)),
                    None if changed => Some(Tensor::apply(node.op.clone(), operands)),
                    None => None,
                }
            })
        });
        for (i, t) in results.into_iter().flatten().enumerate() {
            env.insert((node.id, i), t);
        }
    }
    resolve(&env, outputs)
}

/// The operation with its inner functions mapped; None when it has none.
fn map_functions(op: &Op, f: &mut dyn FnMut(&Function) -> Function) -> Option<Op> {
    Some(match op {
        Op::While { cond, body, consts } => Op::While { cond: f(cond), body: f(body), consts: *consts },
        Op::Scan { body, consts, carry, length, reverse } => {
            Op::Scan { body: f(body), consts: *consts, carry: *carry, length: *length, reverse: *reverse }
        }
        Op::Conditional { branches } => Op::Conditional { branches: branches.iter().map(f).collect() },
        Op::Call { function, kind } => Op::Call { function: f(function), kind: *kind },
        _ => return None,
    })
}
