//! The interface of a state for plan and apply, independent of its storage.
//!
//! In: nothing. Out: [`Store`], which reads a state and changes it in batches; [`Backend`], which
//! creates, opens and locks it; and [`Write`], the element of a batch. Must not: depend on the
//! storage.
//!
//! A new storage only has to implement these two traits: commands, plan and apply know no others.
//! `tests/it/conformance.rs` specifies the guarantees.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::check::Problem;
use crate::document::Contents;
use crate::error::Result;
use crate::files;
use crate::keys::Keys;
use crate::lock::Lock;
use crate::model::{
    Apply, ApplyId, ApplyStatus, FetchedRow, HistoryItem, Identity, ImageRow, Intent, IntentId,
    LockInfo, Meta, NewApply, NewRequest, NewRollout, Outcome, Record, Rollout, RolloutGroup,
    RolloutId, RolloutRequest, RolloutRequestId, RolloutSlot, RolloutStatus, SpecDigest, Timestamp,
};
use crate::seal::NewKey;
use crate::snapshot::Snapshot;
use crate::sql_store::{Engine, SqlStore};
use crate::sqlite::SqliteStore;
use crate::transaction::Transaction;

/// An open state. Reads fail if the state can't be read, or if the key is missing.
pub trait Store: Send {
    /// Its location, for messages; without a password.
    fn place(&self) -> PathBuf;

    /// The properties of the state. Needs no key.
    fn meta(&self) -> Result<Meta>;

    /// Obtains the key now if the state is encrypted, to fail before anything is done.
    ///
    /// Fails with [`crate::StateError::NoKey`] if it is missing.
    fn unlock(&self) -> Result<()>;

    /// Whether this is a migrated copy of a state with an older schema, which opening for writing
    /// would migrate.
    fn is_outdated(&self) -> bool {
        false
    }

    /// Everything that a plan needs, at one moment.
    fn snapshot(&self) -> Result<Snapshot>;

    /// The records without a key: in an encrypted state their digests are masked, and match no
    /// others.
    fn outline(&self) -> Result<Vec<Record>>;

    /// The open intents, oldest first, which the next run must settle.
    fn open_intents(&self) -> Result<Vec<Intent>>;

    /// The specs with these digests; missing ones are omitted. Specs of records and open intents
    /// always exist.
    fn specs(&self, digests: &[SpecDigest]) -> Result<HashMap<SpecDigest, Arc<[u8]>>>;

    /// The cached images, by name. Needs no key.
    fn images(&self) -> Result<Vec<ImageRow>>;

    /// The cached body of `url`.
    fn fetched(&self, url: &str) -> Result<Option<FetchedRow>>;

    /// The observation cache, as stored by [`Write::PutObservationCache`].
    fn observation_cache(&self) -> Result<Option<Vec<u8>>>;

    /// The latest `limit` applies, latest first. An unfinished one is running if its process holds
    /// the lock, otherwise interrupted.
    fn history(&self, limit: usize) -> Result<Vec<Apply>>;

    /// The changes of an apply, in the order they were added.
    fn history_items(&self, id: ApplyId) -> Result<Vec<HistoryItem>>;

    /// The latest rollout, whatever its status.
    fn rollout(&self) -> Result<Option<Rollout>>;

    /// The plan of a rollout; `None` if the rollout is gone or doesn't need its plan any more.
    fn rollout_plan(&self, id: RolloutId) -> Result<Option<Vec<u8>>>;

    /// The requests to the process that runs the rollout, oldest first. Needs no key, and is cheap
    /// enough to be called every second.
    fn rollout_requests(&self) -> Result<Vec<RolloutRequest>>;

    /// What [`Write::PutLastGood`] stored for these groups; missing ones are omitted.
    fn last_good(&self, groups: &[&str]) -> Result<HashMap<String, Vec<u8>>>;

    /// Reads the whole state and returns all problems. Without the key, encrypted content is only
    /// checked for its key and format.
    fn check(&self) -> Result<Vec<Problem>>;

    /// Writes a complete copy of the state to the file `to`, from which [`SqliteFile`] opens it.
    /// The copy is durable when this returns; a crash leaves no partial file with that name.
    ///
    /// Fails if `to` exists or can't be written.
    fn backup(&self, to: &Path) -> Result<()>;

    /// Raises the fencing token; older handles then fail with [`crate::StateError::Fenced`].
    /// [`Write::StartApply`] does it too.
    ///
    /// Fails with [`crate::StateError::Fenced`] if another handle raised the token since this one
    /// was opened.
    fn lead(&mut self) -> Result<()>;

    /// Changes the state: applies all of a batch in order, or nothing if one write fails.
    ///
    /// When this returns `Ok`, everything is durable, and the serial has grown by one if a record
    /// changed. A crash before that leaves the state with all of the batch, or with nothing of it.
    ///
    /// Fails with [`crate::StateError::Fenced`], or with the error of a write.
    fn commit(&mut self, now: Timestamp, batch: Vec<Write>) -> Result<Written>;

    /// Overwrites content in unused parts of the storage that is unencrypted, or encrypted with an
    /// older key; call it after [`Write::Rekey`]. Returns whether that is done: if not, a later
    /// call does it.
    ///
    /// Fails if the state can't be written.
    fn scrub(&mut self) -> Result<bool> {
        Ok(true)
    }

    /// Sets how long a commit waits for another process's commit; ten seconds by default.
    ///
    /// Fails if the storage rejects it.
    fn set_busy_timeout(&mut self, timeout: Duration) -> Result<()>;

    /// Whether commits wait for the disk, as [`Store::commit`] guarantees. Only the simulation
    /// turns it off, to prove that tests detect the loss.
    ///
    /// Fails if the storage rejects it.
    #[doc(hidden)]
    fn wait_for_disk(&mut self, _waits: bool) -> Result<()> {
        Ok(())
    }

    /// Ignores the fencing token from now on. Only the simulation uses it, to prove that tests
    /// detect the damage.
    #[doc(hidden)]
    fn ignore_fence(&mut self) {}
}

/// One change of a batch. The linked method of [`Transaction`] documents its effect and errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// [`Transaction::put_spec`].
    PutSpec {
        /// The spec's digest.
        digest: SpecDigest,
        /// The spec.
        bytes: Vec<u8>,
    },
    /// [`Transaction::put_record`].
    PutRecord(Box<Record>),
    /// [`Transaction::remove_record`].
    RemoveRecord {
        /// The instance id.
        instance_id: String,
    },
    /// [`Transaction::move_record`].
    MoveRecord {
        /// The group and the slot.
        from: (Arc<str>, u32),
        /// The group and the slot.
        to: (Arc<str>, u32),
    },
    /// [`Transaction::open_intents`] with one intent.
    OpenIntent(Box<Intent>),
    /// [`Transaction::close_intent`].
    CloseIntent {
        /// The intent.
        id: IntentId,
        /// Its outcome.
        outcome: Outcome,
    },
    /// [`Transaction::start_apply`].
    StartApply(NewApply),
    /// [`Transaction::finish_apply`].
    FinishApply {
        /// The apply; `None` for the one that this batch started.
        id: Option<ApplyId>,
        /// Its status.
        status: ApplyStatus,
        /// A summary as JSON.
        summary_json: String,
    },
    /// [`Transaction::record_history_item`].
    HistoryItem {
        /// The apply; `None` for the one that this batch started.
        id: Option<ApplyId>,
        /// The change.
        item: Box<HistoryItem>,
    },
    /// [`Transaction::put_image`].
    PutImage(ImageRow),
    /// [`Transaction::put_fetched`].
    PutFetched(FetchedRow),
    /// [`Transaction::put_observation_cache`].
    PutObservationCache(Vec<u8>),
    /// [`Transaction::keep_specs`].
    KeepSpecs {
        /// The apply; `None` for the one that this batch started.
        id: Option<ApplyId>,
        /// The specs.
        digests: Vec<SpecDigest>,
        /// How many entries of the history keep their specs.
        entries: usize,
    },
    /// [`Transaction::collect_garbage`].
    CollectGarbage,
    /// [`Transaction::start_rollout`].
    StartRollout(Box<NewRollout>),
    /// [`Transaction::set_rollout_status`].
    SetRolloutStatus {
        /// The rollout.
        id: RolloutId,
        /// Its status.
        status: RolloutStatus,
    },
    /// [`Transaction::set_rollout_plan`].
    SetRolloutPlan {
        /// The rollout.
        id: RolloutId,
        /// Its plan.
        plan: Vec<u8>,
    },
    /// [`Transaction::put_rollout_group`].
    PutRolloutGroup {
        /// The rollout; `None` for the one that this batch started.
        id: Option<RolloutId>,
        /// The group.
        group: RolloutGroup,
    },
    /// [`Transaction::put_rollout_slot`].
    PutRolloutSlot {
        /// The rollout; `None` for the one that this batch started.
        id: Option<RolloutId>,
        /// The slot.
        slot: RolloutSlot,
    },
    /// [`Transaction::add_request`].
    AddRequest(NewRequest),
    /// [`Transaction::remove_request`].
    RemoveRequest {
        /// The request.
        id: RolloutRequestId,
    },
    /// [`Transaction::mark_moved`].
    MarkMoved {
        /// Where the state is now, without a password.
        to: String,
    },
    /// [`Transaction::put_last_good`].
    PutLastGood {
        /// The group.
        group: String,
        /// What to store.
        body: Vec<u8>,
    },
    /// [`Transaction::remove_last_good`].
    RemoveLastGood {
        /// The group.
        group: String,
    },
    /// [`Transaction::restore`].
    Restore(Box<Contents>),
    /// [`Transaction::replace`].
    Replace {
        /// What the state contains now.
        now: Box<Contents>,
        /// What it will contain.
        contents: Box<Contents>,
    },
    /// [`Transaction::rekey`].
    Rekey(NewKey),
}

/// The ids that a batch was assigned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The ids of the opened intents, in order.
    pub intents: Vec<IntentId>,
    /// The id of the started apply.
    pub apply: Option<ApplyId>,
    /// The id of the started rollout.
    pub rollout: Option<RolloutId>,
}

/// The storage of a state. It does nothing before its methods are called, and has the keys of the
/// states that it opens.
pub trait Backend: Send + Sync {
    /// The location of the state, for messages; without a password.
    fn place(&self) -> PathBuf;

    /// What `--state` takes to find the state; without a password.
    fn url(&self) -> String;

    /// The state's file, if it is in one. What is done with files, such as automatic backups and
    /// checks of permissions, is only done with this one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Whether a missing key may be generated. Not for a state that several machines use, since
    /// the others wouldn't have the key.
    fn makes_keys(&self) -> bool {
        false
    }

    /// Creates the state, encrypted if there is a key, and opens it for writing.
    ///
    /// The state is durable when this returns. A crash leaves either a complete state or none.
    ///
    /// Fails if it exists or can't be written.
    fn create(
        &self,
        identity: &Identity,
        lineage: &str,
        now: Timestamp,
        key: Option<&NewKey>,
    ) -> Result<Box<dyn Store>>;

    /// Opens the state for reading and writing, and migrates an older schema. Doesn't need the
    /// lock.
    ///
    /// Fails if it doesn't exist, can't be written, or belongs to another owner than `expected`; a
    /// rejected state isn't changed.
    fn open_to_write(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>>;

    /// Opens the state for reading, and changes nothing. Commits fail with
    /// [`crate::StateError::ReadOnly`].
    ///
    /// Fails if it doesn't exist, can't be read, or belongs to another owner than `expected`.
    fn open_to_read(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>>;

    /// Makes what the storage needs before it can keep states, or upgrades it for this version;
    /// returns the versions before and now. `None` if opening a state does that.
    ///
    /// Fails if the storage refuses, or if it is of a newer version.
    fn prepare(&self) -> Result<Option<Prepared>> {
        Ok(None)
    }

    /// Creates the state from a file that [`Store::backup`] wrote, at once and verified. Replaces a
    /// state that was moved away from here.
    ///
    /// Fails if the state exists, or can't be written.
    fn receive(&self, copy: &Path) -> Result<()>;

    /// Acquires the lock, which works without a state. Waits up to `timeout` for another holder,
    /// and calls `on_wait` once per holder meanwhile.
    ///
    /// Fails with [`crate::StateError::Locked`] after the timeout.
    fn lock(
        &self,
        info: LockInfo,
        timeout: Duration,
        on_wait: &mut dyn FnMut(&LockInfo),
    ) -> Result<Box<dyn Held>>;

    /// The holder of the lock. Changes nothing.
    ///
    /// Fails if the lock can't be read.
    fn holder(&self) -> Result<Option<LockInfo>>;

    /// The information in a stale lock; `None` if there is none, or if the lock is held. Changes
    /// nothing.
    ///
    /// Fails if the lock can't be read.
    fn remains(&self) -> Result<Option<LockInfo>>;

    /// Removes the stale lock with this id, and returns its information.
    ///
    /// Fails with [`crate::StateError::Locked`] if the lock is held, with
    /// [`crate::StateError::WrongLock`] if the id differs, and with
    /// [`crate::StateError::NotLocked`] if there is no stale lock.
    fn break_stale(&self, id: &str) -> Result<LockInfo>;
}

/// What [`Backend::prepare`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The version before; 0 if there was nothing.
    pub before: u32,
    /// The version now.
    pub now: u32,
}

/// A held lock. Ends when it is dropped, or when its process dies.
pub trait Held: Send {
    /// The information in the lock.
    fn info(&self) -> &LockInfo;
}

impl Held for Lock {
    fn info(&self) -> &LockInfo {
        Lock::info(self)
    }
}

impl<E: Engine> Store for SqlStore<E> {
    fn place(&self) -> PathBuf {
        self.path().to_owned()
    }

    fn meta(&self) -> Result<Meta> {
        Self::meta(self)
    }

    fn unlock(&self) -> Result<()> {
        Self::unlock(self)
    }

    fn is_outdated(&self) -> bool {
        Self::is_outdated(self)
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Self::snapshot(self)
    }

    fn outline(&self) -> Result<Vec<Record>> {
        Self::outline(self)
    }

    fn open_intents(&self) -> Result<Vec<Intent>> {
        Self::open_intents(self)
    }

    fn specs(&self, digests: &[SpecDigest]) -> Result<HashMap<SpecDigest, Arc<[u8]>>> {
        Self::specs(self, digests.iter().copied())
    }

    fn images(&self) -> Result<Vec<ImageRow>> {
        Self::images(self)
    }

    fn fetched(&self, url: &str) -> Result<Option<FetchedRow>> {
        Self::fetched(self, url)
    }

    fn observation_cache(&self) -> Result<Option<Vec<u8>>> {
        Self::observation_cache(self)
    }

    fn history(&self, limit: usize) -> Result<Vec<Apply>> {
        Self::history(self, limit)
    }

    fn history_items(&self, id: ApplyId) -> Result<Vec<HistoryItem>> {
        Self::history_items(self, id)
    }

    fn rollout(&self) -> Result<Option<Rollout>> {
        Self::rollout(self)
    }

    fn rollout_plan(&self, id: RolloutId) -> Result<Option<Vec<u8>>> {
        Self::rollout_plan(self, id)
    }

    fn rollout_requests(&self) -> Result<Vec<RolloutRequest>> {
        Self::rollout_requests(self)
    }

    fn last_good(&self, groups: &[&str]) -> Result<HashMap<String, Vec<u8>>> {
        Self::last_good(self, groups)
    }

    fn check(&self) -> Result<Vec<Problem>> {
        Self::check(self)
    }

    fn backup(&self, to: &Path) -> Result<()> {
        Self::backup(self, to)
    }

    fn lead(&mut self) -> Result<()> {
        Self::lead(self)
    }

    fn commit(&mut self, now: Timestamp, batch: Vec<Write>) -> Result<Written> {
        let start = Instant::now();
        let writes = batch.len();
        let result = self.transaction(now, |transaction| {
            let mut written = Written::default();
            for write in batch {
                transaction.write_one(write, &mut written)?;
            }
            Ok((written, transaction.serial()))
        });
        let duration_ms = start.elapsed().as_micros() as f64 / 1_000.0;
        match &result {
            Ok((_, serial)) => tracing::debug!(writes, serial, duration_ms, "committed"),
            Err(error) => {
                let error = error.to_string();
                tracing::debug!(writes, error, duration_ms, "commit failed");
            }
        }
        result.map(|(written, _)| written)
    }

    fn scrub(&mut self) -> Result<bool> {
        Self::scrub(self)
    }

    fn set_busy_timeout(&mut self, timeout: Duration) -> Result<()> {
        Self::set_busy_timeout(self, timeout)
    }

    fn wait_for_disk(&mut self, waits: bool) -> Result<()> {
        Self::wait_for_disk(self, waits)
    }

    fn ignore_fence(&mut self) {
        Self::ignore_fence(self);
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
            Write::KeepSpecs {
                id,
                digests,
                entries,
            } => self.keep_specs(written.apply(id), digests, entries)?,
            Write::CollectGarbage => {
                self.collect_garbage()?;
            }
            Write::StartRollout(rollout) => written.rollout = Some(self.start_rollout(&rollout)?),
            Write::SetRolloutStatus { id, status } => self.set_rollout_status(id, status)?,
            Write::SetRolloutPlan { id, plan } => self.set_rollout_plan(id, &plan)?,
            Write::PutRolloutGroup { id, group } => {
                self.put_rollout_group(written.rollout(id), group)?;
            }
            Write::PutRolloutSlot { id, slot } => {
                self.put_rollout_slot(written.rollout(id), slot)?;
            }
            Write::AddRequest(request) => {
                self.add_request(&request)?;
            }
            Write::RemoveRequest { id } => {
                self.remove_request(id)?;
            }
            Write::MarkMoved { to } => self.mark_moved(&to)?,
            Write::PutLastGood { group, body } => self.put_last_good(&group, &body)?,
            Write::RemoveLastGood { group } => {
                self.remove_last_good(&group)?;
            }
            Write::Restore(contents) => self.restore(&contents)?,
            Write::Replace { now, contents } => self.replace(&now, &contents)?,
            Write::Rekey(key) => self.rekey(&key)?,
        }
        Ok(())
    }
}

impl Written {
    /// The given apply, or the one that the batch started. If it started none, an id that doesn't
    /// exist.
    pub(crate) fn apply(&self, id: Option<ApplyId>) -> ApplyId {
        id.or(self.apply).unwrap_or(ApplyId(0))
    }

    /// The given rollout, or the one that the batch started. If it started none, an id that
    /// doesn't exist.
    pub(crate) fn rollout(&self, id: Option<RolloutId>) -> RolloutId {
        id.or(self.rollout).unwrap_or(RolloutId(0))
    }
}

/// A state in a file.
pub struct SqliteFile {
    path: PathBuf,
    keys: Option<Arc<dyn Keys>>,
}

impl SqliteFile {
    /// The state at `path`; encrypted ones are opened with `keys`.
    pub fn new(path: PathBuf, keys: Option<Arc<dyn Keys>>) -> Self {
        Self { path, keys }
    }

    fn with_keys(&self, store: SqliteStore) -> Box<dyn Store> {
        Box::new(match &self.keys {
            None => store,
            Some(keys) => store.with_keys(Arc::clone(keys)),
        })
    }
}

impl Backend for SqliteFile {
    fn place(&self) -> PathBuf {
        self.path.clone()
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn makes_keys(&self) -> bool {
        true
    }

    fn create(
        &self,
        identity: &Identity,
        lineage: &str,
        now: Timestamp,
        key: Option<&NewKey>,
    ) -> Result<Box<dyn Store>> {
        let store = match key {
            None => SqliteStore::create(&self.path, identity, lineage, now),
            Some(key) => SqliteStore::create_sealed(&self.path, identity, lineage, now, key),
        };
        store.map(|store| self.with_keys(store))
    }

    fn open_to_write(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>> {
        SqliteStore::open(&self.path, expected).map(|store| self.with_keys(store))
    }

    fn open_to_read(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>> {
        SqliteStore::open_read_only(&self.path, expected).map(|store| self.with_keys(store))
    }

    fn lock(
        &self,
        info: LockInfo,
        timeout: Duration,
        on_wait: &mut dyn FnMut(&LockInfo),
    ) -> Result<Box<dyn Held>> {
        let lock = Lock::acquire_with(&self.path, info, timeout, on_wait)?;
        Ok(Box::new(lock))
    }

    fn receive(&self, copy: &Path) -> Result<()> {
        files::create_parents(&self.path)?;
        SqliteStore::open_read_only(copy, None)?.backup(&self.path)
    }

    fn holder(&self) -> Result<Option<LockInfo>> {
        Lock::peek(&self.path)
    }

    fn remains(&self) -> Result<Option<LockInfo>> {
        Lock::remains(&self.path)
    }

    fn break_stale(&self, id: &str) -> Result<LockInfo> {
        Lock::break_stale(&self.path, id)
    }
}
