//! A service's model, as botocore ships it.
//!
//! In: its JSON. Out: [`Model`]. May not: know Rust's names.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{Failure, process};

/// The operations and shapes of a service.
pub(super) struct Model(Value);

/// A shape: what a value is.
#[derive(Clone, Copy)]
pub(super) struct Shape<'m> {
    pub(super) name: &'m str,
    model: &'m Model,
    value: &'m Value,
}

/// What kind of value a shape is.
pub(super) enum Kind<'m> {
    Structure,
    List(Shape<'m>),
    /// From strings to values of a shape.
    Map(Shape<'m>),
    Enumeration(Vec<&'m str>),
    Text,
    Flag,
    /// A number without a fraction.
    Whole,
    /// Any number.
    Number,
    Time,
    Blob,
}

/// A member of a structure.
pub(super) struct Member<'m> {
    pub(super) name: &'m str,
    pub(super) shape: Shape<'m>,
    pub(super) required: bool,
    /// What the model says of a member that isn't to be used any more.
    pub(super) deprecated: Option<&'m str>,
}

/// Reads a model through botocore's own loader.
pub(super) fn load(python: &Path, service: &str, version: &str) -> Result<Model, Failure> {
    let program = format!(
        "import json, sys, botocore.loaders
json.dump(botocore.loaders.Loader().load_service_model('{service}', 'service-2', '{version}'), sys.stdout)"
    );
    let text = process::output(Command::new(python).args(["-c", &program]))?;
    Ok(Model(serde_json::from_str(&text)?))
}

impl Model {
    /// What an operation takes, if it takes anything.
    pub(super) fn input(&self, operation: &str) -> Option<Shape<'_>> {
        self.of_operation(operation, "input")
    }

    /// What an operation gives, if it gives anything.
    pub(super) fn output(&self, operation: &str) -> Option<Shape<'_>> {
        self.of_operation(operation, "output")
    }

    fn of_operation(&self, operation: &str, side: &str) -> Option<Shape<'_>> {
        let name = self.0["operations"][operation][side]["shape"].as_str()?;
        Some(self.shape(name))
    }

    fn shape<'m>(&'m self, name: &'m str) -> Shape<'m> {
        Shape {
            name,
            model: self,
            value: &self.0["shapes"][name],
        }
    }
}

impl<'m> Shape<'m> {
    pub(super) fn kind(self) -> Result<Kind<'m>, Failure> {
        let of = |key: &str| -> Result<Shape<'m>, Failure> {
            let name = self.value[key]["shape"]
                .as_str()
                .ok_or_else(|| Failure::say(format!("the model's `{}` has no {key}", self.name)))?;
            Ok(self.model.shape(name))
        };
        Ok(match self.value["type"].as_str().unwrap_or_default() {
            "structure" => Kind::Structure,
            "list" => Kind::List(of("member")?),
            "map" => Kind::Map(of("value")?),
            "string" => match self.value["enum"].as_array() {
                Some(values) => {
                    Kind::Enumeration(values.iter().filter_map(Value::as_str).collect())
                }
                None => Kind::Text,
            },
            "boolean" => Kind::Flag,
            "integer" | "long" => Kind::Whole,
            "double" | "float" => Kind::Number,
            "timestamp" => Kind::Time,
            "blob" => Kind::Blob,
            other => {
                return Err(Failure::say(format!(
                    "the model's `{}` is of the unknown type `{other}`",
                    self.name
                )));
            }
        })
    }

    /// The members of a structure by name.
    pub(super) fn members(self) -> Vec<Member<'m>> {
        let required: Vec<&str> = self.value["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let members: BTreeMap<&str, &Value> = self.value["members"]
            .as_object()
            .map(|members| {
                members
                    .iter()
                    .map(|(name, value)| (name.as_str(), value))
                    .collect()
            })
            .unwrap_or_default();
        members
            .into_iter()
            .filter_map(|(name, value)| {
                Some(Member {
                    name,
                    shape: self.model.shape(value["shape"].as_str()?),
                    required: required.contains(&name),
                    deprecated: (value["deprecated"] == true)
                        .then(|| value["deprecatedMessage"].as_str().unwrap_or_default()),
                })
            })
            .collect()
    }

    /// The smallest and the largest number, where the model has them.
    pub(super) fn bounds(self) -> (Option<i64>, Option<i64>) {
        (self.value["min"].as_i64(), self.value["max"].as_i64())
    }
}
