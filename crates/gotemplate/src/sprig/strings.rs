//! Functions on strings.

use super::arguments::{
    bytes, fail, int, is_nil, list_of, quoted, shown, string, strings as string_list,
};
use super::case::{self, characters};
use super::{Entry, Outcome, entry, wrap};
use crate::function::Kind::{Any, Int, Str};
use crate::function::{Budget, FunctionError};
use crate::map::Map;
use crate::unicode::decode;
use crate::value::{ItemType, Text, Value};

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("trim", "S", "S without space around it", &[Str], |_, a| {
        string(trim(bytes(&a[0])))
    }),
    TRIM_ALL,
    TRIM_ALL.named("trimall"),
    entry(
        "trimPrefix",
        "P S",
        "S without the prefix P",
        &[Str, Str],
        |_, a| {
            let text = bytes(&a[1]);
            string(text.strip_prefix(bytes(&a[0])).unwrap_or(text))
        },
    ),
    entry(
        "trimSuffix",
        "P S",
        "S without the suffix P",
        &[Str, Str],
        |_, a| {
            let text = bytes(&a[1]);
            string(text.strip_suffix(bytes(&a[0])).unwrap_or(text))
        },
    ),
    entry("upper", "S", "S in capitals", &[Str], |_, a| {
        string(case::upper(bytes(&a[0])))
    }),
    entry("lower", "S", "S in small letters", &[Str], |_, a| {
        string(case::lower(bytes(&a[0])))
    }),
    entry(
        "title",
        "S",
        "S with a capital at the beginning of each word",
        &[Str],
        |_, a| string(case::title(bytes(&a[0]))),
    ),
    entry(
        "untitle",
        "S",
        "S with a small letter at the beginning of each word",
        &[Str],
        |_, a| string(case::untitle(bytes(&a[0]))),
    ),
    entry(
        "swapcase",
        "S",
        "S with capitals and small letters swapped",
        &[Str],
        |_, a| string(case::swap(bytes(&a[0]))),
    ),
    entry(
        "snakecase",
        "S",
        "the words of S as `two_words`",
        &[Str],
        |_, a| string(case::connected(bytes(&a[0]), '_')),
    ),
    entry(
        "kebabcase",
        "S",
        "the words of S as `two-words`",
        &[Str],
        |_, a| string(case::connected(bytes(&a[0]), '-')),
    ),
    entry(
        "camelcase",
        "S",
        "the words of S as `TwoWords`",
        &[Str],
        |_, a| string(case::camel(bytes(&a[0]))),
    ),
    entry("nospace", "S", "S without any space", &[Str], |_, a| {
        let text = bytes(&a[0]);
        // Where there is space, Sprig takes each byte for a character.
        let all = || text.iter().map(|byte| char::from(*byte));
        if !all().any(char::is_whitespace) {
            return string(text);
        }
        string(
            all()
                .filter(|each| !each.is_whitespace())
                .collect::<String>(),
        )
    }),
    entry(
        "initials",
        "S",
        "the first letters of the words of S",
        &[Str],
        |_, a| string(initials(bytes(&a[0]))),
    ),
    entry(
        "trunc",
        "N S",
        "the first N bytes of S, the last where N is negative",
        &[Int, Str],
        |_, a| {
            let (count, text) = (int(&a[0]), bytes(&a[1]));
            let length = text.len() as i64;
            string(if count >= 0 {
                &text[..count.min(length) as usize]
            } else {
                &text[length.saturating_add(count).max(0) as usize..]
            })
        },
    ),
    entry(
        "substr",
        "FROM TO S",
        "the bytes of S from FROM up to TO; a negative one doesn't count",
        &[Int, Int, Str],
        |_, a| substring(int(&a[0]), int(&a[1]), bytes(&a[2])),
    ),
    entry(
        "abbrev",
        "N S",
        "S cut to N bytes, the last three being dots",
        &[Int, Str],
        |_, a| string(wrap::abbreviate(bytes(&a[1]), 0, int(&a[0]))),
    ),
    entry(
        "abbrevboth",
        "FROM N S",
        "the same from FROM on",
        &[Int, Int, Str],
        |_, a| string(wrap::abbreviate(bytes(&a[2]), int(&a[0]), int(&a[1]))),
    ),
    entry(
        "wrap",
        "N S",
        "S with its lines broken at spaces after N characters at most",
        &[Int, Str],
        |budget, a| {
            budget.charge(bytes(&a[1]).len())?;
            string(wrap::wrap(bytes(&a[1]), int(&a[0]), b"\n", false))
        },
    ),
    entry(
        "wrapWith",
        "N BREAK S",
        "the same with another line break, and longer words broken, too",
        &[Int, Str, Str],
        |budget, a| {
            let (length, newline) = (bytes(&a[2]).len(), bytes(&a[1]).len());
            budget.check_size(length.saturating_mul(1 + newline))?;
            budget.charge(length.saturating_mul(1 + newline / 8))?;
            string(wrap::wrap(bytes(&a[2]), int(&a[0]), bytes(&a[1]), true))
        },
    ),
    entry("repeat", "N S", "S, N times", &[Int, Str], |budget, a| {
        let Ok(count) = usize::try_from(int(&a[0])) else {
            return fail("strings: negative Repeat count");
        };
        let text = bytes(&a[1]);
        budget.check_size(text.len().saturating_mul(count))?;
        string(if text.is_empty() {
            Vec::new()
        } else {
            text.repeat(count)
        })
    }),
    entry(
        "indent",
        "N S",
        "S with N spaces before each line",
        &[Int, Str],
        |budget, a| string(indent(budget, a)?),
    ),
    entry(
        "nindent",
        "N S",
        "a line break, and S with N spaces before each line",
        &[Int, Str],
        |budget, a| {
            let mut made = indent(budget, a)?;
            made.insert(0, b'\n');
            string(made)
        },
    ),
    entry(
        "replace",
        "OLD NEW S",
        "S with NEW in place of each OLD",
        &[Str, Str, Str],
        |budget, a| replace(budget, bytes(&a[0]), bytes(&a[1]), bytes(&a[2])),
    ),
    entry(
        "contains",
        "PART S",
        "whether PART is in S",
        &[Str, Str],
        |_, a| Ok(Value::Bool(find(bytes(&a[1]), bytes(&a[0])).is_some())),
    ),
    entry(
        "hasPrefix",
        "P S",
        "whether S begins with P",
        &[Str, Str],
        |_, a| Ok(Value::Bool(bytes(&a[1]).starts_with(bytes(&a[0])))),
    ),
    entry(
        "hasSuffix",
        "P S",
        "whether S ends with P",
        &[Str, Str],
        |_, a| Ok(Value::Bool(bytes(&a[1]).ends_with(bytes(&a[0])))),
    ),
    entry(
        "quote",
        "X…",
        "each in double quotes, escaped, with spaces between them",
        &[],
        |budget, a| each(budget, a, quoted),
    )
    .and_any(Any),
    entry(
        "squote",
        "X…",
        "each in single quotes, not escaped, with spaces between them",
        &[],
        |budget, a| each(budget, a, |text| [b"'", text, b"'"].concat()),
    )
    .and_any(Any),
    entry(
        "cat",
        "X…",
        "all with spaces between them",
        &[],
        |budget, a| each(budget, a, <[u8]>::to_vec),
    )
    .and_any(Any),
    entry(
        "plural",
        "ONE MANY N",
        "ONE if N is 1, else MANY",
        &[Str, Str, Int],
        |_, a| Ok(a[usize::from(int(&a[2]) != 1)].clone()),
    ),
    entry(
        "split",
        "SEP S",
        "the parts of S between SEPs, as a map with keys `_0`, `_1`, …",
        &[Str, Str],
        |budget, a| numbered(budget, split(bytes(&a[1]), bytes(&a[0]), -1)),
    ),
    entry(
        "splitn",
        "SEP N S",
        "the same, but N parts at most",
        &[Str, Int, Str],
        |budget, a| numbered(budget, split(bytes(&a[2]), bytes(&a[0]), int(&a[1]))),
    ),
    entry(
        "splitList",
        "SEP S",
        "the parts of S between SEPs, as a list",
        &[Str, Str],
        |budget, a| string_list(budget, split(bytes(&a[1]), bytes(&a[0]), -1)),
    ),
    entry(
        "join",
        "SEP LIST",
        "the items with SEP between them",
        &[Str, Any],
        |budget, a| {
            let (separator, items) = (bytes(&a[0]), texts(budget, &a[1])?);
            let separators = separator.len().saturating_mul(items.len());
            budget.check_size(separators.saturating_add(items.iter().map(Vec::len).sum()))?;
            string(items.join(separator))
        },
    ),
    entry(
        "sortAlpha",
        "LIST",
        "the items as strings, sorted",
        &[Any],
        |budget, a| {
            let mut items = match &a[0] {
                Value::List(_) => texts(budget, &a[0])?,
                other => vec![shown(budget, other)?],
            };
            budget.charge(items.len().saturating_mul(8))?;
            items.sort_unstable();
            string_list(budget, items)
        },
    ),
    entry("toString", "X", "X as a string", &[Any], |budget, a| {
        string(shown(budget, &a[0])?)
    }),
    entry(
        "toStrings",
        "LIST",
        "the items as strings",
        &[Any],
        |budget, a| {
            let items = texts(budget, &a[0])?;
            string_list(budget, items)
        },
    ),
];

const TRIM_ALL: Entry = entry(
    "trimAll",
    "CHARS S",
    "S without those characters around it",
    &[Str, Str],
    |_, a| string(trim_all(bytes(&a[1]), &characters(bytes(&a[0])))),
);

fn trim(text: &[u8]) -> &[u8] {
    trim_where(text, char::is_whitespace)
}

fn trim_all<'t>(text: &'t [u8], characters: &[char]) -> &'t [u8] {
    trim_where(text, |each| characters.contains(&each))
}

fn trim_where(mut text: &[u8], goes: impl Fn(char) -> bool) -> &[u8] {
    let at = |text: &[u8]| {
        let (character, width) = decode(text);
        (character.unwrap_or('\u{fffd}'), width)
    };
    while !text.is_empty() {
        let (character, width) = at(text);
        if !goes(character) {
            break;
        }
        text = &text[width..];
    }
    while !text.is_empty() {
        let widths = (2..=text.len().min(4)).rev();
        let start = widths
            .map(|width| text.len() - width)
            .find(|start| at(&text[*start..]).1 == text.len() - start)
            .unwrap_or(text.len() - 1);
        if !goes(at(&text[start..]).0) {
            break;
        }
        text = &text[..start];
    }
    text
}

fn initials(text: &[u8]) -> String {
    let mut previous = ' ';
    let mut rest = text;
    let mut made = String::new();
    while let Some(&byte) = rest.first() {
        let (character, width) = decode(rest);
        let character = character.unwrap_or('\u{fffd}');
        if previous.is_whitespace() && !character.is_whitespace() {
            // Sprig takes the first byte for a character.
            made.push(char::from(byte));
        }
        previous = character;
        rest = &rest[width..];
    }
    made
}

fn substring(from: i64, to: i64, text: &[u8]) -> Outcome {
    let length = text.len() as i64;
    let (from, to) = match (from, to) {
        (from, to) if from < 0 => (0, to),
        (from, to) if to < 0 || to > length => (from, length),
        bounds => bounds,
    };
    if to < 0 {
        return fail(format!("runtime error: slice bounds out of range [:{to}]"));
    }
    if to > length {
        return fail(format!(
            "runtime error: slice bounds out of range [:{to}] with length {length}"
        ));
    }
    if from > to {
        return fail(format!(
            "runtime error: slice bounds out of range [{from}:{to}]"
        ));
    }
    string(&text[from as usize..to as usize])
}

fn indent(budget: &mut Budget, arguments: &[Value]) -> Result<Vec<u8>, FunctionError> {
    let Ok(spaces) = usize::try_from(int(&arguments[0])) else {
        return fail("strings: negative Repeat count");
    };
    let text = bytes(&arguments[1]);
    let lines = text.split(|byte| *byte == b'\n').count();
    budget.check_size(lines.saturating_mul(spaces).saturating_add(text.len()))?;
    Ok(wrap::indent(text, spaces))
}

/// Where a part first is in a text.
pub(super) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    match part {
        [] => Some(0),
        [first, rest @ ..] => {
            let mut from = 0;
            loop {
                let found = from + text[from..].iter().position(|byte| byte == first)?;
                if text[found + 1..].starts_with(rest) {
                    return Some(found);
                }
                from = found + 1;
            }
        }
    }
}

/// Go's `strings.SplitN`: by characters where the separator is empty.
fn split<'t>(text: &'t [u8], separator: &[u8], most: i64) -> Vec<&'t [u8]> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut rest = text;
    if most == 0 {
        return parts;
    }
    if separator.is_empty() {
        while !rest.is_empty() {
            let width = if parts.len() + 1 == most {
                rest.len()
            } else {
                decode(rest).1
            };
            parts.push(&rest[..width]);
            rest = &rest[width..];
        }
        return parts;
    }
    while parts.len() + 1 < most
        && let Some(found) = find(rest, separator)
    {
        parts.push(&rest[..found]);
        rest = &rest[found + separator.len()..];
    }
    parts.push(rest);
    parts
}

/// A map from `_0`, `_1`, ….
fn numbered(budget: &mut Budget, parts: Vec<&[u8]>) -> Outcome {
    list_of(budget, Vec::new(), ItemType::Any)?;
    budget.charge(parts.len().saturating_mul(8))?;
    let entries = parts.into_iter().enumerate();
    let entries = entries.map(|(index, part)| (format!("_{index}"), Text::from(part)));
    Ok(Value::Map(entries.collect::<Map>().string_typed()))
}

fn replace(budget: &mut Budget, old: &[u8], new: &[u8], text: &[u8]) -> Outcome {
    let mut made = Vec::with_capacity(text.len());
    let mut rest = text;
    if old.is_empty() {
        while !rest.is_empty() {
            made.extend_from_slice(new);
            let width = decode(rest).1;
            made.extend_from_slice(&rest[..width]);
            rest = &rest[width..];
            budget.check_size(made.len())?;
        }
        made.extend_from_slice(new);
        return string(made);
    }
    while let Some(found) = find(rest, old) {
        made.extend_from_slice(&rest[..found]);
        made.extend_from_slice(new);
        rest = &rest[found + old.len()..];
        budget.check_size(made.len())?;
    }
    made.extend_from_slice(rest);
    string(made)
}

/// All that aren't nil, changed, with spaces between them.
fn each(budget: &mut Budget, values: &[Value], change: impl Fn(&[u8]) -> Vec<u8>) -> Outcome {
    let mut made = Vec::new();
    for (index, value) in values.iter().filter(|value| !is_nil(value)).enumerate() {
        if index > 0 {
            made.push(b' ');
        }
        made.extend(change(&shown(budget, value)?));
        budget.check_size(made.len())?;
    }
    string(made)
}

/// A list's items as strings, without those that are nil; of another value the string itself.
pub(super) fn texts(budget: &mut Budget, value: &Value) -> Result<Vec<Vec<u8>>, FunctionError> {
    let mut made = Vec::new();
    match value {
        Value::List(list) => {
            budget.charge(list.len())?;
            for item in list.items().iter().filter(|item| !is_nil(item)) {
                let text = shown(budget, item)?;
                budget.charge(1 + text.len() / 8)?;
                made.push(text);
            }
        }
        value if is_nil(value) => {}
        value => made.push(shown(budget, value)?),
    }
    Ok(made)
}
