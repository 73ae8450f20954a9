//! What every store promises, whoever keeps it: one suite, run for all of them.
//!
//! A store that isn't here yet has to be a [`Subject`], and a line at the end.

mod alike;
mod contents;
#[cfg(feature = "postgres")]
mod postgres;
mod rollouts;

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nstance_state::{
    ApplyId, ApplyStatus, Backend, FetchedRow, Held, HistoryIds, HistoryItem, Identity, ImageRow,
    Intent, IntentId, Key, KeyError, KeyNeed, Keys, LockInfo, MemoryDisk, NewApply, NewKey,
    Outcome, Record, Rollout, RolloutId, RolloutRequest, RolloutStatus, SpecDigest, SqliteFile,
    StateError, Store, Timestamp, Write, Written,
};
use tempfile::TempDir;

use crate::common::{creation, digest, identity, record};
use crate::lock::info;

/// A kind of store, as the suite sees it.
trait Subject: Sync {
    /// Where its state is.
    fn backend(&self) -> &dyn Backend;

    /// The key of new states.
    fn key(&self) -> Option<NewKey>;

    /// Adds a key that states are opened with.
    fn learn(&self, key: &Key);

    /// A place of the same kind without a state.
    fn another(&self) -> Box<dyn Subject>;

    /// What a crash at this moment would leave, elsewhere.
    fn crashed(&self) -> Box<dyn Subject>;

    /// Takes the lock away from its holder without its knowledge: it lapsed, or was broken.
    fn lose_lock(&self);
}

/// Some keys.
#[derive(Default)]
struct Bunch(Mutex<Vec<Key>>);

impl Keys for Bunch {
    fn find(&self, needed: &KeyNeed) -> Result<Key, KeyError> {
        let keys = self.0.lock().unwrap();
        let found = keys.iter().find(|key| key.id() == needed.id).cloned();
        found.ok_or_else(|| KeyError {
            why: "it isn't in the bunch".to_owned(),
            hint: None,
        })
    }
}

struct Sqlite {
    folder: TempDir,
    file: SqliteFile,
    key: Option<Key>,
    keys: Arc<Bunch>,
}

impl Sqlite {
    fn new(key: Option<Key>) -> Self {
        let keys = Bunch(Mutex::new(key.iter().cloned().collect()));
        Self::opened_with(key, Arc::new(keys))
    }

    fn opened_with(key: Option<Key>, keys: Arc<Bunch>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        Self {
            file: SqliteFile::new(path, Some(Arc::clone(&keys) as Arc<dyn Keys>)),
            folder,
            key,
            keys,
        }
    }
}

impl Subject for Sqlite {
    fn backend(&self) -> &dyn Backend {
        &self.file
    }

    fn key(&self) -> Option<NewKey> {
        self.key.clone().map(Into::into)
    }

    fn learn(&self, key: &Key) {
        self.keys.0.lock().unwrap().push(key.clone());
    }

    fn another(&self) -> Box<dyn Subject> {
        let keys = Arc::clone(&self.keys);
        Box::new(Self::opened_with(self.key.clone(), keys))
    }

    fn crashed(&self) -> Box<dyn Subject> {
        let copy = Self::opened_with(self.key.clone(), Arc::clone(&self.keys));
        // Shared memory is no part of what lasts.
        for name in ["state.db", "state.db-wal"] {
            let from = self.folder.path().join(name);
            if from.exists() {
                fs::copy(from, copy.folder.path().join(name)).unwrap();
            }
        }
        Box::new(copy)
    }

    fn lose_lock(&self) {
        fs::remove_file(self.folder.path().join("state.db.lock")).unwrap();
    }
}

struct Memory(MemoryDisk);

impl Subject for Memory {
    fn backend(&self) -> &dyn Backend {
        &self.0
    }

    fn key(&self) -> Option<NewKey> {
        None
    }

    fn learn(&self, _key: &Key) {}

    fn another(&self) -> Box<dyn Subject> {
        Box::new(Self(MemoryDisk::default()))
    }

    fn crashed(&self) -> Box<dyn Subject> {
        let copy = MemoryDisk::default();
        copy.restore(&self.0.image());
        Box::new(Self(copy))
    }

    fn lose_lock(&self) {
        self.0.lose_lock();
    }
}

fn created(subject: &dyn Subject) -> Box<dyn Store> {
    let key = subject.key();
    let backend = subject.backend();
    backend
        .create(&identity(), "lineage", Timestamp(1), key.as_ref())
        .unwrap()
}

fn opened(subject: &dyn Subject) -> Box<dyn Store> {
    subject.backend().open_to_write(Some(&identity())).unwrap()
}

fn locked(subject: &dyn Subject, info: LockInfo) -> Result<Box<dyn Held>, StateError> {
    subject.backend().lock(info, Duration::ZERO, &mut |_| {})
}

fn spec(seed: u64) -> Write {
    Write::PutSpec {
        digest: digest(seed),
        bytes: format!("{{\"spec\": {seed}}}").into_bytes(),
    }
}

fn put(record: Record) -> Write {
    Write::PutRecord(Box::new(record))
}

fn open(intent: Intent) -> Write {
    Write::OpenIntent(Box::new(intent))
}

fn started() -> Write {
    Write::StartApply(NewApply {
        who: "ann".into(),
        host: "build-7".into(),
        pid: 4711,
        operation: "apply".into(),
        plan_digest: Some("plan".into()),
    })
}

fn item(id: Option<ApplyId>, result: &str) -> Write {
    let item = Box::new(HistoryItem {
        address: "default/web/0".into(),
        action: "create".into(),
        before: HistoryIds::default(),
        after: HistoryIds {
            instance_id: Some("knd".into()),
            provider_id: Some("i-1".into()),
        },
        result: result.into(),
        detail_json: "{}".into(),
        at: Timestamp(0),
    });
    Write::HistoryItem { id, item }
}

/// All that can be read of a store, to be compared.
#[derive(Debug, PartialEq)]
struct Seen {
    serial: u64,
    lineage: String,
    identity: Identity,
    records: Vec<Record>,
    intents: Vec<Intent>,
    specs: BTreeMap<SpecDigest, Arc<[u8]>>,
    images: Vec<ImageRow>,
    history: Vec<(nstance_state::Apply, Vec<HistoryItem>)>,
    generations: Vec<u64>,
    rollout: Option<(Rollout, Option<Vec<u8>>)>,
    requests: Vec<RolloutRequest>,
    last_good: BTreeMap<String, Vec<u8>>,
}

fn seen(store: &dyn Store) -> Seen {
    let snapshot = store.snapshot().unwrap();
    let digests: Vec<SpecDigest> = (0..12).map(digest).collect();
    let mut generations = Vec::new();
    let groups = ["default/web", "default/db"];
    for group in groups {
        generations.extend((0..6).map(|slot| snapshot.generation(group, slot)));
    }
    Seen {
        serial: snapshot.meta.serial,
        lineage: snapshot.meta.lineage.clone(),
        identity: snapshot.meta.identity.clone(),
        records: snapshot.records,
        intents: snapshot.intents,
        specs: store.specs(&digests).unwrap().into_iter().collect(),
        images: store.images().unwrap(),
        history: store
            .history(100)
            .unwrap()
            .into_iter()
            .map(|apply| {
                let items = store.history_items(apply.id).unwrap();
                (apply, items)
            })
            .collect(),
        generations,
        rollout: store.rollout().unwrap().map(|rollout| {
            let plan = store.rollout_plan(rollout.id).unwrap();
            (rollout, plan)
        }),
        requests: store.rollout_requests().unwrap(),
        last_good: store.last_good(&groups).unwrap().into_iter().collect(),
    }
}

/// A batch with something of everything.
fn everything() -> Vec<Write> {
    vec![
        started(),
        spec(1),
        spec(2),
        put(record("default/web", 0)),
        put(Record {
            spec: digest(2),
            observed: Some(digest(3)),
            ..record("default/db", 1)
        }),
        open(Intent {
            spec: Some(digest(2)),
            ..creation("default/web", 1)
        }),
        open(creation("default/web", 2)),
        item(None, "done"),
        item(None, "refused: \"no\""),
        Write::PutImage(ImageRow {
            name: "debian".into(),
            query_digest: "query".into(),
            image_id: "ami-1".into(),
            source: "lookup".into(),
            resolved_at: Timestamp(3),
            detail_json: "{}".into(),
        }),
        Write::PutFetched(FetchedRow {
            url: "https://example.com/a".into(),
            digest: "digest".into(),
            body: b"#!/bin/sh".to_vec(),
            fetched_at: Timestamp(4),
        }),
        Write::PutObservationCache(b"first".to_vec()),
        Write::PutObservationCache(b"second".to_vec()),
        rollouts::start("v1"),
        rollouts::group(None, "default/web", "canary"),
        rollouts::slot(None, "default/web/0", "soaking"),
        rollouts::request("pause"),
        rollouts::last_good("default/web", "v0"),
    ]
}

fn what_is_committed_survives_a_crash_at_any_moment_after(subject: &dyn Subject) {
    let mut store = created(subject);
    let empty = seen(&*store);
    assert_eq!(empty.serial, 0);
    assert_eq!(store.observation_cache().unwrap(), None);
    assert_eq!(seen(&*opened(&*subject.crashed())), empty);
    let written = store.commit(Timestamp(2), everything()).unwrap();
    assert_eq!(written.intents.len(), 2);
    let full = seen(&*store);
    assert_eq!(
        (full.serial, full.records.len(), full.intents.len()),
        (1, 2, 2)
    );
    assert_eq!((full.specs.len(), full.history[0].1.len()), (2, 2));
    assert_eq!(full.intents[1].request, creation("default/web", 2).request);
    let (rollout, plan) = full.rollout.as_ref().unwrap();
    assert_eq!(written.rollout, Some(rollout.id));
    assert_eq!((rollout.groups.len(), rollout.slots.len()), (1, 1));
    assert_eq!(plan.as_deref(), Some(&b"the plan of v1"[..]));
    assert_eq!((full.requests.len(), full.last_good.len()), (1, 1));
    // Nobody said goodbye.
    let crashed = subject.crashed();
    let after = opened(&*crashed);
    assert_eq!(seen(&*after), full);
    let fetched = after.fetched("https://example.com/a").unwrap().unwrap();
    assert_eq!(fetched.body, b"#!/bin/sh");
    assert_eq!(after.fetched("https://example.com/b").unwrap(), None);
    assert_eq!(after.observation_cache().unwrap().unwrap(), b"second");
    drop(store);
    assert_eq!(seen(&*opened(subject)), full);
}

type Refused = fn(&StateError) -> bool;

fn a_batch_is_done_or_not(subject: &dyn Subject) {
    let mut store = created(subject);
    store.commit(Timestamp(2), everything()).unwrap();
    let before = seen(&*store);
    let cases: [(Write, Refused); 12] = [
        (
            put(Record {
                spec: digest(11),
                ..record("default/web", 5)
            }),
            |error| matches!(error, StateError::MissingSpec { digest } if *digest == self::digest(11)),
        ),
        (
            put(Record {
                instance_id: "other".into(),
                provider_id: "i-other".into(),
                ..record("default/web", 0)
            }),
            |error| matches!(error, StateError::Occupied { address, .. } if address == "default/web/0"),
        ),
        (
            put(Record {
                instance_id: "other".into(),
                provider_id: "i-default/db-1".into(),
                ..record("default/web", 4)
            }),
            |error| matches!(error, StateError::Claimed { address, .. } if address == "default/db/1"),
        ),
        (open(creation("default/web", 2)), |error| {
            matches!(error, StateError::Unsettled { .. })
        }),
        (
            Write::CloseIntent {
                id: IntentId(99),
                outcome: Outcome::Done,
            },
            |error| matches!(error, StateError::NotOpen { id: 99, .. }),
        ),
        (
            Write::FinishApply {
                id: Some(ApplyId(99)),
                status: ApplyStatus::Failed,
                summary_json: "{}".into(),
            },
            |error| matches!(error, StateError::NotOpen { id: 99, .. }),
        ),
        (
            Write::SetRolloutStatus {
                id: RolloutId(99),
                status: RolloutStatus::Done,
            },
            |error| matches!(error, StateError::NotOpen { id: 99, .. }),
        ),
        (
            Write::SetRolloutPlan {
                id: RolloutId(99),
                plan: Vec::new(),
            },
            |error| matches!(error, StateError::NotOpen { id: 99, .. }),
        ),
        (
            rollouts::group(Some(RolloutId(99)), "default/web", "done"),
            |error| matches!(error, StateError::NotOpen { id: 99, .. }),
        ),
        // The batch starts none.
        (rollouts::slot(None, "default/web/0", "done"), |error| {
            matches!(error, StateError::NotOpen { id: 0, .. })
        }),
        (
            Write::MoveRecord {
                from: ("default/web".into(), 5),
                to: ("default/web".into(), 4),
            },
            |error| matches!(error, StateError::NoRecord { .. }),
        ),
        (
            Write::MoveRecord {
                from: ("default/web".into(), 0),
                to: ("default/web".into(), 1),
            },
            |error| matches!(error, StateError::Unsettled { .. }),
        ),
    ];
    for (write, refused) in cases {
        let name = format!("{write:?}");
        let batch = vec![
            started(),
            spec(5),
            put(record("default/db", 3)),
            open(creation("default/db", 4)),
            Write::RemoveRecord {
                instance_id: "knd-default/web-0".into(),
            },
            put(record("default/web", 0)),
            rollouts::request("abort"),
            Write::RemoveLastGood {
                group: "default/web".into(),
            },
            write,
        ];
        let error = store.commit(Timestamp(3), batch).unwrap_err();
        assert!(refused(&error), "{name}: {error}");
        assert_eq!(seen(&*store), before, "{name}");
        assert_eq!(seen(&*opened(&*subject.crashed())), before, "{name}");
    }
}

fn records_and_generations_follow_the_rules(subject: &dyn Subject) {
    let mut store = created(subject);
    let mut commit = |batch| store.commit(Timestamp(9), batch).unwrap();
    commit(vec![spec(1), put(record("default/web", 0))]);
    // What says the same changes nothing.
    commit(vec![put(record("default/web", 0))]);
    // One that takes the slot of another that is deposed in the same batch.
    commit(vec![
        put(Record {
            deposed: true,
            ..record("default/web", 0)
        }),
        put(Record {
            instance_id: "second".into(),
            provider_id: "i-second".into(),
            generation: 2,
            ..record("default/web", 0)
        }),
    ]);
    commit(vec![Write::MoveRecord {
        from: ("default/web".into(), 0),
        to: ("default/db".into(), 4),
    }]);
    commit(vec![Write::RemoveRecord {
        instance_id: "second".into(),
    }]);
    // Removing an unknown record changes nothing.
    commit(vec![Write::RemoveRecord {
        instance_id: "nobody".into(),
    }]);
    let found = seen(&*store);
    assert_eq!(found.serial, 4);
    let [left] = &found.records[..] else {
        panic!("{:?}", found.records)
    };
    assert_eq!(
        (left.address(), left.deposed),
        ("default/db/4".to_owned(), true)
    );
    assert_eq!((left.version, left.updated_at), (3, Timestamp(9)));
    // Neither slot gives a generation again.
    assert_eq!((found.generations[0], found.generations[6 + 4]), (2, 2));
}

fn intents_stay_until_they_are_closed(subject: &dyn Subject) {
    let mut store = created(subject);
    let batch = vec![
        started(),
        spec(1),
        open(Intent {
            spec: Some(digest(1)),
            generation: 3,
            ..creation("default/web", 0)
        }),
        open(creation("default/web", 1)),
    ];
    let Written { intents, apply, .. } = store.commit(Timestamp(2), batch).unwrap();
    // Kept as long as the intent is open, and not longer.
    let collected = |store: &mut dyn Store| {
        store
            .commit(Timestamp(3), vec![Write::CollectGarbage])
            .unwrap();
        store.specs(&[digest(1)]).unwrap().len()
    };
    assert_eq!(collected(&mut *store), 1);
    let failed = Outcome::Failed {
        message: "no".into(),
    };
    for (id, outcome) in intents.iter().zip([failed, Outcome::Done]) {
        let close = Write::CloseIntent { id: *id, outcome };
        store.commit(Timestamp(4), vec![close.clone()]).unwrap();
        let again = store.commit(Timestamp(4), vec![close]).unwrap_err();
        assert!(matches!(again, StateError::NotOpen { .. }), "{again}");
    }
    assert_eq!(collected(&mut *store), 0);
    let found = seen(&*store);
    assert_eq!((found.intents.len(), found.serial), (0, 0));
    // A token is free again, an id and a generation never are.
    assert_eq!(found.generations[..2], [3, 1]);
    let batch = vec![
        open(creation("default/web", 1)),
        Write::FinishApply {
            id: apply,
            status: ApplyStatus::Succeeded,
            summary_json: "{\"create\":1}".into(),
        },
    ];
    let again = store.commit(Timestamp(5), batch).unwrap();
    assert!(again.intents[0] > intents[1]);
    let history = store.history(1).unwrap();
    assert_eq!(history[0].status, ApplyStatus::Succeeded);
    assert_eq!(history[0].finished_at, Some(Timestamp(5)));
}

fn others_see_all_of_a_batch_or_nothing(subject: &dyn Subject) {
    const ROUNDS: u32 = 40;
    drop(created(subject));
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut store = opened(subject);
            for round in 0..ROUNDS {
                let slots = [2 * round, 2 * round + 1];
                let records = slots.map(|slot| put(record("default/web", slot)));
                let batch = [spec(1)].into_iter().chain(records).collect();
                store.commit(Timestamp(2), batch).unwrap();
            }
            done.store(1, Ordering::SeqCst);
        });
        scope.spawn(|| {
            let store = opened(subject);
            loop {
                let over = done.load(Ordering::SeqCst) == 1;
                let snapshot = store.snapshot().unwrap();
                assert_eq!(snapshot.records.len() as u64, 2 * snapshot.meta.serial);
                if over {
                    assert_eq!(snapshot.meta.serial, u64::from(ROUNDS));
                    break;
                }
            }
        });
    });
}

fn two_who_write_at_once_lose_nothing(subject: &dyn Subject) {
    const ROUNDS: u32 = 25;
    drop(created(subject));
    std::thread::scope(|scope| {
        for group in ["default/web", "default/db"] {
            scope.spawn(move || {
                let mut store = opened(subject);
                for slot in 0..ROUNDS {
                    let batch = vec![
                        spec(1),
                        put(record(group, slot)),
                        open(creation(group, slot)),
                    ];
                    store.commit(Timestamp(2), batch).unwrap();
                }
            });
        }
    });
    let snapshot = opened(subject).snapshot().unwrap();
    assert_eq!(snapshot.meta.serial, 2 * u64::from(ROUNDS));
    assert_eq!(snapshot.records.len(), 2 * ROUNDS as usize);
    let mut ids: Vec<IntentId> = snapshot.intents.iter().map(|intent| intent.id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 2 * ROUNDS as usize);
}

fn one_holds_the_lock(subject: &dyn Subject) {
    let backend = subject.backend();
    assert_eq!(backend.holder().unwrap(), None);
    let held = locked(subject, info("first")).unwrap();
    assert_eq!(held.info().id, "first");
    assert_eq!(backend.holder().unwrap().unwrap().id, "first");
    let is_first = |refused: &StateError| matches!(refused, StateError::Locked { holder } if holder.id == "first");
    let refused = locked(subject, info("second")).map(drop).unwrap_err();
    assert!(is_first(&refused), "{refused}");
    // It isn't stale.
    assert_eq!(backend.remains().unwrap(), None);
    let refused = backend.break_stale("first").unwrap_err();
    assert!(is_first(&refused), "{refused}");
    // A reader needs none.
    created(subject).snapshot().unwrap();
    // Whoever waits gets it.
    std::thread::scope(|scope| {
        let (waiting, waits_for) = std::sync::mpsc::channel();
        let waits = scope.spawn(move || {
            let mut on_wait = |holder: &LockInfo| waiting.send(holder.id.clone()).unwrap();
            let timeout = Duration::from_mins(1);
            let held = backend.lock(info("third"), timeout, &mut on_wait).unwrap();
            held.info().id.clone()
        });
        assert_eq!(waits_for.recv().unwrap(), "first");
        drop(held);
        assert_eq!(waits.join().unwrap(), "third");
        assert_eq!(waits_for.try_recv().ok(), None, "a holder is told once");
    });
    assert_eq!(backend.holder().unwrap(), None);
    assert_eq!(backend.remains().unwrap(), None);
    let refused = backend.break_stale("third").unwrap_err();
    assert!(matches!(refused, StateError::NotLocked { .. }), "{refused}");
}

fn an_apply_that_died_isnt_running(subject: &dyn Subject) {
    let mut store = created(subject);
    let holder = LockInfo {
        host: "build-7".into(),
        pid: 4711,
        ..info("first")
    };
    let held = locked(subject, holder).unwrap();
    store.commit(Timestamp(2), vec![started()]).unwrap();
    assert_eq!(store.history(1).unwrap()[0].status, ApplyStatus::Running);
    drop(held);
    assert_eq!(
        store.history(1).unwrap()[0].status,
        ApplyStatus::Interrupted
    );
    let mut next = opened(subject);
    next.commit(Timestamp(3), vec![started()]).unwrap();
    let late = Write::FinishApply {
        id: Some(ApplyId(1)),
        status: ApplyStatus::Succeeded,
        summary_json: "{}".into(),
    };
    let refused = next.commit(Timestamp(4), vec![late]).unwrap_err();
    assert!(
        matches!(refused, StateError::NotOpen { id: 1, .. }),
        "{refused}"
    );
}

fn who_lost_its_lock_cant_write(subject: &dyn Subject) {
    let backend = subject.backend();
    let mut first = created(subject);
    let held = locked(subject, info("first")).unwrap();
    first.commit(Timestamp(2), everything()).unwrap();
    subject.lose_lock();
    let _second_lock = locked(subject, info("second")).unwrap();
    let mut second = opened(subject);
    // As long as the other has only looked, nothing has changed.
    first.commit(Timestamp(3), vec![spec(5)]).unwrap();
    second.commit(Timestamp(4), vec![started()]).unwrap();
    let before = seen(&*second);
    for batch in [
        vec![],
        vec![open(creation("default/db", 5))],
        vec![put(record("default/db", 5))],
        vec![started()],
    ] {
        let refused = first.commit(Timestamp(5), batch).unwrap_err();
        assert!(matches!(refused, StateError::Fenced { .. }), "{refused}");
    }
    assert!(matches!(first.lead(), Err(StateError::Fenced { .. })));
    assert_eq!(seen(&*second), before);
    // It may still look.
    assert_eq!(seen(&*first), before);
    drop(held);
    assert_eq!(backend.holder().unwrap().unwrap().id, "second");
    second
        .commit(Timestamp(6), vec![put(record("default/db", 5))])
        .unwrap();
    // And after a crash nobody who wrote before can, either.
    let crashed = subject.crashed();
    let mut third = opened(&*crashed);
    third.lead().unwrap();
    third.commit(Timestamp(7), vec![spec(6)]).unwrap();
}

fn what_is_anothers_is_refused(subject: &dyn Subject) {
    let backend = subject.backend();
    let ways = [
        &|expected| backend.open_to_write(Some(expected)).map(drop),
        &|expected| backend.open_to_read(Some(expected)).map(drop),
    ] as [&dyn Fn(&Identity) -> Result<(), StateError>; 2];
    for open in ways {
        let missing = open(&identity()).unwrap_err();
        assert!(matches!(missing, StateError::NotFound { .. }), "{missing}");
    }
    let before = seen(&*created(subject));
    let again = backend.create(&identity(), "other", Timestamp(2), subject.key().as_ref());
    assert!(matches!(again.map(drop), Err(StateError::Exists { .. })));
    for change in [
        |identity: &mut Identity| identity.cluster = "dev".into(),
        |identity: &mut Identity| identity.shard = "us-west-2b".into(),
        |identity: &mut Identity| identity.provider = "gcp".into(),
    ] {
        let mut other = identity();
        change(&mut other);
        for open in ways {
            let refused = open(&other).unwrap_err();
            let StateError::Foreign {
                expected, found, ..
            } = &refused
            else {
                panic!("{refused}")
            };
            assert_eq!((&**expected, &**found), (&other, &identity()));
        }
    }
    assert_eq!(seen(&*opened(subject)), before);
}

fn a_reader_changes_nothing(subject: &dyn Subject) {
    created(subject).commit(Timestamp(2), everything()).unwrap();
    let expected = seen(&*opened(subject));
    let mut reader = subject.backend().open_to_read(None).unwrap();
    for refused in [
        reader.commit(Timestamp(3), vec![spec(5)]).map(drop),
        reader.lead(),
    ] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, StateError::ReadOnly { .. }), "{refused}");
    }
    assert_eq!(seen(&*reader), expected);
    reader.unlock().unwrap();
    assert!(!reader.is_outdated());
    assert_eq!(reader.open_intents().unwrap(), expected.intents);
    assert_eq!(reader.check().unwrap(), []);
    // Without digests, which may need the key.
    let plain = |record: &Record| (record.address(), record.instance_id.clone(), record.version);
    let outline: Vec<_> = reader.outline().unwrap().iter().map(plain).collect();
    let records: Vec<_> = expected.records.iter().map(plain).collect();
    assert_eq!(outline, records);
    // It sees what others write.
    let mut writer = opened(subject);
    writer
        .commit(Timestamp(4), vec![put(record("default/db", 4))])
        .unwrap();
    assert_eq!(seen(&*reader), seen(&*writer));
}

fn a_hundred_thousand_instances(subject: &dyn Subject) {
    const COUNT: u32 = 100_000;
    const BATCH: u32 = 20_000;
    // On a server this takes a minute; once, without a key, is enough.
    if subject.key().is_some() && subject.backend().file().is_none() {
        return;
    }
    let mut store = created(subject);
    for start in (0..COUNT).step_by(BATCH as usize) {
        let records = (start..start + BATCH).map(|index| {
            let group = ["default/db", "default/web"][index as usize % 2];
            put(record(group, index / 2))
        });
        let batch = [spec(1)].into_iter().chain(records).collect();
        store.commit(Timestamp(2), batch).unwrap();
    }
    let snapshot = opened(subject).snapshot().unwrap();
    assert_eq!(snapshot.records.len(), COUNT as usize);
    assert_eq!(snapshot.meta.serial, u64::from(COUNT / BATCH));
    assert_eq!(snapshot.group("default/web").len(), COUNT as usize / 2);
    for slot in [0, 1, COUNT / 2 - 1] {
        let live = snapshot.live("default/web", slot).unwrap();
        assert_eq!((live.slot, live.spec), (slot, digest(1)));
    }
    let order = |record: &Record| (Arc::clone(&record.group), record.slot);
    assert!(snapshot.records.is_sorted_by_key(order));
}

#[test]
fn a_full_memory_disk_keeps_nothing_of_a_batch() {
    let disk = MemoryDisk::default();
    let subject = Memory(disk.clone());
    let mut store = created(&subject);
    store.commit(Timestamp(2), everything()).unwrap();
    let before = seen(&*store);
    disk.set_full(true);
    let refused = store.commit(Timestamp(3), vec![put(record("default/db", 5))]);
    assert!(matches!(refused, Err(StateError::Full { .. })));
    assert_eq!(seen(&*store), before);
    disk.set_full(false);
    store
        .commit(Timestamp(3), vec![put(record("default/db", 5))])
        .unwrap();
    // Back to what it was: a store that is open sees what lies there now.
    let image = disk.image();
    store
        .commit(Timestamp(4), vec![put(record("default/db", 4))])
        .unwrap();
    disk.restore(&image);
    assert_eq!(seen(&*store).records.len(), 3);
}

use contents::{
    a_new_key_changes_nothing_else, contents_make_the_same_state_elsewhere,
    contents_take_the_place_of_others, specs_of_past_entries_are_kept,
};
use rollouts::{
    a_request_needs_no_lock_and_fences_nobody, rollouts_are_kept_until_the_next_starts,
};

/// A test for each promise and each store.
macro_rules! every_store {
    ($($check:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $check() { super::$check(&super::Sqlite::new(None)) })*
        }
        mod sealed_sqlite {
            $(#[test] fn $check() {
                let key = nstance_state::Key::generate().unwrap();
                super::$check(&super::Sqlite::new(Some(key)))
            })*
        }
        #[cfg(feature = "postgres")]
        mod on_postgres {
            $(#[test] fn $check() {
                if let Some(subject) = super::postgres::Server::new(None) {
                    super::$check(&subject);
                }
            })*
        }
        #[cfg(feature = "postgres")]
        mod sealed_on_postgres {
            $(#[test] fn $check() {
                let key = nstance_state::Key::generate().unwrap();
                if let Some(subject) = super::postgres::Server::new(Some(key)) {
                    super::$check(&subject);
                }
            })*
        }
        mod memory {
            $(#[test] fn $check() { super::$check(&super::Memory(super::MemoryDisk::default())) })*
        }
    };
}

every_store![
    what_is_committed_survives_a_crash_at_any_moment_after,
    a_batch_is_done_or_not,
    records_and_generations_follow_the_rules,
    intents_stay_until_they_are_closed,
    others_see_all_of_a_batch_or_nothing,
    two_who_write_at_once_lose_nothing,
    one_holds_the_lock,
    an_apply_that_died_isnt_running,
    who_lost_its_lock_cant_write,
    what_is_anothers_is_refused,
    a_reader_changes_nothing,
    contents_make_the_same_state_elsewhere,
    contents_take_the_place_of_others,
    specs_of_past_entries_are_kept,
    a_new_key_changes_nothing_else,
    a_hundred_thousand_instances,
    rollouts_are_kept_until_the_next_starts,
    a_request_needs_no_lock_and_fences_nobody,
];
