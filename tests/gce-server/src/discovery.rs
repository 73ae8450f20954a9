//! Google's discovery document: which calls there are, and what their parameters and bodies hold.
//!
//! In: the document as JSON; requests and answers. Out: the method that a request calls, and what
//! is wrong with either. Must not: know any method.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{env, fs, io};

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::Regex;
use serde_json::{Map, Value};

use crate::http;

/// The environment variable with the document's path: `compute.v1.json` of the Python package
/// `google-api-python-client`.
pub const DISCOVERY: &str = "NSTANCE_TEST_DISCOVERY";

/// A discovery document.
#[derive(Debug)]
pub struct Document {
    /// What the path of each call begins with: `/compute/v1/`.
    base_path: String,
    methods: Vec<Method>,
    schemas: Map<String, Value>,
    /// Parameters that every method has.
    common: Map<String, Value>,
    patterns: HashMap<String, Regex>,
}

/// A method of the document.
#[derive(Debug)]
pub(crate) struct Method {
    /// As in `instances.insert`.
    pub(crate) name: String,
    verb: String,
    /// The path's parts; `{NAME}` stands for a parameter.
    path: Vec<String>,
    parameters: Map<String, Value>,
    request: Option<String>,
    response: Option<String>,
}

/// What is wrong with a request or an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    /// Where: `resource.disks[0].boot`, or a parameter's name.
    pub(crate) place: String,
    pub(crate) problem: Problem,
}

/// What is wrong in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The schema has no such member, or the method no such parameter.
    Unknown,
    /// A required member or parameter isn't there.
    Missing,
    /// A parameter that can't be repeated is.
    Repeated,
    /// The value has another type; the type that was expected.
    Type(String),
    /// The value doesn't match this pattern.
    Pattern(String),
    /// The value isn't one of the enum's.
    Enum(String),
}

impl Document {
    /// Reads a document.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read(path)?;
        let document: Value = serde_json::from_slice(&text)?;
        let problem = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        Self::new(&document).ok_or_else(|| problem("not a discovery document"))
    }

    /// The document that [`DISCOVERY`] names, read once; none where the variable isn't set, so that
    /// the test can be skipped. In CI (`CI=true`) that is a failure.
    ///
    /// # Panics
    /// Where the document can't be read, or the variable isn't set in CI.
    pub fn for_tests() -> Option<Arc<Self>> {
        static READ: OnceLock<Mutex<Option<Arc<Document>>>> = OnceLock::new();
        let Some(path) = env::var_os(DISCOVERY) else {
            let in_ci = env::var("CI").is_ok_and(|value| value == "true");
            assert!(!in_ci, "{DISCOVERY} isn't set");
            return None;
        };
        let read = READ.get_or_init(Mutex::default);
        let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
        let document = read.get_or_insert_with(|| {
            let document = Self::read(Path::new(&path));
            Arc::new(document.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        });
        Some(Arc::clone(document))
    }

    /// A document from its JSON; none where it lacks what a discovery document has.
    pub(crate) fn new(document: &Value) -> Option<Self> {
        let object = |name: &str| document.get(name)?.as_object().cloned();
        let mut methods = Vec::new();
        add_methods("", &object("resources")?, &mut methods)?;
        // Of the paths that fit a request, the first with the most literal parts wins.
        methods.sort_by_key(|method| method.path.iter().filter(|part| is_parameter(part)).count());
        let schemas = object("schemas")?;
        let mut patterns = HashMap::new();
        for value in [document.get("resources")?, document.get("schemas")?] {
            add_patterns(value, &mut patterns);
        }
        let base_path = document.get("servicePath")?.as_str()?;
        Some(Self {
            base_path: format!("/{}", base_path.trim_start_matches('/')),
            methods,
            schemas,
            common: object("parameters").unwrap_or_default(),
            patterns,
        })
    }

    /// The method of a path and its parameters in the path, decoded.
    pub(crate) fn find(&self, verb: &str, path: &str) -> Option<(&Method, Vec<(String, String)>)> {
        let path = path.strip_prefix(&*self.base_path)?;
        let parts: Vec<&str> = path.split('/').collect();
        self.methods.iter().find_map(|method| {
            if method.verb != verb || method.path.len() != parts.len() {
                return None;
            }
            let mut parameters = Vec::new();
            for (wanted, part) in method.path.iter().zip(&parts) {
                if is_parameter(wanted) {
                    let name = wanted[1..wanted.len() - 1].to_owned();
                    parameters.push((name, http::decode(part, false)?));
                } else if wanted != part {
                    return None;
                }
            }
            Some((method, parameters))
        })
    }

    /// Everything that is wrong with a call's parameters.
    pub(crate) fn check_parameters(
        &self,
        method: &Method,
        in_path: &[(String, String)],
        in_query: &[(String, String)],
    ) -> Vec<Invalid> {
        let mut invalid = Vec::new();
        for (name, schema) in &method.parameters {
            let place = if schema["location"] == "path" {
                in_path
            } else {
                in_query
            };
            let mut values = place.iter().filter(|(given, _)| given == name).peekable();
            if values.peek().is_none() && schema["required"] == true {
                invalid.push(Invalid::new(name, Problem::Missing));
            }
            for (position, (_, value)) in values.enumerate() {
                if position > 0 && schema["repeated"] != true {
                    invalid.push(Invalid::new(name, Problem::Repeated));
                }
                self.check_parameter(name, schema, value, &mut invalid);
            }
        }
        for (name, value) in in_query {
            let known = method.parameters.get(name);
            if known.is_some_and(|schema| schema["location"] == "query") {
                continue;
            }
            // Google's servers take a common parameter with a dollar sign, too; its clients send
            // the API's version that way.
            let plain = name.strip_prefix('$').unwrap_or(name);
            match self.common.get(name).or_else(|| self.common.get(plain)) {
                Some(schema) => self.check_parameter(name, schema, value, &mut invalid),
                None if name == "$apiVersion" => {}
                None => invalid.push(Invalid::new(name, Problem::Unknown)),
            }
        }
        invalid
    }

    /// Everything that is wrong with a request's body; null stands for none.
    pub(crate) fn check_request(&self, method: &Method, body: &Value) -> Vec<Invalid> {
        let mut invalid = Vec::new();
        match &method.request {
            // An absent body is an empty message.
            Some(_) if body.is_null() => {}
            Some(name) => {
                let schema = self.schemas.get(name).unwrap_or(&Value::Null);
                let caller = format!("compute.{}", method.name);
                self.check("resource", schema, body, Some(&caller), &mut invalid);
            }
            None if body.is_null() || body.as_object().is_some_and(Map::is_empty) => {}
            None => invalid.push(Invalid::new("resource", Problem::Unknown)),
        }
        invalid
    }

    /// Everything that is wrong with an answer.
    pub(crate) fn check_response(&self, method: &Method, body: &Value) -> Vec<Invalid> {
        let mut invalid = Vec::new();
        let schema = method.response.as_ref();
        let schema = schema.and_then(|name| self.schemas.get(name));
        match schema {
            Some(schema) => self.check("answer", schema, body, None, &mut invalid),
            None => invalid.push(Invalid::new("answer", Problem::Unknown)),
        }
        invalid
    }

    /// Whether a schema has a path of members. Paths lead through arrays and maps, as filters' do.
    pub(crate) fn has_field(&self, schema: &str, path: &[String]) -> bool {
        let mut schema = self.schemas.get(schema);
        for part in path {
            let Some(inner) = schema.map(|schema| self.resolve(schema)) else {
                return false;
            };
            let inner = match inner.get("items") {
                Some(items) if inner["type"] == "array" => self.resolve(items),
                _ => inner,
            };
            let property = inner.get("properties").and_then(|all| all.get(part));
            schema = property.or_else(|| inner.get("additionalProperties"));
            if schema.is_none() {
                return false;
            }
        }
        true
    }

    /// Whether a method has a parameter.
    pub(crate) fn has_parameter(&self, method: &str, parameter: &str) -> bool {
        let method = self.methods.iter().find(|one| one.name == method);
        method.is_some_and(|method| method.parameters.contains_key(parameter))
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|name| self.schemas.get(name));
        target.unwrap_or(schema)
    }

    fn check_parameter(&self, name: &str, schema: &Value, value: &str, out: &mut Vec<Invalid>) {
        let expected = schema["type"].as_str().unwrap_or("string");
        let fits = match expected {
            "boolean" => value == "true" || value == "false",
            "integer" if schema["format"] == "uint32" => value.parse::<u32>().is_ok(),
            "integer" => value.parse::<i32>().is_ok(),
            "number" => value.parse::<f64>().is_ok(),
            _ => true,
        };
        if fits {
            self.check_text(name, schema, value, out);
        } else {
            out.push(Invalid::new(name, Problem::Type(expected.to_owned())));
        }
    }

    fn check(
        &self,
        place: &str,
        schema: &Value,
        value: &Value,
        caller: Option<&str>,
        out: &mut Vec<Invalid>,
    ) {
        let resolved = self.resolve(schema);
        let expected = resolved["type"].as_str().unwrap_or("any");
        let format = resolved["format"].as_str().unwrap_or_default();
        let wrong = |out: &mut Vec<Invalid>| {
            let expected = match format {
                "" => expected.to_owned(),
                _ => format!("{expected} ({format})"),
            };
            out.push(Invalid::new(place, Problem::Type(expected)));
        };
        match (expected, value) {
            ("any", _) | ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) => {}
            ("string", Value::String(text)) => {
                let fits = match format {
                    "int64" => text.parse::<i64>().is_ok(),
                    "uint64" => text.parse::<u64>().is_ok(),
                    "byte" => decode_base64(text).is_some(),
                    _ => true,
                };
                if fits {
                    self.check_text(place, resolved, text, out);
                } else {
                    wrong(out);
                }
            }
            ("integer", Value::Number(number)) => {
                let fits = number.as_i64().is_some_and(|number| match format {
                    "uint32" => u32::try_from(number).is_ok(),
                    _ => i32::try_from(number).is_ok(),
                });
                if !fits {
                    wrong(out);
                }
            }
            ("array", Value::Array(items)) => {
                let item_schema = resolved.get("items").unwrap_or(&Value::Null);
                // The document puts the pattern of a list's strings on the list.
                let pattern = resolved.get("pattern").and_then(Value::as_str);
                for (number, item) in items.iter().enumerate() {
                    let place = format!("{place}[{number}]");
                    self.check(&place, item_schema, item, caller, out);
                    if let (Some(pattern), Some(text)) = (pattern, item.as_str()) {
                        self.check_pattern(&place, pattern, text, out);
                    }
                }
            }
            ("object", Value::Object(members)) => {
                self.check_members(place, resolved, members, caller, out);
            }
            _ => wrong(out),
        }
    }

    fn check_members(
        &self,
        place: &str,
        schema: &Value,
        members: &Map<String, Value>,
        caller: Option<&str>,
        out: &mut Vec<Invalid>,
    ) {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.unwrap_or(&none);
        let others = schema.get("additionalProperties");
        for (name, value) in members {
            let place = format!("{place}.{name}");
            match properties.get(name).or(others) {
                Some(schema) => self.check(&place, schema, value, caller, out),
                None => out.push(Invalid::new(&place, Problem::Unknown)),
            }
        }
        let Some(caller) = caller else { return };
        for (name, schema) in properties {
            let required = schema["annotations"]["required"].as_array();
            let required = required.is_some_and(|all| all.iter().any(|one| one == caller));
            if required && !members.contains_key(name) {
                out.push(Invalid::new(&format!("{place}.{name}"), Problem::Missing));
            }
        }
    }

    fn check_text(&self, place: &str, schema: &Value, text: &str, out: &mut Vec<Invalid>) {
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            self.check_pattern(place, pattern, text, out);
        }
        if let Some(names) = schema.get("enum").and_then(Value::as_array)
            && !names.iter().any(|name| name == text)
        {
            out.push(Invalid::new(place, Problem::Enum(text.to_owned())));
        }
    }

    fn check_pattern(&self, place: &str, pattern: &str, text: &str, out: &mut Vec<Invalid>) {
        let fits = self
            .patterns
            .get(pattern)
            .is_none_or(|it| it.is_match(text));
        if !fits {
            out.push(Invalid::new(place, Problem::Pattern(pattern.to_owned())));
        }
    }
}

impl Method {
    /// Whether it reads only.
    pub(crate) fn reads(&self) -> bool {
        self.response.as_deref() != Some("Operation")
    }
}

impl Invalid {
    fn new(place: &str, problem: Problem) -> Self {
        Self {
            place: place.to_owned(),
            problem,
        }
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = &self.place;
        match &self.problem {
            Problem::Unknown => write!(out, "{place} is unknown"),
            Problem::Missing => write!(out, "{place} is missing"),
            Problem::Repeated => write!(out, "{place} is repeated"),
            Problem::Type(expected) => write!(out, "{place} isn't of type {expected}"),
            Problem::Pattern(pattern) => write!(out, "{place} doesn't match {pattern}"),
            Problem::Enum(text) => write!(out, "{place} has the unknown enum value {text}"),
        }
    }
}

fn add_methods(prefix: &str, resources: &Map<String, Value>, out: &mut Vec<Method>) -> Option<()> {
    for (resource, content) in resources {
        let name = format!("{prefix}{resource}.");
        if let Some(inner) = content.get("resources").and_then(Value::as_object) {
            add_methods(&name, inner, out)?;
        }
        let Some(methods) = content.get("methods").and_then(Value::as_object) else {
            continue;
        };
        for (method, content) in methods {
            let text = |name: &str| Some(content.get(name)?.as_str()?.to_owned());
            let reference = |name: &str| Some(content.get(name)?.get("$ref")?.as_str()?.to_owned());
            let parameters = content.get("parameters").and_then(Value::as_object);
            out.push(Method {
                name: format!("{name}{method}"),
                verb: text("httpMethod")?,
                path: text("path")?.split('/').map(str::to_owned).collect(),
                parameters: parameters.cloned().unwrap_or_default(),
                request: reference("request"),
                response: reference("response"),
            });
        }
    }
    Some(())
}

/// Compiles each pattern once: they match whole texts. One that isn't a regular expression has no
/// effect, because the document isn't ours to fix.
fn add_patterns(value: &Value, out: &mut HashMap<String, Regex>) {
    match value {
        Value::Object(members) => {
            if let Some(pattern) = members.get("pattern").and_then(Value::as_str)
                && !out.contains_key(pattern)
                && let Ok(compiled) = Regex::new(&format!("^(?:{pattern})$"))
            {
                out.insert(pattern.to_owned(), compiled);
            }
            members.values().for_each(|inner| add_patterns(inner, out));
        }
        Value::Array(items) => items.iter().for_each(|inner| add_patterns(inner, out)),
        _ => {}
    }
}

fn is_parameter(part: &str) -> bool {
    part.starts_with('{') && part.ends_with('}')
}

/// The bytes of base64. Google's servers take both alphabets, with or without padding.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [&STANDARD, &URL_SAFE]
        .into_iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(text).ok())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::{Document, Invalid, Problem};

    /// A small document, made up.
    pub(crate) fn small() -> Document {
        let name = "[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?";
        let path =
            || json!({"type": "string", "location": "path", "required": true, "pattern": name});
        let document = json!({
            "servicePath": "compute/v1/",
            "parameters": {
                "alt": {"type": "string", "enum": ["json", "proto"], "location": "query"},
            },
            "resources": {"boats": {"methods": {
                "insert": {
                    "httpMethod": "POST", "path": "projects/{project}/boats",
                    "parameters": {
                        "project": path(),
                        "count": {"type": "integer", "format": "uint32", "location": "query"},
                        "force": {"type": "boolean", "location": "query"},
                        "views": {"type": "string", "enum": ["A", "B"], "repeated": true,
                                  "location": "query"},
                        "who": {"type": "string", "location": "query", "required": true},
                    },
                    "request": {"$ref": "Boat"}, "response": {"$ref": "Boat"},
                },
                "get": {
                    "httpMethod": "GET", "path": "projects/{project}/boats/{boat}",
                    "parameters": {"project": path(), "boat": path()},
                    "response": {"$ref": "Boat"},
                },
                "newest": {
                    "httpMethod": "GET", "path": "projects/{project}/boats/newest",
                    "parameters": {"project": path()},
                    "response": {"$ref": "Boat"},
                },
            }}},
            "schemas": {
                "Boat": {"type": "object", "properties": {
                    "name": {"type": "string", "pattern": name,
                             "annotations": {"required": ["compute.boats.insert"]}},
                    "size": {"type": "string", "format": "int64"},
                    "id": {"type": "string", "format": "uint64"},
                    "mark": {"type": "string", "format": "byte"},
                    "count": {"type": "integer", "format": "int32"},
                    "weight": {"type": "number", "format": "double"},
                    "kind": {"type": "string", "enum": ["SAIL", "STEAM"]},
                    "afloat": {"type": "boolean"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "tags": {"type": "array", "items": {"type": "string"}, "pattern": name},
                    "crew": {"type": "array", "items": {"$ref": "Sailor"}},
                }},
                "Sailor": {"type": "object", "properties": {
                    "name": {"type": "string"}, "rank": {"type": "any"},
                }},
            },
        });
        Document::new(&document).unwrap()
    }

    #[test]
    fn methods_are_found_by_path() {
        let document = small();
        for (verb, path, expected) in [
            ("POST", "/compute/v1/projects/p/boats", Some("boats.insert")),
            (
                "GET",
                "/compute/v1/projects/p/boats/a%2Db",
                Some("boats.get"),
            ),
            (
                "GET",
                "/compute/v1/projects/p/boats/newest",
                Some("boats.newest"),
            ),
            ("GET", "/compute/v1/projects/p/boats", None),
            ("GET", "/compute/v1/projects/p/boats/a/b", None),
            ("GET", "/projects/p/boats/a", None),
        ] {
            let found = document.find(verb, path);
            assert_eq!(found.map(|(method, _)| &*method.name), expected, "{path}");
        }
        let (_, parameters) = document
            .find("GET", "/compute/v1/projects/p/boats/a%2Db")
            .unwrap();
        assert_eq!(parameters[1], ("boat".to_owned(), "a-b".to_owned()));
    }

    #[test]
    fn parameters_are_checked() {
        let document = small();
        for (path, query, expected) in [
            ("p", "who=me", ""),
            (
                "p",
                "who=me&count=3&force=true&views=A&views=B&$alt=json&alt=json",
                "",
            ),
            ("p", "who=me&$apiVersion=2026-09-01", ""),
            ("p", "", "who is missing"),
            (
                "P",
                "who=me",
                "project doesn't match [a-z](?:[-a-z0-9]{0,61}[a-z0-9])?",
            ),
            ("p", "who=me&count=-1", "count isn't of type integer"),
            ("p", "who=me&force=yes", "force isn't of type boolean"),
            ("p", "who=me&who=you", "who is repeated"),
            ("p", "who=me&views=C", "views has the unknown enum value C"),
            ("p", "who=me&alt=xml", "alt has the unknown enum value xml"),
            ("p", "who=me&project=p", "project is unknown"),
            ("p", "who=me&why=so", "why is unknown"),
        ] {
            let path = format!("/compute/v1/projects/{path}/boats");
            let (method, in_path) = document.find("POST", &path).unwrap();
            let in_query = crate::http::decode_query(query).unwrap();
            let found = document.check_parameters(method, &in_path, &in_query);
            let found: Vec<String> = found.iter().map(Invalid::to_string).collect();
            assert_eq!(found.join("; "), expected, "{query}");
        }
    }

    #[test]
    fn bodies_are_checked() {
        let document = small();
        let (insert, _) = document
            .find("POST", "/compute/v1/projects/p/boats")
            .unwrap();
        let name = "[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?";
        for (body, expected) in [
            (json!({"name": "a"}), String::new()),
            (
                json!({
                    "name": "a", "size": "-1", "id": "18446744073709551615", "mark": "-_8=",
                    "count": 1, "weight": 1.5, "kind": "SAIL", "afloat": true,
                    "labels": {"a": "b"}, "tags": ["a"], "crew": [{"name": "A", "rank": 1}],
                }),
                String::new(),
            ),
            (json!({}), "resource.name is missing".to_owned()),
            (
                json!({"name": "A"}),
                format!("resource.name doesn't match {name}"),
            ),
            (
                json!({"name": "a", "size": 1}),
                "resource.size isn't of type string (int64)".to_owned(),
            ),
            (
                json!({"name": "a", "size": "x"}),
                "resource.size isn't of type string (int64)".to_owned(),
            ),
            (
                json!({"name": "a", "id": "-1"}),
                "resource.id isn't of type string (uint64)".to_owned(),
            ),
            (
                json!({"name": "a", "mark": "!"}),
                "resource.mark isn't of type string (byte)".to_owned(),
            ),
            (
                json!({"name": "a", "count": "1"}),
                "resource.count isn't of type integer (int32)".to_owned(),
            ),
            (
                json!({"name": "a", "count": 3_000_000_000_u64}),
                "resource.count isn't of type integer (int32)".to_owned(),
            ),
            (
                json!({"name": "a", "kind": "OAR"}),
                "resource.kind has the unknown enum value OAR".to_owned(),
            ),
            (
                json!({"name": "a", "afloat": "true"}),
                "resource.afloat isn't of type boolean".to_owned(),
            ),
            (
                json!({"name": "a", "labels": {"a": 1}}),
                "resource.labels.a isn't of type string".to_owned(),
            ),
            (
                json!({"name": "a", "tags": ["A"]}),
                format!("resource.tags[0] doesn't match {name}"),
            ),
            (
                json!({"name": "a", "crew": [{"age": 1}]}),
                "resource.crew[0].age is unknown".to_owned(),
            ),
            (
                json!({"name": "a", "Size": "1"}),
                "resource.Size is unknown".to_owned(),
            ),
            (json!([]), "resource isn't of type object".to_owned()),
            (
                json!({"name": "a", "crew": null}),
                "resource.crew isn't of type array".to_owned(),
            ),
        ] {
            let found = document.check_request(insert, &body);
            let found: Vec<String> = found.iter().map(Invalid::to_string).collect();
            assert_eq!(found.join("; "), expected, "{body}");
        }
        // An answer may lack members.
        assert_eq!(document.check_response(insert, &json!({})), []);
        let found = document.check_response(insert, &json!({"size": 1}));
        assert_eq!(found[0].problem, Problem::Type("string (int64)".to_owned()));
        let (get, _) = document
            .find("GET", "/compute/v1/projects/p/boats/a")
            .unwrap();
        assert_eq!(document.check_request(get, &Value::Null), []);
        assert_eq!(document.check_request(get, &json!({"a": 1})).len(), 1);
    }

    #[test]
    fn fields_are_found_through_arrays_and_maps() {
        let document = small();
        for (path, expected) in [
            ("name", true),
            ("labels.anything", true),
            ("crew.name", true),
            ("crew.age", false),
            ("Name", false),
            ("name.x", false),
        ] {
            let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
            assert_eq!(document.has_field("Boat", &parts), expected, "{path}");
        }
    }
}
