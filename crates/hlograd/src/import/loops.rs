//! Loops and branches.
//!
//! A `while` whose counters start at constants and move by constants, and whose condition asks nothing else, runs a
//! number of times that is known here: it becomes a `scan`, which has a reverse derivative. The forms in which JAX lowers
//! `lax.scan` are undone: an input sliced by the counter is one of its `xs`, a state overwritten row by row is one of its
//! `ys`. Every other `while` stays one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::build::{Builder, Fault, Value, apply};
use super::parse::Instruction;
use super::trips::{Formula, Known, in_range};
use crate::array::{Array, DType};
use crate::graph::Function;
use crate::graph::Op;
use crate::graph::Shape;
use crate::graph::substitute;
use crate::graph::{Node, Tensor, topological};

/// What becomes of a state tensor of a counted loop.
enum Role {
    /// Never changes.
    Constant,
    /// Moves by a constant: start and step.
    Counter(i64, i64),
    /// A constant read row by row, last row first or not.
    Input { reversed: bool, slices: Vec<Tensor> },
    /// A state written row by row.
    Output { reversed: bool, row: Tensor },
    /// Any other state.
    Carry,
}

type Built<T> = Result<T, Fault>;
/// Start and step of each state tensor that is a counter.
type Counters = HashMap<usize, (i64, i64)>;

impl Builder<'_, '_> {
    pub(super) fn while_loop(&mut self, ins: &Instruction, operands: &[Value]) -> Built<Value> {
        ins.only(&["condition", "body"])?;
        let [init] = operands else { return Err(format!("takes one tuple, {} operands given", operands.len()).into()) };
        let init = init.leaves();
        let cond = self.function(self.named(ins.need("condition")?)?)?;
        let body = self.function(self.named(ins.need("body")?)?)?;
        let state: Vec<Shape> = init.iter().map(|t| t.shape().clone()).collect();
        if init.is_empty()
            || cond.input_shapes() != state
            || body.input_shapes() != state
            || body.output_shapes() != state
        {
            return Err(format!("its state is {state:?}, its condition {cond:?}, its body {body:?}").into());
        }
        if cond.output_shapes() != [Shape::new(DType::Bool, &[])] {
            return Err(format!("its condition returns {:?}", cond.output_shapes()).into());
        }
        let results = match self.counted(&init, &cond, &body) {
            Some((length, counters)) => scan(&init, &body, length, &counters, &mut self.steps)?,
            None => plain(&init, cond, body)?,
        };
        Ok(Value::of_type(&ins.ty, &mut results.into_iter())?)
    }

    /// How often the loop runs, where its counters alone say it; and each counter's start and step.
    fn counted(&mut self, init: &[Tensor], cond: &Function, body: &Function) -> Option<(usize, Counters)> {
        let mut fixed = Known::new();
        let value = |t: &Tensor| Formula::new(t, &Known::new())?.value(&Known::new());
        for (i, t) in init.iter().enumerate() {
            if body.outputs[i].key() == body.inputs[i].key()
                && let Some(v) = value(t)
            {
                fixed.insert(body.inputs[i].key(), v);
                fixed.insert(cond.inputs[i].key(), v);
            }
        }
        let mut counters = Counters::new();
        for (i, t) in init.iter().enumerate() {
            let Op::Binary(op) = &body.outputs[i].node().op else { continue };
            let [a, b] = &body.outputs[i].node().operands[..] else { continue };
            let own = body.inputs[i].key();
            let by = |t: &Tensor| Formula::new(t, &fixed)?.value(&fixed);
            let step = match op {
                crate::graph::Binary::Add if a.key() == own => by(b),
                crate::graph::Binary::Add if b.key() == own => by(a),
                crate::graph::Binary::Sub if a.key() == own => by(b).and_then(i64::checked_neg),
                _ => None,
            };
            if let (Some(step), Some(start), 0) = (step, value(t), t.rank()) {
                counters.insert(i, (start, step));
            }
        }
        let mut known = fixed;
        known.extend(counters.iter().map(|(&i, &(start, _))| (cond.inputs[i].key(), start)));
        let going = Formula::new(&cond.outputs[0], &known)?;
        let mut length = 0;
        while going.value(&known)? != 0 {
            length += 1;
            self.steps = self.steps.checked_sub(1)?;
            for (&i, &(start, step)) in &counters {
                let at = start.checked_add(step.checked_mul(length)?)?;
                if !in_range(at, init[i].dtype()) {
                    return None;
                }
                known.insert(cond.inputs[i].key(), at);
            }
        }
        Some((usize::try_from(length).ok()?, counters))
    }

    pub(super) fn conditional(&mut self, ins: &Instruction, operands: &[Value]) -> Built<Value> {
        ins.only(&["branch_computations", "true_computation", "false_computation"])?;
        let Some((Value::Tensor(index), arguments)) = operands.split_first() else {
            return Err("its first operand is not an array".into());
        };
        let by_truth = index.dtype() == DType::Bool && index.rank() == 0;
        let names: Vec<&str> = match ins.attribute("branch_computations") {
            Some(names) => names.split(',').collect(),
            None => vec![ins.need("true_computation")?, ins.need("false_computation")?],
        };
        if by_truth && names.len() != 2 || !by_truth && ins.attribute("branch_computations").is_none() {
            return Err(format!("an index {} for {} branches", index.shape(), names.len()).into());
        }
        if names.len() != arguments.len() {
            return Err(format!("{} branches, {} operands for them", names.len(), arguments.len()).into());
        }
        // One list of operands for all branches, each tensor once.
        let mut all: Vec<Tensor> = Vec::new();
        let mut place: HashMap<(u64, usize), usize> = HashMap::new();
        let mut taken = Vec::new();
        for argument in arguments {
            let mut at = Vec::new();
            for t in argument.leaves() {
                at.push(*place.entry(t.key()).or_insert_with(|| {
                    all.push(t.clone());
                    all.len() - 1
                }));
            }
            taken.push(at);
        }
        let mut branches = Vec::new();
        for (name, at) in names.iter().zip(&taken) {
            let f = self.function(self.named(name)?)?;
            let fits = f.inputs.len() == at.len() && f.inputs.iter().zip(at).all(|(x, &i)| x.shape() == all[i].shape());
            if !fits {
                return Err(format!(
                    "the branch `{}` is {f:?}, which does not fit its operand",
                    super::lex::short(name)
                )
                .into());
            }
            let inputs: Vec<Tensor> = all.iter().map(|t| t.placeholder("argument")).collect();
            let pairs: Vec<_> = f.inputs.iter().cloned().zip(at.iter().map(|&i| inputs[i].clone())).collect();
            branches.push(Function { outputs: substitute(&f.outputs, &pairs), inputs });
        }
        let index = if by_truth {
            branches.reverse();
            index.convert(DType::I32)
        } else {
            index.clone()
        };
        let results = apply(Op::Conditional { branches }, [&[index], &all[..]].concat())?;
        Ok(Value::of_type(&ins.ty, &mut results.into_iter())?)
    }
}

/// A loop that stays one. What the body hands on unchanged is invariant.
fn plain(init: &[Tensor], cond: Function, body: Function) -> Built<Vec<Tensor>> {
    let unchanged = |i: &usize| body.outputs[*i].key() == body.inputs[*i].key();
    let (mut fixed, mut moving): (Vec<usize>, Vec<usize>) = (0..init.len()).partition(unchanged);
    if moving.is_empty() {
        std::mem::swap(&mut fixed, &mut moving);
    }
    let order = [&fixed[..], &moving].concat();
    let pick = |from: &[Tensor], at: &[usize]| -> Vec<Tensor> { at.iter().map(|&i| from[i].clone()).collect() };
    let op = Op::While {
        cond: Function { inputs: pick(&cond.inputs, &order), outputs: cond.outputs },
        body: Function { inputs: pick(&body.inputs, &order), outputs: pick(&body.outputs, &moving) },
        consts: fixed.len(),
    };
    let mut results = init.to_vec();
    for (i, t) in moving.iter().zip(apply(op, pick(init, &order))?) {
        results[*i] = t;
    }
    Ok(results)
}

/// A loop that runs `length` times.
fn scan(init: &[Tensor], body: &Function, length: usize, counters: &Counters, steps: &mut usize) -> Built<Vec<Tensor>> {
    if length == 0 {
        return Ok(init.to_vec());
    }
    let roles = roles(init, body, length, counters, steps);
    let (mut consts, mut carry, mut xs) = (vec![], vec![], vec![]);
    let (mut const_in, mut carry_in, mut x_in) = (vec![], vec![], vec![]);
    let (mut carry_out, mut ys, mut pairs) = (vec![], vec![], vec![]);
    for (i, role) in roles.iter().enumerate() {
        let input = &body.inputs[i];
        match role {
            Role::Constant => {
                consts.push(init[i].clone());
                const_in.push(input.clone());
            }
            Role::Carry => {
                carry.push(init[i].clone());
                carry_in.push(input.clone());
                carry_out.push(body.outputs[i].clone());
            }
            Role::Counter(start, step) => {
                let n = Tensor::iota(Shape::new(input.dtype(), &[length]), 0);
                let (start, step) = (integer(input.dtype(), *start), integer(input.dtype(), *step));
                xs.push(&n * &step + &start);
                x_in.push(input.clone());
            }
            Role::Input { reversed, slices } => {
                let row = Tensor::parameter("row", input.shape().with_dims(&input.dims()[1..]));
                pairs.extend(slices.iter().map(|s| (s.clone(), row.reshape(s.dims()))));
                xs.push(if *reversed { init[i].reverse(&[0]) } else { init[i].clone() });
                x_in.push(row);
            }
            Role::Output { row, .. } => ys.push(row.reshape(&row.dims()[1..])),
        }
    }
    let outputs = substitute(&[&carry_out[..], &ys].concat(), &pairs);
    let mut results = Vec::new();
    if !outputs.is_empty() {
        let op = Op::Scan {
            body: Function { inputs: [const_in, carry_in, x_in].concat(), outputs },
            consts: consts.len(),
            carry: carry.len(),
            length,
            reverse: false,
        };
        let carried = carry.len();
        results = apply(op, [consts, carry, xs].concat())?;
        debug_assert_eq!(results.len(), carried + ys.len());
    }
    let (mut carried, mut stacked) = (results.iter().take(carry_out.len()), results.iter().skip(carry_out.len()));
    let value = |(i, role): (usize, &Role)| {
        Some(match role {
            Role::Constant | Role::Input { .. } => init[i].clone(),
            Role::Carry => carried.next()?.clone(),
            Role::Counter(start, step) => integer(init[i].dtype(), start + step * length as i64),
            Role::Output { reversed, .. } => {
                let all = stacked.next()?;
                if *reversed { all.reverse(&[0]) } else { all.clone() }
            }
        })
    };
    roles.iter().enumerate().map(value).collect::<Option<_>>().ok_or_else(|| "the loop lost a result".into())
}

fn integer(dtype: DType, value: i64) -> Tensor {
    Tensor::constant(Array::scalar(value).cast(dtype))
}

fn roles(init: &[Tensor], body: &Function, length: usize, counters: &Counters, steps: &mut usize) -> Vec<Role> {
    let nodes = topological(&body.outputs);
    let mut users: HashMap<(u64, usize), Vec<User>> = HashMap::new();
    for node in &nodes {
        for (i, t) in node.operands.iter().enumerate() {
            users.entry(t.key()).or_default().push((node, i));
        }
    }
    let mut results: HashMap<(u64, usize), usize> = HashMap::new();
    body.outputs.iter().for_each(|t| *results.entry(t.key()).or_default() += 1);
    let mut known = Known::new();
    for (&i, &(start, _)) in counters {
        known.insert(body.inputs[i].key(), start);
    }
    let moves: Vec<Move> = counters.iter().map(|(&i, &(start, step))| (body.inputs[i].key(), start, step)).collect();
    let no_users = Vec::new();
    let of = |t: &Tensor| users.get(&t.key()).unwrap_or(&no_users);
    let mut way = |index: &Tensor| direction(index, length, &moves, &known, steps);
    let role = |i: usize| {
        if let Some(&(start, step)) = counters.get(&i) {
            return Role::Counter(start, step);
        }
        let (input, output) = (&body.inputs[i], &body.outputs[i]);
        let rows = input.dims().first() == Some(&length);
        if output.key() == input.key() {
            let mut ways = HashSet::new();
            let mut slices: Vec<Tensor> = Vec::new();
            let all = rows && results.get(&input.key()) == Some(&1) && of(input).iter().all(|(node, at)| {
                slices.extend(node.results());
                let row =
                    matches!(&node.op, Op::DynamicSlice { sizes } if sizes[0] == 1 && sizes[1..] == input.dims()[1..]);
                row && *at == 0
                    && way(&node.operands[1]).is_some_and(|reversed| {
                        ways.insert(reversed);
                        true
                    })
            });
            if all && ways.len() == 1 && !slices.is_empty() {
                return Role::Input { reversed: ways.contains(&true), slices };
            }
            return Role::Constant;
        }
        let written = output.node();
        let only = of(input).len() == 1 && !results.contains_key(&input.key());
        let last = of(output).is_empty() && results.get(&output.key()) == Some(&1);
        if rows
            && only
            && last
            && matches!(written.op, Op::DynamicUpdateSlice)
            && written.operands[0].key() == input.key()
            && written.operands[1].dims()[0] == 1
            && written.operands[1].dims()[1..] == input.dims()[1..]
            && let Some(reversed) = way(&written.operands[2])
        {
            return Role::Output { reversed, row: written.operands[1].clone() };
        }
        Role::Carry
    };
    (0..init.len()).map(role).collect()
}

/// A node, and which of its operands a tensor is.
type User<'n> = (&'n Arc<Node>, usize);
/// A counter with its start and step.
type Move = ((u64, usize), i64, i64);

/// Whether an index runs through all rows: `Some(false)` from the first, `Some(true)` from the last.
fn direction(index: &Tensor, length: usize, moves: &[Move], known: &Known, steps: &mut usize) -> Option<bool> {
    let formula = Formula::new(index, known)?;
    let mut known = known.clone();
    let last = i64::try_from(length).ok()? - 1;
    let (mut forward, mut backward) = (true, true);
    for step in 0..=last {
        *steps = steps.checked_sub(1)?;
        for (key, start, by) in moves {
            known.insert(*key, start + by * step);
        }
        let at = formula.value(&known)?.clamp(0, last);
        forward &= at == step;
        backward &= at == last - step;
        if !forward && !backward {
            return None;
        }
    }
    Some(!forward)
}
