//! Names and shapes of a program's inputs and results, from the text that XLA prints.

use std::fmt;

use regex::{Captures, Regex};

use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::Shape;

/// An input or a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its name: what the program calls a parameter, `output.N` for results where nothing else is known.
    pub name: String,
    /// Element type and dimensions as XLA writes them, `f32[2,3]`.
    pub shape: String,
}

impl Port {
    /// Its shape.
    ///
    /// **Errors** when the element type is not one of this toolkit's, or a dimension is not fixed.
    pub fn shape(&self) -> Result<Shape> {
        let fail = |why: &str| Error::tensor(&self.name, format!("has shape {}: {why}", self.shape));
        let (dtype, dims) = self.shape.split_once('[').ok_or_else(|| fail("no array"))?;
        let dtype = DType::ALL.into_iter().find(|d| d.hlo_name() == dtype);
        let dtype = dtype.ok_or_else(|| fail("its element type is not supported"))?;
        let dims = dims.trim_end_matches(']').split(',').filter(|d| !d.is_empty());
        let dims: Option<Vec<usize>> = dims.map(|d| d.parse().ok()).collect();
        let dims = dims.ok_or_else(|| fail("its dimensions are not fixed"))?;
        let bytes = dims.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d));
        bytes.filter(|n| *n <= isize::MAX as usize).ok_or_else(|| fail("it has more bytes than a machine"))?;
        Ok(Shape::new(dtype, &dims))
    }
}

/// What a program takes and gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The module's name.
    pub name: String,
    /// In the order of the call.
    pub inputs: Vec<Port>,
    /// In the order of the results.
    pub outputs: Vec<Port>,
    /// (result, input) pairs that share memory: such an input is used up by a call.
    pub donations: Vec<(usize, usize)>,
    /// Targets of custom calls, each once.
    pub custom_calls: Vec<String>,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |f: &mut fmt::Formatter<'_>, title: &str, ports: &[Port], donated: &dyn Fn(usize) -> bool| {
            writeln!(f, "{title}")?;
            let width = ports.iter().map(|p| p.name.chars().count()).max().unwrap_or(0);
            for (i, Port { name, shape }) in ports.iter().enumerate() {
                let used = if donated(i) { "  donated" } else { "" };
                writeln!(f, "  {name:width$}  {shape}{used}")?;
            }
            fmt::Result::Ok(())
        };
        writeln!(f, "{}", self.name)?;
        side(f, "inputs", &self.inputs, &|i| self.donations.iter().any(|(_, input)| *input == i))?;
        side(f, "results", &self.outputs, &|_| false)?;
        if !self.custom_calls.is_empty() {
            writeln!(f, "custom calls: {}", self.custom_calls.join(", "))?;
        }
        Ok(())
    }
}

impl Signature {
    /// That of a module as XLA prints it.
    ///
    /// **Errors** when inputs or results are nested, or not in row-major order.
    pub(super) fn of(text: &str) -> Result<Self> {
        let unknown = || Error::numeric("signature", "XLA prints this module in a form that is not known here");
        let header = text.lines().next().ok_or_else(unknown)?;
        let name = header.strip_prefix("HloModule ").ok_or_else(unknown)?;
        let name = name.split([',', ' ']).next().unwrap_or_default().to_owned();
        let layout = after(header, "entry_computation_layout={").ok_or_else(unknown)?;
        let (inputs, rest) = bracketed(layout).ok_or_else(unknown)?;
        let rest = rest.strip_prefix("->").ok_or_else(unknown)?;
        let outputs = match bracketed(rest) {
            Some((outputs, _)) => shapes(outputs)?,
            None => shapes(whole_shape(rest))?,
        };
        let inputs = shapes(inputs)?;
        let names = parameter_names(text, inputs.len());
        let inputs = inputs.into_iter().zip(names).map(|(shape, name)| Port { name, shape }).collect();
        let number = |(i, shape): (usize, String)| Port { name: format!("output.{i}"), shape };
        let mut custom_calls: Vec<String> = Vec::new();
        for target in text.split("custom_call_target=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            if !custom_calls.iter().any(|known| known == target) {
                custom_calls.push(target.to_owned());
            }
        }
        Ok(Signature {
            name,
            inputs,
            outputs: outputs.into_iter().enumerate().map(number).collect(),
            donations: donations(header),
            custom_calls,
        })
    }
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.find(mark).map(|at| &text[at + mark.len()..])
}

/// The first line of a module without `, attribute={...}`.
pub(crate) fn without_attribute(header: &str, attribute: &str) -> String {
    let Some((before, list)) = header.split_once(&format!(", {attribute}={{")) else { return header.to_owned() };
    let mut depth = 1;
    let end = list.find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    format!("{before}{}", end.map_or("", |end| &list[end + 1..]))
}

/// A module as XLA prints it, taking and giving every array in row-major order: an order that it asks for says where in memory
/// numbers lie, not which they are (JAX asks for one wherever a function ends in a transposition). None where it does.
pub(super) fn row_major(text: &str) -> Result<Option<String>> {
    let unknown = |e: regex::Error| Error::numeric("layout", e);
    let shape = Regex::new(r"\[([^\]]*)\]\{[^}]*\}").map_err(unknown)?;
    let Some(from) = text.lines().next().and_then(|header| header.find("entry_computation_layout={")) else {
        return Ok(None);
    };
    let (before, rest) = text.split_at(from);
    let (header, body) = rest.split_once('\n').unwrap_or((rest, ""));
    let end = header.len() - without_attribute(&format!(", {header}"), "entry_computation_layout").len();
    let ordered = shape.replace_all(&header[..end], |found: &Captures| {
        let rank = found[1].split(',').filter(|d| !d.trim().is_empty()).count();
        let order: Vec<String> = (0..rank).rev().map(|d| d.to_string()).collect();
        format!("[{}]{{{}}}", &found[1], order.join(","))
    });
    let changed = ordered != header[..end];
    Ok(changed.then(|| format!("{before}{ordered}{}\n{body}", &header[end..])))
}

/// The inside of the brackets that `text` begins with, and what follows.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('(')?;
    let mut depth = 1;
    for (at, c) in inner.char_indices() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 {
            return Some((&inner[..at], &inner[at + 1..]));
        }
    }
    None
}

/// The shape that `text` begins with, with its layout.
fn whole_shape(text: &str) -> &str {
    let end = text.find(']').map_or(text.len(), |i| i + 1);
    let layout = text[end..].starts_with('{').then(|| text[end..].find('}')).flatten();
    &text[..layout.map_or(end, |i| end + i + 1)]
}

/// `f32[2,3]{1,0}, s32[]` without layouts, which must be row-major.
fn shapes(text: &str) -> Result<Vec<String>> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // Comments count the parameters: /*index=5*/.
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
            continue;
        }
        if rest.starts_with('(') {
            let why = "an input or result is a tuple of its own: give the program flat ones (jax.jit does, with return_tuple only at the root)";
            return Err(Error::numeric("signature", why));
        }
        let shape = whole_shape(rest);
        let bare = shape.split('{').next().unwrap_or(shape);
        let rank = bare
            .split_once('[')
            .map_or(0, |(_, d)| d.trim_end_matches(']').split(',').filter(|d| !d.is_empty()).count());
        if let Some((_, layout)) = shape.split_once('{') {
            let order = layout.split([':', '}']).next().unwrap_or_default();
            let row_major: Vec<String> = (0..rank).rev().map(|d| d.to_string()).collect();
            if !order.is_empty() && order != row_major.join(",") {
                let why = format!("{shape} is not in row-major order, which is all that this toolkit passes");
                return Err(Error::numeric("signature", why));
            }
        }
        all.push(bare.trim().to_owned());
        rest = rest[shape.len()..].trim_start().trim_start_matches(',').trim_start();
    }
    Ok(all)
}

/// `{0}: (2, {}, may-alias)` pairs of the header.
fn donations(header: &str) -> Vec<(usize, usize)> {
    let Some(list) = after(header, "input_output_alias={") else { return Vec::new() };
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let entries = list.split("alias)").take_while(|entry| entry.contains("}: ("));
    let pair = |entry: &str| -> Option<(usize, usize)> {
        let (result, input) = entry.split_once("}: (")?;
        let result = result.rsplit('{').next()?;
        Some((if result.trim().is_empty() { 0 } else { number(result)? }, number(input.split(',').next()?)?))
    };
    entries.filter_map(pair).collect()
}

/// What the entry calls its parameters: the metadata's name, `params['w']`, else the instruction's.
fn parameter_names(text: &str, count: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..count).map(|i| format!("input.{i}")).collect();
    let entry = text.find("\nENTRY ").map_or("", |at| &text[at..]);
    for line in entry.lines() {
        let Some((before, rest)) = line.split_once(" parameter(") else { continue };
        let Some(index) = rest.split(')').next().and_then(|i| i.parse::<usize>().ok()).filter(|i| *i < count) else {
            continue;
        };
        let instruction = before.trim().trim_start_matches("ROOT ").split(' ').next().unwrap_or_default();
        let instruction = instruction.trim_start_matches('%');
        // XLA appends a number to keep names apart.
        let plain = match instruction.rsplit_once('.') {
            Some((stem, number)) if number.bytes().all(|b| b.is_ascii_digit()) => stem,
            _ => instruction,
        };
        let metadata = after(rest, "op_name=\"").and_then(|r| r.split('"').next()).filter(|n| !n.is_empty());
        names[index] = metadata.map_or_else(|| plain.to_owned(), |n| n.replace("\\'", "'"));
    }
    // Names must tell inputs apart.
    let clash = |i: usize| names.iter().enumerate().any(|(j, n)| j != i && *n == names[i]);
    (0..count).map(|i| if clash(i) { format!("{}.{i}", names[i]) } else { names[i].clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_left_out() {
        let header = "HloModule f, a={ {0}: (0, {}, may-alias) }, layout={(f32[2]{0})->f32[2]{0}}, more=1";
        assert_eq!(without_attribute(header, "layout"), "HloModule f, a={ {0}: (0, {}, may-alias) }, more=1");
        assert_eq!(without_attribute(header, "a"), "HloModule f, layout={(f32[2]{0})->f32[2]{0}}, more=1");
        assert_eq!(without_attribute(header, "none"), header);
    }

    #[test]
    fn every_array_in_row_major_order() {
        let text = "HloModule f, entry_computation_layout={(f32[2,3]{0,1}, /*index=1*/bf16[4,3,2]{0,2,1:T(8,128)}, s32[])->(f32[6,3]{0,1}, pred[2]{0})}, more={1}\n\nENTRY e {\n  x = f32[2,3]{0,1} parameter(0)\n}\n";
        let want = "HloModule f, entry_computation_layout={(f32[2,3]{1,0}, /*index=1*/bf16[4,3,2]{2,1,0}, s32[])->(f32[6,3]{1,0}, pred[2]{0})}, more={1}\n\nENTRY e {\n  x = f32[2,3]{0,1} parameter(0)\n}\n";
        assert_eq!(row_major(text).expect("known").as_deref(), Some(want));
        assert_eq!(row_major(want).expect("known"), None);
        assert_eq!(row_major("HloModule f\n").expect("known"), None);
    }

    #[test]
    fn what_jax_prints() {
        let text = "HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (2, {}, must-alias) }, \
                    entry_computation_layout={(f32[2]{0}, s32[], /*index=2*/bf16[4,3]{1,0:T(8,128)})->(f32[4,2]{1,0}, pred[])}\n\n\
                    ENTRY main.2 {\n  x.1 = bf16[4,3]{1,0} parameter(2)\n  b.1 = f32[2]{0} parameter(0), metadata={op_name=\"p[\\'b\\']\"}\n\
                    n = s32[] parameter(1)\n  c = f32[2]{0} custom-call(b.1), custom_call_target=\"lapack\"\n}\n";
        let s = Signature::of(text).expect("known");
        let port = |name: &str, shape: &str| Port { name: name.into(), shape: shape.into() };
        assert_eq!(s.name, "jit_f");
        assert_eq!(s.inputs, [port("p['b']", "f32[2]"), port("n", "s32[]"), port("x", "bf16[4,3]")]);
        assert_eq!(s.outputs, [port("output.0", "f32[4,2]"), port("output.1", "pred[]")]);
        assert_eq!(s.donations, [(0, 0), (1, 2)]);
        assert_eq!(s.custom_calls, ["lapack"]);
        assert_eq!(s.inputs[2].shape().expect("fixed"), Shape::new(DType::BF16, &[4, 3]));

        let bare = "HloModule m, entry_computation_layout={()->c64[2,2]{1,0}}\n\nENTRY e {\n}\n";
        let s = Signature::of(bare).expect("known");
        assert!(s.inputs.is_empty() && s.outputs == [port("output.0", "c64[2,2]")]);
        assert!(s.outputs[0].shape().expect_err("complex").to_string().contains("not supported"));
        for (layout, why) in [("(f32[2,2]{0,1})->f32[]", "row-major"), ("((f32[2]{0}, f32[]))->f32[]", "tuple")] {
            let text = format!("HloModule m, entry_computation_layout={{{layout}}}\n");
            assert!(Signature::of(&text).expect_err("refused").to_string().contains(why));
        }
        assert!(port("x", "f32[<=4]").shape().is_err());
        assert!(port("x", "f32[99999999999,99999999999]").shape().is_err());
    }
}
