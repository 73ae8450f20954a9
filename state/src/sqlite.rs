//! A state, opened: everything that can be read from it, and the way into a transaction.
//!
//! In: a path. Out: [`Meta`], [`Snapshot`], specs, caches. Every read is one transaction. It may
//! not write but through [`SqliteStore::transaction`].

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::codec;
use crate::error::{Result, StateError};
use crate::files::Fingerprint;
use crate::keys::{self, KeyRing, Keys};
use crate::model::{FetchedRow, Identity, ImageRow, Intent, Meta, Record, SpecDigest, Timestamp};
use crate::new_file;
use crate::open::{self, Access, Opened};
use crate::row_crypto::{Place, RowCrypto, unreadable};
use crate::schema::{self, MIGRATIONS};
use crate::seal::NewKey;
use crate::snapshot::{self, Snapshot};
use crate::transaction::Transaction;

/// A state that is open.
///
/// Any number of processes may have the same state open. One of them writes at a time: a
/// transaction waits for another's to end, up to the busy timeout. That only one *apply* runs is
/// the business of [`crate::Lock`].
#[derive(Debug)]
pub struct SqliteStore {
    opened: Opened,
    path: PathBuf,
    ring: KeyRing,
    /// The number of the writer that leads, as far as this one knows. Where it is another by now,
    /// this one may not write.
    fence: u64,
    is_fenced: bool,
}

impl SqliteStore {
    /// Makes a state at `path` and opens it. The folders above it are made where they are
    /// missing; a file that is there already is an error and stays as it is. Only its owner may
    /// read the new file.
    ///
    /// When this returns, the state and its name are on disk. A crash leaves either that or no
    /// state, never half of one.
    ///
    /// The state isn't sealed: see [`SqliteStore::create_sealed`].
    pub fn create(path: &Path, identity: &Identity, lineage: &str, now: Timestamp) -> Result<Self> {
        Self::make(path, identity, lineage, now, None)?;
        Self::open(path, Some(identity))
    }

    /// The same, sealed with a key from the beginning.
    pub fn create_sealed(
        path: &Path,
        identity: &Identity,
        lineage: &str,
        now: Timestamp,
        key: &NewKey,
    ) -> Result<Self> {
        Self::make(path, identity, lineage, now, Some(key))?;
        Ok(Self::open(path, Some(identity))?.with_keys(Arc::new(key.key.clone())))
    }

    fn make(
        path: &Path,
        identity: &Identity,
        lineage: &str,
        now: Timestamp,
        key: Option<&NewKey>,
    ) -> Result<()> {
        new_file::create(path, MIGRATIONS, |connection| {
            let Identity {
                cluster,
                shard,
                provider,
            } = identity;
            connection
                .execute(
                    "INSERT INTO meta (id, cluster, shard, provider, lineage, serial, created_at,
                         key_id, derivation)
                     VALUES (1, ?1, ?2, ?3, ?4, 0, ?5, ?6, ?7)",
                    (
                        cluster,
                        shard,
                        provider,
                        lineage,
                        now.0,
                        key.map(|key| key.key.id().0),
                        key.and_then(|key| key.derivation.as_ref().map(ToString::to_string)),
                    ),
                )
                .map(|_| ())
        })
    }

    /// Opens the state at `path` for reading and writing. What belongs to someone else than
    /// `expected` is refused, and so is what is no state, damaged, or of a newer schema; what is
    /// refused keeps every byte.
    ///
    /// An older schema is migrated. Before that, a backup is on disk beside the file
    /// ([`SqliteStore::automatic_backups`]); a crash leaves the file at the old schema, at the new one,
    /// or at one between, and opening it again goes on from there.
    pub fn open(path: &Path, expected: Option<&Identity>) -> Result<Self> {
        let mut store = Self::new(open::to_write(path, expected, MIGRATIONS)?, path);
        store.fence = store.read_fence()?;
        Ok(store)
    }

    /// Opens the state at `path` for reading. Takes no lock that a writer would wait for, works
    /// where neither the file nor its folder can be written, and leaves no new file behind. An
    /// older schema is read from a migrated copy.
    pub fn open_read_only(path: &Path, expected: Option<&Identity>) -> Result<Self> {
        let opened = open::to_read(path, expected, MIGRATIONS)?;
        Ok(Self::new(opened, path))
    }

    fn new(opened: Opened, path: &Path) -> Self {
        Self {
            opened,
            path: path.to_owned(),
            ring: KeyRing::default(),
            fence: 0,
            is_fenced: true,
        }
    }

    /// The same, with keys to ask for when something is to be opened or sealed.
    ///
    /// Without the key of a sealed state, what needs none still works: [`SqliteStore::meta`],
    /// [`SqliteStore::outline`], [`SqliteStore::images`], the history but for what went wrong, backups, and
    /// checks from outside. Anything else is [`StateError::NoKey`], any change included.
    #[must_use]
    pub fn with_keys(mut self, keys: Arc<dyn Keys>) -> Self {
        self.ring = KeyRing::new(keys);
        self
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.opened.connection
    }

    /// Asks for the key now, where the state is sealed: what is refused is refused before anything
    /// is done.
    pub fn unlock(&self) -> Result<()> {
        self.read_opened(|_, _| Ok(()))
    }

    /// The path that the state was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long to wait for another process's transaction to end: ten seconds unless this says
    /// otherwise.
    pub fn set_busy_timeout(&self, timeout: Duration) -> Result<()> {
        self.opened
            .connection
            .busy_timeout(timeout)
            .map_err(|error| StateError::sqlite(&self.path, error))
    }

    /// Whether the file has an older schema, and a migrated copy is read: to open it for writing would
    /// migrate it.
    pub fn is_outdated(&self) -> bool {
        matches!(self.opened.access, Access::Migrated(_))
    }

    /// What is true of the state as a whole.
    pub fn meta(&self) -> Result<Meta> {
        self.read(meta)
    }

    /// Everything that a plan needs, as it was at one moment.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.read_opened(|connection, crypto| {
            let meta = meta(connection)?;
            snapshot::read(connection, crypto, meta)
        })
    }

    /// The records without what takes a key: in a sealed state their digests are masked, and
    /// equal no others.
    pub fn outline(&self) -> Result<Vec<Record>> {
        self.read(|connection| snapshot::records(connection, &RowCrypto::clear()))
    }

    /// The intents that were opened and not closed, oldest first: what the next run must settle.
    pub fn open_intents(&self) -> Result<Vec<Intent>> {
        self.read_opened(snapshot::intents)
    }

    /// The specs with these digests. Those that aren't in the state are left out; what a record
    /// or an open intent refers to is always there.
    pub fn specs(
        &self,
        digests: impl Iterator<Item = SpecDigest>,
    ) -> Result<HashMap<SpecDigest, Arc<[u8]>>> {
        self.read_opened(|connection, crypto| {
            let mut statement = connection.prepare_cached(&format!("{SPECS} WHERE digest = ?1"))?;
            let mut specs = HashMap::new();
            for digest in digests {
                if specs.contains_key(&digest) {
                    continue;
                }
                let found = statement
                    .query_row([&crypto.mask(digest).0[..]], |row| spec(row, crypto))
                    .optional()?;
                if let Some((_, spec)) = found {
                    specs.insert(digest, Arc::from(spec));
                }
            }
            Ok(specs)
        })
    }

    /// The resolved images, by name.
    pub fn images(&self) -> Result<Vec<ImageRow>> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT name, query_digest, image_id, source, resolved_at, detail
                     FROM images ORDER BY name",
                )?
                .query_map((), |row| {
                    Ok(ImageRow {
                        name: row.get(0)?,
                        query_digest: row.get(1)?,
                        image_id: row.get(2)?,
                        source: row.get(3)?,
                        resolved_at: Timestamp(row.get(4)?),
                        detail_json: row.get(5)?,
                    })
                })?
                .collect()
        })
    }

    /// What `url` answered when it was last fetched.
    pub fn fetched(&self, url: &str) -> Result<Option<FetchedRow>> {
        self.read_opened(|connection, crypto| {
            connection
                .prepare_cached(&format!("{FETCHED} WHERE url = ?1"))?
                .query_row([crypto.name(url)], |row| fetched(row, crypto))
                .optional()
        })
    }

    /// The cache of compared observations, as [`Transaction::put_observation_cache`] was given it;
    /// `None` where none was stored. Fails with [`StateError::NoKey`] in a sealed state without its
    /// key.
    pub fn observation_cache(&self) -> Result<Option<Vec<u8>>> {
        self.read_opened(|connection, crypto| {
            connection
                .prepare_cached(OBSERVATION_CACHE)?
                .query_row((), |row| observation_cache(row, crypto))
                .optional()
        })
    }

    /// Raises the fencing number: handles opened earlier can't write any more.
    /// [`Transaction::start_apply`] calls it. A state is opened with the lock held, so this shuts out
    /// only a process that lost its lock.
    ///
    /// Fails with [`StateError::Fenced`] if another handle raised it since this one was opened.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is of one lifetime, not of any"
    )]
    pub fn lead(&mut self) -> Result<()> {
        // Nothing that is written here has a time.
        self.transaction(Timestamp(0), |transaction| transaction.lead())
    }

    /// Whether a commit waits for the disk, as [`SqliteStore::transaction`] promises. Only the
    /// simulator passes `false`, to prove that the loss is noticed.
    #[doc(hidden)]
    pub fn wait_for_disk(&mut self, waits: bool) -> Result<()> {
        let mode = if waits { "FULL" } else { "OFF" };
        self.opened
            .connection
            .pragma_update(None, "synchronous", mode)
            .map_err(|error| StateError::sqlite(&self.path, error))
    }

    /// Lets this handle write in spite of the fencing number. Only the simulator calls it, to prove
    /// that the damage is noticed.
    #[doc(hidden)]
    pub fn ignore_fence(&mut self) {
        self.is_fenced = false;
    }

    fn read_fence(&self) -> Result<u64> {
        self.read(|connection| {
            connection.query_row("SELECT fence FROM meta WHERE id = 1", (), |row| row.get(0))
        })
    }

    /// Changes the state: all that `change` does, or nothing where it returns an error.
    ///
    /// When this returns `Ok`, everything is on disk, and the serial has grown by one if a record
    /// changed. A crash before that leaves the state as it was.
    pub fn transaction<R>(
        &mut self,
        now: Timestamp,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<R>,
    ) -> Result<R> {
        if !matches!(self.opened.access, Access::Write) {
            return Err(StateError::ReadOnly {
                path: self.path.clone(),
            });
        }
        if !self.is_fenced {
            self.fence = self.read_fence()?;
        }
        let mut transaction = Transaction::begin(
            &mut self.opened.connection,
            &self.path,
            now,
            &self.ring,
            self.fence,
        )?;
        let result = change(&mut transaction)?;
        self.fence = transaction.commit()?;
        Ok(result)
    }

    /// Writes a copy of the state to `to`, complete in one file; what is there already is an
    /// error. The copy is on disk when this returns; a crash leaves no half of it under that
    /// name.
    pub fn backup(&self, to: &Path) -> Result<()> {
        self.unchanged(|| new_file::backup(&self.opened.connection, &self.path, to))
    }

    /// The backups that were made beside the state at `path` before its schema was migrated,
    /// oldest schema first.
    pub fn automatic_backups(path: &Path) -> Result<Vec<PathBuf>> {
        new_file::automatic_backups(path)
    }

    /// Reads in one transaction.
    pub(crate) fn read<R>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<R>,
    ) -> Result<R> {
        self.unchanged(|| {
            let read = || {
                let transaction = self.opened.connection.unchecked_transaction()?;
                let result = read(&transaction)?;
                transaction.finish()?;
                Ok(result)
            };
            read().map_err(|error| StateError::sqlite(&self.path, error))
        })
    }

    /// Reads in one transaction, with what opens the rows.
    pub(crate) fn read_opened<R>(
        &self,
        read: impl FnOnce(&Connection, &RowCrypto) -> rusqlite::Result<R>,
    ) -> Result<R> {
        self.unchanged(|| {
            let failed = |error| StateError::sqlite(&self.path, error);
            let transaction = self
                .opened
                .connection
                .unchecked_transaction()
                .map_err(failed)?;
            let crypto = self.ring.crypto(&transaction, &self.path)?;
            let result = read(&transaction, &crypto).map_err(failed)?;
            transaction.finish().map_err(failed)?;
            Ok(result)
        })
    }

    /// Where no lock could be taken, what was read counts only if nobody wrote meanwhile.
    fn unchanged<R>(&self, read: impl FnOnce() -> Result<R>) -> Result<R> {
        let result = read();
        match &self.opened.access {
            Access::Unlocked(before) if Fingerprint::of(&self.path)? != *before => {
                Err(StateError::Changed {
                    path: self.path.clone(),
                })
            }
            _ => result,
        }
    }
}

pub(crate) fn meta(connection: &Connection) -> rusqlite::Result<Meta> {
    let schema_version = schema::version(connection)?;
    let (key, _) = keys::need(connection)?;
    connection
        .prepare_cached(
            "SELECT cluster, shard, provider, lineage, serial, created_at FROM meta WHERE id = 1",
        )?
        .query_row((), |row| {
            Ok(Meta {
                identity: Identity {
                    cluster: row.get(0)?,
                    shard: row.get(1)?,
                    provider: row.get(2)?,
                },
                lineage: row.get(3)?,
                serial: row.get(4)?,
                created_at: Timestamp(row.get(5)?),
                schema_version,
                key: key.clone(),
            })
        })
}

/// All columns of `specs`, as [`spec`] reads them.
pub(crate) const SPECS: &str = "SELECT digest, size, body FROM specs";

/// A spec, and the digest that it is known by.
pub(crate) fn spec(row: &Row<'_>, crypto: &RowCrypto) -> rusqlite::Result<(SpecDigest, Vec<u8>)> {
    let digest = crypto.unmask(SpecDigest(row.get(0)?));
    let stored = row.get_ref(2)?.as_blob()?;
    let body = crypto
        .unpack(&Place::spec(digest), stored, row.get(1)?)
        .map_err(|error| unreadable(2, error))?;
    Ok((digest, body))
}

/// All columns of `fetched`, as [`fetched`] reads them.
pub(crate) const FETCHED: &str = "SELECT url, digest, size, body, fetched_at FROM fetched";

/// A row of `fetched`. In a sealed state URL and digest are sealed with the body.
pub(crate) fn fetched(row: &Row<'_>, crypto: &RowCrypto) -> rusqlite::Result<FetchedRow> {
    let name: String = row.get(0)?;
    let fetched_at = Timestamp(row.get(4)?);
    let content = crypto
        .unpack(
            &Place::fetched(&name, fetched_at),
            row.get_ref(3)?.as_blob()?,
            row.get(2)?,
        )
        .map_err(|error| unreadable(3, error))?;
    if !crypto.is_sealed() {
        return Ok(FetchedRow {
            url: name,
            digest: row.get(1)?,
            body: content,
            fetched_at,
        });
    }
    let split = || {
        let (url, rest) = codec::split(&content)?;
        let (digest, body) = codec::split(rest)?;
        Ok(FetchedRow {
            url: url.to_owned(),
            digest: digest.to_owned(),
            body: body.to_owned(),
            fetched_at,
        })
    };
    split().map_err(|error: io::Error| unreadable(3, error))
}

/// All columns of `observation_cache`, as [`observation_cache`] reads them.
pub(crate) const OBSERVATION_CACHE: &str =
    "SELECT id, size, body, updated_at FROM observation_cache";

/// The row of `observation_cache`.
pub(crate) fn observation_cache(row: &Row<'_>, crypto: &RowCrypto) -> rusqlite::Result<Vec<u8>> {
    let place = Place::observation_cache(Timestamp(row.get(3)?));
    crypto
        .unpack(&place, row.get_ref(2)?.as_blob()?, row.get(1)?)
        .map_err(|error| unreadable(2, error))
}

#[cfg(test)]
mod tests;
