//! The command line of the SEL transform.

use clap::Args;

use crate::error::{Error, Result};
use crate::nn::sel::{Mode, Offset, Pattern, Residual, Scale, Sel, beta_for_width};
use crate::optim::Anneal;
use crate::train::language::Projection;

/// Options of the transform.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Transform")]
pub struct SelArguments {
    /// How projections are stored: standard (the baseline), or SEL by mode: congruent, mismatch, oppose, exp_only,
    /// damped, sinh, sinh_only
    #[arg(long, value_name = "MODE", default_value = "mismatch")]
    pub mode: String,
    /// Curvature beta [default: by width, 0.288 sqrt(width)]
    #[arg(long, value_name = "BETA")]
    pub beta: Option<f64>,
    /// Pattern of e_w: global, row, col, row_col_mult, row_col_add, lora, lora:RANK, full
    #[arg(long, value_name = "PATTERN", default_value = "row_col_mult")]
    pub pattern_e: Pattern,
    /// Pattern of l_w
    #[arg(long, value_name = "PATTERN", default_value = "row_col_mult")]
    pub pattern_l: Pattern,
    /// Pattern of m
    #[arg(long, value_name = "PATTERN", default_value = "row_col_mult")]
    pub pattern_m: Pattern,
    /// Adds the offset n with this pattern (the paper: col)
    #[arg(long, value_name = "PATTERN")]
    pub pattern_n: Option<Pattern>,
    /// Adds the shift s with this pattern
    #[arg(long, value_name = "PATTERN")]
    pub pattern_s: Option<Pattern>,
    /// Value of n at the start
    #[arg(long, value_name = "N", default_value_t = 0.0, requires = "pattern_n")]
    pub n0: f64,
    /// Value of s at the start
    #[arg(long, value_name = "S", default_value_t = 0.0, requires = "pattern_s")]
    pub s0: f64,
    /// Adds the residual A B with this rank
    #[arg(long, value_name = "RANK")]
    pub residual: Option<usize>,
    /// Learning-rate multiplier of e_w, START:END or a constant
    #[arg(long, value_name = "K", default_value = "50:8")]
    pub k_e: Anneal,
    /// Learning-rate multiplier of l_w
    #[arg(long, value_name = "K", default_value = "50:8")]
    pub k_l: Anneal,
    /// Learning-rate multiplier of m
    #[arg(long, value_name = "K", default_value = "0.01:0.5")]
    pub k_m: Anneal,
    /// Learning-rate multiplier of n
    #[arg(long, value_name = "K", default_value = "1")]
    pub k_n: Anneal,
    /// Learning-rate multiplier of s
    #[arg(long, value_name = "K", default_value = "1")]
    pub k_s: Anneal,
    /// Learning-rate multiplier of the residual, which is divided by beta
    #[arg(long, value_name = "K", default_value_t = 0.5)]
    pub k_delta: f64,
    /// A constant 1 / beta in front instead of in the start of e_w and l_w
    #[arg(long)]
    pub beta_in_front: bool,
    /// Divides both pathways by m
    #[arg(long)]
    pub normalize_by_inner_mult: bool,
    /// m = exp(mu) takes beta in
    #[arg(long)]
    pub absorb_beta: bool,
}

impl SelArguments {
    /// The parameterisation for a model of this width.
    ///
    /// **Errors** when the mode is unknown or the choices do not fit together.
    pub fn projection(&self, width: usize) -> Result<Projection> {
        if self.mode == "standard" {
            return Ok(Projection::Standard);
        }
        if width == 0 {
            return Err(Error::argument("--width", width, "expected at least 1"));
        }
        let mode: Mode = self.mode.parse().map_err(|_| {
            let names: Vec<&str> = Mode::ALL.iter().map(|m| m.id()).collect();
            Error::argument("--mode", &self.mode, format!("expected standard, {}", names.join(", ")))
        })?;
        if !(self.k_delta > 0.0 && self.k_delta.is_finite()) {
            return Err(Error::argument("--k-delta", self.k_delta, "expected a positive number"));
        }
        let scale = |pattern, multiplier, decay| Scale { pattern, multiplier, decay };
        let offset = |pattern: Option<Pattern>, multiplier, initial| {
            pattern.map(|pattern| Offset { scale: scale(pattern, multiplier, false), initial })
        };
        let sel = Sel {
            mode,
            beta: self.beta.unwrap_or_else(|| beta_for_width(width)),
            beta_as_mult: !self.beta_in_front,
            normalize_by_inner_mult: self.normalize_by_inner_mult,
            absorb_beta: self.absorb_beta,
            exp_scale: scale(self.pattern_e, self.k_e, true),
            linear_scale: scale(self.pattern_l, self.k_l, true),
            inner: scale(self.pattern_m, self.k_m, false),
            shift: offset(self.pattern_s, self.k_s, self.s0),
            offset: offset(self.pattern_n, self.k_n, self.n0),
            residual: self.residual.map(|rank| Residual { rank, multiplier: self.k_delta }),
            positive_at_zero: true,
        };
        sel.check()?;
        Ok(Projection::Sel(sel))
    }
}
