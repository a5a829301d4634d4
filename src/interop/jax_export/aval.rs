//! Element types and shapes as JAX writes them: abstract values.

use std::fmt;

use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::Shape;

/// An element type, by its number in the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(pub u8);

/// Names by number, as in NumPy and ml_dtypes.
const NAMES: [&str; 30] = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "bfloat16",
    "int4",
    "uint4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float0",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "key<fry>",
    "key<rbg>",
    "key<unsafe_rbg>",
];

impl Kind {
    /// What stands for the derivative by an integer: nothing. Programs pass it as booleans.
    pub const FLOAT0: Kind = Kind(22);

    /// The number of one of this toolkit's types.
    pub fn of(dtype: DType) -> Kind {
        let number = NAMES.iter().position(|name| *name == dtype.numpy_name());
        Kind(number.and_then(|n| u8::try_from(n).ok()).unwrap_or(u8::MAX))
    }

    /// This toolkit's type for it, where there is one.
    pub fn dtype(self) -> Option<DType> {
        let name = NAMES.get(usize::from(self.0))?;
        DType::ALL.into_iter().find(|d| d.numpy_name() == *name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "type {}", self.0),
        }
    }
}

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A size.
    Fixed(usize),
    /// An expression in names: `b`, `2*n + 1`.
    Symbolic(String),
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(size) => write!(f, "{size}"),
            Dim::Symbolic(text) => f.write_str(text),
        }
    }
}

/// Element type and dimensions of an argument or result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Aval {
    /// Element type.
    pub kind: Kind,
    /// Dimensions, outermost first.
    pub dims: Vec<Dim>,
    /// Where it lies: 0 not said, 1 device, 2 host, 3 anywhere.
    pub memory: u8,
}

impl Aval {
    /// In the memory of the device.
    pub fn new(kind: Kind, dims: &[usize]) -> Self {
        Aval { kind, dims: dims.iter().map(|d| Dim::Fixed(*d)).collect(), memory: 1 }
    }

    /// Of an array of this shape.
    pub fn of(shape: &Shape) -> Self {
        Aval::new(Kind::of(shape.dtype), &shape.dims)
    }

    /// Of its derivative: the same, `float0` where it is not of floats.
    pub fn tangent(&self) -> Self {
        let float = self.kind.dtype().is_some_and(DType::is_float) || matches!(self.kind.0, 12 | 13);
        Aval { kind: if float { self.kind } else { Kind::FLOAT0 }, ..self.clone() }
    }

    /// As a shape; `float0` is passed as booleans.
    ///
    /// **Errors** when the element type is not one of this toolkit's, a dimension is symbolic, or it has more bytes than a
    /// machine.
    pub fn shape(&self) -> Result<Shape> {
        let dtype = if self.kind == Kind::FLOAT0 { Some(DType::Bool) } else { self.kind.dtype() };
        let dtype = dtype.ok_or_else(|| Error::numeric(self, "its element type is not supported"))?;
        let fixed = |dim: &Dim| match dim {
            Dim::Fixed(size) => Ok(*size),
            Dim::Symbolic(_) => Err(Error::numeric(self, "its dimensions are not fixed")),
        };
        let dims: Vec<usize> = self.dims.iter().map(fixed).collect::<Result<_>>()?;
        let bytes = dims.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d));
        let fits = bytes.is_some_and(|n| isize::try_from(n).is_ok());
        if fits { Ok(Shape::new(dtype, &dims)) } else { Err(Error::numeric(self, "has more bytes than a machine")) }
    }
}

impl From<&Aval> for String {
    fn from(aval: &Aval) -> String {
        aval.to_string()
    }
}

impl fmt::Display for Aval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(Dim::to_string).collect();
        write!(f, "{}[{}]", self.kind, dims.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_number() {
        for dtype in DType::ALL {
            assert_eq!(Kind::of(dtype).dtype(), Some(dtype));
        }
        assert_eq!((Kind::of(DType::F32), Kind::of(DType::BF16), Kind::of(DType::U8)), (Kind(10), Kind(14), Kind(5)));
        assert_eq!(Kind::FLOAT0.to_string(), "float0");
        let count = Aval::of(&Shape::new(DType::I32, &[2, 3]));
        assert_eq!(count.tangent().to_string(), "float0[2,3]");
        assert_eq!(count.tangent().shape().expect("fixed"), Shape::new(DType::Bool, &[2, 3]));
        assert_eq!(Aval::new(Kind(12), &[]).tangent().kind, Kind(12));
        assert!(Aval::new(Kind(12), &[]).shape().expect_err("complex").to_string().contains("complex64[]"));
        let open = Aval { dims: vec![Dim::Symbolic("b".into())], ..Aval::new(Kind(10), &[]) };
        assert!(open.shape().is_err());
        assert!(Aval::new(Kind(10), &[1 << 40, 1 << 40]).shape().is_err());
    }
}
