//! NumPy's `.npz` files, to read: arrays by name, from `np.savez`.
//!
//! ```
//! use sinexp::interop::npz;
//! // In Python: np.savez("flax.npz", **{"params/Dense_0/kernel": ..., ...}).
//! let arrays = npz::read("tests/spectrum_hlo/flax.npz")?;
//! assert_eq!(arrays["params/Dense_0/kernel"].dims(), [2, 8]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use npyz::{DType as NpyType, NpyFile, Order, TypeChar};
use zip::ZipArchive;

use crate::array::{Array, DType, Weights};
use crate::error::{Error, Result};
use crate::files::{reason, unreadable};

/// Reads every array, whatever its order in memory.
///
/// **Errors** when the file is damaged, or an array has an element type that [`DType`] has not (complex, text, objects).
pub fn read(path: impl AsRef<Path>) -> Result<Weights> {
    let path = path.as_ref();
    let damaged = |e: std::io::Error| Error::file(path, format!("is no .npz file that can be read: {}", reason(&e)));
    let file = File::open(path).map_err(|e| unreadable(path, &e))?;
    let mut archive = ZipArchive::new(file).map_err(|e| damaged(e.into()))?;
    let mut arrays = BTreeMap::new();
    for i in 0..archive.len() {
        let member = archive.by_index(i).map_err(|e| damaged(e.into()))?;
        let name = member.name().map_err(|e| damaged(e.into()))?;
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
        let array = NpyFile::new(member).map_err(damaged)?;
        let fail = |why: String| Error::tensor(&name, format!("{why} in {}", path.display()));
        let dtype = element_type(&array.dtype())
            .ok_or_else(|| fail(format!("has element type {}, which is not supported,", array.dtype().descr())))?;
        let dims: Vec<usize> = array.shape().iter().map(|d| *d as usize).collect();
        let columns_first = array.order() == Order::Fortran;
        // The bytes as they lie: little-endian, as the element types above.
        let mut bytes = Vec::new();
        let reader = &mut array.into_inner();
        std::io::Read::read_to_end(reader, &mut bytes).map_err(damaged)?;
        if columns_first && bytes.len() == dims.iter().product::<usize>() * dtype.size() {
            bytes = rows_first(&bytes, &dims, dtype.size());
        }
        let array = Array::from_bytes(dtype, &dims, bytes).map_err(|e| fail(format!("is damaged ({e})")))?;
        arrays.insert(name, array);
    }
    Ok(arrays)
}

/// Elements of `size` bytes that lie with the first index fastest, as they lie with the last one fastest.
fn rows_first(bytes: &[u8], dims: &[usize], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0usize; dims.len()];
    for _ in 0..bytes.len() / size {
        let at = index.iter().zip(dims).rev().fold(0, |at, (i, d)| at * d + i);
        out.extend_from_slice(&bytes[at * size..(at + 1) * size]);
        for (i, d) in index.iter_mut().zip(dims).rev() {
            *i += 1;
            if *i < *d {
                break;
            }
            *i = 0;
        }
    }
    out
}

fn element_type(dtype: &NpyType) -> Option<DType> {
    let NpyType::Plain(plain) = dtype else { return None };
    if plain.endianness() == npyz::Endianness::Big {
        return None;
    }
    match (plain.type_char(), plain.size_field()) {
        (TypeChar::Bool, 1) => Some(DType::Bool),
        (TypeChar::Int, 1) => Some(DType::I8),
        (TypeChar::Int, 2) => Some(DType::I16),
        (TypeChar::Int, 4) => Some(DType::I32),
        (TypeChar::Int, 8) => Some(DType::I64),
        (TypeChar::Uint, 1) => Some(DType::U8),
        (TypeChar::Uint, 2) => Some(DType::U16),
        (TypeChar::Uint, 4) => Some(DType::U32),
        (TypeChar::Uint, 8) => Some(DType::U64),
        (TypeChar::Float, 2) => Some(DType::F16),
        (TypeChar::Float, 4) => Some(DType::F32),
        (TypeChar::Float, 8) => Some(DType::F64),
        _ => None,
    }
}
