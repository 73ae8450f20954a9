//! Target groups: registrations as steps of their own, and health.

use super::fake::TARGET_GROUP;
use super::*;
use crate::provider::{CloudErrorKind, TargetState, TargetsRequest};

fn targets(id: &str, groups: &[&str]) -> TargetsRequest {
    TargetsRequest {
        provider_id: id.to_owned(),
        load_balancers: owned(groups),
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The states of instances with targets, as `id target state reason`.
fn health(lab: &Lab, ids: &[&str], groups: &[&str]) -> Vec<String> {
    let found = lab.cloud.target_health(&owned(ids), &owned(groups));
    let found = found.unwrap().into_iter().map(|it| {
        let reason = it.reason.unwrap_or_default();
        let line = format!(
            "{} {} {:?} {reason}",
            it.provider_id, it.load_balancer, it.state
        );
        line.trim_end().to_owned()
    });
    found.collect()
}

#[test]
fn targets_are_registered_and_deregistered_without_waiting() {
    let lab = Lab::new();
    let made = lab.made(&json!({}));
    let request = targets(&made.provider_id, &[TARGET_GROUP]);
    for _ in 0..2 {
        lab.cloud.register(&request).unwrap();
        assert_eq!(lab.ec2.members(), std::slice::from_ref(&made.provider_id));
    }
    let begin = lab.clock.now();
    for _ in 0..2 {
        lab.cloud.deregister(&request).unwrap();
        assert!(lab.ec2.members().is_empty());
    }
    assert_eq!(lab.clock.now(), begin);
    let state = health(&lab, &[&made.provider_id], &[TARGET_GROUP]);
    assert_eq!(
        state,
        [format!("{} {TARGET_GROUP} Draining", made.provider_id)]
    );
}

#[test]
fn deregistering_leaves_configured_groups_too() {
    let lab = Lab::with(AwsOptions::default(), &[TARGET_GROUP]);
    let made = lab.made(&json!({}));
    let id = made.provider_id.as_str();
    lab.cloud.register(&targets(id, &[TARGET_GROUP])).unwrap();
    lab.cloud.deregister(&targets(id, &[])).unwrap();
    assert!(lab.ec2.members().is_empty());
}

#[test]
fn only_existing_instances_can_be_registered() {
    let lab = Lab::with(AwsOptions::default(), &[TARGET_GROUP]);
    let request = targets("i-unknown", &[TARGET_GROUP]);
    let error = lab.cloud.register(&request).unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::NotFound, "{error}");
    lab.cloud.deregister(&request).unwrap();
    assert_eq!(lab.ec2.count(Operation::RegisterTargets), 0);
    assert_eq!(lab.ec2.count(Operation::DeregisterTargets), 0);
}

#[test]
fn each_state_of_a_target_has_its_meaning() {
    use TargetState as T;
    let lab = Lab::new();
    for (state, reason, description, expected, why) in [
        ("healthy", "", "", T::Healthy, None),
        (
            "unhealthy",
            "Target.ResponseCodeMismatch",
            "Health checks failed with these codes: [503]",
            T::Unhealthy,
            Some("Health checks failed with these codes: [503]"),
        ),
        (
            "unhealthy",
            "Target.Timeout",
            "",
            T::Unhealthy,
            Some("Target.Timeout"),
        ),
        ("unhealthy.draining", "", "", T::Unhealthy, None),
        (
            "initial",
            "Elb.RegistrationInProgress",
            "Target registration is in progress",
            T::Initial,
            Some("Target registration is in progress"),
        ),
        (
            "draining",
            "Target.DeregistrationInProgress",
            "",
            T::Draining,
            Some("Target.DeregistrationInProgress"),
        ),
        (
            "unused",
            "Target.NotInUse",
            "",
            T::Unused,
            Some("Target.NotInUse"),
        ),
        (
            "unused",
            "Target.NotRegistered",
            "",
            T::Absent,
            Some("Target.NotRegistered"),
        ),
        (
            "unused",
            "Target.InvalidState",
            "Target is in the stopped state",
            T::Unhealthy,
            Some("Target is in the stopped state"),
        ),
        (
            "unavailable",
            "Target.HealthCheckDisabled",
            "",
            T::Healthy,
            Some("Target.HealthCheckDisabled"),
        ),
        (
            "unavailable",
            "Elb.InternalError",
            "",
            T::Unused,
            Some("Elb.InternalError"),
        ),
    ] {
        let members = [("i-1", 80, state, reason, description)];
        lab.ec2.describe_members(TARGET_GROUP, &members);
        let found = lab
            .cloud
            .target_health(&owned(&["i-1"]), &owned(&[TARGET_GROUP]));
        let found = found.unwrap().remove(0);
        let found = (found.state, found.reason.as_deref());
        assert_eq!(found, (expected, why), "{state} {reason}");
    }
}

#[test]
fn one_call_for_a_group_serves_all_instances_and_ports() {
    let lab = Lab::new();
    let members = [
        ("i-1", 80, "healthy", "", ""),
        ("i-1", 8080, "initial", "", ""),
        ("i-2", 8080, "healthy", "", ""),
    ];
    lab.ec2.describe_members("arn:tg", &members);
    let found = health(
        &lab,
        &["i-1", "i-2", "i-3"],
        &["arn:tg", "arn:tg:80", "arn:tg:8080"],
    );
    assert_eq!(
        found,
        [
            "i-1 arn:tg Initial",
            "i-2 arn:tg Healthy",
            "i-3 arn:tg Absent",
            "i-1 arn:tg:80 Healthy",
            "i-2 arn:tg:80 Absent",
            "i-3 arn:tg:80 Absent",
            "i-1 arn:tg:8080 Initial",
            "i-2 arn:tg:8080 Healthy",
            "i-3 arn:tg:8080 Absent",
        ]
    );
    assert_eq!(lab.ec2.total(), 1);
    assert!(health(&lab, &[], &["arn:tg"]).is_empty());
    assert!(health(&lab, &["i-1"], &[]).is_empty());
    assert_eq!(lab.ec2.total(), 1);
}

#[test]
fn members_of_ip_groups_are_found_by_their_address() {
    let lab = Lab::new();
    let made = lab.made(&json!({"PrivateIpAddress": "10.0.0.9"}));
    let id = made.provider_id.as_str();
    let members = [
        ("10.0.0.9", 80, "healthy", "", ""),
        ("10.0.0.8", 80, "unhealthy", "Target.Timeout", ""),
    ];
    lab.ec2.describe_members("arn:ip", &members);
    let before = lab.ec2.count(Operation::DescribeInstances);
    assert_eq!(
        health(&lab, &[id, "i-gone"], &["arn:ip"]),
        [
            format!("{id} arn:ip Healthy"),
            "i-gone arn:ip Absent".to_owned(),
        ]
    );
    assert_eq!(lab.ec2.count(Operation::DescribeInstances), before + 1);
}

#[test]
fn a_deleted_target_group_has_no_members() {
    let lab = Lab::new();
    let gone = refused("TargetGroupNotFound");
    lab.ec2.fail_next(Operation::DescribeTargetHealth, gone);
    assert_eq!(health(&lab, &["i-1"], &["arn:tg"]), ["i-1 arn:tg Absent"]);
    let throttled = refused("Throttling");
    lab.ec2
        .fail_next(Operation::DescribeTargetHealth, throttled);
    let error = lab
        .cloud
        .target_health(&owned(&["i-1"]), &owned(&["arn:tg"]));
    assert_eq!(error.unwrap_err().kind, CloudErrorKind::Throttled);
}
