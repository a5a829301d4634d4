//! Links the native side that `./setup` assembled, with run paths so that no shell settings are needed.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-env-changed=XLA_EXTENSION_DIR");
    println!("cargo:rerun-if-changed=.xla/stamp");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let xla = env::var_os("XLA_EXTENSION_DIR").map_or_else(|| root.join(".xla"), PathBuf::from).join("lib");
    println!("cargo:rustc-env=SINEXP_XLA_FOLDER={}", xla.display());
    let openblas = root.join(".xla/openblas/lib");
    for (folder, library) in [(&xla, "libxla_extension.so"), (&openblas, "libopenblas.so")] {
        require(&folder.join(library));
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
}

fn require(library: &Path) {
    if !library.exists() {
        eprintln!("{} is missing: run ./setup once, in the project's folder", library.display());
        std::process::exit(1);
    }
}
