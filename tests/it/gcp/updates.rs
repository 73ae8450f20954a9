//! What Compute Engine changes in place, and what wants a stop and a start.

use super::world::{FLEET, Gcp};
use crate::clouds::{self, Account as _};

#[test]
fn what_can_change_in_place_does() {
    let Some(gcp) = Gcp::applied(FLEET) else {
        return;
    };
    let before = gcp.live();
    gcp.server.take_calls();
    gcp.harness.edit(
        "\"team\": \"core\"",
        "\"team\": \"edge\", \"tier\": \"Front_End\"",
    );
    gcp.harness.edit("\"NetworkTags\": [\"node\"]", "\"NetworkTags\": [\"node\", \"http\"], \"metadata\": {\"items\": [{\"key\": \"role\", \"value\": \"x\"}]}");
    clouds::apply(&gcp, "");
    for method in ["instances.stop", "instances.insert", "instances.delete"] {
        assert_eq!(gcp.server.count(method), 0, "{method}");
    }
    let web = gcp.resource("default/web/0");
    assert_eq!(
        (&web["labels"]["team"], &web["labels"]["tier"]),
        (&"edge".into(), &"front-end".into())
    );
    assert_eq!(web["tags"]["items"].as_array().unwrap().len(), 2);
    let items = web["metadata"]["items"].as_array().unwrap();
    let keys: Vec<&str> = items
        .iter()
        .map(|item| item["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["role", "startup-script"]);
    let ids: Vec<String> = gcp.live().into_iter().map(|one| one.id).collect();
    assert_eq!(
        ids,
        before.into_iter().map(|one| one.id).collect::<Vec<_>>()
    );
}

#[test]
fn another_type_wants_a_stop_and_a_start() {
    let Some(gcp) = Gcp::applied(FLEET) else {
        return;
    };
    let before = clouds::at(&gcp, "default/web/0");
    gcp.harness.edit(
        "\"instance_type\": \"e2-small\"",
        "\"instance_type\": \"e2-medium\"",
    );
    clouds::apply(&gcp, "");
    let web = gcp.resource("default/web/0");
    assert!(
        web["machineType"].as_str().unwrap().ends_with("/e2-medium"),
        "{web}"
    );
    assert_eq!(web["status"], "RUNNING");
    assert_eq!(clouds::at(&gcp, "default/web/0").id, before.id);
}

#[test]
fn accounts_platforms_and_schedules_want_a_stop_and_a_start() {
    let Some(gcp) = Gcp::applied(FLEET) else {
        return;
    };
    let before = gcp.live();
    gcp.harness.edit(
        "\"NetworkTags\"",
        "\"ServiceAccount\": \"web@example.iam.gserviceaccount.com\", \"OnHostMaintenance\": \"TERMINATE\", \
         \"AutomaticRestart\": false, \"ShieldedInstanceConfig\": {\"enable_secure_boot\": true}, \"NetworkTags\"",
    );
    clouds::apply(&gcp, "");
    let web = gcp.resource("default/web/0");
    assert_eq!(
        web["serviceAccounts"][0]["email"],
        "web@example.iam.gserviceaccount.com"
    );
    assert_eq!(web["scheduling"]["onHostMaintenance"], "TERMINATE");
    assert_eq!(web["scheduling"]["automaticRestart"], false);
    assert_eq!(web["shieldedInstanceConfig"]["enableSecureBoot"], true);
    assert_eq!(gcp.live(), before);
}

#[test]
fn other_userdata_wants_a_new_instance() {
    let Some(gcp) = Gcp::applied(FLEET) else {
        return;
    };
    let before = clouds::at(&gcp, "default/store/0");
    gcp.harness.edit("#!/bin/sh\\n", "#cloud-config\\n#");
    clouds::apply(&gcp, "");
    assert_ne!(clouds::at(&gcp, "default/store/0").id, before.id);
    let item = gcp.resource("default/store/0")["metadata"]["items"][0].clone();
    assert_eq!(item["key"], "user-data");
}

#[test]
fn what_others_change_meanwhile_is_read_again() {
    use nstance_gce_server::{Fault, Refusal, Rule};
    let Some(gcp) = Gcp::applied(FLEET) else {
        return;
    };
    gcp.harness.edit("\"team\": \"core\"", "\"team\": \"edge\"");
    let stale = Fault::Refuse(Refusal::new(
        412,
        "conditionNotMet",
        "Labels fingerprint mismatch",
    ));
    gcp.server.add(Rule::next("instances.setLabels", stale));
    clouds::apply(&gcp, "");
    assert!(gcp.live().iter().all(|one| one.team == "edge"));
}
