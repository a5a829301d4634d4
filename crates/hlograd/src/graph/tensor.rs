//! Tensors: cheap handles on the nodes of an immutable graph.
//!
//! There is no graph object. A [`Tensor`] is one result of a [`Node`], a node owns its operands, and "the graph" is
//! whatever a set of outputs reaches. Node ids grow with every node made, so sorting by id is a topological order, and
//! two handles are the same value exactly when node id and result index are equal.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::infer::infer;
use super::op::Op;
use super::shape::Shape;
use crate::array::{Array, DType, Element};

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SCOPE: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Runs `f` with `name` appended to the scope that new nodes carry; profilers show it (`metadata={op_name="a/b/sine"}`).
pub fn name_scope<R>(name: &str, f: impl FnOnce() -> R) -> R {
    let outer = SCOPE.with_borrow(Clone::clone);
    let inner: Arc<str> = match &outer {
        Some(o) => format!("{o}/{name}").into(),
        None => name.into(),
    };
    in_scope(Some(inner), f)
}

/// Runs `f` in exactly this scope: a transform keeps the scope of the node it rewrites.
pub(crate) fn in_scope<R>(scope: Option<Arc<str>>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<str>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SCOPE.set(self.0.take());
        }
    }
    let _restore = Restore(SCOPE.replace(scope));
    f()
}

/// One operation applied to operands.
pub struct Node {
    /// Grows with every node made; operands have smaller ids.
    pub id: u64,
    /// The operation.
    pub op: Op,
    /// What it is applied to.
    pub operands: Vec<Tensor>,
    /// One shape per result.
    pub shapes: Vec<Shape>,
    /// Name scope it was made in.
    pub scope: Option<Arc<str>>,
    /// Where it was made, for messages.
    pub location: &'static Location<'static>,
}

impl Node {
    /// Every result of the node.
    pub fn results(self: &Arc<Self>) -> Vec<Tensor> {
        (0..self.shapes.len()).map(|index| Tensor { node: self.clone(), index }).collect()
    }

    /// Operation, operand shapes and origin, for messages.
    pub fn describe(&self) -> String {
        let operands: Vec<String> = self.operands.iter().map(|t| t.shape().to_string()).collect();
        format!("{}({}) made at {}", self.op.name(), operands.join(", "), self.location)
    }
}

impl Drop for Node {
    /// Unlinks long chains in a loop: the derived drop would recurse once per node and overflow the stack.
    fn drop(&mut self) {
        let mut pending = std::mem::take(&mut self.operands);
        while let Some(tensor) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(tensor.node) {
                pending.append(&mut node.operands);
            }
        }
    }
}

/// A value in a graph: one result of a node. Cloning copies a pointer.
#[derive(Clone)]
pub struct Tensor {
    pub(crate) node: Arc<Node>,
    pub(crate) index: usize,
}

impl Tensor {
    /// Applies `op` to `operands`; returns every result.
    ///
    /// **Panics** when the shapes do not fit: a programming error. The message has the operation and all shapes.
    #[track_caller]
    pub fn apply(op: Op, operands: Vec<Tensor>) -> Vec<Tensor> {
        match infer(&op, &operands) {
            Ok(shapes) => Tensor::made(op, operands, shapes),
            Err(reason) => {
                let shapes: Vec<String> = operands.iter().map(|t| t.shape().to_string()).collect();
                panic!("{}({}): {reason}", op.name(), shapes.join(", "))
            }
        }
    }

    /// [`Tensor::apply`] for operands that come from a file: **errors** with what does not fit.
    #[track_caller]
    pub(crate) fn try_apply(op: Op, operands: Vec<Tensor>) -> Result<Vec<Tensor>, String> {
        let shapes = infer(&op, &operands)?;
        Ok(Tensor::made(op, operands, shapes))
    }

    #[track_caller]
    fn made(op: Op, operands: Vec<Tensor>, shapes: Vec<Shape>) -> Vec<Tensor> {
        let node = Node {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            op,
            operands,
            shapes,
            scope: SCOPE.with_borrow(Clone::clone),
            location: Location::caller(),
        };
        Arc::new(node).results()
    }

    /// [`Tensor::apply`] for operations with one result.
    #[track_caller]
    pub fn apply1(op: Op, operands: Vec<Tensor>) -> Tensor {
        let mut results = Tensor::apply(op, operands);
        assert_eq!(results.len(), 1, "apply1 on an operation with {} results", results.len());
        results.swap_remove(0)
    }

    /// An input of the program.
    #[track_caller]
    pub fn parameter(name: &str, shape: Shape) -> Tensor {
        Tensor::apply1(Op::Parameter { name: name.into(), shape }, vec![])
    }

    /// An input of this shape that stands for `self` in a function.
    #[track_caller]
    pub(crate) fn placeholder(&self, name: &str) -> Tensor {
        Tensor::parameter(name, self.shape().clone())
    }

    /// A value known while building.
    #[track_caller]
    pub fn constant(value: Array) -> Tensor {
        Tensor::apply1(Op::Constant(value), vec![])
    }

    /// A scalar of any element type.
    #[track_caller]
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor::constant(Array::scalar(value))
    }

    /// `value` converted to `dtype`, in every element of `dims`.
    #[track_caller]
    pub fn full(dtype: DType, dims: &[usize], value: f64) -> Tensor {
        Tensor::constant(Array::full(dtype, &[], value)).broadcast_in_dim(&[], dims)
    }

    /// `value` in every element of a tensor of this one's shape and dtype.
    #[track_caller]
    pub fn full_like(&self, value: f64) -> Tensor {
        Tensor::full(self.dtype(), self.dims(), value)
    }

    /// Zeros of this tensor's shape and dtype.
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        self.full_like(0.0)
    }

    /// Ones of this tensor's shape and dtype.
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        self.full_like(1.0)
    }

    /// 0, 1, 2 ... along `dim`.
    #[track_caller]
    pub fn iota(shape: Shape, dim: usize) -> Tensor {
        Tensor::apply1(Op::Iota { shape, dim }, vec![])
    }

    /// The identity matrix `[n, n]`.
    #[track_caller]
    pub fn eye(dtype: DType, n: usize) -> Tensor {
        let shape = Shape::new(DType::I32, &[n, n]);
        Tensor::iota(shape.clone(), 0).eq(&Tensor::iota(shape, 1)).convert(dtype)
    }

    /// Element type and dimensions.
    pub fn shape(&self) -> &Shape {
        &self.node.shapes[self.index]
    }

    /// Dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.shape().dims
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.shape().dtype
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.shape().size()
    }

    /// The node this is a result of.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Which result of its node this is.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Identity: equal for two handles on the same value, and for no others.
    pub fn key(&self) -> (u64, usize) {
        (self.node.id, self.index)
    }

    /// The parameter's name, else the opcode.
    pub fn name(&self) -> &str {
        match &self.node.op {
            Op::Parameter { name, .. } => name,
            op => op.name(),
        }
    }

    /// The parameter's name, else the operation and where it was made.
    pub fn label(&self) -> String {
        match &self.node.op {
            Op::Parameter { name, .. } => format!("parameter `{name}` {}", self.shape()),
            _ => format!("{} {}", self.node.describe(), self.shape()),
        }
    }

    /// The constant's value, where the tensor is one.
    pub fn as_constant(&self) -> Option<&Array> {
        match &self.node.op {
            Op::Constant(value) => Some(value),
            _ => None,
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}: {}", self.node.op.name(), self.node.id, self.shape())
    }
}

/// The nodes that `outputs` reach, operands before their users.
pub fn topological(outputs: &[Tensor]) -> Vec<Arc<Node>> {
    let mut seen = HashSet::new();
    let mut nodes = Vec::new();
    let mut pending: Vec<&Arc<Node>> = outputs.iter().map(|t| &t.node).collect();
    while let Some(node) = pending.pop() {
        if seen.insert(node.id) {
            nodes.push(node.clone());
            pending.extend(node.operands.iter().map(|t| &t.node));
        }
    }
    nodes.sort_unstable_by_key(|n| n.id);
    nodes
}
