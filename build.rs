//! Links the native side that `./setup` assembled, with run paths so that no shell settings are needed, and compiles the
//! two pieces of C++ that are ours (half a minute).

use std::env;
use std::path::{Path, PathBuf};

const SHIM: [&str; 2] = ["src/runtime/shim/memory.cc", "src/runtime/shim/programs.cc"];

fn main() {
    println!("cargo:rerun-if-env-changed=XLA_EXTENSION_DIR");
    println!("cargo:rerun-if-changed=.xla/stamp");
    SHIM.iter().for_each(|file| println!("cargo:rerun-if-changed={file}"));
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let xla = env::var_os("XLA_EXTENSION_DIR").map_or_else(|| root.join(".xla"), PathBuf::from);
    let (include, xla) = (xla.join("include"), xla.join("lib"));
    println!("cargo:rustc-env=SINEXP_XLA_FOLDER={}", xla.display());
    let openblas = root.join(".xla/openblas/lib");
    for (folder, library) in [(&xla, "libxla_extension.so"), (&openblas, "libopenblas.so")] {
        require(&folder.join(library));
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
    println!("cargo:rustc-link-lib=openblas");
    let mut shim = cc::Build::new();
    if let Some(folder) = mended_headers(&include) {
        shim.include(folder);
    }
    // NDEBUG as the library was built: without it some of XLA's classes have members more. No debug information and no
    // optimisation: it runs once in a while, and the headers are long.
    shim.cpp(true).std("c++17").opt_level(0).debug(false).warnings(false).define("NDEBUG", None);
    shim.flag("-w").include(include).files(SHIM).compile("sinexp_shim");
}

fn require(library: &Path) {
    if !library.exists() {
        eprintln!("{} is missing: run ./setup once, in the project's folder", library.display());
        std::process::exit(1);
    }
}

/// Official xla_extension 0.11.0 has a header that g++ refuses: a function is declared under one spelling of a condition
/// and defined under another. A folder with a mended copy, as the crate `xla` makes for itself; None for other headers.
fn mended_headers(include: &Path) -> Option<PathBuf> {
    let file = "xla/tsl/concurrency/future.h";
    let text = std::fs::read_to_string(include.join(file)).ok()?;
    let spelled = |indent: usize, condition: &str| {
        format!("std::enable_if_t<internal::IsFuture<U>::value &&\n{}!{condition}>*", " ".repeat(indent))
    };
    let (declared, defined) = (spelled(45, "is_move_only"), spelled(39, "Future<T>::is_move_only"));
    if !text.contains(&declared) || !text.contains(&defined) {
        return None;
    }
    let one = spelled(1, "internal::IsMoveOnly<T>::value");
    let folder = PathBuf::from(env::var_os("OUT_DIR")?).join("include");
    let copy = folder.join(file);
    std::fs::create_dir_all(copy.parent()?).ok()?;
    std::fs::write(copy, text.replace(&declared, &one).replace(&defined, &one)).ok()?;
    Some(folder)
}
