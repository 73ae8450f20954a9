//! Execution, on any template and any data, under tight limits: no panic, no more output than is
//! allowed, and an end. That it ends soon and with little memory is for `-timeout` and
//! `-rss_limit_mb` to see.
//!
//! In: the first byte chooses how keys that are missing and data are taken; then a template, a zero
//! byte, and the data in JSON. Without a zero byte there are some data anyway.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nstance_gotemplate::{
    Environment, ExecErrorKind, Limits, List, Map, MissingKey, Struct, StructType, Template, Value,
};
use serde_json::Value as Json;

const DATA: &str =
    r#"{"A": "text", "B": [1, 2.5, null, "é"], "C": {"D": {"E": true}, "F": "\u0000"}, "N": -7}"#;
const LIMITS: Limits = Limits {
    steps: 20_000,
    output_bytes: 1 << 16,
    template_depth: 500,
    nesting: 500,
    printf_width: 5_000,
};

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else {
        return;
    };
    let Ok(input) = std::str::from_utf8(input) else {
        return;
    };
    let (text, data) = input.split_once('\0').unwrap_or((input, DATA));
    let missing_key = match choice % 4 {
        0 | 1 => MissingKey::Default,
        2 => MissingKey::Zero,
        _ => MissingKey::Error,
    };
    let environment = Environment::new()
        .with_missing_key(missing_key)
        .with_limits(LIMITS);
    let Ok(template) = Template::parse("t", text, &environment) else {
        return;
    };
    let Ok(data) = serde_json::from_str(data) else {
        return;
    };
    let data = value(&data, Shape::of(choice / 4));
    let mut output = Vec::new();
    if let Err(error) = template.render_into(&data, &mut output) {
        assert!(text.is_char_boundary(error.offset), "{error}");
        assert!(!error.message.is_empty() && !error.go_message().is_empty());
        if let ExecErrorKind::Limit(name) = error.kind() {
            assert!(!name.is_empty());
        }
    }
    assert!(output.len() <= LIMITS.output_bytes, "{}", output.len());
    // The same again: nothing depends on what went before.
    let mut again = Vec::new();
    let _ = template.render_into(&data, &mut again);
    assert_eq!(output, again);
});

/// What becomes of JSON.
#[derive(Clone, Copy)]
enum Shape {
    Plain,
    Lenient,
    Structs,
    WithUnknowns,
    NumbersAsText,
}

impl Shape {
    fn of(choice: u8) -> Self {
        match choice % 5 {
            0 => Self::Plain,
            1 => Self::Lenient,
            2 => Self::Structs,
            3 => Self::WithUnknowns,
            _ => Self::NumbersAsText,
        }
    }
}

fn value(json: &Json, shape: Shape) -> Value {
    match json {
        Json::Null if matches!(shape, Shape::WithUnknowns) => Value::unknown("known after apply"),
        Json::Null => Value::Nil,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) if matches!(shape, Shape::NumbersAsText) => {
            Value::Number(number.to_string().into())
        }
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => {
            let items = items.iter().map(|item| value(item, shape)).collect();
            Value::List(match shape {
                Shape::Structs => List::of_strings(items),
                _ => List::as_decoded_from_json(items),
            })
        }
        Json::Object(entries) if matches!(shape, Shape::Structs) => {
            let struct_type = StructType::new("", entries.keys());
            let values = entries.values().map(|part| value(part, shape)).collect();
            Value::Struct(Struct::new(struct_type, values))
        }
        Json::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, part)| (key.as_str(), value(part, shape)));
            let map: Map = entries.collect();
            Value::Map(match shape {
                Shape::Lenient => map.lenient(),
                _ => map,
            })
        }
    }
}
