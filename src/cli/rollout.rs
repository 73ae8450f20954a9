//! In which order the shards of an apply get their turn.
//!
//! In: shards whose plans only wait for a yes. Out: how each ended. May not: do anything to a shard
//! itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::apply_shard::Work;
use super::outcome::Ended;
use super::progress::Board;
use super::signals::Graceful;
use crate::report::text::ShardEnd;

/// How the shards follow each other.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How many at once.
    pub at_once: usize,
    /// Whether others are begun after one has failed.
    pub continue_on_error: bool,
}

/// Carries everything out, in the order given. After a failure no further shard is begun, unless
/// the pace says otherwise; after a signal none.
pub fn roll_out(
    works: Vec<Work<'_, '_>>,
    operation: &str,
    pace: Pace,
    board: &Board,
    signals: &Graceful,
) -> Vec<Ended> {
    let ends = Mutex::new(vec![None; works.len()]);
    let threads = pace.at_once.min(works.len());
    let queue = Mutex::new(works.into_iter().enumerate());
    let failed = AtomicBool::new(false);
    let work = || {
        loop {
            let halted = failed.load(Ordering::SeqCst) && !pace.continue_on_error;
            if halted || signals.code().is_some() {
                return;
            }
            // A shard that panics takes the run with it; its neighbours' places in line are sound.
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, work)) = next else { return };
            let ended = work.carry_out(operation, board, signals);
            if ended.end == ShardEnd::Failed {
                failed.store(true, Ordering::SeqCst);
            }
            ends.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(ended);
        }
    };
    if threads <= 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
    let not_tried = Ended::not_tried(signals.code());
    ends.into_iter()
        .map(|ended| ended.unwrap_or(not_tried))
        .collect()
}
