//! Plans made by hand.
//!
//! In: what a test wants to see. Out: [`Plan`]s and their parts. Must not: be used outside tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::address::{Address, GroupName};
use crate::clock::Timestamp;
use crate::config::model::{CanaryPause, Check, Health, OnFailure};
use crate::plan::change::{
    Action, AttributeChange, Change, Deletions, Drift, DriftKind, DriftedAttribute, InstanceView,
    Mode, Plan, PlannedGroup, PlannedImage, Reason, RulesName, Summary,
};
use crate::plan::rollout::Rollout;
use crate::provider::rules::Effect;
use crate::spec::{Content, File, SpecBody, Userdata};

/// When every plan here was made.
pub(crate) fn now() -> Timestamp {
    Timestamp::parse("2026-11-21T09:30:00Z").unwrap()
}

/// A plan that changes nothing.
pub(crate) fn empty() -> Plan {
    Plan {
        mode: Mode::Normal,
        cluster: "prod".to_owned(),
        shard: "us-west-2a".to_owned(),
        provider: "aws".to_owned(),
        rules: RulesName::Aws,
        provider_name: "aws".to_owned(),
        lineage: "06bgm7733st2576nx5jht4ecjw".to_owned(),
        serial: 7,
        new_state: false,
        read_from: Vec::new(),
        created_at: now(),
        target: String::new(),
        last_good: BTreeMap::new(),
        late: BTreeMap::new(),
        manifest: None,
        images: BTreeMap::new(),
        changes: Vec::new(),
        held_back: Vec::new(),
        sizes: BTreeMap::new(),
        unchanged: Vec::new(),
        drift: Vec::new(),
        of_server: Vec::new(),
        summary: Summary::default(),
        left_out: Vec::new(),
        deletions: Deletions {
            budget_count: 10,
            budget_percent: 10,
            ..Deletions::default()
        },
        groups: Vec::new(),
    }
}

/// A plan of these changes, its sums made.
pub(crate) fn plan_of(changes: Vec<Change>) -> Plan {
    let mut plan = empty();
    for change in &changes {
        plan.summary.count(change.action);
        if change.action == Action::Delete && change.deposed.is_none() {
            let group = change.address.group.to_string();
            *plan.deletions.by_group.entry(group).or_default() += 1;
        }
    }
    plan.deletions.recorded = changes.iter().filter(|c| c.before.is_some()).count();
    plan.changes = changes;
    plan
}

/// The plan with a group's rollout.
pub(crate) fn with_rollout(mut plan: Plan, group: &str, rollout: Rollout) -> Plan {
    plan.groups.push(PlannedGroup {
        name: group.to_owned(),
        after: Vec::new(),
        config_hash: String::new(),
        rollout: Some(rollout),
    });
    plan
}

/// A policy with a bit of everything: canaries, a check, a drain command.
pub(crate) fn careful(size: u32) -> Rollout {
    Rollout {
        max_surge: 4,
        max_creating: 8,
        max_deleting: 2,
        canaries: 1,
        canary_pause: Some(CanaryPause::Manual),
        health: Health {
            check: Check::Http {
                tls: false,
                port: 8080,
                path: "/healthz".into(),
                status: 200,
            },
            min_healthy_time: Duration::from_secs(30),
            deadline: Some(Duration::from_mins(10)),
            ..Health::default()
        },
        checks_new: true,
        drain: Some(["drain.sh".into(), "--token=s3cret".into()].into()),
        on_failure: OnFailure::Rollback,
        ..Rollout::standard(size)
    }
}

/// An image that was resolved some time before the plan was made.
pub(crate) fn image(id: &str, source: &str, seconds_ago: i64) -> PlannedImage {
    PlannedImage {
        id: id.to_owned(),
        source: source.to_owned(),
        resolved_at: Some(Timestamp(now().0 - seconds_ago * 1_000)),
    }
}

pub(crate) fn address(group: &str, slot: u32) -> Address {
    let group: GroupName = group.parse().unwrap();
    Address::new(group, slot)
}

/// The id of an instance of a slot and generation.
pub(crate) fn instance_id(slot: u32, generation: u64) -> String {
    format!("knd06bgm7733st2576n{generation:02}{slot:08}")
}

/// What the instances of these tests are made of.
pub(crate) fn body(slot: u32, generation: u64) -> SpecBody {
    let mut body = SpecBody::empty("knd");
    body.head.arch = "arm64".into();
    body.head.instance_type = "t4g.medium".into();
    body.head.subnet_pool = Some("workers".into());
    body.head.template = Some("knd".into());
    body.args = object(json!({
        "BlockDeviceMappings": [{
            "DeviceName": "/dev/xvda",
            "Ebs": {"VolumeSize": 40, "VolumeType": "gp3", "Encrypted": true},
        }],
        "ImageId": "ami-0a1",
        "MetadataOptions": {"HttpTokens": "required"},
        "SecurityGroupIds": ["sg-1", "sg-2"],
    }));
    body.vars = json!({"environment": "prod"});
    body.userdata = Some(Userdata {
        content: Content::Text(userdata(&instance_id(slot, generation), "1.31.2")),
        gzip: false,
    });
    body.files.insert(
        "instance.env".into(),
        File {
            kind: "env".into(),
            content: Some(format!("INSTANCE_ID={}\n", instance_id(slot, generation))),
            by_server: false,
            in_userdata: false,
        },
    );
    body.tags.insert("Owner".to_owned(), "platform".to_owned());
    body
}

/// Userdata of some lines that names its instance.
pub(crate) fn userdata(id: &str, version: &str) -> String {
    let files: String = (0..20).fold(String::new(), |text, number| {
        text + &format!("  - path: /etc/file-{number}\n")
    });
    format!(
        "#cloud-config\nhostname: {id}\npackages:\n  - curl\n  - kubelet={version}\nwrite_files:\n{files}"
    )
}

pub(crate) fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        other => panic!("not an object: {other}"),
    }
}

/// An instance that exists.
pub(crate) fn recorded(slot: u32) -> InstanceView {
    InstanceView {
        protected: false,
        provider_id: Some(format!("i-{slot:017x}")),
        ip4: Some(format!("10.0.0.{}", slot % 200 + 4).into()),
        created_at: Some(Timestamp(now().0 - 86_400_000)),
        version: Some(3),
        ..new(slot, 1)
    }
}

/// An instance to be.
pub(crate) fn new(slot: u32, generation: u64) -> InstanceView {
    side(slot, generation, body(slot, generation))
}

/// An instance to be, of a spec.
pub(crate) fn side(slot: u32, generation: u64, body: SpecBody) -> InstanceView {
    let digest = body.clone().into_spec().digest();
    InstanceView {
        instance_id: instance_id(slot, generation).into(),
        provider_id: None,
        generation,
        seat: crate::merge::zones::Seat::default(),
        index: None,
        links: BTreeMap::new(),
        manifest_version: None,
        zone: "us-west-2a".into(),
        subnet: Some("subnet-0a".into()),
        ip4: None,
        ip6: None,
        created_at: None,
        protected: false,
        images: BTreeMap::from([("debian".into(), "ami-0a1".into())]),
        marks: crate::sensitivity::Marks::none(),
        version: None,
        spec: Arc::new(body),
        digest,
    }
}

/// A change that says nothing yet.
pub(crate) fn change(group: &str, slot: u32, action: Action, reason: Reason) -> Change {
    Change::new(address(group, slot), action, vec![reason])
}

pub(crate) fn create(group: &str, slot: u32) -> Change {
    Change {
        after: Some(Box::new(new(slot, 1))),
        ..change(group, slot, Action::Create, Reason::GroupGrew)
    }
}

pub(crate) fn delete(group: &str, slot: u32, reason: Reason) -> Change {
    Change {
        before: Some(Box::new(recorded(slot))),
        ..change(group, slot, Action::Delete, reason)
    }
}

/// An attribute that differs.
pub(crate) fn attribute(
    path: &str,
    before: Option<Value>,
    after: Option<Value>,
    effect: Effect,
) -> AttributeChange {
    AttributeChange {
        path: path.to_owned(),
        before,
        after,
        unknown: false,
        effect,
        written_at: None,
    }
}

/// A change in place.
pub(crate) fn update(group: &str, slot: u32) -> Change {
    let mut body = body(slot, 1);
    body.head.instance_type = "t4g.large".into();
    body.tags.insert("Team".to_owned(), "core".to_owned());
    let after = InstanceView {
        provider_id: recorded(slot).provider_id,
        ..side(slot, 1, body)
    };
    Change {
        before: Some(Box::new(recorded(slot))),
        after: Some(Box::new(after)),
        attributes: vec![
            AttributeChange {
                written_at: Some("config.jsonc:12:24".to_owned()),
                ..attribute(
                    "instance_type",
                    Some(json!("t4g.medium")),
                    Some(json!("t4g.large")),
                    Effect::Restart,
                )
            },
            attribute("tags.Team", None, Some(json!("core")), Effect::InPlace),
        ],
        ..change(group, slot, Action::Update, Reason::Changed)
    }
}

/// A replacement because of a newer image, with newer userdata as well.
pub(crate) fn replace(group: &str, slot: u32) -> Change {
    let id = instance_id(slot, 1);
    let mut body = body(slot, 2);
    body.args.insert("ImageId".to_owned(), json!("ami-0b2"));
    body.userdata = Some(Userdata {
        content: Content::Text(userdata(&instance_id(slot, 2), "1.32.0")),
        gzip: false,
    });
    let mut change = change(
        group,
        slot,
        Action::CreateThenDelete,
        Reason::NewerImage {
            name: "debian".into(),
            from: "ami-0a1".to_owned(),
            to: "ami-0b2".to_owned(),
        },
    );
    change.reasons.push(Reason::CannotUpdate);
    Change {
        before: Some(Box::new(recorded(slot))),
        after: Some(Box::new(side(slot, 2, body))),
        attributes: vec![
            AttributeChange {
                written_at: Some("config.jsonc:41:19".to_owned()),
                ..attribute(
                    "args.ImageId",
                    Some(json!("ami-0a1")),
                    Some(json!("ami-0b2")),
                    Effect::Replace,
                )
            },
            AttributeChange {
                written_at: Some("config.jsonc:44:9".to_owned()),
                ..attribute(
                    "userdata",
                    Some(json!(userdata(&id, "1.31.2"))),
                    Some(json!(userdata(&id, "1.32.0"))),
                    Effect::Replace,
                )
            },
        ],
        ..change
    }
}

/// Drift of a recorded instance.
pub(crate) fn drift(group: &str, slot: u32, kind: DriftKind) -> Drift {
    let known = matches!(kind, DriftKind::Changed | DriftKind::Missing);
    let changes = match kind {
        DriftKind::Changed => vec![
            DriftedAttribute {
                path: "state".to_owned(),
                recorded: Some(json!("running")),
                observed: Some(json!("stopped")),
                ignored: false,
            },
            DriftedAttribute {
                path: "tags.Owner".to_owned(),
                recorded: Some(json!("platform")),
                observed: None,
                ignored: false,
            },
            DriftedAttribute {
                path: "tags.cost.centre".to_owned(),
                recorded: None,
                observed: Some(json!("42")),
                ignored: false,
            },
        ],
        _ => Vec::new(),
    };
    Drift {
        address: address(group, slot).to_string(),
        kind,
        provider_id: format!("i-{slot:017x}"),
        changes,
        accepted: false,
        accepted_because: Vec::new(),
        expired: Vec::new(),
        before: known.then(|| Box::new(recorded(slot))),
    }
}
