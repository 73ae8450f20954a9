//! Other threads: how many are worth having, and sharing work among them.
//!
//! In: work. Out: what comes of it, in its order. May not: outlive the call.

use std::sync::LazyLock;

/// How many threads can run at once. The system is asked once: it reads a handful of files each
/// time.
pub(crate) fn cores() -> usize {
    static CORES: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *CORES
}

/// So many groups are worth a thread: below it a thread costs more than it gives.
pub(crate) const GROUPS_A_THREAD: usize = 500;

/// What `make` makes of each item, in their order: on all cores, each of which gets `least` items
/// at least.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    least: usize,
    make: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let chunk = items.len().div_ceil(cores()).max(least);
    let mut made: Vec<Option<R>> = Vec::new();
    made.resize_with(items.len(), || None);
    let fill = |items: &[T], places: &mut [Option<R>]| {
        for (item, place) in items.iter().zip(places) {
            *place = Some(make(item));
        }
    };
    std::thread::scope(|scope| {
        let mut parts = items.chunks(chunk).zip(made.chunks_mut(chunk));
        let own = parts.next();
        let workers: Vec<_> = parts
            .map(|(items, places)| scope.spawn(|| fill(items, places)))
            .collect();
        if let Some((items, places)) = own {
            fill(items, places);
        }
        workers.into_iter().for_each(joined);
    });
    // In the same memory.
    made.into_iter()
        .map(|made| made.expect("something is made of each item"))
        .collect()
}

/// What the thread made. Its panic is ours.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(made) => made,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
