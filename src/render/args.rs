//! Trees of values whose strings are templates: args, and the templates of json files.
//!
//! In: a merged tree or a node. Out: a tree with its templates parsed, and JSON for an instance.
//! Must not: parse a text twice, or render keys.

use std::sync::Arc;

use nstance_gotemplate::Sensitive;
use serde_json::{Map, Value};

use super::cache::{Compiled, Place, TemplateCache};
use super::instance::Execution;
use crate::config::node::{Node, NodeValue, Sensitivity};
use crate::config::source::Span;
use crate::diagnostic::{Diagnostics, Reported, all};
use crate::merge::deep::{Merged, MergedValue};
use crate::sensitivity::Mark;

/// A value with templates in it.
#[derive(Debug, Clone)]
pub enum Tree {
    /// Nothing in it is a template.
    Constant(Value),
    /// A string that is.
    Template(Compiled),
    /// A list with templates in it.
    Array(Vec<Tree>),
    /// An object with templates in it.
    Object(Vec<(Arc<str>, Tree)>),
}

/// Whether a string has to be parsed at all: a text without an action is itself.
pub fn is_template(text: &str) -> bool {
    text.contains("{{")
}

impl Tree {
    /// Compiles merged args. Every template is compiled, so that all errors are found.
    pub fn from_merged(
        merged: &Merged,
        cache: &mut TemplateCache<'_>,
        findings: &mut Diagnostics,
    ) -> Result<Self, Reported> {
        match &merged.value {
            MergedValue::String(text) if is_template(text) => {
                Self::template(text, merged.span, &merged.sensitivity, cache, findings)
            }
            MergedValue::Array(items) => all(items
                .iter()
                .map(|item| Self::from_merged(item, cache, findings)))
            .map(Self::array),
            MergedValue::Object(entries) => all(entries.iter().map(|(key, value)| {
                let tree = Self::from_merged(value, cache, findings)?;
                Ok((Arc::clone(key), tree))
            }))
            .map(Self::object),
            _ => Ok(Self::Constant(merged.to_json())),
        }
    }

    /// Compiles the template of a json file; keys keep their order.
    pub fn from_node(
        node: &Node,
        cache: &mut TemplateCache<'_>,
        findings: &mut Diagnostics,
    ) -> Result<Self, Reported> {
        match &node.value {
            NodeValue::String(text) if is_template(text) => {
                Self::template(text, node.span, &node.sensitivity, cache, findings)
            }
            NodeValue::Array(items) => all(items
                .iter()
                .map(|item| Self::from_node(item, cache, findings)))
            .map(Self::array),
            NodeValue::Object(entries) => all(entries.iter().map(|entry| {
                let tree = Self::from_node(&entry.value, cache, findings)?;
                Ok((Arc::clone(&entry.key), tree))
            }))
            .map(Self::object),
            _ => Ok(Self::Constant(node.to_json())),
        }
    }

    fn template(
        text: &Arc<str>,
        span: Span,
        sensitivity: &Sensitivity,
        cache: &mut TemplateCache<'_>,
        findings: &mut Diagnostics,
    ) -> Result<Self, Reported> {
        cache
            .compile(text, Place::Literal(span), sensitivity, findings)
            .map(Self::Template)
    }

    fn array(items: Vec<Self>) -> Self {
        if items.iter().all(|item| matches!(item, Self::Constant(_))) {
            Self::Constant(Value::Array(
                items.into_iter().filter_map(Self::constant).collect(),
            ))
        } else {
            Self::Array(items)
        }
    }

    fn object(entries: Vec<(Arc<str>, Self)>) -> Self {
        if entries
            .iter()
            .all(|(_, value)| matches!(value, Self::Constant(_)))
        {
            Self::Constant(Value::Object(
                entries
                    .into_iter()
                    .filter_map(|(key, value)| Some((String::from(&*key), value.constant()?)))
                    .collect(),
            ))
        } else {
            Self::Object(entries)
        }
    }

    fn constant(self) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// What its templates make of sensitive data and text: all that those make which read some.
    pub(super) fn mark(&self, data: &Sensitive) -> Mark {
        match self {
            Self::Template(compiled) if compiled.trace(data).is_some() => Mark::Whole,
            Self::Constant(_) | Self::Template(_) => Mark::Open,
            Self::Array(items) => Mark::of_items(items.iter().map(|item| item.mark(data))),
            Self::Object(entries) => {
                let entries = entries.iter();
                Mark::of_keys(entries.map(|(key, value)| (&**key, value.mark(data))))
            }
        }
    }

    /// Calls `visit` with every template in it.
    pub fn templates<'a>(&'a self, visit: &mut dyn FnMut(&'a Compiled)) {
        match self {
            Self::Constant(_) => {}
            Self::Template(compiled) => visit(compiled),
            Self::Array(items) => items.iter().for_each(|item| item.templates(visit)),
            Self::Object(entries) => entries.iter().for_each(|(_, value)| value.templates(visit)),
        }
    }

    /// Renders every template in it; `None` if one failed.
    pub fn render(&self, execution: &mut Execution<'_>) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(value.clone()),
            Self::Template(compiled) => execution.string(compiled).map(Value::String),
            // All are rendered before one that failed ends it, so that every finding is made.
            Self::Array(items) => {
                let rendered: Vec<_> = items.iter().map(|item| item.render(execution)).collect();
                rendered
                    .into_iter()
                    .collect::<Option<Vec<_>>>()
                    .map(Value::Array)
            }
            Self::Object(entries) => {
                let rendered: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| (String::from(&**key), value.render(execution)))
                    .collect();
                rendered
                    .into_iter()
                    .map(|(key, value)| Some((key, value?)))
                    .collect::<Option<Map<_, _>>>()
                    .map(Value::Object)
            }
        }
    }
}
