//! Checks a specification against the schema and gives its values their types.
//!
//! In: the document, whose scalars are all strings. Out: the same document with numbers and
//! booleans, the texts that may hold placeholders, and a finding for each error. Must not: compare
//! one value with another, except for alternatives in one object.

use std::sync::Arc;
use std::time::Duration;

use nstance_yaml::plain;

use super::names::Names;
use super::read::quote_it;
use super::schema::{Key, Pattern, ROOT, Role, Shape, Table, Text};
use super::start;
use crate::config::duration::parse_duration;
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics, nearest, typo};
use crate::render::placeholders;

/// How many characters of an invalid text a message shows.
const LONGEST_SHOWN: usize = 80;

/// A text of the instance template in which placeholders are replaced.
pub(super) struct Field {
    /// Its key.
    pub(super) key: Arc<str>,
    pub(super) role: Role,
    pub(super) text: Arc<str>,
    pub(super) span: Span,
}

/// The reader of one specification.
pub(super) struct Values<'r> {
    names: &'r Names,
    findings: &'r mut Diagnostics,
    /// The keys around the current value.
    path: Vec<&'static str>,
    fields: Vec<Field>,
}

/// The typed document and its texts with placeholders. Invalid values are missing; each is reported.
pub(super) fn read(
    root: &Node,
    names: &Names,
    findings: &mut Diagnostics,
) -> (Option<Node>, Vec<Field>) {
    let mut values = Values {
        names,
        findings,
        path: Vec::new(),
        fields: Vec::new(),
    };
    let place = start(root.span);
    let typed = values.object(root, &ROOT, "the specification", place);
    (typed, values.fields)
}

impl Values<'_> {
    fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    fn object(
        &mut self,
        node: &Node,
        table: &'static Table,
        name: &str,
        place: Span,
    ) -> Option<Node> {
        let NodeValue::Object(entries) = &node.value else {
            self.wrong_type(node, name, "an object");
            return None;
        };
        let mut misspelt = Vec::new();
        let mut typed = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(key) = table.keys.iter().find(|key| *key.name == *entry.key) else {
                misspelt.extend(self.unknown_key(entry, table, name));
                continue;
            };
            if entry.value.value == NodeValue::Null {
                continue;
            }
            self.path.push(key.name);
            typed.extend(self.value(entry, &key.shape).map(|value| Entry {
                value,
                ..entry.clone()
            }));
            self.path.pop();
        }
        let is_set = |key: &str| {
            let is_empty = |node: &Node| node.value == NodeValue::Null || node.as_str() == Some("");
            misspelt.contains(&key) || node.get(key).is_some_and(|node| !is_empty(node))
        };
        for key in table.keys.iter().filter(|key| !is_set(key.name)) {
            if key.is_required {
                self.report(missing(name, &format!("`{}`", key.name), place));
            } else if let Some(default) = key.default {
                self.report(
                    Diagnostic::warning(format!("{name} lacks `{}`", key.name))
                        .at(place, format!("nstance assumes `{default}`"))
                        .hint(format!("add `{}: {default}`", key.name)),
                );
                typed.push(Entry {
                    key: key.name.into(),
                    key_span: place,
                    value: Node::new(place, NodeValue::String(default.into())),
                });
            }
        }
        for (keys, is_required) in table.alternatives {
            let set: Vec<&Entry> = entries
                .iter()
                .filter(|entry| keys.contains(&&*entry.key) && is_set(&entry.key))
                .collect();
            let all: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
            let all = all.join(" or ");
            match set[..] {
                [] if *is_required && !keys.iter().any(|key| is_set(key)) => {
                    self.report(missing(name, &all, place));
                }
                [first, second, ..] => self.report(
                    Diagnostic::error(format!(
                        "{name} has both `{}` and `{}`",
                        first.key, second.key
                    ))
                    .at(second.key_span, "an alternative to the other")
                    .related(first.key_span, "the other one")
                    .hint(format!("write {all}")),
                ),
                _ => {}
            }
        }
        Some(Node::new(node.span, NodeValue::Object(typed)))
    }

    fn value(&mut self, entry: &Entry, shape: &'static Shape) -> Option<Node> {
        let (key, node) = (&entry.key, &entry.value);
        let name = format!("`{key}`");
        let value = match shape {
            Shape::Object(table) => return self.object(node, table, &name, entry.key_span),
            Shape::Map(most, pattern, text) => return self.map(entry, *most, pattern, *text),
            Shape::List(shape, least, most) => {
                let NodeValue::Array(items) = &node.value else {
                    self.wrong_type(node, &name, "a list");
                    return None;
                };
                if items.len() < *least || items.len() > *most {
                    let wanted = match *most {
                        usize::MAX => format!("at least {least}"),
                        most => format!("at most {most}"),
                    };
                    self.report(
                        Diagnostic::error(format!("{name} has {} items", items.len()))
                            .at(entry.key_span, format!("expected {wanted}")),
                    );
                }
                let items = items.iter().filter_map(|item| {
                    let place = start(item.span);
                    let item = Entry {
                        key: Arc::clone(key),
                        key_span: place,
                        value: item.clone(),
                    };
                    self.value(&item, shape)
                });
                NodeValue::Array(items.collect())
            }
            scalar => {
                let Some(text) = node.as_str() else {
                    self.wrong_type(node, &name, &wanted(scalar));
                    return None;
                };
                if let Shape::Text(limits) = scalar {
                    return Some(self.text(entry, text, *limits));
                }
                match read_scalar(scalar, text) {
                    Some(value) => value,
                    None => {
                        self.report(invalid(&name, text, scalar, node.span));
                        return None;
                    }
                }
            }
        };
        Some(Node::new(node.span, value))
    }

    fn map(&mut self, entry: &Entry, most: usize, pattern: &Pattern, text: Text) -> Option<Node> {
        let NodeValue::Object(entries) = &entry.value.value else {
            self.wrong_type(&entry.value, &format!("`{}`", entry.key), "an object");
            return None;
        };
        if entries.len() > most {
            self.report(
                Diagnostic::error(format!("`{}` has {} keys", entry.key, entries.len()))
                    .at(entry.key_span, format!("expected at most {most}")),
            );
        }
        let mut typed = Vec::with_capacity(entries.len());
        for entry in entries {
            if !(pattern.fits)(&entry.key) {
                self.report(
                    Diagnostic::error(format!("`{}` is not a valid key", entry.key))
                        .at(entry.key_span, format!("expected {}", pattern.wanted)),
                );
            }
            let written = match &entry.value.value {
                NodeValue::String(written) => written,
                NodeValue::Null => "",
                _ => {
                    self.wrong_type(&entry.value, &format!("`{}`", entry.key), "a string");
                    continue;
                }
            };
            let value = self.text(entry, written, text);
            typed.push(Entry {
                value,
                ..entry.clone()
            });
        }
        Some(Node::new(entry.value.span, NodeValue::Object(typed)))
    }

    /// Checks a text. Where placeholders aren't replaced but args are rendered, escapes it.
    fn text(&mut self, entry: &Entry, text: &str, limits: Text) -> Node {
        let (key, span) = (&entry.key, entry.value.span);
        let length = text.chars().count();
        if length > limits.most {
            self.report(
                Diagnostic::error(format!("`{key}` has {length} characters"))
                    .at(span, format!("expected at most {}", limits.most)),
            );
        }
        let fits = (limits.pattern.fits)(text);
        if !fits {
            self.report(mismatch(key, text, limits.pattern, span));
        }
        let mut value: Arc<str> = text.into();
        match limits.role {
            Role::Plain | Role::Literal => {
                let is_known = |name: &str| self.names.is_known(name);
                let known = placeholders::find(text).find(|(_, name)| is_known(name));
                if let (Some((_, name)), true) = (known, fits) {
                    let finding =
                        Diagnostic::warning(format!("placeholders in `{key}` aren't replaced"))
                            .at(span, format!("`{{{name}}}` stays as it is"));
                    if limits.role == Role::Literal {
                        value = placeholders::escape(text, is_known).into();
                    }
                    self.report(finding);
                }
            }
            Role::Value => {
                let known = placeholders::find(text).find(|(_, name)| self.names.is_known(name));
                if let Some((_, name)) = known {
                    self.report(
                        Diagnostic::warning("placeholders in a variable's value aren't replaced")
                            .at(span, format!("`{{{name}}}` stays as it is")),
                    );
                }
            }
            role => self.fields.push(Field {
                key: Arc::clone(key),
                role,
                text: Arc::clone(&value),
                span,
            }),
        }
        Node::new(span, NodeValue::String(value))
    }

    /// Reports an unknown key; returns the key that was probably meant.
    fn unknown_key(
        &mut self,
        entry: &Entry,
        table: &'static Table,
        name: &str,
    ) -> Option<&'static str> {
        let known = || table.keys.iter().map(|key| key.name);
        let finding = Diagnostic::error(format!("unknown key `{}`", entry.key))
            .at(entry.key_span, format!("not a key of {name}"));
        let near = typo(&entry.key, known());
        let elsewhere = near.is_none().then(|| self.place_of(&entry.key)).flatten();
        let finding = match elsewhere {
            Some(place) => finding.hint(format!("`{}` belongs under `{place}`", entry.key)),
            None => finding.suggest(near.or_else(|| nearest(&entry.key, known()))),
        };
        self.report(finding);
        near
    }

    /// The path of the object that has a key, nearest to the current one.
    fn place_of(&self, key: &str) -> Option<String> {
        let mut places = Vec::new();
        collect_places(key, &ROOT, &mut Vec::new(), &mut places);
        let shared = |place: &[&str]| {
            let pairs = place.iter().zip(&self.path);
            pairs.take_while(|(here, there)| here == there).count()
        };
        places.reverse();
        let nearest = places
            .into_iter()
            .max_by_key(|place| (shared(place), usize::MAX - place.len()))?;
        Some(if nearest.is_empty() {
            "the top level".to_owned()
        } else {
            nearest.join(".")
        })
    }

    fn wrong_type(&mut self, node: &Node, name: &str, wanted: &str) {
        let finding = Diagnostic::error(format!("{name} must be {wanted}"))
            .at(node.span, format!("found {}", node.type_name()));
        // `key: {name}` without quotes is an object whose key has no value.
        let finding = match node.entries() {
            [entry] if entry.value.value == NodeValue::Null => {
                finding.hint(quote_it(&format!("{{{}}}", entry.key)))
            }
            _ => finding,
        };
        self.report(finding);
    }
}

fn missing(name: &str, keys: &str, place: Span) -> Diagnostic {
    Diagnostic::error(format!("{name} lacks {keys}"))
        .at(place, format!("{keys} must be given here"))
}

/// The error for a text that doesn't fit its pattern.
pub(super) fn mismatch(key: &str, text: &str, pattern: &Pattern, span: Span) -> Diagnostic {
    let mut shown: String = text.chars().take(LONGEST_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Diagnostic::error(format!("`{key}` can't be `{shown}`"))
        .at(span, format!("expected {}", pattern.wanted))
}

fn invalid(name: &str, text: &str, shape: &Shape, span: Span) -> Diagnostic {
    let finding = Diagnostic::error(format!("{name} can't be `{text}`"))
        .at(span, format!("expected {}", wanted(shape)));
    match shape {
        Shape::Choice(words) => finding.suggest(nearest(text, words.iter().copied())),
        Shape::Duration(..) | Shape::DurationOrZero(..) => match text.parse::<u64>() {
            Ok(seconds) => finding.hint(format!("write `{seconds}s`")),
            Err(_) => finding,
        },
        _ => finding,
    }
}

/// What a scalar must be, for messages.
fn wanted(shape: &Shape) -> String {
    let list = |items: Vec<String>| {
        let items: Vec<_> = items.iter().map(|item| format!("`{item}`")).collect();
        items.join(", ")
    };
    let range = |least: &u64, most: &u64| match *most {
        u64::MAX => format!("a duration of at least {least}s"),
        most => format!("a duration from {least}s to {most}s, such as `{least}s`"),
    };
    match shape {
        Shape::Whole(least, most) => format!("a whole number from {least} to {most}"),
        Shape::Numbers(numbers) => {
            let numbers = numbers.iter().map(ToString::to_string);
            format!("one of {}", list(numbers.collect()))
        }
        Shape::Real(least, _) if *least < 1.0 => "a number greater than 0".to_owned(),
        Shape::Real(least, most) => format!("a number from {least} to {most}"),
        Shape::Duration(least, most) => range(least, most),
        Shape::DurationOrZero(least, most) => format!("0, or {}", range(least, most)),
        Shape::Flag => "`true` or `false`".to_owned(),
        Shape::Choice(words) => {
            let words = words.iter().map(ToString::to_string);
            format!("one of {}", list(words.collect()))
        }
        Shape::Text(_) => "a string".to_owned(),
        Shape::Object(_) | Shape::Map(..) => "an object".to_owned(),
        Shape::List(..) => "a list".to_owned(),
    }
}

/// The typed value of a scalar; `None` if it is invalid.
fn read_scalar(shape: &Shape, text: &str) -> Option<NodeValue> {
    let number = |number: u64| NodeValue::Number(number.into());
    match shape {
        Shape::Whole(least, most) => whole(text)
            .filter(|value| (least..=most).contains(&value))
            .map(number),
        Shape::Numbers(numbers) => whole(text)
            .filter(|value| numbers.contains(value))
            .map(number),
        Shape::Real(least, most) => {
            let value = text.parse::<f64>().ok();
            let value = value.filter(|value| (least..=most).contains(&value))?;
            serde_json::Number::from_f64(value).map(NodeValue::Number)
        }
        Shape::Duration(least, most) | Shape::DurationOrZero(least, most) => {
            let duration = parse_duration(text).ok()?;
            let bounds = Duration::from_secs(*least)..=Duration::from_secs(*most);
            let is_zero = matches!(shape, Shape::DurationOrZero(..)) && duration.is_zero();
            (is_zero || bounds.contains(&duration)).then(|| number(duration.as_millis() as u64))
        }
        Shape::Flag => plain::boolean(text)
            .or_else(|| plain::switch(text))
            .map(NodeValue::Bool),
        Shape::Choice(words) => words
            .contains(&text)
            .then(|| NodeValue::String(text.into())),
        Shape::Text(_) | Shape::Object(_) | Shape::List(..) | Shape::Map(..) => None,
    }
}

/// A 64-bit integer: digits, and a suffix for a power of 1,024.
fn whole(text: &str) -> Option<u64> {
    let (digits, shift) = match text.find(|c: char| !c.is_ascii_digit()) {
        None => (text, 0),
        Some(end) => {
            let suffix = text[end..].to_ascii_lowercase();
            let power = ["k", "m", "g", "t", "p"]
                .iter()
                .position(|s| **s == *suffix)?;
            (&text[..end], (power + 1) * 10)
        }
    };
    let value = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    i64::try_from(value).is_ok().then_some(value)
}

fn collect_places(
    key: &str,
    table: &'static Table,
    path: &mut Vec<&'static str>,
    places: &mut Vec<Vec<&'static str>>,
) {
    if table.keys.iter().any(|known| known.name == key) {
        places.push(path.clone());
    }
    for Key { name, shape, .. } in table.keys {
        let (Shape::Object(inner) | Shape::List(Shape::Object(inner), ..)) = shape else {
            continue;
        };
        path.push(name);
        collect_places(key, inner, path, places);
        path.pop();
    }
}
