//! OpenBLAS's own threads, which are in the way where many small matrices are worked on in parallel.

use std::sync::{Mutex, PoisonError};

unsafe extern "C" {
    fn openblas_set_num_threads(threads: libc::c_int);
    fn openblas_get_num_threads() -> libc::c_int;
}

/// How many callers want one thread now, and the number to go back to when the last is done: the setting is the
/// process's, and callers overlap.
static CALLERS: Mutex<(usize, libc::c_int)> = Mutex::new((0, 1));

/// Runs `f` with OpenBLAS using one thread per call, for work that is itself spread over threads.
pub fn with_single_threaded_blas<R>(f: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            let mut callers = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
            callers.0 -= 1;
            if callers.0 == 0 {
                // SAFETY: sets a number inside OpenBLAS.
                unsafe { openblas_set_num_threads(callers.1) }
            }
        }
    }
    {
        let mut callers = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
        callers.0 += 1;
        if callers.0 == 1 {
            // SAFETY: reads and sets a number inside OpenBLAS.
            unsafe {
                callers.1 = openblas_get_num_threads();
                openblas_set_num_threads(1);
            }
        }
    }
    let _leave = Leave;
    f()
}
