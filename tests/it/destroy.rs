//! `destroy`.

use insta::assert_snapshot;

use crate::harness::{Harness, TWO};

#[test]
fn only_the_target_is_destroyed() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("destroy --auto-approve --target default/db"));
    assert_eq!(harness.agrees(""), 3);
    harness.ok("destroy --auto-approve --exclude default/web/0");
    assert_eq!(harness.agrees(""), 1);
}

#[test]
fn the_budget_is_no_matter() {
    let harness = Harness::with(TWO);
    harness.edit("\"size\": 3", "\"size\": 20");
    harness.ok("apply --auto-approve");
    harness.ok("destroy --auto-approve");
    assert_eq!(harness.agrees(""), 0);
}

#[test]
fn nothing_to_destroy_is_no_error() {
    let harness = Harness::with(TWO);
    assert_snapshot!(harness.ok("destroy --auto-approve"));
    assert_eq!(
        harness.files(),
        [
            ".nstance/.gitignore",
            ".nstance/test/one.db.lock",
            "nstance.jsonc"
        ]
    );
    let harness = Harness::applied(TWO);
    harness.ok("destroy --auto-approve");
    assert_snapshot!(harness.ok("destroy --auto-approve"));
}

#[test]
fn what_is_gone_already_is_forgotten() {
    let harness = Harness::applied(TWO);
    harness.ok("sim delete default/db/0");
    assert_snapshot!(harness.ok("destroy --auto-approve --target default/db"));
    assert_eq!(harness.agrees(""), 3);
}

/// Groups that need what is destroyed were left running.
#[test]
fn what_depends_on_a_target_is_destroyed_with_it() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"web\": { \"template\"",
        "\"web\": { \"depends_on\": [\"db\"], \"template\"",
    );
    harness.ok("apply --auto-approve");
    assert_snapshot!(harness.ok("plan --destroy --target default/db"));
    harness.ok("destroy --auto-approve --target default/db --exclude default/web/0");
    assert_eq!(harness.agrees(""), 1);
    harness.ok("destroy --auto-approve --target default/db");
    // A slot is no reason: the group goes on with the others.
    harness.ok("apply --auto-approve");
    harness.ok("destroy --auto-approve --target default/db/1");
    assert_eq!(harness.agrees(""), 4);
}

/// The warning said that `apply` would refuse; it didn't, once a person had said yes.
#[test]
fn protected_groups_are_destroyed_only_by_name() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"db\": { \"template\"",
        "\"db\": { \"protect\": true, \"template\"",
    );
    harness.ok("apply --auto-approve");
    let refused = harness.run("destroy --auto-approve");
    assert_eq!(refused.code, Some(1), "{refused}");
    assert_eq!(harness.agrees(""), 5);
    let ended = harness.ok("destroy --auto-approve --allow-delete default/db");
    assert!(!ended.stdout.contains("protected"), "{ended}");
    assert_eq!(harness.agrees(""), 0);
}
