//! Compiles and renders trees whose strings are templates: args, and json files.
//!
//! In: a merged tree or a node. Out: a tree of parsed templates, and JSON for an instance. Must
//! not: parse a text twice, or render keys.

use std::sync::Arc;

use nstance_gotemplate::Sensitive;
use serde_json::{Map, Value};

use super::cache::{Compiled, Place, TemplateCache};
use super::instance::Execution;
use super::texts::TextKinds;
use crate::config::node::{Node, NodeValue, Sensitivity};
use crate::config::source::Span;
use crate::diagnostic::{Diagnostics, Reported, all};
use crate::merge::deep::{Merged, MergedValue};
use crate::sensitivity::Mark;

/// A value that may contain templates.
#[derive(Debug, Clone)]
pub enum Tree {
    /// A value without templates.
    Constant(Value),
    /// A string that is a template.
    Template(Compiled),
    /// A list that contains templates.
    Array(Vec<Tree>),
    /// An object that contains templates.
    Object(Vec<(Arc<str>, Tree)>),
}

/// Whether a string must be parsed; a text without actions renders to itself.
pub fn is_template(text: &str) -> bool {
    text.contains("{{")
}

impl Tree {
    /// Compiles merged args.
    ///
    /// Fails if a template has an error; it compiles all of them, so that every error is found.
    pub(super) fn from_merged(
        merged: &Merged,
        kinds: &TextKinds<'_>,
        cache: &mut TemplateCache<'_>,
        findings: &mut Diagnostics,
    ) -> Result<Self, Reported> {
        match &merged.value {
            MergedValue::String(text) => {
                let place = Place::Literal(merged.span);
                let (layer, sensitivity) = (merged.layer, &merged.sensitivity);
                let compiled = kinds.compile(text, layer, place, sensitivity, cache, findings)?;
                let constant = || Self::Constant(merged.to_json());
                Ok(compiled.map_or_else(constant, Self::Template))
            }
            MergedValue::Array(items) => all(items
                .iter()
                .map(|item| Self::from_merged(item, kinds, cache, findings)))
            .map(Self::array),
            MergedValue::Object(entries) => all(entries.iter().map(|(key, value)| {
                let tree = Self::from_merged(value, kinds, cache, findings)?;
                Ok((Arc::clone(key), tree))
            }))
            .map(Self::object),
            _ => Ok(Self::Constant(merged.to_json())),
        }
    }

    /// Compiles the template of a json file; keys keep their order.
    ///
    /// Fails if a template has an error; it compiles all of them, so that every error is found.
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

    /// Marks the results of all templates that contain or read something sensitive.
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

    /// Calls `visit` with every template.
    pub fn templates<'a>(&'a self, visit: &mut dyn FnMut(&'a Compiled)) {
        match self {
            Self::Constant(_) => {}
            Self::Template(compiled) => visit(compiled),
            Self::Array(items) => items.iter().for_each(|item| item.templates(visit)),
            Self::Object(entries) => entries.iter().for_each(|(_, value)| value.templates(visit)),
        }
    }

    /// Renders every template; `None` if one failed.
    pub fn render(&self, execution: &mut Execution<'_>) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(value.clone()),
            Self::Template(compiled) => execution.string(compiled).map(Value::String),
            // All items are rendered even if one fails, so that every error is found.
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
