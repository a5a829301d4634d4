//! Transforms: functions from graph to graph. They compose, because each returns ordinary tensors.
//!
//! | transform | JAX | file |
//! | --- | --- | --- |
//! | [`grad`], [`value_and_grad`], [`vjp`] | `jax.grad`, `jax.vjp` | `grad.rs`, rules in `vjp_rules.rs` |
//! | [`jvp`] | `jax.jvp` | `jvp.rs` |
//! | [`vmap`] | `jax.vmap` | `vmap.rs`, rules in `vmap_rules.rs` |
//! | [`jacobian`], [`jacrev`], [`hessian`] | `jax.jacfwd`, `jax.jacrev`, `jax.hessian` | `jacobian.rs` |
//! | [`checkpoint`](crate::graph::checkpoint) | `jax.checkpoint` | an operation; its reverse rule is in `control.rs` |
//! | [`fast_sine`] | | `fast_sine.rs` |
//! | [`lower`] | | `graph/lower.rs`: what HLO has no operation for |
//!
//! ```
//! use hlograd::array::DType;
//! use hlograd::graph::{Program, Shape, Tensor};
//! use hlograd::transform::{grad, hessian, jvp, vmap};
//! // f = sum x^4 / 12 has the Hessian diag(x^2); here its product with v, forward over reverse.
//! let [x, v] = ["x", "v"].map(|name| Tensor::parameter(name, Shape::new(DType::F64, &[3])));
//! let f = |x: &Tensor| (x.square().square() / 12.0).sum_all();
//! let product = jvp(&grad(&f(&x), &[x.clone()])?, &[x.clone()], &[v.clone()])?.swap_remove(0);
//! assert_eq!(hessian(&f(&x), &x)?.dims(), [3, 3]); // the whole of it
//! // Gradients of each of two examples: vmap(grad(f)).
//! let batch = Tensor::parameter("batch", Shape::new(DType::F64, &[2, 3]));
//! assert_eq!(vmap(&[batch], &[Some(0)], |x| grad(&f(&x[0]), x))?[0].dims(), [2, 3]);
//! let program = Program::new("product", &[x, v], &[("Hv", product)])?;
//! assert!(program.text.contains("f64[3]"));
//! # Ok::<(), hlograd::error::Error>(())
//! ```

mod control;
mod derivative;
mod fast_sine;
mod grad;
mod jacobian;
mod jvp;
mod vjp_rules;
mod vmap;
mod vmap_control;
mod vmap_rules;

pub use crate::graph::{lower, substitute};
pub use fast_sine::fast_sine;
pub use grad::{grad, value_and_grad, vjp};
pub use jacobian::{hessian, jacobian, jacrev};
pub use jvp::jvp;
pub use vmap::vmap;
