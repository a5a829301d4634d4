//! Shapes: an element type with dimensions.

use std::fmt;

use crate::array::DType;

/// Element type and dimensions of one tensor, as `jax.ShapeDtypeStruct`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, outermost first; empty for a scalar.
    pub dims: Vec<usize>,
}

impl Shape {
    /// `dtype[dims]`.
    pub fn new(dtype: DType, dims: &[usize]) -> Self {
        Shape { dtype, dims: dims.to_vec() }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.dims.iter().product()
    }

    /// Bytes of one such tensor.
    pub fn bytes(&self) -> usize {
        self.size() * self.dtype.size()
    }

    /// The same dimensions with another element type.
    pub fn with_dtype(&self, dtype: DType) -> Self {
        Shape { dtype, dims: self.dims.clone() }
    }

    /// The same element type with other dimensions.
    pub fn with_dims(&self, dims: &[usize]) -> Self {
        Shape { dtype: self.dtype, dims: dims.to_vec() }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(usize::to_string).collect();
        write!(f, "{}[{}]", self.dtype, dims.join(","))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
