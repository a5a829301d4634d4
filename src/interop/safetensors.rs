//! safetensors in and out: named host tensors with string metadata.
//!
//! [`read`] takes a whole file, [`Reader`] one tensor at a time, so that a checkpoint larger than memory can be gone
//! through. Every header is checked before a byte of data is believed: length, JSON, dtypes, offsets, shapes.
//!
//! A tensor that is stored under two names (tied weights: clones of one [`Array`]) is written once; the metadata entry
//! `tied` is a JSON object from the other names to the stored one, and reading restores them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata, TensorView};

use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::files::write_bytes;

/// Metadata key under which tied names are kept.
const TIED: &str = "tied";
/// Longest header that is read, the format's own limit.
const MAX_HEADER: u64 = 100_000_000;

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

/// Writes the file atomically: `path` has the old content or the whole new one.
///
/// **Errors** when a name is `__metadata__`, or the file cannot be written.
pub fn write(path: impl AsRef<Path>, content: &Tensors) -> Result<()> {
    let path = path.as_ref();
    let fail = |reason: String| Error::file(path, reason);
    if content.tensors.contains_key("__metadata__") {
        return Err(fail("a tensor cannot be named __metadata__ in a safetensors file".into()));
    }
    let mut views = Vec::new();
    let mut tied: BTreeMap<&str, &str> = BTreeMap::new();
    let mut stored: HashMap<(*const u8, DType, &[usize]), &str> = HashMap::new();
    for (name, array) in &content.tensors {
        let identity = (array.bytes().as_ptr(), array.dtype(), array.dims());
        // Empty arrays have no memory of their own to be tied by.
        match stored.get(&identity).filter(|_| !array.is_empty()) {
            Some(first) => {
                tied.insert(name, first);
            }
            None => {
                stored.insert(identity, name);
                let view = TensorView::new(to_file(array.dtype()), array.dims().to_vec(), array.bytes());
                views.push((name.as_str(), view.map_err(|e| Error::tensor(name, e))?));
            }
        }
    }
    let mut metadata: HashMap<String, String> = content.metadata.clone().into_iter().collect();
    if !tied.is_empty() {
        let text = serde_json::to_string(&tied).map_err(|e| fail(e.to_string()))?;
        metadata.insert(TIED.into(), text);
    }
    let metadata = (!metadata.is_empty()).then_some(metadata);
    let bytes = safetensors::serialize(views, metadata).map_err(|e| fail(format!("cannot be written: {e}")))?;
    write_bytes(path, &bytes)
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
        let fail = |reason: String| Error::file(path, reason);
        let unreadable = |e: std::io::Error| fail(format!("cannot be read: {e}"));
        if path.is_dir() {
            return Err(fail("is a folder; give a .safetensors file".into()));
        }
        let mut file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let mut word = [0u8; 8];
        if length < 8 {
            return Err(fail(format!("is no safetensors file: {length} bytes are too few")));
        }
        file.read_exact(&mut word).map_err(unreadable)?;
        let size = u64::from_le_bytes(word);
        if size > MAX_HEADER {
            return Err(fail(format!(
                "is no safetensors file: its header would be {size} bytes, at most {MAX_HEADER} are"
            )));
        }
        if size > length - 8 {
            return Err(fail(format!("is cut off: its header needs {size} bytes, {} are there", length - 8)));
        }
        let mut text = vec![0u8; size as usize];
        file.read_exact(&mut text).map_err(unreadable)?;
        let header: Metadata = serde_json::from_slice(&text).map_err(|e| fail(format!("has a damaged header: {e}")))?;
        let (want, have) = (header.data_len() as u64, length - 8 - size);
        if want != have {
            let how = if have < want { "is cut off" } else { "has bytes after its end" };
            return Err(fail(format!("{how}: its tensors need {want} bytes, {have} are there")));
        }
        let mut metadata: BTreeMap<String, String> =
            header.metadata().clone().unwrap_or_default().into_iter().collect();
        let mut tied = BTreeMap::new();
        if let Some(text) = metadata.get(TIED) {
            // Only our own record is taken; another program's entry of that name stays metadata.
            if let Ok(map) = serde_json::from_str::<BTreeMap<String, String>>(text)
                && map.iter().all(|(n, s)| header.info(s).is_some() && header.info(n).is_none())
            {
                tied = map;
                metadata.remove(TIED);
            }
        }
        let stored = header.offset_keys();
        Ok(Reader { path: path.to_owned(), file, header, stored, data_start: 8 + size, tied, metadata })
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
    /// **Errors** when there is none of this name, listing those there are, or its element type is not one of
    /// [`DType`]'s.
    pub fn tensor(&mut self, name: &str) -> Result<Array> {
        let stored = self.tied.get(name).map_or(name, String::as_str);
        let Some(info) = self.header.info(stored) else {
            let mut known: Vec<&str> = self.names().take(9).collect();
            if known.len() == 9 {
                known[8] = "...";
            }
            let reason = format!("not in {}; it holds {}", self.path.display(), known.join(", "));
            return Err(Error::tensor(name, reason));
        };
        let dtype = from_file(info.dtype).ok_or_else(|| {
            Error::tensor(
                name,
                format!("has element type {:?} in {}, which is not supported", info.dtype, self.path.display()),
            )
        })?;
        let (start, end) = info.data_offsets;
        let dims = info.shape.clone();
        let mut bytes = vec![0u8; end - start];
        let unreadable = |e: std::io::Error| Error::file(&self.path, format!("cannot be read: {e}"));
        self.file.seek(SeekFrom::Start(self.data_start + start as u64)).map_err(unreadable)?;
        self.file.read_exact(&mut bytes).map_err(unreadable)?;
        Array::from_bytes(dtype, &dims, bytes)
    }
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
