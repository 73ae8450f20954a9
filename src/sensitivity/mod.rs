//! Marks which parts of an instance are sensitive, and masks them.
//!
//! In: values of the configuration with their sensitivity, and texts with their sensitive bytes.
//! Out: [`Marks`], masked values and masked plans. Must not: store sensitive values.
//!
//! Marks belong to a spec and are recorded with it: a value that was sensitive when the instance
//! was created stays masked after the configuration drops it. They are not compared when instances
//! are.

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

/// The mask of a sensitive line.
pub const HIDDEN_LINE: &str = "(sensitive line)";

/// Which parts of a value are sensitive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value", into = "Value")]
pub enum Mark {
    /// None.
    #[default]
    Open,
    /// All, including keys.
    Whole,
    /// Parts of an object, by key.
    Keys(BTreeMap<String, Mark>),
    /// Parts of a list, by index.
    Items(Vec<Mark>),
}

impl From<Value> for Mark {
    /// An invalid mark masks everything.
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
    /// The form of Terraform's `after_sensitive`.
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
    /// The mark of a list.
    pub fn of_items(items: impl IntoIterator<Item = Self>) -> Self {
        let items: Vec<_> = items.into_iter().collect();
        if items.iter().all(Self::is_open) {
            Self::Open
        } else {
            Self::Items(items)
        }
    }

    /// The mark of an object.
    pub fn of_keys<'k>(entries: impl IntoIterator<Item = (&'k str, Self)>) -> Self {
        let entries = entries.into_iter().filter(|(_, mark)| !mark.is_open());
        let entries: BTreeMap<_, _> = entries.map(|(key, mark)| (key.to_owned(), mark)).collect();
        if entries.is_empty() {
            Self::Open
        } else {
            Self::Keys(entries)
        }
    }

    /// The mark of a merged value, as written.
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

    /// The mark of a configuration value, as written.
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

    /// Whether nothing is sensitive.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }

    /// The union of two marks.
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

    /// The masked value.
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

    /// The mark at a path, such as `.Ebs.Size` or `[0].Name`. A segment with dots may be one key or
    /// nested keys.
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

/// Which lines of a text are sensitive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextMark {
    /// None.
    #[default]
    Open,
    /// All lines.
    Whole,
    /// Ranges of lines, counted from 0; ends are exclusive.
    Lines(Vec<[usize; 2]>),
}

impl TextMark {
    /// Whether nothing is sensitive.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }

    /// Marks all of a text, or nothing.
    pub fn whole_if(is_sensitive: bool) -> Self {
        if is_sensitive {
            Self::Whole
        } else {
            Self::Open
        }
    }

    /// Marks the lines that contain any of these sorted byte ranges.
    pub fn of_bytes(text: &str, bytes: &[Range<usize>]) -> Self {
        if bytes.is_empty() {
            return Self::Open;
        }
        let lines: Vec<&str> = text.split('\n').collect();
        let mut hidden = vec![false; lines.len()];
        let mut start = 0;
        for (hidden, line) in hidden.iter_mut().zip(&lines) {
            // A line break is not sensitive.
            let end = start + line.len();
            *hidden = bytes
                .iter()
                .any(|range| range.start < end && start < range.end);
            start = end + 1;
        }
        Self::of_lines(&hidden, &lines)
    }

    /// Marks the lines whose `hidden` entry is true.
    pub fn of_hidden(text: &str, hidden: &[bool]) -> Self {
        let lines: Vec<&str> = text.split('\n').collect();
        let hidden: Vec<bool> = (0..lines.len())
            .map(|line| hidden.get(line).copied().unwrap_or(false))
            .collect();
        Self::of_lines(&hidden, &lines)
    }

    /// Marks the sensitive lines of a value written as indented JSON.
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

    /// Marks the sensitive lines; the whole text if all of its non-empty lines are sensitive.
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

    /// Whether a line is sensitive.
    pub fn hides(&self, line: usize) -> bool {
        match self {
            Self::Open => false,
            Self::Whole => true,
            Self::Lines(ranges) => ranges
                .iter()
                .any(|[start, end]| (*start..*end).contains(&line)),
        }
    }

    /// The union of two marks of the same text.
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

    /// The mark of another version of this text: the lines that are sensitive here, and the lines
    /// at their positions.
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

    /// The masked text.
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

/// Adds for each line of a value whether it is sensitive. The value begins on a new line, or on its
/// key's line.
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

/// Masks two versions of a text. If their sensitive lines differ, these are numbered: equal numbers
/// mean equal lines.
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

/// Which parts of an instance are sensitive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marks {
    /// Args.
    #[serde(skip_serializing_if = "Mark::is_open")]
    pub args: Mark,
    /// Vars.
    #[serde(skip_serializing_if = "Mark::is_open")]
    pub vars: Mark,
    /// Tags.
    #[serde(skip_serializing_if = "Mark::is_open")]
    pub tags: Mark,
    /// Userdata.
    #[serde(skip_serializing_if = "TextMark::is_open")]
    pub userdata: TextMark,
    /// Files by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, TextMark>,
}

impl Marks {
    /// The shared marks of specs without sensitive parts.
    pub fn none() -> Arc<Self> {
        static NONE: LazyLock<Arc<Marks>> = LazyLock::new(Arc::default);
        Arc::clone(&NONE)
    }

    /// Marks args, tags and userdata: everything that a cloud reports of an instance.
    pub fn whole() -> Self {
        Self {
            args: Mark::Whole,
            tags: Mark::Whole,
            userdata: TextMark::Whole,
            ..Self::default()
        }
    }

    /// Whether nothing is sensitive.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The mark of a file.
    pub fn file(&self, name: &str) -> &TextMark {
        self.files.get(name).unwrap_or(&TextMark::Open)
    }

    /// The union of two marks of the same spec.
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

    /// The marks of another spec of the same instance.
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

    /// The masked spec.
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

    /// The marks in Terraform's form, structured like the JSON of an instance.
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
    /// The part of a path that may be shown; keys below a sensitive value are sensitive too.
    pub fn told<'p>(&self, path: &'p str) -> &'p str {
        let length = self.hidden_at(path).unwrap_or(path.len());
        &path[..length]
    }

    /// The length of the path's prefix that leads to a value that is sensitive as a whole.
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

/// The userdata of a spec, as shown in plans.
pub fn userdata_text(spec: &SpecBody) -> &str {
    let userdata = spec.userdata.as_ref();
    userdata.map_or("", |userdata| userdata.content.display())
}

/// A file's text in a spec; empty if the file doesn't exist.
pub fn file_text<'s>(spec: &'s SpecBody, name: &str) -> &'s str {
    let file = spec.files.get(name);
    file.and_then(|file| file.content.as_deref()).unwrap_or("")
}
