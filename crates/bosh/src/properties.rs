//! The properties of a job: what its spec declares, with the values that the manifest gives.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};

use crate::Error;
use crate::manifest::{InstanceGroup, Job, Manifest};
use crate::release::PropertySpec;
use crate::value::{Data, Value};

/// The values that a job may take its properties from: its own if it has the key, or else the
/// global ones with those of its group merged over them.
pub fn source(manifest: &Manifest, group: &InstanceGroup, job: &Job) -> Value {
    if let Some(own) = &job.properties {
        return own.clone();
    }
    let empty = Value::empty_map(group.place);
    let mut merged = manifest.properties.clone().unwrap_or(empty);
    if let Some(own) = &group.properties {
        merge(&mut merged, own);
    }
    merged
}

/// Merges maps into maps; everything else is replaced.
fn merge(into: &mut Value, other: &Value) {
    for entry in other.as_map().unwrap_or_default() {
        let ours = entry.key.as_str().and_then(|key| into.get_mut(key));
        match ours {
            Some(ours) if ours.is_map() && entry.value.is_map() => merge(ours, &entry.value),
            _ => into.set(entry.key.clone(), entry.value.clone()),
        }
    }
}

/// The declared properties with their values, or their defaults, or null.
///
/// # Errors
///
/// One for each value that has to be a hash and isn't: the first declared name that leads through
/// it. BOSH stops at the first of these.
pub fn bind(declared: &[PropertySpec], source: &Value) -> Result<Map<String, Json>, Vec<Error>> {
    let mut bound = Map::new();
    let mut errors = Vec::new();
    let mut reported = HashSet::new();
    for property in declared {
        let given = match look_up(source, &property.name) {
            Ok(given) => given,
            Err(wrong) => {
                if reported.insert(wrong.path) {
                    errors.push(wrong.error);
                }
                continue;
            }
        };
        let value = sorted(given.unwrap_or(&property.default));
        if let Err(message) = set(&mut bound, &property.name, value) {
            errors.push(Error::at(property.default.place, message));
        }
    }
    if errors.is_empty() {
        Ok(bound)
    } else {
        Err(errors)
    }
}

struct NotAHash {
    /// The path to the value, to report it once.
    path: String,
    error: Error,
}

fn look_up<'v>(source: &'v Value, name: &str) -> Result<Option<&'v Value>, NotAHash> {
    let mut current = source;
    let mut path = String::new();
    for part in name.split('.') {
        if !current.is_map() {
            let class = current.class_name();
            let message = format!("Property '{name}' expects a hash, but received '{class}'");
            return Err(NotAHash {
                path,
                error: Error::at(current.place, message),
            });
        }
        match current.get(part) {
            Some(next) if !next.is_null() => current = next,
            _ => return Ok(None),
        }
        path.push_str(part);
        path.push('.');
    }
    Ok(Some(current))
}

/// Sets a value at a dotted path, and makes the maps on the way.
fn set(bound: &mut Map<String, Json>, name: &str, value: Json) -> Result<(), String> {
    let (path, last) = match name.rsplit_once('.') {
        Some((path, last)) => (Some(path), last),
        None => (None, name),
    };
    let mut current = bound;
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        let next = current.entry(part).or_insert(Json::Null);
        if matches!(next, Json::Null | Json::Bool(false)) {
            *next = Json::Object(Map::new());
        }
        let Json::Object(next) = next else {
            return Err(format!(
                "Property '{name}' is declared in the release spec, but '{part}' has a default \
                 that is not a hash"
            ));
        };
        current = next;
    }
    current.insert(last.to_owned(), value);
    Ok(())
}

/// The value as JSON, with the keys of hashes in order. Hashes in arrays keep theirs.
fn sorted(value: &Value) -> Json {
    let Data::Map(entries) = &value.data else {
        return value.to_json();
    };
    let mut members: Vec<(String, Json)> = entries
        .iter()
        .map(|entry| (entry.key.to_s(), sorted(&entry.value)))
        .collect();
    members.sort_by(|left, right| left.0.cmp(&right.0));
    Json::Object(members.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::value::Place;

    fn value(json: &Json) -> Value {
        Value::from_json(json, Place::default())
    }

    fn declared(names: &[(&str, Json)]) -> Vec<PropertySpec> {
        let names = names.iter().map(|(name, default)| PropertySpec {
            name: (*name).to_owned(),
            default: value(default),
        });
        names.collect()
    }

    #[test]
    fn declared_names_get_given_values_or_defaults() {
        for (names, source, expected) in [
            (
                vec![("a", json!(1))],
                json!({"a": false, "b": 2}),
                json!({"a": false}),
            ),
            (vec![("a", json!(1))], json!({"a": null}), json!({"a": 1})),
            (
                vec![("a.b", json!(null))],
                json!({}),
                json!({"a": {"b": null}}),
            ),
            // The later name is written into the former's hash, or replaces it.
            (
                vec![("o", json!({})), ("o.k2", json!(2))],
                json!({"o": {"k1": 1}}),
                json!({"o": {"k1": 1, "k2": 2}}),
            ),
            (
                vec![("o.k2", json!(2)), ("o", json!(null))],
                json!({}),
                json!({"o": null}),
            ),
            (
                vec![("o", json!(false)), ("o.k", json!(1))],
                json!({}),
                json!({"o": {"k": 1}}),
            ),
        ] {
            let bound = bind(&declared(&names), &value(&source)).unwrap();
            assert_eq!(Json::Object(bound), expected, "{names:?} {source}");
        }
    }

    #[test]
    fn keys_are_sorted_through_hashes_only() {
        let source = json!({"a": {"z": {"y": 1, "x": 2}, "b": [{"d": 1, "c": 2}]}});
        let bound = bind(&declared(&[("a", json!(null))]), &value(&source)).unwrap();
        let text = serde_json::to_string(&bound).unwrap();
        assert_eq!(text, r#"{"a":{"b":[{"d":1,"c":2}],"z":{"x":2,"y":1}}}"#);
    }

    #[test]
    fn paths_through_other_values_are_errors() {
        for (given, class) in [
            (json!("s"), "String"),
            (json!([1]), "Array"),
            (json!(false), "FalseClass"),
            (json!(true), "TrueClass"),
            (json!(3), "Integer"),
            (json!(0.5), "Float"),
        ] {
            let names = declared(&[("b.c", json!(1)), ("b.d", json!(2)), ("a", json!(1))]);
            let errors = bind(&names, &value(&json!({"b": given}))).unwrap_err();
            let messages: Vec<String> = errors.iter().map(Error::to_string).collect();
            let expected = format!("Property 'b.c' expects a hash, but received '{class}'");
            assert_eq!(messages, [expected]);
        }
        let names = declared(&[("o", json!("text")), ("o.k", json!(1))]);
        bind(&names, &value(&json!({}))).unwrap_err();
    }

    #[test]
    fn maps_merge_and_everything_else_is_replaced() {
        let mut ours = value(&json!({"a": {"b": 1, "c": [1]}, "d": 1}));
        merge(
            &mut ours,
            &value(&json!({"a": {"c": [2], "e": null}, "d": {"f": 1}})),
        );
        let expected = json!({"a": {"b": 1, "c": [2], "e": null}, "d": {"f": 1}});
        assert_eq!(ours.to_json(), expected);
    }
}
