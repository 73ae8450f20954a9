//! From `gtmpl_value`'s values to ours.

use crate::map::Map;
use crate::value::Value;

impl From<gtmpl_value::Value> for Value {
    /// Objects and maps become maps; a function, which has no counterpart, becomes nil.
    fn from(value: gtmpl_value::Value) -> Self {
        match value {
            gtmpl_value::Value::NoValue => Self::Missing,
            gtmpl_value::Value::Nil | gtmpl_value::Value::Function(_) => Self::Nil,
            gtmpl_value::Value::Bool(value) => Self::Bool(value),
            gtmpl_value::Value::String(text) => Self::from(text),
            gtmpl_value::Value::Object(entries) | gtmpl_value::Value::Map(entries) => {
                Self::Map(Map::from_iter(entries))
            }
            gtmpl_value::Value::Array(items) => Self::from(items),
            gtmpl_value::Value::Number(number) => number
                .as_i64()
                .map(Self::Int)
                .or_else(|| number.as_f64().map(Self::Float))
                .unwrap_or_default(),
        }
    }
}
