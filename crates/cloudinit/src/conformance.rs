//! Cases of the corpus: what the real program answered, and what is answered here.
//!
//! In: a line of the corpus. Out: [`Case`], with why it fails if it does. The form is that of
//! `corpora/README.md`.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value as Json;

use crate::detect::{CLOUD_CONFIG, detect_bytes};
use crate::error::Error;
use crate::merge::{Documented, Mergers, Settings, describe, describe_value};
use crate::parts::{Buffer, Part, merge_sources};
use crate::patch::of_json;
use crate::schema;
use crate::userdata::{Machine, Outcome, process};
use crate::value::{Data, Map, Time, Value};
use crate::yaml::{self, Text};

/// What came of a case.
#[derive(Debug)]
pub struct Case {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub area: String,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// Runs a case.
pub fn run_case(line: &str) -> Case {
    let case: Json = match serde_json::from_str(line) {
        Ok(case) => case,
        Err(error) => {
            return Case {
                id: String::new(),
                area: String::new(),
                failure: Some(format!("it is no case: {error}")),
            };
        }
    };
    let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
    Case {
        id: text("id"),
        area: text("area"),
        failure: judge(&case).err(),
    }
}

type Judged = Result<(), String>;

fn judge(case: &Json) -> Judged {
    let has = |key: &str| case.get(key).is_some();
    let expect = case.get("expect").ok_or("it expects nothing")?;
    if has("parts") {
        parts(case, expect)
    } else if has("userdata") || has("userdata_b64") {
        userdata(case, expect)
    } else if has("sources") {
        sources(case, expect)
    } else if has("base") {
        low_level(case, expect)
    } else if has("mergers") {
        description(case, expect)
    } else if has("detect") {
        detection(case, expect)
    } else if has("emit") {
        emission(case, expect)
    } else if has("schema") {
        validation(case, expect)
    } else {
        Err("nothing is asked".to_owned())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, should: &T) -> Judged {
    if is == should {
        return Ok(());
    }
    Err(format!("{what}: is {is:?}, should be {should:?}"))
}

/// Compares a merged value, which the corpus has as it is read back once written.
fn same_value(is: &Value, should: &Json) -> Judged {
    if written(is) == *should || matches(is, should) {
        return Ok(());
    }
    Err(format!("merged: is {}, should be {should}", written(is)))
}

fn same_class(error: &Error, expect: &Json) -> Judged {
    let should = expect["error_kind"].as_str().unwrap_or_default();
    if error.class.name() == should {
        return Ok(());
    }
    let class = error.class.name();
    Err(format!(
        "it fails with {class} ({error}), should fail with {should}"
    ))
}

fn judge_result(result: Result<Value, Error>, expect: &Json) -> Judged {
    match (result, expect["ok"].as_bool()) {
        (Ok(value), Some(true)) => {
            let should = expect.get("in_memory").unwrap_or(&expect["merged"]);
            same_value(&value, should)
        }
        (Err(error), Some(false)) => same_class(&error, expect),
        (Ok(value), _) => Err(format!("it should fail, and gives {}", written(&value))),
        (Err(error), _) => Err(format!("it fails: {error}")),
    }
}

fn low_level(case: &Json, expect: &Json) -> Judged {
    let result = mergers(&case["mergers"]).and_then(|mergers| {
        let (base, new) = (tagged(&case["base"]), tagged(&case["overlay"]));
        mergers.merge(&base, &new, Documented::default())
    });
    judge_result(result, expect)
}

fn mergers(described: &Json) -> Result<Mergers, Error> {
    Mergers::of(&match described {
        Json::String(text) => describe(text)?,
        other => describe_value(&tagged(other))?,
    })
}

fn description(case: &Json, expect: &Json) -> Judged {
    let described = match &case["mergers"] {
        Json::String(text) => describe(text),
        other => describe_value(&tagged(other)),
    };
    let result = described.and_then(|described| {
        let parsed: Vec<Json> = described
            .iter()
            .map(|one| {
                let settings = match &one.settings {
                    Settings::Names(names) => names.clone().into(),
                    Settings::Value(value) => written(value),
                };
                Json::from(vec![Json::from(&*one.name), settings])
            })
            .collect();
        Ok((parsed, Mergers::of(&described)?))
    });
    match (result, expect["ok"].as_bool()) {
        (Ok((parsed, mergers)), Some(true)) => {
            same("parsed", &Json::from(parsed), &expect["parsed"])?;
            let effective: Vec<String> = mergers.list.iter().map(ToString::to_string).collect();
            same("effective", &Json::from(effective), &expect["effective"])
        }
        (Err(error), Some(false)) => same_class(&error, expect),
        (Ok(_), _) => Err("it should fail".to_owned()),
        (Err(error), _) => Err(format!("it fails: {error}")),
    }
}

fn sources(case: &Json, expect: &Json) -> Judged {
    let mut sources: Vec<Value> = case["sources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(tagged)
        .collect();
    if case["reverse"] == Json::Bool(true) {
        sources.reverse();
    }
    judge_result(merge_sources(&sources), expect)
}

fn bytes_of(case: &Json, key: &str) -> Vec<u8> {
    let encoded = case[&*format!("{key}_b64")].as_str();
    match encoded.and_then(|text| BASE64.decode(text).ok()) {
        Some(bytes) => bytes,
        None => case[key].as_str().unwrap_or_default().as_bytes().to_vec(),
    }
}

fn detection(case: &Json, expect: &Json) -> Judged {
    let kind = detect_bytes(&bytes_of(case, "detect")).map_or(Json::Null, Json::from);
    same("type", &kind, &expect["type"])
}

fn emission(case: &Json, expect: &Json) -> Judged {
    let text = match tagged(&case["emit"]).data {
        Data::Text(text) => text,
        other => return Err(format!("{other:?} is no text")),
    };
    let safe = text.as_str().is_some_and(yaml::is_safe_plain);
    same("plain", &Json::from(safe), &expect["plain_safe"])?;
    let mut map = Map::default();
    map.insert(Value::from("v"), Value::new(Data::Text(text)));
    let value = Value::from(map);
    let emitted = yaml::emit(&value, 1 << 20).map_err(|error| error.to_string())?;
    let back = yaml::load(&emitted, 0).map_err(|error| format!("{emitted}: {error}"))?;
    same("read back", &back, &value)?;
    let theirs = expect["pyyaml"].as_str().unwrap_or_default();
    let theirs = yaml::load(theirs, 0).map_err(|error| format!("{theirs}: {error}"))?;
    same("PyYAML's form, read", &theirs, &value)
}

fn validation(case: &Json, expect: &Json) -> Judged {
    let findings = schema::check(&tagged(&case["schema"]));
    let paths = |deprecated: bool| -> Json {
        let of_kind = findings
            .iter()
            .filter(|finding| finding.is_deprecation == deprecated);
        let paths: BTreeSet<&str> = of_kind.map(|finding| &*finding.path).collect();
        paths.into_iter().collect()
    };
    let none = Json::Array(Vec::new());
    let wrong = paths(false);
    same("ok", &Json::from(wrong == none), &expect["ok"])?;
    same("errors", &wrong, expect.get("error_paths").unwrap_or(&none))?;
    let deprecated = expect.get("deprecated_paths").unwrap_or(&none);
    same("deprecated", &paths(true), deprecated)
}

fn parts(case: &Json, expect: &Json) -> Judged {
    let mut buffer = Buffer::new();
    let (mut failed, mut first, mut number) = (Vec::new(), None, 0_u32);
    for (index, part) in case["parts"].as_array().into_iter().flatten().enumerate() {
        let headers = part["headers"].as_object().into_iter().flatten();
        let part = Part {
            content_type: part["type"].as_str().unwrap_or(CLOUD_CONFIG).to_owned(),
            filename: format!("part-{:03}", index + 1),
            headers: headers
                .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
                .collect(),
            content: part["content"]
                .as_str()
                .unwrap_or_default()
                .as_bytes()
                .to_vec(),
        };
        if !part.is_merged() {
            continue;
        }
        number += 1;
        if let Err(error) = buffer.add(&part, index as u32) {
            failed.push(number);
            first.get_or_insert(error);
        }
    }
    let outcome = Outcome {
        merged: buffer.value().cloned(),
        ..Outcome::default()
    };
    judge_parts(&outcome, &failed, first.as_ref(), expect)
}

fn judge_parts(outcome: &Outcome, failed: &[u32], first: Option<&Error>, expect: &Json) -> Judged {
    match (&outcome.merged, &expect["merged"]) {
        (None, Json::Null) => {}
        (None, should) => return Err(format!("nothing is merged, should be {should}")),
        (Some(value), should) => {
            same_value(value, should)?;
            // What is written must be read back as that.
            if let Ok(text) = yaml::emit(value, 1 << 24) {
                let back = yaml::load(&text, 0).map_err(|error| format!("{text}: {error}"))?;
                same_value(&back, should)?;
            }
        }
    }
    if expect["ok"] == Json::Bool(true) {
        return first.map_or(Ok(()), |error| Err(format!("a part fails: {error}")));
    }
    let should = expect.get("failed_parts").unwrap_or(&Json::Null);
    same("failed parts", &Json::from(failed.to_vec()), should)?;
    first.map_or(Err("no part fails".to_owned()), |error| {
        same_class(error, expect)
    })
}

fn userdata(case: &Json, expect: &Json) -> Judged {
    let machine = Machine {
        launch_index: case["launch_index"].as_i64(),
        render: Some(&|text| render(text, &case["instance_data"])),
        fetch: None,
    };
    let raw = bytes_of(case, "userdata");
    let whole = expect["error_scope"] == "userdata";
    let outcome = match process(&raw, &machine) {
        Ok(_) if whole => return Err("all should be lost".to_owned()),
        Ok(outcome) => outcome,
        Err(error) if whole => return same_class(&error, expect),
        Err(error) => return Err(format!("all is lost: {error}")),
    };
    let types: Vec<&str> = outcome
        .parts
        .iter()
        .map(|part| &*part.content_type)
        .collect();
    same("types", &Json::from(types), &expect["part_types"])?;
    let names: Vec<&str> = outcome.parts.iter().map(|part| &*part.filename).collect();
    same("names", &Json::from(names), &expect["part_names"])?;
    let failed: Vec<u32> = outcome.failed.iter().map(|(number, _)| *number).collect();
    let first = outcome.failed.first().map(|(_, error)| error);
    judge_parts(&outcome, &failed, first, expect)
}

/// What Jinja makes of a template on the machine.
fn render(text: &str, data: &Json) -> Option<String> {
    let mut environment = minijinja::Environment::new();
    environment.set_keep_trailing_newline(true);
    environment.set_trim_blocks(true);
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    let mut context = data.as_object().cloned().unwrap_or_default();
    if let Some(Json::Object(members)) = data.get("v1") {
        for (key, value) in members {
            context.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    loop {
        match environment.render_str(text, &context) {
            Ok(text) => return Some(text),
            Err(error) if error.kind() == minijinja::ErrorKind::UndefinedError => {
                let name = missing(&environment, text, &context)?;
                let stand_in = format!("CI_MISSING_JINJA_VAR/{name}");
                context.insert(name, stand_in.into());
            }
            Err(_) => return None,
        }
    }
}

/// A variable that the template reads and nobody set.
fn missing(
    environment: &minijinja::Environment<'_>,
    text: &str,
    context: &serde_json::Map<String, Json>,
) -> Option<String> {
    let template = environment.template_from_str(text).ok()?;
    let read = template.undeclared_variables(false);
    read.into_iter().find(|name| !context.contains_key(name))
}

/// A value of the corpus, tags and all.
fn tagged(json: &Json) -> Value {
    let data = match json {
        Json::Array(items) => Data::List(Arc::new(items.iter().map(tagged).collect())),
        Json::Object(members) => {
            let mut each = members.iter();
            match (each.next(), each.next()) {
                (Some((tag, value)), None) if tag.starts_with('$') => of_tag(tag, value),
                _ => {
                    let mut map = Map::default();
                    for (key, value) in members {
                        map.insert(Value::from(&**key), tagged(value));
                    }
                    Data::Map(Arc::new(map))
                }
            }
        }
        _ => of_json(json, 0).data,
    };
    Value::new(data)
}

fn of_tag(tag: &str, value: &Json) -> Data {
    let text = value.as_str().unwrap_or_default();
    let items = || value.as_array().into_iter().flatten();
    match tag {
        "$date" | "$datetime" => Data::Time(Time {
            text: text.to_owned(),
            is_date: tag == "$date",
        }),
        "$binary" => Data::Bytes(BASE64.decode(text).unwrap_or_default().into()),
        "$tuple" => Data::Tuple(Arc::new(items().map(tagged).collect())),
        "$set" => {
            let mut set = Map::default();
            for item in items() {
                set.insert(tagged(item), Value::new(Data::Null));
            }
            Data::Set(Arc::new(set))
        }
        "$map" => {
            let mut map = Map::default();
            for entry in items() {
                map.insert(tagged(&entry[0]), tagged(&entry[1]));
            }
            Data::Map(Arc::new(map))
        }
        "$float" => Data::Float(match text {
            ".inf" => f64::INFINITY,
            "-.inf" => f64::NEG_INFINITY,
            _ => f64::NAN,
        }),
        "$int" => Data::Int(text.parse().unwrap_or_default()),
        "$surrogates" => Data::Text(Text::Points(
            items()
                .filter_map(|unit| unit.as_u64().map(|unit| unit as u32))
                .collect(),
        )),
        _ => Data::Cycle,
    }
}

/// Python's equality, but types must be the same too, and NaN is NaN.
fn matches(is: &Value, should: &Json) -> bool {
    fn equal(a: &Value, b: &Value) -> bool {
        match (&a.data, &b.data) {
            (Data::Float(a), Data::Float(b)) => a.total_cmp(b).is_eq() || *a == 0.0 && *b == 0.0,
            (Data::List(a) | Data::Tuple(a), Data::List(b)) | (Data::Tuple(a), Data::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| equal(a, b))
            }
            (Data::Map(a), Data::Map(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(key, value)| {
                        let theirs = b.iter().find(|(theirs, _)| equal(key, theirs));
                        theirs.is_some_and(|(_, theirs)| equal(value, theirs))
                    })
            }
            _ => std::mem::discriminant(&a.data) == std::mem::discriminant(&b.data) && a == b,
        }
    }
    equal(is, &tagged(should))
}

/// A value as the corpus writes it, for messages.
fn written(value: &Value) -> Json {
    match &value.data {
        Data::Null => Json::Null,
        Data::Bool(value) => (*value).into(),
        Data::Int(value) => match i64::try_from(value) {
            Ok(value) => value.into(),
            Err(_) => serde_json::json!({"$int": value.to_string()}),
        },
        Data::Float(value) => serde_json::Number::from_f64(*value).map_or_else(
            || serde_json::json!({"$float": value.to_string()}),
            Json::from,
        ),
        Data::Text(Text::Utf8(text)) => text.clone().into(),
        Data::Text(Text::Points(points)) => serde_json::json!({"$surrogates": points}),
        Data::Bytes(bytes) => serde_json::json!({"$binary": BASE64.encode(bytes)}),
        Data::Time(time) => {
            let tag = if time.is_date { "$date" } else { "$datetime" };
            serde_json::json!({tag: time.text})
        }
        Data::List(items) => items.iter().map(written).collect(),
        Data::Tuple(items) => {
            serde_json::json!({"$tuple": items.iter().map(written).collect::<Vec<_>>()})
        }
        Data::Set(set) => {
            let keys: Vec<Json> = set.iter().map(|(key, _)| written(key)).collect();
            serde_json::json!({"$set": keys})
        }
        Data::Cycle => serde_json::json!({"$cycle": true}),
        Data::Map(map) => {
            let members: Option<serde_json::Map<String, Json>> = map
                .iter()
                .map(|(key, value)| Some((key.as_str()?.to_owned(), written(value))))
                .collect();
            match members {
                Some(members) => members.into(),
                None => {
                    let entries: Vec<[Json; 2]> = map
                        .iter()
                        .map(|(key, value)| [written(key), written(value)])
                        .collect();
                    serde_json::json!({"$map": entries})
                }
            }
        }
    }
}
