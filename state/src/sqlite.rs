//! An open state: all reads, and the entry to transactions.
//!
//! In: a path. Out: [`Meta`], [`Snapshot`], specs, caches. Every read is one transaction. Must not:
//! write, except by [`SqliteStore::transaction`].

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

/// An open state.
///
/// Any number of processes may have the same state open. One of them writes at a time: a
/// transaction waits for another's to end, up to the busy timeout. [`crate::Lock`] ensures that
/// only one *apply* runs.
#[derive(Debug)]
pub struct SqliteStore {
    opened: Opened,
    path: PathBuf,
    ring: KeyRing,
    /// The last fencing token that this writer knows. If the state has a newer one, this writer
    /// can't write.
    fence: u64,
    is_fenced: bool,
}

impl SqliteStore {
    /// Creates a state at `path` and opens it. Creates missing folders. Only its owner can read the
    /// new file.
    ///
    /// The state and its name are durable when this returns. A crash leaves either a complete state
    /// or none.
    ///
    /// The state isn't encrypted: see [`SqliteStore::create_sealed`].
    ///
    /// Fails if the file exists or can't be written.
    pub fn create(path: &Path, identity: &Identity, lineage: &str, now: Timestamp) -> Result<Self> {
        Self::make(path, identity, lineage, now, None)?;
        Self::open(path, Some(identity))
    }

    /// Creates an encrypted state.
    ///
    /// Fails if the file exists or can't be written.
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

    /// Opens the state at `path` for reading and writing.
    ///
    /// Migrates an older schema. Before that, it durably writes a backup beside the file
    /// ([`SqliteStore::automatic_backups`]). A crash leaves the file at a valid schema version,
    /// from which opening it again continues.
    ///
    /// Fails if the state belongs to another owner than `expected`, and if the file is not a state,
    /// damaged, or of a newer schema. A rejected file isn't changed.
    pub fn open(path: &Path, expected: Option<&Identity>) -> Result<Self> {
        let mut store = Self::new(open::to_write(path, expected, MIGRATIONS)?, path);
        store.fence = store.read_fence()?;
        Ok(store)
    }

    /// Opens the state at `path` for reading. Takes no lock that blocks writers, works on read-only
    /// media, and leaves no new file behind. An older schema is read from a migrated copy.
    ///
    /// Fails if the file isn't a valid state of `expected`.
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

    /// Sets the source of keys.
    ///
    /// Without the key of an encrypted state, these still work: [`SqliteStore::meta`],
    /// [`SqliteStore::outline`], [`SqliteStore::images`], [`SqliteStore::rollout_requests`], the
    /// history without errors, backups, and partial checks. Everything else, including any change, fails with [`StateError::NoKey`].
    #[must_use]
    pub fn with_keys(mut self, keys: Arc<dyn Keys>) -> Self {
        self.ring = KeyRing::new(keys);
        self
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.opened.connection
    }

    /// Obtains the key now if the state is encrypted, to fail before anything is done.
    ///
    /// Fails with [`StateError::NoKey`] if it is missing.
    pub fn unlock(&self) -> Result<()> {
        self.read_opened(|_, _| Ok(()))
    }

    /// The path that the state was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets how long to wait for another process's transaction; ten seconds by default.
    ///
    /// Fails if the database rejects it.
    pub fn set_busy_timeout(&self, timeout: Duration) -> Result<()> {
        self.opened
            .connection
            .busy_timeout(timeout)
            .map_err(|error| StateError::sqlite(&self.path, error))
    }

    /// Whether this is a migrated copy of a file with an older schema, which opening for writing
    /// would migrate.
    pub fn is_outdated(&self) -> bool {
        matches!(self.opened.access, Access::Migrated(_))
    }

    /// The properties of the state.
    ///
    /// Fails if the state can't be read.
    pub fn meta(&self) -> Result<Meta> {
        self.read(meta)
    }

    /// Everything that a plan needs, at one moment.
    ///
    /// Fails if the state can't be read, or if the key is missing.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.read_opened(|connection, crypto| {
            let meta = meta(connection)?;
            snapshot::read(connection, crypto, meta)
        })
    }

    /// The records without a key: in an encrypted state their digests are masked, and match no
    /// others.
    ///
    /// Fails if the state can't be read.
    pub fn outline(&self) -> Result<Vec<Record>> {
        self.read(|connection| snapshot::records(connection, &RowCrypto::clear()))
    }

    /// The open intents, oldest first, which the next run must settle.
    ///
    /// Fails if the state can't be read, or if the key is missing.
    pub fn open_intents(&self) -> Result<Vec<Intent>> {
        self.read_opened(snapshot::intents)
    }

    /// The specs with these digests; missing ones are omitted. Specs of records and open intents
    /// always exist.
    ///
    /// Fails if the state can't be read, or if the key is missing.
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

    /// The cached images, by name.
    ///
    /// Fails if the state can't be read.
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

    /// The cached body of `url`.
    ///
    /// Fails if the state can't be read, or if the key is missing.
    pub fn fetched(&self, url: &str) -> Result<Option<FetchedRow>> {
        self.read_opened(|connection, crypto| {
            connection
                .prepare_cached(&format!("{FETCHED} WHERE url = ?1"))?
                .query_row([crypto.name(url)], |row| fetched(row, crypto))
                .optional()
        })
    }

    /// The observation cache, as given to [`Transaction::put_observation_cache`]; `None` if there
    /// is none.
    ///
    /// Fails if the state can't be read, and with [`StateError::NoKey`] if it is encrypted and the
    /// key is missing.
    pub fn observation_cache(&self) -> Result<Option<Vec<u8>>> {
        self.read_opened(|connection, crypto| {
            connection
                .prepare_cached(OBSERVATION_CACHE)?
                .query_row((), |row| observation_cache(row, crypto))
                .optional()
        })
    }

    /// Raises the fencing token; older handles then fail with [`StateError::Fenced`].
    /// [`Transaction::start_apply`] does it too. A writer opens the state with the lock held, so
    /// this never affects a rightful writer. If a lock is lost nevertheless, its former holder
    /// fails instead of corrupting the next one's work.
    ///
    /// Fails with [`StateError::Fenced`] if another handle raised the token since this one was
    /// opened.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is of one lifetime, not of any"
    )]
    pub fn lead(&mut self) -> Result<()> {
        // Nothing here records a time.
        self.transaction(Timestamp(0), |transaction| transaction.lead())
    }

    /// Whether commits wait for the disk, as [`SqliteStore::transaction`] guarantees. Only the
    /// simulation turns it off, to prove that tests detect the loss.
    ///
    /// Fails if the database rejects it.
    #[doc(hidden)]
    pub fn wait_for_disk(&mut self, waits: bool) -> Result<()> {
        let mode = if waits { "FULL" } else { "OFF" };
        self.opened
            .connection
            .pragma_update(None, "synchronous", mode)
            .map_err(|error| StateError::sqlite(&self.path, error))
    }

    /// Ignores the fencing token from now on. Only the simulation uses it, to prove that tests
    /// detect the damage.
    #[doc(hidden)]
    pub fn ignore_fence(&mut self) {
        self.is_fenced = false;
    }

    fn read_fence(&self) -> Result<u64> {
        self.read(|connection| {
            connection.query_row("SELECT fence FROM meta WHERE id = 1", (), |row| row.get(0))
        })
    }

    /// Changes the state: applies all of `change`, or nothing if it returns an error.
    ///
    /// When this returns `Ok`, everything is durable, and the serial has grown by one if a record
    /// changed. A crash before that leaves the state as it was.
    ///
    /// Fails with the error of `change`, with [`StateError::Fenced`], or if the state can't be
    /// written.
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

    /// Writes a complete copy of the state to `to`, in one file. The copy is durable when this
    /// returns; a crash leaves no partial file with that name.
    ///
    /// Fails if `to` exists or can't be written.
    pub fn backup(&self, to: &Path) -> Result<()> {
        self.unchanged(|| new_file::backup(&self.opened.connection, &self.path, to))
    }

    /// The backups beside the state at `path` from before its schema was migrated, oldest schema
    /// first.
    ///
    /// Fails if the folder can't be read.
    pub fn automatic_backups(path: &Path) -> Result<Vec<PathBuf>> {
        new_file::automatic_backups(path)
    }

    /// Reads in one transaction.
    ///
    /// Fails if the state can't be read.
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

    /// Reads in one transaction, with the cipher of the rows.
    ///
    /// Fails if the state can't be read, or if the key is missing.
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

    /// Reads without a lock; fails if the file was written meanwhile.
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

/// Reads the properties of the state.
///
/// Fails if the state can't be read.
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

/// All columns of `specs`, for [`spec`].
pub(crate) const SPECS: &str = "SELECT digest, size, body FROM specs";

/// A spec and its digest. Fails if it can't be decrypted.
pub(crate) fn spec(row: &Row<'_>, crypto: &RowCrypto) -> rusqlite::Result<(SpecDigest, Vec<u8>)> {
    let digest = crypto.unmask(SpecDigest(row.get(0)?));
    let stored = row.get_ref(2)?.as_blob()?;
    let body = crypto
        .unpack(&Place::spec(digest), stored, row.get(1)?)
        .map_err(|error| unreadable(2, error))?;
    Ok((digest, body))
}

/// All columns of `fetched`, for [`fetched`].
pub(crate) const FETCHED: &str = "SELECT url, digest, size, body, fetched_at FROM fetched";

/// A row of `fetched`. In an encrypted state, URL and digest are encrypted with the body.
///
/// Fails if it can't be decrypted.
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

/// All columns of `observation_cache`, for [`observation_cache`].
pub(crate) const OBSERVATION_CACHE: &str =
    "SELECT id, size, body, updated_at FROM observation_cache";

/// The row of `observation_cache`. Fails if it can't be decrypted.
pub(crate) fn observation_cache(row: &Row<'_>, crypto: &RowCrypto) -> rusqlite::Result<Vec<u8>> {
    let place = Place::observation_cache(Timestamp(row.get(3)?));
    crypto
        .unpack(&place, row.get_ref(2)?.as_blob()?, row.get(1)?)
        .map_err(|error| unreadable(2, error))
}

#[cfg(test)]
mod tests;
