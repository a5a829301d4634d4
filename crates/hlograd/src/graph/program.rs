//! Programs: a finished graph as HLO text with its signature, ready for a device.

use std::collections::HashSet;

use super::hlo_text;
use super::op::Op;
use super::shape::Shape;
use super::tensor::{Tensor, topological};
use crate::error::{Error, Result};

/// HLO text with its signature: all that a device needs, and nothing that cannot cross threads.
#[derive(Clone, Debug)]
pub struct Program {
    /// The HLO module's name, used in messages.
    pub name: String,
    /// Argument names and shapes, in call order.
    pub inputs: Vec<(String, Shape)>,
    /// Result names and shapes, in order.
    pub outputs: Vec<(String, Shape)>,
    /// Donations: `(output, input)` pairs whose buffers are one. The input is used up by each call.
    pub aliases: Vec<(usize, usize)>,
    /// The whole module as HLO text.
    pub text: String,
}

impl Program {
    /// Lowers and prints the graph from `inputs` (parameters) to `outputs` (with their names).
    ///
    /// **Errors** when the outputs reach a parameter that is not among the inputs, naming it. **Panics** when an input
    /// is not a parameter or is given twice.
    ///
    /// ```
    /// use hlograd::{array::DType, graph::{Program, Shape, Tensor}};
    /// let x = Tensor::parameter("x", Shape::new(DType::F32, &[3]));
    /// let program = Program::new("double", &[x.clone()], &[("y", &x * 2.0)])?;
    /// assert!(program.text.starts_with("HloModule double"));
    /// # Ok::<(), hlograd::error::Error>(())
    /// ```
    #[track_caller]
    pub fn new(name: &str, inputs: &[Tensor], outputs: &[(&str, Tensor)]) -> Result<Program> {
        Program::with_donation(name, inputs, outputs, &[])
    }

    /// [`Program::new`] with donation: for each `(output, input)` pair the result takes over the argument's memory, so
    /// that state stays where it is from step to step. The pair's shapes must agree.
    #[track_caller]
    pub fn with_donation(
        name: &str,
        inputs: &[Tensor],
        outputs: &[(&str, Tensor)],
        aliases: &[(usize, usize)],
    ) -> Result<Program> {
        let mut declared = HashSet::new();
        let mut signature = Vec::new();
        for t in inputs {
            let Op::Parameter { name: parameter, shape } = &t.node().op else {
                panic!("program `{name}`: input {} is not a parameter", t.label())
            };
            assert!(declared.insert(t.node().id), "program `{name}`: {} is given twice", t.label());
            signature.push((parameter.to_string(), shape.clone()));
        }
        for &(output, input) in aliases {
            let (o, i) = (outputs[output].1.shape(), inputs[input].shape());
            assert!(o == i, "program `{name}`: result {output} {o} cannot take over argument {input} {i}");
        }
        let results: Vec<Tensor> = outputs.iter().map(|(_, t)| t.clone()).collect();
        let lost = |n: &&std::sync::Arc<super::Node>| matches!(n.op, Op::Parameter { .. }) && !declared.contains(&n.id);
        if let Some(node) = topological(&results).iter().find(lost) {
            let label = node.results()[0].label();
            return Err(Error::Call { program: name.into(), reason: format!("uses {label}, which is not an input") });
        }
        let lowered = super::lower::lower(&results);
        Ok(Program {
            name: name.to_string(),
            inputs: signature,
            outputs: outputs.iter().map(|(n, t)| (n.to_string(), t.shape().clone())).collect(),
            aliases: aliases.to_vec(),
            text: hlo_text::module(name, inputs, &lowered, aliases),
        })
    }
}
