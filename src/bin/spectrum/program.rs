//! `spectrum --hlo`: the Jacobian of any program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ndarray::{Array2, Array3, Axis};
use serde_json::json;
use sinexp::analysis::program_jacobian::ProgramJacobian;
use sinexp::analysis::spectrum::Cell;
use sinexp::analysis::svd::batched_singular_values;
use sinexp::array::Array;
use sinexp::cli::Progress;
use sinexp::error::{Error, Result};
use sinexp::graph::{Imported, Shape, Tensor};
use sinexp::interop::arrays;
use sinexp::interop::program::{Foreign, Format};
use sinexp::report::program_spectrum::{figure, spectra_table, summary_table};
use sinexp::runtime::Device;

use super::{Arguments, Outcome};

/// Numbers of Jacobians that are kept at once, to share their decompositions among cores.
const AT_ONCE: usize = 1 << 22;

/// A program with all it needs, checked.
pub struct Opened {
    path: PathBuf,
    format: Format,
    function: Imported,
    jacobian: ProgramJacobian,
    output: usize,
    wrt: usize,
    /// The program's arguments, that to differentiate by at the first point.
    arguments: Vec<Array>,
    /// That argument at each point.
    points: Vec<Array>,
    batched: bool,
}

impl Opened {
    /// Reads the program and its arguments and compiles the Jacobian.
    pub fn new(path: &Path, options: &Arguments, device: &Device) -> Result<Self> {
        let foreign = Foreign::open(path)?.on(&device.platform()).map_err(|e| Error::file(path, e))?;
        let function = Imported::from_hlo_text(&foreign.text).map_err(|e| Error::file(path, e))?;
        let outputs: Vec<(&str, &Tensor)> = function.outputs.iter().map(|(n, t)| (n.as_str(), t)).collect();
        let inputs: Vec<(&str, &Tensor)> = function.inputs.iter().map(|t| (t.name(), t)).collect();
        let output = choose("--output", "result", &outputs, options.output.as_deref(), &|_| true, &|_| true)?;

        let names: Vec<String> = inputs.iter().map(|(name, _)| name.to_string()).collect();
        let mut found: BTreeMap<usize, Array> = BTreeMap::new();
        // The one to differentiate by is not counted where arrays are taken by their order.
        let asked = options.wrt.as_deref().and_then(|wrt| named(&inputs, wrt));
        for file in &options.params {
            let read = arrays::read(file)?.tensors;
            let others: Vec<usize> = (0..names.len()).filter(|i| asked != Some(*i)).collect();
            let names: Vec<String> = others.iter().map(|i| names[*i].clone()).collect();
            found.extend(arrays::assign(&names, read, file)?.into_iter().map(|(i, a)| (others[i], a)));
        }
        let file = options.input.clone().unwrap_or_default();
        let given = arrays::read(&file)?.tensors;
        let alone = given.len() == 1;
        let assigned = match arrays::assign(&names, given.clone(), &file) {
            // One array of any name can only be the one to differentiate by.
            Err(_) if alone => BTreeMap::new(),
            assigned => assigned?,
        };
        let free = |i: usize| !found.contains_key(&i);
        let wrt = choose("--wrt", "argument", &inputs, options.wrt.as_deref(), &free, &|i| assigned.contains_key(&i))?;
        let x = match (assigned.get(&wrt), given.into_values().next()) {
            (Some(x), _) => x.clone(),
            (None, Some(x)) if alone && assigned.is_empty() => x,
            _ => return Err(Error::file(&file, format!("has no `{}`, {}", names[wrt], inputs[wrt].1.shape()))),
        };
        found.extend(assigned);
        let points = points(&names[wrt], inputs[wrt].1.shape(), &x)?;
        if let Some(first) = points.first() {
            found.insert(wrt, first.clone());
        }
        let missing = |i: usize| {
            let shape = inputs[i].1.shape();
            Error::tensor(
                &names[i],
                format!("{shape}, an argument of the program, is in no file of --params or --input"),
            )
        };
        let arguments: Vec<Array> =
            (0..names.len()).map(|i| found.remove(&i).ok_or_else(|| missing(i))).collect::<Result<_>>()?;
        for (name, array) in names.iter().zip(&arguments).filter(|(_, a)| a.dtype().is_float()) {
            if let Some((at, v)) = array.to_f64_vec().iter().enumerate().find(|(_, v)| !v.is_finite()) {
                return Err(Error::tensor(name, format!("{v} at position {at}; arguments must be finite")));
            }
        }
        let jacobian = ProgramJacobian::new(device, &function, output, wrt, options.batched);
        let jacobian = jacobian.map_err(|e| Error::file(path, e))?;
        jacobian.put(&arguments)?;
        let (path, batched) = (path.to_owned(), options.batched);
        Ok(Opened { path, format: foreign.format, function, jacobian, output, wrt, arguments, points, batched })
    }

    /// Computes the spectra at every point.
    pub fn outcome(&self) -> Result<Outcome> {
        let j = &self.jacobian;
        let (rows, columns) = (j.rows(), j.columns());
        let mut arguments = j.put(&self.arguments)?;
        let mut progress = Progress::new("spectrum", self.points.len() as u64);
        let mut spectra: Vec<Array2<f64>> = Vec::new();
        let mut waiting: Vec<Array3<f64>> = Vec::new();
        for (i, x) in self.points.iter().enumerate() {
            let at_point = |e: Error| Error::numeric(format!("point {i}"), e);
            if i > 0 {
                arguments[self.wrt] = j.device().put(x)?;
            } else if self.batched {
                j.check_independent(&arguments)?;
            }
            waiting.push(j.run(&arguments).map_err(at_point)?);
            if i + 1 == self.points.len() || waiting.iter().map(Array3::len).sum::<usize>() >= AT_ONCE {
                let views: Vec<_> = waiting.iter().map(|j| j.view()).collect();
                let together = ndarray::concatenate(Axis(0), &views).map_err(|e| Error::numeric("Jacobians", e))?;
                spectra.push(batched_singular_values(&together)?);
                waiting.clear();
            }
            progress.step(&format!("point {i}"));
        }
        drop(progress);
        let views: Vec<_> = spectra.iter().map(|s| s.view()).collect();
        let values = ndarray::concatenate(Axis(0), &views).map_err(|e| Error::numeric("singular values", e))?;
        let cell = Cell::new(&self.function.name, 0, values.insert_axis(Axis(0)), j.precision())?;

        let (x, (result, y)) = (&self.function.inputs[self.wrt], &self.function.outputs[self.output]);
        let samples = if self.batched { format!(", {} samples each", j.samples()) } else { String::new() };
        let way = if j.is_reverse() { "reverse" } else { "forward" };
        let what = format!(
            "J = d {result}/d {} of {}, {} -> {}, {way} mode, {} point{}{samples}.",
            x.name(),
            self.function.name,
            x.shape(),
            y.shape(),
            self.points.len(),
            if self.points.len() == 1 { "" } else { "s" },
        );
        let shapes: BTreeMap<&str, String> =
            self.function.inputs.iter().map(|t| (t.name(), t.shape().to_string())).collect();
        let config = json!({
            "what": what,
            "program": self.path,
            "format": self.format.to_string(),
            "name": self.function.name,
            "arguments": shapes,
            "output": result,
            "wrt": x.name(),
            "batched": self.batched,
            "mode": way,
            "rows": rows,
            "columns": columns,
            "points": self.points.len(),
            "samples": j.samples(),
        });
        Ok(Outcome {
            config,
            summary: summary_table(&format!("Singular values of {what}"), &cell, (rows, columns))?,
            spectra: spectra_table(&cell, j.samples())?,
            figure: figure(&cell, &what),
            stem: "spectrum",
        })
    }
}

/// The number of what `text` names, or counts from 0.
fn named(all: &[(&str, &Tensor)], text: &str) -> Option<usize> {
    let names: Vec<String> = all.iter().map(|(name, _)| name.to_string()).collect();
    let number = || text.parse().ok().filter(|i| *i < all.len());
    arrays::find(&names, text).map(|(_, i)| i).or_else(number)
}

/// The result or argument that an option names; without the option the only floating-point one of those that are `free`, or the
/// only one of these that is `preferred`.
fn choose(
    option: &str,
    kind: &str,
    all: &[(&str, &Tensor)],
    asked: Option<&str>,
    free: &dyn Fn(usize) -> bool,
    preferred: &dyn Fn(usize) -> bool,
) -> Result<usize> {
    let list = |which: &[usize]| {
        let shown = which.iter().take(12).map(|i| format!("`{}` {}", all[*i].0, all[*i].1.shape()));
        let more = if which.len() > 12 { " ..." } else { "" };
        shown.collect::<Vec<_>>().join(", ") + more
    };
    let every: Vec<usize> = (0..all.len()).collect();
    if let Some(text) = asked {
        let reason = || format!("the program has the {kind}s {}", list(&every));
        return named(all, text).ok_or_else(|| Error::argument(option, text, reason()));
    }
    let floats: Vec<usize> = every.iter().copied().filter(|i| free(*i) && all[*i].1.dtype().is_float()).collect();
    let wanted: Vec<usize> = floats.iter().copied().filter(|i| preferred(*i)).collect();
    match (&floats[..], &wanted[..]) {
        ([one], _) | (_, [one]) => Ok(*one),
        ([], _) => {
            let reason = format!("the program has no floating-point {kind} to differentiate: {}", list(&every));
            Err(Error::argument(option, "(not given)", reason))
        }
        _ => Err(Error::argument(option, "(not given)", format!("say which {kind}: {}", list(&floats)))),
    }
}

/// The argument at each point: `x` itself, or the parts along its first axis.
fn points(name: &str, shape: &Shape, x: &Array) -> Result<Vec<Array>> {
    let found = Shape::new(x.dtype(), x.dims());
    let fail = |why: &str| {
        let takes =
            format!("{found} given, the program takes {shape}, or several of these along one more axis in front");
        Err(Error::tensor(name, takes + why))
    };
    if x.dtype() != shape.dtype {
        return fail(": convert its type");
    }
    if x.dims() == shape.dims {
        return Ok(vec![x.clone()]);
    }
    match x.dims().split_first() {
        Some((0, rest)) if rest == shape.dims => fail(": there is no point"),
        Some((count, rest)) if rest == shape.dims => {
            let values = x.to_f64_vec();
            if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                let place = at / shape.dims.iter().product::<usize>().max(1);
                return Err(Error::tensor(name, format!("{} in point {place}; arguments must be finite", values[at])));
            }
            let size = x.bytes().len() / count;
            let part = |i: usize| Array::from_bytes(x.dtype(), rest, &x.bytes()[i * size..(i + 1) * size]);
            Ok((0..*count).map(part).collect::<Result<_, _>>()?)
        }
        _ => fail(""),
    }
}
