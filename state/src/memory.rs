//! A state in memory, for tests and simulations.
//!
//! In: calls of any [`Store`]. Out: the same results as with a file. The disk lives as long as it
//! is referenced. It can be copied and restored, so that a process can "die" between two commits.
//! Must not: touch files. Nothing is encrypted, since nothing leaves the process.
//!
//! Each commit changes a copy of everything, which replaces the old one on success. That is slow
//! for large fleets, but atomic.

mod rollouts;
mod tables;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::check::Problem;
use crate::error::{Result, StateError};
use crate::history;
use crate::model::{
    Apply, ApplyId, FetchedRow, HistoryItem, Identity, ImageRow, Intent, LockInfo, Meta, Record,
    Rollout, RolloutId, RolloutRequest, SpecDigest, Timestamp,
};
use crate::seal::NewKey;
use crate::snapshot::Snapshot;
use crate::store::{Backend, Held, Store, Write, Written};
use tables::{Change, Tables};

/// A simulated disk with one state, for any number of processes.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    content: Mutex<Content>,
    unlocked: Condvar,
}

#[derive(Debug, Default)]
struct Content {
    state: Option<Arc<Tables>>,
    /// The lock with its number.
    lock: Option<(u64, LockInfo)>,
    locks: u64,
    is_full: bool,
}

/// The contents of a disk at one moment.
#[derive(Clone, Debug)]
pub struct MemoryImage(Option<Arc<Tables>>);

impl MemoryDisk {
    /// The current contents, which a crash at this moment would leave.
    pub fn image(&self) -> MemoryImage {
        MemoryImage(self.content().state.clone())
    }

    /// Restores earlier contents; releases the lock.
    pub fn restore(&self, image: &MemoryImage) {
        let mut content = self.content();
        content.state.clone_from(&image.0);
        content.lock = None;
        self.0.unlocked.notify_all();
    }

    /// Takes the lock away from its holder, unnoticed.
    pub fn lose_lock(&self) {
        self.content().lock = None;
        self.0.unlocked.notify_all();
    }

    /// Sets whether commits fail because the disk is full.
    pub fn set_full(&self, is_full: bool) {
        self.content().is_full = is_full;
    }

    fn open(&self, expected: Option<&Identity>, writes: bool) -> Result<Box<dyn Store>> {
        let content = self.content();
        let Some(state) = &content.state else {
            return Err(StateError::NotFound { path: place() });
        };
        let found = &state.meta.identity;
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(StateError::Foreign {
                path: place(),
                expected: Box::new(expected.clone()),
                found: Box::new(found.clone()),
            });
        }
        Ok(Box::new(MemoryStore {
            disk: self.clone(),
            fence: state.fence,
            writes,
        }))
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        // Commits are atomic, so a poisoned disk is still consistent.
        self.0
            .content
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path in errors.
fn place() -> PathBuf {
    PathBuf::from("(memory)")
}

impl Backend for MemoryDisk {
    fn place(&self) -> PathBuf {
        place()
    }

    fn create(
        &self,
        identity: &Identity,
        lineage: &str,
        now: Timestamp,
        _key: Option<&NewKey>,
    ) -> Result<Box<dyn Store>> {
        let mut content = self.content();
        if content.state.is_some() {
            return Err(StateError::Exists { path: place() });
        }
        content.state = Some(Arc::new(Tables::new(identity, lineage, now)));
        drop(content);
        self.open_to_write(Some(identity))
    }

    fn open_to_write(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>> {
        self.open(expected, true)
    }

    fn open_to_read(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>> {
        self.open(expected, false)
    }

    fn lock(
        &self,
        info: LockInfo,
        timeout: Duration,
        on_wait: &mut dyn FnMut(&LockInfo),
    ) -> Result<Box<dyn Held>> {
        let started = Instant::now();
        let mut content = self.content();
        let mut reported = None;
        while let Some((number, holder)) = &content.lock {
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                let holder = Box::new(holder.clone());
                return Err(StateError::Locked { holder });
            }
            if reported.replace(*number) != Some(*number) {
                on_wait(holder);
            }
            let waited = self.0.unlocked.wait_timeout(content, left);
            content = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        content.locks += 1;
        let number = content.locks;
        content.lock = Some((number, info.clone()));
        drop(content);
        Ok(Box::new(MemoryLock {
            disk: self.clone(),
            number,
            info,
        }))
    }

    fn url(&self) -> String {
        "memory:".to_owned()
    }

    fn receive(&self, _copy: &Path) -> Result<()> {
        Err(StateError::ReadOnly { path: place() })
    }

    fn holder(&self) -> Result<Option<LockInfo>> {
        Ok(self.content().lock.as_ref().map(|(_, info)| info.clone()))
    }

    fn remains(&self) -> Result<Option<LockInfo>> {
        Ok(None)
    }

    fn break_stale(&self, _id: &str) -> Result<LockInfo> {
        Err(match self.holder()? {
            Some(holder) => StateError::Locked {
                holder: Box::new(holder),
            },
            None => StateError::NotLocked { path: place() },
        })
    }
}

/// A held lock of a [`MemoryDisk`].
struct MemoryLock {
    disk: MemoryDisk,
    number: u64,
    info: LockInfo,
}

impl Held for MemoryLock {
    fn info(&self) -> &LockInfo {
        &self.info
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut content = self.disk.content();
        // Only release it if it wasn't lost to another holder.
        content.lock.take_if(|(number, _)| *number == self.number);
        self.disk.0.unlocked.notify_all();
    }
}

/// An open state in memory.
#[derive(Debug)]
pub struct MemoryStore {
    disk: MemoryDisk,
    /// The last fencing token that this writer knows.
    fence: u64,
    writes: bool,
}

impl MemoryStore {
    fn tables(&self) -> Result<Arc<Tables>> {
        let state = self.disk.content().state.clone();
        state.ok_or_else(|| StateError::NotFound { path: place() })
    }

    fn change<R>(
        &mut self,
        now: Timestamp,
        change: impl FnOnce(&mut Change) -> Result<R>,
    ) -> Result<R> {
        if !self.writes {
            return Err(StateError::ReadOnly { path: place() });
        }
        let mut content = self.disk.content();
        let Some(state) = &content.state else {
            return Err(StateError::NotFound { path: place() });
        };
        if state.fence != self.fence {
            return Err(StateError::Fenced { path: place() });
        }
        if let Some(to) = &state.meta.moved_to {
            return Err(StateError::Moved {
                path: place(),
                to: to.clone(),
            });
        }
        let mut changing = Change::new(Tables::clone(state), now);
        let result = change(&mut changing)?;
        if content.is_full {
            return Err(StateError::Full { path: place() });
        }
        let tables = changing.finish();
        self.fence = tables.fence;
        content.state = Some(Arc::new(tables));
        Ok(result)
    }
}

impl Store for MemoryStore {
    fn place(&self) -> PathBuf {
        place()
    }

    fn meta(&self) -> Result<Meta> {
        Ok(self.tables()?.meta.clone())
    }

    fn unlock(&self) -> Result<()> {
        Ok(())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.tables()?.snapshot())
    }

    fn outline(&self) -> Result<Vec<Record>> {
        Ok(self.snapshot()?.records)
    }

    fn open_intents(&self) -> Result<Vec<Intent>> {
        Ok(self.snapshot()?.intents)
    }

    fn specs(&self, digests: &[SpecDigest]) -> Result<HashMap<SpecDigest, Arc<[u8]>>> {
        let tables = self.tables()?;
        let found = digests.iter().filter_map(|digest| {
            let spec = tables.specs.get(digest)?;
            Some((*digest, Arc::clone(spec)))
        });
        Ok(found.collect())
    }

    fn images(&self) -> Result<Vec<ImageRow>> {
        Ok(self.tables()?.images.values().cloned().collect())
    }

    fn fetched(&self, url: &str) -> Result<Option<FetchedRow>> {
        Ok(self.tables()?.fetched.get(url).cloned())
    }

    fn observation_cache(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.tables()?.observation_cache.clone())
    }

    fn history(&self, limit: usize) -> Result<Vec<Apply>> {
        let tables = self.tables()?;
        let mut applies: Vec<Apply> = tables.applies.iter().rev().take(limit).cloned().collect();
        history::mark_interrupted(&mut applies, || self.disk.holder())?;
        Ok(applies)
    }

    fn history_items(&self, id: ApplyId) -> Result<Vec<HistoryItem>> {
        let tables = self.tables()?;
        let items = tables.items.iter().filter(|(apply, _)| *apply == id);
        Ok(items.map(|(_, item)| item.clone()).collect())
    }

    fn rollout(&self) -> Result<Option<Rollout>> {
        Ok(self.tables()?.rollouts.rollout())
    }

    fn rollout_plan(&self, id: RolloutId) -> Result<Option<Vec<u8>>> {
        Ok(self.tables()?.rollouts.plan(id))
    }

    fn rollout_requests(&self) -> Result<Vec<RolloutRequest>> {
        Ok(self.tables()?.rollouts.requests.clone())
    }

    fn last_good(&self, groups: &[&str]) -> Result<HashMap<String, Vec<u8>>> {
        let tables = self.tables()?;
        let found = groups.iter().filter_map(|group| {
            let body = tables.rollouts.last_good.get(*group)?;
            Some(((*group).to_owned(), body.clone()))
        });
        Ok(found.collect())
    }

    fn check(&self) -> Result<Vec<Problem>> {
        Ok(Vec::new())
    }

    fn backup(&self, to: &Path) -> Result<()> {
        let source = io::Error::new(io::ErrorKind::Unsupported, "the state is in memory");
        Err(StateError::Io {
            path: to.to_owned(),
            source,
        })
    }

    fn lead(&mut self) -> Result<()> {
        self.change(Timestamp(0), |change| {
            change.lead();
            Ok(())
        })
    }

    fn commit(&mut self, now: Timestamp, batch: Vec<Write>) -> Result<Written> {
        self.change(now, |change| {
            let mut written = Written::default();
            for write in batch {
                change.write(write, &mut written)?;
            }
            Ok(written)
        })
    }

    fn set_busy_timeout(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }
}
