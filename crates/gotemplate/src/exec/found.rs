//! What was there when an expression failed.
//!
//! In: the values that a failed operation read. Out: what they are, for people, and by which path
//! or expression they were reached. May not: cost anything while nothing fails.

use crate::code::{Code, Op, Site};
use crate::error::Found;
use crate::format;
use crate::parse::{operands, show};
use crate::quote::quoted;
use crate::template::Set;
use crate::value::{ReadSite, Value};

/// The most characters of a value that are shown.
const SHOWN: usize = 60;

/// Which part of an expression a value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// What so many fields of a path led to.
    Fields(usize),
    /// The expression's own value.
    Whole,
    /// A function's argument, from 0, in the order written.
    Argument(usize),
    /// What the preceding command of the pipeline made.
    Piped,
}

/// What a value is.
#[derive(Debug)]
pub(super) struct Sight {
    kind: String,
    value: Option<String>,
}

impl Sight {
    pub(super) fn of(value: &Value) -> Self {
        let counted = |what: &str, count: usize, unit: &str| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{what} {count} {unit}{plural}")
        };
        let kind = match value {
            Value::Missing => "not there".to_owned(),
            Value::Nil => "null".to_owned(),
            Value::Unset => "not set".to_owned(),
            Value::Bool(_) => "a boolean".to_owned(),
            Value::Int(_) | Value::Int64(_) | Value::Uint8(_) => "a whole number".to_owned(),
            Value::Float(_) | Value::Complex(..) | Value::Number(_) => "a number".to_owned(),
            Value::Str(_) => "a string".to_owned(),
            Value::List(list) => counted("a list of", list.len(), "item"),
            Value::Map(map) => counted("a map of", map.len(), "key"),
            Value::Dict(dict) => counted("a map of", dict.map().len(), "key"),
            Value::Struct(fields) if fields.struct_type().name().is_empty() => {
                "a struct".to_owned()
            }
            Value::Struct(fields) => format!("a struct `{}`", fields.struct_type().name()),
            Value::Unknown(_) => "not known yet".to_owned(),
        };
        let value = match value {
            Value::Missing | Value::Nil | Value::Unset | Value::Struct(_) | Value::Unknown(_) => {
                None
            }
            Value::Str(text) => Some(quoted(&shortened(&String::from_utf8_lossy(
                &text.as_bytes()[..text.as_bytes().len().min(4 * SHOWN + 4)],
            )))),
            value => {
                let text = format::with_verb(value, b'v');
                let text = String::from_utf8_lossy(&text);
                let words = text.split(char::is_control).collect::<Vec<_>>().join(" ");
                Some(shortened(&words))
            }
        };
        Self { kind, value }
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        text.to_owned()
    } else {
        text.chars().take(SHOWN - 1).chain(['…']).collect()
    }
}

/// Says of each value how the operation came by it.
pub(super) fn named(set: &Set, main: u32, at: ReadSite, sights: Vec<(At, Sight)>) -> Vec<Found> {
    let code = set.code(at.code);
    let path = |operation: usize| {
        let site = ReadSite {
            operation: operation as u32,
            ..at
        };
        set.analysis(main).access(code, site).path
    };
    let operation = at.operation as usize;
    let found = |(part, sight): (At, Sight)| {
        let path = match part {
            At::Whole => path(operation),
            At::Fields(count) => leading(code, operation, &path(operation), count),
            At::Argument(index) => {
                let site = argument(code, operation, index)?;
                let made = maker(code, operation, site);
                if matches!(
                    made.map(|made| code.ops[made]),
                    Some(Op::Constant { .. } | Op::Nil)
                ) {
                    return None;
                }
                match made {
                    Some(made) => path(made),
                    None => show(&code.source, site),
                }
            }
            At::Piped => {
                let start = code.sites[operation].start;
                let made = (0..operation).rev().find(|made| {
                    let site = code.sites[*made];
                    site.end <= start && site.end > site.start
                })?;
                match code.ops[made] {
                    Op::Constant { .. } => return None,
                    Op::Call { .. } => show(&code.source, code.sites[made]),
                    _ => path(made),
                }
            }
        };
        Some(Found {
            path,
            kind: sight.kind,
            value: sight.value,
        })
    };
    sights.into_iter().filter_map(found).collect()
}

/// A path without the fields that were not reached.
fn leading(code: &Code, operation: usize, path: &str, count: usize) -> String {
    let fields = match code.ops[operation] {
        Op::Field { path, .. }
        | Op::PrintField { path }
        | Op::ChainField { path, .. }
        | Op::VariableField { path, .. } => code.path(path),
        _ => return path.to_owned(),
    };
    let beyond: usize = fields.skip(count).map(|field| 1 + field.len()).sum();
    match path.len().checked_sub(beyond).map(|length| &path[..length]) {
        // The root itself, or a dot that has no path.
        None | Some("") => ".".to_owned(),
        Some(path) => path.to_owned(),
    }
}

fn argument(code: &Code, operation: usize, index: usize) -> Option<Site> {
    // The first operand is the function.
    operands(&code.source, code.sites[operation]).nth(index + 1)
}

/// The operation that read just this operand.
fn maker(code: &Code, operation: usize, operand: Site) -> Option<usize> {
    (0..operation).rev().find(|made| {
        let site = code.sites[*made];
        site.start == operand.start && site.end == operand.end
    })
}
