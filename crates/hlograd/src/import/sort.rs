//! Sorts, by what their comparator says.

use super::build::{Builder, Fault, apply};
use super::parse::Instruction;
use super::regions::comparator;
use crate::graph::Op;
use crate::graph::Tensor;

impl Builder<'_, '_> {
    pub(super) fn sort(&mut self, ins: &Instruction, x: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
        ins.only(&["dimensions", "is_stable", "to_apply"])?;
        let dim = ins.dim("dimensions")?;
        let index = self.named(ins.need("to_apply")?)?;
        let f = self.module.computations[index].parameters()?.len();
        let Some(key) = x.first() else { return Err("it has no operands".into()) };
        if f != 2 * x.len() {
            return Err(format!("its comparator takes {f} values for {} operands", x.len()).into());
        }
        let Some(order) = comparator(self.module, index) else {
            return Err("its comparator is not understood: sorts by one key, up or down, are supported \
                        (`lax.sort` with num_keys=1)"
                .into());
        };
        let op = Op::Sort { dim, descending: order.descending };
        if order.total || !key.dtype().is_float() {
            return Ok(apply(op, x.to_vec())?);
        }
        // Zeros of either sign are equal, and so are all NaN: a key of its own that says so, moved along with the rest.
        let nan = key.ne(key).select(&key.full_like(f64::NAN), key);
        let plain = key.eq(&key.zeros_like()).select(&key.zeros_like(), &nan);
        let mut sorted = apply(op, [&[plain.stop_gradient()], x].concat())?;
        Ok(sorted.split_off(1))
    }
}
