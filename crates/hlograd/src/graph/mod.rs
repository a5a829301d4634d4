//! The graph: tensors, operations, shapes, HLO text. Needs no XLA.
//!
//! ```
//! use hlograd::array::DType;
//! use hlograd::graph::{Program, Shape, Tensor, name_scope, scan};
//! use hlograd::import::Imported;
//! use hlograd::transform::grad;
//! // The sine three times, as a loop (lax.scan); printed as HLO text, and read back as a graph.
//! let x = Tensor::parameter("x", Shape::new(DType::F32, &[8]));
//! let (end, _) = name_scope("thrice", || scan(&[x.clone()], &[], Some(3), false, |h, _| (vec![h[0].sin()], vec![])));
//! let program = Program::new("loop", &[x], &[("y", end[0].clone())])?;
//! assert!(program.text.contains("f32[8] sine(") && program.text.contains("thrice/"));
//! let again = Imported::from_hlo_text(&program.text)?;
//! // It is a loop that counts still, so it has a reverse derivative.
//! assert_eq!(grad(&again.outputs[0].1.sum_all(), &again.inputs)?[0].dims(), [8]);
//! # Ok::<(), hlograd::error::Error>(())
//! ```

mod attributes;
mod build;
mod function;
mod hlo_literal;
mod hlo_text;
mod infer;
mod lower;
mod op;
mod program;
mod rewrite;
mod shape;
mod tensor;

pub use build::*;
pub use function::Function;
pub use lower::lower;
pub use op::*;
pub use program::Program;
pub use rewrite::substitute;
pub(crate) use rewrite::{Env, propagate, rewrite, with_values};
pub use shape::Shape;
pub(crate) use tensor::in_scope;
pub use tensor::{Node, Tensor, name_scope, topological};
