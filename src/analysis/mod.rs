//! What is measured on networks: moments of fields, Jacobians and their spectra.

pub mod jacobian;
pub mod moments;
pub mod protocol;
pub mod spectrum;
pub mod svd;
pub mod weights;
