//! Formats HCL as `terraform fmt` does.
//!
//! In: text that the parser accepted. Out: the same tokens in the same lines: two spaces a level,
//! `=` and comments aligned in consecutive lines, labels quoted, one empty line at most. Must not:
//! change a string, a heredoc or a comment.

use unicode_segmentation::UnicodeSegmentation as _;

use super::hcl_tokens::{Kind, Token, tokens};

/// Formats a text.
pub(super) fn lay_out(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let newline = match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    };
    let mut lines = lines(text);
    indent(&mut lines);
    align(
        &mut lines,
        |line| line.assign.as_deref(),
        |line| line.indent * 2 + width(&line.lead),
        |line| &mut line.pad_assign,
    );
    align(
        &mut lines,
        |line| line.comment,
        Line::columns,
        |line| &mut line.pad_comment,
    );
    let mut out = String::with_capacity(text.len());
    for (index, line) in lines.iter().enumerate() {
        if line.gap && index > 0 {
            out.push_str(newline);
        }
        line.write(&mut out);
        out.push_str(newline);
    }
    out
}

/// One line, in up to three cells.
#[derive(Default)]
struct Line<'t> {
    /// Whether an empty line precedes it.
    gap: bool,
    indent: usize,
    /// The whole line, or the part before the `=`.
    lead: String,
    /// The part from the `=`, if the whole value is on this line.
    assign: Option<String>,
    pad_assign: usize,
    /// The trailing comment, from `#` or `//`.
    comment: Option<&'t str>,
    pad_comment: usize,
    /// How many more brackets it opens than it closes.
    opened: isize,
}

impl Line<'_> {
    fn columns(&self) -> usize {
        let assign = self
            .assign
            .as_deref()
            .map_or(0, |assign| 1 + self.pad_assign + width(assign));
        self.indent * 2 + width(&self.lead) + assign
    }

    fn write(&self, out: &mut String) {
        let spaces = |out: &mut String, count| out.extend(std::iter::repeat_n(' ', count));
        spaces(out, self.indent * 2);
        out.push_str(&self.lead);
        if let Some(assign) = &self.assign {
            spaces(out, 1 + self.pad_assign);
            out.push_str(assign);
        }
        if let Some(comment) = self.comment {
            spaces(out, 1 + self.pad_comment);
            out.push_str(comment);
        }
    }
}

fn lines(text: &str) -> Vec<Line<'_>> {
    tokens(text)
        .chunk_by_mut(|_, next| next.newlines == 0)
        .map(line)
        .collect()
}

fn line<'t>(tokens: &mut [Token<'t>]) -> Line<'t> {
    mark_labels(tokens);
    let (code, comment) = match tokens {
        [code @ .., last] if !code.is_empty() && ends_its_line(last) => (&*code, Some(last.text)),
        _ => (&*tokens, None),
    };
    // The value gets its own cell if its brackets are balanced.
    let is_equals = |token: &Token<'_>| token.kind == Kind::Sign && token.text == "=";
    let equals = (1..code.len())
        .find(|index| is_equals(&code[*index]))
        .filter(|index| opened(&code[*index..]) == 0 && !code.iter().any(is_broken_string));
    let (lead, assign) = code.split_at(equals.unwrap_or(code.len()));
    Line {
        gap: code.first().is_some_and(|first| first.newlines > 1),
        lead: joined(lead),
        assign: equals.map(|_| joined(assign)),
        comment,
        opened: opened(code),
        ..Line::default()
    }
}

/// Names between the type of a block and its `{` are labels.
fn mark_labels(tokens: &mut [Token<'_>]) {
    let mut words = tokens
        .iter_mut()
        .filter(|token| token.kind != Kind::Comment);
    if words.next().is_none_or(|first| first.kind != Kind::Name) {
        return;
    }
    let mut labels = Vec::new();
    for word in words {
        match word.kind {
            // Then this is part of a `for` expression.
            Kind::Name if matches!(word.text, "in" | "if") => return,
            Kind::Name => labels.push(word),
            Kind::Text => {}
            _ if word.text == "{" => {
                for label in labels {
                    label.kind = Kind::Label;
                }
                return;
            }
            _ => return,
        }
    }
}

fn ends_its_line(token: &Token<'_>) -> bool {
    token.kind == Kind::Comment && !token.text.starts_with("/*")
}

/// Whether this is a quoted string with a `${ }` that spans several lines.
fn is_broken_string(token: &Token<'_>) -> bool {
    token.kind == Kind::Text && token.text.starts_with('"') && token.text.contains('\n')
}

/// The number of opening minus closing brackets.
fn opened(tokens: &[Token<'_>]) -> isize {
    let change = |token: &Token<'_>| match token.text {
        "(" | "[" | "{" => 1,
        ")" | "]" | "}" => -1,
        _ => 0,
    };
    tokens.iter().map(change).sum()
}

/// Tokens of one line, with spaces between them.
fn joined(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    for (index, token) in tokens.iter().enumerate() {
        if let Some(left) = index.checked_sub(1) {
            let earlier = left.checked_sub(1).map(|earlier| &tokens[earlier]);
            if is_spaced(earlier, &tokens[left], token) {
                text.push(' ');
            }
        }
        match token.kind {
            Kind::Label => text.extend(["\"", token.text, "\""]),
            _ => text.push_str(token.text),
        }
    }
    text
}

/// Whether to put a space between `left` and `right`; `earlier` is the token before `left`.
///
/// Like Terraform, this mostly treats `if` and `in` as names.
fn is_spaced(earlier: Option<&Token<'_>>, left: &Token<'_>, right: &Token<'_>) -> bool {
    let is_name = |token: &Token<'_>| token.kind == Kind::Name;
    match (left.text, right.text) {
        (_, "(") if is_name(left) => false,
        (".", _) | (_, "." | "," | "...") | (")" | "]" | "}", "[") | ("{", "}") => false,
        (",", _) => true,
        ("in", "[") if earlier.is_some_and(is_name) => true,
        (_, "[") if is_name(left) || left.kind == Kind::Number => false,
        // After these, Terraform treats it as a subtraction.
        ("-", _) => earlier.is_some_and(|earlier| {
            earlier.kind != Kind::Sign || matches!(earlier.text, ")" | "]" | "}" | "=>")
        }),
        ("{", _) | (_, "}") => true,
        ("(" | "[" | "!", _) | (_, ")" | "]") => false,
        _ => true,
    }
}

/// Indents lines. A line that opens more brackets than it closes indents the following lines by one
/// level, however many it opens. That level ends with the line that closes the last of them.
fn indent(lines: &mut [Line<'_>]) {
    let mut levels: Vec<isize> = Vec::new();
    for line in lines {
        let mut closed = -line.opened;
        while closed > 0
            && let Some(open) = levels.pop()
        {
            if open > closed {
                levels.push(open - closed);
            }
            closed -= open;
        }
        line.indent = levels.len();
        if line.opened > 0 {
            levels.push(line.opened);
        }
    }
}

/// Aligns one cell of consecutive lines.
fn align<'t>(
    lines: &mut [Line<'t>],
    cell: impl for<'l> Fn(&'l Line<'t>) -> Option<&'l str>,
    columns: impl Fn(&Line<'t>) -> usize,
    pad: impl for<'l> Fn(&'l mut Line<'t>) -> &'l mut usize,
) {
    let mut start = 0;
    while start < lines.len() {
        let mut end = start;
        while end < lines.len() && cell(&lines[end]).is_some() && (end == start || !lines[end].gap)
        {
            end += 1;
        }
        let widest = lines[start..end].iter().map(&columns).max().unwrap_or(0);
        for line in &mut lines[start..end] {
            let columns = columns(line);
            *pad(line) = widest - columns;
        }
        start = end.max(start + 1);
    }
}

/// Width in columns, one per character.
fn width(text: &str) -> usize {
    text.graphemes(true).count()
}
