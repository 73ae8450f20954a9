//! Compiles the strings of a group as what they are: Go templates, or placeholder texts.
//!
//! In: a merged group, its strings with their layers. Out: [`Compiled`] texts. Must not: render.
//!
//! A placeholder text becomes a template with one action, which calls a function with the values of
//! the names in it. So all that is known of templates (what they read, whether instances share
//! them, limits) is known of it, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_gotemplate::{Environment, Function, FunctionError, Value};

use super::args::is_template;
use super::cache::{Compiled, Place, TemplateCache};
use super::placeholders::{GROUP_LABEL, INSTANCE_LABEL, SYSTEM, names, substitute};
use crate::config::model::Texts;
use crate::config::node::Sensitivity;
use crate::diagnostic::{Diagnostics, Reported};
use crate::merge::Layer;
use crate::merge::group::MergedGroup;

/// The function that placeholder texts call: the text, the user's variables, then pairs of a system
/// name and its value.
pub(super) const FUNCTION: &str = "placeholders";

/// The system name of an instance's tag.
const TAG: &str = "instance.tag";

/// What the strings of a group are.
pub(super) struct TextKinds<'g> {
    own: Texts,
    group_labels: &'g BTreeMap<Arc<str>, Arc<str>>,
    labels: &'g BTreeMap<Arc<str>, Arc<str>>,
    has_tags: bool,
}

impl<'g> TextKinds<'g> {
    pub(super) fn of(group: &'g MergedGroup<'_>) -> Self {
        Self {
            own: group.texts,
            group_labels: &group.group_labels,
            labels: &group.labels,
            has_tags: group.zones.iter().any(|zone| !zone.tags.is_empty()),
        }
    }

    /// The same for texts that can't read the instance's labels, since they are labels.
    pub(super) fn of_labels(
        group: &'g MergedGroup<'_>,
        none: &'g BTreeMap<Arc<str>, Arc<str>>,
    ) -> Self {
        Self {
            labels: none,
            ..Self::of(group)
        }
    }

    /// Whether strings of a layer are placeholder texts.
    pub(super) fn is_placeholder(&self, layer: Layer) -> bool {
        self.own == Texts::Placeholders && layer >= Layer::Group
    }

    /// Compiles a string of a layer; `None` if it stands for itself.
    ///
    /// Fails if a template has an error.
    pub(super) fn compile(
        &self,
        text: &Arc<str>,
        layer: Layer,
        place: Place,
        sensitivity: &Sensitivity,
        cache: &mut TemplateCache<'_>,
        findings: &mut Diagnostics,
    ) -> Result<Option<Compiled>, Reported> {
        if !self.is_placeholder(layer) {
            return is_template(text)
                .then(|| cache.compile(text, place, sensitivity, findings))
                .transpose();
        }
        let names = names(text);
        if names.is_empty() {
            return Ok(None);
        }
        let template = self.template(text, &names).into();
        let sensitivity = sensitivity.of_whole();
        let place = Place::Behind(place.span());
        let compiled = cache.compile_placeholders(&template, place, &sensitivity, findings);
        compiled.map(Some)
    }

    /// The template that substitutes a text whose names are `names`.
    fn template(&self, text: &str, names: &[&str]) -> String {
        let mut template = format!("{{{{ {FUNCTION} {} .Vars", quoted(text));
        for name in names {
            let value = match self.read_of(name) {
                Some((path, Some(label))) => format!("(index {path} {})", quoted(&label)),
                Some((path, None)) => path.to_owned(),
                None => continue,
            };
            template.push_str(&format!(" {} {value}", quoted(name)));
        }
        template.push_str(" }}");
        template
    }

    /// The path in template data that a system name stands for, and the label there; `None` if the
    /// group has no such name.
    pub(super) fn read_of(&self, name: &str) -> Option<(&'static str, Option<String>)> {
        if let Some((system, path)) = SYSTEM.iter().find(|(system, _)| *system == name) {
            return (*system != TAG || self.has_tags).then_some((*path, None));
        }
        let of = |prefix: &str, labels: &BTreeMap<Arc<str>, Arc<str>>, path| {
            let key = name.strip_prefix(prefix)?;
            labels
                .contains_key(key)
                .then(|| (path, Some(key.to_owned())))
        };
        of(GROUP_LABEL, self.group_labels, ".Group.Labels")
            .or_else(|| of(INSTANCE_LABEL, self.labels, ".Instance.Labels"))
    }
}

/// A text as a string of Go.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => {
                out.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// An environment in which placeholder texts can be executed.
pub(super) fn with_placeholders(environment: Environment) -> Environment {
    let body = |arguments: &[Value]| {
        let [text, variables, pairs @ ..] = arguments else {
            return Err(FunctionError::new("expected a text and variables"));
        };
        let system = |name: &str| {
            let mut pairs = pairs.chunks_exact(2);
            let pair = pairs.find(|pair| text_of(&pair[0]).as_deref() == Some(name));
            pair.and_then(|pair| text_of(&pair[1]))
        };
        let variable = |name: &str| match variables {
            Value::Map(map) => map.get(name).and_then(text_of),
            _ => None,
        };
        let text = text_of(text).unwrap_or_default();
        Ok(Value::from(substitute(&text, &[&system, &variable])))
    };
    environment.with_function(FUNCTION, Function::new(2, None, Arc::new(body)))
}

/// The text that stands for a value.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Int(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        value => {
            let bytes = value.as_bytes()?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use nstance_gotemplate::{Map, Template};
    use proptest::prelude::*;

    use super::*;
    use crate::config::model::Functions;
    use crate::render::cache::environment;

    type Labels = BTreeMap<Arc<str>, Arc<str>>;

    /// Label keys, some with characters that a template has to quote.
    const KEYS: [&str; 4] = ["env", "a\"b", "c\\d", "none"];

    fn labels(prefix: &str) -> Labels {
        let known = KEYS.iter().filter(|key| **key != "none");
        known
            .map(|key| ((*key).into(), format!("{prefix}{{v1}}{{{{v1}}}}").into()))
            .collect()
    }

    fn map<'v>(entries: impl IntoIterator<Item = (&'v str, Value)>) -> Value {
        let entries = entries.into_iter();
        let entries = entries.map(|(key, value)| (key.into(), value)).collect();
        Value::from(Map::new(entries))
    }

    fn of_labels(labels: &Labels) -> Value {
        map(labels
            .iter()
            .map(|(key, value)| (&**key, Value::from(&**value))))
    }

    /// What names stand for, as text or number.
    fn system(name: &str) -> Value {
        match name {
            "instance.index" => Value::from(7_i64),
            "instance.index_in_zone" => Value::from(3_i64),
            name => Value::from(format!("{{{name}}}-")),
        }
    }

    const VARIABLES: [(&str, &str); 4] = [
        ("v1", "{v2}"),
        ("v2", "{instance.tag}{v1}"),
        ("v7", ""),
        ("in {instance.tag}-", "never"),
    ];

    /// The result of the compiled text.
    fn compiled(kinds: &TextKinds<'_>, text: &str) -> String {
        let names = names(text);
        if names.is_empty() {
            return text.to_owned();
        }
        let environment = with_placeholders(environment(Functions::Go));
        let template = kinds.template(text, &names);
        let template = Template::parse("text", &template, &environment).unwrap();
        let of = |root: &str| {
            let own = SYSTEM.iter().filter_map(|(name, path)| {
                let member = path.strip_prefix(root)?;
                Some((member, system(name)))
            });
            own.collect::<Vec<_>>()
        };
        let labels = [
            (".Group.", kinds.group_labels),
            (".Instance.", kinds.labels),
        ];
        let [group, instance] = labels
            .map(|(root, labels)| map(of(root).into_iter().chain([("Labels", of_labels(labels))])));
        let variables = map(VARIABLES.map(|(key, value)| (key, Value::from(value))));
        let data = map([
            ("Group", group),
            ("Instance", instance),
            ("Vars", variables),
        ]);
        String::from_utf8(template.render(&data).unwrap().output).unwrap()
    }

    /// The same by the tables themselves.
    fn substituted(kinds: &TextKinds<'_>, text: &str) -> String {
        let label = |name: &str, prefix: &str, labels: &Labels| {
            labels
                .get(name.strip_prefix(prefix)?)
                .map(ToString::to_string)
        };
        let of_system = |name: &str| {
            let is_there = name != TAG || kinds.has_tags;
            let own = SYSTEM.iter().any(|(system, _)| *system == name) && is_there;
            own.then(|| text_of(&system(name)).unwrap())
                .or_else(|| label(name, GROUP_LABEL, kinds.group_labels))
                .or_else(|| label(name, INSTANCE_LABEL, kinds.labels))
        };
        let variable = |name: &str| {
            let mut variables = VARIABLES.iter();
            let found = variables.find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        substitute(text, &[&of_system, &variable])
    }

    /// Pieces of texts: names with and without braces, and what other languages write.
    fn piece() -> impl Strategy<Value = String> {
        let names = SYSTEM.iter().map(|(name, _)| (*name).to_owned());
        let labels = KEYS
            .iter()
            .flat_map(|key| [GROUP_LABEL, INSTANCE_LABEL].map(|prefix| format!("{prefix}{key}")));
        let names: Vec<String> = names
            .chain(labels)
            .chain(["v1", "v2", "v7", "v", "unknown", "instance.Tag"].map(str::to_owned))
            .collect();
        let marks = [
            "{",
            "}",
            "{{",
            "}}",
            "v",
            "in ",
            "\"",
            "\\",
            "`",
            "\n",
            "\r\n",
            "\t",
            "\0",
            "é",
            "$",
            "{{ .Vars }}",
            "{{/* */}}",
            "{}",
        ];
        let marks = prop::sample::select(marks.map(str::to_owned).to_vec());
        let name = prop::sample::select(names);
        prop_oneof![
            marks,
            name.clone(),
            name.clone().prop_map(|name| format!("{{{name}}}")),
            name.prop_map(|name| format!("{{{{{name}}}}}")),
        ]
    }

    proptest! {
        #[test]
        fn a_compiled_text_renders_as_its_tables_say(
            pieces in prop::collection::vec(piece(), 0..12),
            has_tags in any::<bool>(),
        ) {
            let (group_labels, labels) = (labels("group"), labels("instance"));
            let kinds = TextKinds {
                own: Texts::Placeholders,
                group_labels: &group_labels,
                labels: &labels,
                has_tags,
            };
            let text = pieces.concat();
            prop_assert_eq!(compiled(&kinds, &text), substituted(&kinds, &text));
        }
    }
}
