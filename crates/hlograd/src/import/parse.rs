//! HLO text to instructions: names, types, operands and attributes, nothing yet about what an operation means.

use std::collections::HashMap;

use super::lex::{Lexer, Token, short};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::Shape;

/// No array of a program is larger; a damaged size must not overflow a product.
pub(super) const MAX_BYTES: u128 = 1 << 40;
/// Tuples in tuples.
const MAX_NESTING: usize = 16;

/// The type of a value.
#[derive(Clone, Debug)]
pub(super) enum Type {
    /// An array, with the order of its dimensions in memory (minor to major) where the text says it.
    Array(Shape, Option<Vec<usize>>),
    /// A tuple.
    Tuple(Vec<Type>),
    /// What the graph has no values of: complex numbers, tokens, 4- and 8-bit floats.
    Foreign(String),
}

/// One instruction.
pub(super) struct Instruction<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    pub(super) ty: Type,
    pub(super) opcode: &'a str,
    /// Names of the operands; empty for `constant` and `parameter`, whose text is in `inside`.
    pub(super) operands: Vec<&'a str>,
    /// What stands between the parentheses.
    pub(super) inside: &'a str,
    pub(super) attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Instruction<'a> {
    /// The attribute's text, where there is one: without its quotes or outer braces.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
    }
}

/// A named list of instructions, operands before users.
pub(super) struct Computation<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    pub(super) instructions: Vec<Instruction<'a>>,
    /// Which instruction is the result.
    pub(super) root: usize,
}

impl<'a> Computation<'a> {
    /// The parameters in order. **Errors** when one is missing or given twice.
    pub(super) fn parameters(&self) -> Result<Vec<&Instruction<'a>>> {
        let mut found: Vec<Option<&Instruction>> = Vec::new();
        let all: Vec<&Instruction> = self.instructions.iter().filter(|i| i.opcode == "parameter").collect();
        found.resize(all.len(), None);
        for ins in all {
            let number: Option<usize> = ins.inside.trim().parse().ok();
            match number.and_then(|n| found.get_mut(n)) {
                Some(slot @ None) => *slot = Some(ins),
                _ => {
                    let (name, found) = (short(self.name), short(ins.inside));
                    return Err(wrong(
                        ins.line,
                        format!("parameter({found}): those of `{name}` are not 0, 1, 2 ... once each"),
                    ));
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }
}

/// A module.
pub(super) struct Module<'a> {
    pub(super) name: &'a str,
    /// Header attributes.
    pub(super) attributes: Vec<(&'a str, &'a str)>,
    pub(super) computations: Vec<Computation<'a>>,
    pub(super) by_name: HashMap<&'a str, usize>,
    pub(super) entry: usize,
}

/// An error at a line of the text.
pub(super) fn wrong(line: usize, reason: impl std::fmt::Display) -> Error {
    Error::Call { program: "HLO text".into(), reason: format!("line {line}: {reason}") }
}

/// The tables of source places that XLA writes after the header.
const TABLES: [&str; 4] = ["FileNames", "FunctionNames", "FileLocations", "StackFrames"];

/// Reads a whole module.
pub(super) fn module(text: &str) -> Result<Module<'_>> {
    let mut lex = Lexer::new(text, 1);
    if matches!(lex.peek(), Token::Word("module" | "func.func") | Token::Mark('#')) {
        return Err(wrong(1, "this is MLIR (StableHLO); in JAX take `lower(...).compiler_ir('hlo').as_hlo_text()`"));
    }
    let mut module =
        Module { name: "module", attributes: vec![], computations: vec![], by_name: HashMap::new(), entry: usize::MAX };
    read_module(&mut lex, &mut module).map_err(|reason| wrong(lex.line, reason))?;
    if module.entry == usize::MAX {
        return Err(wrong(lex.line, "there is no `ENTRY` computation: the text is cut off, or no HLO"));
    }
    Ok(module)
}

fn read_module<'a>(lex: &mut Lexer<'a>, module: &mut Module<'a>) -> Result<(), String> {
    if lex.next() != Token::Word("HloModule") {
        return Err("HLO text begins with `HloModule`".into());
    }
    module.name = lex.word("the module's name")?;
    module.attributes = attributes(lex)?;
    loop {
        let mut ahead = *lex;
        match ahead.next() {
            Token::End => return Ok(()),
            Token::Word(table) if TABLES.contains(&table) => {
                *lex = ahead;
                skip_table(lex);
            }
            Token::Word(word) => {
                let entry = word == "ENTRY";
                if entry {
                    *lex = ahead;
                }
                let computation = computation(lex)?;
                let index = module.computations.len();
                if entry && module.entry != usize::MAX {
                    return Err("a second `ENTRY`".into());
                }
                if entry {
                    module.entry = index;
                }
                if module.by_name.insert(computation.name, index).is_some() {
                    return Err(format!("a second computation `{}`", short(computation.name)));
                }
                module.computations.push(computation);
            }
            other => return Err(format!("a computation is expected, found {other}")),
        }
    }
}

/// Rows that begin with a number.
fn skip_table(lex: &mut Lexer) {
    while let Token::Word(w) = lex.peek() {
        if !w.starts_with(|c: char| c.is_ascii_digit()) {
            return;
        }
        let mut ahead = *lex;
        ahead.next();
        let line = ahead.line;
        while ahead.line == line {
            *lex = ahead;
            if matches!(ahead.next(), Token::End | Token::Open(_)) {
                return;
            }
        }
    }
}

fn computation<'a>(lex: &mut Lexer<'a>) -> Result<Computation<'a>, String> {
    let name = lex.word("the computation's name")?;
    let line = lex.line;
    if lex.eat('(') {
        lex.enclosed()?;
        if lex.next() != Token::Arrow {
            return Err(format!("`->` is expected after the parameters of `{}`", short(name)));
        }
        read_type(lex, 0)?;
    }
    lex.expect('{')?;
    let (mut instructions, mut names, mut root) = (Vec::new(), HashMap::new(), None);
    while !lex.eat('}') {
        let mut word = lex.word("an instruction or `}`")?;
        let is_root = word == "ROOT";
        if is_root {
            word = lex.word("the instruction's name")?;
            if root.replace(instructions.len()).is_some() {
                return Err(format!("a second `ROOT` in `{}`", short(name)));
            }
        }
        if names.insert(word, ()).is_some() {
            return Err(format!("a second instruction `{}` in `{}`", short(word), short(name)));
        }
        instructions.push(instruction(lex, word)?);
    }
    attributes(lex)?;
    let Some(root) = root.or(instructions.len().checked_sub(1)) else {
        return Err(format!("the computation `{}` is empty", short(name)));
    };
    Ok(Computation { name, line, instructions, root })
}

fn instruction<'a>(lex: &mut Lexer<'a>, name: &'a str) -> Result<Instruction<'a>, String> {
    let line = lex.line;
    lex.expect('=')?;
    let ty = read_type(lex, 0)?;
    let opcode = lex.word("an operation")?;
    lex.expect('(')?;
    let mut inner = *lex;
    let inside = lex.enclosed()?;
    let mut operands = Vec::new();
    if !matches!(opcode, "constant" | "parameter") {
        let end = lex.position();
        while inner.peek() != Token::Mark(')') {
            operands.push(operand(&mut inner)?);
            if !inner.eat(',') {
                break;
            }
        }
        inner.expect(')')?;
        if inner.position() != end {
            return Err(format!("the operands of `{}` are not a list of names", short(name)));
        }
    }
    Ok(Instruction { name, line, ty, opcode, operands, inside, attributes: attributes(lex)? })
}

/// A name, which older texts write after its type.
fn operand<'a>(lex: &mut Lexer<'a>) -> Result<&'a str, String> {
    let mut ahead = *lex;
    let first = ahead.next();
    if first == Token::Mark('(') || ahead.peek() == Token::Mark('[') {
        read_type(lex, 0)?;
    }
    lex.word("the name of an operand")
}

/// `, name=value` as often as it comes.
fn attributes<'a>(lex: &mut Lexer<'a>) -> Result<Vec<(&'a str, &'a str)>, String> {
    let mut all = Vec::new();
    while lex.eat(',') {
        let name = lex.word("an attribute's name")?;
        lex.expect('=')?;
        let mut value = *lex;
        let text = match value.next() {
            Token::Mark('{') => value.enclosed()?,
            Token::Text(text) => text,
            Token::Mark('[' | '(') => {
                let start = lex.position();
                value.enclosed()?;
                // `[2,4]<=[8]T(1,0)`, the short form of a list of devices.
                while let Token::Mark('<' | '=' | '[' | '(') | Token::Word("T") = value.peek() {
                    if let Token::Mark('[' | '(') = value.next() {
                        value.enclosed()?;
                    }
                }
                value.since(start)
            }
            Token::Word(word) => {
                let mut text = word;
                let start = value.position() - word.len();
                while value.peek() == Token::Arrow {
                    value.next();
                    value.word("dimension labels")?;
                    text = value.since(start);
                }
                text
            }
            other => return Err(format!("the value of `{}` is expected, found {other}", short(name))),
        };
        *lex = value;
        all.push((name, text));
    }
    Ok(all)
}

/// `f32[4,8]{1,0}`, `(f32[], s32[])`.
pub(super) fn read_type(lex: &mut Lexer, depth: usize) -> Result<Type, String> {
    if lex.eat('(') {
        if depth == MAX_NESTING {
            return Err("tuples are nested too deeply".into());
        }
        let mut parts = Vec::new();
        while !lex.eat(')') {
            parts.push(read_type(lex, depth + 1)?);
            if !lex.eat(',') {
                lex.expect(')')?;
                break;
            }
        }
        return Ok(Type::Tuple(parts));
    }
    let name = lex.word("a type")?;
    lex.expect('[')?;
    let mut dims = Vec::new();
    while !lex.eat(']') {
        if lex.peek() == Token::Mark('<') {
            return Err("dimensions of a size known only while running (`<=`) are not supported: fix the shapes".into());
        }
        let size = lex.word("a dimension")?;
        dims.push(size.parse::<usize>().map_err(|_| format!("`{}` is not the size of a dimension", short(size)))?);
        if !lex.eat(',') {
            lex.expect(']')?;
            break;
        }
    }
    let layout = if has_layout(*lex) && lex.eat('{') { layout(lex.enclosed()?, dims.len()) } else { None };
    let Some(dtype) = DType::ALL.into_iter().find(|d| d.hlo_name() == name) else {
        return Ok(Type::Foreign(short(name)));
    };
    // Empty dimensions must not hide an overflow in the others.
    let bytes = dims.iter().try_fold(dtype.size() as u128, |n, &d| n.checked_mul(d.max(1) as u128));
    if bytes.is_none_or(|n| n > MAX_BYTES) {
        return Err(format!("{name}{dims:?} is larger than any memory"));
    }
    Ok(Type::Array(Shape::new(dtype, &dims), layout))
}

/// Whether a layout comes next, not the body of a computation whose result the type was.
fn has_layout(mut ahead: Lexer) -> bool {
    if !ahead.eat('{') {
        return false;
    }
    match ahead.next() {
        Token::Mark('}' | ':') => true,
        Token::Word(w) => w.bytes().all(|b| b.is_ascii_digit()) && matches!(ahead.next(), Token::Mark(',' | '}' | ':')),
        _ => false,
    }
}

/// Minor to major, before a colon; None when it is not a permutation.
fn layout(text: &str, rank: usize) -> Option<Vec<usize>> {
    let order: Vec<usize> = text.split(':').next()?.split(',').filter_map(|d| d.trim().parse().ok()).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    sorted.iter().copied().eq(0..rank).then_some(order)
}
