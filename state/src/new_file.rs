//! Files that appear as a whole or not at all: a new state, and copies of one.
//!
//! In: a path where nothing is yet. Out: a file that is complete and on disk, under a name that
//! is on disk too, readable by its owner only. A crash leaves at most a file whose name begins
//! with a dot and which nobody reads. It never overwrites anything.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::{Result, StateError};
use crate::files;
use crate::paths;
use crate::schema::{self, APPLICATION_ID, Migration};

/// Makes a state at `path`: the whole of it appears at once, or nothing.
///
/// When this returns the file and its name are on disk. A crash leaves at most a file named
/// `.NAME.….new` beside it, which nobody reads.
pub(crate) fn create(
    path: &Path,
    migrations: &[Migration],
    fill: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<()> {
    files::create_parents(path)?;
    in_place_of_nothing(path, ".new", |new| {
        let build = || {
            let mut connection = Connection::open(new)?;
            schema::durable(&connection)?;
            connection.pragma_update(None, "application_id", APPLICATION_ID)?;
            schema::migrate(&mut connection, migrations)?;
            fill(&connection)?;
            // Closing would fold the log into the file too, but without a word where it fails: the
            // file would get its name without what is in it.
            let is_busy: bool =
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
            if is_busy {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(busy, None));
            }
            connection.close().map_err(|(_, error)| error)
        };
        build().map_err(|error| {
            // What SQLite had beside it would be left behind, on a full disk of all places.
            for suffix in ["-wal", "-shm"] {
                let _ = fs::remove_file(paths::beside(new, suffix));
            }
            StateError::sqlite(path, error)
        })
    })
}

/// Writes a copy of what `connection` sees to `to`, where nothing may be yet. The copy appears
/// as a whole, and is on disk when this returns.
pub(crate) fn backup(connection: &Connection, from: &Path, to: &Path) -> Result<()> {
    in_place_of_nothing(to, ".backup", |new| vacuum_into(connection, from, new))
}

/// The automatic backups beside a state, oldest schema first.
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

/// `7-2`: the second backup of a file of schema 7.
fn backup_number(text: &str) -> Option<(u32, u32)> {
    let (version, number) = text.split_once('-')?;
    Some((version.parse().ok()?, number.parse().ok()?))
}

/// Backs a state of schema `version` up, beside it, under a name of its own.
pub(crate) fn automatic_backup(connection: &Connection, path: &Path, version: u32) -> Result<()> {
    // Someone else may be migrating the same file, or a try before this one may have failed:
    // the first free number is taken, and none is ever overwritten.
    let mut number = 1;
    loop {
        let to = paths::beside(path, &format!(".backup-v{version}-{number}"));
        match backup(connection, path, &to) {
            Err(StateError::Exists { .. }) => number += 1,
            done => return done,
        }
    }
}

/// Has `make` write a new file, and gives it its name once it is complete and on disk. Readable
/// by its owner only.
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

/// Writes what `connection` sees to the file `to`, which may be there if it is empty.
pub(crate) fn vacuum_into(connection: &Connection, from: &Path, to: &Path) -> Result<()> {
    let target = files::absolute(to)?;
    let Some(target) = target.to_str() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "the name is no UTF-8");
        return Err(StateError::Io {
            path: to.to_owned(),
            source,
        });
    };
    // Forbidding to write forbids this too, though it writes elsewhere.
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
