//! Encodings: of bytes, of JSON, of YAML. Come in: values, or text. Go out: text as Go writes it, or what was read from it.

mod charset;
mod gzip;
mod pages;
mod yaml;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{CallError, Parameter, Signature, text};
use crate::context::{Context, LimitReached};
use crate::value::{Kind, Value};

pub(super) fn signatures() -> Vec<Signature> {
    let one = |name, body| Signature::new(name, [Parameter::string("str")], body);
    vec![
        one("base64decode", base64_decode),
        one("base64encode", |_, arguments| {
            Ok(STANDARD.encode(text(arguments, 0)?).into())
        }),
        one("urlencode", |context, arguments| {
            let text = text(arguments, 0)?;
            context.charge_bytes(text.len().saturating_mul(3))?;
            Ok(url_encode(text).into())
        }),
        Signature::new(
            "jsonencode",
            [Parameter::any("val").or_null()],
            |context, arguments| {
                let mut json = String::new();
                write_json(context, &arguments[0], &mut json)?;
                Ok(Value::string(json))
            },
        ),
        one("base64gzip", gzip::encode),
        Signature::new(
            "textencodebase64",
            [Parameter::string("string"), Parameter::string("encoding")],
            charset::encode,
        ),
        Signature::new(
            "textdecodebase64",
            [Parameter::string("source"), Parameter::string("encoding")],
            charset::decode,
        ),
        Signature::new(
            "yamlencode",
            [Parameter::any("value").or_null()],
            |context, arguments| Ok(Value::string(yaml::encode(context, &arguments[0])?)),
        ),
    ]
}

fn base64_decode(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let bytes = lenient(text(arguments, 0)?)?;
    context.charge_bytes(bytes.len())?;
    String::from_utf8(bytes)
        .map(Value::string)
        .map_err(|_| CallError::argument(0, "What is encoded isn't text in UTF-8"))
}

/// The bytes of base64. Line breaks are passed over, as in Go.
pub(super) fn lenient(encoded: &str) -> Result<Vec<u8>, CallError> {
    let mut encoded = encoded.to_owned();
    encoded.retain(|character| !matches!(character, '\r' | '\n'));
    // Go doesn't mind bits that are left over.
    let engine = base64::engine::GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        base64::engine::general_purpose::PAD.with_decode_allow_trailing_bits(true),
    );
    engine
        .decode(encoded)
        .map_err(|error| CallError::argument(0, format!("This isn't base64: {error}")))
}

/// As a query's: a space is `+`.
fn url_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

pub(super) fn write_json(
    context: &Context,
    value: &Value,
    json: &mut String,
) -> Result<(), LimitReached> {
    context.charge_steps(1)?;
    let before = json.len();
    match &value.kind {
        Kind::Null(_) => json.push_str("null"),
        Kind::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
        Kind::Number(number) => json.push_str(&number.to_string()),
        Kind::String(text) => write_json_string(text, json),
        Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements) => {
            json.push('[');
            for (index, element) in elements.iter().enumerate() {
                json.push_str(if index == 0 { "" } else { "," });
                write_json(context, element, json)?;
            }
            json.push(']');
            return Ok(());
        }
        Kind::Object(entries) | Kind::Map(_, entries) => {
            json.push('{');
            for (index, (name, value)) in entries.iter().enumerate() {
                json.push_str(if index == 0 { "" } else { "," });
                write_json_string(name, json);
                context.charge_bytes(name.len())?;
                json.push(':');
                write_json(context, value, json)?;
            }
            json.push('}');
            return Ok(());
        }
    }
    context.charge_bytes(json.len() - before)
}

/// Go escapes what could end a script in HTML, and the two line ends that JavaScript has beyond
/// JSON.
pub(super) fn write_json_string(text: &str, json: &mut String) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                json.push_str(&format!("\\u{:04x}", character as u32));
            }
            _ => json.push(character),
        }
    }
    json.push('"');
}
