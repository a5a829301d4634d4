//! The printer: a graph as HLO text, the format that XLA parses and people read.
//!
//! Constants are written in full (an elided `{...}` would parse back as garbage), names are `opcode.number` so that none
//! collides with a type name, and each instruction carries its name scope as `metadata={op_name="..."}`.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::function::Function;
use super::hlo_literal::{highest, literal, lowest};
use super::op::*;
use super::shape::Shape;
use super::tensor::{Node, Tensor, topological};
use crate::array::DType;

/// A module whose entry takes `inputs` and returns the tuple of `outputs`.
pub(super) fn module(name: &str, inputs: &[Tensor], outputs: &[Tensor], aliases: &[(usize, usize)]) -> String {
    let mut printer = Printer::default();
    let mut body = String::new();
    let mut names = HashMap::new();
    for (i, t) in inputs.iter().enumerate() {
        let label = format!("{}.{}", identifier(t.name()), printer.number());
        let _ = writeln!(body, "  {label} = {} parameter({i}){}", array_type(t.shape()), parameter_metadata(t));
        names.insert(t.key(), label);
    }
    printer.instructions(&mut body, &mut names, outputs);
    let root: Vec<&str> = outputs.iter().map(|t| names[&t.key()].as_str()).collect();
    let _ = writeln!(body, "  ROOT results = {} tuple({})", tuple_type(&shapes(outputs)), root.join(", "));
    let mut text = format!("HloModule {}", identifier(name));
    if !aliases.is_empty() {
        let pairs: Vec<String> = aliases.iter().map(|(o, i)| format!("{{{o}}}: ({i}, {{}}, may-alias)")).collect();
        let _ = write!(text, ", input_output_alias={{ {} }}", pairs.join(", "));
    }
    text.push_str("\n\n");
    for computation in &printer.computations {
        text.push_str(computation);
        text.push('\n');
    }
    let _ = write!(text, "ENTRY main {{\n{body}}}\n");
    text
}

fn shapes(tensors: &[Tensor]) -> Vec<Shape> {
    tensors.iter().map(|t| t.shape().clone()).collect()
}

/// `f32[4,8]`.
fn array_type(s: &Shape) -> String {
    format!("{}[{}]", s.dtype.hlo_name(), list(&s.dims))
}

fn tuple_type(shapes: &[Shape]) -> String {
    format!("({})", shapes.iter().map(array_type).collect::<Vec<_>>().join(", "))
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// A name of letters, digits, `_`, `-` and `.` that starts with a letter.
fn identifier(name: &str) -> String {
    let mut out: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '.' }).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert(0, 'p');
    }
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn parameter_metadata(t: &Tensor) -> String {
    format!(", metadata={{op_name={}}}", quoted(t.name()))
}

fn metadata(node: &Node) -> String {
    match &node.scope {
        Some(scope) => format!(", metadata={{op_name={}}}", quoted(&format!("{scope}/{}", node.op.name()))),
        None => String::new(),
    }
}

/// The sub-computations printed so far, each once.
#[derive(Default)]
struct Printer {
    computations: Vec<String>,
    combiners: HashSet<String>,
    functions: usize,
    numbered: usize,
}

impl Printer {
    /// The next instruction's number: the same graph prints the same text in every process.
    fn number(&mut self) -> usize {
        self.numbered += 1;
        self.numbered
    }

    /// Prints the nodes of `outputs` that have no name yet.
    fn instructions(&mut self, out: &mut String, names: &mut HashMap<(u64, usize), String>, outputs: &[Tensor]) {
        for node in topological(outputs) {
            if names.contains_key(&(node.id, 0)) {
                continue;
            }
            let label = format!("{}.{}", node.op.name(), self.number());
            let x: Vec<String> = node.operands.iter().map(|t| names[&t.key()].clone()).collect();
            self.instruction(out, &node, &label, &x);
            for i in 0..node.shapes.len() {
                let mut name = label.clone();
                if matches!(node.op, Op::While { .. }) {
                    name = format!("{label}.{i}"); // printed with the loop
                } else if is_tuple(&node) {
                    name = format!("{label}.{i}");
                    let ty = array_type(&node.shapes[i]);
                    let _ = writeln!(out, "  {name} = {ty} get-tuple-element({label}), index={i}");
                }
                names.insert((node.id, i), name);
            }
        }
    }

    fn instruction(&mut self, out: &mut String, node: &Node, label: &str, x: &[String]) {
        let ty = if is_tuple(node) { tuple_type(&node.shapes) } else { array_type(&node.shapes[0]) };
        let args = x.join(", ");
        let mut line = |text: String| {
            let _ = writeln!(out, "  {label} = {ty} {text}{}", metadata(node));
        };
        match &node.op {
            Op::Parameter { name, .. } => unreachable!("parameter `{name}` is not an input"),
            Op::Scan { .. } | Op::Call { .. } | Op::Split { .. } | Op::StopGradient => {
                unreachable!("{} was not lowered", node.op.name())
            }
            Op::Constant(value) => line(format!("constant({})", literal(value))),
            Op::Iota { dim, .. } => line(format!("iota(), iota_dimension={dim}")),
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Clamp | Op::Convert(_) | Op::BitcastConvert(_) => {
                line(format!("{}({args})", node.op.name()));
            }
            Op::Compare(d) => line(format!("compare({args}), direction={}", d.hlo_name())),
            Op::BroadcastInDim { dims, .. } => line(format!("broadcast({args}), dimensions={{{}}}", list(dims))),
            Op::Reshape { .. } => line(format!("reshape({args})")),
            Op::Transpose { perm } => line(format!("transpose({args}), dimensions={{{}}}", list(perm))),
            Op::Reverse { dims } => line(format!("reverse({args}), dimensions={{{}}}", list(dims))),
            Op::Slice { start, limit, stride } => {
                let ranges: Vec<String> =
                    (0..start.len()).map(|i| format!("[{}:{}:{}]", start[i], limit[i], stride[i])).collect();
                line(format!("slice({args}), slice={{{}}}", list(&ranges)));
            }
            Op::Pad { config } => {
                let dims: Vec<String> = config.iter().map(|p| format!("{}_{}_{}", p.low, p.high, p.interior)).collect();
                line(format!("pad({args}), padding={}", dims.join("x")));
            }
            Op::Concatenate { dim } => line(format!("concatenate({args}), dimensions={{{dim}}}")),
            Op::DotGeneral { dims: d, precision, .. } => {
                let mut text = format!("dot({args})");
                if !d.lhs_batch.is_empty() {
                    let _ = write!(
                        text,
                        ", lhs_batch_dims={{{}}}, rhs_batch_dims={{{}}}",
                        list(&d.lhs_batch),
                        list(&d.rhs_batch)
                    );
                }
                let (l, r) = (list(&d.lhs_contract), list(&d.rhs_contract));
                let _ = write!(text, ", lhs_contracting_dims={{{l}}}, rhs_contracting_dims={{{r}}}");
                if *precision == Precision::Highest {
                    text.push_str(", operand_precision={highest,highest}");
                }
                line(text);
            }
            Op::Reduce { kind, dims } => {
                let (init, f) = (self.init(*kind, node.shapes[0].dtype), self.combiner(*kind, node.shapes[0].dtype));
                let _ = writeln!(out, "  {label}.init = {init}");
                let text = format!("reduce({args}, {label}.init), dimensions={{{}}}, to_apply={f}", list(dims));
                let _ = writeln!(out, "  {label} = {ty} {text}{}", metadata(node));
            }
            Op::ArgReduce { kind, dim } => self.arg_reduce(out, node, label, &x[0], *kind, *dim),
            Op::ReduceWindow { kind, window } => {
                let (init, f) = (self.init(*kind, node.shapes[0].dtype), self.combiner(*kind, node.shapes[0].dtype));
                let _ = writeln!(out, "  {label}.init = {init}");
                let text = format!("reduce-window({args}, {label}.init), window={{{}}}, to_apply={f}", windows(window));
                let _ = writeln!(out, "  {label} = {ty} {text}{}", metadata(node));
            }
            Op::Gather { dims: d, slice_sizes } => line(format!(
                "gather({args}), offset_dims={{{}}}, collapsed_slice_dims={{{}}}, start_index_map={{{}}}{}, \
                 index_vector_dim={}, slice_sizes={{{}}}",
                list(&d.offset_dims),
                list(&d.collapsed_slice_dims),
                list(&d.start_index_map),
                batching("start_indices", &d.operand_batching_dims, &d.start_indices_batching_dims),
                node.operands[1].rank() - 1,
                list(slice_sizes)
            )),
            Op::Scatter { kind, dims: d } => {
                let dtype = node.shapes[0].dtype;
                let f = match kind {
                    ScatterKind::Add => self.combiner(Combine::Add, dtype),
                    ScatterKind::Set => self.replacer(dtype),
                };
                line(format!(
                    "scatter({args}), update_window_dims={{{}}}, inserted_window_dims={{{}}}, \
                     scatter_dims_to_operand_dims={{{}}}{}, index_vector_dim={}, to_apply={f}",
                    list(&d.update_window_dims),
                    list(&d.inserted_window_dims),
                    list(&d.scatter_dims_to_operand_dims),
                    batching("scatter_indices", &d.operand_batching_dims, &d.scatter_indices_batching_dims)
                        .replace("operand_batching", "input_batching"),
                    node.operands[1].rank() - 1,
                ));
            }
            Op::DynamicSlice { sizes } => {
                line(format!("dynamic-slice({args}), dynamic_slice_sizes={{{}}}", list(sizes)));
            }
            Op::DynamicUpdateSlice => line(format!("dynamic-update-slice({args})")),
            Op::Sort { dim, descending } => {
                let f = self.comparator(node, *descending);
                line(format!("sort({args}), dimensions={{{dim}}}, is_stable=true, to_apply={f}"));
            }
            Op::While { cond, body, consts } => {
                let state = shapes(&node.operands);
                let (c, b) = (self.function(cond, false, 0), self.function(body, true, *consts));
                let _ = writeln!(out, "  {label}.in = {} tuple({args})", tuple_type(&state));
                let text = format!("while({label}.in), condition={c}, body={b}{}", metadata(node));
                let _ = writeln!(out, "  {label}.out = {} {text}", tuple_type(&state));
                // Only the state is a result; the invariants are passed along inside.
                for i in 0..node.shapes.len() {
                    let (ty, at) = (array_type(&node.shapes[i]), i + consts);
                    let _ = writeln!(out, "  {label}.{i} = {ty} get-tuple-element({label}.out), index={at}");
                }
            }
            Op::Conditional { branches } => {
                let names: Vec<String> = branches.iter().map(|b| self.function(b, true, 0)).collect();
                let _ = writeln!(
                    out,
                    "  {label}.in = {} tuple({})",
                    tuple_type(&shapes(&node.operands[1..])),
                    x[1..].join(", ")
                );
                let same = vec![format!("{label}.in"); branches.len()].join(", ");
                let text = format!("conditional({}, {same}), branch_computations={{{}}}", x[0], names.join(", "));
                let _ = writeln!(out, "  {label} = {ty} {text}{}", metadata(node));
            }
            Op::OptimizationBarrier => {
                let _ = writeln!(out, "  {label}.in = {ty} tuple({args})");
                let _ = writeln!(out, "  {label} = {ty} opt-barrier({label}.in)");
            }
            Op::RngBitGenerator { algorithm, .. } => {
                let name = match algorithm {
                    RngAlgorithm::ThreeFry => "rng_three_fry",
                    RngAlgorithm::Philox => "rng_philox",
                };
                line(format!("rng-bit-generator({args}), algorithm={name}"));
            }
            Op::AllReduce { kind } => {
                let f = self.combiner(*kind, node.shapes[0].dtype);
                line(format!("all-reduce({args}), replica_groups={{}}, to_apply={f}"));
            }
            Op::CustomCall { target, opaque, .. } => {
                let opaque = if opaque.is_empty() { String::new() } else { format!(", opaque={}", quoted(opaque)) };
                line(format!("custom-call({args}), custom_call_target={}{opaque}", quoted(target)));
            }
        }
    }

    /// A function as a computation on one tuple; returns its name. A tuple root holds the outputs, preceded by the
    /// first `passed` inputs.
    fn function(&mut self, f: &Function, tuple_root: bool, passed: usize) -> String {
        let mut body = String::new();
        let mut names = HashMap::new();
        let inputs = shapes(&f.inputs);
        let _ = writeln!(body, "  arguments = {} parameter(0)", tuple_type(&inputs));
        for (i, t) in f.inputs.iter().enumerate() {
            let _ =
                writeln!(body, "  argument.{i} = {} get-tuple-element(arguments), index={i}", array_type(t.shape()));
            names.insert(t.key(), format!("argument.{i}"));
        }
        self.instructions(&mut body, &mut names, &f.outputs);
        let outputs: Vec<Tensor> = f.inputs[..passed].iter().chain(&f.outputs).cloned().collect();
        let root: Vec<&str> = outputs.iter().map(|t| names[&t.key()].as_str()).collect();
        if tuple_root {
            let _ = writeln!(body, "  ROOT results = {} tuple({})", tuple_type(&shapes(&outputs)), root.join(", "));
        } else {
            // A root must be an instruction of its own; a reshape makes one whatever the output is, and StableHLO has it.
            let _ = writeln!(body, "  ROOT result = {} reshape({})", array_type(outputs[0].shape()), root[0]);
        }
        self.functions += 1;
        let name = format!("function.{}", self.functions);
        self.computations.push(format!("{name} {{\n{body}}}\n"));
        name
    }

    fn add_once(&mut self, name: &str, text: impl FnOnce() -> String) -> String {
        if self.combiners.insert(name.to_string()) {
            self.computations.push(format!("{name} {{\n{}}}\n", text()));
        }
        name.to_string()
    }

    fn combiner(&mut self, kind: Combine, dtype: DType) -> String {
        let op = match kind {
            Combine::Add => "add",
            Combine::Max => "maximum",
            Combine::Min => "minimum",
            Combine::And => "and",
            Combine::Or => "or",
        };
        let t = dtype.hlo_name();
        self.add_once(&format!("{op}_{t}"), || {
            format!("  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT c = {t}[] {op}(a, b)\n")
        })
    }

    fn replacer(&mut self, dtype: DType) -> String {
        let t = dtype.hlo_name();
        self.add_once(&format!("replace_{t}"), || format!("  a = {t}[] parameter(0)\n  ROOT b = {t}[] parameter(1)\n"))
    }

    /// The neutral element of a reduction, as an instruction.
    fn init(&self, kind: Combine, dtype: DType) -> String {
        let value = match kind {
            Combine::Add => "0",
            Combine::Max => lowest(dtype),
            Combine::Min => highest(dtype),
            Combine::And => "true",
            Combine::Or => "false",
        };
        format!("{}[] constant({value})", dtype.hlo_name())
    }

    fn comparator(&mut self, node: &Node, descending: bool) -> String {
        let types: Vec<&str> = node.shapes.iter().map(|s| s.dtype.hlo_name()).collect();
        let order = if node.shapes[0].dtype.is_float() { ", type=TOTALORDER" } else { "" };
        let (direction, way) = if descending { ("GT", "descending") } else { ("LT", "ascending") };
        self.add_once(&format!("{way}_{}", types.join("_")), || {
            let mut text = String::new();
            for (i, t) in types.iter().enumerate() {
                let _ = writeln!(text, "  a{i} = {t}[] parameter({})\n  b{i} = {t}[] parameter({})", 2 * i, 2 * i + 1);
            }
            let _ = writeln!(text, "  ROOT first = pred[] compare(a0, b0), direction={direction}{order}");
            text
        })
    }

    fn arg_reduce(&mut self, out: &mut String, node: &Node, label: &str, x: &str, kind: Extremum, dim: usize) {
        let s = node.operands[0].shape();
        let t = s.dtype.hlo_name();
        let (direction, bound) = match kind {
            Extremum::Max => ("GT", lowest(s.dtype)),
            Extremum::Min => ("LT", highest(s.dtype)),
        };
        let f = self.add_once(&format!("arg_{direction}_{t}"), || {
            // Better, or NaN against a number; between equals the smaller index.
            format!(
                "  a = {t}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {t}[] parameter(2)\n  j = s32[] parameter(3)\n  \
                 better = pred[] compare(a, b), direction={direction}\n  a.nan = pred[] compare(a, a), direction=NE\n  \
                 b.nan = pred[] compare(b, b), direction=NE\n  b.number = pred[] not(b.nan)\n  \
                 only.a = pred[] and(a.nan, b.number)\n  wins = pred[] or(better, only.a)\n  \
                 equal = pred[] compare(a, b), direction=EQ\n  both = pred[] and(a.nan, b.nan)\n  \
                 tie = pred[] or(equal, both)\n  before = pred[] compare(i, j), direction=LT\n  \
                 first = pred[] and(tie, before)\n  pick = pred[] or(wins, first)\n  \
                 value = {t}[] select(pick, a, b)\n  index = s32[] select(pick, i, j)\n  \
                 ROOT result = ({t}[], s32[]) tuple(value, index)\n"
            )
        });
        let dims = list(&s.dims);
        let _ = writeln!(out, "  {label}.iota = s32[{dims}] iota(), iota_dimension={dim}");
        let _ = writeln!(out, "  {label}.init = {t}[] constant({bound})");
        let _ = writeln!(out, "  {label}.zero = s32[] constant(0)");
        let pair = tuple_type(&[node.shapes[0].with_dtype(s.dtype), node.shapes[0].clone()]);
        let _ = writeln!(
            out,
            "  {label}.pair = {pair} reduce({x}, {label}.iota, {label}.init, {label}.zero), dimensions={{{dim}}}, to_apply={f}"
        );
        let ty = array_type(&node.shapes[0]);
        let _ = writeln!(out, "  {label} = {ty} get-tuple-element({label}.pair), index=1{}", metadata(node));
    }
}

/// Whether the instruction's own type is a tuple whose elements are the results. (`while` prints its own elements.)
fn is_tuple(node: &Node) -> bool {
    match &node.op {
        Op::Conditional { .. } | Op::OptimizationBarrier | Op::RngBitGenerator { .. } => true,
        Op::Sort { .. } | Op::CustomCall { .. } => node.shapes.len() > 1,
        _ => false,
    }
}

fn batching(which: &str, operand: &[usize], indices: &[usize]) -> String {
    if operand.is_empty() {
        return String::new();
    }
    format!(", operand_batching_dims={{{}}}, {which}_batching_dims={{{}}}", list(operand), list(indices))
}

fn windows(window: &[Window]) -> String {
    let part = |f: &dyn Fn(&Window) -> String| window.iter().map(f).collect::<Vec<_>>().join("x");
    format!(
        "size={} stride={} pad={} lhs_dilate={} rhs_dilate={}",
        part(&|w| w.size.to_string()),
        part(&|w| w.stride.to_string()),
        part(&|w| format!("{}_{}", w.low, w.high)),
        part(&|w| w.base_dilation.to_string()),
        part(&|w| w.window_dilation.to_string())
    )
}
