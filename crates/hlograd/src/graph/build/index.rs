//! Builders that read and write at computed places: gather, scatter, dynamic slices, and what is made of them.

use super::super::op::{GatherDims, Op, RngAlgorithm, ScatterDims, ScatterKind};
use super::super::shape::Shape;
use super::super::tensor::Tensor;
use crate::array::Array;

impl Tensor {
    /// `lax.gather` in mode `clip`: start indices out of range are moved so that the slice fits.
    #[track_caller]
    pub fn gather(&self, indices: &Tensor, dims: GatherDims, slice_sizes: &[usize]) -> Tensor {
        let op = Op::Gather { dims, slice_sizes: slice_sizes.to_vec() };
        Tensor::apply1(op, vec![self.clone(), indices.clone()])
    }

    /// `lax.scatter_add` and `lax.scatter` in mode `drop`: updates that do not fit are left out.
    #[track_caller]
    pub fn scatter(&self, kind: ScatterKind, indices: &Tensor, updates: &Tensor, dims: ScatterDims) -> Tensor {
        Tensor::apply1(Op::Scatter { kind, dims }, vec![self.clone(), indices.clone(), updates.clone()])
    }

    /// Entries at `indices` (integers of any shape, clamped to the range) along `dim`, as `jnp.take(mode="clip")`. The
    /// indices' dimensions take the place of `dim`. Rows of an embedding: `table.take(&tokens, 0)`.
    #[track_caller]
    pub fn take(&self, indices: &Tensor, dim: usize) -> Tensor {
        assert!(dim < self.rank(), "take along dimension {dim} of {}", self.shape());
        let n = indices.rank();
        let dims = GatherDims {
            offset_dims: (0..dim).chain(dim + n..n + self.rank() - 1).collect(),
            collapsed_slice_dims: vec![dim],
            start_index_map: vec![dim],
            ..GatherDims::default()
        };
        let mut sizes = self.dims().to_vec();
        sizes[dim] = 1;
        self.gather(&indices.expand_dims(n), dims, &sizes)
    }

    /// Entry `indices[.., i, ..]` along `dim` at each place, as `jnp.take_along_axis(mode="clip")`; the other
    /// dimensions of both are equal.
    #[track_caller]
    pub fn take_along_axis(&self, indices: &Tensor, dim: usize) -> Tensor {
        assert!(dim < self.rank() && indices.rank() == self.rank(), "take_along_axis on {}", self.shape());
        let others: Vec<usize> = (0..self.rank()).filter(|&d| d != dim).collect();
        let dims = GatherDims {
            collapsed_slice_dims: vec![dim],
            start_index_map: vec![dim],
            operand_batching_dims: others.clone(),
            start_indices_batching_dims: others,
            ..GatherDims::default()
        };
        self.gather(&indices.expand_dims(self.rank()), dims, &vec![1; self.rank()])
    }

    /// `lax.dynamic_slice`: `starts` are integer scalars, clamped so that the slice fits.
    #[track_caller]
    pub fn dynamic_slice(&self, starts: &[Tensor], sizes: &[usize]) -> Tensor {
        let operands = [std::slice::from_ref(self), starts].concat();
        Tensor::apply1(Op::DynamicSlice { sizes: sizes.to_vec() }, operands)
    }

    /// Entry at the integer scalar `i` along the first dimension, which disappears.
    #[track_caller]
    pub fn dynamic_index(&self, i: &Tensor) -> Tensor {
        let mut starts = vec![i.zeros_like(); self.rank()];
        let mut sizes = self.dims().to_vec();
        (starts[0], sizes[0]) = (i.clone(), 1);
        self.dynamic_slice(&starts, &sizes).squeeze(0)
    }

    /// `lax.dynamic_update_slice`: this tensor with `update` written at `starts`, clamped so that it fits.
    #[track_caller]
    pub fn dynamic_update_slice(&self, update: &Tensor, starts: &[Tensor]) -> Tensor {
        let operands = [&[self.clone(), update.clone()], starts].concat();
        Tensor::apply1(Op::DynamicUpdateSlice, operands)
    }

    /// This tensor with `row` written at the integer scalar `i` of the first dimension.
    #[track_caller]
    pub fn dynamic_update_index(&self, row: &Tensor, i: &Tensor) -> Tensor {
        let mut starts = vec![i.zeros_like(); self.rank()];
        starts[0] = i.clone();
        self.dynamic_update_slice(&row.expand_dims(0), &starts)
    }

    /// 1 at each index along a new last dimension of size `n`, 0 elsewhere (all 0 for an index out of range).
    #[track_caller]
    pub fn one_hot(&self, n: usize, dtype: crate::array::DType) -> Tensor {
        let dims = [self.dims(), &[n]].concat();
        let classes = Tensor::iota(Shape::new(self.dtype(), &dims), self.rank());
        self.expand_dims(self.rank()).eq(&classes).convert(dtype)
    }

    /// Random bits from the counter state `uint64[2 or 3]`: `(new state, bits)`, the same on every backend.
    #[track_caller]
    pub fn rng_bits(&self, algorithm: RngAlgorithm, shape: Shape) -> (Tensor, Tensor) {
        let mut r = Tensor::apply(Op::RngBitGenerator { algorithm, shape }, vec![self.clone()]);
        let bits = r.swap_remove(1);
        (r.swap_remove(0), bits)
    }

    /// A call to the platform's function `target`; it has no derivative.
    #[track_caller]
    pub fn custom_call(target: &str, opaque: &str, operands: &[Tensor], shapes: &[Shape]) -> Vec<Tensor> {
        let op = Op::CustomCall { target: target.into(), opaque: opaque.into(), shapes: shapes.to_vec() };
        Tensor::apply(op, operands.to_vec())
    }

    /// Largest start index in each dimension of `map` at which a slice of `sizes` fits, shaped to broadcast against
    /// index vectors.
    pub(crate) fn last_starts(&self, map: &[usize], sizes: &[usize], indices: &Tensor) -> Tensor {
        let last: Vec<i64> = map.iter().map(|&d| (self.dims()[d] - sizes[d]) as i64).collect();
        Tensor::constant(Array::from_slice(&[last.len()], &last).cast(indices.dtype())).broadcast_to(indices.dims())
    }
}
