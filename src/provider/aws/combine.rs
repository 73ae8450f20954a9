//! Combines concurrent requests into batched calls.
//!
//! In: items, each from its own thread. Out: each thread gets its item's answer. Must not: wait for
//! further items. The first caller starts at once, and those that come during its call share the
//! next one. So a single caller loses no time, and many callers make few calls.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::provider::{CloudError, CloudErrorKind};

/// Batches of one kind of call; items share a call if their keys (`K`) are equal.
pub(super) struct Combiner<K, T, O> {
    /// The maximum number of items per call.
    most: usize,
    desk: Mutex<Desk<K, T, O>>,
    changed: Condvar,
}

struct Desk<K, T, O> {
    next_ticket: u64,
    waiting: Vec<(u64, K, T)>,
    busy: HashSet<K>,
    answers: HashMap<u64, Result<O, CloudError>>,
}

impl<K: Clone + Eq + Hash, T, O> Combiner<K, T, O> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            desk: Mutex::new(Desk {
                next_ticket: 0,
                waiting: Vec::new(),
                busy: HashSet::new(),
                answers: HashMap::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Requests one item. `call` gets items with equal keys, and returns their answers in order.
    ///
    /// Fails with the item's error.
    pub(super) fn ask(
        &self,
        key: &K,
        item: T,
        call: impl Fn(&[T]) -> Vec<Result<O, CloudError>>,
    ) -> Result<O, CloudError> {
        let mut desk = self.desk();
        let ticket = desk.next_ticket;
        desk.next_ticket += 1;
        desk.waiting.push((ticket, key.clone(), item));
        loop {
            if let Some(answer) = desk.answers.remove(&ticket) {
                return answer;
            }
            if desk.busy.contains(key) {
                desk = self
                    .changed
                    .wait(desk)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // The first idle thread takes all waiting items; its own is among them or in the next
            // batch.
            let (tickets, items) = desk.take(key, self.most);
            desk.busy.insert(key.clone());
            drop(desk);
            let turn = Turn {
                combiner: self,
                key,
                tickets,
            };
            let answers = call(&items);
            turn.end(answers);
            desk = self.desk();
        }
    }

    /// The number of items that wait for a call.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.desk().waiting.len()
    }

    fn desk(&self) -> MutexGuard<'_, Desk<K, T, O>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq, T, O> Desk<K, T, O> {
    fn take(&mut self, key: &K, most: usize) -> (Vec<u64>, Vec<T>) {
        let mut tickets = Vec::new();
        let mut items = Vec::new();
        let mut left = Vec::with_capacity(self.waiting.len());
        for (ticket, own, item) in self.waiting.drain(..) {
            if own == *key && items.len() < most {
                tickets.push(ticket);
                items.push(item);
            } else {
                left.push((ticket, own, item));
            }
        }
        self.waiting = left;
        (tickets, items)
    }
}

/// A running call. Dropping it answers all its waiters, even after a panic.
struct Turn<'c, K: Clone + Eq + Hash, T, O> {
    combiner: &'c Combiner<K, T, O>,
    key: &'c K,
    tickets: Vec<u64>,
}

impl<K: Clone + Eq + Hash, T, O> Turn<'_, K, T, O> {
    fn end(mut self, answers: Vec<Result<O, CloudError>>) {
        let tickets = std::mem::take(&mut self.tickets);
        self.combiner
            .desk()
            .answers
            .extend(tickets.into_iter().zip(answers));
    }
}

impl<K: Clone + Eq + Hash, T, O> Drop for Turn<'_, K, T, O> {
    fn drop(&mut self) {
        let mut desk = self.combiner.desk();
        desk.busy.remove(self.key);
        for ticket in self.tickets.drain(..) {
            let error = CloudError::new(
                CloudErrorKind::Ambiguous,
                "Unanswered",
                "the call that this one was part of broke off",
            );
            desk.answers.insert(ticket, Err(error));
        }
        self.combiner.changed.notify_all();
    }
}

/// Makes one call for all items. If it is rejected, one item may be the cause, so calls for each
/// item separately. A retryable error isn't about a single item.
///
/// Each item fails or succeeds separately.
pub(super) fn together_or_alone<T, O: Clone>(
    items: &[T],
    call: impl Fn(&[T]) -> Result<O, CloudError>,
) -> Vec<Result<O, CloudError>> {
    match call(items) {
        Err(error) if items.len() > 1 && !error.kind.is_retryable() => items
            .iter()
            .map(|item| call(std::slice::from_ref(item)))
            .collect(),
        answer => vec![answer; items.len()],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// The first call blocks until all other items wait; they share the next ones.
    #[test]
    fn who_comes_during_a_call_shares_the_next() {
        let combiner: Combiner<&str, usize, usize> = Combiner::new(6);
        let sizes = Mutex::new(Vec::new());
        let (open, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let calls = AtomicUsize::new(0);
        let call = |items: &[usize]| {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                gate.lock().unwrap().recv().unwrap();
            }
            sizes.lock().unwrap().push(items.len());
            items.iter().map(|item| Ok(item * 10)).collect()
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| combiner.ask(&"k", 0, call));
            while calls.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let others: Vec<_> = (1..=10)
                .map(|item| {
                    let (combiner, call) = (&combiner, &call);
                    scope.spawn(move || combiner.ask(&"k", item, call))
                })
                .collect();
            while combiner.desk().waiting.len() < 10 {
                std::thread::yield_now();
            }
            open.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(0));
            for (index, other) in others.into_iter().enumerate() {
                assert_eq!(other.join().unwrap(), Ok((index + 1) * 10));
            }
        });
        assert_eq!(*sizes.lock().unwrap(), [1, 6, 4]);
        let desk = combiner.desk();
        assert!(desk.answers.is_empty() && desk.busy.is_empty() && desk.waiting.is_empty());
    }

    #[test]
    fn different_keys_dont_wait_for_each_other() {
        let combiner: Combiner<u8, u8, u8> = Combiner::new(10);
        let (said, heard) = mpsc::channel();
        let heard = Mutex::new(heard);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                combiner.ask(&1, 1, |items| {
                    // Answered while this call runs, or not at all.
                    let other = heard
                        .lock()
                        .unwrap()
                        .recv_timeout(Duration::from_secs(20))
                        .unwrap();
                    assert_eq!(other, 2);
                    vec![Ok(items[0])]
                })
            });
            scope.spawn(|| {
                let answer = combiner.ask(&2, 2, |items| vec![Ok(items[0])]);
                said.send(answer.unwrap()).unwrap();
            });
        });
    }

    #[test]
    fn a_batch_that_one_spoils_is_asked_one_by_one() {
        let error = |kind| CloudError::new(kind, "Code", "m");
        let call = |items: &[u32]| {
            if items.contains(&3) {
                Err(error(CloudErrorKind::Denied))
            } else {
                Ok(())
            }
        };
        assert_eq!(
            together_or_alone(&[1, 3, 5], call),
            [Ok(()), Err(error(CloudErrorKind::Denied)), Ok(())]
        );
        let throttled = AtomicUsize::new(0);
        let answers = together_or_alone(&[1, 2], |_| -> Result<(), _> {
            throttled.fetch_add(1, Ordering::SeqCst);
            Err(error(CloudErrorKind::Throttled))
        });
        assert_eq!(answers.len(), 2);
        assert_eq!(throttled.load(Ordering::SeqCst), 1);
    }
}
