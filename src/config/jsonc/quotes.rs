//! Lines of JSON that lack a quote.
//!
//! In: a line in which a string isn't closed. Out: the places where a quote makes something of it that can
//! stand in JSON. May not: know what is on other lines, where no string goes on.

/// A place for a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    /// Before this byte.
    pub(super) at: usize,
    /// Whether a string begins with it.
    pub(super) opens: bool,
}

/// No longer line is looked at: every place is tried.
const LONGEST: usize = 1_000;

/// Where a quote may be missing, the likeliest place first: where brackets outside strings belong
/// together, not in a comment, and as far behind as can be.
pub(super) fn places(line: &str) -> Vec<Quote> {
    if line.len() > LONGEST {
        return Vec::new();
    }
    let mut places: Vec<((bool, i32), Quote)> = Vec::new();
    let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    for at in ends {
        let before = line[..at].chars().next_back();
        let behind = line[at..].chars().next();
        let is_inner = |one: Option<char>| one.is_some_and(|one| !is_outer(one) && one != '"');
        let closes = before
            .is_some_and(|one| !matches!(one, '"' | ',' | ':') && !one.is_whitespace())
            && behind.is_none_or(is_outer);
        let opens = is_inner(behind) && before.is_none_or(is_outer);
        if opens || closes {
            let with_quote = [&line[..at], "\"", &line[at..]].concat();
            if let Some(balance) = balance(&with_quote) {
                let is_in_comment = line[..at].contains(" //") || line[at..].starts_with("//");
                places.push(((is_in_comment, balance.abs()), Quote { at, opens }));
            }
        }
    }
    places.sort_by_key(|(doubt, quote)| (*doubt, std::cmp::Reverse(quote.at)));
    places.into_iter().map(|(_, quote)| quote).collect()
}

fn is_outer(character: char) -> bool {
    character.is_whitespace() || matches!(character, '{' | '}' | '[' | ']' | ',' | ':')
}

/// What stands in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// The line's start.
    Start,
    /// A string that may be a key.
    Key,
    /// A value.
    Value,
    /// `{`
    Object,
    /// `[`
    List,
    /// `}` or `]`
    End,
    Colon,
    Comma,
}

/// How many brackets a line opens more than it closes; `None` if it can't stand in JSON.
fn balance(line: &str) -> Option<i32> {
    let mut last = Token::Start;
    let mut balance = 0;
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") || rest.starts_with("/*") {
            break;
        }
        let (token, length) = match first {
            '"' => {
                let token = match last {
                    Token::Colon | Token::List => Token::Value,
                    _ => Token::Key,
                };
                (token, string(rest)?)
            }
            '{' => (Token::Object, 1),
            '[' => (Token::List, 1),
            '}' | ']' => (Token::End, 1),
            ':' => (Token::Colon, 1),
            ',' => (Token::Comma, 1),
            _ => {
                let length = rest.find(|one| is_outer(one) || one == '"');
                let length = length.unwrap_or(rest.len());
                let word = &rest[..length];
                let is_value = matches!(word, "true" | "false" | "null")
                    || word.parse::<f64>().is_ok()
                        && word.starts_with(|one: char| one == '-' || one.is_ascii_digit());
                (is_value.then_some(Token::Value)?, length)
            }
        };
        let begins = matches!(
            token,
            Token::Key | Token::Value | Token::Object | Token::List
        );
        let fits = match last {
            Token::Start => true,
            Token::Key => matches!(token, Token::Colon | Token::Comma | Token::End),
            Token::Value | Token::End => matches!(token, Token::Comma | Token::End),
            Token::Object => matches!(token, Token::Key | Token::End),
            Token::List | Token::Comma => begins || token == Token::End,
            Token::Colon => begins,
        };
        if !fits {
            return None;
        }
        balance += match token {
            Token::Object | Token::List => 1,
            Token::End => -1,
            _ => 0,
        };
        last = token;
        rest = rest[length..].trim_start();
    }
    Some(balance)
}

/// How long the string is that a text begins with; `None` if it isn't closed.
fn string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_place_is_the_one_that_is_missing() {
        for line in [
            r#"  «"»instance_type": "small","#,
            r#"  "instance_type«"»: "small","#,
            r#"  "instance_type": «"»small","#,
            r#"  "instance_type": "small«"»,"#,
            r#"  "instance_type": "small«"»"#,
            r#"  { "kind": "wrk«"», "arch": "amd64" }"#,
            r#"  { "kind": "wrk", «"»arch": "amd64" }"#,
            r#"  { "kind": "wrk", "arch": "amd64«"» }"#,
            r#"  "tags": ["a«"», "b"],"#,
            r#"  "tags": ["a", «"»b"],"#,
            r#"  "text": "{{ .Vars.A }}«"»,"#,
            r#"  "text": "a \"b\" c«"», // why"#,
            r#"  "size": 3, «"»arch": true, "x": -1.5"#,
        ] {
            let (before, behind) = line.split_once("«\"»").unwrap();
            let found = places(&[before, behind].concat());
            let first = found.first().map(|quote| quote.at);
            assert_eq!(first, Some(before.len()), "{line}: {found:?}");
        }
    }

    #[test]
    fn what_can_be_no_json_has_no_place() {
        for line in ["\"a\" \"b\" \"c", &"\"a, ".repeat(300)] {
            assert_eq!(places(line), [], "{line}");
        }
    }
}
