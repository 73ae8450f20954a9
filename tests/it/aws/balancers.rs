//! Target groups: who is registered, and when.

use std::collections::BTreeSet;

use insta::assert_snapshot;

use nstance_ec2_proxy::{Fault, Habits, Refusal, Rule};

use super::world::{Aws, FLEET};

/// The fleet, with a load balancer before `web`.
fn balanced() -> Option<(Aws, String)> {
    let aws = Aws::new()?;
    let arn = aws.add_target_group("api");
    let config = FLEET
        .replace(
            "\"images\"",
            &format!(
                "\"load_balancers\": {{ \"api\": {{ \"provider\": \"aws\", \"target_group_arns\": \
                 [\"{arn}\"] }} }},\n  \"images\""
            ),
        )
        .replace(
            "\"size\": 2 }",
            "\"size\": 2, \"load_balancers\": [\"api\"] }",
        );
    aws.harness.configure(&aws.filled(&config));
    Some((aws, arn))
}

fn ids(aws: &Aws, group: &str) -> BTreeSet<String> {
    let live = aws.live().into_iter();
    let of_group = live.filter(|one| one.address.contains(group));
    of_group.map(|one| one.id).collect()
}

#[test]
fn instances_are_registered_when_they_run() {
    let Some((aws, arn)) = balanced() else { return };
    aws.proxy.set_habits(Habits {
        pending: 2,
        ..Habits::default()
    });
    assert_snapshot!("targets_apply", aws.apply(""));
    assert_eq!(aws.targets(&arn), ids(&aws, "web"));
    assert_eq!(aws.targets(&arn).len(), 2);
}

#[test]
fn instances_are_deregistered_before_they_end() {
    let Some((aws, arn)) = balanced() else { return };
    aws.apply("");
    aws.proxy.take_calls();
    aws.edit("\"size\": 2,", "\"size\": 1,");
    assert_snapshot!("targets_shrink", aws.apply("--allow-delete all"));
    assert_eq!(aws.targets(&arn), ids(&aws, "web"));
    let calls = aws.proxy.take_calls();
    let at = |action: &str| calls.iter().position(|call| call.query.action == action);
    let (off, end) = (at("DeregisterTargets"), at("TerminateInstances"));
    assert!(off.is_some() && off < end, "{off:?} {end:?}");
}

#[test]
fn who_was_taken_out_is_put_back() {
    let Some((aws, arn)) = balanced() else { return };
    aws.apply("");
    let id = aws.instance("default/web/0").id;
    aws.balancing(
        "DeregisterTargets",
        &[("TargetGroupArn", &arn), ("Targets.member.1.Id", &id)],
    );
    assert_snapshot!("targets_drift", aws.told("plan"));
    aws.apply("");
    assert_eq!(aws.targets(&arn), ids(&aws, "web"));
}

#[test]
fn a_target_group_can_come_later_and_go() {
    let Some((aws, arn)) = balanced() else { return };
    aws.edit(", \"load_balancers\": [\"api\"] }", " }");
    aws.apply("");
    assert!(aws.targets(&arn).is_empty());
    let before = ids(&aws, "");
    aws.edit(
        "\"size\": 2 }",
        "\"size\": 2, \"load_balancers\": [\"api\"] }",
    );
    aws.apply("");
    assert_eq!(aws.targets(&arn), ids(&aws, "web"));
    aws.edit(", \"load_balancers\": [\"api\"] }", " }");
    assert_snapshot!("targets_gone", aws.apply(""));
    assert!(aws.targets(&arn).is_empty());
    assert_eq!(ids(&aws, ""), before);
}

#[test]
fn a_registration_that_fails_is_made_up_for() {
    let Some((aws, arn)) = balanced() else { return };
    let refusal = Refusal::new(400, "TooManyTargets", "You have too many targets");
    aws.proxy
        .add(Rule::every("RegisterTargets", Fault::Refuse(refusal)));
    assert_snapshot!("targets_refused", aws.told("apply --auto-approve"));
    aws.proxy.clear();
    aws.apply("");
    assert_eq!(aws.targets(&arn), ids(&aws, "web"));
    assert_eq!(aws.live().len(), 3, "nothing was made twice");
}

/// `target_groups`, as today's Nstance writes them: an instance is registered with its port.
#[test]
fn instances_are_registered_with_the_ports_of_target_groups() {
    let Some(aws) = Aws::new() else { return };
    let (api, web) = (aws.add_target_group("api"), aws.add_target_group("web"));
    let group = |arn: &str, port: u16| {
        format!(
            "{{ \"arn\": \"{arn}\", \"listener_port\": 443, \"target_port\": {port}, \
             \"proxy_port\": 1{port} }}"
        )
    };
    let balancers = format!(
        "\"load_balancers\": {{ \"api\": {{ \"provider\": \"aws\", \"target_groups\": [{}, {}] }} }},\n  \
         \"images\"",
        group(&api, 8443),
        group(&web, 9443)
    );
    let config = FLEET.replace("\"images\"", &balancers).replace(
        "\"size\": 2 }",
        "\"size\": 2, \"load_balancers\": [\"api\"] }",
    );
    aws.harness.configure(&aws.filled(&config));
    aws.apply("");
    let of_web = |port: &str| -> BTreeSet<(String, String)> {
        let ids = ids(&aws, "web").into_iter();
        ids.map(|id| (id, port.to_owned())).collect()
    };
    assert_eq!(aws.targets_with_ports(&api), of_web("8443"));
    assert_eq!(aws.targets_with_ports(&web), of_web("9443"));
    // A registration is taken out by hand.
    let id = aws.instance("default/web/0").id;
    aws.balancing(
        "DeregisterTargets",
        &[
            ("TargetGroupArn", &web),
            ("Targets.member.1.Id", &id),
            ("Targets.member.1.Port", "9443"),
        ],
    );
    assert!(aws.told("drift").contains("load_balancers"));
    aws.apply("");
    assert_eq!(aws.targets_with_ports(&web), of_web("9443"));
    aws.edit("\"size\": 2,", "\"size\": 1,");
    aws.apply("--allow-delete all");
    assert_eq!(aws.targets_with_ports(&api), of_web("8443"));
    assert_eq!(aws.targets_with_ports(&web), of_web("9443"));
}
