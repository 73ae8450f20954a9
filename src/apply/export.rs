//! Writes exported files: `.nstance/CLUSTER/SHARD/files/ADDRESS/NAME`.
//!
//! In: rendered files of an instance. Out: files on disk, each complete or absent. Must not: touch
//! anything outside its folder.

use std::io;
use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::spec::Files;

/// Writes exported files below one folder.
#[derive(Debug, Clone)]
pub struct Exporter {
    root: PathBuf,
}

impl Exporter {
    /// An exporter below `root`, which is created when first needed.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    fn folder(&self, address: &Address) -> PathBuf {
        self.root
            .join(address.group.tenant())
            .join(address.group.name())
            .join(address.slot.to_string())
    }

    /// Makes an instance's folder contain exactly its exported files. One whose content isn't known
    /// yet stays as it was.
    ///
    /// Fails if a file can't be written or removed.
    pub fn write(&self, address: &Address, files: &Files) -> io::Result<()> {
        let folder = self.folder(address);
        let exported = || {
            let files = files.iter();
            files.filter(|(_, file)| !file.in_userdata && !file.by_server)
        };
        if exported().next().is_none() {
            return remove_folder(&folder);
        }
        std::fs::create_dir_all(&folder)?;
        let names: Vec<_> = exported().map(|(name, _)| Path::new(&**name)).collect();
        keep_only(&folder, &names)?;
        for (name, file) in exported() {
            let Some(content) = file.content.as_deref() else {
                continue;
            };
            let name = &**name;
            let path = folder.join(name);
            let folder = path.parent().unwrap_or(&folder);
            std::fs::create_dir_all(folder)?;
            // Write to a temporary file and rename it, so that readers see the old or the new file.
            let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
            io::Write::write_all(&mut temporary, content.as_bytes())?;
            temporary.persist(&path).map_err(|error| error.error)?;
        }
        Ok(())
    }

    /// Removes an instance's folder.
    ///
    /// Fails if it exists and can't be removed.
    pub fn remove(&self, address: &Address) -> io::Result<()> {
        remove_folder(&self.folder(address))
    }
}

/// Removes everything from a folder but these files, whose paths are relative to it.
fn keep_only(folder: &Path, files: &[&Path]) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = PathBuf::from(entry.file_name());
        let path = entry.path();
        let below: Vec<&Path> = files
            .iter()
            .filter_map(|file| file.strip_prefix(&name).ok())
            .filter(|rest| !rest.as_os_str().is_empty())
            .collect();
        if !entry.file_type()?.is_dir() {
            if !files.contains(&&*name) {
                std::fs::remove_file(path)?;
            }
        } else if below.is_empty() {
            std::fs::remove_dir_all(path)?;
        } else {
            keep_only(&path, &below)?;
        }
    }
    Ok(())
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
