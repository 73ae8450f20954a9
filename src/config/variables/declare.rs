//! Reads declarations: `variable "x" { … }` in HCL, the key `variables` in other languages.
//!
//! In: files. Out: the declared variables. Must not: look at given values.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nstance_hcl::{
    Block, Body, Context, Entries, Error, Evaluator, Expression, ExpressionKind, Item, NoFiles,
    Number, Reference, Scope, Type, Value, parse_expression, parse_template,
};

use crate::config::assemble::twice;
use crate::config::hcl::{File, Places, named};
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::schema::tables::VARIABLE;
use crate::config::source::{SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};

/// A declared variable, as far as it is valid.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) name_span: Span,
    pub(super) of: Option<(Type, Span)>,
    pub(super) default: Option<(Value, Span)>,
    /// Whether its default is invalid.
    pub(super) broken: bool,
    /// The text of an invalid default, which may be a secret.
    pub(super) hidden: Option<Arc<str>>,
    pub(super) description: Option<Arc<str>>,
    pub(super) sensitive: Option<bool>,
    pub(super) nullable: Option<bool>,
    pub(super) validations: Vec<Validation>,
}

impl Declaration {
    fn new(name_span: Span) -> Self {
        Self {
            name_span,
            of: None,
            default: None,
            broken: false,
            hidden: None,
            description: None,
            sensitive: None,
            nullable: None,
            validations: Vec::new(),
        }
    }

    pub(super) fn is_sensitive(&self) -> bool {
        self.sensitive == Some(true)
    }

    pub(super) fn is_nullable(&self) -> bool {
        self.nullable != Some(false)
    }
}

/// A `validation` of a variable.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) condition: Expression,
    pub(super) message: Expression,
    /// The folder that functions start from.
    pub(super) folder: Option<Arc<Path>>,
}

/// All declared variables of a configuration.
#[derive(Debug, Default)]
pub(in crate::config) struct Declarations {
    pub(super) variables: BTreeMap<Arc<str>, Declaration>,
}

/// The context for reading declarations.
pub(in crate::config) struct Reading<'a> {
    pub(in crate::config) sources: &'a SourceMap,
    pub(in crate::config) places: &'a Places,
    pub(in crate::config) findings: &'a mut Diagnostics,
}

impl Declarations {
    /// Whether no variable is declared.
    pub(in crate::config) fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    /// Removes the key `variables` from a document and reads it.
    pub(in crate::config) fn take(
        &mut self,
        root: &mut Node,
        overrides: bool,
        folder: Option<&Arc<Path>>,
        reading: &mut Reading<'_>,
    ) {
        let NodeValue::Object(entries) = &mut root.value else {
            return;
        };
        let Some(at) = entries.iter().position(|entry| &*entry.key == "variables") else {
            return;
        };
        let section = entries.remove(at).value;
        let NodeValue::Object(variables) = &section.value else {
            reading.wrong(&section, "`variables`", "an object");
            return;
        };
        for entry in variables {
            let declaration = reading.entry(entry, folder);
            self.add(&entry.key, declaration, overrides, reading);
        }
    }

    /// Adds the `variable` blocks of a file.
    pub(in crate::config) fn blocks(&mut self, file: &File, reading: &mut Reading<'_>) {
        let blocks = file.body.blocks();
        for block in blocks.filter(|block| &*block.kind.name == "variable") {
            let [label] = &block.labels[..] else {
                let place = reading.span(block.header);
                reading.findings.push(
                    Diagnostic::error("a `variable` block has one label: the variable's name")
                        .at(place, format!("this has {}", block.labels.len()))
                        .hint("write `variable \"NAME\" { … }`"),
                );
                continue;
            };
            let declaration = reading.block(block, label.span, file);
            self.add(&label.name, declaration, file.overrides, reading);
        }
    }

    fn add(
        &mut self,
        name: &Arc<str>,
        declaration: Declaration,
        overrides: bool,
        reading: &mut Reading<'_>,
    ) {
        let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        if !starts || !name.chars().all(fits) {
            reading.findings.push(
                Diagnostic::error(format!("`{name}` can't be the name of a variable"))
                    .at(declaration.name_span, "no expression could refer to it")
                    .hint("names are letters, digits, `_` and `-`, and start with a letter"),
            );
            return;
        }
        let Some(first) = self.variables.get_mut(name) else {
            self.variables.insert(Arc::clone(name), declaration);
            return;
        };
        if !overrides {
            let path = format!("var.{name}");
            reading
                .findings
                .push(twice(&path, first.name_span, declaration.name_span));
            return;
        }
        first.of = declaration.of.or(first.of.take());
        first.broken |= declaration.broken;
        first.default = declaration.default.or(first.default.take());
        first.description = declaration.description.or(first.description.take());
        first.sensitive = declaration.sensitive.or(first.sensitive);
        first.nullable = declaration.nullable.or(first.nullable);
        if !declaration.validations.is_empty() {
            first.validations = declaration.validations;
        }
    }
}

impl Reading<'_> {
    fn span(&self, span: nstance_hcl::Span) -> Span {
        self.places.span(self.sources, span)
    }

    fn errors(&mut self, errors: &[Error]) {
        for error in errors {
            let finding = self.places.finding(self.sources, error);
            self.findings.push(finding);
        }
    }

    fn wrong(&mut self, node: &Node, what: &str, wanted: &str) {
        self.findings
            .push(Diagnostic::error(format!("{what} must be {wanted}")).at(
                node.span,
                format!("expected {wanted}, found {}", node.type_name()),
            ));
    }

    fn unknown(&mut self, key: &str, place: Span, declaration: &mut Declaration) {
        // Without a colon and a space, the text after the key may be a secret.
        let word = key.split([' ', ':']).next();
        let lost = word.filter(|word| word.len() < key.len() && VARIABLE.key(word).is_some());
        let finding = match lost {
            Some(word) => Diagnostic::error(format!("no colon and blank stand behind `{word}`"))
                .at(place, "so all of it is a key"),
            None => {
                Diagnostic::error(format!("a variable has no `{key}`")).at(place, "unknown key")
            }
        };
        let near = lost.or_else(|| nearest(key, VARIABLE.names()));
        // It may be the misspelled default.
        declaration.broken = true;
        if near == Some("sensitive") {
            declaration.sensitive = Some(true);
        }
        self.findings.push(match near {
            Some(near) if lost.is_some() => finding.hint(format!("write `{near}: …`")),
            Some(near) => finding.hint(format!("did you mean `{near}`?")),
            None => finding.hint(format!(
                "known here: {}",
                VARIABLE
                    .names()
                    .map(|key| format!("`{key}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            )),
        });
    }

    /// The value of an expression without references; reports anything else.
    pub(in crate::config) fn constant(&mut self, expression: &Expression) -> Option<Value> {
        let context = Context::new(&NoFiles);
        match Evaluator::new(&Constants, &context).evaluate(expression) {
            Ok(value) => Some(value),
            Err(errors) => {
                self.errors(&errors);
                None
            }
        }
    }

    /// If one of the findings after the first `before` quotes a default, replaces them all by one
    /// at `place` that doesn't. Returns the default's text if there were findings.
    fn mask(&mut self, before: usize, place: Span) -> Option<Arc<str>> {
        if self.findings.len() == before {
            return None;
        }
        let text = Some(self.sources.text(place).into());
        let is_quoting = |finding: &Diagnostic| {
            let label = finding.label.as_ref();
            finding.summary.contains('`') || label.is_some_and(|label| label.text.contains('`'))
        };
        if !self.findings.iter().skip(before).any(is_quoting) {
            return text;
        }
        let found = std::mem::take(self.findings);
        self.findings.extend(found.into_iter().take(before));
        self.findings.push(
            Diagnostic::error("this default can't be evaluated")
                .at(place, "why isn't shown, since the variable is sensitive"),
        );
        text
    }

    fn block(&mut self, block: &Block, name: nstance_hcl::Span, file: &File) -> Declaration {
        let mut declaration = Declaration::new(self.span(name));
        for item in &block.body.items {
            match item {
                Item::Attribute(attribute) => {
                    let place = self.span(attribute.value.span);
                    match &*attribute.name.name {
                        "type" => match Type::of_variable(&attribute.value) {
                            Ok(of) => declaration.of = Some((of, place)),
                            Err(errors) => self.errors(&errors),
                        },
                        "default" => {
                            let before = self.findings.len();
                            let value = self.constant(&attribute.value);
                            if may_be_sensitive(&block.body) {
                                declaration.hidden = self.mask(before, place);
                            }
                            declaration.broken |= value.is_none();
                            declaration.default = value.map(|value| (value, place));
                        }
                        key @ ("description" | "sensitive" | "nullable") => {
                            if let Some(value) = self.constant(&attribute.value) {
                                self.simple(key, &value, place, &mut declaration);
                            } else if key == "sensitive" {
                                declaration.sensitive = Some(true);
                            }
                        }
                        "validation" => {
                            self.findings.push(
                                Diagnostic::error("`validation` is a block")
                                    .at(self.span(attribute.span), "this is an argument")
                                    .hint("write `validation { … }`, without `=`"),
                            );
                        }
                        other => {
                            let place = self.span(attribute.name.span);
                            self.unknown(other, place, &mut declaration);
                        }
                    }
                }
                Item::Block(inner) if &*inner.kind.name == "validation" => {
                    let place = self.span(inner.header);
                    let before = self.findings.len();
                    let [condition, message] = self.fields(&inner.body);
                    // An unknown key may be a misspelled required one.
                    let is_whole = self.findings.len() == before;
                    let place = is_whole.then_some(place);
                    let folder = file.folder.as_ref();
                    self.validation(condition, message, place, folder, &mut declaration);
                }
                Item::Block(inner) => {
                    let place = self.span(inner.kind.span);
                    self.unknown(&inner.kind.name, place, &mut declaration);
                }
            }
        }
        declaration
    }

    /// The condition and the message of a `validation` block.
    fn fields(&mut self, body: &Body) -> [Option<Expression>; 2] {
        for item in &body.items {
            let (name, span) = match item {
                Item::Attribute(attribute) => (&attribute.name.name, attribute.name.span),
                Item::Block(block) => (&block.kind.name, block.kind.span),
            };
            if !matches!(&**name, "condition" | "error_message") {
                let place = self.span(span);
                self.unknown_of_validation(name, place);
            }
        }
        ["condition", "error_message"]
            .map(|name| body.attribute(name))
            .map(|found| found.map(|found| found.value.clone()))
    }

    fn unknown_of_validation(&mut self, key: &str, place: Span) {
        self.findings.push(
            Diagnostic::error(format!("a `validation` has no `{key}`"))
                .at(place, "unknown key")
                .hint("it has a `condition` and an `error_message`"),
        );
    }

    /// A validation; `missing` is the place for errors about missing parts.
    fn validation(
        &mut self,
        condition: Option<Expression>,
        message: Option<Expression>,
        missing: Option<Span>,
        folder: Option<&Arc<Path>>,
        declaration: &mut Declaration,
    ) {
        for (key, found) in [("condition", &condition), ("error_message", &message)] {
            if found.is_none()
                && let Some(place) = missing
            {
                self.findings.push(
                    Diagnostic::error(format!("a `validation` lacks `{key}`"))
                        .at(place, format!("`{key}` must be given here")),
                );
            }
        }
        if let (Some(condition), Some(message)) = (condition, message) {
            declaration.validations.push(Validation {
                condition,
                message,
                folder: folder.cloned(),
            });
        }
    }

    fn simple(&mut self, key: &str, value: &Value, place: Span, declaration: &mut Declaration) {
        let fits = match key {
            "description" => {
                declaration.description = value.as_str().map(Into::into);
                declaration.description.is_some()
            }
            "sensitive" => {
                // The intended value is unknown, so assume sensitive.
                declaration.sensitive = Some(value.as_bool().unwrap_or(true));
                value.as_bool().is_some()
            }
            _ => {
                declaration.nullable = value.as_bool();
                declaration.nullable.is_some()
            }
        };
        if !fits {
            let wanted = match key {
                "description" => "a string",
                _ => "`true` or `false`",
            };
            self.findings.push(
                Diagnostic::error(format!("`{key}` must be {wanted}"))
                    .at(place, format!("expected {wanted}")),
            );
        }
    }

    /// A variable of a JSONC or YAML file.
    fn entry(&mut self, entry: &Entry, folder: Option<&Arc<Path>>) -> Declaration {
        let mut declaration = Declaration::new(entry.key_span);
        let NodeValue::Object(fields) = &entry.value.value else {
            if entry.value.value != NodeValue::Null {
                let what = format!("variable `{}`", entry.key);
                self.wrong(&entry.value, &what, "an object");
                declaration.broken = true;
            }
            return declaration;
        };
        for field in fields {
            let node = &field.value;
            match &*field.key {
                "type" => {
                    let read = |text: &str, number| parse_expression(text, number);
                    if let Some(of) = self.snippet(node, "`type`", read) {
                        match Type::of_variable(&of) {
                            Ok(of) => declaration.of = Some((of, node.span)),
                            Err(errors) => self.errors(&errors),
                        }
                    }
                }
                "default" => declaration.default = Some((value_of(node), node.span)),
                key @ ("description" | "sensitive" | "nullable") => {
                    self.simple(key, &value_of(node), node.span, &mut declaration);
                }
                "validation" => {
                    let items = match &node.value {
                        NodeValue::Array(items) => &items[..],
                        _ => std::slice::from_ref(node),
                    };
                    for item in items {
                        self.validation_of(item, folder, &mut declaration);
                    }
                }
                other => self.unknown(other, field.key_span, &mut declaration),
            }
        }
        declaration
    }

    fn validation_of(
        &mut self,
        item: &Node,
        folder: Option<&Arc<Path>>,
        declaration: &mut Declaration,
    ) {
        let NodeValue::Object(fields) = &item.value else {
            self.wrong(item, "an item of `validation`", "an object");
            return;
        };
        let before = self.findings.len();
        for field in fields {
            if !matches!(&*field.key, "condition" | "error_message") {
                self.unknown_of_validation(&field.key, field.key_span);
            }
        }
        let condition = item.get("condition").and_then(|node| {
            self.snippet(node, "`condition`", |text, number| {
                parse_expression(text, number)
            })
        });
        let message = item.get("error_message").and_then(|node| {
            self.snippet(node, "`error_message`", |text, number| {
                parse_template(text, number)
            })
        });
        let place = Span {
            end: item.span.start + 1,
            ..item.span
        };
        let is_whole = self.findings.len() == before;
        let place = is_whole.then_some(place);
        self.validation(condition, message, place, folder, declaration);
    }

    /// An expression within a string.
    fn snippet(
        &mut self,
        node: &Node,
        what: &str,
        read: impl FnOnce(&str, u32) -> Result<Expression, Error>,
    ) -> Option<Expression> {
        let Some(text) = node.as_str() else {
            self.wrong(node, what, "a string");
            return None;
        };
        match read(text, self.places.snippet(node.span, 0)) {
            Ok(expression) => Some(expression),
            Err(error) => {
                self.errors(&[error]);
                None
            }
        }
    }
}

/// Whether a variable's block has a `sensitive` that isn't literally false.
fn may_be_sensitive(body: &Body) -> bool {
    let said = body.attribute("sensitive").map(|found| &found.value.kind);
    said.is_some_and(|said| !matches!(said, ExpressionKind::Bool(false)))
}

/// Converts a node to a value.
pub(super) fn value_of(node: &Node) -> Value {
    let value = match &node.value {
        NodeValue::Null => Value::null(),
        NodeValue::Bool(value) => Value::from(*value),
        NodeValue::Number(number) => {
            Number::parse(&number.to_string()).map_or_else(|_| Value::null(), Value::from)
        }
        NodeValue::String(text) => Value::string(Arc::clone(text)),
        NodeValue::Array(items) => Value::tuple(items.iter().map(value_of).collect::<Vec<_>>()),
        NodeValue::Object(entries) => Value::object(
            entries
                .iter()
                .map(|entry| (Arc::clone(&entry.key), value_of(&entry.value)))
                .collect::<Entries>(),
        ),
    };
    value.with_span(named(node.span))
}

/// A scope without names.
struct Constants;

impl Scope for Constants {
    fn resolve(&self, reference: Reference<'_>) -> Result<(Value, usize), Vec<Error>> {
        let name = &reference.root.name;
        let error = Error::new(reference.span, "References aren't allowed here")
            .detail("expected a value that is written out");
        Err(vec![if reference.steps.is_empty() {
            error.hint(format!("strings must be quoted: `\"{name}\"`"))
        } else {
            error.hint("in a configuration, `locals` may depend on variables")
        }])
    }
}
