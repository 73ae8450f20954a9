//! Cases with Go's own answers: reading them, and saying whether this crate answers the same.
//!
//! In: one line of the corpus, a JSON object. Out: an [`Outcome`]. It neither reads files nor
//! prints.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::{
    Environment, ExecErrorKind, List, Map, MissingKey, Struct, StructType, Template, Value,
};

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
    /// Our error, in Go's words.
    pub wording: Option<String>,
    /// The limit of ours that ended the execution.
    pub limit: Option<&'static str>,
}

/// What came of a template.
enum Answer {
    Output(Vec<u8>),
    Error {
        stage: &'static str,
        go: String,
        limit: Option<&'static str>,
    },
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
                wording: None,
                limit: None,
            };
        }
    };
    let text = |name: &str| case[name].as_str().unwrap_or_default();
    let expect = &case["expect"];
    let answer = answer(&case, json_line);
    let (failure, same_wording) = compare(expect, &answer);
    let (wording, limit) = match answer {
        Answer::Error { go, limit, .. } => (Some(go), limit),
        Answer::Output(_) => (None, None),
    };
    Outcome {
        id: text("id").to_owned(),
        area: text("area").to_owned(),
        failure,
        same_wording,
        wording,
        limit,
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
        (false, Answer::Error { stage, go, .. }) if *stage == expected_stage => {
            (None, go == expected_error)
        }
        (false, Answer::Error { stage, go, .. }) => (
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
    sprig: bool,
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
            ("functions", "sprig") => options.sprig = true,
            ("shape", "typed") => {
                options.typed = true;
                options.numbers = Numbers::Int;
            }
            _ => {}
        }
    }
    options
}

/// The data of a case, as they are written.
#[derive(Deserialize)]
struct Data<'c> {
    #[serde(borrow)]
    data: Option<&'c RawValue>,
}

fn answer(case: &Json, line: &str) -> Answer {
    let options = options(case["options"].as_str().unwrap_or_default());
    let mut environment = Environment::new().with_missing_key(options.missing_key);
    if let Some((left, right)) = options.delimiters {
        environment = environment.with_delimiters(left, right);
    }
    if options.sprig {
        environment = environment.with_sprig();
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
                limit: None,
            };
        }
    };
    let data = serde_json::from_str::<Data<'_>>(line)
        .ok()
        .and_then(|case| case.data);
    let data = match data {
        None => Value::Nil,
        Some(data) if options.typed => typed(data, ""),
        Some(data) => plain(data, options.numbers),
    };
    let entry = options.entry.unwrap_or("t");
    let Some(template) = template.lookup(entry) else {
        let go = format!("template: no template \"{entry}\" associated with template \"t\"");
        return Answer::Error {
            stage: "exec",
            go,
            limit: None,
        };
    };
    match template.render(&data) {
        Ok(rendered) => Answer::Output(rendered.output),
        Err(error) => Answer::Error {
            stage: "exec",
            go: error.go_message(),
            limit: match error.kind() {
                ExecErrorKind::Limit(name) => Some(name),
                _ => None,
            },
        },
    }
}

/// A part of a case's data, its numbers as they are written.
fn raw<'j, T: Deserialize<'j> + Default>(json: &'j RawValue) -> T {
    serde_json::from_str(json.get()).unwrap_or_default()
}

/// Data as `encoding/json` decodes them into an `any`.
fn plain(json: &RawValue, numbers: Numbers) -> Value {
    match json.get().as_bytes().first() {
        Some(b'{') => {
            let entries = raw::<Entries<'_>>(json).into_iter();
            Value::Map(
                entries
                    .map(|(key, value)| (key, plain(value, numbers)))
                    .collect(),
            )
        }
        Some(b'[') => {
            let items = raw::<Vec<&RawValue>>(json).into_iter();
            let items = items.map(|item| plain(item, numbers)).collect();
            Value::List(List::as_decoded_from_json(items))
        }
        Some(b'"') => Value::from(raw::<String>(json)),
        Some(b't' | b'f') => Value::Bool(raw(json)),
        Some(b'n') | None => Value::Nil,
        Some(_) => number(json.get(), numbers),
    }
}

type Entries<'j> = BTreeMap<String, &'j RawValue>;

fn number(text: &str, numbers: Numbers) -> Value {
    match (numbers, text.parse::<i64>()) {
        (Numbers::Json, _) => Value::Number(text.into()),
        (Numbers::Int, Ok(number)) => Value::Int(number),
        _ => Value::Float(text.parse().unwrap_or_default()),
    }
}

/// Data as nstance's own server passes them: objects as structs, some as `map[string]string`.
fn typed(json: &RawValue, name: &str) -> Value {
    match json.get().as_bytes().first() {
        Some(b'{') if matches!(name, "Vars" | "Image" | "Labels") => {
            let entries = raw::<Entries<'_>>(json).into_iter();
            let strings = entries.map(|(key, value)| match typed(value, "") {
                Value::Str(text) => (key, Value::Str(text)),
                _ => (key, Value::from(value.get())),
            });
            Value::Map(strings.collect::<Map>().string_typed())
        }
        Some(b'{') => {
            let fields = raw::<Entries<'_>>(json);
            let struct_type = StructType::new("", fields.keys());
            let values = fields
                .iter()
                .map(|(name, value)| typed(value, name))
                .collect();
            Value::Struct(Struct::new(struct_type, values))
        }
        Some(b'[') => {
            let items: Vec<Value> = raw::<Vec<&RawValue>>(json)
                .into_iter()
                .map(|item| typed(item, ""))
                .collect();
            Value::List(if items.is_empty() {
                List::new(items)
            } else {
                List::of_strings(items)
            })
        }
        _ => plain(json, Numbers::Int),
    }
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
