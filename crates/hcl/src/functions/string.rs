//! Functions of text. Come in: strings, counted in grapheme clusters as a reader counts. Go out:
//! strings, letters changed one by one as Go changes them.

use unicode_segmentation::UnicodeSegmentation;

use super::{CallError, Parameter, Signature, text, whole};
use crate::context::Context;
use crate::types::Type;
use crate::value::{Kind, Value};

pub(super) fn signatures() -> Vec<Signature> {
    let one = |name, body| Signature::new(name, [Parameter::string("str")], body);
    let two = |name, second, body| {
        let parameters = [Parameter::string("str"), Parameter::string(second)];
        Signature::new(name, parameters, body)
    };
    vec![
        one("chomp", |_, arguments| {
            Ok(Value::string(
                text(arguments, 0)?.trim_end_matches(['\r', '\n']),
            ))
        }),
        one("lower", |_, arguments| {
            Ok(Value::string(
                text(arguments, 0)?.chars().map(lower).collect::<String>(),
            ))
        }),
        one("upper", |_, arguments| {
            Ok(Value::string(
                text(arguments, 0)?.chars().map(upper).collect::<String>(),
            ))
        }),
        one("title", |_, arguments| {
            Ok(Value::string(title(text(arguments, 0)?)))
        }),
        one("trimspace", |_, arguments| {
            Ok(Value::string(text(arguments, 0)?.trim()))
        }),
        one("strrev", |_, arguments| {
            let reversed: String = text(arguments, 0)?.graphemes(true).rev().collect();
            Ok(Value::string(reversed))
        }),
        two("trim", "cutset", |_, arguments| {
            let cutset: Vec<char> = text(arguments, 1)?.chars().collect();
            Ok(Value::string(
                text(arguments, 0)?.trim_matches(cutset.as_slice()),
            ))
        }),
        two("trimprefix", "prefix", |_, arguments| {
            let whole = text(arguments, 0)?;
            Ok(Value::string(
                whole.strip_prefix(text(arguments, 1)?).unwrap_or(whole),
            ))
        }),
        two("trimsuffix", "suffix", |_, arguments| {
            let whole = text(arguments, 0)?;
            Ok(Value::string(
                whole.strip_suffix(text(arguments, 1)?).unwrap_or(whole),
            ))
        }),
        two("startswith", "prefix", |_, arguments| {
            Ok(text(arguments, 0)?.starts_with(text(arguments, 1)?).into())
        }),
        two("endswith", "suffix", |_, arguments| {
            Ok(text(arguments, 0)?.ends_with(text(arguments, 1)?).into())
        }),
        two("strcontains", "substr", |_, arguments| {
            Ok(text(arguments, 0)?.contains(text(arguments, 1)?).into())
        }),
        Signature::new(
            "indent",
            [Parameter::number("spaces"), Parameter::string("str")],
            indent,
        ),
        Signature::new("join", [Parameter::string("separator")], join)
            .and_any_number_of(Parameter::list("lists", Type::String)),
        Signature::new(
            "split",
            [Parameter::string("separator"), Parameter::string("str")],
            split,
        ),
        Signature::new(
            "substr",
            [
                Parameter::string("str"),
                Parameter::number("offset"),
                Parameter::number("length"),
            ],
            substr,
        ),
    ]
}

/// Letters with one capital letter; those that would become two stay, as in Go.
fn upper(letter: char) -> char {
    // Greek with iota subscript: the capital that Unicode's simple mapping has.
    let code = letter as u32;
    let code = match code {
        0x1F80..=0x1FAF if code & 8 == 0 => code + 8,
        0x1FB3 | 0x1FC3 | 0x1FF3 => code + 9,
        _ => return only(letter.to_uppercase()).unwrap_or(letter),
    };
    char::from_u32(code).unwrap_or(letter)
}

fn lower(letter: char) -> char {
    match letter {
        'İ' => 'i',
        _ => only(letter.to_lowercase()).unwrap_or(letter),
    }
}

fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next();
    if letters.next().is_some() {
        None
    } else {
        first
    }
}

/// A capital for the first letter of each word: what stands behind something that is no letter,
/// digit or underscore.
fn title(text: &str) -> String {
    let mut before = ' ';
    text.chars()
        .map(|letter| {
            let starts = separates(before);
            before = letter;
            if starts { title_case(letter) } else { letter }
        })
        .collect()
}

fn separates(character: char) -> bool {
    if character.is_ascii() {
        return !(character.is_ascii_alphanumeric() || character == '_');
    }
    !character.is_alphanumeric() && character.is_whitespace()
}

/// Four pairs of Latin letters have a form of their own for titles, and Georgian has none.
fn title_case(letter: char) -> char {
    match letter {
        'Ǆ' | 'ǅ' | 'ǆ' => 'ǅ',
        'Ǉ' | 'ǈ' | 'ǉ' => 'ǈ',
        'Ǌ' | 'ǋ' | 'ǌ' => 'ǋ',
        'Ǳ' | 'ǲ' | 'ǳ' => 'ǲ',
        '\u{10d0}'..='\u{10ff}' => letter,
        _ => upper(letter),
    }
}

fn indent(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let spaces = usize::try_from(whole(arguments, 0)?)
        .map_err(|_| CallError::argument(0, "There can't be fewer than 0 spaces"))?;
    let text = text(arguments, 1)?;
    let lines = text.matches('\n').count();
    context.charge_bytes(text.len().saturating_add(spaces.saturating_mul(lines)))?;
    if lines == 0 {
        return Ok(Value::string(text));
    }
    Ok(Value::string(
        text.replace('\n', &format!("\n{}", " ".repeat(spaces))),
    ))
}

fn join(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let separator = text(arguments, 0)?;
    if arguments.len() < 2 {
        return Err(CallError::new("At least one list is required"));
    }
    let mut parts = Vec::new();
    for (index, list) in arguments.iter().enumerate().skip(1) {
        for (position, element) in list.elements().unwrap_or_default().iter().enumerate() {
            let Some(part) = element.as_str() else {
                return Err(CallError::argument(
                    index,
                    format!("Element {position} is null; only strings can be joined"),
                ));
            };
            context.charge_bytes(part.len() + separator.len())?;
            parts.push(part);
        }
    }
    Ok(Value::string(parts.join(separator)))
}

fn split(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let (separator, text) = (text(arguments, 0)?, text(arguments, 1)?);
    context.charge_steps(text.len())?;
    let parts: Vec<Value> = if separator.is_empty() {
        text.chars()
            .map(|letter| Value::string(letter.to_string()))
            .collect()
    } else {
        text.split(separator).map(Value::string).collect()
    };
    Ok(Value::list(Type::String, parts))
}

fn substr(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let text = text(arguments, 0)?;
    let (offset, length) = (whole(arguments, 1)?, whole(arguments, 2)?);
    let start = if offset < 0 {
        let total = text.graphemes(true).count();
        total.saturating_sub(usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX))
    } else {
        usize::try_from(offset).unwrap_or(usize::MAX)
    };
    // A negative length means: to the end.
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let part: String = text.graphemes(true).skip(start).take(length).collect();
    Ok(Value::string(part))
}

/// How many grapheme clusters a text has, for `length`.
pub(super) fn count(value: &Value) -> Option<usize> {
    match &value.kind {
        Kind::String(text) => Some(text.graphemes(true).count()),
        _ => None,
    }
}
