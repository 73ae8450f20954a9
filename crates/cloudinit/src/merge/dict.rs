//! Dictionaries.

use std::sync::Arc;

use super::{Merge, Merged, Merger, Method};
use crate::value::{Data, Map, Value};

impl Merge<'_> {
    pub(super) fn dict(&self, merger: &Merger, base: &Value, old: &Map, new: &Value) -> Merged {
        let Merger::Dict {
            method,
            recurse_str,
            recurse_list,
            allow_delete,
        } = merger
        else {
            return Ok(base.clone());
        };
        let Data::Map(new) = &new.data else {
            return Ok(base.clone());
        };
        let mut merged = old.clone();
        if *allow_delete && self.documented.delete_absent {
            for (key, _) in old.iter().filter(|(key, _)| new.get(key).is_none()) {
                merged.remove(key);
            }
        }
        for (key, theirs) in new.iter() {
            let Some(ours) = merged.get(key) else {
                merged.insert(key.clone(), theirs.clone());
                continue;
            };
            if theirs.is_null() && *allow_delete && !self.documented.delete_absent {
                merged.remove(key);
                continue;
            }
            let recurses = match &theirs.data {
                Data::List(_) | Data::Tuple(_) => *recurse_list,
                Data::Text(_) => *recurse_str,
                Data::Map(_) => true,
                _ => false,
            };
            let value = match method {
                Method::Replace => theirs.clone(),
                _ if recurses => self.values(ours, theirs)?,
                _ => continue,
            };
            merged.insert(key.clone(), value);
        }
        Ok(Value {
            data: Data::Map(Arc::new(merged)),
            origin: base.origin,
        })
    }
}
