//! The lock, within one process.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use nstance_state::{Lock, LockInfo, StateError, Timestamp};

use crate::common::Place;

pub(crate) fn info(id: &str) -> LockInfo {
    LockInfo {
        id: id.into(),
        holder: "ann".into(),
        host: "build-7".into(),
        pid: std::process::id(),
        operation: "apply".into(),
        since: Timestamp(99),
    }
}

fn acquire(place: &Place, id: &str) -> Result<Lock, StateError> {
    Lock::acquire(&place.path, info(id), Duration::ZERO)
}

#[test]
fn a_lock_is_held_until_it_is_released_or_dropped() {
    let place = Place::empty();
    assert_eq!(Lock::peek(&place.path).unwrap(), None);
    assert!(place.names().is_empty());

    let lock = acquire(&place, "one").unwrap();
    assert_eq!(lock.info(), &info("one"));
    assert_eq!(Lock::peek(&place.path).unwrap(), Some(info("one")));
    match acquire(&place, "two").unwrap_err() {
        StateError::Locked { holder } => assert_eq!(*holder, info("one")),
        error => panic!("{error:?}"),
    }
    lock.release();
    assert_eq!(Lock::peek(&place.path).unwrap(), None);
    drop(acquire(&place, "two").unwrap());
    drop(acquire(&place, "three").unwrap());
    assert_eq!(
        fs::read(place.folder.path().join("prod.db.lock")).unwrap(),
        b""
    );
}

#[test]
fn a_lock_that_ends_in_time_is_taken() {
    let place = Place::empty();
    let lock = acquire(&place, "one").unwrap();
    std::thread::scope(|scope| {
        let waiting = scope
            .spawn(|| Lock::acquire(&place.path, info("two"), Duration::from_mins(1)).unwrap());
        drop(lock);
        let lock = waiting.join().unwrap();
        assert_eq!(Lock::peek(&place.path).unwrap().unwrap().id, "two");
        drop(lock);
    });
}

#[test]
fn who_waits_hears_whom_for_once() {
    let place = Place::empty();
    let mut lock = Some(acquire(&place, "one").unwrap());
    let mut told = Vec::new();
    // The holder goes as soon as it is told of: so being told comes before getting it.
    let got = Lock::acquire_with(
        &place.path,
        info("two"),
        Duration::from_mins(1),
        &mut |holder| {
            told.push(holder.id.clone());
            drop(lock.take());
        },
    );
    assert_eq!(told, ["one"]);
    assert_eq!(got.unwrap().info().id, "two");

    // Without patience nobody waits, and nobody is told of.
    let _lock = acquire(&place, "three").unwrap();
    let mut told = 0;
    let refused = Lock::acquire_with(&place.path, info("four"), Duration::ZERO, &mut |_| {
        told += 1;
    });
    assert!(matches!(refused, Err(StateError::Locked { .. })));
    assert_eq!(told, 0);
}

#[test]
fn only_one_of_many_gets_the_lock() {
    let place = Place::empty();
    let start = std::sync::Barrier::new(8);
    let got: Vec<Option<Lock>> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|index: u32| {
                let (start, place) = (&start, &place);
                scope.spawn(move || {
                    start.wait();
                    acquire(place, &index.to_string()).ok()
                })
            })
            .collect();
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(got.iter().flatten().count(), 1);
}

#[test]
fn looking_takes_nothing_from_nobody() {
    let place = Place::empty();
    drop(acquire(&place, "one").unwrap());
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            for _ in 0..2_000 {
                if let Some(holder) = Lock::peek(&place.path).unwrap() {
                    assert_eq!(holder.holder, "ann");
                }
            }
        });
        for index in 0..500 {
            drop(acquire(&place, &index.to_string()).unwrap());
        }
        looking.join().unwrap();
    });
}

#[test]
fn the_folder_of_a_state_that_is_not_there_yet_is_made() {
    let place = Place::empty();
    let path = place.folder.path().join("a/b/prod.db");
    let lock = Lock::acquire(&path, info("one"), Duration::ZERO).unwrap();
    assert_eq!(Lock::peek(&path).unwrap(), Some(info("one")));
    drop(lock);
}

#[test]
fn a_symbolic_link_has_the_lock_of_its_state() {
    let (place, _store) = Place::new();
    let link = place.folder.path().join("link.db");
    symlink(&place.path, &link).unwrap();
    let _lock = acquire(&place, "one").unwrap();
    let second = Lock::acquire(&link, info("two"), Duration::ZERO).unwrap_err();
    assert!(matches!(second, StateError::Locked { .. }));
    assert_eq!(Lock::peek(&link).unwrap(), Some(info("one")));
}

#[test]
fn only_a_dead_lock_is_broken_and_only_by_its_id() {
    let place = Place::empty();
    let side = place.folder.path().join("prod.db.lock");
    assert!(matches!(
        Lock::break_stale(&place.path, "x"),
        Err(StateError::NotLocked { .. })
    ));
    assert!(place.names().is_empty());

    let lock = acquire(&place, "one").unwrap();
    match Lock::break_stale(&place.path, "one").unwrap_err() {
        StateError::Locked { holder } => assert_eq!(holder.id, "one"),
        error => panic!("{error:?}"),
    }
    let text = fs::read(&side).unwrap();
    drop(lock);
    assert!(matches!(
        Lock::break_stale(&place.path, "one"),
        Err(StateError::NotLocked { .. })
    ));

    // What a dead process leaves.
    fs::write(&side, &text).unwrap();
    assert_eq!(Lock::peek(&place.path).unwrap(), None);
    match Lock::break_stale(&place.path, "two").unwrap_err() {
        StateError::WrongLock { asked, holder } => {
            assert_eq!((asked.as_str(), *holder), ("two", info("one")));
        }
        error => panic!("{error:?}"),
    }
    assert_eq!(fs::read(&side).unwrap(), text);
    assert_eq!(Lock::break_stale(&place.path, "one").unwrap(), info("one"));
    assert_eq!(fs::read(&side).unwrap(), b"");

    // What is left stops nobody.
    fs::write(&side, &text).unwrap();
    let lock = acquire(&place, "three").unwrap();
    assert_eq!(Lock::peek(&place.path).unwrap().unwrap().id, "three");
    drop(lock);
}

#[test]
fn a_holder_that_did_not_sign_is_still_a_holder() {
    for text in [&b""[..], b"{\"id\": \"on", b"\xff\xfe"] {
        let place = Place::empty();
        let side = fs::File::create(place.folder.path().join("prod.db.lock")).unwrap();
        side.lock().unwrap();
        fs::write(place.folder.path().join("prod.db.lock"), text).unwrap();
        assert_eq!(Lock::peek(&place.path).unwrap().unwrap().holder, "unknown");
        match acquire(&place, "one").unwrap_err() {
            StateError::Locked { holder } => assert_eq!(holder.holder, "unknown"),
            error => panic!("{error:?}"),
        }
    }
}
