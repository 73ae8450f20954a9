//! Completes and deduplicates the findings of a run.
//!
//! In: findings of all stages, expanded blocks, and references. Out: each finding once, with the
//! places where its value is used. Must not: add findings.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::config::node::Alias;
use crate::config::source::{Language, SourceMap, Span};
use crate::diagnostic::{Conversion, Diagnostic, Label};

/// The maximum number of uses shown for a finding.
const MOST_USES: usize = 3;

/// The maximum number of findings for which uses are searched.
const MOST_EXPLAINED: usize = 100;

/// Removes duplicates: an error in a block with `for_each` occurs in each instance.
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

/// Adds the places that use the value of a finding, since the value may only be wrong there.
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
            // Each instance of a block with `for_each` uses it at the same place.
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

/// Changes the hint for a value of the wrong type to a conversion at the place where it is used,
/// since the value may be correct elsewhere.
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
