//! A state, opened: everything that can be read from it, and the way into a transaction.
//!
//! In: a path. Out: [`Meta`], [`Snapshot`], specs, caches. Every read is one transaction. It may
//! not write but through [`Store::transaction`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::codec;
use crate::error::{Result, StateError};
use crate::files::Fingerprint;
use crate::model::{FetchedRow, Identity, ImageRow, Intent, Meta, SpecDigest, Timestamp};
use crate::new_file;
use crate::open::{self, Access, Opened};
use crate::schema::{self, MIGRATIONS};
use crate::snapshot::{self, Snapshot};
use crate::transaction::Transaction;

/// A state that is open.
///
/// Any number of processes may have the same state open. One of them writes at a time: a
/// transaction waits for another's to end, up to the busy timeout. That only one *apply* runs is
/// the business of [`crate::Lock`].
#[derive(Debug)]
pub struct Store {
    opened: Opened,
    path: PathBuf,
}

impl Store {
    /// Makes a state at `path` and opens it. The folders above it are made where they are
    /// missing; a file that is there already is an error and stays as it is. Only its owner may
    /// read the new file.
    ///
    /// When this returns, the state and its name are on disk. A crash leaves either that or no
    /// state, never half of one.
    pub fn create(path: &Path, identity: &Identity, lineage: &str, now: Timestamp) -> Result<Self> {
        new_file::create(path, MIGRATIONS, |connection| {
            let Identity {
                cluster,
                shard,
                provider,
            } = identity;
            connection
                .execute(
                    "INSERT INTO meta (id, cluster, shard, provider, lineage, serial, created_at)
                     VALUES (1, ?1, ?2, ?3, ?4, 0, ?5)",
                    (cluster, shard, provider, lineage, now.0),
                )
                .map(|_| ())
        })?;
        Self::open(path, Some(identity))
    }

    /// Opens the state at `path` for reading and writing. What belongs to someone else than
    /// `expected` is refused, and so is what is no state, damaged, or of a newer schema; what is
    /// refused keeps every byte.
    ///
    /// An older schema is migrated. Before that, a backup is on disk beside the file
    /// ([`Store::automatic_backups`]); a crash leaves the file at the old schema, at the new one,
    /// or at one between, and opening it again goes on from there.
    pub fn open(path: &Path, expected: Option<&Identity>) -> Result<Self> {
        let opened = open::to_write(path, expected, MIGRATIONS)?;
        Ok(Self {
            opened,
            path: path.to_owned(),
        })
    }

    /// Opens the state at `path` for reading. Takes no lock that a writer would wait for, works
    /// where neither the file nor its folder can be written, and leaves no new file behind. An
    /// older schema is read from a migrated copy.
    pub fn open_read_only(path: &Path, expected: Option<&Identity>) -> Result<Self> {
        let opened = open::to_read(path, expected, MIGRATIONS)?;
        Ok(Self {
            opened,
            path: path.to_owned(),
        })
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

    /// What is true of the state as a whole.
    pub fn meta(&self) -> Result<Meta> {
        self.read(meta)
    }

    /// Everything that a plan needs, as it was at one moment.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.read(|connection| {
            let meta = meta(connection)?;
            snapshot::read(connection, meta)
        })
    }

    /// The intents that were opened and not closed, oldest first: what the next run must settle.
    pub fn open_intents(&self) -> Result<Vec<Intent>> {
        self.read(snapshot::intents)
    }

    /// The specs with these digests. Those that aren't in the state are left out; what a record
    /// or an open intent refers to is always there.
    pub fn specs(
        &self,
        digests: impl Iterator<Item = SpecDigest>,
    ) -> Result<HashMap<SpecDigest, Arc<[u8]>>> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT size, body FROM specs WHERE digest = ?1")?;
            let mut specs = HashMap::new();
            for digest in digests {
                if specs.contains_key(&digest) {
                    continue;
                }
                let spec = statement
                    .query_row([&digest.0[..]], |row| unpacked(row, 0, 1))
                    .optional()?;
                if let Some(spec) = spec {
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
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT url, digest, size, body, fetched_at FROM fetched WHERE url = ?1",
                )?
                .query_row([url], |row| {
                    Ok(FetchedRow {
                        url: row.get(0)?,
                        digest: row.get(1)?,
                        body: unpacked(row, 2, 3)?,
                        fetched_at: Timestamp(row.get(4)?),
                    })
                })
                .optional()
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
        let mut transaction = Transaction::begin(&mut self.opened.connection, &self.path, now)?;
        let result = change(&mut transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// Whether a commit waits for the disk, which is what [`Store::transaction`] promises. Only
    /// the simulator says no, to see that the loss is noticed.
    #[doc(hidden)]
    pub fn wait_for_disk(&mut self, waits: bool) -> Result<()> {
        let mode = if waits { "FULL" } else { "OFF" };
        self.opened
            .connection
            .pragma_update(None, "synchronous", mode)
            .map_err(|error| StateError::sqlite(&self.path, error))
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
            })
        })
}

/// The bytes of a packed column, with another column for their length.
pub(crate) fn unpacked(row: &Row<'_>, size: usize, body: usize) -> rusqlite::Result<Vec<u8>> {
    let packed = row.get_ref(body)?.as_blob()?;
    codec::unpack(packed, row.get(size)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(body, Type::Blob, Box::new(error))
    })
}

/// A value in the file that nothing here wrote.
pub(crate) fn unknown(column: usize, what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, format!("unknown {what}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(folder: &Path) -> Store {
        let identity = Identity {
            cluster: "prod".into(),
            shard: "a".into(),
            provider: "aws".into(),
        };
        Store::create(&folder.join("prod.db"), &identity, "lineage", Timestamp(1)).unwrap()
    }

    fn put(store: &mut Store, seed: u8, length: usize) -> Result<()> {
        // Bytes that can't be compressed to nothing.
        let mut value = u32::from(seed);
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (value >> 24) as u8
        })
        .take(length)
        .collect();
        store.transaction(Timestamp(2), |transaction| {
            transaction.put_spec(SpecDigest([seed; 32]), &bytes)
        })
    }

    #[test]
    fn a_full_disk_keeps_nothing_of_the_transaction_and_spoils_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = create(folder.path());
        put(&mut store, 1, 1000).unwrap();
        // As full as a disk can be made without filling one.
        let limit = |store: &Store, pages: u32| {
            store
                .opened
                .connection
                .pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0))
                .unwrap()
        };
        limit(&store, 40);
        assert!(matches!(
            put(&mut store, 2, 1_000_000),
            Err(StateError::Full { .. })
        ));
        let digests = || [1, 2, 3].into_iter().map(|seed| SpecDigest([seed; 32]));
        assert_eq!(store.specs(digests()).unwrap().len(), 1);
        assert_eq!(store.check().unwrap(), []);
        put(&mut store, 3, 10_000).unwrap();
        assert_eq!(store.specs(digests()).unwrap().len(), 2);
        limit(&store, 10_000);
        put(&mut store, 2, 1_000_000).unwrap();
        let specs = store.specs(digests()).unwrap();
        assert_eq!(specs[&SpecDigest([2; 32])].len(), 1_000_000);
    }

    #[test]
    fn what_was_read_without_a_lock_counts_only_if_nobody_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prod.db");
        let unlocked = |before| {
            let opened = Opened {
                connection: open::unlocked(&path).unwrap(),
                access: Access::Unlocked(before),
            };
            Store {
                opened,
                path: path.clone(),
            }
        };
        drop(create(folder.path()));
        let reader = unlocked(Fingerprint::of(&path).unwrap());
        assert_eq!(reader.meta().unwrap().serial, 0);
        assert_eq!(reader.snapshot().unwrap().records, []);

        let mut writer = Store::open(&path, None).unwrap();
        put(&mut writer, 1, 10).unwrap();
        assert!(matches!(reader.meta(), Err(StateError::Changed { .. })));
        drop(writer);
        assert!(matches!(reader.snapshot(), Err(StateError::Changed { .. })));
        assert!(matches!(
            reader.backup(&folder.path().join("copy.db")),
            Err(StateError::Changed { .. })
        ));
        drop(reader);
        let reader = unlocked(Fingerprint::of(&path).unwrap());
        assert_eq!(
            reader
                .specs([SpecDigest([1; 32])].into_iter())
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn every_commit_is_synced() {
        let folder = tempfile::tempdir().unwrap();
        let store = create(folder.path());
        let pragma = |name| {
            store
                .opened
                .connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .unwrap()
        };
        assert_eq!(pragma("synchronous"), 2);
        assert_eq!(pragma("foreign_keys"), 1);
    }
}
