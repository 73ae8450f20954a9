//! Values as Terraform has them. Comes in: what was written or computed. Goes out: the same, cheap
//! to clone, with the place it was written at and whether it is sensitive.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::error::Span;
use crate::number::Number;
use crate::types::{ObjectType, Type};

mod set;

/// The attributes of an object, or the elements of a map, by name.
pub type Entries = BTreeMap<Arc<str>, Value>;

/// A value.
#[derive(Clone)]
pub struct Value {
    pub kind: Kind,
    /// Where it was written. Functions that pass a value on leave it.
    pub span: Option<Span>,
    /// Not to be shown. What a container holds has its own flag.
    pub sensitive: bool,
    /// Of a sensitive string the bytes that are, where a template wrote the others; see
    /// [`Value::sensitive_bytes`].
    pub(crate) sensitive_bytes: Option<Arc<[Range<usize>]>>,
}

/// What a value is. Tuples and objects have a type for each element; lists, sets and maps one for
/// all.
#[derive(Clone)]
pub enum Kind {
    /// Of a type, which is [`Type::Any`] for a plain `null`.
    Null(Type),
    Bool(bool),
    Number(Number),
    String(Arc<str>),
    Tuple(Arc<[Value]>),
    Object(Arc<Entries>),
    List(Type, Arc<[Value]>),
    /// Sorted as Terraform sorts, no two equal: see [`Value::set`].
    Set(Type, Arc<[Value]>),
    Map(Type, Arc<Entries>),
}

impl Value {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            span: None,
            sensitive: false,
            sensitive_bytes: None,
        }
    }

    /// A `null` of no type yet.
    pub fn null() -> Self {
        Self::new(Kind::Null(Type::Any))
    }

    pub fn null_of(of: Type) -> Self {
        Self::new(Kind::Null(of))
    }

    /// Composed (NFC), as all of Terraform's strings are.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::new(Kind::String(composed(text.into())))
    }

    pub fn number(number: impl Into<Number>) -> Self {
        Self::new(Kind::Number(number.into()))
    }

    pub fn tuple(elements: impl Into<Arc<[Self]>>) -> Self {
        Self::new(Kind::Tuple(elements.into()))
    }

    pub fn object(attributes: Entries) -> Self {
        Self::new(Kind::Object(Arc::new(attributes)))
    }

    /// Every element must be of the type `of`: see [`convert`](crate::convert).
    pub fn list(of: Type, elements: impl Into<Arc<[Self]>>) -> Self {
        Self::new(Kind::List(of, elements.into()))
    }

    /// Sorts, and leaves out what is there already. Every element must be of the type `of`. A set
    /// with a sensitive element is sensitive itself: what is in it decides its order and size.
    pub fn set(of: Type, mut elements: Vec<Self>) -> Self {
        let sensitive = elements.iter().any(Self::is_sensitive_within);
        if sensitive {
            elements = elements.iter().map(Self::without_sensitivity).collect();
        }
        let elements = set::ordered(elements).into();
        Self::new(Kind::Set(of, elements)).or_sensitive(sensitive)
    }

    /// The value with nothing in it sensitive.
    pub(crate) fn without_sensitivity(&self) -> Self {
        let each = |elements: &[Self]| elements.iter().map(Self::without_sensitivity).collect();
        let every = |entries: &Entries| {
            let entries = entries.iter();
            Arc::new(
                entries
                    .map(|(name, value)| (name.clone(), value.without_sensitivity()))
                    .collect(),
            )
        };
        let kind = match &self.kind {
            Kind::Tuple(elements) => Kind::Tuple(each(elements)),
            Kind::List(of, elements) => Kind::List(of.clone(), each(elements)),
            Kind::Set(of, elements) => Kind::Set(of.clone(), each(elements)),
            Kind::Object(entries) => Kind::Object(every(entries)),
            Kind::Map(of, entries) => Kind::Map(of.clone(), every(entries)),
            Kind::Null(_) | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => self.kind.clone(),
        };
        Self {
            span: self.span,
            ..Self::new(kind)
        }
    }

    /// Every element must be of the type `of`.
    pub fn map(of: Type, elements: Entries) -> Self {
        Self::new(Kind::Map(of, Arc::new(elements)))
    }

    #[must_use]
    pub fn with_span(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Sensitive as a whole if `sensitive`, else as it was.
    #[must_use]
    pub fn or_sensitive(mut self, sensitive: bool) -> Self {
        if sensitive {
            self.sensitive = true;
            self.sensitive_bytes = None;
        }
        self
    }

    /// The same value, which may be shown.
    #[must_use]
    pub fn nonsensitive(mut self) -> Self {
        self.sensitive = false;
        self.sensitive_bytes = None;
        self
    }

    /// A sensitive string of which only these bytes are; they are in order, and don't overlap. All
    /// of it where composing letters moves the bytes.
    pub fn partly_sensitive(text: impl Into<Arc<str>>, bytes: Vec<Range<usize>>) -> Self {
        let text = text.into();
        let value = Self::string(Arc::clone(&text)).or_sensitive(true);
        let is_as_given = value.as_str() == Some(&*text);
        Self {
            sensitive_bytes: is_as_given.then(|| bytes.into()),
            ..value
        }
    }

    /// Which bytes of a sensitive string are, if not all: those that the interpolations of a
    /// template wrote. The value counts as sensitive all the same, and so does what a function makes
    /// of it.
    pub fn sensitive_bytes(&self) -> Option<&[Range<usize>]> {
        self.sensitive_bytes.as_deref()
    }

    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null(_))
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            Kind::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<&Number> {
        match &self.kind {
            Kind::Number(number) => Some(number),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of a tuple, list or set.
    pub fn elements(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements) => {
                Some(elements)
            }
            _ => None,
        }
    }

    /// The attributes of an object, the elements of a map.
    pub fn entries(&self) -> Option<&Entries> {
        match &self.kind {
            Kind::Object(entries) | Kind::Map(_, entries) => Some(entries),
            _ => None,
        }
    }

    /// Whether it or anything in it is sensitive.
    pub fn is_sensitive_within(&self) -> bool {
        self.sensitive
            || match &self.kind {
                Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements) => {
                    elements.iter().any(Self::is_sensitive_within)
                }
                Kind::Object(entries) | Kind::Map(_, entries) => {
                    entries.values().any(Self::is_sensitive_within)
                }
                Kind::Null(_) | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => false,
            }
    }

    /// Its type; a tuple's or an object's is put together from what it holds.
    pub fn type_of(&self) -> Type {
        match &self.kind {
            Kind::Null(of) => of.clone(),
            Kind::Bool(_) => Type::Bool,
            Kind::Number(_) => Type::Number,
            Kind::String(_) => Type::String,
            Kind::Tuple(elements) => Type::Tuple(elements.iter().map(Self::type_of).collect()),
            Kind::Object(entries) => Type::Object(Arc::new(ObjectType {
                attributes: entries
                    .iter()
                    .map(|(name, value)| (name.clone(), value.type_of()))
                    .collect(),
                optional: BTreeMap::new(),
            })),
            Kind::List(of, _) => Type::List(Arc::new(of.clone())),
            Kind::Set(of, _) => Type::Set(Arc::new(of.clone())),
            Kind::Map(of, _) => Type::Map(Arc::new(of.clone())),
        }
    }
}

/// The text in Unicode's composed form: `é` is one character, however it was written.
pub(crate) fn composed(text: Arc<str>) -> Arc<str> {
    if text.is_ascii() || is_nfc(&text) {
        return text;
    }
    text.nfc().collect::<String>().into()
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::new(Kind::Bool(value))
    }
}

impl From<Number> for Value {
    fn from(value: Number) -> Self {
        Self::number(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::string(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::string(value)
    }
}

/// Of kind, type and content; places and sensitivity don't count.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Null(a), Kind::Null(b)) => a == b,
            (Kind::Bool(a), Kind::Bool(b)) => a == b,
            (Kind::Number(a), Kind::Number(b)) => a == b,
            (Kind::String(a), Kind::String(b)) => a == b,
            (Kind::Tuple(a), Kind::Tuple(b)) => a == b,
            (Kind::Object(a), Kind::Object(b)) => a == b,
            (Kind::List(of_a, a), Kind::List(of_b, b))
            | (Kind::Set(of_a, a), Kind::Set(of_b, b)) => of_a == of_b && a == b,
            (Kind::Map(of_a, a), Kind::Map(of_b, b)) => of_a == of_b && a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

/// As `terraform console` prints it, what is sensitive hidden.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::format::console(self))
    }
}
