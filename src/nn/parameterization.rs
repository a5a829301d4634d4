//! How a weight is made from what is trained: the seam between a model and a reparameterisation.
//!
//! A model declares weights and is written in terms of them. A [`Parameterization`] says which tensors (leaves) stand
//! for each weight and how the weight is made from them, so that one model is trained `standard` or through
//! [`Sel`](super::sel::Sel). A parameterisation of one's own is one implementation of the trait.

use std::collections::BTreeMap;
use std::fmt;

use ndarray::ArrayD;

use super::siren::Params;
use crate::error::Result;
use crate::graph::Tensor;
use crate::optim::Anneal;
use crate::random::Key;

/// Host values of leaves, by leaf name.
pub type LeafValues = BTreeMap<String, ArrayD<f64>>;

/// A tensor that is trained, and its optimiser group.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Name below the weight's: `w`, `e.r`. Empty where the weight is trained itself.
    pub name: String,
    /// Dimensions.
    pub dims: Vec<usize>,
    /// Learning-rate multiplier k(t).
    pub multiplier: Anneal,
    /// Whether weight decay applies.
    pub decay: bool,
}

impl Leaf {
    /// A leaf with multiplier 1 and weight decay.
    pub fn new(name: impl Into<String>, dims: &[usize]) -> Self {
        Leaf { name: name.into(), dims: dims.to_vec(), multiplier: Anneal::ONE, decay: true }
    }
}

/// A map from leaves to weights: matrices `[d_out, d_in]` or bias vectors `[d_out]`.
///
/// All that weight normalisation needs, w = g v / |v| by rows:
///
/// ```
/// use ndarray::{ArrayD, Axis};
/// use sinexp::error::Result;
/// use sinexp::graph::Tensor;
/// use sinexp::nn::parameterization::{Leaf, LeafValues, Parameterization};
/// use sinexp::nn::{language_model::LanguageModel, siren::Params, transformer::Transformer};
/// use sinexp::random::Key;
///
/// #[derive(Debug)]
/// struct WeightNorm;
///
/// impl Parameterization for WeightNorm {
///     fn leaves(&self, dims: &[usize]) -> Vec<Leaf> {
///         match dims {
///             [_] => vec![Leaf::new("", dims)], // a bias as it is
///             _ => vec![Leaf::new("v", dims), Leaf { decay: false, ..Leaf::new("g", &dims[..1]) }],
///         }
///     }
///
///     fn weight(&self, dims: &[usize], leaves: &Params) -> Tensor {
///         if dims.len() == 1 {
///             return leaves[""].clone();
///         }
///         let v = &leaves["v"];
///         v / v.norm(&[1]).expand_dims(1) * leaves["g"].expand_dims(1)
///     }
///
///     fn initial(&self, target: &ArrayD<f64>, _key: Key) -> Result<LeafValues> {
///         if target.ndim() == 1 {
///             return Ok([(String::new(), target.clone())].into());
///         }
///         let norms = target.mapv(|x| x * x).sum_axis(Axis(1)).mapv(f64::sqrt);
///         Ok([("v".to_owned(), target.clone()), ("g".to_owned(), norms)].into())
///     }
/// }
///
/// let model = LanguageModel::new(Transformer::new(256, 64, 2), WeightNorm);
/// assert!(model.parameters().iter().any(|p| p.name == "blocks.q.W.g" && p.dims == [2, 64] && !p.decay));
/// ```
pub trait Parameterization: fmt::Debug + Send + Sync {
    /// The leaves of a weight of these dimensions.
    fn leaves(&self, dims: &[usize]) -> Vec<Leaf>;

    /// The weight made from its leaves, by name.
    fn weight(&self, dims: &[usize], leaves: &Params) -> Tensor;

    /// Values of the leaves at the start of training, whose weight is to start at `target`.
    ///
    /// **Errors** when no such values exist.
    fn initial(&self, target: &ArrayD<f64>, key: Key) -> Result<LeafValues>;

    /// What is worth watching during training, by name: float scalars, 1 at the start.
    fn tracked(&self, _dims: &[usize], _leaves: &Params) -> Vec<(&'static str, Tensor)> {
        Vec::new()
    }
}

/// The weight itself is trained.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

impl Parameterization for Standard {
    fn leaves(&self, dims: &[usize]) -> Vec<Leaf> {
        vec![Leaf::new("", dims)]
    }

    fn weight(&self, _dims: &[usize], leaves: &Params) -> Tensor {
        leaves[""].clone()
    }

    fn initial(&self, target: &ArrayD<f64>, _key: Key) -> Result<LeafValues> {
        Ok(BTreeMap::from([(String::new(), target.clone())]))
    }
}
