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
