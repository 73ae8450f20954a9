//! Parts, one merged into the other.
//!
//! In: the parts of a machine's user data, in order. Out: the cloud-config that the machine gets, and
//! what became of each part. May not: stop at a part that fails; cloud-init doesn't either.

use crate::detect::{CLOUD_CONFIG, JSON_PATCH};
use crate::error::{Class, Error};
use crate::merge::{Described, Documented, Mergers, describe, describe_value};
use crate::patch;
use crate::value::{Data, Map, Origin, Value};
use crate::yaml;

/// A part, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its type, such as `text/cloud-config`; parameters left out.
    pub content_type: String,
    /// Its name; `part-001` and so on where it has none.
    pub filename: String,
    /// Its headers, as spelled.
    pub headers: Vec<(String, String)>,
    /// Its content.
    pub content: Vec<u8>,
}

impl Part {
    /// A cloud-config without headers.
    pub fn cloud_config(filename: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            content_type: CLOUD_CONFIG.to_owned(),
            filename: filename.into(),
            headers: Vec::new(),
            content: content.into(),
        }
    }

    /// The first header of that name, spelled so.
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(known, _)| known == name);
        named.map(|(_, value)| &**value)
    }

    /// Whether it is merged: a cloud-config, or a patch to one.
    pub fn is_merged(&self) -> bool {
        matches!(&*self.content_type, CLOUD_CONFIG | JSON_PATCH)
    }

    /// The content as text; an error where it isn't UTF-8.
    pub fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.content).map_err(|error| {
            let before = &self.content[..error.valid_up_to()];
            let line = before.split(|byte| *byte == b'\n').count() as u32;
            Error::new(Class::Value, "it isn't UTF-8").at(line)
        })
    }
}

/// The cloud-config so far, and what became of the parts.
#[derive(Debug, Clone, Default)]
pub struct Buffer {
    value: Option<Value>,
    has_merged: bool,
    documented: Documented,
    /// Mergers that parts left for those behind them, where `stack` is asked for.
    stack: Option<Vec<Mergers>>,
}

impl Buffer {
    /// An empty one, which merges as cloud-init does.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that merges as the documentation says where that differs: by `documented`, and with a
    /// stack of mergers, on which each part leaves its own for the next.
    pub fn as_documented(documented: Documented, stack: bool) -> Self {
        Self {
            documented,
            stack: stack.then(|| vec![Mergers::of_parts()]),
            ..Self::default()
        }
    }

    /// One that holds a value already.
    #[must_use]
    pub(crate) fn holding(mut self, value: Value) -> Self {
        self.value = Some(value);
        self.has_merged = true;
        self
    }

    /// What was merged so far; `None`: there was no cloud-config.
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Merges a part. Where that fails, it is as if the part weren't there.
    pub fn add(&mut self, part: &Part, layer: u32) -> Result<(), Error> {
        let read = part.text().and_then(|text| {
            if part.content_type == JSON_PATCH {
                return Ok(None);
            }
            read(part, text, layer).map(Some)
        });
        match read {
            Ok(Some(config)) => self.merge(&config),
            Ok(None) => self.patch(part.text()?, layer),
            Err(error) => {
                self.begin();
                Err(error)
            }
        }
    }

    /// Merges a part that was read.
    pub(crate) fn merge(&mut self, config: &Config) -> Result<(), Error> {
        let base = self.begin();
        let merged = self.merged(&base, config)?;
        self.keep(merged);
        Ok(())
    }

    /// Applies a JSON patch.
    pub(crate) fn patch(&mut self, text: &str, layer: u32) -> Result<(), Error> {
        let patched = patch::apply(&self.begin(), text, layer)?;
        self.keep(patched);
        Ok(())
    }

    /// Passes over a part that can't be read.
    pub(crate) fn skip(&mut self) {
        self.begin();
    }

    /// What the next part is merged into. From here on there is a cloud-config, if an empty one.
    fn begin(&mut self) -> Value {
        match &self.value {
            Some(value) if self.has_merged => value.clone(),
            _ => {
                let empty = Value::from(Map::default());
                self.value = Some(empty.clone());
                empty
            }
        }
    }

    fn keep(&mut self, value: Value) {
        self.value = Some(value);
        self.has_merged = true;
    }

    fn merged(&mut self, base: &Value, config: &Config) -> Result<Value, Error> {
        let own = config.mergers()?;
        let Some(stack) = &mut self.stack else {
            let mergers = own.unwrap_or_else(Mergers::of_parts);
            return mergers.merge(base, &config.value, self.documented);
        };
        let last = stack.last().expect("the default stays at the bottom");
        let merged = last.merge(base, &config.value, self.documented)?;
        stack.extend(own);
        Ok(merged)
    }
}

/// A cloud-config, read.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Its content without the keys that say how to merge it.
    pub(crate) value: Value,
    /// What these keys say, and what the headers say.
    pub(crate) described: Vec<Described>,
    /// Where the keys say it.
    pub(crate) described_at: Option<Origin>,
}

impl Config {
    /// Its own mergers, if it has some.
    pub(crate) fn mergers(&self) -> Result<Option<Mergers>, Error> {
        (!self.described.is_empty())
            .then(|| Mergers::of(&self.described))
            .transpose()
    }
}

/// Reads a cloud-config.
pub(crate) fn read(part: &Part, text: &str, layer: u32) -> Result<Config, Error> {
    let value = yaml::load(text, layer)?;
    let Data::Map(map) = &value.data else {
        let message = match value.data {
            Data::Null => "it is empty".to_owned(),
            _ => format!(
                "a cloud-config is a mapping, and this is {}",
                value.type_name()
            ),
        };
        return Err(Error::new(Class::Value, message).at(value.origin.line));
    };
    let mut map = (**map).clone();
    let (mut described, described_at) = match take_mergers(&mut map) {
        Some(mergers) => (describe_value(&mergers)?, Some(mergers.origin)),
        None => (Vec::new(), None),
    };
    let header = ["Merge-Type", "X-Merge-Type"]
        .iter()
        .filter_map(|name| part.header(name))
        .find(|value| !value.is_empty());
    described.extend(describe(header.unwrap_or_default())?);
    Ok(Config {
        value: Value {
            origin: value.origin,
            ..Value::from(map)
        },
        described,
        described_at,
    })
}

/// Takes `merge_how` away and, where that says nothing, `merge_type`.
pub(crate) fn take_mergers(map: &mut Map) -> Option<Value> {
    ["merge_how", "merge_type"].iter().find_map(|name| {
        let taken = map.remove(&Value::from(*name))?;
        (!taken.is_null()).then_some(taken)
    })
}

/// Merges whole sources, the most important first: user data, vendor data, what is on disk. A source
/// that says how is merged so into those before it.
pub fn merge_sources(sources: &[Value]) -> Result<Value, Error> {
    let mut merged = Value::from(Map::default());
    for source in sources {
        let Data::Map(map) = &source.data else {
            continue;
        };
        let mut map = (**map).clone();
        let described = match take_mergers(&mut map) {
            Some(mergers) => describe_value(&mergers)?,
            None => Vec::new(),
        };
        let mergers = if described.is_empty() {
            Mergers::of_sources()
        } else {
            Mergers::of(&described)?
        };
        merged = mergers.merge(&merged, &Value::from(map), Documented::default())?;
    }
    Ok(merged)
}
