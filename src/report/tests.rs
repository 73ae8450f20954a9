//! What programs get.

use std::time::Duration;

use serde_json::{Value, json};

use super::events::{self, Done, Events, Operation};
use super::json;
use super::testing::*;
use crate::config::model::{CanaryPause, Check, OnFailure};
use crate::plan::change::{Action, DriftKind, LeftOut, Mode, Reason};
use crate::plan::rollout::{Assumed, Rollout};

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value)
        .unwrap()
        .replace(env!("CARGO_PKG_VERSION"), "[version]")
}

#[test]
fn a_plan_has_terraforms_keys() {
    let mut plan = plan_of(vec![replace("default/web", 3)]);
    plan.images
        .insert("debian".to_owned(), image("ami-0b2", "lookup", 0));
    plan.drift = vec![drift("default/web", 3, DriftKind::Changed)];
    insta::assert_snapshot!(pretty(&json::plan(&plan, json!([]))));
}

#[test]
fn a_plan_has_its_rollouts() {
    let mut policies = vec![
        careful(3),
        Rollout::standard(3),
        Rollout {
            max_unavailable: 1,
            assumed: Some(Assumed::Restart),
            canaries: 1,
            canary_pause: Some(CanaryPause::For(Duration::from_millis(1_500))),
            zones: vec!["us-west-2a".into()],
            on_failure: OnFailure::Continue,
            max_failures: u32::MAX,
            ..Rollout::standard(3)
        },
    ];
    for check in [
        Check::Tcp { port: 5432 },
        Check::Command {
            words: ["check.sh".into(), "s3cret".into()].into(),
        },
    ] {
        let mut policy = Rollout::standard(3);
        policy.health.check = check;
        policies.push(policy);
    }
    let changes = (0..3).map(|slot| replace("default/web", slot));
    let plan = plan_of(changes.collect());
    let rollouts: Vec<Value> = policies
        .into_iter()
        .map(|policy| {
            let plan = with_rollout(plan.clone(), "default/web", policy);
            json::plan(&plan, json!([]))["rollout"][0].take()
        })
        .collect();
    let rollouts = pretty(&rollouts.into());
    assert!(!rollouts.contains("s3cret"), "{rollouts}");
    insta::assert_snapshot!(rollouts);
}

/// The changes without the instances in them.
fn outline(changes: &Value) -> Vec<Value> {
    let name = |value: &Value| match value {
        Value::Null => json!(null),
        instance => instance["instance_id"].clone(),
    };
    let mut changes = changes.as_array().unwrap().clone();
    for change in &mut changes {
        let change = &mut change["change"];
        let (before, after) = (name(&change["before"]), name(&change["after"]));
        change["before"] = before;
        change["after"] = after;
    }
    changes
}

#[test]
fn every_action_has_its_form() {
    let mut forgotten = delete("default/web", 3, Reason::Missing);
    forgotten.action = Action::Forget;
    let mut adopted = change("default/web", 4, Action::Adopt, Reason::Unrecorded);
    adopted.importing = recorded(4).provider_id;
    adopted.after = Some(Box::new(recorded(4)));
    let mut deposed = delete("default/web", 2, Reason::Deposed);
    deposed.deposed = Some("i-0dead".to_owned());
    let mut missing = create("default/web", 0);
    missing.before = Some(Box::new(recorded(0)));
    missing.reasons = vec![Reason::Missing];
    let mut kept = update("default/web", 1);
    kept.action = Action::NoOp;
    kept.reasons.clear();
    kept.attributes.clear();
    let mut turned = replace("default/web", 5);
    turned.action = Action::DeleteThenCreate;
    let mut plan = plan_of(vec![
        missing,
        delete("default/web", 2, Reason::GroupShrank),
        deposed,
        forgotten,
        adopted,
        turned,
        update("default/web", 6),
    ]);
    plan.summary.no_op = 1;
    plan.unchanged = vec![kept];
    plan.drift = vec![
        drift("default/web", 0, DriftKind::Missing),
        drift("default/web", 2, DriftKind::Duplicate),
        drift("default/web", 4, DriftKind::Unknown),
    ];
    let value = json::plan(&plan, json!([]));
    let changes = outline(&value["resource_changes"]);
    let drift = outline(&value["resource_drift"]);
    insta::assert_snapshot!(pretty(&json!([changes, drift, value["summary"]])));
}

#[test]
fn only_a_whole_plan_with_changes_is_applyable() {
    let facts = |plan: &_, diagnostics| {
        let value = json::plan(plan, diagnostics);
        ["applyable", "complete", "errored"].map(|key| value[key].as_bool().unwrap())
    };
    assert_eq!(facts(&empty(), json!([])), [false, true, false]);
    let mut plan = plan_of(vec![create("default/web", 0)]);
    assert_eq!(
        facts(&plan, json!([{"severity": "warning"}])),
        [true, true, false]
    );
    assert_eq!(
        facts(&plan, json!([{"severity": "error"}])),
        [false, true, true]
    );
    plan.left_out.push(LeftOut {
        address: "default/db".to_owned(),
        count: 2,
        why: "image `debian` can't be resolved".to_owned(),
    });
    assert_eq!(facts(&plan, json!([])), [false, false, true]);
}

#[test]
fn drift_names_what_is_recorded_and_observed() {
    let mut plan = empty();
    assert_eq!(json::drift(&plan, None, json!([]))["drifted"], json!(false));
    let mut accepted = drift("default/web", 0, DriftKind::Changed);
    accepted.accepted = true;
    plan.drift.push(accepted);
    assert_eq!(json::drift(&plan, None, json!([]))["drifted"], json!(false));
    plan.drift.push(drift("default/web", 1, DriftKind::Unknown));
    insta::assert_snapshot!(pretty(&json::drift(&plan, None, json!([]))));
    assert_eq!(
        json::errors(json!([{"severity": "error"}])),
        json!({"format_version": "1.0", "diagnostics": [{"severity": "error"}]})
    );
}

#[test]
fn events_are_terraforms() {
    let mut plan = plan_of(vec![replace("default/web", 3)]);
    plan.drift = vec![drift("default/web", 3, DriftKind::Changed)];
    let events = Events::of(&plan);
    let address = address("default/web", 3);
    let second = Duration::from_secs(12);
    let done = Done {
        added: 1,
        destroyed: 1,
        ..Done::default()
    };
    let finding = json!({"severity": "warning", "summary": "Nearly full", "detail": ""});
    let lines: Vec<String> = [
        Some(events::version(now())),
        events.resource_drift(now(), &plan.drift[0]),
        events.planned_change(now(), &plan.changes[0]),
        Some(events::plan_summary(now(), &plan.summary)),
        Some(events.apply_start(now(), &address, Operation::Create, None)),
        Some(events.apply_progress(now(), &address, Operation::Create, second)),
        Some(events.apply_complete(now(), &address, Operation::Create, Some("i-1"), second)),
        Some(events.apply_start(now(), &address, Operation::Delete, Some("i-0"))),
        Some(events.apply_errored(now(), &address, Operation::Delete, second)),
        Some(events::diagnostic(now(), finding)),
        Some(events::apply_summary(
            now(),
            Mode::Normal,
            done,
            true,
            Duration::from_secs(75),
        )),
        Some(events::apply_summary(
            now(),
            Mode::Destroy,
            done,
            true,
            Duration::ZERO,
        )),
    ]
    .into_iter()
    .map(|event| {
        event
            .unwrap()
            .to_string()
            .replace(env!("CARGO_PKG_VERSION"), "[version]")
    })
    .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_last_line_says_whether_all_was_done() {
    let done = Done {
        added: 1,
        destroyed: 2,
        ..Done::default()
    };
    let incomplete = "Apply incomplete. Resources: 1 added, 0 changed, 2 destroyed.";
    for (mode, is_complete, operation, message) in [
        (
            Mode::Normal,
            true,
            "apply",
            "Apply complete! Resources: 1 added, 0 changed, 2 destroyed.",
        ),
        (
            Mode::Destroy,
            true,
            "destroy",
            "Destroy complete! Resources: 2 destroyed.",
        ),
        (Mode::Normal, false, "apply", incomplete),
        (Mode::RefreshOnly, false, "apply", incomplete),
        (Mode::Destroy, false, "destroy", incomplete),
    ] {
        let event = events::apply_summary(now(), mode, done, is_complete, Duration::ZERO);
        assert_eq!(event["@message"], message);
        assert_eq!(
            event["@message"],
            events::done_text(mode, done, is_complete)
        );
        assert_eq!(event["type"], "change_summary");
        assert_eq!(event["changes"]["operation"], operation);
        assert_eq!(event["changes"]["add"], 1);
    }
}
