//! Reading and writing at computed places: gather, scatter, dynamic slices.

use super::build::{Builder, Fault, apply, apply1};
use super::ops::{Tensors, count};
use super::parse::Instruction;
use super::reduce::elementwise;
use super::regions::combiner;
use crate::array::DType;
use crate::graph::Function;
use crate::graph::Shape;
use crate::graph::Tensor;
use crate::graph::*;

const HINTS: [&str; 2] = ["indices_are_sorted", "unique_indices"];

/// The indices with their vectors in the last dimension, as the graph has them.
fn index_vectors(ins: &Instruction, indices: &Tensor) -> Result<Tensor, String> {
    let dim: usize = ins.need("index_vector_dim")?.parse().map_err(|_| "index_vector_dim is not a number")?;
    if dim > indices.rank() {
        return Err(format!("index_vector_dim={dim} of {}", indices.shape()));
    }
    Ok(if dim == indices.rank() { indices.expand_dims(dim) } else { indices.moveaxis(dim, indices.rank() - 1) })
}

fn below(what: &str, dims: &[usize], rank: usize) -> Result<(), String> {
    let distinct = dims.iter().enumerate().all(|(i, d)| *d < rank && !dims[..i].contains(d));
    if distinct { Ok(()) } else { Err(format!("{what}={dims:?} of {rank} dimensions")) }
}

pub(super) fn gather(ins: &Instruction, x: &[Tensor]) -> Tensors {
    let known = [
        "offset_dims",
        "collapsed_slice_dims",
        "start_index_map",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "index_vector_dim",
        "slice_sizes",
    ];
    ins.only(&[&known[..], &HINTS].concat())?;
    let [operand, indices] = x else { return Err(count(2, x)) };
    let dims = GatherDims {
        offset_dims: ins.dims_or_none("offset_dims")?,
        collapsed_slice_dims: ins.dims_or_none("collapsed_slice_dims")?,
        operand_batching_dims: ins.dims_or_none("operand_batching_dims")?,
        start_indices_batching_dims: ins.dims_or_none("start_indices_batching_dims")?,
        start_index_map: ins.dims_or_none("start_index_map")?,
    };
    below("start_index_map", &dims.start_index_map, operand.rank())?;
    if !dims.offset_dims.is_sorted() {
        return Err("offset_dims do not ascend".into());
    }
    let op = Op::Gather { dims, slice_sizes: ins.dims_or_none("slice_sizes")? };
    apply(op, vec![operand.clone(), index_vectors(ins, indices)?])
}

pub(super) fn dynamic(ins: &Instruction, x: &[Tensor]) -> Tensors {
    if x.is_empty() {
        return Err("it has no operands".into());
    }
    let op = if ins.opcode == "dynamic-slice" {
        ins.only(&["dynamic_slice_sizes"])?;
        Op::DynamicSlice { sizes: ins.dims_or_none("dynamic_slice_sizes")? }
    } else {
        ins.only(&[])?;
        Op::DynamicUpdateSlice
    };
    apply(op, x.to_vec())
}

impl Builder<'_, '_> {
    pub(super) fn scatter(&mut self, ins: &Instruction, x: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
        let known = [
            "update_window_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "index_vector_dim",
            "to_apply",
        ];
        ins.only(&[&known[..], &HINTS].concat())?;
        let [operand, indices, updates] = x else { return Err("only one array at a time is supported".into()) };
        let f = self.function(self.named(ins.need("to_apply")?)?)?;
        let second = f.inputs.len() == 2 && f.outputs.len() == 1 && f.outputs[0].key() == f.inputs[1].key();
        let dims = ScatterDims {
            update_window_dims: ins.dims_or_none("update_window_dims")?,
            inserted_window_dims: ins.dims_or_none("inserted_window_dims")?,
            operand_batching_dims: ins.dims_or_none("input_batching_dims")?,
            scatter_indices_batching_dims: ins.dims_or_none("scatter_indices_batching_dims")?,
            scatter_dims_to_operand_dims: ins.dims_or_none("scatter_dims_to_operand_dims")?,
        };
        below("scatter_dims_to_operand_dims", &dims.scatter_dims_to_operand_dims, operand.rank())?;
        if !dims.update_window_dims.is_sorted() {
            return Err("update_window_dims do not ascend".into());
        }
        let indices = index_vectors(ins, indices)?;
        let once = ins.attribute("unique_indices") == Some("true");
        let (kind, updates) = match combiner(&f.inputs, &f.outputs) {
            _ if second => (ScatterKind::Set, updates.clone()),
            Some(Binary::Add) => (ScatterKind::Add, updates.clone()),
            // Where no place is written twice, what is written is what the computation makes of the value read there.
            _ if once && fits_scalars(&f, operand, updates) => {
                let read = windows(operand, &indices, updates, &dims)?;
                (ScatterKind::Set, elementwise(&f, &[read, updates.clone()])?.swap_remove(0))
            }
            _ => {
                return Err("scatters that add or replace are supported (`.at[].add`, `.at[].set`); others where the \
                            text says `unique_indices=true`"
                    .into());
            }
        };
        if operand.dtype() == DType::Bool && kind == ScatterKind::Set && updates.dtype() == DType::Bool {
            let wide = vec![operand.convert(DType::I32), indices, updates.convert(DType::I32)];
            let y = apply1(Op::Scatter { kind, dims }, wide)?;
            return Ok(vec![y.ne(&y.zeros_like())]);
        }
        Ok(apply(Op::Scatter { kind, dims }, vec![operand.clone(), indices, updates])?)
    }
}

fn fits_scalars(f: &Function, operand: &Tensor, updates: &Tensor) -> bool {
    let types: Vec<Shape> = f.input_shapes();
    types == [operand, updates].map(|t| t.shape().with_dims(&[])) && f.output_shapes() == types[..1]
}

/// What stands where a scatter writes, in the shape of its updates.
fn windows(operand: &Tensor, indices: &Tensor, updates: &Tensor, d: &ScatterDims) -> Result<Tensor, String> {
    // The scatter itself says whether its numbers fit.
    let op = Op::Scatter { kind: ScatterKind::Set, dims: d.clone() };
    apply(op, vec![operand.clone(), indices.clone(), updates.clone()])?;
    let gone = [&d.inserted_window_dims[..], &d.operand_batching_dims].concat();
    let mut window = d.update_window_dims.iter();
    let sizes = (0..operand.rank())
        .map(|i| if gone.contains(&i) { 1 } else { window.next().map_or(1, |&w| updates.dims()[w]) })
        .collect();
    let dims = GatherDims {
        offset_dims: d.update_window_dims.clone(),
        collapsed_slice_dims: d.inserted_window_dims.clone(),
        operand_batching_dims: d.operand_batching_dims.clone(),
        start_indices_batching_dims: d.scatter_indices_batching_dims.clone(),
        start_index_map: d.scatter_dims_to_operand_dims.clone(),
    };
    apply1(Op::Gather { dims, slice_sizes: sizes }, vec![operand.clone(), indices.clone()])
}
