//! Nonces: what an instance proves itself with when it starts, made when it is created.
//!
//! In: a change whose spec has the placeholder of a nonce, and the answer of the nonce command. Out:
//! requests with the nonce in its place. Must not: put a nonce into a spec, a record or a message.

use std::process::{Command as Process, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nstance_state::Timestamp as StoredAt;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::engine::{Engine, Phase};
use super::protocol::{Command, Step, TaskEnd, TaskId};
use crate::clock::Timestamp;
use crate::plan::change::{Action, Change, InstanceView, Plan};
use crate::redact;
use crate::render::data::{LARGEST_NONCE, nonce_placeholder};
use crate::spec::{Content, SpecBody, Userdata};

/// How long a nonce command may take.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A nonce, and until when it is of use.
#[derive(Debug, Clone)]
pub struct Nonce {
    text: Zeroizing<String>,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// What the nonce command is told of an instance, as environment variables.
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
            Step::Delete => change.action == Action::DeleteThenCreate,
            Step::Nonce | Step::Await | Step::Record => false,
        };
        let is_fresh = |nonce: &Nonce| now < nonce.expires_at;
        let has_one = self.tasks[id].nonce.as_ref().is_some_and(is_fresh);
        let after = change.after.as_deref();
        self.limits.makes_nonces
            && sends
            && !has_one
            && after.is_some_and(|after| reads_nonce(&after.instance_id, &after.spec))
    }

    /// What the nonce command is told.
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

/// Runs the nonce command: its words, with the facts in its environment.
///
/// Fails if there is none, or if it fails, prints nothing or too much, or takes longer than
/// `patience`.
pub fn run(
    words: &[impl AsRef<str>],
    request: &NonceRequest,
    patience: Duration,
) -> Result<Zeroizing<String>, String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err("nothing makes its nonce: set `nonce_command`, or --nonce-command".to_owned());
    };
    let program = program.as_ref();
    let mut child = Process::new(program)
        .args(arguments.iter().map(AsRef::as_ref))
        .envs(
            request
                .facts
                .iter()
                .map(|(name, value)| (format!("NSTANCE_{name}"), value)),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| format!("the nonce command can't be run: {error}: {program}"))?;
    let output = child.stdout.take().expect("it is piped");
    let (sender, receiver) = mpsc::channel();
    // Left behind if the command doesn't end.
    std::thread::spawn(move || {
        let bytes = crate::limited::read(output, LARGEST_NONCE as u64 + 1);
        // Nobody listens any more if it took too long.
        let _ = sender.send(bytes);
    });
    let Ok(bytes) = receiver.recv_timeout(patience) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!(
            "the nonce command didn't answer within {} s: {program}",
            patience.as_secs()
        ));
    };
    let bytes = match bytes {
        Ok(bytes) => Zeroizing::new(bytes),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("the nonce command's answer can't be read: {error}"));
        }
    };
    let status = child
        .wait()
        .map_err(|error| format!("the nonce command can't be awaited: {error}"))?;
    if !status.success() {
        return Err(format!("the nonce command failed ({status}): {program}"));
    }
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| "the nonce command's answer isn't UTF-8".to_owned())?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return Err(format!("the nonce command printed nothing: {program}"));
    }
    let text = Zeroizing::new(text.to_owned());
    redact::know([&*text]);
    Ok(text)
}

/// Whether a nonce in an intent, if any, is still of use.
pub(super) fn is_of_use(expires_at: Option<StoredAt>, now: Timestamp) -> bool {
    expires_at.is_none_or(|at| StoredAt::from(now) < at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(script: &str, patience: Duration) -> Result<String, String> {
        let request = NonceRequest {
            facts: vec![("INSTANCE_ID", "web1".to_owned())],
        };
        let made = run(&["sh", "-c", script], &request, patience);
        made.map(|text| text.as_str().to_owned())
    }

    #[test]
    fn the_answer_is_what_the_command_prints() {
        let long = Duration::from_mins(10);
        let told = answer("echo \"of $NSTANCE_INSTANCE_ID\"", long);
        assert_eq!(told, Ok("of web1".to_owned()));
        let broken = |script: &str| answer(script, long).unwrap_err();
        assert!(broken("echo half; exit 3").contains("failed (exit status: 3)"));
        assert!(broken("true").contains("printed nothing"));
        assert!(broken("head -c 5000 /dev/zero").contains("can't be read"));
        let none: [&str; 0] = [];
        let request = NonceRequest { facts: Vec::new() };
        assert!(
            run(&none, &request, long)
                .unwrap_err()
                .contains("--nonce-command")
        );
        assert!(
            run(&["/no/such"], &request, long)
                .unwrap_err()
                .contains("can't be run")
        );
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let late = answer("exec sleep 600", Duration::from_millis(1));
        assert!(late.unwrap_err().contains("didn't answer"));
    }
}
