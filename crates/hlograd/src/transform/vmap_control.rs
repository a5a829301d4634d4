//! Batching rules of the operations with functions inside.

use std::sync::Arc;

use super::vmap::{batch, repeat};
use crate::graph::*;

/// See [`super::vmap`].
pub(super) fn vmap(node: &Arc<Node>, b: &[Option<Tensor>], size: usize) -> Vec<Option<Tensor>> {
    match &node.op {
        Op::Call { function, kind } => {
            let is: Vec<bool> = b.iter().map(Option::is_some).collect();
            let (f, some) = batched_function(function, &is, size, &vec![false; function.outputs.len()]);
            let results = Tensor::apply(Op::Call { function: f, kind: *kind }, with_values(node, b));
            all_batched(results, &some, size)
        }
        Op::Conditional { branches } => conditional(node, branches, b, size),
        Op::Scan { body, consts, carry, length, reverse } => {
            let is: Vec<bool> = b.iter().map(Option::is_some).collect();
            let (body, carried, some) = fixed_point(body, &is, *consts, *carry, size);
            let mut operands = with_values(node, b);
            for i in 0..*carry {
                if carried[i] && !is[consts + i] {
                    operands[consts + i] = repeat(&operands[consts + i], size);
                }
            }
            // The loop runs over dimension 0, so the batch of a slice stack comes second.
            for i in consts + carry..operands.len() {
                if is[i] {
                    operands[i] = operands[i].moveaxis(0, 1);
                }
            }
            let op = Op::Scan { body, consts: *consts, carry: *carry, length: *length, reverse: *reverse };
            let mut results = Tensor::apply(op, operands);
            for (i, r) in results.iter_mut().enumerate().skip(*carry) {
                if some[i] {
                    *r = r.moveaxis(1, 0);
                }
            }
            all_batched(results, &some, size)
        }
        Op::While { cond, body, consts } => while_(node, cond, body, *consts, b, size),
        _ => unreachable!("{} has no function inside", node.op.name()),
    }
}

/// Results of the rewritten node. Those that came out unbatched are repeated: the original node's would still depend on
/// single examples through its other operands.
fn all_batched(results: Vec<Tensor>, some: &[bool], size: usize) -> Vec<Option<Tensor>> {
    results.into_iter().zip(some).map(|(r, &s)| Some(if s { r } else { repeat(&r, size) })).collect()
}

/// `f` with the inputs in `is` batched; outputs that depend on them, and those in `force`, are batched.
fn batched_function(f: &Function, is: &[bool], size: usize, force: &[bool]) -> (Function, Vec<bool>) {
    let mut pairs = Vec::new();
    let inputs: Vec<Tensor> = f
        .inputs
        .iter()
        .zip(is)
        .map(|(x, &is)| {
            if !is {
                return x.clone();
            }
            let input = Tensor::parameter("batched", x.shape().with_dims(&[&[size], x.dims()].concat()));
            pairs.push((x.clone(), input.clone()));
            input
        })
        .collect();
    let batched = batch(&f.outputs, &pairs, size);
    let some: Vec<bool> = batched.iter().zip(force).map(|(b, &force)| b.is_some() || force).collect();
    let outputs = f
        .outputs
        .iter()
        .zip(batched)
        .zip(&some)
        .map(|((y, b), &some)| b.unwrap_or_else(|| if some { repeat(y, size) } else { y.clone() }))
        .collect();
    (Function { inputs, outputs }, some)
}

/// A loop body batched so that state goes in as it comes out: the body, which state is batched, which outputs are.
fn fixed_point(
    body: &Function,
    is: &[bool],
    consts: usize,
    carry: usize,
    size: usize,
) -> (Function, Vec<bool>, Vec<bool>) {
    let mut is = is.to_vec();
    loop {
        let mut force = vec![false; body.outputs.len()];
        force[..carry].copy_from_slice(&is[consts..consts + carry]);
        let (f, some) = batched_function(body, &is, size, &force);
        if some[..carry] == is[consts..consts + carry] {
            return (f, is[consts..consts + carry].to_vec(), some);
        }
        is[consts..consts + carry].copy_from_slice(&some[..carry]);
    }
}

fn conditional(node: &Arc<Node>, branches: &[Function], b: &[Option<Tensor>], size: usize) -> Vec<Option<Tensor>> {
    let x = with_values(node, b);
    let is: Vec<bool> = b[1..].iter().map(Option::is_some).collect();
    if let Some(index) = &b[0] {
        // Examples take different branches: all are computed, and one is chosen per example.
        let n = branches.len() as i32;
        let in_range = index.ge(&Tensor::scalar(0i32)).bitwise_and(&index.lt(&Tensor::scalar(n)));
        let index = in_range.select(index, &Tensor::scalar(n - 1));
        let computed: Vec<Vec<Tensor>> = branches
            .iter()
            .map(|f| batched_function(f, &is, size, &vec![true; f.outputs.len()]).0.inline(&x[1..]))
            .collect();
        let mut chosen = computed[0].clone();
        for (i, results) in computed.iter().enumerate().skip(1) {
            let here = index.eq(&Tensor::scalar(i as i32));
            for (c, r) in chosen.iter_mut().zip(results) {
                *c = here.broadcast_in_dim(&[0], r.dims()).select(r, c);
            }
        }
        return chosen.into_iter().map(Some).collect();
    }
    let none = vec![false; node.shapes.len()];
    let mut some = none.clone();
    for f in branches {
        let (_, s) = batched_function(f, &is, size, &none);
        some.iter_mut().zip(s).for_each(|(a, b)| *a |= b);
    }
    let branches = branches.iter().map(|f| batched_function(f, &is, size, &some).0).collect();
    all_batched(Tensor::apply(Op::Conditional { branches }, x), &some, size)
}

fn while_(
    node: &Arc<Node>,
    cond: &Function,
    body: &Function,
    consts: usize,
    b: &[Option<Tensor>],
    size: usize,
) -> Vec<Option<Tensor>> {
    let mut is: Vec<bool> = b.iter().map(Option::is_some).collect();
    let carry = is.len() - consts;
    let (mut batched_body, carried, _) = fixed_point(body, &is, consts, carry, size);
    is[consts..].copy_from_slice(&carried);
    let (mut batched_cond, some) = batched_function(cond, &is, size, &[false]);
    if some[0] {
        // Examples stop at different times: go on while any does, and keep the state of those that have stopped.
        is[consts..].fill(true);
        batched_cond = batched_function(cond, &is, size, &[true]).0;
        batched_body = batched_function(body, &is, size, &vec![true; carry]).0;
        let going = batched_cond.inline(&batched_body.inputs).swap_remove(0);
        batched_body.outputs = batched_body
            .outputs
            .iter()
            .zip(&batched_body.inputs[consts..])
            .map(|(new, old)| going.broadcast_in_dim(&[0], new.dims()).select(new, old))
            .collect();
        batched_cond.outputs = vec![batched_cond.outputs[0].any(&[0])];
    }
    let mut operands = with_values(node, b);
    for i in consts..operands.len() {
        if is[i] && b[i].is_none() {
            operands[i] = repeat(&operands[i], size);
        }
    }
    let results = Tensor::apply(Op::While { cond: batched_cond, body: batched_body, consts }, operands);
    all_batched(results, &is[consts..], size)
}
