//! The slips that people make with lines, colons, quotes and brackets.
//!
//! In: a place that the parser complains of. Out: what is wrong in the lines around it. May not:
//! be asked about a text that the parser took.

use super::explain::{Context, template_end};
use super::lines::{key_of, value_of, without_dashes};
use super::words;
use crate::diagnostic::Diagnostic;

/// A `{{` at the start of a value, or in a value without quotes that was taken apart.
pub(super) fn bare_template(context: &Context<'_>) -> Option<Diagnostic> {
    let lines = context.lines();
    let start = lines.start(context.at);
    let line = lines.line(context.at);
    let at = line.find("{{")?;
    let before = line[..at].trim_start();
    let begins = before.is_empty() || before.ends_with(": ") || before.ends_with("- ");
    let in_text = !before.contains(['"', '\'']) && start + at < context.at;
    if !begins && !in_text {
        return None;
    }
    // A text that began before the template is quoted as a whole.
    let value = match line.find(": ") {
        Some(colon) if !begins && colon < at => {
            let value = &line[colon + 2..];
            start + colon + 2 + (value.len() - value.trim_start().len())
        }
        _ => start + at,
    };
    let end = template_end(context.text, start + at);
    if begins {
        return Some(words::bare_template(
            context.text,
            context.span(start + at, end),
        ));
    }
    Some(
        Diagnostic::error("a template stands without quotes")
            .at(
                context.span(value, lines.end(context.at)),
                "YAML takes a `: ` or ` #` in it for its own",
            )
            .hint("put the whole value in quotes: `'…'`, or in a block after `|`"),
    )
}

/// A tab between a `:` or `-` and what follows, or before it.
pub(super) fn tab(context: &Context<'_>) -> Option<Diagnostic> {
    if let Some(diagnostic) = tab_indentation(context) {
        return Some(diagnostic);
    }
    let lines = context.lines();
    let start = lines.start(context.at);
    let at = start + lines.line(context.at).find('\t')?;
    Some(
        Diagnostic::error("a tab stands where YAML wants a blank")
            .at(context.span(at, at + 1), "a tab")
            .hint("write a space instead"),
    )
}

/// A line that is indented with a tab: the one complained of, or the one behind it.
pub(super) fn tab_indentation(context: &Context<'_>) -> Option<Diagnostic> {
    let lines = context.lines();
    let start = lines.start(context.at);
    let next = start + lines.line(context.at).len() + 1;
    [start, next].into_iter().find_map(|start| {
        if start > context.text.len() {
            return None;
        }
        let (indent, text) = lines.indent(start);
        let at = start + context.text[start..start + indent].find('\t')?;
        (!lines.line(start).trim().is_empty()).then(|| {
            Diagnostic::error("a line is indented with a tab")
                .at(context.span(at, text.max(at + 1)), "a tab")
                .hint("YAML indents with spaces only; two for each level are usual")
        })
    })
}

/// A `: ` where no key can stand.
pub(super) fn second_colon(context: &Context<'_>) -> Diagnostic {
    let lines = context.lines();
    let at = context.at;
    let start = lines.start(at);
    let before = &context.text[start..at];
    if let Some(diagnostic) = missing_blank(context, before) {
        return diagnostic;
    }
    if let Some(value) = value_of(&format!("{before} ")).filter(|value| !value.is_empty()) {
        let length = before.trim_end().len();
        let value_start = start + length - value.len();
        let diagnostic = Diagnostic::error("a value without quotes holds a `: `").at(
            context.span(at, at + 1),
            "YAML takes this for the end of a second key",
        );
        if value.starts_with(['"', '\'', '[', '{']) {
            return diagnostic.hint("put the whole value in quotes, or each key on its own line");
        }
        let whole = &context.text[value_start..lines.end(at)];
        if whole.contains(['"', '\\']) || whole.len() > 60 {
            return diagnostic.hint("put the whole value in single quotes: `'…'`");
        }
        return diagnostic.hint(format!(
            "put the whole value in quotes: `\"{whole}\"`; or the second key on a line of its \
             own, indented"
        ));
    }
    let Some(above) = lines.above(at) else {
        return unknown_colon(context);
    };
    let line = lines.line(above);
    let (indent, text) = lines.indent(above);
    let (own_indent, _) = lines.indent(at);
    let key = key_of(lines.line(at)).unwrap_or("").trim();
    let key_start = start + lines.line(at).find(key).unwrap_or(0);
    if own_indent > indent
        && let (Some(parent), Some(value)) = (key_of(line), value_of(line))
        && !value.is_empty()
    {
        return Diagnostic::error(format!("`{key}` is indented too deep"))
            .at(
                context.span(key_start, key_start + key.len()),
                "a key can't be part of a text",
            )
            .related(
                context.span(text, lines.end(above)),
                format!("`{}` has a value already", parent.trim()),
            )
            .hint(format!(
                "align it with `{}`, or take that value away",
                parent.trim()
            ));
    }
    if key_of(line).is_none() {
        return no_colon_at(context, above);
    }
    unknown_colon(context)
}

fn unknown_colon(context: &Context<'_>) -> Diagnostic {
    Diagnostic::error("a key can't stand here")
        .at(
            context.span(context.at, context.at + 1),
            "this `:` ends no key that could stand here",
        )
        .hint("each key stands on its own line; text that holds `: ` stands in quotes")
}

/// `key:value` on the line above, or on this one before the place.
fn missing_blank(context: &Context<'_>, before: &str) -> Option<Diagnostic> {
    let lines = context.lines();
    let own = lines.start(context.at);
    let tight = |start: usize, line: &str| {
        let text = without_dashes(line);
        let colon = text.find(':')?;
        let (key, rest) = (&text[..colon], &text[colon + 1..]);
        let is_key = !key.is_empty()
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        let is_tight = rest.starts_with(|next: char| !next.is_whitespace() && next != '/');
        (is_key && is_tight).then(|| start + (line.len() - text.len()) + colon)
    };
    let above = lines.above(context.at);
    let at = tight(own, before)
        .or_else(|| above.and_then(|above| tight(above, lines.line(above).trim_end())))?;
    Some(
        Diagnostic::error("a blank is missing after a `:`")
            .at(context.span(at, at + 1), "without a blank this ends no key")
            .hint("write `key: value`"),
    )
}

/// A line that should be `key: value`, and has no `:`.
pub(super) fn no_colon(context: &Context<'_>) -> Diagnostic {
    let lines = context.lines();
    let start = lines.start(context.at);
    // The parser gives up behind the line in question, or at its end.
    let has_text = context.text[start..context.at].trim() != "";
    let at = if has_text {
        Some(start)
    } else {
        lines.above(context.at)
    };
    if let Some(diagnostic) = missing_blank(context, lines.line(start)) {
        return diagnostic;
    }
    no_colon_at(context, at.unwrap_or(start))
}

fn no_colon_at(context: &Context<'_>, at: usize) -> Diagnostic {
    let lines = context.lines();
    let (indent, text) = lines.indent(at);
    let line = lines.line(at).trim();
    let place = context.span(text, lines.end(at));
    if let Some(header) = lines.above(at).filter(|above| {
        let above = lines.line(*above).trim_end();
        above.ends_with(['|', '>']) || above.ends_with("|-") || above.ends_with(">-")
    }) && lines.indent(header).0 >= indent
    {
        return Diagnostic::error("the text of a block isn't indented")
            .at(place, "this line is a part of the text, or lacks a `:`")
            .related(
                context.span(lines.indent(header).1, lines.end(header)),
                "the block starts here",
            )
            .hint("indent its lines deeper than its key");
    }
    let diagnostic =
        Diagnostic::error("a `:` is missing after a key").at(place, "no key ends on this line");
    if let Some((key, value)) = line.split_once('=') {
        return diagnostic.hint(format!("write `{}: {}`", key.trim(), value.trim()));
    }
    if line.starts_with('-') {
        return diagnostic.hint("an item of a list is `- item`, with a blank");
    }
    if line.starts_with("//") || line.starts_with("/*") {
        return diagnostic.hint("comments start with `#`");
    }
    let word = line.split_whitespace().next().unwrap_or(line);
    diagnostic.hint(format!(
        "write `{word}: value`; a text over several lines stands in quotes, or in a block after `|`"
    ))
}

/// A line or word that fits to nothing that is open.
pub(super) fn misfit(context: &Context<'_>, in_list: bool) -> Diagnostic {
    let lines = context.lines();
    let at = context.at;
    let (indent, text) = lines.indent(at);
    let line = lines.line(at).trim();
    let place = context.span(text, lines.end(at));
    // An item's dash was read before the parser gave up.
    let is_first = at <= text || (line.starts_with('-') && context.text[text..at].trim() == "-");
    if !is_first {
        return Diagnostic::error("something follows the end of a value")
            .at(
                context.span(at, lines.end(at)),
                "the value ended before this",
            )
            .hint("put the whole value in quotes, or start a new line");
    }
    if let Some(block) = open_block(context) {
        return Diagnostic::error("a line of a block is indented too little")
            .at(place, "indented less than the block's first line")
            .related(
                context.span(lines.indent(block).1, lines.end(block)),
                "the block starts here",
            )
            .hint(
                "align it with the first line; if that is to be deeper, say so: `|2` is for two \
                 columns deeper than the key",
            );
    }
    let levels = levels(context, at);
    if levels.contains(&indent) {
        if line == "-" || line.starts_with("- ") {
            return Diagnostic::error("an item of a list stands among keys")
                .at(place, "expected `key: value`")
                .hint("give the list a key, and put its items below it");
        }
        if in_list {
            return Diagnostic::error("a key stands among the items of a list")
                .at(place, "expected `- item`")
                .hint("indent it under its item, or start it with `- `");
        }
    }
    let columns = levels
        .iter()
        .map(|level| (level + 1).to_string())
        .collect::<Vec<_>>()
        .join(", ");
    Diagnostic::error("a line's indentation fits to no line above")
        .at(place, format!("it starts in column {}", indent + 1))
        .hint(format!(
            "start it where the lines that it belongs to start; above are: column {columns}"
        ))
}

/// Where the lines that lead to `at` start: the levels that are open.
fn levels(context: &Context<'_>, at: usize) -> Vec<usize> {
    let lines = context.lines();
    let mut levels = Vec::new();
    let mut least = usize::MAX;
    let mut start = lines.start(at);
    // The lines right above tell; a whole file of one level needn't be walked through.
    for _ in 0..10_000 {
        let Some(above) = lines.above(start) else {
            break;
        };
        let (indent, _) = lines.indent(above);
        if indent < least {
            levels.push(indent);
            least = indent;
        }
        if indent == 0 {
            break;
        }
        start = above;
    }
    levels.reverse();
    levels
}

/// The line with the `|` of the block that the lines above belong to, if this line left it.
fn open_block(context: &Context<'_>) -> Option<usize> {
    let lines = context.lines();
    let (indent, _) = lines.indent(context.at);
    let mut start = lines.start(context.at);
    for _ in 0..10_000 {
        start = lines.above(start)?;
        let (above, _) = lines.indent(start);
        let header = lines.line(start).trim_end().trim_end_matches(['-', '+']);
        let is_header = header.ends_with(" |") || header.ends_with(" >");
        if is_header {
            return (above < indent).then_some(start);
        }
        if above <= indent {
            return None;
        }
    }
    None
}

/// Something behind the closing quote of a value.
pub(super) fn behind_quote(context: &Context<'_>) -> Diagnostic {
    let lines = context.lines();
    let at = context.at;
    let before = context.text[..at].trim_end();
    let rest = context.rest(at);
    let end = lines.end(at);
    if rest.starts_with(',') && context.open.is_none() {
        return Diagnostic::error("a comma follows a value")
            .at(
                context.span(at, at + 1),
                "keys on their own lines need none",
            )
            .hint("remove it");
    }
    if context.open.is_some() && rest.starts_with(['"', '\'', '{', '[']) {
        return Diagnostic::error("a comma is missing")
            .at(context.character(at), "expected `,` before this");
    }
    // A bracket within a key begins its value.
    let line = lines.line(at);
    if context.open.is_none() && key_of(line).is_some_and(|key| key.contains(['{', '['])) {
        let own = &line[..at - lines.start(at)];
        return missing_blank(context, own).unwrap_or_else(|| no_colon_at(context, at));
    }
    let diagnostic = Diagnostic::error("something follows a closing quote").at(
        context.span(at, end),
        "the value ended with the quote before this",
    );
    if before.ends_with('\'') {
        return diagnostic
            .hint("put the whole value in quotes; in single quotes a `'` is written twice: `''`");
    }
    diagnostic.hint("put the whole value in quotes; in double quotes a `\"` is written `\\\"`")
}

/// A list or object in brackets that doesn't go on as it should.
pub(super) fn in_brackets(context: &Context<'_>, info: &str) -> Diagnostic {
    let at = context.at;
    let rest = context.rest(at);
    let lines = context.lines();
    let open = context.open.unwrap_or_else(|| {
        context.text[..at]
            .rfind(['[', '{'])
            .unwrap_or(lines.start(at))
    });
    let opener = context.text[open..].chars().next().unwrap_or('[');
    let closer = if opener == '{' { '}' } else { ']' };
    let other = if opener == '{' { ']' } else { '}' };
    if rest.starts_with(other) {
        return Diagnostic::error(format!("a `{opener}` is closed by `{other}`"))
            .at(context.span(at, at + 1), format!("expected `{closer}`"))
            .related(
                context.span(open, open + 1),
                format!("this `{opener}` is open"),
            );
    }
    if rest.starts_with(',') {
        return Diagnostic::error("there is a comma too many")
            .at(context.span(at, at + 1), "expected a value before this")
            .hint("remove it, or write the value that is missing");
    }
    let own_line = lines.start(open) == lines.start(at);
    let (indent, _) = lines.indent(at);
    let left = indent <= lines.indent(open).0 && !own_line;
    if !rest.trim().is_empty() && left && is_closed(&context.text[open..]) {
        return Diagnostic::error("a line within brackets isn't indented far enough")
            .at(
                context.character(at),
                "expected more blanks than before the key",
            )
            .related(context.span(open, open + 1), format!("in this `{opener}`"))
            .hint(format!(
                "indent all lines up to the `{closer}` deeper than the key, the `{closer}` too"
            ));
    }
    if rest.trim().is_empty() || left {
        return Diagnostic::error(format!("a `{opener}` is never closed"))
            .at(context.span(open, open + 1), "this one is still open")
            .hint(format!(
                "add the missing `{closer}`; text that starts with `{opener}` stands in quotes"
            ));
    }
    let curly = context.text[lines.start(at)..lines.end(at)].find(['“', '”', '‘', '’']);
    if let Some(curly) = curly.map(|curly| lines.start(at) + curly) {
        return Diagnostic::error("a quote is a curly one")
            .at(context.character(curly), "to YAML this is a letter")
            .hint("write straight quotes: `\"` or `'`");
    }
    if info.contains("expected ',' or") {
        return Diagnostic::error("a comma is missing")
            .at(context.character(at), "expected `,` before this")
            .related(context.span(open, open + 1), format!("in this `{opener}`"));
    }
    Diagnostic::error(format!("this can't stand within `{opener}{closer}`"))
        .at(context.character(at), "expected a value")
        .related(context.span(open, open + 1), format!("in this `{opener}`"))
        .hint("text with characters that mean something to YAML stands in quotes")
}

/// Whether the bracket that a text begins with is closed somewhere, those within it and strings
/// left aside.
fn is_closed(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut before = ' ';
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '[' | '{' => depth += 1,
            ']' | '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return true;
                }
            }
            '#' if before.is_whitespace() => {
                characters.find(|character| *character == '\n');
            }
            // Elsewhere it is a character like any other.
            '"' | '\'' if before.is_whitespace() || matches!(before, '[' | '{' | ',' | ':') => {
                let mut escaped = false;
                characters.find(|next| {
                    let ends = *next == character && !escaped;
                    escaped = character == '"' && *next == '\\' && !escaped;
                    ends
                });
            }
            _ => {}
        }
        before = character;
    }
    false
}
