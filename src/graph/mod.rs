//! The graph: tensors, operations, shapes, HLO text. Needs no XLA.

mod attributes;
mod build;
mod function;
mod hlo_literal;
mod hlo_text;
mod import;
mod infer;
mod op;
mod program;
mod shape;
mod tensor;

pub use build::*;
pub use function::Function;
pub use import::Imported;
pub use op::*;
pub use program::Program;
pub use shape::Shape;
pub(crate) use tensor::in_scope;
pub use tensor::{Node, Tensor, name_scope, topological};
