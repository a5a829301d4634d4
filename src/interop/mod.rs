//! Files that other programs read and write.

pub mod safetensors;
