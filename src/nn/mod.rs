//! Models and their initialisations, written in graph operations.

pub mod siren;
pub mod siren_weights;
