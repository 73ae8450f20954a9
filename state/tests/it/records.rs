//! Records, specs, generations, serials.

use nstance_state::{Record, StateError, Store, Timestamp};

use crate::common::{Place, digest, identity, put, put_in, record};

#[test]
fn what_is_put_is_in_the_snapshot_in_order() {
    let (place, mut store) = Place::new();
    let mut records = vec![
        record("default/web", 1),
        record("default/web", 0),
        record("acme/db", 7),
        Record {
            ip6: Some("fd00::1".into()),
            observed: Some(digest(1)),
            ..record("acme/db", 0)
        },
    ];
    let deposed = Record {
        deposed: true,
        instance_id: "old".into(),
        provider_id: "i-old".into(),
        ..record("acme/db", 7)
    };
    records[2].generation = 2;
    records.push(deposed);
    put(&mut store, &records).unwrap();

    let expected: Vec<Record> = [3, 2, 4, 1, 0]
        .into_iter()
        .map(|index: usize| Record {
            version: 1,
            updated_at: Timestamp(10),
            ..records[index].clone()
        })
        .collect();
    for store in [
        store,
        Store::open(&place.path, Some(&identity())).unwrap(),
        Store::open_read_only(&place.path, Some(&identity())).unwrap(),
    ] {
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.records, expected);
        assert_eq!(snapshot.meta.serial, 1);
        assert_eq!(snapshot.meta.identity, identity());
        assert_eq!(snapshot.meta.lineage, "lineage");
        assert_eq!(
            snapshot.live("acme/db", 7).unwrap().instance_id,
            "knd-acme/db-7"
        );
        assert_eq!(snapshot.live("acme/db", 1), None);
        assert_eq!(snapshot.group("acme/db").len(), 3);
        assert_eq!(snapshot.group("acme/d").len(), 0);
        assert_eq!(snapshot.deposed().count(), 1);
    }
}

#[test]
fn the_serial_grows_once_a_transaction_that_changes_a_record() {
    let (_place, mut store) = Place::new();
    put(&mut store, &[record("a/b", 0), record("a/b", 1)]).unwrap();
    assert_eq!(store.meta().unwrap().serial, 1);
    // The same again changes nothing.
    put(&mut store, &[record("a/b", 0), record("a/b", 1)]).unwrap();
    assert_eq!(store.meta().unwrap().serial, 1);
    // What is no record is no change.
    store
        .transaction(Timestamp(11), |transaction| {
            transaction.next_generation("a/b", 5)
        })
        .unwrap();
    assert_eq!(store.meta().unwrap().serial, 1);
    let changed = Record {
        zone: "elsewhere".into(),
        ..record("a/b", 1)
    };
    put(&mut store, &[record("a/b", 0), changed]).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.meta.serial, 2);
    let versions: Vec<u64> = snapshot
        .records
        .iter()
        .map(|record| record.version)
        .collect();
    assert_eq!(versions, [1, 2]);
}

#[test]
fn a_transaction_that_fails_leaves_nothing() {
    let (_place, mut store) = Place::new();
    put(&mut store, &[record("a/b", 0)]).unwrap();
    let failed = store.transaction(Timestamp(20), |transaction| {
        put_in(transaction, &[record("a/b", 1)])?;
        transaction.remove_record("knd-a/b-0")?;
        transaction.move_record(("a/b", 7), ("a/b", 8))
    });
    assert!(matches!(failed, Err(StateError::NoRecord { address }) if address == "a/b/7"));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.meta.serial, 1);
    assert_eq!(snapshot.records.len(), 1);
    assert_eq!(snapshot.live("a/b", 0).unwrap().version, 1);
}
