//! Structured scales: the factors e_w, l_w, m, s and n, each with a factorisation pattern (2607.09967, Section 4.4).

use std::fmt;
use std::str::FromStr;

use ndarray::{ArrayD, IxDyn};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::graph::Tensor;
use crate::nn::parameterization::{Leaf, LeafValues};
use crate::nn::siren::Params;
use crate::optim::Anneal;
use crate::random::Key;

/// How a scale over a matrix `[d_out, d_in]` is stored.
///
/// For a bias `[d_out]`, `Global` and `Col` (a bias has no input axis) are one scalar, all others one vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One scalar, `g`.
    Global,
    /// One number per output, `r` `[d_out]`.
    Row,
    /// One number per input, `c` `[d_in]`.
    Col,
    /// r c^T.
    RowColMult,
    /// r + c. Has a gauge freedom: a constant moves between r and c.
    RowColAdd,
    /// g + A B with A `[d_out, rank]` drawn from N(0, 1 / rank) and B `[rank, d_in]` = 0.
    Lora(
        /// Rank.
        usize,
    ),
    /// One number per element, `f`.
    Full,
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "global" => Pattern::Global,
            "row" => Pattern::Row,
            "col" => Pattern::Col,
            "row_col_mult" => Pattern::RowColMult,
            "row_col_add" => Pattern::RowColAdd,
            "full" => Pattern::Full,
            "lora" => Pattern::Lora(4),
            _ => match text.strip_prefix("lora:").and_then(|rank| rank.parse().ok()) {
                Some(rank) if rank > 0 => Pattern::Lora(rank),
                _ => {
                    let expected = "expected global, row, col, row_col_mult, row_col_add, lora, lora:RANK or full";
                    return Err(Error::argument("pattern", text, expected));
                }
            },
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Global => write!(f, "global"),
            Pattern::Row => write!(f, "row"),
            Pattern::Col => write!(f, "col"),
            Pattern::RowColMult => write!(f, "row_col_mult"),
            Pattern::RowColAdd => write!(f, "row_col_add"),
            Pattern::Lora(rank) => write!(f, "lora:{rank}"),
            Pattern::Full => write!(f, "full"),
        }
    }
}

/// One scale's pattern and optimiser group.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Scale {
    /// How it is stored.
    pub pattern: Pattern,
    /// Learning-rate multiplier k(t).
    pub multiplier: Anneal,
    /// Whether weight decay applies.
    pub decay: bool,
}

/// A scale of one weight: its letter, its value at the start, and whether it is stored as a logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub scale: &'a Scale,
    /// `e`, `l`, `m`, `s` or `n`.
    pub letter: &'static str,
    pub initial: f64,
    /// Each component is stored as its logarithm.
    pub log: bool,
}

impl Placed<'_> {
    /// Names and dimensions of what is stored.
    fn parts(&self, dims: &[usize]) -> Vec<(&'static str, Vec<usize>)> {
        let (rows, columns) = (dims[0], dims[dims.len() - 1]);
        match (self.scale.pattern, dims.len()) {
            (Pattern::Global, _) | (Pattern::Col, 1) => vec![("g", vec![])],
            (_, 1) | (Pattern::Row, _) => vec![("r", vec![rows])],
            (Pattern::Col, _) => vec![("c", vec![columns])],
            (Pattern::RowColMult | Pattern::RowColAdd, _) => vec![("r", vec![rows]), ("c", vec![columns])],
            (Pattern::Lora(rank), _) => vec![("g", vec![]), ("A", vec![rows, rank]), ("B", vec![rank, columns])],
            (Pattern::Full, _) => vec![("f", dims.to_vec())],
        }
    }

    pub(super) fn leaves(&self, dims: &[usize]) -> Vec<Leaf> {
        let leaf = |(name, dims): (&str, Vec<usize>)| Leaf {
            name: format!("{}.{name}", self.letter),
            dims,
            multiplier: self.scale.multiplier,
            decay: self.scale.decay,
        };
        self.parts(dims).into_iter().map(leaf).collect()
    }

    /// The scale, of a shape that broadcasts against the weight.
    pub(super) fn value(&self, dims: &[usize], leaves: &Params) -> Tensor {
        let part = |name: &str| leaves[&format!("{}.{name}", self.letter)].clone();
        let unlog = |t: Tensor| if self.log { t.exp() } else { t };
        let (row, col) = (|| part("r").expand_dims(1), || part("c").expand_dims(0));
        match (self.scale.pattern, dims.len()) {
            (Pattern::Global, _) | (Pattern::Col, 1) => unlog(part("g")),
            (_, 1) => unlog(part("r")),
            (Pattern::Row, _) => unlog(row()),
            (Pattern::Col, _) => unlog(col()),
            // As a matrix product: its derivatives by r and c are then products with vectors, not sums over broadcasts.
            (Pattern::RowColMult, _) => unlog(row()).matmul(&unlog(col())),
            (Pattern::RowColAdd, _) => unlog(row()) + unlog(col()),
            (Pattern::Lora(_), _) => unlog(part("g") + part("A").matmul(&part("B"))),
            (Pattern::Full, _) => unlog(part("f")),
        }
    }

    /// Mean over the weight's elements, relative to the value at the start.
    pub(super) fn relative_mean(&self, dims: &[usize], leaves: &Params) -> Tensor {
        let value = self.value(dims, leaves);
        // A product of a row and a column, or a row or a column, broadcast: the mean over what there is is the mean.
        value.mean_all() / self.initial
    }

    /// Values of the parts at the start: the square root of the initial value in each factor of a product, the value and
    /// 0 in the terms of a sum (half of it each where the terms are logarithms).
    ///
    /// **Errors** when the pattern would keep the scale where it starts for ever, or its root does not exist.
    pub(super) fn initial(&self, dims: &[usize], key: Key) -> Result<LeafValues> {
        let v = self.initial;
        let two = self.parts(dims).len() == 2;
        let product = two && self.scale.pattern == Pattern::RowColMult;
        if product && v <= 0.0 {
            let reason = format!("starts `{}` at {v}, where both factors would be dead: use col or row", self.letter);
            return Err(Error::argument(format!("--pattern-{}", self.letter), self.scale.pattern, reason));
        }
        let first = match (product, two && self.log) {
            (true, _) => v.sqrt(),
            (_, true) => v / 2.0,
            _ => v,
        };
        let stored = |x: f64| if self.log { x.ln() } else { x };
        let mut values = LeafValues::new();
        for leaf in self.leaves(dims) {
            let shape = IxDyn(&leaf.dims);
            let value = match leaf.name.rsplit('.').next() {
                Some("A") => {
                    let std = 1.0 / (leaf.dims[1] as f64).sqrt();
                    key.normal::<f32>(&leaf.dims).mapv(|x| f64::from(x) * std)
                }
                Some("B") => ArrayD::zeros(shape),
                Some("c") if two && !product && !self.log => ArrayD::zeros(shape),
                _ => ArrayD::from_elem(shape, stored(first)),
            };
            values.insert(leaf.name, value);
        }
        Ok(values)
    }
}
