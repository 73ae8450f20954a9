//! Merging as `nstance` does it: what most people expect, and what no mergers of cloud-init can say.
//!
//! In: two values. Out: one. May not: look at what they say of merging.
//!
//! Mappings are merged key by key, at any depth. A list gets the entries of the later list that it
//! doesn't have yet, in their order. Anything else, null too, takes the place of what was there, as
//! do two values of different kinds. In the top-level `users` entries of one `name` are merged, and
//! in the top-level `write_files` those of one `path`.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use crate::error::{Class, Error};
use crate::value::{Data, Map, Value};

/// How many values may be looked at. Aliases can make few lines stand for more than that.
const MOST_STEPS: u32 = 500_000;
/// Long texts count for several.
const BYTES_OF_A_STEP: usize = 64;

/// Merges `new` into `base`.
pub fn merge(base: &Value, new: &Value) -> Result<Value, Error> {
    let mut merge = Merge { steps: 0 };
    let (Data::Map(old), Data::Map(theirs)) = (&base.data, &new.data) else {
        return merge.values(base, new);
    };
    let mut merged = (**old).clone();
    for (key, value) in theirs.iter() {
        let value = match (merged.get(key), key.as_str()) {
            (None, _) => value.clone(),
            (Some(old), Some("users")) => merge.keyed(old, value, user, Merge::values)?,
            (Some(old), Some("write_files")) => merge.keyed(old, value, file, Merge::files)?,
            (Some(old), _) => merge.values(old, value)?,
        };
        merged.insert(key.clone(), value);
    }
    Ok(Value {
        origin: base.origin,
        ..Value::from(merged)
    })
}

struct Merge {
    steps: u32,
}

type Merged = Result<Value, Error>;

impl Merge {
    fn step(&mut self) -> Result<(), Error> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            let message = format!("more than {MOST_STEPS} values would be looked at");
            return Err(Error::new(Class::Runtime, message));
        }
        Ok(())
    }

    fn values(&mut self, base: &Value, new: &Value) -> Merged {
        self.step()?;
        match (&base.data, &new.data) {
            (Data::Map(old), Data::Map(theirs)) => {
                let mut merged = (**old).clone();
                for (key, value) in theirs.iter() {
                    let value = match merged.get(key) {
                        None => value.clone(),
                        Some(old) => self.values(old, value)?,
                    };
                    merged.insert(key.clone(), value);
                }
                Ok(Value {
                    origin: base.origin,
                    ..Value::from(merged)
                })
            }
            (Data::List(old) | Data::Tuple(old), Data::List(theirs) | Data::Tuple(theirs)) => {
                let known = self.prints(old)?;
                let mut items = old.to_vec();
                for item in theirs.iter() {
                    if !known.contains(&self.print(item)?) {
                        items.push(item.clone());
                    }
                }
                Ok(Value {
                    origin: base.origin,
                    ..Value::from(items)
                })
            }
            _ => Ok(new.clone()),
        }
    }

    /// Two lists whose entries have names: those of one name are merged.
    fn keyed(
        &mut self,
        base: &Value,
        new: &Value,
        name: fn(&Value) -> Option<&str>,
        both: fn(&mut Self, &Value, &Value) -> Merged,
    ) -> Merged {
        let (Data::List(old), Data::List(theirs)) = (&base.data, &new.data) else {
            return self.values(base, new);
        };
        let known = self.prints(old)?;
        let mut items = old.to_vec();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (index, item) in old.iter().enumerate() {
            if let Some(name) = name(item) {
                places.entry(name).or_insert(index);
            }
        }
        for item in theirs.iter() {
            match name(item).and_then(|name| places.get(name)) {
                Some(place) => items[*place] = entry(self, &items[*place], item, both)?,
                None if known.contains(&self.print(item)?) => {}
                None => items.push(item.clone()),
            }
        }
        Ok(Value {
            origin: base.origin,
            ..Value::from(items)
        })
    }

    /// Two entries of `write_files` for one path. What a file holds is said by several keys, which
    /// go together.
    fn files(&mut self, base: &Value, new: &Value) -> Merged {
        let holds = ["content", "source"];
        let (Data::Map(old), Data::Map(theirs)) = (&base.data, &new.data) else {
            return self.values(base, new);
        };
        if !holds.iter().any(|key| theirs.named(key).is_some()) {
            return self.values(base, new);
        }
        let mut without = (**old).clone();
        for key in holds.iter().chain(&["encoding"]) {
            let key = Value::from(*key);
            match theirs.get(&key) {
                // A key that stays keeps its place.
                Some(value) if without.get(&key).is_some() => {
                    without.insert(key, value.clone());
                }
                _ => {
                    without.remove(&key);
                }
            }
        }
        let base = Value {
            origin: base.origin,
            ..Value::from(without)
        };
        self.values(&base, new)
    }

    fn prints(&mut self, items: &[Value]) -> Result<HashSet<String>, Error> {
        items.iter().map(|item| self.print(item)).collect()
    }

    /// A text that two values share if they are the same: in type too, unlike in Python.
    fn print(&mut self, value: &Value) -> Result<String, Error> {
        let mut text = String::new();
        self.print_into(value, &mut text)?;
        Ok(text)
    }

    fn print_into(&mut self, value: &Value, text: &mut String) -> Result<(), Error> {
        self.step()?;
        match &value.data {
            Data::List(items) | Data::Tuple(items) => {
                text.push('[');
                for item in items.iter() {
                    self.print_into(item, text)?;
                    text.push(',');
                }
                text.push(']');
            }
            Data::Map(map) | Data::Set(map) => {
                let is_set = matches!(value.data, Data::Set(_));
                let mut entries = Vec::new();
                for (key, value) in map.iter() {
                    let mut entry = self.print(key)?;
                    if !is_set {
                        entry.push(':');
                        self.print_into(value, &mut entry)?;
                    }
                    entries.push(entry);
                }
                entries.sort();
                text.push_str(if is_set { "!{" } else { "{" });
                text.push_str(&entries.join(","));
                text.push('}');
            }
            scalar => {
                let before = text.len();
                let _ = write!(text, "{scalar:?}");
                self.steps += ((text.len() - before) / BYTES_OF_A_STEP) as u32;
            }
        }
        Ok(())
    }
}

/// Merges two entries of one name. A name alone is an entry that says nothing more.
fn entry(
    merge: &mut Merge,
    base: &Value,
    new: &Value,
    both: fn(&mut Merge, &Value, &Value) -> Merged,
) -> Merged {
    match (&base.data, &new.data) {
        (Data::Map(_), Data::Text(_)) => Ok(base.clone()),
        (Data::Map(_), Data::Map(_)) => both(merge, base, new),
        _ => Ok(new.clone()),
    }
}

/// A user is a mapping with a name, or the name alone.
fn user(value: &Value) -> Option<&str> {
    match &value.data {
        Data::Map(map) => map.named("name")?.as_str(),
        _ => value.as_str(),
    }
}

/// A file by its path. One that is appended to a file is none by itself: several may name the same.
fn file(value: &Value) -> Option<&str> {
    let map: &Map = value.as_map()?;
    let appends = map
        .named("append")
        .is_some_and(|append| !matches!(append.data, Data::Null | Data::Bool(false)));
    map.named("path")?.as_str().filter(|_| !appends)
}
