//! Reductions, windows, maps: computations applied to elements.
//!
//! Sums, extrema and truths are the graph's own operations. Any other computation is applied in a tree of whole arrays,
//! pair by pair in order, which a reduction's associativity allows: products, `logaddexp`, pairs of values. Such a tree
//! takes log2(n) applications and has every derivative.

use super::build::{Builder, Fault, apply1};
use super::ops::{binary, count, is_neutral, padded_size};
use super::parse::Instruction;
use super::regions::{combiner, extremum};
use crate::array::DType;
use crate::graph::Function;
use crate::graph::Tensor;
use crate::graph::concatenate;
use crate::graph::*;
use crate::transform::vmap;

type Tensors = Result<Vec<Tensor>, Fault>;

impl Builder<'_, '_> {
    /// The computation of `to_apply`, on scalars of these arrays' types.
    fn scalar_function(&mut self, ins: &Instruction, x: &[Tensor], results: usize) -> Result<Function, Fault> {
        let f = self.function(self.named(ins.need("to_apply")?)?)?;
        let fits =
            f.inputs.len() == x.len() && f.inputs.iter().zip(x).all(|(i, x)| i.rank() == 0 && i.dtype() == x.dtype());
        if !fits || f.outputs.len() != results || f.outputs.iter().any(|y| y.rank() != 0) {
            return Err(format!("its computation is {f:?}, which does not fit its operands").into());
        }
        Ok(f)
    }

    /// Operands in two halves: arrays of one shape, and a scalar for each.
    fn halves<'x>(&self, x: &'x [Tensor]) -> Result<(&'x [Tensor], &'x [Tensor]), Fault> {
        let (arrays, inits) = x.split_at(x.len() / 2);
        let paired = !arrays.is_empty() && arrays.len() == inits.len();
        let fits = arrays.iter().zip(inits).all(|(a, i)| i.rank() == 0 && i.dtype() == a.dtype());
        if !paired || !fits || arrays.iter().any(|a| a.dims() != arrays[0].dims()) {
            return Err("the operands are not arrays of one shape and a scalar of its type for each".into());
        }
        Ok((arrays, inits))
    }

    pub(super) fn reduce(&mut self, ins: &Instruction, x: &[Tensor]) -> Tensors {
        ins.only(&["dimensions", "to_apply"])?;
        let (arrays, inits) = self.halves(x)?;
        let mut dims = ins.dims_or_none("dimensions")?;
        dims.sort_unstable();
        if dims.windows(2).any(|w| w[0] == w[1]) || dims.iter().any(|&d| d >= arrays[0].rank()) {
            return Err(format!("dimensions={dims:?} of {}", arrays[0].shape()).into());
        }
        let f = self.scalar_function(ins, &[arrays, arrays].concat(), arrays.len())?;
        if let ([a], [init]) = (arrays, inits)
            && let Some((op, kind)) = combiner(&f.inputs, &f.outputs).and_then(|op| own(op, a.dtype()))
        {
            let y = if dims.is_empty() { a.clone() } else { apply1(Op::Reduce { kind, dims }, vec![a.clone()])? };
            let start = init.broadcast_in_dim(&[], y.dims());
            return Ok(vec![if is_neutral(init, op) { y } else { binary(op, &[y, start])? }]);
        }
        if let ([a, at], [dim]) = (arrays, &dims[..])
            && counts(at, *dim)
            && a.dims()[*dim] > 0
            && let Some(kind) = extremum(self.module, self.named(ins.need("to_apply")?)?)
            && is_neutral(&inits[0], if kind == Extremum::Max { Binary::Max } else { Binary::Min })
            && inits[1].as_constant().is_some_and(|i| i.to_f64_vec()[0] == 0.0)
        {
            let value = if kind == Extremum::Max { a.max(&dims) } else { a.min(&dims) };
            let index = apply1(Op::ArgReduce { kind, dim: *dim }, vec![a.clone()])?;
            return Ok(vec![value, index.convert(at.dtype())]);
        }
        tree(&f, arrays, inits, &dims)
    }

    pub(super) fn reduce_window(&mut self, ins: &Instruction, x: &[Tensor]) -> Tensors {
        ins.only(&["window", "to_apply"])?;
        let (arrays, inits) = self.halves(x)?;
        let (window, _) = ins.window()?;
        if window.len() != arrays[0].rank() {
            return Err(format!("{} window dimensions for {}", window.len(), arrays[0].shape()).into());
        }
        let mut config = Vec::new();
        for w in &window {
            let product =
                [w.size, w.stride, w.base_dilation, w.window_dilation].iter().fold(1u128, |p, n| p * *n as u128);
            if product == 0 || product > super::parse::MAX_BYTES {
                return Err(format!("the window {w:?}").into());
            }
            config.push(Padding { low: w.low, high: w.high, interior: w.base_dilation - 1 });
        }
        padded_size(arrays[0].dims(), &config)?;
        let f = self.scalar_function(ins, &[arrays, arrays].concat(), arrays.len())?;
        if let ([a], [init]) = (arrays, inits)
            && let Some((op, kind)) = combiner(&f.inputs, &f.outputs).and_then(|op| own(op, a.dtype()))
            && matches!(kind, Combine::Add | Combine::Max | Combine::Min)
            && is_neutral(init, op)
        {
            return Ok(vec![apply1(Op::ReduceWindow { kind, window }, vec![a.clone()])?]);
        }
        let mut y: Vec<Tensor> = arrays.iter().zip(inits).map(|(a, i)| a.pad(i, &config)).collect();
        for (dim, w) in window.iter().enumerate() {
            y = slide(&f, y, inits, dim, w)?;
        }
        let starts: Vec<Tensor> = inits.iter().map(|i| i.broadcast_in_dim(&[], y[0].dims())).collect();
        elementwise(&f, &[starts, y].concat())
    }

    pub(super) fn map(&mut self, ins: &Instruction, x: &[Tensor]) -> Tensors {
        ins.only(&["dimensions", "to_apply"])?;
        if x.is_empty() || x.iter().any(|a| a.dims() != x[0].dims()) {
            return Err("the operands are not arrays of one shape".into());
        }
        let f = self.scalar_function(ins, x, 1)?;
        elementwise(&f, x)
    }

    pub(super) fn all_reduce(&mut self, ins: &Instruction, x: &[Tensor]) -> Tensors {
        ins.only(&["replica_groups", "to_apply"])?;
        let [a] = x else { return Err(count(1, x).into()) };
        if ins.attribute("replica_groups").is_some_and(|g| !g.trim().is_empty()) {
            return Err("only sums over all replicas (replica_groups={}) are supported".into());
        }
        let f = self.scalar_function(ins, &[a.clone(), a.clone()], 1)?;
        match combiner(&f.inputs, &f.outputs).and_then(|op| own(op, a.dtype())) {
            Some((_, kind)) => Ok(vec![apply1(Op::AllReduce { kind }, vec![a.clone()])?]),
            None => Err("its computation is none of add, maximum, minimum, and, or".into()),
        }
    }
}

/// The graph's reduction by `op`, where it has one for this type, and what `op` is on it.
fn own(op: Binary, dtype: DType) -> Option<(Binary, Combine)> {
    let truths = dtype == DType::Bool;
    Some(match op {
        Binary::Add if !truths => (op, Combine::Add),
        Binary::Max if !truths => (op, Combine::Max),
        Binary::Min if !truths => (op, Combine::Min),
        Binary::And if truths => (op, Combine::And),
        Binary::Or if truths => (op, Combine::Or),
        _ => return None,
    })
}

/// Whether the tensor is 0, 1, 2 ... along `dim`.
fn counts(t: &Tensor, dim: usize) -> bool {
    match &t.node().op {
        Op::Iota { dim: d, .. } => *d == dim && !t.dtype().is_float(),
        Op::BroadcastInDim { dims, .. } => {
            let along = dims.iter().position(|&d| d == dim);
            along.is_some_and(|i| counts(&t.node().operands[0], i))
        }
        _ => false,
    }
}

/// `f` on each element of arrays of one shape.
pub(super) fn elementwise(f: &Function, x: &[Tensor]) -> Tensors {
    let (dims, n) = (x[0].dims().to_vec(), x[0].size());
    if n == 0 {
        return Ok(f.outputs.iter().map(|y| Tensor::full(y.dtype(), &dims, 0.0)).collect());
    }
    let flat: Vec<Tensor> = x.iter().map(|a| a.reshape(&[n])).collect();
    let results = vmap(&flat, &vec![Some(0); x.len()], |a| Ok(f.inline(a)))?;
    Ok(results.iter().map(|y| y.reshape(&dims)).collect())
}

/// `x[start::step]`, `n` elements, along the dimension.
fn every(x: &[Tensor], dim: usize, start: usize, step: usize, n: usize) -> Vec<Tensor> {
    let part = |t: &Tensor| {
        let (mut from, mut to, mut by) = (vec![0; t.rank()], t.dims().to_vec(), vec![1; t.rank()]);
        (from[dim], to[dim], by[dim]) = (start, start + n.saturating_sub(1) * step + n.min(1), step);
        t.slice(&from, &to, &by)
    };
    x.iter().map(part).collect()
}

/// Reduction by any associative function.
fn tree(f: &Function, arrays: &[Tensor], inits: &[Tensor], dims: &[usize]) -> Tensors {
    let kept: Vec<usize> = (0..arrays[0].rank()).filter(|d| !dims.contains(d)).collect();
    let order = [&kept[..], dims].concat();
    let rest: Vec<usize> = kept.iter().map(|&d| arrays[0].dims()[d]).collect();
    let mut n: usize = dims.iter().map(|&d| arrays[0].dims()[d]).product();
    let starts: Vec<Tensor> = inits.iter().map(|i| i.broadcast_in_dim(&[], &rest)).collect();
    if n == 0 {
        return Ok(starts);
    }
    let last = rest.len();
    let mut x: Vec<Tensor> = arrays.iter().map(|a| a.transpose(&order).reshape(&[&rest[..], &[n]].concat())).collect();
    while n > 1 {
        let half = n / 2;
        let pairs = [every(&x, last, 0, 2, half), every(&x, last, 1, 2, half)].concat();
        let mut joined = elementwise(f, &pairs)?;
        if n % 2 == 1 {
            let odd = every(&x, last, n - 1, 1, 1);
            joined = joined.into_iter().zip(odd).map(|(a, b)| concatenate(&[a, b], last)).collect();
        }
        (x, n) = (joined, n.div_ceil(2));
    }
    let x: Vec<Tensor> = x.iter().map(|t| t.reshape(&rest)).collect();
    elementwise(f, &[starts, x].concat())
}

/// Reduction over windows along one dimension of what is padded already: windows of 1, 2, 4 ... are joined.
fn slide(f: &Function, x: Vec<Tensor>, inits: &[Tensor], dim: usize, w: &Window) -> Tensors {
    let (length, reach) = (x[0].dims()[dim], (w.size - 1) * w.window_dilation + 1);
    if length < reach {
        let mut dims = x[0].dims().to_vec();
        dims[dim] = 0;
        return Ok(inits.iter().map(|i| i.broadcast_in_dim(&[], &dims)).collect());
    }
    let places = |elements: usize| length - (elements - 1) * w.window_dilation;
    let (mut block, mut width) = (x, 1);
    let mut done: Option<(Vec<Tensor>, usize)> = None;
    loop {
        if w.size & width != 0 {
            done = Some(match done {
                None => (block.clone(), width),
                Some((left, m)) => {
                    let n = places(m + width);
                    let right = every(&block, dim, m * w.window_dilation, 1, n);
                    (elementwise(f, &[every(&left, dim, 0, 1, n), right].concat())?, m + width)
                }
            });
        }
        if width * 2 > w.size {
            break;
        }
        let n = places(width * 2);
        let halves = [every(&block, dim, 0, 1, n), every(&block, dim, width * w.window_dilation, 1, n)].concat();
        (block, width) = (elementwise(f, &halves)?, width * 2);
    }
    let Some((y, _)) = done else { return Err("an empty window".into()) };
    Ok(every(&y, dim, 0, w.stride, (length - reach) / w.stride + 1))
}
