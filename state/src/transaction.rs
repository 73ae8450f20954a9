//! All changes of a state, as methods of [`Transaction`].
//!
//! In: records, specs, intents, history, caches, rollouts. Out: ids and numbers that the store assigns.
//! Changes are durable when [`crate::SqliteStore::transaction`] returns, and not before. The
//! methods themselves don't sync, so a wave of intents costs one sync. Must not: read a clock.

mod caches;
mod contents;
mod journal;
mod rollouts;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Params, Row, TransactionBehavior, params,
};

use crate::codec::Effort;
use crate::error::{Result, StateError};
use crate::keys::KeyRing;
use crate::model::{Record, SpecDigest, Timestamp, address};
use crate::row_crypto::{Place, RowCrypto};
use crate::schema::{self, MIGRATIONS, newest};
use crate::seal::Key;

/// A running transaction. No other process writes meanwhile.
#[derive(Debug)]
pub struct Transaction<'store> {
    pub(crate) inner: rusqlite::Transaction<'store>,
    pub(crate) path: &'store Path,
    now: Timestamp,
    ring: &'store KeyRing,
    pub(crate) crypto: RowCrypto,
    /// The fencing token.
    fence: u64,
    /// Whether this transaction raised the fencing token.
    led: bool,
    /// The new key of the state, if it changes.
    pub(crate) rekeyed: Option<Key>,
    /// The serial before the transaction.
    serial: u64,
    /// Whether a record changed, so that the serial must grow.
    changed: bool,
    groups: HashMap<Arc<str>, i64>,
    pub(crate) specs: HashMap<SpecDigest, i64>,
}

/// A row of `instances`, with the numbers of its group and specs.
#[derive(PartialEq)]
struct Stored {
    group_id: i64,
    slot: u32,
    deposed: bool,
    provider_id: String,
    generation: u64,
    kind: String,
    spec_id: i64,
    observed: Option<SpecDigest>,
    zone: String,
    subnet: Option<String>,
    ip4: Option<String>,
    ip6: Option<String>,
    created_at: i64,
    attributes: String,
}

impl<'store> Transaction<'store> {
    /// Starts a transaction.
    ///
    /// Fails if another process writes for too long, if the writer is fenced, or if the key is
    /// missing.
    pub(crate) fn begin(
        connection: &'store mut Connection,
        path: &'store Path,
        now: Timestamp,
        ring: &'store KeyRing,
        fence: u64,
    ) -> Result<Self> {
        let refused = |error| StateError::sqlite(path, error);
        let inner = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(refused)?;
        // A newer version may have migrated the file since it was opened.
        let (found, supported) = (
            schema::version(&inner).map_err(refused)?,
            newest(MIGRATIONS),
        );
        if found > supported {
            return Err(StateError::Newer {
                path: path.to_owned(),
                found,
                supported,
            });
        }
        let (serial, leads): (u64, u64) = inner
            .query_row("SELECT serial, fence FROM meta WHERE id = 1", (), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .map_err(refused)?;
        if fence != leads {
            return Err(StateError::Fenced {
                path: path.to_owned(),
            });
        }
        let crypto = ring.crypto(&inner, path)?;
        let (groups, specs) = (HashMap::new(), HashMap::new());
        Ok(Self {
            inner,
            path,
            now,
            ring,
            crypto,
            fence,
            led: false,
            rekeyed: None,
            serial,
            changed: false,
            groups,
            specs,
        })
    }

    /// Commits; returns the fencing token.
    ///
    /// Fails if the state can't be written.
    pub(crate) fn commit(self) -> Result<u64> {
        if self.changed {
            self.execute(
                "UPDATE meta SET serial = ?1 WHERE id = 1",
                [self.serial + 1],
            )?;
        }
        let path = self.path;
        self.inner
            .commit()
            .map_err(|error| StateError::sqlite(path, error))?;
        if let Some(key) = self.rekeyed {
            self.ring.remember(key);
        }
        Ok(self.fence)
    }

    /// Raises the fencing token.
    ///
    /// Fails if the state can't be written.
    pub(crate) fn lead(&mut self) -> Result<()> {
        if !self.led {
            self.fence += 1;
            self.led = true;
            self.execute("UPDATE meta SET fence = ?1 WHERE id = 1", [self.fence])?;
        }
        Ok(())
    }

    /// The time of this transaction, as given.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The serial of the state if this transaction commits now.
    pub fn serial(&self) -> u64 {
        self.serial + u64::from(self.changed)
    }

    /// Stores a spec under its digest, unless it exists.
    ///
    /// Fails if the state can't be written.
    pub fn put_spec(&mut self, digest: SpecDigest, bytes: &[u8]) -> Result<()> {
        if self.find_spec(digest)?.is_some() {
            return Ok(());
        }
        self.execute(
            "INSERT INTO specs (digest, size, body) VALUES (?1, ?2, ?3)",
            params![
                &self.crypto.mask(digest).0[..],
                bytes.len(),
                self.crypto
                    .pack(&Place::spec(digest), bytes, Effort::Normal)?,
            ],
        )?;
        self.specs.insert(digest, self.inner.last_insert_rowid());
        Ok(())
    }

    /// Stores a record under its instance id, replacing an existing one. Its specs must be stored.
    /// An identical record changes nothing.
    ///
    /// Fails with [`StateError::Occupied`] if another live record has the slot, with
    /// [`StateError::Claimed`] if another record has the provider id, and with
    /// [`StateError::MissingSpec`].
    pub fn put_record(&mut self, record: Record) -> Result<()> {
        let new = Stored {
            group_id: self.group(&record.group)?,
            slot: record.slot,
            deposed: record.deposed,
            generation: record.generation,
            spec_id: self.spec(record.spec)?,
            observed: record.observed,
            provider_id: record.provider_id,
            kind: record.kind,
            zone: record.zone,
            subnet: record.subnet,
            ip4: record.ip4,
            ip6: record.ip6,
            created_at: record.created_at.0,
            attributes: record.attributes,
        };
        let old = self.stored(&record.instance_id)?;
        if old.as_ref() == Some(&new) {
            return Ok(());
        }
        self.write(&record.instance_id, &new)?;
        if let Some(old) = old {
            // The generation of the slot that it leaves must not be reused.
            self.raise_generation(old.group_id, old.slot, old.generation)?;
        }
        self.execute(
            "DELETE FROM generations WHERE group_id = ?1 AND slot = ?2 AND generation <= ?3",
            params![new.group_id, new.slot, new.generation],
        )?;
        self.changed = true;
        Ok(())
    }

    /// Removes the record of an instance; returns whether there was one. Keeps the generation of
    /// its slot.
    ///
    /// Fails if the state can't be written.
    pub fn remove_record(&mut self, instance_id: &str) -> Result<bool> {
        let Some(old) = self.stored(instance_id)? else {
            return Ok(false);
        };
        self.execute(
            "DELETE FROM instances WHERE instance_id = ?1",
            [instance_id],
        )?;
        self.raise_generation(old.group_id, old.slot, old.generation)?;
        self.changed = true;
        Ok(true)
    }

    /// Moves the records of a slot, including deposed ones, to another slot.
    ///
    /// Fails with [`StateError::NoRecord`] if there is no live record, with
    /// [`StateError::Occupied`] if the other slot has a live record, and with
    /// [`StateError::Unsettled`] if either slot has an open intent.
    pub fn move_record(&mut self, from: (&str, u32), to: (&str, u32)) -> Result<()> {
        for (group, slot) in [from, to] {
            let open = "SELECT 1 FROM journal
                        WHERE closed_at IS NULL AND group_name = ?1 AND slot = ?2";
            if self.row(open, params![group, slot], |_| Ok(()))?.is_some() {
                return Err(StateError::Unsettled {
                    address: address(group, slot),
                });
            }
        }
        let source = self.group(from.0)?;
        if self.live(source, from.1)?.is_none() {
            return Err(StateError::NoRecord {
                address: address(from.0, from.1),
            });
        }
        let target = self.group(to.0)?;
        if let Some(instance_id) = self.live(target, to.1)? {
            return Err(StateError::Occupied {
                address: address(to.0, to.1),
                instance_id,
            });
        }
        let generation = self.generation(source, from.1)?;
        self.execute(
            "UPDATE instances SET group_id = ?3, slot = ?4, updated_at = ?5, version = ?6
             WHERE group_id = ?1 AND slot = ?2",
            params![source, from.1, target, to.1, self.now.0, self.serial + 1],
        )?;
        self.raise_generation(source, from.1, generation)?;
        self.changed = true;
        Ok(())
    }

    /// The next generation of a slot: one more than any before. Once the transaction commits, it is
    /// never returned again.
    ///
    /// Fails if the state can't be written.
    pub fn next_generation(&mut self, group: &str, slot: u32) -> Result<u64> {
        let group = self.group(group)?;
        let next = self.generation(group, slot)? + 1;
        self.raise_generation(group, slot, next)?;
        Ok(next)
    }

    fn write(&self, instance_id: &str, new: &Stored) -> Result<()> {
        self.execute(
            "INSERT INTO instances (instance_id, provider_id, group_id, slot, deposed, generation,
                 kind, spec_id, observed, zone, subnet, ip4, ip6, created_at, updated_at,
                 attributes, version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
             ON CONFLICT (instance_id) DO UPDATE SET
                 provider_id = excluded.provider_id, group_id = excluded.group_id,
                 slot = excluded.slot, deposed = excluded.deposed,
                 generation = excluded.generation, kind = excluded.kind,
                 spec_id = excluded.spec_id, observed = excluded.observed,
                 zone = excluded.zone, subnet = excluded.subnet, ip4 = excluded.ip4,
                 ip6 = excluded.ip6, created_at = excluded.created_at,
                 updated_at = excluded.updated_at, attributes = excluded.attributes,
                 version = excluded.version",
            params![
                instance_id,
                new.provider_id,
                new.group_id,
                new.slot,
                new.deposed,
                new.generation,
                new.kind,
                new.spec_id,
                new.observed.map(|digest| self.crypto.mask(digest).0),
                new.zone,
                new.subnet,
                new.ip4,
                new.ip6,
                new.created_at,
                self.now.0,
                new.attributes,
                self.serial + 1,
            ],
        )
        .map(|_| ())
        .map_err(|error| match error {
            StateError::Sqlite { source, .. } if is_duplicate(&source) => self
                .conflict(instance_id, new)
                .unwrap_or_else(|| self.wrap(source)),
            other => other,
        })
    }

    /// The error if another record conflicts with this one.
    fn conflict(&self, instance_id: &str, new: &Stored) -> Option<StateError> {
        let claimed = "SELECT name, slot FROM instances JOIN groups ON groups.id = group_id
                       WHERE provider_id = ?1 AND instance_id <> ?2";
        let claimed = self.row(claimed, [&new.provider_id, instance_id], |row| {
            Ok(address(row.get_ref(0)?.as_str()?, row.get(1)?))
        });
        if let Ok(Some(address)) = claimed {
            return Some(StateError::Claimed {
                provider_id: new.provider_id.clone(),
                address,
            });
        }
        let occupant = self.live(new.group_id, new.slot).ok()??;
        let group: String = self
            .row(
                "SELECT name FROM groups WHERE id = ?1",
                [new.group_id],
                |row| row.get(0),
            )
            .ok()??;
        Some(StateError::Occupied {
            address: address(&group, new.slot),
            instance_id: occupant,
        })
    }

    fn stored(&self, instance_id: &str) -> Result<Option<Stored>> {
        self.row(
            "SELECT group_id, slot, deposed, provider_id, generation, kind, spec_id, observed,
                 zone, subnet, ip4, ip6, created_at, attributes
             FROM instances WHERE instance_id = ?1",
            [instance_id],
            |row| {
                Ok(Stored {
                    group_id: row.get(0)?,
                    slot: row.get(1)?,
                    deposed: row.get(2)?,
                    provider_id: row.get(3)?,
                    generation: row.get(4)?,
                    kind: row.get(5)?,
                    spec_id: row.get(6)?,
                    observed: row
                        .get::<_, Option<[u8; 32]>>(7)?
                        .map(|digest| self.crypto.unmask(SpecDigest(digest))),
                    zone: row.get(8)?,
                    subnet: row.get(9)?,
                    ip4: row.get(10)?,
                    ip6: row.get(11)?,
                    created_at: row.get(12)?,
                    attributes: row.get(13)?,
                })
            },
        )
    }

    fn live(&self, group: i64, slot: u32) -> Result<Option<String>> {
        self.row(
            "SELECT instance_id FROM instances
             WHERE group_id = ?1 AND slot = ?2 AND deposed = 0",
            params![group, slot],
            |row| row.get(0),
        )
    }

    /// The newest generation that a slot ever had; 0 if none.
    fn generation(&self, group: i64, slot: u32) -> Result<u64> {
        let newest = self.row(
            "SELECT max(
                 coalesce((SELECT max(generation) FROM instances
                           WHERE group_id = ?1 AND slot = ?2), 0),
                 coalesce((SELECT generation FROM generations
                           WHERE group_id = ?1 AND slot = ?2), 0))",
            params![group, slot],
            |row| row.get(0),
        )?;
        Ok(newest.unwrap_or(0))
    }

    fn raise_generation(&self, group: i64, slot: u32, generation: u64) -> Result<()> {
        self.execute(
            "INSERT INTO generations (group_id, slot, generation) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET generation = max(generation, excluded.generation)",
            params![group, slot, generation],
        )
        .map(|_| ())
    }

    /// The number of a group; assigned now if it has none.
    fn group(&mut self, name: &str) -> Result<i64> {
        if let Some(id) = self.groups.get(name) {
            return Ok(*id);
        }
        let known = self.row("SELECT id FROM groups WHERE name = ?1", [name], |row| {
            row.get(0)
        })?;
        let id = if let Some(id) = known {
            id
        } else {
            self.execute("INSERT INTO groups (name) VALUES (?1)", [name])?;
            self.inner.last_insert_rowid()
        };
        self.groups.insert(Arc::from(name), id);
        Ok(id)
    }

    fn spec(&mut self, digest: SpecDigest) -> Result<i64> {
        self.find_spec(digest)?
            .ok_or(StateError::MissingSpec { digest })
    }

    fn find_spec(&mut self, digest: SpecDigest) -> Result<Option<i64>> {
        if let Some(id) = self.specs.get(&digest) {
            return Ok(Some(*id));
        }
        let id = self.row(
            "SELECT id FROM specs WHERE digest = ?1",
            [&self.crypto.mask(digest).0[..]],
            |row| row.get(0),
        )?;
        if let Some(id) = id {
            self.specs.insert(digest, id);
        }
        Ok(id)
    }

    /// The next id of a table whose rows are encrypted for their ids. An id is never reused.
    fn next_id(&self, table: &str) -> Result<i64> {
        // The newest id ever assigned.
        let newest = self.row(
            "SELECT seq FROM sqlite_sequence WHERE name = ?1",
            [table],
            |row| row.get::<_, i64>(0),
        )?;
        Ok(newest.unwrap_or(0) + 1)
    }

    /// Executes a statement; returns the number of changed rows.
    ///
    /// Fails with the database's error.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.inner
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params))
            .map_err(|error| self.wrap(error))
    }

    /// Reads at most one row.
    ///
    /// Fails with the database's error.
    pub(crate) fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.inner
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(params, read).optional())
            .map_err(|error| self.wrap(error))
    }

    pub(crate) fn wrap(&self, error: rusqlite::Error) -> StateError {
        StateError::sqlite(self.path, error)
    }
}

/// Whether an error is a violated uniqueness constraint.
fn is_duplicate(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
        && error.sqlite_error().is_some_and(|error| {
            [
                rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE,
                rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            ]
            .contains(&error.extended_code)
        })
}
