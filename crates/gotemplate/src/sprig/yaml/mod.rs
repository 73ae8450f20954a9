//! YAML, written and read as `sigs.k8s.io/yaml` does: by way of JSON's data.

mod emit;
mod parse;
mod resolve;

use super::arguments::{bytes, list, string};
use super::{Entry, Outcome, entry, json};
use crate::dict::Dict;
use crate::function::Budget;
use crate::function::Kind::{Any, Str};
use crate::map::Map;
use crate::value::{Text, Value};

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(
        "toYaml",
        "X",
        "X as YAML, without a line break at the end; \"\" where that can't be",
        &[Any],
        |budget, a| to_yaml(budget, &a[0], false),
    ),
    entry(
        "mustToYaml",
        "X",
        "the same, but an error where that can't be",
        &[Any],
        |budget, a| to_yaml(budget, &a[0], true),
    ),
    entry(
        "fromYaml",
        "S",
        "the dict that S is as YAML; a dict with the key `Error` where it is none",
        &[Str],
        |budget, a| from_yaml(budget, bytes(&a[0])),
    ),
    entry(
        "fromYamlArray",
        "S",
        "the list that S is as YAML; a list of the error where it is none",
        &[Str],
        |budget, a| {
            let message = match parse::read(budget, bytes(&a[0]))? {
                Ok(Value::Nil) => return list(budget, Vec::new()),
                Ok(value @ Value::List(_)) => return Ok(value),
                Ok(value) => decoding(&json::not_a_list(&value)),
                Err(message) => message,
            };
            list(budget, vec![message.into()])
        },
    ),
];

fn to_yaml(budget: &mut Budget, value: &Value, strict: bool) -> Outcome {
    let mut written = match emit::write(budget, value) {
        Ok(written) => written,
        Err(error) if !strict && error.is_message() => return string(""),
        Err(error) => return Err(error),
    };
    if written.last() == Some(&b'\n') {
        written.pop();
    }
    string(written)
}

fn decoding(message: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: {message}")
}

fn from_yaml(budget: &mut Budget, text: &[u8]) -> Outcome {
    let message = match parse::read(budget, text)? {
        Ok(Value::Nil) => return Ok(Value::Dict(Dict::new(Map::default()))),
        Ok(value @ Value::Dict(_)) => return Ok(value),
        Ok(value) => decoding(
            &json::not_a_list(&value)
                .replace("[]interface", "map[string]interface")
                .replace(
                    "unmarshal number",
                    match value {
                        Value::List(_) => "unmarshal array",
                        _ => "unmarshal number",
                    },
                ),
        ),
        Err(message) => message,
    };
    let entries = vec![(Text::from("Error"), Value::from(message))];
    Ok(Value::Dict(Dict::new(Map::new(entries))))
}
