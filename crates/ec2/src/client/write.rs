//! The values of an SDK as JSON.
//!
//! In: values. Out: JSON. May not: know an operation.
#![expect(
    clippy::ptr_arg,
    clippy::trivially_copy_pass_by_ref,
    reason = "all of them are called through one type of function"
)]

use aws_sdk_ec2::primitives::{DateTime, DateTimeFormat};
use serde_json::{Map, Value};

/// How a value is written.
type Write<T> = fn(&T) -> Value;

/// An object in the making.
pub(super) struct Object(Map<String, Value>);

impl Object {
    pub(super) fn new() -> Self {
        Self(Map::new())
    }

    /// Adds a member if it is set.
    pub(super) fn put<T>(&mut self, name: &str, value: Option<&T>, write: Write<T>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), write(value));
        }
    }

    /// Adds a list if it is set.
    pub(super) fn list<T>(&mut self, name: &str, items: Option<&Vec<T>>, write: Write<T>) {
        if let Some(items) = items {
            let items = items.iter().map(write).collect();
            self.0.insert(name.to_owned(), Value::Array(items));
        }
    }

    pub(super) fn end(self) -> Value {
        Value::Object(self.0)
    }
}

/// The answer of an operation that has none.
pub(super) fn nothing() -> Value {
    Value::Object(Map::new())
}

pub(super) fn text(value: &String) -> Value {
    Value::String(value.clone())
}

/// A value that the API names, as it came, known or not.
pub(super) fn enumeration<T: AsRef<str>>(value: &T) -> Value {
    Value::String(value.as_ref().to_owned())
}

pub(super) fn flag(value: &bool) -> Value {
    Value::Bool(*value)
}

pub(super) fn whole(value: &i32) -> Value {
    Value::from(*value)
}

pub(super) fn long(value: &i64) -> Value {
    Value::from(*value)
}

/// JSON has no infinite numbers, and no API of these sends them.
pub(super) fn number(value: &f64) -> Value {
    Value::from(*value)
}

/// A moment as in RFC 3339, in UTC.
pub(super) fn time(value: &DateTime) -> Value {
    // Years beyond 9999 can't be written; none is told apart from another.
    value
        .fmt(DateTimeFormat::DateTime)
        .map_or(Value::Null, Value::String)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_unset_is_absent() {
        let mut object = Object::new();
        object.put("Text", Some(&"a".to_owned()), text);
        object.put("Absent", None, flag);
        object.put("Number", Some(&0), whole);
        object.list("Empty", Some(&Vec::new()), flag);
        object.list("None", None, flag);
        assert_eq!(
            object.end().to_string(),
            r#"{"Text":"a","Number":0,"Empty":[]}"#
        );
    }

    #[test]
    fn times_are_in_utc() {
        for (time_given, wanted) in [
            (DateTime::from_secs(1_769_850_000), "2026-01-31T09:00:00Z"),
            (
                DateTime::from_millis(1_769_850_000_250),
                "2026-01-31T09:00:00.25Z",
            ),
        ] {
            assert_eq!(time(&time_given), json!(wanted));
        }
    }
}
