//! What a program needs of memory, as its compiler planned it.

use std::ffi::{CStr, c_char};

use super::device::quiet;
use super::signature::module;
use super::xla_error;
use crate::error::{Error, Result};
use crate::graph::Program;

/// Bytes that one call of a compiled program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// All arguments.
    pub arguments: u64,
    /// All results, those in donated arguments included.
    pub results: u64,
    /// Results that take over the memory of donated arguments.
    pub donated: u64,
    /// Intermediate values: what rematerialisation lowers. The compiler plans them as one block, in which values that do
    /// not live at the same time share their place.
    pub temporaries: u64,
}

impl MemoryStats {
    /// What a call holds: arguments, results beside them, and temporaries.
    pub fn total(&self) -> u64 {
        self.arguments + self.results.saturating_sub(self.donated) + self.temporaries
    }
}

// In memory.cc.
unsafe extern "C" {
    fn sinexp_memory_stats(module: *const c_char, size: usize, out: *mut [i64; 4]) -> *mut c_char;
}

/// Compiles `program` for the in-process CPU, without running it, and returns the memory that the compiler planned.
///
/// The plan is the CPU compiler's, for one replica: another platform fuses and orders otherwise, so its temporaries
/// differ while arguments and results are the same. Scratch space inside library calls (matrix products) is not in it.
/// The executable is thrown away, so this costs one compilation.
///
/// What [`checkpoint`](crate::graph::checkpoint) saves shows here for blocks in a [`scan`](crate::graph::scan). For blocks
/// written out one after the other the CPU compiler takes the barrier away and merges what is computed twice: it plans
/// the same memory with and without, for JAX's programs too.
pub fn memory_stats(program: &Program) -> Result<MemoryStats> {
    quiet();
    let bytes = module(program)?.to_bytes().map_err(xla_error)?;
    let mut out = [0i64; 4];
    // SAFETY: `bytes` and `out` live through the call, which reads `size` bytes, writes four numbers and keeps neither.
    let failure = unsafe { sinexp_memory_stats(bytes.as_ptr().cast(), bytes.len(), &raw mut out) };
    if !failure.is_null() {
        // SAFETY: a C string from malloc, ours to free once.
        let text = unsafe {
            let text = CStr::from_ptr(failure).to_string_lossy().into_owned();
            libc::free(failure.cast());
            text
        };
        return Err(Error::Xla(text));
    }
    let [arguments, results, donated, temporaries] = out.map(|n| u64::try_from(n).unwrap_or(0));
    Ok(MemoryStats { arguments, results, donated, temporaries })
}
