//! Fields: what `.Name` means on each kind of value.

use super::failure::{Failure, Step};
use super::found::At;
use super::item::{Held, Item};
use crate::environment::{MissingKey, nearest};
use crate::map::MapKind;
use crate::number::parse_float;
use crate::quote::quoted;
use crate::value::{Text, Value};

/// A field of a value: a part of it, or made for the purpose.
enum Found<'v> {
    Part(&'v Value, bool),
    Made(Value, bool),
}

/// Follows a path where all of it is there, which is the usual case: the value, and whether Go sees
/// it through an interface. None says no more than that [`follow`] has to tell.
pub(super) fn present<'v, 'p>(
    receiver: &'v Value,
    path: impl Iterator<Item = &'p str>,
) -> Option<(&'v Value, bool)> {
    let mut found = (receiver, false);
    for name in path {
        found = match found.0 {
            Value::Struct(fields) => {
                let value = fields.get(name)?;
                (value, matches!(value, Value::Nil))
            }
            Value::Map(map) => (map.get(name)?, map.kind() != MapKind::String),
            _ => return None,
        };
    }
    Some(found)
}

/// Follows a path of fields. `arguments` says whether the last one was given arguments.
pub(super) fn follow<'d>(
    mut receiver: Item<'d>,
    path: impl Iterator<Item = &'d str>,
    arguments: bool,
    missing_key: MissingKey,
) -> Step<Item<'d>> {
    let mut path = path.enumerate().peekable();
    while let Some((index, name)) = path.next() {
        let arguments = arguments && path.peek().is_none();
        let interface = receiver.interface;
        let step = Lookup {
            name,
            arguments,
            missing_key,
            interface,
        };
        let told = |failure: Failure, value: &Value| failure.having_found(At::Fields(index), value);
        receiver = match receiver.held {
            Held::Borrowed(value) => {
                match step.of(value).map_err(|failure| told(failure, value))? {
                    Found::Part(value, interface) => {
                        Item::borrowed(value).through_interface(interface)
                    }
                    Found::Made(value, interface) => {
                        Item::owned(value).through_interface(interface)
                    }
                }
            }
            Held::Owned(value) => {
                let (value, interface) =
                    match step.of(&value).map_err(|failure| told(failure, &value))? {
                        Found::Part(value, interface) => (value.clone(), interface),
                        Found::Made(value, interface) => (value, interface),
                    };
                Item::owned(value).through_interface(interface)
            }
        };
    }
    Ok(receiver)
}

/// One step of a path.
struct Lookup<'n> {
    name: &'n str,
    arguments: bool,
    missing_key: MissingKey,
    /// Go sees the receiver through an interface.
    interface: bool,
}

impl Lookup<'_> {
    fn of<'v>(&self, receiver: &'v Value) -> Step<Found<'v>> {
        let name = self.name;
        match receiver {
            Value::Struct(fields) => match fields.get(name) {
                Some(_) if self.arguments => Err(Failure::new(format!(
                    "{name} has arguments but cannot be invoked as function"
                ))),
                // A field that holds nil can only be of an interface's type.
                Some(value) => Ok(Found::Part(value, matches!(value, Value::Nil))),
                None => Err(self.no_field(receiver)),
            },
            Value::Map(_) | Value::Dict(_) | Value::Unset if self.arguments => Err(Failure::new(
                format!("{name} is not a method but has arguments"),
            )),
            Value::Map(map) => match map.get(name) {
                Some(value) => Ok(Found::Part(value, map.kind() != MapKind::String)),
                None if map.kind() == MapKind::Lenient => Ok(Found::Made(Value::Unset, false)),
                None => match self.missing_key {
                    MissingKey::Default => Ok(Found::Made(Value::Missing, false)),
                    MissingKey::Zero if map.is_string_typed() => {
                        Ok(Found::Made(Value::from(""), false))
                    }
                    MissingKey::Zero => Ok(Found::Made(Value::Nil, true)),
                    MissingKey::Error => {
                        let names = map.entries().iter();
                        let names =
                            names.filter_map(|(key, _)| std::str::from_utf8(key.as_bytes()).ok());
                        let hint = suggestion(name, names);
                        let go = format!("map has no entry for key {}", quoted(name));
                        Err(Failure::new(go).with_hint(hint))
                    }
                },
            },
            Value::Dict(dict) => match self.of(&Value::Map(dict.map()))? {
                Found::Part(value, interface) => Ok(Found::Made(value.clone(), interface)),
                Found::Made(value, interface) => Ok(Found::Made(value, interface)),
            },
            Value::Missing if self.missing_key == MissingKey::Error => Err(Failure::new(format!(
                "nil data; no entry for key {}",
                quoted(name)
            ))),
            Value::Missing => Ok(Found::Made(Value::Missing, false)),
            Value::Nil => Err(Failure::new(format!(
                "nil pointer evaluating interface {{}}.{name}"
            ))
            .with_message(format!("the value that `.{name}` is read of is null"))),
            Value::Unset => Ok(Found::Made(Value::Unset, false)),
            Value::Unknown(_) => Ok(Found::Part(receiver, false)),
            Value::Number(text) => self.number_method(receiver, text),
            _ => Err(self.no_field(receiver)),
        }
    }

    /// The methods of `json.Number`.
    fn number_method<'v>(&self, receiver: &Value, text: &Text) -> Step<Found<'v>> {
        let shown = String::from_utf8_lossy(text.as_bytes());
        let value = match self.name {
            "String" => Some(Value::Str(text.clone())),
            "Int64" => shown.parse().ok().map(Value::Int),
            "Float64" => parse_float(&shown).map(Value::Float),
            _ => return Err(self.no_field(receiver)),
        };
        if self.arguments {
            return Err(Failure::new(format!(
                "wrong number of args for {}: want 0",
                self.name
            )));
        }
        let name = self.name;
        value.map(|value| Found::Made(value, false)).ok_or_else(|| {
            Failure::of_function(format!(
                "error calling {name}: parsing {}: invalid syntax",
                quoted(&shown)
            ))
        })
    }

    fn no_field(&self, receiver: &Value) -> Failure {
        let name = self.name;
        let go_type = if self.interface {
            "interface {}".to_owned()
        } else {
            receiver.go_type()
        };
        let failure = Failure::new(format!("can't evaluate field {name} in type {go_type}"));
        match receiver {
            Value::Struct(fields) => {
                let owner = fields.struct_type();
                let hint = suggestion(name, owner.fields()).or_else(|| {
                    let fields: Vec<&str> = owner.fields().collect();
                    (!fields.is_empty()).then(|| format!("its fields are {}", fields.join(", ")))
                });
                let owner = if owner.name().is_empty() {
                    "the value".to_owned()
                } else {
                    format!("`{}`", owner.name())
                };
                failure
                    .with_message(format!("{owner} has no field `{name}`"))
                    .with_hint(hint)
            }
            other => {
                let what = describe(other);
                failure.with_message(format!("{what} has no field `{name}`"))
            }
        }
    }
}

fn suggestion<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    nearest(name, known).map(|near| format!("did you mean `{near}`?"))
}

/// What a value is, for people.
fn describe(value: &Value) -> &'static str {
    match value {
        Value::Nil | Value::Missing => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Int(_)
        | Value::Int64(_)
        | Value::Uint8(_)
        | Value::Float(_)
        | Value::Complex(..)
        | Value::Number(_) => "a number",
        Value::Str(_) | Value::Unset => "a string",
        Value::List(_) => "a list",
        Value::Map(_) | Value::Dict(_) => "a map",
        Value::Struct(_) => "a struct",
        Value::Unknown(_) => "an unknown value",
    }
}
