//! Type constraints: `type = list(string)`. Comes in: an expression; goes out: a type.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ObjectType, Type};
use crate::context::{Context, NoFiles};
use crate::convert::convert;
use crate::error::{Error, nearest};
use crate::eval::Evaluator;
use crate::scope::NoNames;
use crate::syntax::{Call, Expression, ExpressionKind, ObjectItem, ObjectKey};
use crate::value::Value;

const NAMES: [&str; 9] = [
    "any", "bool", "number", "string", "list", "set", "map", "object", "tuple",
];

impl Type {
    /// Reads the type constraint of a variable. There `list` and `map` alone, as Terraform 0.11 had
    /// them, are those of any type; nowhere else, and `set` never.
    pub fn of_variable(expression: &Expression) -> Result<Self, Vec<Error>> {
        match &expression.kind {
            ExpressionKind::Variable(name) if &*name.name == "list" => Ok(Self::list(Self::Any)),
            ExpressionKind::Variable(name) if &*name.name == "map" => Ok(Self::map(Self::Any)),
            _ => Self::from_expression(expression),
        }
    }

    /// Reads a type constraint.
    pub fn from_expression(expression: &Expression) -> Result<Self, Vec<Error>> {
        match &expression.kind {
            ExpressionKind::Variable(name) => match &*name.name {
                "any" => Ok(Self::Any),
                "bool" => Ok(Self::Bool),
                "number" => Ok(Self::Number),
                "string" => Ok(Self::String),
                "list" | "set" | "map" => Err(vec![
                    Error::new(name.span, format!("`{}` needs the type of its elements", name.name))
                        .hint(format!("like `{}(string)`", name.name)),
                ]),
                "object" => Err(vec![
                    Error::new(name.span, "`object` needs its attributes")
                        .hint("like `object({ name = string })`"),
                ]),
                "tuple" => Err(vec![
                    Error::new(name.span, "`tuple` needs the types of its elements")
                        .hint("like `tuple([string, number])`"),
                ]),
                other => Err(vec![unknown(other, expression)]),
            },
            ExpressionKind::Call(call) => constructed(call, expression),
            ExpressionKind::Parenthesis(inner) => Self::from_expression(inner),
            ExpressionKind::String(text) if NAMES.contains(&&**text) => Err(vec![
                Error::new(expression.span, "A type is written without quotation marks")
                    .hint(format!("write `{text}`")),
            ]),
            _ => Err(vec![
                Error::new(expression.span, "Expected a type")
                    .hint("types are `string`, `number`, `bool`, `any`, `list(…)`, `set(…)`, `map(…)`, `object({…})`, `tuple([…])`"),
            ]),
        }
    }
}

fn unknown(name: &str, expression: &Expression) -> Error {
    let error = Error::new(expression.span, format!("There is no type `{name}`"));
    match nearest(name, NAMES) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("types are `string`, `number`, `bool`, `any`, `list(…)`, `set(…)`, `map(…)`, `object({…})`, `tuple([…])`"),
    }
}

fn constructed(call: &Call, expression: &Expression) -> Result<Type, Vec<Error>> {
    let name = &*call.name.name;
    if !["list", "set", "map", "object", "tuple"].contains(&name) {
        return Err(vec![match name {
            "optional" => Error::new(
                expression.span,
                "`optional` is only for the attributes of `object`",
            ),
            "any" | "bool" | "number" | "string" => Error::new(
                call.parentheses,
                format!("`{name}` takes nothing in parentheses"),
            ),
            _ => unknown(name, expression),
        }]);
    }
    let [argument] = &call.arguments[..] else {
        return Err(vec![Error::new(
            call.parentheses,
            format!(
                "`{name}` takes one type, but here are {}",
                call.arguments.len()
            ),
        )]);
    };
    match (name, &argument.kind) {
        ("list", _) => Type::from_expression(argument).map(Type::list),
        ("set", _) => Type::from_expression(argument).map(Type::set),
        ("map", _) => Type::from_expression(argument).map(Type::map),
        ("object", ExpressionKind::Object(items)) => object(items),
        ("tuple", ExpressionKind::Tuple(elements)) => {
            let (types, errors) = partition(elements.iter().map(Type::from_expression));
            if errors.is_empty() {
                Ok(Type::Tuple(types.into()))
            } else {
                Err(errors)
            }
        }
        ("object", _) => Err(vec![
            Error::new(argument.span, "Expected the object's attributes in braces")
                .hint("like `object({ name = string })`"),
        ]),
        _ => Err(vec![
            Error::new(argument.span, "Expected the elements' types in brackets")
                .hint("like `tuple([string, number])`"),
        ]),
    }
}

fn object(items: &[ObjectItem]) -> Result<Type, Vec<Error>> {
    let mut optional = BTreeMap::new();
    let attributes = items.iter().map(|item| {
        let name: Arc<str> = match &item.key {
            ObjectKey::Name(name) => name.name.clone(),
            ObjectKey::Expression(Expression {
                kind: ExpressionKind::String(name),
                ..
            }) => name.clone(),
            ObjectKey::Expression(key) => {
                return Err(vec![Error::new(
                    key.span,
                    "An attribute's name must be plain text",
                )]);
            }
        };
        let ExpressionKind::Call(call) = &item.value.kind else {
            return Ok((name, Type::from_expression(&item.value)?));
        };
        if &*call.name.name != "optional" {
            return Ok((name, Type::from_expression(&item.value)?));
        }
        let (of, default) = match &call.arguments[..] {
            [of] => (Type::from_expression(of)?, None),
            [of, default] => {
                let of = Type::from_expression(of)?;
                let value = default_value(default, &of)?;
                (of, Some(value))
            }
            _ => {
                return Err(vec![
                    Error::new(
                        call.parentheses,
                        "`optional` takes a type and perhaps a default",
                    )
                    .hint("like `optional(string, \"a\")`"),
                ]);
            }
        };
        optional.insert(name.clone(), default);
        Ok((name, of))
    });
    let (attributes, errors) = partition(attributes);
    if !errors.is_empty() {
        return Err(errors);
    }
    let attributes = attributes.into_iter().collect();
    Ok(Type::Object(Arc::new(ObjectType {
        attributes,
        optional,
    })))
}

fn default_value(default: &Expression, of: &Type) -> Result<Value, Vec<Error>> {
    let context = Context::new(&NoFiles);
    let value = Evaluator::new(&NoNames, &context).evaluate(default)?;
    convert(&value, of).map_err(|error| {
        vec![
            Error::new(default.span, "This default isn't of the attribute's type")
                .detail(error.to_string()),
        ]
    })
}

fn partition<T>(results: impl Iterator<Item = Result<T, Vec<Error>>>) -> (Vec<T>, Vec<Error>) {
    let mut good = Vec::new();
    let mut errors = Vec::new();
    for result in results {
        match result {
            Ok(value) => good.push(value),
            Err(more) => errors.extend(more),
        }
    }
    (good, errors)
}
