//! Update rules, written in graph operations.

mod adam;

pub use adam::{Adam, AdamState};
