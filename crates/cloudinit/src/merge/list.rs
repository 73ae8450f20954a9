//! Lists.

use num_traits::ToPrimitive as _;

use super::{Merge, Merged, Merger, Method, elements};
use crate::error::{Class, Error};
use crate::value::{Data, Value};

impl Merge<'_> {
    pub(super) fn list(&self, merger: &Merger, base: &Value, old: &[Value], new: &Value) -> Merged {
        let Merger::List {
            method,
            recurse_str,
            recurse_list,
            recurse_dict,
        } = merger
        else {
            return Ok(base.clone());
        };
        let made = |items: Vec<Value>| Value {
            origin: base.origin,
            ..Value::from(items)
        };
        match method {
            Method::Append => {
                let mut items = old.to_vec();
                items.extend(elements(new, "what is appended can't be")?);
                Ok(made(items))
            }
            Method::Prepend => {
                let mut items = elements(new, "what is prepended can't be")?;
                items.extend_from_slice(old);
                Ok(made(items))
            }
            Method::NoReplace => {
                check_indices(old.len(), new)?;
                Ok(base.clone())
            }
            Method::Replace => {
                let Some(theirs) = new.as_sequence() else {
                    return Ok(new.clone());
                };
                let mut items = old.to_vec();
                // What of the new list is longer is lost.
                for (item, theirs) in items.iter_mut().zip(theirs) {
                    let recurses = match &theirs.data {
                        Data::List(_) | Data::Tuple(_) => *recurse_list,
                        Data::Text(_) => *recurse_str,
                        Data::Map(_) => *recurse_dict,
                        _ => false,
                    };
                    *item = if recurses {
                        self.values(item, theirs)?
                    } else {
                        theirs.clone()
                    };
                }
                Ok(made(items))
            }
        }
    }
}

/// Python asks for the new value's length, and for each of its elements by index, even where it keeps
/// the old ones.
fn check_indices(length: usize, new: &Value) -> Result<(), Error> {
    let wrong = |class, message: String| Err(Error::new(class, message).at(new.origin.line));
    let what = new.type_name();
    match &new.data {
        Data::List(_) | Data::Tuple(_) | Data::Text(_) | Data::Bytes(_) => Ok(()),
        Data::Set(set) if set.is_empty() || length == 0 => Ok(()),
        Data::Set(_) => wrong(Class::Type, "a set can't be merged into a list".to_owned()),
        Data::Map(map) => {
            let has = |index: usize| map.get(&Value::new(Data::Int(index.into()))).is_some();
            match (0..length.min(map.len())).find(|index| !has(*index)) {
                None => Ok(()),
                Some(index) => {
                    let index = index.to_u64().unwrap_or_default();
                    let message =
                        format!("a mapping without the key {index} can't be merged into a list");
                    wrong(Class::Key, message)
                }
            }
        }
        _ => wrong(Class::Type, format!("{what} can't be merged into a list")),
    }
}
