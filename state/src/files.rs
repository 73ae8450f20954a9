//! What is done to files without the database.
//!
//! In: paths. Out: folders that are on disk when the call returns, and facts about
//! files. It never opens a state: closing it would end the locks that another
//! connection of this process holds on it (`fcntl` locks belong to the process, not to the
//! descriptor).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Result, StateError};
use crate::paths::{beside, folder_of};

/// Creates the missing folders above `path`. When this returns they survive a power cut.
pub(crate) fn create_parents(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    create_parents(folder)?;
    match fs::create_dir(folder) {
        Ok(()) => sync_folder(folder_of(folder)),
        // Someone else made it meanwhile.
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(StateError::io(folder, error)),
    }
}

/// Puts the names in a folder on disk: without it a new file can vanish in a power cut, however
/// well its content was synced.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| StateError::io(folder, error))
}

/// The length of a file; `None` where there is none.
pub(crate) fn length(path: &Path) -> Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StateError::io(path, error)),
    }
}

/// `path` from the root. Fails where there is no working folder.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| StateError::io(path, error))
}

/// Distinguishes versions of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    length: u64,
    modified: Option<SystemTime>,
    /// Whether a writer's log lies beside it: then the file alone isn't the whole state.
    log: bool,
}

impl Fingerprint {
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let metadata = fs::metadata(path).map_err(|error| StateError::io(path, error))?;
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            log: length(&beside(path, "-wal"))?.is_some_and(|length| length > 0),
        })
    }
}
