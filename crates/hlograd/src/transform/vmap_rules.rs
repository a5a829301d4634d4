//! Batching rules: one arm per operation. Batched values carry the batch as dimension 0.

use std::sync::Arc;

use super::vmap::repeat;
use super::vmap_control;
use crate::graph::*;

/// Every dimension number one higher.
fn up(dims: &[usize]) -> Vec<usize> {
    dims.iter().map(|d| d + 1).collect()
}

/// `first` followed by every dimension number one higher.
fn lead(first: usize, dims: &[usize]) -> Vec<usize> {
    [&[first], &up(dims)[..]].concat()
}

/// Batched results of a node, given the batched forms of some of its operands.
pub(super) fn vmap_rule(node: &Arc<Node>, b: &[Option<Tensor>], size: usize) -> Vec<Option<Tensor>> {
    let x = &node.operands;
    let full = |i: usize| b[i].clone().unwrap_or_else(|| repeat(&x[i], size));
    let all = || (0..x.len()).map(full).collect::<Vec<_>>();
    let apply = |op: Op, operands: Vec<Tensor>| Tensor::apply(op, operands).into_iter().map(Some).collect();
    let one = |t: Tensor| vec![Some(t)];
    match &node.op {
        Op::Parameter { .. } | Op::Constant(_) | Op::Iota { .. } => vec![None],
        Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select | Op::Clamp => apply(node.op.clone(), all()),
        Op::Convert(_) | Op::BitcastConvert(_) | Op::StopGradient | Op::AllReduce { .. } => {
            apply(node.op.clone(), all())
        }
        Op::OptimizationBarrier => {
            let results = Tensor::apply(node.op.clone(), with_values(node, b));
            results.into_iter().zip(b).map(|(r, b)| Some(if b.is_some() { r } else { repeat(&r, size) })).collect()
        }
        Op::BroadcastInDim { dims, to } => one(full(0).broadcast_in_dim(&lead(0, dims), &[&[size], &to[..]].concat())),
        Op::Reshape { to } => one(full(0).reshape(&[&[size], &to[..]].concat())),
        Op::Transpose { perm } => one(full(0).transpose(&lead(0, perm))),
        Op::Reverse { dims } => one(full(0).reverse(&up(dims))),
        Op::Slice { start, limit, stride } => one(full(0).slice(
            &[&[0], &start[..]].concat(),
            &[&[size], &limit[..]].concat(),
            &[&[1], &stride[..]].concat(),
        )),
        Op::Split { dim, parts } => apply(Op::Split { dim: dim + 1, parts: *parts }, vec![full(0)]),
        Op::Pad { config } => {
            let config = [&[Padding::default()], &config[..]].concat();
            match &b[1] {
                None => one(full(0).pad(&x[1], &config)),
                // Each example has its own padding value: pad a mask too, and put the values where it is false.
                Some(value) => {
                    let zero = Tensor::full(x[0].dtype(), &[], 0.0);
                    let padded = full(0).pad(&zero, &config);
                    let inside = full(0).ones_like().convert(crate::array::DType::I32);
                    let inside = inside.pad(&Tensor::scalar(0i32), &config).ne(&Tensor::scalar(0i32));
                    one(inside.select(&padded, &value.broadcast_in_dim(&[0], padded.dims())))
                }
            }
        }
        Op::Concatenate { dim } => one(concatenate(&all(), dim + 1)),
        Op::DotGeneral { dims, precision, dtype } => {
            one(dot(&x[0], &b[0], &x[1], &b[1], dims).map_or_else(
                // Both batched: one more batch dimension, which comes first.
                || {
                    let dims = DotDims {
                        lhs_batch: lead(0, &dims.lhs_batch),
                        rhs_batch: lead(0, &dims.rhs_batch),
                        lhs_contract: up(&dims.lhs_contract),
                        rhs_contract: up(&dims.rhs_contract),
                    };
                    full(0).dot_general(&full(1), dims, *precision, *dtype)
                },
                |(lhs, rhs, dims, place)| lhs.dot_general(&rhs, dims, *precision, *dtype).moveaxis(place, 0),
            ))
        }
        Op::Reduce { kind, dims } => one(full(0).reduce(*kind, &up(dims))),
        Op::ArgReduce { kind, dim } => apply(Op::ArgReduce { kind: *kind, dim: dim + 1 }, all()),
        Op::ReduceWindow { kind, window } => one(full(0).reduce_window(*kind, &[&[Window::ONE], &window[..]].concat())),
        Op::Gather { dims, slice_sizes } => one(gather(&x[0], &b[0], &x[1], &b[1], dims, slice_sizes)),
        Op::Scatter { kind, dims } => one(scatter(*kind, full(0), &x[1], &b[1], full(2), dims)),
        Op::DynamicSlice { sizes } => {
            if b[1..].iter().all(Option::is_none) {
                let starts = [&[x[1].zeros_like()], &x[1..]].concat();
                return one(full(0).dynamic_slice(&starts, &[&[size], &sizes[..]].concat()));
            }
            let rank = x[0].rank();
            let indices = stack(&all()[1..], 1);
            let dims = GatherDims {
                offset_dims: (1..=rank).collect(),
                operand_batching_dims: vec![0],
                start_indices_batching_dims: vec![0],
                start_index_map: (1..=rank).collect(),
                ..GatherDims::default()
            };
            match &b[0] {
                Some(operand) => one(operand.gather(&indices, dims, &[&[1], &sizes[..]].concat())),
                None => {
                    let start_index_map = (0..rank).collect();
                    let dims = GatherDims { offset_dims: dims.offset_dims, start_index_map, ..GatherDims::default() };
                    one(x[0].gather(&indices, dims, sizes))
                }
            }
        }
        Op::DynamicUpdateSlice => {
            if b[2..].iter().all(Option::is_none) && x.len() > 2 {
                let starts = [&[x[2].zeros_like()], &x[2..]].concat();
                return one(full(0).dynamic_update_slice(&full(1), &starts));
            }
            if x.len() == 2 {
                return one(full(1));
            }
            let rank = x[0].rank();
            let indices = stack(&all()[2..], 1);
            // A scatter drops what does not fit, an update slice moves it: move it here.
            let last = x[0].last_starts(&(0..rank).collect::<Vec<_>>(), x[1].dims(), &indices);
            let dims = ScatterDims {
                update_window_dims: (1..=rank).collect(),
                operand_batching_dims: vec![0],
                scatter_indices_batching_dims: vec![0],
                scatter_dims_to_operand_dims: (1..=rank).collect(),
                ..ScatterDims::default()
            };
            one(full(0).scatter(ScatterKind::Set, &indices.clamp(&last.zeros_like(), &last), &full(1), dims))
        }
        Op::Sort { dim, descending } => apply(Op::Sort { dim: dim + 1, descending: *descending }, all()),
        Op::While { .. } | Op::Scan { .. } | Op::Conditional { .. } | Op::Call { .. } => {
            vmap_control::vmap(node, b, size)
        }
        // No batched form: one example after the other.
        Op::RngBitGenerator { .. } | Op::CustomCall { .. } => {
            let (_, ys) = scan(&[], &all(), Some(size), false, |_, slices| {
                (vec![], Tensor::apply(node.op.clone(), slices.to_vec()))
            });
            ys.into_iter().map(Some).collect()
        }
    }
}

/// A dot with one batched operand: the batch is one more free dimension of that operand. Returns the operands, the
/// dimension numbers and where the batch comes out; None when both are batched.
fn dot(
    x: &Tensor,
    bx: &Option<Tensor>,
    y: &Tensor,
    by: &Option<Tensor>,
    d: &DotDims,
) -> Option<(Tensor, Tensor, DotDims, usize)> {
    let n = d.lhs_batch.len();
    match (bx, by) {
        (Some(lhs), None) => {
            let dims = DotDims { lhs_batch: up(&d.lhs_batch), lhs_contract: up(&d.lhs_contract), ..d.clone() };
            Some((lhs.clone(), y.clone(), dims, n))
        }
        (None, Some(rhs)) => {
            let dims = DotDims { rhs_batch: up(&d.rhs_batch), rhs_contract: up(&d.rhs_contract), ..d.clone() };
            let place = x.rank() - d.lhs_contract.len();
            Some((x.clone(), rhs.clone(), dims, place))
        }
        _ => None,
    }
}

fn gather(
    x: &Tensor,
    bx: &Option<Tensor>,
    indices: &Tensor,
    bi: &Option<Tensor>,
    d: &GatherDims,
    sizes: &[usize],
) -> Tensor {
    let mut dims = GatherDims { offset_dims: up(&d.offset_dims), ..d.clone() };
    if bx.is_some() {
        dims.collapsed_slice_dims = up(&d.collapsed_slice_dims);
        dims.operand_batching_dims = up(&d.operand_batching_dims);
        dims.start_index_map = up(&d.start_index_map);
    }
    if bi.is_some() {
        dims.start_indices_batching_dims = up(&d.start_indices_batching_dims);
    }
    match (bx, bi) {
        (Some(x), Some(indices)) => {
            dims.operand_batching_dims.insert(0, 0);
            dims.start_indices_batching_dims.insert(0, 0);
            x.gather(indices, dims, &[&[1], sizes].concat())
        }
        (Some(x), None) => {
            dims.offset_dims.insert(0, 0);
            x.gather(indices, dims, &[&[x.dims()[0]], sizes].concat())
        }
        (None, Some(indices)) => x.gather(indices, dims, sizes),
        (None, None) => x.gather(indices, d.clone(), sizes),
    }
}

fn scatter(
    kind: ScatterKind,
    operand: Tensor,
    indices: &Tensor,
    bi: &Option<Tensor>,
    updates: Tensor,
    d: &ScatterDims,
) -> Tensor {
    let mut dims = ScatterDims {
        update_window_dims: up(&d.update_window_dims),
        inserted_window_dims: up(&d.inserted_window_dims),
        operand_batching_dims: up(&d.operand_batching_dims),
        scatter_indices_batching_dims: d.scatter_indices_batching_dims.clone(),
        scatter_dims_to_operand_dims: up(&d.scatter_dims_to_operand_dims),
    };
    match bi {
        Some(indices) => {
            dims.operand_batching_dims.insert(0, 0);
            dims.scatter_indices_batching_dims = lead(0, &d.scatter_indices_batching_dims);
            operand.scatter(kind, indices, &updates, dims)
        }
        None => {
            dims.update_window_dims.insert(0, 0);
            operand.scatter(kind, indices, &updates, dims)
        }
    }
}
