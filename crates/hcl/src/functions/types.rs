//! Functions that convert to a type. Come in: any value. Go out: one of the type, or an error.

use super::{CallError, Parameter, Signature};
use crate::convert::convert;
use crate::types::Type;
use crate::value::Value;

pub(super) fn signatures() -> Vec<Signature> {
    let to = |name, body| Signature::new(name, [Parameter::any("v").or_null().outer()], body);
    vec![
        to("tobool", |_, arguments| converted(arguments, &Type::Bool)),
        to("tonumber", |_, arguments| {
            converted(arguments, &Type::Number)
        }),
        to("tostring", |_, arguments| {
            converted(arguments, &Type::String)
        }),
        to("tolist", |_, arguments| {
            converted(arguments, &Type::list(Type::Any))
        }),
        to("toset", |_, arguments| {
            converted(arguments, &Type::set(Type::Any))
        }),
        to("tomap", |_, arguments| {
            converted(arguments, &Type::map(Type::Any))
        }),
    ]
}

fn converted(arguments: &[Value], to: &Type) -> Result<Value, CallError> {
    // Terraform keeps a null of no type as it is.
    if arguments[0].is_null() {
        return Ok(arguments[0].clone());
    }
    convert(&arguments[0], to).map_err(|error| CallError::argument(0, error.to_string()))
}
