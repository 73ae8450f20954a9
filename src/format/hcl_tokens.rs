//! Splits HCL into tokens for the formatter.
//!
//! In: text that the parser accepted. Out: its [`Token`]s; a string, a heredoc or a comment is one
//! token.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or keyword.
    Name,
    /// A block label written without quotes. The formatter sets this; the tokenizer returns `Name`.
    Label,
    /// A number.
    Number,
    /// A string, or a heredoc up to its marker.
    Text,
    /// A comment, from `#`, `//` or `/*`.
    Comment,
    /// An operator, a bracket or other punctuation.
    Sign,
}

/// A token and the line breaks before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'t> {
    /// What it is.
    pub(super) kind: Kind,
    /// Its text as written.
    pub(super) text: &'t str,
    /// The number of line breaks before it.
    pub(super) newlines: usize,
}

const SIGNS: [&str; 8] = ["...", "==", "!=", "<=", ">=", "&&", "||", "=>"];

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut newlines = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() {
            newlines += usize::from(byte == b'\n');
            at += 1;
            continue;
        }
        let start = at;
        let (kind, end) = token(text, at);
        at = end;
        let mut token = &text[start..end];
        if kind == Kind::Comment {
            token = token.trim_end();
        }
        tokens.push(Token {
            kind,
            text: token,
            newlines,
        });
        newlines = 0;
    }
    tokens
}

/// The kind of the token at `at`, and its end.
fn token(text: &str, at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    let length_of = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    match rest.as_bytes()[0] {
        b'"' => (Kind::Text, quoted_end(text, at)),
        b'<' if rest.starts_with("<<") => (Kind::Text, heredoc_end(text, at)),
        b'#' => (Kind::Comment, comment_end(text, at)),
        b'/' if matches!(rest.as_bytes().get(1), Some(b'/' | b'*')) => {
            (Kind::Comment, comment_end(text, at))
        }
        b'0'..=b'9' => (Kind::Number, at + number_length(rest)),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {
            let is_part =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || !c.is_ascii();
            (Kind::Name, at + length_of(is_part))
        }
        _ => {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            (Kind::Sign, at + sign.map_or(1, |sign| sign.len()))
        }
    }
}

fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = bytes
            .get(length + 1 + sign)
            .map_or(0, |_| digits(length + 1 + sign));
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

fn comment_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    if let Some(inner) = rest.strip_prefix("/*") {
        return inner.find("*/").map_or(text.len(), |end| at + end + 4);
    }
    rest.find('\n').map_or(text.len(), |end| at + end)
}

/// The end of a quoted string, after its closing quote.
fn quoted_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            b'$' | b'%' => at = sequence_end(text, at),
            _ => at += 1,
        }
    }
    text.len()
}

/// The end of a sequence that starts with `$` or `%`: an escape, `${ }` or `%{ }`.
fn sequence_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let (mark, next) = (bytes[at], bytes.get(at + 1));
    if next == Some(&mark) && bytes.get(at + 2) == Some(&b'{') {
        return at + 3;
    }
    if next != Some(&b'{') {
        return at + 1;
    }
    let mut at = at + 2;
    let mut depth = 1;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let (_, end) = token(text, at);
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        at = end;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The end of a heredoc, after its closing marker.
fn heredoc_end(text: &str, start: usize) -> usize {
    let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |end| at + end);
    let first = line_end(start);
    let marker = text[start..first]
        .trim_start_matches('<')
        .trim_start_matches('-')
        .trim();
    let bytes = text.as_bytes();
    let mut at = (first + 1).min(text.len());
    while at < text.len() {
        let end = line_end(at);
        if text[at..end].trim() == marker {
            return at + text[at..end].trim_end().len();
        }
        // A `${ }` or `%{ }` may span lines.
        while at < text.len() && bytes[at] != b'\n' {
            at = match bytes[at] {
                b'$' | b'%' => sequence_end(text, at),
                _ => at + 1,
            };
        }
        at += 1;
    }
    text.len()
}
