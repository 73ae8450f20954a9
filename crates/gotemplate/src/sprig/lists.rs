//! Functions on lists. A list is never changed: what changes it gives another one.

use super::arguments::{fail, list, list_of, pay};
use super::equal::deeply;
use super::{Entry, Outcome, entry, numbers};
use crate::function::Kind::{Any, Int};
use crate::function::{Budget, FunctionError};
use crate::value::{ItemType, List, Value};

const LIST: Entry = entry("list", "X…", "a list of these", &[], |budget, a| {
    list(budget, a.to_vec())
})
.and_any(Any)
.passing();

const FIRST: Entry = entry("first", "LIST", "the first item, or nil", &[Any], |_, a| {
    Ok(items("first", &a[0])?
        .items()
        .first()
        .cloned()
        .unwrap_or_default())
})
.shallow();

const LAST: Entry = entry("last", "LIST", "the last item, or nil", &[Any], |_, a| {
    Ok(items("last", &a[0])?
        .items()
        .last()
        .cloned()
        .unwrap_or_default())
})
.shallow();

const REST: Entry = entry(
    "rest",
    "LIST",
    "all items but the first",
    &[Any],
    |budget, a| {
        let all = items("rest", &a[0])?;
        list(budget, all.items().iter().skip(1).cloned().collect())
    },
)
.shallow();

const INITIAL: Entry = entry(
    "initial",
    "LIST",
    "all items but the last",
    &[Any],
    |budget, a| {
        let all = items("initial", &a[0])?;
        let kept = all.len().saturating_sub(1);
        list(budget, all.items()[..kept].to_vec())
    },
)
.shallow();

const APPEND: Entry = entry(
    "append",
    "LIST X",
    "the list with X behind it",
    &[Any, Any],
    |budget, a| {
        let Some(all) = known("push", &a[0])? else {
            return Ok(a[0].clone());
        };
        pay(budget, all.len())?;
        let mut made = all.items().to_vec();
        made.push(a[1].clone());
        list(budget, made)
    },
)
.passing();

const PREPEND: Entry = entry(
    "prepend",
    "LIST X",
    "the list with X before it",
    &[Any, Any],
    |budget, a| {
        let Some(all) = known("prepend", &a[0])? else {
            return Ok(a[0].clone());
        };
        pay(budget, all.len())?;
        let mut made = vec![a[1].clone()];
        made.extend_from_slice(all.items());
        list(budget, made)
    },
)
.passing();

const REVERSE: Entry = entry(
    "reverse",
    "LIST",
    "the items in reverse order",
    &[Any],
    |budget, a| {
        // Sprig's own message says so.
        let all = items("reverse", &a[0])?;
        list(budget, all.items().iter().rev().cloned().collect())
    },
)
.shallow();

const UNIQ: Entry = entry(
    "uniq",
    "LIST",
    "the items, each of equal ones once",
    &[Any],
    |budget, a| {
        let mut made: Vec<Value> = Vec::new();
        for item in items("uniq", &a[0])?.items() {
            if !contains(budget, &made, item)? {
                made.push(item.clone());
            }
        }
        list(budget, made)
    },
);

const WITHOUT: Entry = entry(
    "without",
    "LIST X…",
    "the items but those equal to an X",
    &[Any],
    |budget, a| {
        let mut made = Vec::new();
        for item in items("without", &a[0])?.items() {
            if !contains(budget, &a[1..], item)? {
                made.push(item.clone());
            }
        }
        list(budget, made)
    },
)
.and_any(Any);

const HAS: Entry = entry(
    "has",
    "X LIST",
    "whether an item equals X",
    &[Any, Any],
    |budget, a| {
        if matches!(a[1], Value::Nil | Value::Missing) {
            return Ok(Value::Bool(false));
        }
        let all = items("has", &a[1])?;
        Ok(Value::Bool(contains(budget, all.items(), &a[0])?))
    },
);

const COMPACT: Entry = entry(
    "compact",
    "LIST",
    "the items that aren't empty",
    &[Any],
    |budget, a| {
        let all = items("compact", &a[0])?;
        list(
            budget,
            all.items()
                .iter()
                .filter(|item| item.truth())
                .cloned()
                .collect(),
        )
    },
);

const SLICE: Entry = entry(
    "slice",
    "LIST FROM TO",
    "the items from FROM up to TO; in place of Go's `slice`",
    &[Any],
    slice,
)
.and_any(Any)
.shallow();

const CHUNK: Entry = entry(
    "chunk",
    "N LIST",
    "the items as lists of N of them",
    &[Int, Any],
    chunk,
)
.shallow();

pub(super) const FUNCTIONS: &[Entry] = &[
    LIST,
    LIST.named("tuple"),
    FIRST,
    FIRST.named("mustFirst"),
    LAST,
    LAST.named("mustLast"),
    REST,
    REST.named("mustRest"),
    INITIAL,
    INITIAL.named("mustInitial"),
    APPEND,
    APPEND.named("mustAppend"),
    APPEND.named("push"),
    APPEND.named("mustPush"),
    PREPEND,
    PREPEND.named("mustPrepend"),
    entry(
        "concat",
        "LIST…",
        "the items of all lists",
        &[],
        |budget, a| {
            let mut made = Vec::new();
            for part in a {
                let part = part_of(part)?;
                pay(budget, part.len())?;
                made.extend_from_slice(part.items());
            }
            list(budget, made)
        },
    )
    .and_any(Any)
    .shallow(),
    REVERSE,
    REVERSE.named("mustReverse"),
    UNIQ,
    UNIQ.named("mustUniq"),
    WITHOUT,
    WITHOUT.named("mustWithout"),
    HAS,
    HAS.named("mustHas"),
    COMPACT,
    COMPACT.named("mustCompact"),
    SLICE,
    SLICE.named("mustSlice"),
    CHUNK,
    CHUNK.named("mustChunk"),
];

/// A list; else Sprig's words for what isn't one, which name what it was to be used for.
fn items<'v>(verb: &str, value: &'v Value) -> Result<&'v List, FunctionError> {
    match value {
        Value::List(list) => Ok(list),
        Value::Nil | Value::Missing => fail(NIL),
        other => fail(match verb {
            "push" => format!("Cannot push on type {}", super::defaults::type_of(other)),
            _ => format!(
                "Cannot find {verb} on type {}",
                super::arguments::kind_of(other)
            ),
        }),
    }
}

const NIL: &str = "runtime error: invalid memory address or nil pointer dereference";

/// The same, of what may be unknown.
fn known<'v>(verb: &str, value: &'v Value) -> Result<Option<&'v List>, FunctionError> {
    match value {
        Value::Unknown(_) => Ok(None),
        other => items(verb, other).map(Some),
    }
}

fn part_of(value: &Value) -> Result<&List, FunctionError> {
    match value {
        Value::List(list) => Ok(list),
        Value::Nil | Value::Missing => fail(NIL),
        other => fail(format!(
            "Cannot concat type {} as list",
            super::arguments::kind_of(other)
        )),
    }
}

fn contains(budget: &mut Budget, all: &[Value], wanted: &Value) -> Result<bool, FunctionError> {
    for item in all {
        if deeply(budget, item, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn slice(_: &mut Budget, arguments: &[Value]) -> Outcome {
    const OUT: &str = "reflect.Value.Slice: slice index out of bounds";
    let all = match &arguments[0] {
        Value::List(list) => list,
        Value::Nil | Value::Missing => return fail(NIL),
        other => {
            return fail(format!(
                "list should be type of slice or array but {}",
                super::arguments::kind_of(other)
            ));
        }
    };
    if all.is_empty() {
        return Ok(Value::Nil);
    }
    let bound = |index: usize| arguments.get(index).map(numbers::to_int);
    let from = bound(1).unwrap_or(0);
    let to = bound(2).unwrap_or(all.len() as i64);
    match (usize::try_from(from), usize::try_from(to)) {
        (Ok(from), Ok(to)) if from <= to && to <= all.capacity() => {
            Ok(Value::List(all.slice(from, to, all.capacity())))
        }
        _ => fail(OUT),
    }
}

fn chunk(budget: &mut Budget, arguments: &[Value]) -> Outcome {
    let size = super::arguments::int(&arguments[0]);
    let all = match &arguments[1] {
        Value::List(list) => list,
        Value::Nil | Value::Missing => return fail(NIL),
        other => {
            return fail(format!(
                "Cannot chunk type {}",
                super::arguments::kind_of(other)
            ));
        }
    };
    let Ok(size) = usize::try_from(size) else {
        return list_of(budget, Vec::new(), ItemType::List);
    };
    if size == 0 {
        return fail("runtime error: makeslice: len out of range");
    }
    pay(budget, all.len())?;
    let chunks = all.items().chunks(size);
    let chunks = chunks.map(|chunk| Value::List(List::new(chunk.to_vec())));
    list_of(budget, chunks.collect(), ItemType::List)
}
