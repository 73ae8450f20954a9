//! Converts the tables to a JSON Schema (2020-12).
//!
//! In: the tables. Out: a schema that accepts the same shapes as the decoder. It can't check
//! references, such as names of templates or pools. Must not: add keys to the tables'.

use serde_json::{Map, Value, json};

use super::tables::{GROUP, LARGEST_GROUP, SNIPPET, TOP};
use super::{Key, Shape, Table};
use crate::address::LONGEST_ID;
use crate::config::model::MAIN_TEMPLATE;

/// The schema of a whole configuration in one file.
pub fn json_schema() -> Value {
    Builder {
        partial: false,
        definitions: Map::new(),
    }
    .root()
}

/// The schema of one of several files: no key is required.
pub fn part_schema() -> Value {
    Builder {
        partial: true,
        definitions: Map::new(),
    }
    .root()
}

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

struct Builder {
    /// Whether other files may contain the required keys.
    partial: bool,
    definitions: Map<String, Value>,
}

impl Builder {
    fn root(mut self) -> Value {
        let mut root = self.table(&TOP);
        if let Some(required) = root
            .as_object_mut()
            .and_then(|root| root.remove("required"))
        {
            // Included files may contain the rest.
            root["anyOf"] = json!([{"required": required}, {"required": ["include"]}]);
        }
        let mut whole = Map::new();
        whole.insert("$schema".into(), DIALECT.into());
        if let Value::Object(root) = root {
            whole.extend(root);
        }
        whole.insert("title".into(), "nstance configuration".into());
        self.definitions.insert(
            EXPRESSION.into(),
            json!({
                "title": EXPRESSION,
                "description": "A text with `${ }`, where the configuration declares `variables`.",
                "type": "string",
                "pattern": "\\$\\{",
            }),
        );
        whole.insert("$defs".into(), Value::Object(self.definitions));
        Value::Object(whole)
    }

    /// An object with known keys.
    fn table(&mut self, table: &Table) -> Value {
        let properties: Map<String, Value> = table
            .keys
            .iter()
            .map(|key| (key.name.to_owned(), self.key(key)))
            .collect();
        let mut schema = json!({
            "title": table.title,
            "description": table.about,
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        });
        if self.partial {
            return schema;
        }
        let required: Vec<&str> = table
            .keys
            .iter()
            .filter(|key| key.required)
            .map(|key| key.name)
            .collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if let Some(rules) = rules(table.title) {
            schema["allOf"] = rules;
        }
        schema
    }

    fn key(&mut self, key: &Key) -> Value {
        let mut schema = self.shape(key.shape);
        let takes_null = !matches!(
            key.shape,
            Shape::Duration | Shape::PositiveDuration | Shape::DurationOr(_)
        );
        if takes_null && (!key.required || self.partial) {
            schema = or_null(schema);
        }
        schema["description"] = key.about.into();
        if let Some(default) = key.default {
            schema["default"] = serde_json::from_str(default).expect("defaults are JSON");
        }
        schema
    }

    fn shape(&mut self, shape: Shape) -> Value {
        let schema = self.written_out(shape);
        or_expression(schema)
    }

    fn written_out(&mut self, shape: Shape) -> Value {
        let pattern = |pattern: &str| json!({"type": "string", "pattern": pattern});
        match shape {
            Shape::Any => json!({}),
            Shape::Map => json!({"type": "object"}),
            Shape::Text => json!({"type": "string"}),
            Shape::Filled => json!({"type": "string", "minLength": 1}),
            Shape::Id => id(),
            Shape::GroupName => pattern(&format!("^{ID}/{ID}$")),
            Shape::Kind => pattern("^[a-z]{3}$"),
            Shape::Duration => pattern(DURATION),
            Shape::PositiveDuration => {
                json!({"type": "string", "pattern": DURATION, "not": {"pattern": "^[^1-9]*$"}})
            }
            Shape::DurationOr(word) => json!({"anyOf": [{"const": word}, pattern(DURATION)]}),
            Shape::SignedDuration => pattern(&DURATION.replace(r"\+?", "[-+]?")),
            Shape::Port => json!({"type": "integer", "minimum": 1, "maximum": 65_535}),
            Shape::Path => pattern("^/"),
            Shape::Permissions => pattern("^[0-7]{3,5}$"),
            Shape::Flag => json!({"type": "boolean"}),
            Shape::Whole(largest) => json!({"type": "integer", "minimum": 0, "maximum": largest}),
            Shape::Between(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Shape::Amount(percent) => json!({"anyOf": [
                self.written_out(Shape::Whole(LARGEST_GROUP)),
                pattern(&format!("^{}%$", up_to(percent))),
            ]}),
            Shape::Choice(words) => json!({"enum": words}),
            Shape::Texts => json!({"type": "array", "items": {"type": "string", "minLength": 1}}),
            Shape::Names => json!({
                "type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": true,
            }),
            Shape::SomeNames => json!({
                "type": "array", "items": {"type": "string", "minLength": 1},
                "minItems": 1, "uniqueItems": true,
            }),
            Shape::SomeTexts => json!({
                "type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1,
            }),
            Shape::List(item) => json!({"type": "array", "items": self.shape(*item)}),
            Shape::Distinct(item) => {
                json!({"type": "array", "items": self.shape(*item), "uniqueItems": true})
            }
            Shape::Some(item) => {
                json!({"type": "array", "items": self.shape(*item), "minItems": 1})
            }
            Shape::Object(table) => self.reference(table),
            Shape::Named(value) => {
                json!({"type": "object", "additionalProperties": self.shape(*value)})
            }
            Shape::Images(value) => self.named(&json!({"pattern": IMAGE_NAME}), *value),
            Shape::Files(value) => {
                let names = json!({
                    "pattern": "^[^/\\\\\\u0000-\\u001f\\u007f-\\u009f]+(/[^/\\\\\\u0000-\\u001f\\u007f-\\u009f]+)*$",
                    "maxLength": 255,
                    "not": {"pattern": "(^|/)\\.\\.?(/|$)"},
                });
                self.named(&names, *value)
            }
            Shape::Slots(value) => self.named(&json!({"pattern": "^(0|[1-9][0-9]{0,5})$"}), *value),
            Shape::Pools => self.named(&id(), Shape::SomeNames),
            Shape::TextOr(table) => json!({"anyOf": [
                {"type": "string", "minLength": 1},
                self.reference(table),
            ]}),
            Shape::WordOr(word, table) => {
                json!({"anyOf": [{"const": word}, self.reference(table)]})
            }
            Shape::Snippets => json!({
                "type": "object",
                "propertyNames": {"minLength": 1, "not": {"const": MAIN_TEMPLATE}},
                "additionalProperties": {"anyOf": [{"type": "string"}, self.reference(&SNIPPET)]},
            }),
            Shape::Paths => json!({"anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}},
            ]}),
            Shape::Groups => {
                let group = self.reference(&GROUP);
                for (form, members) in [(FLAT, group), (NESTED, reference(FLAT))] {
                    let groups = json!({
                        "type": "object", "propertyNames": id(), "additionalProperties": members,
                    });
                    self.definitions.insert(form.into(), groups);
                }
                json!({"anyOf": [reference(NESTED), reference(FLAT)]})
            }
        }
    }

    fn named(&mut self, names: &Value, value: Shape) -> Value {
        json!({
            "type": "object", "propertyNames": names, "additionalProperties": self.shape(value),
        })
    }

    fn reference(&mut self, table: &'static Table) -> Value {
        if !self.definitions.contains_key(table.title) {
            // Reserve the name first, since tables can be recursive.
            self.definitions.insert(table.title.into(), Value::Null);
            let schema = self.table(table);
            self.definitions.insert(table.title.into(), schema);
        }
        reference(table.title)
    }
}

/// The definitions of `groups`.
const NESTED: &str = "nested_groups";
const FLAT: &str = "flat_groups";

/// The definition of a string with `${ }`.
const EXPRESSION: &str = "expression";

fn reference(definition: &str) -> Value {
    json!({"$ref": format!("#/$defs/{definition}")})
}

/// The pattern of an id, without anchors.
const ID: &str = "[a-z0-9]+(-[a-z0-9]+)*";

/// An identifier, or kebab-case.
const IMAGE_NAME: &str = "^([A-Za-z_][A-Za-z0-9_]*|[a-z][a-z0-9]*(-[a-z0-9]+)*)$";

const DURATION: &str = r"^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$";

/// The pattern of the numbers from 0 to a power of ten.
fn up_to(power: u32) -> String {
    let zeros = power.ilog10();
    format!("(0|[1-9][0-9]{{0,{}}}|{power})", zeros - 1)
}

fn id() -> Value {
    json!({"type": "string", "pattern": format!("^{ID}$"), "maxLength": LONGEST_ID})
}

/// The schema, or a string with `${ }` that evaluates to it.
fn or_expression(schema: Value) -> Value {
    /// Whether the schema accepts any string.
    fn takes_any_text(schema: &Value) -> bool {
        let text = schema["type"] == "string";
        schema == &json!({}) || text && schema.get("pattern").is_none()
    }
    let mut schema = schema;
    if takes_any_text(&schema) {
        return schema;
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        if !choices.iter().any(takes_any_text) {
            choices.push(reference(EXPRESSION));
        }
        return schema;
    }
    json!({"anyOf": [schema, reference(EXPRESSION)]})
}

/// The schema, or null.
fn or_null(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else {
        return schema;
    };
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    } else if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
    } else if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.push(json!({"type": "null"}));
    } else if !schema.is_empty() {
        return json!({"anyOf": [schema, {"type": "null"}]});
    }
    Value::Object(schema)
}

/// The conditions between keys of an object.
fn rules(title: &str) -> Option<Value> {
    /// The condition that `key` is one of `words`.
    fn when(key: &str, words: &[&str], then: &Value) -> Value {
        json!({
            "if": {"properties": {key: {"enum": words}}, "required": [key]},
            "then": then,
        })
    }
    /// Forbids these keys.
    fn without(keys: &[&str]) -> Value {
        let absent: Map<String, Value> = keys
            .iter()
            .map(|key| ((*key).to_owned(), json!({"type": "null"})))
            .collect();
        json!({"properties": absent})
    }
    /// Requires this key with a schema, and forbids these keys.
    fn with(key: &str, schema: &Value, absent: &[&str]) -> Value {
        let mut rule = without(absent);
        rule["properties"][key] = or_expression(schema.clone());
        rule["required"] = json!([key]);
        rule
    }
    let filled = json!({"type": "string", "minLength": 1});
    let url = |scheme: &str| json!({"type": "string", "pattern": format!("^{scheme}[\\s\\S]")});
    let from_url = with("source", &json!({"const": "url"}), &[]);
    let rules = match title {
        "configuration" => json!([
            when(
                "groups_form",
                &["nested"],
                &json!({"properties": {"groups": or_null(reference(NESTED))}})
            ),
            when(
                "groups_form",
                &["flat"],
                &json!({"properties": {"groups": or_null(reference(FLAT))}})
            ),
        ]),
        "load_balancer" => {
            let list = json!({"type": "array"});
            let of_aws = json!({"anyOf": [
                with("target_groups", &list, &[]),
                with("target_group_arns", &list, &[]),
            ]});
            let of_google = json!({"anyOf": [
                with("network_endpoint_groups", &list, &[]),
                with("instance_group_name", &filled, &[]),
            ]});
            json!([
                when("provider", &["aws"], &of_aws),
                when("provider", &["google", "gcp"], &of_google),
            ])
        }
        "image" => json!([
            when("provider", &["aws"], &without(&["family", "project"])),
            when("provider", &["google", "gcp"], &without(&["ssm", "include_deprecated"])),
            {"anyOf": [
                with(
                    "ssm",
                    &json!({"type": "string", "pattern": "^/"}),
                    &["filters", "owners", "family", "project", "include_deprecated"]
                ),
                with("family", &json!({"type": "string"}), &["ssm"]),
                with("filters", &json!({"type": "array", "minItems": 1}), &["project", "ssm"]),
            ]},
        ]),
        "userdata" => {
            let parts = json!({"type": "array", "minItems": 1});
            json!([
                {"anyOf": [
                    with("content", &filled, &["parts"]),
                    with("parts", &parts, &["content", "source", "encoding"]),
                ]},
                when("source", &["url"], &with("content", &url("(https?://|file:)"), &[])),
                when("encoding", &["gzip"], &from_url),
            ])
        }
        "userdata_part" => json!([
            when(
                "source",
                &["url"],
                &with("content", &url("(https?://|file:)"), &[])
            ),
            when("encoding", &["gzip"], &from_url),
        ]),
        "health" => {
            let only = |check: &str, keys: &[&str]| {
                let others: Vec<&str> = ["port", "path", "status", "command"]
                    .into_iter()
                    .filter(|key| !keys.contains(key))
                    .collect();
                when("check", &[check], &without(&others))
            };
            let list = json!({"type": "array"});
            json!([
                only("running", &[]),
                only("tcp", &["port"]),
                only("http", &["port", "path", "status"]),
                only("https", &["port", "path", "status"]),
                only("command", &["command"]),
                when("check", &["tcp"], &with("port", &json!({"type": "integer"}), &[])),
                when("check", &["command"], &with("command", &list, &[])),
                {
                    "if": {"properties": {"check": {"type": "null"}}},
                    "then": without(&["port", "path", "status"]),
                },
            ])
        }
        "snippet" => json!([
            when("source", &["url"], &with("content", &url("file:"), &[])),
            when("encoding", &["gzip"], &from_url),
        ]),
        "file" => {
            let variables = json!({
                "type": "object",
                "additionalProperties": {"type": "string"},
            });
            let delivered = json!({
                "if": {"properties": {"deliver": {"enum": ["userdata", "auto"]}}, "required": ["deliver"]},
                "else": without(&["path", "permissions", "owner"]),
            });
            let object = json!({"type": "object"});
            let text = json!({"type": "string"});
            let by_server = json!({"properties": {"deliver": {"enum": ["export", null]}}});
            json!([
                when(
                    "kind",
                    &["env"],
                    &with(
                        "template",
                        &variables,
                        &["source", "key", "properties", "context", "instances"]
                    )
                ),
                when(
                    "kind",
                    &["json"],
                    &with(
                        "template",
                        &object,
                        &["source", "key", "properties", "context", "instances"]
                    )
                ),
                when(
                    "kind",
                    &["string"],
                    &with(
                        "template",
                        &text,
                        &["source", "key", "properties", "context", "instances"]
                    )
                ),
                when(
                    "kind",
                    &["erb"],
                    &with("template", &text, &["source", "key"])
                ),
                when(
                    "kind",
                    &["secret", "storage"],
                    &with(
                        "source",
                        &filled,
                        &["template", "key", "properties", "context", "instances"]
                    )
                ),
                when(
                    "kind",
                    &["certificate"],
                    &with(
                        "template",
                        &filled,
                        &["source", "properties", "context", "instances"]
                    )
                ),
                when("kind", &["secret", "storage", "certificate"], &by_server),
                delivered,
            ])
        }
        _ => return None,
    };
    Some(rules)
}
