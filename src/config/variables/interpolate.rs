//! Interpolates `${var.x}` in strings of JSONC and YAML.
//!
//! In: a document, and a scope. Out: the document with replaced interpolations, whose places are
//! recorded to map positions. Must not: change Go's `{{ }}`.

use std::path::Path;
use std::sync::Arc;

use nstance_hcl::{Kind, Type, Value, convert, parse_template};

use crate::config::hcl::{At, Module};
use crate::config::node::{Node, NodeValue};
use crate::config::position;
use crate::config::source::{Hole, Language, SourceMap, Span};
use crate::diagnostic::{Diagnostic, Reported, Severity, all};

/// Replaces every interpolation.
///
/// Fails if one can't be evaluated; errors are reported.
pub(in crate::config) fn interpolate(
    node: &mut Node,
    module: &Module<'_>,
    folder: Option<&Arc<Path>>,
) -> Result<(), Reported> {
    let each = match &mut node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => return Ok(()),
        NodeValue::Array(items) => all(items
            .iter_mut()
            .map(|item| interpolate(item, module, folder))),
        NodeValue::Object(entries) => all(entries
            .iter_mut()
            .map(|entry| interpolate(&mut entry.value, module, folder))),
        NodeValue::String(text) => {
            if text.contains("${") {
                let text = Arc::clone(text);
                let at = At {
                    module,
                    folder,
                    each: None,
                };
                *node = replaced(&text, node.span, at)?;
            }
            return Ok(());
        }
    };
    each.map(|_| ())
}

/// The maximum number of unclosed `{{` to search an end for, since each search reads to the end.
const MOST_OPEN_ACTIONS: usize = 100;

/// The maximum number of failed interpolations per string.
const MOST_BROKEN: usize = 100;

/// A part of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'t> {
    /// Text as it is.
    Text(&'t str),
    /// `$${`, the escape of `${`.
    Escape,
    /// `${…}`
    Expression(&'t str),
    /// An unclosed `${`, and the rest of the string.
    Open(&'t str),
}

/// The parts of a string, each with its start. Anything between `{{` and `}}` is text.
fn parts(text: &str) -> Vec<(usize, Part<'_>)> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    let mut open_actions = 0;
    while let Some(found) = text[at..].find(['$', '{']) {
        at += found;
        let rest = &text[at..];
        let (length, part) = if rest.starts_with("$${") {
            (3, Part::Escape)
        } else if rest.starts_with("${") {
            match end_of_braces(rest, 1) {
                Some(end) => (end, Part::Expression(&rest[..end])),
                None => (rest.len(), Part::Open(rest)),
            }
        } else if rest.starts_with("{{") && open_actions < MOST_OPEN_ACTIONS {
            let length = end_of_action(rest);
            open_actions += usize::from(length.is_none());
            at += length.unwrap_or(2);
            continue;
        } else {
            at += 1;
            continue;
        };
        if start < at {
            parts.push((start, Part::Text(&text[start..at])));
        }
        parts.push((at, part));
        at += length;
        start = at;
    }
    if start < text.len() {
        parts.push((start, Part::Text(&text[start..])));
    }
    parts
}

/// The byte after the `}` that matches the `{` at `open`. Strings within may contain braces and
/// interpolations.
fn end_of_braces(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    // The open braces and strings.
    let mut stack = vec![b'{'];
    let mut at = open + 1;
    while at < bytes.len() {
        let in_string = stack.last() == Some(&b'"');
        match bytes[at] {
            b'\\' if in_string => at += 1,
            b'"' if in_string => {
                stack.pop();
            }
            b'$' | b'%' if in_string && bytes[at..].starts_with(&[bytes[at], bytes[at], b'{']) => {
                at += 2;
            }
            b'$' | b'%' if in_string && bytes.get(at + 1) == Some(&b'{') => {
                stack.push(b'{');
                at += 1;
            }
            b'"' if !in_string => stack.push(b'"'),
            b'{' if !in_string => stack.push(b'{'),
            b'}' if !in_string => {
                stack.pop();
                if stack.is_empty() {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The length of the template action at the start of the text, up to `}}`. Go strings and comments
/// within may contain `}}`.
fn end_of_action(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let inner = text[2..].trim_start_matches('-').trim_start();
    if inner.starts_with("/*") {
        let comment = text.find("*/")?;
        return Some(comment + text[comment..].find("}}")? + 2);
    }
    let mut at = 2;
    let mut quote = None;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => return Some(at + 2),
            (None, open @ (b'"' | b'`' | b'\'')) => quote = Some(open),
            (Some(b'"' | b'\''), b'\\') => at += 1,
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The string with replaced interpolations. A string that is a single interpolation becomes its
/// value.
///
/// Fails if an interpolation fails; errors are reported.
fn replaced(text: &str, span: Span, at: At<'_>) -> Result<Node, Reported> {
    let module = at.module;
    let parts = parts(text);
    if let [(start, Part::Expression(expression))] = &parts[..] {
        let value = evaluated(expression, *start, span, at).ok_or(Reported)?;
        return Ok(Node {
            span,
            ..module.node(&value, span, false)?
        });
    }
    let mut made = String::with_capacity(text.len());
    let mut holes = Vec::new();
    let mut sensitive = None;
    let mut broken = 0;
    for ((start, part), place) in parts.iter().zip(places(&parts, span, module)) {
        let before = made.len();
        match part {
            Part::Text(text) => {
                made.push_str(text);
                continue;
            }
            Part::Escape => made.push_str("${"),
            Part::Expression(expression) => {
                let value = evaluated(expression, *start, span, at);
                match value.and_then(|value| as_text(&value, place, module)) {
                    Some(value) => {
                        let text = value.as_str().unwrap_or_default();
                        if value.sensitive {
                            let ranges: &mut Vec<_> = sensitive.get_or_insert_default();
                            match value.sensitive_bytes() {
                                Some(bytes) => ranges.extend(
                                    bytes
                                        .iter()
                                        .map(|range| before + range.start..before + range.end),
                                ),
                                None => ranges.push(before..before + text.len()),
                            }
                        }
                        made.push_str(text);
                    }
                    None => broken += 1,
                }
            }
            Part::Open(_) => {
                module.find(
                    Diagnostic::error("a `${` is never closed")
                        .at(place, "its `}` is missing")
                        .hint("for a literal `${` write `$${`"),
                );
                broken += 1;
            }
        }
        if broken == MOST_BROKEN {
            break;
        }
        holes.push(Hole {
            start: place.start,
            end: place.end,
            length: (made.len() - before) as u32,
        });
    }
    if broken > 0 {
        return Err(Reported);
    }
    module.keep_holes(span, holes);
    let value = match sensitive {
        Some(bytes) => Value::partly_sensitive(made, bytes),
        None => Value::string(made),
    };
    Ok(Node {
        span,
        ..module.node(&value, span, false)?
    })
}

/// The place of each part; for an unclosed one, its `${`.
fn places(parts: &[(usize, Part<'_>)], span: Span, module: &Module<'_>) -> Vec<Span> {
    let ends = parts.iter().flat_map(|(start, part)| {
        let length = match part {
            Part::Text(text) | Part::Expression(text) => text.len(),
            Part::Escape => 3,
            Part::Open(_) => 2,
        };
        [*start, start + length - 1]
    });
    let offsets: Vec<usize> = ends.collect();
    position::several(module.texts(), span, &offsets)
        .chunks(2)
        .map(|ends| Span {
            end: ends[1].end,
            ..ends[0]
        })
        .collect()
}

fn evaluated(expression: &str, start: usize, span: Span, at: At<'_>) -> Option<Value> {
    let parsed = parse_template(expression, at.module.snippet(span, start));
    let parsed = parsed.map_err(|error| vec![error]);
    let value = parsed.and_then(|parsed| at.value(&parsed));
    match value {
        Ok(value) => Some(value),
        Err(errors) => {
            at.module.report(&errors);
            None
        }
    }
}

fn as_text(value: &Value, place: Span, module: &Module<'_>) -> Option<Value> {
    if let Ok(text) = convert(value, &Type::String)
        && text.as_str().is_some()
    {
        return Some(text);
    }
    let this = match &value.kind {
        // A null may have a type, which isn't part of the message.
        Kind::Null(_) => "null".to_owned(),
        _ => a(&value.type_of()),
    };
    module.find(
        Diagnostic::error("only strings, numbers and booleans go into a string")
            .at(place, format!("this is {this}"))
            .hint("a string that is nothing but one `${…}` keeps the value as it is"),
    );
    None
}

fn a(of: &Type) -> String {
    match of {
        Type::Any => "null".to_owned(),
        Type::Object(_) => "an object".to_owned(),
        other => format!("a {}", other.friendly_name()),
    }
}

/// In longer texts, a missing interpolation is an unlikely cause. In bytes.
const LONGEST: usize = 200;

/// Adds a hint to errors about texts with `${var.x}` that aren't interpolated.
pub(in crate::config) fn name_interpolations(sources: &SourceMap, findings: &mut [Diagnostic]) {
    for finding in findings {
        let Some(place) = finding.label.as_ref().map(|label| label.span) else {
            continue;
        };
        let text = sources.text(place);
        if finding.severity != Severity::Error
            || sources.get(place.source).language == Language::Hcl
            || text.len() > LONGEST
        {
            continue;
        }
        let mut parts = parts(text).into_iter();
        if parts.any(|(_, part)| matches!(part, Part::Expression(text) if text.contains("var."))) {
            finding.hints.insert(
                0,
                "no variable is declared, and without any `${…}` is text: declare it below `variables`"
                    .to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_templates_are_text() {
        use Part::{Escape, Expression, Open, Text};
        for (text, expected) in [
            ("", vec![]),
            ("a", vec![(0, Text("a"))]),
            ("${a}", vec![(0, Expression("${a}"))]),
            (
                "x${a}y$${b}",
                vec![
                    (0, Text("x")),
                    (1, Expression("${a}")),
                    (5, Text("y")),
                    (6, Escape),
                    (9, Text("b}")),
                ],
            ),
            ("{{ ${a} }}", vec![(0, Text("{{ ${a} }}"))]),
            (
                "{{ \"}}${a}\" }}${b}",
                vec![(0, Text("{{ \"}}${a}\" }}")), (14, Expression("${b}"))],
            ),
            (
                "{{/* }} ' ${a} */}}${b}",
                vec![(0, Text("{{/* }} ' ${a} */}}")), (19, Expression("${b}"))],
            ),
            // An unclosed action is plain text.
            ("{{ ${a}", vec![(0, Text("{{ ")), (3, Expression("${a}"))]),
            ("${\"}\"}", vec![(0, Expression("${\"}\"}"))]),
            (
                "${\"a${\"}\"}\"}b",
                vec![(0, Expression("${\"a${\"}\"}\"}")), (12, Text("b"))],
            ),
            ("${ {a = {}} }", vec![(0, Expression("${ {a = {}} }"))]),
            ("a${b", vec![(0, Text("a")), (1, Open("${b"))]),
            ("é$${", vec![(0, Text("é")), (2, Escape)]),
            ("$$", vec![(0, Text("$$"))]),
            ("%{ if }", vec![(0, Text("%{ if }"))]),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }
}
