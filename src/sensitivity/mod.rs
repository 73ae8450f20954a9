//! Which parts of an instance are masked.
//!
//! In: values of the configuration with their sensitivity, and texts with their sensitive bytes.
//! Out: [`Marks`], values with what is marked covered, and plans that can be shown. Must not: hold
//! anything that is sensitive.
//!
//! Marks belong to one spec, and stay with it in the record: what was a secret when an instance was
//! made stays hidden when the configuration knows no more of it. They are no part of what the
//! instance is.

pub(crate) mod cover;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use similar::{DiffTag, TextDiff};

use crate::config::node::{Node, NodeValue};
use crate::merge::deep::{Merged, MergedValue};
use crate::spec::{Content, SpecBody};

pub use crate::diagnostic::HIDDEN;

/// What stands for a line that is hidden.
pub const HIDDEN_LINE: &str = "(sensitive line)";

/// The masked parts of a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value", into = "Value")]
pub enum Mark {
    /// Nothing.
    #[default]
    Open,
    /// All of it, keys included.
    Whole,
    /// Parts of an object.
    Keys(BTreeMap<String, Mark>),
    /// Parts of a list.
    Items(Vec<Mark>),
}

impl From<Value> for Mark {
    /// What can't be read hides all.
    fn from(value: Value) -> Self {
        match value {
            Value::Bool(false) => Self::Open,
            Value::Array(items) => Self::Items(items.into_iter().map(Self::from).collect()),
            Value::Object(entries) => {
                let entries = entries.into_iter();
                Self::Keys(entries.map(|(key, mark)| (key, mark.into())).collect())
            }
            _ => Self::Whole,
        }
    }
}

impl From<Mark> for Value {
    /// As Terraform writes `after_sensitive`.
    fn from(mark: Mark) -> Self {
        match mark {
            Mark::Open => Self::Bool(false),
            Mark::Whole => Self::Bool(true),
            Mark::Keys(entries) => entries
                .into_iter()
                .map(|(key, mark)| (key, Self::from(mark)))
                .collect::<Map<_, _>>()
                .into(),
            Mark::Items(items) => items.into_iter().map(Self::from).collect(),
        }
    }
}

impl Mark {
    /// Of a list, by its items.
    pub fn of_items(items: impl IntoIterator<Item = Self>) -> Self {
        let items: Vec<_> = items.into_iter().collect();
        if items.iter().all(Self::is_open) {
            Self::Open
        } else {
            Self::Items(items)
        }
    }

    /// Of an object, by its keys.
    pub fn of_keys<'k>(entries: impl IntoIterator<Item = (&'k str, Self)>) -> Self {
        let entries = entries.into_iter().filter(|(_, mark)| !mark.is_open());
        let entries: BTreeMap<_, _> = entries.map(|(key, mark)| (key.to_owned(), mark)).collect();
        if entries.is_empty() {
            Self::Open
        } else {
            Self::Keys(entries)
        }
    }

    /// Of a merged value, as it is written.
    pub fn of_merged(value: &Merged) -> Self {
        if !value.sensitivity.is_open() {
            return Self::Whole;
        }
        match &value.value {
            MergedValue::Array(items) => Self::of_items(items.iter().map(Self::of_merged)),
            MergedValue::Object(entries) => {
                let entries = entries.iter();
                Self::of_keys(entries.map(|(key, value)| (&**key, Self::of_merged(value))))
            }
            _ => Self::Open,
        }
    }

    /// Of a value of the configuration, as it is written.
    pub fn of_node(node: &Node) -> Self {
        if !node.sensitivity.is_open() {
            return Self::Whole;
        }
        match &node.value {
            NodeValue::Array(items) => Self::of_items(items.iter().map(Self::of_node)),
            NodeValue::Object(entries) => {
                let entries = entries.iter();
                Self::of_keys(entries.map(|entry| (&*entry.key, Self::of_node(&entry.value))))
            }
            _ => Self::Open,
        }
    }

    /// Whether nothing is hidden.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }

    /// What either hides.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Open, mark) | (mark, Self::Open) => mark.clone(),
            (Self::Keys(a), Self::Keys(b)) => {
                let mut both = a.clone();
                for (key, mark) in b {
                    let known = both.entry(key.clone()).or_default();
                    *known = known.or(mark);
                }
                Self::Keys(both)
            }
            (Self::Items(a), Self::Items(b)) => {
                let at =
                    |items: &[Self], index: usize| items.get(index).cloned().unwrap_or_default();
                let length = a.len().max(b.len());
                Self::Items(
                    (0..length)
                        .map(|index| at(a, index).or(&at(b, index)))
                        .collect(),
                )
            }
            _ => Self::Whole,
        }
    }

    /// The value with what is hidden covered.
    pub fn cover(&self, value: &Value) -> Value {
        match (self, value) {
            (Self::Open, _) => value.clone(),
            (Self::Keys(marks), Value::Object(entries)) => entries
                .iter()
                .map(|(key, value)| {
                    let covered = marks.get(key).map(|mark| mark.cover(value));
                    (key.clone(), covered.unwrap_or_else(|| value.clone()))
                })
                .collect::<Map<_, _>>()
                .into(),
            (Self::Items(marks), Value::Array(items)) => {
                let covered = items.iter().enumerate().map(|(index, item)| {
                    let mark = marks.get(index).unwrap_or(&Self::Open);
                    mark.cover(item)
                });
                covered.collect()
            }
            _ => HIDDEN.into(),
        }
    }

    /// The mark of what lies at a path, such as `.Ebs.Size` or `[0].Name`. A key with dots in it is
    /// found as well as keys below one another.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        let path = path.strip_prefix('.').unwrap_or(path);
        if path.is_empty() || matches!(self, Self::Open | Self::Whole) {
            return self.clone();
        }
        match self {
            Self::Keys(marks) => {
                let found = marks.iter().filter_map(|(key, mark)| {
                    let rest = path.strip_prefix(key.as_str())?;
                    let whole = rest.is_empty() || rest.starts_with(['.', '[']);
                    whole.then(|| mark.at(rest))
                });
                found.fold(Self::Open, |all, mark| all.or(&mark))
            }
            Self::Items(marks) => path
                .strip_prefix('[')
                .and_then(|path| path.split_once(']'))
                .and_then(|(index, rest)| Some(marks.get(index.parse::<usize>().ok()?)?.at(rest)))
                .unwrap_or_default(),
            Self::Open | Self::Whole => self.clone(),
        }
    }
}

/// The masked lines of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextMark {
    /// Nothing.
    #[default]
    Open,
    /// All of it.
    Whole,
    /// These lines, by number from 0; the first of each range and the one after its last.
    Lines(Vec<[usize; 2]>),
}

impl TextMark {
    /// Whether nothing is hidden.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }

    /// All of a text, or nothing.
    pub fn whole_if(is_sensitive: bool) -> Self {
        if is_sensitive {
            Self::Whole
        } else {
            Self::Open
        }
    }

    /// The lines of a text with any of these bytes, which are in order.
    pub fn of_bytes(text: &str, bytes: &[Range<usize>]) -> Self {
        if bytes.is_empty() {
            return Self::Open;
        }
        let lines: Vec<&str> = text.split('\n').collect();
        let mut hidden = vec![false; lines.len()];
        let mut start = 0;
        for (hidden, line) in hidden.iter_mut().zip(&lines) {
            // A line break is no secret.
            let end = start + line.len();
            *hidden = bytes
                .iter()
                .any(|range| range.start < end && start < range.end);
            start = end + 1;
        }
        Self::of_lines(&hidden, &lines)
    }

    /// The lines of a text that are `hidden`, by number.
    pub fn of_hidden(text: &str, hidden: &[bool]) -> Self {
        let lines: Vec<&str> = text.split('\n').collect();
        let hidden: Vec<bool> = (0..lines.len())
            .map(|line| hidden.get(line).copied().unwrap_or(false))
            .collect();
        Self::of_lines(&hidden, &lines)
    }

    /// Those lines of the text that a value is written as, indented, which have something hidden.
    pub fn of_json(value: &Value, mark: &Mark) -> Self {
        if mark.is_open() {
            return Self::Open;
        }
        let mut hidden = Vec::new();
        lines_of_json(value, mark, &mut hidden);
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        hidden.push(false);
        let lines: Vec<&str> = text.split('\n').chain([""]).collect();
        Self::of_lines(&hidden, &lines)
    }

    /// All of a text whose every line is hidden; none where only its length is known.
    fn of_lines(hidden: &[bool], lines: &[&str]) -> Self {
        let mut ranges: Vec<[usize; 2]> = Vec::new();
        for (index, _) in hidden.iter().enumerate().filter(|(_, hidden)| **hidden) {
            match ranges.last_mut() {
                Some([_, end]) if *end == index => *end += 1,
                _ => ranges.push([index, index + 1]),
            }
        }
        let all = hidden
            .iter()
            .zip(lines)
            .all(|(hidden, line)| *hidden || line.is_empty());
        match ranges[..] {
            [] => Self::Open,
            _ if all => Self::Whole,
            _ => Self::Lines(ranges),
        }
    }

    /// Whether a line is hidden.
    pub fn hides(&self, line: usize) -> bool {
        match self {
            Self::Open => false,
            Self::Whole => true,
            Self::Lines(ranges) => ranges
                .iter()
                .any(|[start, end]| (*start..*end).contains(&line)),
        }
    }

    /// What either hides of one text.
    #[must_use]
    pub fn or(&self, other: &Self, text: &str) -> Self {
        match (self, other) {
            (Self::Open, mark) | (mark, Self::Open) => mark.clone(),
            (Self::Whole, _) | (_, Self::Whole) => Self::Whole,
            _ => {
                let lines: Vec<&str> = text.split('\n').collect();
                let hidden: Vec<bool> = (0..lines.len())
                    .map(|line| self.hides(line) || other.hides(line))
                    .collect();
                Self::of_lines(&hidden, &lines)
            }
        }
    }

    /// What is to be hidden of another text, which took this one's place or whose place this one
    /// took: the lines that are hidden here, and those that stand where such lines stand.
    #[must_use]
    pub fn carried_to(&self, text: &str, other: &str) -> Self {
        let Self::Lines(_) = self else {
            return self.clone();
        };
        let (lines, others): (Vec<_>, Vec<_>) =
            (text.split('\n').collect(), other.split('\n').collect());
        let secret: HashSet<&str> = lines
            .iter()
            .enumerate()
            .filter(|(index, line)| self.hides(*index) && !line.trim().is_empty())
            .map(|(_, line)| *line)
            .collect();
        let mut hidden: Vec<bool> = others.iter().map(|line| secret.contains(line)).collect();
        let diff = TextDiff::from_slices(&lines, &others);
        for op in diff.ops() {
            let from_secret = op.old_range().any(|line| self.hides(line));
            if op.tag() == DiffTag::Replace && from_secret {
                hidden[op.new_range()].fill(true);
            }
        }
        Self::of_lines(&hidden, &others)
    }

    /// The text with what is hidden covered.
    pub fn cover(&self, text: &str) -> String {
        match self {
            Self::Open => text.to_owned(),
            Self::Whole => HIDDEN.to_owned(),
            Self::Lines(_) => self.cover_with(text, |_| HIDDEN_LINE.to_owned()),
        }
    }

    fn cover_with(&self, text: &str, mut stand_in: impl FnMut(&str) -> String) -> String {
        let lines = text.split('\n').enumerate();
        let lines: Vec<String> = lines
            .map(|(index, line)| {
                if self.hides(index) {
                    stand_in(line)
                } else {
                    line.to_owned()
                }
            })
            .collect();
        lines.join("\n")
    }
}

/// Adds to each line that a value takes whether it is hidden. The value begins on a new line, or on
/// that of its key.
fn lines_of_json(value: &Value, mark: &Mark, hidden: &mut Vec<bool>) {
    let is_whole = *mark == Mark::Whole;
    let marks: Vec<(&Value, Mark)> = match value {
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().enumerate();
            items
                .map(|(index, item)| (item, mark.at_index(index).clone()))
                .collect()
        }
        Value::Object(entries) if !entries.is_empty() => entries
            .iter()
            .map(|(key, value)| (value, mark.at_key(key).clone()))
            .collect(),
        _ => {
            hidden.push(!mark.is_open());
            return;
        }
    };
    hidden.push(is_whole);
    for (value, mark) in marks {
        lines_of_json(value, &mark, hidden);
    }
    hidden.push(is_whole);
}

/// Two texts, one in the place of the other, with what is hidden covered. Where hidden lines
/// aren't the same, they are numbered: equal numbers are equal lines.
pub fn cover_both(before: (&str, &TextMark), after: (&str, &TextMark)) -> (String, String) {
    let ((old, old_mark), (new, new_mark)) = (before, after);
    let secrets = |text: &'_ str, mark: &TextMark| -> Vec<String> {
        let lines = text.split('\n').enumerate();
        lines
            .filter(|(index, _)| mark.hides(*index))
            .map(|(_, line)| line.to_owned())
            .collect()
    };
    let whole = |mark: &TextMark| *mark == TextMark::Whole;
    if whole(old_mark) || whole(new_mark) || secrets(old, old_mark) == secrets(new, new_mark) {
        return (old_mark.cover(old), new_mark.cover(new));
    }
    let mut known: Vec<String> = Vec::new();
    let mut stand_in = |line: &str| {
        let number = known
            .iter()
            .position(|known| known == line)
            .unwrap_or_else(|| {
                known.push(line.to_owned());
                known.len() - 1
            });
        format!("(sensitive line {})", number + 1)
    };
    let old = old_mark.cover_with(old, &mut stand_in);
    (old, new_mark.cover_with(new, &mut stand_in))
}

/// The masked parts of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marks {
    /// Of its args.
    #[serde(skip_serializing_if = "Mark::is_open")]
    pub args: Mark,
    /// Of its vars.
    #[serde(skip_serializing_if = "Mark::is_open")]
    pub vars: Mark,
    /// Of its tags.
    #[serde(skip_serializing_if = "Mark::is_open")]
    pub tags: Mark,
    /// Of its userdata.
    #[serde(skip_serializing_if = "TextMark::is_open")]
    pub userdata: TextMark,
    /// Of its files.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, TextMark>,
}

impl Marks {
    /// Those of a spec without secrets: one for all of them.
    pub fn none() -> Arc<Self> {
        static NONE: LazyLock<Arc<Marks>> = LazyLock::new(Arc::default);
        Arc::clone(&NONE)
    }

    /// Masks args, tags and userdata: all that a cloud reports of an instance.
    pub fn whole() -> Self {
        Self {
            args: Mark::Whole,
            tags: Mark::Whole,
            userdata: TextMark::Whole,
            ..Self::default()
        }
    }

    /// Whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The masked parts of a file.
    pub fn file(&self, name: &str) -> &TextMark {
        self.files.get(name).unwrap_or(&TextMark::Open)
    }

    /// What either hides of one spec.
    #[must_use]
    pub fn or(&self, other: &Self, spec: &SpecBody) -> Self {
        let mut files = self.files.clone();
        for (name, mark) in &other.files {
            let text = file_text(spec, name);
            let known = files.entry(name.clone()).or_default();
            *known = known.or(mark, text);
        }
        Self {
            args: self.args.or(&other.args),
            vars: self.vars.or(&other.vars),
            tags: self.tags.or(&other.tags),
            userdata: self.userdata.or(&other.userdata, userdata_text(spec)),
            files,
        }
    }

    /// What is to be hidden of another spec of the same instance.
    #[must_use]
    pub fn carried_to(&self, spec: &SpecBody, other: &SpecBody) -> Self {
        let files = self.files.iter().map(|(name, mark)| {
            let mark = mark.carried_to(file_text(spec, name), file_text(other, name));
            (name.clone(), mark)
        });
        Self {
            userdata: self
                .userdata
                .carried_to(userdata_text(spec), userdata_text(other)),
            files: files.filter(|(_, mark)| !mark.is_open()).collect(),
            ..self.clone()
        }
    }

    /// The spec with what is hidden covered.
    pub fn cover(&self, spec: &SpecBody) -> SpecBody {
        let mut spec = spec.clone();
        if let Value::Object(args) = self
            .args
            .cover(&Value::Object(std::mem::take(&mut spec.args)))
        {
            spec.args = args;
        }
        spec.vars = self.vars.cover(&spec.vars);
        for (key, value) in &mut spec.tags {
            if !self.tags.at_key(key).is_open() {
                HIDDEN.clone_into(value);
            }
        }
        if let Some(userdata) = &mut spec.userdata
            && !self.userdata.is_open()
        {
            let text = self.userdata.cover(userdata.content.display());
            userdata.content = Content::Text(text);
        }
        for (name, file) in &mut spec.files {
            if let Some(content) = &mut file.content {
                *content = self.file(name).cover(content);
            }
        }
        spec
    }

    /// In Terraform's form, over an instance as JSON has it.
    pub fn to_json(&self) -> Value {
        let mut tree = Map::new();
        for (root, mark) in [
            ("args", &self.args),
            ("vars", &self.vars),
            ("tags", &self.tags),
        ] {
            if !mark.is_open() {
                tree.insert(root.to_owned(), mark.clone().into());
            }
        }
        if !self.userdata.is_open() {
            tree.insert("userdata".to_owned(), true.into());
        }
        if !self.files.is_empty() {
            let files = self.files.keys().map(|name| {
                (
                    name.clone(),
                    Value::from(Map::from_iter([("content".to_owned(), true.into())])),
                )
            });
            tree.insert("files".to_owned(), files.collect::<Map<_, _>>().into());
        }
        tree.into()
    }
}

impl Mark {
    /// The part of the path that may be shown: keys below a masked value are masked, too.
    pub fn told<'p>(&self, path: &'p str) -> &'p str {
        let length = self.hidden_at(path).unwrap_or(path.len());
        &path[..length]
    }

    /// How much of a path leads to something that is hidden as a whole.
    fn hidden_at(&self, path: &str) -> Option<usize> {
        let dot = usize::from(path.starts_with('.'));
        let rest = &path[dot..];
        match self {
            Self::Open => None,
            Self::Whole => Some(0),
            Self::Keys(marks) => marks
                .iter()
                .filter_map(|(key, mark)| {
                    let below = rest.strip_prefix(key.as_str())?;
                    let whole = below.is_empty() || below.starts_with(['.', '[']);
                    let length = mark.hidden_at(below).filter(|_| whole)?;
                    Some(dot + key.len() + length)
                })
                .min(),
            Self::Items(marks) => {
                let (index, below) = rest.strip_prefix('[')?.split_once(']')?;
                let mark = marks.get(index.parse::<usize>().ok()?)?;
                Some(path.len() - below.len() + mark.hidden_at(below)?)
            }
        }
    }

    fn at_index(&self, index: usize) -> &Self {
        match self {
            Self::Items(marks) => marks.get(index).unwrap_or(&Self::Open),
            mark => mark,
        }
    }

    fn at_key(&self, key: &str) -> &Self {
        match self {
            Self::Keys(marks) => marks.get(key).unwrap_or(&Self::Open),
            mark => mark,
        }
    }
}

/// The userdata of a spec, as it is shown.
pub fn userdata_text(spec: &SpecBody) -> &str {
    let userdata = spec.userdata.as_ref();
    userdata.map_or("", |userdata| userdata.content.display())
}

/// A file of a spec, if it has it.
pub fn file_text<'s>(spec: &'s SpecBody, name: &str) -> &'s str {
    let file = spec.files.get(name);
    file.and_then(|file| file.content.as_deref()).unwrap_or("")
}
