//! What plans and applies, on a state that is no file: the engine needs nothing of a store but what
//! the trait says.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use nstance::apply::driver::{DriveError, World, drive};
use nstance::apply::engine::{Limits, Starts};
use nstance::apply::export::Exporter;
use nstance::apply::protocol::Progress;
use nstance::apply::recover::recover;
use nstance::check::Purpose;
use nstance::clock::{Clock, FixedClock, Timestamp};
use nstance::config::model::ProviderKind;
use nstance::config::variables::Given;
use nstance::fault_injection::InjectedFault;
use nstance::load::load_text;
use nstance::pipeline::{self, Request};
use nstance::plan::change::Plan;
use nstance::plan::inputs::Options;
use nstance::provider::rules::Rules;
use nstance::provider::sim::{SimCloud, SimOptions};
use nstance::provider::{Cloud, Owner};
use nstance_state::{
    Backend, Held, Identity, LockInfo, MemoryDisk, NewApply, StateError, Store, Write,
};
use tempfile::TempDir;

use crate::harness::TWO;

/// A state in memory, and a cloud.
struct Fleet {
    folder: TempDir,
    clock: Arc<dyn Clock>,
    cloud: SimCloud,
    disk: MemoryDisk,
}

impl Fleet {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::parse("2026-12-01T00:00:00Z").unwrap();
        let clock: Arc<dyn Clock> = Arc::new(FixedClock::new(now));
        let cloud = SimCloud::open(
            &folder.path().join("sim.db"),
            &SimOptions::default(),
            ProviderKind::Sim,
            Arc::clone(&clock),
        );
        Self {
            cloud: cloud.unwrap(),
            folder,
            clock,
            disk: MemoryDisk::default(),
        }
    }

    fn identity() -> Identity {
        Identity {
            cluster: "test".into(),
            shard: "one".into(),
            provider: "sim".into(),
        }
    }

    fn open(&self) -> Box<dyn Store> {
        self.disk.open_to_write(Some(&Self::identity())).unwrap()
    }

    fn plan(&self, config: &str, store: Option<&mut dyn Store>) -> Plan {
        let loaded = load_text(Purpose::Plan, "nstance.jsonc", config, &Given::default());
        let config = loaded.config.as_ref().unwrap();
        let prepared = pipeline::prepare(
            config,
            &loaded.sources,
            Path::new(""),
            false,
            |_| None,
            false,
        );
        let made = pipeline::plan(Request {
            config,
            sources: &loaded.sources,
            document: None,
            manifest: None,
            prepared: prepared.unwrap_or_else(|found| panic!("{found:?}")),
            store: store.map(|store| store as &mut dyn Store),
            cloud: Some(&self.cloud),
            observe: true,
            running: None,
            provider_name: "sim",
            identity: &Self::identity(),
            rules: Rules::of(ProviderKind::Sim),
            clock: &*self.clock,
            refresh_images: false,
            options: &Options::default(),
            progress: &mut |_| {},
        });
        made.unwrap_or_else(|error| panic!("{error}")).plan
    }

    fn apply(&self, plan: &Plan, store: &mut dyn Store) -> Result<bool, DriveError> {
        self.apply_telling(plan, store, &mut |_| {})
    }

    fn apply_telling(
        &self,
        plan: &Plan,
        store: &mut dyn Store,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<bool, DriveError> {
        let limits = Limits {
            parallelism: 4,
            ..Limits::default()
        };
        let mut world = World {
            store,
            cloud: &self.cloud,
            clock: &*self.clock,
            exporter: &Exporter::new(&self.folder.path().join("files")),
            signals: &AtomicUsize::new(0),
            apply: None,
            nonce_command: &[],
            rollout: None,
        };
        drive(plan, limits, 1, &Starts::default(), &mut world, tell)
            .map(|outcome| outcome.is_complete())
    }

    /// The cloud's ids of the live instances.
    fn live(&self) -> Vec<String> {
        let owner = Owner {
            cluster: "test".into(),
            shard: "one".into(),
        };
        let listed = self.cloud.list(&owner, None).unwrap().instances.into_iter();
        let live = listed.filter(|observation| observation.state.is_live());
        let mut ids: Vec<String> = live.map(|observation| observation.provider_id).collect();
        ids.sort();
        ids
    }

    fn recorded(&self) -> Vec<String> {
        let records = self.open().snapshot().unwrap().records.into_iter();
        let mut ids: Vec<String> = records.map(|record| record.provider_id).collect();
        ids.sort();
        ids
    }
}

#[test]
fn a_fleet_is_planned_and_applied_on_a_store_in_memory() {
    let fleet = Fleet::new();
    let plan = fleet.plan(TWO, None);
    let now = fleet.clock.now().into();
    let mut store = fleet
        .disk
        .create(&Fleet::identity(), &plan.lineage, now, None)
        .unwrap();
    assert!(fleet.apply(&plan, &mut *store).unwrap());
    assert_eq!((fleet.live().len(), fleet.live()), (5, fleet.recorded()));
    assert!(!fleet.plan(TWO, Some(&mut *store)).summary.has_changes());

    let smaller = TWO
        .replace("\"size\": 3", "\"size\": 1")
        .replace("large", "huge");
    let plan = fleet.plan(&smaller, Some(&mut *store));
    assert!(fleet.apply(&plan, &mut *store).unwrap());
    assert_eq!((fleet.live().len(), fleet.live()), (3, fleet.recorded()));
    assert!(
        !fleet
            .plan(&smaller, Some(&mut *store))
            .summary
            .has_changes()
    );
}

#[test]
fn a_state_that_was_put_back_makes_nothing_twice_and_a_full_disk_nothing_at_all() {
    let fleet = Fleet::new();
    let plan = fleet.plan(TWO, None);
    let now = fleet.clock.now().into();
    drop(
        fleet
            .disk
            .create(&Fleet::identity(), &plan.lineage, now, None),
    );
    let before = fleet.disk.image();
    let mut store = fleet.open();
    assert!(fleet.apply(&plan, &mut *store).unwrap());
    // As if the disk had lied about what it kept.
    fleet.disk.restore(&before);
    let mut store = fleet.open();
    fleet.disk.set_full(true);
    assert!(matches!(
        fleet.apply(&plan, &mut *store),
        Err(DriveError::Store(StateError::Full { .. }))
    ));
    let left = fleet.open().snapshot().unwrap();
    assert_eq!((left.intents.len(), left.records.len()), (0, 0));
    fleet.disk.set_full(false);
    // The same plan with the same tokens makes nothing twice.
    assert!(fleet.apply(&plan, &mut *store).unwrap());
    assert_eq!((fleet.live().len(), fleet.live()), (5, fleet.recorded()));
}

#[test]
fn what_was_made_and_cant_be_recorded_is_told() {
    let fleet = Fleet::new();
    let plan = fleet.plan(TWO, None);
    let now = fleet.clock.now().into();
    let mut store = fleet
        .disk
        .create(&Fleet::identity(), &plan.lineage, now, None)
        .unwrap();
    let mut told = Vec::new();
    let ended = fleet.apply_telling(&plan, &mut *store, &mut |progress| match progress {
        // The calls are sent; what they made can't be stored.
        Progress::Started { .. } => fleet.disk.set_full(true),
        Progress::Unrecorded { provider_id, .. } => told.push(provider_id.clone()),
        _ => {}
    });
    assert!(matches!(
        ended,
        Err(DriveError::Store(StateError::Full { .. }))
    ));
    fleet.disk.set_full(false);
    told.sort();
    assert_eq!(told, fleet.live());
    assert!(!told.is_empty() && fleet.recorded().is_empty());
}

#[test]
fn who_is_shut_out_does_no_harm_on_a_store_in_memory() {
    let fleet = Fleet::new();
    let plan = fleet.plan(TWO, None);
    let now = fleet.clock.now().into();
    let mut first = fleet
        .disk
        .create(&Fleet::identity(), &plan.lineage, now, None)
        .unwrap();
    let held = locked(&fleet, "first");
    fleet.disk.lose_lock();
    let _lock = locked(&fleet, "second");
    let mut second = fleet.open();
    let start = Write::StartApply(NewApply {
        who: "ann".into(),
        host: "here".into(),
        pid: 2,
        operation: "apply".into(),
        plan_digest: None,
    });
    second.commit(now, vec![start]).unwrap();
    assert!(matches!(
        fleet.apply(&plan, &mut *first),
        Err(DriveError::Store(StateError::Fenced { .. }))
    ));
    assert!(fleet.live().is_empty(), "the cloud was asked for nothing");
    drop(held);
    assert!(fleet.apply(&plan, &mut *second).unwrap());
    let owner = Owner {
        cluster: "test".into(),
        shard: "one".into(),
    };
    let settled = recover(
        &mut *second,
        &fleet.cloud,
        &*fleet.clock,
        &owner,
        None,
        &|_| true,
        InjectedFault::None,
    );
    assert_eq!(settled.unwrap(), []);
    assert_eq!((fleet.live().len(), fleet.live()), (5, fleet.recorded()));
}

fn locked(fleet: &Fleet, id: &str) -> Box<dyn Held> {
    let info = LockInfo {
        id: id.into(),
        holder: "ann".into(),
        host: "here".into(),
        pid: 1,
        operation: "apply".into(),
        since: nstance_state::Timestamp(1),
    };
    let lock = fleet.disk.lock(info, Duration::ZERO, &mut |_| {});
    lock.unwrap()
}
