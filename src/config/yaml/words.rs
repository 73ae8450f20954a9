//! What is said of YAML that can be parsed and can't be taken, or could be misread.
//!
//! In: what was found, and where. Out: its [`Diagnostic`]. May not: look for anything.

use super::LARGEST_EXPANSION;
use super::scalars::Surprise;
use crate::config::jsonc::DEEPEST;
use crate::config::source::Span;
use crate::diagnostic::Diagnostic;

pub(super) fn twice(key: &str, span: Span, first: Span) -> Diagnostic {
    Diagnostic::error(format!("the key `{key}` stands twice in one object"))
        .at(span, "here again")
        .related(first, "it stands here first")
        .hint("remove or rename one of the two")
}

pub(super) fn too_deep(span: Span, label: &str) -> Diagnostic {
    Diagnostic::error(format!("the nesting is deeper than {DEEPEST} levels")).at(span, label)
}

pub(super) fn no_key(span: Span) -> Diagnostic {
    Diagnostic::error("a key is missing").at(span, "expected a key before this `:`")
}

pub(super) fn key_is_no_text(span: Span) -> Diagnostic {
    Diagnostic::error("a key isn't text")
        .at(span, "a list or an object can't be a key")
        .hint("text that starts with `[` or `{` stands in quotes")
}

pub(super) fn bad_merge(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("`<<` can't take this")
        .at(
            span,
            format!("expected an object, or a list of them, found {found}"),
        )
        .hint("`<<: *name` takes over the keys of the object that `&name` stands before")
}

pub(super) fn inside_itself(alias: &str, span: Span) -> Diagnostic {
    Diagnostic::error(format!("`{alias}` stands inside of what it stands for")).at(
        span,
        format!(
            "the value of `&{}` isn't complete here",
            alias.trim_start_matches('*')
        ),
    )
}

pub(super) fn too_many_copies(span: Span) -> Diagnostic {
    Diagnostic::error(format!(
        "aliases stand for more than {LARGEST_EXPANSION} values"
    ))
    .at(span, "with this one there are too many")
    .hint("aliases of aliases multiply; name what differs in `vars` or a template instead")
}

/// `{{ … }}` where YAML reads an object.
pub(super) fn bare_template(text: &str, span: Span) -> Diagnostic {
    let template = &text[span.start as usize..span.end as usize];
    let diagnostic = Diagnostic::error("a template stands without quotes")
        .at(span, "YAML takes `{` for the start of an object");
    // Its line is shown whole if a quoted copy of it can be: a slip of one line mostly.
    let before = &text[..span.start as usize];
    let alone = before
        .rsplit('\n')
        .next()
        .is_some_and(|line| line.trim_start().trim_start_matches(['-', ' ']).is_empty());
    let line = text[span.start as usize..].lines().next().unwrap_or("");
    let is_list_item = before.trim_end_matches(' ').ends_with('-');
    let control = template
        .trim_start_matches("{{-")
        .trim_start_matches("{{")
        .trim_start()
        .split([' ', '}', '-'])
        .next()
        .is_some_and(|word| {
            matches!(
                word,
                "if" | "else" | "end" | "range" | "with" | "define" | "block"
            )
        });
    if control || (alone && !is_list_item) {
        return diagnostic.hint(
            "templates are rendered after the configuration was read: they stand within texts, \
             never around keys",
        );
    }
    // Within brackets the value ends where the next begins, or the bracket is closed.
    let behind = line.get(template.len()..).unwrap_or("").trim_start();
    let quoted = if behind.starts_with([',', ']', '}']) {
        template
    } else {
        line.trim_end()
    };
    if quoted.contains(['"', '\\', '#'])
        || quoted.len() > 60
        || quoted.ends_with([',', ']', '}']) && !quoted.ends_with("}}")
    {
        return diagnostic
            .hint("put the whole value in single quotes: `'{{ … }}'`, or in a block after `|`");
    }
    diagnostic.hint(format!(
        "put the whole value in quotes: `\"{quoted}\"`, or in a block after `|`"
    ))
}

pub(super) fn unknown_tag(tag: &str, span: Span) -> Diagnostic {
    Diagnostic::error(format!("the tag `{tag}` isn't known"))
        .at(span, "tags of other programs mean nothing here")
        .hint(
            "text that starts with `!` stands in quotes; known tags are `!!str`, `!!int`, \
             `!!float`, `!!bool`, `!!null`, `!!seq`, `!!map`",
        )
}

pub(super) fn not_of_its_tag(text: &str, tag: &str, span: Span) -> Diagnostic {
    let what = match tag {
        "null" => "null",
        "bool" => "`true` or `false`",
        _ => "a number",
    };
    Diagnostic::error(format!("`{text}` isn't what its tag `!!{tag}` says"))
        .at(span, format!("expected {what}"))
}

pub(super) fn no_number(text: &str, why: &str, span: Span) -> Diagnostic {
    Diagnostic::error(format!("the number `{text}` can't be kept"))
        .at(span, why)
        .hint(format!("if it is text, put it in quotes: `\"{text}\"`"))
}

pub(super) fn key_is_text(text: &str, value: bool, span: Span) -> Diagnostic {
    Diagnostic::warning(format!("the key `{text}` is text, not a boolean"))
        .at(span, format!("YAML 1.1 would read `{value}`"))
        .hint(format!("say that it is meant so with quotes: `\"{text}\"`"))
}

/// A value that another YAML reads otherwise.
pub(super) fn surprise(text: &str, surprise: &Surprise, span: Span) -> Diagnostic {
    let quoted = format!("`\"{text}\"`");
    let say = |summary: &str, label: String, hint: String| {
        Diagnostic::warning(format!("`{text}` is {summary}"))
            .at(span, label)
            .hint(hint)
    };
    match surprise {
        Surprise::Bool(value) => say(
            "text, not a boolean",
            format!("YAML 1.1 would read `{value}`"),
            format!("write `{value}` for the boolean, {quoted} for the text"),
        ),
        Surprise::LeadingZero(Some(octal)) => {
            let (sign, digits) = match text.strip_prefix(['+', '-']) {
                Some(digits) => (&text[..1], digits),
                None => ("", text),
            };
            let bare = digits.trim_start_matches('0');
            let bare = if bare.is_empty() { "0" } else { bare };
            let sign = if sign == "-" { "-" } else { "" };
            let number = format!("{sign}{bare}");
            let octal_hint = match sign {
                "-" => String::new(),
                _ => format!("`0o{bare}` for the octal number, "),
            };
            say(
                &format!("the number {number}, not octal"),
                format!("YAML 1.1 would read {sign}{octal}"),
                format!(
                    "write {quoted} for the text (such as a file's mode), {octal_hint}\
                     `{number}` for this one"
                ),
            )
        }
        Surprise::LeadingZero(None) => say(
            "a number here, and loses its zeros",
            "YAML 1.1 would read text".to_owned(),
            format!("write {quoted} for the text, or the number without leading zeros"),
        ),
        Surprise::Digits(number) => say(
            "text, not a number",
            format!("YAML 1.1 would read {number}"),
            format!("write `{number}` for the number, {quoted} for the text"),
        ),
        Surprise::Sexagesimal => say(
            "text, not a number",
            "YAML 1.1 would read a number to the base of 60".to_owned(),
            format!("say that it is meant so with quotes: {quoted}"),
        ),
        Surprise::Date => say(
            "text, not a date",
            "YAML 1.1 would read a date".to_owned(),
            format!("say that it is meant so with quotes: {quoted}"),
        ),
    }
}
