//! Findings of a run, as they are reported.
//!
//! In: what the stages found, and what became several or is used elsewhere. Out: the same, each
//! thing once, with the places where it matters. Must not: find anything.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::config::node::Alias;
use crate::config::source::{Language, SourceMap, Span};
use crate::diagnostic::{Conversion, Diagnostic, Label};

/// How many uses of a text are shown.
const MOST_USES: usize = 3;

/// The most findings that name the aliases which use their text.
const MOST_EXPLAINED: usize = 100;

/// Of findings about one place in a block with `for_each`, each instance has its own: the first
/// says it all.
pub(super) fn say_once(mut repeated: Vec<Span>, findings: &mut Vec<Diagnostic>) {
    if repeated.is_empty() {
        return;
    }
    repeated.sort();
    let within = |span: Span| {
        let next = repeated.partition_point(|block| *block <= span);
        next > 0 && {
            let block = repeated[next - 1];
            block.source == span.source && span.end <= block.end
        }
    };
    let mut seen = HashSet::new();
    findings.retain(|finding| match &finding.label {
        Some(label) if within(label.span) => {
            seen.insert((label.clone(), finding.severity, finding.hints.clone()))
        }
        _ => true,
    });
}

/// Adds where references use the text that a finding is about: it may be wrong there only.
pub(super) fn name_aliases(aliases: &[Alias], sources: &SourceMap, findings: &mut [Diagnostic]) {
    if aliases.is_empty() {
        return;
    }
    for finding in findings.iter_mut().take(MOST_EXPLAINED) {
        let Some(place) = finding.label.as_ref().map(|label| label.span) else {
            continue;
        };
        let uses = aliases.iter().filter(|alias| {
            let target = alias.target;
            target.source == place.source && target.start <= place.start && place.end <= target.end
        });
        let mut seen: Vec<Span> = Vec::new();
        for alias in uses {
            // In a block with `for_each` the same place uses each of them.
            if !seen.contains(&alias.span) {
                seen.push(alias.span);
            }
            if seen.len() == MOST_USES {
                break;
            }
        }
        for span in &seen {
            let text = match sources.get(span.source).language {
                Language::Yaml => "it is used here too",
                _ => "it is used here",
            };
            finding.related.push(Label {
                span: *span,
                text: text.to_owned(),
            });
        }
        if let Some(used) = seen.first()
            && sources.get(used.source).language == Language::Hcl
        {
            convert_where_used(finding, sources.text(*used));
        }
    }
}

/// Of a value of the wrong type that is written elsewhere, maybe rightly, says how it is converted
/// where it is used.
fn convert_where_used(finding: &mut Diagnostic, used: &str) {
    let bare = used
        .strip_prefix("\"${")
        .and_then(|used| used.strip_suffix("}\""));
    let used = bare.unwrap_or(used).trim();
    let Some(conversion) = finding.conversion else {
        return;
    };
    let of = match conversion {
        Conversion::String => "string",
        Conversion::Bool => "bool",
        Conversion::Number => "number",
    };
    let name = used.strip_prefix("var.");
    let is_variable = name.is_some_and(|name| !name.contains(['.', '[', ' ']));
    let mut hint = format!("write `to{of}({used})` where it is used");
    if is_variable {
        let _ = write!(hint, ", or give the variable `type = {of}`");
    }
    finding.hints = vec![hint];
}
