//! What operations are parameterised by: directions, combiners, dimension numbers, padding, windows.

/// Comparison directions; comparisons with NaN are false, but for `Ne`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Direction {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Direction {
    /// The direction's name in HLO text.
    pub fn hlo_name(self) -> &'static str {
        match self {
            Direction::Eq => "EQ",
            Direction::Ne => "NE",
            Direction::Lt => "LT",
            Direction::Le => "LE",
            Direction::Gt => "GT",
            Direction::Ge => "GE",
        }
    }
}

/// How a reduction, a window or a collective combines two values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Combine {
    Add,
    Max,
    Min,
    And,
    Or,
}

/// Which extremum an index reduction looks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Extremum {
    Max,
    Min,
}

/// Dimension numbers of [`Op::DotGeneral`](super::Op::DotGeneral), as `lax.dot_general`: the result is batch, left free, right free dimensions.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)]
pub struct DotDims {
    pub lhs_batch: Vec<usize>,
    pub rhs_batch: Vec<usize>,
    pub lhs_contract: Vec<usize>,
    pub rhs_contract: Vec<usize>,
}

/// How exactly a dot product is computed where the hardware offers a choice (TF32 on GPU, bf16 passes on TPU).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Precision {
    /// The platform's default, as JAX's.
    #[default]
    Default,
    /// Full precision of the operands' type.
    Highest,
}

/// Dimension numbers of [`Op::Gather`](super::Op::Gather) (XLA's; the index vector is always the last dimension of the indices).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)]
pub struct GatherDims {
    pub offset_dims: Vec<usize>,
    pub collapsed_slice_dims: Vec<usize>,
    pub operand_batching_dims: Vec<usize>,
    pub start_indices_batching_dims: Vec<usize>,
    pub start_index_map: Vec<usize>,
}

/// Dimension numbers of [`Op::Scatter`](super::Op::Scatter) (XLA's; the index vector is always the last dimension of the indices).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)]
pub struct ScatterDims {
    pub update_window_dims: Vec<usize>,
    pub inserted_window_dims: Vec<usize>,
    pub operand_batching_dims: Vec<usize>,
    pub scatter_indices_batching_dims: Vec<usize>,
    pub scatter_dims_to_operand_dims: Vec<usize>,
}

/// What a scatter does where an update lands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScatterKind {
    /// Adds the update.
    Add,
    /// Replaces the value; which one wins is not defined where indices repeat.
    Set,
}

/// Padding of one dimension; negative edges crop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)]
pub struct Padding {
    pub low: i64,
    pub high: i64,
    pub interior: usize,
}

/// One dimension of a sliding window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub struct Window {
    pub size: usize,
    pub stride: usize,
    pub low: i64,
    pub high: i64,
    pub base_dilation: usize,
    pub window_dilation: usize,
}

impl Window {
    /// The window that leaves a dimension as it is.
    pub const ONE: Window = Window { size: 1, stride: 1, low: 0, high: 0, base_dilation: 1, window_dilation: 1 };
}

/// What [`Op::Call`](super::Op::Call) stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallKind {
    /// A plain sub-function, inlined when printed.
    Inline,
    /// A rematerialised one: its reverse pass computes it again from its inputs instead of keeping its values.
    Checkpoint,
}

/// Counter-based bit generators that give the same bits on every backend.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum RngAlgorithm {
    ThreeFry,
    Philox,
}
