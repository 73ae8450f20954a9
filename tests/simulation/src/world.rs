//! What outlives a process: the folder with the state, the cloud, the time; and what must be true
//! of them between runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nstance::apply::requests::CreateIntent;
use nstance::clock::{Clock as _, FixedClock, Timestamp};
use nstance::config::model::ProviderKind;
use nstance::provider::sim::admin::{Admin, InstanceRow};
use nstance::provider::sim::{SimCloud, SimOptions};
use nstance_state::{Backend, Identity, Operation, Snapshot, SqliteFile, Store};

use crate::disk::Disk;
use crate::fleet::{BALANCER, Fleet, Group};
use crate::promise::Promise;
use crate::shared_memory::SharedMemory;
use crate::watch::lock;

const START: Timestamp = Timestamp(1_800_000_000_000);

/// A state and a cloud at a time.
pub(crate) struct World {
    /// Where it lies, if something may go wrong with it.
    disk: Option<Disk>,
    pub(crate) clock: Arc<FixedClock>,
    /// How the cloud behaves from the next run on.
    pub(crate) weather: SimOptions,
    admin: Mutex<Admin>,
    /// Goes after whatever is open in it.
    folder: Folder,
    /// Whether the last look found no open intent.
    pub(crate) is_settled: bool,
    /// Instances whose record was lost with the state: nobody's until they are adopted.
    pub(crate) lost: BTreeSet<String>,
    /// What the last run had to keep to.
    pub(crate) promise: Mutex<Promise>,
    /// Groups as they were when all of them was last as declared, by name.
    pub(crate) good: Mutex<BTreeMap<String, Group>>,
    /// Whether nobody but nstance created or deleted anything since its last run began.
    pub(crate) untouched: AtomicBool,
    last_serial: u64,
    last_records: String,
}

/// A folder with databases: what connections shared of these goes with it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        SharedMemory::forget(self.path());
    }
}

/// What is broken.
pub(crate) type Broken = String;

impl World {
    pub(crate) fn new(weather: SimOptions) -> Self {
        let folder = Folder(Self::folder());
        let clock = Arc::new(FixedClock::new(START));
        std::fs::create_dir(folder.path().join("state")).unwrap();
        Self {
            disk: Disk::under(&folder.path().join("state")),
            admin: Mutex::new(Admin::open(&folder.path().join("cloud.db"), clock.clone()).unwrap()),
            is_settled: false,
            folder,
            clock,
            weather,
            lost: BTreeSet::new(),
            promise: Mutex::default(),
            good: Mutex::default(),
            untouched: AtomicBool::new(true),
            last_serial: 0,
            last_records: String::new(),
        }
    }

    /// A folder, in memory where that is possible: each commit waits for its disk.
    pub(crate) fn folder() -> tempfile::TempDir {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        folder.unwrap()
    }

    /// Another world that is the same so far.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new(self.weather.clone());
        for part in ["", "state"] {
            for file in std::fs::read_dir(self.folder.path().join(part)).unwrap() {
                let file = file.unwrap();
                if file.path().is_file() {
                    let to = copy.folder.path().join(part).join(file.file_name());
                    std::fs::copy(file.path(), to).unwrap();
                }
            }
        }
        copy.pass(self.clock.now().since(START));
        Self {
            lost: self.lost.clone(),
            promise: Mutex::new(lock(&self.promise).clone()),
            good: Mutex::new(lock(&self.good).clone()),
            untouched: AtomicBool::new(self.untouched.load(Ordering::SeqCst)),
            last_serial: self.last_serial,
            last_records: self.last_records.clone(),
            ..copy
        }
    }

    pub(crate) fn identity() -> Identity {
        Identity {
            cluster: "sea".to_owned(),
            shard: "reef".to_owned(),
            provider: "sim".to_owned(),
        }
    }

    pub(crate) fn state_path(&self) -> PathBuf {
        self.folder.path().join("state/state.db")
    }

    /// The storage of the state.
    pub(crate) fn backend(&self) -> Box<dyn Backend> {
        Box::new(SqliteFile::new(self.state_path(), None))
    }

    pub(crate) fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// Whether the disk may be the cause of what failed.
    pub(crate) fn has_trouble(&self) -> bool {
        self.disk.as_ref().is_some_and(Disk::has_trouble)
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.sleep(time);
    }

    pub(crate) fn cloud(&self) -> SimCloud {
        let path = self.folder.path().join("cloud.db");
        let clock = self.clock.clone();
        SimCloud::open(&path, &self.weather, ProviderKind::Sim, clock).unwrap()
    }

    pub(crate) fn admin(&self) -> MutexGuard<'_, Admin> {
        lock(&self.admin)
    }

    /// All instances that are there, whatever their tags say.
    pub(crate) fn live(&self) -> Vec<InstanceRow> {
        let mut rows = self.admin().list(false).unwrap();
        rows.retain(|row| row.state.is_live());
        rows
    }

    /// The state, if there is one.
    pub(crate) fn snapshot(&self) -> Result<Option<Snapshot>, Broken> {
        if !self.state_path().exists() {
            return Ok(None);
        }
        let store = self.backend().open_to_write(None);
        let snapshot = store.and_then(|store| store.snapshot());
        snapshot
            .map(Some)
            .map_err(|error| format!("the state can't be read: {error}"))
    }

    /// What a state holds, as a text.
    pub(crate) fn text_of(snapshot: &Snapshot) -> String {
        let intents = snapshot.intents.iter();
        let intents: Vec<_> = intents.map(|i| (i.id, &i.address, &i.token)).collect();
        format!(
            "serial {}, {:?}, {intents:?}",
            snapshot.meta.serial, snapshot.records
        )
    }

    /// Somebody else changes what there is.
    pub(crate) fn touch(&self) {
        self.untouched.store(false, Ordering::SeqCst);
    }

    /// The state's file is deleted; what it knew of is nobody's.
    pub(crate) fn lose_state(&mut self) {
        if !self.state_path().exists() {
            return;
        }
        let ids = self.live().into_iter().map(|row| row.provider_id);
        self.lost.extend(ids.collect::<Vec<_>>());
        for suffix in ["", "-wal", "-shm"] {
            let path = format!("{}{suffix}", self.state_path().display());
            let _ = std::fs::remove_file(path);
        }
        if let Some(disk) = &self.disk {
            disk.forget();
        }
        self.touch();
        self.last_serial = 0;
        self.last_records.clear();
        lock(&self.good).clear();
    }

    /// Where a state was lost, several instances may claim a slot; nstance leaves those alone that
    /// it doesn't record, and says so. One that has what another needs, such as its address, is
    /// deleted by hand.
    pub(crate) fn delete_duplicates(&self) -> Result<(), Broken> {
        let Some(snapshot) = self.snapshot()? else {
            return Ok(());
        };
        let recorded = |id: &String| snapshot.records.iter().any(|it| it.provider_id == *id);
        for row in self.live() {
            let id = row.provider_id;
            if self.lost.contains(&id) && !recorded(&id) {
                self.admin().delete(&id).unwrap();
                self.touch();
            }
        }
        Ok(())
    }

    /// What must be true after every run, however it ended.
    pub(crate) fn check(&mut self) -> Result<(), Broken> {
        let snapshot = self.snapshot()?;
        self.is_settled = snapshot.as_ref().is_some_and(|s| s.intents.is_empty());
        let Some(snapshot) = snapshot else {
            return self.check_none(self.live());
        };
        self.check_serial(&snapshot)?;
        self.check_orphans(&snapshot, self.live())
    }

    /// While there is no state, nothing is there but what a lost one knew of.
    fn check_none(&self, mut live: Vec<InstanceRow>) -> Result<(), Broken> {
        live.retain(|row| !self.lost.contains(&row.provider_id));
        if live.is_empty() {
            Ok(())
        } else {
            Err(format!("instances without a state: {live:?}"))
        }
    }

    /// The serial grows with every change of a record, and never shrinks.
    fn check_serial(&mut self, snapshot: &Snapshot) -> Result<(), Broken> {
        let records = format!("{:?}", snapshot.records);
        let serial = snapshot.meta.serial;
        let (before, changed) = (self.last_serial, records != self.last_records);
        self.last_serial = serial;
        self.last_records = records;
        if serial < before || changed && serial == before && before > 0 {
            return Err(format!("the serial went from {before} to {serial}"));
        }
        Ok(())
    }

    /// Every live instance is recorded or about to be, and no slot has more than one, but for the
    /// predecessor in a replacement.
    fn check_orphans(&self, snapshot: &Snapshot, live: Vec<InstanceRow>) -> Result<(), Broken> {
        let intents: BTreeMap<&str, CreateIntent> = snapshot
            .intents
            .iter()
            .filter(|intent| intent.operation == Operation::Create)
            .map(|intent| {
                let request = serde_json::from_slice(&intent.request).unwrap();
                (intent.instance_id.as_str(), request)
            })
            .collect();
        // By slot: instances that fill it, and predecessors on their way out.
        let mut slots: BTreeMap<String, (Vec<String>, Vec<String>)> = BTreeMap::new();
        for row in live {
            let id = row.provider_id;
            let record = snapshot
                .records
                .iter()
                .find(|record| record.provider_id == id);
            if let Some(record) = record {
                let slot = slots.entry(record.address()).or_default();
                let succeeded = intents
                    .values()
                    .any(|intent| intent.deposes.as_deref() == Some(&record.instance_id));
                if record.deposed || succeeded {
                    slot.1.push(id);
                } else {
                    slot.0.push(id);
                }
                continue;
            }
            let own = row.instance_id.as_deref();
            match own.and_then(|own| intents.get(own)) {
                Some(_) => {
                    let address = row.address.clone().unwrap_or_default();
                    slots.entry(address).or_default().0.push(id);
                }
                None if self.lost.contains(&id) => {}
                None => {
                    let address = row.address.unwrap_or_default();
                    return Err(format!("orphan {id} of {address}"));
                }
            }
        }
        for (slot, (filling, leaving)) in slots {
            if filling.len() > 1 || filling.len() + leaving.len() > 2 {
                return Err(format!(
                    "{slot} is filled by {filling:?}, and left by {leaving:?}"
                ));
            }
        }
        Ok(())
    }

    /// Everything is exactly as declared, in the cloud and in the state. Instances that nobody
    /// recorded because another one has their slot are left alone, and excepted.
    pub(crate) fn check_arrived(&self, fleet: &Fleet) -> Result<(), Broken> {
        let Some(snapshot) = self.snapshot()? else {
            let live = self.live();
            let arrived = live.is_empty() && fleet.groups.iter().all(|group| group.size == 0);
            return if arrived {
                Ok(())
            } else {
                Err(format!("no state, and {live:?}"))
            };
        };
        let store = self.backend().open_to_write(None);
        let store = store.map_err(|error| error.to_string())?;
        let problems = store.check().unwrap();
        if !problems.is_empty() {
            return Err(format!("the state is unsound: {problems:?}"));
        }
        if !snapshot.intents.is_empty() {
            return Err(format!("intents are still open: {:?}", snapshot.intents));
        }
        if let Some(deposed) = snapshot.deposed().next() {
            return Err(format!("still deposed: {deposed:?}"));
        }
        let live = self.live();
        let mut admin = self.admin();
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for row in live {
            let id = &row.provider_id;
            let record = snapshot
                .records
                .iter()
                .find(|record| record.provider_id == *id);
            let Some(record) = record else {
                if self.lost.contains(id) {
                    continue;
                }
                return Err(format!("{id} isn't recorded"));
            };
            let Some(group) = fleet.group(&record.group) else {
                return Err(format!("{id} of {} isn't declared", record.address()));
            };
            *counts.entry(group.name).or_default() += 1;
            let seen = admin.show(id).unwrap().attributes;
            let pool = row.subnet.as_deref().map_or("", |id| &id[..4]);
            let pool_wanted = match group.pool {
                true => "sub-",
                // What was adopted where no pool is asked for stays where it is.
                false if self.lost.contains(id) => pool,
                false => "",
            };
            let targets = seen.load_balancers.clone().unwrap_or_default();
            let targets_wanted = if group.balanced { BALANCER } else { "" };
            let tag = |key: &str| seen.tags.get(key).map(String::as_str);
            let facts = [
                ("type", seen.instance_type.as_str(), group.instance_type),
                (
                    "image",
                    seen.args["ImageId"].as_str().unwrap_or_default(),
                    group.image,
                ),
                ("colour", tag("colour").unwrap_or_default(), group.colour),
                ("stray tag", tag("stray").unwrap_or_default(), ""),
                (
                    "managed",
                    tag("nstance:managed").unwrap_or_default(),
                    "true",
                ),
                (
                    "instance id",
                    tag("nstance:instance-id").unwrap_or_default(),
                    record.instance_id.as_str(),
                ),
                (
                    "slot",
                    tag("nstance:slot").unwrap_or_default(),
                    &record.slot.to_string(),
                ),
                ("state", row.state.as_str(), "running"),
                (
                    "subnet",
                    row.subnet.as_deref().unwrap_or_default(),
                    record.subnet.as_deref().unwrap_or_default(),
                ),
                ("pool", pool, pool_wanted),
                ("load balancer", &targets.join(" "), targets_wanted),
            ];
            for (what, is, should) in facts {
                if is != should {
                    return Err(format!(
                        "{id} of {}: {what} is `{is}`, should be `{should}`",
                        record.address()
                    ));
                }
            }
        }
        for group in &fleet.groups {
            let count = counts.get(group.name).copied().unwrap_or(0);
            if count != group.size {
                return Err(format!(
                    "{} has {count} instances, should have {}",
                    group.name, group.size
                ));
            }
        }
        let recorded = snapshot.records.len() as u32;
        let counted: u32 = counts.values().sum();
        if recorded != counted {
            return Err(format!("{recorded} are recorded, {counted} exist"));
        }
        Ok(())
    }
}

/// Looks at state and cloud while somebody works on them, by ways of its own.
#[derive(Default)]
pub(crate) struct Eye {
    store: Option<Box<dyn Store>>,
    last: Option<(u64, String)>,
}

impl Eye {
    /// What must be true at every moment.
    pub(crate) fn check(&mut self, world: &World) -> Result<(), Broken> {
        let live = world.live();
        if self.store.is_none() && world.state_path().exists() {
            self.store = match world.backend().open_to_read(None) {
                Ok(store) => Some(store),
                Err(_) if world.has_trouble() => return Ok(()),
                Err(error) => return Err(format!("the state can't be read: {error}")),
            };
        }
        let Some(store) = &self.store else {
            return world.check_none(live);
        };
        let snapshot = match store.snapshot() {
            Ok(snapshot) => snapshot,
            Err(_) if world.has_trouble() => return Ok(()),
            Err(error) => return Err(format!("the state can't be read: {error}")),
        };
        let now = (snapshot.meta.serial, World::text_of(&snapshot));
        if let Some((serial, _)) = self.last.replace(now)
            && snapshot.meta.serial < serial
        {
            let is = snapshot.meta.serial;
            return Err(format!("the serial went from {serial} to {is}"));
        }
        world.check_orphans(&snapshot, live)
    }

    /// What the state held when it was last looked at.
    pub(crate) fn last_seen(&self) -> Option<String> {
        self.last.as_ref().map(|(_, text)| text.clone())
    }
}
