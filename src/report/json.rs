//! Plans as JSON, with Terraform's keys.
//!
//! In: a [`Plan`] and its findings as JSON. Out: the documents of `plan`, `drift` and errors. Must
//! not: print, or omit anything that isn't sensitive.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::path::{Segment, put, segments};
use crate::address::Address;
use crate::config::model::{CanaryPause, Check, ZoneOrder};
use crate::plan::accept::AcceptedBecause;
use crate::plan::change::{
    Action, Change, Drift, DriftKind, DriftedAttribute, InstanceView, Plan, Reason, Summary,
};
use crate::plan::drift::STATE;
use crate::plan::rollout::{GroupRollout, restarts};
use crate::provider::rules::Effect;
use crate::sensitivity::cover::covered;

/// The version of all documents. It grows with a change that could break a reader.
pub const FORMAT_VERSION: &str = "1.0";

/// The document of `plan --json` and `show --json PLANFILE`.
pub fn plan(plan: &Plan, diagnostics: Value) -> Value {
    let plan = &*covered(plan);
    let failed = diagnostics.as_array().is_some_and(|findings| {
        findings
            .iter()
            .any(|finding| finding["severity"] == "error")
    });
    let errored = plan.errored() || failed;
    let images: Map<String, Value> = plan
        .images
        .iter()
        .map(|(name, image)| {
            let resolved_at = image.resolved_at.map(|time| time.to_string());
            let image = json!({"id": image.id, "source": image.source, "resolved_at": resolved_at});
            (name.clone(), image)
        })
        .collect();
    let mut changes: Vec<&Change> = plan.changes.iter().chain(&plan.unchanged).collect();
    changes.sort_by(|a, b| Change::order(a, b));
    let held_back: Vec<Value> = plan
        .held_back
        .iter()
        .map(|change| {
            let mut value = resource_change(plan, change);
            value["held_back_by"] = change.held_back_by().as_str().into();
            value
        })
        .collect();
    let resource_changes: Vec<Value> = changes
        .into_iter()
        .map(|change| resource_change(plan, change))
        .collect();
    let resource_drift: Vec<Value> = plan
        .drift
        .iter()
        .filter_map(|drift| resource_drift(plan, drift))
        .collect();
    let left_out: Vec<Value> = plan
        .left_out
        .iter()
        .map(|part| json!({"address": part.address, "count": part.count, "why": part.why}))
        .collect();
    let summary = &plan.summary;
    let mut document = json!({
        "format_version": FORMAT_VERSION,
        "tool_version": env!("CARGO_PKG_VERSION"),
        "cluster": plan.cluster,
        "shard": plan.shard,
        "lineage": plan.lineage,
        "serial": plan.serial,
        "applyable": summary.is_applyable() && !errored,
        "complete": plan.left_out.is_empty(),
        "errored": errored,
        "images": images,
        "resource_changes": [],
        "rollout": [],
        "held_back": [],
        "resource_drift": [],
        "left_out": [],
        "summary": counts(summary),
    });
    // Move these, since the macro would copy them and they can be large.
    document["resource_changes"] = Value::from(resource_changes);
    let rollouts = plan.rollouts();
    let rollouts = rollouts.iter().map(|group| rollout(plan, group));
    document["rollout"] = rollouts.collect();
    document["held_back"] = Value::from(held_back);
    document["resource_drift"] = Value::from(resource_drift);
    document["left_out"] = Value::from(left_out);
    if let Some(manifest) = &plan.manifest {
        let differences = manifest.differences().into_iter();
        let differences = differences
            .map(|line| json!({"change": line.change.as_str(), "line": line.text}))
            .collect::<Vec<_>>();
        document["manifest"] = json!({"version": manifest.version, "diff": differences});
    }
    document["diagnostics"] = diagnostics;
    document
}

/// The document of `drift --json`; `planned` counts planned changes that are drift, too.
pub fn drift(plan: &Plan, planned: Option<&Summary>, diagnostics: Value) -> Value {
    let plan = &*covered(plan);
    let drifted =
        planned.is_some_and(Summary::has_changes) || plan.drift.iter().any(|drift| !drift.accepted);
    let because =
        |all: &[AcceptedBecause]| -> Value { all.iter().map(AcceptedBecause::to_json).collect() };
    let found: Vec<Value> = plan
        .drift
        .iter()
        .map(|drift| {
            let changes: Vec<Value> = drift
                .changes
                .iter()
                .map(|change| {
                    json!({
                        "path": change.path,
                        "recorded": change.recorded,
                        "observed": change.observed,
                    })
                })
                .collect();
            json!({
                "address": drift.address,
                "kind": drift.kind.as_str(),
                "provider_id": drift.provider_id,
                "changes": changes,
                "accepted": drift.accepted,
                "accepted_because": because(&drift.accepted_because),
                "acceptance_expired": because(&drift.expired),
            })
        })
        .collect();
    let of_server = plan.of_server.iter();
    let of_server = of_server.map(|it| json!({"provider_id": it.provider_id, "group": it.group}));
    let mut document = json!({
        "format_version": FORMAT_VERSION,
        "drifted": drifted,
        "resource_drift": found,
        "server_instances": of_server.collect::<Vec<_>>(),
    });
    if let Some(planned) = planned {
        document["summary"] = counts(planned);
    }
    document["diagnostics"] = diagnostics;
    document
}

/// The numbers of changes.
pub fn counts(summary: &Summary) -> Value {
    json!({
        "create": summary.create,
        "update": summary.update,
        "replace": summary.replace,
        "delete": summary.delete,
        "adopt": summary.adopt,
        "forget": summary.forget,
        "no_op": summary.no_op,
        "held_back": summary.held_back,
    })
}

/// The document of a command that failed.
pub fn errors(diagnostics: Value) -> Value {
    let mut document = json!({"format_version": FORMAT_VERSION});
    document["diagnostics"] = diagnostics;
    document
}

fn resource_change(plan: &Plan, change: &Change) -> Value {
    let view = |side: &Option<Box<InstanceView>>| {
        let side = side.as_ref()?;
        Some(plan.view_in_clear(&change.address, side))
    };
    let after = view(&change.after);
    let before = match change.action {
        // A missing predecessor is part of the drift, not of the change.
        Action::Create => None,
        // Adopting changes nothing, so both sides are equal, as in Terraform's imports.
        Action::Adopt if change.before.is_none() => after.clone(),
        _ => view(&change.before),
    };
    let sensitive = |side: &Option<Box<InstanceView>>| {
        let side = side.as_ref();
        side.map_or_else(|| json!({}), |side| side.marks.to_json())
    };
    let before_sensitive = match change.action {
        Action::Create => json!({}),
        Action::Adopt if change.before.is_none() => sensitive(&change.after),
        _ => sensitive(&change.before),
    };
    let mut body = json!({
        "actions": change.action.terraform(),
        "before": before,
        "after": after,
        "after_unknown": after_unknown(change),
        "before_sensitive": before_sensitive,
        "after_sensitive": sensitive(&change.after),
    });
    let instances: Vec<&Value> = [&before, &after].into_iter().flatten().collect();
    let paths_with = |effect: Effect| -> Vec<Value> {
        let attributes = change.attributes.iter();
        attributes
            .filter(|attribute| attribute.effect == effect)
            .map(|attribute| {
                segments(&attribute.path, &instances)
                    .iter()
                    .map(Segment::to_json)
                    .collect()
            })
            .collect()
    };
    if change.action.is_replace() {
        body["replace_paths"] = Value::from(paths_with(Effect::Replace));
    } else if restarts(change) {
        body["restart_paths"] = Value::from(paths_with(Effect::Restart));
    }
    if let Some(id) = &change.importing {
        body["importing"] = json!({"id": id});
    }
    let mut value = resource(plan, &change.address);
    if let Some(code) = reason_code(change) {
        value.insert("action_reason".to_owned(), code.into());
    }
    if let Some(id) = &change.deposed {
        value.insert("deposed".to_owned(), id.as_str().into());
    }
    value.insert("change".to_owned(), body);
    Value::Object(value)
}

/// How a group's changes follow each other.
fn rollout(plan: &Plan, group: &GroupRollout<'_>) -> Value {
    let rollout = group.rollout;
    let waves = group.waves.iter().map(|wave| {
        let indices = wave.changes.iter();
        let addresses: Vec<String> = indices
            .map(|index| plan.changes[*index].address.to_string())
            .collect();
        let mut value = json!({
            "addresses": addresses,
            "canary": wave.is_canary,
            "then_pause": wave.then_pause,
        });
        if let Some(zone) = &wave.zone {
            value["zone"] = (&**zone).into();
        }
        value
    });
    let waves: Vec<Value> = waves.collect();
    let mut value = json!({
        "group": group.name,
        "size": rollout.size,
        "max_unavailable": rollout.max_unavailable,
        "max_surge": rollout.max_surge,
        "max_creating": rollout.max_creating,
        "max_deleting": rollout.max_deleting,
        "canaries": rollout.canaries,
        "canary_pause": rollout.canary_pause.map(canary_pause),
        "health": health(group),
        "drain": rollout.drain.as_deref().map(program),
        "on_failure": rollout.on_failure,
        "max_failures": (rollout.max_failures != u32::MAX).then_some(rollout.max_failures),
        "zone_order": if rollout.zones.is_empty() {
            ZoneOrder::Interleaved
        } else {
            ZoneOrder::OneAtATime
        },
        "waves": waves,
        "least_seconds": seconds(rollout.least_duration(&group.waves)),
    });
    if let Some(assumed) = rollout.assumed {
        value["assumed"] = json!(assumed);
    }
    value
}

/// Seconds, or `manual`.
pub fn canary_pause(pause: CanaryPause) -> Value {
    match pause {
        CanaryPause::Manual => "manual".into(),
        CanaryPause::For(pause) => seconds(pause),
    }
}

/// When an instance is available.
fn health(group: &GroupRollout<'_>) -> Value {
    let health = &group.rollout.health;
    let mut value = json!({"check": health.check.name()});
    match &health.check {
        Check::Running => {}
        Check::Tcp { port } => value["port"] = (*port).into(),
        Check::Http {
            port, path, status, ..
        } => {
            value["port"] = (*port).into();
            value["path"] = (**path).into();
            value["status"] = (*status).into();
        }
        Check::Command { words } => value["command"] = program(words).into(),
    }
    value["min_healthy_seconds"] = seconds(health.min_healthy_time);
    value["interval_seconds"] = seconds(health.interval);
    value["timeout_seconds"] = seconds(health.timeout);
    value["retries"] = health.retries.into();
    if let Some(deadline) = health.deadline {
        value["deadline_seconds"] = seconds(deadline);
    }
    value["load_balancers"] = group.has_load_balancers().into();
    value
}

/// The program of a command: its arguments may be secret.
fn program(words: &[Arc<str>]) -> &str {
    words.first().map_or("", |word| word)
}

/// Seconds: a whole number, unless there are milliseconds.
fn seconds(duration: Duration) -> Value {
    if duration.subsec_millis() == 0 {
        duration.as_secs().into()
    } else {
        duration.as_secs_f64().into()
    }
}

/// The `action_reason` of a change, from its first reason.
pub(super) fn reason_code(change: &Change) -> Option<&'static str> {
    let reason = change.reasons.first()?;
    // A missing instance in a wanted slot leads to a create, and has another code there.
    if *reason == Reason::Missing && change.action == Action::Forget {
        return Some("forget_because_missing");
    }
    Some(reason.code())
}

/// The keys that identify the instance.
fn resource(plan: &Plan, address: &Address) -> Map<String, Value> {
    [
        ("address", Value::from(address.to_string())),
        ("mode", "managed".into()),
        ("type", plan.rules().resource_type().into()),
        ("name", address.group.as_str().into()),
        ("index", address.slot.into()),
        ("provider_name", plan.provider_name.as_str().into()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

/// The parts of `after` that are only known after apply.
fn after_unknown(change: &Change) -> Value {
    let mut unknown = Map::new();
    let Some(after) = &change.after else {
        return Value::Object(unknown);
    };
    if after.provider_id.is_none() {
        unknown.insert("provider_id".to_owned(), true.into());
    }
    let files: Map<String, Value> = after
        .spec
        .files
        .iter()
        .filter(|(_, file)| file.content.is_none())
        .map(|(name, _)| (name.to_string(), json!({"content": true})))
        .collect();
    if !files.is_empty() {
        unknown.insert("files".to_owned(), files.into());
    }
    let mut unknown = Value::Object(unknown);
    for path in &change.late {
        // A part of a list is unknown with the list.
        let path = path.split('[').next().unwrap_or(path);
        put(&mut unknown, &segments(path, &[]), Some(true.into()));
    }
    unknown
}

/// Drift in the form of a change; `None` for an unrecorded instance, which has no `before`.
fn resource_drift(plan: &Plan, drift: &Drift) -> Option<Value> {
    let address: Address = drift.address.parse().ok()?;
    let side = drift.before.as_deref()?;
    let mut before = plan.view_in_clear(&address, side);
    let (actions, after) = match drift.kind {
        DriftKind::Missing => (["delete"], Value::Null),
        DriftKind::Changed => {
            let mut after = before.clone();
            for change in &drift.changes {
                observe(change, &mut before, &mut after);
            }
            (["update"], after)
        }
        DriftKind::Unknown | DriftKind::Duplicate => return None,
    };
    let mut value = resource(plan, &address);
    value.insert(
        "change".to_owned(),
        json!({
            "actions": actions,
            "before": before,
            "after": after,
            "after_unknown": {},
            "before_sensitive": side.marks.to_json(),
            "after_sensitive": side.marks.to_json(),
        }),
    );
    Some(Value::Object(value))
}

fn observe(change: &DriftedAttribute, before: &mut Value, after: &mut Value) {
    let path = segments(&change.path, &[before]);
    if change.path == STATE {
        // The state isn't part of the record, so it is added on both sides.
        put(before, &path, change.recorded.clone());
    }
    put(after, &path, change.observed.clone());
}
