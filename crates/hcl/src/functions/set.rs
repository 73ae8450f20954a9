//! Functions of sets. Come in: sets, or lists read as such. Go out: sets, of the one type that the
//! elements of all can have.

use super::{CallError, Parameter, Signature};
use crate::context::Context;
use crate::convert::{convert, unify};
use crate::types::Type;
use crate::value::{Kind, Value};

pub(super) fn signatures() -> Vec<Signature> {
    let set = |name| Parameter::new(name, Type::set(Type::Any));
    let some = |name, body| {
        Signature::new(name, [set("first_set")], body).and_any_number_of(set("other_sets"))
    };
    vec![
        some("setintersection", |context, arguments| {
            combine(context, arguments, |all| {
                let (first, rest) = all.split_first()?;
                let common = first
                    .iter()
                    .filter(|value| rest.iter().all(|other| other.contains(value)));
                Some(common.cloned().collect())
            })
        }),
        some("setunion", |context, arguments| {
            combine(context, arguments, |all| Some(all.concat()))
        }),
        Signature::new("setsubtract", [set("a"), set("b")], |context, arguments| {
            combine(context, arguments, |all| {
                let (first, rest) = all.split_first()?;
                let left = first
                    .iter()
                    .filter(|value| !rest.iter().any(|other| other.contains(value)));
                Some(left.cloned().collect())
            })
        }),
        Signature::new("setproduct", [], product).and_any_number_of(Parameter::any("sets")),
    ]
}

fn combine(
    context: &Context,
    arguments: &[Value],
    choose: fn(&[Vec<Value>]) -> Option<Vec<Value>>,
) -> Result<Value, CallError> {
    let mut types = Vec::new();
    for argument in arguments {
        match &argument.kind {
            // An empty set of no type yet goes with every other.
            Kind::Set(Type::Any, elements) if elements.is_empty() => {}
            Kind::Set(of, _) => types.push(of.clone()),
            _ => {}
        }
    }
    let of = if types.is_empty() {
        Type::Any
    } else {
        unify(&types)
            .ok_or_else(|| CallError::new("The elements of all sets must be of one type"))?
    };
    let mut all = Vec::with_capacity(arguments.len());
    let mut comparisons = 1usize;
    for (index, argument) in arguments.iter().enumerate() {
        let elements = argument.elements().unwrap_or_default();
        comparisons = comparisons.saturating_mul(elements.len().max(1));
        let converted = elements.iter().map(|value| convert(value, &of));
        let converted = converted
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| CallError::argument(index, error.to_string()))?;
        all.push(converted);
    }
    context.charge_steps(comparisons.min(all.iter().map(Vec::len).sum::<usize>().pow(2)))?;
    Ok(Value::set(of, choose(&all).unwrap_or_default()))
}

/// Every combination of one element of each, as tuples; a set if one of them is a set.
fn product(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    if arguments.len() < 2 {
        return Err(CallError::new("At least two sets or lists are required"));
    }
    let mut factors = Vec::with_capacity(arguments.len());
    let mut types = Vec::with_capacity(arguments.len());
    let mut size = 1usize;
    for (index, argument) in arguments.iter().enumerate() {
        let elements = argument
            .elements()
            .ok_or_else(|| CallError::argument(index, "A set or a list is required"))?;
        let of = match &argument.kind {
            Kind::List(of, _) | Kind::Set(of, _) => of.clone(),
            _ => one_type(elements)
                .ok_or_else(|| CallError::argument(index, "The elements must be of one type"))?,
        };
        let converted = elements.iter().map(|value| convert(value, &of));
        let converted = converted
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| CallError::argument(index, error.to_string()))?;
        size = size.saturating_mul(converted.len());
        types.push(of);
        factors.push(converted);
    }
    context.charge_steps(size.saturating_mul(factors.len()))?;
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for factor in &factors {
        rows = rows
            .iter()
            .flat_map(|row| {
                factor.iter().map(move |value| {
                    let mut row = row.clone();
                    row.push(value.clone());
                    row
                })
            })
            .collect();
    }
    let of = Type::Tuple(types.into());
    let tuples: Vec<Value> = rows.into_iter().map(Value::tuple).collect();
    let is_set = |argument: &Value| matches!(argument.kind, Kind::Set(..));
    Ok(if arguments.iter().any(is_set) {
        Value::set(of, tuples)
    } else {
        Value::list(of, tuples)
    })
}

/// The type that all elements can have; any if there are none, or only nulls.
fn one_type(elements: &[Value]) -> Option<Type> {
    let types: Vec<Type> = elements
        .iter()
        .map(Value::type_of)
        .filter(|of| *of != Type::Any)
        .collect();
    if types.is_empty() {
        return Some(Type::Any);
    }
    unify(&types)
}
