//! Formats JSONC.
//!
//! In: text that the parser accepted. Out: the same tokens and comments: two spaces a level, one
//! item a line. A list or object on one line stays there if it fits. Must not: change a string, a
//! number or the words of a comment.

use super::WIDTH;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    Comma,
    Colon,
    Scalar,
    LineComment,
    BlockComment,
}

/// A token, and how many line breaks precede it.
#[derive(Clone, Copy)]
pub(super) struct Token<'t> {
    kind: Kind,
    pub(super) text: &'t str,
    newlines: usize,
}

impl Token<'_> {
    pub(super) fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::LineComment | Kind::BlockComment)
    }
}

/// What precedes a token.
enum Space {
    None,
    One,
    Line,
}

/// Formats a text.
pub(super) fn lay_out(text: &str) -> String {
    let mut tokens = tokens(text.strip_prefix('\u{feff}').unwrap_or(text));
    move_commas_before_comments(&mut tokens);
    let one_line = containers_on_one_line(&tokens);
    let trailing = trailing_comments(&tokens);
    let mut out = String::with_capacity(text.len());
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        depth -= usize::from(token.kind == Kind::Close);
        if let Some(left) = at.checked_sub(1).map(|left| tokens[left]) {
            match space(left, token, trailing[at]) {
                Space::None => {}
                Space::One => out.push(' '),
                Space::Line => {
                    out.push('\n');
                    if token.newlines > 1 && left.kind != Kind::Open && token.kind != Kind::Close {
                        out.push('\n');
                    }
                    indent(depth, &mut out);
                }
            }
        }
        if let Some(end) = one_line[at]
            && let Some(line) = joined(&tokens[at..=end], left_on_line(&out, &tokens, end))
        {
            out.push_str(&line);
            at = end + 1;
            continue;
        }
        write(token, depth, &mut out);
        depth += usize::from(token.kind == Kind::Open);
        at += 1;
    }
    out.push('\n');
    out
}

/// The columns left on the line for the container that ends with the token at `end`.
fn left_on_line(out: &str, tokens: &[Token<'_>], end: usize) -> usize {
    let line = out.rsplit('\n').next().unwrap_or_default();
    let comma = tokens
        .get(end + 1)
        .is_some_and(|next| next.kind == Kind::Comma);
    WIDTH.saturating_sub(line.chars().count() + usize::from(comma))
}

fn space(left: Token<'_>, right: Token<'_>, is_trailing: bool) -> Space {
    use Kind::{BlockComment, Close, Colon, Comma, LineComment, Open};
    match (left.kind, right.kind) {
        (LineComment, _) => Space::Line,
        (Open, Close) | (_, Comma | Colon) => Space::None,
        (_, LineComment | BlockComment) if right.newlines > 0 => Space::Line,
        (_, LineComment | BlockComment) if is_trailing => Space::One,
        (BlockComment, _) if right.newlines > 0 => Space::Line,
        (Open | Comma, _) | (_, Close) => Space::Line,
        _ => Space::One,
    }
}

fn write(token: Token<'_>, depth: usize, out: &mut String) {
    for (index, line) in token.text.lines().enumerate() {
        let bare = line.trim_start();
        match index {
            0 => out.push_str(line.trim_end()),
            // Lines that begin with a star move with their comment.
            _ if bare.starts_with('*') => {
                out.push('\n');
                indent(depth, out);
                out.push(' ');
                out.push_str(bare.trim_end());
            }
            _ => {
                out.push('\n');
                out.push_str(line.trim_end());
            }
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Tokens on one line; `None` if they need more than `most` columns.
fn joined(tokens: &[Token<'_>], most: usize) -> Option<String> {
    let mut line = String::new();
    let mut columns = 0;
    for (index, token) in tokens.iter().enumerate() {
        let follows = index > 0 && matches!(tokens[index - 1].kind, Kind::Comma | Kind::Colon);
        if follows && token.kind != Kind::Close {
            line.push(' ');
            columns += 1;
        }
        line.push_str(token.text);
        columns += token.text.chars().count();
        if columns > most {
            return None;
        }
    }
    Some(line)
}

/// For each opening bracket of a container without line breaks and comments: the index of its end.
fn containers_on_one_line(tokens: &[Token<'_>]) -> Vec<Option<usize>> {
    let mut ends = vec![None; tokens.len()];
    let mut open = Vec::new();
    let mut breaks = 0;
    for (at, token) in tokens.iter().enumerate() {
        breaks += usize::from(token.newlines > 0 || token.is_comment());
        match token.kind {
            Kind::Open => open.push((at, breaks)),
            Kind::Close => {
                if let Some((start, before)) = open.pop()
                    && (before == breaks || start + 1 == at)
                {
                    ends[start] = Some(at);
                }
            }
            _ => {}
        }
    }
    ends
}

/// Which tokens are comments that follow something on their line.
fn trailing_comments(tokens: &[Token<'_>]) -> Vec<bool> {
    let mut trailing = vec![false; tokens.len()];
    for at in (0..tokens.len()).rev() {
        let ends_line = || {
            tokens
                .get(at + 1)
                .is_none_or(|next| next.newlines > 0 || trailing[at + 1])
        };
        trailing[at] = match tokens[at].kind {
            Kind::LineComment => tokens[at].newlines == 0,
            Kind::BlockComment => tokens[at].newlines == 0 && ends_line(),
            _ => false,
        };
    }
    trailing
}

/// Moves a comma below its value's comments directly after the value.
fn move_commas_before_comments(tokens: &mut [Token<'_>]) {
    for at in 1..tokens.len() {
        let is_below = tokens[at].newlines > 0 || tokens[at - 1].kind == Kind::LineComment;
        if tokens[at].kind != Kind::Comma || !tokens[at - 1].is_comment() || !is_below {
            continue;
        }
        let comments = tokens[..at]
            .iter()
            .rev()
            .take_while(|token| token.is_comment());
        let first = at - comments.count();
        tokens[first..=at].rotate_right(1);
        tokens[first].newlines = 0;
        if let Some(next) = tokens.get_mut(at + 1) {
            next.newlines = next.newlines.max(1);
        }
    }
}

pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        let start = rest.trim_start();
        let newlines = rest[..rest.len() - start.len()].matches('\n').count();
        let Some(first) = start.bytes().next() else {
            return tokens;
        };
        let (kind, length) = match first {
            b'{' | b'[' => (Kind::Open, 1),
            b'}' | b']' => (Kind::Close, 1),
            b',' => (Kind::Comma, 1),
            b':' => (Kind::Colon, 1),
            b'"' => (Kind::Scalar, string_length(start)),
            b'/' if start.starts_with("/*") => {
                let end = start[2..].find("*/").map_or(start.len(), |end| end + 4);
                (Kind::BlockComment, end)
            }
            b'/' => (Kind::LineComment, start.find('\n').unwrap_or(start.len())),
            _ => {
                let is_end = |c: char| c.is_whitespace() || "{}[],:/\"".contains(c);
                (Kind::Scalar, start.find(is_end).unwrap_or(start.len()))
            }
        };
        let (text, behind) = start.split_at(length);
        tokens.push(Token {
            kind,
            text: text.trim_end(),
            newlines,
        });
        rest = behind;
    }
}

/// The length of a string in bytes, including quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
