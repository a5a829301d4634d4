//! What the bytes of a floating-point tensor mean, for the element types that [`Array`](crate::array::Array) has not too.

use half::{bf16, f16};

use super::Dtype;
use crate::error::{Error, Result};

/// Whether the elements are real floating-point numbers of whole bytes: f64, f32, f16, bf16 and the 8-bit types.
///
/// Not the 4- and 6-bit ones, whose packing the format does not say, complex numbers and integers.
pub fn is_real(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16) || eight_bits(dtype).is_some()
}

/// Appends the elements in `bytes` as f32: without loss but for f64, which is rounded.
///
/// **Errors** when [`is_real`] does not hold.
pub fn to_f32(dtype: Dtype, bytes: &[u8], out: &mut Vec<f32>) -> Result<()> {
    match dtype {
        Dtype::F64 => out.extend(words(bytes).map(|b| f64::from_le_bytes(b) as f32)),
        Dtype::F32 => out.extend(words(bytes).map(f32::from_le_bytes)),
        Dtype::F16 => out.extend(words(bytes).map(|b| f16::from_le_bytes(b).to_f32())),
        Dtype::BF16 => out.extend(words(bytes).map(|b| bf16::from_le_bytes(b).to_f32())),
        _ => {
            let table = eight_bits(dtype).ok_or_else(|| not_real(dtype))?;
            out.extend(bytes.iter().map(|b| table[usize::from(*b)]));
        }
    }
    Ok(())
}

/// Appends the elements in `bytes` as f64, without loss.
///
/// **Errors** when [`is_real`] does not hold.
pub fn to_f64(dtype: Dtype, bytes: &[u8], out: &mut Vec<f64>) -> Result<()> {
    match dtype {
        Dtype::F64 => out.extend(words(bytes).map(f64::from_le_bytes)),
        Dtype::F32 => out.extend(words(bytes).map(|b| f64::from(f32::from_le_bytes(b)))),
        Dtype::F16 => out.extend(words(bytes).map(|b| f16::from_le_bytes(b).to_f64())),
        Dtype::BF16 => out.extend(words(bytes).map(|b| bf16::from_le_bytes(b).to_f64())),
        _ => {
            let table = eight_bits(dtype).ok_or_else(|| not_real(dtype))?;
            out.extend(bytes.iter().map(|b| f64::from(table[usize::from(*b)])));
        }
    }
    Ok(())
}

fn not_real(dtype: Dtype) -> Error {
    Error::numeric(format!("element type {dtype:?}"), "its elements are no real floating-point numbers of whole bytes")
}

/// The bytes of each element.
fn words<const N: usize>(bytes: &[u8]) -> impl ExactSizeIterator<Item = [u8; N]> {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// The value of each pattern of an 8-bit type, which f32 holds exactly.
fn eight_bits(dtype: Dtype) -> Option<[f32; 256]> {
    let value = |byte: u8| -> Option<f64> {
        Some(match dtype {
            // Micikevicius et al. 2022: E4M3 without infinities (ml_dtypes' float8_e4m3fn), E5M2 as IEEE 754 would.
            Dtype::F8_E4M3 if byte & 0x7f == 0x7f => f64::NAN,
            Dtype::F8_E4M3 => small(byte, 3, 7),
            Dtype::F8_E5M2 if byte & 0x7c == 0x7c => match byte {
                0x7c => f64::INFINITY,
                0xfc => f64::NEG_INFINITY,
                _ => f64::NAN,
            },
            Dtype::F8_E5M2 => small(byte, 2, 15),
            // Noune et al. 2022: no infinities, no negative zero, whose pattern is the only NaN.
            Dtype::F8_E4M3FNUZ | Dtype::F8_E5M2FNUZ if byte == 0x80 => f64::NAN,
            Dtype::F8_E4M3FNUZ => small(byte, 3, 8),
            Dtype::F8_E5M2FNUZ => small(byte, 2, 16),
            // The scale of the OCP microscaling formats: an exponent alone.
            Dtype::F8_E8M0 if byte == 0xff => f64::NAN,
            Dtype::F8_E8M0 => f64::from(i32::from(byte) - 127).exp2(),
            _ => return None,
        })
    };
    value(0)?;
    Some(std::array::from_fn(|byte| value(byte as u8).unwrap_or(f64::NAN) as f32))
}

/// A byte of one sign bit, an exponent and `mantissa` bits as a number; subnormal at exponent 0.
fn small(byte: u8, mantissa: u32, bias: i32) -> f64 {
    let exponent = i32::from(byte & 0x7f) >> mantissa;
    let fraction = f64::from(u32::from(byte) & ((1 << mantissa) - 1)) / f64::from(1u32 << mantissa);
    let magnitude = match exponent {
        0 => fraction * f64::from(1 - bias).exp2(),
        _ => (1.0 + fraction) * f64::from(exponent - bias).exp2(),
    };
    if byte & 0x80 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIGHT: [Dtype; 5] = [Dtype::F8_E4M3, Dtype::F8_E5M2, Dtype::F8_E4M3FNUZ, Dtype::F8_E5M2FNUZ, Dtype::F8_E8M0];

    /// Largest value, smallest above 0, and number of NaN patterns: the tables of the papers and of the OCP specification.
    /// python/checks/check_weights.py compares every pattern with ml_dtypes.
    #[test]
    fn eight_bit_types_have_their_limits() {
        let known = [(448.0, -9, 2), (57344.0, -16, 6), (240.0, -10, 1), (57344.0, -17, 1), (127f32.exp2(), -127, 1)];
        for (dtype, (largest, smallest, nans)) in EIGHT.into_iter().zip(known) {
            let table = eight_bits(dtype).expect("8 bits");
            let finite = || table.into_iter().filter(|v| v.is_finite());
            assert_eq!(finite().fold(0.0, f32::max), largest, "{dtype:?}");
            assert_eq!(finite().filter(|v| *v > 0.0).fold(f32::MAX, f32::min), (smallest as f32).exp2(), "{dtype:?}");
            assert_eq!(table.iter().filter(|v| v.is_nan()).count(), nans, "{dtype:?}");
        }
    }

    #[test]
    fn wide_types_are_read_from_any_address() {
        let bytes = [0u8, 0, 0, 0xc0, 0x3f, 0xff, 0xff, 0x7f, 0xff];
        let (mut f32s, mut f64s) = (Vec::new(), Vec::new());
        to_f32(Dtype::F32, &bytes[1..], &mut f32s).expect("real");
        to_f64(Dtype::F32, &bytes[1..], &mut f64s).expect("real");
        to_f64(Dtype::BF16, &bytes[3..5], &mut f64s).expect("real");
        to_f64(Dtype::F16, &bytes[3..5], &mut f64s).expect("real");
        assert_eq!(f32s, [1.5, -f32::from_bits(0x7f7f_ffff)].map(|v| if v < 0.0 { f32s[1] } else { v }));
        assert_eq!(f64s[0], 1.5);
        assert_eq!(f64s[2..], [1.5, 1.9375]);
        for dtype in [Dtype::I8, Dtype::F4, Dtype::F6_E2M3, Dtype::C64, Dtype::BOOL] {
            assert!(!is_real(dtype));
            let refused = to_f32(dtype, &[0; 8], &mut f32s).expect_err("no reals").to_string();
            assert!(refused.contains(&format!("{dtype:?}")), "{refused}");
        }
        assert!(EIGHT.into_iter().all(is_real));
    }
}
