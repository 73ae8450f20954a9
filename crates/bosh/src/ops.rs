//! Operations of ops files, as cppforlife's go-patch parses and applies them.
//!
//! In: the value of an ops file, and a document. Out: the changed document, or go-patch's error at
//! the operation's path.

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::Error;
use crate::golang;
use crate::value::{Data, Entry, Place, Value};
use crate::yaml::DEPTH;

/// One operation of an ops file.
#[derive(Debug, Clone)]
pub struct Operation {
    kind: Kind,
    path: Pointer,
    /// Its own `error`, which introduces messages about it.
    description: Option<String>,
    place: Place,
}

#[derive(Debug, Clone)]
enum Kind {
    Replace(Value),
    Remove,
    Test(Value),
    TestAbsent,
}

/// Parses an ops file: a list of operations, or nothing. Returns the errors of all operations.
pub fn parse(file: &Value) -> Result<Vec<Operation>, Vec<Error>> {
    let definitions = match &file.data {
        Data::Null => &[],
        Data::List(definitions) => definitions.as_slice(),
        _ => {
            let message = "Building ops: Expected to find a list of operations";
            return Err(vec![Error::at(file.place, message)]);
        }
    };
    let mut operations = Vec::new();
    let mut errors = Vec::new();
    for (index, definition) in definitions.iter().enumerate() {
        match Operation::parse(definition, index) {
            Ok(operation) => operations.push(operation),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(operations)
    } else {
        Err(errors)
    }
}

impl Operation {
    fn parse(definition: &Value, index: usize) -> Result<Self, Error> {
        if !definition.is_map() {
            let message = format!("Building ops: Expected operation [{index}] to be a map");
            return Err(Error::at(definition.place, message));
        }
        // A null is the same as no key, for values too.
        let given = |key| definition.get(key).filter(|value| !value.is_null());
        let text = |key| given(key).map(golang::text);
        let (value, absent) = (given("value"), given("absent").and_then(Value::as_bool));
        let type_name = text("type").unwrap_or_default();
        let (title, kind) = match type_name.as_str() {
            "replace" => (
                "Replace",
                value
                    .map(|value| Kind::Replace(value.clone()))
                    .ok_or("Missing value"),
            ),
            "remove" => (
                "Remove",
                match value {
                    None => Ok(Kind::Remove),
                    Some(_) => Err("Cannot specify value"),
                },
            ),
            "test" => (
                "Test",
                match (value, absent) {
                    (None, None) => Err("Missing value or absent"),
                    (_, Some(true)) => Ok(Kind::TestAbsent),
                    (value, _) => Ok(Kind::Test(
                        value.map_or_else(|| Value::null(definition.place), Value::clone),
                    )),
                },
            ),
            _ => {
                let message = format!(
                    "Building ops: Unknown operation [{index}] with type '{type_name}' within\n{}",
                    shown(definition)
                );
                let place = given("type").map_or(definition.place, |value| value.place);
                return Err(Error::at(place, message)
                    .with_hint("the types are `replace`, `remove` and `test`"));
            }
        };
        let place = given("path").map_or(definition.place, |path| path.place);
        let parsed = match text("path") {
            None => Err("Missing path".to_owned()),
            Some(path) => kind.map_err(str::to_owned).and_then(|kind| {
                let path = Pointer::parse(&path).map_err(|why| format!("Invalid path: {why}"))?;
                Ok((kind, path))
            }),
        };
        match parsed {
            Ok((kind, path)) => Ok(Self {
                kind,
                path,
                description: text("error"),
                place,
            }),
            Err(why) => {
                let message = format!(
                    "Building ops: {title} operation [{index}]: {why} within\n{}",
                    shown(definition)
                );
                Err(Error::at(place, message))
            }
        }
    }

    /// Applies the operation. Values that it puts in keep their places.
    pub fn apply(&self, document: &mut Value) -> Result<(), Error> {
        let path = &self.path;
        let result = match &self.kind {
            Kind::Replace(value) => path.replace(document, value),
            Kind::Remove => path.remove(document),
            Kind::Test(expected) => match path.find(document) {
                Ok(found) if *found == *expected => Ok(()),
                Ok(_) => Err("Found value does not match expected value".into()),
                Err(failure) => Err(failure),
            },
            Kind::TestAbsent => match path.find(document) {
                Ok(_) => Err(format!("Expected to not find '{path}'").into()),
                Err(failure) if failure.is_missing_last => Ok(()),
                Err(failure) => Err(failure),
            },
        };
        result.map_err(|failure| {
            let message = match &self.description {
                Some(description) => format!("Error '{description}': {}", failure.message),
                None => failure.message,
            };
            Error::at(self.place, message)
        })
    }
}

/// An operation as go-patch's messages show it: JSON without the value.
fn shown(definition: &Value) -> String {
    let mut members = serde_json::Map::new();
    for (title, key) in [
        ("Type", "type"),
        ("Path", "path"),
        ("Value", "value"),
        ("Absent", "absent"),
        ("Error", "error"),
    ] {
        let Some(value) = definition.get(key).filter(|value| !value.is_null()) else {
            continue;
        };
        let json = match key {
            "value" => "<redacted>".into(),
            "absent" => value.to_json(),
            _ => golang::text(value).into(),
        };
        members.insert(title.to_owned(), json);
    }
    // Maps with string keys can always be written.
    serde_json::to_string_pretty(&members).unwrap_or_default()
}

/// A path into a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pointer {
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// `/3`, `/-1`
    Index(i64, Vec<Modifier>),
    /// `/-`
    AfterLast,
    /// `/key=value`, `/key=value?`
    Matching {
        key: Arc<str>,
        value: Arc<str>,
        is_optional: bool,
        modifiers: Vec<Modifier>,
    },
    /// `/key`, `/key?`
    Key { key: Arc<str>, is_optional: bool },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Modifier {
    Previous,
    Next,
    Before,
    After,
}

impl Modifier {
    const ALL: [(&str, Self, &str); 4] = [
        ("prev", Self::Previous, "patch.PrevModifier"),
        ("next", Self::Next, "patch.NextModifier"),
        ("before", Self::Before, "patch.BeforeModifier"),
        ("after", Self::After, "patch.AfterModifier"),
    ];

    /// Its name in paths, and its type in Go.
    fn names(self) -> (&'static str, &'static str) {
        let [previous, next, before, after] = Self::ALL;
        let (name, _, go) = match self {
            Self::Previous => previous,
            Self::Next => next,
            Self::Before => before,
            Self::After => after,
        };
        (name, go)
    }
}

/// Why a path doesn't fit a document.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// Whether nothing but the path's last key or index is missing.
    is_missing_last: bool,
}

impl<T: Into<String>> From<T> for Failure {
    fn from(message: T) -> Self {
        Self {
            message: message.into(),
            is_missing_last: false,
        }
    }
}

impl Pointer {
    /// Parses a path. An empty one is the whole document.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Vec::new();
        if text.is_empty() {
            return Ok(Self { tokens });
        }
        let Some(text) = text.strip_prefix('/') else {
            return Err("Expected to start with '/'".to_owned());
        };
        if text.split('/').count() > DEPTH {
            return Err(format!("Expected at most {DEPTH} keys"));
        }
        let mut parts = text.split('/').peekable();
        let mut is_optional = false;
        while let Some(part) = parts.next() {
            let mut pieces = part.split(':');
            let part = pieces.next().unwrap_or_default();
            let pieces: Vec<&str> = pieces.collect();
            let mut modifiers = Vec::new();
            for piece in &pieces {
                let known = Modifier::ALL.iter().find(|(name, ..)| name == piece);
                let Some((_, modifier, _)) = known else {
                    return Err(format!(
                        "Expected to find one of the following modifiers: 'prev', 'next', \
                         'before', or 'after' but found '{}'",
                        pieces[0]
                    ));
                };
                modifiers.push(*modifier);
            }
            if part == "-" && parts.peek().is_none() {
                if !modifiers.is_empty() {
                    return Err(
                        "Expected not to find any modifiers with after last index token".to_owned(),
                    );
                }
                tokens.push(Token::AfterLast);
                continue;
            }
            if let Ok(index) = part.parse() {
                tokens.push(Token::Index(index, modifiers));
                continue;
            }
            let part = match part.strip_suffix('?') {
                Some(part) => {
                    is_optional = true;
                    part
                }
                None => part,
            };
            if let Some((key, value)) = part.split_once('=') {
                tokens.push(Token::Matching {
                    key: unescaped(key).into(),
                    value: unescaped(value).into(),
                    is_optional,
                    modifiers,
                });
                continue;
            }
            if !modifiers.is_empty() {
                return Err("Expected not to find any modifiers with key token".to_owned());
            }
            tokens.push(Token::Key {
                key: unescaped(part).into(),
                is_optional,
            });
        }
        Ok(Self { tokens })
    }

    /// The path of keys to `key=value` in the list of a key.
    pub(crate) fn to_item(list: &str, key: &str, value: &str) -> Self {
        Self {
            tokens: vec![
                Token::Key {
                    key: list.into(),
                    is_optional: false,
                },
                Token::Matching {
                    key: key.into(),
                    value: value.into(),
                    is_optional: false,
                    modifiers: Vec::new(),
                },
            ],
        }
    }

    /// The same path with indices taken as keys.
    pub(crate) fn with_indices_as_keys(&self) -> Self {
        let tokens = self.tokens.iter().map(|token| match token {
            Token::Index(index, _) => Token::Key {
                key: index.to_string().into(),
                is_optional: false,
            },
            other => other.clone(),
        });
        Self {
            tokens: tokens.collect(),
        }
    }

    /// The path up to and with a token, as text.
    fn upto(&self, token: usize) -> String {
        let mut text = String::new();
        // The mark stands once: all that follows is optional too.
        let mut is_marked = false;
        let mut mark = |is_optional: bool| {
            let mark = if is_optional && !is_marked { "?" } else { "" };
            is_marked |= is_optional;
            mark
        };
        for token in &self.tokens[..=token] {
            text.push('/');
            let modifiers = match token {
                Token::Index(index, modifiers) => {
                    text.push_str(&index.to_string());
                    modifiers.as_slice()
                }
                Token::AfterLast => {
                    text.push('-');
                    &[]
                }
                Token::Matching {
                    key,
                    value,
                    is_optional,
                    modifiers,
                } => {
                    let mark = mark(*is_optional);
                    text.push_str(&format!("{}={}{mark}", escaped(key), escaped(value)));
                    modifiers
                }
                Token::Key { key, is_optional } => {
                    text.push_str(&escaped(key));
                    text.push_str(mark(*is_optional));
                    &[]
                }
            };
            for modifier in modifiers {
                text.push(':');
                text.push_str(modifier.names().0);
            }
        }
        text
    }

    /// The value at the path. What an optional path lacks is null, or what `replace` would create.
    pub(crate) fn find<'v>(&self, document: &'v Value) -> Result<Cow<'v, Value>, Failure> {
        let place = document.place;
        let mut value = Cow::Borrowed(document);
        for (at, token) in self.tokens.iter().enumerate() {
            value = match token {
                Token::Index(index, modifiers) => {
                    let items = self.list(at, &value)?;
                    let index = self.index(at, items, *index, modifiers)?;
                    inner(value, |list| list.as_list()?.get(index))
                }
                Token::AfterLast => {
                    return Err(format!(
                        "Expected not to find after last index token in path '{self}' \
                         (not supported in find operations)"
                    )
                    .into());
                }
                Token::Matching { modifiers, .. } => {
                    let items = self.list(at, &value)?;
                    match self.matching(at, items)? {
                        Some(index) => {
                            let index = self.index(at, items, index as i64, modifiers)?;
                            inner(value, |list| list.as_list()?.get(index))
                        }
                        None => Cow::Owned(created_item(token, place)),
                    }
                }
                Token::Key { key, is_optional } => {
                    let entries = self.map(at, &value)?;
                    match (value.get(key), self.tokens.get(at + 1)) {
                        (Some(_), _) => inner(value, |map| map.get(key)),
                        (None, _) if !is_optional => {
                            return Err(self.missing_key(at, key, entries));
                        }
                        (None, None) => Cow::Owned(Value::null(place)),
                        (None, Some(Token::Matching { .. })) => {
                            Cow::Owned(Value::new(place, Data::List(Vec::new())))
                        }
                        (None, Some(Token::Key { .. })) => Cow::Owned(Value::empty_map(place)),
                        (None, Some(Token::Index(..) | Token::AfterLast)) => {
                            let path = self.upto(at + 1);
                            return Err(format!(
                                "Expected to find key or matching index token at path '{path}'"
                            )
                            .into());
                        }
                    }
                }
            };
        }
        Ok(value)
    }

    fn replace(&self, document: &mut Value, new: &Value) -> Result<(), Failure> {
        let mut value = document;
        for (at, token) in self.tokens.iter().enumerate() {
            let next = self.tokens.get(at + 1);
            value = match token {
                Token::Index(index, modifiers) => {
                    let items = self.list_mut(at, value)?;
                    if next.is_none() {
                        return self.insert(at, items, *index, modifiers, new);
                    }
                    let index = self.index(at, items, *index, modifiers)?;
                    &mut items[index]
                }
                Token::AfterLast => {
                    self.list_mut(at, value)?.push(new.clone());
                    return Ok(());
                }
                Token::Matching { modifiers, .. } => {
                    let items = self.list_mut(at, value)?;
                    match (self.matching(at, items)?, next) {
                        (Some(index), None) => {
                            return self.insert(at, items, index as i64, modifiers, new);
                        }
                        (Some(index), Some(_)) => {
                            let index = self.index(at, items, index as i64, modifiers)?;
                            &mut items[index]
                        }
                        (None, None) => {
                            items.push(new.clone());
                            return Ok(());
                        }
                        (None, Some(_)) => {
                            items.push(created_item(token, new.place));
                            let last = items.len() - 1;
                            &mut items[last]
                        }
                    }
                }
                Token::Key { key, is_optional } => {
                    let entries = self.map_mut(at, value)?;
                    let found = entries
                        .iter()
                        .position(|entry| entry.key.as_str() == Some(key));
                    let position = match found {
                        Some(position) => position,
                        None if !is_optional => return Err(self.missing_key(at, key, entries)),
                        None => {
                            let data = match next {
                                None => Data::Null,
                                Some(Token::AfterLast | Token::Matching { .. }) => {
                                    Data::List(Vec::new())
                                }
                                Some(Token::Key { .. }) => Data::Map(Vec::new()),
                                Some(Token::Index(..)) => {
                                    return Err(format!(
                                        "Expected to find key, matching index or after last \
                                         index token at path '{}'",
                                        self.upto(at + 1)
                                    )
                                    .into());
                                }
                            };
                            entries.push(Entry {
                                key: Value::string(new.place, Arc::clone(key)),
                                value: Value::new(new.place, data),
                            });
                            entries.len() - 1
                        }
                    };
                    &mut entries[position].value
                }
            };
        }
        *value = new.clone();
        Ok(())
    }

    fn remove(&self, document: &mut Value) -> Result<(), Failure> {
        if self.tokens.is_empty() {
            return Err("Cannot remove entire document".into());
        }
        let mut value = document;
        for (at, token) in self.tokens.iter().enumerate() {
            let is_last = at + 1 == self.tokens.len();
            value = match token {
                Token::AfterLast => {
                    return Err(format!(
                        "Expected to not find token 'patch.AfterLastIndexToken' at path '{}'",
                        self.upto(at)
                    )
                    .into());
                }
                Token::Index(_, modifiers) | Token::Matching { modifiers, .. } => {
                    let items = self.list_mut(at, value)?;
                    let index = match token {
                        Token::Index(index, _) => *index,
                        _ => match self.matching(at, items)? {
                            Some(index) => index as i64,
                            None => return Ok(()),
                        },
                    };
                    let index = self.index(at, items, index, modifiers)?;
                    if is_last {
                        items.remove(index);
                        return Ok(());
                    }
                    &mut items[index]
                }
                Token::Key { key, is_optional } => {
                    let entries = self.map_mut(at, value)?;
                    let found = entries
                        .iter()
                        .position(|entry| entry.key.as_str() == Some(key));
                    let Some(position) = found else {
                        if *is_optional {
                            return Ok(());
                        }
                        return Err(self.missing_key(at, key, entries));
                    };
                    if is_last {
                        entries.remove(position);
                        return Ok(());
                    }
                    &mut entries[position].value
                }
            };
        }
        Ok(())
    }

    /// Removes the value at the path, for users other than operations.
    pub(crate) fn remove_from(&self, document: &mut Value) -> Result<(), String> {
        self.remove(document).map_err(|failure| failure.message)
    }

    fn list<'v>(&self, at: usize, value: &'v Value) -> Result<&'v [Value], Failure> {
        let found = golang::type_name(value);
        value
            .as_list()
            .ok_or_else(|| self.mismatch(at, "an array", found))
    }

    fn list_mut<'v>(&self, at: usize, value: &'v mut Value) -> Result<&'v mut Vec<Value>, Failure> {
        let found = golang::type_name(value);
        match &mut value.data {
            Data::List(items) => Ok(items),
            _ => Err(self.mismatch(at, "an array", found)),
        }
    }

    fn map<'v>(&self, at: usize, value: &'v Value) -> Result<&'v [Entry], Failure> {
        let found = golang::type_name(value);
        value
            .as_map()
            .ok_or_else(|| self.mismatch(at, "a map", found))
    }

    fn map_mut<'v>(&self, at: usize, value: &'v mut Value) -> Result<&'v mut Vec<Entry>, Failure> {
        let found = golang::type_name(value);
        match &mut value.data {
            Data::Map(entries) => Ok(entries),
            _ => Err(self.mismatch(at, "a map", found)),
        }
    }

    fn mismatch(&self, at: usize, expected: &str, found: &str) -> Failure {
        let path = self.upto(at);
        format!("Expected to find {expected} at path '{path}' but found '{found}'").into()
    }

    fn missing_key(&self, at: usize, key: &str, entries: &[Entry]) -> Failure {
        let mut keys: Vec<&str> = entries.iter().filter_map(|e| e.key.as_str()).collect();
        keys.sort_unstable();
        let found = if entries.is_empty() {
            "found no other map keys".to_owned()
        } else {
            format!("found map keys: '{}'", keys.join("', '"))
        };
        let path = self.upto(at);
        Failure {
            message: format!("Expected to find a map key '{key}' for path '{path}' ({found})"),
            is_missing_last: at + 1 == self.tokens.len(),
        }
    }

    /// The index of the item that a matching token selects; `None` if it may be missing, and is.
    fn matching(&self, at: usize, items: &[Value]) -> Result<Option<usize>, Failure> {
        let Token::Matching {
            key,
            value,
            is_optional,
            ..
        } = &self.tokens[at]
        else {
            return Ok(None);
        };
        let matches = |item: &Value| item.get(key).and_then(Value::as_str) == Some(value);
        let mut found = (0..items.len()).filter(|index| matches(&items[*index]));
        let first = found.next();
        match (first, found.count()) {
            (None, _) if *is_optional => Ok(None),
            (Some(index), 0) => Ok(Some(index)),
            (first, others) => Err(format!(
                "Expected to find exactly one matching array item for path '{}' but found {}",
                self.upto(at),
                usize::from(first.is_some()) + others
            )
            .into()),
        }
    }

    /// The index of an existing item. Negative indices count from the end.
    fn index(
        &self,
        at: usize,
        items: &[Value],
        index: i64,
        modifiers: &[Modifier],
    ) -> Result<usize, Failure> {
        let mut index = index;
        for modifier in modifiers {
            index = match modifier {
                Modifier::Previous => index.saturating_sub(1),
                Modifier::Next => index.saturating_add(1),
                Modifier::Before | Modifier::After => {
                    return Err(format!(
                        "Expected to find one of the following modifiers: 'prev', 'next', \
                         but found modifier '{}'",
                        modifier.names().1
                    )
                    .into());
                }
            };
        }
        let length = items.len() as i64;
        if index >= length || index < -length {
            return Err(Failure {
                message: format!(
                    "Expected to find array index '{index}' but found array of length '{length}' \
                     for path '{}'",
                    self.upto(at)
                ),
                is_missing_last: at + 1 == self.tokens.len(),
            });
        }
        Ok(if index < 0 { index + length } else { index } as usize)
    }

    /// Replaces an item, or puts one before or after it.
    fn insert(
        &self,
        at: usize,
        items: &mut Vec<Value>,
        index: i64,
        modifiers: &[Modifier],
        new: &Value,
    ) -> Result<(), Failure> {
        let is_side = |modifier: &Modifier| matches!(modifier, Modifier::Before | Modifier::After);
        let side = modifiers.iter().position(is_side);
        let (moves, side) = match side {
            None => (modifiers, None),
            Some(position) => {
                let side = modifiers[position];
                if let Some(other) = modifiers.get(position + 1) {
                    let (name, _) = side.names();
                    return Err(format!(
                        "Expected to not find any modifiers after '{name}' modifier, \
                         but found modifier '{}'",
                        other.names().1
                    )
                    .into());
                }
                (&modifiers[..position], Some(side))
            }
        };
        let index = self.index(at, items, index, moves)?;
        match side {
            Some(Modifier::Before) => items.insert(index, new.clone()),
            Some(_) => items.insert(index + 1, new.clone()),
            None => items[index] = new.clone(),
        }
        Ok(())
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.tokens.len() {
            0 => Ok(()),
            length => f.write_str(&self.upto(length - 1)),
        }
    }
}

/// A part of a value that exists, without copying what is borrowed.
fn inner(value: Cow<'_, Value>, part: impl Fn(&Value) -> Option<&Value>) -> Cow<'_, Value> {
    match value {
        Cow::Borrowed(value) => Cow::Borrowed(part(value).unwrap_or(value)),
        Cow::Owned(value) => Cow::Owned(part(&value).unwrap_or(&value).clone()),
    }
}

/// The item that an optional `key=value` creates.
fn created_item(token: &Token, place: Place) -> Value {
    let mut item = Value::empty_map(place);
    if let Token::Matching { key, value, .. } = token {
        let text = |text: &Arc<str>| Value::string(place, Arc::clone(text));
        item.set(text(key), text(value));
    }
    item
}

/// The characters that paths write in two.
const ESCAPES: [(char, char); 5] = [('0', '~'), ('1', '/'), ('2', '?'), ('3', '='), ('7', ':')];

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let code = rest.clone().next().filter(|_| character == '~');
        match ESCAPES.iter().find(|(digit, _)| Some(*digit) == code) {
            Some((_, meant)) => {
                out.push(*meant);
                rest.next();
            }
            None => out.push(character),
        }
    }
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match ESCAPES.iter().find(|(_, meant)| *meant == character) {
            Some((digit, _)) => out.extend(['~', *digit]),
            None => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read;

    /// The document after operations written as YAML, or the first error's message.
    fn applied(document: &str, operations: &str) -> Result<String, String> {
        let mut document = read(document, 0).unwrap();
        let first = |errors: Vec<Error>| errors[0].message.clone();
        for operation in parse(&read(operations, 1).unwrap()).map_err(first)? {
            operation
                .apply(&mut document)
                .map_err(|error| error.message)?;
        }
        Ok(document.inspect())
    }

    const DOCUMENT: &str = "{a: {b: {c: 1}}, l: [1, 2, 3], m: [{name: x}, {name: y, v: 1}], n: ~}";

    #[test]
    fn values_are_replaced_at_paths() {
        for (document, path, expected) in [
            ("{a: 1}", "''", "9"),
            ("{a: {b: {c: 1}}}", "/a/b/c", r#"{"a"=>{"b"=>{"c"=>9}}}"#),
            ("{a: {}}", "/a/b?/c/d", r#"{"a"=>{"b"=>{"c"=>{"d"=>9}}}}"#),
            ("{}", "/a?/-", r#"{"a"=>[9]}"#),
            ("{}", "/a?/b=c/d", r#"{"a"=>[{"b"=>"c", "d"=>9}]}"#),
            ("{}", "/a?/b=c", r#"{"a"=>[9]}"#),
            ("[1, 2, 3]", "/1", "[1, 9, 3]"),
            ("[1, 2, 3]", "/-3", "[9, 2, 3]"),
            ("[1, 2, 3]", "/-", "[1, 2, 3, 9]"),
            ("[1, 2, 3]", "/0:next", "[1, 9, 3]"),
            ("[1, 2, 3]", "/0:next:next", "[1, 2, 9]"),
            ("[1, 2, 3]", "/2:prev", "[1, 9, 3]"),
            ("[1, 2, 3]", "/1:before", "[1, 9, 2, 3]"),
            ("[1, 2, 3]", "/1:after", "[1, 2, 9, 3]"),
            ("[1, 2, 3]", "/2:after", "[1, 2, 3, 9]"),
            ("[1, 2, 3]", "/-1:before", "[1, 2, 9, 3]"),
            ("[1, 2, 3]", "/0:next:after", "[1, 2, 9, 3]"),
            ("[[1], [2]]", "/1/0", "[[1], [9]]"),
            (
                "[{n: x}, {n: y}]",
                "/n=x:after",
                r#"[{"n"=>"x"}, 9, {"n"=>"y"}]"#,
            ),
            ("[{n: x}, {n: y}]", "/n=y:prev", r#"[9, {"n"=>"y"}]"#),
            (
                "[{n: x}, {n: y}]",
                "/n=y:prev/n",
                r#"[{"n"=>9}, {"n"=>"y"}]"#,
            ),
            ("[{n: x=y}]", "/n=x=y", "[9]"),
            ("{a/b: 1, ~c: 2}", "/a~1b", r#"{"a/b"=>9, "~c"=>2}"#),
            ("{a/b: 1, ~c: 2}", "/~0c", r#"{"a/b"=>1, "~c"=>9}"#),
            ("{'~1': 1}", "/~01", r#"{"~1"=>9}"#),
            ("{'a?=:': 1}", "/a~2~3~7", r#"{"a?=:"=>9}"#),
            ("{'': 1}", "/", r#"{""=>9}"#),
            ("{'-': {a: 1}}", "/-/a", r#"{"-"=>{"a"=>9}}"#),
        ] {
            let operation = format!("[{{type: replace, path: {path}, value: 9}}]");
            assert_eq!(
                applied(document, &operation).as_deref(),
                Ok(expected),
                "{path}"
            );
        }
    }

    #[test]
    fn values_are_removed_at_paths() {
        for (document, path, expected) in [
            ("{a: {b: 1, c: 2}}", "/a/b", r#"{"a"=>{"c"=>2}}"#),
            ("{a: 1}", "/b?/c/d", r#"{"a"=>1}"#),
            ("[1, 2, 3]", "/-1", "[1, 2]"),
            ("[1, 2, 3]", "/0:next", "[1, 3]"),
            ("[{n: x}, {n: y}]", "/n=x", r#"[{"n"=>"y"}]"#),
            ("[{n: x}, {n: y}]", "/n=x:next", r#"[{"n"=>"x"}]"#),
            ("[{n: x}]", "/n=z?", r#"[{"n"=>"x"}]"#),
        ] {
            let operation = format!("[{{type: remove, path: {path}}}]");
            assert_eq!(
                applied(document, &operation).as_deref(),
                Ok(expected),
                "{path}"
            );
        }
    }

    #[test]
    fn values_are_tested_at_paths() {
        for (path, expectation, expected) in [
            ("/a/b", "value: {c: 1}", None),
            ("/m/name=y/v", "value: 1", None),
            ("/m/name=z?", "value: {name: z}", None),
            ("/x?", "absent: false", None),
            (
                "/l",
                "value: [1, 3, 2]",
                Some("Found value does not match expected value"),
            ),
            ("/l/3", "absent: true", None),
            ("/a/x", "absent: true", None),
            ("/n", "absent: true", Some("Expected to not find '/n'")),
            (
                "/x/y",
                "absent: true",
                Some(
                    "Expected to find a map key 'x' for path '/x' \
                     (found map keys: 'a', 'l', 'm', 'n')",
                ),
            ),
            (
                "/m/name=z",
                "absent: true",
                Some(
                    "Expected to find exactly one matching array item for path '/m/name=z' \
                     but found 0",
                ),
            ),
            (
                "/l/-",
                "value: 1",
                Some(
                    "Expected not to find after last index token in path '/l/-' \
                     (not supported in find operations)",
                ),
            ),
            (
                "/x?/0",
                "value: 1",
                Some("Expected to find key or matching index token at path '/x?/0'"),
            ),
        ] {
            let operation = format!("[{{type: test, path: {path}, {expectation}}}]");
            let found = applied(DOCUMENT, &operation).err();
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn paths_that_do_not_fit_are_errors() {
        for (path, expected) in [
            (
                "/a/x/c",
                "Expected to find a map key 'x' for path '/a/x' (found map keys: 'b')",
            ),
            (
                "/a/0",
                "Expected to find an array at path '/a/0' but found 'map[interface {}]interface {}'",
            ),
            (
                "/l/a",
                "Expected to find a map at path '/l/a' but found '[]interface {}'",
            ),
            (
                "/n/a",
                "Expected to find a map at path '/n/a' but found '<nil>'",
            ),
            (
                "/l/0/a",
                "Expected to find a map at path '/l/0/a' but found 'int'",
            ),
            (
                "/l/3",
                "Expected to find array index '3' but found array of length '3' for path '/l/3'",
            ),
            (
                "/l/-4",
                "Expected to find array index '-4' but found array of length '3' for path '/l/-4'",
            ),
            (
                "/l/2:next:before",
                "Expected to find array index '3' but found array of length '3' \
                 for path '/l/2:next:before'",
            ),
            (
                "/m/0:before/v",
                "Expected to find one of the following modifiers: 'prev', 'next', \
                 but found modifier 'patch.BeforeModifier'",
            ),
            (
                "/l/0:after:next",
                "Expected to not find any modifiers after 'after' modifier, \
                 but found modifier 'patch.NextModifier'",
            ),
            (
                "/x?/0",
                "Expected to find key, matching index or after last index token at path '/x?/0'",
            ),
        ] {
            let operation = format!("[{{type: replace, path: {path}, value: 9}}]");
            let found = applied(DOCUMENT, &operation);
            assert_eq!(found.unwrap_err(), expected, "{path}");
            let described = operation.replace('}', ", error: 'no cake'}");
            let found = applied(DOCUMENT, &described);
            assert_eq!(found.unwrap_err(), format!("Error 'no cake': {expected}"));
        }
        for (path, expected) in [
            ("''", "Cannot remove entire document"),
            (
                "/l/-",
                "Expected to not find token 'patch.AfterLastIndexToken' at path '/l/-'",
            ),
        ] {
            let operation = format!("[{{type: remove, path: {path}}}]");
            let found = applied(DOCUMENT, &operation);
            assert_eq!(found.unwrap_err(), expected, "{path}");
        }
    }

    #[test]
    fn invalid_operations_are_errors() {
        for (operation, expected) in [
            (
                "{type: replace, value: 1}",
                "Replace operation [0]: Missing path within\n",
            ),
            (
                "{type: replace, path: /a, value: ~}",
                "Replace operation [0]: Missing value",
            ),
            (
                "{type: remove, path: /a, value: 1}",
                "Remove operation [0]: Cannot specify value",
            ),
            (
                "{type: test, path: /a}",
                "Test operation [0]: Missing value or absent within",
            ),
            (
                "{path: /a}",
                "Unknown operation [0] with type '' within\n{\n  \"Path\": \"/a\"\n}",
            ),
            (
                "{type: remove, path: '/0:up:next'}",
                "Remove operation [0]: Invalid path: Expected to find one of the following \
                 modifiers: 'prev', 'next', 'before', or 'after' but found 'up'",
            ),
            (
                "{type: remove, path: '/-:next'}",
                "Remove operation [0]: Invalid path: Expected not to find any modifiers with \
                 after last index token",
            ),
            (
                "{type: remove, path: '/a:next'}",
                "Remove operation [0]: Invalid path: Expected not to find any modifiers with \
                 key token",
            ),
            ("1", "Expected operation [0] to be a map"),
            (
                &format!("{{type: remove, path: {}}}", "/a".repeat(1000)),
                "Remove operation [0]: Invalid path: Expected at most 100 keys",
            ),
        ] {
            let message = applied("{}", &format!("[{operation}]")).unwrap_err();
            let expected = format!("Building ops: {expected}");
            assert!(message.starts_with(&expected), "{message}\n{expected}");
        }
        assert!(applied("{}", "{a: b}").is_err());
        let all = "[{type: x}, {type: remove, path: /a}, {type: remove}]";
        assert_eq!(parse(&read(all, 0).unwrap()).unwrap_err().len(), 2);
    }
}
