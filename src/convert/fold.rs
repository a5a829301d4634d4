//! Raw weights and scales to ordinary weights.

use std::path::{Path, PathBuf};

use super::blocks::{Blocks, part_of, row_blocks};
use super::encode::Encoder;
use super::files::{Job, Outputs, copy, write};
use super::record::{Conversion, Layer};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::interop::safetensors::{Entry, Shards, to_f32, write_streaming};
use crate::nn::parameterization::{Leaf, Parameterization};
use crate::nn::sel::Sel;
use crate::runtime::Device;

/// What a folding came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoldReport {
    /// Layers made.
    pub layers: usize,
    /// Their weights.
    pub weights: usize,
    /// Tensors that were copied.
    pub copied: usize,
    /// Files written.
    pub files: Vec<PathBuf>,
}

/// Makes the ordinary checkpoint again that [`super::invert`] was given, from leaves as they are now: names, shapes,
/// element types and metadata are those of the source. `out` is a file or a folder, as there.
///
/// **Errors** when a file is not of `sel invert`, a leaf is missing or has another shape, or a file cannot be written.
pub fn fold(shards: &Shards, out: &Path, device: &Device, job: &mut Job) -> Result<FoldReport> {
    let mut conversions = Vec::new();
    for file in shards.files() {
        let conversion = Conversion::of(&file.path, &file.metadata)?;
        conversions.push(conversion.ok_or_else(|| Error::file(&file.path, "is no file of `sel invert`"))?);
    }
    let outputs = Outputs::new(shards, out)?;
    let mut report = FoldReport::default();
    for (file, conversion) in conversions.iter().enumerate() {
        let mut blocks = Blocks::new(device, &conversion.sel);
        let (path, _) = outputs.file(file);
        report.copied += fold_file(shards, file, conversion, &path, &mut blocks, job)?;
        report.layers += conversion.layers.len();
        report.weights += conversion.layers.values().map(|l| l.dims.iter().product::<usize>()).sum::<usize>();
    }
    report.files = outputs.finish()?;
    Ok(report)
}

/// Positions of the tensors of a file that belong to no layer.
fn copied<'a>(shards: &'a Shards, file: usize, conversion: &'a Conversion) -> impl Iterator<Item = usize> + 'a {
    let leaf = |name: &str| {
        conversion.layers.iter().any(|(layer, l)| {
            let rest = name.strip_prefix(layer.as_str()).and_then(|rest| rest.strip_prefix('.'));
            rest.is_some_and(|rest| conversion.sel.leaves(&l.dims).iter().any(|leaf| leaf.name == rest))
        })
    };
    let tensors = shards.tensors().iter().enumerate();
    tensors.filter(move |(_, t)| t.file == file && !leaf(&t.name)).map(|(i, _)| i)
}

/// Writes a file and returns how many of its tensors were copied.
fn fold_file(
    shards: &Shards,
    file: usize,
    conversion: &Conversion,
    path: &Path,
    blocks: &mut Blocks,
    job: &mut Job,
) -> Result<usize> {
    let layer = |(name, layer): (&String, &Layer)| {
        let Layer { dtype, dims, aliases, .. } = layer.clone();
        Entry { name: name.clone(), dtype, dims, aliases }
    };
    let layers = conversion.layers.len();
    let copied: Vec<usize> = copied(shards, file, conversion).collect();
    let kept = copied.iter().map(|i| Entry::of(&shards.tensors()[*i]));
    let entries: Vec<Entry> = conversion.layers.iter().map(layer).chain(kept).collect();
    write_streaming(path, &entries, &conversion.metadata, |i, sink| {
        if let Some(position) = i.checked_sub(layers).map(|i| copied[i]) {
            return copy(shards, &shards.tensors()[position], path, sink, job);
        }
        let Entry { name, dims, dtype, .. } = &entries[i];
        let encoder = Encoder::new(*dtype)?;
        let leaves = Leaves::new(shards, &conversion.sel, name, dims)?;
        for rows in row_blocks(dims) {
            job.check()?;
            let weights = blocks.effective(dims, &rows, |leaf, part| leaves.part(leaf, part, &rows))?;
            if let Some(at) = weights.iter().position(|w| !w.is_finite()) {
                let element = rows.start * dims[1..].iter().product::<usize>() + at;
                return Err(Error::tensor(name, format!("weight {element} folds to {}", weights[at])));
            }
            let mut bytes = Vec::with_capacity(weights.len() * dtype.bitsize() / 8);
            encoder.encode(&weights, &mut bytes);
            write(sink, &bytes, path)?;
            leaves.release(&rows);
            job.did(4 * weights.len(), name);
        }
        Ok(())
    })?;
    Ok(copied.len())
}

/// The leaves of one layer in the files.
struct Leaves<'a> {
    shards: &'a Shards,
    layer: &'a str,
    /// All but the raw weights, which are read by rows.
    scales: Vec<(String, Array)>,
}

impl<'a> Leaves<'a> {
    fn new(shards: &'a Shards, sel: &Sel, layer: &'a str, dims: &[usize]) -> Result<Self> {
        let mut scales = Vec::new();
        for leaf in sel.leaves(dims) {
            let name = format!("{layer}.{}", leaf.name);
            let tensor = shards.find(&name).ok_or_else(|| Error::tensor(&name, "is missing"))?;
            if tensor.dims != leaf.dims {
                return Err(Error::tensor(&name, format!("has shape {:?}, expected {:?}", tensor.dims, leaf.dims)));
            }
            if leaf.name != "w" {
                let mut values = Vec::new();
                to_f32(tensor.dtype, shards.bytes(tensor), &mut values).map_err(|e| Error::tensor(&name, e))?;
                scales.push((leaf.name, Array::from_slice(&leaf.dims, &values)));
            }
        }
        Ok(Leaves { shards, layer, scales })
    }

    fn part(&self, leaf: &Leaf, dims: &[usize], rows: &std::ops::Range<usize>) -> Result<Array> {
        if let Some((_, scale)) = self.scales.iter().find(|(name, _)| *name == leaf.name) {
            return part_of(scale, dims, rows);
        }
        let name = format!("{}.w", self.layer);
        let tensor = self.shards.find(&name).ok_or_else(|| Error::tensor(&name, "is missing"))?;
        let each = tensor.byte_len() / tensor.dims[0];
        let mut values = Vec::new();
        to_f32(tensor.dtype, &self.shards.bytes(tensor)[rows.start * each..rows.end * each], &mut values)
            .map_err(|e| Error::tensor(&name, e))?;
        Ok(Array::from_slice(dims, &values))
    }

    fn release(&self, rows: &std::ops::Range<usize>) {
        if let Some(tensor) = self.shards.find(&format!("{}.w", self.layer)) {
            let each = tensor.byte_len() / tensor.dims[0];
            self.shards.release_part(tensor, rows.start * each..rows.end * each);
        }
    }
}
