//! Reads everything that a plan needs, at one moment.
//!
//! In: a database in a read transaction. Out: a [`Snapshot`]. Must not: write.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{ApplyId, Intent, IntentId, Meta, Operation, Record, SpecDigest, Timestamp};
use crate::row_crypto::{Place, RowCrypto};
use crate::sql::{self, Next, Row, Sql, unreadable};

/// Everything that a plan needs of a state, read in one transaction and therefore consistent.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The properties of the state.
    pub meta: Meta,
    /// All records, including deposed ones; ordered by group, slot, live before deposed,
    /// generation, id.
    pub records: Vec<Record>,
    /// The open intents, oldest first.
    pub intents: Vec<Intent>,
    /// The generations without a record, by group and slot.
    generations: HashMap<Arc<str>, HashMap<u32, u64>>,
}

impl Snapshot {
    /// A snapshot of sorted records.
    pub(crate) fn new(
        meta: Meta,
        records: Vec<Record>,
        intents: Vec<Intent>,
        generations: HashMap<Arc<str>, HashMap<u32, u64>>,
    ) -> Self {
        Self {
            meta,
            records,
            intents,
            generations,
        }
    }

    /// The records of one group, in the order of [`Snapshot::records`].
    pub fn group(&self, group: &str) -> &[Record] {
        let start = self
            .records
            .partition_point(|record| &*record.group < group);
        let length = self.records[start..].partition_point(|record| &*record.group == group);
        &self.records[start..start + length]
    }

    /// The live record of a slot.
    pub fn live(&self, group: &str, slot: u32) -> Option<&Record> {
        self.slot(group, slot)
            .first()
            .filter(|record| !record.deposed)
    }

    /// The deposed records, whose instances are still to be deleted.
    pub fn deposed(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.deposed)
    }

    /// The newest generation that the slot ever had; 0 if none. The slot's next instance gets the
    /// following one, which `Transaction::next_generation` returns.
    pub fn generation(&self, group: &str, slot: u32) -> u64 {
        let past = self
            .generations
            .get(group)
            .and_then(|slots| slots.get(&slot))
            .copied();
        let present = self
            .slot(group, slot)
            .iter()
            .map(|record| record.generation)
            .max();
        past.max(present).unwrap_or(0)
    }

    /// The generations without a record, with group and slot, in no order.
    pub fn past_generations(&self) -> impl Iterator<Item = (&Arc<str>, u32, u64)> {
        self.generations.iter().flat_map(|(group, slots)| {
            let slots = slots.iter();
            slots.map(move |(slot, generation)| (group, *slot, *generation))
        })
    }

    fn slot(&self, group: &str, slot: u32) -> &[Record] {
        let records = self.group(group);
        let start = records.partition_point(|record| record.slot < slot);
        let length = records[start..].partition_point(|record| record.slot == slot);
        &records[start..start + length]
    }
}

/// Reads a snapshot; `meta` must be from the same transaction.
///
/// Fails if the state can't be read, or if the key is missing.
pub(crate) fn read(sql: &dyn Sql, crypto: &RowCrypto, meta: Meta) -> sql::Result<Snapshot> {
    Ok(Snapshot {
        meta,
        records: records(sql, crypto)?,
        intents: intents(sql, crypto)?,
        generations: generations(sql)?,
    })
}

/// The records of a state. Without its key, their digests are masked.
///
/// Fails if the state can't be read.
pub(crate) fn records(sql: &dyn Sql, crypto: &RowCrypto) -> sql::Result<Vec<Record>> {
    let groups = groups(sql)?;
    let digests = Digests::read(sql, crypto)?;
    let count: usize = sql.one("SELECT count(*) FROM instances", &[], |row| row.get(0))?;
    let mut records = Vec::with_capacity(count);
    let all = "SELECT group_id, slot, deposed, instance_id, provider_id, generation, kind, spec_id,
                observed, zone, subnet, ip4, ip6, created_at, updated_at, attributes, version
         FROM instances";
    sql.query(all, &[], &mut |row| {
        let observed: Option<[u8; 32]> = row.get(8)?;
        records.push(Record {
            group: Arc::clone(found(&groups, row.get(0)?)?),
            slot: row.get(1)?,
            deposed: row.get(2)?,
            instance_id: row.get(3)?,
            provider_id: row.get(4)?,
            generation: row.get(5)?,
            kind: row.get(6)?,
            spec: digests.get(row.get(7)?, 7)?,
            observed: observed.map(|digest| crypto.unmask(SpecDigest(digest))),
            zone: row.get(9)?,
            subnet: row.get(10)?,
            ip4: row.get(11)?,
            ip6: row.get(12)?,
            created_at: Timestamp(row.get(13)?),
            updated_at: Timestamp(row.get(14)?),
            attributes: row.get(15)?,
            version: row.get(16)?,
        });
        Ok(Next::Row)
    })?;
    sort(&mut records, &groups);
    Ok(records)
}

/// Sorts by group, slot, deposed, generation, id. Rows are usually in that order already, and
/// records are large. So this checks the order first, and sorts keys instead of records.
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
    // Deposed instances of a slot may have equal generations.
    let in_order = |one: &Record, next: &Record| {
        (key(one), &*one.instance_id) <= (key(next), &*next.instance_id)
    };
    if records.is_sorted_by(in_order) {
        return;
    }
    records.sort_by_cached_key(key);
    for alike in records.chunk_by_mut(|one, next| key(one) == key(next)) {
        alike.sort_by(|one, next| one.instance_id.cmp(&next.instance_id));
    }
}

fn groups(sql: &dyn Sql) -> sql::Result<HashMap<i64, Arc<str>>> {
    sql.rows("SELECT id, name FROM groups", &[], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

fn generations(sql: &dyn Sql) -> sql::Result<HashMap<Arc<str>, HashMap<u32, u64>>> {
    let groups = groups(sql)?;
    let mut generations: HashMap<Arc<str>, HashMap<u32, u64>> = HashMap::new();
    let all = "SELECT group_id, slot, generation FROM generations";
    sql.query(all, &[], &mut |row| {
        let group = found(&groups, row.get(0)?)?;
        generations
            .entry(Arc::clone(group))
            .or_default()
            .insert(row.get(1)?, row.get(2)?);
        Ok(Next::Row)
    })?;
    Ok(generations)
}

/// The open intents, oldest first.
///
/// Fails if the state can't be read, or if the key is missing.
pub(crate) fn intents(sql: &dyn Sql, crypto: &RowCrypto) -> sql::Result<Vec<Intent>> {
    intents_of(sql, crypto, crypto)
}

/// The open intents while the key changes: requests are encrypted with the old key, and the digests
/// of specs are masked with the new one.
///
/// Fails if the state can't be read.
pub(crate) fn intents_of(
    sql: &dyn Sql,
    crypto: &RowCrypto,
    specs: &RowCrypto,
) -> sql::Result<Vec<Intent>> {
    sql.rows(INTENTS, &[], |row| intent(row, crypto, specs))
}

/// All columns of open intents, for [`intent`]; the id is the first.
pub(crate) const INTENTS: &str =
    "SELECT journal.id, apply_id, address, group_name, slot, operation,
        instance_id, provider_id, generation, attempt, token, specs.digest, journal.size, request,
        opened_at
    FROM journal LEFT JOIN specs ON specs.id = spec_id
    WHERE closed_at IS NULL ORDER BY journal.id";

/// Reads an intent of [`INTENTS`].
///
/// Fails if it is invalid or can't be decrypted.
pub(crate) fn intent(row: &Row<'_>, crypto: &RowCrypto, specs: &RowCrypto) -> sql::Result<Intent> {
    let operation = match row.text(5)? {
        "create" => Operation::Create,
        "update" => Operation::Update,
        "delete" => Operation::Delete,
        "register" => Operation::Register,
        "deregister" => Operation::Deregister,
        "drain" => Operation::Drain,
        other => return Err(unreadable(5, format!("unknown operation \"{other}\""))),
    };
    let spec: Option<[u8; 32]> = row.get(11)?;
    let mut intent = Intent {
        id: IntentId(row.get(0)?),
        apply_id: row.get::<Option<i64>>(1)?.map(ApplyId),
        address: row.get(2)?,
        group: row.get(3)?,
        slot: row.get(4)?,
        operation,
        instance_id: row.get(6)?,
        provider_id: row.get(7)?,
        generation: row.get(8)?,
        attempt: row.get(9)?,
        token: row.get(10)?,
        spec: spec.map(|digest| specs.unmask(SpecDigest(digest))),
        request: Vec::new(),
        opened_at: Timestamp(row.get(14)?),
    };
    let stored = row.blob(13)?;
    intent.request = crypto
        .unpack(&Place::request(intent.id, &intent), stored, row.get(12)?)
        .map_err(|error| unreadable(13, error))?;
    Ok(intent)
}

fn found(groups: &HashMap<i64, Arc<str>>, id: i64) -> sql::Result<&Arc<str>> {
    groups
        .get(&id)
        .ok_or_else(|| unreadable(0, format!("unknown group {id}")))
}

/// The digests of all specs by number. There may be one per record, so this is an array instead of
/// a map: numbers have few gaps, so an entry is usually near its own index.
struct Digests(Vec<(i64, SpecDigest)>);

impl Digests {
    fn read(sql: &dyn Sql, crypto: &RowCrypto) -> sql::Result<Self> {
        let mut digests: Vec<(i64, SpecDigest)> =
            sql.rows("SELECT id, digest FROM specs", &[], |row| {
                Ok((row.get(0)?, crypto.unmask(SpecDigest(row.get(1)?))))
            })?;
        digests.sort_unstable_by_key(|(id, _)| *id);
        Ok(Self(digests))
    }

    fn get(&self, id: i64, column: usize) -> sql::Result<SpecDigest> {
        let first = self.0.first().map_or(0, |(first, _)| *first);
        let guess = usize::try_from(id.wrapping_sub(first)).ok();
        if let Some((found, digest)) = guess.and_then(|index| self.0.get(index))
            && *found == id
        {
            return Ok(*digest);
        }
        match self.0.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(index) => Ok(self.0[index].1),
            Err(_) => Err(unreadable(column, format!("unknown spec {id}"))),
        }
    }
}
