//! Files that other programs read and write.

pub mod arrays;
pub mod jax_export;
pub mod npz;
pub mod program;
pub mod safetensors;
