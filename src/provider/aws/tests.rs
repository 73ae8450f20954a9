//! [`AwsCloud`] against something that behaves as EC2 where it matters.

mod fake;

use std::sync::Arc;
use std::time::Duration;

use nstance_ec2::{ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use super::{AwsCloud, AwsOptions, Rate};
use crate::clock::{Clock, FixedClock, Timestamp};
use crate::config::model::{ImageFilter, ImageOrder, ImageSort};
use crate::provider::{
    AccessSample, Cloud, CloudErrorKind, CreateRequest, DeleteRequest, ImageQuery, LifecycleState,
    Observation, Owner, UpdateRequest, Verdict, WantedCapacity,
};
use fake::{FakeEc2, TARGET_GROUP};

struct Lab {
    ec2: Arc<FakeEc2>,
    clock: Arc<FixedClock>,
    cloud: Arc<AwsCloud>,
}

impl Lab {
    fn new() -> Self {
        Self::with(AwsOptions::default(), &[])
    }

    fn with(options: AwsOptions, target_groups: &[&str]) -> Self {
        let clock = Arc::new(FixedClock::new(Timestamp(1_750_000_000_000)));
        let ec2 = Arc::new(FakeEc2::new(Arc::clone(&clock)));
        let cloud = Arc::new(AwsCloud::new(
            Arc::clone(&ec2) as Arc<dyn nstance_ec2::Api>,
            options,
            "us-west-2",
            target_groups.iter().map(|arn| (*arn).to_owned()).collect(),
            Arc::clone(&clock) as Arc<dyn Clock>,
        ));
        Self { ec2, clock, cloud }
    }

    fn listed(&self) -> Vec<Observation> {
        let mut found = Vec::new();
        let mut page = None;
        loop {
            let next = self.cloud.list(&owner(), page.as_deref()).unwrap();
            found.extend(next.instances);
            page = next.next;
            if page.is_none() {
                return found;
            }
        }
    }

    /// Keeps the first deletion until so many others wait for it.
    fn hold_deletions_until(&self, others: usize) {
        let cloud = Arc::clone(&self.cloud);
        let gate = move || cloud.waiting_deletions() >= others;
        self.ec2.hold(Operation::TerminateInstances, Arc::new(gate));
    }

    /// A running instance.
    fn made(&self, args: &Value) -> Observation {
        let made = self.cloud.create(&request(0, args)).unwrap();
        self.clock.sleep(Duration::from_mins(1));
        let described = self.cloud.describe(&[made.provider_id]).unwrap();
        described.into_iter().next().unwrap()
    }
}

fn owner() -> Owner {
    Owner {
        cluster: "prod".into(),
        shard: "a".into(),
    }
}

fn request(slot: u32, args: &Value) -> CreateRequest {
    let tags = [
        ("Name", "prod-web".to_owned()),
        ("nstance:managed", "true".to_owned()),
        ("nstance:cluster-id", "prod".to_owned()),
        ("nstance:shard", "a".to_owned()),
        ("nstance:instance-id", format!("web{slot}")),
        ("nstance:tenant", "default".to_owned()),
        ("nstance:group", "web".to_owned()),
        ("nstance:slot", slot.to_string()),
    ];
    let mut all = json!({"ImageId": "ami-1"});
    for (name, value) in args.as_object().unwrap() {
        all[name] = value.clone();
    }
    CreateRequest {
        token: format!("nstance-{slot}"),
        instance_id: format!("web{slot}"),
        name: format!("web{slot}"),
        arch: "amd64".into(),
        instance_type: "t3.micro".into(),
        zone: "us-west-2a".into(),
        subnet: Some("subnet-1".into()),
        args: all.as_object().unwrap().clone(),
        userdata: Some("I2Nsb3VkLWNvbmZpZwo=".into()),
        tags: tags
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        load_balancers: Vec::new(),
    }
}

/// An update that wants what was asked for, with other args.
fn update(observed: &Observation, changed: &[&str], args: &Value) -> UpdateRequest {
    let wanted = request(observed.slot.unwrap(), args);
    UpdateRequest {
        token: "update".into(),
        provider_id: observed.provider_id.clone(),
        changed: changed.iter().map(|path| (*path).to_owned()).collect(),
        restart: false,
        instance_type: wanted.instance_type,
        args: wanted.args,
        userdata: wanted.userdata,
        tags: wanted.tags,
        load_balancers: Vec::new(),
        leaves: Vec::new(),
    }
}

fn delete(observed: &Observation) -> DeleteRequest {
    DeleteRequest {
        token: "delete".into(),
        provider_id: observed.provider_id.clone(),
        drain_timeout_ms: 0,
        load_balancers: Vec::new(),
        until_gone: false,
    }
}

/// The args of an observation as they compare with what was asked for.
fn compared(observed: &Observation, asked: &Value) -> Value {
    let attributes = observed.attributes().unwrap();
    let args = attributes.as_asked(asked.as_object().unwrap());
    Value::Object(args.into_owned())
}

fn refused(code: &str) -> ApiError {
    ApiError {
        status: Some(400),
        ..ApiError::new(ApiErrorKind::Refused, code, "refused by the test")
    }
}

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

/// Each member that changes in place: what is asked, what is called. Done again, it changes
/// nothing that EC2 reports, and stops no instance.
#[test]
fn members_change_in_place() {
    use Operation as Op;
    for (path, before, wanted, expected) in [
        (
            "args.SecurityGroupIds",
            json!({"SecurityGroupIds": ["sg-1"]}),
            json!({"SecurityGroupIds": ["sg-2", "sg-1"]}),
            vec![(
                Op::ModifyInstanceAttribute,
                json!({"InstanceId": "ID", "Groups": ["sg-2", "sg-1"]}),
            )],
        ),
        (
            "args.SecurityGroups",
            json!({"SecurityGroups": ["one"]}),
            json!({"SecurityGroups": ["two"]}),
            vec![(
                Op::ModifyInstanceAttribute,
                json!({"InstanceId": "ID", "Groups": ["sg-2"]}),
            )],
        ),
        (
            "args.SourceDestCheck",
            json!({}),
            json!({"SourceDestCheck": false}),
            vec![(
                Op::ModifyInstanceAttribute,
                json!({"InstanceId": "ID", "SourceDestCheck": {"Value": false}}),
            )],
        ),
        (
            "args.DisableApiTermination",
            json!({"DisableApiTermination": true}),
            json!({}),
            vec![(
                Op::ModifyInstanceAttribute,
                json!({"InstanceId": "ID", "DisableApiTermination": {"Value": false}}),
            )],
        ),
        (
            "args.DisableApiStop",
            json!({}),
            json!({"DisableApiStop": true}),
            vec![(
                Op::ModifyInstanceAttribute,
                json!({"InstanceId": "ID", "DisableApiStop": {"Value": true}}),
            )],
        ),
        (
            "args.InstanceInitiatedShutdownBehavior",
            json!({}),
            json!({"InstanceInitiatedShutdownBehavior": "terminate"}),
            vec![(
                Op::ModifyInstanceAttribute,
                json!({"InstanceId": "ID", "InstanceInitiatedShutdownBehavior": {"Value": "terminate"}}),
            )],
        ),
        (
            "args.MetadataOptions.HttpTokens",
            json!({}),
            json!({"MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": null}}),
            vec![(
                Op::ModifyInstanceMetadataOptions,
                json!({"InstanceId": "ID", "HttpTokens": "required"}),
            )],
        ),
        (
            "args.Monitoring.Enabled",
            json!({}),
            json!({"Monitoring": {"Enabled": true}}),
            vec![(Op::MonitorInstances, json!({"InstanceIds": ["ID"]}))],
        ),
        (
            "args.Monitoring",
            json!({"Monitoring": {"Enabled": true}}),
            json!({}),
            vec![(Op::UnmonitorInstances, json!({"InstanceIds": ["ID"]}))],
        ),
        (
            "args.IamInstanceProfile",
            json!({}),
            json!({"IamInstanceProfile": {"Name": "web"}}),
            vec![(
                Op::AssociateIamInstanceProfile,
                json!({"InstanceId": "ID", "IamInstanceProfile": {"Name": "web"}}),
            )],
        ),
        (
            "args.IamInstanceProfile.Name",
            json!({"IamInstanceProfile": {"Name": "web"}}),
            json!({"IamInstanceProfile": {"Name": "db"}}),
            vec![(
                Op::ReplaceIamInstanceProfileAssociation,
                json!({"AssociationId": "iip-ID", "IamInstanceProfile": {"Name": "db"}}),
            )],
        ),
        (
            "args.IamInstanceProfile",
            json!({"IamInstanceProfile": {"Name": "web"}}),
            json!({}),
            vec![(
                Op::DisassociateIamInstanceProfile,
                json!({"AssociationId": "iip-ID"}),
            )],
        ),
        (
            "args.CreditSpecification.CpuCredits",
            json!({}),
            json!({"CreditSpecification": {"CpuCredits": "unlimited"}}),
            vec![(
                Op::ModifyInstanceCreditSpecification,
                json!({"InstanceCreditSpecifications": [{"InstanceId": "ID", "CpuCredits": "unlimited"}]}),
            )],
        ),
        (
            "args.MaintenanceOptions",
            json!({}),
            json!({"MaintenanceOptions": {"AutoRecovery": "disabled"}}),
            vec![(
                Op::ModifyInstanceMaintenanceOptions,
                json!({"InstanceId": "ID", "AutoRecovery": "disabled"}),
            )],
        ),
        (
            "args.PrivateDnsNameOptions.EnableResourceNameDnsARecord",
            json!({}),
            json!({"PrivateDnsNameOptions": {"EnableResourceNameDnsARecord": true}}),
            vec![(
                Op::ModifyPrivateDnsNameOptions,
                json!({"InstanceId": "ID", "EnableResourceNameDnsARecord": true}),
            )],
        ),
        (
            "args.BlockDeviceMappings[0].Ebs.DeleteOnTermination",
            json!({"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"DeleteOnTermination": true}}]}),
            json!({"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"DeleteOnTermination": false}}]}),
            vec![(
                Op::ModifyInstanceAttribute,
                json!({"InstanceId": "ID", "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"DeleteOnTermination": false}}]}),
            )],
        ),
        (
            "args.NetworkInterfaces[1].Groups",
            json!({"NetworkInterfaces": [{"DeviceIndex": 0}, {"DeviceIndex": 1, "Groups": ["sg-1"]}]}),
            json!({"NetworkInterfaces": [{"DeviceIndex": 0}, {"DeviceIndex": 1, "Groups": ["sg-2"]}]}),
            vec![(
                Op::ModifyNetworkInterfaceAttribute,
                json!({"NetworkInterfaceId": "eni-1-ID", "Groups": ["sg-2"]}),
            )],
        ),
        (
            "args.SourceDestCheck",
            json!({"NetworkInterfaces": [{"DeviceIndex": 1}, {"DeviceIndex": 0}]}),
            json!({"NetworkInterfaces": [{"DeviceIndex": 1}, {"DeviceIndex": 0}], "SourceDestCheck": false}),
            vec![(
                Op::ModifyNetworkInterfaceAttribute,
                json!({"NetworkInterfaceId": "eni-0-ID", "SourceDestCheck": {"Value": false}}),
            )],
        ),
        ("args.TagSpecifications", json!({}), json!({}), vec![]),
        ("userdata.gzip", json!({}), json!({}), vec![]),
    ] {
        let lab = Lab::new();
        let made = lab.made(&before);
        let request = update(&made, &[path], &wanted);
        let observed = lab.cloud.update(&request).unwrap();
        let calls = lab.ec2.changes_since_creation(&made.provider_id);
        assert_eq!(calls, expected, "{path}");
        let reported = compared(&observed, &wanted);
        for (member, reported) in reported.as_object().unwrap() {
            assert_eq!(
                *reported,
                request.args[member].clone(),
                "{path} afterwards: {member}"
            );
        }
        let report = observed.attributes;
        let again = lab.cloud.update(&request).unwrap();
        assert_eq!(again.attributes, report, "{path} again");
        assert_eq!(lab.ec2.count(Operation::StopInstances), 0, "{path}");
    }
}

#[test]
fn what_cant_change_is_refused_before_anything_is_called() {
    let lab = Lab::new();
    let made = lab.made(&json!({}));
    for path in ["args.ImageId", "args.KeyName", "zone", "args"] {
        let error = lab
            .cloud
            .update(&update(
                &made,
                &["args.DisableApiStop", path],
                &json!({"DisableApiStop": true, "ImageId": "ami-2", "KeyName": "k"}),
            ))
            .unwrap_err();
        assert_eq!(error.kind, CloudErrorKind::Invalid, "{path}");
    }
    assert_eq!(lab.ec2.changes_since_creation(&made.provider_id), []);
}

#[test]
fn an_instance_is_stopped_for_what_needs_it_and_once_only() {
    let lab = Lab::new();
    let made = lab.made(&json!({}));
    let mut request = update(
        &made,
        &[
            "instance_type",
            "args.EbsOptimized",
            "userdata",
            "args.PrivateDnsNameOptions.HostnameType",
        ],
        &json!({"EbsOptimized": true, "PrivateDnsNameOptions": {"HostnameType": "resource-name"}}),
    );
    request.restart = true;
    request.instance_type = "t3.large".into();
    request.userdata = Some("bmV3".into());
    let observed = lab.cloud.update(&request).unwrap();
    assert_eq!(observed.state, LifecycleState::Pending);
    assert_eq!(observed.attributes().unwrap().instance_type, "t3.large");
    let id = &made.provider_id;
    let names: Vec<Operation> = lab
        .ec2
        .changes_since_creation(id)
        .into_iter()
        .map(|(operation, _)| operation)
        .collect();
    assert_eq!(
        names,
        [
            Operation::StopInstances,
            Operation::ModifyInstanceAttribute,
            Operation::ModifyInstanceAttribute,
            Operation::ModifyPrivateDnsNameOptions,
            Operation::ModifyInstanceAttribute,
            Operation::StartInstances,
        ],
        "the order is that of args, user data last"
    );
    assert_eq!(lab.ec2.userdata(id), "bmV3");
    lab.clock.sleep(Duration::from_mins(1));
    // It has all that: it isn't stopped again.
    lab.cloud.update(&request).unwrap();
    assert_eq!(lab.ec2.count(Operation::StopInstances), 1);
    assert_eq!(lab.ec2.count(Operation::StartInstances), 1);
}

#[test]
fn one_that_was_left_stopped_is_changed_and_started() {
    let lab = Lab::new();
    let made = lab.made(&json!({}));
    let mut request = update(&made, &["instance_type"], &json!({}));
    request.restart = true;
    request.instance_type = "t3.large".into();
    // The process died after it had stopped the instance.
    lab.ec2
        .fail_next(Operation::ModifyInstanceAttribute, refused("InternalError"));
    lab.cloud.update(&request).unwrap_err();
    assert_eq!(lab.listed()[0].state, LifecycleState::Stopped);
    lab.cloud.update(&request).unwrap();
    lab.clock.sleep(Duration::from_mins(1));
    let seen = lab.listed().remove(0);
    assert_eq!(seen.state, LifecycleState::Running);
    assert_eq!(seen.attributes().unwrap().instance_type, "t3.large");
    assert_eq!(lab.ec2.count(Operation::StopInstances), 1);
    // And one that somebody stopped is started, for nothing else.
    lab.ec2.stop(&seen.provider_id);
    lab.clock.sleep(Duration::from_mins(1));
    lab.cloud
        .update(&update(&seen, &["state"], &json!({})))
        .unwrap();
    lab.clock.sleep(Duration::from_mins(1));
    assert_eq!(lab.listed()[0].state, LifecycleState::Running);
}

#[test]
fn deletions_and_taggings_at_once_make_few_calls() {
    let lab = Lab::new();
    let made: Vec<_> = (0..40)
        .map(|slot| lab.cloud.create(&request(slot, &json!({}))).unwrap())
        .collect();
    lab.clock.sleep(Duration::from_mins(1));
    lab.hold_deletions_until(39);
    std::thread::scope(|scope| {
        for observed in &made {
            scope.spawn(|| lab.cloud.delete(&delete(observed)).unwrap());
        }
    });
    assert_eq!(lab.ec2.count(Operation::TerminateInstances), 2);
    assert!(lab.listed().iter().all(|it| !it.state.is_live()));
}

#[test]
fn a_protected_instance_spoils_no_other() {
    let lab = Lab::new();
    let protected = lab.made(&json!({"DisableApiTermination": true}));
    let free = lab.cloud.create(&request(1, &json!({}))).unwrap();
    let other = lab.cloud.create(&request(2, &json!({}))).unwrap();
    lab.clock.sleep(Duration::from_mins(1));
    lab.hold_deletions_until(2);
    let results: Vec<_> = std::thread::scope(|scope| {
        let all = [&other, &free, &protected]
            .map(|observed| scope.spawn(|| lab.cloud.delete(&delete(observed))));
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(results[0], Ok(()));
    assert_eq!(results[1], Ok(()));
    let error = results[2].clone().unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Denied);
    assert!(
        error
            .to_string()
            .contains("`DisableApiTermination` to false"),
        "{error}"
    );
}

#[test]
fn target_groups_are_joined_left_and_watched() {
    let lab = Lab::with(AwsOptions::default(), &[TARGET_GROUP]);
    let mut wanted = request(0, &json!({}));
    wanted.load_balancers = vec![TARGET_GROUP.into()];
    let made = lab.cloud.create(&wanted).unwrap();
    // EC2 takes running instances only: it was waited for.
    assert_eq!(made.state, LifecycleState::Running);
    assert_eq!(lab.ec2.members(), std::slice::from_ref(&made.provider_id));
    let groups = |observed: &Observation| observed.attributes().unwrap().load_balancers;
    let joined = Some(vec![TARGET_GROUP.to_owned()]);
    assert_eq!(groups(&made), joined);
    lab.clock.sleep(Duration::from_mins(1));
    assert_eq!(groups(&lab.listed()[0]), joined);
    // Somebody takes it out: drift, and an update puts it back.
    lab.ec2.deregister(&made.provider_id);
    assert_eq!(groups(&lab.listed()[0]), Some(Vec::new()));
    let mut back = update(&made, &["load_balancers"], &json!({}));
    back.load_balancers = vec![TARGET_GROUP.into()];
    assert_eq!(groups(&lab.cloud.update(&back).unwrap()), joined);
    assert_eq!(lab.ec2.members(), std::slice::from_ref(&made.provider_id));
    // It leaves what it is recorded in.
    let mut leave = update(&made, &["load_balancers"], &json!({}));
    leave.leaves = vec![TARGET_GROUP.into()];
    assert_eq!(groups(&lab.cloud.update(&leave).unwrap()), Some(Vec::new()));
    lab.cloud.update(&back).unwrap();
    // Before the end it drains, no longer than it may.
    let begin = lab.clock.now();
    let mut end = delete(&made);
    end.load_balancers = vec![TARGET_GROUP.into()];
    end.drain_timeout_ms = 12_000;
    lab.cloud.delete(&end).unwrap();
    assert_eq!(lab.clock.now().since(begin), Duration::from_secs(12));
    assert!(
        lab.ec2
            .comes_before(Operation::DeregisterTargets, Operation::TerminateInstances)
    );
}

/// A target group that the configuration doesn't name any more isn't looked at: so an instance
/// isn't taken to have left it.
#[test]
fn of_groups_that_arent_watched_nothing_is_known() {
    let lab = Lab::with(AwsOptions::default(), &[TARGET_GROUP]);
    let made = lab.made(&json!({}));
    let attributes = made.attributes().unwrap();
    for (recorded, expected) in [
        (vec![], vec![]),
        (vec![TARGET_GROUP.to_owned()], vec![]),
        (vec!["arn:other".to_owned()], vec!["arn:other".to_owned()]),
    ] {
        assert_eq!(
            attributes.registered(&recorded),
            Some(expected),
            "{recorded:?}"
        );
    }
    // What is looked at is no part of what tells instances apart.
    let unwatched = Lab::new().made(&json!({}));
    let unwatched = unwatched.attributes().unwrap();
    assert_eq!(unwatched.registered(&["arn:other".to_owned()]), None);
    assert_eq!(
        (attributes.watched, unwatched.watched),
        (Some(vec![TARGET_GROUP.to_owned()]), None)
    );
}

#[test]
fn a_creation_that_isnt_finished_is_tried_again_with_the_same_token() {
    let lab = Lab::with(AwsOptions::default(), &[TARGET_GROUP]);
    let mut wanted = request(0, &json!({"SourceDestCheck": false}));
    wanted.load_balancers = vec![TARGET_GROUP.into()];
    lab.ec2
        .fail_next(Operation::RegisterTargets, refused("TooManyTargets"));
    let error = lab.cloud.create(&wanted).unwrap_err();
    // Not `quota`, which would mean that nothing was made.
    assert_eq!(error.kind, CloudErrorKind::Ambiguous);
    assert!(
        error.message.contains("was created, and isn't ready yet"),
        "{error}"
    );
    let made = lab.cloud.create(&wanted).unwrap();
    assert_eq!(lab.ec2.instances(), std::slice::from_ref(&made.provider_id));
    assert_eq!(lab.ec2.members(), std::slice::from_ref(&made.provider_id));
    assert_eq!(
        compared(&made, &json!({"SourceDestCheck": false})),
        json!({"SourceDestCheck": false})
    );
}

#[test]
fn one_that_dies_while_it_starts_says_why() {
    let lab = Lab::with(AwsOptions::default(), &[TARGET_GROUP]);
    for (code, kind) in [
        (
            "Server.InsufficientInstanceCapacity",
            CloudErrorKind::Capacity,
        ),
        ("Client.VolumeLimitExceeded", CloudErrorKind::Quota),
        ("Client.InternalError", CloudErrorKind::Invalid),
    ] {
        lab.ec2.die_at_start(code);
        let mut wanted = request(0, &json!({}));
        wanted.token = code.to_owned();
        wanted.load_balancers = vec![TARGET_GROUP.into()];
        let error = lab.cloud.create(&wanted).unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (kind, code), "{error}");
    }
}

#[test]
fn a_successor_may_need_what_its_predecessor_holds() {
    let lab = Lab::new();
    let made = lab.made(&json!({"PrivateIpAddress": "10.0.0.9"}));
    let mut end = delete(&made);
    end.until_gone = true;
    lab.cloud.delete(&end).unwrap();
    assert_eq!(lab.listed()[0].state, LifecycleState::Terminated);
}

#[test]
fn an_interruption_is_told() {
    let lab = Lab::new();
    let made = lab.made(&json!({"InstanceMarketOptions": {"MarketType": "spot"}}));
    lab.ec2.interrupt(&made.provider_id);
    let seen = lab.listed().remove(0);
    assert!(!seen.state.is_live());
    assert_eq!(
        seen.ended_because.as_deref(),
        Some(
            "interrupted by EC2, which took the spot capacity back (Server.SpotInstanceTermination)"
        )
    );
}

#[test]
fn user_data_is_read_where_it_is_asked_for_and_once_a_launch() {
    let plain = Lab::new();
    assert_eq!(plain.made(&json!({})).attributes().unwrap().userdata, None);
    let options = AwsOptions {
        userdata_drift: true,
        ..AwsOptions::default()
    };
    let lab = Lab::with(options, &[]);
    lab.made(&json!({}));
    for _ in 0..3 {
        let seen = lab.listed().remove(0);
        let attributes = seen.attributes().unwrap();
        assert_eq!(attributes.userdata.as_deref(), Some("#cloud-config\n"));
    }
    assert_eq!(lab.ec2.count(Operation::DescribeInstanceAttribute), 1);
}

#[test]
fn calls_keep_to_their_limits() {
    let options = AwsOptions {
        read_rate: Rate {
            burst: 2,
            per_second: 1.0,
        },
        run_rate: Rate {
            burst: 3,
            per_second: 0.5,
        },
        ..AwsOptions::default()
    };
    let lab = Lab::with(options, &[]);
    let begin = lab.clock.now();
    for slot in 0..5 {
        lab.cloud.create(&request(slot, &json!({}))).unwrap();
    }
    assert_eq!(lab.clock.now().since(begin), Duration::from_secs(4));
    let begin = lab.clock.now();
    for _ in 0..4 {
        lab.listed();
    }
    assert_eq!(lab.clock.now().since(begin), Duration::from_secs(2));
}

#[test]
fn images_are_found_by_filters_and_parameters() {
    let lab = Lab::new();
    let query = |ssm: Option<&str>, include_deprecated| ImageQuery {
        filters: if ssm.is_some() {
            Vec::new()
        } else {
            vec![ImageFilter {
                name: "name".into(),
                values: vec!["debian-*".into()],
            }]
        },
        owners: vec!["self".into()],
        family: None,
        project: None,
        ssm: ssm.map(str::to_owned),
        include_deprecated,
        sort: ImageSort::CreationDate,
        order: ImageOrder::Descending,
    };
    let ids = |query| -> Vec<String> {
        lab.cloud
            .find_images(&query)
            .unwrap()
            .into_iter()
            .map(|image| image.id)
            .collect()
    };
    assert_eq!(ids(query(None, false)), ["ami-1", "ami-3"]);
    let (_, asked) = lab.ec2.last(Operation::DescribeImages);
    assert_eq!(
        asked["Filters"],
        json!([{"Name": "name", "Values": ["debian-*"]}, {"Name": "state", "Values": ["available"]}])
    );
    assert_eq!(asked["Owners"], json!(["self"]));
    assert_eq!(ids(query(None, true)), ["ami-1", "ami-2", "ami-3"]);
    assert_eq!(ids(query(Some("/aws/service/debian"), false)), ["ami-9"]);
    let error = lab
        .cloud
        .find_images(&query(Some("/aws/service/text"), false))
        .unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Invalid);
    let error = lab
        .cloud
        .find_images(&query(Some("/none"), false))
        .unwrap_err();
    assert_eq!(error.code, "ParameterNotFound");
}

#[test]
fn subnets_that_dont_exist_spoil_no_others() {
    let lab = Lab::new();
    let found = lab
        .cloud
        .subnets(&["subnet-0".into(), "subnet-1".into()])
        .unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|it| (it.id.as_str(), it.zone.as_deref(), it.available))
        .collect();
    assert_eq!(found, [("subnet-1", Some("us-west-2a"), Some(250))]);
}

#[test]
fn types_are_asked_for_once_and_near_ones_are_found() {
    let lab = Lab::new();
    let names = ["t3.micro".to_owned(), "t4g.small".into(), "t3.mikro".into()];
    for _ in 0..2 {
        let types = lab.cloud.instance_types(&names).unwrap().unwrap();
        let types: Vec<_> = types
            .iter()
            .map(|it| (it.name.as_str(), &it.architectures[..]))
            .collect();
        assert_eq!(
            types,
            [
                ("t3.micro", &["amd64".to_owned()][..]),
                ("t4g.small", &["arm64".to_owned()])
            ]
        );
    }
    assert_eq!(lab.ec2.count(Operation::DescribeInstanceTypes), 1);
    assert_eq!(
        lab.cloud.near_instance_type("t3.mikro").as_deref(),
        Some("t3.micro")
    );
    assert_eq!(
        lab.cloud.near_instance_type("t33.micro").as_deref(),
        Some("t3.micro")
    );
    assert_eq!(lab.cloud.near_instance_type("large"), None);
}

#[test]
fn a_quota_is_told_before_it_is_reached() {
    let lab = Lab::new();
    lab.made(&json!({}));
    let wanted = |count| {
        vec![WantedCapacity {
            instance_type: "t3.micro".into(),
            count,
            interruptible: false,
        }]
    };
    // 2 vCPUs each; 10 are allowed, 2 are used.
    assert_eq!(lab.cloud.limits_ahead(&wanted(4)), Vec::<String>::new());
    assert_eq!(
        lab.cloud.limits_ahead(&wanted(5)),
        [
            "the account may run 10 vCPUs of on-demand standard instances (A, C, D, H, I, M, R, T, Z) in us-west-2; 2 are in use, and this plan adds 10"
        ]
    );
    lab.ec2
        .fail_next(Operation::GetServiceQuota, refused("AccessDeniedException"));
    assert_eq!(lab.cloud.limits_ahead(&wanted(50)), Vec::<String>::new());
    let calls = lab.ec2.total();
    assert_eq!(lab.cloud.limits_ahead(&[]), Vec::<String>::new());
    assert_eq!(
        lab.ec2.total(),
        calls,
        "a plan that creates nothing asks nothing"
    );
}

#[test]
fn permissions_are_asked_for_without_changing_anything() {
    let lab = Lab::new();
    let made = lab.made(&json!({}));
    lab.ec2
        .deny(&[Operation::TerminateInstances, Operation::GetServiceQuota]);
    let sample = AccessSample {
        instance: Some(made.provider_id.clone()),
        ..AccessSample::default()
    };
    let access = lab.cloud.check_access(&sample).unwrap().unwrap();
    assert_eq!(
        access.who,
        "arn:aws:iam::123456789012:user/test, account 123456789012, region us-west-2"
    );
    let missing: Vec<_> = access
        .permissions
        .iter()
        .filter(|it| it.verdict == Verdict::Missing)
        .map(|it| (it.name.as_str(), it.optional))
        .collect();
    assert_eq!(
        missing,
        [
            ("ec2:TerminateInstances", false),
            ("servicequotas:GetServiceQuota", true)
        ]
    );
    let allowed = |name: &str| {
        access
            .permissions
            .iter()
            .any(|it| it.name == name && it.verdict == Verdict::Allowed)
    };
    assert!(
        allowed("ec2:RunInstances")
            && allowed("ec2:CreateTags")
            && allowed("ec2:DescribeInstances")
    );
    assert!(lab.listed()[0].state.is_live());
    assert_eq!(lab.ec2.instances(), [made.provider_id]);
}

/// moto, for one, ignores some.
#[test]
fn an_endpoint_that_ignores_dry_runs_is_asked_for_nothing_that_changes() {
    let lab = Lab::new();
    let made = lab.made(&json!({}));
    let before = lab.listed();
    lab.ec2.ignore_dry_runs();
    let sample = AccessSample {
        instance: Some(made.provider_id.clone()),
        ..AccessSample::default()
    };
    let access = lab.cloud.check_access(&sample).unwrap().unwrap();
    let unknown = |name: &str| {
        let mut all = access.permissions.iter();
        all.any(|it| it.name == name && matches!(it.verdict, Verdict::Unknown(_)))
    };
    assert!(unknown("ec2:RunInstances") && unknown("ec2:TerminateInstances"));
    assert_eq!(lab.listed(), before);
    assert_eq!(lab.ec2.instances(), [made.provider_id]);
}

mod tokens {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// However often a creation is asked for, and whatever happens to its answers, there is one
        /// instance, and the last answer is about it.
        #[test]
        fn creating_again_gives_the_same_instance(
            faults in prop::collection::vec(0_u8..4, 0..6),
            key in prop::option::of("[a-z]{1,4}"),
        ) {
            let lab = Lab::new();
            let wanted = request(0, &json!({"KeyName": key}));
            for fault in faults {
                match fault {
                    0 => lab.ec2.lose_next_answer(Operation::RunInstances),
                    1 => lab.ec2.fail_next(Operation::RunInstances, refused("RequestLimitExceeded")),
                    2 => lab.clock.sleep(Duration::from_secs(40)),
                    _ => {}
                }
                if let Err(error) = lab.cloud.create(&wanted) {
                    prop_assert!(error.kind.is_retryable(), "{}", error);
                }
            }
            let made = lab.cloud.create(&wanted).unwrap();
            prop_assert_eq!(lab.ec2.instances(), [made.provider_id]);
        }
    }
}
