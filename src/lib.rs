//! `sinexp` (sine + exponential): a research toolkit over XLA for sine networks and symmetric-exponential transformers.
#![deny(unsafe_code)]

pub mod analysis;
pub mod array;
pub mod catalog;
pub mod cli;
pub mod convert;
pub mod data;
pub mod error;
pub mod experiment;
pub mod files;
pub mod graph;
pub mod interop;
pub mod nn;
pub mod optim;
pub mod random;
pub mod report;
pub mod runtime;
pub mod train;
pub mod transform;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
