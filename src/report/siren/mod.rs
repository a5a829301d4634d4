//! What the uniform-phase SIREN paper (arXiv 2609.30633) shows.

pub mod fitting;
pub mod sound;
pub mod spectrum;
pub mod sweeps;
