//! Opens a state's file for writing or reading.
//!
//! In: a path and the expected identity. Out: a verified connection. A rejected file isn't changed
//! and gets no side files; a read-only file is read without creating side files. Must not: depend
//! on the tables, except for the identity in `meta`.
//!
//! `SQLite` in WAL mode keeps a log (`-wal`) and shared memory (`-shm`) beside the file, even to
//! read. So there are four ways to read:
//!
//! - both exist, since a process is writing or died writing: open normally, and leave them there;
//! - neither exists, and the folder is writable: open like a writer, but read-only; closing the last
//!   connection removes both;
//! - neither exists, and the folder isn't writable: read the file alone without a lock, and check
//!   afterwards that it didn't change;
//! - otherwise (a log without shared memory; both, but unreadable): read a copy in a temporary
//!   folder.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tempfile::TempDir;

use crate::error::{Result, StateError};
use crate::files::{self, Fingerprint};
use crate::model::Identity;
use crate::new_file;
use crate::paths;
use crate::schema::{self, APPLICATION_ID, Migration};

/// The default wait for another process's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often opening is repeated if the file changes meanwhile.
const LOOKS: u32 = 5;

/// The access of a connection, and its cleanup.
#[derive(Debug)]
pub(crate) enum Access {
    /// Reads and writes.
    Write,
    /// Read, with `SQLite`'s read locks.
    Read,
    /// Reads the file as it was at one moment, without a lock.
    Unlocked(Fingerprint),
    /// Reads a copy, which is removed on drop.
    Copy(#[expect(dead_code, reason = "held for its end, not for its value")] TempDir),
    /// Reads a migrated copy, since the file has an older schema.
    Migrated(#[expect(dead_code, reason = "held for its end, not for its value")] TempDir),
}

/// A connection with its access. Fields drop in this order: the connection first, then its copy.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) access: Access,
}

/// Opens the state at `path` for reading and writing, and migrates it to the newest schema.
///
/// Before it migrates, it durably writes a backup beside the file.
///
/// Fails if the file isn't a valid state of `expected`, or can't be written.
pub(crate) fn to_write(
    path: &Path,
    expected: Option<&Identity>,
    migrations: &[Migration],
) -> Result<Opened> {
    drop(vetted(path, expected, migrations)?);
    let refused = |error| match StateError::sqlite(path, error) {
        // The file itself was opened a moment ago, so this is about its side files.
        StateError::Io { .. } => StateError::ReadOnly {
            path: path.to_owned(),
        },
        other => other,
    };
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if connection.is_readonly("main").map_err(refused)? {
        return Err(StateError::ReadOnly {
            path: path.to_owned(),
        });
    }
    schema::durable(&connection).map_err(refused)?;
    let version = schema::version(&connection).map_err(refused)?;
    if version < schema::newest(migrations) {
        new_file::automatic_backup(&connection, path, version)?;
        schema::migrate(&mut connection, migrations)
            .map_err(|error| StateError::sqlite(path, error))?;
    }
    Ok(Opened {
        connection,
        access: Access::Write,
    })
}

/// Opens the state at `path` for reading; one with an older schema as a migrated copy.
///
/// Fails if the file isn't a valid state of `expected`.
pub(crate) fn to_read(
    path: &Path,
    expected: Option<&Identity>,
    migrations: &[Migration],
) -> Result<Opened> {
    let (opened, version) = vetted(path, expected, migrations)?;
    if version < schema::newest(migrations) {
        return migrated_copy(&opened, path, migrations);
    }
    if matches!(opened.access, Access::Unlocked(_))
        && let Some(shared) = shared(path, Log::Fold)?
    {
        verify(&shared.connection, path, expected, migrations)?;
        return Ok(shared);
    }
    Ok(opened)
}

/// Opens `path` without changing it; checks that it is a state of `expected` and not too new. Also
/// returns its schema version.
fn vetted(
    path: &Path,
    expected: Option<&Identity>,
    migrations: &[Migration],
) -> Result<(Opened, u32)> {
    let mut looks = 0;
    loop {
        looks += 1;
        let opened = untouched(path)?;
        let verified = verify(&opened.connection, path, expected, migrations);
        // Without a lock, a concurrent writer makes any result invalid.
        match &opened.access {
            Access::Unlocked(before) if Fingerprint::of(path)? != *before => {
                if looks == LOOKS {
                    return Err(StateError::Changed {
                        path: path.to_owned(),
                    });
                }
            }
            Access::Unlocked(_) => {
                let version = verified?;
                whole(&opened.connection, path)?;
                return Ok((opened, version));
            }
            _ => return verified.map(|version| (opened, version)),
        }
    }
}

/// Opens `path` for reading in a way that changes no files.
fn untouched(path: &Path) -> Result<Opened> {
    let metadata = fs::metadata(path).map_err(|error| StateError::io(path, error))?;
    let not_a_state = |why: &str| StateError::NotAState {
        path: path.to_owned(),
        why: why.to_owned(),
    };
    if !metadata.is_file() {
        return Err(not_a_state("it is no regular file"));
    }
    if metadata.len() == 0 {
        return Err(not_a_state("the file is empty"));
    }
    let before = Fingerprint::of(path)?;
    let alone = unlocked(path)?;
    let filled = |suffix| Ok(files::length(&paths::beside(path, suffix))?.unwrap_or(0) > 0);
    let (log, shared_memory, journal) = (filled("-wal")?, filled("-shm")?, filled("-journal")?);
    if !log && !journal {
        return Ok(Opened {
            connection: alone,
            access: Access::Unlocked(before),
        });
    }
    // The application id is set at creation, so no log can change it, and another program's log
    // must not be touched. Other errors may only mean that a writer is active.
    if let Err(not_a_state @ StateError::NotAState { .. }) = marked(&alone, path) {
        return Err(not_a_state);
    }
    drop(alone);
    if log && shared_memory && !journal {
        if let Some(opened) = shared(path, Log::Keep)? {
            return Ok(opened);
        }
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        if probe(&connection).is_ok() {
            return Ok(Opened {
                connection,
                access: Access::Read,
            });
        }
    }
    copied(path)
}

/// Checks the application id, schema version and identity; returns the version.
fn verify(
    connection: &Connection,
    path: &Path,
    expected: Option<&Identity>,
    migrations: &[Migration],
) -> Result<u32> {
    marked(connection, path)?;
    let read = |error| StateError::sqlite(path, error);
    let found = schema::version(connection).map_err(read)?;
    let supported = schema::newest(migrations);
    if found > supported {
        return Err(StateError::Newer {
            path: path.to_owned(),
            found,
            supported,
        });
    }
    // Also reads the content for the first time, which fails for a truncated file.
    let identity = connection
        .query_row(
            "SELECT cluster, shard, provider FROM meta WHERE id = 1",
            (),
            |row| {
                Ok(Identity {
                    cluster: row.get(0)?,
                    shard: row.get(1)?,
                    provider: row.get(2)?,
                })
            },
        )
        .map_err(|error| match StateError::sqlite(path, error) {
            StateError::Sqlite { path, source } => StateError::Corrupt {
                path,
                detail: source.to_string(),
            },
            other => other,
        })?;
    match expected {
        Some(expected) if *expected != identity => Err(StateError::Foreign {
            path: path.to_owned(),
            expected: Box::new(expected.clone()),
            found: Box::new(identity),
        }),
        _ => Ok(found),
    }
}

/// Checks that the file ends with a whole page. `SQLite` would pad a truncated last page with
/// zeros.
fn whole(connection: &Connection, path: &Path) -> Result<()> {
    let page: u64 = connection
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .map_err(|error| StateError::sqlite(path, error))?;
    match files::length(path)? {
        Some(length) if length % page != 0 => {
            let detail = "its end was cut off".to_owned();
            Err(StateError::Corrupt {
                path: path.to_owned(),
                detail,
            })
        }
        _ => Ok(()),
    }
}

/// Checks the application id.
fn marked(connection: &Connection, path: &Path) -> Result<()> {
    let mark: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|error| StateError::sqlite(path, error))?;
    if mark == APPLICATION_ID {
        return Ok(());
    }
    let why = "the database is another program's".to_owned();
    Err(StateError::NotAState {
        path: path.to_owned(),
        why,
    })
}

/// What happens to the log if a reader is the last to close the file.
#[derive(Clone, Copy)]
enum Log {
    /// It stays.
    Keep,
    /// It is checkpointed and removed, since the reader created it.
    Fold,
}

/// Opens `path` like a writer, but read-only; `None` if the folder isn't writable.
fn shared(path: &Path, log: Log) -> Result<Option<Opened>> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let prepare = || {
        if connection.is_readonly("main")? {
            return Ok(false);
        }
        let keep = matches!(log, Log::Keep);
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)?;
        connection.pragma_update(None, "query_only", true)?;
        probe(&connection)?;
        Ok(true)
    };
    match prepare() {
        Ok(true) => Ok(Some(Opened {
            connection,
            access: Access::Read,
        })),
        Ok(false) => Ok(None),
        Err(rusqlite::Error::SqliteFailure(error, _))
            if matches!(error.code, ErrorCode::CannotOpen | ErrorCode::ReadOnly) =>
        {
            Ok(None)
        }
        Err(error) => Err(StateError::sqlite(path, error)),
    }
}

/// Opens only the file: no lock, no log, no writes.
///
/// Fails if it can't be opened.
pub(crate) fn unlocked(path: &Path) -> Result<Connection> {
    let mut address = String::from("file:");
    for byte in files::absolute(path)?.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                address.push(char::from(*byte));
            }
            _ => {
                let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
                address.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    address.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect_to(Path::new(&address), path, flags)
}

/// Copies the file with its side files, and opens the copy. A writer has shared memory open, so a
/// copy is only used if there is none; if one appears meanwhile, the copy is invalid.
///
/// Fails if the files can't be copied.
pub(crate) fn copied(path: &Path) -> Result<Opened> {
    let folder = TempDir::new().map_err(|error| StateError::io(path, error))?;
    let copy = folder.path().join("state.db");
    let sources = || -> Result<Vec<(&str, Fingerprint)>> {
        let mut sources = Vec::new();
        for suffix in ["", "-wal", "-journal"] {
            let from = paths::beside(path, suffix);
            if files::length(&from)?.is_some() {
                sources.push((suffix, Fingerprint::of(&from)?));
            }
        }
        Ok(sources)
    };
    let before = sources()?;
    for (suffix, _) in &before {
        let from = paths::beside(path, suffix);
        fs::copy(&from, paths::beside(&copy, suffix))
            .map_err(|error| StateError::io(&from, error))?;
    }
    if sources()? != before {
        return Err(StateError::Changed {
            path: path.to_owned(),
        });
    }
    let connection = connect(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    probe(&connection).map_err(|error| StateError::sqlite(path, error))?;
    read_only_from_now(&connection, path)?;
    Ok(Opened {
        connection,
        access: Access::Copy(folder),
    })
}

fn migrated_copy(opened: &Opened, path: &Path, migrations: &[Migration]) -> Result<Opened> {
    let folder = TempDir::new().map_err(|error| StateError::io(path, error))?;
    let copy = folder.path().join("state.db");
    new_file::vacuum_into(&opened.connection, path, &copy)?;
    let mut connection = connect(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    schema::migrate(&mut connection, migrations)
        .map_err(|error| StateError::sqlite(path, error))?;
    read_only_from_now(&connection, path)?;
    Ok(Opened {
        connection,
        access: Access::Migrated(folder),
    })
}

fn read_only_from_now(connection: &Connection, path: &Path) -> Result<()> {
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|error| StateError::sqlite(path, error))
}

/// Reads for the first time, which makes `SQLite` look for its side files.
fn probe(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))
}

/// Opens a connection. Nothing is read, so no side file is created yet.
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    // An absolute path can't be read as a URI or as the name of an in-memory database.
    connect_to(&files::absolute(path)?, path, flags)
}

fn connect_to(target: &Path, path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connect = || {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(target, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    connect().map_err(|error| StateError::sqlite(path, error))
}

#[cfg(test)]
mod tests;
