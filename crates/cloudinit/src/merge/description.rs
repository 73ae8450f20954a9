//! How to merge, as a part says it: a string such as `list(append)+dict(recurse_list)+str()`, or the
//! structured form.
//!
//! In: a description. Out: [`Mergers`]. Both forms are read as cloud-init reads them, options that do
//! nothing included: [`Described`] keeps what was written, for who wants to warn.

use crate::detect::trim;
use crate::error::{Class, Error};
use crate::value::{Data, Key, Value};

/// What a merger does with what is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// The new value wins.
    Replace,
    /// The old one wins.
    NoReplace,
    /// The new comes behind the old (lists).
    Append,
    /// The new comes before the old (lists).
    Prepend,
}

/// One merger, for one type of values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Merger {
    /// For dictionaries. Dictionaries in dictionaries are always merged, unless replaced.
    Dict {
        /// `replace` or, by default, `no_replace`.
        method: Method,
        /// New strings are merged into what is there.
        recurse_str: bool,
        /// New lists are merged into what is there.
        recurse_list: bool,
        /// Keys that are null in the new value are deleted.
        allow_delete: bool,
    },
    /// For lists and tuples.
    List {
        /// `append`, `prepend`, `no_replace` or, by default, `replace`: element by element.
        method: Method,
        /// New strings are merged into the element at their index.
        recurse_str: bool,
        /// New lists are.
        recurse_list: bool,
        /// New dictionaries are.
        recurse_dict: bool,
    },
    /// For strings.
    Str {
        /// The new one comes behind the old one, rather than in its place.
        append: bool,
    },
}

/// Mergers in their order: of several for one type the first counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Mergers {
    /// The mergers.
    pub list: Vec<Merger>,
}

/// A merger as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its options.
    pub settings: Settings,
}

/// The options of a merger, as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Settings {
    /// Names.
    Names(Vec<String>),
    /// What the structured form has: a list, or anything else that Python can look into.
    Value(Value),
}

impl Mergers {
    /// How parts are merged that say nothing, as they would say it.
    pub const DEFAULT: &str = "dict(replace)+list()+str()";

    /// How parts are merged that say nothing: top-level keys are replaced.
    pub fn of_parts() -> Self {
        Self::parse(Self::DEFAULT).expect("it is well-formed")
    }

    /// How sources are merged that say nothing: user data over vendor data over what is on disk.
    pub fn of_sources() -> Self {
        Self::parse("list()+dict()+str()").expect("it is well-formed")
    }

    /// Whether there is one for dictionaries, without which a whole cloud-config is passed over.
    pub fn has_dict(&self) -> bool {
        let is_dict = |merger: &Merger| matches!(merger, Merger::Dict { .. });
        self.list.iter().any(is_dict)
    }

    /// The mergers that a string describes.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::of(&describe(text)?)
    }

    /// The mergers that descriptions stand for. Two lists one after the other are one.
    pub fn of(described: &[Described]) -> Result<Self, Error> {
        let known = |described: &Described| {
            let name = described.name.strip_prefix("m_").unwrap_or(&described.name);
            match name {
                "dict" => Ok(Type::Dict),
                "list" => Ok(Type::List),
                "str" => Ok(Type::Str),
                _ => Err(Error::new(
                    Class::Import,
                    format!("there is no merger `{name}`: there are `dict`, `list` and `str`"),
                )),
            }
        };
        // All names first: one that is unknown is told before an option that can't be read.
        let types: Vec<Type> = described.iter().map(known).collect::<Result<_, _>>()?;
        let mergers = types.into_iter().zip(described);
        let list = mergers.map(|(kind, described)| kind.merger(&described.settings));
        Ok(Self {
            list: list.collect::<Result<_, _>>()?,
        })
    }
}

#[derive(Clone, Copy)]
enum Type {
    Dict,
    List,
    Str,
}

impl Type {
    fn merger(self, settings: &Settings) -> Result<Merger, Error> {
        let has = |name: &str| settings.has(name);
        let first = |methods: &[(&str, Method)], otherwise: Method| -> Result<Method, Error> {
            for (name, method) in methods {
                if has(name)? {
                    return Ok(*method);
                }
            }
            Ok(otherwise)
        };
        let recurse_list =
            || -> Result<bool, Error> { Ok(has("recurse_list")? || has("recurse_array")?) };
        Ok(match self {
            Self::Dict => Merger::Dict {
                method: first(&[("replace", Method::Replace)], Method::NoReplace)?,
                recurse_str: has("recurse_str")?,
                recurse_list: recurse_list()?,
                allow_delete: has("allow_delete")?,
            },
            Self::List => Merger::List {
                method: first(
                    &[
                        ("append", Method::Append),
                        ("prepend", Method::Prepend),
                        ("replace", Method::Replace),
                        ("no_replace", Method::NoReplace),
                    ],
                    Method::Replace,
                )?,
                recurse_str: has("recurse_str")?,
                recurse_list: recurse_list()?,
                recurse_dict: has("recurse_dict")?,
            },
            Self::Str => Merger::Str {
                append: has("append")?,
            },
        })
    }
}

impl Settings {
    /// Python's `name in settings`.
    fn has(&self, name: &str) -> Result<bool, Error> {
        let value = match self {
            Self::Names(names) => return Ok(names.iter().any(|known| known == name)),
            Self::Value(value) => value,
        };
        match &value.data {
            Data::List(items) | Data::Tuple(items) => {
                Ok(items.iter().any(|item| item.as_str() == Some(name)))
            }
            Data::Text(text) => Ok(text.to_string().contains(name)),
            Data::Map(map) | Data::Set(map) => Ok(map.named(name).is_some()),
            _ => {
                let message = format!("settings are a list, not {}", value.type_name());
                Err(Error::new(Class::Type, message).at(value.origin.line))
            }
        }
    }
}

/// What a string describes.
pub fn describe(text: &str) -> Result<Vec<Described>, Error> {
    let mut described = Vec::new();
    for piece in text.split('+') {
        let piece = piece.to_lowercase();
        let piece = trim(&piece).replace('-', "_");
        if piece.is_empty() {
            continue;
        }
        let wrong = || {
            let message = format!(
                "`{piece}` doesn't name a merger: that is a name and options in parentheses, such \
                 as `list(append)`"
            );
            Error::new(Class::Value, message)
        };
        // Python's `$` also stands before a line feed at the end, but that was trimmed.
        let (name, rest) = piece.split_once('(').ok_or_else(wrong)?;
        let options = rest.strip_suffix(')').ok_or_else(wrong)?;
        let begins_well = name.starts_with(|char: char| char.is_ascii_lowercase() || char == '_');
        let is_name =
            |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
        if !begins_well || !name.chars().all(is_name) || options.contains('\n') {
            return Err(wrong());
        }
        let names = options.split(',').map(|name| trim(name).to_owned());
        described.push(Described {
            name: name.to_owned(),
            settings: Settings::Names(names.filter(|name| !name.is_empty()).collect()),
        });
    }
    Ok(described)
}

/// What the structured form, or a string in its place, describes.
pub fn describe_value(value: &Value) -> Result<Vec<Described>, Error> {
    if let Data::Text(text) = &value.data {
        return describe(&text.to_string()).map_err(|error| error.at(value.origin.line));
    }
    let items = super::elements(value, "mergers are a string or a list, not")?;
    let mut described = Vec::new();
    for item in &items {
        if let Some(one) = describe_item(item).map_err(|error| error.at(item.origin.line))? {
            described.push(one);
        }
    }
    Ok(described)
}

/// One item of the structured form; `None`: it has no name, and is passed over.
fn describe_item(item: &Value) -> Result<Option<Described>, Error> {
    let text = |value: &Value| match &value.data {
        Data::Text(text) => Ok(text.to_string()),
        _ => Err(Error::new(
            Class::Attribute,
            format!("a merger's name is a string, not {}", value.type_name()),
        )),
    };
    let (name, settings) = match &item.data {
        Data::Map(map) => {
            let member = |key: &str| {
                map.named(key).ok_or_else(|| {
                    Error::new(
                        Class::Key,
                        format!("a merger has `name` and `settings`, and `{key}` is missing"),
                    )
                })
            };
            let name = text(member("name")?)?.replace('-', "_");
            (
                trim(&name).to_owned(),
                Settings::Value(member("settings")?.clone()),
            )
        }
        Data::Text(_) | Data::List(_) | Data::Tuple(_) => {
            let mut items = super::elements(item, "")?;
            if items.is_empty() {
                return Err(Error::new(Class::Index, "a merger without a name"));
            }
            let name = items.remove(0);
            let rest = match &item.data {
                Data::Text(_) => items.iter().filter_map(Value::as_str).collect::<String>(),
                _ => String::new(),
            };
            let settings = match &item.data {
                Data::Text(_) if !rest.is_empty() => Value::from(&*rest),
                _ => Value::from(items),
            };
            // A name that isn't one, and says nothing, is passed over as an empty one is.
            if is_false(&name) {
                return Ok(None);
            }
            (text(&name)?, Settings::Value(settings))
        }
        _ => {
            let message = format!("a merger is a mapping or a list, not {}", item.type_name());
            return Err(Error::new(Class::Type, message));
        }
    };
    Ok((!name.is_empty()).then_some(Described { name, settings }))
}

/// Python's `not value`.
fn is_false(value: &Value) -> bool {
    match &value.data {
        Data::Null => true,
        Data::Text(text) => text.as_str() == Some(""),
        Data::List(items) | Data::Tuple(items) => items.is_empty(),
        Data::Map(map) | Data::Set(map) => map.is_empty(),
        Data::Bytes(bytes) => bytes.is_empty(),
        Data::Bool(_) | Data::Int(_) | Data::Float(_) => value.key() == Some(Key::Int(0.into())),
        Data::Time(_) | Data::Cycle => false,
    }
}

impl std::fmt::Display for Merger {
    /// As cloud-init shows it.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let python = |set: &bool| if *set { "True" } else { "False" };
        match self {
            Self::Dict {
                method,
                recurse_str,
                recurse_list,
                allow_delete,
            } => write!(
                formatter,
                "DictMerger: (method={},recurse_str={},recurse_dict=True,recurse_array={},allow_delete={})",
                method.name(),
                python(recurse_str),
                python(recurse_list),
                python(allow_delete)
            ),
            Self::List {
                method,
                recurse_str,
                recurse_list,
                recurse_dict,
            } => write!(
                formatter,
                "ListMerger: (method={},recurse_str={},recurse_dict={},recurse_array={})",
                method.name(),
                python(recurse_str),
                python(recurse_dict),
                python(recurse_list)
            ),
            Self::Str { append } => {
                write!(formatter, "StringMerger: (append={})", python(append))
            }
        }
    }
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::NoReplace => "no_replace",
            Self::Append => "append",
            Self::Prepend => "prepend",
        }
    }
}
