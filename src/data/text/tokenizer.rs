//! Text as token numbers and back.

use std::fmt;
use std::str::FromStr;

use tiktoken_rs::r50k_base_singleton;

use crate::error::{Error, Result};

/// How text becomes numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tokenizer {
    /// A token is a byte of UTF-8.
    Bytes,
    /// GPT-2's byte pairs (`r50k_base`), without special tokens: `<|endoftext|>` in a text is text.
    Gpt2,
}

impl Tokenizer {
    /// Every tokenizer.
    pub const ALL: [Tokenizer; 2] = [Tokenizer::Bytes, Tokenizer::Gpt2];

    /// The name in options, records and checkpoints: `bytes` or `gpt2`.
    pub fn id(self) -> &'static str {
        match self {
            Tokenizer::Bytes => "bytes",
            Tokenizer::Gpt2 => "gpt2",
        }
    }

    /// Number of tokens: 256 or 50257. Tokens are below it.
    pub fn vocabulary(self) -> usize {
        match self {
            Tokenizer::Bytes => 1 << 8,
            Tokenizer::Gpt2 => 50257,
        }
    }

    /// The token that follows each document. Bytes have none to spare: 0 it is, which text hardly ever contains.
    pub fn end_of_text(self) -> Option<u32> {
        match self {
            Tokenizer::Bytes => Some(0),
            Tokenizer::Gpt2 => Some(50256),
        }
    }

    /// The tokens of `text`, without an end.
    pub fn encode(self, text: &str) -> Vec<u32> {
        match self {
            Tokenizer::Bytes => text.bytes().map(u32::from).collect(),
            Tokenizer::Gpt2 => {
                let parts = cut_long_blanks(text).into_iter();
                parts.flat_map(|part| r50k_base_singleton().encode_ordinary(part)).collect()
            }
        }
    }

    /// The text of `tokens`. What is not UTF-8, such as half a character, and numbers beyond the vocabulary become U+FFFD.
    pub fn decode(self, tokens: &[u32]) -> String {
        let mut bytes = Vec::new();
        for &token in tokens {
            let known = match self {
                Tokenizer::Bytes => u8::try_from(token).ok().map(|byte| vec![byte]),
                Tokenizer::Gpt2 => r50k_base_singleton().decode_bytes(&[token]).ok(),
            };
            bytes.extend(known.unwrap_or_else(|| "\u{fffd}".into()));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Longest run of white space, in characters, that the library's pattern is asked to match: it gives up, and panics, a
/// little below a million.
const BLANKS: usize = 1 << 18;

/// The text cut behind every [`BLANKS`] characters of white space in a row: hardly any text is.
fn cut_long_blanks(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut blanks) = (0, 0);
    for (at, character) in text.char_indices() {
        blanks = if character.is_whitespace() { blanks + 1 } else { 0 };
        if blanks > BLANKS {
            parts.push(&text[start..at]);
            (start, blanks) = (at, 1);
        }
    }
    parts.push(&text[start..]);
    parts
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Tokenizer {
    type Err = Error;

    /// The tokenizer of that [`id`](Tokenizer::id). **Errors** with the list for any other.
    fn from_str(text: &str) -> Result<Self> {
        Tokenizer::ALL.into_iter().find(|t| t.id() == text).ok_or_else(|| {
            let ids = Tokenizer::ALL.map(Tokenizer::id).join(" and ");
            Error::argument("--tokenizer", text, format!("unknown; there are {ids}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids as printed by OpenAI's `tiktoken` and Hugging Face's GPT-2 tokenizer.
    #[test]
    fn gpt2_ids() {
        for (text, ids) in [
            ("Hello world", &[15496, 995][..]),
            ("hello world", &[31373, 995]),
            ("Hello, world!", &[15496, 11, 995, 0]),
            ("The quick brown fox", &[464, 2068, 7586, 21831]),
            ("", &[]),
        ] {
            assert_eq!(Tokenizer::Gpt2.encode(text), ids, "{text}");
            assert_eq!(Tokenizer::Gpt2.decode(ids), text);
        }
        let written = Tokenizer::Gpt2.encode("<|endoftext|>");
        assert!(written.len() > 1 && !written.contains(&50256), "{written:?}");
        assert_eq!(Tokenizer::Gpt2.decode(&[50256]), "<|endoftext|>");
    }

    #[test]
    fn there_and_back() {
        let odd = format!("é 日本\u{0}\r\n\t 🦀 \u{feff}{}{}", " ".repeat(3000), "x".repeat(3000));
        for tokenizer in Tokenizer::ALL {
            for text in ["I'll go; you've   gone.\n\n  Twice 1234 times\n", &odd] {
                let tokens = tokenizer.encode(text);
                assert_eq!(tokenizer.decode(&tokens), text, "{tokenizer}");
                assert!(tokens.iter().all(|&t| (t as usize) < tokenizer.vocabulary()));
            }
            let unknown = tokenizer.vocabulary() as u32;
            assert_eq!(tokenizer.decode(&[unknown, u32::MAX]), "\u{fffd}\u{fffd}", "{tokenizer}");
        }
        assert_eq!(Tokenizer::Bytes.decode(&[b'a'.into(), 0xc3, b'b'.into()]), "a\u{fffd}b", "half a character");
    }

    #[test]
    fn long_runs_of_one_character() {
        for run in ["\n", " ", "\u{a0}", "x", "1"] {
            let text = run.repeat(1 << 20) + "a";
            assert_eq!(Tokenizer::Gpt2.decode(&Tokenizer::Gpt2.encode(&text)), text, "{run:?}");
        }
    }

    #[test]
    fn names() {
        for tokenizer in Tokenizer::ALL {
            assert_eq!(tokenizer.to_string().parse::<Tokenizer>().expect("its own name"), tokenizer);
        }
        let unknown = "GPT2".parse::<Tokenizer>().expect_err("unknown").to_string();
        assert_eq!(unknown, "--tokenizer = GPT2: unknown; there are bytes and gpt2");
    }
}
