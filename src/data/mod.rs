//! What a model is fitted to: sounds, pictures, and where their files are.

pub mod audio;
pub mod datasets;
