//! A transformer with the parameterisation of its projections: what is trained, how it starts, how it becomes weights.
//!
//! Parameters are named by weight and leaf, `blocks.q.W.w`, `blocks.q.W.e.r`; those of blocks are stacked along a first
//! dimension. In files each block has its own tensor, `blocks.0.q.W.w`: see [`LanguageModel::split`].
//!
//! ```
//! use sinexp::nn::language_model::{LanguageModel, Start};
//! use sinexp::nn::{parameterization::Standard, sel::{Mode, Sel}, transformer::Transformer};
//! use sinexp::{random::Key, runtime::Device, train::language::effective_weights};
//! let transformer = Transformer::new(32, 16, 2);
//! let plain = LanguageModel::new(transformer.clone(), Standard).initial(Start::default(), Key::new(0))?;
//! let sel = LanguageModel::new(transformer, Sel::new(8.0).with_mode(Mode::Congruent));
//! let raw = sel.initial(Start::default(), Key::new(0))?;
//! // Congruent SEL starts as the same function: its raw weights are Newton's for the same Xavier matrices.
//! let weights = effective_weights(&Device::open("cpu")?, &sel, &raw)?;
//! let pairs = weights["blocks.q.W"].to_f64_vec().into_iter().zip(plain["blocks.q.W"].to_f64_vec());
//! assert!(pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-6);
//! assert_ne!(raw["blocks.q.W.w"], plain["blocks.q.W"]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use ndarray::{ArrayD, Axis};

use super::init::Law;
use super::parameterization::Parameterization;
use super::siren::Params;
use super::transformer::{Kind, PROJECTIONS, Transformer, Weight};
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::Tensor;
use crate::optim::Anneal;
use crate::random::Key;
use crate::transform::vmap;

pub use crate::array::Weights;

/// A trained tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Dimensions, with the depth in front where it is stacked.
    pub dims: Vec<usize>,
    /// Whether there is one per block.
    pub stacked: bool,
    /// Learning-rate multiplier k(t).
    pub multiplier: Anneal,
    /// Whether weight decay applies.
    pub decay: bool,
}

/// What projections start at, before the parameterisation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Xavier uniform matrices, biases 0.
    #[default]
    XavierUniform,
    /// Xavier normal matrices, biases 0.
    XavierNormal,
}

/// How a model starts.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Start {
    /// Law of the projections' matrices.
    pub target: Target,
    /// Whether their biases are uniform on +-1 / sqrt(d_in) instead of 0.
    pub uniform_biases: bool,
}

/// Standard deviation of embedding and head at the start (GPT-2's; the paper does not say).
pub const TABLE_STD: f64 = 0.02;

/// A transformer whose projections go through a parameterisation. Embedding, norms and head are trained as they are.
#[derive(Clone, Debug)]
pub struct LanguageModel {
    /// The network.
    pub transformer: Transformer,
    /// How its projections are stored.
    pub projection: Arc<dyn Parameterization>,
}

impl LanguageModel {
    /// The model `transformer` with its projections stored through `projection`.
    pub fn new(transformer: Transformer, projection: impl Parameterization + 'static) -> Self {
        LanguageModel { transformer, projection: Arc::new(projection) }
    }

    /// Everything that is trained, in the order of [`Transformer::weights`].
    pub fn parameters(&self) -> Vec<Parameter> {
        let leaves = |w: &Weight| -> Vec<Parameter> {
            let front: &[usize] = if w.stacked { &[self.transformer.depth] } else { &[] };
            let parameter = |name: String, dims: &[usize], multiplier, decay| Parameter {
                name,
                dims: [front, dims].concat(),
                stacked: w.stacked,
                multiplier,
                decay,
            };
            match w.kind {
                Kind::Projection => {
                    let leaves = self.projection.leaves(&w.dims).into_iter();
                    leaves.map(|l| parameter(joined(&w.name, &l.name), &l.dims, l.multiplier, l.decay)).collect()
                }
                kind => vec![parameter(w.name.clone(), &w.dims, Anneal::ONE, kind == Kind::Table)],
            }
        };
        self.transformer.weights().iter().flat_map(leaves).collect()
    }

    /// The weights that the transformer uses, made from the parameters: once, for all blocks together.
    ///
    /// **Panics** when a parameter is missing: check files with [`LanguageModel::stack`] first.
    #[track_caller]
    pub fn effective(&self, params: &Params) -> Params {
        let weights = self.transformer.weights();
        weights
            .iter()
            .map(|w| (w.name.clone(), self.of_leaves(w, params, |dims, l| self.projection.weight(dims, l))))
            .collect()
    }

    /// What the parameterisation tracks, by role and name (`q.e_w`): the mean over blocks, of the matrices only.
    pub fn tracked(&self, params: &Params) -> Vec<(String, Tensor)> {
        let weights = self.transformer.weights();
        let mut all = Vec::new();
        for role in PROJECTIONS {
            let Some(w) = weights.iter().find(|w| w.name == format!("blocks.{role}.W")) else { continue };
            let leaves = self.leaf_tensors(w, params);
            for (i, (name, _)) in self.projection.tracked(&w.dims, &example(&leaves)).iter().enumerate() {
                let mean = self.of_leaves(w, params, |dims, l| self.projection.tracked(dims, l).swap_remove(i).1);
                all.push((format!("{role}.{name}"), mean.mean_all()));
            }
        }
        all
    }

    /// `f` of the leaves of weight `w`, with the blocks in front where there are several.
    fn of_leaves(&self, w: &Weight, params: &Params, f: impl FnOnce(&[usize], &Params) -> Tensor) -> Tensor {
        if w.kind != Kind::Projection {
            return params[&w.name].clone();
        }
        let (names, tensors): (Vec<String>, Vec<Tensor>) = self.leaf_tensors(w, params).into_iter().unzip();
        if let [tensor] = &tensors[..] {
            // Nothing to combine: no loop over blocks either.
            if names[0].is_empty() {
                return tensor.clone();
            }
        }
        let axes = vec![Some(0); tensors.len()];
        let one =
            |blocks: &[Tensor]| Ok(vec![f(&w.dims, &names.iter().cloned().zip(blocks.iter().cloned()).collect())]);
        match vmap(&tensors, &axes, one) {
            Ok(mut mapped) => mapped.swap_remove(0),
            Err(error) => panic!("{}: {error}", w.name),
        }
    }

    fn leaf_tensors(&self, w: &Weight, params: &Params) -> Vec<(String, Tensor)> {
        let leaves = self.projection.leaves(&w.dims).into_iter();
        leaves.map(|l| (l.name.clone(), params[&joined(&w.name, &l.name)].clone())).collect()
    }

    /// Parameters at the start, f32, stacked. Each weight of each block has its own key.
    ///
    /// **Errors** when the parameterisation cannot start at the target.
    pub fn initial(&self, start: Start, key: Key) -> Result<Weights> {
        let mut all = Weights::new();
        for (i, w) in self.transformer.weights().iter().enumerate() {
            let key = key.fold_in(i as u32);
            let dims = self.transformer.full_dims(w);
            match w.kind {
                Kind::Gain => {
                    all.insert(w.name.clone(), Array::full(DType::F32, &dims, 1.0));
                    continue;
                }
                Kind::Table => {
                    all.insert(w.name.clone(), Law::Normal { std: TABLE_STD }.draw(key, &dims)?);
                    continue;
                }
                Kind::Projection => {}
            }
            let mut stacks: BTreeMap<String, Vec<ArrayD<f32>>> = BTreeMap::new();
            for key in key.split(self.transformer.depth) {
                let target = self.target(w, start).draw(key, &w.dims)?.to_ndarray::<f32>()?.mapv(f64::from);
                let values = self.projection.initial(&target, key.fold_in(1));
                let values = values.map_err(|e| Error::tensor(&w.name, e))?;
                for (name, value) in values {
                    stacks.entry(name).or_default().push(value.mapv(|x| x as f32));
                }
            }
            for (name, blocks) in stacks {
                let views: Vec<_> = blocks.iter().map(|b| b.view()).collect();
                let stack = ndarray::stack(Axis(0), &views).map_err(|e| Error::tensor(&w.name, e))?;
                all.insert(joined(&w.name, &name), Array::from_ndarray(&stack));
            }
        }
        Ok(all)
    }

    fn target(&self, w: &Weight, start: Start) -> Law {
        match (&w.dims[..], start) {
            (&[outputs, inputs], Start { target: Target::XavierUniform, .. }) => Law::xavier_uniform(inputs, outputs),
            (&[outputs, inputs], Start { target: Target::XavierNormal, .. }) => Law::xavier_normal(inputs, outputs),
            (_, Start { uniform_biases: true, .. }) => {
                let inputs = if w.name.ends_with("ff2.b") { self.transformer.hidden } else { self.transformer.width };
                Law::torch_uniform(inputs)
            }
            _ => Law::Zeros,
        }
    }

    /// Stacked tensors as one per block: `blocks.q.W.w` becomes `blocks.0.q.W.w`, `blocks.1.q.W.w` ...
    ///
    /// Works on parameters, on effective weights, and on either with a prefix (`m.blocks.q.W.w`).
    pub fn split(&self, stacked: &Weights) -> Result<Weights> {
        let mut all = Weights::new();
        for (name, value) in stacked {
            let Some((before, after)) = name.split_once("blocks.") else {
                all.insert(name.clone(), value.clone());
                continue;
            };
            let size = value.bytes().len() / self.transformer.depth;
            for (i, bytes) in value.bytes().chunks(size.max(1)).enumerate() {
                let block = Array::from_bytes(value.dtype(), &value.dims()[1..], bytes.to_vec())?;
                all.insert(format!("{before}blocks.{i}.{after}"), block);
            }
        }
        Ok(all)
    }

    /// The tensor `name` (stacked, of dimensions `dims` with the depth in front where it is of blocks) from the tensors
    /// of a file.
    ///
    /// **Errors** name the tensor that is missing or has another shape or type.
    pub fn stack(&self, name: &str, dims: &[usize], split: &Weights) -> Result<Array> {
        let get = |name: &str, dims: &[usize]| -> Result<&Array> {
            let value = split.get(name).ok_or_else(|| Error::tensor(name, "is missing"))?;
            if value.dims() != dims {
                return Err(Error::tensor(name, format!("has shape {:?}, expected {dims:?}", value.dims())));
            }
            Ok(value)
        };
        let Some((before, after)) = name.split_once("blocks.") else { return get(name, dims).cloned() };
        let mut bytes = Vec::new();
        let mut dtype = None;
        for i in 0..self.transformer.depth {
            let block = get(&format!("{before}blocks.{i}.{after}"), &dims[1..])?;
            if *dtype.get_or_insert(block.dtype()) != block.dtype() {
                return Err(Error::tensor(format!("{before}blocks.{i}.{after}"), "has another dtype than block 0's"));
            }
            bytes.extend_from_slice(block.bytes());
        }
        Ok(Array::from_bytes(dtype.unwrap_or(DType::F32), dims, bytes)?)
    }
}

/// Name of a leaf below its weight's.
fn joined(weight: &str, leaf: &str) -> String {
    if leaf.is_empty() { weight.to_owned() } else { format!("{weight}.{leaf}") }
}

/// The first block's leaves.
fn example(leaves: &[(String, Tensor)]) -> Params {
    leaves.iter().map(|(name, t)| (name.clone(), t.index_in_dim(0, 0))).collect()
}
