//! The Jacobian-spectrum diagnostic of the uniform-phase paper (Appendix C): which networks, which points, which keys.
//!
//! Every draw has its own key, made from the seed and from what is drawn (initialisation, depth, network), so a cell's
//! numbers do not depend on which other cells a run computes.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use ndarray::{Array2, Array3, Axis};

use super::jacobian::HiddenJacobian;
use super::moments::Moments;
use super::spectrum::Cell;
use super::svd::singular_values;
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::nn::siren::{Params, Siren};
use crate::nn::siren_init::Initialization;
use crate::random::Key;
use crate::runtime::Device;

/// A network's weights by name, with the scalars `omega0` and `omega_h`.
pub type Weights = BTreeMap<String, Array>;

/// Command-line names of the initialisations that have a sine Jacobian. An initialisation's place in this list is part
/// of its keys: append, never reorder.
pub const SINE_INITS: [&str; 5] = ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "sm20-repo"];

// What a key is for: the first number folded into the seed's key.
const MOMENTS: u32 = 0;
const WEIGHTS: u32 = 1;
const POINTS: u32 = 2;

/// Sizes and ranges of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Protocol {
    /// N.
    pub width: usize,
    /// Networks per cell.
    pub networks: usize,
    /// Inputs per network.
    pub points: usize,
    /// Seed of every key.
    pub seed: u64,
    /// Frequency of the input layer.
    pub omega0: f64,
    /// Frequency of the hidden layers.
    pub omega_h: f64,
    /// Range of the uniformly sampled inputs.
    pub domain: (f64, f64),
}
