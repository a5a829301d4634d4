//! Constants: the values between `constant(` and `)`.

use half::{bf16, f16};

use super::lex::{Lexer, Token, short};
use crate::array::{Array, DType, Element};
use crate::graph::Shape;

/// The array of this shape that the text writes.
pub(super) fn constant(text: &str, line: usize, shape: &Shape) -> Result<Array, String> {
    let mut lex = Lexer::new(text, line);
    let rank = shape.rank();
    // Elements below one entry of each depth.
    let below: Vec<usize> = (0..=rank).map(|d| shape.dims[d..].iter().product()).collect();
    let mut bytes = Vec::new();
    let (mut opened, mut count) = (Vec::new(), 0usize);
    loop {
        match lex.next() {
            Token::End => break,
            Token::Mark('{') => opened.push(count),
            Token::Mark('}') => {
                let Some(start) = opened.pop() else { return Err("a `}` too many".into()) };
                let due = below.get(opened.len()).copied().unwrap_or(0);
                if count - start != due {
                    return Err(format!("{} values between braces, {shape} has {due} there", count - start));
                }
            }
            Token::Mark(',') => {}
            Token::Word(word) if word.chars().all(|c| c == '.') => return Err(elided()),
            Token::Word(word) => {
                if opened.len() != rank || count == below[0] {
                    return Err(format!("`{}` does not stand where {shape} has a value", short(word)));
                }
                // `nan(0x400000)` has its bits written behind it.
                if word.ends_with("nan") && lex.eat('(') {
                    lex.enclosed()?;
                }
                push(&mut bytes, shape.dtype, word)
                    .ok_or_else(|| format!("`{}` is not a value of {}", short(word), shape.dtype))?;
                count += 1;
            }
            other => return Err(format!("a value is expected, found {other}")),
        }
    }
    if count != below[0] || !opened.is_empty() {
        return Err(format!("{count} values for {shape}"));
    }
    Array::from_bytes(shape.dtype, &shape.dims, bytes).map_err(|e| e.to_string())
}

fn elided() -> String {
    "its values are left out (`{...}`), as in XLA's short form for people: write the text anew, in JAX with \
     `as_hlo_text(print_large_constants=True)`, or use the HLO proto"
        .into()
}

fn push(out: &mut Vec<u8>, dtype: DType, word: &str) -> Option<()> {
    macro_rules! integer {
        ($t:ty) => {
            <$t>::try_from(integer(word)?).ok()?.write_le(out)
        };
    }
    match dtype {
        DType::Bool => match word {
            "true" | "1" => true.write_le(out),
            "false" | "0" => false.write_le(out),
            _ => return None,
        },
        DType::I8 => integer!(i8),
        DType::I16 => integer!(i16),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::U8 => integer!(u8),
        DType::U16 => integer!(u16),
        DType::U32 => integer!(u32),
        DType::U64 => integer!(u64),
        DType::F16 => f16::from_f64(float(word)?).write_le(out),
        DType::BF16 => bf16::from_f64(float(word)?).write_le(out),
        // Rounded once, from the decimal digits.
        DType::F32 => word.parse::<f32>().ok().or_else(|| float(word).map(|v| v as f32))?.write_le(out),
        DType::F64 => float(word)?.write_le(out),
    }
    Some(())
}

fn integer(word: &str) -> Option<i128> {
    let (negative, digits) = word.strip_prefix('-').map_or((false, word), |d| (true, d));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
        None if digits.starts_with('-') => return None,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

/// Decimal, `inf`, `nan` or hexadecimal (`0x1.8p3`).
fn float(word: &str) -> Option<f64> {
    let (negative, digits) = word.strip_prefix('-').map_or((false, word), |d| (true, d));
    let Some(hex) = digits.strip_prefix("0x") else { return word.parse().ok() };
    let (mantissa, exponent) = hex.split_once('p').unwrap_or((hex, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    let value = digits as f64 * 2f64.powi(exponent.clamp(-1200, 1200));
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Element>(dims: &[usize], text: &str) -> Result<Vec<T>, String> {
        Ok(constant(text, 1, &Shape::new(T::DTYPE, dims))?.to_vec().expect("its type"))
    }

    #[test]
    fn values_of_every_kind() {
        let f: Vec<f32> = read(&[6], "{-0, inf, -inf, 1.17549435e-38, 0x1.8p3, 3.40282347e+38}").expect("values");
        assert_eq!(f[0].to_bits(), 0x8000_0000);
        assert_eq!(f[1..], [f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, 12.0, f32::MAX]);
        assert!(read::<f32>(&[], "nan(0x400000)").expect("values")[0].is_nan());
        assert!(read::<f64>(&[], "-nan").expect("values")[0].is_nan());
        assert_eq!(read::<bf16>(&[], "0.333333343").expect("values")[0], bf16::from_f32(1.0 / 3.0));
        assert_eq!(read::<u64>(&[], "18446744073709551615").expect("values"), [u64::MAX]);
        assert_eq!(read::<i8>(&[2], "{-128, 0x7f}").expect("values"), [-128, 127]);
        assert_eq!(read::<bool>(&[2, 1], "{ { true }, /*i0=1*/ { 0 } }").expect("values"), [true, false]);
        assert_eq!(read::<i32>(&[2, 0], "{ {}, {} }").expect("values"), [0i32; 0]);
        assert_eq!(read::<i32>(&[2, 0], "{}").expect("values"), [0i32; 0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(read::<f32>(&[100], "{...}").expect_err("elided").contains("print_large_constants"));
        for (dims, text) in [(&[2][..], "{1}"), (&[2, 2], "{{1,2,3},{4}}"), (&[], "{1}"), (&[1], "{{1}}"), (&[], "x")] {
            assert!(read::<f32>(dims, text).is_err(), "{text}");
        }
        for text in ["128", "1.5", "--1", "", "{", "}"] {
            assert!(read::<i8>(&[], text).is_err(), "{text}");
        }
    }
}
