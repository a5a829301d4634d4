//! What a loop's counter does: scalar integers computed step by step while importing.

use std::collections::HashMap;

use crate::array::DType;
use crate::graph::*;
use crate::graph::{Node, Tensor, topological};

/// Scalars by identity.
pub(super) type Known = HashMap<(u64, usize), i64>;

/// Nodes of an index or a condition; more is no counter's work.
const MAX_NODES: usize = 64;

/// A scalar that depends on counters and constants alone, ready to be computed for each step.
pub(super) struct Formula {
    nodes: Vec<std::sync::Arc<Node>>,
    result: (u64, usize),
}

impl Formula {
    /// None where the tensor is anything else. `counters` are the parameters that will be known.
    pub(super) fn new(t: &Tensor, counters: &Known) -> Option<Formula> {
        if t.size() != 1 || t.dtype().is_float() {
            return None;
        }
        let nodes = topological(std::slice::from_ref(t));
        let simple = |n: &std::sync::Arc<Node>| match &n.op {
            Op::Parameter { .. } => counters.contains_key(&(n.id, 0)),
            _ => n.shapes.len() == 1 && n.shapes[0].size() == 1 && !n.shapes[0].dtype.is_float(),
        };
        (nodes.len() <= MAX_NODES && nodes.iter().all(simple)).then(|| Formula { nodes, result: t.key() })
    }

    /// Its value for these counters; None where it is not computed as an `i64` here, or wraps around.
    pub(super) fn value(&self, counters: &Known) -> Option<i64> {
        let mut known: Known = HashMap::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let x = || -> Option<Vec<i64>> { node.operands.iter().map(|t| known.get(&t.key()).copied()).collect() };
            let value = match &node.op {
                Op::Parameter { .. } => counters.get(&(node.id, 0)).copied(),
                Op::Constant(value) => {
                    Some(value.to_f64_vec()[0]).filter(|v| v.abs() < 2f64.powi(53)).map(|v| v as i64)
                }
                op => step(op, &x()?, node.operands.first().map(Tensor::dtype)),
            }?;
            let dtype = node.shapes[0].dtype;
            if !in_range(value, dtype) {
                return None;
            }
            known.insert((node.id, 0), value);
        }
        known.get(&self.result).copied()
    }
}

/// Whether the type holds the value.
pub(super) fn in_range(value: i64, dtype: DType) -> bool {
    match dtype {
        DType::Bool => value == 0 || value == 1,
        DType::I8 => i8::try_from(value).is_ok(),
        DType::I16 => i16::try_from(value).is_ok(),
        DType::I32 => i32::try_from(value).is_ok(),
        DType::U8 => u8::try_from(value).is_ok(),
        DType::U16 => u16::try_from(value).is_ok(),
        DType::U32 => u32::try_from(value).is_ok(),
        DType::U64 => value >= 0,
        _ => true,
    }
}

fn step(op: &Op, x: &[i64], of: Option<DType>) -> Option<i64> {
    let truths = of == Some(DType::Bool);
    match (op, x) {
        (Op::Convert(_) | Op::Reshape { .. } | Op::BroadcastInDim { .. } | Op::StopGradient, [a]) => Some(*a),
        (Op::Unary(Unary::Neg), [a]) => a.checked_neg(),
        (Op::Unary(Unary::Not), [a]) if truths => Some(1 - a),
        (Op::Binary(op), &[a, b]) => match op {
            Binary::Add => a.checked_add(b),
            Binary::Sub => a.checked_sub(b),
            Binary::Mul => a.checked_mul(b),
            Binary::Max => Some(a.max(b)),
            Binary::Min => Some(a.min(b)),
            Binary::And if truths => Some(a & b),
            Binary::Or if truths => Some(a | b),
            Binary::Div if b != 0 => a.checked_div(b),
            Binary::Rem if b != 0 => a.checked_rem(b),
            _ => None,
        },
        (Op::Compare(direction), [a, b]) => Some(i64::from(match direction {
            Direction::Eq => a == b,
            Direction::Ne => a != b,
            Direction::Lt => a < b,
            Direction::Le => a <= b,
            Direction::Gt => a > b,
            Direction::Ge => a >= b,
        })),
        (Op::Select, [which, a, b]) => Some(if *which != 0 { *a } else { *b }),
        (Op::Clamp, [low, a, high]) => Some(*a.max(low).min(high)),
        _ => None,
    }
}
