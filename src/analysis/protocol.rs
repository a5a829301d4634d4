//! The Jacobian-spectrum diagnostic of the uniform-phase paper (Appendix C): which networks, which points, which keys.
//!
//! Every draw has its own key, made from the seed and from what is drawn (initialisation, depth, network), so a cell's
//! numbers do not depend on which other cells a run computes.
//!
//! ```
//! use sinexp::analysis::protocol::{Protocol, moment_field};
//! use sinexp::runtime::Device;
//! let device = Device::open("cpu")?;
//! let (networks, points, domain) = (16, 4, (-3.0, 3.0));
//! let protocol = Protocol { width: 16, networks, points, seed: 0, omega0: 30.0, omega_h: 1.0, domain };
//! let moments = moment_field(&device, &protocol)?;
//! let cell = protocol.cell(&protocol.jacobian(&device, 2)?, "uniform-mm", 2, Some(&moments), || ())?;
//! // Theorem 1: the mean squared singular value is 1, here within the error of so few networks.
//! let summary = cell.summary();
//! assert!((summary.mean_square - 1.0).abs() < 4.0 * summary.standard_error.unwrap());
//! assert!(summary.standard_error.unwrap() < 0.1);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::f64::consts::PI;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ndarray::{Array2, Axis};

use super::jacobian::HiddenJacobian;
use super::moments::{Moments, moments};
use super::spectrum::Cell;
use super::svd::batched_singular_values;
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::nn::cvp26::Cvp26;
use crate::nn::siren::{Params, Siren};
use crate::nn::siren_init::Initialization;
use crate::random::Key;
use crate::runtime::Device;

pub use crate::array::Weights;

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

impl Protocol {
    /// The compiled Jacobian of networks of this depth, for all points of a network at once.
    ///
    /// **Errors** when the depth is below 2 or XLA cannot compile it.
    pub fn jacobian(&self, device: &Device, depth: usize) -> Result<HiddenJacobian> {
        HiddenJacobian::new(device, &Siren::new(1, self.width, depth, 1), self.points)
    }

    /// Draws the networks and points of one cell and computes their spectra; `done` is called after each network.
    /// `moments` are the field's, which only `uniform-mm` uses.
    ///
    /// **Errors** when `init` is not one of [`SINE_INITS`] or its moments are missing.
    pub fn cell(
        &self,
        jacobian: &HiddenJacobian,
        init: &str,
        depth: usize,
        moments: Option<&Moments>,
        done: impl FnMut() + Send,
    ) -> Result<Cell> {
        let law = initialization(init, self, moments)?;
        let number = SINE_INITS.iter().position(|i| *i == init).unwrap_or(SINE_INITS.len()) as u32;
        let siren = law.siren(1, self.width, depth, 1);
        let draw = |network| {
            let key = |purpose| key(self.seed, purpose, number, depth, network);
            Ok((law.draw(&siren, key(WEIGHTS))?, uniform_points(key(POINTS), self.points, 1, self.domain)))
        };
        spectra(jacobian, init, depth, self.networks, draw, done)
    }
}

/// The spectra of `count` networks at their points. `network(i)` gives the weights (with `omega0` and `omega_h`) and x
/// of shape (points, n_in); `done` is called after each network. A few networks are in work at once, each drawn when
/// its turn comes; the result does not depend on how many.
///
/// **Errors** when a network cannot be drawn or a Jacobian has a value that is not finite, naming the network.
pub fn spectra(
    jacobian: &HiddenJacobian,
    name: &str,
    depth: usize,
    count: usize,
    network: impl Fn(usize) -> Result<(Weights, Array)> + Sync,
    done: impl FnMut() + Send,
) -> Result<Cell> {
    const AT_ONCE: usize = 4;
    let workers = thread::available_parallelism().map_or(1, usize::from).min(AT_ONCE).min(count);
    let one = |i: usize| -> Result<Array2<f64>> {
        let (weights, x) = network(i)?;
        batched_singular_values(&jacobian.run(&weights, &x)?)
            .map_err(|e| Error::numeric(format!("`{name}` at depth {depth}, network {i}"), e))
    };
    let next = AtomicUsize::new(0);
    let done = Mutex::new(done);
    let work = || -> Result<Vec<(usize, Array2<f64>)>> {
        let mut mine = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return Ok(mine);
            }
            // After an error nobody starts another network.
            mine.push((i, one(i).inspect_err(|_| next.store(count, Ordering::Relaxed))?));
            if let Ok(mut done) = done.lock() {
                done();
            }
        }
    };
    let mut values = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::with_capacity(count);
        for thread in threads {
            all.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok::<_, Error>(all)
    })?;
    values.sort_by_key(|(i, _)| *i);
    let views: Vec<_> = values.iter().map(|(_, v)| v.view()).collect();
    let values = ndarray::stack(Axis(0), &views).map_err(|e| Error::numeric("singular values", e))?;
    Cell::new(name, depth, values, DType::F64)
}

/// The moments that `uniform-mm` matches in this diagnostic: of a CVP26 network (sigma_a = 0, L = 4, omega0 = 30,
/// omega_h = 1, of the run's width) at 1000 evenly spaced points on [-pi, pi], evaluated in f64 on `device`.
///
/// **Errors** when the device fails, or the field is so flat that it has no moments.
pub fn moment_field(device: &Device, protocol: &Protocol) -> Result<Moments> {
    const SAMPLES: usize = 1000;
    let law = Initialization::Cvp26 { family: Cvp26::stable(0.0)?, omega0: 30.0, omega_h: 1.0 };
    let siren = law.siren(1, protocol.width, 4, 1);
    let weights = law.draw(&siren, Key::new(protocol.seed).fold_in(MOMENTS))?;
    let step = 2.0 * PI / (SAMPLES - 1) as f64;
    let grid: Vec<f64> = (0..SAMPLES).map(|i| -PI + i as f64 * step).collect();
    let (mut inputs, mut arguments, mut params) = (Vec::new(), Vec::new(), Params::new());
    for (name, array) in &weights {
        let parameter = Tensor::parameter(name, Shape::new(DType::F64, array.dims()));
        inputs.push(parameter.clone());
        arguments.push(array.cast(DType::F64));
        params.insert(name.clone(), parameter);
    }
    let x = Tensor::parameter("x", Shape::new(DType::F64, &[SAMPLES, 1]));
    inputs.push(x.clone());
    arguments.push(Array::from_slice(&[SAMPLES, 1], &grid));
    let program = Program::new("moment_field", &inputs, &[("field", siren.apply(&params, &x))])?;
    let field = device.compile(&program)?.call(&arguments.iter().collect::<Vec<_>>())?;
    moments(field[0].to_ndarray::<f64>()?.view(), &[step])
}

/// The law behind a command-line name.
fn initialization(init: &str, protocol: &Protocol, moments: Option<&Moments>) -> Result<Initialization> {
    let Protocol { omega0, omega_h, .. } = *protocol;
    Ok(match (init, moments) {
        ("uniform-mm", Some(moments)) => Initialization::UniformPhase(moments.clone()),
        ("uniform-mm", None) => return Err(Error::argument("--inits", init, "needs the moments of a field")),
        ("cvp26-s0", _) => Initialization::Cvp26 { family: Cvp26::stable(0.0)?, omega0, omega_h },
        ("cvp26-s1", _) => Initialization::Cvp26 { family: Cvp26::stable(1.0)?, omega0, omega_h },
        ("sm20", _) => Initialization::Sm20 { omega0, omega_h },
        ("sm20-repo", _) => Initialization::Sm20Repo { omega0, omega_h },
        _ => return Err(Error::argument("--inits", init, format!("expected one of {}", SINE_INITS.join(", ")))),
    })
}

/// Points for a foreign network: uniform on `domain` in each of `n_in` coordinates, shape (points, n_in), f64.
pub fn sampled_points(seed: u64, points: usize, n_in: usize, domain: (f64, f64)) -> Array {
    uniform_points(Key::new(seed).fold_in(POINTS), points, n_in, domain)
}

/// Drawn as f64, whatever the weights' type, so that the points do not depend on it.
fn uniform_points(key: Key, points: usize, n_in: usize, (low, high): (f64, f64)) -> Array {
    Array::from_ndarray(&key.uniform::<f64>(&[points, n_in], low, high))
}

/// Key of one network (or its points) of one cell.
fn key(seed: u64, purpose: u32, init: u32, depth: usize, network: usize) -> Key {
    Key::new(seed).fold_in(purpose).fold_in(init).fold_in(depth as u32).fold_in(network as u32)
}
