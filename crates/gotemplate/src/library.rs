//! Templates that many others share: parsed once, linked once.
//!
//! In: named texts. Out: a [`Library`] that templates are parsed in. Sharing it copies no code: a
//! template refers to the library's, and only what it redefines is linked anew for it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::code::Code;
use crate::environment::Environment;
use crate::error::{Earlier, ParseError, Problem};
use crate::parse::{self, line_of};
use crate::quote::quoted;

/// Where each name of a code's table leads to, if to a template.
pub(crate) type Links = Box<[Option<u32>]>;

/// Named templates that other templates can call. Cloning it is cheap.
///
/// ```
/// use nstance_gotemplate::{Environment, Library, Template, Value};
///
/// let environment = Environment::new();
/// let library = Library::parse(&[("hello", "Hello {{ . }}!")], &environment)?;
/// let template = Template::parse_in("main", r#"{{ template "hello" . }}"#, &environment, &library)?;
/// assert_eq!(template.render(&Value::from("world"))?.output, b"Hello world!");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Library {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    codes: Vec<Code>,
    links: Vec<Links>,
    by_name: BTreeMap<Arc<str>, u32>,
    /// The names that its templates call, whether they are defined or not.
    called: BTreeSet<Arc<str>>,
}

/// Texts don't make a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryError {
    /// What is wrong: of each text the first mistake, and each name that two texts define.
    pub errors: Vec<ParseError>,
}

impl fmt::Display for LibraryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LibraryError {}

impl Library {
    /// Parses texts, each of which defines the template of its name and those in its `define` and
    /// `block` actions. Their order makes no difference: they can call one another, and that two of
    /// them define the same name is an error, unless one of the definitions is empty.
    pub fn parse(texts: &[(&str, &str)], environment: &Environment) -> Result<Self, LibraryError> {
        let mut definitions = parse::Definitions::new();
        let mut errors = Vec::new();
        for (name, text) in texts {
            let parsed = match parse::parse(name, text, environment) {
                Ok(parsed) => parsed,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            for (name, code) in parsed {
                match definitions.get(&name) {
                    Some(known) if !known.empty && !code.empty => {
                        errors.push(defined_twice(known, &code));
                    }
                    Some(known) if !known.empty => {}
                    _ => {
                        definitions.insert(name, code);
                    }
                }
            }
        }
        if !errors.is_empty() {
            return Err(LibraryError { errors });
        }
        let by_name: BTreeMap<Arc<str>, u32> = definitions.keys().cloned().zip(0..).collect();
        let codes: Vec<Code> = definitions.into_values().collect();
        let called = codes.iter().flat_map(Code::called).cloned().collect();
        let links = codes
            .iter()
            .map(|code| links(code, |name| by_name.get(name).copied()))
            .collect();
        Ok(Self {
            shared: Arc::new(Shared {
                codes,
                links,
                by_name,
                called,
            }),
        })
    }

    /// The names of its templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.shared.by_name.keys().map(AsRef::as_ref)
    }

    /// Whether it has no templates.
    pub fn is_empty(&self) -> bool {
        self.shared.codes.is_empty()
    }

    pub(crate) fn codes(&self) -> &[Code] {
        &self.shared.codes
    }

    pub(crate) fn links(&self) -> &[Links] {
        &self.shared.links
    }

    pub(crate) fn index_of(&self, name: &str) -> Option<u32> {
        self.shared.by_name.get(name).copied()
    }

    pub(crate) fn calls(&self, name: &str) -> bool {
        self.shared.called.contains(name)
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_set()
            .entries(self.shared.by_name.keys())
            .finish()
    }
}

/// Looks up what a code's names stand for.
pub(crate) fn links(code: &Code, find: impl Fn(&str) -> Option<u32>) -> Links {
    code.names.iter().map(|name| find(name)).collect()
}

fn defined_twice(known: &Code, again: &Code) -> ParseError {
    let name = quoted(&again.name);
    let source = &again.source;
    let offset = again.opening as usize;
    let message = format!("template {name} is defined twice");
    let go = format!(
        "template: {}:{}: template: multiple definition of template {name}",
        source.name,
        line_of(&source.text, offset)
    );
    let hint = format!(
        "{} defines it in line {}",
        quoted(&known.source.name),
        line_of(&known.source.text, known.opening as usize)
    );
    let problem = Problem::new(message, &source.name, &source.text, offset, Some(hint), go);
    ParseError::new(problem).with_earlier(Earlier {
        template: known.source.name.as_ref().to_owned(),
        offset: known.opening as usize,
    })
}
