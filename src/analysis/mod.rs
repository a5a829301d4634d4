//! What is measured on networks: moments of fields, Jacobians and their spectra, distributions of weights and the SEL
//! transform by itself.

pub mod distribution;
pub mod jacobian;
pub mod moments;
pub mod program_jacobian;
pub mod protocol;
pub mod sel_curves;
pub mod sel_mismatch;
pub mod sel_roles;
pub mod sel_shapes;
pub mod sel_weights;
pub mod spectrum;
pub mod svd;
pub mod weights;
