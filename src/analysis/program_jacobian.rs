//! Jacobians of any function read from a program file, by `jvp` (or `vjp`) and `vmap` of its graph.
//!
//! ```
//! use sinexp::analysis::program_jacobian::ProgramJacobian;
//! use sinexp::{array::Array, graph::Imported, runtime::Device};
//! let text = "HloModule f
//!     ENTRY main {
//!       x.1 = f64[3] parameter(0)
//!       ROOT sin.1 = f64[3] sine(x.1)
//!     }";
//! let jacobian = ProgramJacobian::new(&Device::open("cpu")?, &Imported::from_hlo_text(text)?, 0, 0, false)?;
//! let j = jacobian.run(&jacobian.put(&[Array::from_slice(&[3], &[0.0, 1.0, 2.0])])?)?;
//! assert_eq!(j.dim(), (1, 3, 3)); // samples, results, inputs
//! assert!((j[[0, 1, 1]] - 1f64.cos()).abs() < 1e-12 && j[[0, 0, 1]] == 0.0);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use ndarray::Array3;

use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Imported, Program, Shape, Tensor};
use crate::random::Key;
use crate::runtime::{Buffer, Device, Executable};
use crate::transform::{jvp, vjp, vmap};

/// Directions pushed (or pulled) at once, and how many numbers of a Jacobian one call gives at most: memory stays within bounds
/// whatever the program.
const DIRECTIONS: usize = 256;
const NUMBERS: usize = 1 << 22;

/// Numbers of one Jacobian at most: 2 GiB of f64.
const LARGEST: usize = 1 << 28;

/// How far a sample's result may move with another's input, relative to the largest derivative: rounding.
const COUPLING: f64 = 1e-3;

/// J = dy/dx of one result y of a program by one of its inputs x, both taken as vectors, compiled in the program's own
/// types.
pub struct ProgramJacobian {
    executable: Executable,
    samples: usize,
    rows: usize,
    columns: usize,
    reverse: bool,
    at_once: usize,
    seeds: DType,
    precision: DType,
}

impl ProgramJacobian {
    /// Differentiates result number `output` of `function` by its input number `wrt`. With `batched`, axis 0 of both
    /// counts independent samples, and J is each sample's own: its result by its input.
    ///
    /// Directions go forward through the program, or backward where y is smaller than x and every operation has a
    /// reverse rule.
    ///
    /// **Errors** when x or y is not floating point or empty, J has more numbers than 2 GiB holds, `batched` and there are
    /// not as many samples in y as in x, or an operation has no derivative (by name).
    pub fn new(device: &Device, function: &Imported, output: usize, wrt: usize, batched: bool) -> Result<Self> {
        let (x, (name, y)) = (&function.inputs[wrt], &function.outputs[output]);
        for (what, label, t) in [("input", x.name(), x), ("result", name.as_str(), y)] {
            let fail = |why: String| Err(Error::tensor(label, format!("{what} of shape {}: {why}", t.shape())));
            if !t.dtype().is_float() {
                return fail("only floating-point numbers have derivatives".into());
            }
            if t.size() == 0 {
                return fail("it has no elements".into());
            }
            if batched && t.rank() == 0 {
                return fail("--batched needs an axis of samples".into());
            }
        }
        let samples = if batched { x.dims()[0] } else { 1 };
        if batched && y.dims()[0] != samples {
            let why = format!("axis 0 is not the {samples} samples of `{}` {}", x.name(), x.shape());
            return Err(Error::tensor(name, format!("result of shape {}: {why}", y.shape())));
        }
        let (rows, columns) = (y.size() / samples, x.size() / samples);
        if rows.checked_mul(columns).and_then(|n| n.checked_mul(samples)).is_none_or(|n| n > LARGEST) {
            let why = format!("{samples} matrices of {rows} x {columns} do not fit into 2 GiB");
            return Err(Error::numeric(format!("Jacobian of `{name}` by `{}`", x.name()), why));
        }
        let shape = Mapping { x, y, batched };
        let backward = if rows < columns { shape.rows(rows, columns).ok() } else { None };
        let reverse = backward.is_some();
        let Graph { seeds, scales, result, at_once } = match backward {
            Some(graph) => graph,
            None => shape.columns(rows, columns)?,
        };
        let inputs = [&function.inputs[..], &[seeds.clone(), scales]].concat();
        let program = Program::new("program_jacobian", &inputs, &[("J", result)])?;
        let precision = if y.dtype().size() < x.dtype().size() { y.dtype() } else { x.dtype() };
        let executable = device.compile(&program)?;
        Ok(ProgramJacobian { executable, samples, rows, columns, reverse, at_once, seeds: seeds.dtype(), precision })
    }

    /// Elements of y (of one sample).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of x (of one sample).
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Matrices that one call gives: 1, or with `batched` the samples.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Whether directions are pulled back from y rather than pushed forward from x.
    pub fn is_reverse(&self) -> bool {
        self.reverse
    }

    /// The less precise of the types of x and y, which says what is rounding noise.
    pub fn precision(&self) -> DType {
        self.precision
    }

    /// Where it was compiled for.
    pub fn device(&self) -> &Device {
        self.executable.device()
    }

    /// The program's inputs on the device; the differentiated one is replaced in each [`ProgramJacobian::run`].
    ///
    /// **Errors** name the input whose type or shape does not fit.
    pub fn put(&self, arguments: &[Array]) -> Result<Vec<Buffer>> {
        let inputs = self.executable.inputs().zip(arguments);
        inputs
            .map(|((name, shape), array)| {
                if (array.dtype(), array.dims()) != (shape.dtype, &shape.dims[..]) {
                    let found = Shape::new(array.dtype(), array.dims());
                    return Err(Error::tensor(name, format!("{found} given, the program takes {shape}")));
                }
                self.executable.device().put(array)
            })
            .collect()
    }

    /// J at one x, `arguments` being the program's inputs: `(samples, rows, columns)`.
    ///
    /// **Errors** when a derivative is not finite, naming it.
    pub fn run(&self, arguments: &[Buffer]) -> Result<Array3<f64>> {
        let directions = if self.reverse { self.rows } else { self.columns };
        let length = if self.reverse { self.columns } else { self.rows };
        let ones = Array::full(self.seeds, &[self.samples], 1.0);
        let mut j = Array3::zeros((self.samples, self.rows, self.columns));
        let mut start = 0;
        while start < directions {
            // The last directions again rather than fewer of them.
            let first = start.min(directions - self.at_once);
            let mut unit = vec![0.0; self.at_once * directions];
            (0..self.at_once).for_each(|k| unit[k * directions + first + k] = 1.0);
            let values = self.call(arguments, &unit, &ones)?;
            for (at, v) in values.iter().enumerate() {
                let (k, s, i) = (at / (length * self.samples), at / length % self.samples, at % length);
                let place = if self.reverse { [s, first + k, i] } else { [s, i, first + k] };
                j[place] = *v;
            }
            start = first + self.at_once;
        }
        match j.indexed_iter().find(|(_, v)| !v.is_finite()) {
            Some(((s, row, column), v)) => {
                let sample = if self.samples > 1 { format!("sample {s}, ") } else { String::new() };
                Err(Error::numeric("Jacobian", format!("{sample}entry ({row}, {column}) is {v}")))
            }
            None => Ok(j),
        }
    }

    /// Whether the samples do not mix: each one's derivative must scale with its own direction alone.
    ///
    /// **Errors** name a sample whose result depends on the others'.
    pub fn check_independent(&self, arguments: &[Buffer]) -> Result<()> {
        if self.samples == 1 {
            return Ok(());
        }
        let directions = if self.reverse { self.rows } else { self.columns };
        let key = Key::new(0);
        let normal: Vec<f64> = key.normal(&[self.at_once, directions]).into_iter().collect();
        let scales = key.fold_in(1).uniform::<f64>(&[self.samples], -2.0, 2.0);
        // Rounded first, so that both sides multiply by the same numbers.
        let scales = Array::from_ndarray(&scales).cast(self.seeds);
        let plain = self.call(arguments, &normal, &Array::full(self.seeds, &[self.samples], 1.0))?;
        let scaled = self.call(arguments, &normal, &scales)?;
        let scales = scales.to_f64_vec();
        let largest = plain.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let length = if self.reverse { self.columns } else { self.rows };
        let tolerance = largest * COUPLING.max(if self.precision.size() < 4 { 0.05 } else { 0.0 });
        let sample = |at: usize| at / length % self.samples;
        let mixed = (0..plain.len()).find(|at| (scaled[*at] - scales[sample(*at)] * plain[*at]).abs() > tolerance);
        match mixed {
            Some(at) => {
                let reason = "its result depends on other samples of the batch (a normalisation over the batch?)";
                Err(Error::numeric(format!("--batched: sample {}", sample(at)), reason))
            }
            None => Ok(()),
        }
    }

    fn call(&self, arguments: &[Buffer], seeds: &[f64], scales: &Array) -> Result<Vec<f64>> {
        let dims: Vec<usize> =
            self.executable.inputs().map(|(_, shape)| shape.dims.to_vec()).nth(arguments.len()).unwrap_or_default();
        let device = self.executable.device();
        let seeds = device.put(&Array::from_slice(&dims, seeds).cast(self.seeds))?;
        let scales = device.put(scales)?;
        let all: Vec<&Buffer> = arguments.iter().chain([&seeds, &scales]).collect();
        let result = self.executable.run(&all)?;
        Ok(result.first().map(Buffer::to_host).transpose()?.map_or_else(Vec::new, |a| a.to_f64_vec()))
    }
}

/// A program that takes directions: `seeds` `(at_once, one sample's shape)` and one factor per sample.
struct Graph {
    seeds: Tensor,
    scales: Tensor,
    result: Tensor,
    at_once: usize,
}

struct Mapping<'a> {
    x: &'a Tensor,
    y: &'a Tensor,
    batched: bool,
}

impl Mapping<'_> {
    /// Forward: a direction of x gives `(samples, rows)`, a column of each J.
    fn columns(&self, rows: usize, columns: usize) -> Result<Graph> {
        self.graph(self.x, columns, rows, |t| {
            jvp(&[self.y.clone()], &[self.x.clone()], &[t]).map(|mut y| y.swap_remove(0))
        })
    }

    /// Backward: a direction of y gives `(samples, columns)`, a row of each J.
    fn rows(&self, rows: usize, columns: usize) -> Result<Graph> {
        self.graph(self.y, rows, columns, |t| {
            let pulled = vjp(&[self.y.clone()], &[t], &[self.x.clone()])?.swap_remove(0);
            Ok(pulled.unwrap_or_else(|| self.x.zeros_like()))
        })
    }

    /// `along` each direction of `from`, `count` of them per sample, a result of `length` numbers per sample.
    fn graph(
        &self,
        from: &Tensor,
        count: usize,
        length: usize,
        along: impl Fn(Tensor) -> hlograd::error::Result<Tensor>,
    ) -> Result<Graph> {
        let samples = if self.batched { from.dims()[0] } else { 1 };
        let at_once = (NUMBERS / (samples * length.max(count))).clamp(1, DIRECTIONS).min(count);
        let one = if self.batched { &from.dims()[1..] } else { from.dims() };
        let seeds = Tensor::parameter("directions", Shape::new(from.dtype(), &[&[at_once], one].concat()));
        let scales = Tensor::parameter("factors", Shape::new(from.dtype(), &[samples]));
        let pushed = vmap(&[seeds.clone()], &[Some(0)], |seed| {
            // The same direction in every sample, times the sample's factor.
            let seed = if self.batched {
                let kept: Vec<usize> = (1..from.rank()).collect();
                seed[0].broadcast_in_dim(&kept, from.dims()) * scales.broadcast_in_dim(&[0], from.dims())
            } else {
                seed[0].clone() * scales.reshape(&[]).broadcast_in_dim(&[], from.dims())
            };
            Ok(vec![along(seed)?])
        })?;
        let result = pushed[0].reshape(&[at_once, samples, length]);
        Ok(Graph { seeds, scales, result, at_once })
    }
}
