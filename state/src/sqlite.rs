//! The `SQLite` engine: a state in a file.
//!
//! In: a path. Out: an open state. Must not: know the tables, except where a file is created.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior, params_from_iter};

use crate::check::Check;
use crate::error::{Result, StateError};
use crate::files::Fingerprint;
use crate::lock::Lock;
use crate::model::{Identity, LockInfo, Timestamp};
use crate::new_file;
use crate::open::{self, Access, Opened};
use crate::schema::{self, MIGRATIONS};
use crate::seal::NewKey;
use crate::sql::{self, Columns, Next, Row, Sql, Value};
use crate::sql_store::{Engine, SqlStore};

/// An open state in a file.
pub type SqliteStore = SqlStore<Sqlite>;

/// The queries for damage of a file.
const DAMAGE: &[Check] = &[
    Check::damage(
        "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
    ),
    Check::reference(
        "SELECT 'a row of ' || \"table\" || ' refers to a row of ' || parent
             || ' that is missing' FROM pragma_foreign_key_check",
    ),
];

/// The file of an open state.
#[derive(Debug)]
pub struct Sqlite {
    opened: Opened,
    path: PathBuf,
}

impl Sqlite {
    pub(crate) fn connection(&self) -> &Connection {
        &self.opened.connection
    }

    /// Reads without a lock; fails if the file was written meanwhile.
    fn unchanged<R>(&self, read: impl FnOnce() -> Result<R>) -> Result<R> {
        let result = read();
        match &self.opened.access {
            Access::Unlocked(before) if Fingerprint::of(&self.path)? != *before => {
                Err(StateError::Changed {
                    path: self.path.clone(),
                })
            }
            _ => result,
        }
    }
}

impl Engine for Sqlite {
    fn place(&self) -> &Path {
        &self.path
    }

    fn holder(&self) -> Result<Option<LockInfo>> {
        Lock::peek(&self.path)
    }

    fn read(&self, read: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()> {
        self.unchanged(|| {
            let failed = |error| StateError::sqlite(&self.path, error);
            let connection = &self.opened.connection;
            let transaction = connection.unchecked_transaction().map_err(failed)?;
            read(&*transaction)?;
            transaction.finish().map_err(failed)
        })
    }

    fn write(&mut self, change: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()> {
        let path = &self.path;
        if !matches!(self.opened.access, Access::Write) {
            return Err(StateError::ReadOnly { path: path.clone() });
        }
        let failed = |error| StateError::sqlite(path, error);
        let transaction = self
            .opened
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        // A newer version may have migrated the file since it was opened.
        let found = schema::version(&transaction).map_err(failed)?;
        let supported = schema::newest(MIGRATIONS);
        if found > supported {
            let path = path.clone();
            return Err(StateError::Newer {
                path,
                found,
                supported,
            });
        }
        change(&*transaction)?;
        transaction.commit().map_err(failed)
    }

    fn damage(&self) -> &'static [Check] {
        DAMAGE
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.unchanged(|| new_file::backup(self.connection(), &self.path, to))
    }

    fn set_busy_timeout(&mut self, timeout: Duration) -> Result<()> {
        self.connection()
            .busy_timeout(timeout)
            .map_err(|error| StateError::sqlite(&self.path, error))
    }

    fn is_outdated(&self) -> bool {
        matches!(self.opened.access, Access::Migrated(_))
    }

    fn scrub(&mut self) -> Result<bool> {
        let connection = self.connection();
        let scrub = || {
            let of = "SELECT unscrubbed FROM meta WHERE id = 1";
            if !connection.query_row(of, (), |row| row.get(0))? {
                return Ok(true);
            }
            connection.execute_batch("VACUUM")?;
            // The log has old content too, and can only be truncated if nobody reads from it.
            let busy: bool =
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
            if !busy {
                connection.execute("UPDATE meta SET unscrubbed = 0 WHERE id = 1", ())?;
            }
            Ok(!busy)
        };
        match scrub().map_err(|error| StateError::sqlite(&self.path, error)) {
            Err(StateError::Busy { .. } | StateError::Full { .. }) => Ok(false),
            done => done,
        }
    }

    fn wait_for_disk(&mut self, waits: bool) -> Result<()> {
        let mode = if waits { "FULL" } else { "OFF" };
        self.connection()
            .pragma_update(None, "synchronous", mode)
            .map_err(|error| StateError::sqlite(&self.path, error))
    }
}

impl Sql for Connection {
    fn execute(&self, sql: &str, params: &[Value<'_>]) -> sql::Result<usize> {
        let mut statement = self.prepare_cached(sql)?;
        Ok(statement.execute(params_from_iter(params))?)
    }

    fn query(
        &self,
        sql: &str,
        params: &[Value<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> sql::Result<Next>,
    ) -> sql::Result<()> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(params))?;
        while let Some(row) = rows.next()? {
            if each(&Row(row))? == Next::End {
                break;
            }
        }
        Ok(())
    }

    fn next_id(&self, table: &str) -> sql::Result<i64> {
        Ok(self.newest_id(table)? + 1)
    }

    fn newest_id(&self, table: &str) -> sql::Result<i64> {
        let newest = (self as &dyn Sql).row(
            "SELECT seq FROM sqlite_sequence WHERE name = ?1",
            sql::params![table],
            |row| row.get::<i64>(0),
        )?;
        Ok(newest.unwrap_or(0))
    }

    fn raise_id(&self, table: &str, to: i64) -> sql::Result<()> {
        let sql: &dyn Sql = self;
        let params = sql::params![table, to];
        sql.execute("DELETE FROM sqlite_sequence WHERE name = ?1", &params[..1])?;
        if to > 0 {
            sql.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                params,
            )?;
        }
        Ok(())
    }

    fn schema_version(&self) -> sql::Result<u32> {
        Ok(schema::version(self)?)
    }
}

impl Columns for rusqlite::Row<'_> {
    fn value(&self, column: usize) -> sql::Result<Value<'_>> {
        Ok(match self.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(integer) => Value::Integer(integer),
            ValueRef::Text(text) => match str::from_utf8(text) {
                Ok(text) => Value::Text(text),
                Err(error) => return Err(sql::unreadable(column, error)),
            },
            ValueRef::Blob(bytes) => Value::Blob(bytes),
            ValueRef::Real(_) => return Err(sql::unreadable(column, "it is a fraction")),
        })
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Null => ValueRef::Null,
            Value::Integer(integer) => ValueRef::Integer(integer),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl SqliteStore {
    /// Creates a state at `path` and opens it. Creates missing folders. Only its owner can read the
    /// new file.
    ///
    /// The state and its name are durable when this returns. A crash leaves either a complete state
    /// or none.
    ///
    /// The state isn't encrypted: see [`SqliteStore::create_sealed`].
    ///
    /// Fails if the file exists or can't be written.
    pub fn create(path: &Path, identity: &Identity, lineage: &str, now: Timestamp) -> Result<Self> {
        Self::make(path, identity, lineage, now, None)?;
        Self::open(path, Some(identity))
    }

    /// Creates an encrypted state.
    ///
    /// Fails if the file exists or can't be written.
    pub fn create_sealed(
        path: &Path,
        identity: &Identity,
        lineage: &str,
        now: Timestamp,
        key: &NewKey,
    ) -> Result<Self> {
        Self::make(path, identity, lineage, now, Some(key))?;
        Ok(Self::open(path, Some(identity))?.with_keys(Arc::new(key.key.clone())))
    }

    fn make(
        path: &Path,
        identity: &Identity,
        lineage: &str,
        now: Timestamp,
        key: Option<&NewKey>,
    ) -> Result<()> {
        new_file::create(path, MIGRATIONS, |connection| {
            let derivation = key.and_then(|key| key.derivation.as_ref().map(ToString::to_string));
            let key_id = key.map(|key| key.key.id().0);
            named(connection, identity, lineage)?;
            let sql: &dyn Sql = connection;
            sql.execute(
                "UPDATE meta SET created_at = ?1, key_id = ?2, derivation = ?3",
                sql::params![now.0, key_id, derivation],
            )
            .map(drop)
        })
    }

    /// Opens the state at `path` for reading and writing.
    ///
    /// Migrates an older schema. Before that, it durably writes a backup beside the file
    /// ([`crate::backups::before_migrations`]). A crash leaves the file at a valid schema version,
    /// from which opening it again continues.
    ///
    /// Fails if the state belongs to another owner than `expected`, and if the file is not a state,
    /// damaged, or of a newer schema. A rejected file isn't changed.
    pub fn open(path: &Path, expected: Option<&Identity>) -> Result<Self> {
        let opened = open::to_write(path, expected, MIGRATIONS)?;
        let path = path.to_owned();
        Self::of_writer(Sqlite { opened, path })
    }

    /// Opens the state at `path` for reading. Takes no lock that blocks writers, works on read-only
    /// media, and leaves no new file behind. An older schema is read from a migrated copy.
    ///
    /// Fails if the file isn't a valid state of `expected`.
    pub fn open_read_only(path: &Path, expected: Option<&Identity>) -> Result<Self> {
        let opened = open::to_read(path, expected, MIGRATIONS)?;
        let path = path.to_owned();
        Ok(Self::of_reader(Sqlite { opened, path }))
    }
}

/// Writes the row of a new state.
///
/// Fails with the database's error.
fn named(connection: &Connection, identity: &Identity, lineage: &str) -> sql::Result<()> {
    let Identity {
        cluster,
        shard,
        provider,
    } = identity;
    (connection as &dyn Sql)
        .execute(
            "INSERT INTO meta (id, cluster, shard, provider, lineage, serial, created_at)
             VALUES (1, ?1, ?2, ?3, ?4, 0, 0)",
            sql::params![cluster, shard, provider, lineage],
        )
        .map(drop)
}

/// Writes a copy of a state in another database to a new file at `path`. A crash leaves no partial
/// file with that name.
///
/// Fails if the path exists or can't be written, or if the state can't be read.
#[cfg(feature = "postgres")]
pub(crate) fn copy_to_file(
    from: &dyn Sql,
    path: &Path,
    identity: &Identity,
    lineage: &str,
) -> Result<()> {
    new_file::create(path, MIGRATIONS, |connection| {
        named(connection, identity, lineage)?;
        connection.execute_batch("BEGIN")?;
        crate::copy::copy(from, connection)?;
        Ok(connection.execute_batch("COMMIT")?)
    })
}

#[cfg(test)]
mod tests;
