//! Explains how the placeholder texts of an instance were replaced.
//!
//! In: a group's renderer, and one instance. Out: each text with its names, stage by stage. Must
//! not: print.

use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_gotemplate::Value;

use super::data::InstanceFacts;
use super::placeholders::{names, substitute};
use super::renderer::GroupRenderer;
use super::texts::{TextKinds, text_of};
use crate::config::source::Span;
use crate::merge::deep::{Merged, MergedValue};

/// A placeholder text of an instance, and what became of it.
#[derive(Debug)]
pub struct Substitution {
    /// The path in the instance: `args.name`, `tags.env`, `userdata`.
    pub path: String,
    /// Where it is written.
    pub written_at: Option<Span>,
    /// The text as written.
    pub text: String,
    /// The system names in it, with their values.
    pub system: Vec<(String, String)>,
    /// The text after the first stage.
    pub after_system: String,
    /// The variables in that, with their values and places.
    pub variables: Vec<(String, String, Option<Span>)>,
    /// The text after the second stage.
    pub result: String,
    /// Whether any of its variables is sensitive.
    pub is_sensitive: bool,
}

impl GroupRenderer<'_> {
    /// The placeholder texts of an instance with names in them; none if its group has templates.
    pub fn substitutions(&self, slot: u32, instance: &InstanceFacts) -> Vec<Substitution> {
        let group = &self.group.merged;
        let kinds = TextKinds::of(group);
        let labels = self.labels_of(slot, instance);
        let root = self.root(slot, instance, &BTreeMap::new(), labels.as_ref());
        let change = group.overrides.get(&slot);
        let vars = change.map_or(group.vars.as_ref(), |change| change.vars.as_ref());
        let table = Table { root, vars };
        let mut found = Vec::new();
        let args = change.map_or(group.args.as_ref(), |change| change.args.as_ref());
        if let Some(args) = args {
            args.leaves(&mut String::new(), &mut |path, value| {
                if let MergedValue::String(text) = &value.value
                    && kinds.is_placeholder(value.layer)
                {
                    let path = format!("args.{path}");
                    found.extend(table.explain(path, Some(value.span), text, &kinds));
                }
            });
        }
        let none = BTreeMap::new();
        let of_labels = TextKinds::of_labels(group, &none);
        for name in &group.placeholder_labels {
            let text = &group.labels[name];
            let place = group.label_places.get(name).copied();
            found.extend(table.explain(format!("tags.{name}"), place, text, &of_labels));
        }
        let own = group
            .userdata
            .joined()
            .filter(|(layer, _)| kinds.is_placeholder(*layer));
        for part in own.flat_map(|(_, userdata)| &userdata.parts) {
            let content = &part.text.content;
            if !part.text.is_url() {
                let path = "userdata".to_owned();
                found.extend(table.explain(path, Some(content.span), &content.value, &kinds));
            }
        }
        found
    }
}

/// The values of one instance.
struct Table<'t> {
    root: Value,
    vars: Option<&'t Merged>,
}

impl Table<'_> {
    fn explain(
        &self,
        path: String,
        written_at: Option<Span>,
        text: &Arc<str>,
        kinds: &TextKinds<'_>,
    ) -> Option<Substitution> {
        let system_value = |name: &str| self.system(&kinds.read_of(name)?);
        let variable = |name: &str| Some(self.variable(name)?.0);
        let after_system = substitute(text, &[&system_value]);
        let result = substitute(&after_system, &[&variable]);
        let values = |text: &str, value: &dyn Fn(&str) -> Option<String>| -> Vec<_> {
            let names = names(text).into_iter();
            names
                .filter_map(|name| Some((name.to_owned(), value(name)?)))
                .collect()
        };
        let system = values(text, &system_value);
        let variables: Vec<_> = values(&after_system, &variable)
            .into_iter()
            .map(|(name, value)| {
                let place = self.variable(&name).and_then(|(_, place)| place);
                (name, value, place)
            })
            .collect();
        let is_sensitive = variables.iter().any(|(name, ..)| self.is_sensitive(name));
        (!system.is_empty() || !variables.is_empty()).then(|| Substitution {
            is_sensitive,
            path,
            written_at,
            text: text.to_string(),
            system,
            after_system,
            variables,
            result,
        })
    }

    /// The value at a path of template data, such as `.Instance.Number`, or a label there.
    fn system(&self, (path, label): &(&str, Option<String>)) -> Option<String> {
        let mut value = &self.root;
        for field in path.split('.').filter(|field| !field.is_empty()) {
            match value {
                Value::Struct(fields) => value = fields.get(field)?,
                _ => return None,
            }
        }
        match (value, label) {
            (Value::Map(labels), Some(label)) => text_of(labels.get(label)?),
            (value, _) => text_of(value),
        }
    }

    /// Whether a variable is sensitive.
    fn is_sensitive(&self, name: &str) -> bool {
        let entries = self.vars.and_then(Merged::entries);
        let mut entries = entries.into_iter().flatten();
        let found = entries.find(|(key, _)| &***key == name);
        self.vars.is_some_and(|vars| !vars.sensitivity.is_open())
            || found.is_some_and(|(_, value)| value.is_sensitive_within())
    }

    fn variable(&self, name: &str) -> Option<(String, Option<Span>)> {
        let entries = self.vars?.entries()?;
        let (_, value) = entries.iter().find(|(key, _)| &***key == name)?;
        match &value.value {
            MergedValue::String(text) => Some((text.to_string(), Some(value.span))),
            _ => Some((value.to_json().to_string(), Some(value.span))),
        }
    }
}
