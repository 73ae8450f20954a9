//! Instances from their creation on, and what is seen of them.

use std::time::Duration;

use nstance_ec2::Operation;
use serde_json::json;

use super::{Lab, compared, delete, request, update};
use crate::clock::Clock;
use crate::provider::aws::AwsOptions;
use crate::provider::{Cloud, CloudErrorKind, LifecycleState};

#[test]
fn an_instance_is_made_seen_and_deleted() {
    let lab = Lab::new();
    let made = lab.cloud.create(&request(3, &json!({}))).unwrap();
    assert_eq!(made.state, LifecycleState::Pending);
    assert_eq!(made.instance_id.as_deref(), Some("web3"));
    assert_eq!(made.group.as_deref(), Some("default/web"));
    assert_eq!(made.slot, Some(3));
    assert_eq!(made.zone, "us-west-2a");
    assert_eq!(made.subnet.as_deref(), Some("subnet-1"));
    assert!(made.ip4.is_some());
    // EC2 shows it later only.
    assert_eq!(lab.listed(), []);
    lab.clock.sleep(lab.cloud.visibility_window());
    let [seen] = &lab.listed()[..] else {
        panic!("there is one")
    };
    assert_eq!(seen.provider_id, made.provider_id);
    assert_eq!(seen.state, LifecycleState::Running);
    assert_eq!(seen.created_at, made.created_at);
    lab.cloud.delete(&delete(seen)).unwrap();
    let ending = lab.listed();
    assert_eq!(ending[0].state, LifecycleState::ShuttingDown);
    assert_eq!(
        ending[0].ended_because.as_deref(),
        Some("terminated through the API (Client.UserInitiatedShutdown)")
    );
    // Again, and one that never was: they are gone.
    lab.cloud.delete(&delete(seen)).unwrap();
    lab.ec2.forget_all();
    lab.cloud.delete(&delete(seen)).unwrap();
}

#[test]
fn the_same_token_makes_one_instance() {
    let lab = Lab::new();
    let one = lab.cloud.create(&request(0, &json!({}))).unwrap();
    let again = lab.cloud.create(&request(0, &json!({}))).unwrap();
    assert_eq!(one.provider_id, again.provider_id);
    let other = lab.cloud.create(&request(0, &json!({"KeyName": "k"})));
    assert_eq!(other.unwrap_err().kind, CloudErrorKind::TokenMismatch);
    lab.clock.sleep(Duration::from_mins(1));
    lab.cloud.delete(&delete(&one)).unwrap();
    let gone = lab.cloud.create(&request(0, &json!({}))).unwrap_err();
    assert_eq!(gone.kind, CloudErrorKind::TokenMismatch);
    assert_eq!(gone.code, "IdempotentInstanceTerminated");
}

#[test]
fn a_lost_answer_is_ambiguous_and_asking_again_finds_it() {
    let lab = Lab::new();
    lab.ec2.lose_next_answer(Operation::RunInstances);
    let lost = lab.cloud.create(&request(0, &json!({}))).unwrap_err();
    assert_eq!(lost.kind, CloudErrorKind::Ambiguous);
    let made = lab.cloud.create(&request(0, &json!({}))).unwrap();
    assert_eq!(lab.ec2.instances(), [made.provider_id]);
}

#[test]
fn a_listing_reads_all_pages() {
    let lab = Lab::new();
    lab.ec2.page_size(7);
    for slot in 0..20 {
        lab.cloud.create(&request(slot, &json!({}))).unwrap();
    }
    lab.ec2.add_stranger();
    lab.clock.sleep(Duration::from_mins(1));
    let mut slots: Vec<_> = lab.listed().into_iter().filter_map(|it| it.slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, (0..20).collect::<Vec<_>>());
    assert_eq!(lab.ec2.count(Operation::DescribeInstances), 3);
}

#[test]
fn what_nobody_asked_for_is_no_drift() {
    let asked = json!({
        "ImageId": "ami-1",
        "KeyName": "ops",
        "SecurityGroupIds": ["sg-2", "sg-1"],
        "IamInstanceProfile": {"Name": "web"},
        "Monitoring": {"Enabled": true},
        "MetadataOptions": {"HttpTokens": "required"},
        "Placement": {"Tenancy": "default"},
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 30, "DeleteOnTermination": true}}],
        "CreditSpecification": {"CpuCredits": "standard"},
        "DisableApiTermination": true,
        "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": {"MaxPrice": "1"}},
    });
    let lab = Lab::new();
    let made = lab.cloud.create(&request(0, &asked)).unwrap();
    lab.clock.sleep(Duration::from_mins(1));
    for observed in [made, lab.listed().remove(0)] {
        let mut same = asked.clone();
        let reported = compared(&observed, &asked);
        // What isn't reported is compared with the record.
        same.as_object_mut()
            .unwrap()
            .retain(|name, _| reported.get(name).is_some());
        assert_eq!(reported, same, "{:?}", observed.state);
        for name in ["CreditSpecification", "DisableApiTermination"] {
            assert_eq!(reported.get(name), None, "{name}");
        }
    }
    // And what somebody changed is.
    let id = lab.ec2.instances().remove(0);
    for (path, value, member, expected) in [
        ("/KeyName", json!(null), "KeyName", json!(null)),
        (
            "/MetadataOptions/HttpTokens",
            json!("optional"),
            "MetadataOptions",
            json!({"HttpTokens": "optional"}),
        ),
        (
            "/SecurityGroups",
            json!([{"GroupId": "sg-1"}]),
            "SecurityGroupIds",
            json!(["sg-1"]),
        ),
        (
            "/Monitoring/State",
            json!("disabled"),
            "Monitoring",
            json!({"Enabled": false}),
        ),
        (
            "/IamInstanceProfile",
            json!({"Arn": "arn:aws:iam::1:instance-profile/other"}),
            "IamInstanceProfile",
            json!({"Name": "other"}),
        ),
        (
            "/BlockDeviceMappings/0/Ebs/DeleteOnTermination",
            json!(false),
            "BlockDeviceMappings",
            json!([{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 30, "DeleteOnTermination": false}}]),
        ),
    ] {
        lab.ec2.edit(&id, path, &value);
        let observed = lab.listed().remove(0);
        assert_eq!(compared(&observed, &asked)[member], expected, "{path}");
    }
}

#[test]
fn tags_of_aws_and_of_others_are_left_alone() {
    let options = AwsOptions {
        ignore_tags: vec!["kubernetes.io/*".into()],
        ..AwsOptions::default()
    };
    let lab = Lab::with(options, &[]);
    let made = lab.made(&json!({}));
    let id = &made.provider_id;
    for (key, value) in [
        ("aws:ec2launchtemplate:id", "lt-1"),
        ("kubernetes.io/cluster/x", "owned"),
        ("by-hand", "1"),
        ("Name", "changed"),
    ] {
        lab.ec2.tag(id, key, value);
    }
    let seen = lab.listed().remove(0).attributes().unwrap().tags;
    assert!(seen.contains_key("by-hand"));
    assert!(
        !seen
            .keys()
            .any(|key| key.starts_with("aws:") || key.starts_with("kubernetes"))
    );
    lab.cloud
        .update(&update(&made, &["tags"], &json!({})))
        .unwrap();
    let tags = lab.ec2.tags(id);
    assert_eq!(tags["Name"], "prod-web");
    assert!(!tags.contains_key("by-hand"));
    assert!(tags.contains_key("aws:ec2launchtemplate:id"));
    assert!(tags.contains_key("kubernetes.io/cluster/x"));
    let calls = |operation| lab.ec2.count(operation);
    assert_eq!(
        (calls(Operation::CreateTags), calls(Operation::DeleteTags)),
        (1, 1)
    );
    // Nothing is left to do, and nothing is done.
    lab.cloud
        .update(&update(&made, &["tags"], &json!({})))
        .unwrap();
    assert_eq!(
        (calls(Operation::CreateTags), calls(Operation::DeleteTags)),
        (1, 1)
    );
}
