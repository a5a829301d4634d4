//! The decoder-only transformer of 2607.09967, Section 5.1, in graph operations.
//!
//! Pre-norm blocks: RMSNorm, causal attention with QK-norm and RoPE, GeGLU feed-forward, residuals; a last RMSNorm and
//! an output head. Matrices are `(d_out, d_in)`. The weights of all blocks are stacked, `blocks.q.W` `[depth, d, d]`,
//! and one loop runs over them: the program has the size of one block whatever the depth.
//!
//! ```
//! use sinexp::nn::language_model::LanguageModel;
//! use sinexp::nn::sel::Sel;
//! use sinexp::nn::transformer::Transformer;
//! let transformer = Transformer { heads: 4, ..Transformer::new(256, 64, 2) };
//! let model = LanguageModel::new(transformer, Sel::new(7.5));
//! // Every projection is its raw weight and its scales, stacked over blocks.
//! assert!(model.parameters().iter().any(|p| p.name == "blocks.q.W.w" && p.dims == [2, 64, 64]));
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::siren::Params;
use crate::array::DType;
use crate::graph::{DotDims, Precision, Shape, Tensor, checkpoint, concatenate, name_scope, scan};

/// The projections of a block, in the order of use; each has a matrix `W` and a bias `b`.
pub const PROJECTIONS: [&str; 6] = ["q", "k", "v", "o", "ff1", "ff2"];

/// Sizes and choices of a transformer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transformer {
    /// Tokens known.
    pub vocabulary: usize,
    /// Width d.
    pub width: usize,
    /// Blocks.
    pub depth: usize,
    /// Attention heads; their dimension is width / heads.
    pub heads: usize,
    /// Hidden width of the feed-forward layer; `ff1` holds gate and value, so it has twice as many rows.
    pub hidden: usize,
    /// Whether the output head is the embedding.
    pub tied: bool,
    /// Whether the blocks are loop iterations over stacked weights (true), or printed one after another.
    pub looped: bool,
    /// Whether a block's values are computed again in the reverse pass instead of kept (`jax.checkpoint`).
    pub remat: bool,
}

/// A weight of the model, as the model uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// Name: `emb`, `blocks.q.W`. Blocks are stacked along a first dimension that `dims` does not have.
    pub name: String,
    /// Dimensions, of one block where there are several.
    pub dims: Vec<usize>,
    /// Whether there is one per block.
    pub stacked: bool,
    /// What it is.
    pub kind: Kind,
}

/// What a weight is: decides its start and its optimiser group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Matrix or bias of a projection: goes through the parameterisation.
    Projection,
    /// Embedding or head.
    Table,
    /// Gain of an RMSNorm: starts at 1, no weight decay.
    Gain,
}

/// Epsilon of every RMSNorm.
const NORM_EPS: f64 = 1e-6;
/// Base of the rotary frequencies.
const ROPE_BASE: f64 = 10_000.0;

impl Transformer {
    /// A model with head dimension 64 (or one head where the width is below), hidden 8/3 d rounded to the nearest
    /// multiple of 64, untied head, looped blocks without rematerialisation.
    pub fn new(vocabulary: usize, width: usize, depth: usize) -> Self {
        Transformer {
            vocabulary,
            width,
            depth,
            heads: (width / 64).max(1),
            hidden: hidden_for_width(width),
            tied: false,
            looped: true,
            remat: false,
        }
    }

    /// Dimension of one head.
    pub fn head_dim(&self) -> usize {
        self.width / self.heads
    }

    /// Every weight, in the order of use.
    pub fn weights(&self) -> Vec<Weight> {
        let (d, hidden) = (self.width, self.hidden);
        let one =
            |name: &str, dims: &[usize], kind| Weight { name: name.into(), dims: dims.to_vec(), stacked: false, kind };
        let block = |name: &str, dims: &[usize], kind| Weight {
            name: format!("blocks.{name}"),
            dims: dims.to_vec(),
            stacked: true,
            kind,
        };
        let mut all = vec![one("emb", &[self.vocabulary, d], Kind::Table)];
        let gains = [("norm1", d), ("norm2", d), ("qn", self.head_dim()), ("kn", self.head_dim())];
        all.extend(gains.map(|(name, n)| block(name, &[n], Kind::Gain)));
        for name in PROJECTIONS {
            let (outputs, inputs) = match name {
                "ff1" => (2 * hidden, d),
                "ff2" => (d, hidden),
                _ => (d, d),
            };
            all.push(block(&format!("{name}.W"), &[outputs, inputs], Kind::Projection));
            all.push(block(&format!("{name}.b"), &[outputs], Kind::Projection));
        }
        all.push(one("normf", &[d], Kind::Gain));
        if !self.tied {
            all.push(one("head", &[self.vocabulary, d], Kind::Table));
        }
        all
    }

    /// Logits `[batch, sequence, vocabulary]` for `tokens` `i32[batch, sequence]`.
    ///
    /// `weights` are those of [`Transformer::weights`], f32 or f64. Activations are of type `activations`; norms,
    /// softmax and logits are computed in the weights' type.
    #[track_caller]
    pub fn logits(&self, weights: &Params, tokens: &Tensor, activations: DType) -> Tensor {
        let (batch, sequence) = (tokens.dims()[0], tokens.dims()[1]);
        let precise = weights["emb"].dtype();
        // Matrices become activations' type once, before the loop.
        let cast: Params = weights
            .iter()
            .map(|(name, w)| {
                let matrix = name.ends_with(".W") || name == "emb" || name == "head";
                (name.clone(), if matrix { w.convert(activations) } else { w.clone() })
            })
            .collect();
        let rope = name_scope("rope", || Rope::new(sequence, self.head_dim(), precise));
        let mut h = name_scope("embedding", || cast["emb"].take(tokens, 0));
        let names: Vec<&String> = cast.keys().filter(|name| name.starts_with("blocks.")).collect();
        let stacks: Vec<Tensor> = names.iter().map(|name| cast[*name].clone()).collect();
        let block = |h: &Tensor, slices: &[Tensor]| -> Tensor {
            let run = |arguments: &[Tensor]| {
                let short = |name: &&String| name.trim_start_matches("blocks.").to_owned();
                let named = names.iter().map(short).zip(arguments[1..].iter().cloned()).collect();
                vec![self.block(&arguments[0], &named, &rope)]
            };
            let arguments = [&[h.clone()], slices].concat();
            let results = if self.remat { checkpoint(&arguments, run) } else { run(&arguments) };
            results[0].clone()
        };
        if self.looped {
            h = name_scope("blocks", || {
                scan(&[h], &stacks, None, false, |c, s| (vec![block(&c[0], s)], vec![])).0.remove(0)
            });
        } else {
            let unstacked: Vec<Vec<Tensor>> = stacks.iter().map(|t| t.split(self.depth, 0)).collect();
            for i in 0..self.depth {
                let slices: Vec<Tensor> = unstacked.iter().map(|blocks| blocks[i].squeeze(0)).collect();
                h = name_scope(&format!("blocks/{i}"), || block(&h, &slices));
            }
        }
        name_scope("head", || {
            let h = rms_norm(&h, &weights["normf"]);
            let head = if self.tied { &cast["emb"] } else { &cast["head"] };
            let flat = h.reshape(&[batch * sequence, self.width]);
            let dims = DotDims { lhs_contract: vec![1], rhs_contract: vec![1], ..DotDims::default() };
            let logits = flat.dot_general(head, dims, Precision::Default, precise);
            logits.reshape(&[batch, sequence, self.vocabulary])
        })
    }

    /// Mean cross-entropy in nats of predicting `tokens` `i32[batch, sequence + 1]`, each from those before it.
    #[track_caller]
    pub fn loss(&self, weights: &Params, tokens: &Tensor, activations: DType) -> Tensor {
        let (batch, length) = (tokens.dims()[0], tokens.dims()[1]);
        let inputs = tokens.slice_in_dim(1, 0, length - 1);
        let targets = tokens.slice_in_dim(1, 1, length);
        let logits = self.logits(weights, &inputs, activations);
        name_scope("loss", || {
            let positions = batch * (length - 1);
            cross_entropy(&logits.reshape(&[positions, self.vocabulary]), &targets.reshape(&[positions]))
        })
    }

    /// One block: `h` `[batch, sequence, d]`, its weights by short name.
    fn block(&self, h: &Tensor, w: &BTreeMap<String, Tensor>, rope: &Rope) -> Tensor {
        let attended = name_scope("attention", || {
            let x = rms_norm(h, &w["norm1"]);
            let heads = |name: &str| {
                let dims = [h.dims()[0], h.dims()[1], self.heads, self.head_dim()];
                linear(&x, &w[&format!("{name}.W")], &w[&format!("{name}.b")]).reshape(&dims)
            };
            let q = rope.rotate(&rms_norm(&heads("q"), &w["qn"]));
            let k = rope.rotate(&rms_norm(&heads("k"), &w["kn"]));
            let mixed = causal_attention(&q, &k, &heads("v"), rope.cos.dtype());
            linear(&mixed.reshape(h.dims()), &w["o.W"], &w["o.b"])
        });
        let h = h + attended;
        let fed = name_scope("feed_forward", || {
            let x = rms_norm(&h, &w["norm2"]);
            let both = linear(&x, &w["ff1.W"], &w["ff1.b"]).split(2, 2);
            linear(&(both[0].gelu(false) * &both[1]), &w["ff2.W"], &w["ff2.b"])
        });
        h + fed
    }

    /// Dimensions of a weight of all blocks: with the depth in front where there is one per block.
    pub fn full_dims(&self, w: &Weight) -> Vec<usize> {
        let front: &[usize] = if w.stacked { &[self.depth] } else { &[] };
        [front, &w.dims].concat()
    }

    /// Trained numbers in the effective weights.
    pub fn size(&self) -> usize {
        self.weights().iter().map(|w| self.full_dims(w).iter().product::<usize>()).sum()
    }

    /// Floating-point operations of one training step per token: 6 per matrix entry and the attention's products.
    pub fn flops_per_token(&self, sequence: usize) -> f64 {
        let matrices = |w: &&Weight| w.dims.len() == 2 && w.name != "emb";
        let entries = |w: &Weight| self.full_dims(w).iter().product::<usize>() as f64;
        let products: f64 = self.weights().iter().filter(matrices).map(entries).sum();
        6.0 * products + 12.0 * (self.depth * self.width * sequence) as f64
    }
}

/// Hidden width of GeGLU: 8/3 d rounded to the nearest multiple of 64.
pub fn hidden_for_width(width: usize) -> usize {
    ((8.0 / 3.0 * width as f64 / 64.0).round() as usize).max(1) * 64
}

/// x W^T + b over the last dimension; the sum is in the bias's type.
fn linear(x: &Tensor, w: &Tensor, b: &Tensor) -> Tensor {
    let dims = DotDims { lhs_contract: vec![x.rank() - 1], rhs_contract: vec![1], ..DotDims::default() };
    let product = x.dot_general(w, dims, Precision::Default, b.dtype());
    (product + b).convert(x.dtype())
}

/// `x / sqrt(mean(x^2) + 1e-6) * gain` over the last dimension, computed in the gain's type.
fn rms_norm(x: &Tensor, gain: &Tensor) -> Tensor {
    let precise = x.convert(gain.dtype());
    let last = x.rank() - 1;
    let scale = (precise.square().mean(&[last]) + NORM_EPS).rsqrt().expand_dims(last);
    (precise * scale * gain).convert(x.dtype())
}

/// softmax(q k^T / sqrt(head_dim)) v where no position sees a later one; `[batch, sequence, heads, head_dim]`.
fn causal_attention(q: &Tensor, k: &Tensor, v: &Tensor, precise: DType) -> Tensor {
    let (sequence, head_dim) = (q.dims()[1], q.dims()[3]);
    let dims = DotDims { lhs_batch: vec![0, 2], rhs_batch: vec![0, 2], lhs_contract: vec![3], rhs_contract: vec![3] };
    let scores = q.dot_general(k, dims, Precision::Default, precise) / (head_dim as f64).sqrt();
    let position = |dim| Tensor::iota(Shape::new(DType::I32, &[sequence, sequence]), dim);
    let visible = position(0).ge(&position(1));
    let weights = visible.select(&scores, &scores.full_like(-1e30)).softmax(3).convert(v.dtype());
    let dims = DotDims { lhs_batch: vec![0, 1], rhs_batch: vec![0, 2], lhs_contract: vec![3], rhs_contract: vec![1] };
    let mixed = weights.dot_general(v, dims, Precision::Default, v.dtype());
    mixed.transpose(&[0, 2, 1, 3])
}

/// Mean of -log softmax(logits)[target] over rows.
fn cross_entropy(logits: &Tensor, targets: &Tensor) -> Tensor {
    let classes = Tensor::iota(Shape::new(targets.dtype(), logits.dims()), 1);
    let chosen = targets.expand_dims(1).eq(&classes).select(logits, &logits.zeros_like()).sum(&[1]);
    (logits.logsumexp(1) - chosen).mean_all()
}

/// Rotary position encoding (RoFormer) in the half-split form: dimensions i and i + head_dim / 2 turn together.
struct Rope {
    /// `[sequence, 1, head_dim / 2]`.
    cos: Tensor,
    sin: Tensor,
}

impl Rope {
    fn new(sequence: usize, head_dim: usize, dtype: DType) -> Self {
        let half = head_dim / 2;
        let shape = Shape::new(dtype, &[sequence, 1, half]);
        let exponent = Tensor::iota(shape.clone(), 2) * (-2.0 / head_dim as f64);
        let frequency = exponent.full_like(ROPE_BASE).pow(&exponent);
        let angle = Tensor::iota(shape, 0) * frequency;
        Rope { cos: angle.cos(), sin: angle.sin() }
    }

    /// `x` `[batch, sequence, heads, head_dim]` turned by its position.
    fn rotate(&self, x: &Tensor) -> Tensor {
        let halves = x.convert(self.cos.dtype()).split(2, 3);
        let (a, b) = (&halves[0], &halves[1]);
        let turned = [a * &self.cos - b * &self.sin, a * &self.sin + b * &self.cos];
        concatenate(&turned, 3).convert(x.dtype())
    }
}
