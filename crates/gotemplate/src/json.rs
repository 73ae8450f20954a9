//! From JSON to values.

use crate::value::{List, Value};

impl From<serde_json::Value> for Value {
    /// As Go's `encoding/json` decodes into an `any`: every number is a float64, which a template
    /// prints as `1e+06` where it is large, and can't index or range with. Where whole numbers are
    /// to be ints, make [`Value::Int`]s of them.
    fn from(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Nil,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(number) => Self::Float(number.as_f64().unwrap_or_default()),
            serde_json::Value::String(text) => Self::from(text),
            serde_json::Value::Array(items) => Self::List(List::as_decoded_from_json(
                items.into_iter().map(Self::from).collect(),
            )),
            serde_json::Value::Object(entries) => Self::Map(entries.into_iter().collect()),
        }
    }
}
