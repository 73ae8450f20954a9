//! What plans look like.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::testing::*;
use super::{Signs, Style, instance, plan, rollout};
use crate::config::model::{CanaryPause, Check, Health, OnFailure};
use crate::plan::change::{
    Action, AttributeChange, Change, DriftKind, LeftOut, Mode, Plan, Reason,
};
use crate::plan::rollout::{Assumed, Rollout};
use crate::provider::rules::Effect;
use crate::spec::{Content, Userdata};

const PLAIN: Style<'_> = Style {
    shard: None,
    signs: Signs::Indented,
    color: false,
    width: 100,
};

fn shown(of: &Plan) -> String {
    plan(of, PLAIN)
}

#[test]
fn nothing_to_do() {
    let mut texts = Vec::new();
    for mode in [Mode::Normal, Mode::Destroy, Mode::RefreshOnly] {
        texts.push(shown(&Plan { mode, ..empty() }));
    }
    insta::assert_snapshot!(texts.join("=====\n"));
}

#[test]
fn creates_collapse() {
    let mut plan = plan_of((0..1_000).map(|slot| create("default/web", slot)).collect());
    for (change, zone) in plan
        .changes
        .iter_mut()
        .zip(["us-west-2a", "us-west-2b"].iter().cycle())
    {
        let side = change.after.as_mut().unwrap();
        side.zone = Arc::from(*zone);
        side.subnet = Some(format!("subnet-{zone}").into());
    }
    plan.images
        .insert("debian".to_owned(), image("ami-0a1", "cache", 3 * 3_600));
    plan.images
        .insert("flatcar".to_owned(), image("ami-0f1", "lookup", 1));
    plan.images
        .insert("old".to_owned(), image("ami-001", "fallback", 0));
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn one_create() {
    let mut change = create("default/web", 3);
    let side = change.after.as_mut().unwrap();
    let mut spec = (*side.spec).clone();
    spec.userdata = Some(Userdata {
        content: Content::from_bytes(vec![0x1f, 0x8b, 0xff]),
        gzip: false,
    });
    let mut file = spec.files["instance.env"].clone();
    file.content = None;
    spec.files.insert("address.env".into(), file.clone());
    file.content = Some("ca".to_owned());
    file.by_server = true;
    spec.files.insert("tls/ca.crt".into(), file);
    spec.head.load_balancers = vec!["web".to_owned()];
    side.spec = Arc::new(spec);
    let mut missing = create("default/web", 4);
    missing.reasons = vec![Reason::Missing];
    missing.before = Some(Box::new(recorded(4)));
    insta::assert_snapshot!(shown(&plan_of(vec![change, missing])));
}

#[test]
fn a_newer_image_replaces() {
    insta::assert_snapshot!(shown(&plan_of(vec![replace("default/web", 3)])));
}

#[test]
fn replacements_collapse() {
    let mut changes: Vec<_> = (0..50).map(|slot| replace("default/web", slot)).collect();
    changes[20].action = Action::DeleteThenCreate;
    changes[21].reasons = vec![Reason::Requested];
    changes[21].attributes.clear();
    insta::assert_snapshot!(shown(&plan_of(changes)));
}

#[test]
fn updates_in_place() {
    let mut drifted = update("default/web", 1);
    drifted.reasons = vec![
        Reason::Moved {
            from: "default/old/1".to_owned(),
        },
        Reason::Drifted,
    ];
    let rules = json!((0..8).map(|n| format!("sg-{n:017}")).collect::<Vec<_>>());
    let fewer = json!((1..8).map(|n| format!("sg-{n:017}")).collect::<Vec<_>>());
    let long = |end: &str| {
        Some(json!(format!(
            "{}{end}",
            "https://example.com/a/".repeat(10)
        )))
    };
    drifted.attributes = vec![
        attribute(
            "args.SecurityGroupIds",
            Some(fewer),
            Some(rules),
            Effect::InPlace,
        ),
        AttributeChange {
            unknown: true,
            ..attribute(
                "files.address.env",
                Some(json!("A=1\nB=2\n")),
                None,
                Effect::InPlace,
            )
        },
        attribute(
            "files.instance.env",
            Some(json!("A=1\nB=2\nC=3\n")),
            Some(json!("A=1\nB=3\nC=3\n")),
            Effect::InPlace,
        ),
        attribute(
            "files.new.env",
            None,
            Some(json!("A=1\nB=2\n")),
            Effect::InPlace,
        ),
        attribute(
            "load_balancers",
            Some(json!(["web"])),
            None,
            Effect::InPlace,
        ),
        attribute(
            "tags.Team\u{1b}[2J",
            Some(json!("a\u{7}")),
            None,
            Effect::InPlace,
        ),
        attribute(
            "vars.labels",
            Some(json!({"a": 1})),
            Some(json!({"a": 1, "b": [2]})),
            Effect::InPlace,
        ),
        attribute("vars.url", long("one"), long("two"), Effect::InPlace),
    ];
    insta::assert_snapshot!(shown(&plan_of(vec![update("default/web", 0), drifted])));
}

#[test]
fn deletes_and_forgets() {
    let mut forgotten = delete("default/web", 6, Reason::Missing);
    forgotten.action = Action::Forget;
    let mut deposed = delete("default/web", 6, Reason::Deposed);
    deposed.deposed = Some("i-0dead".to_owned());
    insta::assert_snapshot!(shown(&plan_of(vec![
        delete("default/db", 0, Reason::GroupRemoved),
        delete("default/web", 4, Reason::GroupShrank),
        delete("default/web", 5, Reason::GroupShrank),
        forgotten,
        deposed,
    ])));
}

#[test]
fn adopts() {
    let mut change = change("default/web", 2, Action::Adopt, Reason::Unrecorded);
    change.importing = recorded(2).provider_id;
    change.after = Some(Box::new(recorded(2)));
    insta::assert_snapshot!(shown(&plan_of(vec![change])));
}

#[test]
fn a_refresh_only_plan_records() {
    let mut change = update("default/web", 2);
    change.action = Action::Adopt;
    change.reasons = vec![Reason::RefreshOnly];
    change.importing = recorded(2).provider_id;
    let mut plan = plan_of(vec![change]);
    plan.mode = Mode::RefreshOnly;
    plan.drift = vec![drift("default/web", 2, DriftKind::Changed)];
    insta::assert_snapshot!(shown(&plan));
}

fn drifted() -> Plan {
    let mut plan = empty();
    plan.drift = (0..3)
        .map(|slot| drift("default/web", slot, DriftKind::Changed))
        .collect();
    plan.drift.push(drift("default/web", 3, DriftKind::Missing));
    plan.drift
        .push(drift("default/web", 11, DriftKind::Unknown));
    plan.drift
        .push(drift("default/web", 12, DriftKind::Unknown));
    plan.drift
        .push(drift("default/web", 2, DriftKind::Duplicate));
    let mut accepted = drift("default/db", 0, DriftKind::Changed);
    accepted.accepted = true;
    accepted.changes.truncate(1);
    accepted.changes[0].path = "userdata".to_owned();
    accepted.changes[0].recorded = Some(json!("#cloud-config\na: 1\n"));
    accepted.changes[0].observed = Some(json!("#cloud-config\na: 2\n"));
    plan.drift.push(accepted);
    plan
}

#[test]
fn drift_is_reported() {
    insta::assert_snapshot!(super::drift(&drifted(), PLAIN));
    let mut plan = drifted();
    plan.drift.retain(|drift| drift.accepted);
    assert!(super::drift(&plan, PLAIN).ends_with("No drift. (1 accepted by ignore_changes.)\n"));
    assert_eq!(super::drift(&empty(), PLAIN), "No drift.\n");
}

#[test]
fn drift_of_userdata_is_shown_part_by_part() {
    let message = |zone: &str| {
        format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
             Content-Type: text/cloud-config\n\n#cloud-config\ntimezone: {zone}\n\n--b\n\
             Content-Type: text/x-shellscript\n\n#!/bin/sh\n\necho {zone}\n--b--\n"
        )
    };
    let mut plan = empty();
    let mut changed = drift("default/db", 0, DriftKind::Changed);
    changed.changes.truncate(1);
    changed.changes[0].path = "userdata".to_owned();
    changed.changes[0].recorded = Some(json!(message("UTC")));
    changed.changes[0].observed = Some(json!(message("CET")));
    plan.drift.push(changed);
    insta::assert_snapshot!(super::drift(&plan, PLAIN));
}

#[test]
fn drift_stands_before_the_changes() {
    let mut plan = plan_of(vec![update("default/web", 0)]);
    plan.drift = drifted().drift;
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn what_is_left_out_is_said() {
    let mut plan = plan_of(vec![update("default/web", 0)]);
    plan.left_out = vec![
        LeftOut {
            address: "default/db".to_owned(),
            count: 12,
            why: "image `debian` can't be resolved".to_owned(),
        },
        LeftOut {
            address: "default/web/1".to_owned(),
            count: 1,
            why: "its recorded spec can't be read".to_owned(),
        },
    ];
    let nothing = Plan {
        left_out: plan.left_out.clone(),
        ..empty()
    };
    insta::assert_snapshot!([shown(&plan), shown(&nothing)].join("=====\n"));
}

#[test]
fn deletions_beyond_the_budget_are_said() {
    let changes = (0..20)
        .map(|slot| delete("default/db", slot, Reason::GroupRemoved))
        .chain((5..30).map(|slot| delete("default/web", slot, Reason::GroupShrank)));
    let mut plan = plan_of(changes.collect());
    plan.deletions.recorded = 100;
    plan.deletions.protected = vec!["default/db".to_owned()];
    let beyond = shown(&plan);
    plan.mode = Mode::Destroy;
    let destroy = shown(&plan);
    let warnings = destroy.split_once("Warning:").map(|(_, rest)| rest);
    insta::assert_snapshot!(format!("{beyond}=====\nWarning:{}", warnings.unwrap()));
}

/// 100,000 different changes in 1,000 groups.
fn large() -> Plan {
    let model = update("default/web", 0);
    let changes = (0..100_000).map(|number| {
        let mut change = model.clone();
        change.address = address(&format!("default/g{:04}", number / 100), number % 100);
        change.attributes[0].after = Some(json!(format!("type-{number}")));
        change
    });
    plan_of(changes.collect())
}

#[test]
fn a_large_plan_fits_200_lines() {
    let mut plan = large();
    let text = shown(&plan);
    let end: Vec<_> = text.lines().skip(text.lines().count() - 4).collect();
    insta::assert_snapshot!(end.join("\n"));
    assert!(text.lines().count() <= 200, "{}", text.lines().count());
    // With all that can stand beside the changes.
    plan.drift = (0..100)
        .map(|slot| {
            let mut drift = drift("default/web", slot, DriftKind::Changed);
            drift.changes[0].observed = Some(json!(format!("state {slot}")));
            drift
        })
        .collect();
    let left_out = |number| LeftOut {
        address: format!("default/x{number}"),
        count: number,
        why: "because".to_owned(),
    };
    plan.left_out = (0..100).map(left_out).collect();
    plan.images = (0..100)
        .map(|n| (format!("image-{n}"), image("ami", "lookup", 0)))
        .collect();
    plan.deletions.by_group = (0..100).map(|n| (format!("default/g{n}"), 1_000)).collect();
    plan.deletions.protected = (0..100).map(|n| format!("default/g{n}")).collect();
    let text = shown(&plan);
    assert!(text.lines().count() <= 200, "{}", text.lines().count());
    assert!(super::drift(&plan, PLAIN).lines().count() <= 200);
}

#[test]
fn a_few_groups_share_the_lines() {
    let changes = (0..30)
        .flat_map(|group| (0..5).map(move |slot| create(&format!("default/g{group:02}"), slot)));
    let text = shown(&plan_of(changes.collect()));
    assert!(text.lines().count() <= 200, "{}", text.lines().count());
    for group in 0..30 {
        let head = format!("# default/g{group:02}/[0..4] will be created (5 instances)");
        assert!(text.contains(&head), "{head}\n{text}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn colours_change_nothing_else() {
    let mut plan = plan_of(vec![
        create("default/web", 0),
        update("default/web", 1),
        replace("default/web", 2),
        delete("default/web", 3, Reason::GroupShrank),
    ]);
    plan.drift = drifted().drift;
    let colored = super::plan(
        &plan,
        Style {
            color: true,
            ..PLAIN
        },
    );
    assert_ne!(colored, shown(&plan));
    let mut bare = String::new();
    let mut rest = &*colored;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    bare.push_str(rest);
    assert_eq!(bare, shown(&plan));
}

#[test]
fn one_instance_is_shown_whole() {
    let plan = empty();
    let mut view = plan.view(&address("default/web", 3), &recorded(3));
    let Value::Object(entries) = &mut view else {
        panic!("not an object")
    };
    entries.shift_insert(0, "address".to_owned(), json!("default/web/3"));
    insta::assert_snapshot!(instance(&view, PLAIN));
}

#[test]
fn ages_of_a_block_are_its_least() {
    let expired = |slot: u32| {
        let mut change = replace("default/web", slot);
        change.attributes.clear();
        change.reasons = vec![Reason::Expired {
            age_seconds: 86_400 * u64::from(slot + 30),
        }];
        change
    };
    let changes: Vec<Change> = (0..3).map(expired).collect();
    let text = shown(&plan_of(changes));
    assert!(
        text.contains("# (older than shard.expiry allows: 30 days)"),
        "{text}"
    );
    assert!(
        text.contains("# default/web/[0..2] must be replaced (3 instances)"),
        "{text}"
    );
}

/// Replacements of all instances of a group.
fn replaced(size: u32) -> Plan {
    plan_of((0..size).map(|slot| replace("default/web", slot)).collect())
}

/// The lines about rollouts.
fn turns(of: &Plan) -> String {
    rollout::sections(of, PLAIN).join("\n")
}

#[test]
fn rollouts_show_their_waves() {
    let standard = Rollout::standard;
    let updates = |size| plan_of((0..size).map(|slot| update("default/web", slot)).collect());
    let restarts = |size| Rollout {
        max_unavailable: 1,
        assumed: Some(Assumed::Restart),
        ..standard(size)
    };
    let mut deletes_first = replaced(3);
    for change in &mut deletes_first.changes {
        change.action = Action::DeleteThenCreate;
        change.drain_timeout_ms = 300_000;
    }
    let mut zoned = replaced(7);
    for change in &mut zoned.changes {
        let zone = ["us-west-2b", "us-west-2a"][change.address.slot as usize % 2];
        change.after.as_mut().unwrap().zone = zone.into();
    }
    let deletes = (1..3).map(|slot| delete("default/web", slot, Reason::GroupShrank));
    let deletes = plan_of(deletes.collect());
    let mut balanced = replaced(2);
    for change in &mut balanced.changes {
        let after = change.after.as_mut().unwrap();
        Arc::make_mut(&mut after.spec).head.load_balancers = vec!["front".into()];
    }
    let health = |check| Health {
        check,
        ..Health::default()
    };
    let cases = [
        ("standard, one change", replaced(1), standard(1)),
        ("standard", replaced(3), standard(3)),
        ("a restart", updates(1), restarts(1)),
        ("restarts", updates(3), restarts(3)),
        (
            "an address",
            deletes_first.clone(),
            Rollout {
                assumed: Some(Assumed::Exclusive),
                ..restarts(3)
            },
        ),
        (
            "an address, one more change",
            plan_of(vec![
                replace("default/web", 0),
                update("default/web", 1),
                update("default/web", 2),
            ]),
            restarts(3),
        ),
        ("careful", replaced(40), careful(40)),
        (
            "delete first",
            deletes_first,
            Rollout {
                max_surge: 0,
                max_unavailable: 2,
                drain: Some(["drain.sh".into(), "--token=s3cret".into()].into()),
                on_failure: OnFailure::Continue,
                max_failures: u32::MAX,
                checks_new: true,
                health: health(Check::Tcp { port: 5432 }),
                ..standard(3)
            },
        ),
        (
            "zones",
            zoned,
            Rollout {
                max_unavailable: 1,
                canaries: 2,
                canary_pause: Some(CanaryPause::For(Duration::from_mins(10))),
                zones: vec!["us-west-2a".into(), "us-west-2b".into()],
                max_failures: 2,
                checks_new: true,
                health: health(Check::Running),
                ..standard(7)
            },
        ),
        (
            "many waves",
            plan_of(
                (0..40)
                    .map(|slot| match slot % 4 {
                        0 | 1 => replace("default/web", slot),
                        _ => update("default/web", slot),
                    })
                    .collect(),
            ),
            Rollout {
                checks_new: true,
                health: health(Check::Command {
                    words: ["check.sh".into(), "s3cret".into()].into(),
                }),
                ..restarts(40)
            },
        ),
        ("load balancers", balanced, standard(2)),
        (
            "new instances under a check",
            plan_of((0..2).map(|slot| create("default/web", slot)).collect()),
            Rollout {
                checks_new: true,
                max_creating: 1,
                health: health(Check::Tcp { port: 5432 }),
                ..standard(2)
            },
        ),
        ("deletions", deletes.clone(), standard(1)),
        (
            "limited deletions",
            deletes,
            Rollout {
                max_deleting: 1,
                ..standard(1)
            },
        ),
    ];
    let mut text = String::new();
    for (name, plan, rollout) in cases {
        let plan = with_rollout(plan, "default/web", rollout);
        let _ = writeln!(text, "--- {name}\n{}", turns(&plan));
    }
    assert!(!text.contains("s3cret"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn only_a_normal_plan_shows_rollouts() {
    let plan = with_rollout(replaced(40), "default/web", careful(40));
    let color = Style {
        shard: Some("west"),
        color: true,
        ..PLAIN
    };
    insta::assert_snapshot!(rollout::sections(&plan, color).join("\n"));
    for mode in [Mode::Destroy, Mode::RefreshOnly] {
        let plan = Plan {
            mode,
            ..plan.clone()
        };
        assert_eq!(turns(&plan), "");
    }
}

#[test]
fn many_rollouts_fit_into_the_lines() {
    let names: Vec<String> = (10..40)
        .map(|number| format!("default/g{number}"))
        .collect();
    let changes = names
        .iter()
        .flat_map(|name| (0..40).map(|slot| replace(name, slot)));
    let mut plan = plan_of(changes.collect());
    for name in &names {
        plan = with_rollout(plan, name, careful(40));
    }
    insta::assert_snapshot!(turns(&plan));
    let text = shown(&plan);
    assert!(text.lines().count() <= 200, "{text}");
}

#[test]
fn held_back_changes_say_what_releases_them() {
    let mut guarded = replace("default/db", 0);
    guarded.after.as_mut().unwrap().protected = true;
    let mut plan = empty();
    plan.held_back = vec![guarded, replace("default/web", 0), update("default/web", 1)];
    plan.summary.held_back = 3;
    insta::assert_snapshot!(shown(&plan));
}
