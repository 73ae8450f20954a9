//! Obtains the key of a state.
//!
//! In: [`Keys`], which the caller implements. Out: the right key, or why it is missing. Must not:
//! ask for a key before it is required, since deriving one from a passphrase is slow.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{KeyError, Result, StateError};
use crate::row_crypto::RowCrypto;
use crate::seal::{Key, KeyId, KeyNeed};
use crate::sql::{self, Sql};

/// A source of keys.
pub trait Keys: Send + Sync {
    /// The required key. If it returns another one, that is rejected.
    ///
    /// Fails if it doesn't have the key.
    fn find(&self, needed: &KeyNeed) -> Result<Key, KeyError>;
}

/// A source with a single key.
impl Keys for Key {
    fn find(&self, _: &KeyNeed) -> Result<Key, KeyError> {
        Ok(self.clone())
    }
}

/// The source of keys for an open state, and the last key used.
#[derive(Default)]
pub(crate) struct KeyRing {
    keys: Option<Arc<dyn Keys>>,
    last: Mutex<Option<Key>>,
}

impl KeyRing {
    pub(crate) fn new(keys: Arc<dyn Keys>) -> Self {
        let (keys, last) = (Some(keys), Mutex::default());
        Self { keys, last }
    }

    /// The cipher for the rows that `sql` sees. Must be called within the transaction that
    /// reads or writes them, since another process may change the key.
    ///
    /// Fails if the key is missing.
    pub(crate) fn crypto(&self, sql: &dyn Sql, path: &Path) -> Result<RowCrypto> {
        let (need, lineage) = need(sql).map_err(|error| StateError::sql(path, error))?;
        match need {
            None => Ok(RowCrypto::clear()),
            Some(need) => Ok(RowCrypto::new(self.key(&need, path)?, lineage)),
        }
    }

    fn key(&self, need: &KeyNeed, path: &Path) -> Result<Key> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = last.as_ref().filter(|key| key.id() == need.id) {
            return Ok(key.clone());
        }
        let refused = |reason: KeyError| StateError::NoKey {
            path: path.to_owned(),
            needed: need.id,
            reason,
        };
        let Some(keys) = &self.keys else {
            let why = "no key was given".to_owned();
            return Err(refused(KeyError { why, hint: None }));
        };
        let key = keys.find(need).map_err(refused)?;
        if key.id() != need.id {
            let why = format!("the key given is {}", key.id());
            return Err(refused(KeyError { why, hint: None }));
        }
        *last = Some(key.clone());
        Ok(key)
    }

    /// Caches the new key of a state.
    pub(crate) fn remember(&self, key: Key) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyRing")
    }
}

/// The required key of a state, and its lineage.
///
/// Fails if the state can't be read.
pub(crate) fn need(sql: &dyn Sql) -> sql::Result<(Option<KeyNeed>, String)> {
    sql.one(
        "SELECT key_id, derivation, lineage FROM meta WHERE id = 1",
        &[],
        |row| {
            let id: Option<[u8; 8]> = row.get(0)?;
            let derivation: Option<String> = row.get(1)?;
            let derivation = derivation.map(|text| text.parse()).transpose();
            let derivation = derivation.map_err(|error| sql::unreadable(1, error))?;
            let need = id.map(|id| KeyNeed {
                id: KeyId(id),
                derivation,
            });
            Ok((need, row.get(2)?))
        },
    )
}
