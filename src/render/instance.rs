//! Executes a group's templates for one instance.
//!
//! In: compiled templates and the data of one instance. Out: strings, and a [`Report`] with one
//! finding for all instances with the same error. Must not: parse.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use nstance_erb::TemplateError;
use nstance_gotemplate::{Access, ExecError, ExecErrorKind, Found, Sensitive, Value};

use super::cache::{Compiled, Place};
use super::erb::has_names_only;
use crate::address::Address;
use crate::config::source::{SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics, MASKED_REASON, Severity, nearest};

/// When a text is needed, which decides what may be unknown in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// Needed to create the instance: data that only exists afterwards is an error.
    BeforeCreation,
    /// Needed once it exists.
    AfterCreation,
}

/// The execution of one instance's templates.
pub struct Execution<'a> {
    /// The data.
    pub root: &'a Value,
    /// The instance's address.
    pub address: &'a Address,
    /// When the text is needed.
    pub timing: Timing,
    /// Where findings go.
    pub report: &'a mut Report,
    /// The sensitive parts of the group's data.
    pub sensitive: &'a Sensitive,
    /// Set if a text depends on unknown data.
    pub unknown: bool,
}

impl Execution<'_> {
    /// The text of a template; `None` if it failed or isn't known yet.
    pub fn bytes(&mut self, compiled: &Compiled) -> Option<Vec<u8>> {
        if self.report.is_exhausted(compiled.place) {
            return None;
        }
        let mut output = Vec::new();
        match compiled.template.render_into(self.root, &mut output) {
            Err(error) => {
                let is_sensitive = self
                    .traced(compiled)
                    .is_some_and(|(_, result)| result.is_err_and(|error| error.is_sensitive()));
                self.report
                    .execution_error(compiled, &error, is_sensitive, self.address);
                None
            }
            Ok(report) => {
                for access in &report.unset {
                    self.report.unset(compiled, access);
                }
                let mut known = true;
                for access in &report.unknown {
                    known = false;
                    let place = compiled.place_of(&access.template);
                    self.unknown_read(place, access.offset, &access.path);
                }
                known.then_some(output)
            }
        }
    }

    /// The bytes of a template's text that come from sensitive data; all bytes if the template
    /// fails.
    pub(super) fn sensitive_bytes(&self, compiled: &Compiled) -> Vec<Range<usize>> {
        match self.traced(compiled) {
            Some((_, Ok(report))) => report.sensitive,
            Some((output, Err(_))) => std::iter::once(0..output.len()).collect(),
            None => Vec::new(),
        }
    }

    /// The result of a template with a trace of its sensitive data; `None` if it has none.
    fn traced(
        &self,
        compiled: &Compiled,
    ) -> Option<(Vec<u8>, Result<nstance_gotemplate::Report, ExecError>)> {
        let trace = compiled.trace(self.sensitive)?;
        let mut output = Vec::new();
        let result = compiled
            .template
            .render_traced(self.root, trace, &mut output);
        Some((output, result))
    }

    /// The text of a template as a string. Bytes that aren't UTF-8 are an error, since args and
    /// files can't contain them.
    pub fn string(&mut self, compiled: &Compiled) -> Option<String> {
        let bytes = self.bytes(compiled)?;
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) => {
                self.report.error(
                    compiled.place,
                    0,
                    format!(
                        "rendered to bytes that aren't UTF-8: {}",
                        error.utf8_error()
                    ),
                    None,
                    self.address,
                );
                None
            }
        }
    }

    /// Adds the error of a file of kind `erb`. One that reached a limit isn't evaluated for other
    /// instances: it would again, and take as long each time.
    pub(super) fn erb_error(
        &mut self,
        place: Place,
        offset: usize,
        error: &TemplateError,
        is_limit: bool,
        is_sensitive: bool,
    ) {
        let message = if is_sensitive && !has_names_only(&error.class) {
            format!("{}: {MASKED_REASON}", error.class)
        } else {
            error.to_string()
        };
        if is_limit {
            let key = (place.span(), offset, message.clone());
            self.report.exhausted.insert(place, key);
        }
        self.report
            .error(place, offset, message, None, self.address);
    }

    pub(super) fn unknown_read(&mut self, place: Place, offset: usize, path: &str) {
        if let Some(image) = path.strip_prefix(".Image.") {
            self.report.failed_image(image, self.address);
        } else if self.timing == Timing::BeforeCreation {
            self.report.error(
                place,
                offset,
                format!("`{path}` is known only once the instance exists"),
                Some(
                    "Read it in a file instead, or fix the address in args, where it is known when planning"
                        .to_owned(),
                ),
                self.address,
            );
        } else {
            self.unknown = true;
        }
    }
}

/// The key of an error: span, offset and summary.
pub(super) type ErrorKey = (Span, usize, String);

/// A finding about rendered text.
#[derive(Debug, Clone)]
pub(super) struct Note {
    pub(super) severity: Severity,
    /// With `--strict`, it is an error.
    pub(super) is_strict: bool,
    pub(super) summary: String,
    /// The text at its place.
    pub(super) label: String,
    pub(super) detail: Option<String>,
    pub(super) hint: Option<String>,
}

/// The findings of rendering many instances.
#[derive(Debug, Default)]
pub struct Report {
    unset: BTreeMap<(Span, usize, Arc<str>), Unset>,
    /// Errors, and warnings about rendered text.
    errors: BTreeMap<ErrorKey, Failure>,
    failed_images: BTreeMap<Arc<str>, (Address, usize)>,
    /// Templates that reached a limit, and their errors; they aren't executed again.
    exhausted: HashMap<Place, ErrorKey>,
    is_trial: bool,
}

/// A read of an unset var: its text, with the line and column in it.
#[derive(Debug)]
struct Unset {
    place: Place,
    position: (usize, usize),
}

/// The context of a failed execution.
#[derive(Debug)]
struct Circumstances {
    expression: String,
    found: Vec<String>,
    /// The template's call that led into a snippet.
    called: Option<(Place, usize)>,
    /// Line and column, if the configuration's place covers the whole text.
    position: Option<(usize, usize)>,
}

impl Circumstances {
    fn of(compiled: &Compiled, error: &ExecError) -> Self {
        let place = compiled.place_of(&error.template);
        let outermost = error.callers().last();
        Self {
            expression: error.expression().to_owned(),
            found: error.found().iter().map(shown).collect(),
            called: outermost
                .filter(|_| place != compiled.place)
                .map(|caller| (compiled.place_of(&caller.template), caller.offset)),
            position: matches!(place, Place::Behind(_)).then_some((error.line, error.column)),
        }
    }

    fn explain(
        &self,
        mut finding: Diagnostic,
        failure: &Failure,
        sources: &SourceMap,
    ) -> Diagnostic {
        let mut detail = format!("For {}", failure.first);
        if failure.count > 1 {
            detail.push_str(&format!(" and {} more", failure.count - 1));
        }
        if let Some((line, column)) = self.position {
            detail.push_str(&format!(", in line {line}, column {column}"));
        }
        if !self.expression.is_empty() {
            detail.push_str(&format!(", at <{}>", self.expression));
        }
        if !self.found.is_empty() {
            detail.push_str(&format!(": {}", self.found.join("; ")));
        }
        finding = finding.detail(detail);
        match self.called {
            Some((place, offset)) => finding.related(place.at(sources, offset), "called from here"),
            None => finding,
        }
    }
}

/// A description of a value that a template found; it includes the value only if it can't be a
/// secret.
fn shown(found: &Found) -> String {
    const TELLING: [&str; 5] = ["password", "secret", "token", "key", "credential"];
    let path = found.path.to_lowercase();
    let secret = TELLING.iter().any(|word| path.contains(word));
    match &found.value {
        // A map may contain secrets at any key.
        Some(value) if !secret && !value.contains("map[") => {
            format!("`{}` is {}, {value}", found.path, found.kind)
        }
        _ => format!("`{}` is {}", found.path, found.kind),
    }
}

#[derive(Debug)]
struct Failure {
    severity: Severity,
    /// With `--strict`, it is an error.
    is_strict: bool,
    execution: Option<Circumstances>,
    summary: Cow<'static, str>,
    /// The text at its place, if that is more than the summary.
    label: Option<String>,
    detail: Option<String>,
    place: Place,
    hint: Option<String>,
    first: Address,
    count: usize,
}

impl Report {
    /// A report for validation, which ignores texts that weren't fetched.
    pub fn of_trial() -> Self {
        Self {
            is_trial: true,
            ..Self::default()
        }
    }

    /// Whether texts that weren't fetched are ignored.
    pub(super) fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// Adds an error that a text can't be rendered.
    pub fn failure(
        &mut self,
        summary: &'static str,
        place: Place,
        message: String,
        hint: Option<String>,
        address: &Address,
    ) {
        self.error(place, 0, message, hint, address);
        for failure in self
            .errors
            .values_mut()
            .filter(|failure| failure.place == place)
        {
            failure.summary = summary.into();
        }
    }

    /// Adds an error at a place in a template.
    pub fn error(
        &mut self,
        place: Place,
        offset: usize,
        message: String,
        hint: Option<String>,
        address: &Address,
    ) {
        self.errors
            .entry((place.span(), offset, message))
            .and_modify(|failure| failure.count += 1)
            .or_insert_with(|| Failure {
                severity: Severity::Error,
                is_strict: false,
                summary: "a template can't be rendered".into(),
                label: None,
                detail: None,
                place,
                hint,
                first: address.clone(),
                count: 1,
                execution: None,
            });
    }

    /// Adds a finding about rendered text.
    pub(super) fn note(&mut self, place: Place, offset: usize, note: Note, address: &Address) {
        let key = format!("{}: {}", note.summary, note.label);
        self.errors
            .entry((place.span(), offset, key))
            .and_modify(|failure| failure.count += 1)
            .or_insert_with(|| Failure {
                severity: note.severity,
                is_strict: note.is_strict,
                execution: None,
                summary: note.summary.into(),
                label: Some(note.label),
                detail: note.detail,
                place,
                hint: note.hint,
                first: address.clone(),
                count: 1,
            });
    }

    fn execution_error(
        &mut self,
        compiled: &Compiled,
        error: &ExecError,
        is_sensitive: bool,
        address: &Address,
    ) {
        let place = compiled.place_of(&error.template);
        let (message, hint) = if is_sensitive {
            (MASKED_REASON.to_owned(), None)
        } else {
            (error.message.clone(), error.hint.clone())
        };
        let key = (place.span(), error.offset, message.clone());
        if matches!(error.kind(), ExecErrorKind::Limit(_)) {
            self.exhausted.insert(compiled.place, key.clone());
        }
        self.error(place, error.offset, message, hint, address);
        if let Some(failure) = self.errors.get_mut(&key)
            && failure.execution.is_none()
        {
            let mut execution = Circumstances::of(compiled, error);
            if is_sensitive {
                execution.found.clear();
            }
            failure.execution = Some(execution);
        }
    }

    /// Whether a template already reached a limit for another instance. It would again, and take as
    /// long each time.
    pub(super) fn is_exhausted(&mut self, place: Place) -> bool {
        let Some(key) = self.exhausted.get(&place) else {
            return false;
        };
        if let Some(failure) = self.errors.get_mut(key) {
            failure.count += 1;
        }
        true
    }

    fn unset(&mut self, compiled: &Compiled, access: &Access) {
        let place = compiled.place_of(&access.template);
        let key = (place.span(), access.offset, Arc::from(&*access.path));
        // `entry` rather than `insert`: the key nearly always exists.
        self.unset.entry(key).or_insert_with(|| Unset {
            place,
            position: compiled.line_and_column(&access.template, access.offset),
        });
    }

    fn failed_image(&mut self, image: &str, address: &Address) {
        self.failed_images
            .entry(image.into())
            .and_modify(|(_, count)| *count += 1)
            .or_insert_with(|| (address.clone(), 1));
    }

    /// The message of an error; `None` if there is none.
    pub(super) fn message(&self) -> Option<&str> {
        self.errors.keys().next().map(|(_, _, message)| &**message)
    }

    /// Adds the findings of another report.
    pub fn merge(&mut self, other: Self) {
        for (key, unset) in other.unset {
            self.unset.entry(key).or_insert(unset);
        }
        for (key, failure) in other.errors {
            self.errors
                .entry(key)
                .and_modify(|mine| mine.count += failure.count)
                .or_insert(failure);
        }
        for (image, (address, count)) in other.failed_images {
            self.failed_images
                .entry(image)
                .and_modify(|(_, mine)| *mine += count)
                .or_insert((address, count));
        }
    }

    /// Unresolved images that instances needed: name, first instance, number of instances.
    pub fn failed_images(&self) -> impl Iterator<Item = (&str, &Address, usize)> {
        self.failed_images
            .iter()
            .map(|(name, (first, count))| (&**name, first, *count))
    }

    /// The findings with their places. `vars` are the names of vars that are set.
    pub fn findings<'v>(
        &self,
        sources: &SourceMap,
        vars: &(impl Iterator<Item = &'v str> + Clone),
        strict: bool,
    ) -> Diagnostics {
        let mut findings = Diagnostics::default();
        for ((_, offset, message), failure) in &self.errors {
            let (place, label) = match &failure.label {
                Some(label) => (failure.place.word_at(sources, *offset), label),
                None => (failure.place.at(sources, *offset), message),
            };
            let severity = if strict && failure.is_strict {
                Severity::Error
            } else {
                failure.severity
            };
            let mut finding = Diagnostic::of(severity, &*failure.summary)
                .at(place, label.clone())
                .about(&failure.first);
            if let Some(execution) = &failure.execution {
                finding = execution.explain(finding, failure, sources);
            } else if let Some(detail) = &failure.detail {
                finding = finding.detail(detail.clone());
            } else if failure.count > 1 {
                finding = finding.detail(format!(
                    "also affects {} and {} more",
                    failure.first,
                    failure.count - 1
                ));
            }
            if let Some(hint) = &failure.hint {
                finding = finding.hint(hint.clone());
            }
            findings.push(finding);
        }
        for ((_, offset, path), Unset { place, position }) in &self.unset {
            let name = path.split('.').nth(2).unwrap_or(path);
            let is_property = path.starts_with(".Link.");
            let summary = match path.splitn(3, '.').nth(2) {
                _ if is_property => format!("the link has no property `{path}`"),
                // A computed key.
                _ if !path.starts_with('.') => format!("the var of `{path}` isn't set"),
                rest => format!("var `{}` isn't set", rest.unwrap_or(path)),
            };
            let mut finding = if strict {
                Diagnostic::error(summary)
            } else {
                Diagnostic::warning(summary)
            }
            .at(place.at(sources, *offset), "renders as nothing");
            finding = place.told(finding, *position);
            finding = match nearest(name, vars.clone()) {
                _ if is_property => finding.hint(format!(
                    "Add it to `provides` of the linked group, or test it first: \
                     {{{{ if {path} }}}}"
                )),
                Some(near) if near != name => finding.hint(format!("there is a var `{near}`")),
                _ => finding.hint(format!(
                    "Set it under `vars`, or test it first: {{{{ if {path} }}}}"
                )),
            };
            findings.push(finding);
        }
        findings
    }
}
