//! Records, specs, generations, serials.

use nstance_state::{Intent, Record, SqliteStore, StateError, Timestamp, Transaction};

use crate::common::{Place, creation, digest, identity, put, put_in, record};

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
        SqliteStore::open(&place.path, Some(&identity())).unwrap(),
        SqliteStore::open_read_only(&place.path, Some(&identity())).unwrap(),
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
    // A generation belongs to no record.
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

/// Runs one transaction that must succeed.
fn run<R>(
    store: &mut SqliteStore,
    change: impl FnOnce(&mut Transaction<'_>) -> nstance_state::Result<R>,
) -> R {
    store.transaction(Timestamp(20), change).unwrap()
}

#[test]
fn a_slot_has_one_live_record_and_any_number_of_deposed_ones() {
    let (_place, mut store) = Place::new();
    let named = |id: &str, deposed| Record {
        instance_id: id.into(),
        provider_id: format!("i-{id}"),
        deposed,
        ..record("a/b", 0)
    };
    put(&mut store, &[named("one", false)]).unwrap();
    match put(&mut store, &[named("two", false)]).unwrap_err() {
        StateError::Occupied {
            address,
            instance_id,
        } => {
            assert_eq!((address.as_str(), instance_id.as_str()), ("a/b/0", "one"));
        }
        error => panic!("{error:?}"),
    }
    // Create before delete: the old one steps back, the new one steps in, in one transaction.
    put(
        &mut store,
        &[named("one", true), named("two", false), named("zero", true)],
    )
    .unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.live("a/b", 0).unwrap().instance_id, "two");
    assert_eq!(snapshot.deposed().count(), 2);
    match put(&mut store, &[named("one", false)]).unwrap_err() {
        StateError::Occupied { instance_id, .. } => assert_eq!(instance_id, "two"),
        error => panic!("{error:?}"),
    }
}

#[test]
fn a_provider_id_is_recorded_once() {
    let (_place, mut store) = Place::new();
    put(&mut store, &[record("a/b", 0)]).unwrap();
    let twin = Record {
        provider_id: record("a/b", 0).provider_id,
        ..record("a/b", 1)
    };
    match put(&mut store, &[twin]).unwrap_err() {
        StateError::Claimed {
            provider_id,
            address,
        } => {
            assert_eq!(
                (provider_id.as_str(), address.as_str()),
                ("i-a/b-0", "a/b/0")
            );
        }
        error => panic!("{error:?}"),
    }
    assert_eq!(store.meta().unwrap().serial, 1);
}

#[test]
fn a_record_needs_its_specs() {
    let (_place, mut store) = Place::new();
    let record = Record {
        spec: digest(9),
        ..record("a/b", 0)
    };
    let missing = put(&mut store, &[record]).unwrap_err();
    assert!(matches!(missing, StateError::MissingSpec { digest: found } if found == digest(9)));
}

#[test]
fn specs_are_stored_once_and_come_back_as_they_were() {
    let (_place, mut store) = Place::new();
    let long: Vec<u8> = (0..100_000_u32).map(|byte| (byte % 253) as u8).collect();
    run(&mut store, |transaction| {
        transaction.put_spec(digest(1), &long)?;
        transaction.put_spec(digest(1), b"ignored: it is there already")?;
        transaction.put_spec(digest(2), b"")
    });
    let asked = [digest(1), digest(2), digest(3), digest(1)];
    let specs = store.specs(asked.into_iter()).unwrap();
    assert_eq!(specs.len(), 2);
    assert_eq!(&*specs[&digest(1)], &long[..]);
    assert_eq!(&*specs[&digest(2)], b"");
}

#[test]
fn a_record_keeps_its_spec_when_others_are_dropped() {
    let (_place, mut store) = Place::new();
    let of = |slot: u32| Record {
        spec: digest(100 + u64::from(slot)),
        ..record("a/b", slot)
    };
    run(&mut store, |transaction| {
        for slot in 0..20 {
            transaction.put_spec(of(slot).spec, b"spec")?;
            transaction.put_record(of(slot))?;
        }
        Ok(())
    });
    // Holes at the beginning, in the middle and at the end of their numbers.
    let gone = [0, 1, 7, 8, 12, 19];
    let dropped = run(&mut store, |transaction| {
        for slot in gone {
            transaction.remove_record(&of(slot).instance_id)?;
        }
        transaction.collect_garbage()
    });
    assert_eq!(dropped, gone.len());
    let records = store.snapshot().unwrap().records;
    assert_eq!(records.len(), 14);
    for record in records {
        assert_eq!(record.spec, of(record.slot).spec);
    }
}

#[test]
fn a_generation_is_never_given_twice() {
    let (_place, mut store) = Place::new();
    let next = |store: &mut SqliteStore, slot| {
        let expected = store.snapshot().unwrap().generation("a/b", slot) + 1;
        let next = run(store, |transaction| {
            transaction.next_generation("a/b", slot)
        });
        assert_eq!(next, expected);
        next
    };
    assert_eq!(next(&mut store, 0), 1);
    assert_eq!(next(&mut store, 0), 2);
    assert_eq!(next(&mut store, 1), 1);
    put(
        &mut store,
        &[Record {
            generation: 2,
            ..record("a/b", 0)
        }],
    )
    .unwrap();
    assert_eq!(store.snapshot().unwrap().generation("a/b", 0), 2);
    assert_eq!(next(&mut store, 0), 3);
    // Removed, and there again with an older number, and gone for good.
    assert!(run(&mut store, |transaction| transaction
        .remove_record("knd-a/b-0")));
    assert!(!run(&mut store, |transaction| transaction
        .remove_record("knd-a/b-0")));
    assert_eq!(next(&mut store, 0), 4);
    put(
        &mut store,
        &[Record {
            generation: 9,
            ..record("a/b", 0)
        }],
    )
    .unwrap();
    assert!(run(&mut store, |transaction| transaction
        .remove_record("knd-a/b-0")));
    assert_eq!(store.snapshot().unwrap().generation("a/b", 0), 9);
    assert_eq!(next(&mut store, 0), 10);
    // A record that changes its generation keeps the greater one used.
    put(
        &mut store,
        &[Record {
            generation: 20,
            ..record("a/b", 0)
        }],
    )
    .unwrap();
    put(
        &mut store,
        &[Record {
            generation: 12,
            ..record("a/b", 0)
        }],
    )
    .unwrap();
    assert_eq!(next(&mut store, 0), 21);
    // Another slot and another group are counted for themselves.
    assert_eq!(store.snapshot().unwrap().generation("a/b", 1), 1);
    assert_eq!(store.snapshot().unwrap().generation("a/c", 0), 0);
}

#[test]
fn a_slot_is_moved_with_all_that_it_has() {
    let (_place, mut store) = Place::new();
    let deposed = Record {
        deposed: true,
        instance_id: "old".into(),
        provider_id: "i-old".into(),
        ..record("a/b", 0)
    };
    let live = Record {
        generation: 5,
        ..record("a/b", 0)
    };
    put(&mut store, &[live, deposed, record("a/b", 1)]).unwrap();

    let mut fails = |from, to| {
        store
            .transaction(Timestamp(30), |transaction| {
                transaction.move_record(from, to)
            })
            .unwrap_err()
    };
    let occupied = fails(("a/b", 0), ("a/b", 1));
    assert!(matches!(occupied, StateError::Occupied { address, .. } if address == "a/b/1"));
    let occupied = fails(("a/b", 0), ("a/b", 0));
    assert!(matches!(occupied, StateError::Occupied { .. }));
    let missing = fails(("a/x", 0), ("a/b", 7));
    assert!(matches!(missing, StateError::NoRecord { address } if address == "a/x/0"));

    run(&mut store, |transaction| {
        transaction.move_record(("a/b", 0), ("c/d", 3))
    });
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.meta.serial, 2);
    assert_eq!(snapshot.live("a/b", 0), None);
    let moved = snapshot.live("c/d", 3).unwrap();
    assert_eq!(
        (moved.instance_id.as_str(), moved.version),
        ("knd-a/b-0", 2)
    );
    assert_eq!(moved.updated_at, Timestamp(20));
    assert_eq!(snapshot.deposed().next().unwrap().address(), "c/d/3");
    assert_eq!(snapshot.live("a/b", 1).unwrap().version, 1);
    // Neither place gives a generation again that it has had.
    assert_eq!(snapshot.generation("a/b", 0), 5);
    assert_eq!(snapshot.generation("c/d", 3), 5);
}

#[test]
fn a_slot_with_an_open_intent_is_not_moved() {
    for (busy, slot) in [("a/b", 0), ("c/d", 3)] {
        let (_place, mut store) = Place::new();
        put(&mut store, &[record("a/b", 0)]).unwrap();
        let intent = Intent {
            instance_id: "other".into(),
            ..creation(busy, slot)
        };
        run(&mut store, |transaction| {
            transaction.open_intents(&[intent])
        });
        let refused = store
            .transaction(Timestamp(30), |transaction| {
                transaction.move_record(("a/b", 0), ("c/d", 3))
            })
            .unwrap_err();
        let expected = format!("{busy}/{slot}");
        assert!(matches!(refused, StateError::Unsettled { address } if address == expected));
    }
}

#[test]
fn numbers_at_their_ends_are_kept() {
    let (_place, mut store) = Place::new();
    let extreme = Record {
        generation: i64::MAX as u64,
        created_at: Timestamp(i64::MIN),
        zone: String::new(),
        subnet: Some(String::new()),
        attributes: "{\"é\": \"\u{0}\"}".into(),
        ..record("a/b", u32::MAX)
    };
    put(&mut store, std::slice::from_ref(&extreme)).unwrap();
    let found = store.snapshot().unwrap().records.remove(0);
    assert_eq!(
        found,
        Record {
            version: 1,
            updated_at: Timestamp(10),
            ..extreme
        }
    );
}

/// The fast paths of a snapshot against a slow and obvious twin.
#[test]
fn a_snapshot_finds_what_looking_at_every_record_finds() {
    let (_place, mut store) = Place::new();
    let groups = ["a/b", "a/bb", "a/c", "b/a", "ä/b"];
    let mut seed = 12_345_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut records = Vec::new();
    for index in 0..300 {
        let group = groups[random(5) as usize];
        let slot = random(40) as u32;
        let taken = records.iter().any(|other: &Record| {
            (&*other.group, other.slot, other.deposed) == (group, slot, false)
        });
        records.push(Record {
            deposed: taken,
            instance_id: format!("knd-{index}"),
            provider_id: format!("i-{index}"),
            generation: random(9),
            ..record(group, slot)
        });
    }
    put(&mut store, &records).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.records.len(), records.len());
    let key = |record: &Record| {
        (
            record.group.to_string(),
            record.slot,
            record.deposed,
            record.generation,
        )
    };
    assert!(snapshot.records.is_sorted_by_key(key));
    for group in groups.into_iter().chain(["", "a", "zz/z"]) {
        let slow: Vec<&Record> = snapshot
            .records
            .iter()
            .filter(|record| &*record.group == group)
            .collect();
        assert_eq!(snapshot.group(group).iter().collect::<Vec<_>>(), slow);
        for slot in 0..41 {
            let of_slot = slow.iter().filter(|record| record.slot == slot);
            let live = of_slot.clone().find(|record| !record.deposed);
            assert_eq!(snapshot.live(group, slot), live.copied());
            let newest = of_slot.map(|record| record.generation).max().unwrap_or(0);
            assert_eq!(snapshot.generation(group, slot), newest);
        }
    }
}
