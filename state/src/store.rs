//! What those who plan and apply need of a state, wherever it is kept.
//!
//! In: nothing. Out: [`Store`], which reads a state and changes it in batches; [`Backend`], which
//! makes, opens and locks it; and [`Write`], of which a batch is made. It may not say how anything
//! is kept.
//!
//! A store is narrow on purpose. An implementation for another place has this to do, and
//! nothing of what plans and applies has to change for it. `tests/it/conformance.rs` says what all
//! of them promise.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::keys::Keys;
use crate::lock::Lock;
use crate::model::{
    Apply, ApplyId, ApplyStatus, FetchedRow, HistoryItem, Identity, ImageRow, Intent, IntentId,
    LockInfo, Meta, NewApply, Outcome, Record, SpecDigest, Timestamp,
};
use crate::seal::NewKey;
use crate::snapshot::Snapshot;
use crate::sqlite::SqliteStore;
use crate::transaction::Transaction;

/// A state that is open.
pub trait Store: Send {
    /// Where it is kept, for messages.
    fn place(&self) -> PathBuf;

    /// What is true of the state as a whole.
    fn meta(&self) -> Result<Meta>;

    /// Everything that a plan needs, as it was at one moment.
    fn snapshot(&self) -> Result<Snapshot>;

    /// The specs with these digests. Those that aren't in the state are left out; what a record or
    /// an open intent refers to is always there.
    fn specs(&self, digests: &[SpecDigest]) -> Result<HashMap<SpecDigest, Arc<[u8]>>>;

    /// The resolved images, by name.
    fn images(&self) -> Result<Vec<ImageRow>>;

    /// What `url` answered when it was last fetched.
    fn fetched(&self, url: &str) -> Result<Option<FetchedRow>>;

    /// The cache of compared observations, as [`Write::PutObservationCache`] stored it.
    fn observation_cache(&self) -> Result<Option<Vec<u8>>>;

    /// The latest `limit` applies, the latest first. One that never ended is running if its
    /// process holds the lock, and interrupted otherwise.
    fn history(&self, limit: usize) -> Result<Vec<Apply>>;

    /// What an apply did, in the order in which it was entered.
    fn history_items(&self, id: ApplyId) -> Result<Vec<HistoryItem>>;

    /// Raises the fencing number: handles opened earlier can't write any more. [`Write::StartApply`]
    /// does it, too.
    ///
    /// Fails with [`crate::StateError::Fenced`] if another handle raised it since this one was opened.
    fn lead(&mut self) -> Result<()>;

    /// Changes the state: all of a batch, in its order, or nothing of it where one is refused.
    ///
    /// When this returns `Ok`, everything is durable, and the serial has grown by one if a record
    /// changed. A crash before that leaves the state as it was, or with all of it.
    ///
    /// Errors: [`crate::StateError::Fenced`], and those of the writes.
    fn commit(&mut self, now: Timestamp, batch: Vec<Write>) -> Result<Written>;

    /// Whether a commit waits for the disk, which is what [`Store::commit`] promises. Only the
    /// simulator says no, to see that the loss is noticed.
    #[doc(hidden)]
    fn wait_for_disk(&mut self, _waits: bool) -> Result<()> {
        Ok(())
    }
}

/// One change of a batch. What each of them does, and how it is refused, is said at the method of
/// [`Transaction`] that is named here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// [`Transaction::put_spec`].
    PutSpec {
        /// What the spec is known by.
        digest: SpecDigest,
        /// The spec.
        bytes: Vec<u8>,
    },
    /// [`Transaction::put_record`].
    PutRecord(Box<Record>),
    /// [`Transaction::remove_record`].
    RemoveRecord {
        /// Our id of the instance.
        instance_id: String,
    },
    /// [`Transaction::move_record`].
    MoveRecord {
        /// The group and the slot.
        from: (Arc<str>, u32),
        /// The group and the slot.
        to: (Arc<str>, u32),
    },
    /// [`Transaction::open_intents`], for one.
    OpenIntent(Box<Intent>),
    /// [`Transaction::close_intent`].
    CloseIntent {
        /// Which.
        id: IntentId,
        /// How it ended.
        outcome: Outcome,
    },
    /// [`Transaction::start_apply`].
    StartApply(NewApply),
    /// [`Transaction::finish_apply`].
    FinishApply {
        /// Which; `None` for the one that the batch began.
        id: Option<ApplyId>,
        /// How far it came.
        status: ApplyStatus,
        /// What was done, as JSON.
        summary_json: String,
    },
    /// [`Transaction::record_history_item`].
    HistoryItem {
        /// Of which apply; `None` for the one that the batch began.
        id: Option<ApplyId>,
        /// What it did.
        item: Box<HistoryItem>,
    },
    /// [`Transaction::put_image`].
    PutImage(ImageRow),
    /// [`Transaction::put_fetched`].
    PutFetched(FetchedRow),
    /// [`Transaction::put_observation_cache`].
    PutObservationCache(Vec<u8>),
    /// [`Transaction::collect_garbage`].
    CollectGarbage,
}

/// What a batch was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The ids of the intents that it opened, in its order.
    pub intents: Vec<IntentId>,
    /// The apply that it began.
    pub apply: Option<ApplyId>,
}

/// Where a state is kept.
pub trait Backend: Send + Sync {
    /// Makes the state, which must not be there yet, and opens it.
    fn create(&self, identity: &Identity, lineage: &str, now: Timestamp) -> Result<Box<dyn Store>>;

    /// Opens the state for reading and writing. What belongs to someone else than `expected` is
    /// refused and left alone.
    fn open(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>>;

    /// Takes the lock, which needs no state; one that is held is waited for as long as `timeout`
    /// says, then the error is [`crate::StateError::Locked`].
    fn lock(&self, info: LockInfo, timeout: Duration) -> Result<Box<dyn Held>>;

    /// Who holds the lock.
    fn holder(&self) -> Result<Option<LockInfo>>;
}

/// A held lock. Ends when it is dropped, and when its process dies.
pub trait Held: Send {
    /// What it says of itself.
    fn info(&self) -> &LockInfo;
}

impl Held for Lock {
    fn info(&self) -> &LockInfo {
        Lock::info(self)
    }
}

impl Store for SqliteStore {
    fn place(&self) -> PathBuf {
        self.path().to_owned()
    }

    fn meta(&self) -> Result<Meta> {
        SqliteStore::meta(self)
    }

    fn snapshot(&self) -> Result<Snapshot> {
        SqliteStore::snapshot(self)
    }

    fn specs(&self, digests: &[SpecDigest]) -> Result<HashMap<SpecDigest, Arc<[u8]>>> {
        SqliteStore::specs(self, digests.iter().copied())
    }

    fn images(&self) -> Result<Vec<ImageRow>> {
        SqliteStore::images(self)
    }

    fn fetched(&self, url: &str) -> Result<Option<FetchedRow>> {
        SqliteStore::fetched(self, url)
    }

    fn observation_cache(&self) -> Result<Option<Vec<u8>>> {
        SqliteStore::observation_cache(self)
    }

    fn history(&self, limit: usize) -> Result<Vec<Apply>> {
        SqliteStore::history(self, limit)
    }

    fn history_items(&self, id: ApplyId) -> Result<Vec<HistoryItem>> {
        SqliteStore::history_items(self, id)
    }

    fn lead(&mut self) -> Result<()> {
        SqliteStore::lead(self)
    }

    fn wait_for_disk(&mut self, waits: bool) -> Result<()> {
        SqliteStore::wait_for_disk(self, waits)
    }

    fn commit(&mut self, now: Timestamp, batch: Vec<Write>) -> Result<Written> {
        self.transaction(now, |transaction| {
            let mut written = Written::default();
            for write in batch {
                transaction.write_one(write, &mut written)?;
            }
            Ok(written)
        })
    }
}

impl Transaction<'_> {
    fn write_one(&mut self, write: Write, written: &mut Written) -> Result<()> {
        match write {
            Write::PutSpec { digest, bytes } => self.put_spec(digest, &bytes)?,
            Write::PutRecord(record) => self.put_record(*record)?,
            Write::RemoveRecord { instance_id } => {
                self.remove_record(&instance_id)?;
            }
            Write::MoveRecord { from, to } => {
                self.move_record((&from.0, from.1), (&to.0, to.1))?;
            }
            Write::OpenIntent(intent) => {
                let opened = self.open_intents(std::slice::from_ref(&*intent))?;
                written.intents.extend(opened);
            }
            Write::CloseIntent { id, outcome } => self.close_intent(id, outcome)?,
            Write::StartApply(apply) => written.apply = Some(self.start_apply(apply)?),
            Write::FinishApply {
                id,
                status,
                summary_json,
            } => self.finish_apply(written.apply(id), status, &summary_json)?,
            Write::HistoryItem { id, item } => {
                self.record_history_item(written.apply(id), &item)?;
            }
            Write::PutImage(image) => self.put_image(image)?,
            Write::PutFetched(fetched) => self.put_fetched(fetched)?,
            Write::PutObservationCache(bytes) => self.put_observation_cache(&bytes)?,
            Write::CollectGarbage => {
                self.collect_garbage()?;
            }
        }
        Ok(())
    }
}

impl Written {
    /// The apply that is meant; no apply has the number of one that no batch began.
    pub(crate) fn apply(&self, id: Option<ApplyId>) -> ApplyId {
        id.or(self.apply).unwrap_or(ApplyId(0))
    }
}

/// A state in a file.
#[derive(Clone)]
pub struct SqliteFile {
    path: PathBuf,
    key: Option<NewKey>,
}

impl SqliteFile {
    /// The state at `path`, sealed with a key where there is one.
    pub fn new(path: PathBuf, key: Option<NewKey>) -> Self {
        Self { path, key }
    }
}

impl Backend for SqliteFile {
    fn create(&self, identity: &Identity, lineage: &str, now: Timestamp) -> Result<Box<dyn Store>> {
        Ok(Box::new(match &self.key {
            None => SqliteStore::create(&self.path, identity, lineage, now)?,
            Some(key) => SqliteStore::create_sealed(&self.path, identity, lineage, now, key)?,
        }))
    }

    fn open(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>> {
        let store = SqliteStore::open(&self.path, expected)?;
        Ok(Box::new(match &self.key {
            None => store,
            Some(new) => store.with_keys(Arc::new(new.key.clone()) as Arc<dyn Keys>),
        }))
    }

    fn lock(&self, info: LockInfo, timeout: Duration) -> Result<Box<dyn Held>> {
        Ok(Box::new(Lock::acquire(&self.path, info, timeout)?))
    }

    fn holder(&self) -> Result<Option<LockInfo>> {
        Lock::peek(&self.path)
    }
}
