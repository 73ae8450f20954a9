//! Shows findings as text or JSON.
//!
//! In: [`Diagnostics`] and their source texts. Out: text with the lines concerned, or JSON. Must
//! not: print, or change findings.

use std::fmt::Write as _;

use codespan_reporting::diagnostic::{Diagnostic as Report, LabelStyle, Severity as Level};
use codespan_reporting::term::termcolor::Buffer;
use codespan_reporting::term::{self, Config};
use serde_json::{Value, json};

use super::excerpt::{Excerpts, Showable};
use crate::config::localize_hints::as_reported;
use crate::config::source::{Position, SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};

const CYAN: &str = "\u{1b}[0m\u{1b}[1m\u{1b}[36m";
const PLAIN: &str = "\u{1b}[0m";

/// The findings with their lines, separated by empty lines.
pub fn render(diagnostics: &Diagnostics, sources: &SourceMap, color: bool) -> String {
    let mut text = String::new();
    let mut known = Showable::default();
    for diagnostic in diagnostics {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&render_one(diagnostic, sources, &mut known, color));
    }
    text
}

fn render_one(
    diagnostic: &Diagnostic,
    sources: &SourceMap,
    known: &mut Showable,
    color: bool,
) -> String {
    let diagnostic = &*as_reported(diagnostic, sources);
    let labels: Vec<(LabelStyle, Span, &str)> = diagnostic
        .label
        .iter()
        .map(|label| (LabelStyle::Primary, label.span, &*label.text))
        .chain(
            diagnostic
                .related
                .iter()
                .map(|label| (LabelStyle::Secondary, label.span, &*label.text)),
        )
        .collect();
    let (excerpts, labels) = Excerpts::new(sources, &labels, known);
    let level = match diagnostic.severity {
        Severity::Error => Level::Error,
        Severity::Warning => Level::Warning,
    };
    let report = Report::new(level)
        .with_message(printable(&diagnostic.summary))
        .with_labels(labels);
    let mut buffer = if color {
        Buffer::ansi()
    } else {
        Buffer::no_color()
    };
    // Writing to memory can't fail, and the excerpts contain all labels.
    let written = term::emit_to_write_style(&mut buffer, &Config::default(), &excerpts, &report);
    debug_assert!(written.is_ok(), "{written:?}");
    let mut text = tightened(&String::from_utf8_lossy(buffer.as_slice()));
    if let Some(detail) = &diagnostic.detail {
        for line in detail.lines() {
            let _ = writeln!(text, "{}", printable(line));
        }
    }
    for hint in &diagnostic.hints {
        let hint = printable(hint);
        let _ = if color {
            writeln!(text, "{CYAN}hint{PLAIN}: {hint}")
        } else {
            writeln!(text, "hint: {hint}")
        };
    }
    text
}

/// Removes the frame's empty lines below the place and at the end.
fn tightened(report: &str) -> String {
    let mut text = String::with_capacity(report.len());
    let mut after_place = false;
    for line in report.lines() {
        let bare = without_colors(line);
        let bare = bare.trim();
        let empty = bare.is_empty() || (after_place && bare == "│");
        if !empty {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        after_place = bare.starts_with("┌─");
    }
    text
}

fn without_colors(line: &str) -> String {
    let mut bare = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        bare.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    bare.push_str(rest);
    bare
}

/// Makes control characters visible, since names in a configuration could otherwise control the
/// terminal.
pub(super) fn printable(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| {
            if c.is_control() {
                c.escape_default().to_string()
            } else {
                c.to_string()
            }
        })
        .collect()
}

/// Findings as the `diagnostics[]` of JSON output.
pub fn to_json(diagnostics: &Diagnostics, sources: &SourceMap) -> Value {
    diagnostics
        .iter()
        .map(|diagnostic| one_to_json(diagnostic, sources))
        .collect()
}

fn one_to_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let diagnostic = &*as_reported(diagnostic, sources);
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut detail: Vec<&str> = diagnostic
        .label
        .iter()
        .map(|label| &*label.text)
        .filter(|text| !text.is_empty())
        .collect();
    detail.extend(diagnostic.detail.as_deref());
    let mut value = json!({
        "severity": severity,
        "summary": diagnostic.summary,
        "detail": detail.join("\n"),
    });
    if let Some(address) = &diagnostic.address {
        value["address"] = json!(address);
    }
    if let Some(label) = &diagnostic.label {
        value["range"] = range(label.span, sources);
    }
    if !diagnostic.hints.is_empty() {
        value["hint"] = json!(diagnostic.hints.join("\n"));
    }
    value
}

pub(super) fn range(span: Span, sources: &SourceMap) -> Value {
    let (start, end) = sources.range(span);
    let place = |position: Position| json!({"line": position.line, "column": position.column, "byte": position.byte});
    json!({
        "filename": sources.get(span.source).name,
        "start": place(start),
        "end": place(end),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (Diagnostics, SourceMap) {
        let mut sources = SourceMap::default();
        let text = "{\n  \"template\": \"knc\",\n}\n";
        let id = sources.add("config.jsonc", text);
        let start = text.find("\"knc\"").unwrap();
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(
            Diagnostic::error("Template `knc` isn't defined")
                .at(Span::new(id, start, start + 5), "no template has this name")
                .detail("More of it")
                .hint("did you mean `knd`?")
                .about("default/web"),
        );
        (diagnostics, sources)
    }

    #[test]
    fn a_finding_shows_its_line_and_its_hint() {
        let (diagnostics, sources) = example();
        insta::assert_snapshot!(render(&diagnostics, &sources, false), @r#"
        error: Template `knc` isn't defined
          ┌─ config.jsonc:2:15
        2 │   "template": "knc",
          │               ^^^^^ no template has this name
        More of it
        hint: did you mean `knd`?
        "#);
        assert_eq!(
            without_colors(&render(&diagnostics, &sources, true)),
            render(&diagnostics, &sources, false)
        );
        assert_ne!(
            render(&diagnostics, &sources, true),
            render(&diagnostics, &sources, false)
        );
    }

    #[test]
    fn json_says_where_and_what_to_do() {
        let (diagnostics, sources) = example();
        assert_eq!(
            to_json(&diagnostics, &sources),
            json!([{
                "severity": "error",
                "summary": "Template `knc` isn't defined",
                "detail": "no template has this name\nMore of it",
                "address": "default/web",
                "range": {
                    "filename": "config.jsonc",
                    "start": {"line": 2, "column": 15, "byte": 16},
                    "end": {"line": 2, "column": 20, "byte": 21},
                },
                "hint": "did you mean `knd`?",
            }])
        );
    }

    #[test]
    fn a_finding_without_a_place_is_a_line() {
        let findings = Diagnostics::from(Diagnostic::warning("Nothing\u{1b}[2J here"));
        assert_eq!(
            render(&findings, &SourceMap::default(), false),
            "warning: Nothing\\u{1b}[2J here\n"
        );
    }
}
