//! Intents, the history of applies, caches.

use std::time::Duration;

use nstance_state::{
    Apply, ApplyId, ApplyStatus, FetchedRow, HistoryIds, HistoryItem, ImageRow, Intent, Lock,
    NewApply, Operation, Outcome, SqliteStore, StateError, Timestamp,
};

use crate::common::{Place, creation, digest, identity, put, put_in, record};
use crate::lock::info;

#[test]
fn an_intent_is_there_until_it_is_closed() {
    let (place, mut store) = Place::new();
    let request: Vec<u8> = (0..20_000_u32).map(|byte| (byte % 251) as u8).collect();
    let first = Intent {
        request,
        spec: Some(digest(1)),
        ..creation("a/b", 0)
    };
    let second = Intent {
        operation: Operation::Delete,
        provider_id: Some("i-9".into()),
        token: String::new(),
        ..creation("a/b", 1)
    };
    let opened = store
        .transaction(Timestamp(20), |transaction| {
            transaction.put_spec(digest(1), b"spec")?;
            transaction.open_intents(&[first.clone(), second.clone()])
        })
        .unwrap();
    drop(store);

    let mut store = SqliteStore::open(&place.path, Some(&identity())).unwrap();
    let found = store.open_intents().unwrap();
    assert_eq!(
        found.iter().map(|intent| intent.id).collect::<Vec<_>>(),
        opened
    );
    for (found, given) in found.iter().zip([&first, &second]) {
        assert_eq!(found.address, given.address);
        assert_eq!(found.group, given.group);
        assert_eq!(found.slot, given.slot);
        assert_eq!(found.operation, given.operation);
        assert_eq!(found.instance_id, given.instance_id);
        assert_eq!(found.provider_id, given.provider_id);
        assert_eq!(found.generation, given.generation);
        assert_eq!(found.attempt, given.attempt);
        assert_eq!(found.token, given.token);
        assert_eq!(found.spec, given.spec);
        assert_eq!(found.request, given.request);
        assert_eq!(found.apply_id, None);
        assert_eq!(found.opened_at, Timestamp(20));
    }
    // Intents are no records.
    assert_eq!(store.meta().unwrap().serial, 0);

    store
        .transaction(Timestamp(30), |transaction| {
            put_in(transaction, &[record("a/b", 0)])?;
            transaction.close_intent(opened[0], Outcome::Done)
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.intents.len(), 1);
    assert_eq!(snapshot.intents[0].id, opened[1]);
    assert_eq!(snapshot.records.len(), 1);
    let again = store.transaction(Timestamp(31), |transaction| {
        transaction.close_intent(opened[0], Outcome::Abandoned)
    });
    assert!(matches!(
        again,
        Err(StateError::NotOpen { what: "intent", .. })
    ));
}

#[test]
fn two_creations_with_one_token_are_not_open_at_once() {
    let (_place, mut store) = Place::new();
    let mut open = |intent: Intent| {
        store.transaction(Timestamp(20), |transaction| {
            transaction.open_intents(&[intent])
        })
    };
    let first = open(creation("a/b", 0)).unwrap()[0];
    let again = open(creation("a/b", 0)).unwrap_err();
    assert!(matches!(again, StateError::Unsettled { address } if address == "a/b/0"));
    // Another attempt has another token.
    open(Intent {
        attempt: 2,
        token: "second".into(),
        ..creation("a/b", 0)
    })
    .unwrap();
    // Only creations need one.
    let update = Intent {
        operation: Operation::Update,
        ..creation("a/b", 0)
    };
    open(update.clone()).unwrap();
    open(update).unwrap();
    // Once it is closed, the same may be tried again.
    store
        .transaction(Timestamp(30), |transaction| {
            let refused = Outcome::Failed {
                message: "no capacity".into(),
            };
            transaction.close_intent(first, refused)?;
            transaction.open_intents(&[creation("a/b", 0)])
        })
        .unwrap();
    assert_eq!(store.open_intents().unwrap().len(), 4);
}

#[test]
fn an_intent_needs_its_spec() {
    let (_place, mut store) = Place::new();
    let intent = Intent {
        spec: Some(digest(4)),
        ..creation("a/b", 0)
    };
    let missing = store
        .transaction(Timestamp(1), |transaction| {
            transaction.open_intents(&[intent])
        })
        .unwrap_err();
    assert!(matches!(missing, StateError::MissingSpec { digest: found } if found == digest(4)));
}

#[test]
fn an_intent_to_create_uses_its_generation_up() {
    let (_place, mut store) = Place::new();
    let intent = Intent {
        generation: 4,
        ..creation("a/b", 0)
    };
    let id = store
        .transaction(Timestamp(1), |transaction| {
            transaction.open_intents(&[intent])
        })
        .unwrap()[0];
    assert_eq!(store.snapshot().unwrap().generation("a/b", 0), 4);
    store
        .transaction(Timestamp(2), |transaction| {
            transaction.close_intent(id, Outcome::Abandoned)
        })
        .unwrap();
    assert_eq!(store.snapshot().unwrap().generation("a/b", 0), 4);
}

fn new_apply(pid: u32, operation: &str) -> NewApply {
    NewApply {
        who: "ann".into(),
        host: info("x").host,
        pid,
        operation: operation.into(),
        plan_digest: Some("d1".into()),
    }
}

#[test]
fn the_history_tells_what_was_done_by_whom() {
    let (_place, mut store) = Place::new();
    let item = HistoryItem {
        address: "a/b/0".into(),
        action: "replace".into(),
        before: HistoryIds {
            instance_id: Some("old".into()),
            provider_id: Some("i-old".into()),
        },
        after: HistoryIds {
            instance_id: Some("new".into()),
            provider_id: None,
        },
        result: "done".into(),
        detail_json: "{\"seconds\": 3}".into(),
        at: Timestamp(0),
    };
    let id = store
        .transaction(Timestamp(20), |transaction| {
            transaction.start_apply(new_apply(7, "apply"))
        })
        .unwrap();
    store
        .transaction(Timestamp(25), |transaction| {
            put_in(transaction, &[record("a/b", 0)])?;
            transaction.record_history_item(id, &item)?;
            transaction.record_history_item(
                id,
                &HistoryItem {
                    result: "x".into(),
                    ..item.clone()
                },
            )
        })
        .unwrap();
    store
        .transaction(Timestamp(30), |transaction| {
            put_in(transaction, &[record("a/b", 1)])?;
            transaction.finish_apply(id, ApplyStatus::Failed, "{\"create\": 2}")
        })
        .unwrap();
    let expected = Apply {
        id,
        started_at: Timestamp(20),
        finished_at: Some(Timestamp(30)),
        who: "ann".into(),
        host: "build-7".into(),
        pid: 7,
        operation: "apply".into(),
        serial_before: 0,
        serial_after: Some(2),
        status: ApplyStatus::Failed,
        summary_json: "{\"create\": 2}".into(),
        plan_digest: Some("d1".into()),
    };
    assert_eq!(store.history(10).unwrap(), [expected]);
    assert_eq!(store.meta().unwrap().serial, 2);
    let items = store.history_items(id).unwrap();
    let told = HistoryItem {
        at: Timestamp(25),
        ..item
    };
    assert_eq!(
        items,
        [
            told.clone(),
            HistoryItem {
                result: "x".into(),
                ..told
            }
        ]
    );
    assert_eq!(store.history_items(ApplyId(99)).unwrap(), []);
    let again = store.transaction(Timestamp(31), |transaction| {
        transaction.finish_apply(id, ApplyStatus::Succeeded, "{}")
    });
    assert!(matches!(
        again,
        Err(StateError::NotOpen { what: "apply", .. })
    ));
}

#[test]
fn an_apply_without_its_lock_is_interrupted() {
    let (place, mut store) = Place::new();
    let mine = info("x").pid;
    let mut start = |operation: &str, pid| {
        store
            .transaction(Timestamp(20), |transaction| {
                transaction.start_apply(new_apply(pid, operation))
            })
            .unwrap()
    };
    let dead = start("apply", mine);
    let latest = start("destroy", mine);
    let statuses = |limit| -> Vec<(ApplyId, ApplyStatus)> {
        let store = SqliteStore::open_read_only(&place.path, None).unwrap();
        store
            .history(limit)
            .unwrap()
            .iter()
            .map(|apply| (apply.id, apply.status))
            .collect()
    };
    let both = [
        (latest, ApplyStatus::Interrupted),
        (dead, ApplyStatus::Interrupted),
    ];
    assert_eq!(statuses(10), both);
    let lock = Lock::acquire(&place.path, info("x"), Duration::ZERO).unwrap();
    let running = (latest, ApplyStatus::Running);
    assert_eq!(statuses(10), [running, (dead, ApplyStatus::Interrupted)]);
    assert_eq!(statuses(1), [running]);
    drop(lock);
    assert_eq!(statuses(10), both);
}

#[test]
fn caches_are_kept_and_are_no_change() {
    let (_place, mut store) = Place::new();
    let image = |name: &str, id: &str| ImageRow {
        name: name.into(),
        query_digest: "q".into(),
        image_id: id.into(),
        source: "lookup".into(),
        resolved_at: Timestamp(4),
        detail_json: "{\"arch\": \"arm64\"}".into(),
    };
    let fetched = |body: &[u8]| FetchedRow {
        url: "https://example.com/a".into(),
        digest: "sha256:0".into(),
        body: body.to_vec(),
        fetched_at: Timestamp(6),
    };
    store
        .transaction(Timestamp(20), |transaction| {
            transaction.put_image(image("ubuntu", "ami-1"))?;
            transaction.put_image(image("debian", "ami-2"))?;
            transaction.put_image(image("ubuntu", "ami-3"))?;
            transaction.put_fetched(fetched(b"first"))?;
            transaction.put_fetched(fetched(b""))?;
            transaction.put_fetched(fetched(&[9; 15_000]))
        })
        .unwrap();
    let images = [image("debian", "ami-2"), image("ubuntu", "ami-3")];
    assert_eq!(store.images().unwrap(), images);
    assert_eq!(
        store.fetched("https://example.com/a").unwrap(),
        Some(fetched(&[9; 15_000]))
    );
    assert_eq!(store.fetched("https://example.com/b").unwrap(), None);
    assert_eq!(store.meta().unwrap().serial, 0);
}

#[test]
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method alone is not general enough in its lifetime"
)]
fn garbage_is_what_nothing_refers_to() {
    let (_place, mut store) = Place::new();
    put(&mut store, &[record("a/b", 0)]).unwrap();
    let (apply, intent) = store
        .transaction(Timestamp(20), |transaction| {
            for seed in 2..=4 {
                transaction.put_spec(digest(seed), format!("spec {seed}").as_bytes())?;
            }
            let mut observed = record("a/b", 1);
            observed.spec = digest(2);
            transaction.put_record(observed)?;
            let apply = transaction.start_apply(new_apply(1, "apply"))?;
            let intent = Intent {
                spec: Some(digest(3)),
                apply_id: Some(apply),
                ..creation("a/b", 2)
            };
            Ok((apply, transaction.open_intents(&[intent])?[0]))
        })
        .unwrap();
    let left = |store: &SqliteStore| -> Vec<u64> {
        let specs = store.specs((1..=4).map(digest)).unwrap();
        (1..=4)
            .filter(|seed| specs.contains_key(&digest(*seed)))
            .collect()
    };
    let collect = |store: &mut SqliteStore| {
        store
            .transaction(Timestamp(30), |transaction| transaction.collect_garbage())
            .unwrap()
    };
    assert_eq!(left(&store), [1, 2, 3, 4]);
    assert_eq!(collect(&mut store), 1);
    assert_eq!(left(&store), [1, 2, 3]);

    store
        .transaction(Timestamp(40), |transaction| {
            transaction.close_intent(intent, Outcome::Abandoned)?;
            transaction.finish_apply(apply, ApplyStatus::Succeeded, "{}")?;
            transaction.remove_record("knd-a/b-1").map(|_| ())
        })
        .unwrap();
    assert_eq!(collect(&mut store), 2);
    assert_eq!(left(&store), [1]);
    // What was dropped within a transaction can be put again in it.
    store
        .transaction(Timestamp(50), |transaction| {
            transaction.put_spec(digest(2), b"again")?;
            transaction.collect_garbage()?;
            transaction.put_spec(digest(2), b"again")?;
            let mut observed = record("a/b", 1);
            observed.spec = digest(2);
            transaction.put_record(observed)
        })
        .unwrap();
    assert_eq!(left(&store), [1, 2]);
    assert_eq!(store.check().unwrap(), []);
}
