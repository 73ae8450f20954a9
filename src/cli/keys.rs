//! Finds and creates encryption keys.
//!
//! In: the environment, the option `--key-file`, and the key file beside the configuration. Out: a
//! [`Keyring`], which finds the key of a state or a saved plan, and supplies one for new ones. Must
//! not: create a key unless asked to, or print one.
//!
//! A key file has one key per line; lines that begin with `#` are comments. New states use the
//! first key; the others still open older states and plans. A new key is written to the file before
//! a state uses it, so after a crash the file still opens the state.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nstance_state::{Derivation, Key, KeyError, KeyId, KeyNeed, Keys, NewKey, RandomError};
use zeroize::Zeroizing;

use super::Globals;
use super::failure::Failure;
use crate::diagnostic::Diagnostic;
use crate::home::{self, HOME};
use crate::limited;

/// A key as text.
pub const KEY: &str = "NSTANCE_STATE_KEY";
/// The environment variable with a passphrase.
pub const PASSPHRASE: &str = "NSTANCE_STATE_PASSPHRASE";
/// The hint for a missing or wrong key.
const SOURCES: &str = "A key comes from NSTANCE_STATE_KEY, --key-file FILE (NSTANCE_KEY_FILE), \
                       NSTANCE_STATE_PASSPHRASE, or .nstance/key beside the configuration";
/// The comment at the start of a key file.
const HEADER: &str = "# Keys of nstance: they open states and saved plans. New ones get the first.\n\
                      # Keep a copy where the states' backups aren't; never commit this file.\n";

/// The keys of a run.
pub struct Keyring {
    variable: Option<Zeroizing<String>>,
    passphrase: Option<Zeroizing<String>>,
    /// The key file, and whether the user named it.
    file: KeyFile,
    named: bool,
    /// Keys derived from passphrases; deriving is slow.
    made: Mutex<HashMap<KeyId, Key>>,
}

impl Keyring {
    /// The available keys; `home` is nstance's own folder.
    pub fn new(globals: &Globals, home: &Path) -> Arc<Self> {
        let file = globals.key_file.clone();
        Arc::new(Self {
            variable: secret(KEY),
            passphrase: secret(PASSPHRASE),
            named: file.is_some(),
            file: KeyFile(file.unwrap_or_else(|| home.join("key"))),
            made: Mutex::default(),
        })
    }

    /// The key for a saved plan: that of its state, or the one that a new state would use, if there
    /// is one.
    ///
    /// Fails if the state's key is missing.
    pub fn of_plan(&self, state: Option<&KeyNeed>) -> Result<Option<NewKey>, Failure> {
        let Some(need) = state else {
            return self.present();
        };
        let key = self.find(need).map_err(failure)?;
        let derivation = need.derivation.clone();
        Ok(Some(NewKey { key, derivation }))
    }

    /// The key for a new state; `None` if there is none yet.
    ///
    /// Fails if a given key is invalid or the key file can't be read.
    pub fn present(&self) -> Result<Option<NewKey>, Failure> {
        if let Some(text) = &self.variable {
            return Ok(Some(parsed(text, KEY).map_err(failure)?.into()));
        }
        if self.named || self.passphrase.is_none() {
            let keys = self.file.read(self.named).map_err(failure)?;
            if let Some(key) = keys.into_iter().next() {
                return Ok(Some(key.into()));
            }
        }
        self.passphrase
            .as_deref()
            .map(|phrase| self.derive(phrase))
            .transpose()
    }

    /// The key for a new state. If there is none, creates one and calls `tell`.
    ///
    /// Fails if the key file can't be read or written.
    pub fn provide(&self, tell: impl FnOnce(&KeyFile)) -> Result<NewKey, Failure> {
        if let Some(key) = self.present()? {
            return Ok(key);
        }
        let (key, made) = self.file.first_or_new()?;
        if made {
            tell(&self.file);
        }
        Ok(key.into())
    }

    /// The key for a state that several machines use: one that the user gave, since a key file
    /// beside the configuration is only here.
    ///
    /// Fails if none was given, or if it can't be read.
    pub fn given(&self) -> Result<NewKey, Failure> {
        let is_given = self.variable.is_some() || self.named || self.passphrase.is_some();
        match self.present()? {
            Some(key) if is_given => Ok(key),
            _ => Err(Failure::new(
                Diagnostic::error(
                    "a state that several machines use needs a key that they all have",
                )
                .hint("Set NSTANCE_STATE_KEY or NSTANCE_STATE_PASSPHRASE, or pass --key-file FILE"),
            )),
        }
    }

    /// A new key derived from a passphrase.
    ///
    /// Fails if the system supplies no random bytes.
    pub fn derive(&self, passphrase: &str) -> Result<NewKey, Failure> {
        let derivation = Derivation::generate().map_err(random)?;
        let key = Key::from_passphrase(passphrase, &derivation);
        self.made().insert(key.id(), key.clone());
        let derivation = Some(derivation);
        Ok(NewKey { key, derivation })
    }

    /// The key file.
    pub fn file(&self) -> &KeyFile {
        &self.file
    }

    /// Adds the new key of a state.
    pub fn remember(&self, key: &Key) {
        self.made().insert(key.id(), key.clone());
    }

    fn made(&self) -> std::sync::MutexGuard<'_, HashMap<KeyId, Key>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys for Keyring {
    fn find(&self, needed: &KeyNeed) -> Result<Key, KeyError> {
        if let Some(key) = self.made().get(&needed.id) {
            return Ok(key.clone());
        }
        let mut seen = Vec::new();
        if let Some(text) = &self.variable {
            let key = parsed(text, KEY)?;
            if key.id() == needed.id {
                return Ok(key);
            }
            seen.push(format!("{KEY} is {}", key.id()));
        }
        let keys = self.file.read(self.named)?;
        let ids: Vec<String> = keys.iter().map(|key| key.id().to_string()).collect();
        if let Some(key) = keys.into_iter().find(|key| key.id() == needed.id) {
            return Ok(key);
        }
        if !ids.is_empty() {
            seen.push(format!("{} has {}", self.file, ids.join(", ")));
        }
        match (&self.passphrase, &needed.derivation) {
            (Some(phrase), Some(derivation)) => {
                let key = Key::from_passphrase(phrase, derivation);
                if key.id() == needed.id {
                    self.made().insert(key.id(), key.clone());
                    return Ok(key);
                }
                seen.push(format!("the passphrase of {PASSPHRASE} makes another"));
            }
            (Some(_), None) => seen.push(format!("{PASSPHRASE} is set, but no passphrase made it")),
            (None, Some(_)) => {
                seen.push(format!("a passphrase made it, and {PASSPHRASE} isn't set"));
            }
            (None, None) => {}
        }
        if seen.is_empty() {
            seen.push(format!("there is no key: no {KEY}, and no {}", self.file));
        }
        Err(missing(seen.join("; ")))
    }
}

/// The keys of several configurations.
pub struct Keyrings(pub Vec<Arc<Keyring>>);

impl Keyrings {
    /// The keys of the given configurations, without loading these.
    pub fn of(globals: &Globals) -> Self {
        let mut folders: Vec<PathBuf> = Vec::new();
        for path in globals.configs() {
            let folder = if path.is_dir() {
                Some(&*path)
            } else {
                path.parent()
            };
            folders.extend(folder.map(Path::to_owned));
        }
        if folders.is_empty() {
            folders.push(PathBuf::new());
        }
        let rings = folders
            .iter()
            .map(|folder| Keyring::new(globals, &folder.join(HOME)));
        Self(rings.collect())
    }
}

impl Keys for Keyrings {
    fn find(&self, needed: &KeyNeed) -> Result<Key, KeyError> {
        let mut first = None;
        for keyring in &self.0 {
            match keyring.find(needed) {
                Ok(key) => return Ok(key),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| missing("there is no key".to_owned())))
    }
}

/// The size limit of a key file, in bytes: enough for thousands of keys.
const LARGEST_FILE: u64 = 1 << 20;

/// A file of keys.
pub struct KeyFile(PathBuf);

impl KeyFile {
    /// A file of keys by its path.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Its keys in order. A missing file has none.
    ///
    /// Fails if the file can't be read or has an invalid key; a missing file is an error only if it
    /// is `named`.
    pub fn read(&self, named: bool) -> Result<Vec<Key>, KeyError> {
        let path = &self.0;
        let unreadable = |error: &io::Error| {
            let why = match error.kind() {
                io::ErrorKind::FileTooLarge => error.to_string(),
                kind => kind.to_string(),
            };
            missing(format!("the key file can't be read: {why}: {self}"))
        };
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named => {
                return Ok(Vec::new());
            }
            found => found.map_err(|error| unreadable(&error))?,
        };
        if !is_private(&metadata) {
            return Err(KeyError {
                why: format!("others may read or write the key file {self}"),
                hint: Some(format!(
                    "Keep it to yourself: chmod 600 {self}; where it is mounted as it is, set \
                     {KEY} to what it holds"
                )),
            });
        }
        let text = limited::read_text(path, LARGEST_FILE).map_err(|error| unreadable(&error))?;
        let text = Zeroizing::new(text);
        let lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index, line.trim()));
        let keys = lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(index, line)| parsed(line, &format!("line {} of {self}", index + 1)))
            .collect::<Result<Vec<Key>, KeyError>>()?;
        if keys.is_empty() {
            return Err(missing(format!("the key file is empty: {self}")));
        }
        Ok(keys)
    }

    /// The first key, and whether it was just created because there was none. Concurrent callers
    /// get the same key.
    ///
    /// Fails if the file can't be read or written.
    pub fn first_or_new(&self) -> Result<(Key, bool), Failure> {
        let _lock = self.lock()?;
        let keys = self.read(false).map_err(failure)?;
        if let Some(key) = keys.into_iter().next() {
            return Ok((key, false));
        }
        let key = Key::generate().map_err(random)?;
        self.write(&key)?;
        Ok((key, true))
    }

    /// Creates a key and durably writes it before the existing ones. A crash leaves the old file.
    /// Only the owner can read the file.
    ///
    /// Fails if the file can't be read or written.
    pub fn put_new(&self) -> Result<Key, Failure> {
        let _lock = self.lock()?;
        // Don't add to a file that can't be read.
        self.read(false).map_err(failure)?;
        let key = Key::generate().map_err(random)?;
        self.write(&key)?;
        Ok(key)
    }

    /// Locks the file's folder against other writers until the guard is dropped or the process
    /// ends.
    ///
    /// Fails if the folder can't be created or locked.
    fn lock(&self) -> Result<fs::File, Failure> {
        let path = self.path();
        let folder = folder(&path);
        let lock = || {
            if !folder.is_dir() {
                home::create(folder)?;
                fs::File::open(self::folder(folder))?.sync_all()?;
            }
            let folder = fs::File::open(folder)?;
            folder.lock()?;
            Ok(folder)
        };
        lock().map_err(|error: io::Error| self.unkept(&error))
    }

    /// The path with symbolic links resolved.
    fn path(&self) -> PathBuf {
        fs::canonicalize(&self.0).unwrap_or_else(|_| self.0.clone())
    }

    fn unkept(&self, error: &io::Error) -> Failure {
        Failure::say(format!("the key can't be kept: {}: {self}", error.kind()))
    }

    fn write(&self, key: &Key) -> Result<(), Failure> {
        let path = self.path();
        let old = match limited::read_text(&path, LARGEST_FILE) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Zeroizing::default(),
            Err(error) => return Err(self.unkept(&error)),
        };
        let write = || {
            let folder = folder(&path);
            // Create it with mode 0600 rather than changing the mode later.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            if !old.starts_with('#') {
                file.write_all(HEADER.as_bytes())?;
            }
            let (comments, keys) = split_comments(&old);
            for part in [comments, &key.to_text(), "\n", keys] {
                file.write_all(part.as_bytes())?;
            }
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            fs::File::open(folder)?.sync_all()
        };
        write().map_err(|error: io::Error| self.unkept(&error))
    }
}

impl fmt::Display for KeyFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(formatter)
    }
}

/// Whether only its owner can access a file.
fn is_private(metadata: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = metadata.permissions().mode();
        mode & 0o777 == mode & 0o700
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        true
    }
}

/// The folder of a path.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The leading comments, and the rest.
fn split_comments(text: &str) -> (&str, &str) {
    let mut end = 0;
    for line in text
        .split_inclusive('\n')
        .take_while(|line| line.starts_with('#'))
    {
        end += line.len();
    }
    text.split_at(end)
}

/// A secret from the environment; an empty one counts as unset.
pub fn secret(name: &str) -> Option<Zeroizing<String>> {
    // Don't ignore a value that isn't UTF-8: another key would be used or created instead.
    let value = std::env::var_os(name)?.to_string_lossy().into_owned();
    Some(Zeroizing::new(value)).filter(|value| !value.is_empty())
}

/// Parses a key from `place`.
///
/// Fails if the text isn't a key.
pub fn parsed(text: &str, place: &str) -> Result<Key, KeyError> {
    text.parse().map_err(|_| KeyError {
        why: format!("{place} is not a valid key"),
        hint: Some("A key is `nstance-key-1-` and 64 hexadecimal digits".to_owned()),
    })
}

fn missing(why: String) -> KeyError {
    let hint = Some(SOURCES.to_owned());
    KeyError { why, hint }
}

/// The failure for a missing or invalid key.
pub fn failure(error: KeyError) -> Failure {
    let mut finding = Diagnostic::error(error.why);
    finding.hints.extend(error.hint);
    finding.into()
}

fn random(error: RandomError) -> Failure {
    Failure::say(format!("no key can be made: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_several_machines_use_gets_no_key_from_beside_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let first = KeyFile::new(file.clone()).put_new().unwrap();
        let ring = |variable: Option<&Key>, named, passphrase: Option<&str>| Keyring {
            variable: variable.map(Key::to_text),
            passphrase: passphrase.map(|phrase| Zeroizing::new(phrase.to_owned())),
            file: KeyFile::new(file.clone()),
            named,
            made: Mutex::default(),
        };
        let other = Key::generate().unwrap();
        assert_eq!(ring(None, true, None).given().unwrap().key, first);
        assert_eq!(ring(Some(&other), false, None).given().unwrap().key, other);
        let unnamed = ring(None, false, None);
        assert_eq!(unnamed.present().unwrap().unwrap().key, first);
        let refused = unnamed.given().unwrap_err().findings;
        let said = refused.iter().next().unwrap().summary.clone();
        assert!(said.contains("needs a key that they all have"), "{said}");
        fs::remove_file(&file).unwrap();
        let made = ring(None, false, Some("of words")).given().unwrap();
        assert!(made.derivation.is_some());
    }
}
