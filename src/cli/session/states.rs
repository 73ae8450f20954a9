//! The state of a session: where it lies, opened, sealed, locked.
//!
//! In: a [`Session`]. Out: stores and locks. May not: say what is in a state.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nstance_state::{
    Derivation, Document, Identity, Key, Keys, Lock, LockInfo, NewKey, SqliteStore, StateError,
};

use super::{Session, who};
use crate::cli::console;
use crate::cli::failure::Failure;
use crate::clock::Timestamp;
use crate::diagnostic::Diagnostic;

impl Session<'_> {
    /// The state's file.
    pub fn state_path(&self) -> Result<PathBuf, Failure> {
        let identity = self.identity();
        let Some(url) = &self.globals.state else {
            return Ok(self
                .home()
                .join(&identity.cluster)
                .join(format!("{}.db", identity.shard)));
        };
        let path = match url.split_once(':') {
            Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
            Some((scheme @ ("postgres" | "postgresql" | "s3" | "gs"), _)) => {
                return Err(Failure::new(
                    Diagnostic::error(format!(
                        "states on `{scheme}` aren't built into this version"
                    ))
                    .hint("Use a file: --state sqlite:PATH"),
                ));
            }
            Some((scheme, rest)) if rest.starts_with("//") => {
                return Err(Failure::new(
                    Diagnostic::error(format!("`{scheme}` is no kind of state"))
                        .hint("Use a file: --state sqlite:PATH"),
                ));
            }
            _ => url.as_str(),
        };
        Ok(path
            .replace("{cluster}", &identity.cluster)
            .replace("{shard}", &identity.shard)
            .into())
    }

    /// The state to read, if there is one.
    pub fn open_to_read(&self) -> Result<Option<SqliteStore>, Failure> {
        let path = self.state_path()?;
        match SqliteStore::open_read_only(&path, Some(&self.identity())) {
            Ok(store) => Ok(Some(self.with_keys(store))),
            Err(StateError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The state to read, with the error as it is.
    pub fn find_state(&self, path: &Path) -> Result<SqliteStore, StateError> {
        SqliteStore::open_read_only(path, Some(&self.identity())).map(|store| self.with_keys(store))
    }

    fn with_keys(&self, store: SqliteStore) -> SqliteStore {
        store.with_keys(Arc::clone(&self.keys) as Arc<dyn Keys>)
    }

    /// The state to read; that there is none is a failure.
    pub fn need_state(&self) -> Result<SqliteStore, Failure> {
        let path = self.state_path()?;
        let store = SqliteStore::open_read_only(&path, Some(&self.identity()))?;
        Ok(self.with_keys(store))
    }

    /// The state to write, if there is one, sealed from now on if it wasn't. To be asked with the
    /// lock held.
    pub fn open_to_write(&self) -> Result<Option<SqliteStore>, Failure> {
        let Some(mut store) = self.open_as_it_is()? else {
            return Ok(None);
        };
        if store.meta()?.key.is_none() {
            let key = self.provide_key()?;
            store.transaction(self.clock.now().into(), |transaction| {
                transaction.rekey(&key)
            })?;
            self.tell(&self.sealed(&key)?.into());
        } else {
            store.unlock()?;
        }
        // What can't be done now, while someone reads or the disk is full, is done another time.
        store.scrub()?;
        Ok(Some(store))
    }

    /// The state to write, if there is one, sealed or not.
    pub fn open_as_it_is(&self) -> Result<Option<SqliteStore>, Failure> {
        let path = self.state_path()?;
        match SqliteStore::open(&path, Some(&self.identity())) {
            Ok(store) => Ok(Some(self.with_keys(store))),
            Err(StateError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A backup to read, whosever it is.
    pub fn open_backup(&self, path: &Path) -> Result<SqliteStore, Failure> {
        Ok(self.with_keys(SqliteStore::open_read_only(path, None)?))
    }

    /// The key that a document of a state is sealed with: the state's own.
    pub fn document_key(&self, store: &SqliteStore) -> Result<(Key, Option<Derivation>), Failure> {
        let key = self.keys.of_plan(store.meta()?.key.as_ref())?;
        let key = key.ok_or_else(|| {
            Diagnostic::error("there is no key to seal the document with")
                .detail("the state lies in clear; a document of it never does")
                .hint("The next apply makes a key and seals the state; or set NSTANCE_STATE_KEY")
        })?;
        Ok((key.key, key.derivation))
    }

    /// The key that a document is sealed with.
    pub fn key_of_document(&self, document: &Document) -> Result<Key, Failure> {
        let need = document
            .key()
            .map_err(|error| Failure::say(error.to_string()))?;
        self.keys.find(&need).map_err(|error| {
            let mut finding = Diagnostic::error(format!(
                "the document is sealed with the key {}, and {}",
                need.id, error.why
            ));
            finding.hints.extend(error.hint);
            finding.into()
        })
    }

    /// A new state, sealed from the beginning. Its key is on disk before it is, or was given.
    pub fn create_state(&self, identity: &Identity, lineage: &str) -> Result<SqliteStore, Failure> {
        let path = self.state_path()?;
        let key = self.provide_key()?;
        let now = self.clock.now().into();
        let store = SqliteStore::create_sealed(&path, identity, lineage, now, &key)?;
        Ok(self.with_keys(store))
    }

    fn provide_key(&self) -> Result<NewKey, Failure> {
        self.keys.provide(|file| {
            if !self.globals.quiet && !self.globals.json {
                console::error(&format!(
                    "Made a key for the state: {file}. Keep a copy: without it the state can't be \
                     opened\n"
                ));
            }
        })
    }

    /// What there is to say where a state was sealed that lay in clear before.
    fn sealed(&self, key: &NewKey) -> Result<Diagnostic, Failure> {
        let finding = Diagnostic::warning(format!(
            "the state is sealed from now on, with the key {}",
            key.key.id()
        ));
        let clear: Vec<String> = SqliteStore::automatic_backups(&self.state_path()?)?
            .iter()
            .map(|path| console::shown(path))
            .collect();
        Ok(if clear.is_empty() {
            finding.hint("Copies that were made before are in clear: protect or remove them")
        } else {
            finding
                .detail(format!("in clear as it was: {}", clear.join(", ")))
                .hint("Remove what is in clear once you need no way back to an older version")
        })
    }

    /// Takes the lock, waiting as long as `--lock-timeout` says.
    pub fn lock(&self, operation: &str) -> Result<Lock, Failure> {
        let path = self.state_path()?;
        // A state that may not be used isn't locked either, and nothing is made beside it.
        self.open_to_read()?;
        let now = self.clock.now();
        let who = who();
        let info = LockInfo {
            id: format!("{:x}-{}", now.0, std::process::id()),
            holder: who.user,
            host: who.host,
            pid: std::process::id(),
            operation: operation.to_owned(),
            since: now.into(),
        };
        let timeout = self.globals.lock_timeout.0;
        let mut tell = |holder: &LockInfo| {
            if !self.globals.quiet {
                let age = held(holder, now).map_or_else(String::new, |age| format!(", {age}"));
                let waited = crate::report::age(timeout);
                let label = self.label.as_ref();
                let of = label.map_or_else(String::new, |label| format!(" of {label}"));
                console::error(&format!(
                    "Waiting up to {waited} for the state{of}, locked by {holder}{age}\n"
                ));
            }
        };
        Lock::acquire_telling(&path, info, timeout, &mut tell).map_err(|error| {
            let StateError::Locked { holder } = &error else {
                return error.into();
            };
            let mut diagnostic = Diagnostic::error(error.to_string());
            if let Some(age) = held(holder, self.clock.now()) {
                diagnostic = diagnostic.detail(age);
            }
            diagnostic = diagnostic.hint(if timeout.is_zero() {
                "Wait for it, with --lock-timeout 5m if it may take a while; the lock ends with its process".to_owned()
            } else {
                format!(
                    "It was waited for {}; the lock ends with its process",
                    crate::report::age(timeout)
                )
            });
            Failure::new(diagnostic.hint("Commands that only read need no lock, `plan` and `drift` among them"))
        })
    }
}

/// Since when a lock is held; a holder that didn't sign has no beginning.
fn held(holder: &LockInfo, now: Timestamp) -> Option<String> {
    let since = Timestamp::from(holder.since);
    holder
        .is_signed()
        .then(|| format!("held for {}", crate::report::age(now.since(since))))
}
