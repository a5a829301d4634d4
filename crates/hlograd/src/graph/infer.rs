//! Shape rules: the result shapes of every operation, or what does not fit.

use super::function::Function;
use super::op::*;
use super::shape::Shape;
use super::tensor::Tensor;
use crate::array::DType;

type Shapes = Result<Vec<Shape>, String>;

macro_rules! ensure {
    ($ok:expr, $($message:tt)*) => {
        if !$ok {
            return Err(format!($($message)*));
        }
    };
}

/// Result shapes of `op` on `operands`; the error says what does not fit.
pub(super) fn infer(op: &Op, operands: &[Tensor]) -> Shapes {
    let x: Vec<&Shape> = operands.iter().map(Tensor::shape).collect();
    if let Some(n) = arity(op) {
        ensure!(x.len() == n, "takes {n} operands, {} given", x.len());
    }
    let one = |shape: Shape| Ok(vec![shape]);
    match op {
        Op::Parameter { shape, .. } => one(shape.clone()),
        Op::Constant(value) => one(Shape::new(value.dtype(), value.dims())),
        Op::Iota { shape, dim } => {
            ensure!(*dim < shape.rank(), "dimension {dim} of {shape}");
            one(shape.clone())
        }
        Op::Unary(op) => unary(*op, x[0]),
        Op::Binary(op) => binary(*op, x[0], x[1]),
        Op::Compare(_) => {
            ensure!(x[0] == x[1], "operands differ");
            one(x[0].with_dtype(DType::Bool))
        }
        Op::Select => {
            ensure!(x[0].dtype == DType::Bool, "the predicate is not bool");
            ensure!(x[0].dims == x[1].dims && x[1] == x[2], "operands differ");
            one(x[1].clone())
        }
        Op::Clamp => {
            ensure!(x[0] == x[1] && x[1] == x[2], "operands differ");
            one(x[1].clone())
        }
        Op::Convert(dtype) => one(x[0].with_dtype(*dtype)),
        Op::BitcastConvert(dtype) => {
            ensure!(dtype.size() == x[0].dtype.size(), "{dtype} has another width");
            one(x[0].with_dtype(*dtype))
        }
        Op::StopGradient => one(x[0].clone()),
        Op::BroadcastInDim { dims, to } => {
            ensure!(dims.len() == x[0].rank(), "{dims:?} does not name one result dimension per operand dimension");
            ensure!(dims.windows(2).all(|w| w[0] < w[1]), "dimensions {dims:?} do not ascend");
            for (i, &d) in dims.iter().enumerate() {
                ensure!(d < to.len() && to[d] == x[0].dims[i], "dimension {i} does not become dimension {d} of {to:?}");
            }
            one(x[0].with_dims(to))
        }
        Op::Reshape { to } => {
            ensure!(to.iter().product::<usize>() == x[0].size(), "{to:?} holds another number of elements");
            one(x[0].with_dims(to))
        }
        Op::Transpose { perm } => {
            let mut sorted = perm.clone();
            sorted.sort_unstable();
            ensure!(sorted.iter().copied().eq(0..x[0].rank()), "{perm:?} is not a permutation of its dimensions");
            one(x[0].with_dims(&perm.iter().map(|&p| x[0].dims[p]).collect::<Vec<_>>()))
        }
        Op::Reverse { dims } => {
            ensure!(distinct_below(dims, x[0].rank()), "dimensions {dims:?}");
            one(x[0].clone())
        }
        Op::Slice { start, limit, stride } => {
            let rank = x[0].rank();
            ensure!([start.len(), limit.len(), stride.len()] == [rank; 3], "indices do not cover every dimension");
            let mut dims = Vec::with_capacity(rank);
            for i in 0..rank {
                let (s, l, d) = (start[i], limit[i], x[0].dims[i]);
                ensure!(s <= l && l <= d && stride[i] > 0, "[{s}:{l}:{}] in dimension {i} of size {d}", stride[i]);
                dims.push((l - s).div_ceil(stride[i]));
            }
            one(x[0].with_dims(&dims))
        }
        Op::Pad { config } => {
            ensure!(x[1].rank() == 0 && x[1].dtype == x[0].dtype, "the padding value is not a {} scalar", x[0].dtype);
            ensure!(config.len() == x[0].rank(), "{} paddings", config.len());
            let mut dims = Vec::new();
            for (i, p) in config.iter().enumerate() {
                let d = x[0].dims[i] as i64;
                let size = p.low + p.high + d + (d - 1).max(0) * p.interior as i64;
                ensure!(size >= 0, "dimension {i} of size {d} is cropped to less than nothing by {p:?}");
                dims.push(size as usize);
            }
            one(x[0].with_dims(&dims))
        }
        Op::Concatenate { dim } => {
            ensure!(!x.is_empty() && *dim < x[0].rank(), "along dimension {dim}");
            let mut dims = x[0].dims.clone();
            dims[*dim] = 0;
            for s in &x {
                let fits = s.dtype == x[0].dtype && s.rank() == dims.len();
                ensure!(
                    fits && (0..dims.len()).all(|i| i == *dim || s.dims[i] == x[0].dims[i]),
                    "along dimension {dim}"
                );
                dims[*dim] += s.dims[*dim];
            }
            one(x[0].with_dims(&dims))
        }
        Op::DotGeneral { dims, dtype, .. } => dot_general(dims, *dtype, x[0], x[1]),
        Op::Reduce { kind, dims } => {
            ensure!(distinct_below(dims, x[0].rank()) && dims.is_sorted(), "dimensions {dims:?}");
            combine(*kind, x[0].dtype)?;
            one(x[0].with_dims(&without(&x[0].dims, dims)))
        }
        Op::ArgReduce { dim, .. } => {
            ensure!(*dim < x[0].rank() && x[0].dims[*dim] > 0, "along dimension {dim}, which must not be empty");
            one(Shape::new(DType::I32, &without(&x[0].dims, &[*dim])))
        }
        Op::ReduceWindow { kind, window } => {
            ensure!(matches!(kind, Combine::Add | Combine::Max | Combine::Min), "cannot combine by {kind:?}");
            combine(*kind, x[0].dtype)?;
            ensure!(window.len() == x[0].rank(), "{} window dimensions", window.len());
            let mut dims = Vec::new();
            for (i, w) in window.iter().enumerate() {
                ensure!(w.size * w.stride * w.base_dilation * w.window_dilation > 0, "window dimension {i}: {w:?}");
                let d = x[0].dims[i] as i64;
                let padded = w.low + w.high + if d == 0 { 0 } else { (d - 1) * w.base_dilation as i64 + 1 };
                let reach = (w.size as i64 - 1) * w.window_dilation as i64 + 1;
                dims.push(if padded < reach { 0 } else { ((padded - reach) / w.stride as i64 + 1) as usize });
            }
            one(x[0].with_dims(&dims))
        }
        Op::Gather { dims, slice_sizes } => gather(dims, slice_sizes, x[0], x[1]),
        Op::Scatter { dims, .. } => scatter(dims, x[0], x[1], x[2]),
        Op::DynamicSlice { sizes } => {
            ensure!(
                sizes.len() == x[0].rank() && x.len() == 1 + sizes.len(),
                "one start index per dimension is needed"
            );
            ensure!(sizes.iter().zip(&x[0].dims).all(|(s, d)| s <= d), "sizes {sizes:?} do not fit");
            start_indices(&x[1..])?;
            one(x[0].with_dims(sizes))
        }
        Op::DynamicUpdateSlice => {
            ensure!(x.len() >= 2 && x.len() == 2 + x[0].rank(), "one start index per dimension is needed");
            ensure!(x[0].dtype == x[1].dtype && x[0].rank() == x[1].rank(), "the update is of another kind");
            ensure!(x[1].dims.iter().zip(&x[0].dims).all(|(u, d)| u <= d), "the update does not fit");
            start_indices(&x[2..])?;
            one(x[0].clone())
        }
        Op::Sort { dim, .. } => {
            ensure!(!x.is_empty() && *dim < x[0].rank(), "along dimension {dim}");
            ensure!(x.iter().all(|s| s.dims == x[0].dims), "operands differ");
            Ok(x.into_iter().cloned().collect())
        }
        Op::While { cond, body, consts } => {
            signature("cond", cond, &x)?;
            signature("body", body, &x)?;
            ensure!(cond.output_shapes() == [Shape::new(DType::Bool, &[])], "the condition returns {cond:?}");
            let state: Vec<Shape> = x[*consts..].iter().map(|&s| s.clone()).collect();
            ensure!(
                body.output_shapes() == state,
                "the body returns {:?}, the state is {state:?}",
                body.output_shapes()
            );
            Ok(state)
        }
        Op::Scan { body, consts, carry, length, .. } => scan(body, *consts, *carry, *length, &x),
        Op::Conditional { branches } => {
            ensure!(!x.is_empty() && *x[0] == Shape::new(DType::I32, &[]), "the index is not an int32 scalar");
            ensure!(!branches.is_empty(), "no branches");
            for (i, b) in branches.iter().enumerate() {
                signature(&format!("branch {i}"), b, &x[1..])?;
                ensure!(b.output_shapes() == branches[0].output_shapes(), "branches 0 and {i} return different shapes");
            }
            Ok(branches[0].output_shapes())
        }
        Op::Call { function, .. } => {
            signature("the function", function, &x)?;
            Ok(function.output_shapes())
        }
        Op::Split { dim, parts } => {
            let size = x[0].dims.get(*dim).copied();
            ensure!(
                *parts > 0 && size.is_some_and(|n| n.is_multiple_of(*parts)),
                "{} does not split into {parts} along {dim}",
                x[0]
            );
            let mut dims = x[0].dims.clone();
            dims[*dim] /= parts;
            Ok(vec![x[0].with_dims(&dims); *parts])
        }
        Op::OptimizationBarrier => Ok(x.into_iter().cloned().collect()),
        Op::RngBitGenerator { shape, .. } => {
            ensure!(
                x[0].dtype == DType::U64 && matches!(x[0].dims[..], [2] | [3]),
                "the state is not uint64[2] or [3]"
            );
            ensure!(shape.dtype.is_unsigned(), "bits are unsigned, not {}", shape.dtype);
            Ok(vec![x[0].clone(), shape.clone()])
        }
        Op::AllReduce { kind } => {
            combine(*kind, x[0].dtype)?;
            one(x[0].clone())
        }
        Op::CustomCall { shapes, .. } => Ok(shapes.clone()),
    }
}

/// Number of operands, where the operation fixes it.
fn arity(op: &Op) -> Option<usize> {
    Some(match op {
        Op::Parameter { .. } | Op::Constant(_) | Op::Iota { .. } => 0,
        Op::Unary(_) | Op::Convert(_) | Op::BitcastConvert(_) | Op::StopGradient => 1,
        Op::BroadcastInDim { .. } | Op::Reshape { .. } | Op::Transpose { .. } | Op::Reverse { .. } => 1,
        Op::Slice { .. } | Op::Reduce { .. } | Op::ArgReduce { .. } | Op::ReduceWindow { .. } => 1,
        Op::RngBitGenerator { .. } | Op::AllReduce { .. } | Op::Split { .. } => 1,
        Op::Binary(_) | Op::Compare(_) | Op::Pad { .. } | Op::DotGeneral { .. } | Op::Gather { .. } => 2,
        Op::Select | Op::Clamp | Op::Scatter { .. } => 3,
        Op::Concatenate { .. } | Op::DynamicSlice { .. } | Op::DynamicUpdateSlice | Op::Sort { .. } => return None,
        Op::While { .. } | Op::Scan { .. } | Op::Conditional { .. } | Op::Call { .. } => return None,
        Op::OptimizationBarrier | Op::CustomCall { .. } => return None,
    })
}

fn unary(op: Unary, x: &Shape) -> Shapes {
    use Unary::*;
    let t = x.dtype;
    let ok = match op {
        Neg => t != DType::Bool && !t.is_unsigned(),
        Abs | Sign => t != DType::Bool,
        Not => !t.is_float(),
        PopulationCount => t.is_integer(),
        Exp | Expm1 | Log | Log1p | Sin | Cos | Tan | Tanh | Erf | Sqrt | Rsqrt | Cbrt | Logistic => t.is_float(),
        Floor | Ceil | RoundNearestEven | IsFinite => t.is_float(),
    };
    ensure!(ok, "not defined for {t}");
    Ok(vec![if op == IsFinite { x.with_dtype(DType::Bool) } else { x.clone() }])
}

fn binary(op: Binary, a: &Shape, b: &Shape) -> Shapes {
    use Binary::*;
    ensure!(a.dtype == b.dtype, "element types differ; convert one of them");
    ensure!(a.dims == b.dims, "shapes differ");
    let t = a.dtype;
    let ok = match op {
        Add | Sub | Mul | Div | Max | Min | Pow | Rem => t != DType::Bool,
        Atan2 => t.is_float(),
        And | Or | Xor => !t.is_float(),
        ShiftLeft | ShiftRightLogical | ShiftRightArithmetic => t.is_integer(),
    };
    ensure!(ok, "not defined for {t}");
    Ok(vec![a.clone()])
}

fn combine(kind: Combine, dtype: DType) -> Result<(), String> {
    let logical = matches!(kind, Combine::And | Combine::Or);
    ensure!(logical == (dtype == DType::Bool), "{kind:?} does not combine {dtype}");
    Ok(())
}

fn dot_general(d: &DotDims, dtype: DType, a: &Shape, b: &Shape) -> Shapes {
    ensure!(a.dtype == b.dtype, "element types differ; convert one of them");
    let lhs: Vec<usize> = d.lhs_batch.iter().chain(&d.lhs_contract).copied().collect();
    let rhs: Vec<usize> = d.rhs_batch.iter().chain(&d.rhs_contract).copied().collect();
    let paired = d.lhs_batch.len() == d.rhs_batch.len() && lhs.len() == rhs.len();
    ensure!(paired && distinct_below(&lhs, a.rank()) && distinct_below(&rhs, b.rank()), "dimension numbers {d:?}");
    for (&i, &j) in lhs.iter().zip(&rhs) {
        ensure!(a.dims[i] == b.dims[j], "dimension {i} of the left does not match dimension {j} of the right");
    }
    let mut dims: Vec<usize> = d.lhs_batch.iter().map(|&i| a.dims[i]).collect();
    dims.extend(without(&a.dims, &lhs));
    dims.extend(without(&b.dims, &rhs));
    Ok(vec![Shape::new(dtype, &dims)])
}

fn gather(d: &GatherDims, slice_sizes: &[usize], x: &Shape, indices: &Shape) -> Shapes {
    ensure!(indices.dtype.is_integer() && indices.rank() > 0, "the indices are not integers with an index dimension");
    let k = indices.rank() - 1;
    ensure!(
        indices.dims[k] == d.start_index_map.len(),
        "the index vectors do not have {} entries",
        d.start_index_map.len()
    );
    ensure!(slice_sizes.len() == x.rank(), "{} slice sizes", slice_sizes.len());
    ensure!(slice_sizes.iter().zip(&x.dims).all(|(s, n)| s <= n), "slice sizes {slice_sizes:?} do not fit");
    let gone: Vec<usize> = d.collapsed_slice_dims.iter().chain(&d.operand_batching_dims).copied().collect();
    ensure!(distinct_below(&gone, x.rank()), "collapsed and batching dimensions {gone:?}");
    ensure!(gone.iter().all(|&i| slice_sizes[i] == 1), "slices of collapsed and batching dimensions must have size 1");
    batching(&d.operand_batching_dims, &d.start_indices_batching_dims, x, indices)?;
    let window = without(slice_sizes, &gone);
    let rank = k + window.len();
    ensure!(
        d.offset_dims.len() == window.len() && distinct_below(&d.offset_dims, rank),
        "offset dims {:?}",
        d.offset_dims
    );
    let (mut w, mut b) = (window.into_iter(), indices.dims[..k].iter().copied());
    let dims = (0..rank).filter_map(|i| if d.offset_dims.contains(&i) { w.next() } else { b.next() });
    Ok(vec![x.with_dims(&dims.collect::<Vec<_>>())])
}

fn scatter(d: &ScatterDims, x: &Shape, indices: &Shape, updates: &Shape) -> Shapes {
    ensure!(indices.dtype.is_integer() && indices.rank() > 0, "the indices are not integers with an index dimension");
    ensure!(x.dtype == updates.dtype && x.dtype != DType::Bool, "updates of another element type, or bool");
    let k = indices.rank() - 1;
    let entries = d.scatter_dims_to_operand_dims.len();
    ensure!(indices.dims[k] == entries, "the index vectors do not have {entries} entries");
    let gone: Vec<usize> = d.inserted_window_dims.iter().chain(&d.operand_batching_dims).copied().collect();
    ensure!(distinct_below(&gone, x.rank()), "inserted and batching dimensions {gone:?}");
    batching(&d.operand_batching_dims, &d.scatter_indices_batching_dims, x, indices)?;
    let room = without(&x.dims, &gone);
    ensure!(d.update_window_dims.len() == room.len(), "update window dims {:?}", d.update_window_dims);
    ensure!(updates.rank() == k + room.len() && distinct_below(&d.update_window_dims, updates.rank()), "updates' rank");
    let fits = d.update_window_dims.iter().zip(&room).all(|(&i, &n)| updates.dims[i] <= n);
    ensure!(fits && without(&updates.dims, &d.update_window_dims) == indices.dims[..k], "the updates do not fit");
    Ok(vec![x.clone()])
}

fn batching(operand: &[usize], indices: &[usize], x: &Shape, i: &Shape) -> Result<(), String> {
    ensure!(operand.len() == indices.len() && distinct_below(indices, i.rank() - 1), "batching dims {indices:?}");
    ensure!(operand.iter().zip(indices).all(|(&a, &b)| x.dims[a] == i.dims[b]), "batching dimensions differ in size");
    Ok(())
}

fn start_indices(x: &[&Shape]) -> Result<(), String> {
    let ok = x.iter().all(|s| s.rank() == 0 && s.dtype.is_integer() && s.dtype == x[0].dtype);
    ensure!(ok, "start indices are not integer scalars of one type");
    Ok(())
}

fn signature(what: &str, f: &Function, x: &[&Shape]) -> Result<(), String> {
    let fits = f.inputs.len() == x.len() && f.inputs.iter().zip(x).all(|(a, b)| a.shape() == *b);
    ensure!(fits, "{what} takes {:?}", f.input_shapes());
    Ok(())
}

fn scan(body: &Function, consts: usize, carry: usize, length: usize, x: &[&Shape]) -> Shapes {
    ensure!(consts + carry <= x.len(), "{} operands for {consts} constants and {carry} state tensors", x.len());
    let mut inner: Vec<Shape> = x[..consts + carry].iter().map(|&s| s.clone()).collect();
    for s in &x[consts + carry..] {
        ensure!(s.dims.first() == Some(&length), "{s} does not have leading dimension {length}");
        inner.push(s.with_dims(&s.dims[1..]));
    }
    signature("the body", body, &inner.iter().collect::<Vec<_>>())?;
    let out = body.output_shapes();
    ensure!(out.len() >= carry, "the body returns {} values for {carry} state tensors", out.len());
    let state = &inner[consts..consts + carry];
    ensure!(out[..carry] == *state, "the body returns state {:?}, it was {state:?}", &out[..carry]);
    let stacked = out[carry..].iter().map(|s| s.with_dims(&[&[length], &s.dims[..]].concat()));
    Ok(state.iter().cloned().chain(stacked).collect())
}

/// Whether every entry is below `rank` and occurs once.
fn distinct_below(dims: &[usize], rank: usize) -> bool {
    dims.iter().enumerate().all(|(i, d)| *d < rank && !dims[..i].contains(d))
}

/// `dims` without the positions in `gone`.
pub(crate) fn without(dims: &[usize], gone: &[usize]) -> Vec<usize> {
    (0..dims.len()).filter(|i| !gone.contains(i)).map(|i| dims[i]).collect()
}
