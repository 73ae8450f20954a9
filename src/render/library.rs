//! `templates_lib`: snippets that every template of a configuration can call.
//!
//! In: the configured snippets, and the bodies of those that are files. Out: [`Snippets`], parsed
//! once, each with its place. Must not: execute, or fetch.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use nstance_gotemplate::{Call, Environment, Library, ParseError, Template};
use serde::{Deserialize, Serialize};

use super::cache::{Place, environment, line_and_column, parse_finding};
use super::userdata;
use super::userdata::Bodies;
use crate::config::model::{Config, Encoding, Functions, MAIN_TEMPLATE, TextSource};
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Snippets as stored in plan files: name and text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SnippetTexts(Vec<(Arc<str>, Arc<str>)>);

impl SnippetTexts {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The texts, without their names.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, text)| &**text)
    }
}

/// The snippets of a configuration, parsed.
#[derive(Debug, Default)]
pub struct Snippets {
    library: Library,
    texts: Arc<SnippetTexts>,
    functions: Functions,
    places: BTreeMap<Arc<str>, Place>,
    /// The sensitive bytes of each.
    sensitive: BTreeMap<Arc<str>, Vec<Range<usize>>>,
    /// Whether a snippet has an error. Undefined templates are then not reported, since the broken
    /// snippet may define them.
    broken: bool,
}

impl Snippets {
    /// Parses the snippets of a configuration. Adds the first error of each snippet to the
    /// findings.
    pub fn parse(
        config: &Config,
        sources: &SourceMap,
        bodies: &Bodies,
        findings: &mut Diagnostics,
    ) -> Self {
        let mut snippets = Self {
            functions: config.functions,
            ..Self::default()
        };
        let mut texts = Vec::new();
        for (name, snippet) in &config.templates_lib {
            match text_of(&snippet.value, bodies, findings) {
                Some((text, place)) => {
                    snippets.places.insert(Arc::clone(name), place);
                    let sensitivity = &snippet.value.sensitivity;
                    if !sensitivity.is_open() {
                        let bytes = sensitivity.bytes(&text);
                        snippets.sensitive.insert(Arc::clone(name), bytes);
                    }
                    texts.push((Arc::clone(name), text));
                }
                None => snippets.broken = true,
            }
        }
        snippets.texts = Arc::new(SnippetTexts(texts));
        let environment = environment(config.functions);
        snippets.link(&environment, |places, error| {
            findings.push(clash_or_mistake(places, sources, error));
        });
        if !snippets.broken {
            snippets.check_calls(sources, &environment, findings);
        }
        snippets
    }

    /// Parses the snippets of a plan file, which are valid since planning parsed them.
    pub fn of_texts(texts: &Arc<SnippetTexts>, functions: Functions, place: Place) -> Self {
        let names = texts.0.iter().map(|(name, _)| (Arc::clone(name), place));
        let mut snippets = Self {
            texts: Arc::clone(texts),
            functions,
            places: names.collect(),
            ..Self::default()
        };
        snippets.link(&environment(functions), |_, _| {});
        snippets
    }

    /// The functions that snippets and their callers can use.
    pub fn functions(&self) -> Functions {
        self.functions
    }

    fn link(
        &mut self,
        environment: &Environment,
        mut report: impl FnMut(&BTreeMap<Arc<str>, Place>, &ParseError),
    ) {
        let texts: Vec<(&str, &str)> = self.texts.0.iter().map(|(n, t)| (&**n, &**t)).collect();
        match Library::parse(&texts, environment) {
            Ok(library) => self.library = library,
            Err(error) => {
                self.broken = true;
                for error in &error.errors {
                    report(&self.places, error);
                }
            }
        }
    }

    /// Reports calls of undefined templates, even in snippets that nothing uses.
    fn check_calls(
        &self,
        sources: &SourceMap,
        environment: &Environment,
        findings: &mut Diagnostics,
    ) {
        let Ok(nothing) = Template::parse_in(MAIN_TEMPLATE, "", environment, &self.library) else {
            return;
        };
        for name in self.library.names() {
            let Some(template) = nothing.lookup(name) else {
                continue;
            };
            for call in &template.reads().calls {
                if call.target.is_none()
                    && let Some(place) = self.place(&call.template)
                    && let Some(text) = self.text(&call.template)
                {
                    findings.push(self.undefined(sources, call, place, text));
                }
            }
        }
    }

    /// The finding that `text`, written at `place`, calls an undefined template.
    pub(super) fn undefined(
        &self,
        sources: &SourceMap,
        call: &Call,
        place: Place,
        text: &str,
    ) -> Diagnostic {
        let finding = Diagnostic::error(format!("no template `{}` is defined", call.name))
            .at(place.at(sources, call.offset), "called here");
        let finding = place.told(finding, line_and_column(text, call.offset));
        match &call.nearest {
            Some(near) => finding.hint(format!("there is a template `{near}`")),
            None if self.library.is_empty() => finding.hint(
                "define it with `{{ define }}` in this text, or for all texts under the \
                 top-level key `templates_lib`",
            ),
            None => {
                finding.hint("snippets for all texts stand under the top-level key `templates_lib`")
            }
        }
    }

    /// The parsed snippets.
    pub(super) fn library(&self) -> &Library {
        &self.library
    }

    /// The sensitive bytes of their texts, by name.
    pub(super) fn sensitive(&self) -> &BTreeMap<Arc<str>, Vec<Range<usize>>> {
        &self.sensitive
    }

    /// Their texts.
    pub(super) fn texts(&self) -> &Arc<SnippetTexts> {
        &self.texts
    }

    /// Whether a snippet has an error, which may explain an undefined template.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Where the snippet of this name was written; `None` if there is none.
    pub(super) fn place(&self, name: &str) -> Option<Place> {
        self.places.get(name).copied()
    }

    /// The text of the snippet of this name; `None` if there is none.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let mut texts = self.texts.0.iter();
        let (_, text) = texts.find(|(known, _)| **known == *name)?;
        Some(text)
    }
}

fn text_of(
    snippet: &TextSource,
    bodies: &Bodies,
    findings: &mut Diagnostics,
) -> Option<(Arc<str>, Place)> {
    let span = snippet.content.span;
    let is_url = snippet.is_url();
    let bytes: &[u8] = if is_url {
        // Failing to read it was reported already.
        bodies.get(&snippet.content.value)?
    } else {
        snippet.content.value.as_bytes()
    };
    let decoded = userdata::decode(bytes, snippet.encoding).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| format!("isn't UTF-8: {}", error.utf8_error()))
    });
    let as_written = !is_url && snippet.encoding.is_none_or(|e| e == Encoding::Plain);
    match decoded {
        Ok(text) if as_written => Some((text.into(), Place::Literal(span))),
        Ok(text) => Some((text.into(), Place::Behind(span))),
        // Inline texts were checked when the configuration was decoded.
        Err(_) if !is_url => None,
        Err(error) => {
            findings.push(
                Diagnostic::error("a snippet can't be decoded")
                    .at(span, format!("its content {error}")),
            );
            None
        }
    }
}

fn clash_or_mistake(
    places: &BTreeMap<Arc<str>, Place>,
    sources: &SourceMap,
    error: &ParseError,
) -> Diagnostic {
    let Some(place) = places.get(&*error.template) else {
        return Diagnostic::error(error.to_string());
    };
    let Some(earlier) = error.earlier() else {
        return parse_finding(sources, *place, error);
    };
    let finding = Diagnostic::error("two snippets define the same template")
        .at(place.at(sources, error.offset), error.message.clone());
    let finding = place.told(finding, (error.line, error.column));
    match places.get(&*earlier.template) {
        Some(first) => finding.related(first.at(sources, earlier.offset), "it is defined here too"),
        None => finding,
    }
}
