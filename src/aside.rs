//! Dropping what is large without waiting for it.
//!
//! In: a value. Out: nothing. May not: be given what has to be dropped before the process ends.

/// What comes of less text than this is dropped sooner than a thread starts.
const WORTH_A_THREAD: usize = 1 << 16;

/// Drops what was made of so many bytes of text: in another thread, where that makes so many small
/// parts that it takes a while.
pub(crate) fn drop_aside<T: Send + 'static>(value: T, bytes: usize) {
    if bytes >= WORTH_A_THREAD {
        std::thread::spawn(move || drop(value));
    }
}
