//! Files that other programs read and write.

pub mod npz;
pub mod program;
pub mod safetensors;
