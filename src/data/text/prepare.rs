//! A corpus made tokens once, in two fixed splits, and kept on disk.
//!
//! The split depends on the text alone, not on any seed. Documents are cut into [`Pieces`](super::Pieces) of at most 64 KiB
//! (less where the corpus is small, so that there are about 40 of them or more), counted through the whole corpus; every
//! 20th is validation. A document's last piece is followed by the tokenizer's end of text.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::dataset::{DESCRIPTION, Description, FORMAT, Part, TRAIN, VALIDATION};
use super::{Corpus, Dataset, Piece, TokenType, Tokenizer};
use crate::data::datasets;
use crate::error::{Error, Result};
use crate::files::{ensure_writable_folder, hex, reason, write_atomically, write_bytes};

/// Largest and smallest size of a piece, and into how many a small corpus is cut at least.
const PIECE: u64 = 64 << 10;
const SMALLEST: u64 = 1 << 10;
const PIECES: u64 = 40;
/// Of so many pieces the last is validation.
const EVERY: u64 = 20;
/// Bytes of text that are tokenised together, by all cores.
const AT_ONCE: usize = 4 << 20;

/// Where tokens are kept: `tokens` in the folder of fetched files.
pub fn default_cache() -> PathBuf {
    datasets::folder().join("tokens")
}

/// The corpus as tokens: those in `cache`, if this text was prepared with this tokenizer before, or else made now.
/// `progress` is told the bytes of text done and in all.
///
/// Reads the whole text once to know it by its hash (a changed one is another), and once more to tokenise. Each file
/// appears when it is complete, and two processes that prepare the same write the same bytes.
///
/// **Errors** as [`Corpus::documents`] and [`Pieces`](super::Pieces); when the corpus is too small to give both splits or
/// changes meanwhile; when `cache` cannot be written; as [`Dataset::open`].
pub fn prepare(
    corpus: &Corpus,
    tokenizer: Tokenizer,
    cache: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Dataset> {
    let survey = survey(corpus)?;
    if survey.bytes == 0 {
        return Err(Error::file(corpus.path(), "has documents, but all are empty: there is no text"));
    }
    let folder = cache.as_ref().join(key(corpus, &survey, tokenizer));
    let complete = [DESCRIPTION, TRAIN, VALIDATION].iter().all(|name| folder.join(name).is_file());
    let dataset = match complete {
        true => Dataset::open(&folder)?,
        false => {
            write(corpus, &survey, tokenizer, &folder, progress)?;
            Dataset::open(&folder)?
        }
    };
    let found = dataset.description();
    if found.corpus_sha256 != survey.sha256 || found.corpus != corpus.name() || dataset.tokenizer() != tokenizer {
        let reason = format!("is about other tokens ({} of {}); remove this file", found.tokenizer, found.corpus);
        return Err(Error::file(folder.join(DESCRIPTION), reason + " to have them made again"));
    }
    Ok(dataset)
}

/// What one reading of a corpus tells.
#[derive(Debug, PartialEq)]
struct Survey {
    documents: u64,
    /// Bytes of UTF-8.
    bytes: u64,
    sha256: String,
}

/// Hash of the documents: file by file name, text, and an end that is not UTF-8.
#[derive(Default)]
struct Reading {
    documents: u64,
    bytes: u64,
    digest: Sha256,
}

impl Reading {
    fn begin(&mut self, label: &str) {
        self.documents += 1;
        self.digest.update(label);
        self.digest.update([0]);
    }

    fn text(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.digest.update(text);
    }

    fn end(&mut self) {
        self.digest.update([0xff]);
    }

    fn survey(self) -> Survey {
        Survey { documents: self.documents, bytes: self.bytes, sha256: hex(&self.digest.finalize()) }
    }
}

fn survey(corpus: &Corpus) -> Result<Survey> {
    let mut reading = Reading::default();
    for document in corpus.documents() {
        let document = document?;
        reading.begin(document.label());
        for piece in document.pieces(PIECE as usize) {
            reading.text(&piece?.text);
        }
        reading.end();
    }
    Ok(reading.survey())
}

/// Name of the folder for these tokens: another for everything that they depend on.
fn key(corpus: &Corpus, survey: &Survey, tokenizer: Tokenizer) -> String {
    let parts = format!("{FORMAT}\0{}\0{}\0{tokenizer}", corpus.name(), survey.sha256);
    format!("{tokenizer}-{}", &hex(&Sha256::digest(parts))[..16])
}

fn write(
    corpus: &Corpus,
    survey: &Survey,
    tokenizer: Tokenizer,
    folder: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let advice = "SINEXP_DATA=FOLDER names another place for data";
    fs::create_dir_all(folder)
        .map_err(|e| Error::file(folder, format!("cannot be made for tokens: {}; {advice}", reason(&e))))?;
    ensure_writable_folder(folder)
        .map_err(|_| Error::file(folder, format!("cannot be written, but tokens go there; {advice}")))?;
    let dtype = TokenType::of(tokenizer.vocabulary());
    let piece_bytes = (survey.bytes / PIECES).clamp(SMALLEST, PIECE);
    let (train, validation) = (folder.join(TRAIN), folder.join(VALIDATION));
    let mut parts = [Part::default(), Part::default()];
    write_atomically(&train, |to_train| {
        write_atomically(&validation, |to_validation| {
            let mut outputs = [Output::new(to_train, &train), Output::new(to_validation, &validation)];
            let mut reading = Reading::default();
            let mut waiting: Vec<Piece> = Vec::new();
            let (mut held, mut count) = (0, 0);
            let mut flush = |waiting: &mut Vec<Piece>, count: &mut u64| -> Result<()> {
                let tokens: Vec<Vec<u8>> = waiting.par_iter().map(|piece| stored(piece, tokenizer, dtype)).collect();
                for (piece, tokens) in waiting.drain(..).zip(tokens) {
                    let part = usize::from(*count % EVERY == EVERY - 1);
                    outputs[part].write(&tokens, &piece, dtype)?;
                    *count += 1;
                }
                Ok(())
            };
            for document in corpus.documents() {
                let document = document?;
                reading.begin(document.label());
                for piece in document.pieces(piece_bytes as usize) {
                    let piece = piece?;
                    reading.text(&piece.text);
                    held += piece.text.len();
                    waiting.push(piece);
                    if held >= AT_ONCE {
                        flush(&mut waiting, &mut count)?;
                        progress(reading.bytes, survey.bytes);
                        held = 0;
                    }
                }
                reading.end();
            }
            flush(&mut waiting, &mut count)?;
            progress(reading.bytes, survey.bytes);
            if reading.survey() != *survey {
                return Err(Error::file(corpus.path(), "changed while it was read; try again when it is complete"));
            }
            if count < EVERY {
                return Err(too_small(corpus, survey, count));
            }
            parts = outputs.map(Output::finish);
            Ok(())
        })
    })?;
    let [train, validation] = parts;
    let description = Description {
        format: FORMAT,
        corpus: corpus.name().into(),
        corpus_sha256: survey.sha256.clone(),
        documents: survey.documents,
        bytes: survey.bytes,
        tokenizer: tokenizer.id().into(),
        dtype,
        piece_bytes,
        train,
        validation,
    };
    description.write(folder)
}

fn too_small(corpus: &Corpus, survey: &Survey, pieces: u64) -> Error {
    let found = format!("{} bytes of text make {pieces} pieces of up to {SMALLEST} bytes", survey.bytes);
    let needed = format!("training and validation take {EVERY}, so at least {} bytes", EVERY * SMALLEST);
    Error::file(corpus.path(), format!("is too small to train on: its {found}; {needed}"))
}

/// The bytes of a piece's tokens.
fn stored(piece: &Piece, tokenizer: Tokenizer, dtype: TokenType) -> Vec<u8> {
    let mut tokens = tokenizer.encode(&piece.text);
    if piece.last {
        tokens.extend(tokenizer.end_of_text());
    }
    let mut bytes = Vec::with_capacity(tokens.len() * dtype.size());
    dtype.write(&tokens, &mut bytes);
    bytes
}

/// A split that is being written.
struct Output<'a> {
    writer: &'a mut dyn Write,
    path: &'a Path,
    part: Part,
    digest: Sha256,
}

impl<'a> Output<'a> {
    fn new(writer: &'a mut dyn Write, path: &'a Path) -> Self {
        Output { writer, path, part: Part::default(), digest: Sha256::new() }
    }

    fn write(&mut self, tokens: &[u8], piece: &Piece, dtype: TokenType) -> Result<()> {
        let fail = |e: std::io::Error| Error::file(self.path, format!("cannot be written: {}", reason(&e)));
        self.writer.write_all(tokens).map_err(fail)?;
        self.digest.update(tokens);
        self.part.tokens += (tokens.len() / dtype.size()) as u64;
        self.part.bytes += piece.text.len() as u64;
        Ok(())
    }

    fn finish(self) -> Part {
        Part { sha256: hex(&self.digest.finalize()), ..self.part }
    }
}

impl Description {
    fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(DESCRIPTION);
        let text = serde_json::to_string_pretty(self).map_err(|e| Error::file(&path, e))?;
        write_bytes(path, (text + "\n").as_bytes())
    }
}

#[cfg(test)]
mod tests;
