//! The events of an apply, as JSON objects.
//!
//! In: facts. Out: objects with Terraform's message types and keys, for one line each. Must not:
//! write them, or read the clock.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::json::reason_code;
use crate::address::{Address, in_shard};
use crate::clock::Timestamp;
use crate::plan::change::{Action, Change, Drift, DriftKind, Mode, Plan, Summary};

/// The version of the messages, as in Terraform.
const UI_VERSION: &str = "1.0";

/// An operation on one instance; a replacement is a create and a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Create the instance.
    Create,
    /// Update it in place.
    Update,
    /// Delete it.
    Delete,
    /// Record it.
    Adopt,
    /// Remove its record.
    Forget,
}

impl Operation {
    /// `hook.action`, what is under way, and what was done.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Create => ["create", "Creating", "Creation"],
            Self::Update => ["update", "Modifying", "Modifications"],
            Self::Delete => ["delete", "Destroying", "Destruction"],
            Self::Adopt => ["import", "Importing", "Import"],
            Self::Forget => ["forget", "Forgetting", "Removal"],
        }
    }

    /// `hook.action`
    pub fn name(self) -> &'static str {
        self.words()[0]
    }

    /// `Creating`
    pub fn under_way(self) -> &'static str {
        self.words()[1]
    }

    /// `Creation`
    pub fn noun(self) -> &'static str {
        self.words()[2]
    }
}

/// The number of completed operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Created instances.
    pub added: usize,
    /// Updated instances.
    pub changed: usize,
    /// Deleted instances.
    pub destroyed: usize,
    /// Recorded instances.
    pub adopted: usize,
    /// Removed records.
    pub forgotten: usize,
}

impl Done {
    /// Adds the counts of another shard.
    pub fn add(&mut self, other: Self) {
        self.added += other.added;
        self.changed += other.changed;
        self.destroyed += other.destroyed;
        self.adopted += other.adopted;
        self.forgotten += other.forgotten;
    }
}

/// Builds the events of one plan.
#[derive(Debug, Clone)]
pub struct Events {
    resource_type: &'static str,
    provider: String,
    shard: Option<String>,
}

impl Events {
    /// For a plan.
    pub fn of(plan: &Plan) -> Self {
        Self {
            resource_type: plan.rules().resource_type(),
            provider: plan.provider_name.clone(),
            shard: None,
        }
    }

    /// Prefixes every address with a shard.
    #[must_use]
    pub fn in_shard(mut self, shard: Option<&str>) -> Self {
        self.shard = shard.map(str::to_owned);
        self
    }

    fn name(&self, address: &Address) -> String {
        in_shard(self.shard.as_deref(), address)
    }

    /// A change of the plan; `None` for a no-op.
    pub fn planned_change(&self, now: Timestamp, change: &Change) -> Option<Value> {
        let action = match change.action {
            Action::Create => "create",
            Action::Update => "update",
            Action::CreateThenDelete | Action::DeleteThenCreate => "replace",
            Action::Delete => "delete",
            Action::Adopt => "import",
            Action::Forget => "forget",
            Action::NoOp => return None,
        };
        let mut body = json!({"resource": self.resource(&change.address), "action": action});
        if let Some(code) = reason_code(change) {
            body["reason"] = code.into();
        }
        if let Some(id) = &change.importing {
            body["importing"] = json!({"id": id});
        }
        let message = format!("{}: Plan to {action}", self.name(&change.address));
        Some(event(
            "info",
            &message,
            now,
            "planned_change",
            [("change", body)],
        ))
    }

    /// The drift of an instance; `None` if its address is invalid.
    pub fn resource_drift(&self, now: Timestamp, drift: &Drift) -> Option<Value> {
        let address: Address = drift.address.parse().ok()?;
        let action = match drift.kind {
            DriftKind::Changed => "update",
            DriftKind::Missing => "delete",
            DriftKind::Unknown | DriftKind::Duplicate => "create",
        };
        let body = json!({"resource": self.resource(&address), "action": action});
        let message = format!("{}: Drift detected ({action})", self.name(&address));
        Some(event(
            "info",
            &message,
            now,
            "resource_drift",
            [("change", body)],
        ))
    }

    /// An operation starts; `id` is the provider id, if there is one.
    pub fn apply_start(
        &self,
        now: Timestamp,
        address: &Address,
        operation: Operation,
        id: Option<&str>,
    ) -> Value {
        let (name, id_text) = (self.name(address), id_text(id));
        let message = format!("{name}: {}...{id_text}", operation.under_way());
        let hook = self.hook(address, operation, id, None);
        event("info", &message, now, "apply_start", [("hook", hook)])
    }

    /// An operation is in progress.
    pub fn apply_progress(
        &self,
        now: Timestamp,
        address: &Address,
        operation: Operation,
        elapsed: Duration,
    ) -> Value {
        let message = format!(
            "{}: Still {}... [{}s elapsed]",
            self.name(address),
            operation.under_way().to_lowercase(),
            elapsed.as_secs()
        );
        let hook = self.hook(address, operation, None, Some(elapsed));
        event("info", &message, now, "apply_progress", [("hook", hook)])
    }

    /// A step of a rollout begins, or waits for `why`.
    pub fn rollout_step(
        &self,
        now: Timestamp,
        address: &Address,
        operation: Operation,
        step: &str,
        why: &str,
    ) -> Value {
        let mut message = format!("{}: {step}", self.name(address));
        let mut hook = self.hook(address, operation, None, None);
        hook["step"] = step.into();
        if !why.is_empty() {
            message.push_str(&format!(": {why}"));
            hook["waits_for"] = why.into();
        }
        event("info", &message, now, "rollout_step", [("hook", hook)])
    }

    /// A group's rollout reached a stage, because of `detail`.
    pub fn rollout_progress(
        &self,
        now: Timestamp,
        group: &str,
        stage: &str,
        done: usize,
        total: usize,
        detail: &str,
    ) -> Value {
        let group = in_shard(self.shard.as_deref(), group);
        let message = format!("{group}: {stage}, {done} of {total} done");
        let mut rollout = json!({"group": group, "stage": stage, "done": done, "total": total});
        if !detail.is_empty() {
            rollout["detail"] = detail.into();
        }
        event(
            "info",
            &message,
            now,
            "rollout_progress",
            [("rollout", rollout)],
        )
    }

    /// An operation succeeded.
    pub fn apply_complete(
        &self,
        now: Timestamp,
        address: &Address,
        operation: Operation,
        id: Option<&str>,
        elapsed: Duration,
    ) -> Value {
        let message = format!(
            "{}: {} complete after {}s{}",
            self.name(address),
            operation.noun(),
            elapsed.as_secs(),
            id_text(id)
        );
        let hook = self.hook(address, operation, id, Some(elapsed));
        event("info", &message, now, "apply_complete", [("hook", hook)])
    }

    /// An operation failed; a diagnostic has the error.
    pub fn apply_errored(
        &self,
        now: Timestamp,
        address: &Address,
        operation: Operation,
        elapsed: Duration,
    ) -> Value {
        let message = format!(
            "{}: {} errored after {}s",
            self.name(address),
            operation.noun(),
            elapsed.as_secs()
        );
        let hook = self.hook(address, operation, None, Some(elapsed));
        event("info", &message, now, "apply_errored", [("hook", hook)])
    }

    fn resource(&self, address: &Address) -> Value {
        let name = self.name(address);
        json!({
            "addr": name,
            "module": "",
            "resource": name,
            "implied_provider": self.provider,
            "resource_type": self.resource_type,
            "resource_name": address.group.as_str(),
            "resource_key": address.slot,
        })
    }

    fn hook(
        &self,
        address: &Address,
        operation: Operation,
        id: Option<&str>,
        elapsed: Option<Duration>,
    ) -> Value {
        let mut hook = json!({"resource": self.resource(address), "action": operation.name()});
        if let Some(id) = id {
            hook["id_key"] = "provider_id".into();
            hook["id_value"] = id.into();
        }
        if let Some(elapsed) = elapsed {
            hook["elapsed_seconds"] = elapsed.as_secs().into();
        }
        hook
    }
}

/// The first event: the version of nstance and of the messages.
pub fn version(now: Timestamp) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let message = format!("nstance {version}");
    event(
        "info",
        &message,
        now,
        "version",
        [("nstance", version.into()), ("ui", UI_VERSION.into())],
    )
}

/// The counts of a plan.
pub fn plan_summary(now: Timestamp, summary: &Summary) -> Value {
    let planned = Done {
        added: summary.added(),
        changed: summary.update,
        destroyed: summary.destroyed(),
        adopted: summary.adopt,
        forgotten: summary.forget,
    };
    let message = format!("Plan: {}.", planned_counts(summary));
    change_summary(now, &message, planned, "plan")
}

/// The counts of a plan, as text.
pub fn planned_counts(summary: &Summary) -> String {
    let adopt = match summary.adopt {
        0 => String::new(),
        count => format!("{count} to adopt, "),
    };
    let forget = match summary.forget {
        0 => String::new(),
        count => format!(", {count} to forget"),
    };
    let held_back = match summary.held_back {
        0 => String::new(),
        count => format!(", {count} held back"),
    };
    format!(
        "{adopt}{} to add, {} to change, {} to destroy{forget}{held_back}",
        summary.added(),
        summary.update,
        summary.destroyed()
    )
}

/// The counts of an apply that took `elapsed`; `is_complete` means that the whole plan was applied.
pub fn apply_summary(
    now: Timestamp,
    mode: Mode,
    done: Done,
    is_complete: bool,
    elapsed: Duration,
) -> Value {
    let message = done_text(mode, done, is_complete);
    let operation = if mode == Mode::Destroy {
        "destroy"
    } else {
        "apply"
    };
    let mut event = change_summary(now, &message, done, operation);
    event["elapsed_seconds"] = elapsed.as_secs().into();
    event
}

/// The last line of an apply; `is_complete` means that the whole plan was applied.
pub fn done_text(mode: Mode, done: Done, is_complete: bool) -> String {
    match (is_complete, mode) {
        (true, Mode::Destroy) => {
            format!("Destroy complete! Resources: {} destroyed.", done.destroyed)
        }
        (true, Mode::Normal | Mode::RefreshOnly) => {
            format!("Apply complete! Resources: {}.", done_counts(done))
        }
        (false, _) => format!("Apply incomplete. Resources: {}.", done_counts(done)),
    }
}

/// The counts of an apply, as text.
pub fn done_counts(done: Done) -> String {
    let adopted = match done.adopted {
        0 => String::new(),
        count => format!("{count} adopted, "),
    };
    let forgotten = match done.forgotten {
        0 => String::new(),
        count => format!(", {count} forgotten"),
    };
    format!(
        "{adopted}{} added, {} changed, {} destroyed{forgotten}",
        done.added, done.changed, done.destroyed
    )
}

fn change_summary(now: Timestamp, message: &str, counts: Done, operation: &str) -> Value {
    let mut changes = done_json(counts);
    changes["operation"] = operation.into();
    event(
        "info",
        message,
        now,
        "change_summary",
        [("changes", changes)],
    )
}

/// The counts of an apply, with Terraform's keys.
pub fn done_json(done: Done) -> Value {
    json!({
        "add": done.added,
        "change": done.changed,
        "import": done.adopted,
        "remove": done.destroyed,
        "forget": done.forgotten,
    })
}

/// A finding, as built by `report::diagnostic::to_json`.
pub fn diagnostic(now: Timestamp, finding: Value) -> Value {
    let is_warning = finding["severity"] == "warning";
    let (level, word) = if is_warning {
        ("warn", "Warning")
    } else {
        ("error", "Error")
    };
    let message = format!(
        "{word}: {}",
        finding["summary"].as_str().unwrap_or_default()
    );
    event(
        level,
        &message,
        now,
        "diagnostic",
        [("diagnostic", finding)],
    )
}

fn id_text(id: Option<&str>) -> String {
    id.map_or_else(String::new, |id| format!(" [id={id}]"))
}

fn event<const N: usize>(
    level: &str,
    message: &str,
    now: Timestamp,
    kind: &str,
    more: [(&str, Value); N],
) -> Value {
    let mut event: Map<String, Value> = [
        ("@level", Value::from(level)),
        ("@message", message.into()),
        ("@module", "nstance.ui".into()),
        ("@timestamp", now.to_string().into()),
        ("type", kind.into()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    event.extend(more.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Value::Object(event)
}
