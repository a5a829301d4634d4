//! Writing a file tensor by tensor, so that it may be larger than memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::header::{TIED, header_bytes, one_line};
use super::shards::ShardTensor;
use crate::error::{Error, Result};
use crate::files::{reason, write_atomically};

/// A tensor that will be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its element type, of all that the format has.
    pub dtype: Dtype,
    /// Its shape.
    pub dims: Vec<usize>,
    /// Other names of the same tensor.
    pub aliases: Vec<String>,
}

impl Entry {
    /// That of a tensor of a checkpoint.
    pub fn of(tensor: &ShardTensor) -> Self {
        let ShardTensor { name, dtype, dims, aliases, .. } = tensor.clone();
        Entry { name, dtype, dims, aliases }
    }

    /// Bytes of its data; None where there are more than a number holds, or elements share a byte unevenly.
    pub fn bytes(&self) -> Option<usize> {
        let count = self.dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
        let bits = count.checked_mul(self.dtype.bitsize())?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }
}

/// Writes a file of these tensors. `fill` writes the data of one after another, by position, wide elements first, so that
/// each tensor is aligned to its element, and in the order given otherwise; the file appears when all are written. The
/// same content gives the same bytes.
///
/// **Errors** when two have one name, a name is `__metadata__`, a metadata key is `sinexp.tied`, `fill` fails or writes
/// another number of bytes than the shape has, or the file cannot be written; `path` is then as it was.
pub fn write_streaming(
    path: impl AsRef<Path>,
    entries: &[Entry],
    metadata: &BTreeMap<String, String>,
    mut fill: impl FnMut(usize, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    let fail = |reason: String| Error::file(path, format!("cannot be written: {reason}"));
    let all = entries.iter().flat_map(|e| std::iter::once(&e.name).chain(&e.aliases));
    let mut names: Vec<&str> = all.map(String::as_str).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(fail(format!("two tensors would be named `{}`", one_line(pair[0]))));
    }
    if names.contains(&"__metadata__") {
        return Err(fail("a tensor cannot be named __metadata__ in a safetensors file".into()));
    }
    if metadata.contains_key(TIED) {
        return Err(fail(format!("the metadata key {TIED} is kept for tied tensors; give another")));
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|i| Reverse(entries[*i].dtype.bitsize()));
    let mut end = 0usize;
    let mut infos = Vec::with_capacity(entries.len());
    for entry in order.iter().map(|i| &entries[*i]) {
        let start = end;
        let bytes = entry.bytes().and_then(|bytes| start.checked_add(bytes));
        let too_large = || Error::tensor(one_line(&entry.name), format!("has shape {:?}: too large", entry.dims));
        end = bytes.ok_or_else(too_large)?;
        let info = TensorInfo { dtype: entry.dtype, shape: entry.dims.clone(), data_offsets: (start, end) };
        infos.push((entry.name.clone(), info));
    }
    let infos = Metadata::new(None, infos).map_err(|e| fail(e.to_string()))?;
    let tied = entries.iter().flat_map(|e| e.aliases.iter().map(|alias| (alias.as_str(), e.name.as_str())));
    let tied: BTreeMap<&str, &str> = tied.collect();
    let mut metadata = metadata.clone();
    if !tied.is_empty() {
        metadata.insert(TIED.into(), serde_json::to_string(&tied).map_err(|e| fail(e.to_string()))?);
    }
    let header = header_bytes(infos, &metadata).map_err(fail)?;
    write_atomically(path, |writer| {
        writer.write_all(&header).map_err(|e| fail(reason(&e)))?;
        for i in order {
            let entry = &entries[i];
            let mut counted = Counted { writer, count: 0 };
            fill(i, &mut counted)?;
            let wanted = entry.bytes().unwrap_or(0);
            if counted.count != wanted {
                let reason = format!("{} bytes were given for {wanted}", counted.count);
                return Err(Error::tensor(one_line(&entry.name), reason));
            }
        }
        Ok(())
    })
}

struct Counted<'a> {
    writer: &'a mut dyn Write,
    count: usize,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.count += written;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }
}
