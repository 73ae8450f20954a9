//! Reads single typed values from [`Node`]s.
//!
//! In: nodes. Out: values with their places, or a finding with the expected type. Must not: know
//! the schema beyond the requested key.

use std::fmt::Arguments;
use std::sync::Arc;
use std::time::Duration;

use crate::config::duration::parse_duration;
use crate::config::model::Named;
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::schema::Table;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Conversion, Diagnostic, Diagnostics, nearest, typo};

/// An object with a known set of keys.
pub(super) struct Object<'n> {
    entries: &'n [Entry],
    /// The place for errors about missing keys.
    pub(super) place: Span,
    /// Its name in messages: `cluster`, ``template `web` ``.
    name: String,
    /// Keys that were probably misspelled; they aren't also reported as missing.
    misspelt: Vec<&'static str>,
}

impl<'n> Object<'n> {
    /// Opens an object and reports keys that aren't in `table`. Fails with `None` if `node` isn't
    /// an object.
    pub(super) fn open(
        node: &'n Node,
        place: Span,
        name: impl Into<String>,
        table: &'static Table,
        findings: &mut Diagnostics,
    ) -> Option<Self> {
        Self::open_beside(node, place, name, table, &[], findings)
    }

    /// Opens an object like [`open`](Self::open), except that the caller reports the keys in
    /// `reported`.
    pub(super) fn open_beside(
        node: &'n Node,
        place: Span,
        name: impl Into<String>,
        table: &'static Table,
        reported: &[&str],
        findings: &mut Diagnostics,
    ) -> Option<Self> {
        let name = name.into();
        let NodeValue::Object(entries) = &node.value else {
            wrong_type(node, &name, "an object", findings);
            return None;
        };
        let mut misspelt = Vec::new();
        for entry in entries {
            if table.key(&entry.key).is_none() && !reported.contains(&&*entry.key) {
                let colon = lost_colon(entry, table);
                let near = colon.map(|(key, _)| key);
                let near = near.or_else(|| typo(&entry.key, table.names()));
                let mut finding = unknown_key(entry, &name, table, near);
                if let Some((key, value)) = colon {
                    let hint = format!("a colon and a space follow a key: `{key}: {value}`");
                    finding.hints = vec![hint];
                }
                findings.push(finding);
                misspelt.extend(table.names().find(|key| near == Some(*key)));
            }
        }
        Some(Self {
            entries,
            place,
            name,
            misspelt,
        })
    }

    /// Opens the object at a key.
    pub(super) fn of_entry(
        entry: &'n Entry,
        table: &'static Table,
        findings: &mut Diagnostics,
    ) -> Option<Self> {
        Self::open(
            &entry.value,
            entry.key_span,
            format!("`{}`", entry.key),
            table,
            findings,
        )
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The entry of a key; null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'n Entry> {
        self.entries
            .iter()
            .find(|entry| &*entry.key == key && entry.value.value != NodeValue::Null)
    }

    /// The entry of a required key; reports it if it is missing.
    pub(super) fn require(&self, key: &str, findings: &mut Diagnostics) -> Option<&'n Entry> {
        let found = self.get(key);
        if found.is_none() {
            self.report_missing(key, None, findings);
        }
        found
    }

    /// Reports a missing key, unless it was probably misspelled.
    pub(super) fn report_missing(&self, key: &str, hint: Option<&str>, findings: &mut Diagnostics) {
        if self.get(key).is_none() && !self.lacks(key) {
            return;
        }
        let mut diagnostic = Diagnostic::error(format!("{} lacks `{key}`", self.name))
            .at(self.place, format!("`{key}` must be given here"));
        diagnostic.hints.extend(hint.map(str::to_owned));
        findings.push(diagnostic);
    }

    /// Whether a key is missing and wasn't misspelled.
    pub(super) fn lacks(&self, key: &str) -> bool {
        self.get(key).is_none() && !self.misspelt.contains(&key)
    }

    /// Whether some names in the object at a key are invalid.
    pub(super) fn is_open(&self, key: &str) -> bool {
        let is_no_object = |entry: &Entry| !matches!(entry.value.value, NodeValue::Object(_));
        self.misspelt.contains(&key) || self.get(key).is_some_and(is_no_object)
    }

    /// An optional text.
    pub(super) fn text(&self, key: &str, findings: &mut Diagnostics) -> Option<Spanned<Arc<str>>> {
        self.get(key).and_then(|entry| text(entry, findings))
    }

    /// An optional text; an empty one counts as absent.
    pub(super) fn filled(
        &self,
        key: &str,
        findings: &mut Diagnostics,
    ) -> Option<Spanned<Arc<str>>> {
        self.text(key, findings).filter(|text| !text.is_empty())
    }

    /// An optional text; empty if it is missing.
    pub(super) fn text_or_empty(&self, key: &str, findings: &mut Diagnostics) -> Arc<str> {
        self.text(key, findings)
            .map_or_else(|| "".into(), |text| text.value)
    }

    /// A required text that isn't empty.
    pub(super) fn required_text(
        &self,
        key: &str,
        findings: &mut Diagnostics,
    ) -> Option<Spanned<Arc<str>>> {
        let entry = self.require(key, findings)?;
        filled_text(entry, findings)
    }

    /// An optional duration. Null is an error, as on the server.
    pub(super) fn duration(&self, key: &str, findings: &mut Diagnostics) -> Option<Duration> {
        let entry = self.entries.iter().find(|entry| &*entry.key == key)?;
        duration(entry, findings)
    }

    /// An optional duration; a negative one counts as zero, as on the server.
    pub(super) fn drain_timeout(
        &self,
        key: &str,
        findings: &mut Diagnostics,
    ) -> Option<Spanned<Duration>> {
        let entry = self.get(key)?;
        let positive = entry.value.as_str().and_then(|text| text.strip_prefix('-'));
        let timeout = match positive.map(parse_duration) {
            Some(Ok(_)) => Duration::ZERO,
            _ => duration(entry, findings)?,
        };
        Some(Spanned::new(timeout, entry.value.span))
    }

    /// An optional object, unchanged.
    pub(super) fn object(&self, key: &str, findings: &mut Diagnostics) -> Option<Node> {
        let entry = self.get(key)?;
        if matches!(entry.value.value, NodeValue::Object(_)) {
            return Some(entry.value.clone());
        }
        wrong_type(&entry.value, &format!("`{key}`"), "an object", findings);
        None
    }

    /// An optional object of vars. A null var is empty: on the server, vars are texts.
    pub(super) fn vars(&self, key: &str, findings: &mut Diagnostics) -> Option<Node> {
        let mut vars = self.object(key, findings)?;
        if let NodeValue::Object(entries) = &mut vars.value {
            for entry in entries {
                if entry.value.value == NodeValue::Null {
                    entry.value.value = NodeValue::String("".into());
                }
            }
        }
        Some(vars)
    }

    /// A list of texts; empty if it is missing.
    pub(super) fn texts(&self, key: &str, findings: &mut Diagnostics) -> Vec<Spanned<Arc<str>>> {
        self.get(key)
            .map(|entry| texts(entry, findings))
            .unwrap_or_default()
    }

    /// An optional boolean.
    pub(super) fn flag(&self, key: &str, findings: &mut Diagnostics) -> Option<Spanned<bool>> {
        let entry = self.get(key)?;
        if let NodeValue::Bool(value) = entry.value.value {
            return Some(Spanned::new(value, entry.value.span));
        }
        wrong_type(
            &entry.value,
            &format!("`{key}`"),
            "`true` or `false`",
            findings,
        );
        None
    }

    /// An optional whole number up to `largest`.
    pub(super) fn whole(
        &self,
        key: &str,
        largest: u32,
        findings: &mut Diagnostics,
    ) -> Option<Spanned<u32>> {
        self.between(key, 0, largest, findings)
    }

    /// An optional whole number from `least` to `largest`.
    pub(super) fn between(
        &self,
        key: &str,
        least: u32,
        largest: u32,
        findings: &mut Diagnostics,
    ) -> Option<Spanned<u32>> {
        let entry = self.get(key)?;
        let wanted = match largest {
            u32::MAX => format!("a whole number from {least}"),
            _ => format!("a whole number from {least} to {largest}"),
        };
        let NodeValue::Number(number) = &entry.value.value else {
            wrong_type(&entry.value, &format!("`{key}`"), &wanted, findings);
            return None;
        };
        let value = number
            .as_u64()
            .and_then(|value| u32::try_from(value).ok())
            .filter(|value| (least..=largest).contains(value));
        if value.is_none() {
            findings.push(
                Diagnostic::error(format!("`{key}` can't be {number}"))
                    .at(entry.value.span, format!("expected {wanted}")),
            );
        }
        value.map(|value| Spanned::new(value, entry.value.span))
    }

    /// An optional choice of words.
    pub(super) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
        findings: &mut Diagnostics,
    ) -> Option<Spanned<T>> {
        let text = self.text(key, findings)?;
        Self::chosen(key, &text, choices, findings)
    }

    /// An optional choice of words; an empty text counts as absent.
    pub(super) fn filled_choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
        findings: &mut Diagnostics,
    ) -> Option<Spanned<T>> {
        let text = self.filled(key, findings)?;
        Self::chosen(key, &text, choices, findings)
    }

    fn chosen<T: Copy>(
        key: &str,
        text: &Spanned<Arc<str>>,
        choices: &[(&str, T)],
        findings: &mut Diagnostics,
    ) -> Option<Spanned<T>> {
        let found = choices.iter().find(|(word, _)| *word == &*text.value);
        if found.is_none() {
            findings.push(no_such_choice(
                key,
                text,
                choices.iter().map(|(word, _)| *word),
            ));
        }
        found.map(|(_, value)| Spanned::new(*value, text.span))
    }

    /// A map of names to decoded entries; empty if it is missing. [`is_open`](Self::is_open) says
    /// whether some entries are invalid.
    pub(super) fn named<T>(
        &self,
        key: &str,
        findings: &mut Diagnostics,
        mut read: impl FnMut(&'n Entry, &mut Diagnostics) -> Option<T>,
    ) -> Named<T> {
        let Some(entry) = self.get(key) else {
            return Named::new();
        };
        let NodeValue::Object(entries) = &entry.value.value else {
            wrong_type(&entry.value, &format!("`{key}`"), "an object", findings);
            return Named::new();
        };
        entries
            .iter()
            .filter_map(|entry| {
                let value = read(entry, findings)?;
                Some((Arc::clone(&entry.key), Spanned::new(value, entry.key_span)))
            })
            .collect()
    }
}

/// The error that a word isn't one of the choices.
pub(super) fn no_such_choice<'c>(
    key: &str,
    text: &Spanned<Arc<str>>,
    choices: impl Iterator<Item = &'c str> + Clone,
) -> Diagnostic {
    let list = choices
        .clone()
        .map(|choice| format!("`{choice}`"))
        .collect::<Vec<_>>();
    let diagnostic = Diagnostic::error(format!("`{key}` can't be `{}`", text.value))
        .at(text.span, format!("expected {}", one_of(&list)));
    let short_form = choices.clone().find(|choice| {
        text.len() > 2 && (text.starts_with(choice) || choice.starts_with(&***text))
    });
    // The message lists all choices, so the hint needs a stronger match than the nearest one.
    let near = nearest(text, choices).filter(|choice| choice.get(..1) == text.get(..1));
    diagnostic.suggest(short_form.or(near))
}

/// `a`, `a or b`, `a, b or c`.
fn one_of(list: &[String]) -> String {
    match list {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The key and value that YAML read as one key, because a colon or the space after it is missing.
fn lost_colon<'e>(entry: &'e Entry, table: &Table) -> Option<(&'e str, &'e str)> {
    if entry.value.value != NodeValue::Null {
        return None;
    }
    let (key, value) = entry.key.split_once([' ', ':'])?;
    let value = value.trim_start_matches([' ', ':']);
    (table.key(key).is_some() && !value.is_empty()).then_some((key, value))
}

/// The finding that an object has no such key: an error if it is likely to be a misspelt one.
fn unknown_key(entry: &Entry, owner: &str, table: &Table, near: Option<&str>) -> Diagnostic {
    // Terraform's name for it.
    let near = match &*entry.key {
        "count" => table.key("size").map(|_| "size"),
        _ => near,
    };
    let summary = format!("{owner} has no key `{}`", entry.key);
    if &*entry.key == "size" && owner.starts_with("template") {
        return Diagnostic::warning(summary)
            .at(entry.key_span, "ignored")
            .hint("Write the `size` of each group");
    }
    match near {
        Some(_) => Diagnostic::error(summary)
            .at(entry.key_span, "unknown key")
            .suggest(near),
        // Newer servers have newer keys.
        None => Diagnostic::warning(summary)
            .at(entry.key_span, "ignored")
            .suggest_or_list(
                nearest(&entry.key, table.names()),
                "known here:",
                table.names(),
            ),
    }
}

/// The name of a list of texts in messages.
const A_LIST: &str = "a list of strings";

/// Reports a value of the wrong type. `name` is its name in messages, `wanted` the expected type.
pub(super) fn wrong_type(node: &Node, name: &str, wanted: &str, findings: &mut Diagnostics) {
    let found = match &node.value {
        NodeValue::Bool(value) => format!("`{value}`"),
        _ => node.type_name().to_owned(),
    };
    let mut diagnostic = Diagnostic::error(format!("{name} must be {wanted}"))
        .at(node.span, format!("expected {wanted}, found {found}"));
    if wanted.ends_with("a string") {
        match &node.value {
            NodeValue::Number(number) => diagnostic = diagnostic.quote_it(number),
            NodeValue::Bool(value) => diagnostic = diagnostic.quote_it(value),
            _ => {}
        }
    } else if let NodeValue::String(text) = &node.value {
        let is_bool = wanted == "`true` or `false`" && matches!(&**text, "true" | "false");
        let is_number = wanted.contains("number") && text.parse::<u32>().is_ok();
        if wanted.starts_with("a list of") {
            diagnostic = diagnostic.hint(format!("put it in brackets: `[\"{text}\"]`"));
        } else if wanted == "an object"
            && let Some((key, value)) = text.split_once(':')
        {
            // In YAML a colon without a space behind it ends no key.
            diagnostic = diagnostic.hint(format!("write `\"{key}\": {}`", value.trim()));
        } else if is_bool {
            diagnostic = diagnostic.unquote_it(text, Conversion::Bool);
        } else if is_number {
            diagnostic = diagnostic.unquote_it(text, Conversion::Number);
        }
    }
    findings.push(diagnostic);
}

/// The text of an entry.
pub(super) fn text(entry: &Entry, findings: &mut Diagnostics) -> Option<Spanned<Arc<str>>> {
    item_text(&entry.value, format_args!("`{}`", entry.key), findings)
}

/// The text of an entry, which must not be empty.
pub(super) fn filled_text(entry: &Entry, findings: &mut Diagnostics) -> Option<Spanned<Arc<str>>> {
    let text = text(entry, findings)?;
    if text.is_empty() {
        findings.push(
            Diagnostic::error(format!("`{}` is empty", entry.key))
                .at(text.span, "expected some text"),
        );
        return None;
    }
    Some(text)
}

/// A text in any place.
pub(super) fn item_text(
    node: &Node,
    name: Arguments<'_>,
    findings: &mut Diagnostics,
) -> Option<Spanned<Arc<str>>> {
    if let NodeValue::String(text) = &node.value {
        return Some(Spanned::new(Arc::clone(text), node.span));
    }
    wrong_type(node, &name.to_string(), "a string", findings);
    None
}

/// The items of a list; none may be empty.
pub(super) fn texts(entry: &Entry, findings: &mut Diagnostics) -> Vec<Spanned<Arc<str>>> {
    let NodeValue::Array(items) = &entry.value.value else {
        wrong_type(&entry.value, &format!("`{}`", entry.key), A_LIST, findings);
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| {
            let text = item_text(item, format_args!("an item of `{}`", entry.key), findings)?;
            if text.is_empty() {
                findings.push(
                    Diagnostic::error(format!("an item of `{}` is empty", entry.key))
                        .at(text.span, "expected some text"),
                );
                return None;
            }
            Some(text)
        })
        .collect()
}

/// The duration of an entry.
pub(super) fn duration(entry: &Entry, findings: &mut Diagnostics) -> Option<Duration> {
    let key = &entry.key;
    let Some(text) = entry.value.as_str() else {
        findings.push(
            Diagnostic::error(format!("`{key}` must be a duration"))
                .at(
                    entry.value.span,
                    format!("expected a string, found {}", entry.value.type_name()),
                )
                .hint("durations are written such as `\"300ms\"`, `\"30s\"`, `\"1h30m\"`"),
        );
        return None;
    };
    match parse_duration(text) {
        Ok(duration) => Some(duration),
        Err(error) => {
            findings.push(
                Diagnostic::error(format!("`{key}` isn't a duration"))
                    .at(entry.value.span, error.to_string()),
            );
            None
        }
    }
}
