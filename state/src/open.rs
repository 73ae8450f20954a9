//! The ways into a state's file: opening it to write, opening it to read.
//!
//! In: a path and whom the state is to belong to. Out: a connection that was vetted. A file that
//! is refused keeps every byte and gets no side files, and what can't be written is read without
//! writing beside it. It may not know what the tables are for, but for the four columns of `meta`
//! that say whose the state is.
//!
//! `SQLite` in WAL mode keeps a log (`-wal`) and shared memory (`-shm`) beside the file, even to
//! read. So there are four ways to read:
//!
//! - where both lie there, someone is writing or died writing: join in, and leave them there;
//! - where none lies there and one may write: as a writer would, but forbidden to write; both are
//!   gone again when the last connection is closed;
//! - where none lies there and one may not write: the file alone, without any lock, and with a
//!   look afterwards whether it is still the same file;
//! - otherwise (a log without shared memory; both, but unreadable): a copy in a temporary folder.

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

/// How long another process's transaction is waited for, unless the caller says otherwise.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a file that changes under the eyes is looked at again.
const LOOKS: u32 = 5;

/// What a connection may do, and what has to be cleaned up after it.
#[derive(Debug)]
pub(crate) enum Access {
    /// Reads and writes.
    Write,
    /// Reads, with the locks that readers take.
    Read,
    /// Reads the file as it was at that moment, without a lock.
    Unlocked(Fingerprint),
    /// Reads a copy, which goes when this is dropped.
    Copy(#[expect(dead_code, reason = "held for its end, not for its value")] TempDir),
    /// Reads a copy that was migrated: the file has an older schema.
    Migrated(#[expect(dead_code, reason = "held for its end, not for its value")] TempDir),
}

/// A connection with its access. The fields are dropped in this order: a copy outlives its
/// connection.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) access: Access,
}

/// Opens the state at `path` for reading and writing, and brings it to the newest schema.
///
/// Where it migrates, a backup of the older file lies beside it, on disk, before the first step.
pub(crate) fn to_write(
    path: &Path,
    expected: Option<&Identity>,
    migrations: &[Migration],
) -> Result<Opened> {
    drop(vetted(path, expected, migrations)?);
    let refused = |error| match StateError::sqlite(path, error) {
        // The file was opened a moment ago, so it's the side files that can't be made.
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

/// Opens the state at `path` for reading. What has an older schema is read from a migrated copy.
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

/// Opens `path` so that nothing of it changes, and checks that it is a state of `expected` that
/// is not too new. Also answers with its version.
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
        // Without a lock, someone may have been writing: then neither answer counts.
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

/// Opens `path` for reading in the way that leaves everything as it lies there.
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
    // The mark is as old as the file, so no log can have a newer one; and another program's log
    // must not be touched. Any other complaint may only mean that someone is writing.
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

/// Checks what a state says of itself; answers with its schema version.
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
    // Also a first look at the content: a file that was cut off fails here.
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

/// Checks that the file ends where a page ends. `SQLite` would take a last page that was cut off
/// for one that ends in zeros.
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

/// Checks that the file is one of ours.
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

/// What becomes of the log when a reader was the last to close the file.
#[derive(Clone, Copy)]
enum Log {
    /// It stays as it was found.
    Keep,
    /// It is folded into the file and removed: the reader made it.
    Fold,
}

/// Opens `path` as a writer would, but forbidden to write; `None` where one may not write.
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

/// Opens the file alone: no lock, no log, nothing written.
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

/// Copies the file with what lies beside it, and opens the copy. A writer has shared memory open,
/// so where this is needed there should be none; if there is one after all, the copy is worthless.
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

/// The first read, which is when `SQLite` looks for its side files.
fn probe(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))
}

/// Opens a connection. Nothing is read yet, so no side file is made yet either.
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    // Absolute, so that no name can be taken for an address or for a database in memory.
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
