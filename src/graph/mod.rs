//! The graph: tensors, operations, shapes, HLO text. Needs no XLA.

mod program;
mod shape;

pub use program::Program;
pub use shape::Shape;
