//! Writes files for the user.
//!
//! In: a path and its text. Out: the complete file, or the unchanged old one. Must not: decide what
//! is written.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use super::failure::Failure;

/// Writes or replaces a file atomically and durably. Keeps the mode of an existing file, and
/// follows symbolic links.
///
/// Fails if the file can't be written.
pub fn write(path: &Path, text: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), Failure> {
    replace(path, text.as_ref()).map_err(|error| unwritten(path, &error))
}

/// Checks that a report can be written, before anything is done that it reports.
///
/// Fails if the folder is missing or not writable, and if a saved plan, a state or a key has the name.
pub fn check_report(path: &Path) -> Result<(), Failure> {
    if let Ok(file) = fs::File::open(path)
        && file.metadata().is_ok_and(|metadata| metadata.is_file())
    {
        let mut start = Vec::new();
        let _ = file.take(4_096).read_to_end(&mut start);
        let lines = start.split(|byte| *byte == b'\n');
        let what = if start.starts_with(b"nstance plan ") {
            Some("a saved plan")
        } else if start.starts_with(b"SQLite format 3\0") {
            Some("a database, such as a state")
        } else {
            let mut keys = lines.filter(|line| line.starts_with(b"nstance-key-"));
            keys.next().map(|_| "a key")
        };
        if let Some(what) = what {
            let name = path.display();
            return Err(Failure::say(format!("will not overwrite {name}: {what}")));
        }
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let probe = if path.exists() {
        fs::OpenOptions::new().append(true).open(path).map(drop)
    } else {
        tempfile::tempfile_in(folder).map(drop)
    };
    probe.map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    let why = match error.kind() {
        // The original message names a temporary file, which would confuse the user.
        io::ErrorKind::NotFound => "there is no such folder".to_owned(),
        kind => kind.to_string(),
    };
    Failure::say(format!("can't write: {why}: {}", path.display()))
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let permissions = match fs::metadata(&target) {
        // Not a regular file, so opening it for writing gives the error.
        Ok(metadata) if !metadata.is_file() => {
            return fs::OpenOptions::new()
                .write(true)
                .open(&target)?
                .write_all(text);
        }
        Ok(metadata) => Some(metadata.permissions()),
        Err(_) => None,
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".nstance-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(text)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_behind_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write(&at("new"), "one").unwrap();
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "one");
        fs::set_permissions(at("new"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink(at("new"), at("link")).unwrap();
        write(&at("link"), "two").unwrap();
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "two");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        let mode = fs::metadata(at("new")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_report_replaces_nothing_that_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        for (content, what) in [
            ("nstance plan 2\nx", Some("a saved plan")),
            ("SQLite format 3\0x", Some("a database, such as a state")),
            ("# made by nstance\nnstance-key-1-55\n", Some("a key")),
            ("<!-- nstance plan -->", None),
            ("", None),
        ] {
            let path = folder.path().join("file");
            fs::write(&path, content).unwrap();
            let refused = check_report(&path).err();
            let summary = refused.map(|it| it.findings.iter().next().unwrap().summary.clone());
            assert_eq!(summary.is_some(), what.is_some(), "{content}");
            let ends = |summary: &String| summary.ends_with(what.unwrap());
            assert!(summary.as_ref().is_none_or(ends), "{summary:?}");
        }
        assert!(check_report(&folder.path().join("new")).is_ok());
        assert!(check_report(&folder.path().join("no/new")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let folder = tempfile::tempdir().unwrap();
        for (name, why) in [("no/file", "there is no such folder"), ("", "directory")] {
            let failure = write(&folder.path().join(name), "x").unwrap_err();
            let summary = failure.findings.iter().next().unwrap().summary.clone();
            assert!(summary.contains(why), "{summary}");
        }
    }
}
