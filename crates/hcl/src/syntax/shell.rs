//! A shell's expansions, like `${name:-text}` and `${list[@]}`. Comes in: the place of a `${` behind
//! which no expression could be read; goes out: where the expansion that it begins ends, if it is
//! one, and an error that says how to write it.
//!
//! Much of what a shell takes is an expression too, and then it is one: nobody asks here before the
//! attempt to read one has failed, or one that could be read means nothing ([`shell_expansion`]).

use super::parser::Parser;
use crate::error::Error;

/// A longer expansion isn't repeated in the hint. In bytes.
const LONGEST_SHOWN: usize = 60;

/// Whether a text begins with what a shell expands, like `${x/a/b}`, though it may be an expression
/// as well: how long that is, in bytes, and how to write it for the shell.
pub fn shell_expansion(text: &str) -> Option<(usize, String)> {
    let length = length_of_expansion(text.as_bytes(), false)?;
    let expansion = &text[..length];
    // Whether a mark needs a backslash depends on what it all stands in.
    let is_shown = length <= LONGEST_SHOWN && !expansion.contains(['"', '\\']);
    Some((length, hint(is_shown.then_some(expansion), false)))
}

impl Parser<'_> {
    /// Where the shell's expansion ends that begins at `start`, its `}` included. It has to end on
    /// its line; `quoted` says that a quotation mark ends the text that it stands in.
    pub(super) fn shell_expansion(&self, start: usize, quoted: bool) -> Option<usize> {
        Some(start + length_of_expansion(self.bytes.get(start..)?, quoted)?)
    }

    /// Where the `${` or `%{` at `start` probably ends, if it does so on its line.
    pub(super) fn interpolation_end(&self, start: usize) -> Option<usize> {
        let inner = self.bytes.get(start + 2..)?;
        let line = inner.split(|&byte| byte == b'\n').next()?;
        Some(start + 2 + closing_brace(line, false)?)
    }

    pub(super) fn shell_error(&self, start: usize, end: usize, quoted: bool) -> Error {
        let error = Error::new(
            self.span(start, end),
            "This is a shell's expansion, not an expression",
        );
        let text = &self.text[start..end];
        error.hint(hint(
            Some(text).filter(|text| text.len() <= LONGEST_SHOWN),
            quoted,
        ))
    }
}

/// How to write an expansion for the shell; `quoted` as for [`Parser::shell_expansion`].
fn hint(expansion: Option<&str>, quoted: bool) -> String {
    let Some(text) = expansion else {
        return "if a shell is to see it, write `$${` instead of `${`".to_owned();
    };
    // The expansions within would be taken for expressions as well.
    let mut escaped = text.replace("$${", "${").replace("${", "$${");
    if quoted {
        // A mark that needs none within `${ }` would end the string.
        escaped = escaped.replace("\\\"", "\"").replace('"', "\\\"");
    }
    format!("if a shell is to see `{text}`, write `{escaped}`")
}

/// The length of the expansion that `bytes` begin with.
fn length_of_expansion(bytes: &[u8], quoted: bool) -> Option<usize> {
    let length = bytes.iter().position(|&byte| byte == b'\n');
    let line = &bytes[..length.unwrap_or(bytes.len())];
    let inner = line.strip_prefix(b"${")?;
    let operator = behind_parameter(inner)?;
    let begins = matches!(
        operator.first()?,
        b'}' | b':' | b'-' | b'=' | b'?' | b'+' | b'#' | b'%' | b'/' | b'^' | b',' | b'@'
    );
    let length = closing_brace(operator, quoted).filter(|_| begins)?;
    Some(line.len() - operator.len() + length)
}

/// What follows the parameter's name and its index: from `name[@]:-text}` on, `:-text}`.
fn behind_parameter(inner: &[u8]) -> Option<&[u8]> {
    let named = |bytes: &[u8]| {
        let length = bytes
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
            .count();
        let special = bytes.first().is_some_and(|byte| b"@*#?$!-".contains(byte));
        if length > 0 {
            length
        } else {
            usize::from(special)
        }
    };
    // `${#name}` and `${!name}` have a sign before the name; `${#}` has none behind it.
    let signed = matches!(inner.first(), Some(b'#' | b'!')) && named(&inner[1..]) > 0;
    let inner = &inner[usize::from(signed)..];
    let length = named(inner);
    if length == 0 {
        return None;
    }
    let rest = &inner[length..];
    let Some(index) = rest.strip_prefix(b"[") else {
        // `${!prefix*}`
        return Some(rest.strip_prefix(b"*").filter(|_| signed).unwrap_or(rest));
    };
    let length = index.iter().position(|&byte| byte == b']')?;
    let is_index = index[..length]
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_$@*#+-()".contains(byte));
    (length > 0 && is_index).then_some(&index[length + 1..])
}

/// The length up to and with the `}` that closes what is open at the start.
fn closing_brace(bytes: &[u8], quoted: bool) -> Option<usize> {
    let mut open = 1;
    let mut in_quotes = false;
    let mut at = 0;
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'\\', _) => at += 1,
            (b'"', _) if quoted => in_quotes = !in_quotes,
            (b'$', Some(b'{')) => {
                open += 1;
                at += 1;
            }
            (b'}', _) if !in_quotes => {
                open -= 1;
                if open == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}
