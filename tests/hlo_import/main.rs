//! HLO text that JAX, XLA and we wrote, read into graphs: the same numbers, and the same derivatives as JAX's.
//!
//! `python/fixtures/make_hlo_import.py` writes the texts and values in this folder.

#[path = "../common/mod.rs"]
mod common;

mod damaged;
mod jax;
mod ours;
mod refused;

use std::path::{Path, PathBuf};

/// What lies in this folder.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hlo_import").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}
