//! What is measured on networks: moments of fields, Jacobians and their spectra, distributions of weights and the SEL
//! transform by itself.
//!
//! ```
//! use ndarray::Array2;
//! use sinexp::analysis::{moments::moments, svd};
//! // f(x) = x on a grid of step 0.1: Omega is slope^2 / Sigma, and the slope 1 but for the two ends.
//! let field = Array2::from_shape_fn((21, 1), |(i, _)| 0.1 * i as f64 - 1.0);
//! let found = moments(field.view().into_dyn(), &[0.1])?;
//! assert!((found.omega[[0, 0]] * found.sigma[[0, 0]] - 1.0).abs() < 0.1);
//! assert_eq!(svd::singular_values(Array2::eye(3).view())?.to_vec(), [1.0, 1.0, 1.0]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

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
