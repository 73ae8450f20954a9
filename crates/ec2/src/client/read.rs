//! JSON as the values of an SDK.
//!
//! In: JSON. Out: values, or a [`Misfit`] that says where and why. May not: know an operation.

use std::fmt::Write;

use aws_sdk_ec2::error::BuildError;
use aws_sdk_ec2::primitives::{Blob, DateTime, DateTimeFormat};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::{ApiError, ApiErrorKind};

/// A value that doesn't fit, and where it stands.
#[derive(Debug, PartialEq)]
pub(super) struct Misfit {
    /// From the inside out, as it is put together on the way up.
    path: Vec<Step>,
    problem: String,
}

#[derive(Debug, PartialEq)]
enum Step {
    Member(String),
    Item(usize),
}

impl Misfit {
    fn new(problem: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            problem: problem.into(),
        }
    }

    fn expected(wanted: &str, found: &Value) -> Self {
        let found = match found {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => format!("`{value}`"),
            Value::Number(number) => format!("`{number}`"),
            // What a string holds may be secret.
            Value::String(_) => "a string".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        Self::new(format!("expected {wanted}, found {found}"))
    }

    fn within(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }

    /// Such as `NetworkInterfaces[0].Groups`; empty for the input itself.
    fn place(&self) -> String {
        let mut text = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Member(name) if text.is_empty() => text.push_str(name),
                Step::Member(name) => {
                    let _ = write!(text, ".{name}");
                }
                Step::Item(index) => {
                    let _ = write!(text, "[{index}]");
                }
            }
        }
        text
    }
}

impl From<Misfit> for ApiError {
    fn from(misfit: Misfit) -> Self {
        let place = misfit.place();
        let message = if place.is_empty() {
            misfit.problem
        } else {
            format!("`{place}`: {}", misfit.problem)
        };
        Self::new(ApiErrorKind::Input, Self::INVALID_INPUT, message)
    }
}

impl From<BuildError> for Misfit {
    fn from(error: BuildError) -> Self {
        Self::new(error.to_string())
    }
}

/// How a value is read.
type Read<T> = fn(&Value) -> Result<T, Misfit>;

/// The members of a structure, each taken once.
pub(super) struct Members<'v> {
    object: &'v Map<String, Value>,
    taken: Vec<&'static str>,
}

impl<'v> Members<'v> {
    pub(super) fn of(value: &'v Value) -> Result<Self, Misfit> {
        match value {
            Value::Object(object) => Ok(Self {
                object,
                taken: Vec::new(),
            }),
            _ => Err(Misfit::expected("an object", value)),
        }
    }

    /// A member; none if it is absent or null.
    pub(super) fn get<T>(
        &mut self,
        name: &'static str,
        read: Read<T>,
    ) -> Result<Option<T>, Misfit> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        read(value)
            .map(Some)
            .map_err(|misfit| misfit.within(Step::Member(name.to_owned())))
    }

    /// A list whose items are read alike.
    pub(super) fn list<T>(
        &mut self,
        name: &'static str,
        read: Read<T>,
    ) -> Result<Option<Vec<T>>, Misfit> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let within = |misfit: Misfit| misfit.within(Step::Member(name.to_owned()));
        let Value::Array(items) = value else {
            return Err(within(Misfit::expected("a list", value)));
        };
        let items: Result<Vec<T>, Misfit> = items
            .iter()
            .enumerate()
            .map(|(index, item)| read(item).map_err(|misfit| misfit.within(Step::Item(index))))
            .collect();
        items.map(Some).map_err(within)
    }

    fn take(&mut self, name: &'static str) -> Option<&'v Value> {
        let value = self.object.get(name)?;
        self.taken.push(name);
        Some(value).filter(|value| !value.is_null())
    }

    /// That's all of them: whatever else the object has is unknown to `owner`.
    pub(super) fn end(self, owner: &str) -> Result<(), Misfit> {
        if self.taken.len() == self.object.len() {
            return Ok(());
        }
        let unknown = self
            .object
            .keys()
            .find(|key| !self.taken.contains(&key.as_str()));
        Err(Misfit::new(format!(
            "{owner} has no member `{}`",
            unknown.map_or("", String::as_str)
        )))
    }
}

pub(super) fn text(value: &Value) -> Result<String, Misfit> {
    string(value).map(str::to_owned)
}

fn string(value: &Value) -> Result<&str, Misfit> {
    value
        .as_str()
        .ok_or_else(|| Misfit::expected("a string", value))
}

/// One of the values that the API names, or any other: the API may know more than the SDK.
pub(super) fn enumeration<T: for<'a> From<&'a str>>(value: &Value) -> Result<T, Misfit> {
    string(value).map(T::from)
}

pub(super) fn flag(value: &Value) -> Result<bool, Misfit> {
    value
        .as_bool()
        .ok_or_else(|| Misfit::expected("`true` or `false`", value))
}

pub(super) fn whole(value: &Value) -> Result<i32, Misfit> {
    value
        .as_i64()
        .and_then(|number| i32::try_from(number).ok())
        .ok_or_else(|| Misfit::expected("a whole number of 32 bits", value))
}

/// A moment as in RFC 3339.
pub(super) fn time(value: &Value) -> Result<DateTime, Misfit> {
    DateTime::from_str(string(value)?, DateTimeFormat::DateTimeWithOffset)
        .map_err(|_| Misfit::new("expected a time such as `2026-01-31T09:00:00Z`"))
}

/// Bytes in base64.
pub(super) fn blob(value: &Value) -> Result<Blob, Misfit> {
    STANDARD
        .decode(string(value)?)
        .map(Blob::new)
        .map_err(|_| Misfit::new("expected base64"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Disk {
        size: Option<i32>,
        names: Option<Vec<String>>,
    }

    fn disk(value: &Value) -> Result<Disk, Misfit> {
        let mut members = Members::of(value)?;
        let disk = Disk {
            size: members.get("Size", whole)?,
            names: members.list("Names", text)?,
        };
        members.end("Disk")?;
        Ok(disk)
    }

    fn disks(value: &Value) -> Result<Vec<Disk>, Misfit> {
        let mut members = Members::of(value)?;
        let disks = members.list("Disks", disk)?;
        members.end("Input")?;
        Ok(disks.unwrap_or_default())
    }

    #[test]
    fn null_is_absent_and_empty_is_empty() {
        assert_eq!(
            disks(&json!({"Disks": [{"Size": null, "Names": []}, {}]})),
            Ok(vec![
                Disk {
                    size: None,
                    names: Some(Vec::new()),
                },
                Disk {
                    size: None,
                    names: None,
                },
            ])
        );
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        for (value, message) in [
            (json!([]), "expected an object, found a list"),
            (json!({"Disk": 1}), "Input has no member `Disk`"),
            (
                json!({"Disks": {}}),
                "`Disks`: expected a list, found an object",
            ),
            (
                json!({"Disks": [{}, {"Size": "1"}]}),
                "`Disks[1].Size`: expected a whole number of 32 bits, found a string",
            ),
            (
                json!({"Disks": [{"Size": 2_147_483_648_i64}]}),
                "`Disks[0].Size`: expected a whole number of 32 bits, found `2147483648`",
            ),
            (
                json!({"Disks": [{"Size": 1.5}]}),
                "`Disks[0].Size`: expected a whole number of 32 bits, found `1.5`",
            ),
            (
                json!({"Disks": [{"Names": ["a", 2]}]}),
                "`Disks[0].Names[1]`: expected a string, found `2`",
            ),
            (
                json!({"Disks": [{"Colour": "red"}]}),
                "`Disks[0]`: Disk has no member `Colour`",
            ),
        ] {
            let error = ApiError::from(disks(&value).unwrap_err());
            assert_eq!(error.message, message, "{value}");
            assert_eq!(error.kind, ApiErrorKind::Input);
        }
    }

    #[test]
    fn times_and_blobs_are_strings() {
        for (text, seconds) in [
            ("2026-01-31T09:00:00Z", Some(1_769_850_000)),
            ("2026-01-31T10:00:00+01:00", Some(1_769_850_000)),
            ("yesterday", None),
        ] {
            let read = time(&json!(text)).ok().map(|time| time.secs());
            assert_eq!(read, seconds, "{text}");
        }
        assert_eq!(blob(&json!("AP8=")).unwrap().as_ref(), [0, 255]);
        assert!(blob(&json!("AP8")).is_err());
    }
}
