//! `state`.

use insta::assert_snapshot;

use crate::harness::{Harness, TWO, TWO_STATE};

#[test]
fn list_and_show() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("state list"));
    assert_snapshot!(harness.ok("state list default/db"));
    assert_snapshot!(harness.ok("state show default/db/1"));
    assert_eq!(
        harness.json("state show default/db/1 --json")["address"],
        "default/db/1"
    );
    assert_snapshot!(harness.refused(TWO_STATE, "state show default/db/7"));
}

#[test]
fn what_is_moved_keeps_its_instance() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("state mv default/web/2 default/db/2"));
    assert_snapshot!(harness.ok("state list"));
    for words in [
        "state mv default/web/0 default/web/1",
        "state mv default/web/7 default/web/8",
        "state mv default/web default/db",
    ] {
        assert_snapshot!(harness.refused(TWO_STATE, words));
    }
}

#[test]
fn what_is_forgotten_stays_in_the_cloud() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("state rm default/web/0 default/web/1"));
    assert_eq!(harness.live().len(), 5);
    assert_eq!(harness.run("drift").code, Some(2));
    // All or nothing.
    harness.refused(TWO_STATE, "state rm default/web/2 default/web/0");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn a_backup_is_a_state() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("state backup"));
    assert_snapshot!(harness.ok("state backup copy.db"));
    assert_snapshot!(harness.refused(TWO_STATE, "state backup copy.db"));
    harness.ok("destroy --auto-approve --target default/web");
    std::fs::copy(harness.path("copy.db"), harness.path(TWO_STATE)).unwrap();
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn history_says_who_did_what_when() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 1");
    harness.ok("apply --auto-approve");
    harness.ok("state rm default/db/1");
    assert_snapshot!(harness.ok("state history"));
    assert_snapshot!(harness.ok("state history 2"));
    assert_snapshot!(harness.ok("state history 2 --json"));
    assert_snapshot!(harness.refused(TWO_STATE, "state history 99"));
    assert_eq!(
        harness.ok("state history --limit 1").stdout.lines().count(),
        2
    );
}

#[test]
fn a_lock_that_nobody_holds_cannot_be_broken_blindly() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.refused(TWO_STATE, "state unlock 123"));
}
