//! Reading and writing at computed places: gather, scatter, dynamic slices.

use super::super::op::*;
use super::super::tensor::Tensor;
use super::build::{Builder, Fault, apply, apply1};
use super::ops::{Tensors, count};
use super::parse::Instruction;
use super::regions::combiner;
use crate::array::DType;

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
        let kind = match combiner(&f.inputs, &f.outputs) {
            _ if second => ScatterKind::Set,
            Some(Binary::Add) => ScatterKind::Add,
            _ => return Err("only scatters that add or replace (`.at[].add`, `.at[].set`) are supported".into()),
        };
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
        if operand.dtype() == DType::Bool && kind == ScatterKind::Set && updates.dtype() == DType::Bool {
            let wide = vec![operand.convert(DType::I32), indices, updates.convert(DType::I32)];
            let y = apply1(Op::Scatter { kind, dims }, wide)?;
            return Ok(vec![y.ne(&y.zeros_like())]);
        }
        Ok(apply(Op::Scatter { kind, dims }, vec![operand.clone(), indices, updates.clone()])?)
    }
}
