//! Models and their initialisations, written in graph operations.

pub mod cvp26;
pub mod init;
pub mod language_model;
pub mod layer_names;
pub mod parameterization;
pub mod sel;
pub mod siren;
pub mod siren_init;
pub mod siren_weights;
pub mod transformer;
