//! Migrations with steps that don't exist yet, and the ways to read that a test can't bring about
//! by permissions (root may do everything).

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;

use std::path::PathBuf;

use super::*;
use crate::new_file::{automatic_backups, backup, create};

const FIRST: Migration = Migration {
    version: 1,
    sql: "CREATE TABLE meta (id INTEGER PRIMARY KEY, cluster TEXT, shard TEXT, provider TEXT);
          CREATE TABLE parts (id INTEGER PRIMARY KEY, name TEXT) STRICT;
          CREATE TABLE uses (part INTEGER REFERENCES parts (id)) STRICT;",
};
const SECOND: Migration = Migration {
    version: 2,
    sql: "ALTER TABLE parts ADD COLUMN size INTEGER DEFAULT 7",
};
/// Rebuilds a table that another refers to.
const THIRD: Migration = Migration {
    version: 3,
    sql: "CREATE TABLE new (id INTEGER PRIMARY KEY, name TEXT NOT NULL, size INTEGER) STRICT;
          INSERT INTO new SELECT id, upper(name), size FROM parts;
          DROP TABLE parts;
          ALTER TABLE new RENAME TO parts;",
};
const BROKEN: Migration = Migration {
    version: 3,
    sql: "INSERT INTO parts (id, name) VALUES (9, 'half'); DROP TABLE nowhere;",
};
const DANGLING: Migration = Migration {
    version: 3,
    sql: "DELETE FROM parts",
};

fn identity() -> Identity {
    Identity {
        cluster: "prod".into(),
        shard: "a".into(),
        provider: "aws".into(),
    }
}

/// A state of schema 1 with one part that is used.
fn first(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("prod.db");
    create(&path, &[FIRST], |connection| {
        Ok(connection.execute_batch(
            "INSERT INTO meta VALUES (1, 'prod', 'a', 'aws');
             INSERT INTO parts VALUES (1, 'bolt');
             INSERT INTO uses VALUES (1);",
        )?)
    })
    .unwrap();
    path
}

fn folder() -> TempDir {
    TempDir::new().unwrap()
}

/// Every file of the folder with its content.
fn content(folder: &TempDir) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect()
}

fn names(folder: &TempDir) -> Vec<String> {
    content(folder).into_keys().collect()
}

fn part(connection: &Connection) -> (String, i64) {
    connection
        .query_row("SELECT name, size FROM parts WHERE id = 1", (), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap()
}

#[test]
fn an_older_schema_is_migrated_after_a_backup() {
    let folder = folder();
    let path = first(&folder);
    let opened = to_write(&path, Some(&identity()), &[FIRST, SECOND, THIRD]).unwrap();
    assert_eq!(part(&opened.connection), ("BOLT".to_owned(), 7));
    let enforced: bool = opened
        .connection
        .pragma_query_value(None, "foreign_keys", |row| row.get(0))
        .unwrap();
    assert!(enforced);
    drop(opened);
    assert_eq!(names(&folder), ["prod.db", "prod.db.backup-v1-1"]);

    // The backup is a state of schema 1 that still opens.
    let backups = automatic_backups(&path).unwrap();
    assert_eq!(backups, [folder.path().join("prod.db.backup-v1-1")]);
    let backup = to_write(&backups[0], Some(&identity()), &[FIRST]).unwrap();
    let name: String = backup
        .connection
        .query_row("SELECT name FROM parts", (), |row| row.get(0))
        .unwrap();
    assert_eq!(name, "bolt");
    drop(backup);

    // What is newest already gets no other backup.
    drop(to_write(&path, None, &[FIRST, SECOND, THIRD]).unwrap());
    assert_eq!(names(&folder), ["prod.db", "prod.db.backup-v1-1"]);
}

#[test]
fn a_newer_schema_is_refused_and_kept() {
    let folder = folder();
    let path = first(&folder);
    drop(to_write(&path, None, &[FIRST, SECOND]).unwrap());
    let before = content(&folder);
    for open in [to_write, to_read] {
        let refused = open(&path, None, &[FIRST]).unwrap_err();
        assert!(
            matches!(
                refused,
                StateError::Newer {
                    found: 2,
                    supported: 1,
                    ..
                }
            ),
            "{refused}"
        );
        assert_eq!(content(&folder), before);
    }
}

#[test]
fn a_newer_schema_that_is_only_in_the_log_is_refused_and_kept() {
    let folder = folder();
    let path = first(&folder);
    let writer = to_write(&path, None, &[FIRST, SECOND]).unwrap();
    // Copied while it is open: what a crash would leave.
    let crashed = TempDir::new().unwrap();
    for (name, bytes) in content(&folder) {
        fs::write(crashed.path().join(name), bytes).unwrap();
    }
    drop(writer);
    let path = crashed.path().join("prod.db");
    assert_eq!(schema::version(&unlocked(&path).unwrap()).unwrap(), 1);
    for shared_memory in [true, false] {
        if !shared_memory {
            fs::remove_file(crashed.path().join("prod.db-shm")).unwrap();
        }
        let before = names(&crashed);
        let bytes = fs::read(&path).unwrap();
        let log = fs::read(crashed.path().join("prod.db-wal")).unwrap();
        for open in [to_write, to_read] {
            let refused = open(&path, None, &[FIRST]).unwrap_err();
            assert!(
                matches!(refused, StateError::Newer { found: 2, .. }),
                "{refused}"
            );
            assert_eq!(names(&crashed), before);
            assert_eq!(fs::read(&path).unwrap(), bytes);
            assert_eq!(fs::read(crashed.path().join("prod.db-wal")).unwrap(), log);
        }
    }
}

#[test]
fn a_migration_that_fails_leaves_the_version_before_it() {
    for broken in [BROKEN, DANGLING] {
        let folder = folder();
        let path = first(&folder);
        to_write(&path, None, &[FIRST, SECOND, broken]).unwrap_err();
        let opened = to_write(&path, None, &[FIRST, SECOND]).unwrap();
        assert_eq!(schema::version(&opened.connection).unwrap(), 2);
        assert_eq!(part(&opened.connection), ("bolt".to_owned(), 7));
        let parts: i64 = opened
            .connection
            .query_row("SELECT count(*) FROM parts", (), |row| row.get(0))
            .unwrap();
        assert_eq!(parts, 1);
        drop(opened);
        // A better version goes on from there, and overwrites no backup.
        let opened = to_write(&path, None, &[FIRST, SECOND, THIRD]).unwrap();
        assert_eq!(part(&opened.connection), ("BOLT".to_owned(), 7));
        drop(opened);
        let expected = ["prod.db", "prod.db.backup-v1-1", "prod.db.backup-v2-1"];
        assert_eq!(names(&folder), expected);
    }
}

#[test]
fn an_older_schema_is_read_from_a_migrated_copy() {
    let folder = folder();
    let path = first(&folder);
    let before = content(&folder);
    let opened = to_read(&path, Some(&identity()), &[FIRST, SECOND, THIRD]).unwrap();
    assert_eq!(part(&opened.connection), ("BOLT".to_owned(), 7));
    assert!(matches!(opened.access, Access::Migrated(_)));
    drop(opened);
    assert_eq!(content(&folder), before);
}

#[test]
fn two_that_migrate_at_once_both_succeed() {
    let folder = folder();
    let path = first(&folder);
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                let opened = to_write(&path, None, &[FIRST, SECOND, THIRD]).unwrap();
                assert_eq!(part(&opened.connection), ("BOLT".to_owned(), 7));
            });
        }
    });
    assert!(!automatic_backups(&path).unwrap().is_empty());
}

#[test]
fn the_file_alone_is_read_without_a_trace() {
    // Names that mean something in an address.
    for name in ["prod.db", "50% of it?.db", "file:x#y.db", "ü &=.db"] {
        let folder = folder();
        let path = folder.path().join(name);
        fs::rename(first(&folder), &path).unwrap();
        let before = content(&folder);
        let opened = untouched(&path).unwrap();
        assert!(matches!(opened.access, Access::Unlocked(_)));
        assert_eq!(
            verify(&opened.connection, &path, None, &[FIRST]).unwrap(),
            1
        );
        assert_eq!(content(&folder), before, "{name}");
    }
}

#[test]
fn a_log_is_read_in_every_way_and_stays() {
    let folder = folder();
    let path = first(&folder);
    let writer = to_write(&path, None, &[FIRST]).unwrap();
    writer
        .connection
        .execute("UPDATE parts SET name = 'nut'", ())
        .unwrap();
    let crashed = TempDir::new().unwrap();
    for (name, bytes) in content(&folder) {
        fs::write(crashed.path().join(name), bytes).unwrap();
    }
    drop(writer);
    let path = crashed.path().join("prod.db");
    let before = names(&crashed);
    assert_eq!(before, ["prod.db", "prod.db-shm", "prod.db-wal"]);
    let bytes = fs::read(&path).unwrap();
    let name = |opened: &Opened| -> String {
        opened
            .connection
            .query_row("SELECT name FROM parts", (), |row| row.get(0))
            .unwrap()
    };

    let shared = untouched(&path).unwrap();
    assert!(matches!(shared.access, Access::Read));
    assert_eq!(name(&shared), "nut");
    shared
        .connection
        .execute("DELETE FROM parts", ())
        .unwrap_err();
    drop(shared);
    assert_eq!(names(&crashed), before);

    // As where neither may be written, and the copy is all that is left.
    let copy = copied(&path).unwrap();
    assert_eq!(name(&copy), "nut");
    drop(copy);
    assert_eq!(names(&crashed), before);

    fs::remove_file(crashed.path().join("prod.db-shm")).unwrap();
    let copy = untouched(&path).unwrap();
    assert!(matches!(copy.access, Access::Copy(_)));
    assert_eq!(name(&copy), "nut");
    drop(copy);
    assert_eq!(names(&crashed), ["prod.db", "prod.db-wal"]);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn readers_and_writers_leave_no_side_files() {
    let folder = folder();
    let path = first(&folder);
    for _ in 0..2 {
        let reader = to_read(&path, None, &[FIRST]).unwrap();
        assert!(matches!(reader.access, Access::Read));
        drop(reader);
        assert_eq!(names(&folder), ["prod.db"]);
        drop(to_write(&path, None, &[FIRST]).unwrap());
        assert_eq!(names(&folder), ["prod.db"]);
    }
    // A reader that outlives the writer cleans up.
    let reader = to_read(&path, None, &[FIRST]).unwrap();
    let writer = to_write(&path, None, &[FIRST]).unwrap();
    writer
        .connection
        .execute("UPDATE parts SET name = 'nut'", ())
        .unwrap();
    drop(writer);
    drop(reader);
    assert_eq!(names(&folder), ["prod.db"]);
}

#[test]
fn a_backup_that_was_restored_opens_both_ways() {
    let folder = folder();
    let path = first(&folder);
    let opened = to_read(&path, None, &[FIRST]).unwrap();
    let copy = folder.path().join("copy.db");
    backup(&opened.connection, &path, &copy).unwrap();
    // Reading is still all that is allowed.
    opened
        .connection
        .execute("DELETE FROM uses", ())
        .unwrap_err();
    drop(opened);
    drop(to_read(&copy, None, &[FIRST]).unwrap());
    drop(to_write(&copy, None, &[FIRST]).unwrap());
    assert_eq!(names(&folder), ["copy.db", "prod.db"]);
    assert!(matches!(
        backup(&unlocked(&path).unwrap(), &path, &copy),
        Err(StateError::Exists { .. })
    ));
    let other = folder.path().join("other.db");
    backup(&unlocked(&path).unwrap(), &path, &other).unwrap();
    drop(to_read(&other, None, &[FIRST]).unwrap());
}

#[test]
fn backups_are_listed_by_number() {
    let folder = folder();
    let path = first(&folder);
    for name in [
        "backup-v10-1",
        "backup-v9-10",
        "backup-v9-2",
        "backup-vx-1",
        "backup-v1",
        "lock",
    ] {
        fs::write(paths::beside(&path, &format!(".{name}")), "").unwrap();
    }
    let names: Vec<_> = automatic_backups(&path)
        .unwrap()
        .iter()
        .map(|path| path.extension().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["backup-v9-2", "backup-v9-10", "backup-v10-1"]);
}

#[test]
fn where_no_side_file_can_be_made_the_file_is_read_alone() {
    let folder = folder();
    let path = first(&folder);
    // A link to nowhere in the place of the log stops root too.
    let log = paths::beside(&path, "-wal");
    std::os::unix::fs::symlink("/nowhere/at/all", &log).unwrap();
    let bytes = fs::read(&path).unwrap();
    let opened = to_read(&path, Some(&identity()), &[FIRST]).unwrap();
    assert!(matches!(opened.access, Access::Unlocked(_)));
    let refused = to_write(&path, Some(&identity()), &[FIRST]).unwrap_err();
    assert!(
        matches!(refused, StateError::ReadOnly { .. }),
        "{refused:?}"
    );
    // With a schema to migrate, too.
    let opened = to_read(&path, None, &[FIRST, SECOND, THIRD]).unwrap();
    assert_eq!(part(&opened.connection), ("BOLT".to_owned(), 7));
    drop(opened);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    fs::remove_file(&log).unwrap();
    assert_eq!(names(&folder), ["prod.db"]);
}
