//! The contents of a state in memory, and how batches change it.
//!
//! In: a copy of the tables. Out: the changed tables, or an error. The rules are those of
//! [`crate::Transaction`] in the simplest form; tests compare the file's store with it. Must not:
//! share code with that store, except for values.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::rollouts::Rollouts;
use crate::document::Contents;
use crate::error::{Result, StateError};
use crate::model::{
    Apply, ApplyId, ApplyStatus, FetchedRow, HistoryItem, Identity, ImageRow, Intent, IntentId,
    Meta, NewApply, Operation, Record, SpecDigest, Timestamp, address,
};
use crate::schema::{MIGRATIONS, newest};
use crate::snapshot::Snapshot;
use crate::store::{Write, Written};

/// A slot of a group.
type Slot = (Arc<str>, u32);

/// The contents of a state.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub(super) meta: Meta,
    pub(super) fence: u64,
    pub(super) specs: HashMap<SpecDigest, Arc<[u8]>>,
    pub(super) images: BTreeMap<String, ImageRow>,
    pub(super) fetched: HashMap<String, FetchedRow>,
    pub(super) observation_cache: Option<Vec<u8>>,
    pub(super) applies: Vec<Apply>,
    pub(super) items: Vec<(ApplyId, HistoryItem)>,
    pub(super) rollouts: Rollouts,
    /// By instance id.
    records: HashMap<String, Arc<Record>>,
    /// The instance ids of each slot's records.
    slots: BTreeMap<Slot, BTreeSet<String>>,
    /// The instance id for each provider id.
    provider_ids: HashMap<String, String>,
    generations: HashMap<Slot, u64>,
    intents: BTreeMap<IntentId, Intent>,
    newest_intent: i64,
    /// The specs that entries of the history keep.
    kept: BTreeMap<ApplyId, BTreeSet<SpecDigest>>,
}

impl Tables {
    pub(super) fn new(identity: &Identity, lineage: &str, now: Timestamp) -> Self {
        Self {
            meta: Meta {
                identity: identity.clone(),
                lineage: lineage.to_owned(),
                serial: 0,
                created_at: now,
                schema_version: newest(MIGRATIONS),
                key: None,
                moved_to: None,
            },
            fence: 0,
            specs: HashMap::new(),
            images: BTreeMap::new(),
            fetched: HashMap::new(),
            observation_cache: None,
            applies: Vec::new(),
            items: Vec::new(),
            rollouts: Rollouts::default(),
            records: HashMap::new(),
            slots: BTreeMap::new(),
            provider_ids: HashMap::new(),
            generations: HashMap::new(),
            intents: BTreeMap::new(),
            newest_intent: 0,
            kept: BTreeMap::new(),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let mut records: Vec<Record> = Vec::with_capacity(self.records.len());
        for ids in self.slots.values() {
            let start = records.len();
            records.extend(ids.iter().map(|id| Record::clone(&self.records[id])));
            records[start..].sort_by_key(|record| (record.deposed, record.generation));
        }
        let mut generations: HashMap<Arc<str>, HashMap<u32, u64>> = HashMap::new();
        for ((group, slot), generation) in &self.generations {
            let slots = generations.entry(Arc::clone(group)).or_default();
            slots.insert(*slot, *generation);
        }
        let intents = self.intents.values().cloned().collect();
        Snapshot::new(self.meta.clone(), records, intents, generations)
    }

    fn live(&self, slot: &Slot) -> Option<&Arc<Record>> {
        let ids = self.slots.get(slot)?;
        let mut records = ids.iter().map(|id| &self.records[id]);
        records.find(|record| !record.deposed)
    }

    /// The newest generation that a slot ever had; 0 if none.
    fn generation(&self, slot: &Slot) -> u64 {
        let ids = self.slots.get(slot).into_iter().flatten();
        let present = ids.map(|id| self.records[id].generation).max();
        let past = self.generations.get(slot).copied();
        past.max(present).unwrap_or(0)
    }

    fn take(&mut self, instance_id: &str) -> Option<Arc<Record>> {
        let record = self.records.remove(instance_id)?;
        self.provider_ids.remove(&record.provider_id);
        let slot = slot_of(&record);
        if let Some(ids) = self.slots.get_mut(&slot) {
            ids.remove(instance_id);
            if ids.is_empty() {
                self.slots.remove(&slot);
            }
        }
        Some(record)
    }

    fn put(&mut self, record: Record) {
        let id = record.instance_id.clone();
        self.slots
            .entry(slot_of(&record))
            .or_default()
            .insert(id.clone());
        self.provider_ids
            .insert(record.provider_id.clone(), id.clone());
        self.records.insert(id, Arc::new(record));
    }

    fn need_spec(&self, digest: SpecDigest) -> Result<()> {
        if self.specs.contains_key(&digest) {
            return Ok(());
        }
        Err(StateError::MissingSpec { digest })
    }
}

fn slot_of(record: &Record) -> Slot {
    (Arc::clone(&record.group), record.slot)
}

/// A batch being applied.
pub(super) struct Change {
    tables: Tables,
    now: Timestamp,
    /// The serial before the batch, or that of contents that it restored.
    serial: u64,
    changed: bool,
    led: bool,
}

impl Change {
    pub(super) fn new(tables: Tables, now: Timestamp) -> Self {
        Self {
            serial: tables.meta.serial,
            tables,
            now,
            changed: false,
            led: false,
        }
    }

    pub(super) fn finish(mut self) -> Tables {
        self.tables.meta.serial = self.serial + u64::from(self.changed);
        self.tables
    }

    pub(super) fn lead(&mut self) {
        if !self.led {
            self.tables.fence += 1;
            self.led = true;
        }
    }

    /// Applies one write.
    ///
    /// Fails as the methods of [`crate::Transaction`] do.
    pub(super) fn write(&mut self, write: Write, written: &mut Written) -> Result<()> {
        let now = self.now;
        let rollouts = &mut self.tables.rollouts;
        match write {
            Write::PutSpec { digest, bytes } => {
                let specs = &mut self.tables.specs;
                specs.entry(digest).or_insert_with(|| Arc::from(bytes));
            }
            Write::PutRecord(record) => self.put_record(*record)?,
            Write::RemoveRecord { instance_id } => self.remove_record(&instance_id),
            Write::MoveRecord { from, to } => self.move_record(&from, &to)?,
            Write::OpenIntent(intent) => written.intents.push(self.open_intent(*intent)?),
            Write::CloseIntent { id, .. } => {
                if self.tables.intents.remove(&id).is_none() {
                    let what = "intent";
                    return Err(StateError::NotOpen { what, id: id.0 });
                }
            }
            Write::StartApply(apply) => written.apply = Some(self.start_apply(apply)),
            Write::FinishApply {
                id,
                status,
                summary_json,
            } => self.finish_apply(written.apply(id), status, summary_json)?,
            Write::HistoryItem { id, item } => {
                let item = HistoryItem {
                    at: self.now,
                    ..*item
                };
                self.tables.items.push((written.apply(id), item));
            }
            Write::PutImage(image) => {
                self.tables.images.insert(image.name.clone(), image);
            }
            Write::PutFetched(fetched) => {
                self.tables.fetched.insert(fetched.url.clone(), fetched);
            }
            Write::PutObservationCache(bytes) => self.tables.observation_cache = Some(bytes),
            Write::KeepSpecs {
                id,
                digests,
                entries,
            } => self.keep_specs(written.apply(id), digests, entries)?,
            Write::CollectGarbage => self.collect_garbage(),
            Write::StartRollout(new) => written.rollout = Some(rollouts.start(now, *new)),
            Write::SetRolloutStatus { id, status } => rollouts.set_status(now, id, status)?,
            Write::SetRolloutPlan { id, plan } => rollouts.set_plan(id, plan)?,
            Write::PutRolloutGroup { id, group } => {
                rollouts.put_group(now, written.rollout(id), group)?;
            }
            Write::PutRolloutSlot { id, slot } => {
                rollouts.put_slot(now, written.rollout(id), slot)?;
            }
            Write::AddRequest(request) => rollouts.add_request(now, request),
            Write::RemoveRequest { id } => rollouts.remove_request(id),
            Write::MarkMoved { to } => self.tables.meta.moved_to = Some(to),
            Write::PutLastGood { group, body } => {
                rollouts.last_good.insert(group, body);
            }
            Write::RemoveLastGood { group } => {
                rollouts.last_good.remove(&group);
            }
            Write::Restore(contents) => self.restore(&contents)?,
            Write::Replace { now, contents } => self.replace(&now, &contents)?,
            // Nothing is encrypted.
            Write::Rekey(_) => {}
        }
        Ok(())
    }

    fn put_record(&mut self, record: Record) -> Result<()> {
        let tables = &self.tables;
        tables.need_spec(record.spec)?;
        let old = tables.records.get(&record.instance_id).cloned();
        if let Some(old) = &old {
            // Ignore the values that the store sets.
            let same = Record {
                updated_at: old.updated_at,
                version: old.version,
                ..record.clone()
            };
            if same == **old {
                return Ok(());
            }
        }
        let claims = tables.provider_ids.get(&record.provider_id);
        if let Some(other) = claims.filter(|id| **id != record.instance_id) {
            return Err(StateError::Claimed {
                provider_id: record.provider_id,
                address: tables.records[other].address(),
            });
        }
        let slot = slot_of(&record);
        let occupant = tables.live(&slot).filter(|_| !record.deposed);
        if let Some(other) = occupant.filter(|other| other.instance_id != record.instance_id) {
            return Err(StateError::Occupied {
                address: record.address(),
                instance_id: other.instance_id.clone(),
            });
        }
        let generation = record.generation;
        self.tables.take(&record.instance_id);
        self.tables.put(Record {
            updated_at: self.now,
            version: self.serial + 1,
            ..record
        });
        if let Some(old) = old {
            self.raise_generation(slot_of(&old), old.generation);
        }
        let past = self.tables.generations.get(&slot);
        if past.is_some_and(|past| *past <= generation) {
            self.tables.generations.remove(&slot);
        }
        self.changed = true;
        Ok(())
    }

    fn remove_record(&mut self, instance_id: &str) {
        if let Some(old) = self.tables.take(instance_id) {
            self.raise_generation(slot_of(&old), old.generation);
            self.changed = true;
        }
    }

    fn move_record(&mut self, from: &Slot, to: &Slot) -> Result<()> {
        let tables = &self.tables;
        for slot in [from, to] {
            let mut intents = tables.intents.values();
            if intents.any(|intent| intent.group == slot.0 && intent.slot == slot.1) {
                return Err(StateError::Unsettled {
                    address: address(&slot.0, slot.1),
                });
            }
        }
        if tables.live(from).is_none() {
            return Err(StateError::NoRecord {
                address: address(&from.0, from.1),
            });
        }
        if let Some(occupant) = tables.live(to) {
            return Err(StateError::Occupied {
                address: address(&to.0, to.1),
                instance_id: occupant.instance_id.clone(),
            });
        }
        let generation = tables.generation(from);
        let ids = self.tables.slots.get(from).cloned().unwrap_or_default();
        for id in ids {
            if let Some(record) = self.tables.take(&id) {
                self.tables.put(Record {
                    group: Arc::clone(&to.0),
                    slot: to.1,
                    updated_at: self.now,
                    version: self.serial + 1,
                    ..Record::clone(&record)
                });
            }
        }
        self.raise_generation(from.clone(), generation);
        self.changed = true;
        Ok(())
    }

    fn raise_generation(&mut self, slot: Slot, generation: u64) {
        let past = self.tables.generations.entry(slot).or_default();
        *past = generation.max(*past);
    }

    fn open_intent(&mut self, intent: Intent) -> Result<IntentId> {
        if let Some(digest) = intent.spec {
            self.tables.need_spec(digest)?;
        }
        let creates = |operation| operation == Operation::Create;
        let twin = self.tables.intents.values().any(|open| {
            creates(open.operation) && creates(intent.operation) && open.token == intent.token
        });
        if twin {
            return Err(StateError::Unsettled {
                address: intent.address,
            });
        }
        self.tables.newest_intent += 1;
        let id = IntentId(self.tables.newest_intent);
        if creates(intent.operation) {
            let slot = (Arc::clone(&intent.group), intent.slot);
            self.raise_generation(slot, intent.generation);
        }
        let opened_at = self.now;
        let opened = Intent {
            id,
            opened_at,
            ..intent
        };
        self.tables.intents.insert(id, opened);
        Ok(id)
    }

    fn start_apply(&mut self, apply: NewApply) -> ApplyId {
        self.lead();
        for other in &mut self.tables.applies {
            if other.status == ApplyStatus::Running {
                other.status = ApplyStatus::Interrupted;
            }
        }
        let id = ApplyId(self.tables.applies.len() as i64 + 1);
        self.tables.applies.push(Apply {
            id,
            started_at: self.now,
            finished_at: None,
            who: apply.who,
            host: apply.host,
            pid: apply.pid,
            operation: apply.operation,
            serial_before: self.serial,
            serial_after: None,
            status: ApplyStatus::Running,
            summary_json: "{}".to_owned(),
            plan_digest: apply.plan_digest,
        });
        id
    }

    fn finish_apply(
        &mut self,
        id: ApplyId,
        status: ApplyStatus,
        summary_json: String,
    ) -> Result<()> {
        let serial = self.serial + u64::from(self.changed);
        let mut applies = self.tables.applies.iter_mut();
        let Some(apply) =
            applies.find(|apply| apply.id == id && apply.status == ApplyStatus::Running)
        else {
            let what = "apply";
            return Err(StateError::NotOpen { what, id: id.0 });
        };
        apply.finished_at = Some(self.now);
        apply.serial_after = Some(serial);
        apply.status = status;
        apply.summary_json = summary_json;
        Ok(())
    }

    fn collect_garbage(&mut self) {
        let records = self.tables.records.values().map(|record| record.spec);
        let intents = self
            .tables
            .intents
            .values()
            .filter_map(|intent| intent.spec);
        let kept = self.tables.kept.values().flatten().copied();
        let used: BTreeSet<SpecDigest> = records.chain(intents).chain(kept).collect();
        self.tables.specs.retain(|digest, _| used.contains(digest));
    }

    fn keep_specs(&mut self, id: ApplyId, digests: Vec<SpecDigest>, entries: usize) -> Result<()> {
        for digest in digests {
            self.tables.need_spec(digest)?;
            self.tables.kept.entry(id).or_default().insert(digest);
        }
        while self.tables.kept.len() > entries {
            self.tables.kept.pop_first();
        }
        Ok(())
    }

    fn restore(&mut self, contents: &Contents) -> Result<()> {
        if let Some(record) = self.tables.records.values().next() {
            return Err(StateError::Occupied {
                address: record.address(),
                instance_id: record.instance_id.clone(),
            });
        }
        self.fill(contents, &contents.records)?;
        for record in &contents.records {
            self.tables.take(&record.instance_id);
            self.tables.put(record.clone());
        }
        self.open_as_they_were(&contents.intents)?;
        self.tables.meta.created_at = contents.created_at;
        self.serial = contents.serial;
        self.changed = false;
        Ok(())
    }

    fn replace(&mut self, now: &Contents, contents: &Contents) -> Result<()> {
        let id = |intent: &Intent| {
            let instance_id = intent.instance_id.clone();
            (intent.token.clone(), intent.operation.as_str(), instance_id)
        };
        let own: BTreeSet<_> = now.intents.iter().map(id).collect();
        let others: BTreeSet<_> = contents.intents.iter().map(id).collect();
        if let Some(lost) = now.intents.iter().find(|own| !others.contains(&id(own))) {
            return Err(StateError::Unsettled {
                address: lost.address.clone(),
            });
        }
        let differing = now.differences(contents);
        for own in differing.iter().filter_map(|(own, _)| *own) {
            self.remove_record(&own.instance_id);
        }
        let others = differing.iter().filter_map(|(_, other)| other.cloned());
        self.serial = self.serial.max(contents.serial);
        self.fill(contents, &others.collect::<Vec<_>>())?;
        let new = contents.intents.iter();
        let new = new.filter(|other| !own.contains(&id(other))).cloned();
        self.open_as_they_were(&new.collect::<Vec<_>>())?;
        self.tables.rollouts.clear();
        self.changed = true;
        Ok(())
    }

    fn fill(&mut self, contents: &Contents, records: &[Record]) -> Result<()> {
        let intents = contents.intents.iter().filter_map(|intent| intent.spec);
        for digest in records.iter().map(|record| record.spec).chain(intents) {
            if let Some(body) = contents.specs.get(&digest) {
                let specs = &mut self.tables.specs;
                specs.entry(digest).or_insert_with(|| Arc::clone(body));
            }
        }
        for record in records {
            self.put_record(record.clone())?;
        }
        for (slot, generation) in &contents.generations {
            self.raise_generation(slot.clone(), *generation);
        }
        Ok(())
    }

    fn open_as_they_were(&mut self, intents: &[Intent]) -> Result<()> {
        for intent in intents {
            let opened_at = intent.opened_at;
            let id = self.open_intent(Intent {
                apply_id: None,
                ..intent.clone()
            })?;
            if let Some(intent) = self.tables.intents.get_mut(&id) {
                intent.opened_at = opened_at;
            }
        }
        Ok(())
    }
}
