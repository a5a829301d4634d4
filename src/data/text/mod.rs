//! Text: files in, token batches out.
//!
//! [`Corpus`] finds the documents, [`Tokenizer`] makes them numbers, [`prepare`] keeps those on disk in two fixed splits,
//! and [`Dataset`] reads batches of them through a memory map.

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
