//! Pictures and sounds: files in, samples on coordinate grids out. Text: files in, batches of tokens out.

pub mod audio;
pub mod color;
pub mod datasets;
pub mod grid;
pub mod image;
pub mod resize;
pub mod text;
