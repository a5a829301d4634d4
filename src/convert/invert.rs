//! Ordinary weights to raw weights and scales.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use safetensors::tensor::Dtype;
use sha2::{Digest, Sha256};

use super::blocks::{Blocks, part_of, row_blocks};
use super::files::{Job, Outputs, Report, copy, write};
use super::record::{Conversion, InvertReport, Layer, LayerReport};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::files::hex;
use crate::interop::safetensors::{Entry, ShardTensor, Shards, is_real, to_f64, write_streaming};
use crate::nn::parameterization::Parameterization;
use crate::nn::sel::{InverseTable, Sel};
use crate::random::Key;
use crate::runtime::Device;

/// What to invert, and how.
pub struct Request<'a> {
    /// The transform; scales are those of the start of training.
    pub sel: &'a Sel,
    /// Seed of what is drawn: the first factors of scales of pattern lora and of residuals.
    pub seed: u64,
    /// The role of a tensor that is a layer to invert; None for one to copy.
    pub layer: &'a dyn Fn(&ShardTensor) -> Option<String>,
    /// Where no raw weight gives a weight, take the nearest there is. Otherwise this is an error.
    pub nearest: bool,
}

/// Inverts a checkpoint into `out`: a file where the source is one and `out` ends in `.safetensors`, else a folder with a
/// file for each of the source's, and an index where there are several. `report.json` beside it has the report by layer.
///
/// A file that is there already, of the same source (place and time of its last change) and request, is kept. Holds some row blocks in memory, not the model.
///
/// **Errors** when the source has a problem (a shard is missing), no tensor is a layer, a weight has no preimage (without
/// `nearest`) or is not finite, or a file cannot be written.
pub fn invert(
    shards: &Shards,
    request: &Request,
    out: &Path,
    device: &Device,
    job: &mut Job,
) -> Result<(InvertReport, Vec<PathBuf>)> {
    request.sel.check()?;
    let outputs = Outputs::new(shards, out)?;
    let table = InverseTable::new(request.sel, request.sel.initial_point());
    let mut blocks = Blocks::new(device, request.sel);
    let mut reports: BTreeMap<String, Report> = outputs.read_reports();
    let mut whole = InvertReport::default();
    for file in 0..shards.files().len() {
        let conversion = conversion(shards, file, request)?;
        let digest = conversion.digest(&shards.files()[file].path)?;
        let (path, name) = outputs.file(file);
        let allowed = |r: &Report| request.nearest || r.report.unrepresented() == 0;
        let same = |r: &Report| r.digest == digest && outputs.holds(file, &conversion);
        if let Some(known) = reports.get(&name).filter(|r| allowed(r) && same(r)) {
            whole.merge(known.report.clone());
            continue;
        }
        let mut one = OneFile { shards, request, conversion, table: &table, blocks: &mut blocks, job: &mut *job };
        let report = one.write(file, &path)?;
        reports.insert(name, Report { digest, report: report.clone() });
        outputs.write_reports(&reports)?;
        whole.merge(report);
    }
    if whole.layers.is_empty() {
        let reason = "no tensor of it is known as a linear layer: name them with --role NAME=REGEX";
        return Err(Error::file(&shards.files()[0].path, reason));
    }
    let files = outputs.finish()?;
    Ok((whole, files))
}

/// What will be made of one file.
fn conversion(shards: &Shards, file: usize, request: &Request) -> Result<Conversion> {
    let source = &shards.files()[file];
    let mut layers = BTreeMap::new();
    for tensor in shards.tensors().iter().filter(|t| t.file == file) {
        let fits = is_real(tensor.dtype) && matches!(tensor.dims.len(), 1 | 2) && !tensor.is_empty();
        let Some(role) = (request.layer)(tensor).filter(|_| fits) else { continue };
        let (dims, aliases) = (tensor.dims.clone(), tensor.aliases.clone());
        layers.insert(tensor.name.clone(), Layer { dtype: tensor.dtype, dims, role, aliases });
    }
    let name = source.path.file_name().unwrap_or_default().to_string_lossy();
    let header = hex(&Sha256::digest(source.header())[..8]);
    let from = Conversion::of(&source.path, &source.metadata)?;
    if from.is_some() {
        return Err(Error::file(&source.path, "holds raw weights already: `sel fold` makes ordinary ones of them"));
    }
    Ok(Conversion {
        sel: request.sel.clone(),
        seed: request.seed,
        source: format!("{name}, {} bytes, header {header}", source.len()),
        layers,
        metadata: source.metadata.clone(),
    })
}

/// Where the data of an output's tensor come from.
enum Work {
    /// The tensor at this position, as it is.
    Copy(usize),
    /// This leaf of the tensor at this position.
    Leaf(usize, String),
}

/// A file in the making.
struct OneFile<'r, 'b, 'j> {
    shards: &'r Shards,
    request: &'r Request<'r>,
    conversion: Conversion,
    table: &'r InverseTable<'r>,
    blocks: &'r mut Blocks<'b>,
    job: &'r mut Job<'j>,
}

impl OneFile<'_, '_, '_> {
    fn write(&mut self, file: usize, path: &Path) -> Result<InvertReport> {
        let shards = self.shards;
        let mut work: Vec<(Entry, Work)> = Vec::new();
        let mut report = InvertReport::default();
        for (i, tensor) in shards.tensors().iter().enumerate().filter(|(_, t)| t.file == file) {
            if !self.conversion.layers.contains_key(&tensor.name) {
                work.push((Entry::of(tensor), Work::Copy(i)));
                report.copied += 1;
                continue;
            }
            for leaf in self.request.sel.leaves(&tensor.dims) {
                let name = format!("{}.{}", tensor.name, leaf.name);
                let entry = Entry { name, dtype: Dtype::F32, dims: leaf.dims, aliases: Vec::new() };
                work.push((entry, Work::Leaf(i, leaf.name)));
            }
        }
        let (entries, work): (Vec<Entry>, Vec<Work>) = work.into_iter().unzip();
        let metadata = self.conversion.to_metadata()?;
        let mut scales: (usize, BTreeMap<String, Array>) = (usize::MAX, BTreeMap::new());
        write_streaming(path, &entries, &metadata, |i, sink| {
            let (position, leaf) = match &work[i] {
                Work::Copy(position) => return copy(shards, &shards.tensors()[*position], path, sink, self.job),
                Work::Leaf(position, leaf) => (*position, leaf),
            };
            let tensor = &shards.tensors()[position];
            if scales.0 != position {
                let key = Key::new(self.request.seed).fold_in(position as u32);
                let values = self.request.sel.initial_scales(&tensor.dims, key)?;
                let f32s = values.into_iter().map(|(n, v)| (n, Array::from_ndarray(&v.mapv(|x| x as f32))));
                scales = (position, f32s.collect());
            }
            if leaf != "w" {
                return write(sink, scales.1[leaf].bytes(), path);
            }
            let layer = self.raw(tensor, &scales.1, path, sink)?;
            report.layers.insert(tensor.name.clone(), layer);
            Ok(())
        })?;
        Ok(report)
    }

    /// Writes the raw weights of a layer, and compares what they give with what they are to give.
    fn raw(
        &mut self,
        tensor: &ShardTensor,
        scales: &BTreeMap<String, Array>,
        path: &Path,
        sink: &mut dyn Write,
    ) -> Result<LayerReport> {
        let role = self.conversion.layers[&tensor.name].role.clone();
        let mut report = LayerReport { role, count: tensor.len(), ..LayerReport::default() };
        let row_bytes = tensor.byte_len() / tensor.dims[0];
        let mut targets = Vec::new();
        for rows in row_blocks(&tensor.dims) {
            self.job.check()?;
            let part = rows.start * row_bytes..rows.end * row_bytes;
            targets.clear();
            to_f64(tensor.dtype, &self.shards.bytes(tensor)[part.clone()], &mut targets)?;
            let found: Vec<Option<f64>> = targets.par_iter().map(|y| self.table.invert(*y)).collect();
            let raw: Vec<f32> = found
                .par_iter()
                .zip(&targets)
                .map(|(x, y)| x.unwrap_or_else(|| if y.is_finite() { self.table.nearest(*y) } else { 0.0 }) as f32)
                .collect();
            let weights = self.blocks.effective(&tensor.dims, &rows, |leaf, dims| match leaf.name.as_str() {
                "w" => Ok(Array::from_slice(dims, &raw)),
                name => part_of(&scales[name], dims, &rows),
            })?;
            let start = rows.start * tensor.dims[1..].iter().product::<usize>();
            compare(&mut report, start, &targets, &found, &weights);
            let unfit = report.not_finite > 0 || (report.missing > 0 && !self.request.nearest);
            if let Some((position, value)) = report.first.as_ref().filter(|_| unfit) {
                return Err(unrepresented(self.request.sel, tensor, *position, value));
            }
            let bytes: Vec<u8> = raw.iter().flat_map(|x| x.to_le_bytes()).collect();
            write(sink, &bytes, path)?;
            self.shards.release_part(tensor, part.clone());
            self.job.did(part.len(), &tensor.name);
        }
        Ok(report)
    }
}

fn compare(report: &mut LayerReport, start: usize, targets: &[f64], found: &[Option<f64>], weights: &[f32]) {
    for (i, ((target, found), weight)) in targets.iter().zip(found).zip(weights).enumerate() {
        if !target.is_finite() || found.is_none() {
            if target.is_finite() {
                report.missing += 1
            } else {
                report.not_finite += 1
            }
            report.first.get_or_insert_with(|| (start + i, target.to_string()));
            continue;
        }
        let error = (f64::from(*weight) - target).abs();
        report.worst = report.worst.max(error);
        report.largest = report.largest.max(target.abs());
        if target.abs() >= f64::from(f32::MIN_POSITIVE) {
            report.worst_relative = report.worst_relative.max(error / target.abs());
        }
    }
}

fn unrepresented(sel: &Sel, tensor: &ShardTensor, position: usize, value: &str) -> Error {
    let index: Range<usize> = 0..tensor.dims.len();
    let place: Vec<usize> =
        index.map(|i| position / tensor.dims[i + 1..].iter().product::<usize>() % tensor.dims[i]).collect();
    let reason = match value.parse::<f64>() {
        Ok(number) if number.is_finite() => format!(
            "{value} at {place:?} has no preimage under mode {} with beta {}: choose others, or take the nearest with --nearest",
            sel.mode, sel.beta
        ),
        _ => format!("is {value} at {place:?}: only finite weights can be inverted"),
    };
    Error::tensor(&tensor.name, reason)
}
