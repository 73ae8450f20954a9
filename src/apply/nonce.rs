//! Nonces: what an instance proves itself with when it starts, made when it is created.
//!
//! In: a change whose spec has the placeholder of a nonce, and the answer of the nonce command. Out:
//! requests with the nonce in its place. Must not: run the
//! command, or put a nonce into a spec, a record or a message.

use std::time::Duration;

use nstance_state::Timestamp as StoredAt;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::engine::{Engine, Phase};
use super::protocol::{Command, Step, TaskEnd, TaskId};
use crate::clock::Timestamp;
use crate::plan::change::{Action, Change, InstanceView, Plan};
use crate::render::data::nonce_placeholder;
use crate::spec::{Content, SpecBody, Userdata};

/// A nonce, and until when it is of use.
#[derive(Debug, Clone)]
pub struct Nonce {
    text: Zeroizing<String>,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The environment variables of the nonce command, which say for which instance it is run.
#[derive(Debug, Clone)]
pub struct NonceRequest {
    /// Names without `NSTANCE_`, and values.
    pub facts: Vec<(&'static str, String)>,
}

impl Nonce {
    /// Userdata with the nonce.
    pub(super) fn in_userdata(&self, instance_id: &str, userdata: &Userdata) -> Userdata {
        let content = match &userdata.content {
            Content::Text(text) => {
                Content::Text(text.replace(&nonce_placeholder(instance_id), &self.text))
            }
            packed @ Content::Base64(_) => packed.clone(),
        };
        Userdata {
            content,
            ..userdata.clone()
        }
    }

    /// Args with the nonce.
    pub(super) fn in_args(
        &self,
        instance_id: &str,
        args: &Map<String, Value>,
    ) -> Map<String, Value> {
        let placeholder = nonce_placeholder(instance_id);
        let mut args = args.clone();
        for value in args.values_mut() {
            self.put_into(value, &placeholder);
        }
        args
    }

    fn put_into(&self, value: &mut Value, placeholder: &str) {
        match value {
            Value::String(text) if text.contains(placeholder) => {
                *text = text.replace(placeholder, &self.text);
            }
            Value::Array(items) => {
                for item in items {
                    self.put_into(item, placeholder);
                }
            }
            Value::Object(entries) => {
                for value in entries.values_mut() {
                    self.put_into(value, placeholder);
                }
            }
            _ => {}
        }
    }
}

/// Whether a spec has the placeholder of its instance's nonce.
fn reads_nonce(instance_id: &str, spec: &SpecBody) -> bool {
    let placeholder = nonce_placeholder(instance_id);
    let userdata = spec.userdata.as_ref().map(|userdata| &userdata.content);
    let in_userdata = matches!(userdata, Some(Content::Text(text)) if text.contains(&placeholder));
    in_userdata
        || spec
            .args
            .values()
            .any(|value| has_text(value, &placeholder))
}

fn has_text(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text.contains(wanted),
        Value::Array(items) => items.iter().any(|item| has_text(item, wanted)),
        Value::Object(entries) => entries.values().any(|value| has_text(value, wanted)),
        _ => false,
    }
}

impl Engine<'_> {
    /// Whether a task needs a nonce before its step: none yet, or one that has expired. Before a
    /// predecessor is deleted first, the nonce shows that a successor can be created.
    pub(super) fn lacks_nonce(&self, id: TaskId, step: Step, now: Timestamp) -> bool {
        let change = &self.plan.changes[id];
        let sends = match step {
            Step::Create => true,
            Step::Update => change
                .attributes
                .iter()
                .any(|attribute| attribute.path == "userdata"),
            Step::Deregister | Step::Drain | Step::Delete => {
                change.action == Action::DeleteThenCreate
            }
            Step::Nonce
            | Step::Check
            | Step::Register
            | Step::Verdict
            | Step::Gate
            | Step::Connections
            | Step::Record => false,
        };
        let is_fresh = |nonce: &Nonce| now < nonce.expires_at;
        let has_one = self.tasks[id].nonce.as_ref().is_some_and(is_fresh);
        let after = change.after.as_deref();
        self.limits.makes_nonces
            && sends
            && !has_one
            && after.is_some_and(|after| reads_nonce(&after.instance_id, &after.spec))
    }

    /// The request to the nonce command.
    pub(super) fn nonce_request(&self, id: TaskId) -> NonceRequest {
        let change = &self.plan.changes[id];
        let after = change.after.as_deref().expect("a creation has an after");
        request(self.plan, change, after, self.limits.nonce_lifetime)
    }

    /// Handles the answer of the nonce command.
    pub(super) fn nonce_made(
        &mut self,
        id: TaskId,
        made: Result<Zeroizing<String>, String>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        self.calling -= 1;
        self.tasks[id].steps.pop_front();
        let is_stopped = self.groups[self.tasks[id].group].stopped && !self.tasks[id].touched;
        match made {
            _ if self.stopping => self.stop_between_steps(id, commands),
            _ if is_stopped => self.end(id, TaskEnd::NotTried, commands),
            Ok(text) => {
                let expires_at = now.after(self.limits.nonce_lifetime);
                self.tasks[id].nonce = Some(Nonce { text, expires_at });
                self.begin_step(id, now, commands);
            }
            Err(why) if self.tasks[id].touched => {
                self.end(id, TaskEnd::Unfinished(why), commands);
            }
            Err(why) => self.end(id, TaskEnd::Failed(why), commands),
        }
    }

    /// Begins to make a nonce.
    pub(super) fn begin_nonce(&mut self, id: TaskId) {
        self.tasks[id].steps.push_front(Step::Nonce);
        self.tasks[id].phase = Phase::Ready;
        self.ready.push_back(id);
    }
}

fn request(plan: &Plan, change: &Change, after: &InstanceView, lifetime: Duration) -> NonceRequest {
    let group = &change.address.group;
    let mut groups = plan.groups.iter();
    let planned = groups.find(|planned| planned.name == group.as_str());
    let hash = planned.map(|planned| planned.config_hash.clone());
    NonceRequest {
        facts: vec![
            ("INSTANCE_ID", after.instance_id.to_string()),
            ("CLUSTER", plan.cluster.clone()),
            ("SHARD", plan.shard.clone()),
            ("TENANT", group.tenant().to_owned()),
            ("GROUP", group.name().to_owned()),
            ("CONFIG_HASH", hash.unwrap_or_default()),
            ("EXPIRES_IN", lifetime.as_secs().to_string()),
        ],
    }
}

/// Whether a nonce in an intent, if any, is still of use.
pub(super) fn is_of_use(expires_at: Option<StoredAt>, now: Timestamp) -> bool {
    expires_at.is_none_or(|at| StoredAt::from(now) < at)
}
