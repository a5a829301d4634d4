//! The SEL paper's experiments: what the command line says of a language run, and grids of runs.

mod arguments;
mod transform;

pub use arguments::{DataArguments, LanguageArguments, LanguageSizes};
pub use transform::SelArguments;
