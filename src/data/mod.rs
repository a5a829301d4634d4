//! What networks learn: pictures as arrays, their sizes and colours, and the coordinates of their samples.

pub mod color;
pub mod grid;
pub mod image;
pub mod resize;
