//! What is measured on networks: spectra of Jacobians.

pub mod spectrum;
