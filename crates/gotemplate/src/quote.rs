//! Go's quoted strings, both ways: `strconv.Unquote` and `strconv.Quote`.

use crate::unicode::{decode, is_print};

/// What a quoted literal, with its quotes, stands for; none where Go says "invalid syntax".
pub(crate) fn unquote(quoted: &str) -> Option<Vec<u8>> {
    let inner = quoted.get(1..quoted.len().checked_sub(1)?)?;
    if quoted.starts_with('`') {
        return Some(inner.bytes().filter(|byte| *byte != b'\r').collect());
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (unit, tail) = unquote_unit(rest, '"')?;
        match unit {
            Unit::Byte(byte) => bytes.push(byte),
            Unit::Char(character) => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        rest = tail;
    }
    Some(bytes)
}

/// One character of a literal: `\x` and octal escapes are bytes, all else is a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Byte(u8),
    Char(char),
}

/// Go's `strconv.UnquoteChar`: the first character of `text`, and what follows it.
pub(crate) fn unquote_unit(text: &str, quote: char) -> Option<(Unit, &str)> {
    let mut characters = text.chars();
    let first = characters.next()?;
    if first == quote || first == '\n' {
        return None;
    }
    if first != '\\' {
        return Some((Unit::Char(first), characters.as_str()));
    }
    let escape = characters.next()?;
    let tail = characters.as_str();
    let simple = match escape {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' => '\\',
        '\'' | '"' if escape == quote => quote,
        'x' => {
            let (value, tail) = digits(tail, 2, 16)?;
            return Some((Unit::Byte(value as u8), tail));
        }
        'u' | 'U' => {
            let (value, tail) = digits(tail, if escape == 'u' { 4 } else { 8 }, 16)?;
            return Some((Unit::Char(char::from_u32(value)?), tail));
        }
        '0'..='7' => {
            let (value, tail) = digits(&text[1..], 3, 8)?;
            return Some((Unit::Byte(u8::try_from(value).ok()?), tail));
        }
        _ => return None,
    };
    Some((Unit::Char(simple), tail))
}

fn digits(text: &str, length: usize, radix: u32) -> Option<(u32, &str)> {
    let digits = text.get(..length)?;
    // `from_str_radix` would take a sign.
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    Some((u32::from_str_radix(digits, radix).ok()?, &text[length..]))
}

/// Go's `strconv.Quote` (or `QuoteToASCII`): with quotes, `\xNN` for what isn't UTF-8.
pub(crate) fn quote(bytes: &[u8], ascii: bool) -> Vec<u8> {
    let mut output = Vec::with_capacity(bytes.len() + 2);
    output.push(b'"');
    let mut rest = bytes;
    while !rest.is_empty() {
        let (character, width) = decode(rest);
        match character {
            Some(character) => escape(&mut output, character, '"', ascii),
            None => output.extend_from_slice(format!("\\x{:02x}", rest[0]).as_bytes()),
        }
        rest = &rest[width..];
    }
    output.push(b'"');
    output
}

/// Go's `strconv.QuoteRune` (or `QuoteRuneToASCII`).
pub(crate) fn quote_char(character: char, ascii: bool) -> Vec<u8> {
    let mut output = vec![b'\''];
    escape(&mut output, character, '\'', ascii);
    output.push(b'\'');
    output
}

fn escape(output: &mut Vec<u8>, character: char, quote: char, ascii: bool) {
    let code = u32::from(character);
    if character == quote || character == '\\' {
        output.push(b'\\');
        output.push(code as u8);
    } else if is_print(character) && (character.is_ascii() || !ascii) {
        output.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        let escaped = match character {
            '\x07' => "\\a".to_owned(),
            '\x08' => "\\b".to_owned(),
            '\x0c' => "\\f".to_owned(),
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            '\x0b' => "\\v".to_owned(),
            _ if code < 0x20 || code == 0x7f => format!("\\x{code:02x}"),
            _ if code < 0x1_0000 => format!("\\u{code:04x}"),
            _ => format!("\\U{code:08x}"),
        };
        output.extend_from_slice(escaped.as_bytes());
    }
}

/// Go's `strconv.CanBackquote`.
pub(crate) fn can_backquote(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| {
        text.chars().all(|character| match character {
            '\t' => true,
            '`' | '\x7f' | '\u{feff}' => false,
            _ => character >= ' ',
        })
    })
}

/// A Go-quoted string, for messages.
pub(crate) fn quoted(text: &str) -> String {
    String::from_utf8_lossy(&quote(text.as_bytes(), false)).into_owned()
}
