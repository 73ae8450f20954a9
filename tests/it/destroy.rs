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
