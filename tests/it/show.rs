//! `show`: what is recorded.

use insta::assert_snapshot;

use crate::harness::{Harness, STARTER, TWO};

#[test]
fn everything_a_group_and_a_slot() {
    let harness = Harness::applied(STARTER);
    assert_snapshot!(harness.ok("show"));
    assert_snapshot!(harness.ok("show default/web"));
    assert_snapshot!(harness.ok("show default/web/1"));
}

#[test]
fn the_inventory_has_ids_and_addresses() {
    let harness = Harness::applied(TWO);
    let document = harness.json("show --json");
    let instances = document["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 5);
    for instance in instances {
        for key in [
            "address",
            "instance_id",
            "provider_id",
            "ip4",
            "zone",
            "created_at",
        ] {
            assert!(instance[key].is_string(), "{key}: {instance:#}");
        }
    }
    assert_snapshot!(harness.ok("show default/db/0 --json"));
}

#[test]
fn what_is_not_recorded_is_an_error_with_the_nearest() {
    let harness = Harness::applied(TWO);
    let ended = harness.run("show default/web/7");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    let ended = harness.run("show default/wbe");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
}
