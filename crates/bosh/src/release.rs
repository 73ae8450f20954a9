//! Releases: the specs of their jobs, and the texts of the jobs' templates.
//!
//! In: what a caller read from release directories. Out: typed [`JobSpec`]s. Nothing is downloaded.

use indexmap::IndexMap;

use crate::Error;
use crate::manifest::Reader;
use crate::value::{Data, Value};

/// The jobs of each release, by the release's name and the job's name.
pub type Releases = IndexMap<String, IndexMap<String, JobSource>>;

/// The files of one job of a release.
#[derive(Debug, Clone)]
pub struct JobSource {
    /// The parsed text of `spec` or `job.MF`.
    pub spec: Value,
    /// The texts under `templates/`, by their path below it.
    pub templates: IndexMap<String, String>,
    /// The text of `monit`.
    pub monit: Option<String>,
}

/// The spec of a job.
#[derive(Debug, Clone)]
pub struct JobSpec {
    /// The job's name.
    pub name: String,
    /// What the job is for.
    pub description: Option<String>,
    /// The templates, in the spec's order.
    pub templates: Vec<Template>,
    /// The names of the packages that the job needs.
    pub packages: Vec<String>,
    /// The links that the job consumes.
    pub consumes: Vec<ConsumesSpec>,
    /// The links that the job provides.
    pub provides: Vec<ProvidesSpec>,
    /// The declared properties, in the spec's order.
    pub properties: Vec<PropertySpec>,
    /// The text of `monit`.
    pub monit: Option<String>,
}

/// A template of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The path below the job's `templates/`.
    pub source: String,
    /// The path below the job's directory on the instance.
    pub destination: String,
    /// The text; `None` if the release has no such file, which is an error once it is rendered.
    pub text: Option<String>,
}

impl Template {
    /// The mode of the rendered file: 0755 under `bin/`, 0644 elsewhere.
    pub fn mode(&self) -> u32 {
        if self.destination.starts_with("bin/") {
            0o755
        } else {
            0o644
        }
    }
}

/// An entry of a spec's `consumes`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumesSpec {
    /// The name that templates use.
    pub name: String,
    /// The type that a provider must have.
    pub kind: String,
    /// Whether the job also works without the link.
    pub optional: bool,
}

/// An entry of a spec's `provides`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvidesSpec {
    /// The link's name.
    pub name: String,
    /// The link's type.
    pub kind: String,
    /// The dotted names of the exported properties.
    pub properties: Vec<String>,
}

/// A declared property.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertySpec {
    /// The dotted name.
    pub name: String,
    /// The default; null without one.
    pub default: Value,
}

impl JobSpec {
    /// Reads the spec of a job. A section that is absent or null is empty.
    ///
    /// # Errors
    ///
    /// All errors of the spec: wrong types, and template paths that leave the job's directory.
    pub fn read(release: &str, job: &str, source: &JobSource) -> Result<Self, Vec<Error>> {
        let spec = &source.spec;
        if !spec.is_map() {
            let message = format!("The spec of job '{job}' in release '{release}' is not a hash");
            return Err(vec![Error::at(spec.place, message)]);
        }
        let mut reader = Reader::default();
        let own = Self {
            name: job.to_owned(),
            description: spec.get("description").map(Value::to_s),
            templates: templates(&mut reader, release, job, source),
            packages: texts(section(&mut reader, spec, "packages")),
            consumes: section(&mut reader, spec, "consumes")
                .iter()
                .filter_map(|item| consumed(&mut reader, item))
                .collect(),
            provides: section(&mut reader, spec, "provides")
                .iter()
                .filter_map(|item| provided(&mut reader, item))
                .collect(),
            properties: properties(&mut reader, spec),
            monit: source.monit.clone(),
        };
        if reader.errors.is_empty() {
            Ok(own)
        } else {
            Err(reader.errors)
        }
    }
}

/// The items of a list that may be absent or null.
fn section<'v>(reader: &mut Reader, spec: &'v Value, key: &str) -> &'v [Value] {
    match spec.get(key) {
        Some(value) if !value.is_null() => reader.list(spec, key).unwrap_or_default(),
        _ => &[],
    }
}

fn consumed(reader: &mut Reader, item: &Value) -> Option<ConsumesSpec> {
    let name = reader.required_string(item, "name");
    let kind = reader.required_string(item, "type");
    Some(ConsumesSpec {
        name: name?,
        kind: kind?,
        optional: item.get("optional").and_then(Value::as_bool) == Some(true),
    })
}

fn provided(reader: &mut Reader, item: &Value) -> Option<ProvidesSpec> {
    let name = reader.required_string(item, "name");
    let kind = reader.required_string(item, "type");
    Some(ProvidesSpec {
        name: name?,
        kind: kind?,
        properties: texts(section(reader, item, "properties")),
    })
}

fn properties(reader: &mut Reader, spec: &Value) -> Vec<PropertySpec> {
    if spec.get("properties").is_none_or(Value::is_null) {
        return Vec::new();
    }
    let declared = reader.map(spec, "properties");
    let Some(Data::Map(entries)) = declared.map(|map| map.data) else {
        return Vec::new();
    };
    let properties = entries.into_iter().map(|entry| {
        let default = entry.value.get("default").cloned();
        PropertySpec {
            name: entry.key.to_s(),
            default: default.unwrap_or_else(|| Value::null(entry.value.place)),
        }
    });
    properties.collect()
}

fn templates(reader: &mut Reader, release: &str, job: &str, source: &JobSource) -> Vec<Template> {
    if source.spec.get("templates").is_none_or(Value::is_null) {
        return Vec::new();
    }
    let Some(map) = reader.map(&source.spec, "templates") else {
        return Vec::new();
    };
    let mut templates = Vec::new();
    for entry in map.as_map().unwrap_or_default() {
        for path in [&entry.key, &entry.value] {
            let text = path.to_s();
            if !stays_below(&text) {
                let message = format!(
                    "Template path '{text}' of job '{job}' in release '{release}' must be a \
                     relative path without '..'"
                );
                reader.errors.push(Error::at(path.place, message));
            }
        }
        let path = entry.key.to_s();
        templates.push(Template {
            text: source.templates.get(&path).cloned(),
            source: path,
            destination: entry.value.to_s(),
        });
    }
    templates
}

/// Whether a path names a file below its folder on every system.
fn stays_below(path: &str) -> bool {
    let mut parts = path.split(['/', '\\']);
    !path.is_empty() && !path.contains(':') && parts.all(|part| !matches!(part, "" | "." | ".."))
}

fn texts(items: &[Value]) -> Vec<String> {
    items.iter().map(Value::to_s).collect()
}
