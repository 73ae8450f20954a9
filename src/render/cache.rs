//! Templates parsed once, however many places write the same text.
//!
//! In: strings with their spans. Out: [`Compiled`] templates, or findings that point into the
//! string. Must not: execute.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use nstance_gotemplate::{
    Access, Environment, Function, Limits, MissingKey, ParseError, Sensitive, Template, Trace,
    Value, sprig,
};

use super::data::{self, ShardData};
use super::join_cache::Joins;
use super::library::Snippets;
use crate::config::model::{Functions, MAIN_TEMPLATE};
use crate::config::node::Sensitivity;
use crate::config::position;
use crate::config::source::{SourceMap, Span};
use crate::diagnostic::mask::SensitivePieces;
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, nearest};

/// A template at one place of the configuration.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The parsed template; shared between equal texts.
    pub template: Template,
    /// The string literal it was written in, or what stands for it.
    pub place: Place,
    /// What it can call.
    pub snippets: Arc<Snippets>,
    /// The bytes of its text that are sensitive.
    sensitive: Arc<[Range<usize>]>,
    /// Which of its operations handle what is sensitive, once that was asked for.
    trace: OnceLock<Option<Arc<Trace>>>,
}

impl Compiled {
    /// Where a text was written that the template consists of: itself, or a snippet.
    pub fn place_of(&self, text: &str) -> Place {
        self.snippets.place(text).unwrap_or(self.place)
    }

    /// The line and the column of a byte of a text that the template consists of.
    pub(super) fn line_and_column(&self, text: &str, offset: usize) -> (usize, usize) {
        let written = self.snippets.text(text);
        line_and_column(written.unwrap_or_else(|| self.template.text()), offset)
    }

    /// Which of its operations handle what is sensitive; none where it reads nothing that is. `data`:
    /// what is of the group's data, for which it was compiled.
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

    /// Whether it calls a snippet.
    pub fn calls_snippets(&self) -> bool {
        let calls = &self.template.reads().calls;
        calls
            .iter()
            .filter_map(|call| call.target.as_deref())
            .any(|target| target != MAIN_TEMPLATE)
    }
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

    /// The span of the word at a byte offset in the template.
    pub fn word_at(self, sources: &SourceMap, offset: usize) -> Span {
        match self {
            Self::Literal(literal) => position::word_at(sources, literal, self.at(sources, offset)),
            Self::Behind(span) => span,
        }
    }

    /// A finding with the line and column of the template, where its place shows neither.
    pub(super) fn told(self, finding: Diagnostic, (line, column): (usize, usize)) -> Diagnostic {
        match self {
            Self::Literal(_) => finding,
            Self::Behind(_) => finding.detail(format!("line {line}, column {column} of it")),
        }
    }
}

/// The line and the column, in characters, of a byte of a text; both count from 1.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = 1 + before.matches('\n').count();
    (line, 1 + before[start..].chars().count())
}

/// A text that was parsed, and whether it was asked for again since room was made.
struct Parsed {
    result: Result<Template, ParseError>,
    is_shared: bool,
}

/// How many texts are kept, to begin with. Where thousands of groups have a text of their own,
/// parsing into memory that is warm is much faster than keeping texts that are never asked for again.
const ROOM: usize = 512;

/// The templates of a configuration.
pub struct TemplateCache<'a> {
    environment: Environment,
    sources: &'a SourceMap,
    parsed: HashMap<Arc<str>, Parsed, foldhash::fast::RandomState>,
    /// How many of them are kept at least, before those that were asked for once make room.
    room: usize,
    /// The names that `.Image` may be asked for.
    images: Vec<&'a str>,
    snippets: Arc<Snippets>,
    /// Errors in a snippet's reads are reported once, however many templates call it.
    told: HashSet<Access>,
    joins: Arc<Joins>,
    shard: Arc<OnceLock<ShardData>>,
}

impl<'a> TemplateCache<'a> {
    /// An empty cache.
    pub fn new(sources: &'a SourceMap, images: Vec<&'a str>, snippets: Arc<Snippets>) -> Self {
        // As the Nstance server parses them; `Vars` and `Image` have rules of their own.
        let environment = environment(snippets.functions());
        Self {
            environment,
            sources,
            parsed: HashMap::default(),
            room: ROOM,
            images,
            snippets,
            told: HashSet::new(),
            joins: Arc::default(),
            shard: Arc::default(),
        }
    }

    /// An empty one for another thread, for the same configuration.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            joins: self.joins(),
            ..Self::new(
                self.sources,
                self.images.clone(),
                Arc::clone(&self.snippets),
            )
        }
    }

    /// Userdata that was joined, for all groups and threads.
    pub(super) fn joins(&self) -> Arc<Joins> {
        Arc::clone(&self.joins)
    }

    /// What the data of all its groups share, made for the first of them.
    pub(super) fn shard(&self) -> Arc<OnceLock<ShardData>> {
        Arc::clone(&self.shard)
    }

    /// The sources that places point into.
    pub fn sources(&self) -> &'a SourceMap {
        self.sources
    }

    /// Parses a text, of which some may be sensitive, or finds it parsed. Fails on syntax, undefined
    /// functions and variables, fields that the data doesn't have, images that aren't configured.
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
            // Where most of them are shared, so many are worth their room.
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

    /// Whether what a template reads and calls is there. Reads of snippets that failed to parse are skipped.
    fn check(&mut self, compiled: &Compiled, text: &str, findings: &mut Diagnostics) -> bool {
        let mut sound = true;
        let reads = compiled.template.reads();
        for access in &reads.paths {
            let place = compiled.place_of(&access.template);
            let Some(mut finding) = self.check_read(access, place) else {
                continue;
            };
            sound = false;
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
        // What a snippet calls was looked at with the snippets.
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

/// The finding that a text isn't a template.
pub(super) fn parse_finding(sources: &SourceMap, place: Place, error: &ParseError) -> Diagnostic {
    let mut finding = Diagnostic::error("a template can't be parsed")
        .at(place.at(sources, error.offset), error.message.clone());
    finding = place.told(finding, (error.line, error.column));
    if let Some(hint) = &error.hint {
        finding = finding.hint(hint.clone());
    }
    finding
}

/// The most steps one text may take for one instance: hundreds of times what userdata takes, and
/// a few milliseconds.
const MOST_STEPS: u64 = 1_000_000;

/// The most one text may render to for one instance: four times what any cloud takes as userdata.
pub(super) const LARGEST_OUTPUT: usize = 1 << 20;

/// The environment that all templates are parsed in: the Nstance server's, with `default`, and
/// what `functions` adds.
pub fn environment(functions: Functions) -> Environment {
    static GO: LazyLock<Environment> = LazyLock::new(|| {
        // A name that isn't there by default is mostly one of these.
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
