//! A fleet from its first plan to its end.

use insta::assert_snapshot;

use super::world::{FLEET, Gcp};
use crate::clouds::{self, Account as _};

#[test]
fn a_fleet_lives() {
    let Some(gcp) = Gcp::with(FLEET) else { return };
    clouds::a_fleet_lives(&gcp);
}

#[test]
fn a_plan_shows_what_is_sent() {
    let Some(gcp) = Gcp::with(FLEET) else { return };
    assert_snapshot!("plan", gcp.told("plan"));
    clouds::apply(&gcp, "");
    let web = gcp.resource("default/web/0");
    assert_eq!(web["labels"]["team"], "core");
    assert_eq!(web["tags"]["items"], serde_json::json!(["node"]));
    let script = web["metadata"]["items"][0].clone();
    assert_eq!(script["key"], "startup-script");
    let disk = gcp.server.disks().remove(0);
    assert_eq!(disk["sizeGb"], "30");
    assert!(
        disk["type"].as_str().unwrap().ends_with("/pd-standard"),
        "{disk}"
    );
    assert!(
        disk["sourceImage"]
            .as_str()
            .unwrap()
            .ends_with("/debian-13-v1"),
        "{disk}"
    );
}

#[test]
fn a_newer_image_of_the_family_replaces() {
    let Some(gcp) = Gcp::applied(FLEET) else {
        return;
    };
    let before = gcp.live();
    gcp.server
        .add_image("debian-cloud", "debian-13-v2", "debian-13", None);
    gcp.server.add_image(
        "debian-cloud",
        "debian-13-v3",
        "debian-13",
        Some("DEPRECATED"),
    );
    clouds::apply(&gcp, "--refresh-images");
    for (old, new) in before.iter().zip(gcp.live()) {
        assert_eq!(old.address, new.address);
        assert_ne!(old.id, new.id);
    }
    let images = gcp.server.disks();
    let is_new = |disk: &serde_json::Value| disk["sourceImage"].as_str().unwrap().ends_with("v2");
    assert!(images.iter().all(is_new), "{images:?}");
}

#[test]
fn a_protected_instance_is_named_before_anything_is_done() {
    let config = FLEET.replace(
        "\"NetworkTags\"",
        "\"deletionProtection\": true, \"NetworkTags\"",
    );
    let Some(gcp) = Gcp::applied(&config) else {
        return;
    };
    gcp.server.take_calls();
    let refused = gcp.run("destroy --auto-approve --allow-delete all");
    assert_eq!(refused.code, Some(1), "{refused}");
    assert_eq!(gcp.server.count("instances.delete"), 0);
    gcp.harness.edit(
        "\"deletionProtection\": true",
        "\"deletionProtection\": false",
    );
    clouds::apply(&gcp, "");
    clouds::ok(&gcp, "destroy --auto-approve --allow-delete all");
    assert!(gcp.live().is_empty());
}

#[test]
fn an_instance_is_imported() {
    let Some(gcp) = Gcp::applied(FLEET) else {
        return;
    };
    let seen = clouds::at(&gcp, "default/web/0");
    clouds::ok(&gcp, "state rm default/web/0");
    clouds::ok(&gcp, &format!("import default/web/0 {}", seen.id));
    assert_eq!(clouds::agrees(&gcp), 3);
}

#[test]
fn zones_of_the_region_are_listed_together() {
    let config = FLEET.replace(
        "\"web\": { \"template\": \"node\", \"size\": 2 }",
        "\"web\": { \"template\": \"node\", \"size\": 2, \"zones\": [\"europe-west1-b\", \"europe-west1-c\"] }",
    );
    let Some(gcp) = Gcp::applied(&config) else {
        return;
    };
    assert_eq!(clouds::agrees(&gcp), 3);
    let zone = |address: &str| clouds::at(&gcp, address).id;
    assert!(zone("default/web/0").starts_with("europe-west1-b/"));
    assert!(zone("default/web/1").starts_with("europe-west1-c/"));
    // A zone that can't be asked isn't an empty one.
    gcp.server.set_reachable("europe-west1-c", false);
    let plan = gcp.run("plan");
    assert_eq!(plan.code, Some(1), "{plan}");
    assert!(plan.stderr.contains("europe-west1-c"), "{plan}");
    gcp.server.set_reachable("europe-west1-c", true);
    clouds::apply(&gcp, "");
}

#[test]
fn a_spot_instance_that_was_taken_away_is_started_again() {
    let config = FLEET.replace(
        "\"NetworkTags\"",
        "\"ProvisioningModel\": \"SPOT\", \"NetworkTags\"",
    );
    let Some(gcp) = Gcp::applied(&config) else {
        return;
    };
    let store = clouds::at(&gcp, "default/store/0");
    gcp.server.preempt(super::world::name(&store.id));
    gcp.run("plan");
    let plan = gcp.run("plan");
    assert!(plan.stdout.contains("stop"), "{plan}");
    clouds::apply(&gcp, "");
    assert_eq!(clouds::at(&gcp, "default/store/0").id, store.id);
}

#[test]
fn a_disk_that_stays_is_said_before() {
    let config = FLEET.replace(
        "\"NetworkTags\"",
        "\"disks\": [{\"boot\": true, \"initializeParams\": {\"diskType\": \"pd-ssd\"}}], \"NetworkTags\"",
    );
    let Some(gcp) = Gcp::applied(&config) else {
        return;
    };
    let disk = gcp.server.disks().remove(0);
    assert!(
        disk["type"].as_str().unwrap().ends_with("/pd-ssd"),
        "{disk}"
    );
    gcp.harness.edit("\"size\": 2", "\"size\": 1");
    let plan = gcp.run("plan");
    assert!(
        plan.stderr
            .contains("disks of 1 instance of default/web stay"),
        "{plan}"
    );
    clouds::apply(&gcp, "--allow-delete all");
    assert_eq!(gcp.server.disks().len(), 3);
}
