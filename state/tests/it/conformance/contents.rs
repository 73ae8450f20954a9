//! What changes a state as a whole: other contents, and another key.

use nstance_state::{
    ApplyStatus, Contents, Key, Outcome, Record, SpecDigest, StateError, Store, Timestamp, Write,
};

use super::{Subject, created, everything, opened, put, seen, spec, started};
use crate::common::{digest, record};

fn finished() -> Write {
    Write::FinishApply {
        id: None,
        status: ApplyStatus::Succeeded,
        summary_json: "{}".into(),
    }
}

fn replaced(now: &Contents, contents: &Contents) -> Write {
    Write::Replace {
        now: Box::new(now.clone()),
        contents: Box::new(contents.clone()),
    }
}

pub(super) fn contents_make_the_same_state_elsewhere(subject: &dyn Subject) {
    let mut store = created(subject);
    store.commit(Timestamp(2), everything()).unwrap();
    let second = put(record("default/web", 3));
    store.commit(Timestamp(3), vec![second]).unwrap();
    let contents = Contents::of(&*store).unwrap();
    let another = subject.another();
    let mut copy = created(&*another);
    let batch = vec![
        started(),
        Write::Restore(Box::new(contents.clone())),
        finished(),
    ];
    copy.commit(Timestamp(9), batch.clone()).unwrap();
    let after = Contents::of(&*copy).unwrap();
    assert!(after.says(&contents), "{after:?}");
    assert_eq!(after.records, contents.records);
    let [apply] = &copy.history(5).unwrap()[..] else {
        panic!("one entry")
    };
    assert_eq!((apply.serial_before, apply.serial_after), (0, Some(2)));
    // What follows goes on from its serial.
    let third = put(record("default/web", 4));
    copy.commit(Timestamp(10), vec![third]).unwrap();
    assert_eq!(copy.meta().unwrap().serial, 3);
    let before = seen(&*copy);
    let refused = copy.commit(Timestamp(11), batch).unwrap_err();
    assert!(matches!(refused, StateError::Occupied { .. }), "{refused}");
    assert_eq!(seen(&*copy), before);
    assert_eq!(seen(&*opened(&*another.crashed())), before);
}

pub(super) fn contents_take_the_place_of_others(subject: &dyn Subject) {
    let mut store = created(subject);
    let mut batch = everything();
    batch.push(put(record("default/web", 3)));
    batch.push(put(record("default/web", 4)));
    let written = store.commit(Timestamp(2), batch).unwrap();
    let before = Contents::of(&*store).unwrap();
    let mut wanted = before.clone();
    // Two that change places, one that goes, one that comes, one that stays.
    let [db, web_0, web_3, web_4] = &mut wanted.records[..] else {
        panic!("{:?}", wanted.records)
    };
    (db.group, db.slot) = (web_0.group.clone(), 0);
    (web_0.group, web_0.slot) = ("default/db".into(), 1);
    web_3.instance_id = "newcomer".into();
    web_3.provider_id = "i-newcomer".into();
    let stays = web_4.clone();
    wanted.serial += 10;
    // An intent of now isn't lost.
    let mut settled = wanted.clone();
    settled.intents.clear();
    let refused = store.commit(Timestamp(3), vec![replaced(&before, &settled)]);
    assert!(
        matches!(refused, Err(StateError::Unsettled { .. })),
        "{refused:?}"
    );
    assert!(Contents::of(&*store).unwrap().says(&before));

    let batch = vec![started(), replaced(&before, &wanted), finished()];
    store.commit(Timestamp(4), batch).unwrap();
    let after = Contents::of(&*store).unwrap();
    assert!(wanted.differences(&after).is_empty(), "{after:?}");
    assert_eq!(after.serial, wanted.serial + 1);
    assert!(after.records.contains(&stays));
    let changed = after.records.iter().filter(|record| **record != stays);
    let versions: Vec<u64> = changed.map(|record| record.version).collect();
    assert_eq!(versions, [after.serial; 3]);
    assert_eq!(
        store.history(1).unwrap()[0].serial_after,
        Some(after.serial)
    );
    // Intents that were open stay as they are; the rollout was about the former records.
    assert_eq!(after.intents, before.intents);
    let found = seen(&*store);
    assert_eq!((found.rollout, found.requests.len()), (None, 0));
    assert!(found.last_good.is_empty());

    // An intent of the contents that was closed is open again, as it was.
    let close = written.intents.iter().map(|id| Write::CloseIntent {
        id: *id,
        outcome: Outcome::Abandoned,
    });
    store.commit(Timestamp(5), close.collect()).unwrap();
    let closed = Contents::of(&*store).unwrap();
    store
        .commit(Timestamp(6), vec![replaced(&closed, &wanted)])
        .unwrap();
    let again = Contents::of(&*store).unwrap();
    let plain = |contents: &Contents| -> Vec<_> {
        let intents = contents.intents.iter();
        let plain = intents.map(|it| (it.token.clone(), it.request.clone(), it.opened_at));
        plain.collect()
    };
    assert_eq!(plain(&again), plain(&before));
    assert_eq!(again.serial, after.serial + 1);
    assert_eq!(seen(&*opened(&*subject.crashed())), seen(&*store));
}

pub(super) fn specs_of_past_entries_are_kept(subject: &dyn Subject) {
    let mut store = created(subject);
    let mut keep = |digests: Vec<SpecDigest>, new: Vec<Write>| {
        let mut batch = vec![started()];
        batch.extend(new);
        batch.push(Write::KeepSpecs {
            id: None,
            digests,
            entries: 2,
        });
        batch.extend([finished(), Write::CollectGarbage]);
        store.commit(Timestamp(2), batch).unwrap();
        let all: Vec<SpecDigest> = (0..6).map(digest).collect();
        let mut left: Vec<SpecDigest> = store.specs(&all).unwrap().into_keys().collect();
        left.sort();
        left
    };
    let [one, two, three] = [1, 2, 3].map(digest);
    assert_eq!(keep(vec![one, two], vec![spec(1), spec(2)]), [one, two]);
    // An entry that keeps none takes nobody's place.
    assert_eq!(keep(vec![], vec![]), [one, two]);
    assert_eq!(keep(vec![two], vec![spec(4)]), [one, two]);
    assert_eq!(keep(vec![three], vec![spec(3)]), [two, three]);
    let missing = Write::KeepSpecs {
        id: None,
        digests: vec![digest(11)],
        entries: 2,
    };
    let refused = store.commit(Timestamp(3), vec![started(), missing]);
    assert!(
        matches!(refused, Err(StateError::MissingSpec { .. })),
        "{refused:?}"
    );
}

pub(super) fn a_new_key_changes_nothing_else(subject: &dyn Subject) {
    let mut store = created(subject);
    store.commit(Timestamp(2), everything()).unwrap();
    let before = seen(&*store);
    let key = Key::generate().unwrap();
    subject.learn(&key);
    let rekey = Write::Rekey(key.clone().into());
    let refused = Record {
        spec: digest(11),
        ..record("default/web", 5)
    };
    store
        .commit(Timestamp(3), vec![rekey.clone(), put(refused)])
        .unwrap_err();
    assert_eq!(seen(&*store), before);
    let needed = |store: &dyn Store| store.meta().unwrap().key.map(|need| need.id);
    assert_eq!(needed(&*store), subject.key().map(|new| new.key.id()));

    store.commit(Timestamp(4), vec![rekey]).unwrap();
    assert!(store.scrub().unwrap());
    let crashed = subject.crashed();
    for store in [&*store, &*opened(subject), &*opened(&*crashed)] {
        assert_eq!(seen(store), before);
        assert_eq!(store.check().unwrap(), []);
        // A store in memory isn't encrypted.
        assert!(needed(store).is_none_or(|id| id == key.id()));
    }
    store.commit(Timestamp(5), vec![spec(5)]).unwrap();
}
