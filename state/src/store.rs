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
use crate::model::{
    ApplyId, FetchedRow, Identity, ImageRow, Intent, IntentId, Meta, Operation, Record, Snapshot,
    SpecDigest, Timestamp,
};
use crate::open::{self, Access, Opened};
use crate::schema::{self, MIGRATIONS};
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
        open::create(path, MIGRATIONS, |connection| {
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
            Ok(Snapshot {
                meta: meta(connection)?,
                records: records(connection)?,
                intents: intents(connection)?,
                generations: generations(connection)?,
            })
        })
    }

    /// The intents that were opened and not closed, oldest first: what the next run must settle.
    pub fn open_intents(&self) -> Result<Vec<Intent>> {
        self.read(intents)
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

    /// Writes a copy of the state to `to`, complete in one file; what is there already is an
    /// error. The copy is on disk when this returns; a crash leaves no half of it under that
    /// name.
    pub fn backup(&self, to: &Path) -> Result<()> {
        self.unchanged(|| open::backup(&self.opened.connection, &self.path, to))
    }

    /// The backups that were made beside the state at `path` before its schema was migrated,
    /// oldest schema first.
    pub fn automatic_backups(path: &Path) -> Result<Vec<PathBuf>> {
        open::automatic_backups(path)
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

fn records(connection: &Connection) -> rusqlite::Result<Vec<Record>> {
    let groups = groups(connection)?;
    let digests: HashMap<i64, SpecDigest> = connection
        .prepare_cached("SELECT id, digest FROM specs")?
        .query_map((), |row| Ok((row.get(0)?, SpecDigest(row.get(1)?))))?
        .collect::<rusqlite::Result<_>>()?;
    let count: usize =
        connection.query_row("SELECT count(*) FROM instances", (), |row| row.get(0))?;
    let mut records = Vec::with_capacity(count);
    let mut statement = connection.prepare_cached(
        "SELECT group_id, slot, deposed, instance_id, provider_id, generation, kind, spec_id,
                observed_id, zone, subnet, ip4, ip6, created_at, updated_at, attributes, version
         FROM instances",
    )?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let observed: Option<i64> = row.get(8)?;
        records.push(Record {
            group: Arc::clone(found(&groups, row.get(0)?, 0, "group")?),
            slot: row.get(1)?,
            deposed: row.get(2)?,
            instance_id: row.get(3)?,
            provider_id: row.get(4)?,
            generation: row.get(5)?,
            kind: row.get(6)?,
            spec: *found(&digests, row.get(7)?, 7, "spec")?,
            observed: observed
                .map(|id| found(&digests, id, 8, "spec").copied())
                .transpose()?,
            zone: row.get(9)?,
            subnet: row.get(10)?,
            ip4: row.get(11)?,
            ip6: row.get(12)?,
            created_at: Timestamp(row.get(13)?),
            updated_at: Timestamp(row.get(14)?),
            attributes: row.get(15)?,
            version: row.get(16)?,
        });
    }
    sort(&mut records, &groups);
    Ok(records)
}

/// Sorts by group, slot, deposed, generation. Rows mostly lie in that order already, and a record
/// is large: so the order is checked first, and keys are sorted rather than records.
fn sort(records: &mut [Record], groups: &HashMap<i64, Arc<str>>) {
    let mut names: Vec<&str> = groups.values().map(|name| &**name).collect();
    names.sort_unstable();
    let ranks: HashMap<&str, usize> = names
        .into_iter()
        .enumerate()
        .map(|(rank, name)| (name, rank))
        .collect();
    let key = |record: &Record| {
        (
            ranks.get(&*record.group).copied(),
            record.slot,
            record.deposed,
            record.generation,
        )
    };
    if !records.is_sorted_by_key(key) {
        records.sort_by_cached_key(key);
    }
}

fn groups(connection: &Connection) -> rusqlite::Result<HashMap<i64, Arc<str>>> {
    connection
        .prepare_cached("SELECT id, name FROM groups")?
        .query_map((), |row| {
            Ok((row.get(0)?, Arc::from(row.get_ref(1)?.as_str()?)))
        })?
        .collect()
}

fn generations(connection: &Connection) -> rusqlite::Result<HashMap<Arc<str>, HashMap<u32, u64>>> {
    let groups = groups(connection)?;
    let mut generations: HashMap<Arc<str>, HashMap<u32, u64>> = HashMap::new();
    let mut statement =
        connection.prepare_cached("SELECT group_id, slot, generation FROM generations")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let group = found(&groups, row.get(0)?, 0, "group")?;
        generations
            .entry(Arc::clone(group))
            .or_default()
            .insert(row.get(1)?, row.get(2)?);
    }
    Ok(generations)
}

fn intents(connection: &Connection) -> rusqlite::Result<Vec<Intent>> {
    connection
        .prepare_cached(
            "SELECT journal.id, apply_id, address, group_name, slot, operation, instance_id,
                    provider_id, generation, attempt, token, specs.digest, journal.size, request,
                    opened_at
             FROM journal LEFT JOIN specs ON specs.id = spec_id
             WHERE closed_at IS NULL ORDER BY journal.id",
        )?
        .query_map((), |row| {
            let operation = match row.get_ref(5)?.as_str()? {
                "create" => Operation::Create,
                "update" => Operation::Update,
                "delete" => Operation::Delete,
                other => return Err(unknown(5, &format!("operation \"{other}\""))),
            };
            Ok(Intent {
                id: IntentId(row.get(0)?),
                apply_id: row.get::<_, Option<i64>>(1)?.map(ApplyId),
                address: row.get(2)?,
                group: Arc::from(row.get_ref(3)?.as_str()?),
                slot: row.get(4)?,
                operation,
                instance_id: row.get(6)?,
                provider_id: row.get(7)?,
                generation: row.get(8)?,
                attempt: row.get(9)?,
                token: row.get(10)?,
                spec: row.get::<_, Option<[u8; 32]>>(11)?.map(SpecDigest),
                request: unpacked(row, 12, 13)?,
                opened_at: Timestamp(row.get(14)?),
            })
        })?
        .collect()
}

/// The bytes of a packed column, with another column for their length.
pub(crate) fn unpacked(row: &Row<'_>, size: usize, body: usize) -> rusqlite::Result<Vec<u8>> {
    let packed = row.get_ref(body)?.as_blob()?;
    codec::unpack(packed, row.get(size)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(body, Type::Blob, Box::new(error))
    })
}

fn found<'map, V>(
    map: &'map HashMap<i64, V>,
    id: i64,
    column: usize,
    what: &str,
) -> rusqlite::Result<&'map V> {
    map.get(&id)
        .ok_or_else(|| unknown(column, &format!("{what} {id}")))
}

/// A value in the file that nothing here wrote.
pub(crate) fn unknown(column: usize, what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, format!("unknown {what}").into())
}
