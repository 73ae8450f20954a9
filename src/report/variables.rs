//! Shows variables and the origins of their values.
//!
//! In: settings. Out: text and JSON. Must not: show a sensitive value.

use serde_json::{Value, json};

use super::diagnostic::{printable, range};
use crate::config::source::SourceMap;
use crate::config::variables::{Origin, Setting};

/// A line for each variable: its value and its origin.
pub fn text(settings: &[Setting], sources: &SourceMap) -> String {
    if settings.is_empty() {
        return "The configuration has no variables.\n".to_owned();
    }
    let rows: Vec<[String; 3]> = settings
        .iter()
        .map(|setting| {
            let value = match &setting.value {
                Some(value) => printable(&value.to_string()),
                None => "(sensitive value)".to_owned(),
            };
            [
                printable(&setting.name),
                value,
                printable(&origin(setting, sources)),
            ]
        })
        .collect();
    super::table(&["VARIABLE", "VALUE", "FROM"], &rows)
}

fn origin(setting: &Setting, sources: &SourceMap) -> String {
    let line = |span| {
        let place = sources.place(span);
        // Omit the column, which is meaningless here.
        place
            .rsplit_once(':')
            .map_or_else(|| place.clone(), |(line, _)| line.to_owned())
    };
    match setting.origin {
        Origin::Default(span) if setting.declared.is_some() => format!("default, {}", line(span)),
        Origin::Default(span) => line(span),
        Origin::File(span) => format!("--var-file, {}", line(span)),
        Origin::Environment => format!("NSTANCE_VAR_{}", setting.name),
        Origin::CommandLine => "--var".to_owned(),
    }
}

/// The variables as JSON.
pub fn json(settings: &[Setting], sources: &SourceMap) -> Value {
    let variables: serde_json::Map<String, Value> = settings
        .iter()
        .map(|setting| {
            let (source, place) = match setting.origin {
                Origin::Default(span) => ("default", Some(span)),
                Origin::File(span) => ("file", Some(span)),
                Origin::Environment => ("environment", None),
                Origin::CommandLine => ("command_line", None),
            };
            let mut variable = json!({
                "value": setting.value,
                "sensitive": setting.sensitive,
                "source": source,
                "range": place.map(|span| range(span, sources)),
                "declared": setting.declared.map(|span| range(span, sources)),
            });
            if let Some(of) = &setting.of {
                variable["type"] = json!(of);
            }
            if let Some(description) = &setting.description {
                variable["description"] = json!(description);
            }
            (setting.name.to_string(), variable)
        })
        .collect();
    json!({"format_version": "1.0", "variables": variables})
}
