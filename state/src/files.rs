//! File operations outside the database.
//!
//! In: paths. Out: durable folders, and facts about files. Must not: open a state. Closing it would
//! release the locks that another connection of this process holds (`fcntl` locks belong to the
//! process, not to the descriptor).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Result, StateError};
use crate::paths::{beside, folder_of};

/// Creates the missing folders above `path`, durably.
///
/// Fails if one can't be created.
pub(crate) fn create_parents(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    create_parents(folder)?;
    match fs::create_dir(folder) {
        Ok(()) => sync_folder(folder_of(folder)),
        // Another process created it meanwhile.
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(StateError::io(folder, error)),
    }
}

/// Makes the names in a folder durable: otherwise a power failure can remove a new file, even if
/// its content was synced.
///
/// Fails if the folder can't be synced.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| StateError::io(folder, error))
}

/// The length of a file; `None` if it doesn't exist.
///
/// Fails if it can't be examined.
pub(crate) fn length(path: &Path) -> Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StateError::io(path, error)),
    }
}

/// The absolute form of `path`.
///
/// Fails if there is no working folder.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| StateError::io(path, error))
}

/// Identifies a version of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    length: u64,
    modified: Option<SystemTime>,
    /// Whether there is a log beside it; then the file alone isn't the whole state.
    log: bool,
}

impl Fingerprint {
    /// The fingerprint of the file at `path`.
    ///
    /// Fails if it can't be examined.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let metadata = fs::metadata(path).map_err(|error| StateError::io(path, error))?;
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            log: length(&beside(path, "-wal"))?.is_some_and(|length| length > 0),
        })
    }
}
