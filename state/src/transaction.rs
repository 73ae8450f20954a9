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

use crate::codec::Effort;
use crate::error::{Result, StateError};
use crate::keys::KeyRing;
use crate::model::{Record, SpecDigest, Timestamp, address};
use crate::row_crypto::{Place, RowCrypto};
use crate::seal::Key;
use crate::sql::{self, Row, Sql, Value, params};

/// A running transaction. No other process writes meanwhile.
pub struct Transaction<'store> {
    pub(crate) sql: &'store dyn Sql,
    pub(crate) path: &'store Path,
    now: Timestamp,
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
    /// The changes of a transaction that has begun.
    ///
    /// Fails if the writer is fenced, or if the key is missing.
    pub(crate) fn begin(
        sql: &'store dyn Sql,
        path: &'store Path,
        now: Timestamp,
        ring: &KeyRing,
        fence: u64,
    ) -> Result<Self> {
        let of = "SELECT serial, fence, moved_to FROM meta WHERE id = 1";
        let (serial, leads, moved): (u64, u64, Option<String>) = sql
            .one(of, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(|error| StateError::sql(path, error))?;
        if let Some(to) = moved {
            return Err(StateError::Moved {
                path: path.to_owned(),
                to,
            });
        }
        if fence != leads {
            return Err(StateError::Fenced {
                path: path.to_owned(),
            });
        }
        let crypto = ring.crypto(sql, path)?;
        let (groups, specs) = (HashMap::new(), HashMap::new());
        Ok(Self {
            sql,
            path,
            now,
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

    /// Writes what belongs to the transaction as a whole; returns the fencing token, and the new key
    /// of the state if it changed.
    ///
    /// Fails if the state can't be written.
    pub(crate) fn finish(self) -> Result<(u64, Option<Key>)> {
        if self.changed {
            self.execute(
                "UPDATE meta SET serial = ?1 WHERE id = 1",
                params![self.serial + 1],
            )?;
        }
        Ok((self.fence, self.rekeyed))
    }

    /// Raises the fencing token.
    ///
    /// Fails if the state can't be written.
    pub(crate) fn lead(&mut self) -> Result<()> {
        if !self.led {
            self.fence += 1;
            self.led = true;
            self.execute(
                "UPDATE meta SET fence = ?1 WHERE id = 1",
                params![self.fence],
            )?;
        }
        Ok(())
    }

    /// Marks the state as moved: nothing changes it any more.
    ///
    /// Fails if the state can't be written.
    pub fn mark_moved(&mut self, to: &str) -> Result<()> {
        self.execute("UPDATE meta SET moved_to = ?1 WHERE id = 1", params![to])?;
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
        let body = self
            .crypto
            .pack(&Place::spec(digest), bytes, Effort::Normal)?;
        let id = self.insert(
            "INSERT INTO specs (digest, size, body) VALUES (?1, ?2, ?3) RETURNING id",
            params![self.crypto.mask(digest), bytes.len(), body],
        )?;
        self.specs.insert(digest, id);
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
        self.refuse_conflict(&record.instance_id, &new)?;
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
            params![instance_id],
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
                new.observed.map(|digest| self.crypto.mask(digest)),
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
    }

    /// Fails if another record has the provider id, or is live in the slot.
    fn refuse_conflict(&self, instance_id: &str, new: &Stored) -> Result<()> {
        let other = "SELECT provider_id, name, slot, instance_id
                     FROM instances JOIN groups ON groups.id = group_id
                     WHERE instance_id <> ?1 AND (provider_id = ?2
                         OR group_id = ?3 AND slot = ?4 AND deposed = 0 AND ?5 = 0)
                     ORDER BY provider_id = ?2 DESC LIMIT 1";
        let params = params![
            instance_id,
            new.provider_id,
            new.group_id,
            new.slot,
            new.deposed
        ];
        let found = self.row(other, params, |row| {
            let address = address(row.text(1)?, row.get(2)?);
            Ok((row.get::<String>(0)?, address, row.get(3)?))
        })?;
        match found {
            None => Ok(()),
            Some((provider_id, address, _)) if provider_id == new.provider_id => {
                Err(StateError::Claimed {
                    provider_id,
                    address,
                })
            }
            Some((_, address, instance_id)) => Err(StateError::Occupied {
                address,
                instance_id,
            }),
        }
    }

    fn stored(&self, instance_id: &str) -> Result<Option<Stored>> {
        self.row(
            "SELECT group_id, slot, deposed, provider_id, generation, kind, spec_id, observed,
                 zone, subnet, ip4, ip6, created_at, attributes
             FROM instances WHERE instance_id = ?1",
            params![instance_id],
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
                        .get::<Option<[u8; 32]>>(7)?
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
            "SELECT coalesce(max(generation), 0) FROM
                 (SELECT generation FROM instances WHERE group_id = ?1 AND slot = ?2
                  UNION ALL
                  SELECT generation FROM generations WHERE group_id = ?1 AND slot = ?2) AS known",
            params![group, slot],
            |row| row.get(0),
        )?;
        Ok(newest.unwrap_or(0))
    }

    fn raise_generation(&self, group: i64, slot: u32, generation: u64) -> Result<()> {
        self.execute(
            "INSERT INTO generations (group_id, slot, generation) VALUES (?1, ?2, ?3)
             ON CONFLICT (group_id, slot) DO UPDATE SET generation = excluded.generation
                 WHERE excluded.generation > generations.generation",
            params![group, slot, generation],
        )
        .map(|_| ())
    }

    /// The number of a group; assigned now if it has none.
    fn group(&mut self, name: &str) -> Result<i64> {
        if let Some(id) = self.groups.get(name) {
            return Ok(*id);
        }
        let of = "SELECT id FROM groups WHERE name = ?1";
        let id = match self.row(of, params![name], |row| row.get(0))? {
            Some(id) => id,
            None => self.insert(
                "INSERT INTO groups (name) VALUES (?1) RETURNING id",
                params![name],
            )?,
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
            params![self.crypto.mask(digest)],
            |row| row.get(0),
        )?;
        if let Some(id) = id {
            self.specs.insert(digest, id);
        }
        Ok(id)
    }

    /// The next id of a table whose rows are encrypted for their ids. An id is never reused.
    fn next_id(&self, table: &str) -> Result<i64> {
        self.sql.next_id(table).map_err(|error| self.wrap(error))
    }

    /// Inserts a row with a statement that returns its id.
    ///
    /// Fails with the database's error.
    fn insert(&self, sql: &str, params: &[Value<'_>]) -> Result<i64> {
        self.sql
            .one(sql, params, |row| row.get(0))
            .map_err(|error| self.wrap(error))
    }

    /// Executes a statement; returns the number of changed rows.
    ///
    /// Fails with the database's error.
    pub(crate) fn execute(&self, sql: &str, params: &[Value<'_>]) -> Result<usize> {
        self.sql
            .execute(sql, params)
            .map_err(|error| self.wrap(error))
    }

    /// Reads at most one row.
    ///
    /// Fails with the database's error.
    pub(crate) fn row<T>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> sql::Result<T>,
    ) -> Result<Option<T>> {
        self.sql
            .row(sql, params, read)
            .map_err(|error| self.wrap(error))
    }

    pub(crate) fn wrap(&self, error: sql::Error) -> StateError {
        StateError::sql(self.path, error)
    }
}
