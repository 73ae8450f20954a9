//! The folder for what is nstance's own beside a configuration: keys, states, the embedded cloud.
//!
//! In: its path. Out: the folder, which git ignores.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Its name.
pub const HOME: &str = ".nstance";

/// Creates a folder and those above it. A new one called [`HOME`] gets a `.gitignore` that keeps all
/// of it, keys included, out of commits. Fails if a folder or that file can't be written.
pub fn create(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    if folder.file_name().is_none_or(|name| name != HOME) {
        return Ok(());
    }
    match fs::File::create_new(folder.join(".gitignore")) {
        Ok(mut file) => file.write_all(b"*\n"),
        // Another process made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
