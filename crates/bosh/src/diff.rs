//! The differences of two manifests, as the Director shows them before a deployment.
//!
//! In: two manifests. Out: lines of YAML, each kept, added or removed. Values under `properties` and
//! `bosh`, and credentials in releases' URLs, are redacted unless the caller asks for them: a
//! changed secret still shows as a changed line.

use indexmap::IndexMap;

use crate::dump;
use crate::value::{Data, Entry, Value};

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Whether it is in both manifests.
    pub change: Change,
    /// The line, indented as in the manifest.
    pub text: String,
}

/// In which manifest a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// In both.
    Kept,
    /// In the second.
    Added,
    /// In the first.
    Removed,
}

impl Change {
    /// ` `, `+` or `-`.
    pub fn sign(self) -> char {
        match self {
            Self::Kept => ' ',
            Self::Added => '+',
            Self::Removed => '-',
        }
    }

    /// `kept`, `added` or `removed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

/// The sections of a manifest that come first; the others follow in their order.
const SECTIONS: [&str; 16] = [
    "azs",
    "vm_types",
    "vm_extensions",
    "resource_pools",
    "compilation",
    "networks",
    "disk_types",
    "disk_pools",
    "name",
    "stemcells",
    "releases",
    "update",
    "jobs",
    "release",
    "addons",
    "variables",
];

const REDACTED: &str = "<redacted>";

/// The differences of two manifests. Sections have an empty line between them. A manifest that isn't
/// a map counts as empty.
pub fn diff(before: &Value, after: &Value, redact: bool) -> Vec<Line> {
    let as_map = |value: &Value| match value.data {
        Data::Map(_) => value.clone(),
        _ => Value::empty_map(value.place),
    };
    let shown = |value: &Value| {
        let mut shown = value.clone();
        if redact {
            redact_properties(&mut shown);
            redact_release_urls(&mut shown);
        }
        shown
    };
    let (before, after) = (as_map(before), as_map(after));
    let (shown_before, shown_after) = (shown(&before), shown(&after));
    let lines = maps(
        Side::new(&before, &shown_before),
        Side::new(&after, &shown_after),
        0,
    );
    ordered(lines)
}

/// A value, and the same value as it is shown.
#[derive(Clone, Copy, PartialEq)]
struct Side<'v> {
    value: &'v Value,
    shown: &'v Value,
}

impl<'v> Side<'v> {
    fn new(value: &'v Value, shown: &'v Value) -> Self {
        Self { value, shown }
    }

    /// The value of a key; `None` for null too.
    fn get(self, key: &Value) -> Option<Self> {
        let of = |value: &'v Value| Some(&find(value.as_map()?, key)?.value);
        let value = of(self.value).filter(|value| !value.is_null())?;
        Some(Self::new(value, of(self.shown)?))
    }

    /// The items of a list.
    fn items(self) -> Vec<Self> {
        let (values, shown) = (self.value.as_list(), self.shown.as_list());
        let pairs = values
            .unwrap_or_default()
            .iter()
            .zip(shown.unwrap_or_default());
        pairs
            .map(|(value, shown)| Self::new(value, shown))
            .collect()
    }
}

fn find<'v>(entries: &'v [Entry], key: &Value) -> Option<&'v Entry> {
    entries.iter().find(|entry| entry.key.eql(key))
}

fn maps(before: Side<'_>, after: Side<'_>, indent: usize) -> Vec<Line> {
    let (old, new) = (
        before.value.as_map().unwrap_or_default(),
        after.value.as_map().unwrap_or_default(),
    );
    let added = new.iter().filter(|entry| find(old, &entry.key).is_none());
    let mut lines = Vec::new();
    for Entry { key, .. } in old.iter().chain(added) {
        let entry = |side: Side<'_>| {
            let mut map = Value::empty_map(key.place);
            map.set(key.clone(), side.shown.clone());
            map
        };
        match (before.get(key), after.get(key)) {
            (None, None) => {}
            (Some(old), Some(new)) if old.value == new.value => {}
            (None, Some(new)) => lines.extend(dumped(&entry(new), indent, Change::Added)),
            (Some(old), None) => lines.extend(dumped(&entry(old), indent, Change::Removed)),
            (Some(old), Some(new)) => {
                let inner = match (&old.value.data, &new.value.data) {
                    (Data::List(_), Data::List(_)) => lists(old, new, indent),
                    (Data::Map(_), Data::Map(_)) => maps(old, new, indent + 1),
                    _ => {
                        lines.extend(dumped(&entry(old), indent, Change::Removed));
                        lines.extend(dumped(&entry(new), indent, Change::Added));
                        continue;
                    }
                };
                if !inner.is_empty() {
                    lines.push(line(&format!("{}:", key.to_s()), indent, Change::Kept));
                    lines.extend(inner);
                }
            }
        }
    }
    lines
}

/// The differences of two lists: as sets, except that maps of the same name are compared.
fn lists(before: Side<'_>, after: Side<'_>, indent: usize) -> Vec<Line> {
    let (before, after) = (before.items(), after.items());
    let is_in = |items: &[Side<'_>], item: &Side<'_>| {
        items
            .iter()
            .any(|other| other.value.eql(item.value) && other.shown.eql(item.shown))
    };
    let mut added = after.clone();
    added.retain(|item| !is_in(&before, item));
    let mut removed = before;
    removed.retain(|item| !is_in(&after, item));
    let mut lines = Vec::new();
    for item in &added {
        let all = added.iter().chain(&removed).map(|side| side.value);
        let all: Vec<&Value> = all.filter(|value| !value.is_null()).collect();
        let identity = ["name", "range"]
            .into_iter()
            .find(|key| item.value.is_map() && all.iter().all(|value| has(value, key)));
        let same = identity.and_then(|key| {
            let id = item.value.get(key);
            let at = removed.iter().position(|old| old.value.get(key) == id)?;
            Some((key, at))
        });
        let Some((key, at)) = same else {
            lines.extend(dumped(&list_of(&[item.shown]), indent, Change::Added));
            continue;
        };
        let old = removed[at];
        removed.retain(|other| *other != old);
        let inner = maps(old, *item, indent + 1);
        if !inner.is_empty() {
            let mut title = Value::empty_map(item.shown.place);
            if let Some(entry) = item.shown.entry(key) {
                title.set(entry.key.clone(), entry.value.clone());
            }
            lines.extend(dumped(&list_of(&[&title]), indent, Change::Kept));
            lines.extend(inner);
        }
    }
    if !removed.is_empty() {
        let removed: Vec<&Value> = removed.iter().map(|side| side.shown).collect();
        lines.extend(dumped(&list_of(&removed), indent, Change::Removed));
    }
    lines
}

/// Whether `value['name']` is true in Ruby. In a string it is the text itself.
fn has(value: &Value, key: &str) -> bool {
    match &value.data {
        Data::String(text) => text.contains(key),
        _ => value
            .get(key)
            .is_some_and(|name| !matches!(name.data, Data::Null | Data::Bool(false))),
    }
}

fn list_of(items: &[&Value]) -> Value {
    let place = items.first().map(|item| item.place).unwrap_or_default();
    Value::new(
        place,
        Data::List(items.iter().map(|item| (*item).clone()).collect()),
    )
}

fn dumped(value: &Value, indent: usize, change: Change) -> Vec<Line> {
    let lines = dump::lines(value).into_iter();
    lines.map(|text| line(&text, indent, change)).collect()
}

fn line(text: &str, indent: usize, change: Change) -> Line {
    Line {
        change,
        text: format!("{}{text}", "  ".repeat(indent)),
    }
}

/// Brings the sections into their order. A section ends where a line isn't indented. As in the
/// Director, a second section with the same first line replaces the first one.
fn ordered(lines: Vec<Line>) -> Vec<Line> {
    let mut sections: IndexMap<String, Vec<Line>> = IndexMap::new();
    let mut title = String::new();
    for line in lines {
        if !line.text.starts_with([' ', '-']) {
            title.clone_from(&line.text);
            sections.insert(title.clone(), Vec::new());
        }
        sections.entry(title.clone()).or_default().push(line);
    }
    let first = SECTIONS.map(|name| sections.shift_remove(&format!("{name}:")));
    let ordered = first.into_iter().flatten().chain(sections.into_values());
    let empty = Line {
        change: Change::Kept,
        text: String::new(),
    };
    let mut lines = Vec::new();
    for section in ordered {
        if !lines.is_empty() {
            lines.push(empty.clone());
        }
        lines.extend(section);
    }
    lines
}

/// Redacts the scalars under every map with the key `properties` or `bosh`.
fn redact_properties(value: &mut Value) {
    match &mut value.data {
        Data::List(items) => items.iter_mut().for_each(redact_properties),
        Data::Map(entries) => {
            for Entry { key, value } in entries {
                if matches!(key.as_str(), Some("properties" | "bosh")) && value.is_map() {
                    redact_scalars(value);
                } else {
                    redact_properties(value);
                }
            }
        }
        _ => {}
    }
}

fn redact_scalars(value: &mut Value) {
    match &mut value.data {
        Data::List(items) => items.iter_mut().for_each(redact_scalars),
        Data::Map(entries) => entries
            .iter_mut()
            .for_each(|entry| redact_scalars(&mut entry.value)),
        other => *other = Data::String(REDACTED.into()),
    }
}

/// Redacts user and password in `releases[].url`.
fn redact_release_urls(manifest: &mut Value) {
    let Some(Data::List(releases)) = manifest.get_mut("releases").map(|value| &mut value.data)
    else {
        return;
    };
    for release in releases {
        let Some(url) = release.get_mut("url") else {
            continue;
        };
        if let Some(redacted) = url.as_str().and_then(redacted_url) {
            url.data = Data::String(redacted.into());
        }
    }
}

/// The URL without its credentials; `None` if it has none.
fn redacted_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (credentials, host) = rest[..end].rsplit_once('@')?;
    let credentials = match credentials.split_once(':') {
        Some(_) => format!("{REDACTED}:{REDACTED}"),
        None => REDACTED.to_owned(),
    };
    Some(format!("{scheme}://{credentials}@{host}{}", &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read;

    fn shown(before: &str, after: &str, redact: bool) -> Vec<String> {
        let (before, after) = (read(before, 0).unwrap(), read(after, 1).unwrap());
        let lines = diff(&before, &after, redact).into_iter();
        lines
            .map(|line| format!("{}{}", line.change.sign(), line.text))
            .collect()
    }

    #[test]
    fn values_are_compared_by_key() {
        for (before, after, expected) in [
            ("{a: 1}", "{a: 1.0}", vec![]),
            ("{a: {b: 1, c: 2}}", "{a: {c: 2, b: 1}}", vec![]),
            ("", "{a: [1, {b: ~}]}", vec!["+a:", "+- 1", "+- b:"]),
            ("{a: ~}", "{}", vec![]),
            (
                "{a: {b: 1}}",
                "{a: {b: 2}}",
                vec![" a:", "-  b: 1", "+  b: 2"],
            ),
            // To the Director these two lines are sections.
            ("{a: 1}", "{a: x}", vec!["-a: 1", " ", "+a: x"]),
            (
                "{a: {b: x y}}",
                "{a: {b: 'yes'}}",
                vec![" a:", "-  b: x y", "+  b: 'yes'"],
            ),
        ] {
            assert_eq!(shown(before, after, true), expected, "{before} {after}");
        }
    }

    #[test]
    fn lists_are_compared_as_sets_or_by_name() {
        for (before, after, expected) in [
            ("a: [1, 2, 2]", "a: [2, 1]", vec![]),
            ("a: [1, 2]", "a: [2, 3]", vec![" a:", "+- 3", "-- 1"]),
            (
                "a: [{name: x, v: 1}, {name: y}]",
                "a: [{name: y}, {name: x, v: 2}]",
                vec![" a:", " - name: x", "-  v: 1", "+  v: 2"],
            ),
            (
                "a: [{range: x, v: 1}]",
                "a: [{range: x, v: 2}]",
                vec![" a:", " - range: x", "-  v: 1", "+  v: 2"],
            ),
            (
                "a: [{name: x, v: 1}, 5]",
                "a: [{name: x, v: 2}]",
                vec![
                    " a:",
                    "+- name: x",
                    "+  v: 2",
                    "-- name: x",
                    "-  v: 1",
                    "-- 5",
                ],
            ),
            (
                "a: [{id: x, v: 1}]",
                "a: [{id: x, v: 2}]",
                vec![" a:", "+- id: x", "+  v: 2", "-- id: x", "-  v: 1"],
            ),
        ] {
            assert_eq!(shown(before, after, true), expected, "{before} {after}");
        }
    }

    #[test]
    fn secrets_are_redacted() {
        for (before, after, redact, expected) in [
            (
                "{j: {properties: {a: [1, {b: 2}], c: ~}}}",
                "{j: {properties: {a: [1, {b: 3}], c: ~}}}",
                true,
                vec![
                    " j:",
                    "   properties:",
                    "     a:",
                    "+    - b: \"<redacted>\"",
                    "-    - b: \"<redacted>\"",
                ],
            ),
            (
                "{properties: a}",
                "{properties: b}",
                true,
                vec!["-properties: a", " ", "+properties: b"],
            ),
            // The Director shows this: of an inner list it redacts the last item only.
            (
                "{}",
                "{a: [[{bosh: {p: x}}, 1]]}",
                true,
                vec!["+a:", "+- - bosh:", "+      p: \"<redacted>\"", "+  - 1"],
            ),
            (
                "releases: [{name: r, url: 'https://u:p@h/u?p=u'}]",
                "releases: [{name: r, url: 'https://u:q@h/u?p=u'}]",
                true,
                vec![
                    " releases:",
                    " - name: r",
                    "-  url: https://<redacted>:<redacted>@h/u?p=u",
                    "+  url: https://<redacted>:<redacted>@h/u?p=u",
                ],
            ),
            (
                "{}",
                "releases: [{url: 'https://u@h/a@b'}, {url: 'https://h/a@b'}, {url: 1}, 2]",
                true,
                vec![
                    "+releases:",
                    "+- url: https://<redacted>@h/a@b",
                    "+- url: https://h/a@b",
                    "+- url: 1",
                    "+- 2",
                ],
            ),
            ("{}", "{bosh: {p: x}}", false, vec!["+bosh:", "+  p: x"]),
        ] {
            assert_eq!(shown(before, after, redact), expected, "{before} {after}");
        }
    }

    #[test]
    fn sections_have_a_fixed_order() {
        let after = "{z: [1], variables: [1], name: x, update: {a: 1}, azs: [1]}";
        let expected = "+azs:|+- 1| |+update:|+  a: 1| |+variables:|+- 1| |+z:|+- 1| |+name: x";
        assert_eq!(shown("{}", after, true).join("|"), expected);
    }
}
