//! Converts expressions and values to nodes.
//!
//! In: an expression and its context. Out: a [`Node`], every part of it with its place. Must not:
//! know the schema.
//!
//! Object and list literals are converted part by part, which keeps the order of keys and their
//! places. Computed objects are sorted by key, as HCL's objects are.

use std::sync::Arc;

use nstance_hcl::{
    Expression, ExpressionKind, Kind, ObjectItem, ObjectKey, Template, TemplatePart, Type, Value,
    convert,
};
use serde_json::Number;

use super::scope::At;
use crate::config::node::{Entry, Keys, Node, NodeValue, Sensitivity};
use crate::config::size;
use crate::config::source::{Hole, Language, Span};
use crate::diagnostic::{Diagnostic, Reported, all};

impl At<'_> {
    /// The node of an expression.
    ///
    /// Fails if it can't be evaluated; errors are reported.
    pub(in crate::config) fn node(&self, expression: &Expression) -> Result<Node, Reported> {
        let span = self.module.span(expression.span);
        match &expression.kind {
            ExpressionKind::Tuple(elements) => {
                let nodes = elements.iter().map(|element| self.node(element));
                let value = NodeValue::Array(all(nodes)?);
                Ok(Node::new(span, value))
            }
            ExpressionKind::Object(items) => {
                let value = NodeValue::Object(self.entries(items)?);
                Ok(Node::new(span, value))
            }
            ExpressionKind::Parenthesis(inner) => self.node(inner),
            _ => {
                let value = self.evaluate(expression).ok_or(Reported)?;
                self.record_holes(expression, &value);
                let node = self.module.node(&value, span, false)?;
                let elsewhere = node.span.source != span.source
                    || node.span.start < span.start
                    || node.span.end > span.end;
                if elsewhere {
                    self.module.used(span, node.span);
                }
                Ok(node)
            }
        }
    }

    fn entries(&self, items: &[ObjectItem]) -> Result<Vec<Entry>, Reported> {
        let mut entries: Vec<Entry> = Vec::with_capacity(items.len());
        let mut keys = Keys::default();
        let mut failed = false;
        for item in items {
            let key = match &item.key {
                ObjectKey::Name(name) => Some((Arc::clone(&name.name), name.span)),
                ObjectKey::Expression(key) => self.key(key).map(|text| (text, key.span)),
            };
            let value = self.node(&item.value);
            let (Some((key, key_span)), Ok(value)) = (key, value) else {
                failed = true;
                continue;
            };
            let key_span = self.module.span(key_span);
            if let Some(first) = keys.span(&entries, &key) {
                self.module.find(
                    Diagnostic::error(format!("`{key}` is set twice"))
                        .at(key_span, "set here again")
                        .related(first, "first set here"),
                );
                failed = true;
                continue;
            }
            entries.push(Entry {
                key,
                key_span,
                value,
            });
        }
        if failed { Err(Reported) } else { Ok(entries) }
    }

    fn key(&self, expression: &Expression) -> Option<Arc<str>> {
        let value = self.evaluate(expression)?;
        match convert(&value, &Type::String).map(|value| value.kind) {
            Ok(Kind::String(text)) if !value.sensitive => Some(text),
            _ => {
                let found = if value.sensitive {
                    "this is sensitive, and keys are shown"
                } else {
                    "expected a string"
                };
                self.module.find(
                    Diagnostic::error("this can't be a key")
                        .at(self.module.span(expression.span), found),
                );
                None
            }
        }
    }

    /// Records the interpolations of a literal, so that positions in its value can be mapped to the
    /// file.
    pub(super) fn record_holes(&self, expression: &Expression, value: &Value) {
        let ExpressionKind::Template(template) = &expression.kind else {
            return;
        };
        let span = self.module.span(expression.span);
        let source = self.module.sources.get(span.source);
        if source.language != Language::Hcl || template.passes {
            return;
        }
        if let Some(text) = value.as_str()
            && let Some(holes) = self.holes(template, text, &source.text)
        {
            self.module.collected.borrow_mut().holes.push((span, holes));
        }
    }

    /// The interpolations of a template; `None` if it has other sequences.
    fn holes(&self, template: &Template, value: &str, source: &str) -> Option<Vec<Hole>> {
        let mut literals = 0;
        let mut holes = Vec::new();
        for part in &template.parts {
            match part {
                TemplatePart::Literal(text) => literals += text.len(),
                TemplatePart::Interpolation(expression) => {
                    let (start, end) = braces(source, expression)?;
                    holes.push((start, end, expression));
                }
                TemplatePart::If(_) | TemplatePart::For(_) => return None,
            }
        }
        let all = value.len().checked_sub(literals)?;
        let length = |expression: &Expression| {
            if let [_] = holes[..] {
                return Some(all);
            }
            let value = self.value(expression).ok()?;
            let text = convert(&value, &Type::String).ok()?;
            text.as_str().map(str::len)
        };
        holes
            .iter()
            .map(|(start, end, expression)| {
                Some(Hole {
                    start: *start,
                    end: *end,
                    length: length(expression)? as u32,
                })
            })
            .collect()
    }
}

/// The range from `${` to `}`, if there is nothing but one expression between them.
fn braces(source: &str, expression: &Expression) -> Option<(u32, u32)> {
    let range = expression.span.range();
    let before = source.get(..range.start)?.trim_end();
    let after = source.get(range.end..)?;
    let behind = after.trim_start();
    let fits = before.ends_with("${") && behind.starts_with('}');
    fits.then(|| {
        let start = before.len() - 2;
        let end = range.end + after.len() - behind.len() + 1;
        (start as u32, end as u32)
    })
}

impl super::Module<'_> {
    /// Converts a value to a node at its own place; at `fallback` if that is unknown or sensitive.
    ///
    /// Fails if the value has no representation or is too large; errors are reported.
    pub(in crate::config) fn node(
        &self,
        value: &Value,
        fallback: Span,
        secret: bool,
    ) -> Result<Node, Reported> {
        let sensitivity = match value.sensitive_bytes() {
            _ if secret => Sensitivity::Whole,
            Some(bytes) => Sensitivity::Bytes(bytes.into()),
            None if value.sensitive => Sensitivity::Whole,
            None => Sensitivity::Open,
        };
        let secret = !sensitivity.is_open();
        let span = match value.span {
            Some(span) if !secret => self.span(span),
            _ => fallback,
        };
        if !self.has_room(value, span) {
            return Err(Reported);
        }
        let list = |elements: &[Value]| {
            let nodes = elements.iter().map(|item| self.node(item, span, secret));
            Ok(NodeValue::Array(nodes.collect::<Result<_, _>>()?))
        };
        let node = match &value.kind {
            Kind::Null(_) => NodeValue::Null,
            Kind::Bool(value) => NodeValue::Bool(*value),
            Kind::Number(number) => {
                let whole = number.to_i64().map(Number::from);
                let whole = whole.or_else(|| number.to_u64().map(Number::from));
                match whole.or_else(|| Number::from_f64(number.to_f64())) {
                    Some(kept) => {
                        if secret {
                            self.keep_secret(&number.to_string());
                        }
                        NodeValue::Number(kept)
                    }
                    None => {
                        self.find(
                            Diagnostic::error("a number is too large")
                                .at(span, "no number of this size can be kept")
                                .hint("if it is text, put it in double quotes"),
                        );
                        return Err(Reported);
                    }
                }
            }
            Kind::String(text) => {
                for bytes in sensitivity.bytes(text) {
                    self.keep_secret(&text[bytes]);
                }
                NodeValue::String(Arc::clone(text))
            }
            Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements) => {
                list(elements)?
            }
            Kind::Object(entries) | Kind::Map(_, entries) => NodeValue::Object(
                entries
                    .iter()
                    .map(|(key, value)| {
                        let value = self.node(value, span, secret)?;
                        Ok(Entry {
                            key: Arc::clone(key),
                            key_span: value.span,
                            value,
                        })
                    })
                    .collect::<Result<_, Reported>>()?,
            ),
        };
        Ok(Node {
            span,
            value: node,
            sensitivity,
        })
    }

    /// Whether there is room for another value; reports once if not.
    fn has_room(&self, value: &Value, span: Span) -> bool {
        let text = value.as_str().map_or(0, str::len);
        let mut collected = self.collected.borrow_mut();
        let had_room = collected.size <= size::LARGEST;
        collected.size = collected.size.saturating_add(size::of(text));
        let has_room = collected.size <= size::LARGEST;
        if had_room && !has_room {
            collected.findings.push(size::too_large(span));
        }
        has_room
    }

    /// Records a sensitive text, unless masking a known one already masks enough of it.
    fn keep_secret(&self, text: &str) {
        let mut collected = self.collected.borrow_mut();
        let known = collected
            .secrets
            .iter()
            .any(|secret| text.contains(&**secret));
        if !text.is_empty() && !known {
            collected.secrets.insert(text.into());
        }
    }
}
