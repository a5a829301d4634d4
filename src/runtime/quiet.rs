//! Silence while libraries are loaded: XLA's static initialisers print then, and no setting reaches them.
//!
//! The loader runs an executable's `.preinit_array` before the initialisers of any library and its `.init_array` after
//! them all, still before `main`. The first of the two functions here points standard error at `/dev/null`, the second
//! brings it back, so nothing of the program's own is lost. With `-v` or `--verbose` on the command line both stay out
//! of the way, which also shows why a library aborted while it was loaded. Plugins, which are loaded later, print the
//! same way: [`quietly`].

use std::ffi::c_int;

// A notebook loads the crate as a shared library, which has no `.preinit_array`; its kernel sees to the silence.
#[cfg(all(target_os = "linux", target_env = "gnu", not(feature = "notebook")))]
mod start {
    use std::ffi::{CStr, c_char, c_int};
    use std::sync::atomic::{AtomicI32, Ordering};

    use super::{hide, show};

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
        // SAFETY: the loader passes `count` C strings.
        let asked = (1..usize::try_from(count).unwrap_or(0)).any(|i| unsafe {
            let argument = CStr::from_ptr(*arguments.add(i));
            argument == c"-v" || argument == c"--verbose"
        });
        if !asked {
            SAVED.store(hide(), Ordering::Relaxed);
        }
    }

    unsafe extern "C" fn restore(_: c_int, _: *const *const c_char) {
        show(SAVED.swap(-1, Ordering::Relaxed));
    }
}

/// Runs `f` with standard error pointed at `/dev/null`, for the whole process.
pub(super) fn quietly<T>(f: impl FnOnce() -> T) -> T {
    let saved = hide();
    let result = f();
    show(saved);
    result
}

/// Points standard error at `/dev/null`. The descriptor that keeps the real one; -1 when nothing was changed.
fn hide() -> c_int {
    // SAFETY: the system calls take descriptors and a valid path.
    unsafe {
        let saved = libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 3);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        let hidden = saved >= 0 && null >= 0 && libc::dup2(null, libc::STDERR_FILENO) >= 0;
        if null >= 0 {
            libc::close(null);
        }
        if saved >= 0 && !hidden {
            libc::close(saved);
        }
        if hidden { saved } else { -1 }
    }
}

/// Brings back what [`hide`] kept.
fn show(saved: c_int) {
    if saved >= 0 {
        // SAFETY: `saved` is a descriptor that `hide` opened and nobody else knows.
        unsafe {
            libc::dup2(saved, libc::STDERR_FILENO);
            libc::close(saved);
        }
    }
}
