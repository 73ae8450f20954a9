//! Functions of lists, tuples, maps and objects. Come in: collections. Go out: elements, or new
//! collections: a list stays a list and a tuple a tuple.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{CallError, Parameter, Signature, number, string, text, whole};
use crate::context::Context;
use crate::convert::{convert, unify};
use crate::number::Number;
use crate::types::Type;
use crate::value::{Entries, Kind, Value};

/// The most that `range` makes, as in Terraform.
const LONGEST_RANGE: usize = 1024;

pub(super) fn signatures() -> Vec<Signature> {
    let any = Parameter::any;
    let list = |of| Parameter::list("list", of);
    vec![
        Signature::new("alltrue", [list(Type::Bool)], |_, arguments| {
            let elements = elements(arguments, 0)?;
            Ok(elements
                .iter()
                .all(|each| each.as_bool() == Some(true))
                .into())
        }),
        Signature::new("anytrue", [list(Type::Bool)], |_, arguments| {
            let elements = elements(arguments, 0)?;
            Ok(elements
                .iter()
                .any(|each| each.as_bool() == Some(true))
                .into())
        }),
        Signature::new(
            "chunklist",
            [list(Type::Any), Parameter::number("size")],
            chunk_list,
        ),
        Signature::new("coalesce", [], coalesce).and_any_number_of(any("vals").or_null()),
        Signature::new("coalescelist", [], coalesce_list).and_any_number_of(any("vals").or_null()),
        Signature::new("compact", [list(Type::String)], |_, arguments| {
            let filled = |each: &&Value| each.as_str().is_some_and(|text| !text.is_empty());
            let kept: Vec<_> = elements(arguments, 0)?
                .iter()
                .filter(filled)
                .cloned()
                .collect();
            Ok(Value::list(Type::String, kept))
        }),
        Signature::new("concat", [], concat).and_any_number_of(any("seqs").outer()),
        Signature::new("contains", [any("list"), any("value")], |_, arguments| {
            Ok(elements(arguments, 0)?.contains(&arguments[1]).into())
        }),
        Signature::new("distinct", [list(Type::Any)], distinct),
        Signature::new(
            "element",
            [any("list").outer(), Parameter::number("index")],
            element,
        ),
        Signature::new("flatten", [any("list").outer()], flatten),
        Signature::new("index", [any("list"), any("value")], index),
        Signature::new("keys", [any("inputMap").outer()], keys),
        Signature::new("length", [any("value").outer()], length),
        Signature::new(
            "lookup",
            [any("inputMap").outer(), Parameter::string("key")],
            lookup,
        )
        .and_any_number_of(any("default").or_null().outer()),
        Signature::new(
            "matchkeys",
            [
                Parameter::list("values", Type::Any),
                Parameter::list("keys", Type::Any),
                Parameter::list("searchset", Type::Any),
            ],
            match_keys,
        ),
        Signature::new("merge", [], merge).and_any_number_of(any("maps").or_null().outer()),
        Signature::new("one", [any("list").outer()], one),
        Signature::new("range", [], range).and_any_number_of(Parameter::number("params")),
        Signature::new("reverse", [any("list").outer()], reverse),
        Signature::new(
            "slice",
            [
                any("list").outer(),
                Parameter::number("start_index"),
                Parameter::number("end_index"),
            ],
            slice,
        ),
        Signature::new("sort", [list(Type::String)], sort),
        Signature::new(
            "transpose",
            [Parameter::new(
                "values",
                Type::map(Type::list(Type::String)),
            )],
            transpose,
        ),
        Signature::new("values", [any("values").outer()], values),
        Signature::new(
            "zipmap",
            [Parameter::list("keys", Type::String), any("values").outer()],
            zip_map,
        ),
    ]
}

fn elements(arguments: &[Value], index: usize) -> Result<&[Value], CallError> {
    arguments[index]
        .elements()
        .ok_or_else(|| CallError::argument(index, "A list, set or tuple is required"))
}

/// The elements of a list or tuple: those of a set have no places.
fn ordered(arguments: &[Value], index: usize) -> Result<&[Value], CallError> {
    match &arguments[index].kind {
        Kind::List(_, elements) | Kind::Tuple(elements) => Ok(elements),
        _ => Err(CallError::argument(index, "A list or tuple is required")),
    }
}

fn entries(arguments: &[Value], index: usize) -> Result<&Entries, CallError> {
    arguments[index]
        .entries()
        .ok_or_else(|| CallError::argument(index, "A map or object is required"))
}

/// Elements in a collection of the kind that `like` is.
fn like(like: &Value, elements: Vec<Value>) -> Value {
    match &like.kind {
        Kind::List(of, _) | Kind::Set(of, _) => Value::list(of.clone(), elements),
        _ => Value::tuple(elements),
    }
}

/// The type of the elements of a list.
fn element_type(list: &Value) -> Type {
    match &list.kind {
        Kind::List(of, _) | Kind::Set(of, _) | Kind::Map(of, _) => of.clone(),
        _ => Type::Any,
    }
}

fn chunk_list(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let size = usize::try_from(whole(arguments, 1)?)
        .map_err(|_| CallError::argument(1, "The size may not be negative"))?;
    let list = elements(arguments, 0)?;
    let of = element_type(&arguments[0]);
    // A size of 0 means one chunk.
    let size = if size == 0 { list.len().max(1) } else { size };
    let chunks: Vec<Value> = list
        .chunks(size)
        .map(|chunk| Value::list(of.clone(), chunk))
        .collect();
    Ok(Value::list(Type::list(of), chunks))
}

fn coalesce(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let types: Vec<Type> = arguments
        .iter()
        .map(Value::type_of)
        .filter(|of| *of != Type::Any)
        .collect();
    if types.is_empty() {
        return Err(CallError::new("There is no argument that isn't null"));
    }
    let of = unify(&types).ok_or_else(|| CallError::new("All arguments must be of one type"))?;
    let chosen = arguments
        .iter()
        .filter_map(|argument| convert(argument, &of).ok())
        .find(|value| !value.is_null() && value.as_str() != Some(""));
    chosen.ok_or_else(|| CallError::new("Every argument is null or an empty string"))
}

fn coalesce_list(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let mut chosen = None;
    for index in 0..arguments.len() {
        if !ordered(arguments, index)?.is_empty() && chosen.is_none() {
            chosen = Some(arguments[index].clone());
        }
    }
    chosen.ok_or_else(|| CallError::new("Every list is empty"))
}

fn concat(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    if arguments.is_empty() {
        return Err(CallError::new("At least one list is required"));
    }
    let mut all = Vec::new();
    let mut types = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let part = ordered(arguments, index)?;
        context.charge_steps(part.len())?;
        all.extend_from_slice(part);
        if let Kind::List(of, _) = &argument.kind {
            types.push(of.clone());
        }
    }
    let lists = types.len() == arguments.len();
    let Some(of) = unify(&types).filter(|_| lists) else {
        return Ok(Value::tuple(all));
    };
    let converted = all.iter().map(|value| convert(value, &of)).collect();
    let converted: Vec<Value> =
        Result::map_err(converted, |error| CallError::new(error.to_string()))?;
    Ok(Value::list(of, converted))
}

/// The first of each that are equal. What prints alike is compared, nothing else.
fn distinct(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let list = elements(arguments, 0)?;
    let mut seen: HashMap<String, Vec<&Value>> = HashMap::with_capacity(list.len());
    let mut kept = Vec::new();
    for value in list {
        let printed = crate::format::console(value);
        context.charge_bytes(printed.len())?;
        let alike = seen.entry(printed).or_default();
        if !alike.contains(&value) {
            alike.push(value);
            kept.push(value.clone());
        }
    }
    Ok(Value::list(element_type(&arguments[0]), kept))
}

fn element(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let list = ordered(arguments, 0)?;
    let index = usize::try_from(whole(arguments, 1)?)
        .map_err(|_| CallError::argument(1, "The index may not be negative"))?;
    if list.is_empty() {
        return Err(CallError::argument(0, "The list is empty"));
    }
    Ok(list[index % list.len()].clone())
}

fn flatten(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let mut flat = Vec::new();
    let mut sensitive = false;
    // What is still to do, the next on top.
    let mut rest: Vec<&Value> = elements(arguments, 0)?.iter().rev().collect();
    while let Some(value) = rest.pop() {
        context.charge_steps(1)?;
        match value.elements() {
            Some(inner) => {
                sensitive |= value.sensitive;
                rest.extend(inner.iter().rev());
            }
            None => flat.push(value.clone()),
        }
    }
    Ok(Value::tuple(flat).or_sensitive(sensitive))
}

fn index(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let position = ordered(arguments, 0)?
        .iter()
        .position(|value| *value == arguments[1]);
    position
        .map(Value::number)
        .ok_or_else(|| CallError::argument(1, "The list has no such element"))
}

fn keys(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let keys: Vec<Value> = entries(arguments, 0)?
        .keys()
        .map(|key| Value::string(key.clone()))
        .collect();
    Ok(match &arguments[0].kind {
        Kind::Map(..) => Value::list(Type::String, keys),
        _ => Value::tuple(keys),
    })
}

fn length(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let value = &arguments[0];
    let length = value
        .elements()
        .map(<[Value]>::len)
        .or_else(|| value.entries().map(Entries::len))
        .or_else(|| string::count(value));
    length.map(Value::number).ok_or_else(|| {
        CallError::argument(
            0,
            "A string, a collection, a tuple or an object is required",
        )
    })
}

fn lookup(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    if arguments.len() > 3 {
        return Err(CallError::argument(3, "There is room for one default only"));
    }
    let (entries, key) = (entries(arguments, 0)?, text(arguments, 1)?);
    let default = match (arguments.get(2), &arguments[0].kind) {
        (Some(default), Kind::Map(of, _)) => Some(convert(default, of).map_err(|_| {
            let of = of.friendly_name();
            CallError::argument(2, format!("The default must be what the map holds: {of}"))
        })?),
        (default, _) => default.cloned(),
    };
    if let Some(value) = entries.get(key) {
        return Ok(value.clone());
    }
    default.ok_or_else(|| {
        let near = crate::error::nearest(key, entries.keys().map(AsRef::as_ref));
        let hint = near.map_or(String::new(), |near| format!("; there is `{near}`"));
        CallError::argument(1, format!("There is no `{key}`, and no default{hint}"))
    })
}

fn match_keys(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let values = elements(arguments, 0)?;
    if values.len() != elements(arguments, 1)?.len() {
        return Err(CallError::argument(
            1,
            "There must be as many keys as values",
        ));
    }
    let types = [element_type(&arguments[1]), element_type(&arguments[2])];
    let known: Vec<Type> = types.into_iter().filter(|of| *of != Type::Any).collect();
    let of = if known.is_empty() {
        Type::Any
    } else {
        unify(&known).ok_or_else(|| {
            CallError::argument(2, "The keys and those searched for must be of one type")
        })?
    };
    let converted = |index: usize| -> Result<Vec<Value>, CallError> {
        let converted = elements(arguments, index)?
            .iter()
            .map(|value| convert(value, &of));
        converted
            .collect::<Result<_, _>>()
            .map_err(|error| CallError::argument(index, error.to_string()))
    };
    let (keys, wanted) = (converted(1)?, converted(2)?);
    context.charge_steps(keys.len().saturating_mul(wanted.len()))?;
    let matching: Vec<Value> = values
        .iter()
        .zip(&keys)
        .filter(|(_, key)| !key.is_null() && wanted.contains(key))
        .map(|(value, _)| value.clone())
        .collect();
    Ok(Value::list(element_type(&arguments[0]), matching))
}

/// Of maps of one type a map, else an object.
fn merge(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let mut merged = Entries::new();
    let mut types = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        if argument.is_null() {
            continue;
        }
        let part = entries(arguments, index)?;
        context.charge_steps(part.len())?;
        merged.extend(part.iter().map(|(key, value)| (key.clone(), value.clone())));
        types.push(match &argument.kind {
            Kind::Map(of, _) => Some(of.clone()),
            _ => None,
        });
    }
    match types.first() {
        Some(Some(of)) if types.iter().all(|each| each.as_ref() == Some(of)) => {
            Ok(Value::map(of.clone(), merged))
        }
        _ => Ok(Value::object(merged)),
    }
}

fn one(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    match elements(arguments, 0)? {
        [] => Ok(Value::null_of(element_type(&arguments[0]))),
        [only] => Ok(only.clone()),
        more => Err(CallError::argument(
            0,
            format!(
                "There may be one element at most, and there are {}",
                more.len()
            ),
        )),
    }
}

fn range(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let zero = Number::ZERO;
    let given = |index| number(arguments, index).cloned();
    let (start, end) = match arguments.len() {
        1 => (zero.clone(), given(0)?),
        2 | 3 => (given(0)?, given(1)?),
        _ => return Err(CallError::new("One, two or three numbers are required")),
    };
    let down = end < start;
    let step = match arguments.get(2) {
        Some(_) => given(2)?,
        None => Number::from(if down { -1i64 } else { 1 }),
    };
    if arguments.len() == 3 && start != end && !step.is_zero() && step.is_negative() != down {
        return Err(CallError::argument(2, "The step leads away from the end"));
    }
    let mut numbers = Vec::new();
    let mut next = start;
    while if down { next > end } else { next < end } {
        if numbers.len() == LONGEST_RANGE {
            return Err(CallError::new(format!(
                "This makes more than {LONGEST_RANGE} numbers"
            )));
        }
        numbers.push(Value::number(next.clone()));
        next = next.add(&step)?;
    }
    Ok(Value::list(Type::Number, numbers))
}

fn reverse(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let reversed = elements(arguments, 0)?.iter().rev().cloned().collect();
    Ok(like(&arguments[0], reversed))
}

fn slice(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let list = ordered(arguments, 0)?;
    let place = |index| {
        let place = whole(arguments, index)?;
        usize::try_from(place)
            .ok()
            .filter(|place| *place <= list.len())
            .ok_or_else(|| {
                let length = list.len();
                CallError::argument(index, format!("{place} isn't within 0 and {length}"))
            })
    };
    let (start, end) = (place(1)?, place(2)?);
    let part = list
        .get(start..end)
        .ok_or_else(|| CallError::argument(1, "The start may not be behind the end"))?;
    Ok(like(&arguments[0], part.to_vec()))
}

/// By the bytes of UTF-8.
fn sort(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let mut list = elements(arguments, 0)?.to_vec();
    if let Some(position) = list.iter().position(Value::is_null) {
        return Err(CallError::argument(
            0,
            format!("Element {position} is null; only strings can be sorted"),
        ));
    }
    list.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    Ok(Value::list(Type::String, list))
}

fn transpose(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let mut lists: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
    for (key, list) in entries(arguments, 0)? {
        for element in list.elements().unwrap_or_default() {
            let Kind::String(text) = &element.kind else {
                return Err(CallError::argument(0, "An element is null"));
            };
            lists
                .entry(text.clone())
                .or_default()
                .push(Value::string(key.clone()));
        }
    }
    let transposed = lists
        .into_iter()
        .map(|(key, list)| (key, Value::list(Type::String, list)))
        .collect();
    Ok(Value::map(Type::list(Type::String), transposed))
}

fn values(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let values: Vec<Value> = entries(arguments, 0)?.values().cloned().collect();
    Ok(match &arguments[0].kind {
        Kind::Map(of, _) => Value::list(of.clone(), values),
        _ => Value::tuple(values),
    })
}

fn zip_map(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let (keys, values) = (elements(arguments, 0)?, ordered(arguments, 1)?);
    if keys.len() != values.len() {
        let (keys, values) = (keys.len(), values.len());
        return Err(CallError::argument(
            1,
            format!("There are {keys} keys and {values} values"),
        ));
    }
    let mut zipped = Entries::new();
    for (index, (key, value)) in keys.iter().zip(values).enumerate() {
        let key = key
            .as_str()
            .ok_or_else(|| CallError::argument(0, format!("Key {index} is null")))?;
        let Kind::String(key) = Value::string(key).kind else {
            continue;
        };
        zipped.insert(key, value.clone());
    }
    Ok(match &arguments[1].kind {
        Kind::List(of, _) => Value::map(of.clone(), zipped),
        _ => Value::object(zipped),
    })
}
