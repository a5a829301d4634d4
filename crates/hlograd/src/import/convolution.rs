//! Convolutions as dot products of the operand's windows with the kernel (im2col).
//!
//! The windows are laid out in full, which takes as many times the operand's memory as the kernel has places. In return
//! every derivative is that of slices and a dot product.

use super::build::apply1;
use super::ops::{count, padded_size};
use super::parse::{Instruction, MAX_BYTES};
use crate::array::Array;
use crate::graph::Shape;
use crate::graph::Tensor;
use crate::graph::stack;
use crate::graph::{DotDims, Op, Padding, Window};

/// Kernels longer than this take their windows by a gather instead of one slice for each place.
const MAX_SLICES: usize = 64;

/// Dimension numbers of one operand, from labels such as `b01f`: where batch, feature and each space dimension stand.
fn places(labels: &str, first: char, second: char) -> Option<Vec<usize>> {
    let n = labels.len().checked_sub(2)?;
    let space = (0..n).map(|i| char::from_digit(i as u32, 10));
    let wanted = [Some(first), Some(second)].into_iter().chain(space);
    wanted.map(|c| c.and_then(|c| labels.find(c))).collect()
}

pub(super) fn convolution(ins: &Instruction, x: &[Tensor], result: &Shape) -> Result<Tensor, String> {
    ins.only(&["window", "dim_labels", "feature_group_count", "batch_group_count", "operand_precision"])?;
    let [lhs, rhs] = x else { return Err(count(2, x)) };
    let labels = ins.need("dim_labels")?;
    let odd = || format!("dim_labels={} is not understood", super::lex::short(labels));
    let (operands, out) = labels.split_once("->").ok_or_else(odd)?;
    let (left, right) = operands.split_once('_').ok_or_else(odd)?;
    let [l, r, o] = [places(left, 'b', 'f'), places(right, 'o', 'i'), places(out, 'b', 'f')].map(|p| p.ok_or_else(odd));
    let (l, r, o) = (l?, r?, o?);
    if l.len() != lhs.rank() || r.len() != rhs.rank() || o.len() != l.len() || r.len() != l.len() || l.len() > 8 {
        return Err(format!("dim_labels={labels} for {} and {}", lhs.shape(), rhs.shape()));
    }
    let (window, reversed) = ins.window()?;
    let n = l.len() - 2;
    let mut x = apply1(Op::Transpose { perm: l }, vec![lhs.clone()])?;
    let mut w = apply1(Op::Transpose { perm: r }, vec![rhs.clone()])?;
    if window.len() != n || window.iter().zip(&w.dims()[2..]).any(|(w, d)| w.size != *d) {
        return Err(format!("the window is not that of the kernel {}", rhs.shape()));
    }
    let reversed: Vec<usize> = (0..n).filter(|&i| reversed[i]).map(|i| i + 2).collect();
    if !reversed.is_empty() {
        w = w.reverse(&reversed);
    }
    let (mut groups, batches) = (ins.count("feature_group_count")?, ins.count("batch_group_count")?);
    if batches > 1 {
        if groups > 1 || !x.dims()[0].is_multiple_of(batches) {
            return Err(format!("batch_group_count={batches} with {groups} feature groups of {}", lhs.shape()));
        }
        // Groups of the batch are groups of features that stand in the batch.
        let (b, f) = (x.dims()[0] / batches, x.dims()[1]);
        let space = x.dims()[2..].to_vec();
        x = x.reshape(&[&[batches, b, f], &space[..]].concat()).moveaxis(0, 1);
        x = x.reshape(&[&[b, batches * f], &space[..]].concat());
        groups = batches;
    }
    let (features, kernel_out) = (x.dims()[1], w.dims()[0]);
    let fits = groups > 0 && features.is_multiple_of(groups) && kernel_out.is_multiple_of(groups);
    if !fits || features / groups != w.dims()[1] || lhs.dtype() != rhs.dtype() {
        return Err(format!("{} and {} do not fit in {groups} groups", lhs.shape(), rhs.shape()));
    }
    let x = windows(x, &window)?;
    // As declared, so that no product of sizes below overflows.
    let mut declared = vec![0; n + 2];
    for (i, &place) in o.iter().enumerate() {
        declared[place] = [x.dims()[0], kernel_out].get(i).copied().unwrap_or_else(|| x.dims()[3 + 2 * (i - 2)]);
    }
    if declared != result.dims {
        return Err(format!("it is declared as {result}, its operands make it {declared:?}"));
    }
    // x: batch, features, then kernel place and result place of each dimension; w: out, in, kernel places.
    let (batch, places) = (x.dims()[0], x.dims()[2..].to_vec());
    let x = x.reshape(&[&[batch, groups, features / groups], &places[..]].concat());
    let kernel = w.dims()[2..].to_vec();
    let w = w.reshape(&[&[groups, kernel_out / groups, features / groups], &kernel[..]].concat());
    let dims = DotDims {
        lhs_batch: vec![1],
        rhs_batch: vec![0],
        lhs_contract: std::iter::once(2).chain((0..n).map(|i| 3 + 2 * i)).collect(),
        rhs_contract: (2..3 + n).collect(),
    };
    let y = apply1(Op::DotGeneral { dims, precision: ins.precision(), dtype: result.dtype }, vec![x, w])?;
    // group, batch, space, out of group -> batch, out, space -> as labelled.
    let y = y.moveaxis(0, 1).moveaxis(y.rank() - 1, 2);
    let space = y.dims()[3..].to_vec();
    let y = y.reshape(&[&[batch, kernel_out], &space[..]].concat());
    let mut perm = vec![0; n + 2];
    for (i, &place) in o.iter().enumerate() {
        perm[place] = i;
    }
    apply1(Op::Transpose { perm }, vec![y])
}

/// Each space dimension (from the third) replaced by two: place in the kernel, place in the result.
fn windows(x: Tensor, window: &[Window]) -> Result<Tensor, String> {
    let edges =
        window.iter().map(|w| Some(Padding { low: w.low, high: w.high, interior: w.base_dilation.checked_sub(1)? }));
    let edges: Option<Vec<Padding>> = edges.collect();
    let config = [&[Padding::default(); 2], &edges.ok_or("a dilation of 0")?[..]].concat();
    padded_size(x.dims(), &config)?;
    let mut x = x.pad(&Tensor::full(x.dtype(), &[], 0.0), &config);
    for (i, w) in window.iter().enumerate() {
        let axis = 2 + 2 * i;
        let length = x.dims()[axis];
        let reach = w.size.saturating_sub(1).saturating_mul(w.window_dilation).saturating_add(1);
        if w.size == 0 || w.stride == 0 || w.window_dilation == 0 {
            return Err(format!("the window {w:?}"));
        }
        let places = if length < reach { 0 } else { (length - reach) / w.stride + 1 };
        let size = x.size() as u128 / length.max(1) as u128 * w.size as u128 * places as u128;
        if size > MAX_BYTES {
            return Err("its windows laid out are larger than any memory".into());
        }
        let mut dims = x.dims().to_vec();
        dims.splice(axis..=axis, [w.size, places]);
        if places == 0 {
            x = Tensor::full(x.dtype(), &dims, 0.0);
        } else if w.size > MAX_SLICES {
            let at: Vec<i32> = (0..w.size)
                .flat_map(|k| (0..places).map(move |p| k * w.window_dilation + p * w.stride))
                .map(|i| i32::try_from(i).map_err(|_| "a dimension of more than 2^31"))
                .collect::<Result<_, _>>()?;
            x = x.take(&Tensor::constant(Array::from_slice(&[w.size, places], &at)), axis);
        } else {
            let part = |k: usize| {
                let (mut start, mut limit) = (vec![0; x.rank()], x.dims().to_vec());
                let mut stride = vec![1; x.rank()];
                start[axis] = k * w.window_dilation;
                limit[axis] = start[axis] + (places - 1) * w.stride + 1;
                stride[axis] = w.stride;
                x.slice(&start, &limit, &stride)
            };
            x = stack(&(0..w.size).map(part).collect::<Vec<_>>(), axis);
        }
    }
    Ok(x)
}
