//! Builders that combine elements: reductions, windows, sorting, dot products.

use super::super::infer::without;
use super::super::op::{Combine, DotDims, Extremum, Op, Precision, Window};
use super::super::shape::Shape;
use super::super::tensor::Tensor;
use super::structure::common_shape;
use crate::array::DType;

impl Tensor {
    /// Reduction over `dims`, which disappear.
    #[track_caller]
    pub fn reduce(&self, kind: Combine, dims: &[usize]) -> Tensor {
        let mut dims = dims.to_vec();
        dims.sort_unstable();
        if dims.is_empty() {
            return self.clone();
        }
        Tensor::apply1(Op::Reduce { kind, dims }, vec![self.clone()])
    }

    /// Sum over `dims`, which disappear; `f16` and `bf16` are added up in `f32`, as in JAX.
    #[track_caller]
    pub fn sum(&self, dims: &[usize]) -> Tensor {
        match self.dtype() {
            DType::F16 | DType::BF16 => self.convert(DType::F32).reduce(Combine::Add, dims).convert(self.dtype()),
            _ => self.reduce(Combine::Add, dims),
        }
    }

    /// Sum of everything, a scalar.
    #[track_caller]
    pub fn sum_all(&self) -> Tensor {
        self.sum(&self.all_dims())
    }

    /// Mean over `dims`, which disappear; `f16` and `bf16` in `f32`.
    #[track_caller]
    pub fn mean(&self, dims: &[usize]) -> Tensor {
        let n: usize = dims.iter().map(|&d| self.dims()[d]).product();
        match self.dtype() {
            DType::F16 | DType::BF16 => self.convert(DType::F32).mean(dims).convert(self.dtype()),
            _ => self.sum(dims) / n as f64,
        }
    }

    /// Mean of everything, a scalar.
    #[track_caller]
    pub fn mean_all(&self) -> Tensor {
        self.mean(&self.all_dims())
    }

    /// Maximum over `dims`. Equal maxima share the derivative equally.
    #[track_caller]
    pub fn max(&self, dims: &[usize]) -> Tensor {
        self.reduce(Combine::Max, dims)
    }

    /// Minimum over `dims`. Equal minima share the derivative equally.
    #[track_caller]
    pub fn min(&self, dims: &[usize]) -> Tensor {
        self.reduce(Combine::Min, dims)
    }

    /// Whether all hold, over `dims`.
    #[track_caller]
    pub fn all(&self, dims: &[usize]) -> Tensor {
        self.reduce(Combine::And, dims)
    }

    /// Whether any holds, over `dims`.
    #[track_caller]
    pub fn any(&self, dims: &[usize]) -> Tensor {
        self.reduce(Combine::Or, dims)
    }

    /// Index of the first maximum along `dim`, `int32`.
    #[track_caller]
    pub fn argmax(&self, dim: usize) -> Tensor {
        Tensor::apply1(Op::ArgReduce { kind: Extremum::Max, dim }, vec![self.clone()])
    }

    /// Index of the first minimum along `dim`, `int32`.
    #[track_caller]
    pub fn argmin(&self, dim: usize) -> Tensor {
        Tensor::apply1(Op::ArgReduce { kind: Extremum::Min, dim }, vec![self.clone()])
    }

    /// Sums, maxima or minima over sliding windows, as `lax.reduce_window`.
    #[track_caller]
    pub fn reduce_window(&self, kind: Combine, window: &[Window]) -> Tensor {
        Tensor::apply1(Op::ReduceWindow { kind, window: window.to_vec() }, vec![self.clone()])
    }

    /// Cumulative sum along `dim`.
    #[track_caller]
    pub fn cumsum(&self, dim: usize) -> Tensor {
        let n = self.dims()[dim];
        let mut window = vec![Window::ONE; self.rank()];
        window[dim] = Window { size: n.max(1), low: n as i64 - 1, ..Window::ONE };
        self.reduce_window(Combine::Add, &window)
    }

    /// Sorted along `dim`, NaN last, as `jnp.sort` (stable).
    #[track_caller]
    pub fn sort(&self, dim: usize) -> Tensor {
        Tensor::apply1(Op::Sort { dim, descending: false }, vec![self.clone()])
    }

    /// Sorts this tensor along `dim` and moves `others` along with it.
    #[track_caller]
    pub fn sort_by_key(&self, others: &[Tensor], dim: usize, descending: bool) -> Vec<Tensor> {
        let operands = [std::slice::from_ref(self), others].concat();
        Tensor::apply(Op::Sort { dim, descending }, operands)
    }

    /// Indices (`int32`) that would sort along `dim`, stable, as `jnp.argsort`.
    #[track_caller]
    pub fn argsort(&self, dim: usize) -> Tensor {
        self.sort_order(dim, false)
    }

    /// [`Tensor::argsort`] in either direction.
    #[track_caller]
    pub(crate) fn sort_order(&self, dim: usize, descending: bool) -> Tensor {
        let index = Tensor::iota(Shape::new(DType::I32, self.dims()), dim);
        self.sort_by_key(&[index], dim, descending).swap_remove(1)
    }

    /// Euclidean norm over `dims`, which disappear. The derivative at 0 is 0 (the plain formula gives NaN there).
    #[track_caller]
    pub fn norm(&self, dims: &[usize]) -> Tensor {
        let squares = self.square().sum(dims);
        let zero = squares.eq(&squares.zeros_like());
        zero.select(&squares.zeros_like(), &zero.select(&squares.ones_like(), &squares).sqrt())
    }

    /// ln(sum(e^x)) over `dim`, which disappears, shifted by the maximum so that it cannot overflow. A row of -inf
    /// gives -inf.
    #[track_caller]
    pub fn logsumexp(&self, dim: usize) -> Tensor {
        let max = self.max(&[dim]).stop_gradient();
        let shift = max.is_finite().select(&max, &max.zeros_like());
        let sum = (self - shift.expand_dims(dim)).exp().sum(&[dim]);
        sum.log() + shift
    }

    /// softmax along `dim`.
    #[track_caller]
    pub fn softmax(&self, dim: usize) -> Tensor {
        let shift = self.max(&[dim]).stop_gradient().expand_dims(dim);
        let e = (self - shift).exp();
        &e / e.sum(&[dim]).expand_dims(dim)
    }

    /// Variance over `dims` (divided by n), in two passes: the mean is subtracted before squaring.
    #[track_caller]
    pub fn var(&self, dims: &[usize]) -> Tensor {
        let mut kept = self.dims().to_vec();
        dims.iter().for_each(|&d| kept[d] = 1);
        (self - self.mean(dims).reshape(&kept)).square().mean(dims)
    }

    /// `lax.dot_general` with all its choices.
    #[track_caller]
    pub fn dot_general(&self, other: &Tensor, dims: DotDims, precision: Precision, dtype: DType) -> Tensor {
        Tensor::apply1(Op::DotGeneral { dims, precision, dtype }, vec![self.clone(), other.clone()])
    }

    /// Contraction of dimensions `lhs` of this with `rhs` of `other`: free dimensions of this, then of `other`.
    #[track_caller]
    pub fn tensordot(&self, other: &Tensor, lhs: &[usize], rhs: &[usize]) -> Tensor {
        let dims = DotDims { lhs_contract: lhs.to_vec(), rhs_contract: rhs.to_vec(), ..DotDims::default() };
        self.dot_general(other, dims, Precision::Default, self.dtype())
    }

    /// Matrix product as `jnp.matmul`: vectors, matrices, and leading batch dimensions, which broadcast.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        let (a, b) = (self.rank(), other.rank());
        assert!(a > 0 && b > 0, "matmul({}, {}): scalars", self.shape(), other.shape());
        if a <= 2 && b <= 2 {
            return self.tensordot(other, &[a - 1], &[b.saturating_sub(2)]);
        }
        let batch = common_shape(&self.dims()[..a.max(2) - 2], &other.dims()[..b.max(2) - 2]);
        let Some(batch) = batch else {
            panic!("matmul({}, {}): the batch dimensions do not broadcast", self.shape(), other.shape());
        };
        let n = batch.len();
        let lhs = if a == 1 { self.expand_dims(0) } else { self.clone() };
        let rhs = if b == 1 { other.expand_dims(1) } else { other.clone() };
        let full = |t: &Tensor| t.broadcast_to(&[&batch[..], &t.dims()[t.rank() - 2..]].concat());
        let dims = DotDims {
            lhs_batch: (0..n).collect(),
            rhs_batch: (0..n).collect(),
            lhs_contract: vec![n + 1],
            rhs_contract: vec![n],
        };
        let product = full(&lhs).dot_general(&full(&rhs), dims, Precision::Default, self.dtype());
        match (a, b) {
            (1, _) => product.squeeze(n),
            (_, 1) => product.squeeze(n + 1),
            _ => product,
        }
    }

    /// Every dimension, for reductions of everything.
    pub fn all_dims(&self) -> Vec<usize> {
        (0..self.rank()).collect()
    }

    /// Reduced over `dims`, then broadcast back along them: the transpose of broadcasting, used by rules.
    #[track_caller]
    pub(crate) fn broadcast_back(&self, dims: &[usize], to: &[usize]) -> Tensor {
        let kept = without(&(0..to.len()).collect::<Vec<_>>(), dims);
        self.broadcast_in_dim(&kept, to)
    }

    /// Reduction over all replicas of the program, element by element, as `lax.psum` and its kin. Every replica gets the
    /// result; a program compiled for one device is one replica, and this the identity there. Replicas are what a
    /// group of devices opens.
    ///
    /// Sums have derivatives, those of the replicas' outputs added up: the cotangents are summed over the replicas too
    /// (as in `jax.pmap`). Data parallel code calls this on the gradients, after
    /// [`grad`](crate::transform::grad): the gradient of a loss that was itself summed comes out as many times too large
    /// as there are replicas, and is then still to be summed.
    #[track_caller]
    pub fn all_reduce(&self, kind: Combine) -> Tensor {
        Tensor::apply1(Op::AllReduce { kind }, vec![self.clone()])
    }
}
