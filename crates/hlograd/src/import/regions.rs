//! What small computations mean: how a reduction combines, which way a comparator sorts.
//!
//! Comparators and index reductions are told apart by their truth table. They may only compare, select and combine
//! truths of their parameters and of 0, NaN and the infinities; such a computation depends on nothing but the order of
//! its arguments among those numbers, so that one sample of each order decides what it is.

use std::collections::HashMap;

use super::literal;
use super::parse::{Instruction, Module, Type};
use crate::graph::Tensor;
use crate::graph::{Binary, Extremum, Op};

/// The elementwise operation that a function of two scalars is.
pub(super) fn combiner(inputs: &[Tensor], outputs: &[Tensor]) -> Option<Binary> {
    let ([a, b], [y]) = (inputs, outputs) else { return None };
    let Op::Binary(op) = &y.node().op else { return None };
    let commutes = matches!(op, Binary::Add | Binary::Mul | Binary::Max | Binary::Min | Binary::And | Binary::Or);
    let [l, r] = &y.node().operands[..] else { return None };
    let same = (l.key(), r.key()) == (a.key(), b.key()) || (l.key(), r.key()) == (b.key(), a.key());
    (commutes && same).then_some(*op)
}

/// The order a comparator makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Order {
    /// Largest first.
    pub(super) descending: bool,
    /// Every bit counts: -0 before 0, negative NaN first. Otherwise zeros are equal, and NaN all alike and last.
    pub(super) total: bool,
}

#[derive(Clone, Debug)]
enum Sample {
    Number(f64),
    Truth(bool),
    Tuple(Vec<Sample>),
}

const FLOATS: [f64; 10] = [-f64::NAN, f64::NEG_INFINITY, -2.0, -1.0, -0.0, 0.0, 1.0, 2.0, f64::INFINITY, f64::NAN];
const INTEGERS: [f64; 5] = [-2.0, -1.0, 0.0, 1.0, 2.0];
/// Calls in comparators.
const MAX_DEPTH: usize = 8;

/// The order by the first pair of parameters, where the computation is a comparator of that pair alone.
pub(super) fn comparator(module: &Module, computation: usize) -> Option<Order> {
    let parameters = module.computations[computation].parameters().ok()?;
    let float = is_float(parameters.first()?)?;
    let all: Vec<Order> = [(false, false), (true, false), (false, true), (true, true)]
        .map(|(descending, total)| Order { descending, total })
        .into();
    let samples = if float { &FLOATS[..] } else { &INTEGERS };
    // The other parameters must not count: they take three settings, in which each pair is in every order.
    let fits = |order: &Order, strict: bool| {
        samples.iter().all(|&a| {
            samples.iter().all(|&b| {
                if !strict && (a.is_nan() || b.is_nan()) {
                    return true;
                }
                let (x, y) = if order.total { (a, b) } else { (canonical(a), canonical(b)) };
                let want = if order.descending { x.total_cmp(&y).is_gt() } else { x.total_cmp(&y).is_lt() };
                [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0)].iter().all(|&(p, q)| {
                    let mut arguments = vec![Sample::Number(a), Sample::Number(b)];
                    arguments.extend((2..parameters.len()).map(|i| Sample::Number(if i % 2 == 0 { p } else { q })));
                    matches!(run(module, computation, &arguments, 0), Some(Sample::Truth(got)) if got == want)
                })
            })
        })
    };
    if !float {
        return all.into_iter().find(|o| o.total && fits(o, true));
    }
    // A plain `<` says nothing about NaN: any place will do.
    let exact = all.iter().find(|o| fits(o, true));
    exact.or_else(|| all.iter().find(|o| !o.total && fits(o, false))).copied()
}

fn canonical(x: f64) -> f64 {
    if x.is_nan() {
        f64::NAN
    } else if x == 0.0 {
        0.0
    } else {
        x
    }
}

/// The extremum of a reduction of (value, index) pairs, where equal values keep the smaller index and NaN counts as the
/// extremum.
pub(super) fn extremum(module: &Module, computation: usize) -> Option<Extremum> {
    let parameters = module.computations[computation].parameters().ok()?;
    let [value, index, value2, index2] = &parameters[..] else { return None };
    let samples = if is_float(value)? { &FLOATS[..] } else { &INTEGERS };
    if is_float(index)? || is_float(index2)? || is_float(value2)? != is_float(value)? {
        return None;
    }
    [Extremum::Max, Extremum::Min].into_iter().find(|kind| {
        samples.iter().all(|&a| {
            samples.iter().all(|&b| {
                // The left pair comes first.
                let (i, j) = (1.0, 2.0);
                let better = if *kind == Extremum::Max { b > a } else { b < a };
                let second = !a.is_nan() && (b.is_nan() || better);
                let (value, index) = if second { (b, j) } else { (a, i) };
                let arguments = [a, i, b, j].map(Sample::Number);
                let Some(Sample::Tuple(got)) = run(module, computation, &arguments, 0) else { return false };
                match got[..] {
                    [Sample::Number(v), Sample::Number(k)] => {
                        k == index && (v == value || v.is_nan() && value.is_nan())
                    }
                    _ => false,
                }
            })
        })
    })
}

/// Whether a scalar is a float; None for anything else than a number.
fn is_float(parameter: &Instruction) -> Option<bool> {
    match &parameter.ty {
        Type::Array(shape, _) if shape.rank() == 0 => Some(shape.dtype.is_float()),
        _ => None,
    }
}

/// The computation's value; None where it does anything that the samples do not decide.
fn run(module: &Module, computation: usize, arguments: &[Sample], depth: usize) -> Option<Sample> {
    let computation = &module.computations[computation];
    if depth > MAX_DEPTH || computation.instructions.len() > 64 {
        return None;
    }
    let mut values: HashMap<&str, Sample> = HashMap::new();
    for ins in &computation.instructions {
        let x: Vec<Sample> = ins.operands.iter().map(|o| values.get(o).cloned()).collect::<Option<_>>()?;
        let value = match (ins.opcode, &x[..]) {
            ("parameter", _) => arguments.get(ins.inside.trim().parse::<usize>().ok()?)?.clone(),
            ("constant", _) => constant(ins)?,
            ("copy", [x]) => x.clone(),
            ("tuple", _) => Sample::Tuple(x),
            ("call", _) => run(module, *module.by_name.get(target(ins)?)?, &x, depth + 1)?,
            ("not", [Sample::Truth(a)]) => Sample::Truth(!a),
            ("and", [Sample::Truth(a), Sample::Truth(b)]) => Sample::Truth(*a && *b),
            ("or", [Sample::Truth(a), Sample::Truth(b)]) => Sample::Truth(*a || *b),
            ("xor", [Sample::Truth(a), Sample::Truth(b)]) => Sample::Truth(a != b),
            ("select", [Sample::Truth(which), a, b]) => if *which { a } else { b }.clone(),
            ("compare", [Sample::Number(a), Sample::Number(b)]) => Sample::Truth(compare(ins, *a, *b)?),
            _ => return None,
        };
        values.insert(ins.name, value);
    }
    values.remove(computation.instructions.get(computation.root)?.name)
}

fn target<'a>(ins: &Instruction<'a>) -> Option<&'a str> {
    ins.attribute("to_apply").map(|name| name.trim_start_matches('%'))
}

fn constant(ins: &Instruction) -> Option<Sample> {
    let Type::Array(shape, _) = &ins.ty else { return None };
    let value = *literal::constant(ins.inside, ins.line, shape).ok()?.to_f64_vec().first()?;
    if shape.dtype == crate::array::DType::Bool {
        return Some(Sample::Truth(value != 0.0));
    }
    (value == 0.0 || !value.is_finite()).then_some(Sample::Number(value))
}

fn compare(ins: &Instruction, a: f64, b: f64) -> Option<bool> {
    let total = ins.attribute("type") == Some("TOTALORDER");
    let order = if total { Some(a.total_cmp(&b)) } else { a.partial_cmp(&b) };
    Some(match ins.attribute("direction")? {
        "EQ" => order.is_some_and(|o| o.is_eq()),
        "NE" => !order.is_some_and(|o| o.is_eq()),
        "LT" => order.is_some_and(|o| o.is_lt()),
        "LE" => order.is_some_and(|o| o.is_le()),
        "GT" => order.is_some_and(|o| o.is_gt()),
        "GE" => order.is_some_and(|o| o.is_ge()),
        _ => return None,
    })
}
