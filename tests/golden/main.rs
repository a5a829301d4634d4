//! Against values made with JAX 0.10.2 by an independent program (tests/golden/README.md says what each file holds).

#[path = "../common/mod.rs"]
mod common;
mod composed;
mod gpt;
mod gpt_step;
mod initial;
mod moments;
mod optim;
mod random;
mod sel;
mod sel_rules;
mod siren;
mod spectrum;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sinexp::array::Array;
use sinexp::interop::safetensors;

use crate::common::check::close;

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

/// Every tensor of a golden file.
fn golden(file: &str) -> BTreeMap<String, Array> {
    safetensors::read(path(file)).expect("a golden file").tensors
}

/// To `tolerance` times the largest expected entry.
fn relative(what: &str, got: &Array, want: &Array, tolerance: f64) {
    let want = want.to_f64_vec();
    let scale = want.iter().fold(0f64, |m, w| m.max(w.abs())).max(f64::MIN_POSITIVE);
    let shrink = |v: Vec<f64>| v.into_iter().map(|v| v / scale).collect::<Vec<_>>();
    close(what, &shrink(got.to_f64_vec()), &shrink(want), tolerance);
}

/// A golden JSON file.
fn golden_json(file: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(path(file)).expect("a golden file");
    serde_json::from_str(&text).expect("JSON")
}
