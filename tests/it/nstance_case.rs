//! A case of the Nstance corpus: a configuration of the server, validated and rendered by the real
//! program.
//!
//! In: a line of `nstance.jsonl`. Out: whether `validate` and `render` answer as it expects. May
//! not: know what the program does inside.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Runs a case with the program at `program`, which no case may take longer than its caller waits
/// for.
pub(crate) fn run_case(program: &Path, line: &str) -> Result<(), String> {
    let case: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    write(folder.path(), &case)?;
    let words = |key: &str| -> Vec<String> {
        let words = case[key].as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let flags = words("flags");
    let expected = &case["expect"];
    let validated = run(program, folder.path(), "validate", &flags)?;
    let told = told(&validated.1);
    if expected["accept"].as_bool() != Some(validated.0 && told.errors.is_empty()) {
        return Err(format!("`validate` says {:?}", told.errors));
    }
    for (key, told) in [
        ("warnings_contain", &told.warnings),
        ("errors_contain", &told.errors),
    ] {
        for wanted in expected[key].as_array().into_iter().flatten() {
            let wanted = wanted.as_str().unwrap_or_default();
            if !told.iter().any(|text| text.contains(wanted)) {
                return Err(format!("nothing of {key} says `{wanted}`: {told:?}"));
            }
        }
    }
    if expected["quiet"] == true && !told.warnings.is_empty() {
        return Err(format!("it isn't quiet: {:?}", told.warnings));
    }
    let Some(addresses) = expected["render"].as_object() else {
        return Ok(());
    };
    let flags: Vec<String> = flags
        .into_iter()
        .filter(|flag| flag != "--server-compatible")
        .collect();
    let (_, rendered) = run(program, folder.path(), "render", &flags)?;
    let empty = Vec::new();
    let instances = rendered["instances"].as_array().unwrap_or(&empty);
    for (address, wanted) in addresses {
        let found = instances
            .iter()
            .find(|instance| instance["address"] == **address);
        match (wanted.as_object(), found) {
            (None, None) => {}
            (None, Some(_)) => return Err(format!("{address} is rendered")),
            (Some(_), None) => return Err(format!("{address} isn't rendered: {rendered}")),
            (Some(wanted), Some(found)) => compare(address, wanted, found)?,
        }
    }
    Ok(())
}

fn write(folder: &Path, case: &Value) -> Result<(), String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let config = case.get("config").unwrap_or(&case["config_text"]);
    let mut files = BTreeMap::from([("config.jsonc", text(config))]);
    for (name, content) in case["files"].as_object().into_iter().flatten() {
        files.insert(name, text(content));
    }
    for (name, content) in files {
        std::fs::write(folder.join(name), content).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Whether a command ends with 0, and its document.
fn run(
    program: &Path,
    folder: &Path,
    command: &str,
    flags: &[String],
) -> Result<(bool, Value), String> {
    let output = Command::new(program)
        .args([command, "--json", "-c", "config.jsonc"])
        .args(flags)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let document = serde_json::from_slice(&output.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("`{command}` prints no document: {error}: {said}")
    })?;
    Ok((output.status.code() == Some(0), document))
}

#[derive(Default)]
struct Told {
    errors: Vec<String>,
    warnings: Vec<String>,
}

/// The texts of a document's diagnostics.
fn told(document: &Value) -> Told {
    let mut told = Told::default();
    for diagnostic in document["diagnostics"].as_array().into_iter().flatten() {
        let parts = ["summary", "detail", "hint"].map(|key| diagnostic[key].as_str());
        let text = parts.map(Option::unwrap_or_default).join("\n");
        match diagnostic["severity"].as_str() {
            Some("error") => told.errors.push(text),
            Some("warning") => told.warnings.push(text),
            _ => {}
        }
    }
    told
}

fn compare(
    address: &str,
    wanted: &serde_json::Map<String, Value>,
    found: &Value,
) -> Result<(), String> {
    let id = found["instance_id"].as_str().unwrap_or("no id");
    for (key, wanted) in wanted {
        let found = &found[key];
        let parts: Vec<(&str, &Value, &Value)> = match wanted {
            // What isn't named may be anything.
            Value::Object(members) => members
                .iter()
                .map(|(name, wanted)| (name.as_str(), wanted, &found[name]))
                .collect(),
            wanted => vec![("", wanted, found)],
        };
        for (name, wanted, found) in parts {
            let content = found.get("content").filter(|_| key == "files");
            let found = with_id(content.unwrap_or(found), id);
            if !equal(name, wanted, &found) {
                return Err(format!(
                    "{address}: {key} {name}: expected {wanted}, found {found}"
                ));
            }
        }
    }
    Ok(())
}

fn equal(name: &str, wanted: &Value, found: &Value) -> bool {
    let (Some(one), Some(other)) = (wanted.as_str(), found.as_str()) else {
        return wanted == found;
    };
    let is_of = |kind: &str| Path::new(name).extension().is_some_and(|end| end == kind);
    if is_of("env") {
        let lines = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        return lines(one) == lines(other);
    }
    if is_of("json")
        && let (Ok(one), Ok(other)) = (
            serde_json::from_str::<Value>(one),
            serde_json::from_str::<Value>(other),
        )
    {
        return same_value(&one, &other);
    }
    one == other
}

/// Whether two documents are the same, whatever the form of their numbers.
fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| same_value(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut members = one.iter();
            one.len() == other.len()
                && members
                    .all(|(key, one)| other.get(key).is_some_and(|other| same_value(one, other)))
        }
        (one, other) => one == other,
    }
}

/// A value with the instance's id written as `<id>`.
fn with_id(value: &Value, id: &str) -> Value {
    let text = value.to_string().replace(id, "<id>");
    serde_json::from_str(&text).unwrap_or_default()
}
