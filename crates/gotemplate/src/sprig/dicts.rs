//! Functions on dicts. Those that change one change it for all who have it, as in Go; what the
//! caller handed to the template is never changed.

use super::arguments::DEPTH;
use super::arguments::{bytes, fail, is_nil, list, map, pay, shown, strings, too_deep, unknown};
use super::{Entry, Outcome, entry};
use crate::dict::Dict;
use crate::function::Kind::{Any, Map as MapKind, Str};
use crate::function::{Budget, FunctionError};
use crate::map::Map;
use crate::value::{List, Text, Value};

const MERGE: Entry = entry(
    "merge",
    "DICT DICT…",
    "the first dict, with what the others have and it hasn't; changes it",
    &[MapKind],
    |budget, a| merge(budget, a, false),
)
.and_any(MapKind)
.changing()
.shallow();

const MERGE_OVERWRITE: Entry = entry(
    "mergeOverwrite",
    "DICT DICT…",
    "the same, but later dicts win",
    &[MapKind],
    |budget, a| merge(budget, a, true),
)
.and_any(MapKind)
.changing()
.shallow();

const DEEP_COPY: Entry = entry(
    "deepCopy",
    "X",
    "a copy of X and all that is within, which can be changed",
    &[Any],
    |budget, a| {
        if is_nil(&a[0]) {
            return fail("reflect: call of reflect.Value.Type on zero Value");
        }
        copy(budget, &a[0], 0)
    },
)
.shallow();

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(
        "dict",
        "KEY X…",
        "a dict of these keys and values",
        &[],
        dict,
    )
    .and_any(Any)
    .passing(),
    entry(
        "get",
        "DICT KEY",
        "the value of the key, or \"\"",
        &[MapKind, Str],
        |_, a| {
            Ok(map(&a[0])
                .get(bytes(&a[1]))
                .cloned()
                .unwrap_or_else(|| "".into()))
        },
    )
    .shallow(),
    entry(
        "set",
        "DICT KEY X",
        "the dict, after X has become the value of the key",
        &[MapKind, Str, Any],
        |budget, a| {
            if let Some(unknown) = unknown(&a[..2]) {
                return Ok(Value::Unknown(unknown));
            }
            let dict = changeable(&a[0], "set")?;
            dict.set(budget, Text::from(bytes(&a[1])), a[2].clone())?;
            Ok(a[0].clone())
        },
    )
    .changing()
    .passing(),
    entry(
        "unset",
        "DICT KEY",
        "the dict, after the key has been taken away",
        &[MapKind, Str],
        |_, a| {
            if is_nil(&a[0]) {
                return Ok(Value::Dict(Dict::new(Map::default())));
            }
            changeable(&a[0], "unset")?.unset(bytes(&a[1]));
            Ok(a[0].clone())
        },
    )
    .changing()
    .shallow(),
    entry(
        "hasKey",
        "DICT KEY",
        "whether the dict has the key",
        &[MapKind, Str],
        |_, a| Ok(Value::Bool(map(&a[0]).get(bytes(&a[1])).is_some())),
    )
    .shallow(),
    entry(
        "keys",
        "DICT…",
        "the keys of the dicts, those of each sorted",
        &[],
        |budget, a| {
            let maps: Vec<Map> = a.iter().map(map).collect();
            let keys = maps
                .iter()
                .flat_map(|map| map.entries().iter().map(|(key, _)| key.as_bytes()));
            strings(budget, keys)
        },
    )
    .and_any(MapKind)
    .shallow(),
    entry(
        "values",
        "DICT",
        "the values, by the order of their keys",
        &[MapKind],
        |budget, a| {
            let map = map(&a[0]);
            list(
                budget,
                map.entries()
                    .iter()
                    .map(|(_, value)| value.clone())
                    .collect(),
            )
        },
    )
    .shallow(),
    entry(
        "pluck",
        "KEY DICT…",
        "the key's values in all dicts that have it",
        &[Str],
        |budget, a| {
            let key = bytes(&a[0]);
            let values = a[1..].iter().filter_map(|dict| map(dict).get(key).cloned());
            list(budget, values.collect())
        },
    )
    .and_any(MapKind)
    .shallow(),
    entry(
        "dig",
        "KEY… D DICT",
        "the value at the end of the keys, or D",
        &[],
        |_, a| dig(a),
    )
    .and_any(Any)
    .shallow(),
    entry(
        "pick",
        "DICT KEY…",
        "a dict of these keys of DICT only",
        &[MapKind],
        |budget, a| {
            chosen(budget, &a[0], |key| {
                a[1..].iter().any(|wanted| bytes(wanted) == key)
            })
        },
    )
    .and_any(Str)
    .shallow(),
    entry(
        "omit",
        "DICT KEY…",
        "a dict of all keys of DICT but these",
        &[MapKind],
        |budget, a| {
            chosen(budget, &a[0], |key| {
                !a[1..].iter().any(|wanted| bytes(wanted) == key)
            })
        },
    )
    .and_any(Str)
    .shallow(),
    MERGE,
    MERGE.named("mustMerge"),
    MERGE_OVERWRITE,
    MERGE_OVERWRITE.named("mustMergeOverwrite"),
    DEEP_COPY,
    DEEP_COPY.named("mustDeepCopy"),
];

/// A dict that the template may change.
fn changeable<'v>(value: &'v Value, verb: &str) -> Result<&'v Dict, FunctionError> {
    match value {
        Value::Dict(dict) => Ok(dict),
        value if is_nil(value) => fail("assignment to entry in nil map"),
        _ => fail(format!(
            "data that the template was given can't be changed: {verb} a deepCopy of it"
        )),
    }
}

fn dict(budget: &mut Budget, arguments: &[Value]) -> Outcome {
    let mut entries = Vec::with_capacity(arguments.len() / 2);
    for pair in arguments.chunks(2) {
        if let Value::Unknown(unknown) = &pair[0] {
            return Ok(Value::Unknown(unknown.clone()));
        }
        let key = shown(budget, &pair[0])?;
        pay(budget, 1 + key.len() / 8)?;
        let value = pair.get(1).cloned().unwrap_or_else(|| "".into());
        entries.push((Text::from(key), value));
    }
    Ok(Value::Dict(Dict::new(Map::new(entries))))
}

fn dig(arguments: &[Value]) -> Outcome {
    let [keys @ .., default, dict] = arguments else {
        return fail("dig needs at least three arguments");
    };
    if keys.is_empty() {
        return fail("dig needs at least three arguments");
    }
    let mut value = dict.clone();
    for key in keys {
        if let Value::Unknown(_) = value {
            return Ok(value);
        }
        let not = |wanted: &str, value: &Value| {
            let found = super::defaults::type_of(value).replace("<nil>", "nil");
            fail(format!(
                "interface conversion: interface {{}} is {found}, not {wanted}"
            ))
        };
        if !matches!(&value, Value::Dict(_))
            && !matches!(&value, Value::Map(map) if !map.is_string_typed())
        {
            return not("map[string]interface {}", &value);
        }
        let Some(name) = key.as_bytes() else {
            return not("string", key);
        };
        match map(&value).get(name) {
            Some(inner) => value = inner.clone(),
            None => return Ok(default.clone()),
        }
    }
    Ok(value)
}

fn chosen(budget: &mut Budget, dict: &Value, chosen: impl Fn(&[u8]) -> bool) -> Outcome {
    let map = map(dict);
    pay(budget, map.len())?;
    let entries = map
        .entries()
        .iter()
        .filter(|(key, _)| chosen(key.as_bytes()));
    Ok(Value::Dict(Dict::new(Map::new(entries.cloned().collect()))))
}

/// A copy of a value in which all maps are dicts of its own.
pub(super) fn copy(budget: &mut Budget, value: &Value, depth: u32) -> Outcome {
    if depth > DEPTH {
        return too_deep();
    }
    pay(budget, 1)?;
    Ok(match value {
        Value::Map(map) if !map.is_string_typed() => copy_map(budget, map, depth)?,
        Value::Dict(dict) => copy_map(budget, &dict.map(), depth)?,
        Value::List(list) if list.item_type() != crate::value::ItemType::Str => {
            let mut items = Vec::with_capacity(list.len());
            for item in list.items() {
                items.push(copy(budget, item, depth + 1)?);
            }
            Value::List(List::of_type(items, list.item_type()))
        }
        other => other.clone(),
    })
}

fn copy_map(budget: &mut Budget, map: &Map, depth: u32) -> Outcome {
    let mut entries = Vec::with_capacity(map.len());
    for (key, value) in map.entries() {
        entries.push((key.clone(), copy(budget, value, depth + 1)?));
    }
    Ok(Value::Dict(Dict::new(Map::new(entries))))
}

fn merge(budget: &mut Budget, arguments: &[Value], overwrite: bool) -> Outcome {
    let target = if is_nil(&arguments[0]) {
        Dict::new(Map::default())
    } else {
        changeable(&arguments[0], "merge into")?.clone()
    };
    for source in &arguments[1..] {
        merge_into(budget, &target, &map(source), overwrite, 0)?;
    }
    Ok(Value::Dict(target))
}

fn merge_into(
    budget: &mut Budget,
    target: &Dict,
    source: &Map,
    overwrite: bool,
    depth: u32,
) -> Result<(), FunctionError> {
    if depth > DEPTH {
        return too_deep();
    }
    for (key, new) in source.entries() {
        pay(budget, 1)?;
        let old = target.map().get(key.as_bytes()).cloned();
        if is_nil(new) && !overwrite {
            continue;
        }
        let value = match (old, new) {
            (None, new) => new.clone(),
            (Some(old), new) if is_map(&old) && is_map(new) => {
                let inner = match old {
                    Value::Dict(inner) => inner,
                    // Data of the caller's: the template gets a map of its own.
                    other => Dict::new(map(&other)),
                };
                merge_into(budget, &inner, &map(new), overwrite, depth + 1)?;
                Value::Dict(inner)
            }
            (Some(old), new) if is_map(new) && old.truth() => old,
            (Some(old), new) if overwrite || !old.truth() => new.clone(),
            (Some(old), _) => old,
        };
        target.set(budget, key.clone(), value)?;
    }
    Ok(())
}

fn is_map(value: &Value) -> bool {
    match value {
        Value::Dict(_) => true,
        Value::Map(map) => !map.is_string_typed(),
        _ => false,
    }
}
