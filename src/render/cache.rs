//! Templates parsed once, however many places write the same text.
//!
//! In: strings with their spans. Out: [`Compiled`] templates, or findings that point into the
//! string. May not: execute.

use std::collections::HashMap;
use std::sync::Arc;

use nstance_gotemplate::{Access, Environment, Function, MissingKey, ParseError, Template, Value};

use super::data;
use crate::config::position;
use crate::config::source::{SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};

/// A template at one place of the configuration.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The parsed template; shared between equal texts.
    pub template: Template,
    /// The string literal it was written in, or what stands for it.
    pub place: Place,
}

/// Where a template's text is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A string of the configuration: positions reach into it.
    Literal(Span),
    /// Text that a string of the configuration stands for (a URL, base64): positions are the
    /// string's.
    Behind(Span),
}

impl Place {
    /// The configuration's string.
    pub fn span(self) -> Span {
        match self {
            Self::Literal(span) | Self::Behind(span) => span,
        }
    }

    /// The span of a byte offset in the template.
    pub fn at(self, sources: &SourceMap, offset: usize) -> Span {
        match self {
            Self::Literal(span) => position::within(sources, span, offset),
            Self::Behind(span) => span,
        }
    }
}

/// All templates of a configuration.
pub struct TemplateCache<'a> {
    environment: Environment,
    sources: &'a SourceMap,
    parsed: HashMap<Arc<str>, Result<Template, ParseError>>,
    images: Vec<&'a str>,
}

impl<'a> TemplateCache<'a> {
    /// An empty cache; `images` are the configured names that `.Image` may be asked for.
    pub fn new(sources: &'a SourceMap, images: impl IntoIterator<Item = &'a str>) -> Self {
        // As the Nstance server parses them; `Vars` and `Image` have rules of their own.
        let environment = environment();
        Self {
            environment,
            sources,
            parsed: HashMap::new(),
            images: images.into_iter().collect(),
        }
    }

    /// The sources that places point into.
    pub fn sources(&self) -> &'a SourceMap {
        self.sources
    }

    /// Parses a text, or finds it parsed. Mistakes become findings: syntax, undefined functions
    /// and variables, fields that the data doesn't have, images that aren't configured.
    pub fn compile(
        &mut self,
        text: &Arc<str>,
        place: Place,
        findings: &mut Diagnostics,
    ) -> Option<Compiled> {
        let parsed = self
            .parsed
            .entry(Arc::clone(text))
            .or_insert_with(|| Template::parse("template", text, &self.environment));
        match parsed {
            Ok(template) => {
                let compiled = Compiled {
                    template: template.clone(),
                    place,
                };
                let mut sound = true;
                for access in &compiled.template.reads().paths {
                    if let Some(finding) = self.check_read(access, place) {
                        findings.push(finding);
                        sound = false;
                    }
                }
                sound.then_some(compiled)
            }
            Err(error) => {
                let mut finding = Diagnostic::error("a template can't be parsed")
                    .at(place.at(self.sources, error.offset), error.message.clone());
                if let Place::Behind(_) = place {
                    finding = finding.detail(format!(
                        "line {}, column {} of it",
                        error.line, error.column
                    ));
                }
                if let Some(hint) = &error.hint {
                    finding = finding.hint(hint.clone());
                }
                findings.push(finding);
                None
            }
        }
    }

    fn check_read(&self, access: &Access, place: Place) -> Option<Diagnostic> {
        let mut segments = access.path.split('.').skip(1);
        let root = segments.next().filter(|root| !root.is_empty())?;
        let Some(fields) = data::fields_of(root) else {
            let known = data::ROOT_FIELDS.iter().copied();
            return Some(unknown_field(
                self.sources,
                access,
                place,
                format!("templates have no data `.{root}`"),
                nearest(root, known).map(|near| format!("there is `.{near}`")),
                format!("the data are: .{}", data::ROOT_FIELDS.join(", .")),
            ));
        };
        let field = segments.next()?;
        if root == "Image" {
            if self.images.contains(&field) {
                return None;
            }
            return Some(unknown_field(
                self.sources,
                access,
                place,
                format!("image `{field}` isn't configured"),
                nearest(field, self.images.iter().copied())
                    .map(|near| format!("there is an image `{near}`")),
                "images are defined under the top-level key `images`".to_owned(),
            ));
        }
        // Maps with any keys have no fixed fields.
        if fields.is_empty() || fields.contains(&field) {
            return None;
        }
        Some(unknown_field(
            self.sources,
            access,
            place,
            format!("`.{root}` has no field `{field}`"),
            nearest(field, fields.iter().copied()).map(|near| format!("there is `.{root}.{near}`")),
            format!("its fields are: {}", fields.join(", ")),
        ))
    }
}

/// The environment that all templates are parsed in: the Nstance server's, and `default`.
pub fn environment() -> Environment {
    let default = Function::new(
        2,
        Some(2),
        Arc::new(|arguments: &[Value]| {
            Ok(if arguments[1].truth() {
                arguments[1].clone()
            } else {
                arguments[0].clone()
            })
        }),
    );
    Environment::new()
        .with_missing_key(MissingKey::Zero)
        .with_function("default", default)
}

fn unknown_field(
    sources: &SourceMap,
    access: &Access,
    place: Place,
    summary: String,
    near: Option<String>,
    otherwise: String,
) -> Diagnostic {
    Diagnostic::error(summary)
        .at(place.at(sources, access.offset), "not there")
        .hint(near.unwrap_or(otherwise))
}
