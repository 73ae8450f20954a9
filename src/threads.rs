//! Other threads: how many are worth having, and dropping what is large without waiting for it.
//!
//! In: values to drop. Out: a number. May not: be given what has to be dropped before the process
//! ends.

use std::sync::LazyLock;

/// How many threads can run at once. The system is asked once: it reads a handful of files each
/// time.
pub(crate) fn cores() -> usize {
    static CORES: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *CORES
}

/// What comes of less text than this is dropped sooner than a thread starts.
const WORTH_A_THREAD: usize = 1 << 16;

/// Drops what was made of so many bytes of text: in another thread, where that makes so many small
/// parts that it takes a while.
pub(crate) fn drop_aside<T: Send + 'static>(value: T, bytes: usize) {
    if bytes >= WORTH_A_THREAD {
        std::thread::spawn(move || drop(value));
    }
}
