//! Instance groups and network endpoint groups: who is in them, and when.

use std::collections::BTreeSet;

use nstance_gce_server::{Fault, Habits, Refusal, Rule};

use super::world::{FLEET, Gcp, name};
use crate::clouds::{self, Account as _};

const ZONE: &str = "europe-west1-b";

/// The fleet, with a load balancer before `web`.
fn balanced(targets: &str) -> Option<Gcp> {
    let config = FLEET
        .replace(
            "\"images\"",
            &format!("\"load_balancers\": {{ \"api\": {{ \"provider\": \"gcp\", {targets} }} }},\n  \"images\""),
        )
        .replace("\"size\": 2 }", "\"size\": 2, \"load_balancers\": [\"api\"] }");
    let gcp = Gcp::with(&config)?;
    let groups = [
        gcp.server.add_instance_group(ZONE, "api"),
        gcp.server
            .add_endpoint_group(ZONE, "ends", "GCE_VM_IP_PORT", 443),
    ];
    let groups = groups.each_ref().map(String::as_str);
    gcp.server.add_backend_service(None, "front", 443, &groups);
    Some(gcp)
}

/// The names of the group's instances.
fn of_group(gcp: &Gcp, group: &str) -> BTreeSet<String> {
    let live = gcp.live().into_iter();
    let of_group = live.filter(|one| one.address.contains(group));
    of_group.map(|one| name(&one.id).to_owned()).collect()
}

fn members(gcp: &Gcp, group: &str) -> BTreeSet<String> {
    gcp.server.members(ZONE, group).into_iter().collect()
}

#[test]
fn instances_join_when_they_run_and_leave_before_they_end() {
    for (group, targets) in [
        ("api", "\"instance_group_name\": \"api\""),
        ("ends", "\"network_endpoint_groups\": [\"ends\"]"),
    ] {
        let Some(gcp) = balanced(targets) else { return };
        clouds::apply(&gcp, "");
        assert_eq!(members(&gcp, group), of_group(&gcp, "web"), "{group}");
        assert_eq!(members(&gcp, group).len(), 2);

        gcp.server.take_calls();
        gcp.harness.edit("\"size\": 2,", "\"size\": 1,");
        clouds::apply(&gcp, "--allow-delete all");
        assert_eq!(members(&gcp, group), of_group(&gcp, "web"), "{group}");
        let calls = gcp.server.take_calls();
        let at = |ends: [&str; 2]| {
            let mut methods = calls.iter().map(|call| call.method.as_str());
            methods.position(|method| ends.contains(&method))
        };
        let off = at([
            "instanceGroups.removeInstances",
            "networkEndpointGroups.detachNetworkEndpoints",
        ]);
        let end = at(["instances.delete", ""]);
        assert!(off.is_some() && off < end, "{off:?} {end:?}");
    }
}

#[test]
fn who_was_taken_out_is_put_back() {
    let Some(gcp) = balanced("\"instance_group_name\": \"api\"") else {
        return;
    };
    clouds::apply(&gcp, "");
    // A group that an instance must not be in any more, then one that it must be in.
    gcp.harness.edit(", \"load_balancers\": [\"api\"]", "");
    clouds::apply(&gcp, "");
    assert_eq!(members(&gcp, "api"), BTreeSet::new());
    gcp.harness
        .edit("\"size\": 2", "\"size\": 2, \"load_balancers\": [\"api\"]");
    clouds::apply(&gcp, "");
    assert_eq!(members(&gcp, "api"), of_group(&gcp, "web"));
}

#[test]
fn an_instance_that_cannot_join_is_made_up_for() {
    let Some(gcp) = balanced("\"instance_group_name\": \"api\"") else {
        return;
    };
    let refused = Fault::Refuse(Refusal::named("forbidden"));
    gcp.server
        .add(Rule::every("instanceGroups.addInstances", refused));
    let failed = gcp.run("apply --auto-approve");
    assert_eq!(failed.code, Some(1), "{failed}");
    assert_eq!(gcp.live().len(), 3);
    gcp.server.clear();
    clouds::apply(&gcp, "");
    assert_eq!(members(&gcp, "api"), of_group(&gcp, "web"));
}

#[test]
fn a_rollout_waits_for_the_backend_services() {
    let Some(gcp) = balanced("\"instance_group_name\": \"api\"") else {
        return;
    };
    gcp.harness.edit(
        "\"load_balancers\": [\"api\"] }",
        "\"load_balancers\": [\"api\"], \"update\": { \"health\": { \"check\": \"running\" } } }",
    );
    clouds::apply(&gcp, "");
    let before = of_group(&gcp, "web");
    gcp.server.set_habits(Habits {
        unhealthy: 2,
        ..Habits::default()
    });
    gcp.server.take_calls();
    gcp.harness.edit("#!/bin/sh\\n", "#!/bin/sh\\n: 2\\n");
    clouds::apply(&gcp, "");
    let after = of_group(&gcp, "web");
    assert!(before.is_disjoint(&after), "{before:?} {after:?}");
    assert_eq!(members(&gcp, "api"), after);
    let calls = gcp.server.take_calls();
    // The successor is healthy before its predecessor leaves.
    let methods: Vec<&str> = calls.iter().map(|call| call.method.as_str()).collect();
    let at = |wanted: &str| methods.iter().position(|method| *method == wanted);
    let (seen, left) = (
        at("backendServices.getHealth"),
        at("instanceGroups.removeInstances"),
    );
    assert!(seen.is_some() && seen < left, "{methods:?}");
}
