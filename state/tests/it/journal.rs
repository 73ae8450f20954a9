//! Intents, the history of applies, caches.

use nstance_state::{
    ApplyId, ApplyStatus, FetchedRow, HistoryIds, HistoryItem, ImageRow, Lock, LockInfo, NewApply,
    NewIntent, Operation, Outcome, StateError, Store, Timestamp,
};

use crate::common::{Place, creation, digest, identity, put, put_in, record};
use std::time::Duration;

#[test]
fn an_intent_is_there_until_it_is_closed() {
    let (place, mut store) = Place::new();
    let request: Vec<u8> = (0..20_000_u32).map(|byte| (byte % 251) as u8).collect();
    let first = NewIntent {
        request,
        spec: Some(digest(1)),
        ..creation("a/b", 0)
    };
    let second = NewIntent {
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

    let mut store = Store::open(&place.path, Some(&identity())).unwrap();
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
