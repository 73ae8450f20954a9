//! Saved plans: what was seen is what runs, or nothing.

use insta::assert_snapshot;

use crate::harness::{AWS, Harness, TWO, TWO_STATE};

/// A fleet with a change planned and saved.
fn saved() -> Harness {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 4");
    harness.edit("\"large\"", "\"huge\"");
    harness.ok("plan --out saved.plan");
    harness
}

/// A refusal that leaves the state's bytes and the cloud alone.
#[track_caller]
fn refused(harness: &Harness, words: &str) -> String {
    let live = harness.live();
    let ended = harness.refused(TWO_STATE, words);
    assert_eq!(harness.live(), live);
    ended.to_string()
}

#[test]
fn a_saved_plan_is_shown_and_applied_as_it_was_seen() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 4");
    let planned = harness.ok("plan --out saved.plan");
    assert_snapshot!("saved_plan", planned);
    let shown = harness.ok("show saved.plan");
    assert_eq!(shown.stdout, planned.stdout, "shown as planned");
    let document = harness.json("show saved.plan --json");
    let wanted = &document["resource_changes"][0]["change"]["after"]["instance_id"];
    // What the configuration says since doesn't matter any more.
    harness.edit("\"size\": 4", "\"size\": 9");
    let applied = harness.ok("apply saved.plan");
    assert_snapshot!("saved_apply", applied);
    assert_eq!(harness.agrees(""), 6);
    let id = wanted.as_str().unwrap();
    assert!(
        harness.live().iter().any(|[_, instance, _]| instance == id),
        "{id}"
    );
    assert_snapshot!("saved_apply_twice", refused(&harness, "apply saved.plan"));
}

#[test]
fn a_plan_made_before_there_was_a_state_is_applied_once() {
    let harness = Harness::with(TWO);
    harness.ok("plan --out saved.plan");
    harness.ok("apply saved.plan");
    assert_eq!(harness.agrees(""), 5);
    assert_snapshot!(refused(&harness, "apply saved.plan"));
}

/// It made everything a second time: nothing was recorded that could have moved on.
#[test]
fn a_plan_made_before_a_state_that_was_lost_is_refused() {
    let harness = Harness::with(TWO);
    harness.ok("plan --out saved.plan");
    harness.ok("apply --auto-approve");
    let live = harness.live();
    std::fs::remove_file(harness.path(TWO_STATE)).unwrap();
    assert_snapshot!(harness.run("apply saved.plan"));
    assert_eq!(harness.live(), live);
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn a_saved_plan_to_destroy_is_applied() {
    let harness = Harness::applied(TWO);
    harness.ok("plan --destroy --out saved.plan");
    harness.ok("apply saved.plan");
    assert_eq!(harness.agrees(""), 0);
}

#[test]
fn a_plan_takes_no_options_of_planning() {
    let harness = saved();
    assert_snapshot!(refused(&harness, "apply saved.plan --target default/web"));
}

#[test]
fn a_cut_plan_is_refused() {
    let harness = saved();
    let plan = harness.read("saved.plan");
    harness.write("saved.plan", &plan[..plan.len() - 10]);
    assert_snapshot!(refused(&harness, "apply saved.plan"));
    assert_snapshot!(refused(&harness, "show saved.plan"));
    harness.write("saved.plan", &plan[..20]);
    refused(&harness, "apply saved.plan");
    harness.write("saved.plan", "");
    assert_snapshot!(refused(&harness, "apply saved.plan"));
}

#[test]
fn an_edited_plan_is_refused() {
    let harness = saved();
    let mut plan = harness.read("saved.plan");
    let middle = plan.len() / 2;
    plan[middle] ^= 1;
    harness.write("saved.plan", &plan);
    assert_snapshot!(refused(&harness, "apply saved.plan"));
}

#[test]
fn something_else_is_no_plan() {
    let harness = saved();
    harness.write("saved.plan", "a shopping list\n");
    assert_snapshot!(refused(&harness, "apply saved.plan"));
    assert_snapshot!(refused(&harness, "apply no-such.plan"));
    assert_snapshot!(refused(&harness, "show no-such.plan"));
}

#[test]
fn a_plan_of_another_version_is_refused() {
    let harness = saved();
    let plan = harness.read("saved.plan");
    let rest = plan.iter().position(|byte| *byte == b'\n').unwrap();
    harness.write("saved.plan", [b"nstance plan 7", &plan[rest..]].concat());
    assert_snapshot!(refused(&harness, "apply saved.plan"));
}

#[test]
fn a_plan_whose_rows_moved_on_is_refused_by_name() {
    let harness = saved();
    harness.ok("apply --auto-approve --replace default/db/1 --target default/db/1");
    harness.ok("apply --auto-approve --target default/web/3");
    assert_snapshot!(refused(&harness, "apply saved.plan"));
}

#[test]
fn a_plan_for_another_cluster_is_refused() {
    let harness = saved();
    let other = Harness::with(AWS);
    other.ok("plan --sim --out other.plan");
    harness.write("other.plan", other.read("other.plan"));
    assert_snapshot!(refused(&harness, "apply other.plan"));
}

#[test]
fn a_plan_for_the_stand_in_is_none_for_the_real_cloud() {
    let harness = Harness::with(AWS);
    harness.ok("plan --sim --out saved.plan");
    let ended = harness.run("apply saved.plan");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
}

#[test]
fn a_plan_from_another_state_is_refused() {
    let harness = saved();
    std::fs::remove_file(harness.path(TWO_STATE)).unwrap();
    harness.ok("apply --auto-approve --target default/web/0");
    assert_snapshot!(refused(&harness, "apply saved.plan"));
}

/// `plan --out` replaced the state or the configuration without a word.
#[test]
fn a_saved_plan_replaces_saved_plans_and_empty_files_only() {
    let harness = saved();
    harness.write("empty", "");
    harness.write("notes.txt", "buy milk\n");
    std::fs::create_dir(harness.path("folder")).unwrap();
    harness.ok("plan --out saved.plan");
    harness.ok("plan --out empty");
    harness.ok("show empty");
    for (name, what) in [
        (TWO_STATE, "a database"),
        (".nstance/sim.db", "a database"),
        ("nstance.jsonc", "not a saved plan"),
        ("notes.txt", "not a saved plan"),
        ("folder", "a folder"),
    ] {
        let before = std::fs::read(harness.path(name)).ok();
        let refused = harness.run(&format!("plan --out {name}"));
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains(what), "{refused}");
        assert_eq!(std::fs::read(harness.path(name)).ok(), before, "{name}");
    }
    assert_snapshot!(harness.run("plan --out nstance.jsonc").stderr);
    // The hint doesn't propose to replace it.
    assert_snapshot!("no_saved_plan", harness.run("apply nstance.jsonc").stderr);
}

#[test]
fn a_plan_of_another_cluster_is_named_even_without_its_key() {
    let theirs = Harness::applied(TWO);
    theirs.edit("\"size\": 3", "\"size\": 4");
    theirs.ok("plan --out their.plan");
    let ours = Harness::with(TWO);
    ours.edit(
        "\"cluster\": { \"id\": \"test\" }",
        "\"cluster\": { \"id\": \"other\" }",
    );
    ours.ok("apply --auto-approve");
    ours.write("their.plan", theirs.read("their.plan"));
    let ended = ours.run("apply their.plan");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!("of_another_cluster", ended);
}
