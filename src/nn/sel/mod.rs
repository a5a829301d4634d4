//! SymExpLin (SEL): weights stored through a symmetric-exponential and a linear pathway (2607.09967, Section 4).
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Sel`]: all choices, leaves and their start |
//! | `scale.rs` | [`Scale`], [`Pattern`]: how e_w, l_w, m, s, n are stored |
//! | `transform.rs` | the map from leaves to the weight |
//! | `invert.rs` | Newton initialisation, and the inverse under any scales |
//! | `inverse_table.rs` | the inverse for many weights under one set of scales |
//! | `element.rs` | the scales of single elements, from values of leaves |
//! | `width.rs` | beta for a width |
//!
//! ```
//! use sinexp::nn::sel::{Mode, Sel};
//! let sel = Sel::new(8.0).with_mode(Mode::Congruent);
//! let start = sel.initial_point(); // the scales of every element before training
//! // (exp(beta w) - 1) / beta + w / beta at raw weight 0.1 (Eq. 13), and back.
//! let weight = sel.value(&start, 0.1);
//! assert!((weight - (0.8f64.exp_m1() + 0.1) / 8.0).abs() < 1e-15);
//! assert!((sel.invert_point(&start, weight).unwrap() - 0.1).abs() < 1e-15);
//! // Mismatch gives negative weights less: the linear pathway works against them.
//! let mismatch = Sel::new(8.0);
//! assert!((mismatch.value(&start, -0.1) + (0.8f64.exp_m1() - 0.1) / 8.0).abs() < 1e-15);
//! ```

mod element;
mod inverse_table;
mod invert;
mod scale;
mod transform;
mod width;

use std::fmt;
use std::str::FromStr;

pub use element::Elements;
pub use inverse_table::InverseTable;
pub use invert::{Inverse, Point, newton};
use ndarray::ArrayD;
pub use scale::{Pattern, Scale};
use serde::{Deserialize, Serialize};
pub use width::{DEPARTURE, DEPARTURE_AT, beta_for_width};

use self::scale::Placed;
use super::parameterization::{Leaf, LeafValues, Parameterization};
use super::siren::Params;
use crate::error::{Error, Result};
use crate::graph::Tensor;
use crate::optim::Anneal;
use crate::random::Key;

/// How the exponential pathway E and the linear pathway L = w l_w are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// sgn(w) E + L (Eq. 8).
    Congruent,
    /// sgn(w) (E + L): the linear term shrinks negative weights (Eq. 9).
    #[default]
    Mismatch,
    /// sgn(w) E - L (Eq. 16).
    Oppose,
    /// sgn(w) E (Eq. 12).
    ExpOnly,
    /// Eq. 17, which has no scale but n; without one (n = 0) it has no linear pathway either.
    Damped,
    /// e_w sinh(beta m w) + L: smooth at 0.
    Sinh,
    /// e_w sinh(beta m w), as Section 6 writes it.
    SinhOnly,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 7] =
        [Mode::Congruent, Mode::Mismatch, Mode::Oppose, Mode::ExpOnly, Mode::Damped, Mode::Sinh, Mode::SinhOnly];

    /// Name on command lines and in files.
    pub fn id(self) -> &'static str {
        match self {
            Mode::Congruent => "congruent",
            Mode::Mismatch => "mismatch",
            Mode::Oppose => "oppose",
            Mode::ExpOnly => "exp_only",
            Mode::Damped => "damped",
            Mode::Sinh => "sinh",
            Mode::SinhOnly => "sinh_only",
        }
    }

    fn has_linear(self) -> bool {
        !matches!(self, Mode::ExpOnly | Mode::SinhOnly | Mode::Damped)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let names: Vec<&str> = Mode::ALL.iter().map(|m| m.id()).collect();
        let unknown = || Error::argument("mode", name, format!("expected one of {}", names.join(", ")));
        Mode::ALL.into_iter().find(|m| m.id() == name).ok_or_else(unknown)
    }
}

/// A scale that does not start at 1: the shift s or the offset n.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Offset {
    /// Its pattern and group.
    pub scale: Scale,
    /// Its value at the start.
    pub initial: f64,
}

/// The residual Delta = A B of a matrix, outside the sign: A `[d_out, rank]` from N(0, 1 / rank), B `[rank, d_in]` = 0.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Residual {
    /// Rank of A B.
    pub rank: usize,
    /// Learning-rate multiplier times beta: A and B learn at multiplier / beta.
    pub multiplier: f64,
}

/// All choices of the transform of 2607.09967, Appendix A.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sel {
    /// How the pathways are combined in the forward pass. The start is found under the congruent rule whatever it is.
    pub mode: Mode,
    /// Curvature.
    pub beta: f64,
    /// True: e_w and l_w start at 1 / beta. False: a constant 1 / beta stands in front, and they start at 1.
    pub beta_as_mult: bool,
    /// Divide both pathways by m, so that m changes curvature and not the gain near 0.
    pub normalize_by_inner_mult: bool,
    /// m takes beta in and is stored as a logarithm: m = exp(mu), mu starting at ln(beta).
    pub absorb_beta: bool,
    /// e_w.
    pub exp_scale: Scale,
    /// l_w.
    pub linear_scale: Scale,
    /// m.
    pub inner: Scale,
    /// s, where there is one.
    pub shift: Option<Offset>,
    /// n, where there is one.
    pub offset: Option<Offset>,
    /// Delta, where there is one.
    pub residual: Option<Residual>,
    /// sgn(0) = +1, so that a bias that starts at 0 trains. False: sgn(0) = 0, and it never does.
    pub positive_at_zero: bool,
}

impl Sel {
    /// The paper's defaults (Section 5.1): mismatch, row_col_mult scales, e_w and l_w at k 50 -> 8, m at .01 -> .5 and
    /// without decay, no shift, offset or residual.
    pub fn new(beta: f64) -> Self {
        let output =
            |start, end, decay| Scale { pattern: Pattern::RowColMult, multiplier: Anneal { start, end }, decay };
        Sel {
            mode: Mode::Mismatch,
            beta,
            beta_as_mult: true,
            normalize_by_inner_mult: false,
            absorb_beta: false,
            exp_scale: output(50.0, 8.0, true),
            linear_scale: output(50.0, 8.0, true),
            inner: output(0.01, 0.5, false),
            shift: None,
            offset: None,
            residual: None,
            positive_at_zero: true,
        }
    }

    /// This with another mode.
    pub fn with_mode(self, mode: Mode) -> Self {
        Sel { mode, ..self }
    }

    /// This with the offset n (`col`, starting at 0) and a residual of this rank: the paper's "offset + LoRA".
    pub fn with_offset_and_residual(self, rank: usize) -> Self {
        let scale = Scale { pattern: Pattern::Col, multiplier: Anneal::ONE, decay: false };
        let offset = Some(Offset { scale, initial: 0.0 });
        Sel { offset, residual: Some(Residual { rank, multiplier: 0.5 }), ..self }
    }

    /// Whether the choices make sense together.
    ///
    /// **Errors** name the one that does not.
    pub fn check(&self) -> Result<()> {
        if !(self.beta.is_finite() && self.beta > 0.0) {
            return Err(Error::argument("--beta", self.beta, "expected a positive number"));
        }
        if self.residual.is_some_and(|r| r.rank == 0) {
            return Err(Error::argument("--residual", 0, "expected a positive rank"));
        }
        if self.mode == Mode::Damped && self.shift.is_some() {
            return Err(Error::argument("--pattern-s", "s", "mode damped (Eq. 17) has no shift"));
        }
        self.scales().iter().try_for_each(|scale| scale.initial(&[2, 2], Key::new(0)).map(|_| ()))
    }

    /// What the congruent function at the start is divided by, beside the scales: beta or 1.
    fn front(&self) -> f64 {
        if self.beta_as_mult { 1.0 } else { 1.0 / self.beta }
    }

    fn inner_initial(&self) -> f64 {
        if self.absorb_beta { self.beta } else { 1.0 }
    }

    /// Value of e_w and l_w at the start: that which makes the whole factor of either pathway 1 / beta.
    fn outer_initial(&self) -> f64 {
        let normalizer = if self.normalize_by_inner_mult { self.inner_initial() } else { 1.0 };
        normalizer / self.beta / self.front()
    }

    fn exp_placed(&self) -> Placed<'_> {
        Placed { scale: &self.exp_scale, letter: "e", initial: self.outer_initial(), log: false }
    }

    fn linear_placed(&self) -> Placed<'_> {
        Placed { scale: &self.linear_scale, letter: "l", initial: self.outer_initial(), log: false }
    }

    fn inner_placed(&self) -> Placed<'_> {
        Placed { scale: &self.inner, letter: "m", initial: self.inner_initial(), log: self.absorb_beta }
    }

    fn shift_placed(&self) -> Option<Placed<'_>> {
        self.shift.as_ref().map(|s| Placed { scale: &s.scale, letter: "s", initial: s.initial, log: false })
    }

    fn offset_placed(&self) -> Option<Placed<'_>> {
        self.offset.as_ref().map(|n| Placed { scale: &n.scale, letter: "n", initial: n.initial, log: false })
    }

    /// The scales that the mode uses.
    fn scales(&self) -> Vec<Placed<'_>> {
        let mut all = Vec::new();
        if self.mode != Mode::Damped {
            all.push(self.exp_placed());
            if self.mode.has_linear() {
                all.push(self.linear_placed());
            }
            all.push(self.inner_placed());
        }
        if !matches!(self.mode, Mode::Sinh | Mode::SinhOnly) {
            all.extend(self.shift_placed());
            all.extend(self.offset_placed());
        }
        all
    }

    /// All leaves of a weight but `w` at the start of training: what [`Sel::initial_point`] is at every element.
    ///
    /// **Errors** as [`Sel::check`].
    pub fn initial_scales(&self, dims: &[usize], key: Key) -> Result<LeafValues> {
        self.check()?;
        let mut values = LeafValues::new();
        for (i, scale) in self.scales().iter().enumerate() {
            values.extend(scale.initial(dims, key.fold_in(i as u32))?);
        }
        if let Some(Residual { rank, .. }) = self.residual_of(dims) {
            let std = 1.0 / (rank as f64).sqrt();
            let a = key.fold_in(100).normal::<f32>(&[dims[0], rank]).mapv(|x| f64::from(x) * std);
            values.insert("d.A".into(), a);
            values.insert("d.B".into(), ArrayD::zeros(vec![rank, dims[1]]));
        }
        Ok(values)
    }

    /// The residual of a weight of these dimensions; vectors have none.
    fn residual_of(&self, dims: &[usize]) -> Option<Residual> {
        self.residual.filter(|_| dims.len() == 2)
    }
}

impl Parameterization for Sel {
    /// `w`, then `e.*`, `l.*`, `m.*`, `s.*`, `n.*` as far as the mode uses them, then `d.A`, `d.B`.
    fn leaves(&self, dims: &[usize]) -> Vec<Leaf> {
        let mut all = vec![Leaf::new("w", dims)];
        all.extend(self.scales().iter().flat_map(|scale| scale.leaves(dims)));
        if let Some(Residual { rank, multiplier }) = self.residual_of(dims) {
            let multiplier = Anneal::constant(multiplier / self.beta);
            all.push(Leaf { multiplier, ..Leaf::new("d.A", &[dims[0], rank]) });
            all.push(Leaf { multiplier, ..Leaf::new("d.B", &[rank, dims[1]]) });
        }
        all
    }

    fn weight(&self, dims: &[usize], leaves: &Params) -> Tensor {
        self.effective(dims, leaves)
    }

    /// Raw weights by [`newton`] under the congruent rule (Section 4.3), scales at their start.
    ///
    /// **Errors** when the worst residual |f(w) - target| is above 1e-6 of the largest target.
    fn initial(&self, target: &ArrayD<f64>, key: Key) -> Result<LeafValues> {
        let mut values = self.initial_scales(target.shape(), key)?;
        values.insert("w".to_owned(), newton(target, self.beta)?);
        Ok(values)
    }

    /// Means of `e_w`, `l_w` and `m` over the weight, relative to their start (Fig. 6).
    fn tracked(&self, dims: &[usize], leaves: &Params) -> Vec<(&'static str, Tensor)> {
        let name = |letter| match letter {
            "e" => Some("e_w"),
            "l" => Some("l_w"),
            "m" => Some("m"),
            _ => None,
        };
        let scales = self.scales();
        scales.iter().filter_map(|s| Some((name(s.letter)?, s.relative_mean(dims, leaves)))).collect()
    }
}
