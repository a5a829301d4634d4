//! Many safetensors files as one set of tensors behind memory maps.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use memmap2::{Advice, Mmap};
use serde_json::Value;

use super::header::{Header, MAX_HEADER, Unknown, distinct_names, one_line, read_header};
use super::{Dtype, array, from_file, open_file};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::files::{map, reason, release, unreadable};

/// One or many safetensors files as one set of tensors, memory-mapped: nothing is read before it is asked for.
pub struct Shards {
    files: Vec<ShardFile>,
    tensors: Vec<ShardTensor>,
    by_name: HashMap<String, usize>,
    problems: Vec<Error>,
}

/// One file of a set.
pub struct ShardFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its free text by name.
    pub metadata: BTreeMap<String, String>,
    map: Mmap,
    #[cfg(unix)]
    file: File,
    data_start: usize,
}

impl ShardFile {
    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)] // a file without a header is refused
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// The bytes before the data, which say what the file holds.
    pub fn header(&self) -> &[u8] {
        &self.map[..self.data_start]
    }
}

/// A tensor of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardTensor {
    /// The name it is stored under.
    pub name: String,
    /// Other names of the same tensor (tied weights).
    pub aliases: Vec<String>,
    /// Element type; see [`is_real`](super::is_real).
    pub dtype: Dtype,
    /// Shape, row-major.
    pub dims: Vec<usize>,
    /// Place of its file in [`Shards::files`].
    pub file: usize,
    /// Where its bytes are in the file.
    place: Range<usize>,
}

impl ShardTensor {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length in bytes.
    pub fn byte_len(&self) -> usize {
        self.place.len()
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shards({} files, {} tensors)", self.files.len(), self.tensors.len())
    }
}

impl Shards {
    /// Opens each of `paths`: a `.safetensors` file, an index (`*.json` with a `weight_map`, as
    /// `model.safetensors.index.json`), or a folder that holds an index or, without one, safetensors files.
    ///
    /// The files of an index lie in its folder or below it. What is missing or damaged beside good files becomes one of
    /// [`Shards::problems`].
    ///
    /// **Errors** when no file can be read, an index is damaged, a folder holds nothing to read or several indices, or two
    /// files hold tensors of one name.
    pub fn open(paths: &[PathBuf]) -> Result<Shards> {
        let mut all = Shards { files: Vec::new(), tensors: Vec::new(), by_name: HashMap::new(), problems: Vec::new() };
        for path in paths {
            match source(path)? {
                Source::Files(files) => files.iter().try_for_each(|file| all.add(file).map(drop))?,
                Source::Index(index) => all.add_index(&index)?,
            }
        }
        if all.files.is_empty() {
            let nothing = || Error::argument("checkpoint", "", "give a .safetensors file, an index or a folder");
            return Err(if all.problems.is_empty() { nothing() } else { all.problems.swap_remove(0) });
        }
        Ok(all)
    }

    /// Every tensor that can be read, in the order of the files and of their data; tied ones once. Those of an element
    /// type that is not known stand among the problems instead.
    pub fn tensors(&self) -> &[ShardTensor] {
        &self.tensors
    }

    /// The files that could be opened.
    pub fn files(&self) -> &[ShardFile] {
        &self.files
    }

    /// What was wrong and leaves the rest readable, in one line each: a shard that is missing or damaged, an index entry
    /// whose tensor is not in its file, a tensor of an unknown element type.
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// The tensor of this name or alias.
    pub fn find(&self, name: &str) -> Option<&ShardTensor> {
        self.by_name.get(name).map(|i| &self.tensors[*i])
    }

    /// The mapped bytes of a tensor of this set; not necessarily aligned to its elements.
    pub fn bytes(&self, tensor: &ShardTensor) -> &[u8] {
        &self.files[tensor.file].map[tensor.place.clone()]
    }

    /// A copy of a tensor.
    ///
    /// **Errors** when there is none of this name, its element type is not one that [`Array`] has, or a `bool` is neither
    /// 0 nor 1.
    pub fn array(&self, name: &str) -> Result<Array> {
        let tensor = self.find(name).ok_or_else(|| {
            Error::tensor(one_line(name), format!("not in {}", self.files.first().map_or("".into(), ShardFile::place)))
        })?;
        let fail =
            |what: String| Error::tensor(one_line(name), format!("{what} in {}", self.files[tensor.file].place()));
        let dtype = from_file(tensor.dtype)
            .ok_or_else(|| fail(format!("has element type {:?}, which is not supported,", tensor.dtype)))?;
        array(dtype, &tensor.dims, self.bytes(tensor).to_vec()).map_err(fail)
    }

    /// Takes the tensor's pages out of memory; the next access reads them again.
    pub fn release(&self, tensor: &ShardTensor) {
        self.release_part(tensor, 0..tensor.byte_len());
    }

    /// [`Shards::release`] for a range of the tensor's bytes. The pages at its ends go too.
    pub fn release_part(&self, tensor: &ShardTensor, part: Range<usize>) {
        release(&self.files[tensor.file].map, tensor.place.start + part.start, part.len());
    }

    /// Copies a range of the tensor's bytes into `room`, whose content is replaced: for going through a tensor once this takes
    /// less time and memory than its mapped bytes.
    ///
    /// **Errors** when the file cannot be read, or has become shorter.
    #[cfg(unix)]
    pub fn read_part(&self, tensor: &ShardTensor, part: Range<usize>, room: &mut Vec<u8>) -> Result<()> {
        use std::os::unix::fs::FileExt;
        let file = &self.files[tensor.file];
        room.resize(part.len(), 0);
        let fail = |e| unreadable(&file.path, &e);
        file.file.read_exact_at(room, (tensor.place.start + part.start) as u64).map_err(fail)
    }

    /// Copies a range of the tensor's bytes into `room`, whose content is replaced.
    #[cfg(not(unix))]
    pub fn read_part(&self, tensor: &ShardTensor, part: Range<usize>, room: &mut Vec<u8>) -> Result<()> {
        room.clear();
        room.extend_from_slice(&self.bytes(tensor)[part]);
        Ok(())
    }

    /// Has a range of the tensor's bytes read from the disk meanwhile: they are asked for soon.
    pub fn expect_part(&self, tensor: &ShardTensor, part: Range<usize>) {
        // A kernel that does not take advice reads later.
        let _ = self.files[tensor.file].map.advise_range(Advice::WillNeed, tensor.place.start + part.start, part.len());
    }

    /// Adds the tensors of a file and returns its place among the files; a file that cannot be read is a problem.
    fn add(&mut self, path: &Path) -> Result<Option<usize>> {
        let opened = open_file(path).and_then(|(file, length)| {
            let header = read_header(&file, length, Unknown::AsBytes).map_err(|reason| Error::file(path, reason))?;
            let fail = |e: std::io::Error| unreadable(path, &e);
            Ok((map(&file).map_err(fail)?, file, header))
        });
        let (map, opened_file, header) = match opened {
            Ok(opened) => opened,
            Err(problem) => {
                self.problems.push(problem);
                return Ok(None);
            }
        };
        let Header { tensors, data_start, metadata, tied, foreign } = header;
        // Read from front to back as a rule, so far ahead. A kernel that does not take advice reads later.
        let _ = map.advise(Advice::Sequential);
        let file = self.files.len();
        self.files.push(ShardFile {
            path: path.to_owned(),
            metadata,
            map,
            #[cfg(unix)]
            file: opened_file,
            data_start: data_start as usize,
        });
        for name in tensors.offset_keys() {
            let Some(info) = tensors.info(&name) else { continue };
            if let Some(dtype) = foreign.get(&name) {
                let reason = format!("has the unknown element type {dtype} in {}; skipped", path.display());
                self.problems.push(Error::tensor(one_line(&name), reason));
                continue;
            }
            let aliases: Vec<String> = tied.iter().filter(|(_, s)| **s == name).map(|(n, _)| n.clone()).collect();
            let (start, end) = info.data_offsets;
            let place = self.files[file].data_start + start..self.files[file].data_start + end;
            for known in aliases.iter().chain([&name]) {
                if let Some(other) = self.by_name.insert(known.clone(), self.tensors.len()) {
                    let first = self.files[self.tensors[other].file].place();
                    let reason = format!("stands in both {first} and {}; give one of them", path.display());
                    return Err(Error::tensor(one_line(known), reason));
                }
            }
            self.tensors.push(ShardTensor { name, aliases, dtype: info.dtype, dims: info.shape.clone(), file, place });
        }
        Ok(Some(file))
    }

    /// Adds the files that an index names.
    fn add_index(&mut self, path: &Path) -> Result<()> {
        let entries = read_index(path)?;
        let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, file) in &entries {
            files.entry(file).or_default().push(name);
        }
        for (file, mut names) in files {
            names.sort_unstable();
            let inside = !file.is_empty() && Path::new(file).components().all(|c| matches!(c, Component::Normal(_)));
            if !inside {
                let reason = format!("names the file {}, which is not below its folder; skipped", one_line(file));
                self.problems.push(Error::file(path, reason));
                continue;
            }
            let place = path.parent().unwrap_or(Path::new("")).join(file);
            let before = self.problems.len();
            let Some(opened) = self.add(&place)? else {
                // The reason of the failure, and what it costs.
                if let Some(Error::File { reason, .. }) = self.problems.last_mut() {
                    *reason = format!("{reason}; {}", tensors_of(&names, path));
                }
                continue;
            };
            let known = &self.problems[before..];
            let missing: Vec<Error> = names
                .into_iter()
                .filter(|name| self.find(name).is_none_or(|t| t.file != opened))
                .filter(|name| {
                    !known.iter().any(|e| matches!(e, Error::Tensor { name: n, .. } if *n == one_line(name)))
                })
                .map(|name| {
                    let reason = format!("{} says it is in {}, where it is not", path.display(), place.display());
                    Error::tensor(one_line(name), reason)
                })
                .collect();
            self.problems.extend(missing);
        }
        Ok(())
    }
}

impl ShardFile {
    fn place(&self) -> String {
        self.path.display().to_string()
    }
}

fn tensors_of(names: &[&str], index: &Path) -> String {
    let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
    format!("{} has {}{more} in it", index.display(), one_line(names[0]))
}

/// What a path names.
enum Source {
    Files(Vec<PathBuf>),
    Index(PathBuf),
}

fn source(path: &Path) -> Result<Source> {
    if !path.is_dir() {
        let json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
        return Ok(if json { Source::Index(path.to_owned()) } else { Source::Files(vec![path.to_owned()]) });
    }
    let fail = |e: std::io::Error| unreadable(path, &e);
    let entries: Vec<PathBuf> =
        fs::read_dir(path).map_err(fail)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(fail)?;
    let ending = |end: &str| -> Vec<PathBuf> {
        let ends = |p: &&PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().ends_with(end)) && !p.is_dir();
        let mut found: Vec<PathBuf> = entries.iter().filter(ends).cloned().collect();
        found.sort();
        found
    };
    let mut indices = ending(".safetensors.index.json");
    match indices.len() {
        0 => {}
        1 => return Ok(Source::Index(indices.swap_remove(0))),
        n => return Err(Error::file(path, format!("holds {n} files *.safetensors.index.json; give one of them"))),
    }
    let files = ending(".safetensors");
    match files.is_empty() {
        true => Err(Error::file(path, "holds neither *.safetensors nor *.safetensors.index.json")),
        false => Ok(Source::Files(files)),
    }
}

/// Pairs of tensor and file, by tensor.
fn read_index(path: &Path) -> Result<BTreeMap<String, String>> {
    let fail = |reason: String| Error::file(path, reason);
    let (_, length) = open_file(path)?;
    if length > MAX_HEADER {
        return Err(fail(format!("is no index: {length} bytes are too many")));
    }
    let text = fs::read(path).map_err(|e| fail(format!("cannot be read: {}", reason(&e))))?;
    let damaged = |e: serde_json::Error| fail(format!("is no index: {}", one_line(&e.to_string())));
    distinct_names(&text, "weight_map").map_err(damaged)?;
    let index: Value = serde_json::from_slice(&text).map_err(damaged)?;
    let entries = index.get("weight_map").and_then(Value::as_object);
    let entries = entries.ok_or_else(|| fail("is no index: it has no object weight_map".into()))?;
    let pair = |(name, file): (&String, &Value)| match file.as_str() {
        Some(file) => Ok((name.clone(), file.to_owned())),
        None => Err(fail(format!("its weight_map has no file name for {}", one_line(name)))),
    };
    entries.iter().map(pair).collect()
}
