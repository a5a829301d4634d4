//! safetensors in and out: named host tensors with string metadata.
//!
//! [`read`] takes a whole file, [`Reader`] one tensor at a time, [`Shards`] any number of files behind a memory map, so
//! that a checkpoint larger than memory can be gone through; [`write()`] writes a file, [`write_streaming`] one that is larger
//! than memory. Every header is checked before a byte of data is believed: length, JSON, dtypes, offsets, shapes.
//!
//! A tensor that is stored under two names (tied weights: clones of one [`Array`]) is written once; the metadata entry
//! `sinexp.tied` is a JSON object from the other names to the stored one, and reading restores them.
//!
//! ```
//! use std::collections::BTreeMap;
//! use sinexp::array::Array;
//! use sinexp::interop::safetensors::{Reader, Shards, Tensors, write};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("model.safetensors");
//! let table = Array::from_slice(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! let tensors = BTreeMap::from([("emb".to_owned(), table.clone()), ("head".to_owned(), table.clone())]); // tied
//! write(&path, &Tensors { tensors, metadata: BTreeMap::new() })?;
//! assert_eq!(Reader::open(&path)?.tensor("head")?, table);
//! let shards = Shards::open(&[path])?;
//! assert_eq!((shards.tensors().len(), &shards.tensors()[0].aliases[0][..]), (1, "head")); // stored once
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod decode;
mod header;
mod shards;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::tensor::Metadata;

use self::header::{Header, Unknown, one_line, read_header};
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::files::{reason, unreadable};

pub use self::decode::{is_real, to_f32, to_f64};
pub use self::shards::{ShardFile, ShardTensor, Shards};
pub use self::stream::{Entry, write_streaming};
pub use safetensors::tensor::Dtype;

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors {
    /// By name.
    pub tensors: BTreeMap<String, Array>,
    /// Free text by name.
    pub metadata: BTreeMap<String, String>,
}

/// Reads every tensor. See [`Reader::open`] for the errors.
pub fn read(path: impl AsRef<Path>) -> Result<Tensors> {
    let mut reader = Reader::open(path)?;
    let names: Vec<String> = reader.names().map(str::to_owned).collect();
    let mut tensors = BTreeMap::new();
    for name in names {
        // Tied names share the bytes of the stored one.
        let stored = reader.tied.get(&name).cloned();
        let array = match stored.and_then(|s| tensors.get(&s).cloned()) {
            Some(array) => array,
            None => reader.tensor(&name)?,
        };
        tensors.insert(name, array);
    }
    Ok(Tensors { tensors, metadata: reader.metadata })
}

/// Writes the file atomically: `path` has the old content or the whole new one. The same content gives the same bytes.
///
/// **Errors** when a name is `__metadata__`, a metadata key is `sinexp.tied`, or the file cannot be written.
pub fn write(path: impl AsRef<Path>, content: &Tensors) -> Result<()> {
    let mut arrays: Vec<&Array> = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    let mut first: HashMap<(*const u8, DType, &[usize]), usize> = HashMap::new();
    for (name, array) in &content.tensors {
        let identity = (array.bytes().as_ptr(), array.dtype(), array.dims());
        // Empty arrays have no memory of their own to be tied by.
        match first.get(&identity).filter(|_| !array.is_empty()) {
            Some(first) => entries[*first].aliases.push(name.clone()),
            None => {
                first.insert(identity, arrays.len());
                arrays.push(array);
                let (dtype, dims) = (to_file(array.dtype()), array.dims().to_vec());
                entries.push(Entry { name: name.clone(), dtype, dims, aliases: Vec::new() });
            }
        }
    }
    let path = path.as_ref();
    write_streaming(path, &entries, &content.metadata, |i, sink| {
        let cannot = |e: std::io::Error| Error::file(path, format!("cannot be written: {}", reason(&e)));
        sink.write_all(arrays[i].bytes()).map_err(cannot)
    })
}

/// An open file whose header has been checked.
pub struct Reader {
    path: PathBuf,
    file: File,
    header: Metadata,
    /// Names in the order of their data.
    stored: Vec<String>,
    data_start: u64,
    tied: BTreeMap<String, String>,
    /// Free text by name, without the entry that records tied tensors.
    pub metadata: BTreeMap<String, String>,
}

impl Reader {
    /// Opens a file and checks its header.
    ///
    /// **Errors** name the file and say what is wrong: it cannot be read, is cut off, its header is too long, not JSON,
    /// or its tensors overlap, leave gaps, or do not fit their shapes.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, length) = open_file(path)?;
        let header = read_header(&file, length, Unknown::Refuse).map_err(|reason| Error::file(path, reason))?;
        let Header { tensors: header, data_start, metadata, tied, .. } = header;
        let stored = header.offset_keys();
        Ok(Reader { path: path.to_owned(), file, header, stored, data_start, tied, metadata })
    }

    /// Every name, tied ones included, the stored ones in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.stored.iter().chain(self.tied.keys()).map(String::as_str)
    }

    /// Element type (None for one that [`Array`] has not) and shape of a tensor, without reading it.
    pub fn shape(&self, name: &str) -> Option<(Option<DType>, &[usize])> {
        let info = self.header.info(self.tied.get(name).map_or(name, String::as_str))?;
        Some((from_file(info.dtype), &info.shape))
    }

    /// Reads one tensor.
    ///
    /// **Errors** when there is none of this name, listing those there are, its element type is not one of [`DType`]'s,
    /// or a `bool` is neither 0 nor 1.
    pub fn tensor(&mut self, name: &str) -> Result<Array> {
        let stored = self.tied.get(name).map_or(name, String::as_str);
        let fail = |what: String| Error::tensor(one_line(name), format!("{what} in {}", self.path.display()));
        let Some(info) = self.header.info(stored) else {
            let mut known: Vec<String> = self.names().take(9).map(one_line).collect();
            if known.len() == 9 {
                known[8] = "...".into();
            }
            let reason = format!("not in {}; it holds {}", self.path.display(), known.join(", "));
            return Err(Error::tensor(one_line(name), reason));
        };
        let dtype = from_file(info.dtype)
            .ok_or_else(|| fail(format!("has element type {:?}, which is not supported,", info.dtype)))?;
        let (start, end) = info.data_offsets;
        let mut bytes = vec![0u8; end - start];
        let broken = |e: std::io::Error| unreadable(&self.path, &e);
        self.file.seek(SeekFrom::Start(self.data_start + start as u64)).map_err(broken)?;
        self.file.read_exact(&mut bytes).map_err(broken)?;
        array(dtype, &info.shape, bytes).map_err(fail)
    }
}

/// The array of a tensor's bytes; the error is the reason alone.
fn array(dtype: DType, dims: &[usize], bytes: Vec<u8>) -> Result<Array, String> {
    if dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
        return Err("has bool bytes other than 0 and 1".into());
    }
    Array::from_bytes(dtype, dims, bytes).map_err(|e| format!("cannot be held ({e})"))
}

/// A file to read from, and its length.
fn open_file(path: &Path) -> Result<(File, u64)> {
    let fail = |e: std::io::Error| unreadable(path, &e);
    if path.is_dir() {
        return Err(Error::file(path, "is a folder; give a .safetensors file"));
    }
    let file = File::open(path).map_err(fail)?;
    let length = file.metadata().map_err(fail)?.len();
    Ok((file, length))
}

fn to_file(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

fn from_file(dtype: Dtype) -> Option<DType> {
    DType::ALL.into_iter().find(|d| to_file(*d) == dtype)
}
