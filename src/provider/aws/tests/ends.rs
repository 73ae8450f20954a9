//! Deletions, target groups, and what goes wrong on the way.

use std::time::Duration;

use nstance_ec2::Operation;
use serde_json::json;

use super::fake::TARGET_GROUP;
use super::{Lab, compared, delete, refused, request, update};
use crate::clock::Clock;
use crate::provider::aws::AwsOptions;
use crate::provider::{Cloud, CloudErrorKind, LifecycleState, Observation, TargetsRequest};

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
    let made = lab.made(&json!({}));
    assert!(lab.ec2.members().is_empty());
    let targets = TargetsRequest {
        provider_id: made.provider_id.clone(),
        load_balancers: vec![TARGET_GROUP.into()],
    };
    lab.cloud.register(&targets).unwrap();
    assert_eq!(lab.ec2.members(), std::slice::from_ref(&made.provider_id));
    let groups = |observed: &Observation| observed.attributes().unwrap().load_balancers;
    let joined = Some(vec![TARGET_GROUP.to_owned()]);
    assert_eq!(groups(&made), Some(Vec::new()));
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
    let lab = Lab::new();
    let wanted = request(0, &json!({"SourceDestCheck": false}));
    lab.ec2.fail_next(
        Operation::ModifyInstanceAttribute,
        refused("InvalidParameterValue"),
    );
    let error = lab.cloud.create(&wanted).unwrap_err();
    // Not `quota`, which would mean that nothing was made.
    assert_eq!(error.kind, CloudErrorKind::Ambiguous);
    assert!(
        error.message.contains("was created, and isn't ready yet"),
        "{error}"
    );
    let made = lab.cloud.create(&wanted).unwrap();
    assert_eq!(lab.ec2.instances(), std::slice::from_ref(&made.provider_id));
    assert_eq!(
        compared(&made, &json!({"SourceDestCheck": false})),
        json!({"SourceDestCheck": false})
    );
}

#[test]
fn one_that_dies_while_it_starts_says_why() {
    let lab = Lab::new();
    for (code, kind) in [
        (
            "Server.InsufficientInstanceCapacity",
            CloudErrorKind::Capacity,
        ),
        ("Client.VolumeLimitExceeded", CloudErrorKind::Quota),
        ("Client.InternalError", CloudErrorKind::Invalid),
    ] {
        lab.ec2.die_at_start(code);
        // It is waited for, since a pending instance can't be changed.
        let mut wanted = request(0, &json!({"SourceDestCheck": false}));
        wanted.token = code.to_owned();
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
