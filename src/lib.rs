//! `sinexp` (sine + exponential): a research toolkit over XLA for sine networks and symmetric-exponential transformers.
//!
//! # A tour
//!
//! A model is an expression over [`graph::Tensor`]s. [`transform`]s take graphs to graphs and so compose. A
//! [`graph::Program`] prints a graph as HLO text, which a [`runtime::Device`] compiles; [`array::Array`]s go in and come
//! out. Whoever knows JAX knows the names:
//!
//! | JAX | here |
//! | --- | --- |
//! | `jax.numpy`, `lax` | methods of [`graph::Tensor`]; [`graph::scan`], [`graph::cond`], [`graph::while_loop`] |
//! | `grad`, `jvp`, `vjp`, `vmap`, `jacfwd`, `hessian`, `checkpoint` | [`transform`], [`graph::checkpoint`] |
//! | `jit(f).lower().compile()` | [`runtime::Device::compile`] |
//! | `pmap`, `psum` | [`runtime::DeviceGroup`], [`graph::Tensor::all_reduce`] |
//! | `jax.random` | [`random::Key`], the same bits |
//! | `optax` | [`optim`] |
//! | Flax, Equinox | [`nn`]: the SIREN, the transformer, SEL |
//! | `jax.export`, HLO and StableHLO files | [`interop`], [`catalog`] |
//!
//! ```
//! use sinexp::array::{Array, DType};
//! use sinexp::graph::{Program, Shape, Tensor};
//! use sinexp::runtime::Device;
//! use sinexp::transform::{grad, jvp};
//!
//! // The second derivative of x sin(x): forward over reverse.
//! let x = Tensor::parameter("x", Shape::new(DType::F64, &[]));
//! let slope = grad(&(&x * x.sin()), &[x.clone()])?;
//! let curvature = jvp(&slope, &[x.clone()], &[Tensor::scalar(1.0)])?;
//! let program = Program::new("curvature", &[x], &[("d2f", curvature[0].clone())])?;
//! let found = Device::open("cpu")?.compile(&program)?.call(&[&Array::scalar(0.7)])?[0].to_f64_vec()[0];
//! assert!((found - (2.0 * 0.7f64.cos() - 0.7 * 0.7f64.sin())).abs() < 1e-12);
//! # Ok::<(), sinexp::error::Error>(())
//! ```
//!
//! The two papers stand on that: [`nn::siren_init`] and [`nn::sel`] are the methods, [`train`] the training, [`analysis`]
//! what is measured, [`experiment`] the protocols of the tables, [`report`] tables and figures, [`data`] pictures, sounds
//! and texts, [`convert`] checkpoints from ordinary weights to SEL's and back. [`cli`], [`error`] and [`files`] are what all
//! programs share.
//!
//! With the feature `notebook`, off by default, a [`report::Figure`] or [`report::Table`] that ends a cell in Jupyter shows
//! itself (the Rust kernel evcxr; see `notebooks/`).
#![deny(unsafe_code)]

pub mod analysis;
pub mod catalog;
pub mod cli;
pub mod convert;
pub mod data;
pub mod error;
pub mod experiment;
pub mod files;
pub mod interop;
pub mod nn;
pub mod optim;
pub mod report;
pub mod runtime;
pub mod train;

pub use hlograd::{array, random, transform};

/// Tensors, operations, programs, and HLO text read back into them: the crate [`hlograd`]'s `graph` and `import`.
pub mod graph {
    pub use hlograd::graph::*;
    pub use hlograd::import::Imported;
}

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
