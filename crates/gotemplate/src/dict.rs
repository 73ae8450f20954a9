//! Maps that templates make, and may change: Sprig's `dict` and `set`.
//!
//! In: entries. Out: a [`Dict`], all of whose clones are one and the same map. What a caller hands
//! to a template is a [`Map`](crate::Map), which never changes; a dict lives as long as the
//! execution that made it. A dict can't be made to contain itself.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::function::{Budget, FunctionError};
use crate::map::Map;
use crate::value::{Text, Value};

/// A map that can be changed; its clones are the same map.
#[derive(Clone)]
pub struct Dict(Arc<Mutex<Map>>);

impl Dict {
    /// A dict with these entries.
    pub fn new(map: Map) -> Self {
        Self(Arc::new(Mutex::new(map.of_any())))
    }

    fn lock(&self) -> MutexGuard<'_, Map> {
        // No change of a map can stop halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries as they are now; later changes don't show.
    pub fn map(&self) -> Map {
        self.lock().clone()
    }

    /// Whether both are the same dict, not only equal.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sets a key's value, unless that contains this dict; the budget pays for looking.
    pub fn set(&self, budget: &mut Budget, key: Text, value: Value) -> Result<(), FunctionError> {
        if self.is_within(budget, &value)? {
            return Err(FunctionError::new("the dict would contain itself"));
        }
        // What was there is dropped after the lock is released: it may lead to this dict.
        let mut map = self.lock();
        budget.charge(map.len() / 16)?;
        let previous = map.insert(key, value);
        drop(map);
        drop(previous);
        Ok(())
    }

    /// Takes a key away.
    pub fn unset(&self, key: &[u8]) {
        let previous = self.lock().remove(key);
        drop(previous);
    }

    /// Whether a value is this dict or contains it.
    fn is_within(&self, budget: &mut Budget, value: &Value) -> Result<bool, FunctionError> {
        let mut seen = HashSet::new();
        let mut pending = vec![value.clone()];
        while let Some(value) = pending.pop() {
            let before = pending.len();
            match &value {
                Value::Dict(dict) if self.is(dict) => return Ok(true),
                Value::Dict(dict) if seen.insert(Arc::as_ptr(&dict.0)) => {
                    let map = dict.map();
                    pending.extend(map.entries().iter().map(|(_, value)| value.clone()));
                }
                Value::List(list) if list.has_dicts() => {
                    pending.extend(list.items().iter().cloned());
                }
                Value::Map(map) if map.has_dicts() => {
                    pending.extend(map.entries().iter().map(|(_, value)| value.clone()));
                }
                Value::Struct(fields) => pending.extend(fields.values().iter().cloned()),
                _ => {}
            }
            budget.charge(1 + (pending.len() - before) * 2)?;
        }
        Ok(false)
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.map().fmt(formatter)
    }
}
