//! HCL, laid out as `terraform fmt` does.
//!
//! In: text that the parser took. Out: the same tokens in the same lines: two spaces a level, `=`
//! and comments below each other in lines that follow each other, one empty line at most. May not:
//! touch a string, a heredoc or a comment.

use super::hcl_tokens::{Kind, Token, tokens};

/// Lays out a text.
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
    /// Whether an empty line stands before it.
    gap: bool,
    indent: usize,
    /// All of it, or what stands before the `=`.
    lead: String,
    /// From the `=`, where the whole value stands on the line.
    assign: Option<String>,
    pad_assign: usize,
    /// A comment behind anything else.
    comment: Option<&'t str>,
    pad_comment: usize,
    brackets: Vec<Bracket>,
}

/// A bracket of a line.
#[derive(Clone, Copy, PartialEq)]
enum Bracket {
    Opens,
    Closes,
    /// Closes, and only such stand before it.
    ClosesFirst,
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
    let tokens = tokens(text);
    let mut lines = Vec::new();
    let mut rest = &tokens[..];
    while let Some(first) = rest.first() {
        let length = 1 + rest[1..]
            .iter()
            .take_while(|token| token.newlines == 0)
            .count();
        let (tokens, others) = rest.split_at(length);
        rest = others;
        lines.push(line(tokens, first.newlines > 1));
    }
    lines
}

fn line<'t>(tokens: &[Token<'t>], gap: bool) -> Line<'t> {
    let mut line = Line {
        gap,
        ..Line::default()
    };
    let mut code = tokens;
    if let [before @ .., last] = tokens
        && !before.is_empty()
        && last.kind == Kind::Comment
        && !last.text.contains('\n')
    {
        code = before;
        line.comment = Some(last.text);
    }
    let mut depth = 0;
    let mut equals = None;
    for (index, token) in code.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => {
                depth += 1;
                line.brackets.push(Bracket::Opens);
            }
            ")" | "]" | "}" => {
                depth -= 1;
                let only = line.brackets.iter().all(|one| *one == Bracket::ClosesFirst);
                line.brackets.push(if only && index == line.brackets.len() {
                    Bracket::ClosesFirst
                } else {
                    Bracket::Closes
                });
            }
            "=" if index > 0 && depth == 0 && equals.is_none() => equals = Some(index),
            _ => {}
        }
    }
    // A value that goes on in other lines isn't aligned with others.
    match equals.filter(|_| depth == 0) {
        Some(equals) => {
            line.lead = joined(&code[..equals], None);
            line.assign = Some(joined(&code[equals..], code.get(equals.wrapping_sub(1))));
        }
        None => line.lead = joined(code, None),
    }
    line
}

/// Tokens of one line with the spaces that belong between them.
fn joined(tokens: &[Token<'_>], before: Option<&Token<'_>>) -> String {
    let mut text = String::new();
    let mut earlier = before;
    let mut previous: Option<&Token<'_>> = None;
    for token in tokens {
        if let Some(left) = previous {
            if is_spaced(earlier, left, token) {
                text.push(' ');
            }
            earlier = previous;
        }
        text.push_str(token.text);
        previous = Some(token);
    }
    text
}

/// Whether a space stands between `left` and `right`; `earlier` is what stands before `left`.
fn is_spaced(earlier: Option<&Token<'_>>, left: &Token<'_>, right: &Token<'_>) -> bool {
    if left.kind == Kind::Comment || right.kind == Kind::Comment {
        return true;
    }
    match (left.text, right.text) {
        ("{", "}") | (_, "," | ")" | "]" | "." | "...") | ("(" | "[" | "." | "!", _) => false,
        // `.*` and `[*]`
        ("*", _) if earlier.is_some_and(|earlier| earlier.text == "." || earlier.text == "[") => {
            !matches!(right.text, "[")
        }
        ("-", _) => earlier.is_some_and(ends_a_value),
        (_, "(" | "[") => !ends_a_value(left),
        _ => true,
    }
}

/// Whether a value may end with this token, so that what follows is an operator, a call or an
/// index.
fn ends_a_value(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Name => !matches!(token.text, "in" | "if" | "for"),
        Kind::Number | Kind::Text => true,
        Kind::Sign => matches!(token.text, ")" | "]" | "}"),
        Kind::Comment => false,
    }
}

/// A line stands as deep as there are lines that opened brackets still open where it begins.
fn indent(lines: &mut [Line<'_>]) {
    let mut open: Vec<usize> = Vec::new();
    for (number, line) in lines.iter_mut().enumerate() {
        let first = line
            .brackets
            .iter()
            .take_while(|one| **one == Bracket::ClosesFirst);
        open.truncate(open.len().saturating_sub(first.count()));
        line.indent = open.chunk_by(|a, b| a == b).count();
        for bracket in &line.brackets {
            match bracket {
                Bracket::Opens => open.push(number),
                Bracket::Closes => {
                    open.pop();
                }
                Bracket::ClosesFirst => {}
            }
        }
    }
}

/// Puts one cell of lines that follow each other into one column.
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

/// Columns.
fn width(text: &str) -> usize {
    text.chars().count()
}
