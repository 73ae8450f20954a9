//! Functions that search: `regex`, `regexall`, `replace`. Come in: patterns of RE2, whose classes
//! such as `\w` mean ASCII only. Go out: what was found.

mod pattern;

use regex::{Captures, Regex};

use super::{CallError, Parameter, Signature, text};
use crate::context::Context;
use crate::types::Type;
use crate::value::{Entries, Value};

/// How many compiled patterns are kept.
const MOST_KEPT: usize = 16;

pub(super) fn signatures() -> Vec<Signature> {
    let two = || [Parameter::string("pattern"), Parameter::string("string")];
    vec![
        Signature::new("regex", two(), |context, arguments| {
            let regex = compile(context, text(arguments, 0)?, 0)?;
            let captures = regex
                .captures(text(arguments, 1)?)
                .ok_or_else(|| CallError::argument(0, "The pattern isn't found in the string"))?;
            found(&regex, &captures)
        }),
        Signature::new("regexall", two(), |context, arguments| {
            let regex = compile(context, text(arguments, 0)?, 0)?;
            let mut all = Vec::new();
            for captures in regex.captures_iter(text(arguments, 1)?) {
                context.charge_steps(captures.len())?;
                all.push(found(&regex, &captures)?);
            }
            Ok(Value::list(result_type(&regex), all))
        }),
        Signature::new(
            "replace",
            [
                Parameter::string("str"),
                Parameter::string("substr"),
                Parameter::string("replace"),
            ],
            replace,
        ),
    ]
}

/// Once for each pattern, since most stand in a loop.
fn compile(context: &Context, pattern: &str, index: usize) -> Result<Regex, CallError> {
    if let Some(regex) = context.patterns.borrow().get(pattern) {
        return Ok(regex.clone());
    }
    let regex = pattern::compile(pattern)
        .map_err(|why| CallError::argument(index, format!("The pattern can't be read: {why}")))?;
    let mut known = context.patterns.borrow_mut();
    if known.len() >= MOST_KEPT {
        known.clear();
    }
    known.insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}

/// Whether the groups have names: none, all, or there are none. They may not be mixed.
fn names(regex: &Regex) -> Result<Option<Vec<&str>>, CallError> {
    let all = regex.captures_len() - 1;
    let names: Vec<&str> = regex.capture_names().flatten().collect();
    match names.len() {
        0 => Ok(None),
        named if named == all => Ok(Some(names)),
        _ => Err(CallError::argument(
            0,
            "Either all groups of the pattern have names, or none",
        )),
    }
}

fn result_type(regex: &Regex) -> Type {
    let groups = regex.captures_len() - 1;
    let names: Vec<&str> = regex.capture_names().flatten().collect();
    if groups == 0 {
        Type::String
    } else if names.is_empty() {
        Type::Tuple(vec![Type::String; groups].into())
    } else {
        Type::object(
            names
                .into_iter()
                .map(|name| (name.into(), Type::String))
                .collect(),
        )
    }
}

/// The whole match if there are no groups; else a tuple, or an object by the groups' names.
fn found(regex: &Regex, captures: &Captures<'_>) -> Result<Value, CallError> {
    let value = |found: Option<regex::Match<'_>>| match found {
        Some(found) => Value::string(found.as_str()),
        None => Value::null_of(Type::String),
    };
    if captures.len() == 1 {
        return Ok(value(captures.get(0)));
    }
    Ok(match names(regex)? {
        Some(names) => Value::object(
            names
                .into_iter()
                .map(|name| (name.into(), value(captures.name(name))))
                .collect::<Entries>(),
        ),
        None => Value::tuple(captures.iter().skip(1).map(value).collect::<Vec<_>>()),
    })
}

/// A text between slashes is a pattern, everything else is looked for as it is.
fn replace(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let (whole, what, with) = (
        text(arguments, 0)?,
        text(arguments, 1)?,
        text(arguments, 2)?,
    );
    let pattern = what
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix('/'));
    let mut replaced = String::new();
    let mut end = 0;
    if let Some(pattern) = pattern {
        let regex = compile(context, pattern, 1)?;
        for captures in regex.captures_iter(whole) {
            let Some(found) = captures.get(0) else {
                continue;
            };
            let before = replaced.len();
            replaced.push_str(&whole[end..found.start()]);
            captures.expand(with, &mut replaced);
            context.charge_bytes(replaced.len() - before)?;
            end = found.end();
        }
    } else {
        for (start, found) in whole.match_indices(what) {
            context.charge_bytes(start - end + with.len())?;
            replaced.push_str(&whole[end..start]);
            replaced.push_str(with);
            end = start + found.len();
        }
    }
    replaced.push_str(&whole[end..]);
    Ok(Value::string(replaced))
}
