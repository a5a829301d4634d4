//! Rewriting: what every function from graph to graph is made of, and the substitution that inlines functions.

use std::collections::HashMap;
use std::sync::Arc;

use super::function::Function;
use super::op::Op;
use super::tensor::{Node, Tensor, in_scope, topological};

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
pub(super) fn map_functions(op: &Op, f: &mut dyn FnMut(&Function) -> Function) -> Option<Op> {
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
