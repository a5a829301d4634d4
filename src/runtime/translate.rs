//! Programs from one format to another, by XLA's own parsers, printers and converters.
//!
//! XLA ends the process on some damaged HLO text (and only on that: its StableHLO and protocol buffers give errors), so
//! text of others belongs into a child process; see `interop::hlo`.
//!
//! ```
//! use sinexp::{array::DType, graph::{Program, Shape, Tensor}};
//! use sinexp::runtime::translate::{hlo_text_to_proto, proto_to_stablehlo_text};
//! let x = Tensor::parameter("x", Shape::new(DType::F32, &[3]));
//! let program = Program::new("f", &[x.clone()], &[("y", x.sin())])?;
//! let module = hlo_text_to_proto(&program.text)?;
//! assert!(proto_to_stablehlo_text(&module)?.contains("stablehlo.sine"));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::ffi::{CString, c_char, c_int};
use std::ptr;

use super::device::quiet;
use crate::error::{Error, Result};

// In programs.cc.
unsafe extern "C" {
    fn sinexp_translate(
        what: c_int,
        data: *const c_char,
        size: usize,
        version: *const c_char,
        out: *mut usize,
        ok: *mut c_int,
    ) -> *mut c_char;
}

/// HLO text to a serialised `HloModuleProto`. Elided constants, `{...}`, become wrong numbers: look for them before.
///
/// **Aborts the process** on some damaged texts. **Errors** carry XLA's message.
pub fn hlo_text_to_proto(text: &str) -> Result<Vec<u8>> {
    translate(0, text.as_bytes(), None)
}

/// A serialised `HloModuleProto` as HLO text with all its constants.
///
/// **Errors** carry XLA's message.
pub fn proto_to_hlo_text(module: &[u8]) -> Result<String> {
    translate(1, module, None).and_then(text)
}

/// StableHLO (text, MLIR bytecode, a portable artifact, VHLO) to a serialised `HloModuleProto`.
///
/// **Errors** carry XLA's message.
pub fn stablehlo_to_proto(module: &[u8]) -> Result<Vec<u8>> {
    translate(2, module, None)
}

/// A serialised `HloModuleProto` as a portable artifact of StableHLO `version` (`1.0.0`; see [`stablehlo_version`]).
///
/// **Errors** carry XLA's message.
pub fn proto_to_artifact(module: &[u8], version: &str) -> Result<Vec<u8>> {
    translate(3, module, Some(version))
}

/// A serialised `HloModuleProto` as StableHLO text.
///
/// **Errors** carry XLA's message.
pub fn proto_to_stablehlo_text(module: &[u8]) -> Result<String> {
    translate(3, module, None).and_then(text)
}

/// The newest StableHLO version that XLA here writes for others to read.
pub fn stablehlo_version() -> Result<String> {
    translate(4, &[], None).and_then(text)
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::Xla("a text that is not UTF-8".into()))
}

fn translate(what: c_int, data: &[u8], version: Option<&str>) -> Result<Vec<u8>> {
    quiet();
    let version = version.map(CString::new).transpose().map_err(|e| Error::Xla(e.to_string()))?;
    let (mut size, mut ok) = (0usize, 0);
    let version = version.as_ref().map_or(ptr::null(), |v| v.as_ptr());
    // SAFETY: `data`, `version`, `size` and `ok` live through the call, which keeps none of them.
    let result =
        unsafe { sinexp_translate(what, data.as_ptr().cast(), data.len(), version, &raw mut size, &raw mut ok) };
    if result.is_null() {
        return Err(Error::Xla("out of memory".into()));
    }
    // SAFETY: `size` bytes from malloc, copied once and then freed once.
    let bytes = unsafe {
        let bytes = std::slice::from_raw_parts(result.cast::<u8>(), size).to_vec();
        libc::free(result.cast());
        bytes
    };
    if ok == 1 { Ok(bytes) } else { Err(Error::Xla(String::from_utf8_lossy(&bytes).into_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HloModule f, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\n\
                        ENTRY main {\n  x = f32[2]{0} parameter(0)\n  c = f32[2]{0} constant({0.5, -3})\n  \
                        ROOT y = f32[2]{0} add(x, c)\n}\n";

    #[test]
    fn every_format_comes_back() {
        let proto = hlo_text_to_proto(TEXT).expect("valid");
        let text = proto_to_hlo_text(&proto).expect("valid");
        assert!(text.contains("constant({0.5, -3})") && text.contains("add("), "{text}");
        let stablehlo = proto_to_stablehlo_text(&proto).expect("valid");
        assert!(stablehlo.contains("stablehlo.add") && stablehlo.contains("func.func"), "{stablehlo}");
        let version = stablehlo_version().expect("a version");
        for version in ["0.17.0", "1.0.0", &version] {
            let artifact = proto_to_artifact(&proto, version).expect("valid");
            assert!(artifact.starts_with(b"ML\xefR"));
            for module in [&artifact[..], stablehlo.as_bytes()] {
                let again = proto_to_hlo_text(&stablehlo_to_proto(module).expect("valid")).expect("valid");
                assert!(again.contains("constant({0.5, -3})") && again.contains("add("), "{again}");
            }
        }
    }

    #[test]
    fn what_is_none_is_said() {
        assert!(hlo_text_to_proto("HloModule x\n\nENTRY main { ROOT x = f32[2] floor(y) }").is_err());
        assert!(proto_to_hlo_text(b"\xff\xff").is_err());
        assert!(stablehlo_to_proto(b"module {").is_err());
        assert!(stablehlo_to_proto(b"ML\xefR cut").is_err());
        let proto = hlo_text_to_proto(TEXT).expect("valid");
        assert!(proto_to_artifact(&proto, "no version").is_err());
    }
}
