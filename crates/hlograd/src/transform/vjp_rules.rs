//! Reverse rules: the cotangents of a node's operands from those of its results, one arm per operation.

use std::sync::Arc;

use super::control;
use super::derivative::{self, Factor};
use super::jvp::{dense, extremum_share, window_offsets, window_pad, window_padding, window_slice};
use crate::error::{Error, Result};
use crate::graph::*;

/// Cotangents of the operands; None where zero. `below` says which operands are wanted, so that no work is done for the
/// others.
pub(super) fn vjp_rule(node: &Arc<Node>, cts: &[Option<Tensor>], below: &[bool]) -> Result<Vec<Option<Tensor>>> {
    let x = &node.operands;
    let y = &node.results();
    let none = || Ok(vec![None; x.len()]);
    // Operations with one result have its cotangent here; those with several read `cts`.
    let Some(ct) = cts.iter().flatten().next().cloned() else { return none() };
    let scaled = |f: Option<Factor>, i: usize| f.filter(|_| below[i]).map(|f| f.times(&ct));
    let one = |t: Tensor| Ok(vec![Some(t)]);
    match &node.op {
        Op::Parameter { .. } | Op::Constant(_) | Op::Iota { .. } => none(),
        Op::Unary(op) => Ok(vec![scaled(derivative::unary(*op, &x[0], &y[0]), 0)]),
        Op::Binary(op) => {
            let (fa, fb) = derivative::binary(*op, &x[0], &x[1], &y[0]);
            Ok(vec![scaled(fa, 0), scaled(fb, 1)])
        }
        Op::Compare(_) | Op::BitcastConvert(_) | Op::StopGradient => none(),
        Op::ArgReduce { .. } | Op::RngBitGenerator { .. } => none(),
        Op::Select => {
            let zero = ct.zeros_like();
            let (a, b) = (|| x[0].select(&ct, &zero), || x[0].select(&zero, &ct));
            Ok(vec![None, below[1].then(a), below[2].then(b)])
        }
        Op::Clamp => {
            let inside = derivative::clamp(&x[0], &x[1], &x[2]);
            let (low, high) = derivative::clamp_ends(&x[0], &x[1], &x[2]);
            let f = [low, inside, high];
            Ok((0..3).map(|i| below[i].then(|| &ct * &f[i])).collect())
        }
        Op::Convert(dtype) if dtype.is_float() => one(ct.convert(x[0].dtype())),
        Op::Convert(_) => none(),
        Op::BroadcastInDim { dims, to } => {
            one(ct.reduce(Combine::Add, &(0..to.len()).filter(|d| !dims.contains(d)).collect::<Vec<_>>()))
        }
        Op::Reshape { .. } => one(ct.reshape(x[0].dims())),
        Op::Transpose { perm } => one(ct.transpose(&inverse(perm))),
        Op::Reverse { dims } => one(ct.reverse(dims)),
        Op::Slice { start, stride, .. } => one(unslice(&ct, start, stride, x[0].dims())),
        Op::Pad { config } => {
            let inner = unpad(&ct, config, x[0].dims());
            let value = below[1].then(|| ct.sum_all() - inner.sum_all());
            Ok(vec![Some(inner), value])
        }
        Op::Concatenate { dim } => {
            let mut start = 0;
            let mut parts = Vec::new();
            for operand in x {
                let end = start + operand.dims()[*dim];
                parts.push(Some(ct.slice_in_dim(*dim, start, end)));
                start = end;
            }
            Ok(parts)
        }
        Op::DotGeneral { dims, precision, .. } => {
            let (left, right) = (|| dot_lhs(&ct, x, dims, *precision), || dot_rhs(&ct, x, dims, *precision));
            Ok(vec![below[0].then(left), below[1].then(right)])
        }
        Op::Reduce { kind: Combine::Add, dims } => one(ct.broadcast_back(dims, x[0].dims())),
        Op::Reduce { kind: Combine::Max | Combine::Min, dims } => {
            one(ct.broadcast_back(dims, x[0].dims()) * extremum_share(&x[0], &y[0], dims))
        }
        Op::ReduceWindow { kind: Combine::Add, window } => one(window_sum(&ct, x[0].dims(), window)),
        Op::ReduceWindow { kind: Combine::Max | Combine::Min, window } => {
            one(windowed_cotangent(&x[0], &y[0], &ct, window))
        }
        Op::Reduce { .. } | Op::ReduceWindow { .. } => none(),
        Op::Gather { dims, slice_sizes } => {
            // A gather clamps, a scatter drops: clamp here, so that the cotangent goes where the value came from.
            let last = x[0].last_starts(&dims.start_index_map, slice_sizes, &x[1]);
            let indices = x[1].clamp(&last.zeros_like(), &last);
            let dims = ScatterDims {
                update_window_dims: dims.offset_dims.clone(),
                inserted_window_dims: dims.collapsed_slice_dims.clone(),
                operand_batching_dims: dims.operand_batching_dims.clone(),
                scatter_indices_batching_dims: dims.start_indices_batching_dims.clone(),
                scatter_dims_to_operand_dims: dims.start_index_map.clone(),
            };
            Ok(vec![Some(x[0].zeros_like().scatter(ScatterKind::Add, &indices, &ct, dims)), None])
        }
        Op::Scatter { kind, dims } => {
            let operand = match kind {
                ScatterKind::Add => ct.clone(),
                ScatterKind::Set => ct.scatter(ScatterKind::Set, &x[1], &x[2].zeros_like(), dims.clone()),
            };
            Ok(vec![Some(operand), None, below[2].then(|| gather_updates(&ct, &x[1], &x[2], dims))])
        }
        Op::DynamicSlice { .. } => {
            let mut result = vec![None; x.len()];
            result[0] = Some(x[0].zeros_like().dynamic_update_slice(&ct, &x[1..]));
            Ok(result)
        }
        Op::DynamicUpdateSlice => {
            let mut result = vec![None; x.len()];
            result[0] = below[0].then(|| ct.dynamic_update_slice(&x[1].zeros_like(), &x[2..]));
            result[1] = below[1].then(|| ct.dynamic_slice(&x[2..], x[1].dims()));
            Ok(result)
        }
        Op::Sort { dim, descending } => {
            let back = x[0].sort_order(*dim, *descending).argsort(*dim);
            Ok(cts.iter().map(|ct| ct.as_ref().map(|ct| ct.take_along_axis(&back, *dim))).collect())
        }
        Op::Split { dim, .. } => {
            let parts: Vec<Tensor> = y.iter().zip(cts).map(|(y, ct)| dense(y, ct)).collect();
            one(concatenate(&parts, *dim))
        }
        Op::OptimizationBarrier => {
            let dense: Vec<Tensor> =
                y.iter().zip(cts).filter(|(y, _)| y.dtype().is_float()).map(|(y, ct)| dense(y, ct)).collect();
            let mut passed = optimization_barrier(&dense).into_iter();
            Ok(y.iter().map(|y| if y.dtype().is_float() { passed.next() } else { None }).collect())
        }
        // The derivative of the sum of all replicas' losses.
        Op::AllReduce { kind: Combine::Add } => one(ct.all_reduce(Combine::Add)),
        Op::Scan { .. } | Op::Conditional { .. } | Op::Call { .. } => control::vjp(node, cts, below),
        Op::While { .. } => Err(Error::Differentiate(format!(
            "no reverse derivative of {}: its trip count is not known; use scan or fori_loop",
            node.describe()
        ))),
        Op::AllReduce { .. } | Op::CustomCall { .. } => {
            Err(Error::Differentiate(format!("no reverse derivative of {}", node.describe())))
        }
    }
}

/// The permutation that undoes `perm`.
pub(super) fn inverse(perm: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; perm.len()];
    perm.iter().enumerate().for_each(|(i, &p)| inverse[p] = i);
    inverse
}

fn dot_lhs(ct: &Tensor, x: &[Tensor], d: &DotDims, precision: Precision) -> Tensor {
    let rhs_gone: Vec<usize> = [&d.rhs_batch[..], &d.rhs_contract].concat();
    let rhs_free: Vec<usize> = (0..x[1].rank()).filter(|i| !rhs_gone.contains(i)).collect();
    let lhs_gone: Vec<usize> = [&d.lhs_batch[..], &d.lhs_contract].concat();
    let lhs_free: Vec<usize> = (0..x[0].rank()).filter(|i| !lhs_gone.contains(i)).collect();
    let n = d.lhs_batch.len();
    let dims = DotDims {
        lhs_batch: (0..n).collect(),
        rhs_batch: d.rhs_batch.clone(),
        lhs_contract: (n + lhs_free.len()..ct.rank()).collect(),
        rhs_contract: rhs_free,
    };
    let product = ct.convert(x[1].dtype()).dot_general(&x[1], dims, precision, x[0].dtype());
    // What is left of the right operand comes in its own order.
    let mut order: Vec<usize> = (0..d.rhs_contract.len()).collect();
    order.sort_by_key(|&i| d.rhs_contract[i]);
    let places = [d.lhs_batch.clone(), lhs_free, order.iter().map(|&i| d.lhs_contract[i]).collect()].concat();
    product.transpose(&inverse(&places))
}

fn dot_rhs(ct: &Tensor, x: &[Tensor], d: &DotDims, precision: Precision) -> Tensor {
    // The dot with its operands exchanged, whose result has the two free parts exchanged too.
    let swapped = DotDims {
        lhs_batch: d.rhs_batch.clone(),
        rhs_batch: d.lhs_batch.clone(),
        lhs_contract: d.rhs_contract.clone(),
        rhs_contract: d.lhs_contract.clone(),
    };
    let n = d.lhs_batch.len();
    let lhs_free = x[0].rank() - n - d.lhs_contract.len();
    let perm: Vec<usize> = (0..n).chain(n + lhs_free..ct.rank()).chain(n..n + lhs_free).collect();
    dot_lhs(&ct.transpose(&perm), &[x[1].clone(), x[0].clone()], &swapped, precision)
}

/// The transpose of a strided slice: its elements back at their places in zeros of shape `dims`.
fn unslice(ct: &Tensor, start: &[usize], stride: &[usize], dims: &[usize]) -> Tensor {
    let config: Vec<Padding> = (0..start.len())
        .map(|i| {
            let n = ct.dims()[i] as i64;
            let covered = if n == 0 { 0 } else { (n - 1) * stride[i] as i64 + 1 };
            let low = start[i] as i64;
            Padding { low, high: dims[i] as i64 - low - covered, interior: stride[i] - 1 }
        })
        .collect();
    ct.pad_zeros(&config)
}

/// The transpose of padding: the elements that came from the operand.
fn unpad(ct: &Tensor, config: &[Padding], dims: &[usize]) -> Tensor {
    let edges: Vec<Padding> = config.iter().map(|p| Padding { low: -p.low, high: -p.high, interior: 0 }).collect();
    let inner = ct.pad_zeros(&edges);
    let stride: Vec<usize> = config.iter().map(|p| p.interior + 1).collect();
    debug_assert_eq!(dims.len(), stride.len());
    inner.slice(&vec![0; dims.len()], inner.dims(), &stride)
}

/// Transpose of a window sum: each result's cotangent is added to the places its window covered.
fn window_sum(ct: &Tensor, dims: &[usize], window: &[Window]) -> Tensor {
    if ct.size() == 0 {
        return Tensor::full(ct.dtype(), dims, 0.0);
    }
    let (mut config, mut back) = (Vec::new(), Vec::new());
    for (i, w) in window.iter().enumerate() {
        let (n, d) = (ct.dims()[i] as i64, dims[i] as i64);
        let reach = (w.size as i64 - 1) * w.window_dilation as i64;
        let low = reach - w.low;
        let spread = (n - 1) * w.stride as i64 + 1;
        let high = (d - 1) * w.base_dilation as i64 + 1 + reach - low - spread;
        config.push(Padding { low, high, interior: w.stride - 1 });
        back.push(Window { size: w.size, stride: w.base_dilation, window_dilation: w.window_dilation, ..Window::ONE });
    }
    ct.pad_zeros(&config).reduce_window(Combine::Add, &back)
}

/// Transpose of the windowed maximum's tangent; one slice per window place, so meant for small windows.
fn windowed_cotangent(x: &Tensor, y: &Tensor, ct: &Tensor, window: &[Window]) -> Tensor {
    let padded = window_pad(x, window, f64::NAN);
    let offsets = window_offsets(window);
    let at: Vec<Tensor> =
        offsets.iter().map(|o| window_slice(&padded, o, window, y.dims()).eq(y).convert(y.dtype())).collect();
    let count = at.iter().skip(1).fold(at[0].clone(), |sum, t| sum + t);
    let share = ct / count;
    let stride: Vec<usize> = window.iter().map(|w| w.stride).collect();
    let mut total = padded.zeros_like();
    for (offset, at) in offsets.iter().zip(&at) {
        total = total + unslice(&(&share * at), offset, &stride, padded.dims());
    }
    unpad(&total, &window_padding(window), x.dims())
}

/// Transpose of writing `updates`: what stands where they were written, 0 for those that were dropped.
fn gather_updates(ct: &Tensor, indices: &Tensor, updates: &Tensor, d: &ScatterDims) -> Tensor {
    let gone: Vec<usize> = [&d.inserted_window_dims[..], &d.operand_batching_dims].concat();
    let mut window = d.update_window_dims.iter();
    let sizes: Vec<usize> = (0..ct.rank())
        .map(|i| if gone.contains(&i) { 1 } else { window.next().map_or(1, |&w| updates.dims()[w]) })
        .collect();
    let dims = GatherDims {
        offset_dims: d.update_window_dims.clone(),
        collapsed_slice_dims: d.inserted_window_dims.clone(),
        operand_batching_dims: d.operand_batching_dims.clone(),
        start_indices_batching_dims: d.scatter_indices_batching_dims.clone(),
        start_index_map: d.scatter_dims_to_operand_dims.clone(),
    };
    let read = ct.gather(indices, dims, &sizes);
    let last = ct.last_starts(&d.scatter_dims_to_operand_dims, &sizes, indices);
    let inside = indices.ge(&last.zeros_like()).bitwise_and(&indices.le(&last)).all(&[indices.rank() - 1]);
    let scattered: Vec<usize> = (0..updates.rank()).filter(|i| !d.update_window_dims.contains(i)).collect();
    inside.broadcast_in_dim(&scattered, updates.dims()).select(&read, &read.zeros_like())
}
