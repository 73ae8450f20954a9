//! Rewrites hints in the language of their file.
//!
//! In: a finding whose summary and hints show keys and values as JSON: `"size": 1`. Out: the
//! finding in the file's own language: `size: 1`, `size = 1`. Must not: change anything outside of
//! backticks.

use std::borrow::Cow;

use super::source::{Language, SourceMap};
use crate::diagnostic::Diagnostic;

/// A finding as it is reported: without what it says of sensitive values, in the language of the
/// file that it is about.
pub(crate) fn as_reported<'d>(finding: &'d Diagnostic, sources: &SourceMap) -> Cow<'d, Diagnostic> {
    match sources.mask(finding) {
        Some(masked) => Cow::Owned(localized(&masked, sources).into_owned()),
        None => localized(finding, sources),
    }
}

fn localized<'d>(finding: &'d Diagnostic, sources: &SourceMap) -> Cow<'d, Diagnostic> {
    let language = finding
        .label
        .as_ref()
        .map(|label| sources.get(label.span.source).language);
    let sign = match language {
        None | Some(Language::Jsonc | Language::Plain) => return Cow::Borrowed(finding),
        Some(Language::Yaml) => ": ",
        Some(Language::Hcl) => " = ",
    };
    let mut finding = finding.clone();
    finding.summary = translated(&finding.summary, sign);
    for hint in &mut finding.hints {
        *hint = translated(hint, sign);
    }
    Cow::Owned(finding)
}

/// Rewrites `"key": ` between backticks as `key` and `sign`.
fn translated(text: &str, sign: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            result.push('`');
        }
        if index % 2 == 0 {
            result.push_str(part);
        } else {
            keys(part, sign, &mut result);
        }
    }
    result
}

fn keys(code: &str, sign: &str, result: &mut String) {
    let mut rest = code;
    while let Some(open) = rest.find('"') {
        let inner = &rest[open + 1..];
        let length = inner
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
            .unwrap_or(inner.len());
        result.push_str(&rest[..open]);
        match inner[length..].strip_prefix("\": ") {
            Some(behind) if length > 0 => {
                result.push_str(&inner[..length]);
                result.push_str(sign);
                rest = behind;
            }
            _ => {
                // Skip the whole string, so that its closing quote isn't read as an opening one.
                let end = inner.find('"').map_or(rest.len(), |at| open + at + 2);
                result.push_str(&rest[open..end]);
                rest = &rest[end..];
            }
        }
    }
    result.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_the_language_has_them() {
        for (json, hcl, yaml) in [
            ("say `\"size\": 1`", "say `size = 1`", "say `size: 1`"),
            (
                "`{\"name\": \"a: b\", \"values\": [\"x\"]}`",
                "`{name = \"a: b\", values = [\"x\"]}`",
                "`{name: \"a: b\", values: [\"x\"]}`",
            ),
            ("\"size\": 1", "\"size\": 1", "\"size\": 1"),
            ("`\"a`, `\"b\": …`", "`\"a`, `b = …`", "`\"a`, `b: …`"),
            ("`[\"a\"]`", "`[\"a\"]`", "`[\"a\"]`"),
        ] {
            assert_eq!(translated(json, " = "), hcl);
            assert_eq!(translated(json, ": "), yaml);
        }
    }
}
