//! Operations without computations inside: elementwise, structure, dot products, gathers.

use super::build::{apply, apply1};
use super::known::known;
use super::parse::{Instruction, Type};
use super::{convolution, index};
use crate::array::{Array, DType};
use crate::graph::Shape;
use crate::graph::Tensor;
use crate::graph::*;

pub(super) type Tensors = Result<Vec<Tensor>, String>;

pub(super) const BINARY: [Binary; 15] = {
    use Binary::*;
    [Add, Sub, Mul, Div, Max, Min, Pow, Rem, Atan2, And, Or, Xor, ShiftLeft, ShiftRightLogical, ShiftRightArithmetic]
};
const DIRECTIONS: [Direction; 6] =
    [Direction::Eq, Direction::Ne, Direction::Lt, Direction::Le, Direction::Gt, Direction::Ge];

/// One instruction applied to arrays.
pub(super) fn simple(ins: &Instruction, x: &[Tensor]) -> Tensors {
    known(ins)?;
    if let Some(op) = Unary::ALL.into_iter().find(|u| u.hlo_name() == ins.opcode) {
        ins.only(&["result_accuracy"])?;
        return unary(op, x);
    }
    if let Some(op) = BINARY.into_iter().find(|b| b.hlo_name() == ins.opcode) {
        ins.only(&[])?;
        return binary(op, x).map(|t| vec![t]);
    }
    let one = |op: Op| apply(op, x.to_vec());
    let only = |known: &[&str]| ins.only(known);
    match ins.opcode {
        "constant" => {
            only(&[])?;
            let Type::Array(shape, _) = &ins.ty else { return Err("constant tuples are not supported".into()) };
            let value = super::literal::constant(ins.inside, ins.line, shape)?;
            apply(Op::Constant(value), vec![])
        }
        "iota" => {
            only(&["iota_dimension"])?;
            let shape = declared(ins)?;
            if shape.dtype == DType::Bool {
                return Err("not defined for bool".into());
            }
            one(Op::Iota { shape: shape.clone(), dim: ins.dim("iota_dimension")? })
        }
        "compare" => {
            only(&["direction", "type"])?;
            let [a, _] = x else { return Err(count(2, x)) };
            if ins.attribute("type") == Some("TOTALORDER") && a.dtype().is_float() {
                return Err("total order of floats (type=TOTALORDER) is supported inside of sorts only".into());
            }
            let direction = ins.need("direction")?;
            let found = DIRECTIONS.into_iter().find(|d| d.hlo_name() == direction);
            one(Op::Compare(found.ok_or_else(|| format!("direction {direction}"))?))
        }
        "select" => {
            only(&[])?;
            let [which, a, b] = x else { return Err(count(3, x)) };
            apply(Op::Select, vec![spread(which, a), a.clone(), b.clone()])
        }
        "clamp" => {
            only(&[])?;
            let [low, a, high] = x else { return Err(count(3, x)) };
            apply(Op::Clamp, vec![spread(low, a), a.clone(), spread(high, a)])
        }
        "convert" => {
            only(&[])?;
            let dtype = declared(ins)?.dtype;
            if x.len() == 1 && x[0].dtype() == dtype { Ok(x.to_vec()) } else { one(Op::Convert(dtype)) }
        }
        "bitcast-convert" => {
            only(&[])?;
            one(Op::BitcastConvert(declared(ins)?.dtype))
        }
        "reduce-precision" => reduce_precision(ins, x),
        "round-nearest-afz" => {
            only(&[])?;
            let [a] = x else { return Err(count(1, x)) };
            // Exact: the distance to the integer below is a float.
            let low = apply1(Op::Unary(Unary::Floor), vec![a.abs()])?;
            let up = (a.abs() - &low).ge(&a.full_like(0.5)).convert(a.dtype());
            Ok(vec![(low + up) * a.sign()])
        }
        "topk" => top_k(ins, x),
        "dot" => {
            only(&[
                "lhs_batch_dims",
                "rhs_batch_dims",
                "lhs_contracting_dims",
                "rhs_contracting_dims",
                "operand_precision",
            ])?;
            let dims = DotDims {
                lhs_batch: ins.dims_or_none("lhs_batch_dims")?,
                rhs_batch: ins.dims_or_none("rhs_batch_dims")?,
                lhs_contract: ins.dims_or_none("lhs_contracting_dims")?,
                rhs_contract: ins.dims_or_none("rhs_contracting_dims")?,
            };
            one(Op::DotGeneral { dims, precision: ins.precision(), dtype: declared(ins)?.dtype })
        }
        "convolution" => Ok(vec![convolution::convolution(ins, x, declared(ins)?)?]),
        "gather" => index::gather(ins, x),
        "dynamic-slice" | "dynamic-update-slice" => index::dynamic(ins, x),
        "rng-bit-generator" => {
            only(&["algorithm"])?;
            let algorithm = match ins.need("algorithm")? {
                "rng_three_fry" => RngAlgorithm::ThreeFry,
                "rng_philox" => RngAlgorithm::Philox,
                other => return Err(format!("algorithm {other} differs from device to device: take rng_three_fry")),
            };
            let shape = match &ins.ty {
                Type::Tuple(parts) => match parts.get(1) {
                    Some(Type::Array(shape, _)) => shape.clone(),
                    _ => return Err("its type has no bits".into()),
                },
                _ => return Err("its type is no tuple".into()),
            };
            one(Op::RngBitGenerator { algorithm, shape })
        }
        _ => structure(ins, x),
    }
}

fn structure(ins: &Instruction, x: &[Tensor]) -> Tensors {
    let one = |op: Op| apply(op, x.to_vec());
    let only = |known: &[&str]| ins.only(known);
    match ins.opcode {
        "broadcast" => {
            only(&["dimensions"])?;
            let [a] = x else { return Err(count(1, x)) };
            let dims = ins.dims_or_none("dimensions")?;
            if dims.len() != a.rank() {
                return Err(format!("dimensions={dims:?} for {}", a.shape()));
            }
            // Result dimensions may come in any order; the graph's ascend.
            let mut order: Vec<usize> = (0..dims.len()).collect();
            order.sort_by_key(|&i| dims[i]);
            let dims = order.iter().map(|&i| dims[i]).collect();
            let turned = if order.is_sorted() { a.clone() } else { a.transpose(&order) };
            apply(Op::BroadcastInDim { dims, to: declared(ins)?.dims.clone() }, vec![turned])
        }
        "reshape" => {
            only(&["inferred_dimension"])?;
            one(Op::Reshape { to: declared(ins)?.dims.clone() })
        }
        "transpose" => {
            only(&["dimensions"])?;
            one(Op::Transpose { perm: ins.dims("dimensions")? })
        }
        "reverse" => {
            only(&["dimensions"])?;
            one(Op::Reverse { dims: ins.dims("dimensions")? })
        }
        "slice" => {
            only(&["slice"])?;
            let [start, limit, stride] = ins.slices()?;
            one(Op::Slice { start, limit, stride })
        }
        "pad" => {
            only(&["padding"])?;
            let [a, _] = x else { return Err(count(2, x)) };
            let config = ins.padding(a.rank())?;
            padded_size(a.dims(), &config)?;
            one(Op::Pad { config })
        }
        "concatenate" => {
            only(&["dimensions"])?;
            one(Op::Concatenate { dim: ins.dim("dimensions")? })
        }
        _ => Err("the graph has no such operation".into()),
    }
}

/// The declared type, an array.
pub(super) fn declared<'t>(ins: &'t Instruction) -> Result<&'t Shape, String> {
    match &ins.ty {
        Type::Array(shape, _) => Ok(shape),
        _ => Err("its type is not an array".into()),
    }
}

pub(super) fn count(n: usize, x: &[Tensor]) -> String {
    format!("takes {n} operands, {} given", x.len())
}

/// **Errors** where padding gives a size that does not fit, before anything is computed with it.
pub(super) fn padded_size(dims: &[usize], config: &[Padding]) -> Result<(), String> {
    let mut size = 1u128;
    for (&d, p) in dims.iter().zip(config) {
        let n = i128::from(p.low) + i128::from(p.high) + d as i128 + (d as i128 - 1).max(0) * p.interior as i128;
        let n = u128::try_from(n).map_err(|_| format!("padding {p:?} leaves less than nothing of {d}"))?;
        size = size.saturating_mul(n.max(1));
    }
    if size > super::parse::MAX_BYTES { Err("the padded array is larger than any memory".into()) } else { Ok(()) }
}

/// A scalar in every element of `like`'s shape.
fn spread(t: &Tensor, like: &Tensor) -> Tensor {
    if t.rank() == 0 { t.broadcast_in_dim(&[], like.dims()) } else { t.clone() }
}

fn unary(op: Unary, x: &[Tensor]) -> Tensors {
    match x {
        // Two's complement.
        [a] if op == Unary::Neg && a.dtype().is_unsigned() => {
            apply(Op::Binary(Binary::Sub), vec![a.zeros_like(), a.clone()])
        }
        _ => apply(Op::Unary(op), x.to_vec()),
    }
}

/// Elementwise functions of two; truths are ordered false, true.
pub(super) fn binary(op: Binary, x: &[Tensor]) -> Result<Tensor, String> {
    let truths = x.first().is_some_and(|t| t.dtype() == DType::Bool);
    let op = match op {
        Binary::Max | Binary::Add if truths => Binary::Or,
        Binary::Min | Binary::Mul if truths => Binary::And,
        op => op,
    };
    apply1(Op::Binary(op), x.to_vec())
}

fn reduce_precision(ins: &Instruction, x: &[Tensor]) -> Tensors {
    ins.only(&["exponent_bits", "mantissa_bits"])?;
    let [a] = x else { return Err(count(1, x)) };
    let (exponent, mantissa) = (ins.count("exponent_bits")?, ins.count("mantissa_bits")?);
    let own = match a.dtype() {
        DType::F16 => (5, 10),
        DType::BF16 => (8, 7),
        DType::F32 => (8, 23),
        _ => (11, 52),
    };
    if exponent < own.0 || mantissa < own.1 {
        return Err(format!(
            "rounding to {exponent} + {mantissa} bits is not supported: convert to a type of that size"
        ));
    }
    Ok(x.to_vec())
}

/// The k largest (or smallest) of the last dimension in order, with their indices.
fn top_k(ins: &Instruction, x: &[Tensor]) -> Tensors {
    ins.only(&["k", "largest"])?;
    let [a] = x else { return Err(count(1, x)) };
    let (k, largest) = (ins.count("k")?, ins.attribute("largest") != Some("false"));
    let Some(dim) = a.rank().checked_sub(1).filter(|&d| k <= a.dims()[d]) else {
        return Err(format!("k={k} of {}", a.shape()));
    };
    let index = Tensor::iota(Shape::new(DType::I32, a.dims()), dim);
    let sorted = apply(Op::Sort { dim, descending: largest }, vec![a.clone(), index])?;
    Ok(sorted.iter().map(|t| t.slice_in_dim(dim, 0, k)).collect())
}

/// The same bytes under another shape, by way of the order they have in memory (minor to major; None is row-major).
pub(super) fn bitcast(ins: &Instruction, a: &Tensor, layout: Option<&[usize]>) -> Result<Tensor, String> {
    ins.only(&["result_layout", "source_layout"])?;
    let Type::Array(shape, to) = &ins.ty else { return Err("its type is not an array".into()) };
    if shape.dtype != a.dtype() || layout.is_some_and(|l| l.len() != a.rank()) {
        return Err(format!("from {} to {shape}: only bitcasts that keep the element type are supported", a.shape()));
    }
    let major = |layout: Option<&[usize]>, rank: usize| -> Vec<usize> {
        layout.map_or_else(|| (0..rank).collect(), |l| l.iter().rev().copied().collect())
    };
    let (from, to) = (major(layout, a.rank()), major(to.as_deref(), shape.rank()));
    let memory: Vec<usize> = to.iter().map(|&d| shape.dims[d]).collect();
    let flat = apply1(Op::Reshape { to: memory }, vec![a.transpose(&from)])?;
    let mut back = vec![0; to.len()];
    to.iter().enumerate().for_each(|(i, &d)| back[d] = i);
    Ok(flat.transpose(&back))
}

/// Whether a reduction by `op` that starts at `init` gives what it gives without.
pub(super) fn is_neutral(init: &Tensor, op: Binary) -> bool {
    let Some(value) = init.as_constant() else { return false };
    let (v, dtype) = (value.to_f64_vec()[0], init.dtype());
    let truth = dtype == DType::Bool;
    // The infinities saturate to an integer's bounds.
    let bound = |far: f64| Array::full(dtype, &[], far).to_f64_vec()[0];
    match op {
        Binary::Add | Binary::Or => v == 0.0,
        Binary::And => truth && v == 1.0,
        Binary::Max => !truth && v == bound(f64::NEG_INFINITY),
        Binary::Min => !truth && v == bound(f64::INFINITY),
        _ => false,
    }
}
