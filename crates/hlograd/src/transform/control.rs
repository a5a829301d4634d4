//! Derivatives of the operations with functions inside: loops, branches and calls.
//!
//! * A `scan` is reversed by a scan in the other direction. What the reverse body needs of the forward one is saved
//!   per step (JAX's residuals) by a wider forward scan; [`lower`](super::lower) merges that scan with the original, so
//!   the forward loop runs once.
//! * A branch is computed again inside its reverse branch.
//! * A `checkpoint` is computed again from its inputs, behind a barrier shared with the cotangents.

use std::collections::HashSet;
use std::sync::Arc;

use super::grad::vjp as vjp_of;
use super::jvp::{dense, jvp_sparse};
use crate::error::{Error, Result};
use crate::graph::*;

/// Forward rule. See [`super::jvp`].
pub(super) fn jvp(node: &Arc<Node>, t: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    match &node.op {
        Op::Call { function, kind: CallKind::Inline } => {
            let inputs = given(&node.operands, t);
            let outputs = function.inline(&node.operands);
            jvp_sparse(&outputs, &inputs)
        }
        Op::Call { function, kind: CallKind::Checkpoint } => {
            let (f, tangents, some) = tangent_function(function, t)?;
            let op = Op::Call { function: f, kind: CallKind::Checkpoint };
            Ok(spread(&some, Tensor::apply(op, [&node.operands[..], &tangents].concat())))
        }
        Op::Conditional { branches } => {
            let parts: Vec<_> = branches.iter().map(|b| tangent_function(b, &t[1..])).collect::<Result<_>>()?;
            let some: Vec<bool> = (0..node.shapes.len()).map(|i| parts.iter().any(|(_, _, s)| s[i])).collect();
            let tangents = parts[0].1.clone();
            let branches: Vec<Function> = parts
                .into_iter()
                .map(|(f, _, has)| {
                    let mut values = f.outputs.into_iter();
                    let filled = node.shapes.iter().zip(&has).zip(&some).filter(|(_, some)| **some);
                    let outputs = filled
                        .map(|((s, has), _)| {
                            let zero = || Tensor::full(s.dtype, &s.dims, 0.0);
                            if *has { values.next().unwrap_or_else(zero) } else { zero() }
                        })
                        .collect();
                    Function { inputs: f.inputs, outputs }
                })
                .collect();
            if !some.contains(&true) {
                return Ok(vec![None; some.len()]);
            }
            let operands = [&node.operands[..], &tangents].concat();
            Ok(spread(&some, Tensor::apply(Op::Conditional { branches }, operands)))
        }
        Op::While { cond, body, consts } => {
            let loop_ = widened(body, *consts, node.operands.len() - consts, t)?;
            let invariants = [&node.operands[..*consts], &loop_.const_tangents(t)].concat();
            let state = [&node.operands[*consts..], &loop_.initial(node, t, *consts)].concat();
            let cond = Function {
                inputs: [
                    &cond.inputs[..*consts],
                    &ghosts(&loop_.const_tangents(t)),
                    &cond.inputs[*consts..],
                    &ghosts(&loop_.initial(node, t, *consts)),
                ]
                .concat(),
                outputs: cond.outputs.clone(),
            };
            let op = Op::While { cond, body: loop_.body.clone(), consts: invariants.len() };
            let n = node.shapes.len();
            let mut tangents = Tensor::apply(op, [invariants, state].concat()).split_off(n).into_iter();
            Ok(loop_.carried.iter().map(|&c| if c { tangents.next() } else { None }).collect())
        }
        Op::Scan { body, consts, carry, length, reverse } => {
            let loop_ = widened(body, *consts, *carry, t)?;
            let invariants = [&node.operands[..*consts], &loop_.const_tangents(t)].concat();
            let state = [&node.operands[*consts..consts + carry], &loop_.initial(node, t, *consts)].concat();
            let xs: Vec<Tensor> = node.operands[consts + carry..]
                .iter()
                .cloned()
                .chain(t[consts + carry..].iter().flatten().cloned())
                .collect();
            let op = Op::Scan {
                body: loop_.body.clone(),
                consts: invariants.len(),
                carry: state.len(),
                length: *length,
                reverse: *reverse,
            };
            let mut results = Tensor::apply(op, [invariants, state, xs].concat()).split_off(*carry).into_iter();
            let mut out: Vec<Option<Tensor>> =
                loop_.carried.iter().map(|&c| if c { results.next() } else { None }).collect();
            out.extend(loop_.ys.iter().map(|&y| if y { results.next() } else { None }));
            Ok(out)
        }
        _ => Err(Error::Differentiate(format!("no forward derivative of {}", node.describe()))),
    }
}

/// Pairs of what has a tangent.
fn given(inputs: &[Tensor], t: &[Option<Tensor>]) -> Vec<(Tensor, Tensor)> {
    inputs.iter().zip(t).filter_map(|(x, t)| t.as_ref().map(|t| (x.clone(), t.clone()))).collect()
}

fn ghosts(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().map(|t| t.placeholder("tangent")).collect()
}

/// Results put back at the places that have one.
fn spread(some: &[bool], results: Vec<Tensor>) -> Vec<Option<Tensor>> {
    let mut results = results.into_iter();
    some.iter().map(|&s| if s { results.next() } else { None }).collect()
}

/// `f` extended by the tangents of its inputs, returning only the tangents of its outputs; the tangent operands; which
/// outputs have one.
fn tangent_function(f: &Function, t: &[Option<Tensor>]) -> Result<(Function, Vec<Tensor>, Vec<bool>)> {
    let tangents: Vec<Tensor> = t.iter().flatten().cloned().collect();
    let inputs = ghosts(&tangents);
    let mut ghost = inputs.iter().cloned();
    let pairs: Vec<_> = f
        .inputs
        .iter()
        .zip(t)
        .filter(|(_, t)| t.is_some())
        .filter_map(|(x, _)| Some((x.clone(), ghost.next()?)))
        .collect();
    let out = jvp_sparse(&f.outputs, &pairs)?;
    let some = out.iter().map(Option::is_some).collect();
    let outputs = out.into_iter().flatten().collect();
    Ok((Function { inputs: [&f.inputs[..], &inputs].concat(), outputs }, tangents, some))
}

/// A loop body that carries tangents beside the state.
struct Widened {
    /// `(consts, const tangents, state, state tangents, xs, x tangents) -> (state, state tangents, y tangents)`.
    body: Function,
    carried: Vec<bool>,
    ys: Vec<bool>,
    consts: usize,
}

impl Widened {
    fn const_tangents(&self, t: &[Option<Tensor>]) -> Vec<Tensor> {
        t[..self.consts].iter().flatten().cloned().collect()
    }

    fn initial(&self, node: &Node, t: &[Option<Tensor>], consts: usize) -> Vec<Tensor> {
        let state = node.operands[consts..].iter().zip(&t[consts..]);
        state.zip(&self.carried).filter(|(_, c)| **c).map(|((x, t), _)| dense(x, t)).collect()
    }
}

/// Widens a loop body; which state tensors carry a tangent is found as a fixed point.
fn widened(body: &Function, consts: usize, carry: usize, t: &[Option<Tensor>]) -> Result<Widened> {
    let mut carried: Vec<bool> = t[consts..consts + carry].iter().map(Option::is_some).collect();
    loop {
        let has = |i: usize| if i < consts || i >= consts + carry { t[i].is_some() } else { carried[i - consts] };
        let ghosts: Vec<Option<Tensor>> =
            body.inputs.iter().enumerate().map(|(i, x)| has(i).then(|| x.placeholder("tangent"))).collect();
        let out = jvp_sparse(&body.outputs, &given(&body.inputs, &ghosts))?;
        let grown: Vec<bool> = (0..carry).map(|i| carried[i] || out[i].is_some()).collect();
        if grown != carried {
            carried = grown;
            continue;
        }
        let part = |r: std::ops::Range<usize>| ghosts[r].iter().flatten().cloned().collect::<Vec<_>>();
        let (c, s, n) = (consts, consts + carry, body.inputs.len());
        let inputs =
            [&body.inputs[..c], &part(0..c), &body.inputs[c..s], &part(c..s), &body.inputs[s..], &part(s..n)].concat();
        let ys = out[carry..].iter().map(Option::is_some).collect();
        let mut outputs = body.outputs[..carry].to_vec();
        outputs.extend((0..carry).filter(|&i| carried[i]).map(|i| dense(&body.outputs[i], &out[i])));
        outputs.extend(out[carry..].iter().flatten().cloned());
        return Ok(Widened { body: Function { inputs, outputs }, carried, ys, consts });
    }
}

/// Reverse rule. See [`super::vjp`].
pub(super) fn vjp(node: &Arc<Node>, cts: &[Option<Tensor>], below: &[bool]) -> Result<Vec<Option<Tensor>>> {
    match &node.op {
        Op::Call { function, kind } => {
            let (outputs, flowing): (Vec<usize>, Vec<Tensor>) =
                cts.iter().enumerate().filter_map(|(i, ct)| ct.clone().map(|ct| (i, ct))).unzip();
            let n = node.operands.len();
            let (arguments, flowing) = match kind {
                CallKind::Inline => (node.operands.clone(), flowing),
                CallKind::Checkpoint => {
                    let mut held = optimization_barrier(&[&node.operands[..], &flowing].concat());
                    let flowing = held.split_off(n);
                    (held, flowing)
                }
            };
            let all = function.inline(&arguments);
            let outputs: Vec<Tensor> = outputs.into_iter().map(|i| all[i].clone()).collect();
            reverse_by(&outputs, &flowing, &arguments, below)
        }
        Op::Conditional { branches } => {
            let float: Vec<usize> = (0..cts.len()).filter(|&i| node.shapes[i].dtype.is_float()).collect();
            let flowing: Vec<Tensor> = float.iter().map(|&i| dense(&node.results()[i], &cts[i])).collect();
            let wanted: Vec<bool> =
                (1..node.operands.len()).map(|i| below[i] && node.operands[i].dtype().is_float()).collect();
            let mut reversed = Vec::new();
            for b in branches {
                let ghosts: Vec<Tensor> = flowing.iter().map(|t| t.placeholder("cotangent")).collect();
                let outputs: Vec<Tensor> = float.iter().map(|&i| b.outputs[i].clone()).collect();
                let results = reverse_by(&outputs, &ghosts, &b.inputs, &wanted)?;
                let kept = results.iter().zip(&b.inputs).zip(&wanted).filter(|(_, w)| **w);
                let outputs = kept.map(|((r, x), _)| dense(x, r)).collect();
                reversed.push(Function { inputs: [&b.inputs[..], &ghosts].concat(), outputs });
            }
            let operands = [&node.operands[..], &flowing].concat();
            let results = Tensor::apply(Op::Conditional { branches: reversed }, operands);
            Ok(std::iter::once(None).chain(spread(&wanted, results)).collect())
        }
        Op::Scan { body, consts, carry, length, reverse } => reverse_scan(
            node,
            cts,
            below,
            Loop { body, consts: *consts, carry: *carry, length: *length, reverse: *reverse },
        ),
        _ => Err(Error::Differentiate(format!("no reverse derivative of {}", node.describe()))),
    }
}

/// [`vjp_of`] by the wanted float inputs, None for the others.
fn reverse_by(outputs: &[Tensor], cts: &[Tensor], inputs: &[Tensor], wanted: &[bool]) -> Result<Vec<Option<Tensor>>> {
    let places: Vec<usize> = (0..inputs.len()).filter(|&i| wanted[i] && inputs[i].dtype().is_float()).collect();
    let wrt: Vec<Tensor> = places.iter().map(|&i| inputs[i].clone()).collect();
    let mut out = vec![None; inputs.len()];
    for (i, ct) in places.into_iter().zip(vjp_of(outputs, cts, &wrt)?) {
        out[i] = ct;
    }
    Ok(out)
}

struct Loop<'a> {
    body: &'a Function,
    consts: usize,
    carry: usize,
    length: usize,
    reverse: bool,
}

fn reverse_scan(node: &Arc<Node>, cts: &[Option<Tensor>], below: &[bool], l: Loop) -> Result<Vec<Option<Tensor>>> {
    let (c, s) = (l.consts, l.consts + l.carry);
    let inputs = &l.body.inputs;
    let is_float = |t: &Tensor| t.dtype().is_float();
    // The reverse body as a graph: cotangents of the inputs from cotangents of the outputs.
    let float_carry: Vec<usize> = (0..l.carry).filter(|&i| is_float(&inputs[c + i])).collect();
    let flowing_ys: Vec<usize> = (l.carry..cts.len()).filter(|&i| cts[i].is_some()).collect();
    let ct_carry: Vec<Tensor> = float_carry.iter().map(|&i| inputs[c + i].placeholder("ct_carry")).collect();
    let ct_ys: Vec<Tensor> = flowing_ys.iter().map(|&i| l.body.outputs[i].placeholder("ct_y")).collect();
    let outputs: Vec<Tensor> = float_carry.iter().chain(&flowing_ys).map(|&i| l.body.outputs[i].clone()).collect();
    let ghosts = [&ct_carry[..], &ct_ys].concat();
    let wanted: Vec<bool> = (0..inputs.len()).map(|i| (c..s).contains(&i) || below[i]).collect();
    let by_input = reverse_by(&outputs, &ghosts, inputs, &wanted)?;
    let const_places: Vec<usize> = (0..c).filter(|&i| by_input[i].is_some()).collect();
    let x_places: Vec<usize> = (s..inputs.len()).filter(|&i| by_input[i].is_some()).collect();
    let sums: Vec<Tensor> = const_places.iter().map(|&i| inputs[i].placeholder("ct_const")).collect();
    let mut results: Vec<Tensor> = float_carry.iter().map(|&i| dense(&inputs[c + i], &by_input[c + i])).collect();
    results.extend(const_places.iter().zip(&sums).filter_map(|(&i, sum)| Some(sum + by_input[i].as_ref()?)));
    results.extend(x_places.iter().filter_map(|&i| by_input[i].clone()));

    // The forward values it uses, saved per step by a wider forward scan.
    let saved = residuals(&results, &[&ghosts[..], &sums].concat(), &inputs[c..s], &inputs[s..]);
    let wide = Function { inputs: inputs.clone(), outputs: [&l.body.outputs[..], &saved].concat() };
    let forward = Op::Scan { body: wide, consts: c, carry: l.carry, length: l.length, reverse: l.reverse };
    let stacks = Tensor::apply(forward, node.operands.clone()).split_off(node.shapes.len());
    let saved_ghosts: Vec<Tensor> = saved.iter().map(|t| t.placeholder("saved")).collect();
    let pairs: Vec<_> = saved.into_iter().zip(saved_ghosts.iter().cloned()).collect();
    let results = substitute(&results, &pairs);

    let body = Function {
        inputs: [&inputs[..c], &ct_carry, &sums, &ct_ys, &inputs[s..], &saved_ghosts].concat(),
        outputs: results,
    };
    let mut operands = node.operands[..c].to_vec();
    operands.extend(float_carry.iter().map(|&i| dense(&node.results()[i], &cts[i])));
    operands.extend(sums.iter().map(Tensor::zeros_like));
    operands.extend(flowing_ys.iter().filter_map(|&i| cts[i].clone()));
    operands.extend_from_slice(&node.operands[s..]);
    operands.extend(stacks);
    let state = ct_carry.len() + sums.len();
    let op = Op::Scan { body, consts: c, carry: state, length: l.length, reverse: !l.reverse };
    let mut final_ = Tensor::apply(op, operands).into_iter();
    let mut out = vec![None; node.operands.len()];
    for i in float_carry.iter().map(|i| c + i).chain(const_places).chain(x_places) {
        out[i] = final_.next();
    }
    Ok(out)
}

/// The values of the forward body that the reverse body `results` reads: what depends on the loop's state or slices but
/// on no cotangent. Broadcasts, reshapes and transposes are done again rather than saved.
fn residuals(results: &[Tensor], cts: &[Tensor], state: &[Tensor], slices: &[Tensor]) -> Vec<Tensor> {
    let nodes = topological(results);
    let depends = |roots: &[Tensor]| {
        let mut on: HashSet<u64> = roots.iter().map(|t| t.node().id).collect();
        for n in &nodes {
            if n.operands.iter().any(|t| on.contains(&t.node().id)) {
                on.insert(n.id);
            }
        }
        on
    };
    let reverse = depends(cts);
    let varying = depends(&[state, slices].concat());
    let slices: HashSet<(u64, usize)> = slices.iter().map(Tensor::key).collect();
    let mut saved: Vec<Tensor> = Vec::new();
    let mut seen: HashSet<(u64, usize)> = HashSet::new();
    let reversed_operands = nodes.iter().filter(|n| reverse.contains(&n.id)).flat_map(|n| n.operands.iter());
    let mut pending: Vec<Tensor> = results.iter().chain(reversed_operands).cloned().collect();
    while let Some(t) = pending.pop() {
        let id = t.node().id;
        let needed = varying.contains(&id) && !reverse.contains(&id) && !slices.contains(&t.key());
        if !needed || !seen.insert(t.key()) {
            continue;
        }
        match &t.node().op {
            Op::BroadcastInDim { .. } | Op::Reshape { .. } | Op::Transpose { .. } => {
                pending.extend(t.node().operands.clone())
            }
            _ => saved.push(t),
        }
    }
    saved.sort_by_key(Tensor::key);
    saved
}
