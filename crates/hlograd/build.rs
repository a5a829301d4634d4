//! The example that runs its graph through the crate `xla` finds XLA's library by itself: a run path to the folder that
//! crate is built with. Nothing for the library.

fn main() {
    println!("cargo:rerun-if-env-changed=XLA_EXTENSION_DIR");
    if let Some(folder) = std::env::var_os("XLA_EXTENSION_DIR") {
        println!("cargo:rustc-link-arg-examples=-Wl,-rpath,{}/lib", std::path::Path::new(&folder).display());
    }
}
