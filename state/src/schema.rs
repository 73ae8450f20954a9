//! The schema of the file, and its migrations.
//!
//! In: a connection. Out: the tables of the newest schema. Migrations only go forward, each in one
//! transaction that also sets the version, so a crash leaves the file at one version or the next.
//! Must not: open files.

use rusqlite::{Connection, TransactionBehavior};

/// The application id in the file header: `nstc`.
pub(crate) const APPLICATION_ID: i32 = 0x6e73_7463;

/// A migration from the version before it.
#[derive(Clone, Copy)]
pub(crate) struct Migration {
    /// The version after it.
    pub(crate) version: u32,
    /// Its SQL. Foreign keys are checked at its end.
    pub(crate) sql: &'static str,
}

/// All migrations, oldest first. A released one never changes. The columns `id`, `cluster`, `shard`
/// and `provider` of `meta` must never change, since they are read before a migration.
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
    Migration {
        version: 4,
        sql: include_str!("schema_v4.sql"),
    },
    Migration {
        version: 5,
        sql: include_str!("schema_v5.sql"),
    },
];

/// The version after the last of these migrations.
pub(crate) fn newest(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |migration| migration.version)
}

/// The version of the file.
///
/// Fails if it can't be read.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Runs the missing migrations. Each is durable before the next begins. If another process migrates
/// the file too, each migration still runs once.
///
/// Fails if the file can't be written.
pub(crate) fn migrate(
    connection: &mut Connection,
    migrations: &[Migration],
) -> rusqlite::Result<()> {
    // SQLite requires this to rebuild tables; it can't be changed inside a transaction.
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

/// Configures a writer's connection so that commits are durable.
///
/// Fails if a setting is rejected.
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
    // 16 MiB, so that writes to a large state don't read its indexes repeatedly.
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "foreign_keys", true)
}
