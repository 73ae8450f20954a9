//! Creates files atomically: new states, and copies of states.
//!
//! In: a path without a file. Out: a complete, durable file with a durable name, readable by its
//! owner only. A crash leaves at most a file whose name begins with a dot, which is ignored. Must
//! not: overwrite anything.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::{Result, StateError};
use crate::files;
use crate::paths;
use crate::schema::{self, APPLICATION_ID, Migration};
use crate::sql;

/// Creates a state at `path` atomically.
///
/// The file and its name are durable when this returns. A crash leaves at most a file named
/// `.NAME.….new` beside it, which is ignored.
///
/// Fails if the path exists or can't be written.
pub(crate) fn create(
    path: &Path,
    migrations: &[Migration],
    fill: impl FnOnce(&Connection) -> sql::Result<()>,
) -> Result<()> {
    files::create_parents(path)?;
    in_place_of_nothing(path, ".new", |new| {
        let build = || {
            let mut connection = Connection::open(new)?;
            schema::durable(&connection)?;
            connection.pragma_update(None, "application_id", APPLICATION_ID)?;
            schema::migrate(&mut connection, migrations)?;
            fill(&connection)?;
            // Closing the connection would do the checkpoint too, but ignores errors; the file
            // would then lack the log's content.
            let is_busy: bool =
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
            if is_busy {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(busy, None).into());
            }
            connection.close().map_err(|(_, error)| error.into())
        };
        build().map_err(|error: sql::Error| {
            // Remove SQLite's side files, which it leaves behind if the disk is full.
            for suffix in ["-wal", "-shm"] {
                let _ = fs::remove_file(paths::beside(new, suffix));
            }
            StateError::sql(path, error)
        })
    })
}

/// Writes a copy of what `connection` sees to `to`, atomically and durably.
///
/// Fails if the path exists or can't be written.
pub(crate) fn backup(connection: &Connection, from: &Path, to: &Path) -> Result<()> {
    in_place_of_nothing(to, ".backup", |new| vacuum_into(connection, from, new))
}

/// The automatic backups beside a state, oldest schema first.
///
/// Fails if the folder can't be read.
pub(crate) fn automatic_backups(path: &Path) -> Result<Vec<PathBuf>> {
    let folder = paths::folder_of(path);
    let prefix = paths::beside(Path::new(path.file_name().unwrap_or_default()), ".backup-v");
    let prefix = prefix.as_os_str().as_encoded_bytes();
    let mut backups = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| StateError::io(folder, error))? {
        let entry = entry.map_err(|error| StateError::io(folder, error))?;
        if let Some(rest) = entry.file_name().as_encoded_bytes().strip_prefix(prefix)
            && let Some((version, number)) = str::from_utf8(rest).ok().and_then(backup_number)
        {
            backups.push((version, number, entry.path()));
        }
    }
    backups.sort();
    Ok(backups.into_iter().map(|(_, _, path)| path).collect())
}

/// Parses a backup's number, such as `7-2`: the second backup of a file with schema 7.
fn backup_number(text: &str) -> Option<(u32, u32)> {
    let (version, number) = text.split_once('-')?;
    Some((version.parse().ok()?, number.parse().ok()?))
}

/// Backs up a state of schema `version` beside it, with a new name.
///
/// Fails if the copy can't be written.
pub(crate) fn automatic_backup(connection: &Connection, path: &Path, version: u32) -> Result<()> {
    // Another process may be migrating the same file, or an earlier attempt may have failed. So
    // take the first free number, and never overwrite.
    let mut number = 1;
    loop {
        let to = paths::beside(path, &format!(".backup-v{version}-{number}"));
        match backup(connection, path, &to) {
            Err(StateError::Exists { .. }) => number += 1,
            done => return done,
        }
    }
}

/// Lets `make` write a new file, and renames it once it is complete and durable. Only its owner can
/// read it.
fn in_place_of_nothing(
    path: &Path,
    suffix: &str,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let exists = || StateError::Exists {
        path: path.to_owned(),
    };
    if fs::symlink_metadata(path).is_ok() {
        return Err(exists());
    }
    let folder = paths::folder_of(path);
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    let new = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(suffix)
        .tempfile_in(folder)
        .map_err(|error| StateError::io(path, error))?;
    make(new.path())?;
    new.as_file()
        .sync_all()
        .map_err(|error| StateError::io(path, error))?;
    new.persist_noclobber(path)
        .map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(),
            _ => StateError::io(path, error.error),
        })?;
    files::sync_folder(folder)
}

/// Writes what `connection` sees to the file `to`, which must be missing or empty.
///
/// Fails if it can't be written.
pub(crate) fn vacuum_into(connection: &Connection, from: &Path, to: &Path) -> Result<()> {
    let target = files::absolute(to)?;
    let Some(target) = target.to_str() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "the name is no UTF-8");
        return Err(StateError::Io {
            path: to.to_owned(),
            source,
        });
    };
    // `query_only` forbids this too, although it writes to another file.
    let copy = || {
        let forbidden: bool =
            connection.pragma_query_value(None, "query_only", |row| row.get(0))?;
        connection.pragma_update(None, "query_only", false)?;
        let copied = connection.execute("VACUUM INTO ?1", [target]);
        connection.pragma_update(None, "query_only", forbidden)?;
        copied
    };
    match copy() {
        Ok(_) => Ok(()),
        Err(error) => Err(StateError::sqlite(from, error)),
    }
}
