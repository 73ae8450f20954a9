//! Strings of HCL: quotes, heredocs, templates.
//!
//! In: a text, with `${ }` in it where that means something. Out: the expression that gives it. May
//! not: evaluate anything.

use nstance_hcl::{
    Expression, ExpressionKind, Span, Template, TemplatePart, parse_expression, parse_template,
};

use super::hcl_expression::{plain, template_text};
use crate::config::variables::{Part, parts};

/// What ends a heredoc.
pub(super) const MARKER: &str = "EOT";

/// A text in quotes.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", inner(text))
}

/// What stands between the quotes.
pub(super) fn inner(text: &str) -> String {
    let mut quoted = String::new();
    for (index, character) in text.char_indices() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '$' | '%' if text[index + 1..].starts_with('{') => {
                quoted.push(character);
                quoted.push(character);
            }
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted
}

/// A string of another language in which `${ }` is an expression, as one of HCL; or what is wrong
/// with it.
pub(super) fn interpolated(text: &str) -> Result<Expression, String> {
    let found = parts(text);
    let mut made: Vec<TemplatePart> = Vec::new();
    let mut literal = String::new();
    for (_, part) in &found {
        match part {
            Part::Text(text) => literal.push_str(text),
            Part::Escape => literal.push_str("${"),
            Part::Open(_) => return Err("a `${` is never closed".to_owned()),
            Part::Expression(text) => {
                let parsed = parse_template(text, 0).map_err(|errors| {
                    errors
                        .first()
                        .map(|error| error.summary.clone())
                        .unwrap_or_default()
                })?;
                if !literal.is_empty() {
                    made.push(TemplatePart::Literal(std::mem::take(&mut literal).into()));
                }
                let alone = match parsed.kind {
                    ExpressionKind::Template(template) => template
                        .parts
                        .into_iter()
                        .find_map(|part| match part {
                            TemplatePart::Interpolation(inner) => Some(inner),
                            _ => None,
                        })
                        .ok_or_else(|| "this is no expression".to_owned())?,
                    _ => parsed,
                };
                made.push(TemplatePart::Interpolation(alone));
            }
        }
    }
    let kind = match (&mut made[..], literal) {
        ([], literal) => ExpressionKind::String(literal.into()),
        ([TemplatePart::Interpolation(alone)], literal)
            if literal.is_empty() && !is_written_out(alone) =>
        {
            return Ok(alone.clone());
        }
        (parts, literal) => {
            let passes = literal.is_empty() && parts.len() == 1;
            if !literal.is_empty() {
                made.push(TemplatePart::Literal(literal.into()));
            }
            ExpressionKind::Template(Box::new(Template {
                parts: made,
                heredoc: false,
                passes,
            }))
        }
    };
    let span = Span {
        file: 0,
        start: 0,
        end: 0,
    };
    Ok(Expression { kind, span })
}

/// Whether this is a list or an object that would be read part by part without `${ }` around it,
/// which keeps the order of keys.
fn is_written_out(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Tuple(_) | ExpressionKind::Object(_) => true,
        ExpressionKind::Parenthesis(inner) => is_written_out(inner),
        _ => false,
    }
}

/// A text of several lines as a heredoc, if one gives exactly this. `indent` is how far its
/// attribute is indented.
pub(super) fn heredoc(expression: &Expression, indent: usize) -> Option<String> {
    let escaped = match &expression.kind {
        ExpressionKind::String(text) => escaped(text),
        ExpressionKind::Template(_) => template_text(expression, &mut |_| None)?,
        _ => return None,
    };
    if !escaped.ends_with('\n') || escaped.contains('\r') || escaped.trim().is_empty() {
        return None;
    }
    let mut marker = MARKER.to_owned();
    while escaped.lines().any(|line| line.trim() == marker) {
        marker.push_str("_END");
    }
    let outer = "  ".repeat(indent);
    let mut indented = format!("<<-{marker}\n");
    for line in escaped.lines() {
        if !line.is_empty() {
            indented.push_str(&outer);
            indented.push_str("  ");
            indented.push_str(line);
        }
        indented.push('\n');
    }
    indented.push_str(&outer);
    indented.push_str(&marker);
    let flat = format!("<<{marker}\n{escaped}{marker}");
    let wanted = plain(expression);
    [indented, flat].into_iter().find(|heredoc| {
        // The parser has the last word.
        let parsed = parse_expression(&format!("{heredoc}\n"), 0);
        parsed.is_ok_and(|parsed| plain(&parsed) == wanted)
    })
}

/// As it stands in a template without quotes around it.
pub(super) fn escaped(text: &str) -> String {
    text.replace("${", "$${").replace("%{", "%%{")
}
