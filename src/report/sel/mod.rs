//! What the SEL paper (arXiv 2607.09967) shows of transforms and training runs. What it shows of any checkpoint is in
//! [`super::weights`].

pub mod curves;
pub mod losses;
pub mod mismatch;
pub mod scales;
pub mod shapes;
pub mod weights;
