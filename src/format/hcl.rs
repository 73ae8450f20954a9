//! HCL, written.
//!
//! In: a [`Document`] whose comments are marked with `#`. Out: its text: sections of names as
//! blocks (`template "web" { … }`), everything else as attributes, texts of several lines as
//! heredocs, `${ }` as expressions. May not: change a value or drop a comment.

use nstance_hcl::{Expression, ExpressionKind, Span, parse_expression, parse_template};

use super::WIDTH;
use super::document::{Comment, Container, Document, Item, Value};
use super::hcl_expression::plain;
use super::hcl_layout::lay_out;
use super::hcl_text::{MARKER, heredoc, interpolated, quoted};

/// How the groups of a configuration are written in other languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Groups {
    Nested,
    Flat,
    /// Neither can be told: they stay as they are.
    Unknown,
}

/// Sections whose entries are blocks, and what these are called.
pub(super) const NAMED: &[(&str, &str)] = &[
    ("images", "image"),
    ("templates", "template"),
    ("groups", "group"),
    ("load_balancers", "load_balancer"),
    ("certificates", "certificate"),
];

/// Sections that are a block each.
const SECTIONS: &[&str] = &["cluster", "shard", "defaults", "vars"];

/// Groups that say no tenant are this one's.
pub(super) const DEFAULT_TENANT: &str = "default";

/// Writes a document, but for keys that HCL can't hold at the top of a file; these are given back.
/// `interpolated` says that `${ }` is an expression.
pub(super) fn write(
    document: &Document,
    groups: Groups,
    interpolated: bool,
) -> (String, Vec<String>) {
    let mut writer = Writer {
        out: String::new(),
        left: Vec::new(),
        interpolated,
    };
    writer.comments(&document.header, true);
    if !document.header.is_empty() {
        writer.out.push('\n');
    }
    if let Value::Object(root) = &document.root {
        writer.top(root, groups);
    }
    writer.comments(&document.footer, false);
    (lay_out(&writer.out), writer.left)
}

struct Writer {
    out: String,
    left: Vec<String>,
    /// Whether `${ }` is an expression here.
    interpolated: bool,
}

impl Writer {
    fn top(&mut self, root: &Container, groups: Groups) {
        let has_blocks = |item: &Item| {
            item.key.as_deref() == Some("groups") && blocks_of(item, groups).is_some()
        };
        let groups_are_blocks = root.items.iter().any(has_blocks);
        for item in &root.items {
            let key = item.key.as_deref().unwrap_or_default();
            if key == "groups_form" && groups_are_blocks {
                // Blocks say it by their labels.
                self.comments(&item.before, false);
                self.comments(&item.after, false);
            } else if let Some(blocks) = blocks_of(item, groups) {
                self.gap();
                self.comments(&item.before, true);
                self.comments(&blocks.open, true);
                for entry in &blocks.entries {
                    self.gap_unless_comment();
                    self.comments(&entry.above, true);
                    self.comments(&entry.item.before, true);
                    self.block(blocks.kind, &entry.labels, entry.item);
                    self.comments(&entry.below, false);
                }
                self.comments(&blocks.tail, false);
                self.comments(&item.after, false);
            } else if key == "variables" {
                self.comments(&item.before, true);
                if let Value::Object(variables) = &item.value {
                    self.literally(|writer| writer.variables(variables));
                }
                self.comments(&item.after, false);
            } else if key == "include" {
                self.literally(|writer| writer.attribute(item, key, 0));
            } else if SECTIONS.contains(&key) && is_body(&item.value) {
                self.gap();
                self.comments(&item.before, true);
                self.block(key, &[], item);
            } else if is_name(key) {
                if item.gap && item.before.is_empty() || self.out.ends_with("}\n") {
                    self.gap();
                }
                self.attribute(item, key, 0);
            } else {
                self.left.push(key.to_owned());
                self.comments(&item.before, false);
                self.comments(&item.after, false);
            }
        }
        self.comments(&root.tail, false);
    }

    /// Writes what no expression can stand in.
    fn literally(&mut self, write: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.interpolated, false);
        write(self);
        self.interpolated = before;
    }

    fn variables(&mut self, variables: &Container) {
        self.comments(&variables.open, true);
        for item in &variables.items {
            self.gap_unless_comment();
            self.comments(&item.before, true);
            let name = item.key.as_deref().unwrap_or_default();
            self.block("variable", &[name], &declaration(item));
        }
        self.comments(&variables.tail, false);
    }

    /// The blocks of a variable's conditions.
    fn validations(&mut self, item: &Item) {
        self.comments(&item.before, false);
        match &item.value {
            Value::List(list) => {
                self.comments(&list.open, false);
                for item in &list.items {
                    self.comments(&item.before, false);
                    self.block("validation", &[], item);
                }
                self.comments(&list.tail, false);
                self.comments(&item.after, false);
            }
            _ => self.block("validation", &[], item),
        }
    }

    /// An empty line, unless there is one, or nothing yet.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn gap_unless_comment(&mut self) {
        let last = self.out.trim_end().rsplit('\n').next().unwrap_or_default();
        if !last.starts_with('#') {
            self.gap();
        }
    }

    fn block(&mut self, kind: &str, labels: &[&str], item: &Item) {
        self.out.push_str(kind);
        for label in labels {
            self.out.push_str(&format!(" \"{label}\""));
        }
        self.out.push_str(" {");
        if let Value::Object(body) = &item.value {
            if body.items.is_empty() && !body.has_comments() {
                self.out.push('}');
            } else {
                self.behind(&body.open);
                self.out.push('\n');
                for (index, entry) in body.items.iter().enumerate() {
                    if entry.gap && index > 0 && entry.before.is_empty() {
                        self.out.push('\n');
                    }
                    match entry.key.as_deref().unwrap_or_default() {
                        "validation" if kind == "variable" => self.validations(entry),
                        key => self.attribute(entry, key, 1),
                    }
                }
                self.comments(&body.tail, false);
                self.out.push('}');
            }
        }
        self.behind(&item.after);
        self.out.push('\n');
    }

    /// `key = value` below its comments.
    fn attribute(&mut self, item: &Item, key: &str, depth: usize) {
        self.comments(&item.before, false);
        if item.gap && !item.before.is_empty() {
            self.out.push('\n');
        }
        let key = if depth == 0 || is_name(key) {
            key.to_owned()
        } else {
            quoted(key)
        };
        self.out.push_str(&format!("{key} = "));
        self.value(&item.value, depth, key.chars().count() + 3, true);
        self.behind(&item.after);
        self.out.push('\n');
    }

    fn value(&mut self, value: &Value, depth: usize, used: usize, may_be_heredoc: bool) {
        match value {
            Value::List(list) if self.is_long(list, 2 * depth + used, value) => {
                self.out.push('[');
                self.behind(&list.open);
                self.out.push('\n');
                for item in &list.items {
                    self.comments(&item.before, false);
                    if item.gap && !item.before.is_empty() {
                        self.out.push('\n');
                    }
                    self.value(&item.value, depth + 1, 0, false);
                    self.out.push(',');
                    self.behind(&item.after);
                    self.out.push('\n');
                }
                self.comments(&list.tail, false);
                self.out.push(']');
            }
            Value::Object(object) if self.is_long(object, 2 * depth + used, value) => {
                self.out.push('{');
                self.behind(&object.open);
                self.out.push('\n');
                for (index, item) in object.items.iter().enumerate() {
                    if item.gap && index > 0 && item.before.is_empty() {
                        self.out.push('\n');
                    }
                    self.attribute(item, item.key.as_deref().unwrap_or_default(), depth + 1);
                }
                self.comments(&object.tail, false);
                self.out.push('}');
            }
            Value::Text(text) if may_be_heredoc && text.ends_with('\n') => {
                let expression = if self.interpolated {
                    interpolated(text)
                } else {
                    Ok(literal(text))
                };
                let heredoc = expression.ok().and_then(|text| heredoc(&text, depth));
                let text = heredoc.unwrap_or_else(|| self.text(text));
                self.out.push_str(&text);
            }
            short => {
                let text = self.on_one_line(short);
                self.out.push_str(&text);
            }
        }
    }

    fn text(&self, text: &str) -> String {
        if self.interpolated && text.contains("${") {
            // What is no expression was found before.
            interpolated(text).map_or_else(|_| quoted(text), |expression| plain(&expression))
        } else {
            quoted(text)
        }
    }

    fn is_long(&self, container: &Container, used: usize, value: &Value) -> bool {
        if container.items.is_empty() && !container.has_comments() {
            return false;
        }
        !container.inline
            || container.has_comments()
            || used + self.on_one_line(value).chars().count() > WIDTH
    }

    fn on_one_line(&self, value: &Value) -> String {
        match value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Text(text) => self.text(text),
            Value::Raw(text) => text.clone(),
            Value::List(list) => {
                let items: Vec<String> = list
                    .items
                    .iter()
                    .map(|item| self.on_one_line(&item.value))
                    .collect();
                format!("[{}]", items.join(", "))
            }
            Value::Object(object) if object.items.is_empty() => "{}".to_owned(),
            Value::Object(object) => {
                let entry = |item: &Item| {
                    let key = item.key.as_deref().unwrap_or_default();
                    let key = if is_name(key) {
                        key.to_owned()
                    } else {
                        quoted(key)
                    };
                    format!("{key} = {}", self.on_one_line(&item.value))
                };
                let items: Vec<String> = object.items.iter().map(entry).collect();
                format!("{{ {} }}", items.join(", "))
            }
        }
    }

    fn comments(&mut self, comments: &[Comment], is_first: bool) {
        for (index, comment) in comments.iter().enumerate() {
            if comment.gap && !(is_first && index == 0) {
                self.gap();
            }
            self.out.push_str(&comment.text);
            self.out.push('\n');
        }
    }

    /// Behind a heredoc there is no room: its marker stands alone.
    fn behind(&mut self, comments: &[Comment]) {
        let last = self
            .out
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .trim_start();
        let is_marker = last.starts_with(MARKER);
        for comment in comments {
            self.out.push(if is_marker { '\n' } else { ' ' });
            self.out.push_str(&comment.text);
        }
    }
}

/// The blocks of a section.
struct Blocks<'d> {
    kind: &'static str,
    entries: Vec<Block<'d>>,
    open: Vec<Comment>,
    tail: Vec<Comment>,
}

struct Block<'d> {
    /// Comments on what holds it.
    above: Vec<Comment>,
    labels: Vec<&'d str>,
    item: &'d Item,
    below: Vec<Comment>,
}

impl<'d> Block<'d> {
    fn new(labels: Vec<&'d str>, item: &'d Item) -> Self {
        Self {
            above: Vec::new(),
            labels,
            item,
            below: Vec::new(),
        }
    }
}

/// `None` where a section can't be written as blocks.
fn blocks_of(item: &Item, groups: Groups) -> Option<Blocks<'_>> {
    let key = item.key.as_deref()?;
    let (_, kind) = NAMED.iter().find(|(section, _)| *section == key)?;
    let Value::Object(section) = &item.value else {
        return None;
    };
    let mut blocks = Blocks {
        kind,
        entries: Vec::new(),
        open: section.open.clone(),
        tail: section.tail.clone(),
    };
    for entry in &section.items {
        let name = entry.key.as_deref()?;
        if key != "groups" || groups == Groups::Flat {
            blocks.entries.push(Block::new(vec![name], entry));
            continue;
        }
        let Value::Object(tenant) = &entry.value else {
            return None;
        };
        if groups == Groups::Unknown || tenant.items.is_empty() {
            return None;
        }
        let first = blocks.entries.len();
        for group in &tenant.items {
            let name_of_group = group.key.as_deref()?;
            let labels = match name {
                DEFAULT_TENANT => vec![name_of_group],
                tenant => vec![tenant, name_of_group],
            };
            blocks.entries.push(Block::new(labels, group));
        }
        blocks.entries[first].above = [&entry.before[..], &tenant.open].concat();
        let last = blocks.entries.len() - 1;
        blocks.entries[last].below = [&tenant.tail[..], &entry.after].concat();
    }
    let fits = blocks.entries.iter().all(|block| {
        block.labels.iter().all(|label| is_label(label)) && is_body(&block.item.value)
    });
    (fits && !blocks.entries.is_empty()).then_some(blocks)
}

/// Whether an object can be a block's body: `for_each` in it would mean something else.
fn is_body(value: &Value) -> bool {
    matches!(value, Value::Object(body) if body.items.iter().all(|item| {
        item.key.as_deref().is_some_and(|key| is_name(key) && key != "for_each")
    }))
}

/// Whether a text is a name in HCL, and no keyword.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !matches!(text, "null" | "true" | "false" | "for" | "if" | "in")
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && !text.contains(['"', '\\', '$', '%']) && !text.chars().any(char::is_control)
}

fn literal(text: &str) -> Expression {
    Expression {
        kind: ExpressionKind::String(text.into()),
        span: Span {
            file: 0,
            start: 0,
            end: 0,
        },
    }
}

/// A variable with the expressions that its texts are.
fn declaration(item: &Item) -> Item {
    let mut item = item.clone();
    let Value::Object(fields) = &mut item.value else {
        item.value = Value::Object(Container::default());
        return item;
    };
    for field in &mut fields.items {
        match (field.key.as_deref(), &mut field.value) {
            (Some("type"), of) => as_expression(of),
            (Some("validation"), Value::List(list)) => {
                for item in &mut list.items {
                    conditions(&mut item.value);
                }
            }
            (Some("validation"), alone) => conditions(alone),
            _ => {}
        }
    }
    item
}

fn conditions(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    for field in &mut fields.items {
        match field.key.as_deref() {
            Some("condition") => as_expression(&mut field.value),
            Some("error_message") => {
                if let Value::Text(text) = &field.value
                    && let Ok(template) = parse_template(text, 0)
                {
                    field.value = Value::Raw(plain(&template));
                }
            }
            _ => {}
        }
    }
}

fn as_expression(value: &mut Value) {
    if let Value::Text(text) = value
        && let Ok(expression) = parse_expression(text, 0)
    {
        *value = Value::Raw(plain(&expression));
    }
}
