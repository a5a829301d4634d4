//! The operations: one enum, with the attributes each needs and nothing about how it is differentiated or printed.
//!
//! Every consumer matches this enum exhaustively (shape rule, HLO text, VJP, JVP, vmap), so a new operation does not
//! compile until it has all its rules. Names and meanings are XLA's; where JAX's differ, the builder method says so.

use std::sync::Arc;

pub use super::attributes::*;
use super::function::Function;
use super::shape::Shape;
use crate::array::{Array, DType};

/// Elementwise functions of one tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // the names are lax's
pub enum Unary {
    Neg,
    Abs,
    Sign,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sin,
    Cos,
    Tan,
    Tanh,
    Erf,
    Sqrt,
    Rsqrt,
    Cbrt,
    Logistic,
    Floor,
    Ceil,
    RoundNearestEven,
    IsFinite,
    Not,
    PopulationCount,
}

impl Unary {
    /// Every one, for tests that go through them all.
    pub const ALL: [Unary; 22] = {
        use Unary::*;
        [
            Neg,
            Abs,
            Sign,
            Exp,
            Expm1,
            Log,
            Log1p,
            Sin,
            Cos,
            Tan,
            Tanh,
            Erf,
            Sqrt,
            Rsqrt,
            Cbrt,
            Logistic,
            Floor,
            Ceil,
            RoundNearestEven,
            IsFinite,
            Not,
            PopulationCount,
        ]
    };

    /// The opcode in HLO text.
    pub fn hlo_name(self) -> &'static str {
        match self {
            Unary::Neg => "negate",
            Unary::Abs => "abs",
            Unary::Sign => "sign",
            Unary::Exp => "exponential",
            Unary::Expm1 => "exponential-minus-one",
            Unary::Log => "log",
            Unary::Log1p => "log-plus-one",
            Unary::Sin => "sine",
            Unary::Cos => "cosine",
            Unary::Tan => "tan",
            Unary::Tanh => "tanh",
            Unary::Erf => "erf",
            Unary::Sqrt => "sqrt",
            Unary::Rsqrt => "rsqrt",
            Unary::Cbrt => "cbrt",
            Unary::Logistic => "logistic",
            Unary::Floor => "floor",
            Unary::Ceil => "ceil",
            Unary::RoundNearestEven => "round-nearest-even",
            Unary::IsFinite => "is-finite",
            Unary::Not => "not",
            Unary::PopulationCount => "popcnt",
        }
    }
}

/// Elementwise functions of two tensors of one shape and dtype.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    Pow,
    Rem,
    Atan2,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRightLogical,
    ShiftRightArithmetic,
}

impl Binary {
    /// The opcode in HLO text.
    pub fn hlo_name(self) -> &'static str {
        match self {
            Binary::Add => "add",
            Binary::Sub => "subtract",
            Binary::Mul => "multiply",
            Binary::Div => "divide",
            Binary::Max => "maximum",
            Binary::Min => "minimum",
            Binary::Pow => "power",
            Binary::Rem => "remainder",
            Binary::Atan2 => "atan2",
            Binary::And => "and",
            Binary::Or => "or",
            Binary::Xor => "xor",
            Binary::ShiftLeft => "shift-left",
            Binary::ShiftRightLogical => "shift-right-logical",
            Binary::ShiftRightArithmetic => "shift-right-arithmetic",
        }
    }
}

/// An operation with its attributes. Operands and result shapes are in the node.
#[derive(Clone, Debug)]
pub enum Op {
    /// An input, known by its node.
    Parameter {
        /// The input's name, a safetensors key where it is a weight.
        name: Arc<str>,
        /// Its shape.
        shape: Shape,
    },
    /// A value known while building.
    Constant(Array),
    /// 0, 1, 2 ... along one dimension.
    Iota {
        /// Shape of the result.
        shape: Shape,
        /// The dimension that counts.
        dim: usize,
    },
    /// Elementwise function of one operand.
    Unary(Unary),
    /// Elementwise function of two operands.
    Binary(Binary),
    /// Elementwise comparison, to `bool`.
    Compare(Direction),
    /// `select(pred, on_true, on_false)`, elementwise.
    Select,
    /// `clamp(min, x, max)`, elementwise.
    Clamp,
    /// Conversion of the element type.
    Convert(DType),
    /// The same bits as another element type of the same width.
    BitcastConvert(DType),
    /// The identity, with derivative zero.
    StopGradient,
    /// `lax.broadcast_in_dim`: operand dimension i becomes result dimension `dims[i]`.
    BroadcastInDim {
        /// Result dimension of each operand dimension.
        dims: Vec<usize>,
        /// The result's dimensions.
        to: Vec<usize>,
    },
    /// The same elements in row-major order under other dimensions.
    Reshape {
        /// The result's dimensions.
        to: Vec<usize>,
    },
    /// Result dimension i is operand dimension `perm[i]`.
    Transpose {
        /// The permutation.
        perm: Vec<usize>,
    },
    /// Elements in reverse order along the dimensions.
    Reverse {
        /// The dimensions.
        dims: Vec<usize>,
    },
    /// `x[start:limit:stride]` in every dimension.
    Slice {
        /// First index.
        start: Vec<usize>,
        /// One past the last.
        limit: Vec<usize>,
        /// Step.
        stride: Vec<usize>,
    },
    /// `pad(x, value)`.
    Pad {
        /// Per dimension.
        config: Vec<Padding>,
    },
    /// Operands joined along a dimension.
    Concatenate {
        /// The dimension.
        dim: usize,
    },
    /// `lax.dot_general`.
    DotGeneral {
        /// Dimension numbers.
        dims: DotDims,
        /// Precision of the products.
        precision: Precision,
        /// Element type of the result (`preferred_element_type`).
        dtype: DType,
    },
    /// Reduction over dimensions, which disappear.
    Reduce {
        /// How values combine.
        kind: Combine,
        /// The dimensions, ascending.
        dims: Vec<usize>,
    },
    /// Index (`int32`) of the first extremum along a dimension, which disappears. NaN counts as the extremum.
    ArgReduce {
        /// Which extremum.
        kind: Extremum,
        /// The dimension.
        dim: usize,
    },
    /// Reduction over sliding windows (`lax.reduce_window`).
    ReduceWindow {
        /// How values combine: `Add`, `Max` or `Min`.
        kind: Combine,
        /// Per dimension.
        window: Vec<Window>,
    },
    /// `gather(operand, start_indices)`; indices out of range are clamped.
    Gather {
        /// Dimension numbers.
        dims: GatherDims,
        /// Slice taken at each index.
        slice_sizes: Vec<usize>,
    },
    /// `scatter(operand, indices, updates)`; updates out of range are dropped.
    Scatter {
        /// Add or set.
        kind: ScatterKind,
        /// Dimension numbers.
        dims: ScatterDims,
    },
    /// `dynamic_slice(x, i0, i1, ...)`; start indices are clamped so that the slice fits.
    DynamicSlice {
        /// Size in each dimension.
        sizes: Vec<usize>,
    },
    /// `dynamic_update_slice(x, update, i0, i1, ...)`; start indices are clamped so that the update fits.
    DynamicUpdateSlice,
    /// Sorts all operands along a dimension by the first, stably, NaN last (first when descending).
    Sort {
        /// The dimension.
        dim: usize,
        /// Largest first.
        descending: bool,
    },
    /// Loop with a condition. Operands are `consts` loop-invariant values, then the state; both functions take all of
    /// them, the body returns the new state.
    While {
        /// To `bool[]`.
        cond: Function,
        /// To the new state.
        body: Function,
        /// How many leading operands do not change.
        consts: usize,
    },
    /// Loop with a fixed trip count (`lax.scan`). Operands: `consts` invariants, `carry` state tensors, then the `xs`
    /// with leading dimension `length`; results: the state, then the stacked `ys`.
    Scan {
        /// `(consts, carry, x slices) -> (carry, y slices)`.
        body: Function,
        /// How many leading operands do not change.
        consts: usize,
        /// How many operands are state.
        carry: usize,
        /// Trip count.
        length: usize,
        /// Last slice first.
        reverse: bool,
    },
    /// `branches[index](operands...)`; an index out of range takes the last branch.
    Conditional {
        /// All with the same signature.
        branches: Vec<Function>,
    },
    /// A sub-function applied to the operands.
    Call {
        /// The function.
        function: Function,
        /// Plain, or rematerialised in the reverse pass.
        kind: CallKind,
    },
    /// Equal parts along a dimension, one result each: `lax.split`, whose transpose is one concatenation instead of a sum
    /// of padded slices.
    Split {
        /// The dimension.
        dim: usize,
        /// How many.
        parts: usize,
    },
    /// The identity on all operands that XLA does not move computations across.
    OptimizationBarrier,
    /// `(state u64[2 or 3]) -> (new state, bits)`.
    RngBitGenerator {
        /// The generator.
        algorithm: RngAlgorithm,
        /// Shape of the bits.
        shape: Shape,
    },
    /// Reduction over the replicas of the program.
    AllReduce {
        /// How values combine.
        kind: Combine,
    },
    /// A call to a function of the platform, by name.
    CustomCall {
        /// The registered name.
        target: Arc<str>,
        /// Passed through unread.
        opaque: Arc<str>,
        /// Shapes of the results.
        shapes: Vec<Shape>,
    },
}

impl Op {
    /// A short name for messages, as in HLO text.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Parameter { .. } => "parameter",
            Op::Constant(_) => "constant",
            Op::Iota { .. } => "iota",
            Op::Unary(op) => op.hlo_name(),
            Op::Binary(op) => op.hlo_name(),
            Op::Compare(_) => "compare",
            Op::Select => "select",
            Op::Clamp => "clamp",
            Op::Convert(_) => "convert",
            Op::BitcastConvert(_) => "bitcast-convert",
            Op::StopGradient => "stop-gradient",
            Op::BroadcastInDim { .. } => "broadcast",
            Op::Reshape { .. } => "reshape",
            Op::Transpose { .. } => "transpose",
            Op::Reverse { .. } => "reverse",
            Op::Slice { .. } => "slice",
            Op::Pad { .. } => "pad",
            Op::Concatenate { .. } => "concatenate",
            Op::DotGeneral { .. } => "dot",
            Op::Reduce { .. } => "reduce",
            Op::ArgReduce { .. } => "arg-reduce",
            Op::ReduceWindow { .. } => "reduce-window",
            Op::Gather { .. } => "gather",
            Op::Scatter { .. } => "scatter",
            Op::DynamicSlice { .. } => "dynamic-slice",
            Op::DynamicUpdateSlice => "dynamic-update-slice",
            Op::Sort { .. } => "sort",
            Op::While { .. } => "while",
            Op::Scan { .. } => "scan",
            Op::Conditional { .. } => "conditional",
            Op::Call { .. } => "call",
            Op::Split { .. } => "split",
            Op::OptimizationBarrier => "opt-barrier",
            Op::RngBitGenerator { .. } => "rng-bit-generator",
            Op::AllReduce { .. } => "all-reduce",
            Op::CustomCall { .. } => "custom-call",
        }
    }
}
