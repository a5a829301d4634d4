//! Vectorisation: a graph for one example becomes a graph for a batch.

use std::convert::Infallible;

use super::vmap_rules::vmap_rule;
use crate::error::Result;
use crate::graph::{Env, Tensor, propagate};

/// `jax.vmap`: `f` is traced once on examples and rewritten to work on the whole batch.
///
/// `in_axes[i]` is the batch dimension of `args[i]`, None for an argument shared by all examples; tensors that `f`
/// captures are shared too. Every result has the batch as its first dimension. `f` may itself use any transform.
///
/// **Errors** are `f`'s own. **Panics** when batch sizes differ or nothing is batched.
///
/// ```
/// use hlograd::{array::DType, graph::{Shape, Tensor}, transform::{grad, vmap}};
/// # fn main() -> hlograd::error::Result<()> {
/// let x = Tensor::parameter("x", Shape::new(DType::F32, &[10, 3]));
/// let per_example = vmap(&[x], &[Some(0)], |a| grad(&a[0].square().sum_all(), a))?;
/// assert_eq!(per_example[0].dims(), [10, 3]);
/// # Ok(()) }
/// ```
#[track_caller]
pub fn vmap(
    args: &[Tensor],
    in_axes: &[Option<usize>],
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    assert_eq!(args.len(), in_axes.len(), "vmap: one axis per argument");
    let mut size = None;
    let mut examples = Vec::new();
    let mut pairs = Vec::new();
    for (arg, axis) in args.iter().zip(in_axes) {
        let Some(axis) = *axis else {
            examples.push(arg.clone());
            continue;
        };
        assert!(axis < arg.rank(), "vmap: axis {axis} of {}", arg.shape());
        let n = arg.dims()[axis];
        assert!(*size.get_or_insert(n) == n, "vmap: {} has {n} examples, another argument {size:?}", arg.shape());
        let batched = arg.moveaxis(axis, 0);
        let example = Tensor::parameter("example", batched.shape().with_dims(&batched.dims()[1..]));
        examples.push(example.clone());
        pairs.push((example, batched));
    }
    let Some(size) = size else { panic!("vmap: no argument has a batch axis") };
    let outputs = f(&examples)?;
    let batched = batch(&outputs, &pairs, size);
    Ok(outputs.iter().zip(batched).map(|(y, b)| b.unwrap_or_else(|| repeat(y, size))).collect())
}

/// The same value for every example.
pub(super) fn repeat(t: &Tensor, size: usize) -> Tensor {
    let to = [&[size], t.dims()].concat();
    t.broadcast_in_dim(&(1..to.len()).collect::<Vec<_>>(), &to)
}

/// Batched forms of `outputs` (batch first), given those of some tensors; None where an output does not depend on them.
pub(super) fn batch(outputs: &[Tensor], pairs: &[(Tensor, Tensor)], size: usize) -> Vec<Option<Tensor>> {
    let mut env: Env = pairs.iter().map(|(x, b)| (x.key(), b.clone())).collect();
    let done: Result<(), Infallible> = propagate(outputs, &mut env, |node, values| Ok(vmap_rule(node, values, size)));
    let Ok(()) = done;
    outputs.iter().map(|y| env.get(&y.key()).cloned()).collect()
}
