//! `sim`: the embedded cloud by hand.

use insta::assert_snapshot;

use crate::harness::{AWS, Harness, STARTER, TWO};

#[test]
fn instances_are_listed_shown_and_changed() {
    let harness = Harness::applied(STARTER);
    assert_snapshot!(harness.ok("sim list"));
    assert_snapshot!(harness.ok("sim show default/web/0"));
    assert_snapshot!(harness.ok("sim stop default/web/0"));
    assert_snapshot!(harness.ok("sim set-tag default/web/0 Owner=me --unset Name"));
    assert_snapshot!(harness.ok("sim set-type default/web/1 large"));
    assert_snapshot!(harness.ok("sim delete default/web/2"));
    assert_snapshot!(harness.ok("sim list"));
    assert_snapshot!(harness.ok("sim start default/web/0"));
}

#[test]
fn what_is_not_there_is_an_error() {
    let harness = Harness::applied(TWO);
    for words in [
        "sim show default/web/9",
        "sim delete sim-",
        "sim stop default/web/9 --json",
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert_snapshot!(ended);
    }
}

#[test]
fn an_empty_cloud_is_looked_at_without_a_trace() {
    let harness = Harness::with(TWO);
    assert_snapshot!(harness.ok("sim list"));
    assert_eq!(harness.files(), ["nstance.jsonc"]);
}

#[test]
fn resetting_asks_for_a_word() {
    let harness = Harness::applied(TWO);
    let ended = harness.run("sim reset");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    assert_snapshot!(harness.ok("sim reset --yes"));
    assert_eq!(harness.live().len(), 0);
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn an_instance_made_by_nobody_is_left_alone() {
    let harness = Harness::applied(TWO);
    harness.ok("sim set-tag default/db/1 --unset nstance:managed --unset nstance:cluster-id --unset nstance:shard");
    let ended = harness.run("drift");
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended);
}

/// By AWS's rules an instance has to be stopped for it.
#[test]
fn user_data_changes_by_a_restart_where_the_group_says_so() {
    let harness = Harness::with(AWS);
    harness.edit(
        "\"subnet_pool\": \"workers\"",
        "\"subnet_pool\": \"workers\", \"lifecycle\": { \"restart_on\": [\"userdata\"] }",
    );
    harness.ok("--sim apply --auto-approve");
    let ids = |harness: &Harness| harness.ok("--sim state list --json").json()["records"].clone();
    let text = |records: &serde_json::Value| {
        let records = records.as_array().unwrap().iter();
        let ids = records.map(|record| record["provider_id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    let before = text(&ids(&harness));
    harness.edit("kubeadm join {{", "kubeadm reset -f && kubeadm join {{");
    assert_snapshot!("restart_on", harness.ok("--sim apply --auto-approve"));
    assert_eq!(text(&ids(&harness)), before);
    assert_eq!(harness.agrees("--sim"), 7);
    let plan = harness.run("--sim plan --detailed-exitcode");
    assert_eq!(plan.code, Some(0), "{plan}");
    // Where the group says nothing, instances are replaced.
    harness.edit("kubeadm init", "kubeadm reset -f && kubeadm init");
    let plan = harness.ok("--sim plan --allow-replace default/control");
    assert!(plan.stdout.contains("must be replaced"), "{plan}");
    assert!(
        plan.stdout
            .contains("Plan: 3 to add, 0 to change, 3 to destroy."),
        "{plan}"
    );
}
