//! Patterns of RE2 in the syntax of the `regex` crate. Comes in: a pattern as Go reads it. Goes out:
//! a compiled one. What only one of the two knows is an error or is written otherwise.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// Compiled patterns take no more than this, in bytes.
const LARGEST: usize = 10 << 20;

/// Compiles, or says what is wrong in a fragment.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    let pattern = translate(pattern)?;
    RegexBuilder::new(&pattern)
        .size_limit(LARGEST)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            // The last line of the crate's picture says what, after "error: ".
            error => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            }
        })
}

fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    let mut repeated = false;
    while let Some(character) = rest.next() {
        let repeats =
            matches!(character, '*' | '+' | '?') || character == '{' && is_repetition(rest.clone());
        if repeats && repeated {
            return Err(format!("`{character}` has nothing to repeat"));
        }
        repeated = repeats;
        match character {
            '\\' => escape(&mut rest, &mut out, false)?,
            '[' => class(&mut rest, &mut out)?,
            '(' => group(&mut rest, &mut out)?,
            '{' if !repeats => out.push_str("\\{"),
            '{' => repetition(&mut rest, &mut out)?,
            '}' => out.push_str("\\}"),
            ']' => out.push_str("\\]"),
            _ => out.push(character),
        }
        if repeats && rest.next_if_eq(&'?').is_some() {
            out.push('?');
        }
    }
    Ok(out)
}

/// Behind a backslash.
fn escape(rest: &mut Peekable<Chars>, out: &mut String, in_class: bool) -> Result<(), String> {
    let Some(letter) = rest.next() else {
        return Err("it ends in a backslash".to_owned());
    };
    let ascii = match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\f\\r ]",
        'S' => "[^\\t\\n\\f\\r ]",
        'b' if !in_class => "(?-u:\\b)",
        'Q' if !in_class => {
            let text: String = rest.collect();
            let (literal, behind) = text.split_once("\\E").unwrap_or((&text, ""));
            out.push_str(&regex::escape(literal));
            out.push_str(&translate(behind)?);
            return Ok(());
        }
        'B' if !in_class => {
            // The crate can't say it of ASCII alone where text may begin or end inside a letter.
            return Err("`\\B` isn't supported".to_owned());
        }
        'A' | 'z' if !in_class => {
            out.push('\\');
            out.push(letter);
            return Ok(());
        }
        'p' | 'P' | 'x' if rest.peek() == Some(&'{') => {
            out.push('\\');
            out.push(letter);
            for inner in rest.by_ref() {
                out.push(inner);
                if inner == '}' {
                    break;
                }
            }
            return Ok(());
        }
        'p' | 'P' | 'x' | 'a' | 'f' | 'n' | 'r' | 't' | 'v' => {
            out.push('\\');
            out.push(letter);
            return Ok(());
        }
        '0'..='7' => return octal(letter, rest, out),
        // Behind a backslash the crate takes these two for edges of words.
        '<' | '>' => {
            out.push(letter);
            return Ok(());
        }
        _ if letter == ' ' || letter.is_ascii_punctuation() => {
            if letter != ' ' {
                out.push('\\');
            }
            out.push(letter);
            return Ok(());
        }
        _ => return Err(format!("`\\{letter}` is no escape that patterns have")),
    };
    out.push_str(ascii);
    Ok(())
}

/// `\123`, and `\0`; a single other digit would refer back, which RE2 can't.
fn octal(first: char, rest: &mut Peekable<Chars>, out: &mut String) -> Result<(), String> {
    let mut digits = String::from(first);
    while digits.len() < 3
        && let Some(digit) = rest.next_if(|next| ('0'..='7').contains(next))
    {
        digits.push(digit);
    }
    if first != '0' && digits.len() == 1 {
        return Err(format!(
            "`\\{first}` would refer back to a group, which isn't supported"
        ));
    }
    let code = u32::from_str_radix(&digits, 8).unwrap_or(0);
    out.push_str(&format!("\\x{{{code:x}}}"));
    Ok(())
}

/// Behind `[`. Inside only `\`, `]`, `^`, `-` and `[:` mean anything to RE2.
fn class(rest: &mut Peekable<Chars>, out: &mut String) -> Result<(), String> {
    out.push('[');
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut first = true;
    while let Some(character) = rest.next() {
        match character {
            ']' if !first => {
                out.push(']');
                return Ok(());
            }
            '\\' => escape(rest, out, true)?,
            '[' if rest.peek() == Some(&':') => {
                out.push('[');
                for inner in rest.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '[' | ']' | '&' | '~' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
        first = false;
    }
    Err("a `[` isn't closed".to_owned())
}

/// Behind `(`: only the flags that RE2 has, and names in the form it has.
fn group(rest: &mut Peekable<Chars>, out: &mut String) -> Result<(), String> {
    out.push('(');
    if rest.next_if_eq(&'?').is_none() {
        return Ok(());
    }
    out.push('?');
    match rest.peek() {
        Some('P') => Ok(()),
        Some('<') => Err("a group's name is written `(?P<name>…)`".to_owned()),
        _ => {
            while let Some(flag) = rest.next_if(|next| !matches!(next, ':' | ')')) {
                if !"imsU-".contains(flag) {
                    return Err(format!("`(?{flag}` isn't supported"));
                }
                out.push(flag);
            }
            Ok(())
        }
    }
}

/// Whether `{` begins `{2}`, `{2,}` or `{2,3}`; anything else is the character itself.
fn is_repetition(mut rest: Peekable<Chars>) -> bool {
    let mut digits = 0;
    let mut commas = 0;
    for character in rest.by_ref() {
        match character {
            '0'..='9' => digits += 1,
            ',' if digits > 0 && commas == 0 => commas = 1,
            '}' => return digits > 0,
            _ => return false,
        }
    }
    false
}

fn repetition(rest: &mut Peekable<Chars>, out: &mut String) -> Result<(), String> {
    let inner: String = rest.by_ref().take_while(|next| *next != '}').collect();
    if inner
        .split(',')
        .any(|count| count.parse().unwrap_or(0) > 1000)
    {
        return Err("nothing can be repeated more than 1000 times".to_owned());
    }
    out.push('{');
    out.push_str(&inner);
    out.push('}');
    Ok(())
}
