//! What reading a var-file tells, where it may be a secret.
//!
//! In: findings about var-files, and what is declared. Out: the same, without words where they may
//! stem from a sensitive value: what YAML makes of a text without quotes is part of what is told. May
//! not: judge a value.

use super::declare::{Declaration, Declarations};
use crate::config::source::{Language, SourceMap};
use crate::diagnostic::{Diagnostic, Label};

/// Takes the words from what is said of YAML's var-files, but on lines of variables that may be shown.
pub(super) fn conceal_words<'f>(
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
