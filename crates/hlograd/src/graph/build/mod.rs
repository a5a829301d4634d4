//! Builder methods of [`Tensor`](super::Tensor), named as in `jax.numpy` and `lax`, one family per file.

mod control;
mod elementwise;
mod index;
mod reduce;
mod structure;

pub use control::{Branch, call, checkpoint, cond, fori_loop, optimization_barrier, scan, switch, while_loop};
pub use structure::{broadcast_shapes, concatenate, stack};
