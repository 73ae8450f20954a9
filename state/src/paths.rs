//! The names of what lies beside a state.
//!
//! In: the path of a state. Out: paths. It may not look at files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `path` with `suffix` after its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// The folder that holds `path`; `.` where it names none.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Where the backups of the state at `path` are kept: beside it.
pub(crate) fn backups_of(path: &Path) -> PathBuf {
    let name = path.to_string_lossy();
    match name.strip_suffix(".db") {
        Some(stem) => PathBuf::from(format!("{stem}.backups")),
        None => beside(path, ".backups"),
    }
}
