//! Cases with Go's own answers: reading them, and saying whether this crate answers the same.
//!
//! In: one line of the corpus, a JSON object. Out: an [`Outcome`]. It neither reads files nor
//! prints.

use serde_json::{Map as Object, Number, Value as Json};

use crate::{Environment, List, Map, MissingKey, Struct, StructType, Template, Value};

/// How a case went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case's name.
    pub id: String,
    /// What it is about.
    pub area: String,
    /// None where the answer is Go's; else what was expected and what came.
    pub failure: Option<String>,
    /// Whether an expected error is worded as Go words it; true where none is expected.
    pub same_wording: bool,
}

/// What came of a template.
enum Answer {
    Output(Vec<u8>),
    Error { stage: &'static str, go: String },
}

/// Runs the case on one line of the corpus. A line that isn't a case is a failure.
pub fn run_case(json_line: &str) -> Outcome {
    let case: Json = match serde_json::from_str(json_line) {
        Ok(case) => case,
        Err(error) => {
            return Outcome {
                id: "?".to_owned(),
                area: "?".to_owned(),
                failure: Some(format!("not a case: {error}")),
                same_wording: false,
            };
        }
    };
    let text = |name: &str| case[name].as_str().unwrap_or_default();
    let expect = &case["expect"];
    let answer = answer(&case);
    let (failure, same_wording) = compare(expect, &answer);
    Outcome {
        id: text("id").to_owned(),
        area: text("area").to_owned(),
        failure,
        same_wording,
    }
}

fn compare(expect: &Json, answer: &Answer) -> (Option<String>, bool) {
    let expected_stage = expect["stage"].as_str().unwrap_or_default();
    let expected_error = expect["error"].as_str().unwrap_or_default();
    let expected_output = match expect["output_b64"].as_str() {
        Some(encoded) => decode_base64(encoded),
        None => expect["output"]
            .as_str()
            .unwrap_or_default()
            .as_bytes()
            .to_vec(),
    };
    let shown = |bytes: &[u8]| format!("{:?}", String::from_utf8_lossy(bytes));
    match (expect["ok"].as_bool().unwrap_or_default(), answer) {
        (true, Answer::Output(output)) if *output == expected_output => (None, true),
        (true, Answer::Output(output)) => {
            let (expected, output) = (shown(&expected_output), shown(output));
            (Some(format!("expected {expected}, got {output}")), true)
        }
        (true, Answer::Error { go, .. }) => (
            Some(format!(
                "expected {}, got error {go}",
                shown(&expected_output)
            )),
            true,
        ),
        (false, Answer::Output(output)) => (
            Some(format!(
                "expected error {expected_error}, got {}",
                shown(output)
            )),
            false,
        ),
        (false, Answer::Error { stage, go }) if *stage == expected_stage => {
            (None, go == expected_error)
        }
        (false, Answer::Error { stage, go }) => (
            Some(format!(
                "expected {expected_stage} error {expected_error}, got {stage} error {go}"
            )),
            false,
        ),
    }
}

/// The options of a case.
#[derive(Default)]
struct Options<'c> {
    missing_key: MissingKey,
    delimiters: Option<(&'c str, &'c str)>,
    entry: Option<&'c str>,
    numbers: Numbers,
    typed: bool,
}

/// How a case's data have their numbers.
#[derive(Clone, Copy, Default, PartialEq)]
enum Numbers {
    #[default]
    Float,
    Int,
    Json,
}

fn options(text: &str) -> Options<'_> {
    let mut options = Options::default();
    for option in text.split(';') {
        match option.split_once('=').unwrap_or((option, "")) {
            ("missingkey", "zero") => options.missing_key = MissingKey::Zero,
            ("missingkey", "error") => options.missing_key = MissingKey::Error,
            ("delims", delimiters) => options.delimiters = delimiters.split_once(','),
            ("entry", entry) => options.entry = Some(entry),
            ("numbers", "int") => options.numbers = Numbers::Int,
            ("numbers", "json") => options.numbers = Numbers::Json,
            ("shape", "typed") => {
                options.typed = true;
                options.numbers = Numbers::Int;
            }
            _ => {}
        }
    }
    options
}

fn answer(case: &Json) -> Answer {
    let options = options(case["options"].as_str().unwrap_or_default());
    let mut environment = Environment::new().with_missing_key(options.missing_key);
    if let Some((left, right)) = options.delimiters {
        environment = environment.with_delimiters(left, right);
    }
    let mut defines: Vec<(&str, &str)> = case["defines"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, text)| (name.as_str(), text.as_str().unwrap_or_default()))
        .collect();
    defines.sort_unstable();
    let text = case["template"].as_str().unwrap_or_default();
    let template = match Template::parse_with("t", text, &environment, &defines) {
        Ok(template) => template,
        Err(error) => {
            return Answer::Error {
                stage: "parse",
                go: error.go_message(),
            };
        }
    };
    let data = if options.typed {
        typed(&case["data"], "")
    } else {
        plain(&case["data"], options.numbers)
    };
    let entry = options.entry.unwrap_or("t");
    let Some(template) = template.lookup(entry) else {
        let go = format!("template: no template \"{entry}\" associated with template \"t\"");
        return Answer::Error { stage: "exec", go };
    };
    match template.render(&data) {
        Ok(rendered) => Answer::Output(rendered.output),
        Err(error) => Answer::Error {
            stage: "exec",
            go: error.go_message(),
        },
    }
}

/// Data as `encoding/json` decodes them into an `any`.
fn plain(json: &Json, numbers: Numbers) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(value) => number(value, numbers),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::List(List::as_decoded_from_json(
            items.iter().map(|item| plain(item, numbers)).collect(),
        )),
        Json::Object(entries) => Value::Map(
            entries
                .iter()
                .map(|(key, value)| (key.as_str(), plain(value, numbers)))
                .collect(),
        ),
    }
}

fn number(number: &Number, numbers: Numbers) -> Value {
    let text = number.to_string();
    match numbers {
        Numbers::Json => Value::Number(text.as_str().into()),
        Numbers::Int if text.parse::<i64>().is_ok() => Value::Int(text.parse().unwrap_or_default()),
        _ => Value::Float(text.parse().unwrap_or_default()),
    }
}

/// Data as nstance's own server passes them: objects as structs, some as `map[string]string`.
fn typed(json: &Json, name: &str) -> Value {
    match json {
        Json::Object(entries) if matches!(name, "Vars" | "Image" | "Labels") => {
            Value::Map(string_map(entries))
        }
        Json::Object(entries) => {
            let mut fields: Vec<_> = entries.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| name.as_str());
            let struct_type = StructType::new("", fields.iter().map(|(name, _)| name.as_str()));
            let values = fields
                .iter()
                .map(|(name, value)| typed(value, name))
                .collect();
            Value::Struct(Struct::new(struct_type, values))
        }
        Json::Array(items) if !items.is_empty() && items.iter().all(Json::is_string) => {
            Value::List(List::of_strings(
                items.iter().map(|item| typed(item, "")).collect(),
            ))
        }
        Json::Array(items) => Value::List(List::new(
            items.iter().map(|item| typed(item, "")).collect(),
        )),
        other => plain(other, Numbers::Int),
    }
}

fn string_map(entries: &Object<String, Json>) -> Map {
    let entries = entries.iter().map(|(key, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (key.as_str(), text)
    });
    entries.collect::<Map>().string_typed()
}

/// Standard base64, as far as the corpus uses it.
fn decode_base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for byte in text.bytes() {
        let Some(value) = ALPHABET.iter().position(|known| *known == byte) else {
            continue;
        };
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
