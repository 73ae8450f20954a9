//! JSON patches (RFC 6902), applied as Python's `jsonpatch` applies them.
//!
//! In: a value and a patch's text. Out: another value, or the error that Python would raise; all
//! operations or none. Only string keys can be addressed.

use std::sync::Arc;

use num_bigint::BigInt;

use crate::detect::trim_start;
use crate::error::{Class, Error};
use crate::value::{Data, Map, Origin, Value};
use crate::yaml::Text;

/// What a patch may begin with, and what isn't JSON.
const PREFIX: &str = "#cloud-config-jsonp";

type Patched<T> = Result<T, Error>;

/// Applies the patch that a part is.
pub fn apply(document: &Value, part: &str, layer: u32) -> Patched<Value> {
    let text = trim_start(part);
    let text = text.strip_prefix(PREFIX).unwrap_or(text);
    let operations: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| Error::new(Class::Json, format!("it isn't JSON: {error}")))?;
    let invalid = |message: &str| Err(Error::new(Class::InvalidPatch, message));
    let operations = match operations {
        serde_json::Value::Array(operations) => operations,
        serde_json::Value::Object(members) if members.is_empty() => Vec::new(),
        _ => return invalid("a patch is a list of operations"),
    };
    let operations: Vec<Operation> = operations
        .iter()
        .map(|operation| Operation::of(operation, layer))
        .collect::<Result<_, _>>()?;
    let mut document = document.clone();
    for operation in &operations {
        document = operation.apply(&document)?;
    }
    Ok(document)
}

struct Operation {
    kind: Kind,
    path: Pointer,
    from: Option<serde_json::Value>,
    value: Option<Value>,
}

#[derive(Clone, Copy)]
enum Kind {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

impl Operation {
    fn of(operation: &serde_json::Value, layer: u32) -> Patched<Self> {
        let invalid = |message: String| Err(Error::new(Class::InvalidPatch, message));
        let Some(members) = operation.as_object() else {
            return invalid("an operation is an object".to_owned());
        };
        let kind = match members.get("op").map(serde_json::Value::as_str) {
            None => return invalid("an operation has a member `op`".to_owned()),
            Some(None) => return invalid("`op` is a string".to_owned()),
            Some(Some("add")) => Kind::Add,
            Some(Some("remove")) => Kind::Remove,
            Some(Some("replace")) => Kind::Replace,
            Some(Some("move")) => Kind::Move,
            Some(Some("copy")) => Kind::Copy,
            Some(Some("test")) => Kind::Test,
            Some(Some(other)) => {
                return invalid(format!(
                    "there is no operation `{other}`: there are add, remove, replace, move, copy \
                     and test"
                ));
            }
        };
        let Some(path) = members.get("path") else {
            return invalid("an operation has a member `path`".to_owned());
        };
        let Some(path) = path.as_str() else {
            return invalid("`path` is a string".to_owned());
        };
        Ok(Self {
            kind,
            path: Pointer::of(path)?,
            from: members.get("from").cloned(),
            value: members.get("value").map(|value| of_json(value, layer)),
        })
    }

    fn value(&self) -> Patched<&Value> {
        self.value
            .as_ref()
            .ok_or_else(|| Error::new(Class::InvalidPatch, "this operation has a member `value`"))
    }

    fn from(&self) -> Patched<Pointer> {
        match self.from.as_ref().map(serde_json::Value::as_str) {
            Some(Some(from)) => Pointer::of(from),
            Some(None) => Err(Error::new(Class::InvalidPatch, "`from` is a string")),
            None => {
                let message = "this operation has a member `from`";
                Err(Error::new(Class::InvalidPatch, message))
            }
        }
    }

    fn apply(&self, document: &Value) -> Patched<Value> {
        match self.kind {
            Kind::Add => self
                .path
                .change(document, &Change::Add(self.value()?.clone())),
            Kind::Remove => self.path.change(document, &Change::Remove),
            Kind::Replace => self
                .path
                .change(document, &Change::Replace(self.value()?.clone())),
            Kind::Test => {
                let failed = |message: String| Err(Error::new(Class::PatchTest, message));
                let found = match self.path.find(document) {
                    Ok(found) => found,
                    Err(error) => return failed(error.message),
                };
                let wanted = self.value()?;
                match found {
                    Some(found) if found == *wanted => Ok(document.clone()),
                    _ => failed(format!("`{}` isn't what the patch expects", self.path.text)),
                }
            }
            Kind::Move => {
                let from = self.from()?;
                let value = from.source(document)?;
                if from.parts == self.path.parts {
                    return Ok(document.clone());
                }
                if self.path.parts.starts_with(&from.parts) {
                    let message = "a value can't be moved into itself";
                    return Err(Error::new(Class::PatchConflict, message));
                }
                let without = from.change(document, &Change::Remove)?;
                self.path.change(&without, &Change::Add(value))
            }
            Kind::Copy => {
                let value = self.from()?.source(document)?;
                self.path.change(document, &Change::Add(value))
            }
        }
    }
}

enum Change {
    Add(Value),
    Replace(Value),
    Remove,
}

/// A JSON pointer.
struct Pointer {
    text: String,
    parts: Vec<String>,
}

impl Pointer {
    fn of(text: &str) -> Patched<Self> {
        let wrong = |message: String| Err(Error::new(Class::Pointer, message));
        let mut parts = text.split('/');
        if parts.next() != Some("") {
            return wrong(format!("a path begins with `/`, and `{text}` doesn't"));
        }
        let mut unescaped = Vec::new();
        for part in parts {
            if part.replace("~0", "").replace("~1", "").contains('~') {
                return wrong(format!(
                    "`~` is written `~0`, and `/` is written `~1`: `{text}`"
                ));
            }
            unescaped.push(part.replace("~1", "/").replace("~0", "~"));
        }
        Ok(Self {
            text: text.to_owned(),
            parts: unescaped,
        })
    }

    fn error(&self, class: Class, message: &str) -> Error {
        Error::new(class, format!("`{}`: {message}", self.text))
    }

    /// What is there; `None`: the place behind a list's end.
    fn find(&self, document: &Value) -> Patched<Option<Value>> {
        let mut value = document.clone();
        for part in &self.parts {
            match self.step(&value, part)? {
                Some(next) => value = next,
                None => return Ok(None),
            }
        }
        Ok(Some(value))
    }

    /// The source of a move or a copy.
    fn source(&self, document: &Value) -> Patched<Value> {
        let conflict = || self.error(Class::PatchConflict, "there is nothing");
        let Some((last, above)) = self.parts.split_last() else {
            return Err(conflict());
        };
        let mut value = document.clone();
        for part in above {
            value = self.step(&value, part)?.ok_or_else(conflict)?;
        }
        match &value.data {
            Data::Map(map) => map.named(last).cloned().ok_or_else(conflict),
            _ if last == "-" => Err(self.error(Class::Type, "`-` is behind the end of a list")),
            _ => match self.index(&value, last)? {
                Some(index) => {
                    let items = value.as_sequence().unwrap_or_default();
                    items.get(index).cloned().ok_or_else(conflict)
                }
                None => Err(conflict()),
            },
        }
    }

    fn step(&self, value: &Value, part: &str) -> Patched<Option<Value>> {
        if let Data::Map(map) = &value.data {
            let found = map.named(part).cloned();
            return found.map(Some).ok_or_else(|| {
                self.error(Class::Pointer, &format!("there is no member `{part}`"))
            });
        }
        let Some(index) = self.index(value, part)? else {
            return Ok(None);
        };
        let items = value.as_sequence().unwrap_or_default();
        match items.get(index) {
            Some(item) => Ok(Some(item.clone())),
            None => Err(self.error(Class::Pointer, &format!("there is no element {index}"))),
        }
    }

    /// An index into a list; `None` for `-`.
    fn index(&self, value: &Value, part: &str) -> Patched<Option<usize>> {
        let is_sequence = matches!(
            value.data,
            Data::List(_) | Data::Tuple(_) | Data::Text(_) | Data::Bytes(_)
        );
        if !is_sequence {
            let message = format!("{} has no elements", value.type_name());
            return Err(self.error(Class::Pointer, &message));
        }
        if part == "-" {
            return Ok(None);
        }
        let is_index = part == "0"
            || !part.starts_with('0')
                && !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_index {
            return Err(self.error(Class::Pointer, &format!("`{part}` is no index")));
        }
        Ok(Some(part.parse().unwrap_or(usize::MAX)))
    }

    fn change(&self, document: &Value, change: &Change) -> Patched<Value> {
        match (&self.parts[..], change) {
            ([], Change::Add(value) | Change::Replace(value)) => Ok(value.clone()),
            ([], Change::Remove) => {
                Err(self.error(Class::PatchNotFound, "the whole can't be removed"))
            }
            (parts, change) => self.change_at(document, parts, change),
        }
    }

    fn change_at(&self, value: &Value, parts: &[String], change: &Change) -> Patched<Value> {
        let [part, rest @ ..] = parts else {
            return Ok(value.clone());
        };
        if !rest.is_empty() {
            let Some(inner) = self.step(value, part)? else {
                return Err(self.error(Class::Pointer, "`-` is behind the end of a list"));
            };
            let inner = self.change_at(&inner, rest, change)?;
            return match &value.data {
                Data::Map(map) => {
                    let mut map = (**map).clone();
                    map.insert(Value::from(&**part), inner);
                    Ok(with(value, Data::Map(Arc::new(map))))
                }
                _ => {
                    let mut items = value.as_sequence().unwrap_or_default().to_vec();
                    if let Some(index) = self.index(value, part)? {
                        items[index] = inner;
                    }
                    Ok(with(value, Data::List(Arc::new(items))))
                }
            };
        }
        if let Data::Map(map) = &value.data {
            let mut map = (**map).clone();
            self.change_member(&mut map, part, change)?;
            return Ok(with(value, Data::Map(Arc::new(map))));
        }
        let index = self.index(value, part)?;
        let Data::List(items) = &value.data else {
            let message = format!("{} can't be changed", value.type_name());
            return Err(self.error(Class::Type, &message));
        };
        let mut items = (**items).clone();
        self.change_element(&mut items, index, change)?;
        Ok(with(value, Data::List(Arc::new(items))))
    }

    fn change_member(&self, map: &mut Map, part: &str, change: &Change) -> Patched<()> {
        let key = Value::from(part);
        let is_there = map.named(part).is_some();
        match change {
            Change::Add(value) => map.insert(key, value.clone()),
            Change::Replace(value) if is_there && part != "-" => map.insert(key, value.clone()),
            Change::Remove if is_there => map.remove(&key).map(|_| ()),
            Change::Replace(_) if part == "-" => {
                return Err(self.error(Class::InvalidPatch, "`-` can't be replaced"));
            }
            Change::Replace(_) | Change::Remove => {
                return Err(self.error(
                    Class::PatchNotFound,
                    &format!("there is no member `{part}`"),
                ));
            }
        };
        Ok(())
    }

    fn change_element(
        &self,
        items: &mut Vec<Value>,
        index: Option<usize>,
        change: &Change,
    ) -> Patched<()> {
        let missing = |class| self.error(class, "the list has no such element");
        match (change, index) {
            (Change::Add(value), None) => items.push(value.clone()),
            (Change::Add(value), Some(index)) if index <= items.len() => {
                items.insert(index, value.clone());
            }
            (Change::Add(_), Some(_)) => return Err(missing(Class::PatchConflict)),
            (Change::Replace(_), None) => {
                return Err(self.error(Class::InvalidPatch, "`-` can't be replaced"));
            }
            (Change::Replace(value), Some(index)) => match items.get_mut(index) {
                Some(item) => *item = value.clone(),
                None => return Err(missing(Class::PatchNotFound)),
            },
            (Change::Remove, None) => {
                return Err(self.error(Class::Pointer, "`-` is behind the end of a list"));
            }
            (Change::Remove, Some(index)) if index < items.len() => {
                items.remove(index);
            }
            (Change::Remove, Some(_)) => return Err(missing(Class::PatchNotFound)),
        }
        Ok(())
    }
}

fn with(value: &Value, data: Data) -> Value {
    Value {
        data,
        origin: value.origin,
    }
}

/// A JSON value as Python's `json` makes it.
pub(crate) fn of_json(value: &serde_json::Value, layer: u32) -> Value {
    let data = match value {
        serde_json::Value::Null => Data::Null,
        serde_json::Value::Bool(value) => Data::Bool(*value),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Data::Int(BigInt::from(value)),
            (_, Some(value)) => Data::Int(BigInt::from(value)),
            _ => Data::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Data::Text(Text::from(&**text)),
        serde_json::Value::Array(items) => Data::List(Arc::new(
            items.iter().map(|item| of_json(item, layer)).collect(),
        )),
        serde_json::Value::Object(members) => {
            let mut map = Map::default();
            for (key, member) in members {
                map.insert(Value::from(&**key), of_json(member, layer));
            }
            Data::Map(Arc::new(map))
        }
    };
    let origin = Origin {
        layer,
        ..Origin::default()
    };
    Value { data, origin }
}
