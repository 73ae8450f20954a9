//! The names of a state's side files.
//!
//! In: the path of a state. Out: paths. Must not: access files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `path` with `suffix` appended to its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// The folder of `path`; `.` if it has none.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The folder with the backups of the state at `path`.
pub(crate) fn backups_of(path: &Path) -> PathBuf {
    let name = path.to_string_lossy();
    match name.strip_suffix(".db") {
        Some(stem) => PathBuf::from(format!("{stem}.backups")),
        None => beside(path, ".backups"),
    }
}
