//! Regular expressions, with Go's syntax and its order of arguments.
//!
//! The crate `regex` matches as Go does, in linear time; `syntax` writes Go's expressions its way.

mod syntax;

use std::sync::Arc;

use regex::bytes::{Match, Regex, RegexBuilder};

use super::arguments::{bytes, int, string, strings, text};
use super::{Entry, Outcome, entry};
use crate::function::Kind::{Int, Str};
use crate::function::{Budget, FunctionError};
use crate::value::Value;

/// What compiling an expression counts: about as long as so many other steps take.
const COMPILE_STEPS: usize = 2_000;

/// Bytes that a compiled expression may take.
const SIZE_LIMIT: usize = 1 << 19;

const MATCH: Entry = entry(
    "regexMatch",
    "REGEX S",
    "whether REGEX matches in S; false where it is wrong",
    &[Str, Str],
    |budget, a| match compile(budget, a) {
        Ok(regex) => Ok(Value::Bool(regex.is_match(bytes(&a[1])))),
        Err(error) if error.is_message() => Ok(Value::Bool(false)),
        Err(error) => Err(error),
    },
);

const FIND: Entry = entry(
    "regexFind",
    "REGEX S",
    "the first match in S, or \"\"",
    &[Str, Str],
    |budget, a| {
        let found = compile(budget, a)?
            .find(bytes(&a[1]))
            .map(|found| found.as_bytes().to_vec());
        string(found.unwrap_or_default())
    },
);

const FIND_ALL: Entry = entry(
    "regexFindAll",
    "REGEX S N",
    "the first N matches in S, or all where N is negative",
    &[Str, Str, Int],
    |budget, a| {
        let regex = compile(budget, a)?;
        let most = usize::try_from(int(&a[2])).unwrap_or(usize::MAX);
        let found = matches(&regex, bytes(&a[1])).take(most);
        strings(budget, found.map(|found| found.as_bytes()))
    },
);

const REPLACE: Entry = entry(
    "regexReplaceAll",
    "REGEX S NEW",
    "S with NEW in place of each match; `$1` or `${name}` in it is a group's text",
    &[Str, Str, Str],
    |budget, a| replace(budget, a, true),
);

const REPLACE_LITERAL: Entry = entry(
    "regexReplaceAllLiteral",
    "REGEX S NEW",
    "the same, with `$` in NEW as it is",
    &[Str, Str, Str],
    |budget, a| replace(budget, a, false),
);

const SPLIT: Entry = entry(
    "regexSplit",
    "REGEX S N",
    "the parts of S between matches, N of them at most unless it is negative",
    &[Str, Str, Int],
    split,
);

pub(super) const FUNCTIONS: &[Entry] = &[
    MATCH,
    entry(
        "mustRegexMatch",
        "REGEX S",
        "the same, but an error where it is wrong",
        &[Str, Str],
        |budget, a| Ok(Value::Bool(compile(budget, a)?.is_match(bytes(&a[1])))),
    ),
    FIND,
    FIND.named("mustRegexFind"),
    FIND_ALL,
    FIND_ALL.named("mustRegexFindAll"),
    REPLACE,
    REPLACE.named("mustRegexReplaceAll"),
    REPLACE_LITERAL,
    REPLACE_LITERAL.named("mustRegexReplaceAllLiteral"),
    SPLIT,
    SPLIT.named("mustRegexSplit"),
    entry(
        "regexQuoteMeta",
        "S",
        "S as an expression that matches S",
        &[Str],
        |_, a| {
            let text = bytes(&a[0]);
            let mut made = Vec::with_capacity(text.len());
            for byte in text {
                if b"\\.+*?()|[]{}^$".contains(byte) {
                    made.push(b'\\');
                }
                made.push(*byte);
            }
            string(made)
        },
    ),
];

/// Whether a match is one to Go, too: an empty one isn't within a character.
fn is_whole(text: &[u8], start: usize, end: usize) -> bool {
    start < end || text.get(start).is_none_or(|byte| byte & 0xc0 != 0x80)
}

/// All matches.
fn matches<'t>(regex: &Regex, text: &'t [u8]) -> impl Iterator<Item = Match<'t>> {
    let found = regex.find_iter(text);
    found.filter(|found| is_whole(text, found.start(), found.end()))
}

/// The expression that the first argument is, paid for, and for matching the second.
fn compile(budget: &mut Budget, arguments: &[Value]) -> Result<Arc<Regex>, FunctionError> {
    let source = text(&arguments[0]);
    // A repetition stands for many states, each of which may be looked at for each byte.
    let states = 1 + source.len() / 16 + if source.contains('{') { 16 } else { 0 };
    budget.charge((bytes(&arguments[1]).len() / 8).saturating_mul(states))?;
    if let Some(known) = budget.kept().regexes.get(&*source) {
        return Ok(Arc::clone(known));
    }
    budget.charge(COMPILE_STEPS.saturating_add(source.len().saturating_mul(16)))?;
    let wrong = |why: &str| FunctionError::new(format!("error parsing regexp: {why}"));
    let ours = syntax::translate(&source).map_err(|why| wrong(&why))?;
    let regex = RegexBuilder::new(&ours)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => wrong("expression too large"),
            _ => wrong(&format!("invalid expression: `{source}`")),
        })?;
    let regex = Arc::new(regex);
    let kept = &mut budget.kept().regexes;
    kept.insert(source.into_owned(), Arc::clone(&regex));
    Ok(regex)
}

fn replace(budget: &mut Budget, arguments: &[Value], expands: bool) -> Outcome {
    let regex = compile(budget, arguments)?;
    let (source, new) = (bytes(&arguments[1]), bytes(&arguments[2]));
    let mut made = Vec::new();
    let mut end = 0;
    if expands {
        for captures in regex.captures_iter(source) {
            let whole = captures.get(0).map_or(end..end, |whole| whole.range());
            if !is_whole(source, whole.start, whole.end) {
                continue;
            }
            made.extend_from_slice(&source[end..whole.start]);
            expand(&captures, new, &mut made);
            end = whole.end;
            budget.check_size(made.len())?;
        }
    } else {
        for found in matches(&regex, source) {
            made.extend_from_slice(&source[end..found.start()]);
            made.extend_from_slice(new);
            end = found.end();
            budget.check_size(made.len())?;
        }
    }
    made.extend_from_slice(&source[end..]);
    string(made)
}

/// Go's `Expand`: `$name`, `${name}`, `$$`; a `$` before anything else is itself.
fn expand(captures: &regex::bytes::Captures<'_>, new: &[u8], made: &mut Vec<u8>) {
    let mut rest = new;
    while let Some(dollar) = rest.iter().position(|byte| *byte == b'$') {
        made.extend_from_slice(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        if rest.first() == Some(&b'$') {
            made.push(b'$');
            rest = &rest[1..];
            continue;
        }
        let braced = rest.first() == Some(&b'{');
        let inner = &rest[usize::from(braced)..];
        let length = inner
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
            .count();
        let name = std::str::from_utf8(&inner[..length]).unwrap_or_default();
        if name.is_empty() || (braced && inner.get(length) != Some(&b'}')) {
            made.push(b'$');
            continue;
        }
        let number = name
            .parse::<usize>()
            .ok()
            .filter(|_| name == "0" || !name.starts_with('0'));
        let group = match number {
            Some(number) => captures.get(number),
            None => captures.name(name),
        };
        if let Some(group) = group {
            made.extend_from_slice(group.as_bytes());
        }
        rest = &inner[length + usize::from(braced)..];
    }
    made.extend_from_slice(rest);
}

fn split(budget: &mut Budget, arguments: &[Value]) -> Outcome {
    let regex = compile(budget, arguments)?;
    let (source, most) = (bytes(&arguments[1]), int(&arguments[2]));
    if most == 0 {
        return strings::<&[u8]>(budget, []);
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if source.is_empty() && !regex.as_str().is_empty() {
        return strings(budget, [source]);
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut start, mut end) = (0, 0);
    for found in matches(&regex, source) {
        if parts.len() + 1 == most {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(&source[start..end]);
        }
        start = found.end();
    }
    if end != source.len() {
        parts.push(&source[start..]);
    }
    strings(budget, parts)
}
