//! Templates in pieces, roughly as a lexer would cut them.
//!
//! In: any text. Out: pieces that make up the text again. May not: decide what is a valid template;
//! only `{{` and `}}` are taken for delimiters.

/// The text between actions, whole actions, one after the other.
pub(crate) fn segments(text: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = match rest.find("{{") {
            Some(0) => rest.find("}}").map_or(rest.len(), |at| at + 2),
            Some(at) => at,
            None => rest.len(),
        };
        let (segment, tail) = rest.split_at(end);
        segments.push(segment);
        rest = tail;
    }
    segments
}

/// Tokens of actions, spaces among them, and the text between actions.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for segment in segments(text) {
        if !segment.starts_with("{{") {
            tokens.push(segment);
            continue;
        }
        let mut rest = segment;
        while !rest.is_empty() {
            let (token, tail) = rest.split_at(token_length(rest));
            tokens.push(token);
            rest = tail;
        }
    }
    tokens
}

/// The bytes of the first token of an action's text, which isn't empty.
fn token_length(text: &str) -> usize {
    if let Some(rest) = text.strip_prefix("{{") {
        return if rest.starts_with("- ") { 3 } else { 2 };
    }
    for known in ["}}", "-}}", "/*", "*/", ":="] {
        if text.starts_with(known) {
            return known.len();
        }
    }
    let first = text.chars().next().unwrap_or_default();
    let length = match first {
        '"' | '\'' => quoted_length(text, first),
        '`' => text[1..].find('`').map(|at| at + 2),
        ' ' | '\t' | '\r' | '\n' => Some(prefix(text, 1, char::is_whitespace)),
        '.' | '$' | '_' => Some(prefix(text, 1, is_word)),
        '0'..='9' => Some(prefix(text, 1, |next| is_word(next) || next == '.')),
        _ if is_word(first) => Some(prefix(text, first.len_utf8(), is_word)),
        _ => None,
    };
    length.unwrap_or(first.len_utf8())
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn prefix(text: &str, skipped: usize, belongs: impl Fn(char) -> bool) -> usize {
    let tail = &text[skipped..];
    skipped + tail.find(|next| !belongs(next)).unwrap_or(tail.len())
}

fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        if character == quote {
            return Some(at + 1);
        }
        if character == '\\' {
            characters.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_nothing_is_lost() {
        let text = "a {{- printf \"%d\\\"\" .X.Y 0x1p-2 | len -}} b{{$x:='\\''}}{{`r`}}{{ open";
        assert_eq!(segments(text).concat(), text);
        assert_eq!(
            tokens(text),
            [
                "a ",
                "{{-",
                " ",
                "printf",
                " ",
                "\"%d\\\"\"",
                " ",
                ".X",
                ".Y",
                " ",
                "0x1p",
                "-",
                "2",
                " ",
                "|",
                " ",
                "len",
                " ",
                "-}}",
                " b",
                "{{",
                "$x",
                ":=",
                "'\\''",
                "}}",
                "{{",
                "`r`",
                "}}",
                "{{",
                " ",
                "open",
            ]
        );
        for text in [
            "",
            "{{",
            "}}",
            "{{\"",
            "{{'é",
            "{{/* c */}}",
            "{{\u{feff}é.é}}",
        ] {
            assert_eq!(tokens(text).concat(), text);
        }
    }
}
