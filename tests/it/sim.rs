//! `sim`: the embedded cloud by hand.

use insta::assert_snapshot;

use crate::harness::{Harness, STARTER, TWO};

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
