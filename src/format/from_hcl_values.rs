//! Expressions of HCL as values of other languages.
//!
//! In: expressions, and the [`Names`] in them. Out: [`Node`]s: literals as they are, what depends on
//! variables as `${ }`, what can't be said otherwise as its value, with a note. May not: put a
//! sensitive value into a text.

use std::rc::Rc;
use std::sync::Arc;

use nstance_hcl::{
    Expression, ExpressionKind, Kind, ObjectItem, ObjectKey, Step, StepKind, Template,
    TemplatePart, Traversal, Type, UnaryOperator, Value, convert,
};

use super::hcl_expression::{literal, plain, template_text, written};
use super::hcl_text::inner;
use crate::config::conversion::{Instance, Names};
use crate::config::jsonc;
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::{SourceId, Span};
use crate::config::variables::{Part, escaped, parts};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Something that the result doesn't say as the source did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub span: Span,
    /// What became of it.
    pub text: String,
}

/// Locals within locals go this deep.
const DEEPEST: usize = 100;

/// So many locals are put into one expression: each may hold others more than once.
const MOST_LOCALS: usize = 5_000;

/// What turns expressions into nodes.
pub(super) struct Values<'r> {
    pub(super) names: &'r Names<'r>,
    pub(super) text: &'r str,
    pub(super) findings: Diagnostics,
    pub(super) notes: Vec<Note>,
    /// The turn of `for_each` around.
    pub(super) each: Option<(Rc<[Instance]>, usize)>,
    /// How many locals are being written.
    depth: usize,
    /// How many were written into this expression.
    put_in: usize,
}

/// A place in the configuration; what stands for a local may be in an included file.
pub(super) fn place(span: nstance_hcl::Span) -> Span {
    Span {
        source: SourceId(span.file),
        start: span.start,
        end: span.end,
    }
}

/// A part of a string.
#[derive(PartialEq, Eq)]
enum Piece {
    Text(String),
    Expression(String),
}

impl<'r> Values<'r> {
    pub(super) fn new(names: &'r Names<'r>, text: &'r str) -> Self {
        Self {
            names,
            text,
            findings: Diagnostics::default(),
            notes: Vec::new(),
            each: None,
            depth: 0,
            put_in: 0,
        }
    }

    /// An expression: part by part where it is written out.
    pub(super) fn node(&mut self, expression: &Expression) -> Option<Node> {
        let span = place(expression.span);
        let value = match &expression.kind {
            ExpressionKind::Null => NodeValue::Null,
            ExpressionKind::Bool(value) => NodeValue::Bool(*value),
            ExpressionKind::String(text) => NodeValue::String(self.escaped(text)),
            ExpressionKind::Parenthesis(inner) => return self.node(inner),
            ExpressionKind::Tuple(items) => {
                let nodes: Vec<Option<Node>> = items.iter().map(|item| self.node(item)).collect();
                NodeValue::Array(nodes.into_iter().collect::<Option<_>>()?)
            }
            ExpressionKind::Object(items) => {
                // Every one is looked at, so that every error shows.
                let mut entry = |item: &ObjectItem| {
                    let (key, key_span) = match &item.key {
                        ObjectKey::Name(name) => (Some(name.name.clone()), name.span),
                        ObjectKey::Expression(key) => (self.value_as_text(key), key.span),
                    };
                    let value = self.node(&item.value);
                    Some(Entry {
                        key: key?,
                        key_span: place(key_span),
                        value: value?,
                    })
                };
                let entries: Vec<Option<Entry>> = items.iter().map(&mut entry).collect();
                NodeValue::Object(entries.into_iter().collect::<Option<_>>()?)
            }
            ExpressionKind::Template(template) if !template.passes => {
                NodeValue::String(self.template(expression, template)?)
            }
            _ => {
                if let Some(number) = self.number(expression) {
                    NodeValue::Number(number)
                } else if self.stays(expression) {
                    NodeValue::String(format!("${{{}}}", self.kept(expression)?).into())
                } else if let Some(text) = block_text(expression) {
                    NodeValue::String(self.escaped(&text.into()))
                } else {
                    let value = self.value(expression)?;
                    let mut node = self.names.node(
                        &value,
                        Span {
                            start: 0,
                            end: 0,
                            ..span
                        },
                    );
                    self.escape(&mut node);
                    if !matches!(node.value, NodeValue::Array(_) | NodeValue::Object(_)) {
                        node.span = span;
                    }
                    return Some(node);
                }
            }
        };
        Some(Node { span, value })
    }

    /// A value that refers to nothing, where `${ }` means nothing.
    pub(super) fn literally(&mut self, expression: &Expression) -> Option<Node> {
        let span = place(expression.span);
        let value = match &expression.kind {
            ExpressionKind::String(text) => NodeValue::String(Arc::clone(text)),
            ExpressionKind::Parenthesis(inner) => return self.literally(inner),
            ExpressionKind::Tuple(items) => {
                let nodes: Option<Vec<Node>> =
                    items.iter().map(|item| self.literally(item)).collect();
                NodeValue::Array(nodes?)
            }
            ExpressionKind::Object(items) => {
                let mut entries = Vec::new();
                for item in items {
                    let (key, key_span) = match &item.key {
                        ObjectKey::Name(name) => (name.name.clone(), name.span),
                        ObjectKey::Expression(key) => (self.value_as_text(key)?, key.span),
                    };
                    entries.push(Entry {
                        key,
                        key_span: place(key_span),
                        value: self.literally(&item.value)?,
                    });
                }
                NodeValue::Object(entries)
            }
            ExpressionKind::Null => NodeValue::Null,
            ExpressionKind::Bool(value) => NodeValue::Bool(*value),
            _ => match self.number(expression) {
                Some(number) => NodeValue::Number(number),
                None => {
                    let value = self.names.constant(expression, &mut self.findings)?;
                    let shown = shortened(&plain(expression));
                    self.note(expression.span, format!("`{shown}` became its value"));
                    return Some(self.names.node(
                        &value,
                        Span {
                            end: 0,
                            start: 0,
                            ..span
                        },
                    ));
                }
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

    /// A text where `${` may be an expression.
    fn escaped(&self, text: &Arc<str>) -> Arc<str> {
        if self.names.interpolated && text.contains("${") {
            escaped(text).into()
        } else {
            Arc::clone(text)
        }
    }

    fn escape(&self, node: &mut Node) {
        match &mut node.value {
            NodeValue::String(text) => *text = self.escaped(text),
            NodeValue::Array(items) => items.iter_mut().for_each(|item| self.escape(item)),
            NodeValue::Object(entries) => {
                for entry in entries {
                    self.escape(&mut entry.value);
                }
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Unknown => {}
        }
    }

    /// Whether an expression can be one in the other language: it depends on variables, or on
    /// nothing at all.
    fn stays(&self, expression: &Expression) -> bool {
        let reads = self.names.reads(expression);
        self.names.interpolated && (!reads.variables.is_empty() || !reads.names)
    }

    /// A template: what depends on variables stays `${ }`, everything else becomes text.
    fn template(&mut self, whole: &Expression, template: &Template) -> Option<Arc<str>> {
        let has_directives = (template.parts.iter())
            .any(|part| matches!(part, TemplatePart::If(_) | TemplatePart::For(_)));
        if has_directives {
            return if self.stays(whole) {
                Some(format!("${{{}}}", self.kept(whole)?).into())
            } else {
                let text = self.value_as_text(whole)?;
                Some(self.escaped(&text))
            };
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut complete = true;
        for part in &template.parts {
            let piece = match part {
                TemplatePart::Literal(text) => Some(Piece::Text(text.to_string())),
                TemplatePart::Interpolation(inner) if self.stays(inner) => {
                    self.kept(inner).map(Piece::Expression)
                }
                TemplatePart::Interpolation(inner) => self
                    .value_as_text(inner)
                    .map(|text| Piece::Text(text.to_string())),
                TemplatePart::If(_) | TemplatePart::For(_) => None,
            };
            match (pieces.last_mut(), piece) {
                (Some(Piece::Text(before)), Some(Piece::Text(text))) => before.push_str(&text),
                (_, Some(piece)) => pieces.push(piece),
                (_, None) => complete = false,
            }
        }
        complete.then(|| self.joined(&pieces).into())
    }

    fn joined(&self, pieces: &[Piece]) -> String {
        let mut joined = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => joined.push_str(&self.escaped(&text.as_str().into())),
                Piece::Expression(text) => joined.push_str(&format!("${{{text}}}")),
            }
        }
        let has_expressions = pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Expression(_)));
        if !has_expressions || reads_as(&joined, pieces) {
            return joined;
        }
        // Within Go's `{{ }}` nothing is replaced: then the whole is one expression.
        let mut quoted = String::from("${\"");
        for (index, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => {
                    let last = text.chars().next_back().filter(|last| "$%".contains(*last));
                    match last.filter(|_| index + 1 < pieces.len()) {
                        Some(last) => {
                            quoted.push_str(&inner(&text[..text.len() - 1]));
                            quoted.push_str(&format!("${{\"{last}\"}}"));
                        }
                        None => quoted.push_str(&inner(text)),
                    }
                }
                Piece::Expression(text) => quoted.push_str(&format!("${{{text}}}")),
            }
        }
        quoted + "\"}"
    }

    /// The value of an expression, as text.
    pub(super) fn value_as_text(&mut self, expression: &Expression) -> Option<Arc<str>> {
        if let ExpressionKind::String(text) = &expression.kind {
            return Some(Arc::clone(text));
        }
        if let Some(text) = block_text(expression) {
            return Some(text.into());
        }
        let value = self.value(expression)?;
        match convert(&value, &Type::String).map(|value| value.kind) {
            Ok(Kind::String(text)) => Some(text),
            _ => {
                self.refuse(expression, "this is no text", None);
                None
            }
        }
    }

    /// The value of an expression. Where that says less than the expression did, there is a note.
    pub(super) fn value(&mut self, expression: &Expression) -> Option<Value> {
        let value = self.silent_value(expression)?;
        let reads = self.names.reads(expression);
        if let Some(variable) = reads.variables.iter().next() {
            let shown = shortened(&plain(expression));
            self.note(
                expression.span,
                format!("`{shown}` became its value, which depends on `var.{variable}`"),
            );
        } else if reads.values || !reads.names {
            let shown = shortened(&plain(expression));
            self.note(expression.span, format!("`{shown}` became its value"));
        }
        Some(value)
    }

    /// The same without a note.
    pub(super) fn silent_value(&mut self, expression: &Expression) -> Option<Value> {
        let reads = self.names.reads(expression);
        if let Some(missing) = reads.variables.intersection(&self.names.missing).next() {
            let shown = shortened(&plain(expression));
            let what = format!("`{shown}` depends on the variable `{missing}`, which has no value");
            self.refuse(
                expression,
                &what,
                Some(format!("give it by `--var {missing}=…`, or a default")),
            );
            return None;
        }
        let turn = self.each.as_ref().map(|(turns, index)| &turns[*index]);
        let value = match self.names.value(expression, turn) {
            Ok(value) => value,
            Err(found) => {
                self.findings.extend(found);
                return None;
            }
        };
        if value.is_sensitive_within() {
            let shown = shortened(&plain(expression));
            self.refuse(
                expression,
                &format!("the value of `{shown}` is sensitive, and would be shown"),
                None,
            );
            return None;
        }
        Some(value)
    }

    /// Says once for each place what became of it.
    pub(super) fn note(&mut self, span: nstance_hcl::Span, text: String) {
        let note = Note {
            span: place(span),
            text,
        };
        if self.notes.last() != Some(&note) && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn refuse(&mut self, expression: &Expression, what: &str, hint: Option<String>) {
        let finding = Diagnostic::error(what).at(place(expression.span), "can't be converted");
        self.findings.push(match hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        });
    }

    /// The text of an expression whose variables stay, everything else in it replaced by values.
    pub(super) fn kept(&mut self, expression: &Expression) -> Option<String> {
        if let ExpressionKind::Template(template) = &expression.kind
            && template.passes
            && let [TemplatePart::Interpolation(alone)] = &template.parts[..]
        {
            return self.kept(alone);
        }
        self.with_values(expression, written)
    }

    /// The same between the quotes of a template.
    pub(super) fn kept_template(&mut self, expression: &Expression) -> Option<String> {
        self.with_values(expression, template_text)
    }

    fn with_values(
        &mut self,
        expression: &Expression,
        write: fn(&Expression, super::hcl_expression::Instead<'_>) -> Option<String>,
    ) -> Option<String> {
        let before = self.findings.len();
        let text = write(expression, &mut |reference| self.instead(reference));
        if text.is_none() {
            self.refuse(expression, "this becomes too long", None);
        }
        text.filter(|_| self.findings.len() == before)
    }

    /// What stands for a reference, and for how many of its steps. Where there is nothing, that was
    /// found.
    fn instead(&mut self, expression: &Expression) -> Option<(String, usize)> {
        let ExpressionKind::Traversal(traversal) = &expression.kind else {
            return None;
        };
        let ExpressionKind::Variable(root) = &traversal.base.kind else {
            return None;
        };
        let steps = &traversal.steps;
        let names = steps
            .iter()
            .take_while(|step| matches!(step.kind, StepKind::Attribute(_)))
            .count();
        let taken = match &*root.name {
            "var" => {
                // It stays, but must be there.
                let variable = first_steps(traversal, steps.len().min(1), expression);
                if let Err(found) = self.names.value(&variable, None) {
                    self.findings.extend(found);
                }
                return None;
            }
            "local" => {
                let StepKind::Attribute(name) = &steps.first()?.kind else {
                    return None;
                };
                match self.names.local(&name.name) {
                    Some(local) if !self.names.reads(local).variables.is_empty() => {
                        return Some((self.local(expression, local)?, 1));
                    }
                    _ => names,
                }
            }
            "each" => names,
            "path" => 1,
            "template" | "image" | "group" | "load_balancer" | "certificate" => steps.len(),
            _ => return None,
        };
        let part = first_steps(traversal, taken, expression);
        if let Some(text) = block_text(&part) {
            return Some((super::hcl_text::quoted(&text), taken));
        }
        let value = self.value(&part)?;
        Some((literal(&value), taken))
    }

    /// A local that depends on variables, in the place of its name.
    fn local(&mut self, place: &Expression, local: &Expression) -> Option<String> {
        if self.depth == 0 {
            self.put_in = 0;
        }
        self.put_in += 1;
        if self.depth == DEEPEST || self.put_in >= MOST_LOCALS {
            // One finding is enough, on the way out of all.
            if self.put_in <= MOST_LOCALS {
                self.put_in = MOST_LOCALS;
                self.refuse(place, "these locals refer to one another too often", None);
            }
            return None;
        }
        self.note(
            place.span,
            format!("`{}` became what it stands for", shortened(&plain(place))),
        );
        self.depth += 1;
        let each = self.each.take();
        let text = self.kept(local);
        self.each = each;
        self.depth -= 1;
        Some(format!("({})", text?))
    }
}

/// The text that a reference to a block stands for, even where the block is in another file.
fn block_text(expression: &Expression) -> Option<String> {
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

/// Whether a string has these parts.
fn reads_as(text: &str, pieces: &[Piece]) -> bool {
    let mut found: Vec<Piece> = Vec::new();
    for (_, part) in parts(text) {
        let text = match part {
            Part::Text(text) => text,
            Part::Escape => "${",
            Part::Open(_) => return false,
            Part::Expression(text) => {
                found.push(Piece::Expression(text[2..text.len() - 1].to_owned()));
                continue;
            }
        };
        match found.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => found.push(Piece::Text(text.to_owned())),
        }
    }
    let pieces = pieces
        .iter()
        .filter(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    found.iter().eq(pieces)
}

/// A reference that ends after so many steps.
fn first_steps(traversal: &Traversal, steps: usize, whole: &Expression) -> Expression {
    let steps: Vec<Step> = traversal.steps[..steps].to_vec();
    Expression {
        kind: ExpressionKind::Traversal(Box::new(Traversal {
            base: traversal.base.clone(),
            steps,
        })),
        span: whole.span,
    }
}

/// What a message shows of a text.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let start: String = text.chars().take(MOST).collect();
    format!("{}…", start.trim_end())
}
