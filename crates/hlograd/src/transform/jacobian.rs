//! Jacobians: every directional derivative at once, by `vmap` over `jvp` or `vjp`.

use std::slice::from_ref;

use super::{grad, jvp, vjp, vmap};
use crate::error::Result;
use crate::graph::Tensor;

/// `jax.jacfwd`: dy/dx of shape `y.dims ++ x.dims`, by pushing all unit tangents of `x` forward at once.
///
/// `x` is any float tensor that `y` was computed from, an input or an intermediate layer. Best when `y` is at least as
/// large as `x`.
pub fn jacobian(y: &Tensor, x: &Tensor) -> Result<Tensor> {
    let n = x.size();
    let basis = Tensor::eye(x.dtype(), n).reshape(&[&[n], x.dims()].concat());
    let columns = vmap(&[basis], &[Some(0)], |t| jvp(from_ref(y), from_ref(x), t))?.swap_remove(0);
    let perm: Vec<usize> = (1..columns.rank()).chain([0]).collect();
    Ok(columns.transpose(&perm).reshape(&[y.dims(), x.dims()].concat()))
}

/// `jax.jacrev`: the same matrix by pulling all unit cotangents of `y` back at once. Best when `y` is small.
pub fn jacrev(y: &Tensor, x: &Tensor) -> Result<Tensor> {
    let n = y.size();
    let basis = Tensor::eye(y.dtype(), n).reshape(&[&[n], y.dims()].concat());
    let rows = vmap(&[basis], &[Some(0)], |ct| {
        let pulled = vjp(from_ref(y), ct, from_ref(x))?;
        Ok(pulled.into_iter().map(|t| t.unwrap_or_else(|| x.zeros_like())).collect())
    })?;
    Ok(rows[0].reshape(&[y.dims(), x.dims()].concat()))
}

/// `jax.hessian`: second derivatives of the scalar `loss`, shape `x.dims ++ x.dims`, forward over reverse.
pub fn hessian(loss: &Tensor, x: &Tensor) -> Result<Tensor> {
    let gradient = grad(loss, from_ref(x))?.swap_remove(0);
    jacobian(&gradient, x)
}
