//! Constants as HLO text: every value in full, so that what is parsed back is what was meant.

use half::{bf16, f16};

use crate::array::{Array, DType};

pub(super) fn lowest(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "false",
        DType::I8 => "-128",
        DType::I16 => "-32768",
        DType::I32 => "-2147483648",
        DType::I64 => "-9223372036854775808",
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => "0",
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => "-inf",
    }
}

pub(super) fn highest(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "true",
        DType::I8 => "127",
        DType::I16 => "32767",
        DType::I32 => "2147483647",
        DType::I64 => "9223372036854775807",
        DType::U8 => "255",
        DType::U16 => "65535",
        DType::U32 => "4294967295",
        DType::U64 => "18446744073709551615",
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => "inf",
    }
}

/// Every value, in nested braces.
pub(super) fn literal(value: &Array) -> String {
    let elements = elements(value);
    fn nest(out: &mut String, dims: &[usize], elements: &[String]) {
        let Some((&n, rest)) = dims.split_first() else {
            out.push_str(&elements[0]);
            return;
        };
        out.push('{');
        let step: usize = rest.iter().product();
        for i in 0..n {
            if i > 0 {
                out.push_str(", ");
            }
            nest(out, rest, &elements[i * step..(i + 1) * step]);
        }
        out.push('}');
    }
    let mut out = String::new();
    if value.is_empty() && !value.dims().is_empty() {
        return "{}".into();
    }
    nest(&mut out, value.dims(), &elements);
    out
}

fn elements(value: &Array) -> Vec<String> {
    macro_rules! read {
        ($t:ty, $f:expr) => {
            value
                .bytes()
                .chunks_exact(value.dtype().size())
                .map(|b| $f(<$t as crate::array::Element>::read_le(b)))
                .collect()
        };
    }
    let float = |v: f64| match v {
        v if v.is_nan() => "nan".to_string(),
        v if v.is_infinite() => (if v > 0.0 { "inf" } else { "-inf" }).to_string(),
        v => format!("{v:?}"),
    };
    match value.dtype() {
        DType::Bool => read!(bool, |v: bool| v.to_string()),
        DType::I8 => read!(i8, |v: i8| v.to_string()),
        DType::I16 => read!(i16, |v: i16| v.to_string()),
        DType::I32 => read!(i32, |v: i32| v.to_string()),
        DType::I64 => read!(i64, |v: i64| v.to_string()),
        DType::U8 => read!(u8, |v: u8| v.to_string()),
        DType::U16 => read!(u16, |v: u16| v.to_string()),
        DType::U32 => read!(u32, |v: u32| v.to_string()),
        DType::U64 => read!(u64, |v: u64| v.to_string()),
        DType::F16 => read!(f16, |v: f16| float(v.to_f64())),
        DType::BF16 => read!(bf16, |v: bf16| float(v.to_f64())),
        // Shortest text that reads back as the same value.
        DType::F32 => read!(f32, |v: f32| if v.is_finite() { format!("{v:?}") } else { float(f64::from(v)) }),
        DType::F64 => read!(f64, float),
    }
}
