//! Builders with functions inside: loops, branches, calls, rematerialisation. Closures may use outer tensors.

use super::super::function::Function;
use super::super::op::{CallKind, Op};
use super::super::shape::Shape;
use super::super::tensor::Tensor;
use crate::array::DType;

fn shapes(tensors: &[Tensor]) -> Vec<Shape> {
    tensors.iter().map(|t| t.shape().clone()).collect()
}

/// `lax.while_loop`: `body` while `cond` (to `bool[]`) holds. Forward-mode differentiable; for reverse mode use
/// [`scan`] or [`fori_loop`], whose trip count is known.
#[track_caller]
pub fn while_loop(
    init: &[Tensor],
    cond: impl FnOnce(&[Tensor]) -> Tensor,
    body: impl FnOnce(&[Tensor]) -> Vec<Tensor>,
) -> Vec<Tensor> {
    let state = shapes(init);
    let (cond, cond_captured) = Function::trace(&state, |s| vec![cond(s)]);
    let (body, body_captured) = Function::trace(&state, body);
    // One list of invariants for both: the condition's, then the body's.
    let (nc, nb) = (cond_captured.len(), body_captured.len());
    let body_ghosts: Vec<Tensor> = body_captured.iter().map(|t| t.placeholder("unused")).collect();
    let cond_ghosts: Vec<Tensor> = cond_captured.iter().map(|t| t.placeholder("unused")).collect();
    let cond =
        Function { inputs: [&cond.inputs[..nc], &body_ghosts, &cond.inputs[nc..]].concat(), outputs: cond.outputs };
    let body =
        Function { inputs: [&cond_ghosts, &body.inputs[..nb], &body.inputs[nb..]].concat(), outputs: body.outputs };
    let operands = [&cond_captured[..], &body_captured, init].concat();
    Tensor::apply(Op::While { cond, body, consts: nc + nb }, operands)
}

/// `lax.scan`: `body(carry, x slices) -> (carry, y slices)` over the leading dimension of `xs`. Returns the final
/// carry and the stacked ys. With no `xs`, `length` says how often.
#[track_caller]
pub fn scan(
    carry: &[Tensor],
    xs: &[Tensor],
    length: Option<usize>,
    reverse: bool,
    body: impl FnOnce(&[Tensor], &[Tensor]) -> (Vec<Tensor>, Vec<Tensor>),
) -> (Vec<Tensor>, Vec<Tensor>) {
    let length = xs.first().map(|x| x.dims().first().copied().unwrap_or(0)).or(length).unwrap_or(0);
    let mut inner = shapes(carry);
    for x in xs {
        assert!(x.rank() > 0, "scan over a scalar");
        inner.push(x.shape().with_dims(&x.dims()[1..]));
    }
    let n = carry.len();
    let (body, captured) = Function::trace(&inner, |args| {
        let (carry, ys) = body(&args[..n], &args[n..]);
        assert_eq!(carry.len(), n, "the scan body returned another number of state tensors");
        [carry, ys].concat()
    });
    let operands = [&captured[..], carry, xs].concat();
    let op = Op::Scan { body, consts: captured.len(), carry: n, length, reverse };
    let mut results = Tensor::apply(op, operands);
    let ys = results.split_off(n);
    (results, ys)
}

/// `lax.fori_loop`: `body(i, state)` for i (`int32`) from 0 to `length`.
#[track_caller]
pub fn fori_loop(length: usize, init: &[Tensor], body: impl FnOnce(&Tensor, &[Tensor]) -> Vec<Tensor>) -> Vec<Tensor> {
    let counter = Tensor::iota(Shape::new(DType::I32, &[length]), 0);
    scan(init, &[counter], Some(length), false, |state, i| (body(&i[0], state), vec![])).0
}

/// One branch of a [`switch`]: operands to results.
pub type Branch<'a> = Box<dyn FnOnce(&[Tensor]) -> Vec<Tensor> + 'a>;

/// `lax.switch`: the branch at `index` (`int32`; out of range takes the last), applied to `operands`.
#[track_caller]
pub fn switch(index: &Tensor, branches: Vec<Branch<'_>>, operands: &[Tensor]) -> Vec<Tensor> {
    let arguments = shapes(operands);
    let traced: Vec<_> = branches.into_iter().map(|b| Function::trace(&arguments, b)).collect();
    let all: Vec<Tensor> = traced.iter().flat_map(|(_, captured)| captured.clone()).collect();
    let mut before = 0;
    let mut functions = Vec::new();
    for (f, captured) in &traced {
        // Every branch takes every branch's captured tensors; those of the others stay unused.
        let mut inputs: Vec<Tensor> = all.iter().map(|t| t.placeholder("unused")).collect();
        inputs[before..before + captured.len()].clone_from_slice(&f.inputs[..captured.len()]);
        inputs.extend_from_slice(&f.inputs[captured.len()..]);
        functions.push(Function { inputs, outputs: f.outputs.clone() });
        before += captured.len();
    }
    let operands = [std::slice::from_ref(index), &all, operands].concat();
    Tensor::apply(Op::Conditional { branches: functions }, operands)
}

/// `lax.cond`: `on_true` where the scalar `pred` holds, else `on_false`, applied to `operands`.
#[track_caller]
pub fn cond(
    pred: &Tensor,
    on_true: impl FnOnce(&[Tensor]) -> Vec<Tensor>,
    on_false: impl FnOnce(&[Tensor]) -> Vec<Tensor>,
    operands: &[Tensor],
) -> Vec<Tensor> {
    switch(&pred.convert(DType::I32), vec![Box::new(on_false), Box::new(on_true)], operands)
}

#[track_caller]
fn call_as(kind: CallKind, operands: &[Tensor], f: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> Vec<Tensor> {
    let (function, captured) = Function::trace(&shapes(operands), f);
    Tensor::apply(Op::Call { function, kind }, [&captured[..], operands].concat())
}

/// `f` as one node of the graph, put in place when printed.
#[track_caller]
pub fn call(operands: &[Tensor], f: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> Vec<Tensor> {
    call_as(CallKind::Inline, operands, f)
}

/// `jax.checkpoint`: `f`, whose values are not kept for the reverse pass but computed again from its inputs, behind an
/// optimisation barrier that keeps XLA from merging the two computations.
#[track_caller]
pub fn checkpoint(operands: &[Tensor], f: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> Vec<Tensor> {
    call_as(CallKind::Checkpoint, operands, f)
}

/// `lax.optimization_barrier`: the identity on all tensors together, which XLA does not move computations across.
#[track_caller]
pub fn optimization_barrier(tensors: &[Tensor]) -> Vec<Tensor> {
    if tensors.is_empty() {
        return vec![];
    }
    Tensor::apply(Op::OptimizationBarrier, tensors.to_vec())
}
