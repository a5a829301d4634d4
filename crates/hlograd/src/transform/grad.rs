//! Reverse mode: cotangents against the graph.
//!
//! Vocabulary: the *cotangent* of a tensor is the derivative of the loss by it. A node is *useful* when it lies on a
//! path from one of the wanted tensors to an output; only useful nodes are visited, from the outputs down, each once,
//! after all its users.

use std::collections::{HashMap, HashSet};

use super::vjp_rules::vjp_rule;
use crate::error::{Error, Result};
use crate::graph::{Op, Tensor, in_scope, topological};

/// Gradient of the scalar `loss` by each of `wrt` (any float tensors of its graph).
///
/// **Errors** when the loss does not depend on one of them, naming it; when every path is cut by an operation with
/// derivative zero (`stop_gradient`, `floor`, integers), naming it; and when an operation has no reverse rule.
#[track_caller]
pub fn grad(loss: &Tensor, wrt: &[Tensor]) -> Result<Vec<Tensor>> {
    assert!(loss.rank() == 0 && loss.dtype().is_float(), "grad of {}: not a float scalar", loss.shape());
    let reached: HashSet<u64> = topological(std::slice::from_ref(loss)).iter().map(|n| n.id).collect();
    if let Some(lost) = wrt.iter().find(|t| !reached.contains(&t.node().id)) {
        return Err(Error::Differentiate(format!("the loss does not depend on {}", lost.label())));
    }
    let gradients = vjp(std::slice::from_ref(loss), &[loss.ones_like()], wrt)?;
    gradients
        .into_iter()
        .zip(wrt)
        .map(|(g, t)| {
            g.ok_or_else(|| {
                Error::Differentiate(format!(
                    "no gradient reaches {}: every path from the loss goes through an operation whose derivative is zero",
                    t.label()
                ))
            })
        })
        .collect()
}

/// The loss with its [`grad`].
#[track_caller]
pub fn value_and_grad(loss: &Tensor, wrt: &[Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
    Ok((loss.clone(), grad(loss, wrt)?))
}

/// Vector-Jacobian products: the cotangent of each of `wrt`, given one of each of `outputs`; None where nothing flows.
#[track_caller]
pub fn vjp(outputs: &[Tensor], cotangents: &[Tensor], wrt: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    assert_eq!(outputs.len(), cotangents.len(), "vjp: one cotangent per output");
    for t in wrt {
        assert!(t.dtype().is_float(), "vjp by {}: only floats have derivatives", t.label());
    }
    let nodes = topological(outputs);
    let wanted: HashSet<u64> = wrt.iter().map(|t| t.node().id).collect();
    let mut useful: HashSet<u64> = HashSet::new();
    for node in &nodes {
        if wanted.contains(&node.id) || node.operands.iter().any(|t| useful.contains(&t.node().id)) {
            useful.insert(node.id);
        }
    }
    let mut sums: HashMap<(u64, usize), Tensor> = HashMap::new();
    for (y, ct) in outputs.iter().zip(cotangents) {
        assert!(y.shape() == ct.shape(), "vjp: cotangent {} for {}", ct.shape(), y.label());
        accumulate(&mut sums, y.key(), ct.clone());
    }
    for node in nodes.iter().rev().filter(|n| useful.contains(&n.id)) {
        let cts: Vec<Option<Tensor>> = (0..node.shapes.len()).map(|i| sums.get(&(node.id, i)).cloned()).collect();
        let below: Vec<bool> = node.operands.iter().map(|t| useful.contains(&t.node().id)).collect();
        if cts.iter().all(Option::is_none) || !below.iter().any(|&b| b) || matches!(node.op, Op::Parameter { .. }) {
            continue;
        }
        let results = in_scope(node.scope.clone(), || vjp_rule(node, &cts, &below))?;
        for ((operand, ct), below) in node.operands.iter().zip(results).zip(below) {
            let Some(ct) = ct.filter(|_| below && operand.dtype().is_float()) else { continue };
            assert!(
                ct.shape() == operand.shape(),
                "the reverse rule of {} gave a cotangent {} for {}",
                node.describe(),
                ct.shape(),
                operand.shape()
            );
            accumulate(&mut sums, operand.key(), ct);
        }
    }
    Ok(wrt.iter().map(|t| sums.get(&t.key()).cloned()).collect())
}

fn accumulate(sums: &mut HashMap<(u64, usize), Tensor>, key: (u64, usize), ct: Tensor) {
    let sum = match sums.remove(&key) {
        Some(sum) => sum + ct,
        None => ct,
    };
    sums.insert(key, sum);
}
