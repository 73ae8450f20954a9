//! What changes in place, what wants a stop, what wants a new instance.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use insta::assert_snapshot;

use nstance_ec2_proxy::{Fault, Habits, Refusal, Rule};

use super::world::{Aws, FLEET, Instance, REGION};

/// How each change is made, and what moto has afterwards.
#[test]
fn what_ec2_can_change_is_changed_in_place() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let iam = |action: &str, parameters: &[(&str, &str)]| {
        aws.proxy
            .moto()
            .call("iam", REGION, action, parameters)
            .unwrap()
    };
    iam("CreateInstanceProfile", &[("InstanceProfileName", "node")]);
    let before: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    for (step, from, to) in [
        ("tags", r#""Value": "core""#, r#""Value": "edge""#),
        (
            "groups",
            r#"["sg-00000000000000001"]"#,
            r#"["sg-00000000000000001", "sg-00000000000000002"]"#,
        ),
        (
            "metadata",
            r#""HttpTokens": "optional""#,
            r#""HttpTokens": "required""#,
        ),
        (
            "profile",
            r#""ImageId""#,
            r#""IamInstanceProfile": { "Name": "node" }, "ImageId""#,
        ),
        (
            "monitoring",
            r#""ImageId""#,
            r#""Monitoring": { "Enabled": true }, "ImageId""#,
        ),
        (
            "protection",
            r#""ImageId""#,
            r#""DisableApiTermination": true, "ImageId""#,
        ),
    ] {
        aws.edit(from, to);
        assert_snapshot!(format!("update_{step}"), aws.apply(""));
    }
    for instance in aws.live() {
        assert_eq!(instance.tag("team"), "edge");
        assert_eq!(
            instance.groups(),
            [aws.id("sg-", 1), aws.id("sg-", 2)].into()
        );
        assert_eq!(instance.text("metadataOptions/httpTokens"), "required");
        assert!(instance.text("iamInstanceProfile/arn").ends_with("/node"));
        let asked = [
            ("InstanceId", &*instance.id),
            ("Attribute", "disableApiTermination"),
        ];
        let attribute = aws.call("DescribeInstanceAttribute", &asked);
        assert_eq!(attribute.text_at("disableApiTermination/value"), "true");
    }
    assert_eq!(aws.proxy.count("MonitorInstances"), 3);
    assert_eq!(aws.proxy.count("StopInstances"), 0);
    assert_eq!(aws.proxy.count("RunInstances"), 3, "those of the beginning");
    let after: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    assert_eq!(after, before);
}

#[test]
fn another_type_wants_a_stop_and_a_start() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    aws.proxy.set_habits(Habits {
        pending: 2,
        stopping: 3,
        ..Habits::default()
    });
    let before: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    aws.edit("\"m7g.large\"", "\"m7g.xlarge\"");
    aws.proxy.take_calls();
    assert_snapshot!("update_type", aws.apply(""));
    for instance in aws.live() {
        assert_eq!(instance.text("instanceType"), "m7g.xlarge");
        assert_eq!(instance.text("instanceState/name"), "running");
    }
    let after: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    assert_eq!(after, before);
    for action in ["StopInstances", "ModifyInstanceAttribute", "StartInstances"] {
        assert_eq!(aws.proxy.count(action), 3, "{action}");
    }
    assert_eq!(aws.proxy.count("RunInstances"), 0);
}

#[test]
fn other_user_data_wants_a_new_instance() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let before: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    aws.edit("#!/bin/sh\\nhostname", "#!/bin/sh\\nset -e\\nhostname");
    assert_snapshot!("update_userdata", aws.apply(""));
    for instance in aws.live() {
        assert!(!before.contains(&instance.id));
    }
}

#[test]
fn other_user_data_wants_a_stop_and_a_start_where_the_group_says_so() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    aws.proxy.set_habits(Habits {
        pending: 2,
        stopping: 3,
        ..Habits::default()
    });
    let before: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    aws.edit(
        "\"subnet_pool\": \"nodes\"",
        "\"subnet_pool\": \"nodes\", \"lifecycle\": { \"restart_on\": [\"userdata\"] }",
    );
    aws.settled();
    aws.edit("#!/bin/sh\\nhostname", "#!/bin/sh\\nset -e\\nhostname");
    aws.proxy.take_calls();
    assert_snapshot!("update_userdata_in_place", aws.apply(""));
    let mut after = Vec::new();
    for instance in aws.live() {
        assert_eq!(instance.text("instanceState/name"), "running");
        let text = format!(
            "#!/bin/sh\nset -e\nhostname {}\n",
            instance.tag("nstance:instance-id")
        );
        assert_eq!(aws.userdata(&instance.id), text);
        after.push(instance.id);
    }
    assert_eq!(after, before);
    for action in ["StopInstances", "ModifyInstanceAttribute", "StartInstances"] {
        assert_eq!(aws.proxy.count(action), 3, "{action}");
    }
    assert_eq!(aws.proxy.count("RunInstances"), 0);
    // A new image wants a new instance all the same, which gets its user data with it.
    aws.edit("set -e", "set -eu");
    aws.add_newer_image("debian-13-arm64-20261201");
    aws.ok("apply --auto-approve --refresh-images");
    assert_eq!(aws.proxy.count("StopInstances"), 3);
    assert_eq!(aws.proxy.count("RunInstances"), 3);
}

/// What an apply left half done goes on: an instance that has its user data is only started.
#[test]
fn user_data_in_place_is_finished_by_the_next_apply() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    aws.edit(
        "\"subnet_pool\": \"nodes\"",
        "\"subnet_pool\": \"nodes\", \"lifecycle\": { \"restart_on\": [\"userdata\"] }",
    );
    aws.edit("#!/bin/sh\\nhostname", "#!/bin/sh\\nset -e\\nhostname");
    let denied = Fault::Refuse(Refusal::named("UnauthorizedOperation"));
    aws.proxy.add(Rule::every("StartInstances", denied));
    let ended = aws.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1), "{ended}");
    let down = aws.live();
    let is_down = |one: &Instance| one.text("instanceState/name") == "stopped";
    assert!(down.iter().any(is_down), "{down:?}");
    aws.proxy.clear();
    aws.proxy.take_calls();
    aws.apply("");
    assert_eq!(aws.proxy.count("StartInstances"), 3);
    assert_eq!(aws.proxy.count("RunInstances"), 0);
    for instance in aws.live() {
        assert_eq!(instance.text("instanceState/name"), "running");
        assert!(aws.userdata(&instance.id).contains("set -e"));
    }
}

/// User data changes only while an instance is down, so what one run read holds for the next, until
/// the instance is launched anew.
#[test]
fn user_data_is_read_once_a_launch() {
    let config = FLEET.replace(
        "\"endpoint_url\": \"http://127.0.0.1:1\"",
        "\"endpoint_url\": \"http://127.0.0.1:1\", \"userdata_drift\": true",
    );
    let Some(aws) = Aws::applied(&config) else {
        return;
    };
    let reads = |words: &str| {
        aws.proxy.take_calls();
        let ended = aws.run(words);
        (aws.proxy.count("DescribeInstanceAttribute"), ended)
    };
    assert_eq!(reads("plan").0, 3);
    for words in ["plan", "drift"] {
        let (count, ended) = reads(words);
        assert_eq!((count, ended.code), (0, Some(0)), "{ended}");
    }
    // By hand: stopped, changed, started.
    let id = aws.instance("default/store/0").id;
    aws.call("StopInstances", &[("InstanceId.1", &id)]);
    // Twice: moto reads what it was sent once more.
    let other = BASE64.encode(BASE64.encode("#!/bin/sh\nexit\n"));
    let change = [("InstanceId", &*id), ("UserData.Value", &*other)];
    aws.call("ModifyInstanceAttribute", &change);
    let (count, ended) = reads("drift");
    assert_eq!((count, ended.code), (1, Some(2)), "{ended}");
    assert!(ended.stdout.contains("userdata"), "{ended}");
    // The same while it runs again, for each run that finds it changed.
    aws.call("StartInstances", &[("InstanceId.1", &id)]);
    let (count, ended) = reads("drift");
    assert_eq!((count, ended.code), (1, Some(2)), "{ended}");
    aws.apply("");
    reads("plan");
    let (count, ended) = reads("plan");
    assert_eq!((count, ended.code), (0, Some(0)), "{ended}");
}

#[test]
fn a_group_changed_by_hand_is_put_right() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let id = aws.instance("default/store/0").id;
    let other = aws.id("sg-", 2);
    let change = [("InstanceId", &*id), ("GroupId.1", &*other)];
    aws.call("ModifyInstanceAttribute", &change);
    assert_snapshot!("groups_drift", aws.told("plan"));
    aws.apply("");
    let store = aws.instance("default/store/0");
    assert_eq!(
        (store.id.clone(), store.groups()),
        (id, [aws.id("sg-", 1)].into())
    );
}

#[test]
fn a_type_changed_by_hand_is_put_right() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let id = aws.instance("default/store/0").id;
    aws.call("StopInstances", &[("InstanceId.1", &id)]);
    let change = [("InstanceId", &*id), ("InstanceType.Value", "m7g.4xlarge")];
    aws.call("ModifyInstanceAttribute", &change);
    aws.call("StartInstances", &[("InstanceId.1", &id)]);
    assert_snapshot!("type_drift", aws.told("plan"));
    aws.apply("");
    let store = aws.instance("default/store/0");
    assert_eq!(
        (&*store.id, store.text("instanceType")),
        (&*id, "m7g.large")
    );
}
