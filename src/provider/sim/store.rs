//! The database file of the embedded cloud.
//!
//! In: its path. Out: connections to it. Must not: know instances.
//!
//! Reading creates no file: until something is stored, an embedded cloud without a file is an empty
//! database in memory. So a plan leaves a folder unchanged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::SimError;
use crate::home;

/// The schema version, in `user_version`.
const VERSION: i64 = 1;

/// How long a call waits for another process's transaction, which takes well under a millisecond.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

const SCHEMA: &str = "
CREATE TABLE part (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE instance (
    id INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    provider_id TEXT NOT NULL,
    cluster TEXT,
    shard TEXT,
    instance_id TEXT,
    group_name TEXT,
    slot INTEGER,
    instance_type TEXT NOT NULL,
    zone TEXT NOT NULL,
    subnet TEXT,
    ip4 TEXT NOT NULL,
    ip6 TEXT,
    created_at INTEGER NOT NULL,
    state INTEGER NOT NULL,
    next_at INTEGER,
    next_state INTEGER,
    then_at INTEGER,
    then_state INTEGER,
    deleted_at INTEGER,
    gone_at INTEGER,
    digest BLOB NOT NULL,
    make INTEGER NOT NULL REFERENCES part (id),
    userdata INTEGER REFERENCES part (id),
    tags TEXT NOT NULL
) STRICT;
CREATE INDEX instance_owner ON instance (cluster, shard) WHERE cluster IS NOT NULL;
CREATE UNIQUE INDEX instance_live ON instance (provider_id) WHERE deleted_at IS NULL;
CREATE TABLE token (
    token TEXT PRIMARY KEY,
    request BLOB NOT NULL,
    instance INTEGER NOT NULL REFERENCES instance (id)
) STRICT, WITHOUT ROWID;
CREATE TABLE tally (
    instance_type TEXT PRIMARY KEY,
    live INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE subnet (
    id TEXT PRIMARY KEY,
    base INTEGER NOT NULL,
    block INTEGER NOT NULL,
    used INTEGER NOT NULL,
    lowest_free INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE address (
    subnet TEXT NOT NULL,
    host INTEGER NOT NULL,
    PRIMARY KEY (subnet, host)
) STRICT, WITHOUT ROWID;
CREATE TABLE image (
    id TEXT PRIMARY KEY,
    image TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The instances that `nstance sim fail` marked. Databases of earlier versions lack the table, so it
/// isn't part of [`SCHEMA`].
const FAILED: &str = "failed (instance INTEGER PRIMARY KEY) STRICT";

/// Where the database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the file.
    File,
    /// In a file that can't be written to.
    ReadOnlyFile,
    /// In memory, since there is no file yet.
    Nowhere,
}

/// The database, or an empty one in memory until the file exists.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    place: Place,
    connection: Connection,
    /// Counts calls if the file is read-only.
    scratch: Option<Connection>,
}

impl Store {
    /// Opens the database at `path`, if it exists.
    ///
    /// Fails if it can't be opened.
    pub(super) fn open(path: &Path) -> Result<Self, SimError> {
        let mut store = Self {
            path: path.to_owned(),
            place: Place::Nowhere,
            connection: Connection::open_in_memory()?,
            scratch: None,
        };
        // Creating the empty database takes time, so avoid it if there is a file.
        store.look_again()?;
        if store.place == Place::Nowhere {
            store.connection = in_memory()?;
        }
        Ok(store)
    }

    /// The connection for reads.
    ///
    /// Fails if the database does.
    pub(super) fn reader(&mut self) -> Result<&Connection, SimError> {
        self.look_again()?;
        Ok(&self.connection)
    }

    /// A transaction that locks the database for writing at its start; creates the file if
    /// necessary. After its commit, its effects survive this process.
    ///
    /// Fails if the file can't be written.
    pub(super) fn write(&mut self) -> Result<Transaction<'_>, SimError> {
        self.look_again()?;
        match self.place {
            Place::File => {}
            Place::ReadOnlyFile => {
                return Err(SimError::ReadOnly {
                    path: self.path.clone(),
                });
            }
            Place::Nowhere => self.found()?,
        }
        Ok(self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?)
    }

    /// Whether the file exists.
    ///
    /// Fails if the database does.
    pub(super) fn exists(&mut self) -> Result<bool, SimError> {
        self.look_again()?;
        Ok(self.place != Place::Nowhere)
    }

    /// A transaction to count calls, which must not create the file.
    ///
    /// Fails if the database does.
    pub(super) fn ledger(&mut self) -> Result<Transaction<'_>, SimError> {
        self.look_again()?;
        if self.place == Place::ReadOnlyFile && self.scratch.is_none() {
            self.scratch = Some(in_memory()?);
        }
        let connection = self.scratch.as_mut().unwrap_or(&mut self.connection);
        Ok(connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
    }

    /// Opens the file if it was created since.
    fn look_again(&mut self) -> Result<(), SimError> {
        if self.place != Place::Nowhere || !self.path.exists() {
            return Ok(());
        }
        let (connection, place) = self.connect()?;
        // Version 0 means that another process is still creating it.
        if self.version(&connection)? == VERSION {
            self.settle(connection, place)?;
        }
        Ok(())
    }

    /// Creates the file, or opens it if another process just did.
    fn found(&mut self) -> Result<(), SimError> {
        if let Some(folder) = self.path.parent() {
            home::create(folder).map_err(|source| SimError::Folder {
                path: folder.to_owned(),
                source,
            })?;
        }
        let mut connection = Connection::open(&self.path).map_err(|source| self.refused(source))?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Less waste for typical sizes of userdata.
        connection.pragma_update(None, "page_size", 8_192)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|source| self.refused(source))?;
        if self.version(&transaction)? == 0 {
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()?;
        // The mode is stored in the file. If another process is in the way, that process switches
        // it; until then the old mode is only slower.
        let _ = connection.pragma_update(None, "journal_mode", "WAL");
        self.settle(connection, Place::File)
    }

    fn connect(&self) -> Result<(Connection, Place), SimError> {
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_WRITE;
        let connection = Connection::open_with_flags(&self.path, flags)
            .map_err(|source| self.refused(source))?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let readable = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
        match readable {
            Ok(()) => {
                let place = if connection.is_readonly("main")? {
                    Place::ReadOnlyFile
                } else {
                    Place::File
                };
                return Ok((connection, place));
            }
            Err(source) => {
                let code = source.sqlite_error_code();
                if !matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) {
                    return Err(self.refused(source));
                }
            }
        }
        // In a read-only folder SQLite can't create its side files; an immutable file can be read
        // without them.
        let text = self.path.to_string_lossy();
        let escaped = text
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI;
        Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)
            .map(|connection| (connection, Place::ReadOnlyFile))
            .map_err(|source| self.refused(source))
    }

    fn version(&self, connection: &Connection) -> Result<i64, SimError> {
        let version = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(|source| self.refused(source))?;
        if !(0..=VERSION).contains(&version) {
            return Err(SimError::Newer {
                path: self.path.clone(),
                found: version,
                known: VERSION,
            });
        }
        Ok(version)
    }

    /// Switches to the file, and takes over the counts so far.
    fn settle(&mut self, connection: Connection, place: Place) -> Result<(), SimError> {
        tune(&connection)?;
        // A file that can't be written to gets the table in memory.
        let temporary = match place {
            Place::File => "",
            Place::ReadOnlyFile | Place::Nowhere => "TEMPORARY",
        };
        if !connection.table_exists(None, "failed")? {
            connection
                .execute_batch(&format!("CREATE {temporary} TABLE IF NOT EXISTS {FAILED}"))?;
        }
        if place == Place::File {
            let counted = counters(&self.connection)?;
            for (name, value) in counted {
                connection.execute(
                    "INSERT INTO counter (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                    (name, value),
                )?;
            }
        }
        self.connection = connection;
        self.place = place;
        Ok(())
    }

    fn refused(&self, source: rusqlite::Error) -> SimError {
        SimError::Open {
            path: self.path.clone(),
            source,
        }
    }
}

fn counters(connection: &Connection) -> Result<Vec<(String, i64)>, SimError> {
    if !connection.table_exists(None, "counter")? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare("SELECT name, value FROM counter")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn in_memory() -> Result<Connection, SimError> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(SCHEMA)?;
    connection.execute_batch(&format!("CREATE TABLE {FAILED}"))?;
    tune(&connection)?;
    Ok(connection)
}

fn tune(connection: &Connection) -> Result<(), SimError> {
    connection.set_prepared_statement_cache_capacity(64);
    // A commit survives the death of this process at once, and a power failure after the next
    // checkpoint. That suffices for an embedded cloud.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 8_000)?;
    connection.pragma_update(None, "cache_size", -8_000)?;
    Ok(())
}
