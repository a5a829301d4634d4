//! The coordinate network of the SIREN papers, in graph operations.
//!
//! f = g_out . h . g_in (2609.30633, Section 1): an input layer sin(omega0 (W.0 x + b.0)), L hidden layers
//! sin(omega_h (W.l x + b.l)) for l = 1 .. L, and a linear output layer W.{L+1} h_L + b.{L+1}. Matrices are
//! `(d_out, d_in)`; omega multiplies the bias too. The baselines of the paper's experiments differ only in the
//! activation and in a fixed positional encoding before the input layer.
//!
//! ```
//! use sinexp::array::DType;
//! use sinexp::graph::{Shape, Tensor};
//! use sinexp::nn::siren::Siren;
//! let siren = Siren::new(2, 16, 3, 1);
//! let params = siren.inputs(DType::F32);
//! let x = Tensor::parameter("x", Shape::new(DType::F32, &[100, 2]));
//! assert_eq!(siren.apply(&params, &x).dims(), [100, 1]);
//! assert_eq!(siren.layers(&params, &x).activations.len(), 4); // h_0 .. h_3
//! ```

use std::collections::BTreeMap;

use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Shape, Tensor, concatenate, name_scope};

/// Tensors by name: `W.0`, `b.0` ... as in the safetensors files.
pub type Params = BTreeMap<String, Tensor>;

/// What follows each affine map but the last.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Activation {
    /// sin(omega z), with omega0 in the input layer and omega_h in the hidden ones.
    Sine,
    /// tanh(z).
    Tanh,
    /// max(z, 0).
    Relu,
    /// z logistic(z).
    Silu,
    /// GELU, by its tanh approximation (JAX's default) or exactly.
    Gelu {
        /// Whether the tanh approximation.
        approximate: bool,
    },
}

/// Sizes and kind of a network.
#[derive(Clone, PartialEq, Debug)]
pub struct Siren {
    /// Dimension of the coordinates, N_in.
    pub inputs: usize,
    /// Width N of every layer.
    pub width: usize,
    /// Hidden layers L after the input layer.
    pub hidden: usize,
    /// Dimension of the field, N_out.
    pub outputs: usize,
    /// The nonlinearity.
    pub activation: Activation,
    /// Rows of the fixed positional encoding matrix `pe`, (rows, N_in); 0 for none.
    pub encoding: usize,
    /// Whether the output layer has a bias.
    pub output_bias: bool,
}

/// A network's values at one input, layer by layer.
pub struct Layers {
    /// h_0 (the input layer's output), h_1 .. h_L.
    pub activations: Vec<Tensor>,
    /// f(x).
    pub output: Tensor,
}

impl Siren {
    /// A sine network without encoding, with an output bias.
    pub fn new(inputs: usize, width: usize, hidden: usize, outputs: usize) -> Self {
        Siren { inputs, width, hidden, outputs, activation: Activation::Sine, encoding: 0, output_bias: true }
    }

    /// Names and dimensions of the trainable parameters, input layer first.
    pub fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        let mut all = Vec::new();
        for l in 0..self.hidden + 2 {
            let fan_in = self.fan_in(l);
            let fan_out = if l == self.hidden + 1 { self.outputs } else { self.width };
            all.push((format!("W.{l}"), vec![fan_out, fan_in]));
            if l <= self.hidden || self.output_bias {
                all.push((format!("b.{l}"), vec![fan_out]));
            }
        }
        all
    }

    /// Columns of `W.{layer}`.
    pub fn fan_in(&self, layer: usize) -> usize {
        match layer {
            0 if self.encoding > 0 => 2 * self.encoding,
            0 => self.inputs,
            _ => self.width,
        }
    }

    /// One graph input per trainable parameter, named as in the files.
    pub fn inputs(&self, dtype: DType) -> Params {
        let input = |(name, dims): (String, Vec<usize>)| {
            let t = Tensor::parameter(&name, Shape::new(dtype, &dims));
            (name, t)
        };
        self.parameters().into_iter().map(input).collect()
    }

    /// The network that a set of weights belongs to, from their names and shapes: consecutive `W.l`, a `pe` where there
    /// is an encoding. The activation is not in the weights and stays sine.
    ///
    /// **Errors** name the tensor that is missing or does not fit.
    pub fn from_weights(weights: &BTreeMap<String, Array>) -> Result<Self> {
        let matrix = |name: &str| -> Result<Option<(usize, usize)>> {
            match weights.get(name).map(Array::dims) {
                None => Ok(None),
                Some(&[rows, columns]) => Ok(Some((rows, columns))),
                Some(dims) => Err(Error::tensor(name, format!("shape {dims:?}, expected a matrix (d_out, d_in)"))),
            }
        };
        let missing =
            |name: &str| Error::tensor(name, "missing; a SIREN has W.0 (input), W.1 .. W.L (hidden), W.{L+1}");
        let mut shapes = Vec::new();
        while let Some(shape) = matrix(&format!("W.{}", shapes.len()))? {
            shapes.push(shape);
        }
        if shapes.len() < 2 {
            return Err(missing(&format!("W.{}", shapes.len())));
        }
        let encoding = matrix("pe")?;
        let last = shapes.len() - 1;
        let siren = Siren {
            inputs: encoding.map_or(shapes[0].1, |(_, columns)| columns),
            width: shapes[0].0,
            hidden: shapes.len() - 2,
            outputs: shapes[last].0,
            activation: Activation::Sine,
            encoding: encoding.map_or(0, |(rows, _)| rows),
            output_bias: weights.contains_key(&format!("b.{last}")),
        };
        for (name, dims) in siren.parameters() {
            let found = weights.get(&name).ok_or_else(|| missing(&name))?;
            if found.dims() != dims {
                let reason =
                    format!("shape {:?}, expected {dims:?} in a network of width {}", found.dims(), siren.width);
                return Err(Error::tensor(name, reason));
            }
        }
        Ok(siren)
    }

    /// Every layer's value at `x`: `[N_in]`, or `[batch, N_in]` for a batch. `params` holds the trainable parameters, `pe`
    /// with an encoding, and scalars `omega0`, `omega_h` where they are not 1.
    ///
    /// **Panics** when a parameter is missing or does not fit: check files with [`Siren::from_weights`] first.
    #[track_caller]
    pub fn layers(&self, params: &Params, x: &Tensor) -> Layers {
        let get = |name: &str| match params.get(name) {
            Some(t) => t,
            None => panic!("parameter `{name}` is missing"),
        };
        let last_dim = x.rank() - 1;
        let affine = |x: &Tensor, l: usize| {
            let product = x.tensordot(get(&format!("W.{l}")), &[last_dim], &[1]);
            params.get(&format!("b.{l}")).map_or_else(|| product.clone(), |b| &product + b)
        };
        let mut h = x.clone();
        if self.encoding > 0 {
            let angle = x.tensordot(get("pe"), &[last_dim], &[1]) * std::f64::consts::TAU;
            h = concatenate(&[angle.sin(), angle.cos()], last_dim);
        }
        let mut activations = Vec::new();
        for l in 0..=self.hidden {
            let omega = params.get(if l == 0 { "omega0" } else { "omega_h" });
            h = name_scope(&format!("layer{l}"), || self.activate(&affine(&h, l), omega));
            activations.push(h.clone());
        }
        let output = name_scope("output", || affine(&h, self.hidden + 1));
        Layers { activations, output }
    }

    /// f(x): `[N_out]` or `[batch, N_out]`. See [`Siren::layers`].
    #[track_caller]
    pub fn apply(&self, params: &Params, x: &Tensor) -> Tensor {
        self.layers(params, x).output
    }

    fn activate(&self, z: &Tensor, omega: Option<&Tensor>) -> Tensor {
        match self.activation {
            Activation::Sine => omega.map_or_else(|| z.clone(), |omega| omega * z).sin(),
            Activation::Tanh => z.tanh(),
            Activation::Relu => z.relu(),
            Activation::Silu => z.silu(),
            Activation::Gelu { approximate } => z.gelu(approximate),
        }
    }
}
