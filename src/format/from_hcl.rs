//! HCL, read for conversion.
//!
//! In: the text of a file. Out: a [`Document`] as another language would hold it: blocks under the
//! keys of their sections, references as the names or Go templates that they stand for; or what has
//! no counterpart. May not: evaluate anything.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use nstance_hcl::{
    Attribute, Block, Body, Expression, ExpressionKind, Item as HclItem, ObjectKey, StepKind,
    TemplatePart, UnaryOperator,
};

use super::attach::with_comments;
use super::document::{Container, Document, Item, Value, Wording};
use super::hcl::{DEFAULT_TENANT, NAMED};
use crate::config::jsonc;
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::{Language, SourceId, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Parts the kind and the labels of a block in its key; no name holds it.
const PART: char = '\0';

/// Reads a file; all that can't be converted is found in one go.
pub(super) fn read(source: SourceId, text: &str) -> Result<Document, Diagnostics> {
    let parsed =
        nstance_hcl::parse(text, source.0).map_err(|errors| super::hcl_findings(&errors))?;
    let mut reader = Reader {
        source,
        text,
        findings: Diagnostics::default(),
    };
    let entries = reader.body(&parsed.body, true);
    let start = entries
        .first()
        .map_or(0, |entry| entry.key_span.start as usize);
    let root = Node {
        span: Span::new(source, start, text.len()),
        value: NodeValue::Object(entries),
    };
    let comments: Vec<Range<usize>> = parsed.comments.iter().map(|span| span.range()).collect();
    let mut document = with_comments(&root, text, Language::Hcl, Wording::Meant, &comments);
    if let Value::Object(top) = &mut document.root {
        let items = std::mem::take(&mut top.items);
        top.items = sections(items, "");
    }
    if reader.findings.has_errors() {
        return Err(reader.findings);
    }
    Ok(document)
}

struct Reader<'t> {
    source: SourceId,
    text: &'t str,
    findings: Diagnostics,
}

impl Reader<'_> {
    fn span(&self, span: nstance_hcl::Span) -> Span {
        Span {
            source: self.source,
            start: span.start,
            end: span.end,
        }
    }

    fn body(&mut self, body: &Body, is_top: bool) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut seen: HashMap<Arc<str>, Span> = HashMap::new();
        for item in &body.items {
            let entry = match item {
                HclItem::Attribute(attribute) => self.attribute(attribute),
                HclItem::Block(block) => self.block(block),
            };
            let Some(entry) = entry else { continue };
            // What repeats without a name, within a block, makes a list.
            let stands_once =
                is_top || matches!(item, HclItem::Block(block) if !block.labels.is_empty());
            if stands_once && let Some(first) = seen.insert(entry.key.clone(), entry.key_span) {
                self.findings.push(
                    Diagnostic::error("a block stands twice")
                        .at(entry.key_span, "here again")
                        .related(first, "it stands here first")
                        .hint("remove or rename one of the two"),
                );
            }
            entries.push(entry);
        }
        entries
    }

    fn attribute(&mut self, attribute: &Attribute) -> Option<Entry> {
        let name = &attribute.name;
        if &*name.name == "for_each" {
            self.refuse(
                name.span,
                "`for_each` has no counterpart in other languages",
            );
            return None;
        }
        Some(Entry {
            key: name.name.clone(),
            key_span: self.span(name.span),
            value: self.node(&attribute.value)?,
        })
    }

    fn block(&mut self, block: &Block) -> Option<Entry> {
        let kind = &*block.kind.name;
        if matches!(kind, "variable" | "locals" | "dynamic") {
            self.refuse(
                block.header,
                &format!("`{kind}` blocks have no counterpart in other languages"),
            );
            return None;
        }
        let mut key = kind.to_owned();
        for label in &block.labels {
            key.push(PART);
            key.push_str(&label.name);
        }
        key.push(PART);
        let start = block.header.end as usize;
        let open = start + self.text[start..].find('{').unwrap_or(0);
        Some(Entry {
            key: key.into(),
            key_span: self.span(block.header),
            value: Node {
                span: Span::new(self.source, open, block.span.end as usize),
                value: NodeValue::Object(self.body(&block.body, false)),
            },
        })
    }

    fn refuse(&mut self, span: nstance_hcl::Span, what: &str) {
        let span = self.span(span);
        self.findings.push(
            Diagnostic::error(what)
                .at(span, "can't be converted")
                .hint("write its value in its place"),
        );
    }

    /// A literal, or what is made of literals.
    fn node(&mut self, expression: &Expression) -> Option<Node> {
        let span = self.span(expression.span);
        let value = match &expression.kind {
            ExpressionKind::Null => NodeValue::Null,
            ExpressionKind::Bool(value) => NodeValue::Bool(*value),
            ExpressionKind::String(text) => NodeValue::String(text.clone()),
            ExpressionKind::Parenthesis(inner) => return self.node(inner),
            ExpressionKind::Tuple(items) => {
                let nodes: Vec<Option<Node>> = items.iter().map(|item| self.node(item)).collect();
                NodeValue::Array(nodes.into_iter().collect::<Option<_>>()?)
            }
            ExpressionKind::Object(items) => {
                let mut entries = Vec::new();
                for item in items {
                    let (key, key_span) = match &item.key {
                        ObjectKey::Name(name) => (name.name.clone(), name.span),
                        ObjectKey::Expression(key) => (self.text_of(key)?, key.span),
                    };
                    let value = self.node(&item.value)?;
                    entries.push(Entry {
                        key,
                        key_span: self.span(key_span),
                        value,
                    });
                }
                NodeValue::Object(entries)
            }
            _ => match self.number(expression) {
                Some(number) => NodeValue::Number(number),
                None => NodeValue::String(self.text_of(expression)?),
            },
        };
        Some(Node { span, value })
    }

    fn number(&self, expression: &Expression) -> Option<serde_json::Number> {
        let (sign, number) = match &expression.kind {
            ExpressionKind::Unary(UnaryOperator::Negate, inner) => ("-", &**inner),
            _ => ("", expression),
        };
        if !matches!(number.kind, ExpressionKind::Number(_)) {
            return None;
        }
        jsonc::number(&format!("{sign}{}", &self.text[number.span.range()]))
    }

    /// The text of a literal, a reference, or a template made of these.
    fn text_of(&mut self, expression: &Expression) -> Option<Arc<str>> {
        match &expression.kind {
            ExpressionKind::String(text) => return Some(text.clone()),
            ExpressionKind::Traversal(_) => {
                if let Some(text) = reference(expression) {
                    return Some(text.into());
                }
            }
            ExpressionKind::Template(template) => {
                let mut whole = String::new();
                let mut complete = true;
                for part in &template.parts {
                    match part {
                        TemplatePart::Literal(text) => whole.push_str(text),
                        TemplatePart::Interpolation(inner) => match self.text_of(inner) {
                            Some(text) => whole.push_str(&text),
                            None => complete = false,
                        },
                        TemplatePart::If(part) => {
                            complete = false;
                            self.refuse(part.span, "`%{ }` has no counterpart in other languages");
                        }
                        TemplatePart::For(part) => {
                            complete = false;
                            self.refuse(part.span, "`%{ }` has no counterpart in other languages");
                        }
                    }
                }
                return complete.then(|| whole.into());
            }
            _ => {}
        }
        self.refuse(
            expression.span,
            "an expression has no counterpart in other languages",
        );
        None
    }
}

/// What `image.x`, `template.x`, … stand for.
fn reference(expression: &Expression) -> Option<String> {
    let ExpressionKind::Traversal(traversal) = &expression.kind else {
        return None;
    };
    let (ExpressionKind::Variable(base), [step]) = (&traversal.base.kind, &traversal.steps[..])
    else {
        return None;
    };
    let StepKind::Attribute(name) = &step.kind else {
        return None;
    };
    let name = &*name.name;
    match &*base.name {
        "image" if name.contains('-') => Some(format!("{{{{ index .Image \"{name}\" }}}}")),
        "image" => Some(format!("{{{{ .Image.{name} }}}}")),
        "template" | "load_balancer" | "certificate" => Some(name.to_owned()),
        _ => None,
    }
}

/// Puts blocks where their keys are; `owner` is what they stand in.
fn sections(items: Vec<Item>, owner: &str) -> Vec<Item> {
    let mut found: Vec<Item> = Vec::new();
    for mut item in items {
        let key = item.key.clone().unwrap_or_default();
        let Some((kind, labels)) = key.strip_suffix(PART).map(|key| {
            let mut parts = key.split(PART);
            (parts.next().unwrap_or_default(), parts.collect::<Vec<_>>())
        }) else {
            found.push(item);
            continue;
        };
        if let Value::Object(body) = &mut item.value {
            let items = std::mem::take(&mut body.items);
            body.items = sections(items, kind);
            body.inline = false;
        }
        let named = NAMED
            .iter()
            .find(|(_, singular)| owner.is_empty() && *singular == kind);
        let mut path: Vec<&str> = match (owner, kind) {
            ("image", "filter") => {
                add_to_list(&mut found, "filters", item);
                continue;
            }
            ("template" | "group", "file") => vec!["files"],
            ("template" | "group", "override") => vec!["overrides"],
            _ => vec![named.map_or(kind, |(section, _)| section)],
        };
        if path == ["groups"] && labels.len() == 1 && named.is_some() {
            path.push(DEFAULT_TENANT);
        }
        let is_named = !labels.is_empty();
        path.extend(labels);
        put(&mut found, &path, item, is_named);
    }
    found
}

/// Puts an item at the end of a path of keys, where nothing is yet if it is named.
fn put(items: &mut Vec<Item>, path: &[&str], mut item: Item, is_named: bool) {
    let (key, rest) = match path {
        [] => return,
        [key, rest @ ..] => (*key, rest),
    };
    let known = |items: &[Item]| {
        let mut keys = items.iter().map(|known| known.key.as_deref());
        keys.position(|known| known == Some(key))
    };
    if rest.is_empty() {
        // What repeats without a name is a list.
        if !is_named && known(items).is_some() {
            add_to_list(items, key, item);
        } else {
            item.key = Some(key.into());
            items.push(item);
        }
        return;
    }
    let at = known(items).unwrap_or_else(|| {
        items.push(Item {
            key: Some(key.into()),
            gap: item.gap || item.before.first().is_some_and(|comment| comment.gap),
            value: Value::Object(Container::default()),
            ..Item::default()
        });
        items.len() - 1
    });
    if let Value::Object(inner) = &mut items[at].value {
        put(&mut inner.items, rest, item, is_named);
    }
}

/// Adds to the list of a key, which one object may be so far.
fn add_to_list(items: &mut Vec<Item>, key: &str, mut item: Item) {
    item.key = None;
    let Some(known) = items
        .iter_mut()
        .find(|known| known.key.as_deref() == Some(key))
    else {
        items.push(Item {
            key: Some(key.into()),
            value: Value::List(Container {
                items: vec![item],
                ..Container::default()
            }),
            ..Item::default()
        });
        return;
    };
    if let Value::Object(_) = &known.value {
        let first = Item {
            value: std::mem::take(&mut known.value),
            ..Item::default()
        };
        known.value = Value::List(Container {
            items: vec![first],
            ..Container::default()
        });
    }
    if let Value::List(list) = &mut known.value {
        list.items.push(item);
    }
}
