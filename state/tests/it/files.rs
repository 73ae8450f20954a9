//! What is refused, and that it is left alone; damage; copies.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nstance_state::{Identity, ProblemKind, SqliteStore, StateError, Timestamp, backups};
use rusqlite::Connection;

use crate::common::{Place, content, creation, digest, identity, put, record};

type Open = fn(&Path, Option<&Identity>) -> nstance_state::Result<SqliteStore>;

const WAYS: [Open; 2] = [SqliteStore::open, SqliteStore::open_read_only];

/// Asserts that both ways of opening refuse as `refused` says, and leave everything as it lies.
fn assert_refused(place: &Place, name: &str, refused: impl Fn(&StateError) -> bool) {
    let before = content(place);
    for open in WAYS {
        let error = open(&place.path, Some(&identity())).unwrap_err();
        assert!(refused(&error), "{name}: {error:?}");
        assert_eq!(content(place), before, "{name}");
    }
}

/// A closed state with some records in it.
fn filled() -> Place {
    let (place, mut store) = Place::new();
    let records: Vec<_> = (0..500).map(|slot| record("default/web", slot)).collect();
    put(&mut store, &records).unwrap();
    drop(store);
    assert_eq!(place.names(), ["prod.db"]);
    place
}

#[test]
fn a_state_is_created_whole_and_for_its_owner_only() {
    let place = Place::empty();
    let path = place.folder.path().join("a/b/prod.db");
    let mut store = SqliteStore::create(&path, &identity(), "lineage", Timestamp(7)).unwrap();
    let meta = store.meta().unwrap();
    assert_eq!(
        (meta.serial, meta.created_at, meta.schema_version),
        (0, Timestamp(7), 5)
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    put(&mut store, &[record("a/b", 0)]).unwrap();
    let log = fs::metadata(path.with_file_name("prod.db-wal")).unwrap();
    assert_eq!(log.permissions().mode() & 0o777, 0o600);
    drop(store);

    let before = fs::read(&path).unwrap();
    let again = SqliteStore::create(&path, &identity(), "other", Timestamp(8)).unwrap_err();
    assert!(matches!(again, StateError::Exists { .. }));
    assert_eq!(fs::read(&path).unwrap(), before);
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1);
}

#[test]
fn what_is_no_state_is_refused_and_kept() {
    let contents: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("one byte", b"S"),
        ("text", b"{\"cluster\": \"prod\"}\n"),
        ("the beginning of a database", b"SQLite format 3\0"),
        ("zeros", &[0; 8192]),
    ];
    for (name, bytes) in contents {
        let place = Place::empty();
        fs::write(&place.path, bytes).unwrap();
        assert_refused(&place, name, |error| {
            matches!(error, StateError::NotAState { .. })
        });
    }

    let place = Place::empty();
    for open in WAYS {
        let missing = open(&place.path, None).unwrap_err();
        assert!(matches!(missing, StateError::NotFound { .. }));
        let folder = open(place.folder.path(), None).unwrap_err();
        assert!(matches!(folder, StateError::NotAState { .. }));
    }
    assert!(place.names().is_empty());
}

#[test]
fn another_programs_database_is_refused_and_kept() {
    for mode in ["DELETE", "WAL"] {
        let place = Place::empty();
        let other = Connection::open(&place.path).unwrap();
        other
            .execute_batch(&format!(
                "PRAGMA journal_mode = {mode}; CREATE TABLE meta (id INTEGER, cluster TEXT)"
            ))
            .unwrap();
        if mode == "WAL" {
            // While it is open, with a log; and what a crash would leave, without and with its
            // shared memory.
            let crashed = Place::empty();
            for (name, bytes) in content(&place) {
                fs::write(crashed.folder.path().join(name), bytes).unwrap();
            }
            assert_refused(&crashed, "crashed", |error| {
                matches!(error, StateError::NotAState { .. })
            });
            fs::remove_file(crashed.folder.path().join("prod.db-shm")).unwrap();
            assert_refused(&crashed, "crashed, without shared memory", |error| {
                matches!(error, StateError::NotAState { .. })
            });
        }
        drop(other);
        assert_refused(&place, mode, |error| {
            matches!(error, StateError::NotAState { .. })
        });
    }
}

#[test]
fn another_identity_is_refused_and_both_are_named() {
    let place = filled();
    let owner = identity();
    let others = [
        Identity {
            cluster: "dev".into(),
            ..owner.clone()
        },
        Identity {
            shard: "us-east-1a".into(),
            ..owner.clone()
        },
        Identity {
            provider: "gcp".into(),
            ..owner.clone()
        },
    ];
    let before = content(&place);
    for other in others {
        for open in WAYS {
            match open(&place.path, Some(&other)).unwrap_err() {
                StateError::Foreign {
                    expected, found, ..
                } => {
                    assert_eq!((*expected, *found), (other.clone(), owner.clone()));
                }
                error => panic!("{error:?}"),
            }
        }
    }
    assert_eq!(content(&place), before);
    for open in WAYS {
        open(&place.path, None).unwrap();
    }
}

#[test]
fn a_newer_schema_is_refused_and_kept() {
    let place = filled();
    let newer = Connection::open(&place.path).unwrap();
    newer.execute_batch("PRAGMA user_version = 77").unwrap();
    drop(newer);
    assert_refused(&place, "newer", |error| {
        matches!(
            error,
            StateError::Newer {
                found: 77,
                supported: 5,
                ..
            }
        )
    });
}

#[test]
fn a_schema_that_grew_while_it_was_open_is_not_written() {
    let (place, mut store) = Place::new();
    let newer = Connection::open(&place.path).unwrap();
    newer.execute_batch("PRAGMA user_version = 77").unwrap();
    let refused = put(&mut store, &[record("a/b", 0)]).unwrap_err();
    assert!(
        matches!(refused, StateError::Newer { found: 77, .. }),
        "{refused:?}"
    );
}

#[test]
fn a_file_that_was_cut_off_is_refused_and_kept() {
    let whole = filled();
    let bytes = fs::read(&whole.path).unwrap();
    assert!(bytes.len() > 40_000);
    for length in [
        99,
        100,
        511,
        4095,
        4096,
        4097,
        12_288,
        bytes.len() / 2,
        bytes.len() - 1,
    ] {
        let place = Place::empty();
        fs::write(&place.path, &bytes[..length]).unwrap();
        assert_refused(&place, &format!("cut to {length}"), |error| {
            matches!(
                error,
                StateError::Corrupt { .. } | StateError::NotAState { .. }
            )
        });
    }
}

#[test]
fn damage_is_told_and_never_a_panic() {
    let whole = filled();
    let bytes = fs::read(&whole.path).unwrap();
    let pages = bytes.len() / 4096;
    let mut told = 0;
    for page in 1..pages {
        let place = Place::empty();
        let mut damaged = bytes.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0xA5);
        fs::write(&place.path, damaged).unwrap();
        let problems = SqliteStore::open_read_only(&place.path, None).and_then(|store| {
            // Whatever these say, they say it.
            let _ = store.snapshot();
            let _ = store.history(10);
            store.check()
        });
        match problems {
            Ok(problems) => {
                assert!(!problems.is_empty(), "page {page}");
                assert!(
                    problems
                        .iter()
                        .any(|problem| problem.kind == ProblemKind::Damage),
                    "page {page}: {problems:?}"
                );
                told += 1;
            }
            Err(StateError::Corrupt { .. }) => {}
            Err(error) => panic!("page {page}: {error:?}"),
        }
    }
    assert!(told > pages / 2);
}

#[test]
fn a_sound_state_has_no_problem_and_contradictions_are_told() {
    let (place, mut store) = Place::new();
    put(&mut store, &[record("a/b", 0)]).unwrap();
    store
        .transaction(Timestamp(20), |transaction| {
            transaction.open_intents(&[creation("a/b", 1)])
        })
        .unwrap();
    assert_eq!(store.check().unwrap(), []);

    // Recorded, but its intent was not closed with it.
    put(&mut store, &[record("a/b", 1)]).unwrap();
    let other = Connection::open(&place.path).unwrap();
    other
        .execute_batch(
            "UPDATE instances SET version = 99 WHERE instance_id = 'knd-a/b-0';
             UPDATE specs SET body = x'00';
             UPDATE journal SET request = x'00';
             PRAGMA foreign_keys = OFF;
             UPDATE instances SET spec_id = 12345;",
        )
        .unwrap();
    let problems = store.check().unwrap();
    let mut kinds: Vec<&str> = problems
        .iter()
        .map(|problem| match problem.kind {
            ProblemKind::Damage => "damage",
            ProblemKind::Reference => "reference",
            ProblemKind::Content => "content",
            ProblemKind::Journal => "journal",
            ProblemKind::Record => "record",
        })
        .collect();
    kinds.sort_unstable();
    let expected = [
        "content",
        "content",
        "journal",
        "record",
        "reference",
        "reference",
    ];
    assert_eq!(kinds, expected, "{problems:?}");
    // What refers to nothing is damage to whoever reads it.
    assert!(matches!(store.snapshot(), Err(StateError::Corrupt { .. })));
    assert!(matches!(
        store.specs([digest(1)].into_iter()),
        Err(StateError::Corrupt { .. })
    ));
}

#[test]
fn a_backup_is_a_state_and_overwrites_nothing() {
    let (place, mut store) = Place::new();
    put(&mut store, &[record("a/b", 0)]).unwrap();
    let to = place.folder.path().join("copy.db");
    store.backup(&to).unwrap();
    assert_eq!(
        fs::metadata(&to).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let copy = SqliteStore::open_read_only(&to, Some(&identity())).unwrap();
    assert_eq!(copy.meta().unwrap(), store.meta().unwrap());
    assert_eq!(
        copy.snapshot().unwrap().records,
        store.snapshot().unwrap().records
    );
    let bytes = fs::read(&to).unwrap();
    assert!(matches!(store.backup(&to), Err(StateError::Exists { .. })));
    // A backup that can be read can be backed up.
    copy.backup(&place.folder.path().join("again.db")).unwrap();
    drop(copy);
    assert_eq!(fs::read(&to).unwrap(), bytes);
    drop(store);
    assert_eq!(place.names(), ["again.db", "copy.db", "prod.db"]);
}

#[test]
fn reading_writes_nothing_and_is_no_way_to_write() {
    let place = filled();
    let before = content(&place);
    let mut store = SqliteStore::open_read_only(&place.path, Some(&identity())).unwrap();
    store.snapshot().unwrap();
    store.history(5).unwrap();
    let refused = put(&mut store, &[record("a/b", 0)]).unwrap_err();
    assert!(matches!(refused, StateError::ReadOnly { .. }));
    drop(store);
    assert_eq!(content(&place), before);
}

#[test]
fn a_reader_sees_what_was_committed_while_it_was_open() {
    let (place, mut writer) = Place::new();
    let reader = SqliteStore::open_read_only(&place.path, None).unwrap();
    assert_eq!(reader.meta().unwrap().serial, 0);
    put(&mut writer, &[record("a/b", 0)]).unwrap();
    assert_eq!(reader.meta().unwrap().serial, 1);
    // A second reader joins while the writer is in the middle of something.
    writer
        .transaction(Timestamp(30), |transaction| {
            transaction.remove_record("knd-a/b-0")?;
            let other = SqliteStore::open_read_only(&place.path, None)?;
            assert_eq!(other.snapshot()?.records.len(), 1);
            assert_eq!(reader.snapshot()?.records.len(), 1);
            Ok(())
        })
        .unwrap();
    assert!(reader.snapshot().unwrap().records.is_empty());
    drop(writer);
    assert!(reader.snapshot().unwrap().records.is_empty());
    drop(reader);
    assert_eq!(place.names(), ["prod.db"]);
}

#[test]
fn backups_are_named_after_serials_and_the_oldest_go() {
    let (place, mut store) = Place::new();
    let folder = backups::folder_of(&place.path);
    assert_eq!(folder, place.folder.path().join("prod.backups"));
    let names = || {
        let mut names: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    for slot in 0..12 {
        backups::add(&store, &folder, 3).unwrap();
        put(&mut store, &[record("default/web", slot)]).unwrap();
    }
    assert_eq!(names(), ["10-lineage.db", "11-lineage.db", "9-lineage.db"]);
    // What isn't a backup, and what is another state's, stays.
    for name in ["notes.txt", "1-other.db", "x-lineage.db"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let made = backups::add(&store, &folder, 1).unwrap();
    assert_eq!(made, folder.join("12-lineage.db"));
    // A state that didn't change needs no other.
    assert_eq!(backups::add(&store, &folder, 1).unwrap(), made);
    assert_eq!(
        names(),
        ["1-other.db", "12-lineage.db", "notes.txt", "x-lineage.db"]
    );
    let copy = SqliteStore::open_read_only(&made, None).unwrap();
    assert_eq!(copy.snapshot().unwrap().records.len(), 12);
    assert_eq!(backups::in_folder(&folder).unwrap().len(), 2);
    assert_eq!(
        backups::in_folder(&place.folder.path().join("no"))
            .unwrap()
            .len(),
        0
    );
}
