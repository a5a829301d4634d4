//! Effective weights of a layer, some rows at a time, by the graph that training uses.

use std::collections::HashMap;
use std::ops::Range;

use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::nn::parameterization::{Leaf, Parameterization};
use crate::nn::sel::Sel;
use crate::runtime::{Device, Executable};

/// Elements of a block.
const BLOCK: usize = 1 << 20;

/// Rows of each block of a tensor of these dimensions; for a vector, elements.
pub(super) fn row_blocks(dims: &[usize]) -> impl Iterator<Item = Range<usize>> + use<> {
    let rows = dims[0];
    let each = (BLOCK / dims[1..].iter().product::<usize>().max(1)).max(1);
    (0..rows.div_ceil(each)).map(move |i| i * each..((i + 1) * each).min(rows))
}

/// The transform compiled for the shapes of blocks that occurred.
pub(super) struct Blocks<'a> {
    device: &'a Device,
    sel: &'a Sel,
    programs: HashMap<Vec<usize>, Executable>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(device: &'a Device, sel: &'a Sel) -> Self {
        Blocks { device, sel, programs: HashMap::new() }
    }

    /// The effective weights of `rows` of a layer of dimensions `dims`. `leaf` gives a leaf's part of these rows, whose
    /// dimensions it is told.
    pub(super) fn effective(
        &mut self,
        dims: &[usize],
        rows: &Range<usize>,
        leaf: impl Fn(&Leaf, &[usize]) -> Result<Array>,
    ) -> Result<Vec<f32>> {
        let block = [&[rows.len()], &dims[1..]].concat();
        let arguments: Vec<Array> = self
            .sel
            .leaves(dims)
            .iter()
            .zip(self.sel.leaves(&block))
            .map(|(whole, part)| leaf(whole, &part.dims))
            .collect::<Result<_>>()?;
        let program = match self.programs.entry(block) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let program = self.device.compile(&program(self.sel, new.key())?)?;
                new.insert(program)
            }
        };
        let mut values = program.call(&arguments.iter().collect::<Vec<_>>())?;
        Ok(values.swap_remove(0).to_vec()?)
    }
}

/// Leaves to effective weight, f32.
fn program(sel: &Sel, dims: &[usize]) -> Result<Program> {
    let leaves = sel.leaves(dims);
    let parameters: Vec<Tensor> =
        leaves.iter().map(|leaf| Tensor::parameter(&leaf.name, Shape::new(DType::F32, &leaf.dims))).collect();
    let named = leaves.into_iter().map(|leaf| leaf.name).zip(parameters.iter().cloned()).collect();
    Ok(Program::new("effective", &parameters, &[("w_eff", sel.effective(dims, &named))])?)
}

/// The part of a leaf that `rows` of its layer need: those rows, where it has the layer's rows, else the whole.
pub(super) fn part_of(leaf: &Array, part: &[usize], rows: &Range<usize>) -> Result<Array> {
    if leaf.dims() == part {
        return Ok(leaf.clone());
    }
    let wrong = || Error::numeric("leaf", format!("has shape {:?}, expected {part:?} of rows {rows:?}", leaf.dims()));
    let each = leaf.dtype().size() * leaf.dims()[1..].iter().product::<usize>();
    let bytes = leaf.bytes().get(rows.start * each..rows.end * each).ok_or_else(wrong)?;
    Ok(Array::from_bytes(leaf.dtype(), part, bytes.to_vec())?)
}
