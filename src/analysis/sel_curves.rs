//! The SEL transform by itself: curves of effective over raw weights, each from both of the library's forms of it,
//! [`Sel::value`] on numbers and [`Sel::effective`] compiled (2607.09967, Figures 2, 3, 10, 11).
//!
//! ```
//! use sinexp::analysis::sel_curves::{Request, at_start, curves};
//! use sinexp::{nn::sel::Mode, runtime::Device};
//! let sel = at_start(Mode::Mismatch, 8.0, 0.0);
//! let request = Request { figure: "mine", panel: 0, label: "mismatch".into(), sel, range: 0.3 };
//! let (found, _) = curves(&Device::open("cpu")?, vec![request])?;
//! // The linear pathway |w| / beta is added to positive weights and taken from the size of negative ones (Eq. 9).
//! let ((_, negative), (w, positive)) = (found[0].points[0], found[0].points[400]);
//! assert!((positive + negative - 2.0 * w / 8.0).abs() < 1e-12);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use ndarray::ArrayD;

use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::nn::parameterization::Parameterization;
use crate::nn::sel::{Mode, Offset, Pattern, Scale, Sel};
use crate::optim::Anneal;
use crate::random::Key;
use crate::runtime::Device;

/// Raw weights in a curve.
pub const POINTS: usize = 401;

/// Largest difference of the two forms, relative to the larger of the weight and 1, above which curves are refused.
pub const TOLERANCE: f64 = 1e-12;

/// A transform to draw, and over which raw weights.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which figure: `fig2` ...
    pub figure: &'static str,
    /// Which of its panels, from 0.
    pub panel: usize,
    /// What the curve is called there.
    pub label: String,
    /// The transform, at its start.
    pub sel: Sel,
    /// Raw weights from minus this to this.
    pub range: f64,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What was asked for.
    pub request: Request,
    /// Raw and effective weights, ascending.
    pub points: Vec<(f64, f64)>,
}

/// What to draw.
#[derive(Clone, Debug)]
pub struct CurveSettings {
    /// beta where a figure has one: offsets (Fig. 2, middle), modes (Fig. 3).
    pub beta: f64,
    /// Several (Fig. 2, right).
    pub betas: Vec<f64>,
    /// Several n (Fig. 2, middle).
    pub offsets: Vec<f64>,
    /// Rows and columns of Fig. 10: betas, n.
    pub grid: (Vec<f64>, Vec<f64>),
    /// beta of Fig. 11.
    pub steep: f64,
    /// Combination of Fig. 10.
    pub mode: Mode,
    /// Modes of the extra figure.
    pub modes: Vec<Mode>,
    /// n of its second panel.
    pub modes_offset: f64,
    /// Raw weights from minus this to this; None: as far as beta |w| = 2.5.
    pub range: Option<f64>,
}

/// beta |w| at the ends of curves, for the largest beta of a panel.
const REACH: f64 = 2.5;

/// The transform at this beta and offset with e_w = l_w = 1 / beta and m = 1.
pub fn at_start(mode: Mode, beta: f64, n: f64) -> Sel {
    let scale = Scale { pattern: Pattern::Global, multiplier: Anneal::ONE, decay: false };
    let offset = (n != 0.0).then_some(Offset { scale, initial: n });
    Sel { offset, ..Sel::new(beta).with_mode(mode) }
}

impl CurveSettings {
    /// Every curve of every figure.
    pub fn requests(&self) -> Vec<Request> {
        let reach =
            |betas: &[f64]| self.range.unwrap_or(REACH / betas.iter().copied().fold(f64::MIN_POSITIVE, f64::max));
        let request = |figure, panel, label: String, sel, range| Request { figure, panel, label, sel, range };
        let name = |letter: &str, v: f64| format!("{letter} = {v}").replace('-', "\u{2212}");
        let mut all = Vec::new();
        // The standard symexp, sgn(w) (exp |w| - 1), is the exponential pathway at beta 1.
        all.push(request("fig2", 0, "symexp".into(), at_start(Mode::ExpOnly, 1.0, 0.0), REACH));
        for n in &self.offsets {
            let sel = at_start(Mode::ExpOnly, self.beta, *n);
            all.push(request("fig2", 1, name("n", *n), sel, reach(&[self.beta])));
        }
        for beta in &self.betas {
            let sel = at_start(Mode::ExpOnly, *beta, 0.0);
            all.push(request("fig2", 2, name("β", *beta), sel, reach(&self.betas)));
        }
        for mode in [Mode::Congruent, Mode::Mismatch] {
            let sel = at_start(mode, self.beta, 0.0);
            all.push(request("fig3", 0, mode.to_string(), sel, reach(&[self.beta])));
        }
        let (betas, offsets) = &self.grid;
        for (row, beta) in betas.iter().enumerate() {
            for (column, n) in offsets.iter().enumerate() {
                let panel = row * offsets.len() + column;
                let sel = at_start(self.mode, *beta, *n);
                all.push(request("fig10", panel, self.mode.to_string(), sel, reach(betas)));
            }
        }
        all.push(request("fig11", 0, "symexp".into(), at_start(Mode::ExpOnly, 1.0, 0.0), REACH));
        let steep = at_start(Mode::ExpOnly, self.steep, 0.0);
        all.push(request("fig11", 1, name("SEL's pathway, β", self.steep), steep, reach(&[self.steep])));
        for (panel, n) in [0.0, self.modes_offset].into_iter().enumerate() {
            for mode in &self.modes {
                // Hyperbolic sines have no offset.
                if panel == 0 || !matches!(mode, Mode::Sinh | Mode::SinhOnly) {
                    let sel = at_start(*mode, self.beta, n);
                    all.push(request("modes", panel, mode.to_string(), sel, reach(&[self.beta])));
                }
            }
        }
        all
    }
}

/// The curves, and the largest difference of the two forms (relative to the larger of the weight and 1).
///
/// **Errors** when the forms disagree by more than [`TOLERANCE`], when a weight is not finite, and when the device fails.
pub fn curves(device: &Device, requests: Vec<Request>) -> Result<(Vec<Curve>, f64)> {
    let grid = |range: f64| (0..POINTS).map(move |i| range * (2.0 * i as f64 / (POINTS - 1) as f64 - 1.0));
    let mut inputs = Vec::new();
    let mut values = Vec::new();
    let mut outputs = Vec::new();
    for (k, request) in requests.iter().enumerate() {
        request.sel.check()?;
        let dims = [POINTS];
        let mut start = request.sel.initial(&ArrayD::zeros(dims.to_vec()), Key::new(0))?;
        let raw = ArrayD::from_shape_vec(dims.to_vec(), grid(request.range).collect());
        start.insert("w".into(), raw.map_err(|e| Error::numeric("raw weights", e))?);
        let leaf = |(name, value): (&String, &ArrayD<f64>)| {
            (name.clone(), Tensor::parameter(&format!("{k}.{name}"), Shape::new(DType::F64, value.shape())))
        };
        let leaves: std::collections::BTreeMap<String, Tensor> = start.iter().map(leaf).collect();
        outputs.push((format!("curve {k}"), request.sel.effective(&dims, &leaves)));
        inputs.extend(leaves.into_values());
        values.extend(start.values().map(Array::from_ndarray));
    }
    let outputs: Vec<(&str, Tensor)> = outputs.iter().map(|(name, t)| (name.as_str(), t.clone())).collect();
    let program = device.compile(&Program::new("curves", &inputs, &outputs)?)?;
    let compiled = program.call(&values.iter().collect::<Vec<_>>())?;
    let mut worst = 0.0f64;
    let mut all = Vec::new();
    for (request, compiled) in requests.into_iter().zip(compiled) {
        let point = request.sel.initial_point();
        let mut points = Vec::with_capacity(POINTS);
        for (w, compiled) in grid(request.range).zip(compiled.to_f64_vec()) {
            let value = request.sel.value(&point, w);
            let difference = (value - compiled).abs() / value.abs().max(1.0);
            if !(value.is_finite() && difference <= TOLERANCE) {
                let (mode, beta) = (request.sel.mode, request.sel.beta);
                let reason = format!("at raw weight {w} (mode {mode}, beta {beta}) it is {value}, compiled {compiled}");
                return Err(Error::numeric("effective weight", format!("{reason}: choose a smaller --range")));
            }
            worst = worst.max(difference);
            points.push((w, value));
        }
        all.push(Curve { request, points });
    }
    Ok((all, worst))
}
