//! Functions that choose between values, test them, run templates, or give up.

use super::arguments::{bytes, fail, int, is_nil, kind_of, list_of, pay, string, text};
use super::{Body, Entry, Outcome, entry, equal};
use crate::function::Kind::{Any, Bool, Int, Str};
use crate::function::{Budget, FunctionError};
use crate::value::{ItemType, Value};

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(
        "default",
        "D X",
        "X, or D where X is empty",
        &[Any],
        |_, a| {
            Ok(match a.get(1) {
                Some(unknown @ Value::Unknown(_)) => unknown.clone(),
                Some(given) if given.truth() => given.clone(),
                _ => a[0].clone(),
            })
        },
    )
    .and_any(Any)
    .testing()
    .passing(),
    entry(
        "coalesce",
        "X…",
        "the first that isn't empty",
        &[],
        |_, a| {
            Ok(a.iter()
                .find(|value| value.truth())
                .cloned()
                .unwrap_or_default())
        },
    )
    .and_any(Any)
    .testing()
    .passing(),
    entry(
        "ternary",
        "X Y B",
        "X if B is true, else Y",
        &[Any, Any, Bool],
        |_, a| {
            Ok(match &a[2] {
                Value::Bool(true) => a[0].clone(),
                Value::Bool(false) => a[1].clone(),
                unknown => unknown.clone(),
            })
        },
    )
    .testing()
    .passing(),
    entry(
        "empty",
        "X",
        "whether X is empty: false, 0, \"\", nil, no items",
        &[Any],
        |_, a| Ok(Value::Bool(!a[0].truth())),
    )
    .testing()
    .shallow(),
    entry("all", "X…", "whether none is empty", &[], |_, a| {
        Ok(Value::Bool(a.iter().all(Value::truth)))
    })
    .and_any(Any)
    .testing()
    .shallow(),
    entry("any", "X…", "whether one isn't empty", &[], |_, a| {
        Ok(Value::Bool(a.iter().any(Value::truth)))
    })
    .and_any(Any)
    .testing()
    .shallow(),
    entry(
        "required",
        "MESSAGE X",
        "X; an error with the message where X is nil or \"\"",
        &[Str, Any],
        |_, a| {
            if is_nil(&a[1]) || a[1].as_bytes().is_some_and(<[u8]>::is_empty) {
                return fail(text(&a[0]));
            }
            Ok(a[1].clone())
        },
    )
    .shallow(),
    entry(
        "fail",
        "MESSAGE",
        "an error with the message",
        &[Str],
        |_, a| fail(text(&a[0])),
    ),
    entry(
        "include",
        "NAME DATA",
        "the output of the template NAME, as a string",
        &[Str, Any],
        |_, _| Ok(Value::Nil),
    )
    .with_body(Body::Include)
    .passing(),
    entry(
        "tpl",
        "S DATA",
        "the output of the text S, taken for a template, as a string",
        &[Str, Any],
        |_, _| Ok(Value::Nil),
    )
    .with_body(Body::Tpl)
    .passing(),
    entry("hello", "", "`Hello!`", &[], |_, _| Ok("Hello!".into())),
];

pub(super) const TYPES: &[Entry] = &[
    entry("typeOf", "X", "the Go type of X", &[Any], |_, a| {
        Ok(type_of(&a[0]).into())
    })
    .shallow(),
    entry(
        "typeIs",
        "TYPE X",
        "whether X is of the type",
        &[Str, Any],
        |_, a| Ok(Value::Bool(type_of(&a[1]).as_bytes() == bytes(&a[0]))),
    )
    .shallow(),
    entry(
        "typeIsLike",
        "TYPE X",
        "whether X is of the type or a pointer to it",
        &[Str, Any],
        |_, a| {
            let (wanted, found) = (bytes(&a[0]), type_of(&a[1]));
            let found = found.as_bytes();
            Ok(Value::Bool(
                found == wanted || found.strip_prefix(b"*") == Some(wanted),
            ))
        },
    )
    .shallow(),
    entry(
        "kindOf",
        "X",
        "the Go kind of X: `map`, `slice`, `string`, …",
        &[Any],
        |_, a| Ok(kind_of(&a[0]).into()),
    )
    .shallow(),
    entry(
        "kindIs",
        "KIND X",
        "whether X is of the kind",
        &[Str, Any],
        |_, a| Ok(Value::Bool(kind_of(&a[1]).as_bytes() == bytes(&a[0]))),
    )
    .shallow(),
    entry(
        "deepEqual",
        "X Y",
        "whether X and Y are equal, in their types and all that is within",
        &[Any, Any],
        |budget, a| Ok(Value::Bool(equal::deeply(budget, &a[0], &a[1])?)),
    ),
];

pub(super) fn type_of(value: &Value) -> String {
    if is_nil(value) {
        return "<nil>".to_owned();
    }
    value.go_type()
}

pub(super) const SEQUENCES: &[Entry] = &[
    entry(
        "until",
        "N",
        "the whole numbers from 0 up to N, N not among them",
        &[Int],
        |budget, a| {
            let end = int(&a[0]);
            steps(budget, 0, end, if end < 0 { -1 } else { 1 })
        },
    ),
    entry(
        "untilStep",
        "FROM TO STEP",
        "the whole numbers from FROM up to TO, each STEP further",
        &[Int, Int, Int],
        |budget, a| steps(budget, int(&a[0]), int(&a[1]), int(&a[2])),
    ),
    entry(
        "seq",
        "FROM STEP TO",
        "the whole numbers from FROM to TO, TO among them, as a string",
        &[],
        seq,
    )
    .and_any(Int),
];

fn count(start: i64, end: i64, step: i64) -> u64 {
    let goes = if step > 0 {
        end > start
    } else {
        step < 0 && end < start
    };
    if goes {
        end.abs_diff(start).div_ceil(step.unsigned_abs())
    } else {
        0
    }
}

fn numbers(
    budget: &mut Budget,
    start: i64,
    end: i64,
    step: i64,
) -> Result<Vec<i64>, FunctionError> {
    let count = usize::try_from(count(start, end, step)).unwrap_or(usize::MAX);
    pay(budget, count)?;
    Ok((0..count as i64)
        .map(|index| start.wrapping_add(index.wrapping_mul(step)))
        .collect())
}

fn steps(budget: &mut Budget, start: i64, end: i64, step: i64) -> Outcome {
    let items = numbers(budget, start, end, step)?;
    let items = items.into_iter().map(Value::Int).collect();
    list_of(budget, items, ItemType::Int)
}

fn seq(budget: &mut Budget, arguments: &[Value]) -> Outcome {
    let toward = |from: i64, to: i64| if to < from { -1 } else { 1 };
    let (from, step, to) = match arguments {
        [to] => (1, toward(1, int(to)), int(to)),
        [from, to] => (int(from), toward(int(from), int(to)), int(to)),
        [from, step, to] => (int(from), int(step), int(to)),
        _ => return Ok("".into()),
    };
    // The end is among them.
    let end = to.saturating_add(if step < 0 { -1 } else { 1 });
    let goes = if step < 0 {
        to < from
    } else {
        step > 0 && to >= from
    };
    let items = if goes {
        numbers(budget, from, end, step)?
    } else {
        Vec::new()
    };
    let items: Vec<String> = items.iter().map(i64::to_string).collect();
    string(items.join(" "))
}
