//! The one type that values of several types can all become.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::types::{ObjectType, Type};

/// The type that values of all these types can be converted to; None if there is none. Strings from
/// numbers, lists from tuples of different lengths, maps from objects of different attributes.
pub fn unify(types: &[Type]) -> Option<Type> {
    let (first, rest) = types.split_first()?;
    if rest.iter().all(|of| of == first) {
        return Some(first.clone());
    }
    let open = types.iter().filter(|of| **of == Type::Any).count();
    let objects: Vec<&ObjectType> = types
        .iter()
        .filter_map(|of| {
            if let Type::Object(object) = of {
                Some(&**object)
            } else {
                None
            }
        })
        .collect();
    let tuples: Vec<&[Type]> = types
        .iter()
        .filter_map(|of| {
            if let Type::Tuple(tuple) = of {
                Some(&**tuple)
            } else {
                None
            }
        })
        .collect();
    if !objects.is_empty() && !tuples.is_empty() {
        return None;
    }
    if !objects.is_empty() && objects.len() + open == types.len() {
        return unify_objects(&objects);
    }
    if !tuples.is_empty() && tuples.len() + open == types.len() {
        return unify_tuples(&tuples);
    }
    if let Some(elements) = sequences(types) {
        return unify(&elements).map(Type::list);
    }
    if let Some(elements) = mappings(types) {
        return unify(&elements).map(Type::map);
    }

    let mut preferred: Vec<&Type> = types.iter().collect();
    preferred.sort_by(|a, b| preference(a, b));
    preferred
        .into_iter()
        .find(|wanted| {
            types
                .iter()
                .all(|of| of == *wanted || is_convertible(of, wanted))
        })
        .cloned()
}

/// What is in them, if all are lists or tuples.
fn sequences(types: &[Type]) -> Option<Vec<Type>> {
    let mut elements = Vec::new();
    for of in types {
        match of {
            Type::List(of) => elements.push((**of).clone()),
            Type::Tuple(of) => elements.extend(of.iter().cloned()),
            _ => return None,
        }
    }
    Some(elements)
}

/// What is in them, if all are maps or objects.
fn mappings(types: &[Type]) -> Option<Vec<Type>> {
    let mut elements = Vec::new();
    for of in types {
        match of {
            Type::Map(of) => elements.push((**of).clone()),
            Type::Object(of) => elements.extend(of.attributes.values().cloned()),
            _ => return None,
        }
    }
    Some(elements)
}

fn unify_objects(objects: &[&ObjectType]) -> Option<Type> {
    let (first, rest) = objects.split_first()?;
    if rest
        .iter()
        .any(|object| !object.attributes.keys().eq(first.attributes.keys()))
    {
        let all: Vec<Type> = objects
            .iter()
            .flat_map(|object| object.attributes.values().cloned())
            .collect();
        return unify(&all).map(Type::map);
    }
    let mut attributes = BTreeMap::new();
    for name in first.attributes.keys() {
        let across: Vec<Type> = objects
            .iter()
            .map(|object| object.attributes[name].clone())
            .collect();
        attributes.insert(name.clone(), unify(&across)?);
    }
    Some(Type::object(attributes))
}

fn unify_tuples(tuples: &[&[Type]]) -> Option<Type> {
    let (first, rest) = tuples.split_first()?;
    if rest.iter().any(|tuple| tuple.len() != first.len()) {
        let all: Vec<Type> = tuples
            .iter()
            .flat_map(|tuple| tuple.iter().cloned())
            .collect();
        return unify(&all).map(Type::list);
    }
    (0..first.len())
        .map(|index| {
            let across: Vec<Type> = tuples.iter().map(|tuple| tuple[index].clone()).collect();
            unify(&across)
        })
        .collect::<Option<Vec<_>>>()
        .map(|elements| Type::Tuple(elements.into()))
}

/// The more general of two types comes first; one that is open last.
fn preference(a: &Type, b: &Type) -> Ordering {
    match (a, b) {
        (Type::Any, Type::Any) => Ordering::Equal,
        (Type::Any, _) => Ordering::Greater,
        (_, Type::Any) => Ordering::Less,
        (Type::List(a), Type::List(b))
        | (Type::Set(a), Type::Set(b))
        | (Type::Map(a), Type::Map(b)) => preference(a, b),
        _ => generality(b).cmp(&generality(a)),
    }
}

/// Comparable only among scalars, among sequences, and among mappings.
fn generality(of: &Type) -> u8 {
    match of {
        Type::String | Type::Map(_) | Type::Set(_) => 2,
        Type::List(_) => 1,
        Type::Any | Type::Bool | Type::Number | Type::Object(_) | Type::Tuple(_) => 0,
    }
}

/// Whether some values of the one type can be converted to the other.
fn is_convertible(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (_, Type::Any)
        | (Type::Any, _)
        | (Type::Bool | Type::Number | Type::String, Type::String)
        | (Type::String, Type::Bool | Type::Number)
        | (Type::Bool, Type::Bool)
        | (Type::Number, Type::Number) => true,
        (Type::List(from) | Type::Set(from), Type::List(to) | Type::Set(to))
        | (Type::Map(from), Type::Map(to)) => is_convertible(from, to),
        (Type::Tuple(from), Type::List(to) | Type::Set(to)) => {
            if **to == Type::Any {
                unify(from).is_some() || from.is_empty()
            } else {
                from.iter().all(|from| is_convertible(from, to))
            }
        }
        (Type::Tuple(from), Type::Tuple(to)) => {
            from.len() == to.len()
                && from
                    .iter()
                    .zip(to.iter())
                    .all(|(a, b)| is_convertible(a, b))
        }
        (Type::Object(from), Type::Map(to)) => from
            .attributes
            .values()
            .all(|from| is_convertible(from, to)),
        (Type::Map(from), Type::Object(to)) => {
            to.attributes.values().all(|to| is_convertible(from, to))
        }
        (Type::Object(from), Type::Object(to)) => {
            to.attributes
                .iter()
                .all(|(name, to_attribute)| match from.attributes.get(name) {
                    Some(from) => is_convertible(from, to_attribute),
                    None => to.optional.contains_key(name),
                })
        }
        _ => false,
    }
}
