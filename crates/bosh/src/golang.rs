//! Values as the messages of bosh-cli show them: Go's `%T` and `%v`.

use crate::value::{Data, Value};

/// The name of a value's type in Go, after yaml.v2 decoded it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match &value.data {
        Data::Null => "<nil>",
        Data::Bool(_) => "bool",
        Data::Integer(value) if i64::try_from(*value).is_ok() => "int",
        Data::Integer(_) => "uint64",
        Data::Float(_) => "float64",
        Data::String(_) => "string",
        Data::List(_) => "[]interface {}",
        Data::Map(_) => "map[interface {}]interface {}",
    }
}

/// The text of a value.
pub(crate) fn text(value: &Value) -> String {
    match &value.data {
        Data::Null => "<nil>".to_owned(),
        Data::Bool(value) => value.to_string(),
        Data::Integer(value) => value.to_string(),
        Data::Float(value) => float(*value),
        Data::String(text) => text.to_string(),
        Data::List(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(" "))
        }
        Data::Map(entries) => {
            let entries = entries.iter();
            let mut entries: Vec<String> = entries
                .map(|entry| format!("{}:{}", text(&entry.key), text(&entry.value)))
                .collect();
            entries.sort();
            format!("map[{}]", entries.join(" "))
        }
    }
}

fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 || (1e-4..1e21).contains(&value.abs()) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.strip_prefix('-') {
        Some(digits) => format!("{mantissa}e-{digits:0>2}"),
        None => format!("{mantissa}e+{exponent:0>2}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::value::Place;

    #[test]
    fn values_are_shown_as_go_formats_them() {
        for (json, type_of, shown) in [
            (json!(null), "<nil>", "<nil>"),
            (json!(true), "bool", "true"),
            (json!(-3), "int", "-3"),
            (json!(u64::MAX), "uint64", "18446744073709551615"),
            (json!(1.0), "float64", "1"),
            (json!(1e21), "float64", "1e+21"),
            (json!(1.5e-7), "float64", "1.5e-07"),
            (json!("a b"), "string", "a b"),
            (json!([1, ["x"]]), "[]interface {}", "[1 [x]]"),
            (
                json!({"b": 1, "a": {}}),
                "map[interface {}]interface {}",
                "map[a:map[] b:1]",
            ),
        ] {
            let value = Value::from_json(&json, Place::default());
            assert_eq!((type_name(&value), text(&value).as_str()), (type_of, shown));
        }
    }
}
