//! A quiet start: XLA's static initialisers print before `main`, where no setting reaches them.
//!
//! The loader runs an executable's `.preinit_array` before the initialisers of any library and its `.init_array` after
//! them all, still before `main`. The first of the two functions here points standard error at `/dev/null`, the second
//! brings it back, so nothing of the program's own is lost. With `-v` or `--verbose` on the command line both stay out
//! of the way, which also shows why a library aborted while it was loaded.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

type Initialiser = unsafe extern "C" fn(c_int, *const *const c_char);

#[used]
#[unsafe(link_section = ".preinit_array")]
static BEFORE_LIBRARIES: Initialiser = silence;

#[used]
#[unsafe(link_section = ".init_array")]
static AFTER_LIBRARIES: Initialiser = restore;

/// The real standard error while it is silenced, else -1.
static SAVED: AtomicI32 = AtomicI32::new(-1);

/// Runs before Rust's and C's runtimes are set up: system calls only.
unsafe extern "C" fn silence(count: c_int, arguments: *const *const c_char) {
    // SAFETY: the loader passes `count` C strings; the system calls take descriptors and a valid path.
    unsafe {
        let mut given = (1..usize::try_from(count).unwrap_or(0)).map(|i| CStr::from_ptr(*arguments.add(i)));
        if given.any(|a| a == c"-v" || a == c"--verbose") {
            return;
        }
        let saved = libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 3);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if saved >= 0 && null >= 0 && libc::dup2(null, libc::STDERR_FILENO) >= 0 {
            SAVED.store(saved, Ordering::Relaxed);
        } else if saved >= 0 {
            libc::close(saved);
        }
        if null >= 0 {
            libc::close(null);
        }
    }
}

unsafe extern "C" fn restore(_: c_int, _: *const *const c_char) {
    let saved = SAVED.swap(-1, Ordering::Relaxed);
    if saved >= 0 {
        // SAFETY: `saved` is a descriptor that `silence` opened and nobody else knows.
        unsafe {
            libc::dup2(saved, libc::STDERR_FILENO);
            libc::close(saved);
        }
    }
}
