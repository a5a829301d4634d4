//! A file of token numbers behind a memory map: opened at once, read where it is needed.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::{map, unreadable};

/// How a token is stored: an unsigned integer, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenType {
    /// Two bytes.
    Uint16,
    /// Four bytes.
    Uint32,
}

impl TokenType {
    /// The smaller type that holds every token below `vocabulary`.
    pub fn of(vocabulary: usize) -> Self {
        if vocabulary <= 1 << 16 { TokenType::Uint16 } else { TokenType::Uint32 }
    }

    /// Bytes per token.
    pub fn size(self) -> usize {
        match self {
            TokenType::Uint16 => 2,
            TokenType::Uint32 => 4,
        }
    }

    /// Appends the bytes of `tokens`, which must fit the type.
    pub fn write(self, tokens: &[u32], out: &mut Vec<u8>) {
        for token in tokens {
            out.extend_from_slice(&token.to_le_bytes()[..self.size()]);
        }
    }
}

/// Tokens on disk: nothing but numbers of a [`TokenType`], as `numpy.memmap` reads them too.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    map: Mmap,
    kind: TokenType,
    vocabulary: usize,
}

impl TokenFile {
    /// Maps the file, which should hold `tokens` numbers below `vocabulary`.
    ///
    /// Its length is checked now. A file that is cut short while it is in use ends the program by SIGBUS: replace such
    /// files by renaming, as [`prepare`](super::prepare()) does, instead of writing into them.
    ///
    /// **Errors** when it cannot be read or has another length.
    pub fn open(path: impl AsRef<Path>, kind: TokenType, tokens: u64, vocabulary: usize) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| unreadable(path, &e))?;
        let length = file.metadata().map_err(|e| unreadable(path, &e))?.len();
        let wanted = tokens.checked_mul(kind.size() as u64);
        if tokens == 0 || wanted != Some(length) {
            let reason = format!("has {length} bytes, not the {} of {tokens} tokens", wanted.unwrap_or(u64::MAX));
            return Err(damaged(path, &reason));
        }
        let map = map(&file).map_err(|e| unreadable(path, &e))?;
        Ok(TokenFile { path: path.to_owned(), map, kind, vocabulary })
    }

    /// Number of tokens; at least one.
    pub fn tokens(&self) -> u64 {
        (self.map.len() / self.kind.size()) as u64
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the `length` tokens from `start` on to `out`.
    ///
    /// **Errors** when they end beyond the file, or one is not below the vocabulary (then the file is damaged).
    pub fn read(&self, start: u64, length: usize, out: &mut Vec<i32>) -> Result<()> {
        let size = self.kind.size();
        let bytes = usize::try_from(start).ok().and_then(|start| {
            let end = start.checked_add(length)?.checked_mul(size)?;
            self.map.get(start * size..end)
        });
        let Some(bytes) = bytes else {
            let reason = format!("has {} tokens; {length} from {start} on were asked for", self.tokens());
            return Err(Error::file(&self.path, reason));
        };
        for (i, token) in bytes.chunks_exact(size).enumerate() {
            let token = match *token {
                [a, b] => u32::from(u16::from_le_bytes([a, b])),
                [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
                _ => unreachable!("chunks have the type's size"),
            };
            match i32::try_from(token) {
                Ok(known) if (token as usize) < self.vocabulary => out.push(known),
                _ => {
                    let at = start + i as u64;
                    let reason = format!("token {at} is {token}, not below the vocabulary's {}", self.vocabulary);
                    return Err(damaged(&self.path, &reason));
                }
            }
        }
        Ok(())
    }
}

/// The error for a token file that is not what was written.
pub(super) fn damaged(path: &Path, what: &str) -> Error {
    Error::file(path, format!("{what}; remove this file to have it made again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(tokens: &[u32], kind: TokenType) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        let mut bytes = Vec::new();
        kind.write(tokens, &mut bytes);
        assert_eq!(bytes.len(), tokens.len() * kind.size());
        std::fs::write(file.path(), bytes).expect("file");
        file
    }

    #[test]
    fn two_and_four_bytes() {
        assert_eq!(TokenType::of(1 << 16), TokenType::Uint16);
        assert_eq!(TokenType::of((1 << 16) + 1), TokenType::Uint32);
        for (kind, tokens) in [(TokenType::Uint16, [0, 258, 65535]), (TokenType::Uint32, [7, 65536, 0x0102_0304])] {
            let file = file_of(&tokens, kind);
            let open = TokenFile::open(file.path(), kind, 3, 1 << 30).expect("whole");
            assert_eq!(open.tokens(), 3);
            let mut read = vec![-1];
            open.read(0, 3, &mut read).expect("all");
            open.read(2, 1, &mut read).expect("the last");
            open.read(3, 0, &mut read).expect("none");
            let expected = [-1, tokens[0] as i32, tokens[1] as i32, tokens[2] as i32, tokens[2] as i32];
            assert_eq!(read, expected);
            for (start, length) in [(2, 2), (4, 0), (u64::MAX, 1), (1, usize::MAX)] {
                let beyond = open.read(start, length, &mut read).expect_err("beyond the end").to_string();
                assert!(beyond.contains("has 3 tokens"), "{beyond}");
            }
            assert_eq!(read, expected, "nothing is added");
        }
    }

    #[test]
    fn damage_is_refused() {
        let file = file_of(&[1, 2, 300], TokenType::Uint16);
        let open = |kind, tokens, vocabulary| TokenFile::open(file.path(), kind, tokens, vocabulary);
        for (kind, tokens) in [(TokenType::Uint16, 4), (TokenType::Uint32, 3), (TokenType::Uint16, 0)] {
            let refused = open(kind, tokens, 1000).expect_err("another length").to_string();
            assert!(refused.contains("has 6 bytes, not the ") && refused.contains("remove this file"), "{refused}");
        }
        assert!(open(TokenType::Uint32, u64::MAX, 1000).is_err());
        let token = open(TokenType::Uint16, 3, 256).expect("whole").read(1, 2, &mut Vec::new());
        let token = token.expect_err("beyond the vocabulary").to_string();
        assert!(token.contains("token 2 is 300, not below the vocabulary's 256; remove this file"), "{token}");
        assert!(
            TokenFile::open("no/such.bin", TokenType::Uint16, 1, 2)
                .expect_err("missing")
                .to_string()
                .contains("cannot be read")
        );
    }
}
