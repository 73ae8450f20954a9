//! cloud-config against cloud-init's own JSON Schema.
//!
//! In: a cloud-config. Out: what is wrong with it and what is deprecated, each with its path and where
//! it was written. May not: change anything, or know more than the schema says.
//!
//! The schema is of draft 4 with cloud-init's additions: `deprecated` and `changed`, and keywords
//! beside `$ref` that count. It is the one of cloud-init 26.2 (Apache-2.0 or GPL-3.0).

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use num_traits::ToPrimitive as _;
use regex::Regex;
use serde_json::Value as Json;

use crate::value::{Data, Map, Origin, Value};

const TEXT: &str = include_str!("schema-cloud-config-v1.json");

/// What stands between the type of a value and those that it may have.
const TYPES: &str = ", and has to be ";

/// How deep a schema may refer to others.
const DEEPEST: u32 = 200;

/// Something that a schema has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where: keys and indices, with dots between them.
    pub path: String,
    /// What.
    pub message: String,
    /// Where it was written.
    pub origin: Origin,
    /// Whether it is only deprecated.
    pub is_deprecation: bool,
    /// Whether a value of another type would do: its type, or its value, is what is wrong.
    pub is_of_type: bool,
    /// What to do, where that is known.
    pub hint: Option<String>,
}

impl Finding {
    /// Whether a text would do, where the type is what is wrong.
    pub fn allows_text(&self) -> bool {
        let types = self.message.split_once(TYPES);
        self.is_of_type
            && types.is_none_or(|(_, types)| types.split(" or ").any(|one| one == "a string"))
    }

    /// Whether it has to be a list, and nothing else would do.
    pub fn wants_list(&self) -> bool {
        let types = self.message.split_once(TYPES);
        types.is_some_and(|(_, types)| types == "a list")
    }

    /// The path as people write it: `users[0].name`.
    pub fn shown_path(&self) -> String {
        let mut shown = String::new();
        for step in self.path.split('.').filter(|step| !step.is_empty()) {
            let is_index = step.bytes().all(|byte| byte.is_ascii_digit());
            if is_index && !shown.is_empty() {
                shown.push_str(&format!("[{step}]"));
            } else {
                let dot = if shown.is_empty() { "" } else { "." };
                shown.push_str(&format!("{dot}{step}"));
            }
        }
        shown
    }
}

struct Schema {
    root: Json,
    /// Each is compiled when it is first needed: that takes longer than most checks.
    patterns: BTreeMap<String, OnceLock<Regex>>,
}

impl Schema {
    fn pattern(&self, pattern: &str) -> Option<&Regex> {
        let regex = self.patterns.get(pattern)?;
        let compile = || Regex::new(pattern).expect("the schema's patterns are plain ones");
        Some(regex.get_or_init(compile))
    }
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let root: Json = serde_json::from_str(TEXT).expect("the schema is JSON");
    let mut patterns = BTreeMap::new();
    collect_patterns(&root, &mut patterns);
    Schema { root, patterns }
});

fn collect_patterns(schema: &Json, patterns: &mut BTreeMap<String, OnceLock<Regex>>) {
    let mut add = |pattern: &str| {
        patterns.insert(pattern.to_owned(), OnceLock::new());
    };
    match schema {
        Json::Object(members) => {
            if let Some(Json::String(pattern)) = members.get("pattern") {
                add(pattern);
            }
            if let Some(Json::Object(by_pattern)) = members.get("patternProperties") {
                by_pattern.keys().for_each(|pattern| add(pattern));
            }
            members
                .values()
                .for_each(|member| collect_patterns(member, patterns));
        }
        Json::Array(items) => items
            .iter()
            .for_each(|item| collect_patterns(item, patterns)),
        _ => {}
    }
}

/// What the schema has to say of a cloud-config, in the order of its keys.
pub fn check(config: &Value) -> Vec<Finding> {
    let mut check = Check {
        path: Vec::new(),
        depth: 0,
        lacking: Vec::new(),
        meant: Vec::new(),
    };
    let mut findings = check.against(&SCHEMA.root, config);
    // What a misspelt key was meant for isn't missing, nor what may stand in its place.
    let is_meant = |finding: &Finding| {
        let mut lacking = check.lacking.iter();
        let lacks = lacking.any(|one| one.path == finding.path && one.message == finding.message);
        lacks && {
            let here = check.lacking.iter().filter(|one| one.path == finding.path);
            let mut names = here.flat_map(|one| &one.names);
            names.any(|name| {
                check
                    .meant
                    .iter()
                    .any(|(path, near)| *path == finding.path && near == name)
            })
        }
    };
    findings.retain(|finding| !is_meant(finding));
    let mut seen = std::collections::HashSet::new();
    findings.retain(|finding| seen.insert((finding.path.clone(), finding.message.clone())));
    findings
}

struct Check {
    path: Vec<String>,
    depth: u32,
    lacking: Vec<Lacking>,
    /// The known keys that unknown ones are near to, with the paths of their mappings.
    meant: Vec<(String, String)>,
}

/// Keys that a mapping has to have and hasn't, with what was said of it.
struct Lacking {
    path: String,
    message: String,
    names: Vec<String>,
}

impl Check {
    fn finding(&self, value: &Value, message: impl Into<String>, is_deprecation: bool) -> Finding {
        Finding {
            path: self.path.join("."),
            message: message.into(),
            origin: value.origin,
            is_deprecation,
            is_of_type: false,
            hint: None,
        }
    }

    fn within(&mut self, step: String, schema: &Json, value: &Value) -> Vec<Finding> {
        self.path.push(step);
        let findings = self.against(schema, value);
        self.path.pop();
        findings
    }

    fn against(&mut self, schema: &Json, value: &Value) -> Vec<Finding> {
        let Json::Object(schema) = schema else {
            return Vec::new();
        };
        self.depth += 1;
        let mut findings = Vec::new();
        if self.depth <= DEEPEST {
            for (keyword, says) in schema {
                findings.extend(self.keyword(keyword, says, schema, value));
            }
        }
        self.depth -= 1;
        findings
    }

    fn keyword(
        &mut self,
        keyword: &str,
        says: &Json,
        schema: &serde_json::Map<String, Json>,
        value: &Value,
    ) -> Vec<Finding> {
        let schemas = || says.as_array().into_iter().flatten();
        let limit = says.as_f64().unwrap_or(f64::NAN);
        let number = number(value);
        let length = |data: &Data| match data {
            Data::Text(text) => Some(text.points().len()),
            _ => None,
        };
        let items = match &value.data {
            Data::List(items) => Some(&**items),
            _ => None,
        };
        let text = value.as_str();
        let wrong = match keyword {
            "$ref" => {
                let pointer = says.as_str().and_then(|text| text.strip_prefix('#'));
                // Its pointers have nothing escaped.
                let mut steps = pointer
                    .into_iter()
                    .flat_map(|pointer| pointer.split('/').skip(1));
                let found = steps.try_fold(&SCHEMA.root, |schema, step| schema.get(step));
                return found
                    .map(|schema| self.against(schema, value))
                    .unwrap_or_default();
            }
            "allOf" => return schemas().flat_map(|one| self.against(one, value)).collect(),
            "anyOf" => return self.any_of(says, value, false),
            "oneOf" => return self.any_of(says, value, true),
            "properties" | "patternProperties" | "additionalProperties" => {
                let Data::Map(map) = &value.data else {
                    return Vec::new();
                };
                return self.members(keyword, says, schema, map);
            }
            "items" => {
                let each = items.into_iter().flatten().enumerate();
                return each
                    .flat_map(|(index, item)| self.within(index.to_string(), says, item))
                    .collect();
            }
            "deprecated" | "changed" if *says == Json::Bool(true) => {
                return vec![self.finding(value, deprecation(keyword, schema), true)];
            }
            "not" => {
                let fits = self
                    .against(says, value)
                    .iter()
                    .all(|found| found.is_deprecation);
                fits.then(|| "these don't go together".to_owned())
            }
            "type" => (!is_of_types(value, says)).then(|| {
                let names = types(says).map(shown_type);
                let names: Vec<_> = names.collect();
                format!("this is {}{TYPES}{}", value.type_name(), names.join(" or "))
            }),
            "enum" => {
                let fits = schemas().any(|one| match one {
                    Json::String(one) => text == Some(one),
                    one => crate::patch::of_json(one, 0) == *value,
                });
                (!fits).then(|| {
                    let known: Vec<String> = schemas().map(plain).collect();
                    format!("it has to be one of: {}", known.join(", "))
                })
            }
            "required" => {
                let Data::Map(map) = &value.data else {
                    return Vec::new();
                };
                let missing: Vec<&str> = schemas()
                    .filter_map(Json::as_str)
                    .filter(|name| map.named(name).is_none())
                    .collect();
                (!missing.is_empty()).then(|| {
                    let message = format!("`{}` is missing", missing.join("`, `"));
                    self.lacking.push(Lacking {
                        path: self.path.join("."),
                        message: message.clone(),
                        names: missing.into_iter().map(str::to_owned).collect(),
                    });
                    message
                })
            }
            "minimum" => number
                .is_some_and(|number| number < limit)
                .then(|| format!("it has to be at least {says}")),
            "maximum" => number
                .is_some_and(|number| number > limit)
                .then(|| format!("it may be {says} at most")),
            "minLength" => length(&value.data)
                .is_some_and(|length| (length as f64) < limit)
                .then(|| format!("it has to have at least {says} characters")),
            "maxLength" => length(&value.data)
                .is_some_and(|length| length as f64 > limit)
                .then(|| format!("it may have {says} characters at most")),
            "minItems" => items
                .is_some_and(|items| (items.len() as f64) < limit)
                .then(|| format!("it has to have at least {says} items")),
            "maxItems" => items
                .is_some_and(|items| items.len() as f64 > limit)
                .then(|| format!("it may have {says} items at most")),
            "minProperties" => value
                .as_map()
                .is_some_and(|map| (map.len() as f64) < limit)
                .then(|| format!("it has to have at least {says} keys")),
            "uniqueItems" if *says == Json::Bool(true) => {
                let items = items.map_or(&[][..], |items| items);
                let mut earlier = items.iter().enumerate();
                earlier
                    .any(|(index, item)| items[..index].contains(item))
                    .then(|| "two of its items are the same".to_owned())
            }
            "pattern" => {
                let regex = says.as_str().and_then(|pattern| SCHEMA.pattern(pattern));
                let fits = regex
                    .zip(text)
                    .is_none_or(|(regex, text)| regex.is_match(text));
                (!fits).then(|| format!("it doesn't match {}", plain(says)))
            }
            _ => None,
        };
        wrong
            .map(|message| Finding {
                is_of_type: matches!(keyword, "type" | "enum" | "pattern"),
                ..self.finding(value, message, false)
            })
            .into_iter()
            .collect()
    }

    /// What is wrong with all of several schemas, if none fits; of one that fits, what is deprecated.
    fn any_of(&mut self, schemas: &Json, value: &Value, exactly: bool) -> Vec<Finding> {
        let schemas = || schemas.as_array().into_iter().flatten();
        // What is of another type doesn't fit, and to say why takes longer than all else.
        let is_candidate = |schema: &&Json| {
            let says = schema.get("type");
            says.is_none_or(|says| is_of_types(value, says))
        };
        let mut fitting = Vec::new();
        for schema in schemas().filter(is_candidate) {
            let findings = self.against(schema, value);
            if findings.iter().all(|finding| finding.is_deprecation) {
                fitting.push(findings);
                if !exactly {
                    break;
                }
            }
        }
        match fitting.len() {
            0 => {
                // Where any is of the value's type, it was meant.
                let is_of_type =
                    |schema: &&Json| schema.get("type").is_some() && is_candidate(schema);
                let has_no_type = |schema: &&Json| schema.get("type").is_none();
                let is_typed = schemas().any(|schema| is_of_type(&schema));
                let others = schemas()
                    .filter(|schema| is_of_type(schema) || has_no_type(schema) || !is_typed);
                let all = others.flat_map(|schema| self.against(schema, value));
                closest(all.filter(|finding| !finding.is_deprecation).collect())
            }
            1 => fitting.remove(0),
            _ if exactly => vec![self.finding(value, "it can be read in two ways", false)],
            _ => fitting.remove(0),
        }
    }

    fn members(
        &mut self,
        keyword: &str,
        says: &Json,
        schema: &serde_json::Map<String, Json>,
        map: &Map,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        let known = schema.get("properties").and_then(Json::as_object);
        for (key, member) in map.iter() {
            let Some(name) = key.as_str() else { continue };
            match keyword {
                "properties" => {
                    if let Some(schema) = says.get(name) {
                        findings.extend(self.within(name.to_owned(), schema, member));
                    }
                }
                "patternProperties" => {
                    for schema in by_pattern(Some(says), name) {
                        findings.extend(self.within(name.to_owned(), schema, member));
                    }
                }
                _ => {
                    let is_known = known.is_some_and(|known| known.contains_key(name))
                        || by_pattern(schema.get("patternProperties"), name)
                            .next()
                            .is_some();
                    if is_known {
                        continue;
                    }
                    if says.is_object() {
                        findings.extend(self.within(name.to_owned(), says, member));
                    } else if *says == Json::Bool(false) {
                        let message = format!("cloud-init knows no key `{name}` here");
                        let mut finding = self.finding(key, message, false);
                        finding.hint = known.and_then(|known| {
                            let near = nearest(name, known.keys().map(String::as_str))?;
                            self.meant.push((self.path.join("."), near.to_owned()));
                            Some(format!("Did you mean `{near}`?"))
                        });
                        if self.path.is_empty() {
                            name.clone_into(&mut finding.path);
                        }
                        findings.push(finding);
                    }
                }
            }
        }
        findings
    }
}

/// The name among `known` that was probably meant.
fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    // A third of the name may be wrong.
    let length = name.chars().count();
    let allowed = (length / 3).max(1);
    known
        .map(|known| (strsim::osa_distance(name, known), known))
        .filter(|(distance, _)| *distance <= allowed && *distance < length)
        .min()
        .map(|(_, known)| known)
}

/// The schemas for keys of such a name.
fn by_pattern<'s>(schemas: Option<&'s Json>, name: &str) -> impl Iterator<Item = &'s Json> {
    let patterns = schemas.and_then(Json::as_object).into_iter().flatten();
    patterns
        .filter(move |(pattern, _)| {
            let regex = SCHEMA.pattern(pattern);
            regex.is_some_and(|regex| regex.is_match(name))
        })
        .map(|(_, schema)| schema)
}

/// Of what several schemas have to say, what the deepest say: there most of it did fit.
fn closest(findings: Vec<Finding>) -> Vec<Finding> {
    let depth = |finding: &Finding| finding.path.matches('.').count();
    let deepest = findings.iter().map(depth).max().unwrap_or(0);
    let is_deepest = |finding: &Finding| depth(finding) == deepest;
    let mut closest: Vec<Finding> = Vec::new();
    for finding in findings.into_iter().filter(is_deepest) {
        // What may be of several types is told of once.
        let types = finding.message.split_once(TYPES);
        let told = closest.iter_mut().find_map(|earlier| {
            let (what, more) = types?;
            let is_same = earlier.path == finding.path
                && earlier.origin == finding.origin
                && earlier.message.split_once(TYPES)?.0 == what;
            is_same.then_some((earlier, more))
        });
        match told {
            None => closest.push(finding),
            Some((earlier, more)) => {
                let has = |known: &str| known == more;
                let known = earlier
                    .message
                    .split_once(TYPES)
                    .map_or("", |(_, known)| known);
                if !known.split(" or ").any(has) {
                    earlier.message.push_str(&format!(" or {more}"));
                }
            }
        }
    }
    closest
}

fn number(value: &Value) -> Option<f64> {
    match &value.data {
        Data::Int(value) => value.to_f64(),
        Data::Float(value) => Some(*value),
        _ => None,
    }
}

/// The types that a value may have.
fn types(says: &Json) -> impl Iterator<Item = &str> {
    let several = says.as_array().into_iter().flatten();
    let several = several.filter_map(Json::as_str);
    says.as_str().into_iter().chain(several)
}

fn is_of_types(value: &Value, says: &Json) -> bool {
    types(says).any(|name| is_of_type(value, name))
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => matches!(value.data, Data::Text(_) | Data::Bytes(_)),
        "integer" => matches!(value.data, Data::Int(_)),
        "number" => matches!(value.data, Data::Int(_) | Data::Float(_)),
        "boolean" => matches!(value.data, Data::Bool(_)),
        "null" => value.is_null(),
        "array" => matches!(value.data, Data::List(_)),
        "object" => matches!(value.data, Data::Map(_)),
        _ => true,
    }
}

fn shown_type(name: &str) -> &str {
    match name {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "a boolean",
        "array" => "a list",
        "object" => "a mapping",
        other => other,
    }
}

fn plain(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// What is said of a key that is deprecated, or changed its meaning.
fn deprecation(keyword: &str, schema: &serde_json::Map<String, Json>) -> String {
    let member = |suffix: &str| {
        let name = format!("{keyword}_{suffix}");
        schema.get(&name).and_then(Json::as_str).unwrap_or_default()
    };
    let mut message = match (keyword, member("version")) {
        ("deprecated", "") => "it is deprecated".to_owned(),
        ("deprecated", version) => format!("it is deprecated since cloud-init {version}"),
        (_, "") => "its meaning changed".to_owned(),
        (_, version) => format!("its meaning changed in cloud-init {version}"),
    };
    let description = member("description");
    if !description.is_empty() {
        message.push_str(&format!(": {description}"));
    }
    message
}
