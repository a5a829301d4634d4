//! Functions: closed sub-graphs, the bodies of loops, branches and calls.

use std::collections::HashSet;
use std::fmt;

use super::op::Op;
use super::shape::Shape;
use super::tensor::{Tensor, topological};

/// A closed graph: every parameter it reaches is one of `inputs`.
#[derive(Clone)]
pub struct Function {
    /// Parameters, in order.
    pub inputs: Vec<Tensor>,
    /// Results, in order.
    pub outputs: Vec<Tensor>,
}

impl Function {
    /// Traces `f` on fresh parameters of these shapes and closes over what it captures: tensors made before the trace
    /// began become leading inputs. Returns the function and the captured tensors, in order. What depends on no
    /// parameter (constants and what is made of them) stays inside.
    #[track_caller]
    pub fn trace(shapes: &[Shape], f: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> (Function, Vec<Tensor>) {
        // Ids grow, so whatever is older than a node made now was made outside.
        let first = Tensor::scalar(0i32).node.id;
        let inputs: Vec<Tensor> =
            shapes.iter().enumerate().map(|(i, s)| Tensor::parameter(&format!("arg{i}"), s.clone())).collect();
        let outputs = f(&inputs);
        let nodes = topological(&outputs);
        let mut open = HashSet::new();
        for node in &nodes {
            if matches!(node.op, Op::Parameter { .. }) || node.operands.iter().any(|t| open.contains(&t.node.id)) {
                open.insert(node.id);
            }
        }
        let mut captured: Vec<Tensor> = Vec::new();
        let mut seen = HashSet::new();
        let used = nodes.iter().filter(|n| n.id >= first).flat_map(|n| n.operands.iter()).chain(&outputs);
        for t in used.filter(|t| t.node.id < first && open.contains(&t.node.id)) {
            if seen.insert(t.key()) {
                captured.push(t.clone());
            }
        }
        let placeholders: Vec<Tensor> =
            captured.iter().enumerate().map(|(i, t)| t.placeholder(&format!("captured{i}"))).collect();
        let pairs: Vec<(Tensor, Tensor)> = captured.iter().cloned().zip(placeholders.iter().cloned()).collect();
        let outputs = super::rewrite::substitute(&outputs, &pairs);
        (Function { inputs: placeholders.into_iter().chain(inputs).collect(), outputs }, captured)
    }

    /// The function applied by putting its graph in place of a call.
    #[track_caller]
    pub fn inline(&self, arguments: &[Tensor]) -> Vec<Tensor> {
        assert_eq!(self.inputs.len(), arguments.len(), "a function of {} inputs", self.inputs.len());
        let pairs: Vec<_> = self.inputs.iter().cloned().zip(arguments.iter().cloned()).collect();
        super::rewrite::substitute(&self.outputs, &pairs)
    }

    /// Shapes of the inputs.
    pub fn input_shapes(&self) -> Vec<Shape> {
        self.inputs.iter().map(|t| t.shape().clone()).collect()
    }

    /// Shapes of the outputs.
    pub fn output_shapes(&self) -> Vec<Shape> {
        self.outputs.iter().map(|t| t.shape().clone()).collect()
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} -> {:?}", self.input_shapes(), self.output_shapes())
    }
}
