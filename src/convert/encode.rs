//! Numbers as bytes of an element type: the opposite of `interop::safetensors::to_f64`.

use std::cmp::Ordering;

use half::{bf16, f16};
use safetensors::tensor::Dtype;

use crate::error::{Error, Result};
use crate::interop::safetensors::to_f64;

/// Rounds numbers to an element type: to nearest, ties to even.
pub(super) enum Encoder {
    F64,
    F32,
    F16,
    BF16,
    /// The finite values of an 8-bit type in order, with their bytes.
    Byte(Vec<(f64, u8)>),
}

impl Encoder {
    /// **Errors** when the type is no real floating-point type of whole bytes.
    pub(super) fn new(dtype: Dtype) -> Result<Self> {
        Ok(match dtype {
            Dtype::F64 => Encoder::F64,
            Dtype::F32 => Encoder::F32,
            Dtype::F16 => Encoder::F16,
            Dtype::BF16 => Encoder::BF16,
            _ if dtype.bitsize() == 8 => {
                let bytes: Vec<u8> = (0..=255).collect();
                let mut values = Vec::new();
                to_f64(dtype, &bytes, &mut values)?;
                let mut values: Vec<(f64, u8)> = values.into_iter().zip(bytes).filter(|(v, _)| v.is_finite()).collect();
                values.sort_by(|a, b| a.0.total_cmp(&b.0));
                Encoder::Byte(values)
            }
            _ => return Err(Error::numeric(format!("element type {dtype:?}"), "holds no floating-point numbers")),
        })
    }

    /// Appends `values`.
    pub(super) fn encode(&self, values: &[f32], out: &mut Vec<u8>) {
        match self {
            Encoder::F64 => out.extend(values.iter().flat_map(|x| f64::from(*x).to_le_bytes())),
            Encoder::F32 => out.extend(values.iter().flat_map(|x| x.to_le_bytes())),
            Encoder::F16 => out.extend(values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes())),
            Encoder::BF16 => out.extend(values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes())),
            Encoder::Byte(table) => out.extend(values.iter().map(|x| nearest(table, f64::from(*x)))),
        }
    }
}

/// The byte of the nearest value; of two equally near ones the even byte.
fn nearest(table: &[(f64, u8)], x: f64) -> u8 {
    let above = table.partition_point(|(v, _)| v.total_cmp(&x) == Ordering::Less).min(table.len() - 1);
    let below = above.saturating_sub(1);
    let (low, high) = (table[below], table[above]);
    // 0 is as near to -0.
    if high.0.total_cmp(&x).is_eq() {
        return high.1;
    }
    match (x - low.0).total_cmp(&(high.0 - x)) {
        Ordering::Less => low.1,
        Ordering::Greater => high.1,
        Ordering::Equal => {
            if low.1.is_multiple_of(2) {
                low.1
            } else {
                high.1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of each type comes back as its own bytes, and a number between two as the nearer.
    #[test]
    fn values_keep_their_bytes() {
        for dtype in [Dtype::F8_E4M3, Dtype::F8_E5M2, Dtype::F16, Dtype::BF16] {
            let encoder = Encoder::new(dtype).expect("a float");
            let width = dtype.bitsize() / 8;
            for pattern in 0..(1u32 << (8 * width)) {
                let bytes = &pattern.to_le_bytes()[..width];
                let (mut values, mut back) = (Vec::new(), Vec::new());
                to_f64(dtype, bytes, &mut values).expect("a float");
                if values[0].is_finite() {
                    encoder.encode(&[values[0] as f32], &mut back);
                    assert_eq!(back, bytes, "{dtype:?} {}", values[0]);
                }
            }
        }
        let Encoder::Byte(table) = Encoder::new(Dtype::F8_E4M3).expect("a float") else { panic!("8 bits") };
        // 1.0 is 0x38 and 1.125 is 0x39; 448 is the largest.
        for (x, byte) in [(1.05, 0x38), (1.07, 0x39), (1.0625, 0x38), (1000.0, 0x7e), (-1000.0, 0xfe)] {
            assert_eq!(nearest(&table, x), byte, "{x}");
        }
        assert!(Encoder::new(Dtype::I32).is_err());
    }
}
