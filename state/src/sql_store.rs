//! An open state in a database with SQL: all reads, and the entry to transactions.
//!
//! In: an engine that has the state open. Out: [`Meta`], [`Snapshot`], specs, caches. Every read is
//! one transaction. Must not: write, except by [`SqlStore::transaction`]; depend on the engine.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::check::Check;
use crate::codec;
use crate::error::{Result, StateError};
use crate::keys::{self, KeyRing, Keys};
use crate::model::{
    FetchedRow, Identity, ImageRow, Intent, LockInfo, Meta, Record, SpecDigest, Timestamp,
};
use crate::row_crypto::{Place, RowCrypto};
use crate::snapshot::{self, Snapshot};
use crate::sql::{self, Next, Row, Sql, params, unreadable};
use crate::transaction::Transaction;

/// A database with an open state, and what databases do differently.
pub trait Engine: Debug + Send {
    /// The state, for messages.
    fn place(&self) -> &Path;

    /// The holder of the state's lock.
    ///
    /// Fails if that can't be read.
    fn holder(&self) -> Result<Option<LockInfo>>;

    /// Lets `read` read in one transaction, so that it sees the state at one moment.
    ///
    /// Fails with the error of `read`, or if the database can't be read.
    fn read(&self, read: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()>;

    /// Lets `change` change the state in one transaction, which nobody else writes in. It is
    /// durable when this returns; if `change` fails, nothing has changed.
    ///
    /// Fails with the error of `change`, or if the database can't be written.
    fn write(&mut self, change: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()>;

    /// Queries for damage, whose rows are problems.
    fn damage(&self) -> &'static [Check];

    /// As [`crate::Store::backup`].
    ///
    /// Fails if `to` exists or can't be written.
    fn backup(&self, to: &Path) -> Result<()>;

    /// As [`crate::Store::set_busy_timeout`].
    ///
    /// Fails if the database rejects it.
    fn set_busy_timeout(&mut self, timeout: Duration) -> Result<()>;

    /// As [`crate::Store::is_outdated`].
    fn is_outdated(&self) -> bool {
        false
    }

    /// As [`crate::Store::scrub`].
    ///
    /// Fails if the state can't be written.
    fn scrub(&mut self) -> Result<bool> {
        Ok(true)
    }

    /// As [`crate::Store::wait_for_disk`].
    ///
    /// Fails if the database rejects it.
    fn wait_for_disk(&mut self, _waits: bool) -> Result<()> {
        Ok(())
    }
}

/// An open state.
///
/// Any number of processes may have the same state open. One of them writes at a time: a
/// transaction waits for another's to end. The lock ensures that only one *apply* runs.
#[derive(Debug)]
pub struct SqlStore<E> {
    pub(crate) engine: E,
    ring: KeyRing,
    /// The last fencing token that this writer knows. If the state has a newer one, this writer
    /// can't write.
    fence: u64,
    is_fenced: bool,
}

impl<E: Engine> SqlStore<E> {
    /// A state that is read only.
    pub(crate) fn of_reader(engine: E) -> Self {
        Self {
            engine,
            ring: KeyRing::default(),
            fence: 0,
            is_fenced: true,
        }
    }

    /// A state that is written.
    ///
    /// Fails if it can't be read, and with [`StateError::Moved`].
    pub(crate) fn of_writer(engine: E) -> Result<Self> {
        let mut store = Self::of_reader(engine);
        let of = "SELECT fence, moved_to FROM meta WHERE id = 1";
        let (fence, moved): (u64, Option<String>) =
            store.read(|sql| sql.one(of, &[], |row| Ok((row.get(0)?, row.get(1)?))))?;
        if let Some(to) = moved {
            return Err(StateError::Moved {
                path: store.path().to_owned(),
                to,
            });
        }
        store.fence = fence;
        Ok(store)
    }

    /// Sets the source of keys.
    ///
    /// Without the key of an encrypted state, these still work: [`SqlStore::meta`],
    /// [`SqlStore::outline`], [`SqlStore::images`], [`SqlStore::rollout_requests`], the history
    /// without errors, backups, and partial checks. Everything else, including any change, fails
    /// with [`StateError::NoKey`].
    #[must_use]
    pub fn with_keys(mut self, keys: Arc<dyn Keys>) -> Self {
        self.ring = KeyRing::new(keys);
        self
    }

    /// Obtains the key now if the state is encrypted, to fail before anything is done.
    ///
    /// Fails with [`StateError::NoKey`] if it is missing.
    pub fn unlock(&self) -> Result<()> {
        self.read_opened(|_, _| Ok(()))
    }

    /// The state, for messages: the path of a file.
    pub fn path(&self) -> &Path {
        self.engine.place()
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
        self.read_opened(|sql, crypto| {
            let meta = meta(sql)?;
            snapshot::read(sql, crypto, meta)
        })
    }

    /// The records without a key: in an encrypted state their digests are masked, and match no
    /// others.
    ///
    /// Fails if the state can't be read.
    pub fn outline(&self) -> Result<Vec<Record>> {
        self.read(|sql| snapshot::records(sql, &RowCrypto::clear()))
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
        let digests: HashSet<SpecDigest> = digests.collect();
        self.read_opened(|sql, crypto| {
            if digests.len() > sql.most_lookups() {
                let mut specs = HashMap::new();
                sql.query(SPECS, &[], &mut |row| {
                    let digest = crypto.unmask(SpecDigest(row.get(0)?));
                    if digests.contains(&digest) {
                        specs.insert(digest, Arc::from(spec(row, crypto)?.1));
                    }
                    Ok(Next::Row)
                })?;
                return Ok(specs);
            }
            let of = format!("{SPECS} WHERE digest = ?1");
            let mut specs = HashMap::new();
            for digest in &digests {
                let found = sql.row(&of, params![crypto.mask(*digest)], |row| spec(row, crypto))?;
                specs.extend(found.map(|(digest, spec)| (digest, Arc::from(spec))));
            }
            Ok(specs)
        })
    }

    /// The cached images, by name.
    ///
    /// Fails if the state can't be read.
    pub fn images(&self) -> Result<Vec<ImageRow>> {
        let all = "SELECT name, query_digest, image_id, source, resolved_at, detail
             FROM images ORDER BY name";
        self.read(|sql| {
            sql.rows(all, &[], |row| {
                Ok(ImageRow {
                    name: row.get(0)?,
                    query_digest: row.get(1)?,
                    image_id: row.get(2)?,
                    source: row.get(3)?,
                    resolved_at: Timestamp(row.get(4)?),
                    detail_json: row.get(5)?,
                })
            })
        })
    }

    /// The cached body of `url`.
    ///
    /// Fails if the state can't be read, or if the key is missing.
    pub fn fetched(&self, url: &str) -> Result<Option<FetchedRow>> {
        let of = format!("{FETCHED} WHERE url = ?1");
        self.read_opened(|sql, crypto| {
            sql.row(&of, params![crypto.name(url)], |row| fetched(row, crypto))
        })
    }

    /// The observation cache, as given to [`Transaction::put_observation_cache`]; `None` if there
    /// is none.
    ///
    /// Fails if the state can't be read, and with [`StateError::NoKey`] if it is encrypted and the
    /// key is missing.
    pub fn observation_cache(&self) -> Result<Option<Vec<u8>>> {
        self.read_opened(|sql, crypto| {
            sql.row(OBSERVATION_CACHE, &[], |row| observation_cache(row, crypto))
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

    /// Writes a complete copy of the state to the file `to`. The copy is durable when this returns;
    /// a crash leaves no partial file with that name.
    ///
    /// Fails if `to` exists or can't be written.
    pub fn backup(&self, to: &Path) -> Result<()> {
        self.engine.backup(to)
    }

    /// Overwrites earlier content in unused parts of the storage: unencrypted, or encrypted with an
    /// older key. Does nothing if that was done already. Returns whether it is done: `false` if
    /// another process reads, or if the disk is too full for a second copy; then a later call does
    /// it.
    ///
    /// A crash leaves the state as it was. It can't remove copies that the disk itself or backups
    /// keep.
    ///
    /// Fails if the state can't be written.
    pub fn scrub(&mut self) -> Result<bool> {
        self.engine.scrub()
    }

    /// Sets how long to wait for another process's transaction; ten seconds by default.
    ///
    /// Fails if the database rejects it.
    pub fn set_busy_timeout(&mut self, timeout: Duration) -> Result<()> {
        self.engine.set_busy_timeout(timeout)
    }

    /// Whether this is a migrated copy of a state with an older schema, which opening for writing
    /// would migrate.
    pub fn is_outdated(&self) -> bool {
        self.engine.is_outdated()
    }

    /// Whether commits wait for the disk, as [`SqlStore::transaction`] guarantees. Only the
    /// simulation turns it off, to prove that tests detect the loss.
    ///
    /// Fails if the database rejects it.
    #[doc(hidden)]
    pub fn wait_for_disk(&mut self, waits: bool) -> Result<()> {
        self.engine.wait_for_disk(waits)
    }

    /// Ignores the fencing token from now on. Only the simulation uses it, to prove that tests
    /// detect the damage.
    #[doc(hidden)]
    pub fn ignore_fence(&mut self) {
        self.is_fenced = false;
    }

    fn read_fence(&self) -> Result<u64> {
        let of = "SELECT fence FROM meta WHERE id = 1";
        self.read(|sql| sql.one(of, &[], |row| row.get(0)))
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
        if !self.is_fenced {
            self.fence = self.read_fence()?;
        }
        let (place, ring, fence) = (self.engine.place().to_owned(), &self.ring, self.fence);
        let (mut change, mut done) = (Some(change), None);
        self.engine.write(&mut |sql| {
            let mut transaction = Transaction::begin(sql, &place, now, ring, fence)?;
            if let Some(change) = change.take() {
                let result = change(&mut transaction)?;
                done = Some((result, transaction.finish()?));
            }
            Ok(())
        })?;
        let (result, (fence, key)) = done.expect("an engine calls what it is given");
        if let Some(key) = key {
            self.ring.remember(key);
        }
        self.fence = fence;
        Ok(result)
    }

    /// Reads in one transaction.
    ///
    /// Fails if the state can't be read.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&dyn Sql) -> sql::Result<R>) -> Result<R> {
        let place = self.engine.place();
        self.read_once(|sql| read(sql).map_err(|error| StateError::sql(place, error)))
    }

    /// Reads in one transaction, with the cipher of the rows.
    ///
    /// Fails if the state can't be read, or if the key is missing.
    pub(crate) fn read_opened<R>(
        &self,
        read: impl FnOnce(&dyn Sql, &RowCrypto) -> sql::Result<R>,
    ) -> Result<R> {
        let place = self.engine.place();
        self.read_once(|sql| {
            let crypto = self.ring.crypto(sql, place)?;
            read(sql, &crypto).map_err(|error| StateError::sql(place, error))
        })
    }

    fn read_once<R>(&self, read: impl FnOnce(&dyn Sql) -> Result<R>) -> Result<R> {
        let (mut read, mut found) = (Some(read), None);
        self.engine.read(&mut |sql| {
            if let Some(read) = read.take() {
                found = Some(read(sql)?);
            }
            Ok(())
        })?;
        Ok(found.expect("an engine calls what it is given"))
    }
}

/// Reads the properties of the state.
///
/// Fails if the state can't be read.
pub(crate) fn meta(sql: &dyn Sql) -> sql::Result<Meta> {
    let (key, _) = keys::need(sql)?;
    let schema_version = sql.schema_version()?;
    let of = "SELECT cluster, shard, provider, lineage, serial, created_at, moved_to
         FROM meta WHERE id = 1";
    sql.one(of, &[], |row| {
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
            key,
            moved_to: row.get(6)?,
        })
    })
}

/// All columns of `specs`, for [`spec`].
pub(crate) const SPECS: &str = "SELECT digest, size, body FROM specs";

/// A spec and its digest. Fails if it can't be decrypted.
pub(crate) fn spec(row: &Row<'_>, crypto: &RowCrypto) -> sql::Result<(SpecDigest, Vec<u8>)> {
    let digest = crypto.unmask(SpecDigest(row.get(0)?));
    let stored = row.blob(2)?;
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
pub(crate) fn fetched(row: &Row<'_>, crypto: &RowCrypto) -> sql::Result<FetchedRow> {
    let name: String = row.get(0)?;
    let fetched_at = Timestamp(row.get(4)?);
    let content = crypto
        .unpack(
            &Place::fetched(&name, fetched_at),
            row.blob(3)?,
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
pub(crate) fn observation_cache(row: &Row<'_>, crypto: &RowCrypto) -> sql::Result<Vec<u8>> {
    let place = Place::observation_cache(Timestamp(row.get(3)?));
    crypto
        .unpack(&place, row.blob(2)?, row.get(1)?)
        .map_err(|error| unreadable(2, error))
}
