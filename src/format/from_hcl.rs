//! HCL, read for conversion.
//!
//! In: the text of a file, and the names in it. Out: a [`Document`] as another language would hold
//! it: blocks under the keys of their sections, those with `for_each` once for each turn, without
//! `locals`; notes on what isn't said as before. May not: decide what becomes of an expression.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use nstance_hcl::{Attribute, Block, Body, Item as HclItem};

use super::attach::with_comments;
use super::document::{Container, Document, Item, Value, Wording};
use super::from_hcl_values::{Note, Values, place};
use super::hcl::{DEFAULT_TENANT, NAMED};
use super::hcl_expression::plain;
use crate::config;
use crate::config::conversion::Names;
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::{Language, SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Parts the kind and the labels of a block in its key; no name holds it.
const PART: char = '\0';

/// Reads a file; all that can't be converted is found in one go.
pub(super) fn read(text: &str, names: &Names<'_>) -> Result<(Document, Vec<Note>), Diagnostics> {
    let mut sources = SourceMap::default();
    let source = sources.add("", text);
    let mut findings = Diagnostics::default();
    let Some(parsed) = config::hcl::parse(source, &sources, &mut findings) else {
        return Err(findings);
    };
    let mut reader = Reader {
        text,
        values: Values::new(names, text),
    };
    // The body that the names are of: its blocks with `for_each` are known.
    let body = names.body().unwrap_or(&parsed.body);
    let entries = reader.body(body, true);
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
    let values = reader.values;
    if values.findings.has_errors() {
        return Err(values.findings);
    }
    Ok((document, values.notes))
}

struct Reader<'r> {
    text: &'r str,
    values: Values<'r>,
}

impl<'r> Reader<'r> {
    fn body(&mut self, body: &'r Body, is_top: bool) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut seen: HashMap<Arc<str>, Span> = HashMap::new();
        for item in &body.items {
            let made = match item {
                HclItem::Attribute(attribute) => {
                    self.attribute(attribute, is_top).into_iter().collect()
                }
                HclItem::Block(block) => self.blocks(block, is_top),
            };
            // What repeats without a name, within a block, makes a list.
            let stands_once =
                is_top || matches!(item, HclItem::Block(block) if !block.labels.is_empty());
            for entry in made {
                if stands_once && let Some(first) = seen.insert(entry.key.clone(), entry.key_span) {
                    self.values.findings.push(
                        Diagnostic::error("a block stands twice")
                            .at(entry.key_span, "here again")
                            .related(first, "it stands here first")
                            .hint("remove or rename one of the two"),
                    );
                }
                entries.push(entry);
            }
        }
        entries
    }

    fn attribute(&mut self, attribute: &Attribute, is_top: bool) -> Option<Entry> {
        let name = &attribute.name;
        let value = if is_top && &*name.name == "include" {
            self.values.literally(&attribute.value)?
        } else {
            self.values.node(&attribute.value)?
        };
        Some(Entry {
            key: name.name.clone(),
            key_span: place(name.span),
            value,
        })
    }

    /// What a block becomes: several by `for_each`, none if nothing but expressions refer to it.
    fn blocks(&mut self, block: &'r Block, is_top: bool) -> Vec<Entry> {
        let kind = &*block.kind.name;
        if is_top && kind == "locals" {
            return Vec::new();
        }
        if is_top && kind == "variable" {
            let entries = self.variable(&block.body);
            return vec![self.entry(block, None, entries)];
        }
        if kind == "dynamic" {
            self.values.findings.push(
                Diagnostic::error("there are no `dynamic` blocks")
                    .at(place(block.header), "can't be converted"),
            );
            return Vec::new();
        }
        let Some(for_each) = block.body.attribute("for_each").filter(|_| is_top) else {
            let entries = self.body(&block.body, false);
            return vec![self.entry(block, None, entries)];
        };
        if self.values.silent_value(&for_each.value).is_none() {
            return Vec::new();
        }
        let Some(instances) = self.values.names.instances(block) else {
            return Vec::new();
        };
        let what = match instances.len() {
            0 => "nothing".to_owned(),
            1 => format!("1 `{kind}`"),
            many => format!("{many} of `{kind}`"),
        };
        let reads = self.values.names.reads(&for_each.value);
        let depends = reads.variables.iter().next();
        let depends = depends.map_or_else(String::new, |variable| {
            format!(", which depends on `var.{variable}`")
        });
        self.values.note(
            for_each.name.span,
            format!("`for_each` became {what}{depends}"),
        );
        let mut entries = Vec::new();
        for index in 0..instances.len() {
            self.values.each = Some((std::rc::Rc::clone(&instances), index));
            let body: Vec<Entry> = block
                .body
                .items
                .iter()
                .filter(|item| {
                    !matches!(item, HclItem::Attribute(attribute)
                        if matches!(&*attribute.name.name, "for_each" | "name"))
                })
                .flat_map(|item| match item {
                    HclItem::Attribute(attribute) => {
                        self.attribute(attribute, false).into_iter().collect()
                    }
                    HclItem::Block(block) => self.blocks(block, false),
                })
                .collect();
            self.values.each = None;
            let name = instances[index].name.clone();
            entries.push(self.entry(block, Some(&name), body));
        }
        entries
    }

    /// A block's entry; `name` stands for its last label.
    fn entry(&self, block: &Block, name: Option<&str>, entries: Vec<Entry>) -> Entry {
        let mut key = block.kind.name.to_string();
        let last = block.labels.len().saturating_sub(1);
        for (index, label) in block.labels.iter().enumerate() {
            key.push(PART);
            key.push_str(name.filter(|_| index == last).unwrap_or(&label.name));
        }
        key.push(PART);
        let start = block.header.end as usize;
        let open = start + self.text[start..].find('{').unwrap_or(0);
        let header = place(block.header);
        Entry {
            key: key.into(),
            key_span: header,
            value: Node {
                span: Span::new(header.source, open, block.span.end as usize),
                value: NodeValue::Object(entries),
            },
        }
    }

    /// The body of a variable: its type and conditions are texts elsewhere.
    fn variable(&mut self, body: &'r Body) -> Vec<Entry> {
        let mut entries = Vec::new();
        for item in &body.items {
            match item {
                HclItem::Attribute(attribute) => {
                    let value = &attribute.value;
                    let node = match &*attribute.name.name {
                        "type" | "condition" | "error_message" => {
                            let text = match &*attribute.name.name {
                                "type" => Some(plain(value)),
                                "condition" => self.values.kept(value),
                                _ => self.values.kept_template(value),
                            };
                            text.map(|text| Node {
                                span: place(value.span),
                                value: NodeValue::String(text.into()),
                            })
                        }
                        _ => self.values.literally(value),
                    };
                    entries.extend(node.map(|value| Entry {
                        key: attribute.name.name.clone(),
                        key_span: place(attribute.name.span),
                        value,
                    }));
                }
                HclItem::Block(block) => {
                    let inner = self.variable(&block.body);
                    entries.push(self.entry(block, None, inner));
                }
            }
        }
        entries
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
            ("userdata", "part") => {
                add_to_list(&mut found, "parts", item);
                continue;
            }
            ("variable", "validation") => {
                add_to_list(&mut found, "validation", item);
                continue;
            }
            ("", "variable") => vec!["variables"],
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
