//! Rollouts: target groups, their verdicts, and who stays meanwhile. The log of calls is the proof.

use std::collections::BTreeSet;

use nstance_ec2_proxy::{Call, Habits, Health};

use super::world::{Aws, FLEET};

/// The fleet applied, with so many instances of `web` before a target group, and their policy.
fn rolling(size: usize, update: &str) -> Option<(Aws, String)> {
    let aws = Aws::new()?;
    let arn = aws.add_target_group("api");
    let balancer =
        format!("{{ \"api\": {{ \"provider\": \"aws\", \"target_group_arns\": [\"{arn}\"] }} }}");
    let update = update.replace("FOLDER", &aws.harness.path("").display().to_string());
    let config = FLEET
        .replace(
            "\"images\"",
            &format!("\"load_balancers\": {balancer},\n  \"images\""),
        )
        .replace(
            "\"size\": 2 }",
            &format!("\"size\": {size}, \"load_balancers\": [\"api\"], \"update\": {update} }}"),
        );
    aws.harness.configure(&aws.filled(&config));
    Some((aws, arn))
}

/// Gives `web` a userdata that its instances don't have.
fn replace_web(aws: &Aws) {
    let web = "\"web\": { ";
    aws.edit(
        web,
        &format!("{web}\"userdata\": \"#!/bin/sh\\ntrue\\n\", "),
    );
}

fn ids(aws: &Aws) -> BTreeSet<String> {
    let live = aws.live().into_iter();
    let web = live.filter(|one| one.address.starts_with("default/web/"));
    web.map(|one| one.id).collect()
}

fn words(ids: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    ids.iter().map(String::as_str)
}

/// The calls from the first creation on that a rollout is made of, with the instances they name:
/// `old` if it is one of these. What is called again and again is there once.
fn steps(calls: &[Call], old: &BTreeSet<String>) -> Vec<String> {
    const STEPS: [&str; 5] = [
        "RunInstances",
        "RegisterTargets",
        "DescribeTargetHealth",
        "DeregisterTargets",
        "TerminateInstances",
    ];
    let mut steps: Vec<String> = calls
        .iter()
        .filter(|call| STEPS.contains(&&*call.query.action))
        .skip_while(|call| call.query.action != "RunInstances")
        .map(|call| {
            let query = &call.query;
            let id = query.get("Targets.member.1.Id");
            match id.or(query.get("InstanceId.1")) {
                Some(id) if old.contains(id) => format!("{} old", query.action),
                Some(_) => format!("{} new", query.action),
                None => query.action.clone(),
            }
        })
        .collect();
    steps.dedup();
    steps
}

fn count(calls: &[Call], action: &str) -> usize {
    let of_action = calls.iter().filter(|call| call.query.action == action);
    of_action.count()
}

#[test]
fn a_successor_joins_before_its_predecessor_leaves() {
    let drain = r#"{ "drain": { "command": ["sh", "-c", "echo $NSTANCE_PROVIDER_ID >> FOLDER/drained"] } }"#;
    let Some((aws, arn)) = rolling(1, drain) else {
        return;
    };
    aws.apply("");
    let old = ids(&aws);
    replace_web(&aws);
    aws.proxy.set_habits(Habits {
        pending: 2,
        initial: 3,
        draining: 3,
        ..Habits::default()
    });
    aws.proxy.take_calls();
    aws.ok("apply --auto-approve");
    let calls = aws.proxy.take_calls();
    assert_eq!(
        steps(&calls, &old),
        [
            "RunInstances",
            // Whether the new instance runs is asked together with what it is registered with.
            "DescribeTargetHealth",
            "RegisterTargets new",
            "DescribeTargetHealth",
            "DeregisterTargets old",
            "DescribeTargetHealth",
            "TerminateInstances old",
        ]
    );
    let at = |action: &str| {
        let at = calls.iter().position(|call| call.query.action == action);
        at.expect("it is called")
    };
    let looks = |from: &str, to: &str| count(&calls[at(from)..at(to)], "DescribeTargetHealth");
    let initial = looks("RegisterTargets", "DeregisterTargets");
    assert!(initial > 3, "{initial} looks until it is healthy");
    let draining = looks("DeregisterTargets", "TerminateInstances");
    assert!(draining > 3, "{draining} looks until it has drained");
    let drained = String::from_utf8(aws.harness.read("drained")).unwrap();
    assert_eq!(
        drained.lines().collect::<Vec<_>>(),
        words(&old).collect::<Vec<_>>()
    );
    assert_eq!(aws.targets(&arn), ids(&aws));
    aws.agrees();
    aws.settled();
}

#[test]
fn connections_have_no_more_than_their_time() {
    let Some((aws, arn)) = rolling(1, "{}") else {
        return;
    };
    aws.edit(
        "\"update\": {}",
        "\"update\": {}, \"drain_timeout\": \"30s\"",
    );
    aws.apply("");
    replace_web(&aws);
    aws.proxy.set_habits(Habits {
        draining: u32::MAX,
        ..Habits::default()
    });
    aws.proxy.take_calls();
    aws.apply("");
    assert!(aws.proxy.count("DescribeTargetHealth") < 30);
    assert_eq!(aws.targets(&arn), ids(&aws));
}

/// The command comes after the deregistration, and before the end.
#[test]
fn what_cannot_be_drained_stays_until_it_can() {
    let drain = r#"{ "drain": { "command": ["sh", "-c", "test -e FOLDER/may-end"] } }"#;
    let Some((aws, arn)) = rolling(1, drain) else {
        return;
    };
    aws.apply("");
    let old = ids(&aws);
    replace_web(&aws);
    aws.proxy.take_calls();
    let ended = aws.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.stderr.contains("the drain command failed"), "{ended}");
    let calls = aws.proxy.take_calls();
    assert_eq!(count(&calls, "DeregisterTargets"), 1);
    assert_eq!(count(&calls, "TerminateInstances"), 0);
    let both = ids(&aws);
    assert!(old.is_subset(&both));
    assert_eq!(aws.targets(&arn), &both - &old);
    aws.harness.write("may-end", "");
    aws.apply("");
    assert_eq!(ids(&aws), &both - &old, "nothing was made twice");
}

#[test]
fn a_target_that_stays_unhealthy_replaces_nothing() {
    let Some((aws, arn)) = rolling(2, r#"{ "health": { "deadline": "1m" } }"#) else {
        return;
    };
    aws.apply("");
    let old = ids(&aws);
    replace_web(&aws);
    let health = Health::of_others(words(&old), "unhealthy", "Target.Timeout");
    aws.proxy.set_health(vec![health]);
    aws.proxy.take_calls();
    let ended = aws.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.stderr.contains("wasn't healthy within 1m"), "{ended}");
    assert!(ended.stderr.contains("Target.Timeout"), "{ended}");
    let calls = aws.proxy.take_calls();
    assert_eq!(count(&calls, "RunInstances"), 1, "the second isn't tried");
    assert_eq!(count(&calls, "DeregisterTargets"), 0);
    assert_eq!(count(&calls, "TerminateInstances"), 0);
    assert!(old.is_subset(&ids(&aws)));
    assert!(old.is_subset(&aws.targets(&arn)));
    // It goes on once the target is healthy.
    aws.proxy.set_health(Vec::new());
    let made = &ids(&aws) - &old;
    aws.apply("");
    assert!(made.is_subset(&ids(&aws)));
    assert!(old.is_disjoint(&ids(&aws)));
    assert_eq!(aws.targets(&arn), ids(&aws));
}

/// Its own check comes before the registration.
#[test]
fn what_fails_its_check_is_not_registered() {
    let health = r#"{ "health": { "command": ["test", "-e", "FOLDER/up"], "deadline": "1m" } }"#;
    let Some((aws, arn)) = rolling(2, health) else {
        return;
    };
    aws.harness.write("up", "");
    aws.apply("");
    let old = ids(&aws);
    std::fs::remove_file(aws.harness.path("up")).unwrap();
    replace_web(&aws);
    aws.proxy.take_calls();
    let ended = aws.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.stderr.contains("wasn't healthy within 1m"), "{ended}");
    let calls = aws.proxy.take_calls();
    assert_eq!(count(&calls, "RunInstances"), 1, "the second isn't tried");
    assert_eq!(count(&calls, "RegisterTargets"), 0);
    assert_eq!(count(&calls, "DeregisterTargets"), 0);
    assert_eq!(count(&calls, "TerminateInstances"), 0);
    assert_eq!(aws.targets(&arn), old);
    // It goes on once the check succeeds.
    aws.harness.write("up", "");
    aws.apply("");
    assert!(old.is_disjoint(&ids(&aws)));
    assert_eq!(aws.targets(&arn), ids(&aws));
}

/// An instance that the plan doesn't change counts as the others do.
#[test]
fn nothing_is_taken_out_while_another_target_is_unhealthy() {
    const LOOKS: usize = 20;
    let Some((aws, arn)) = rolling(3, "{}") else {
        return;
    };
    aws.apply("");
    let old: BTreeSet<String> = ["default/web/0", "default/web/1"]
        .map(|address| aws.instance(address).id)
        .into();
    let other = aws.instance("default/web/2").id;
    let image = aws.add_image("another");
    let image = format!("{{ \"args\": {{ \"ImageId\": \"{image}\" }} }}");
    aws.edit(
        "\"update\": {}",
        &format!("\"overrides\": {{ \"0\": {image}, \"1\": {image} }}"),
    );
    let health = Health::of([&*other], "unhealthy", "Target.FailedHealthChecks");
    let health = health.after_deregistrations(1).looks(LOOKS);
    aws.proxy.set_health(vec![health]);
    aws.proxy.take_calls();
    let ended = aws.ok("apply --auto-approve");
    let calls = aws.proxy.take_calls();
    let off: Vec<usize> = (0..calls.len())
        .filter(|at| calls[*at].query.action == "DeregisterTargets")
        .collect();
    assert_eq!(off.len(), 2, "{ended}");
    let meanwhile = &calls[off[0] + 1..off[1]];
    let looks = count(meanwhile, "DescribeTargetHealth");
    assert!(looks > LOOKS, "{looks} looks: {ended}");
    assert_eq!(
        count(meanwhile, "RegisterTargets"),
        1,
        "the second is there"
    );
    assert!(ids(&aws).contains(&other));
    assert!(old.is_disjoint(&ids(&aws)));
    assert_eq!(aws.targets(&arn), ids(&aws));
    aws.agrees();
    aws.settled();
}

#[test]
fn a_target_group_without_a_listener_says_nothing() {
    let Some((aws, arn)) = rolling(2, "{}") else {
        return;
    };
    let health = Health::of_others([], "unused", "Target.NotInUse");
    aws.proxy.set_health(vec![health]);
    let warning = |stderr: &str| stderr.matches("has no listener").count();
    let ended = aws.ok("apply --auto-approve");
    assert_eq!(warning(&ended.stderr), 1, "{ended}");
    let old = ids(&aws);
    replace_web(&aws);
    let ended = aws.ok("apply --auto-approve --json");
    let mut events = ended.events();
    events.retain(|event| event["type"] == "diagnostic");
    let [event] = &events[..] else {
        panic!("{ended}");
    };
    let summary = event["diagnostic"]["summary"].as_str().unwrap();
    assert_eq!(warning(summary), 1, "{ended}");
    assert_eq!(event["diagnostic"]["severity"], "warning");
    assert!(old.is_disjoint(&ids(&aws)));
    assert_eq!(aws.targets(&arn), ids(&aws));
    aws.agrees();
    aws.settled();
}
