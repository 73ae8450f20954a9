//! Operations: what a mutation does, once enough looks were taken at it.
//!
//! In: what an operation is to do. Out: the operation as it is seen, and its effect at the end.
//! Must not: decide whether a call is valid.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::balancing::Member;
use crate::error::{OperationError, Refusal};
use crate::server::Ask;
use crate::world::{Key, LINK, PROJECT_NUMBER, World, items, refresh, remove};

/// What an operation does when it ends.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// The instance, which is there already, runs. Without an effect it goes, with the disks that
    /// were created for it.
    Insert {
        disks: Vec<String>,
    },
    Delete,
    Start,
    Stop,
    /// A spot instance is preempted.
    Preempt,
    /// A member of the instance gets a value, unless its fingerprint has changed. Null removes the
    /// member.
    Change {
        member: &'static str,
        value: Value,
        expected: Option<Fingerprint>,
    },
    /// The state is what was asked for already.
    Nothing,
    AddInstances(Vec<String>),
    RemoveInstances(Vec<String>),
    Attach(Vec<(String, Value)>),
    Detach(Vec<Value>),
}

/// A fingerprint that a change depends on.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint {
    /// Where the instance has it, as a JSON pointer.
    pub(crate) pointer: &'static str,
    pub(crate) value: String,
    /// The error's message when it has changed.
    pub(crate) stale: &'static str,
}

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) resource: Value,
    /// The instance or the group.
    target: Key,
    effect: Effect,
    error: Option<OperationError>,
    /// The instance's status before.
    before: Value,
    looks: u32,
    total: u32,
}

/// The operations of calls that had a request id.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    by_id: HashMap<String, (String, Key)>,
}

impl Operation {
    fn is_done(&self) -> bool {
        self.resource["status"] == "DONE"
    }

    fn is_about_instance(&self) -> bool {
        match self.effect {
            Effect::Insert { .. }
            | Effect::Delete
            | Effect::Start
            | Effect::Stop
            | Effect::Preempt
            | Effect::Nothing
            | Effect::Change { .. } => true,
            Effect::AddInstances(_)
            | Effect::RemoveInstances(_)
            | Effect::Attach(_)
            | Effect::Detach(_) => false,
        }
    }
}

impl World {
    /// The operation of an earlier call with the same request id, if there was one.
    pub(crate) fn repeated(&self, ask: &Ask) -> Result<Option<Value>, Refusal> {
        let Some(id) = ask.call.get("requestId") else {
            return Ok(None);
        };
        if !is_uuid(id) {
            let why = "Request ID must be a valid UUID, and not the zero UUID.";
            return Err(Refusal::invalid("requestId", id, why));
        }
        match self.requests.by_id.get(&id.to_ascii_lowercase()) {
            None => Ok(None),
            Some((request, key)) if *request == ask.identity() => {
                Ok(self.operations.get(key).map(|one| one.resource.clone()))
            }
            Some(_) => {
                let why = "The request ID was already used for another request.";
                Err(Refusal::invalid("requestId", id, why))
            }
        }
    }

    /// Begins an operation on an instance or a group of a zone. `error` ends it; so does a fault.
    pub(crate) fn begin(
        &mut self,
        ask: &Ask,
        kind: &str,
        (path, id): (&str, &Value),
        target: &Key,
        effect: Effect,
        error: Option<OperationError>,
    ) -> Value {
        let error = ask.end.clone().or(error);
        let key = self.add_operation(kind, (path, id), target, effect, error);
        if let Some(id) = ask.call.get("requestId") {
            let entry = (ask.identity(), key.clone());
            self.requests.by_id.insert(id.to_ascii_lowercase(), entry);
        }
        self.operations[&key].resource.clone()
    }

    pub(crate) fn add_operation(
        &mut self,
        kind: &str,
        (path, target_id): (&str, &Value),
        target: &Key,
        effect: Effect,
        error: Option<OperationError>,
    ) -> Key {
        let id = self.id();
        let now = self.clock.tick();
        let zone = &target.0;
        let name = format!("operation-1767254400000-{}", &id[8..]);
        let link = |rest: &str| format!("{LINK}{}", self.path(rest));
        let mut resource = json!({
            "kind": "compute#operation",
            "id": id,
            "name": name,
            "zone": link(&format!("zones/{zone}")),
            "operationType": kind,
            "targetLink": format!("{LINK}{path}"),
            "targetId": target_id,
            "status": "PENDING",
            "user": format!("{PROJECT_NUMBER}-compute@developer.gserviceaccount.com"),
            "progress": 0,
            "insertTime": now,
            "startTime": now,
            "selfLink": link(&format!("zones/{zone}/operations/{name}")),
        });
        if target_id.is_null() {
            remove(&mut resource, "targetId");
        }
        let status = self
            .instances
            .get(target)
            .map(|one| one.resource["status"].clone());
        let status = status.unwrap_or_default();
        if matches!(effect, Effect::Delete) {
            self.cancel_insert(target);
        }
        let during = match effect {
            Effect::Start => Some("PROVISIONING"),
            Effect::Delete | Effect::Preempt => Some("STOPPING"),
            Effect::Stop if status != "TERMINATED" => Some("STOPPING"),
            _ => None,
        };
        if let (Some(during), Some(instance)) = (during, self.instances.get_mut(target)) {
            instance.resource["status"] = json!(during);
        }
        let key = (zone.clone(), name);
        let operation = Operation {
            resource,
            target: target.clone(),
            effect,
            error,
            before: status,
            looks: 0,
            total: self.habits.operation,
        };
        let is_short = operation.total == 0;
        self.operations.insert(key.clone(), operation);
        if is_short {
            self.finish(&key);
        }
        key
    }

    /// A look at an operation.
    pub(crate) fn look_at_operation(&mut self, key: &Key) {
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        if operation.is_done() {
            return;
        }
        operation.looks += 1;
        if operation.looks >= operation.total {
            return self.finish(key);
        }
        operation.resource["status"] = json!("RUNNING");
        operation.resource["progress"] = json!(operation.looks * 100 / operation.total);
        let begins = matches!(operation.effect, Effect::Insert { .. } | Effect::Start);
        if let Some(instance) = self.instances.get_mut(&operation.target)
            && begins
            && instance.resource["status"] == "PROVISIONING"
        {
            instance.resource["status"] = json!("STAGING");
        }
    }

    /// Ends an operation, as waiting for it does.
    pub(crate) fn wait(&mut self, key: &Key) {
        if self.operations.get(key).is_some_and(|one| !one.is_done()) {
            self.finish(key);
        }
    }

    /// A look at an instance is one at its operations.
    pub(crate) fn look_at_instance(&mut self, target: &Key) {
        self.look_at_operations(|one| one.target == *target && one.is_about_instance());
    }

    /// A look at a group's members is one at its operations.
    pub(crate) fn look_at_group(&mut self, target: &Key) {
        self.look_at_operations(|one| one.target == *target && !one.is_about_instance());
    }

    fn look_at_operations(&mut self, which: impl Fn(&Operation) -> bool) {
        let found = self
            .operations
            .iter()
            .filter(|(_, one)| which(one) && !one.is_done());
        let keys: Vec<Key> = found.map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.look_at_operation(&key);
        }
    }

    /// Whether an instance's deletion has begun.
    pub(crate) fn is_going(&self, target: &Key) -> bool {
        self.operations.values().any(|one| {
            let goes = matches!(one.effect, Effect::Delete);
            goes && one.target == *target && !one.is_done()
        })
    }

    /// Deleting an instance that is being made ends its making, with an error.
    fn cancel_insert(&mut self, target: &Key) {
        let now = self.clock.tick();
        for operation in self.operations.values_mut() {
            let is_it =
                operation.target == *target && matches!(operation.effect, Effect::Insert { .. });
            if is_it && !operation.is_done() {
                let message = "The operation was canceled by another operation on the resource.";
                let error = OperationError::new("OPERATION_CANCELED_BY_USER", 409, message);
                operation.end(&now, Some(&error));
            }
        }
    }

    fn finish(&mut self, key: &Key) {
        let now = self.clock.tick();
        let Some(operation) = self.operations.get(key) else {
            return;
        };
        let (target, effect) = (operation.target.clone(), operation.effect.clone());
        let before = operation.before.clone();
        let about_instance = operation.is_about_instance();
        // Another instance may have the name by now.
        let instance = self.instances.get(&target);
        let is_there =
            instance.is_some_and(|one| one.resource["id"] == operation.resource["targetId"]);
        let error = match operation.error.clone() {
            Some(error) => {
                if is_there {
                    self.undo(&target, &effect, before);
                }
                Some(error)
            }
            None if about_instance && !is_there => {
                let message = format!(
                    "The resource '{}' was not found",
                    self.instance_path(&target)
                );
                Some(OperationError::new("RESOURCE_NOT_FOUND", 404, message))
            }
            None => self.apply(&target, effect, &now).err(),
        };
        if let Some(operation) = self.operations.get_mut(key) {
            operation.end(&now, error.as_ref());
        }
    }

    /// Undoes what an operation did as it began.
    fn undo(&mut self, target: &Key, effect: &Effect, before: Value) {
        match effect {
            Effect::Insert { disks } => {
                self.remove(target);
                for disk in disks {
                    self.disks.remove(&(target.0.clone(), disk.clone()));
                }
            }
            Effect::Delete | Effect::Start | Effect::Stop | Effect::Preempt => {
                if let Some(instance) = self.instances.get_mut(target) {
                    instance.resource["status"] = before;
                }
            }
            Effect::Change { .. }
            | Effect::Nothing
            | Effect::AddInstances(_)
            | Effect::RemoveInstances(_)
            | Effect::Attach(_)
            | Effect::Detach(_) => {}
        }
    }

    /// Carries out what an operation on something that is there does at its end.
    fn apply(&mut self, target: &Key, effect: Effect, now: &str) -> Result<(), OperationError> {
        match effect {
            Effect::Nothing => {}
            Effect::Delete => {
                self.remove(target);
            }
            Effect::Insert { .. } | Effect::Start => {
                self.run(target, now);
            }
            Effect::Stop => {
                if let Some(instance) = self.instances.get_mut(target) {
                    instance.terminate(now);
                }
            }
            Effect::Preempt => {
                let Some(instance) = self.instances.get_mut(target) else {
                    return Ok(());
                };
                let scheduling = &instance.resource["scheduling"];
                if scheduling["instanceTerminationAction"] == "DELETE" {
                    self.remove(target);
                } else {
                    instance.terminate(now);
                }
            }
            Effect::Change {
                member,
                value,
                expected,
            } => {
                let Some(instance) = self.instances.get_mut(target) else {
                    return Ok(());
                };
                let resource = &mut instance.resource;
                if let Some(expected) = expected
                    && resource
                        .pointer(expected.pointer)
                        .is_none_or(|now| *now != *expected.value)
                {
                    return Err(OperationError::new(
                        "CONDITION_NOT_MET",
                        412,
                        expected.stale,
                    ));
                }
                if value.is_null() {
                    remove(resource, member);
                } else {
                    resource[member] = value;
                }
                refresh(resource);
            }
            Effect::AddInstances(names) => {
                let looks = self.habits.unhealthy;
                if let Some(group) = self.groups.get_mut(target) {
                    let new = |name| Member::new(name, looks, Value::Null);
                    group.members.extend(names.into_iter().map(new));
                }
            }
            Effect::RemoveInstances(names) => {
                if let Some(group) = self.groups.get_mut(target) {
                    group.members.retain(|member| !names.contains(&member.name));
                }
            }
            Effect::Attach(endpoints) => {
                let looks = self.habits.unhealthy;
                if let Some(group) = self.endpoint_groups.get_mut(target) {
                    for (name, endpoint) in endpoints {
                        if group
                            .members
                            .iter()
                            .all(|member| member.endpoint != endpoint)
                        {
                            group.members.push(Member::new(name, looks, endpoint));
                        }
                    }
                }
            }
            Effect::Detach(endpoints) => {
                if let Some(group) = self.endpoint_groups.get_mut(target) {
                    group
                        .members
                        .retain(|member| !endpoints.contains(&member.endpoint));
                }
            }
        }
        Ok(())
    }
}

impl Operation {
    fn end(&mut self, now: &str, error: Option<&OperationError>) {
        self.resource["status"] = json!("DONE");
        self.resource["progress"] = json!(100);
        self.resource["endTime"] = json!(now);
        if let Some(error) = error {
            error.put(&mut self.resource);
        }
    }
}

/// Whether a text is a UUID, other than the zero UUID.
fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    let is_hex = text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    let is_zero = text.chars().all(|c| c == '-' || c == '0');
    is_hex && !is_zero && lengths.eq([8, 4, 4, 4, 12])
}

/// The endpoints of a request's body.
pub(crate) fn endpoints(body: &Value) -> &[Value] {
    items(&body["networkEndpoints"])
}

#[cfg(test)]
mod tests {
    use super::is_uuid;

    #[test]
    fn uuids_are_told_from_other_texts() {
        for (text, expected) in [
            ("0192d3f4-1111-7222-8333-444455556666", true),
            ("0192D3F4-1111-7222-8333-444455556666", true),
            ("00000000-0000-0000-0000-000000000000", false),
            ("0192d3f41111722283334444555566666666", false),
            ("0192d3f4-1111-7222-8333-44445555666", false),
            ("0192d3f4-1111-7222-8333-44445555666g", false),
            ("", false),
        ] {
            assert_eq!(is_uuid(text), expected, "{text}");
        }
    }
}
