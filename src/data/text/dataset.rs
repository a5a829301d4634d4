//! Tokens of a corpus in two splits, and batches of them.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::tokens::damaged;
use super::{TokenFile, TokenType, Tokenizer};
use crate::array::Array;
use crate::data::datasets::sha256;
use crate::error::{Error, Result};
use crate::files::unreadable;
use crate::random::Key;

/// The files of a data set's folder.
pub(super) const TRAIN: &str = "train.bin";
pub(super) const VALIDATION: &str = "validation.bin";
pub(super) const DESCRIPTION: &str = "dataset.json";
/// Version of those files and of the way a corpus is split.
pub(super) const FORMAT: u32 = 1;

/// What a [`Dataset`] is made of: its `dataset.json`, and what a run's record says of its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Version of the format and of the split.
    pub format: u32,
    /// [`Corpus::name`](super::Corpus::name).
    pub corpus: String,
    /// Hash of the documents and their files' names.
    pub corpus_sha256: String,
    /// How many there are.
    pub documents: u64,
    /// Their length in UTF-8.
    pub bytes: u64,
    /// [`Tokenizer::id`].
    pub tokenizer: String,
    /// How tokens are stored.
    pub dtype: TokenType,
    /// Largest piece that is in one split, in bytes of text.
    pub piece_bytes: u64,
    /// What training sees.
    pub train: Part,
    /// What it does not see.
    pub validation: Part,
}

/// One split.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Tokens, ends of text included.
    pub tokens: u64,
    /// The text's length in UTF-8.
    pub bytes: u64,
    /// Checksum of the token file.
    pub sha256: String,
}

/// The tokens of a corpus. Reads from the disk what is asked for.
#[derive(Debug)]
pub struct Dataset {
    train: TokenFile,
    validation: TokenFile,
    tokenizer: Tokenizer,
    description: Description,
}

impl Dataset {
    /// The data set in a folder that [`prepare`](super::prepare()) filled.
    ///
    /// **Errors** when a file is missing, of another version, or does not have the length and checksum it was written with.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let path = folder.as_ref().join(DESCRIPTION);
        let text = fs::read_to_string(&path).map_err(|e| unreadable(&path, &e))?;
        let description: Description =
            serde_json::from_str(&text).map_err(|e| damaged(&path, &format!("is not a description of tokens: {e}")))?;
        if description.format != FORMAT {
            let reason = format!("is of format {}, not {FORMAT}", description.format);
            return Err(damaged(&path, &reason));
        }
        let tokenizer: Tokenizer = description.tokenizer.parse().map_err(|e| damaged(&path, &format!("{e}")))?;
        let open = |name: &str, part: &Part| {
            let path = folder.as_ref().join(name);
            let file = TokenFile::open(&path, description.dtype, part.tokens, tokenizer.vocabulary())?;
            match sha256(&path)? == part.sha256 {
                true => Ok(file),
                false => Err(damaged(&path, &format!("has another checksum than {DESCRIPTION} says"))),
            }
        };
        let (train, validation) = (open(TRAIN, &description.train)?, open(VALIDATION, &description.validation)?);
        Ok(Dataset { train, validation, tokenizer, description })
    }

    /// What training sees.
    pub fn train(&self) -> &TokenFile {
        &self.train
    }

    /// What it does not see.
    pub fn validation(&self) -> &TokenFile {
        &self.validation
    }

    /// What made the tokens.
    pub fn tokenizer(&self) -> Tokenizer {
        self.tokenizer
    }

    /// Name of the corpus, for results.
    pub fn corpus(&self) -> &str {
        &self.description.corpus
    }

    /// All that is known about it.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The batch of training step `step`: i32 `[rows, length + 1]`, so that `length` tokens each have a next one. Rows
    /// start anywhere with equal chance, and depend on the key and the step only.
    ///
    /// **Errors** when the split is shorter than a row, or the file is damaged.
    pub fn batch(&self, key: Key, step: u64, rows: usize, length: usize) -> Result<Array> {
        let starts = room(&self.train, length)? + 1;
        let key = match (step >> 32) as u32 {
            0 => key.fold_in(step as u32),
            high => key.fold_in(step as u32).fold_in(high),
        };
        // The remainder's bias is starts / 2^64.
        gather(&self.train, key.bits64(&[rows]).iter().map(|bits| bits % starts), rows, length)
    }

    /// `count` batches of the validation split, or as many as it fills without a token being predicted twice, but at
    /// least one: i32 `[rows, length + 1]` each. The rows are spread evenly over the split, the same for every run.
    ///
    /// **Errors** when the split is shorter than a row, or the file is damaged.
    pub fn validation_batches(&self, rows: usize, length: usize, count: usize) -> Result<Vec<Array>> {
        let room = room(&self.validation, length)?;
        let batch = rows.max(1) as u64;
        let filled = (room / length.max(1) as u64 + 1) / batch;
        let count = (count as u64).min(filled).max(1);
        let last = (count * batch - 1).max(1);
        let start = |row: u64| (u128::from(row) * u128::from(room) / u128::from(last)) as u64;
        let batches =
            (0..count).map(|b| gather(&self.validation, (0..rows as u64).map(|r| start(b * batch + r)), rows, length));
        batches.collect()
    }
}

/// Where the last row of `length + 1` tokens starts.
fn room(file: &TokenFile, length: usize) -> Result<u64> {
    let tokens = file.tokens();
    tokens.checked_sub(length as u64 + 1).ok_or_else(|| {
        let reason = format!("has {tokens} tokens, but a sequence of {length} takes {}", length as u64 + 1);
        Error::file(file.path(), format!("{reason}; use shorter sequences or a larger corpus"))
    })
}

fn gather(file: &TokenFile, starts: impl Iterator<Item = u64>, rows: usize, length: usize) -> Result<Array> {
    let mut tokens = Vec::with_capacity(rows * (length + 1));
    for start in starts {
        file.read(start, length + 1, &mut tokens)?;
    }
    Ok(Array::from_slice(&[rows, length + 1], &tokens))
}

#[cfg(test)]
mod tests;
