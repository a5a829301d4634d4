//! Against values made with JAX 0.10.2 by an independent program (tests/golden/README.md says what each file holds).

#[path = "../common/mod.rs"]
mod common;
mod composed;
mod initial;
mod moments;
mod random;
mod siren;
mod spectrum;

use std::collections::BTreeMap;
use std::path::Path;

use sinexp::array::Array;
use sinexp::interop::safetensors;

/// Every tensor of a golden file.
fn golden(file: &str) -> BTreeMap<String, Array> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    safetensors::read(path).expect("a golden file").tensors
}
