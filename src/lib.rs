//! `sinexp` (sine + exponential): a research toolkit over XLA for sine networks and symmetric-exponential transformers.
#![deny(unsafe_code)]

pub mod array;
pub mod error;
pub mod graph;
pub mod transform;
