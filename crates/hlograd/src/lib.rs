//! Automatic differentiation of HLO graphs, without XLA.
#![deny(unsafe_code)]

pub mod array;
pub mod error;
pub mod graph;
pub mod import;
pub mod random;
pub mod transform;
