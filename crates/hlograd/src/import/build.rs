//! Computations to graphs: values by name, instruction by instruction; calls are put in place.

use std::collections::HashMap;
use std::sync::Arc;

use super::lex::short;
use super::parse::{Instruction, Module, Type, wrong};
use super::unescaped;
use crate::error::{Error, Result};
use crate::graph::Function;
use crate::graph::Op;
use crate::graph::Shape;
use crate::graph::{Tensor, in_scope};

/// Loops, branches and calls inside one another.
const MAX_DEPTH: usize = 40;
/// Instructions, counted each time they are put in place.
const MAX_BUILT: usize = 1_000_000;

/// What goes wrong with an instruction: a reason yet to be placed, or an error of a computation below it.
pub(super) enum Fault {
    Reason(String),
    Placed(Error),
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Fault::Reason(reason)
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Fault::Reason(reason.into())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Placed(error)
    }
}

/// The result of an instruction.
#[derive(Clone)]
pub(super) enum Value {
    Tensor(Tensor),
    Tuple(Arc<Vec<Value>>),
}

impl Value {
    /// The tensor; **errors** for a tuple.
    pub(super) fn tensor(&self) -> std::result::Result<Tensor, String> {
        match self {
            Value::Tensor(t) => Ok(t.clone()),
            Value::Tuple(_) => Err("a tuple stands where an array is needed".into()),
        }
    }

    /// A tuple of tensors.
    pub(super) fn tuple(tensors: Vec<Tensor>) -> Value {
        Value::Tuple(Arc::new(tensors.into_iter().map(Value::Tensor).collect()))
    }

    /// All tensors in it, in order.
    pub(super) fn leaves(&self) -> Vec<Tensor> {
        match self {
            Value::Tensor(t) => vec![t.clone()],
            Value::Tuple(parts) => parts.iter().flat_map(Value::leaves).collect(),
        }
    }

    /// A value of this type with these tensors in it.
    pub(super) fn of_type(ty: &Type, leaves: &mut impl Iterator<Item = Tensor>) -> std::result::Result<Value, String> {
        match ty {
            Type::Array(..) => leaves.next().map(Value::Tensor).ok_or_else(|| "too few values".into()),
            Type::Tuple(parts) => Ok(Value::Tuple(Arc::new(
                parts.iter().map(|p| Value::of_type(p, leaves)).collect::<std::result::Result<_, _>>()?,
            ))),
            Type::Foreign(name) => Err(foreign(name)),
        }
    }

    fn check(&self, ty: &Type) -> std::result::Result<(), String> {
        match (self, ty) {
            (Value::Tensor(t), Type::Array(shape, _)) if t.shape() == shape => Ok(()),
            (Value::Tensor(t), Type::Array(shape, _)) => {
                Err(format!("it is declared as {shape}, its operands make it {}", t.shape()))
            }
            (Value::Tuple(parts), Type::Tuple(types)) if parts.len() == types.len() => {
                parts.iter().zip(types).try_for_each(|(p, t)| p.check(t))
            }
            (_, Type::Foreign(name)) => Err(foreign(name)),
            _ => Err("it is declared as a tuple of another kind than its operands make it".into()),
        }
    }
}

fn foreign(name: &str) -> String {
    format!("values of type {name} are not supported: the graph has real numbers, integers and bool")
}

/// Shapes of the arrays in a type; **errors** for what the graph has no values of.
pub(super) fn shapes(ty: &Type) -> std::result::Result<Vec<Shape>, String> {
    match ty {
        Type::Array(shape, _) => Ok(vec![shape.clone()]),
        Type::Tuple(parts) => {
            Ok(parts.iter().map(shapes).collect::<std::result::Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        Type::Foreign(name) => Err(foreign(name)),
    }
}

/// The results of an operation, its shapes checked.
pub(super) fn apply(op: Op, operands: Vec<Tensor>) -> std::result::Result<Vec<Tensor>, String> {
    Tensor::try_apply(op, operands)
}

/// [`apply`] for operations with one result.
pub(super) fn apply1(op: Op, operands: Vec<Tensor>) -> std::result::Result<Tensor, String> {
    match <[Tensor; 1]>::try_from(apply(op, operands)?) {
        Ok([t]) => Ok(t),
        Err(all) => Err(format!("{} results where there is one", all.len())),
    }
}

/// Builds the computations of one module.
pub(super) struct Builder<'m, 'a> {
    pub(super) module: &'m Module<'a>,
    /// The computations being built, outermost first.
    open: Vec<usize>,
    built: usize,
    /// Steps of loops that may still be computed, to find how often they run and what their indices do.
    pub(super) steps: usize,
}

impl<'m, 'a> Builder<'m, 'a> {
    pub(super) fn new(module: &'m Module<'a>) -> Self {
        Builder { module, open: vec![], built: 0, steps: 4_000_000 }
    }

    /// The computation named by an attribute.
    pub(super) fn named(&self, name: &str) -> std::result::Result<usize, String> {
        let name = name.trim().trim_start_matches('%');
        let index = self.module.by_name.get(name).copied();
        index.ok_or_else(|| format!("there is no computation `{}`", short(name)))
    }

    /// The computation's result for these arguments, one per parameter.
    pub(super) fn computation(&mut self, index: usize, arguments: &[Value]) -> Result<Value> {
        let module = self.module;
        let computation = &module.computations[index];
        if self.open.contains(&index) {
            return Err(wrong(computation.line, format!("the computation `{}` calls itself", short(computation.name))));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(wrong(computation.line, format!("computations call each other more than {MAX_DEPTH} deep")));
        }
        let parameters = computation.parameters()?;
        if parameters.len() != arguments.len() {
            let (n, got) = (parameters.len(), arguments.len());
            return Err(wrong(
                computation.line,
                format!("`{}` takes {n} arguments, it is given {got}", computation.name),
            ));
        }
        self.open.push(index);
        let mut values: HashMap<&str, Value> = HashMap::with_capacity(computation.instructions.len());
        for ins in &computation.instructions {
            let place = |fault: Fault| match fault {
                Fault::Reason(reason) => {
                    wrong(ins.line, format!("{} `{}`: {reason}", short(ins.opcode), short(ins.name)))
                }
                Fault::Placed(error) => error,
            };
            let value = self.instruction(ins, &values, arguments).map_err(place)?;
            values.insert(ins.name, value);
        }
        self.open.pop();
        let root = values.remove(computation.instructions[computation.root].name);
        root.ok_or_else(|| wrong(computation.line, "no result"))
    }

    /// A computation as a function of fresh parameters of its own types, its tuples taken apart.
    pub(super) fn function(&mut self, index: usize) -> std::result::Result<Function, Fault> {
        let (mut inputs, mut arguments) = (Vec::new(), Vec::new());
        for p in self.module.computations[index].parameters()? {
            let fresh: Vec<Tensor> = shapes(&p.ty)?.into_iter().map(|s| Tensor::parameter("argument", s)).collect();
            arguments.push(Value::of_type(&p.ty, &mut fresh.iter().cloned())?);
            inputs.extend(fresh);
        }
        let outputs = self.computation(index, &arguments)?.leaves();
        Ok(Function { inputs, outputs })
    }

    fn instruction(
        &mut self,
        ins: &Instruction,
        values: &HashMap<&str, Value>,
        arguments: &[Value],
    ) -> std::result::Result<Value, Fault> {
        self.built += 1;
        if self.built > MAX_BUILT {
            return Err(format!("more than {MAX_BUILT} instructions, counting those of calls each time").into());
        }
        shapes(&ins.ty)?;
        let operand = |name: &&str| {
            let unknown = || format!("the operand `{}` is not defined before it", short(name));
            values.get(name).cloned().ok_or_else(unknown)
        };
        let operands: Vec<Value> = ins.operands.iter().map(operand).collect::<std::result::Result<_, _>>()?;
        let scope =
            ins.attribute("metadata").and_then(op_name).and_then(|n| Some(unescaped(n.rsplit_once('/')?.0).into()));
        let value = in_scope(scope, || self.value(ins, &operands, arguments))?;
        value.check(&ins.ty)?;
        Ok(value)
    }

    fn value(
        &mut self,
        ins: &Instruction,
        operands: &[Value],
        arguments: &[Value],
    ) -> std::result::Result<Value, Fault> {
        match ins.opcode {
            "parameter" => {
                ins.only(&["parameter_replication"])?;
                let argument = ins.inside.trim().parse().ok().and_then(|n: usize| arguments.get(n));
                return argument.cloned().ok_or_else(|| "its number is not understood".into());
            }
            "tuple" => return Ok(Value::Tuple(Arc::new(operands.to_vec()))),
            "get-tuple-element" => {
                ins.only(&["index"])?;
                let index: usize = ins.need("index")?.parse().map_err(|_| "the index is not a number")?;
                let Some(Value::Tuple(parts)) = operands.first() else { return Err("its operand is no tuple".into()) };
                return parts.get(index).cloned().ok_or_else(|| format!("no element {index} in the tuple").into());
            }
            "call" | "fusion" => {
                ins.only(&["to_apply", "calls", "kind", "output_to_operand_aliasing"])?;
                let name = ins.attribute("to_apply").map_or_else(|| ins.need("calls"), Ok)?;
                return Ok(self.computation(self.named(name)?, operands)?);
            }
            "bitcast" => {
                let [Value::Tensor(x)] = operands else { return Err("takes one array".into()) };
                let computation = self.open.last().map(|&c| &self.module.computations[c]);
                let source =
                    computation.and_then(|c| c.instructions.iter().find(|i| Some(&i.name) == ins.operands.first()));
                let layout =
                    source.and_then(|i| if let Type::Array(_, layout) = &i.ty { layout.as_deref() } else { None });
                return Ok(Value::Tensor(super::ops::bitcast(ins, x, layout)?));
            }
            "while" => return self.while_loop(ins, operands),
            "conditional" => return self.conditional(ins, operands),
            "copy" | "opt-barrier" if operands.len() == 1 => {
                ins.only(&[])?;
                let leaves = operands[0].leaves();
                if ins.opcode == "copy" || leaves.is_empty() {
                    return Ok(operands[0].clone());
                }
                let held = apply(Op::OptimizationBarrier, leaves)?;
                return Ok(Value::of_type(&ins.ty, &mut held.into_iter())?);
            }
            _ => {}
        }
        let x: Vec<Tensor> = operands.iter().map(Value::tensor).collect::<std::result::Result<_, _>>()?;
        let results = self.tensors(ins, &x)?;
        Ok(match (&ins.ty, <[Tensor; 1]>::try_from(results)) {
            (Type::Array(..), Ok([one])) => Value::Tensor(one),
            (_, Ok(one)) => Value::tuple(one.into()),
            (_, Err(all)) => Value::tuple(all),
        })
    }

    fn tensors(&mut self, ins: &Instruction, x: &[Tensor]) -> std::result::Result<Vec<Tensor>, Fault> {
        match ins.opcode {
            "reduce" => self.reduce(ins, x),
            "reduce-window" => self.reduce_window(ins, x),
            "map" => self.map(ins, x),
            "sort" => self.sort(ins, x),
            "scatter" => self.scatter(ins, x),
            "all-reduce" => self.all_reduce(ins, x),
            _ => Ok(super::ops::simple(ins, x)?),
        }
    }
}

/// `op_name="a/b"` of the metadata, escapes and all.
pub(super) fn op_name(metadata: &str) -> Option<&str> {
    let name = &metadata[metadata.find("op_name=\"")? + 9..];
    let mut escaped = false;
    let end = name.bytes().position(|b| {
        let quote = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        quote
    })?;
    Some(&name[..end]).filter(|name| !name.is_empty())
}
