//! A call's input as the SDK's types.
//!
//! In: the JSON of a call. Out: parameters and request resources of the SDK, or where the input
//! doesn't fit and why. Must not: lose a member on the way.
//!
//! The SDK's types accept members that they don't know, and send them. So each member is tried: a
//! value that no member of the API has ([`probe`]) is only accepted where the type knows none.

use std::fmt::Write;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::{ApiError, ApiErrorKind, Operation};

/// The members of a call's input, each taken once.
pub(super) struct Input<'v> {
    operation: Operation,
    members: &'v Map<String, Value>,
    taken: Vec<String>,
}

impl<'v> Input<'v> {
    pub(super) fn new(operation: Operation, value: &'v Value) -> Result<Self, ApiError> {
        let members = value
            .as_object()
            .ok_or_else(|| invalid(format!("{operation}: expected an object")))?;
        Ok(Self {
            operation,
            members,
            taken: Vec::new(),
        })
    }

    /// The member for a field of a request. `field` is its name in the SDK, such as `request_id`.
    pub(super) fn take<T: Parameter>(&mut self, field: &str) -> Result<T, ApiError> {
        let name = camel_case(field);
        let value = self.members.get(&name).filter(|value| !value.is_null());
        let parameter = T::read(&name, value)?;
        self.taken.push(name);
        Ok(parameter)
    }

    /// All members are taken: any other is unknown to the operation.
    pub(super) fn end(self) -> Result<(), ApiError> {
        match self.members.keys().find(|name| !self.taken.contains(name)) {
            Some(name) => Err(invalid(format!(
                "{} has no parameter `{name}`",
                self.operation
            ))),
            None => Ok(()),
        }
    }
}

/// A type of the SDK's requests' fields: a string is required, everything else is optional.
pub(super) trait Parameter: Sized {
    fn read(name: &str, value: Option<&Value>) -> Result<Self, ApiError>;
}

impl Parameter for String {
    fn read(name: &str, value: Option<&Value>) -> Result<Self, ApiError> {
        let text = Option::<Self>::read(name, value)?.unwrap_or_default();
        if text.is_empty() {
            return Err(invalid(format!("`{name}` is missing")));
        }
        Ok(text)
    }
}

impl<T: DeserializeOwned> Parameter for Option<T> {
    fn read(name: &str, value: Option<&Value>) -> Result<Self, ApiError> {
        let Some(value) = value else {
            return Ok(None);
        };
        let accept = |value: &Value| T::deserialize(value).map(drop);
        check(&accept, &mut vec![], value)
            .and_then(|()| T::deserialize(value).map_err(|error| expected(&error, value)))
            .map(Some)
            .map_err(|misfit| {
                invalid(format!(
                    "`{}`: {}",
                    place(name, &misfit.path),
                    misfit.problem
                ))
            })
    }
}

/// Whether a type accepts a value.
type Accept<'a> = &'a dyn Fn(&Value) -> Result<(), serde_json::Error>;

#[derive(Debug, Clone)]
enum Step {
    Member(String),
    Item(usize),
}

/// A value that doesn't fit, and where it is.
struct Misfit {
    path: Vec<Step>,
    problem: String,
}

/// A value that no member of the API can have: it has no lists of lists.
fn probe() -> Value {
    json!([[[true]]])
}

/// Checks the value at `path`, and everything below it.
fn check(accept: Accept<'_>, path: &mut Vec<Step>, value: &Value) -> Result<(), Misfit> {
    // Containers first without what they hold, so that the error is at the right place.
    let shell = match value {
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
        // Absent, as everywhere in the API.
        Value::Null => return Ok(()),
        _ => value.clone(),
    };
    if let Err(error) = accept(&nest(path, shell)) {
        return Err(Misfit {
            path: path.clone(),
            ..expected(&error, value)
        });
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Item(index));
                check(accept, path, item)?;
                path.pop();
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                path.push(Step::Member(name.clone()));
                if accept(&nest(path, probe())).is_ok() {
                    return Err(Misfit {
                        path: path.clone(),
                        problem: "the API has no such member".to_owned(),
                    });
                }
                check(accept, path, member)?;
                path.pop();
            }
        }
        _ => {}
    }
    Ok(())
}

/// `value` within as many containers as `path` has steps, and nothing else in them.
fn nest(path: &[Step], value: Value) -> Value {
    path.iter().rev().fold(value, |value, step| match step {
        Step::Member(name) => Value::Object(Map::from_iter([(name.clone(), value)])),
        Step::Item(_) => Value::Array(vec![value]),
    })
}

/// Says what was expected. The value itself isn't shown: it may be secret.
fn expected(error: &serde_json::Error, value: &Value) -> Misfit {
    let text = error.to_string();
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    let problem = match text.rsplit_once("expected ") {
        Some((_, wanted)) => format!("expected {wanted}, found {found}"),
        None => format!("{found} with an invalid value"),
    };
    Misfit {
        path: Vec::new(),
        problem,
    }
}

/// Such as `body.networkInterfaces[0].network`.
fn place(name: &str, path: &[Step]) -> String {
    let mut text = name.to_owned();
    for step in path {
        // Writing to a string can't fail.
        let _ = match step {
            Step::Member(name) => write!(text, ".{name}"),
            Step::Item(index) => write!(text, "[{index}]"),
        };
    }
    text
}

/// The API's name of a field, such as `requestId` for `request_id`.
pub(super) fn camel_case(field: &str) -> String {
    let mut name = String::with_capacity(field.len());
    let mut words = field.split('_');
    name.push_str(words.next().unwrap_or_default());
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

pub(super) fn invalid(message: String) -> ApiError {
    ApiError::new(ApiErrorKind::Input, ApiError::INVALID_INPUT, message)
}

#[cfg(test)]
mod tests {
    use google_cloud_compute_v1::model::Instance;

    use super::*;

    /// Reads an instance and writes it again.
    fn round(value: &Value) -> Result<Value, String> {
        let instance: Option<Instance> =
            Parameter::read("body", Some(value)).map_err(|error: ApiError| error.message)?;
        Ok(serde_json::to_value(instance).unwrap())
    }

    #[test]
    fn nothing_is_lost() {
        let value = json!({
            "name": "a",
            "canIpForward": false,
            "deletionProtection": true,
            "machineType": "zones/z/machineTypes/e2-small",
            "labels": {"team": "a", "empty": ""},
            "tags": {"items": ["web"], "fingerprint": "42WmSpB8rSM="},
            "metadata": {"items": [{"key": "user-data", "value": "#!/bin/sh\n"}, {"key": "k", "value": ""}]},
            "disks": [{
                "boot": true,
                "autoDelete": false,
                "initializeParams": {"diskSizeGb": "10", "sourceImage": "global/images/i", "labels": {"a": "b"}},
            }],
            "networkInterfaces": [{
                "subnetwork": "regions/r/subnetworks/s",
                "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "networkTier": "UNHEARD_OF"}],
            }, {"networkIP": "10.0.0.2", "aliasIpRanges": [{"ipCidrRange": "/24"}]}],
            "scheduling": {"provisioningModel": "SPOT", "maxRunDuration": {"seconds": "600", "nanos": 0}},
            "serviceAccounts": [{"email": "default", "scopes": ["s"]}],
            "guestAccelerators": [{"acceleratorCount": 1, "acceleratorType": "t"}],
        });
        assert_eq!(round(&value), Ok(value));
    }

    #[test]
    fn empty_lists_and_null_are_absent() {
        let value = json!({"name": null, "disks": [], "labels": {}, "tags": {"items": []}});
        assert_eq!(round(&value), Ok(json!({"tags": {}})));
    }

    #[test]
    fn numbers_of_64_bits_become_strings() {
        let value = json!({"disks": [{"diskSizeGb": 10}]});
        assert_eq!(round(&value), Ok(json!({"disks": [{"diskSizeGb": "10"}]})));
    }

    #[test]
    fn a_misfit_is_reported_with_its_place() {
        for (value, message) in [
            (
                json!({"colour": 1}),
                "`body.colour`: the API has no such member",
            ),
            (
                json!({"colour": null}),
                "`body.colour`: the API has no such member",
            ),
            (
                json!({"machine_type": "a"}),
                "`body.machine_type`: the API has no such member",
            ),
            (
                json!({"networkInterfaces": [{}, {"accessConfigs": [{"natIp": "1.2.3.4"}]}]}),
                "`body.networkInterfaces[1].accessConfigs[0].natIp`: the API has no such member",
            ),
            (
                json!({"disks": {"boot": true}}),
                "`body.disks`: expected a sequence, found an object",
            ),
            (
                json!({"disks": [{"boot": "yes"}]}),
                "`body.disks[0].boot`: expected a boolean, found a string",
            ),
            (
                json!({"labels": {"a": 1}}),
                "`body.labels.a`: expected a string, found a number",
            ),
            (
                json!({"name": {"a": 1}}),
                "`body.name`: expected a string, found an object",
            ),
            (json!(1), "`body`: expected struct Instance, found a number"),
        ] {
            assert_eq!(round(&value), Err(message.to_owned()), "{value}");
        }
        let secret = json!({"disks": [{"diskSizeGb": "secret"}]});
        let message = round(&secret).unwrap_err();
        assert!(
            message.starts_with("`body.disks[0].diskSizeGb`: "),
            "{message}"
        );
        assert!(!message.contains("secret"), "{message}");
    }
}
