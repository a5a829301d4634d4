//! Builders that move elements: broadcasting, reshaping, slicing, padding, joining.

use super::super::op::{Op, Padding};
use super::super::tensor::Tensor;

/// The shape both broadcast to under NumPy's rules. **Panics** when there is none.
#[track_caller]
pub fn broadcast_shapes(a: &[usize], b: &[usize]) -> Vec<usize> {
    match common_shape(a, b) {
        Some(dims) => dims,
        None => panic!("shapes {a:?} and {b:?} do not broadcast"),
    }
}

/// [`broadcast_shapes`] for callers with an operation to name in their own panic: `#[track_caller]` ends at closures.
pub(super) fn common_shape(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |d: &[usize], i: usize| if i + d.len() < rank { 1 } else { d[i + d.len() - rank] };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// Operands joined along `dim`, as `jnp.concatenate`.
#[track_caller]
pub fn concatenate(operands: &[Tensor], dim: usize) -> Tensor {
    if let [one] = operands {
        return one.clone();
    }
    Tensor::apply1(Op::Concatenate { dim }, operands.to_vec())
}

/// Operands of one shape joined along a new dimension `dim`, as `jnp.stack`.
#[track_caller]
pub fn stack(operands: &[Tensor], dim: usize) -> Tensor {
    let rows: Vec<Tensor> = operands.iter().map(|t| t.expand_dims(dim)).collect();
    concatenate(&rows, dim)
}

impl Tensor {
    /// `lax.broadcast_in_dim`: dimension i becomes dimension `dims[i]` of `to`, where the sizes must agree.
    #[track_caller]
    pub fn broadcast_in_dim(&self, dims: &[usize], to: &[usize]) -> Tensor {
        if self.dims() == to && dims.iter().copied().eq(0..self.rank()) {
            return self.clone();
        }
        Tensor::apply1(Op::BroadcastInDim { dims: dims.to_vec(), to: to.to_vec() }, vec![self.clone()])
    }

    /// Broadcast to `to` under NumPy's rules: missing leading dimensions are added, dimensions of size 1 stretched.
    #[track_caller]
    pub fn broadcast_to(&self, to: &[usize]) -> Tensor {
        if self.dims() == to {
            return self.clone();
        }
        assert!(
            common_shape(self.dims(), to).is_some_and(|dims| dims == to),
            "broadcast({}): does not broadcast to {to:?}",
            self.shape()
        );
        let lead = to.len() - self.rank();
        // Dimensions of size 1 that stretch are dropped first: XLA's broadcast does not stretch.
        let kept: Vec<usize> = (0..self.rank()).filter(|&i| self.dims()[i] == to[i + lead]).collect();
        let dims: Vec<usize> = kept.iter().map(|&i| self.dims()[i]).collect();
        let to_dims: Vec<usize> = kept.iter().map(|&i| i + lead).collect();
        self.reshape(&dims).broadcast_in_dim(&to_dims, to)
    }

    /// The same elements in row-major order under other dimensions.
    #[track_caller]
    pub fn reshape(&self, to: &[usize]) -> Tensor {
        if self.dims() == to {
            return self.clone();
        }
        Tensor::apply1(Op::Reshape { to: to.to_vec() }, vec![self.clone()])
    }

    /// With a new dimension of size 1 at `dim`.
    #[track_caller]
    pub fn expand_dims(&self, dim: usize) -> Tensor {
        assert!(dim <= self.rank(), "expand_dims at {dim} of {}", self.shape());
        let mut to = self.dims().to_vec();
        to.insert(dim, 1);
        self.reshape(&to)
    }

    /// Without dimension `dim`, which has size 1.
    #[track_caller]
    pub fn squeeze(&self, dim: usize) -> Tensor {
        assert!(self.dims().get(dim) == Some(&1), "squeeze of dimension {dim} of {}", self.shape());
        let mut to = self.dims().to_vec();
        to.remove(dim);
        self.reshape(&to)
    }

    /// Dimensions permuted: result dimension i is dimension `perm[i]`.
    #[track_caller]
    pub fn transpose(&self, perm: &[usize]) -> Tensor {
        if perm.iter().copied().eq(0..self.rank()) {
            return self.clone();
        }
        Tensor::apply1(Op::Transpose { perm: perm.to_vec() }, vec![self.clone()])
    }

    /// The matrix transposed (all dimensions reversed), as `.T`.
    #[track_caller]
    pub fn t(&self) -> Tensor {
        self.transpose(&(0..self.rank()).rev().collect::<Vec<_>>())
    }

    /// Dimension `from` moved to position `to`, as `jnp.moveaxis`.
    #[track_caller]
    pub fn moveaxis(&self, from: usize, to: usize) -> Tensor {
        assert!(from < self.rank() && to < self.rank(), "moveaxis({from}, {to}) of {}", self.shape());
        let mut perm: Vec<usize> = (0..self.rank()).collect();
        let d = perm.remove(from);
        perm.insert(to, d);
        self.transpose(&perm)
    }

    /// Elements in reverse order along `dims`, as `jnp.flip`.
    #[track_caller]
    pub fn reverse(&self, dims: &[usize]) -> Tensor {
        Tensor::apply1(Op::Reverse { dims: dims.to_vec() }, vec![self.clone()])
    }

    /// `x[start:limit:stride]` in every dimension, as `lax.slice`.
    #[track_caller]
    pub fn slice(&self, start: &[usize], limit: &[usize], stride: &[usize]) -> Tensor {
        if limit == self.dims() && start.iter().all(|&s| s == 0) && stride.iter().all(|&s| s == 1) {
            return self.clone();
        }
        let op = Op::Slice { start: start.to_vec(), limit: limit.to_vec(), stride: stride.to_vec() };
        Tensor::apply1(op, vec![self.clone()])
    }

    /// `x[start:limit]` along one dimension, as `lax.slice_in_dim`.
    #[track_caller]
    pub fn slice_in_dim(&self, dim: usize, start: usize, limit: usize) -> Tensor {
        assert!(dim < self.rank(), "slice along dimension {dim} of {}", self.shape());
        let mut starts = vec![0; self.rank()];
        let mut limits = self.dims().to_vec();
        (starts[dim], limits[dim]) = (start, limit);
        self.slice(&starts, &limits, &vec![1; self.rank()])
    }

    /// Entry `i` along dimension `dim`, which disappears.
    #[track_caller]
    pub fn index_in_dim(&self, dim: usize, i: usize) -> Tensor {
        self.slice_in_dim(dim, i, i + 1).squeeze(dim)
    }

    /// Split into equal parts along `dim`, as `jnp.split`.
    #[track_caller]
    pub fn split(&self, parts: usize, dim: usize) -> Vec<Tensor> {
        Tensor::apply(Op::Split { dim, parts }, vec![self.clone()])
    }

    /// Padded with the scalar `value`; negative edges crop, as `lax.pad`.
    #[track_caller]
    pub fn pad(&self, value: &Tensor, config: &[Padding]) -> Tensor {
        if config.iter().all(|p| *p == Padding::default()) {
            return self.clone();
        }
        Tensor::apply1(Op::Pad { config: config.to_vec() }, vec![self.clone(), value.clone()])
    }

    /// Padded with zeros.
    #[track_caller]
    pub(crate) fn pad_zeros(&self, config: &[Padding]) -> Tensor {
        self.pad(&Tensor::full(self.dtype(), &[], 0.0), config)
    }
}
