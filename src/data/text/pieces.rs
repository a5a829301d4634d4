//! A document cut into pieces: at line ends where there are some, never inside a character.

use std::io::{BufRead, ErrorKind};
use std::path::Path;

use crate::error::{Error, Result};
use crate::files::unreadable;

/// Part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its text; not empty.
    pub text: String,
    /// Whether the document ends with it.
    pub last: bool,
}

/// Iterator over the pieces of one document, which together are the document. Where they end depends on the text and the
/// size alone: behind the last line end in the second half of `size` bytes, or else before the character that does not fit.
/// Holds little more than one piece. An empty document has none.
///
/// **Errors** when the document cannot be read, or is not UTF-8 (with the offset of the byte); nothing comes after.
pub struct Pieces<'a> {
    path: &'a Path,
    reader: Box<dyn BufRead>,
    size: usize,
    /// Read, but not handed out.
    buffer: Vec<u8>,
    /// Bytes handed out.
    offset: u64,
    ended: bool,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(path: &'a Path, reader: Box<dyn BufRead>, size: usize) -> Self {
        Pieces { path, reader, size: size.max(8), buffer: Vec::new(), offset: 0, ended: false }
    }

    fn read(&mut self) -> Result<Option<Piece>> {
        // One byte beyond the piece tells whether the document goes on.
        while self.buffer.len() <= self.size {
            let block = match self.reader.fill_buf() {
                Ok(block) => block,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(unreadable(self.path, &e)),
            };
            if block.is_empty() {
                break;
            }
            let taken = block.len().min(self.size + 1 - self.buffer.len());
            self.buffer.extend_from_slice(&block[..taken]);
            self.reader.consume(taken);
        }
        let last = self.buffer.len() <= self.size;
        let end = if last { self.buffer.len() } else { cut(&self.buffer, self.size) };
        let rest = self.buffer.split_off(end);
        let bytes = std::mem::replace(&mut self.buffer, rest);
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            not_utf8(self.path, self.offset + at as u64, e.as_bytes()[at], None)
        })?;
        self.offset += end as u64;
        self.ended = last;
        Ok(if text.is_empty() { None } else { Some(Piece { text, last }) })
    }
}

impl Iterator for Pieces<'_> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read();
        self.ended |= next.is_err();
        next.transpose()
    }
}

/// Where to end a piece of `bytes`, of which there are more than `size`.
fn cut(bytes: &[u8], size: usize) -> usize {
    let half = size / 2;
    if let Some(at) = bytes[half..size].iter().rposition(|b| *b == b'\n') {
        return half + at + 1;
    }
    // A character has at most three continuation bytes; what has more is found not to be UTF-8.
    let continues = |b: u8| b & 0b1100_0000 == 0b1000_0000;
    (size - 3..=size).rev().find(|&end| !continues(bytes[end])).unwrap_or(size)
}

/// The error for a byte that is not UTF-8, at `offset` in the file.
pub(super) fn not_utf8(path: &Path, offset: u64, byte: u8, line: Option<u64>) -> Error {
    let line = line.map_or(String::new(), |line| format!("line {line} "));
    let what = format!("{line}is not UTF-8: byte 0x{byte:02x} at offset {offset}");
    Error::file(path, format!("{what}; convert it first, for example with iconv -f LATIN1 -t UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    /// Pieces through a reader whose blocks have `block` bytes.
    fn pieces(bytes: &[u8], size: usize, block: usize) -> Result<Vec<Piece>> {
        let reader = BufReader::with_capacity(block, Cursor::new(bytes.to_vec()));
        Pieces::new(Path::new("a.txt"), Box::new(reader), size).collect()
    }

    fn texts(bytes: &[u8], size: usize) -> Vec<String> {
        let pieces = pieces(bytes, size, 7).expect("UTF-8");
        assert!(pieces.iter().rev().enumerate().all(|(i, p)| p.last == (i == 0)), "{pieces:?}");
        pieces.into_iter().map(|p| p.text).collect()
    }

    #[test]
    fn cut_behind_the_last_line_end_that_fits() {
        assert_eq!(texts(b"abcdef\nghi\njklmnopqrstu\nv", 10), ["abcdef\n", "ghi\njklmno", "pqrstu\nv"]);
        assert_eq!(texts(b"abcdefghij", 10), ["abcdefghij"], "it fits");
        assert_eq!(texts(b"a\nbcdefghijk", 10), ["a\nbcdefghi", "jk"], "a line end in the first half");
        assert_eq!(texts(b"abcdefghi\n", 8), ["abcdefgh", "i\n"]);
        assert!(texts(b"", 10).is_empty());
    }

    #[test]
    fn characters_stay_whole() {
        for (text, size) in [("ééééééééé", 9), ("日本語日本語日本語", 10), ("🦀🦀🦀🦀🦀", 8), ("a🦀🦀🦀🦀", 11)]
        {
            let pieces = texts(text.as_bytes(), size);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.len() > 1 && pieces.iter().all(|p| p.len() <= size && p.len() + 4 > size / 2), "{pieces:?}");
        }
    }

    #[test]
    fn the_blocks_that_are_read_do_not_matter() {
        let text: String = (0..3000).map(|i| format!("line {i} é{}", if i % 7 == 0 { "\n" } else { " " })).collect();
        let expected = pieces(text.as_bytes(), 1024, 1).expect("UTF-8");
        assert_eq!(expected.iter().map(|p| p.text.as_str()).collect::<String>(), text);
        for block in [2, 1000, 1 << 20] {
            assert_eq!(pieces(text.as_bytes(), 1024, block).expect("UTF-8"), expected);
        }
    }

    #[test]
    fn other_encodings_are_refused_with_the_byte() {
        let mut latin1 = b"0123456789\n".repeat(3);
        latin1.extend(b"caf\xe9 au lait, and more of it");
        for size in [8, 12, 1000] {
            let refused = pieces(&latin1, size, 5).expect_err("Latin-1").to_string();
            assert!(refused.starts_with("a.txt: is not UTF-8: byte 0xe9 at offset 36; convert"), "{refused}");
        }
        let cut_off =
            pieces("日本".as_bytes().split_last().expect("bytes").1, 100, 5).expect_err("cut off").to_string();
        assert!(cut_off.contains("byte 0xe6 at offset 3"), "{cut_off}");
        assert!(pieces(&[0x80; 100], 10, 5).expect_err("continuations only").to_string().contains("offset 0"));
    }
}
