//! Which operations can be read at all, and what to do about the others.

use super::ops::BINARY;
use super::parse::Instruction;
use crate::graph::Unary;

/// Operations with an arm of their own, besides those of [`Unary`] and `Binary`.
const KNOWN: [&str; 39] = [
    "all-reduce",
    "bitcast",
    "bitcast-convert",
    "broadcast",
    "call",
    "clamp",
    "compare",
    "concatenate",
    "conditional",
    "constant",
    "convert",
    "convolution",
    "copy",
    "dot",
    "dynamic-slice",
    "dynamic-update-slice",
    "fusion",
    "gather",
    "get-tuple-element",
    "iota",
    "map",
    "opt-barrier",
    "pad",
    "parameter",
    "reduce",
    "reduce-precision",
    "reduce-window",
    "reshape",
    "reverse",
    "rng-bit-generator",
    "round-nearest-afz",
    "scatter",
    "select",
    "slice",
    "sort",
    "topk",
    "transpose",
    "tuple",
    "while",
];

/// **Errors** for an operation that no part of the import knows, naming it.
pub(super) fn known(ins: &Instruction) -> Result<(), String> {
    let op = ins.opcode;
    if op == "custom-call" {
        let target = ins.attribute("custom_call_target").unwrap_or("?");
        return Err(format!(
            "it calls `{}`, a function of the platform that wrote the text: nothing is known of it here, least of all its \
             derivative; write the function without it",
            super::lex::short(target)
        ));
    }
    let found = KNOWN.contains(&op)
        || Unary::ALL.iter().any(|u| u.hlo_name() == op)
        || BINARY.iter().any(|b| b.hlo_name() == op);
    let hint = match op {
        _ if found => return Ok(()),
        "fft" | "complex" | "real" | "imag" => "the graph has no complex numbers",
        "select-and-scatter" => {
            "it is the derivative of max pooling: take the text of the function, not of its gradient"
        }
        "rng" => "random numbers that differ from run to run; use keys (jax.random)",
        "cholesky" | "triangular-solve" => "the graph has no linear solvers",
        "partition-id" | "replica-id" | "all-gather" | "all-to-all" | "collective-permute" | "reduce-scatter" => {
            "lower the function for one device"
        }
        _ => "write the function without it",
    };
    Err(format!("the graph has no such operation; {hint}"))
}
