//! Texts to values: `jsondecode`, `csvdecode`, `yamldecode`. Come in: texts. Go out: objects, tuples
//! and what is in them; an error says in which line of the text.

mod csv;
mod json;
mod yaml;

use super::{CallError, Parameter, Signature, text};
use crate::context::Context;
use crate::value::Value;

/// How many lists and objects may lie within each other: no more than in a configuration.
const DEEPEST: usize = 200;

pub(super) fn signatures() -> Vec<Signature> {
    vec![
        Signature::new("csvdecode", [Parameter::string("str")], csv::decode),
        Signature::new("jsondecode", [Parameter::string("str")], json::decode),
        Signature::new("yamldecode", [Parameter::string("src")], yaml::decode),
    ]
}

fn too_deep() -> CallError {
    CallError::argument(
        0,
        format!("More than {DEEPEST} lists and objects lie within each other"),
    )
}
