//! Lowering: what HLO has no operation for becomes operations it has. The last transform before printing.
//!
//! * `scan` becomes `while` with a counter, reading and writing one slice per step;
//! * scans over the same operands with the same body inputs become one (as reverse mode makes them);
//! * `split` becomes slices;
//! * calls are put in place; `stop_gradient` disappears.

use std::collections::HashMap;

use super::build::while_loop;
use super::function::Function;
use super::op::Op;
use super::rewrite::{Env, map_functions, resolve};
use super::tensor::{Node, Tensor, in_scope, topological};
use crate::array::DType;

/// The same values in operations that HLO text can say.
pub fn lower(outputs: &[Tensor]) -> Vec<Tensor> {
    let nodes = topological(outputs);
    let twins = twins(&nodes);
    let mut env = Env::new();
    for node in &nodes {
        let operands = resolve(&env, &node.operands);
        let changed = operands.iter().zip(&node.operands).any(|(a, b)| a.key() != b.key());
        let results = in_scope(node.scope.clone(), || match &node.op {
            Op::StopGradient => Some(operands.clone()),
            Op::Split { dim, parts } => {
                let size = operands[0].dims()[*dim] / parts;
                let part = |i: usize| operands[0].slice_in_dim(*dim, i * size, (i + 1) * size);
                Some((0..*parts).map(part).collect())
            }
            Op::Call { function, .. } => Some(lowered(function).inline(&operands)),
            Op::Scan { body, consts, carry, length, reverse } => {
                if env.contains_key(&(node.id, 0)) {
                    return None; // done with its twin
                }
                let group = twins.get(&node.id).map_or(&[][..], Vec::as_slice);
                let mut outputs = body.outputs.clone();
                for (_, twin) in group {
                    outputs.extend_from_slice(&twin.outputs[*carry..]);
                }
                let body = Function { inputs: body.inputs.clone(), outputs };
                let results = lower_scan(&lowered(&body), *consts, *carry, *length, *reverse, &operands);
                let mut next = node.shapes.len();
                for (id, twin) in group {
                    for i in 0..twin.outputs.len() {
                        let from = if i < *carry { i } else { next + i - carry };
                        env.insert((*id, i), results[from].clone());
                    }
                    next += twin.outputs.len() - carry;
                }
                Some(results)
            }
            op => match map_functions(op, &mut lowered) {
                Some(op) => Some(Tensor::apply(op, operands.clone())),
                None if changed => Some(Tensor::apply(op.clone(), operands.clone())),
                None => None,
            },
        });
        for (i, t) in results.into_iter().flatten().enumerate() {
            env.entry((node.id, i)).or_insert(t);
        }
    }
    resolve(&env, outputs)
}

/// A function is lowered while it is closed: once in place, its graph would be the whole graph around it.
fn lowered(f: &Function) -> Function {
    Function { inputs: f.inputs.clone(), outputs: lower(&f.outputs) }
}

/// Scans that share operands and body inputs with an earlier one: by the earlier one's id, the later ones.
fn twins(nodes: &[std::sync::Arc<Node>]) -> HashMap<u64, Vec<(u64, Function)>> {
    let mut first: HashMap<Vec<(u64, usize)>, u64> = HashMap::new();
    let mut groups: HashMap<u64, Vec<(u64, Function)>> = HashMap::new();
    for node in nodes {
        let Op::Scan { body, reverse, .. } = &node.op else { continue };
        let mut key: Vec<(u64, usize)> = node.operands.iter().chain(&body.inputs).map(Tensor::key).collect();
        key.push((u64::from(*reverse), 0));
        match first.get(&key) {
            Some(&id) => groups.entry(id).or_default().push((node.id, body.clone())),
            None => {
                first.insert(key, node.id);
            }
        }
    }
    groups
}

/// `while (i < length)`, with state `i, carry, ys`.
fn lower_scan(
    body: &Function,
    consts: usize,
    carry: usize,
    length: usize,
    reverse: bool,
    operands: &[Tensor],
) -> Vec<Tensor> {
    let (fixed, rest) = operands.split_at(consts);
    let (init, xs) = rest.split_at(carry);
    let stacks: Vec<Tensor> =
        body.outputs[carry..].iter().map(|y| Tensor::full(y.dtype(), &[&[length], y.dims()].concat(), 0.0)).collect();
    if length == 0 {
        return [init, &stacks].concat();
    }
    let start = [&[Tensor::scalar(0i32)], init, &stacks].concat();
    let results = while_loop(
        &start,
        |s| s[0].lt(&Tensor::scalar(length as i32)),
        |s| {
            let at = if reverse { Tensor::scalar(length as i32 - 1) - &s[0] } else { s[0].clone() };
            let slices: Vec<Tensor> = xs.iter().map(|x| x.dynamic_index(&at)).collect();
            let arguments = [fixed, &s[1..1 + carry], &slices].concat();
            let out = body.inline(&arguments);
            let mut state = vec![&s[0] + &Tensor::scalar(1i32)];
            state.extend_from_slice(&out[..carry]);
            state.extend(s[1 + carry..].iter().zip(&out[carry..]).map(|(ys, y)| ys.dynamic_update_index(y, &at)));
            state
        },
    );
    debug_assert!(results[0].dtype() == DType::I32);
    results[1..].to_vec()
}
