//! The reader: HLO text as JAX, XLA and [`Program`] write it, to a graph that transforms work on.
//!
//! [`Imported::from_hlo_text`] takes a text apart in two steps. `lex`, `parse` and `literal` know how HLO is written;
//! `build` and the files it leans on know what each operation means, check every shape before it is used, and compare
//! it with the one the text declares. Anything the graph has no counterpart for is one error that names the operation,
//! the instruction and the line.
//!
//! What is not kept as written: calls and fusions are put in place; tuples are taken apart; loops that count are
//! [`scan`](crate::graph::scan)s again (`loops.rs`), so that they have a reverse derivative; convolutions become dot products
//! (`convolution.rs`); products and other reductions the graph has no operation for become trees (`reduce.rs`).

mod attributes;
mod build;
mod convolution;
mod index;
mod known;
mod lex;
mod literal;
mod loops;
mod ops;
mod parse;
mod reduce;
mod regions;
mod sort;
mod trips;

use std::collections::HashSet;

use crate::error::Result;
use crate::graph::Program;
use crate::graph::Shape;
use crate::graph::Tensor;
use build::{Builder, Value, op_name, shapes};
use lex::{Lexer, Token};
use parse::{Module, Type, wrong};

/// A function read from HLO text: the same graph as if it had been built here.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The module's name.
    pub name: String,
    /// Parameters, in call order. Tuples are taken apart. Each has the name that its `metadata` gives, else its
    /// instruction's without the number at the end.
    pub inputs: Vec<Tensor>,
    /// Results with the names `output` or `output.0`, `output.1` ...; a tuple is taken apart.
    pub outputs: Vec<(String, Tensor)>,
    /// Donations: `(output, input)` pairs whose buffers are one.
    pub aliases: Vec<(usize, usize)>,
}

impl Imported {
    /// Reads HLO text: in JAX, `jax.jit(f, keep_unused=True).lower(*args).compiler_ir('hlo').as_hlo_text()`, with
    /// `print_large_constants=True` where `f` holds arrays.
    ///
    /// **Errors** name the line, the instruction and what it has that the graph has not: an unknown operation, a call of
    /// the platform's, complex numbers, shardings, sizes known only while running, constants left out as `{...}`.
    ///
    /// ```
    /// use hlograd::{import::Imported, transform::grad};
    /// let text = "HloModule f
    ///     ENTRY main {
    ///       x.1 = f32[] parameter(0)
    ///       ROOT sin.1 = f32[] sine(x.1)
    ///     }";
    /// let f = Imported::from_hlo_text(text)?;
    /// assert_eq!(f.inputs[0].name(), "x");
    /// let slope = grad(&f.outputs[0].1, &f.inputs)?;
    /// assert_eq!(slope[0].dims(), &[] as &[usize]);
    /// # Ok::<(), hlograd::error::Error>(())
    /// ```
    pub fn from_hlo_text(text: &str) -> Result<Imported> {
        let module = parse::module(text)?;
        for computation in &module.computations {
            for ins in &computation.instructions {
                known::known(ins).map_err(|e| {
                    wrong(ins.line, format!("{} `{}`: {e}", lex::short(ins.opcode), lex::short(ins.name)))
                })?;
            }
        }
        if let Some((name, value)) = module.attributes.iter().find(|(n, v)| *n == "num_partitions" && *v != "1") {
            return Err(wrong(1, format!("{name}={}: lower the function for one device", lex::short(value))));
        }
        let (inputs, arguments) = parameters(&module)?;
        let result = Builder::new(&module).computation(module.entry, &arguments)?;
        let entry = &module.computations[module.entry];
        let root = &entry.instructions[entry.root].ty;
        let leaves = result.leaves();
        let single = matches!(root, Type::Array(..));
        let named =
            |(i, t): (usize, &Tensor)| (if single { "output".into() } else { format!("output.{i}") }, t.clone());
        let outputs: Vec<(String, Tensor)> = leaves.iter().enumerate().map(named).collect();
        let aliases = aliases(&module, root).map_err(|e| wrong(1, format!("input_output_alias: {e}")))?;
        for &(o, i) in &aliases {
            let (output, input) = (outputs[o].1.shape(), inputs[i].shape());
            if output != input {
                return Err(wrong(1, format!("input_output_alias: result {o} is {output}, parameter {i} is {input}")));
            }
        }
        Ok(Imported { name: module.name.to_string(), inputs, outputs, aliases })
    }

    /// The graph as a program, donations kept.
    ///
    /// **Errors** as [`Program::new`].
    pub fn program(&self) -> Result<Program> {
        let outputs: Vec<(&str, Tensor)> = self.outputs.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        Program::with_donation(&self.name, &self.inputs, &outputs, &self.aliases)
    }
}

impl Program {
    /// Reads HLO text into a graph and prints it again, as [`Imported::from_hlo_text`] and [`Imported::program`] do.
    pub fn from_hlo_text(text: &str) -> Result<Program> {
        Imported::from_hlo_text(text)?.program()
    }
}

/// The program's inputs, and the entry's arguments made of them.
fn parameters(module: &Module) -> Result<(Vec<Tensor>, Vec<Value>)> {
    let (mut inputs, mut arguments) = (Vec::new(), Vec::new());
    let mut taken = HashSet::new();
    for p in module.computations[module.entry].parameters()? {
        let told = p.attribute("metadata").and_then(op_name);
        let name = told.map_or_else(|| without_number(p.name).to_string(), unescaped);
        let shapes = shapes(&p.ty).map_err(|e| wrong(p.line, format!("parameter `{}`: {e}", lex::short(p.name))))?;
        let single = matches!(p.ty, Type::Array(..));
        let mut fresh: Vec<Tensor> = Vec::new();
        for (i, shape) in shapes.iter().enumerate() {
            let mut name = if single { name.clone() } else { format!("{name}.{i}") };
            let (base, mut again) = (name.clone(), 1);
            while !taken.insert(name.clone()) {
                again += 1;
                name = format!("{base}.{again}");
            }
            fresh.push(Tensor::parameter(&name, Shape::new(shape.dtype, &shape.dims)));
        }
        arguments.push(Value::of_type(&p.ty, &mut fresh.iter().cloned()).map_err(|e| wrong(p.line, e))?);
        inputs.extend(fresh);
    }
    Ok((inputs, arguments))
}

/// `x.12` without what JAX numbers it by.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((front, number)) if !front.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => front,
        _ => name,
    }
}

/// Without the backslashes before quotes and backslashes.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next().map(|c| if c == 'n' { '\n' } else { c })),
            c => out.push(c),
        }
    }
    out
}

/// `{ {0}: (1, {}, may-alias), ... }` as pairs of a result and an input.
fn aliases(module: &Module, root: &Type) -> Result<Vec<(usize, usize)>, String> {
    let Some((_, text)) = module.attributes.iter().find(|(n, _)| *n == "input_output_alias") else { return Ok(vec![]) };
    let entry = &module.computations[module.entry];
    let parameters = Type::Tuple(entry.parameters().map_err(|e| e.to_string())?.iter().map(|p| p.ty.clone()).collect());
    let mut lex = Lexer::new(text, 1);
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    while lex.eat('{') {
        let output = leaf(root, &path(lex.enclosed()?)?)?;
        lex.expect(':')?;
        lex.expect('(')?;
        let mut inner = Lexer::new(lex.enclosed()?, 1);
        let mut input = path(inner.word("the number of a parameter")?)?;
        if inner.eat(',') {
            inner.expect('{')?;
            input.extend(path(inner.enclosed()?)?);
        }
        let input = leaf(&parameters, &input)?;
        if pairs.iter().any(|&(o, i)| o == output || i == input) {
            return Err("a result or parameter is given twice".into());
        }
        pairs.push((output, input));
        lex.eat(',');
    }
    if lex.next() == Token::End { Ok(pairs) } else { Err("it is not understood".into()) }
}

fn path(text: &str) -> Result<Vec<usize>, String> {
    let steps = text.split(',').map(str::trim).filter(|s| !s.is_empty());
    steps.map(|s| s.parse().map_err(|_| format!("`{}` is not a number", lex::short(s)))).collect()
}

/// Which array of a type the path leads to, all of them counted in order.
fn leaf(ty: &Type, path: &[usize]) -> Result<usize, String> {
    match (ty, path.split_first()) {
        (Type::Array(..), None) => Ok(0),
        (Type::Tuple(parts), Some((&first, rest))) if first < parts.len() => {
            let before = parts[..first].iter().map(|p| shapes(p).map(|s| s.len())).sum::<Result<usize, _>>()?;
            Ok(before + leaf(&parts[first], rest)?)
        }
        _ => Err("it names what is not there".into()),
    }
}
