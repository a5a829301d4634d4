//! `sinexp` (sine + exponential): a research toolkit over XLA for sine networks (SIREN) and symmetric-exponential
//! transformers (SEL).
//!
//! The programs need no Rust: the book in `docs/` begins with them. This page is for those who build on the library.
//!
//! # How it works
//!
//! A model is an expression over [`graph::Tensor`]s: building it computes nothing, it makes a graph. [`transform`]s take
//! graphs to graphs, as `jax.grad` takes functions to functions, and so they compose. A [`graph::Program`] prints a graph as
//! HLO text. A [`runtime::Device`] compiles it once, and then [`array::Array`]s go in and come out.
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
//! A shape that does not fit is a mistake of the program and panics, with both shapes and the line that built it. What comes
//! from a user (files, arguments, devices) returns an [`error::Error`] that says what to do.
//!
//! # Where to begin
//!
//! | if you want to | begin with |
//! | --- | --- |
//! | compute with gradients | [`graph::Tensor`], then [`transform`] |
//! | write a training loop | [`optim`], [`graph::Program::with_donation`], [`runtime::Executable::run`] |
//! | use the sine network | [`nn::siren`], [`nn::siren_init`], [`analysis`] |
//! | use SEL | [`nn::sel`], [`nn::parameterization`], [`train::language`] |
//! | exchange programs and weights with JAX | [`interop`], [`catalog`] |
//! | draw a figure or print a table | [`report`] |
//!
//! `examples/` has a program of some forty lines for the first five.
//!
//! # The names of JAX
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
//! # The rooms, from the ground up
//!
//! Each uses only those above it in this table.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`array`](mod@array), [`random`] | host tensors; JAX's threefry on the host |
//! | [`graph`] | tensors, operations, shapes, HLO text, written and read; needs no XLA |
//! | [`transform`] | `grad`, `vjp`, `jvp`, `vmap`, `jacobian`: graph to graph |
//! | [`error`], [`files`] | the error type; files that are written whole or not at all |
//! | [`runtime`] | devices, executables, buffers: the only room that touches the crate `xla` |
//! | [`data`], [`optim`] | pictures, sounds, texts; Adam, AdamW, schedules |
//! | [`cli`], [`nn`] | what all programs share; the networks and their initialisations, SEL |
//! | [`interop`] | safetensors; programs of others, `jax.export` files |
//! | [`convert`], [`analysis`] | checkpoints from ordinary weights to SEL's and back; what is measured |
//! | [`report`] | tables and figures; the HTML page |
//! | [`train`] | step programs, runs that stay on the device, sweeps |
//! | [`catalog`], [`experiment`] | the toolkit's own programs by name; both papers' protocols |
//!
//! # Features
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

/// The Rust code of README and book is compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/src/how-to/jax.md")]
struct Pages;
