//! Forward mode: tangents along the graph.

use std::sync::Arc;

use super::control;
use super::derivative::{self, Factor};
use crate::error::{Error, Result};
use crate::graph::*;

/// Directional derivatives of `outputs` along `tangents` of `inputs` (any tensors of their graph, of float dtype).
///
/// One tangent per output, zeros where an output does not depend on the inputs. **Errors** name an operation without a
/// forward rule (a custom call). **Panics** when a tangent's shape is not its input's.
#[track_caller]
pub fn jvp(outputs: &[Tensor], inputs: &[Tensor], tangents: &[Tensor]) -> Result<Vec<Tensor>> {
    assert_eq!(inputs.len(), tangents.len(), "jvp: one tangent per input");
    for (x, t) in inputs.iter().zip(tangents) {
        assert!(x.shape() == t.shape() && x.dtype().is_float(), "jvp: tangent {} for {}", t.shape(), x.label());
    }
    let pairs: Vec<(Tensor, Tensor)> = inputs.iter().cloned().zip(tangents.iter().cloned()).collect();
    Ok(outputs.iter().zip(jvp_sparse(outputs, &pairs)?).map(|(y, t)| dense(y, &t)).collect())
}

/// As [`jvp`], with None for an output that does not depend on the inputs.
pub(super) fn jvp_sparse(outputs: &[Tensor], pairs: &[(Tensor, Tensor)]) -> Result<Vec<Option<Tensor>>> {
    let mut env: Env = pairs.iter().map(|(x, t)| (x.key(), t.clone())).collect();
    propagate(outputs, &mut env, jvp_rule)?;
    Ok(outputs.iter().map(|y| env.get(&y.key()).cloned()).collect())
}

/// The tangent, or zeros of the primal's shape.
pub(super) fn dense(primal: &Tensor, tangent: &Option<Tensor>) -> Tensor {
    tangent.clone().unwrap_or_else(|| primal.zeros_like())
}

fn jvp_rule(node: &Arc<Node>, t: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let x = &node.operands;
    let y = &node.results();
    let linear = |values: Vec<Tensor>| Ok(Tensor::apply(node.op.clone(), values).into_iter().map(Some).collect());
    let all_dense = || x.iter().zip(t).map(|(x, t)| dense(x, t)).collect::<Vec<_>>();
    let one = |t: Option<Tensor>| Ok(vec![t]);
    let scaled = |f: Option<Factor>, t: &Option<Tensor>| f.zip(t.as_ref()).map(|(f, t)| f.times(t));
    match &node.op {
        Op::Parameter { .. } | Op::Constant(_) | Op::Iota { .. } => one(None),
        Op::Unary(op) => one(scaled(derivative::unary(*op, &x[0], &y[0]), &t[0])),
        Op::Binary(op) => {
            let (fa, fb) = derivative::binary(*op, &x[0], &x[1], &y[0]);
            one(add(scaled(fa, &t[0]), scaled(fb, &t[1])))
        }
        Op::Compare(_) | Op::BitcastConvert(_) | Op::StopGradient => one(None),
        Op::ArgReduce { .. } | Op::RngBitGenerator { .. } => Ok(vec![None; y.len()]),
        Op::Select => match (&t[1], &t[2]) {
            (None, None) => one(None),
            (a, b) => one(Some(x[0].select(&dense(&x[1], a), &dense(&x[2], b)))),
        },
        Op::Clamp => {
            let inside = Factor::By(derivative::clamp(&x[0], &x[1], &x[2]));
            let (below, above) = derivative::clamp_ends(&x[0], &x[1], &x[2]);
            let ends = add(scaled(Some(Factor::By(below)), &t[0]), scaled(Some(Factor::By(above)), &t[2]));
            one(add(scaled(Some(inside), &t[1]), ends))
        }
        Op::Convert(dtype) => {
            one(t[0].as_ref().filter(|_| dtype.is_float() && x[0].dtype().is_float()).map(|t| t.convert(*dtype)))
        }
        // Linear in their first operand, or in all.
        Op::BroadcastInDim { .. }
        | Op::Reshape { .. }
        | Op::Transpose { .. }
        | Op::Reverse { .. }
        | Op::Split { .. } => linear(with_values(node, t)),
        Op::Slice { .. } | Op::Gather { .. } | Op::DynamicSlice { .. } => match &t[0] {
            Some(t0) => linear([std::slice::from_ref(t0), &x[1..]].concat()),
            None => one(None),
        },
        Op::Pad { .. } | Op::Concatenate { .. } | Op::OptimizationBarrier => linear(all_dense()),
        Op::DynamicUpdateSlice => match (&t[0], &t[1]) {
            (None, None) => one(None),
            (a, b) => linear([&[dense(&x[0], a), dense(&x[1], b)], &x[2..]].concat()),
        },
        Op::Scatter { .. } => match (&t[0], &t[2]) {
            (None, None) => one(None),
            (a, b) => linear(vec![dense(&x[0], a), x[1].clone(), dense(&x[2], b)]),
        },
        Op::DotGeneral { dims, precision, dtype } => {
            let left = t[0].as_ref().map(|t| t.dot_general(&x[1], dims.clone(), *precision, *dtype));
            let right = t[1].as_ref().map(|t| x[0].dot_general(t, dims.clone(), *precision, *dtype));
            one(add(left, right))
        }
        Op::Reduce { kind: Combine::Add, .. } | Op::AllReduce { kind: Combine::Add } => linear(with_values(node, t)),
        Op::ReduceWindow { kind: Combine::Add, .. } => linear(with_values(node, t)),
        Op::Reduce { kind: Combine::Max | Combine::Min, dims } => {
            let share = extremum_share(&x[0], &y[0], dims);
            one(t[0].as_ref().map(|t| (t * share).sum(dims)))
        }
        Op::ReduceWindow { kind: Combine::Max | Combine::Min, window } => {
            one(t[0].as_ref().map(|t| windowed_tangent(&x[0], &y[0], t, window)))
        }
        Op::Reduce { .. } | Op::ReduceWindow { .. } => one(None),
        Op::AllReduce { .. } => no_rule(node),
        Op::Sort { dim, descending } => {
            let order = x[0].sort_order(*dim, *descending);
            Ok(t.iter().map(|t| t.as_ref().map(|t| t.take_along_axis(&order, *dim))).collect())
        }
        Op::While { .. } | Op::Scan { .. } | Op::Conditional { .. } | Op::Call { .. } => control::jvp(node, t),
        Op::CustomCall { .. } => no_rule(node),
    }
}

fn no_rule<T>(node: &Node) -> Result<T> {
    Err(Error::Differentiate(format!("no forward derivative of {}", node.describe())))
}

/// Sum of what is there.
pub(super) fn add(a: Option<Tensor>, b: Option<Tensor>) -> Option<Tensor> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// 1 / (number of ties) at the extrema of a reduction, 0 elsewhere.
pub(super) fn extremum_share(x: &Tensor, y: &Tensor, dims: &[usize]) -> Tensor {
    let at = x.eq(&y.broadcast_back(dims, x.dims())).convert(x.dtype());
    let count = at.sum(dims).broadcast_back(dims, x.dims());
    at / count
}

/// The places a window covers: for each offset, where in the padded operand, and the operand read there.
pub(super) fn window_offsets(window: &[Window]) -> Vec<Vec<usize>> {
    window.iter().fold(vec![vec![]], |all, w| {
        all.into_iter().flat_map(|o| (0..w.size).map(move |i| [&o[..], &[i * w.window_dilation]].concat())).collect()
    })
}

/// The padding and dilation of the operand that `window` slides over.
pub(super) fn window_padding(window: &[Window]) -> Vec<Padding> {
    window.iter().map(|w| Padding { low: w.low, high: w.high, interior: w.base_dilation - 1 }).collect()
}

/// `x` padded and dilated as `window` says, filled with `fill`.
pub(super) fn window_pad(x: &Tensor, window: &[Window], fill: f64) -> Tensor {
    x.pad(&Tensor::full(x.dtype(), &[], fill), &window_padding(window))
}

/// The elements at `offset` in each window of the padded operand.
pub(super) fn window_slice(padded: &Tensor, offset: &[usize], window: &[Window], out: &[usize]) -> Tensor {
    let stride: Vec<usize> = window.iter().map(|w| w.stride).collect();
    let limit: Vec<usize> = (0..out.len())
        .map(|i| if out[i] == 0 { offset[i] } else { offset[i] + (out[i] - 1) * stride[i] + 1 })
        .collect();
    padded.slice(offset, &limit, &stride)
}

/// Tangent of a windowed maximum or minimum: ties share equally. One slice per window place, so meant for small windows.
fn windowed_tangent(x: &Tensor, y: &Tensor, t: &Tensor, window: &[Window]) -> Tensor {
    // NaN as the fill never equals a result, so padding takes no share.
    let (px, pt) = (window_pad(x, window, f64::NAN), window_pad(t, window, 0.0));
    let (mut count, mut total) = (y.zeros_like(), y.zeros_like());
    for offset in window_offsets(window) {
        let at = window_slice(&px, &offset, window, y.dims()).eq(y).convert(y.dtype());
        total = total + &at * window_slice(&pt, &offset, window, y.dims());
        count = count + at;
    }
    total / count
}
