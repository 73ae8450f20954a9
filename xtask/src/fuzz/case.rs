//! Cases of the corpus, as the fuzzer changes them.
//!
//! In and out: lines of the corpus's format, numbers kept as they are written. May not: know what
//! the right answer is.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value as Json;
use serde_json::value::RawValue;

/// A case without its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Case {
    pub(crate) template: String,
    pub(crate) data: Data,
    pub(crate) options: String,
    pub(crate) defines: BTreeMap<String, String>,
}

/// JSON, with numbers as they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Data {
    #[default]
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Data>),
    Object(BTreeMap<String, Data>),
}

impl Case {
    /// The case on a line of a corpus; none where the line isn't one.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let parts: BTreeMap<String, &RawValue> = serde_json::from_str(line).ok()?;
        let text = |name: &str| -> Option<String> {
            serde_json::from_str(parts.get(name).map_or("\"\"", |part| part.get())).ok()
        };
        let defines = parts.get("defines").map_or("{}", |defines| defines.get());
        Some(Self {
            template: text("template")?,
            data: parts.get("data").map_or(Data::Null, |data| Data::of(data)),
            options: text("options")?,
            defines: serde_json::from_str(defines).ok()?,
        })
    }

    /// The line that the oracle is asked with.
    pub(crate) fn question(&self) -> String {
        format!("{{{}}}", self.fields())
    }

    /// A line of the corpus: the case with Go's answer, which is JSON.
    pub(crate) fn answered(&self, id: &str, expect: &str) -> String {
        let id = Json::from(id);
        let fields = self.fields();
        format!("{{\"id\": {id}, \"area\": \"found\", {fields}, \"expect\": {expect}}}")
    }

    fn fields(&self) -> String {
        let template = Json::from(self.template.as_str());
        let options = Json::from(self.options.as_str());
        let mut fields = format!(
            "\"template\": {template}, \"data\": {}, \"options\": {options}",
            self.data
        );
        if !self.defines.is_empty() {
            let defines = self.defines.clone().into_iter();
            let defines = defines.map(|(name, text)| (name, Data::Text(text)));
            fields.push_str(&format!(
                ", \"defines\": {}",
                Data::Object(defines.collect())
            ));
        }
        fields
    }

    /// The value of an option.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.options.split(';');
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }
}

impl Data {
    fn of(json: &RawValue) -> Self {
        let text = json.get();
        // A part of valid JSON is valid, but for what nests too deep for the reader.
        match text.as_bytes().first() {
            Some(b'{') => {
                let entries: BTreeMap<String, &RawValue> =
                    serde_json::from_str(text).unwrap_or_default();
                let entries = entries.into_iter();
                Self::Object(entries.map(|(key, part)| (key, Self::of(part))).collect())
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
                Self::List(items.into_iter().map(Self::of).collect())
            }
            Some(b'"') => Self::Text(serde_json::from_str(text).unwrap_or_default()),
            Some(b't' | b'f') => Self::Bool(text == "true"),
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number(text.to_owned()),
        }
    }

    /// All parts, this one included, in a fixed order.
    pub(crate) fn count(&self) -> usize {
        1 + self.parts().map(Self::count).sum::<usize>()
    }

    fn parts(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match self {
            Self::List(items) => Box::new(items.iter()),
            Self::Object(entries) => Box::new(entries.values()),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// The part with this number in the order of [`Data::count`].
    pub(crate) fn part_mut(&mut self, number: usize) -> Option<&mut Self> {
        if number == 0 {
            return Some(self);
        }
        let mut before = 1;
        let parts: Box<dyn Iterator<Item = &mut Self>> = match self {
            Self::List(items) => Box::new(items.iter_mut()),
            Self::Object(entries) => Box::new(entries.values_mut()),
            _ => return None,
        };
        for part in parts {
            let count = part.count();
            if number < before + count {
                return part.part_mut(number - before);
            }
            before += count;
        }
        None
    }
}

impl fmt::Display for Data {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Bool(truth) => write!(formatter, "{truth}"),
            Self::Number(text) => formatter.write_str(text),
            Self::Text(text) => write!(formatter, "{}", Json::from(text.as_str())),
            Self::List(items) => {
                formatter.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    let joint = if index > 0 { ", " } else { "" };
                    write!(formatter, "{joint}{item}")?;
                }
                formatter.write_str("]")
            }
            Self::Object(entries) => {
                formatter.write_str("{")?;
                for (index, (key, item)) in entries.iter().enumerate() {
                    let joint = if index > 0 { ", " } else { "" };
                    write!(formatter, "{joint}{}: {item}", Json::from(key.as_str()))?;
                }
                formatter.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"template": "{{.A}}\n", "data": {"A": [1.50, -0, "x\u0000", null, true]}, "options": "numbers=json;delims=<<,>>", "defines": {"d": "\"é\""}}"#;

    #[test]
    fn a_case_is_written_as_it_was_read() {
        let case = Case::parse(LINE).unwrap();
        assert_eq!(case.question(), LINE);
        assert_eq!(case.option("numbers"), Some("json"));
        assert_eq!(case.option("delims"), Some("<<,>>"));
        assert_eq!(case.option("shape"), None);
        assert_eq!(Case::parse("{\"template\": 1}"), None);
        let answered = case.answered("found-1", "{\"ok\": true}");
        assert_eq!(Case::parse(&answered), Some(case));
    }

    #[test]
    fn parts_are_numbered() {
        let mut data = Case::parse(LINE).unwrap().data;
        assert_eq!(data.count(), 7);
        let shown = |data: &mut Data, number| data.part_mut(number).map(|part| part.to_string());
        assert_eq!(shown(&mut data, 2).as_deref(), Some("1.50"));
        assert_eq!(shown(&mut data, 6).as_deref(), Some("true"));
        assert_eq!(shown(&mut data, 7), None);
    }
}
