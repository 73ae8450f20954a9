//! Automatic backups of a state in a file.
//!
//! In: an open state, and a folder for its backups. Out: a copy of the state, named after its
//! serial and lineage; at most the requested number of copies per lineage. Must not: remove files
//! with other names.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Result, StateError};
use crate::files;
use crate::new_file;
use crate::paths;
use crate::store::Store;

/// The folder with the backups of the state at `path`.
pub fn folder_of(path: &Path) -> PathBuf {
    paths::backups_of(path)
}

/// Copies the state into `folder`, which is created if necessary. Then removes the oldest copies of
/// this lineage, except the latest `keep`; copies of other lineages remain. Does nothing if a copy
/// of this serial exists.
///
/// The copy is durable when this returns; a crash leaves no partial copy under its name.
///
/// Fails if the copy can't be written; failing to remove an old one is ignored.
pub fn add(store: &dyn Store, folder: &Path, keep: usize) -> Result<PathBuf> {
    let meta = store.meta()?;
    let lineage = tail(&meta.lineage);
    let path = folder.join(format!("{}-{lineage}.db", meta.serial));
    files::create_parents(&path)?;
    match store.backup(&path) {
        Ok(()) => {}
        Err(StateError::Exists { .. }) => return Ok(path),
        // The error is about the folder, not about the state.
        Err(error) => return Err(error),
    }
    let mut copies = copies(folder, &lineage)?;
    copies.sort_by_key(|(serial, _)| std::cmp::Reverse(*serial));
    for (_, old) in copies.into_iter().skip(keep) {
        let _ = fs::remove_file(old);
    }
    Ok(path)
}

/// The backups in a folder of all lineages, latest first.
///
/// Fails if the folder can't be read.
pub fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in entries(folder)? {
        if let Some((serial, _)) = named(&entry) {
            let modified = fs::metadata(&entry).and_then(|metadata| metadata.modified());
            found.push((modified.ok(), serial, entry));
        }
    }
    found.sort();
    Ok(found.into_iter().rev().map(|(_, _, path)| path).collect())
}

/// The copies beside the state at `path` from before its schema was migrated, oldest schema first.
///
/// Fails if the folder can't be read.
pub fn before_migrations(path: &Path) -> Result<Vec<PathBuf>> {
    new_file::automatic_backups(path)
}

/// The suffix of a file name that identifies a lineage.
fn tail(lineage: &str) -> String {
    let mut tail: Vec<char> = lineage
        .chars()
        .rev()
        .filter(char::is_ascii_alphanumeric)
        .take(8)
        .collect();
    tail.reverse();
    tail.into_iter().collect()
}

fn copies(folder: &Path, lineage: &str) -> Result<Vec<(u64, PathBuf)>> {
    let copies = entries(folder)?.into_iter().filter_map(|path| {
        let (serial, of) = named(&path)?;
        (of == lineage).then_some((serial, path))
    });
    Ok(copies.collect())
}

/// `12-abcdefgh.db`
fn named(path: &Path) -> Option<(u64, String)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".db")?;
    let (serial, lineage) = name.split_once('-')?;
    Some((serial.parse().ok()?, lineage.to_owned()))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StateError::io(folder, error)),
    };
    let path = |entry: std::io::Result<fs::DirEntry>| {
        entry
            .map(|entry| entry.path())
            .map_err(|error| StateError::io(folder, error))
    };
    entries.map(path).collect()
}
