//! A cache of parsed templates: equal texts are parsed once.
//!
//! In: strings with their spans. Out: [`Compiled`] templates, or findings with a position in the
//! string. Must not: execute.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use nstance_gotemplate::{
    Access, Environment, Function, Limits, MissingKey, ParseError, Sensitive, Template, Trace,
    Value, sprig,
};

use super::data::{self, ShardData};
use super::erb::Erb;
use super::join_cache::Joins;
use super::library::Snippets;
use super::texts::{FUNCTION, with_placeholders};
use crate::config::model::{Functions, MAIN_TEMPLATE};
use crate::config::node::Sensitivity;
use crate::config::position;
use crate::config::source::{SourceMap, Span};
use crate::diagnostic::mask::SensitivePieces;
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, Severity, nearest};

/// A template at a place in the configuration.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The parsed template; shared between equal texts.
    pub template: Template,
    /// The string literal that holds it or refers to it.
    pub place: Place,
    /// The snippets that it can call.
    pub snippets: Arc<Snippets>,
    /// The sensitive bytes of its text.
    sensitive: Arc<[Range<usize>]>,
    /// The trace of sensitive data through it; computed on first use.
    trace: OnceLock<Option<Arc<Trace>>>,
}

impl Compiled {
    /// Where a text of this template was written: its own, or a snippet's.
    pub fn place_of(&self, text: &str) -> Place {
        self.snippets.place(text).unwrap_or(self.place)
    }

    /// The line and column of a byte of a text of this template.
    pub(super) fn line_and_column(&self, text: &str, offset: usize) -> (usize, usize) {
        let written = self.snippets.text(text);
        line_and_column(written.unwrap_or_else(|| self.template.text()), offset)
    }

    /// The trace of sensitive data through the template; `None` if it reads none. `data` is the
    /// sensitive data of the group that it was compiled for.
    pub(super) fn trace(&self, data: &Sensitive) -> Option<&Arc<Trace>> {
        let trace = || {
            let mut sensitive = data.clone();
            sensitive.add_text(MAIN_TEMPLATE, self.sensitive.iter().cloned());
            for (name, bytes) in self.snippets.sensitive() {
                sensitive.add_text(&**name, bytes.iter().cloned());
            }
            let is_empty = sensitive.is_empty();
            let trace = (!is_empty).then(|| self.template.trace(&sensitive));
            trace.flatten().map(Arc::new)
        };
        self.trace.get_or_init(trace).as_ref()
    }

    /// Whether it is a text with placeholders.
    pub fn is_placeholder_text(&self) -> bool {
        self.template.reads().functions.contains(FUNCTION)
    }

    /// Whether its text, or one that it may call, has one of these words.
    pub fn mentions(&self, words: &[&str]) -> bool {
        let has = |text: &str| words.iter().any(|word| text.contains(word));
        let mut snippets = self.snippets.texts().texts();
        has(self.template.text()) || self.calls_snippets() && snippets.any(has)
    }

    /// Whether it calls a snippet.
    pub fn calls_snippets(&self) -> bool {
        let calls = &self.template.reads().calls;
        calls
            .iter()
            .filter_map(|call| call.target.as_deref())
            .any(|target| target != MAIN_TEMPLATE)
    }
}

/// The origin of a template's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A string of the configuration: positions reach into it.
    Literal(Span),
    /// Text that a string refers to (a URL) or encodes (base64): findings point to the whole
    /// string.
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

    /// The span of the word at a byte offset in the template.
    pub fn word_at(self, sources: &SourceMap, offset: usize) -> Span {
        match self {
            Self::Literal(literal) => position::word_at(sources, literal, self.at(sources, offset)),
            Self::Behind(span) => span,
        }
    }

    /// Adds the template's line and column to a finding whose place doesn't show them.
    pub(super) fn told(self, finding: Diagnostic, (line, column): (usize, usize)) -> Diagnostic {
        match self {
            Self::Literal(_) => finding,
            Self::Behind(_) => finding.detail(format!("line {line}, column {column} of it")),
        }
    }
}

/// The line and column (in characters) of a byte of a text, both from 1.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = 1 + before.matches('\n').count();
    (line, 1 + before[start..].chars().count())
}

/// A parsed text, and whether it was used again since the last eviction.
struct Parsed {
    result: Result<Template, ParseError>,
    is_shared: bool,
}

/// The initial capacity. If thousands of groups have a text of their own, parsing into warm memory
/// is much faster than keeping texts that are never used again.
const ROOM: usize = 512;

/// The templates of a configuration.
pub struct TemplateCache<'a> {
    environment: Environment,
    /// The environment of placeholder texts.
    placeholders: Environment,
    sources: &'a SourceMap,
    parsed: HashMap<Arc<str>, Parsed, foldhash::fast::RandomState>,
    /// The number of entries at which those that weren't used again are evicted.
    room: usize,
    /// The names of configured images.
    images: Vec<&'a str>,
    snippets: Arc<Snippets>,
    /// Errors in a snippet's reads that were reported, so that each is reported once.
    told: HashSet<Access>,
    joins: Arc<Joins>,
    erb: Arc<Erb>,
    shard: Arc<OnceLock<ShardData>>,
}

impl<'a> TemplateCache<'a> {
    /// An empty cache.
    pub fn new(sources: &'a SourceMap, images: Vec<&'a str>, snippets: Arc<Snippets>) -> Self {
        // As the Nstance server parses them; `Vars` and `Image` are checked separately.
        let environment = environment(snippets.functions());
        Self {
            placeholders: with_placeholders(environment.clone()),
            environment,
            sources,
            parsed: HashMap::default(),
            room: ROOM,
            images,
            snippets,
            told: HashSet::new(),
            joins: Arc::default(),
            erb: Arc::default(),
            shard: Arc::default(),
        }
    }

    /// An empty cache for another thread, for the same configuration.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            joins: self.joins(),
            erb: self.erb(),
            ..Self::new(
                self.sources,
                self.images.clone(),
                Arc::clone(&self.snippets),
            )
        }
    }

    /// The cache of joined userdata, shared by all groups and threads.
    pub(super) fn joins(&self) -> Arc<Joins> {
        Arc::clone(&self.joins)
    }

    /// The same cache, with these outputs of ERB.
    #[must_use]
    pub fn with_erb(self, erb: Arc<Erb>) -> Self {
        Self { erb, ..self }
    }

    /// The outputs of ERB, shared by all groups and threads.
    pub(super) fn erb(&self) -> Arc<Erb> {
        Arc::clone(&self.erb)
    }

    /// The data that all groups share, computed for the first group.
    pub(super) fn shard(&self) -> Arc<OnceLock<ShardData>> {
        Arc::clone(&self.shard)
    }

    /// The sources that places point into.
    pub fn sources(&self) -> &'a SourceMap {
        self.sources
    }

    /// Parses a text, some of whose bytes may be sensitive, or finds it in the cache.
    ///
    /// Fails on syntax errors and on undefined functions, variables, fields and images.
    pub fn compile(
        &mut self,
        text: &Arc<str>,
        place: Place,
        sensitivity: &Sensitivity,
        findings: &mut Diagnostics,
    ) -> Result<Compiled, Reported> {
        let mut found = Diagnostics::default();
        let compiled = self.compile_openly(text, place, sensitivity, &mut found);
        if sensitivity.is_open() {
            findings.extend(found);
        } else {
            let bytes = sensitivity.bytes(text).into_iter();
            let pieces = SensitivePieces::new(bytes.map(|range| text[range].to_owned()));
            findings.extend(found.into_iter().map(|finding| pieces.mask(finding)));
        }
        compiled
    }

    /// Compiles the template of a placeholder text.
    ///
    /// Fails as [`Self::compile`] does.
    pub(super) fn compile_placeholders(
        &mut self,
        template: &Arc<str>,
        place: Place,
        sensitivity: &Sensitivity,
        findings: &mut Diagnostics,
    ) -> Result<Compiled, Reported> {
        let ordinary = self.placeholders.clone();
        let ordinary = std::mem::replace(&mut self.environment, ordinary);
        let compiled = self.compile(template, place, sensitivity, findings);
        self.environment = ordinary;
        compiled
    }

    fn compile_openly(
        &mut self,
        text: &Arc<str>,
        place: Place,
        sensitivity: &Sensitivity,
        findings: &mut Diagnostics,
    ) -> Result<Compiled, Reported> {
        match self.parse(text) {
            Ok(template) => {
                let compiled = Compiled {
                    template,
                    place,
                    snippets: Arc::clone(&self.snippets),
                    sensitive: sensitivity.bytes(text).into(),
                    trace: OnceLock::new(),
                };
                if self.check(&compiled, text, findings) {
                    Ok(compiled)
                } else {
                    Err(Reported)
                }
            }
            Err(error) => {
                findings.push(parse_finding(self.sources, place, &error));
                Err(Reported)
            }
        }
    }

    fn parse(&mut self, text: &Arc<str>) -> Result<Template, ParseError> {
        if let Some(parsed) = self.parsed.get_mut(text) {
            parsed.is_shared = true;
            return parsed.result.clone();
        }
        if self.parsed.len() >= self.room {
            self.parsed
                .retain(|_, parsed| std::mem::take(&mut parsed.is_shared));
            // If most entries are shared, a larger cache pays off.
            self.room = ROOM.max(self.parsed.len() * 2);
        }
        let library = self.snippets.library();
        let result = Template::parse_in(MAIN_TEMPLATE, text, &self.environment, library);
        let parsed = Parsed {
            result: result.clone(),
            is_shared: false,
        };
        self.parsed.insert(Arc::clone(text), parsed);
        result
    }

    /// Whether everything that a template reads and calls exists. Data and snippets that failed to
    /// parse count as existing.
    fn check(&mut self, compiled: &Compiled, text: &str, findings: &mut Diagnostics) -> bool {
        let mut sound = true;
        let reads = compiled.template.reads();
        for access in &reads.paths {
            let place = compiled.place_of(&access.template);
            let Some(mut finding) = self.check_read(access, place) else {
                continue;
            };
            if finding.severity == Severity::Warning && reads.tested.contains(access) {
                continue;
            }
            sound &= finding.severity == Severity::Warning;
            let written = self.snippets.text(&access.template).unwrap_or(text);
            finding = place.told(finding, line_and_column(written, access.offset));
            if place != compiled.place {
                if !self.told.insert(access.clone()) {
                    continue;
                }
                finding = finding.related(compiled.place.span(), "called from this template");
            }
            findings.push(finding);
        }
        // The calls within snippets are checked with the snippets.
        let own = reads.calls.iter().filter(|call| call.target.is_none());
        for call in own {
            sound = false;
            if call.template == MAIN_TEMPLATE && !self.snippets.is_broken() {
                let finding = self
                    .snippets
                    .undefined(self.sources, call, compiled.place, text);
                findings.push(finding);
            }
        }
        sound
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
            let mut finding = unknown_field(
                self.sources,
                access,
                place,
                format!("image `{field}` is not defined"),
                nearest(field, self.images.iter().copied())
                    .map(|near| format!("there is an image `{near}`")),
                "images are defined under the top-level key `images`".to_owned(),
            );
            // It is empty there, as on the server.
            finding.severity = Severity::Warning;
            return Some(finding);
        }
        // No fields means a map with arbitrary keys.
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

/// The finding for a template that doesn't parse.
pub(super) fn parse_finding(sources: &SourceMap, place: Place, error: &ParseError) -> Diagnostic {
    let mut finding = Diagnostic::error("a template can't be parsed")
        .at(place.at(sources, error.offset), error.message.clone());
    finding = place.told(finding, (error.line, error.column));
    if let Some(hint) = &error.hint {
        finding = finding.hint(hint.clone());
    }
    finding
}

/// The limit of execution steps for one text of one instance: hundreds of times what userdata
/// takes, and a few milliseconds.
const MOST_STEPS: u64 = 1_000_000;

/// The limit of a rendered text, in bytes: four times the largest userdata that any cloud accepts.
pub(super) const LARGEST_OUTPUT: usize = 1 << 20;

/// The environment of all templates: the Nstance server's, `default`, and the given functions.
pub fn environment(functions: Functions) -> Environment {
    static GO: LazyLock<Environment> = LazyLock::new(|| {
        // An undefined function is usually one of Sprig's.
        sprig::functions().fold(base(), |environment, function| {
            environment.with_hint(
                function.name,
                "Sprig's functions come with the top-level key `\"functions\": \"sprig\"`",
            )
        })
    });
    static SPRIG: LazyLock<Environment> = LazyLock::new(|| base().with_sprig());
    match functions {
        Functions::Go => GO.clone(),
        Functions::Sprig => SPRIG.clone(),
    }
}

fn base() -> Environment {
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
    )
    .testing();
    let limits = Limits {
        steps: MOST_STEPS,
        output_bytes: LARGEST_OUTPUT,
        ..Limits::default()
    };
    Environment::new()
        .with_limits(limits)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_that_the_configuration_asks_for() {
        let parse = |text: &str, functions| Template::parse("t", text, &environment(functions));
        let hint = parse("{{ quote 1 }}", Functions::Go)
            .unwrap_err()
            .hint
            .clone();
        assert!(hint.is_some_and(|hint| hint.contains("`\"functions\": \"sprig\"`")));
        let template = parse("{{ list \"a\" 1 | toJson }}", Functions::Sprig).unwrap();
        let rendered = template.render(&Value::Nil).unwrap();
        assert_eq!(rendered.output, b"[\"a\",1]");
        let refused = parse("{{ now }}", Functions::Sprig).unwrap_err();
        assert!(refused.message.contains("it reads the clock"), "{refused}");
    }

    #[test]
    fn lines_and_columns_are_those_that_errors_of_parsing_have() {
        for (text, found) in [
            ("{{ nothing }}", (1, 4)),
            ("a\r\n\n é€{{ nothing }}", (3, 7)),
            ("\n{{ nothing }}\n", (2, 4)),
        ] {
            let error = Template::parse("t", text, &environment(Functions::Go)).unwrap_err();
            assert_eq!((error.line, error.column), found, "{text:?}");
            assert_eq!(line_and_column(text, error.offset), found, "{text:?}");
        }
        assert_eq!(line_and_column("é", 1), (1, 1));
        assert_eq!(line_and_column("a\n", 9), (2, 1));
    }
}
