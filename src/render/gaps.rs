//! Vars as templates see them where some of them couldn't be read.
//!
//! In: merged vars, and what a group's templates read of them. Out: a value in which what couldn't be
//! read is unknown. May not: be asked of a configuration without gaps, whose vars are JSON.

use std::collections::BTreeSet;

use nstance_gotemplate::{Map, Value};

use super::data::to_value;
use super::group::CompiledGroup;
use crate::merge::deep::{Merged, MergedValue};

/// The vars of a group, or of one of its slots.
pub(super) fn vars(merged: Option<&Merged>, group: &CompiledGroup<'_>) -> Value {
    let is_open = group.merged.unread.vars || merged.is_some_and(Merged::may_have_more);
    let read = is_open.then(|| Read::of(group));
    if read.as_ref().is_some_and(|read| read.is_whole) {
        return unknown();
    }
    let named = read.into_iter().flat_map(|read| read.names);
    let mut vars: Vec<(String, Value)> = named.map(|name| (name, unknown())).collect();
    let entries = merged.and_then(Merged::entries).into_iter().flatten();
    // Of two equal keys the last one counts.
    vars.extend(entries.map(|(name, var)| (name.to_string(), value(var))));
    Value::Map(vars.into_iter().collect::<Map>().lenient())
}

fn unknown() -> Value {
    Value::unknown("it couldn't be read")
}

fn value(merged: &Merged) -> Value {
    match &merged.value {
        MergedValue::Unknown => unknown(),
        MergedValue::Object(_) if merged.may_have_more() => unknown(),
        MergedValue::Object(entries) => {
            let entries = entries.iter();
            let map: Map = entries
                .map(|(name, entry)| (name.to_string(), value(entry)))
                .collect();
            Value::Map(map)
        }
        MergedValue::Array(items) => Value::from(items.iter().map(value).collect::<Vec<_>>()),
        _ => to_value(&merged.to_json()),
    }
}

/// What templates read of the vars.
#[derive(Default)]
struct Read {
    /// Names of vars.
    names: BTreeSet<String>,
    /// All of them, or whatever an expression says.
    is_whole: bool,
}

impl Read {
    fn of(group: &CompiledGroup<'_>) -> Self {
        let mut read = Self::default();
        group.templates(&mut |compiled| {
            let reads = compiled.template.reads();
            read.is_whole |= reads.anything;
            for access in &reads.paths {
                let mut path = access.path.split('.').skip(1);
                match (path.next(), path.next()) {
                    (Some("Vars" | "Var"), Some(name)) => {
                        read.names.insert(name.to_owned());
                    }
                    (Some("Vars" | "Var" | "") | None, _) => read.is_whole = true,
                    _ => {}
                }
            }
        });
        read
    }
}
