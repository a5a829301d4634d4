//! Text: files in, token batches out.
//!
//! [`Corpus`] finds the documents, [`Tokenizer`] makes them numbers, [`prepare`] keeps those on disk in two fixed splits,
//! and [`Dataset`] reads batches of them through a memory map.
//!
//! ```
//! use sinexp::data::text::{Corpus, Tokenizer, prepare};
//! use sinexp::random::Key;
//! # let folder = tempfile::tempdir().unwrap();
//! # let file = folder.path().join("book.txt");
//! let text = "Call me Ishmael.\n".repeat(1500);
//! # std::fs::write(&file, &text).unwrap();
//! let data = prepare(&Corpus::open(&file)?, Tokenizer::Bytes, folder.path().join("tokens"), &mut |_, _| ())?;
//! let batch = data.batch(Key::new(0), 7, 2, 8)?; // of step 7: 2 rows of 8 tokens and a next one each
//! assert_eq!(batch.dims(), [2, 9]);
//! let row: Vec<u32> = batch.to_vec::<i32>()?[..9].iter().map(|token| *token as u32).collect();
//! assert!(text.contains(&data.tokenizer().decode(&row)));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod corpus;
mod dataset;
mod pieces;
mod prepare;
mod tokenizer;
mod tokens;

pub use corpus::{Corpus, Document, PACKAGE};
pub use dataset::{Dataset, Description, Part};
pub use pieces::{Piece, Pieces};
pub use prepare::{default_cache, prepare};
pub use tokenizer::Tokenizer;
pub use tokens::{TokenFile, TokenType};
