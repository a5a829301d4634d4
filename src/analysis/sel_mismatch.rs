//! What a SEL matrix starts at: the target drawn, the raw weights of the congruent inversion, and the effective weights of
//! another mode (2607.09967, Section 4.3, Figure 12), with the rank-one outlier that a positive mean brings.
//!
//! ```
//! use sinexp::analysis::sel_mismatch::{SelStart, StartSettings, small_weight_ratio};
//! use sinexp::nn::{language_model::Target, sel::Sel};
//! use sinexp::runtime::Device;
//! let settings = StartSettings { sel: Sel::new(8.0), shape: [16, 16], target: Target::XavierUniform, seed: 0 };
//! let start = SelStart::new(&Device::open("cpu")?, settings)?;
//! // Positive weights start at their targets, negative ones below: by (beta - 1) / (beta + 1) where they are small.
//! let [positive, negative, _] = start.by_sign();
//! assert!((positive.mean_ratio - 1.0).abs() < 1e-5);
//! assert!(small_weight_ratio(8.0) < negative.mean_ratio && negative.mean_ratio < 0.9);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use ndarray::{Array1, Array2, ArrayD, Ix2};
use rayon::prelude::*;

use super::distribution::{Described, quantile, sorted};
use super::svd::singular_values;
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::nn::init::Law;
use crate::nn::language_model::Target;
use crate::nn::parameterization::Parameterization;
use crate::nn::sel::{Mode, Sel};
use crate::random::Key;
use crate::runtime::Device;

/// A start to look at.
#[derive(Clone, Debug)]
pub struct StartSettings {
    /// The transform.
    pub sel: Sel,
    /// d_out, d_in.
    pub shape: [usize; 2],
    /// Law of the target.
    pub target: Target,
    /// Seed of the target: its key is `Key::new(seed)`.
    pub seed: u64,
}

/// A matrix at the start.
#[derive(Clone, Debug)]
pub struct SelStart {
    /// What was asked for.
    pub settings: StartSettings,
    /// The matrix drawn, `[d_out, d_in]`.
    pub target: Array2<f64>,
    /// Effective weights, computed in f32 as in training, `[d_out, d_in]`.
    pub actual: Array2<f64>,
    /// Raw weights, `[d_out, d_in]`.
    pub raw: Array2<f64>,
    /// Singular values of the target, largest first.
    pub target_values: Array1<f64>,
    /// Those of the effective weights.
    pub actual_values: Array1<f64>,
}

/// What is said of the weights whose targets have one sign, or of all.
#[derive(Clone, Copy, Debug)]
pub struct BySign {
    /// `positive`, `negative` or `all`.
    pub sign: &'static str,
    /// Weights.
    pub count: usize,
    /// Mean of actual over target.
    pub mean_ratio: f64,
    /// Its 5 % and 95 % quantiles.
    pub band: (f64, f64),
    /// Its smallest and largest value.
    pub ends: (f64, f64),
    /// Mean share of the linear pathway in the sum of both pathways' magnitudes; None where the mode has no such pathway.
    pub linear_share: Option<f64>,
    /// Mean effective weight.
    pub mean: f64,
}

/// Largest singular values against what random matrices have.
#[derive(Clone, Copy, Debug)]
pub struct Outlier {
    /// Mean entry.
    pub mean: f64,
    /// Standard deviation of entries.
    pub std: f64,
    /// Largest singular value.
    pub first: f64,
    /// The next.
    pub second: f64,
    /// End of the bulk of independent entries of this deviation, std (sqrt(d_out) + sqrt(d_in)).
    pub edge: f64,
    /// Where the mean alone puts the largest: sqrt((t^2 + std^2 d_out)(t^2 + std^2 d_in)) / t with t = |mean|
    /// sqrt(d_out d_in), for t above std (d_out d_in)^(1/4); else the edge.
    pub predicted: f64,
}

impl SelStart {
    /// Draws the target, inverts it by Newton's iterations and computes the effective weights.
    ///
    /// **Errors** when the transform is not valid, Newton's iterations do not converge, or a weight is not finite.
    pub fn new(device: &Device, settings: StartSettings) -> Result<Self> {
        let [rows, columns] = settings.shape;
        let law = match settings.target {
            Target::XavierUniform => Law::xavier_uniform(columns, rows),
            Target::XavierNormal => Law::xavier_normal(columns, rows),
        };
        let target = matrix(law.draw(Key::new(settings.seed), &[rows, columns])?.to_ndarray::<f32>()?.mapv(f64::from))?;
        let target_values = singular_values(target.view())?;
        Self::of_target(device, settings, target, target_values)
    }

    /// The same target through another transform.
    ///
    /// **Errors** as [`SelStart::new`].
    pub fn through(&self, device: &Device, sel: Sel) -> Result<Self> {
        let settings = StartSettings { sel, ..self.settings.clone() };
        Self::of_target(device, settings, self.target.clone(), self.target_values.clone())
    }

    fn of_target(
        device: &Device,
        settings: StartSettings,
        target: Array2<f64>,
        target_values: Array1<f64>,
    ) -> Result<Self> {
        let sel = &settings.sel;
        sel.check()?;
        let leaves = sel.initial(&target.clone().into_dyn(), Key::new(settings.seed).fold_in(1))?;
        let input =
            |(name, value): (&String, &ArrayD<f64>)| Tensor::parameter(name, Shape::new(DType::F32, value.shape()));
        let inputs: Vec<Tensor> = leaves.iter().map(input).collect();
        let params = leaves.keys().cloned().zip(inputs.iter().cloned()).collect();
        let weight = sel.effective(&settings.shape, &params);
        let program = device.compile(&Program::new("sel_start", &inputs, &[("w_eff", weight)])?)?;
        let values: Vec<Array> = leaves.values().map(|v| Array::from_ndarray(&v.mapv(|x| x as f32))).collect();
        let actual = program.call(&values.iter().collect::<Vec<_>>())?.swap_remove(0);
        let actual = matrix(actual.to_ndarray::<f32>()?.mapv(f64::from))?;
        let actual_values = singular_values(actual.view())?;
        Ok(SelStart { raw: matrix(leaves["w"].clone())?, settings, target, actual, target_values, actual_values })
    }

    /// Target and actual weights whose target is positive, or negative.
    pub fn pairs(&self, positive: bool) -> Vec<(f64, f64)> {
        let both = self.target.iter().copied().zip(self.actual.iter().copied());
        both.filter(|(target, _)| if positive { *target > 0.0 } else { *target < 0.0 }).collect()
    }

    /// Actual over target for these.
    pub fn ratios(&self, positive: bool) -> Vec<f64> {
        self.pairs(positive).into_iter().map(|(target, actual)| actual / target).collect()
    }

    /// The table's rows: positive, negative, all.
    pub fn by_sign(&self) -> [BySign; 3] {
        let row = |sign, keep: &dyn Fn(f64) -> bool| {
            let kept: Vec<(f64, f64, f64)> = self
                .target
                .iter()
                .zip(&self.actual)
                .zip(&self.raw)
                .map(|((t, a), w)| (*t, *a, *w))
                .filter(|(t, ..)| *t != 0.0 && keep(*t))
                .collect();
            let ratios = sorted(kept.iter().map(|(t, a, _)| a / t));
            let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / kept.len() as f64;
            BySign {
                sign,
                count: kept.len(),
                mean_ratio: mean(&mut ratios.iter().copied()),
                band: (quantile(&ratios, 0.05), quantile(&ratios, 0.95)),
                ends: (quantile(&ratios, 0.0), quantile(&ratios, 1.0)),
                linear_share: self.linear_shares(kept.iter().map(|k| k.2).collect()),
                mean: mean(&mut kept.iter().map(|k| k.1)),
            }
        };
        [row("positive", &|t| t > 0.0), row("negative", &|t| t < 0.0), row("all", &|_| true)]
    }

    /// Mean share of the linear pathway at these raw weights: what the mode without it lacks.
    fn linear_shares(&self, raw: Vec<f64>) -> Option<f64> {
        let sel = &self.settings.sel;
        let (with, without) = match sel.mode {
            Mode::Congruent | Mode::Mismatch | Mode::Oppose => (Mode::Congruent, Mode::ExpOnly),
            Mode::Sinh => (Mode::Sinh, Mode::SinhOnly),
            Mode::ExpOnly | Mode::SinhOnly | Mode::Damped => return None,
        };
        let (with, without) = (sel.clone().with_mode(with), sel.clone().with_mode(without));
        let point = sel.initial_point();
        let share = |w: &f64| {
            let exponential = without.value(&point, *w);
            let linear = with.value(&point, *w) - exponential;
            linear.abs() / (linear.abs() + exponential.abs())
        };
        let total: f64 = raw.par_iter().filter(|w| **w != 0.0).map(share).sum();
        Some(total / raw.iter().filter(|w| **w != 0.0).count() as f64)
    }

    /// Singular values of target and actual weights.
    pub fn outliers(&self) -> [(&'static str, Outlier); 2] {
        let one = |matrix: &Array2<f64>, values: &Array1<f64>| {
            let entries: Vec<f64> = matrix.iter().copied().collect();
            let Described { mean, std, .. } = Described::of(&entries);
            let (rows, columns) = (matrix.nrows() as f64, matrix.ncols() as f64);
            let (edge, spike) = (std * (rows.sqrt() + columns.sqrt()), mean.abs() * (rows * columns).sqrt());
            let above = spike > std * (rows * columns).sqrt().sqrt();
            let squares = (spike.powi(2) + std * std * rows) * (spike.powi(2) + std * std * columns);
            let predicted = if above { squares.sqrt() / spike } else { edge };
            let value = |i: usize| values.get(i).copied().unwrap_or(f64::NAN);
            Outlier { mean, std, first: value(0), second: value(1), edge, predicted }
        };
        [("target", one(&self.target, &self.target_values)), ("actual", one(&self.actual, &self.actual_values))]
    }

    /// Mean of |actual / target| over negative targets, divided by that over positive ones.
    pub fn sign_ratio(&self) -> f64 {
        let [positive, negative, _] = self.by_sign();
        negative.mean_ratio / positive.mean_ratio
    }
}

/// The ratio of negative to positive weights in mismatch mode as weights go to 0: (beta - 1) / (beta + 1).
pub fn small_weight_ratio(beta: f64) -> f64 {
    (beta - 1.0) / (beta + 1.0)
}

fn matrix(values: ArrayD<f64>) -> Result<Array2<f64>> {
    values.into_dimensionality::<Ix2>().map_err(|e| Error::numeric("matrix", e))
}
