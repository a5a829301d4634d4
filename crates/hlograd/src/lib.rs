//! Automatic differentiation of HLO graphs, without XLA.
//!
//! # A tour
//!
//! A [`graph::Tensor`] is a value in a graph; its methods are named as in `jax.numpy` and `lax`. [`transform`]s take
//! graphs to graphs, and so compose. A [`graph::Program`] is HLO text, which any door to XLA compiles;
//! [`import::Imported`] reads such text back. [`array::Array`]s hold numbers on the host, [`random::Key`]s draw them as
//! JAX does.
//!
//! ```
//! use hlograd::array::DType;
//! use hlograd::graph::{Program, Shape, Tensor};
//! use hlograd::import::Imported;
//! use hlograd::transform::{grad, jvp};
//!
//! // The second derivative of x sin(x): forward over reverse.
//! let x = Tensor::parameter("x", Shape::new(DType::F64, &[]));
//! let slope = grad(&(&x * x.sin()), &[x.clone()])?;
//! let curvature = jvp(&slope, &[x.clone()], &[Tensor::scalar(1.0)])?;
//! let program = Program::new("curvature", &[x], &[("d2f", curvature[0].clone())])?;
//! assert!(program.text.starts_with("HloModule curvature"));
//!
//! // What was printed is a graph again, and has derivatives of its own.
//! let again = Imported::from_hlo_text(&program.text)?;
//! assert_eq!(grad(&again.outputs[0].1, &again.inputs)?[0].dims(), &[] as &[usize]);
//! # Ok::<(), hlograd::error::Error>(())
//! ```
#![deny(unsafe_code)]

pub mod array;
pub mod error;
pub mod graph;
pub mod import;
pub mod random;
pub mod transform;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
