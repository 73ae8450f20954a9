//! What changes in place, by a stop and start, and not at all.

use std::time::Duration;

use nstance_ec2::Operation;
use serde_json::json;

use super::{Lab, compared, refused, update};
use crate::clock::Clock;
use crate::provider::{Cloud, CloudErrorKind, LifecycleState};

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
