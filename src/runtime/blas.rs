//! OpenBLAS's own threads, which are in the way where many small matrices are worked on in parallel.

unsafe extern "C" {
    fn openblas_set_num_threads(threads: libc::c_int);
    fn openblas_get_num_threads() -> libc::c_int;
}

/// Runs `f` with OpenBLAS using one thread per call, for work that is itself spread over threads.
pub fn with_single_threaded_blas<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(libc::c_int);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: sets a number inside OpenBLAS.
            unsafe { openblas_set_num_threads(self.0) }
        }
    }
    // SAFETY: reads and sets a number inside OpenBLAS.
    let before = unsafe { openblas_get_num_threads() };
    let _restore = Restore(before);
    unsafe { openblas_set_num_threads(1) };
    f()
}
