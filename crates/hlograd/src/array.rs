//! Host tensors: a dtype, a shape and row-major bytes, with `ndarray` at both ends.
//!
//! [`Array`] is what crosses the borders of the library: graph constants, device transfers and safetensors entries all
//! are one. Arithmetic on the host is done in `ndarray`: [`Array::to_ndarray`] and [`Array::from_ndarray`].
//!
//! ```
//! use ndarray::array;
//! use hlograd::array::{Array, DType};
//! let x = Array::from_ndarray(&array![[1.0f32, 2.0], [3.0, 4.0]]);
//! assert_eq!((x.dtype(), x.dims()), (DType::F32, &[2, 2][..]));
//! assert_eq!(x.cast(DType::BF16).to_f64_vec(), [1.0, 2.0, 3.0, 4.0]);
//! assert!(x.to_vec::<f64>().is_err()); // never converted in silence
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use half::{bf16, f16};
use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

use crate::error::{Error, Result};

/// Element types, named as in `jax.numpy` (without the underscore of `bool_`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)] // the names are the documentation
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// Bytes per element (a `bool` takes one).
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// Floating point, the types that have derivatives.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// Signed or unsigned integer, not `bool`.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != DType::Bool
    }

    /// Integers that cannot be negative.
    pub fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// The type's name in HLO text (`pred`, `s32`, `f32` ...).
    pub fn hlo_name(self) -> &'static str {
        match self {
            DType::Bool => "pred",
            DType::I8 => "s8",
            DType::I16 => "s16",
            DType::I32 => "s32",
            DType::I64 => "s64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// The type's name in NumPy and JAX (`bool`, `int32`, `float32` ...).
    pub fn numpy_name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.numpy_name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Rust types that are element types. Sealed: the list is [`DType`]'s.
pub trait Element: sealed::Sealed + Copy + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The matching element type.
    const DTYPE: DType;
    /// Appends the value's little-endian bytes.
    fn write_le(self, out: &mut Vec<u8>);
    /// Reads one value from exactly [`DType::size`] bytes.
    fn read_le(bytes: &[u8]) -> Self;
}

macro_rules! element {
    ($($t:ty => $d:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            fn write_le(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read_le(bytes: &[u8]) -> Self {
                let mut le = [0u8; size_of::<$t>()];
                le.copy_from_slice(bytes);
                <$t>::from_le_bytes(le)
            }
        }
    )*};
}
element!(i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
         f16 => F16, bf16 => BF16, f32 => F32, f64 => F64);

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn write_le(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }
    fn read_le(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
}

/// A host tensor: row-major, little-endian, cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Array {
    dtype: DType,
    dims: Vec<usize>,
    bytes: Arc<[u8]>,
}

/// Tensors by name.
pub type Weights = BTreeMap<String, Array>;

impl Array {
    /// From row-major little-endian bytes.
    ///
    /// **Errors** when `bytes` is not `product(dims) * dtype.size()` long.
    pub fn from_bytes(dtype: DType, dims: &[usize], bytes: impl Into<Arc<[u8]>>) -> Result<Self> {
        let bytes = bytes.into();
        let want = dims.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d));
        if want != Some(bytes.len()) {
            return Err(Error::numeric(
                format!("array {dtype}{dims:?}"),
                format!(
                    "{} bytes given, its shape needs {}",
                    bytes.len(),
                    want.map_or("too many".into(), |n| n.to_string())
                ),
            ));
        }
        Ok(Array { dtype, dims: dims.to_vec(), bytes })
    }

    /// From a row-major slice of values.
    ///
    /// **Panics** when `values.len()` is not the product of `dims`.
    #[track_caller]
    pub fn from_slice<T: Element>(dims: &[usize], values: &[T]) -> Self {
        assert_eq!(
            dims.iter().product::<usize>(),
            values.len(),
            "array shape {dims:?} does not hold {} values",
            values.len()
        );
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|v| v.write_le(&mut bytes));
        Array { dtype: T::DTYPE, dims: dims.to_vec(), bytes: bytes.into() }
    }

    /// A scalar.
    pub fn scalar<T: Element>(value: T) -> Self {
        Array::from_slice(&[], &[value])
    }

    /// From any `ndarray` array or view, whatever its memory order.
    pub fn from_ndarray<T: Element, S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Self {
        let mut bytes = Vec::with_capacity(array.len() * T::DTYPE.size());
        array.iter().for_each(|v| v.write_le(&mut bytes));
        Array { dtype: T::DTYPE, dims: array.shape().to_vec(), bytes: bytes.into() }
    }

    /// `value`, converted to `dtype` as [`Array::cast`] does, in every element.
    pub fn full(dtype: DType, dims: &[usize], value: f64) -> Self {
        let one = Array::scalar(value).cast(dtype);
        Array { dtype, dims: dims.to_vec(), bytes: one.bytes.repeat(dims.iter().product()).into() }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape; empty for a scalar.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether there are no elements at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row-major little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The values in row-major order.
    ///
    /// **Errors** when `T` is not the array's element type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            return Err(Error::numeric(
                format!("array {}{:?}", self.dtype, self.dims),
                format!("read as {}; convert it with cast() first", T::DTYPE),
            ));
        }
        Ok(self.bytes.chunks_exact(T::DTYPE.size()).map(T::read_le).collect())
    }

    /// As an `ndarray` array. **Errors** as [`Array::to_vec`].
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        let values = self.to_vec()?;
        ArrayD::from_shape_vec(IxDyn(&self.dims), values).map_err(|e| Error::numeric("array", e))
    }

    /// The values as `f64`, whatever the element type (integers above 2^53 are rounded).
    pub fn to_f64_vec(&self) -> Vec<f64> {
        macro_rules! read {
            ($t:ty, $v:ident => $e:expr) => {
                self.bytes.chunks_exact(self.dtype.size()).map(|b| { let $v = <$t>::read_le(b); $e }).collect()
            };
        }
        match self.dtype {
            DType::Bool => read!(bool, v => f64::from(u8::from(v))),
            DType::I8 => read!(i8, v => v as f64),
            DType::I16 => read!(i16, v => v as f64),
            DType::I32 => read!(i32, v => v as f64),
            DType::I64 => read!(i64, v => v as f64),
            DType::U8 => read!(u8, v => v as f64),
            DType::U16 => read!(u16, v => v as f64),
            DType::U32 => read!(u32, v => v as f64),
            DType::U64 => read!(u64, v => v as f64),
            DType::F16 => read!(f16, v => v.to_f64()),
            DType::BF16 => read!(bf16, v => v.to_f64()),
            DType::F32 => read!(f32, v => f64::from(v)),
            DType::F64 => read!(f64, v => v),
        }
    }

    /// Converted to another element type, by way of `f64`: floats are rounded to nearest even, integers saturate.
    pub fn cast(&self, dtype: DType) -> Self {
        if dtype == self.dtype {
            return self.clone();
        }
        let values = self.to_f64_vec();
        let mut bytes = Vec::with_capacity(values.len() * dtype.size());
        for v in values {
            match dtype {
                DType::Bool => (v != 0.0).write_le(&mut bytes),
                DType::I8 => (v as i8).write_le(&mut bytes),
                DType::I16 => (v as i16).write_le(&mut bytes),
                DType::I32 => (v as i32).write_le(&mut bytes),
                DType::I64 => (v as i64).write_le(&mut bytes),
                DType::U8 => (v as u8).write_le(&mut bytes),
                DType::U16 => (v as u16).write_le(&mut bytes),
                DType::U32 => (v as u32).write_le(&mut bytes),
                DType::U64 => (v as u64).write_le(&mut bytes),
                DType::F16 => f16::from_f64(v).write_le(&mut bytes),
                DType::BF16 => bf16::from_f64(v).write_le(&mut bytes),
                DType::F32 => (v as f32).write_le(&mut bytes),
                DType::F64 => v.write_le(&mut bytes),
            }
        }
        Array { dtype, dims: self.dims.clone(), bytes: bytes.into() }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.dims)?;
        if self.len() <= 8 { write!(f, " = {:?}", self.to_f64_vec()) } else { Ok(()) }
    }
}
