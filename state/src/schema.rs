//! What the file looks like inside, and how an older file becomes a newer one.
//!
//! In: a connection. Out: the same with the tables of the newest schema. Migrations go forward
//! only, each in one transaction that also sets the version, so a crash leaves the file at one
//! version or at the next. It may not open files.

use rusqlite::{Connection, TransactionBehavior};

/// What marks a file as a state: `nstc`, in the header's place for it.
pub(crate) const APPLICATION_ID: i32 = 0x6e73_7463;

/// One step from the version before it.
#[derive(Clone, Copy)]
pub(crate) struct Migration {
    /// The version that the file has afterwards.
    pub(crate) version: u32,
    /// What is done, as SQL. Foreign keys are checked at its end, not while it runs.
    pub(crate) sql: &'static str,
}

/// Every step there is, oldest first. A released step never changes. `meta` keeps its columns
/// `id`, `cluster`, `shard` and `provider` for ever: they are read before anything is migrated.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        sql: include_str!("schema_v1.sql"),
    },
    Migration {
        version: 2,
        sql: include_str!("schema_v2.sql"),
    },
    Migration {
        version: 3,
        sql: include_str!("schema_v3.sql"),
    },
];

/// The version that the last of these steps leads to.
pub(crate) fn newest(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |migration| migration.version)
}

/// The version of the file.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Does the missing steps. Each is on disk when the next begins; another process that migrates
/// the file at the same time does some of them, and none is done twice.
pub(crate) fn migrate(
    connection: &mut Connection,
    migrations: &[Migration],
) -> rusqlite::Result<()> {
    // SQLite asks for this where a table is rebuilt; it can't be changed inside a transaction.
    connection.pragma_update(None, "foreign_keys", false)?;
    let done = migrations
        .iter()
        .try_for_each(|migration| step(connection, *migration));
    connection.pragma_update(None, "foreign_keys", true)?;
    done
}

fn step(connection: &mut Connection, migration: Migration) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if version(&transaction)? >= migration.version {
        return Ok(());
    }
    transaction.execute_batch(migration.sql)?;
    let dangling = transaction
        .prepare("SELECT 1 FROM pragma_foreign_key_check")?
        .exists(())?;
    if dangling {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
            Some(format!(
                "rows refer to nothing after migration {}",
                migration.version
            )),
        ));
    }
    transaction.pragma_update(None, "user_version", migration.version)?;
    transaction.commit()
}

/// What a writer's connection needs so that a commit is on disk when it returns.
pub(crate) fn durable(connection: &Connection) -> rusqlite::Result<()> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some("the file system has no shared memory".to_owned()),
        ));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // 16 MiB, so that writing to a large state doesn't read its indexes again and again.
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "foreign_keys", true)
}
