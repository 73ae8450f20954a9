//! Merging as cloud-init merges.
//!
//! In: two values, and [`Mergers`] that say how. Out: one value, or the error that Python would raise.
//! May not: change what it is given.
//!
//! `merge(base, new)` looks at what `base` is, and asks the first merger for that. What no merger is
//! for stays as it is.

mod description;
mod dict;
mod list;

use std::cell::Cell;
use std::sync::Arc;

pub use description::{Described, Merger, Mergers, Method, Settings, describe, describe_value};

use crate::error::{Class, Error};
use crate::value::{Data, Map, Value};

/// What the documentation says and the program doesn't do. Off unless asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Documented {
    /// `allow_delete` deletes keys that the new value doesn't have, as documented, rather than those
    /// that are null in it.
    pub delete_absent: bool,
}

type Merged = Result<Value, Error>;

/// How many values may be merged with others. Aliases can make few lines stand for more than that.
const MOST_STEPS: u32 = 200_000;

/// One merge: who merges, and by which rules.
pub(crate) struct Merge<'m> {
    mergers: &'m Mergers,
    documented: Documented,
    steps: Cell<u32>,
}

impl Mergers {
    /// Merges `new` into `base`.
    pub fn merge(&self, base: &Value, new: &Value, documented: Documented) -> Merged {
        let merge = Merge {
            mergers: self,
            documented,
            steps: Cell::new(0),
        };
        merge.values(base, new)
    }
}

impl Merge<'_> {
    fn values(&self, base: &Value, new: &Value) -> Merged {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS {
            let message = format!("more than {MOST_STEPS} values would be merged");
            return Err(Error::new(Class::Runtime, message));
        }
        let find = |wanted: fn(&Merger) -> bool| self.mergers.list.iter().find(|m| wanted(m));
        let is_list = |merger: &Merger| matches!(merger, Merger::List { .. });
        match &base.data {
            Data::Map(old) => match find(|merger| matches!(merger, Merger::Dict { .. })) {
                Some(merger) => self.dict(merger, base, old, new),
                None => Ok(base.clone()),
            },
            Data::List(old) => match find(is_list) {
                Some(merger) => self.list(merger, base, old, new),
                None => Ok(base.clone()),
            },
            Data::Tuple(old) => match find(is_list) {
                Some(merger) => {
                    let as_list = Value {
                        data: Data::List(Arc::clone(old)),
                        origin: base.origin,
                    };
                    let merged = self.list(merger, &as_list, old, new)?;
                    let items = elements(&merged, "a tuple can't be made of")?;
                    Ok(Value {
                        data: Data::Tuple(Arc::new(items)),
                        origin: merged.origin,
                    })
                }
                None => Ok(base.clone()),
            },
            Data::Text(old) => match find(|merger| matches!(merger, Merger::Str { .. })) {
                Some(Merger::Str { append: true }) => match &new.data {
                    Data::Text(more) => Ok(Value {
                        data: Data::Text(old.joined(more)),
                        origin: new.origin,
                    }),
                    _ => Err(Error::new(
                        Class::Type,
                        format!("{} can't be appended to a string", new.type_name()),
                    )
                    .at(new.origin.line)),
                },
                Some(_) => Ok(new.clone()),
                None => Ok(base.clone()),
            },
            _ => Ok(base.clone()),
        }
    }
}

/// What Python iterates over.
fn elements(value: &Value, what: &str) -> Result<Vec<Value>, Error> {
    let of_points = |points: Vec<u32>| {
        let one = |point: u32| {
            let text = match char::from_u32(point) {
                Some(char) => crate::yaml::Text::Utf8(char.into()),
                None => crate::yaml::Text::Points(vec![point]),
            };
            Value {
                data: Data::Text(text),
                origin: value.origin,
            }
        };
        points.into_iter().map(one).collect()
    };
    let keys = |map: &Map| map.iter().map(|(key, _)| key.clone()).collect();
    Ok(match &value.data {
        Data::List(items) | Data::Tuple(items) => items.to_vec(),
        Data::Map(map) | Data::Set(map) => keys(map),
        Data::Text(text) => of_points(text.points()),
        Data::Bytes(bytes) => bytes
            .iter()
            .map(|byte| Value {
                data: Data::Int((*byte).into()),
                origin: value.origin,
            })
            .collect(),
        _ => {
            let message = format!("{what} {}", value.type_name());
            return Err(Error::new(Class::Type, message).at(value.origin.line));
        }
    })
}
