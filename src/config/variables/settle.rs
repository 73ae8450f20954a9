//! Determines and checks the value of each variable.
//!
//! In: declarations, given values. Out: [`Settled`]. Must not: evaluate the configuration.
//! `validate` evaluates conditions, which need a scope.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use nstance_hcl::{Kind, Type, Value, convert, parse_expression};

use super::declare::{Declaration, Declarations};
use super::given::{Candidate, Raw, Unread, candidates};
use super::{Given, Origin, Setting};
use crate::config::hcl::{Module, Places, Values, named};
use crate::config::source::{Entries as FileEntries, Language, SourceId, SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics, Label, nearest};

/// All variables with their values.
#[derive(Debug, Default)]
pub(in crate::config) struct Settled {
    pub(in crate::config) values: Values,
    /// Where each value was given, unless it is sensitive.
    pub(super) places: BTreeMap<Arc<str>, Span>,
    pub(super) origins: BTreeMap<Arc<str>, Origin>,
    /// Where no variables are declared: what is to be set in top-level `vars`.
    pub(in crate::config) overrides: Vec<Override>,
    /// Variables that have no value because none is given, and what to say about each.
    pub(in crate::config) missing: BTreeMap<Arc<str>, Diagnostic>,
    /// Texts of sensitive values, used or not.
    pub(in crate::config) texts: BTreeSet<Arc<str>>,
}

/// A value for a name of top-level `vars`.
#[derive(Debug)]
pub(in crate::config) struct Override {
    pub(in crate::config) name: Arc<str>,
    pub(in crate::config) value: Value,
    /// Where it is given.
    pub(in crate::config) place: Span,
    pub(in crate::config) origin: Origin,
}

impl Settled {
    /// Protects the invalid parts of var-files from being shown, if they may be sensitive.
    fn guard(&mut self, declarations: &Declarations, unread: Unread, sources: &mut SourceMap) {
        let declared = &declarations.variables;
        if !declared.values().any(Declaration::is_sensitive) {
            return;
        }
        let may_be_secret =
            |name: &Arc<str>| declared.get(name).is_none_or(Declaration::is_sensitive);
        for file in unread.files {
            let mut entries = FileEntries::default();
            for (name, span) in unread
                .entries
                .iter()
                .filter(|(_, span)| span.source == file)
            {
                if may_be_secret(name) {
                    entries.closed.push(*span);
                } else {
                    entries.open.push(*span);
                }
            }
            sources.guard(file, entries);
        }
        let values = unread.values.into_iter();
        let values = values.filter_map(|(name, text)| may_be_secret(&name).then_some(text));
        for text in unread.texts.into_iter().chain(values) {
            let words = words(&text).filter(|word| !declared.contains_key(*word));
            self.texts.extend(words.map(Arc::from));
        }
    }

    /// Records all values given to a sensitive variable.
    fn note_secret(&mut self, declaration: &Declaration, candidate: Option<&Candidate>) {
        if let Some((value, _)) = &declaration.default {
            self.note_texts(value);
        }
        self.texts.extend(declaration.hidden.clone());
        match candidate.map(|candidate| &candidate.raw) {
            Some(Raw::Value(value, _)) => self.note_texts(value),
            Some(Raw::Text(text)) => {
                self.texts.insert(Arc::clone(text));
                // If it is written as an expression, messages may quote parts of it.
                if !declaration
                    .of
                    .as_ref()
                    .is_none_or(|(of, _)| of.is_primitive())
                {
                    self.texts.extend(words(text).map(Arc::from));
                }
            }
            None => {}
        }
    }

    fn note_texts(&mut self, value: &Value) {
        match &value.kind {
            Kind::Null(_) | Kind::Bool(_) => {}
            Kind::Number(number) => {
                self.texts.insert(number.to_string().into());
            }
            Kind::String(text) => {
                self.texts.insert(Arc::clone(text));
            }
            Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements) => {
                elements.iter().for_each(|element| self.note_texts(element));
            }
            Kind::Object(entries) | Kind::Map(_, entries) => {
                entries.values().for_each(|value| self.note_texts(value));
            }
        }
    }
}

/// The words of a text that messages may quote.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '"' | '\'' | '=' | ',' | '[' | ']' | '{' | '}' | '(' | ')'
            )
    })
    .filter(|word| !word.is_empty())
}

/// Determines the values; reports missing, unknown and invalid ones.
pub(in crate::config) fn settle(
    declarations: &Declarations,
    given: &Given,
    working_dir: &Path,
    sources: &mut SourceMap,
    findings: &mut Diagnostics,
) -> Settled {
    let mut unread = Unread::default();
    let before = findings.len();
    let mut candidates = candidates(given, working_dir, sources, findings, &mut unread);
    mask_words(findings.iter_mut().skip(before), declarations, sources);
    let mut settled = Settled::default();
    let broken: HashSet<Arc<str>> = unread
        .values
        .iter()
        .map(|(name, _)| Arc::clone(name))
        .collect();
    let is_lacking = unread.is_lacking;
    settled.guard(declarations, unread, sources);
    if declarations.is_empty() {
        settled.overrides = candidates
            .into_iter()
            .map(|(name, candidate)| settled_override(name, candidate, sources))
            .collect();
        return settled;
    }
    for (name, declaration) in &declarations.variables {
        let candidate = candidates.remove(name);
        if declaration.is_sensitive() {
            settled.note_secret(declaration, candidate.as_ref());
        }
        let value = settled_value(
            name,
            declaration,
            candidate,
            &mut settled,
            sources,
            findings,
        );
        settled.values.insert(Arc::clone(name), value);
    }
    // A variable isn't missing if its value failed to parse.
    settled
        .missing
        .retain(|name, _| !is_lacking && !broken.contains(name));
    for (name, candidate) in candidates {
        unknown(
            &name,
            &candidate,
            declarations,
            &mut settled.missing,
            sources,
            findings,
        );
    }
    settled
}

/// A value for top-level `vars`: text as it is.
fn settled_override(name: Arc<str>, candidate: Candidate, sources: &mut SourceMap) -> Override {
    let origin = candidate.origin;
    let (value, place) = match candidate.raw {
        Raw::Text(text) => {
            let source = sources.add_value(shown(&name, origin), Arc::clone(&text));
            let place = Span::new(source, 0, text.len());
            (Value::string(text), place)
        }
        Raw::Value(value, place) => (value, place),
    };
    Override {
        name,
        value,
        place,
        origin,
    }
}

/// The name of a value's origin in messages.
fn shown(name: &str, origin: Origin) -> String {
    match origin {
        Origin::Environment => format!("NSTANCE_VAR_{name}"),
        _ => format!("--var {name}"),
    }
}

/// Reports a value for an undeclared variable. The variable that was probably meant isn't reported
/// as missing.
fn unknown(
    name: &str,
    candidate: &Candidate,
    declarations: &Declarations,
    missing: &mut BTreeMap<Arc<str>, Diagnostic>,
    sources: &mut SourceMap,
    findings: &mut Diagnostics,
) {
    let names = declarations.variables.keys().map(AsRef::as_ref);
    let near = nearest(name, names);
    let summary = format!("there is no variable `{name}`");
    let finding = match candidate.origin {
        Origin::Environment | Origin::Default(_) => return,
        Origin::File(place) if near.is_some_and(|near| missing.contains_key(near)) => {
            Diagnostic::error(summary).at(place, "nothing declares it")
        }
        Origin::File(place) => {
            Diagnostic::warning(summary).at(place, "nothing declares it, so it has no effect")
        }
        Origin::CommandLine => {
            let source = sources.add_value("--var", name);
            let place = Span::new(source, 0, name.len());
            Diagnostic::error(summary).at(place, "nothing declares it")
        }
    };
    near.and_then(|near| missing.remove(near));
    findings.push(match near {
        Some(near) => finding.hint(format!("did you mean `{near}`?")),
        None => finding.hint(format!(
            "the configuration declares {}",
            listed(declarations)
        )),
    });
}

fn listed(declarations: &Declarations) -> String {
    let names = declarations.variables.keys().take(8);
    let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if declarations.variables.len() > names.len() {
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// The value of a variable; on failure reports the error and returns `None`.
fn settled_value(
    name: &Arc<str>,
    declaration: &Declaration,
    candidate: Option<Candidate>,
    settled: &mut Settled,
    sources: &mut SourceMap,
    findings: &mut Diagnostics,
) -> Option<Value> {
    let any = Type::Any;
    let of = declaration.of.as_ref().map_or(&any, |(of, _)| of);
    // Check the default's type, even if another value is used.
    let default = declaration.default.as_ref().and_then(|(value, place)| {
        let origin = Origin::Default(*place);
        let converted = converted(name, declaration, value, of, (*place, origin), findings)?;
        Some((converted, *place))
    });
    if let Some((value, place)) = &default
        && value.is_null()
        && !declaration.is_nullable()
    {
        findings.push(
            Diagnostic::error(format!("the default of variable `{name}` is null"))
                .at(*place, "`nullable` is false")
                .hint("leave `default` out where a value must be given"),
        );
        return None;
    }
    let (value, place, origin) = match candidate {
        None => {
            let Some((value, place)) = default else {
                if declaration.default.is_none() && !declaration.broken {
                    let finding = missing(name, declaration, of);
                    settled.missing.insert(Arc::clone(name), finding);
                }
                return None;
            };
            (value, place, Origin::Default(place))
        }
        Some(candidate) => {
            let (value, place) = match candidate.raw {
                Raw::Value(value, name) => {
                    let place = written(&value).unwrap_or(name);
                    (value, place)
                }
                Raw::Text(text) => {
                    let title = shown(name, candidate.origin);
                    let mut found = Diagnostics::default();
                    let value = text_value(&title, &text, declaration, of, sources, &mut found);
                    if declaration.is_sensitive() && !found.is_empty() {
                        // The errors may quote the text, which may be sensitive.
                        findings.push(
                            Diagnostic::error(format!("variable `{name}` must be `{of}`"))
                                .at(
                                    declaration.name_span,
                                    format!("what {title} holds can't be read"),
                                )
                                .hint(how_it_is_written(of)),
                        );
                    } else {
                        findings.extend(found);
                    }
                    value?
                }
            };
            let value = converted(
                name,
                declaration,
                &value,
                of,
                (place, candidate.origin),
                findings,
            )?;
            match (value.is_null() && !declaration.is_nullable(), default) {
                (false, _) => (value, place, candidate.origin),
                (true, Some((value, place))) => (value, place, Origin::Default(place)),
                (true, None) => {
                    findings.push(
                        Diagnostic::error(format!("variable `{name}` can't be null"))
                            .at(place, "this is null")
                            .related(declaration.name_span, "`nullable` is false here"),
                    );
                    return None;
                }
            }
        }
    };
    settled.origins.insert(Arc::clone(name), origin);
    if !declaration.is_sensitive() {
        settled.places.insert(Arc::clone(name), place);
    }
    Some(value.or_sensitive(declaration.is_sensitive()))
}

/// The place of a value from a file.
fn written(value: &Value) -> Option<Span> {
    let span = value.span?;
    let source = SourceId(span.file);
    Some(Span::new(source, span.start as usize, span.end as usize))
}

/// Interprets text as Terraform does: literally for a string, else as an expression.
///
/// Fails if the expression is invalid; errors are reported.
fn text_value(
    title: &str,
    text: &Arc<str>,
    declaration: &Declaration,
    of: &Type,
    sources: &mut SourceMap,
    findings: &mut Diagnostics,
) -> Option<(Value, Span)> {
    let literal = of.is_primitive() || declaration.of.is_none();
    if literal {
        let source = sources.add_value(title, Arc::clone(text));
        let span = Span::new(source, 0, text.len());
        let value = Value::string(Arc::clone(text)).with_span(named(span));
        return Some((value, span));
    }
    let source = sources.add_expression(title, Arc::clone(text));
    let span = Span::new(source, 0, text.len());
    let places = Places::default();
    let mut reading = super::declare::Reading {
        sources,
        places: &places,
        findings,
    };
    let value = match parse_expression(text, source.0) {
        Ok(expression) => reading.constant(&expression),
        Err(error) => {
            findings.push(places.finding(sources, &error));
            None
        }
    };
    for finding in findings.iter_mut() {
        finding.hints.push(how_it_is_written(of));
    }
    value.map(|value| (value, span))
}

fn how_it_is_written(of: &Type) -> String {
    format!(
        "this variable is `{of}`, so its value is written as in HCL, such as {}",
        example(of)
    )
}

fn example(of: &Type) -> &'static str {
    match of {
        Type::List(_) | Type::Set(_) | Type::Tuple(_) => "`[\"a\", \"b\"]`",
        Type::Map(_) | Type::Object(_) => "`{ key = \"value\" }`",
        _ => "`\"text\"`",
    }
}

/// Converts a value to its type; `place` is its place, unless it is sensitive.
///
/// Fails if it can't be converted; errors are reported.
fn converted(
    name: &str,
    declaration: &Declaration,
    value: &Value,
    of: &Type,
    (place, origin): (Span, Origin),
    findings: &mut Diagnostics,
) -> Option<Value> {
    let error = match convert(value, of) {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    let finding = Diagnostic::error(format!("variable `{name}` must be `{of}`"));
    let finding = if declaration.is_sensitive() {
        let finding = match origin {
            // Only the part of the line before the value is shown, and no line within the value.
            Origin::File(name) => finding.at(name, "the value that it is given here isn't"),
            Origin::Default(_) => finding.at(declaration.name_span, "its default isn't"),
            Origin::Environment | Origin::CommandLine => finding.at(
                declaration.name_span,
                format!("the value of {} isn't", shown(name, origin)),
            ),
        };
        finding.detail(error.to_string())
    } else {
        finding.at(place, error.to_string())
    };
    // In all other cases the finding points to the declaration already.
    let is_elsewhere = !declaration.is_sensitive() || matches!(origin, Origin::File(_));
    findings.push(match &declaration.of {
        Some((_, written)) if is_elsewhere => {
            finding.related(*written, "its type is declared here")
        }
        _ => finding,
    });
    None
}

fn missing(name: &str, declaration: &Declaration, of: &Type) -> Diagnostic {
    let (word, assignment) = match of {
        Type::List(_) | Type::Set(_) | Type::Tuple(_) | Type::Map(_) | Type::Object(_) => {
            (format!("'{name}=…'"), format!("{name} = …"))
        }
        Type::Number | Type::Bool => (format!("{name}=…"), format!("{name} = …")),
        Type::String | Type::Any => (format!("{name}=…"), format!("{name} = \"…\"")),
    };
    let finding = Diagnostic::error(format!("variable `{name}` has no value"))
        .at(
            declaration.name_span,
            "it has no default, so one must be given",
        )
        .hint(format!(
            "give it by `--var {word}`, by `NSTANCE_VAR_{name}` in the environment, or as \
             `{assignment}` in a file for `--var-file`"
        ));
    match &declaration.description {
        Some(description) => finding.detail(description.to_string()),
        None => finding,
    }
}

impl Settled {
    /// The settings of all variables, for display.
    pub(in crate::config) fn settings(
        &self,
        declarations: &Declarations,
        module: &Module<'_>,
    ) -> Vec<Setting> {
        let setting = |(name, declaration): (&Arc<str>, &Declaration)| {
            let value = self.values.get(name)?.as_ref()?;
            let hidden = value.is_sensitive_within();
            let json = || {
                let node = module.node(value, declaration.name_span, false);
                node.ok().map(|node| node.to_json())
            };
            Some(Setting {
                name: Arc::clone(name),
                declared: Some(declaration.name_span),
                description: declaration.description.clone(),
                of: declaration.of.as_ref().map(|(of, _)| of.to_string()),
                sensitive: hidden,
                value: if hidden { None } else { json() },
                origin: *self.origins.get(name)?,
            })
        };
        declarations.variables.iter().filter_map(setting).collect()
    }

    /// Registers the texts within sensitive values with the module, before expressions derive
    /// others from them.
    pub(in crate::config) fn keep_secrets(&self, declarations: &Declarations, module: &Module<'_>) {
        for (name, declaration) in &declarations.variables {
            if let Some(Some(value)) = self.values.get(name)
                && value.is_sensitive_within()
            {
                // Called only for its secrets.
                let _ = module.node(value, declaration.name_span, false);
            }
        }
    }
}

/// Masks the words of findings about YAML var-files, except on lines of variables that aren't
/// sensitive.
fn mask_words<'f>(
    findings: impl Iterator<Item = &'f mut Diagnostic>,
    declarations: &Declarations,
    sources: &SourceMap,
) {
    let declared = &declarations.variables;
    if !declared.values().any(Declaration::is_sensitive) {
        return;
    }
    for finding in findings {
        let Some(Label { span, text }) = &mut finding.label else {
            continue;
        };
        let source = sources.get(span.source);
        let start = source.text[..span.start as usize]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let name = source.text[start..].split(':').next().unwrap_or_default();
        let is_open = |declaration: &Declaration| !declaration.is_sensitive();
        if source.language != Language::Yaml || declared.get(name).is_some_and(is_open) {
            continue;
        }
        "a value in this file isn't written as it can be read".clone_into(&mut finding.summary);
        "(sensitive value)".clone_into(text);
        finding.detail = None;
        finding.hints = vec!["put it in quotes".to_owned()];
        finding.related.clear();
    }
}
