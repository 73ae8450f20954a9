//! What Compute Engine answers when it doesn't do what was asked.

use insta::assert_snapshot;
use nstance_gce_server::{
    Fault, Habits, OPERATION_ERRORS, OperationError, REFUSALS, Refusal, Rule,
};

use super::world::{FLEET, Gcp};
use crate::clouds::{self, Account as _};

/// One instance.
fn one() -> String {
    FLEET
        .replace("\"size\": 2", "\"size\": 1")
        .replace("\"store\": { \"template\": \"node\", \"size\": 1 },", "")
}

#[test]
fn each_error_is_told_in_words_that_help() {
    let Some(gcp) = Gcp::with(&one()) else { return };
    let refusals = REFUSALS
        .iter()
        .map(|(name, ..)| (*name, Fault::Refuse(Refusal::named(name))));
    let ends = OPERATION_ERRORS
        .iter()
        .map(|(name, ..)| (*name, Fault::EndOperation(OperationError::named(name))));
    let mut all = String::new();
    for (name, fault) in refusals.chain(ends) {
        gcp.server.clear();
        // What the last error left open would be settled first.
        let _ = std::fs::remove_dir_all(gcp.harness.path(".nstance"));
        gcp.server.add(Rule::every("instances.insert", fault));
        let ended = gcp.run("apply --auto-approve");
        assert_ne!(ended.code, Some(0), "{name}: {ended}");
        let told = ended.stderr.lines();
        let told = told
            .filter(|line| !line.starts_with("Made a key") && !line.contains(": trying again in "));
        let told: Vec<&str> = told.collect();
        all.push_str(&format!(
            "== {name}: {:?}\n{}\n\n",
            ended.code,
            told.join("\n")
        ));
        assert!(gcp.live().is_empty(), "{name}");
    }
    assert_snapshot!("errors", gcp.shown(&all));
    gcp.server.clear();
    clouds::apply(&gcp, "");
}

#[test]
fn throttling_is_waited_out() {
    let Some(gcp) = Gcp::with(FLEET) else { return };
    for name in [
        "instances.insert",
        "zoneOperations.get",
        "instances.aggregatedList",
    ] {
        let fault = Fault::Refuse(Refusal::named("rateLimitExceeded"));
        gcp.server.add(Rule::next(name, fault).times(2));
    }
    clouds::apply(&gcp, "");
}

#[test]
fn a_lost_answer_makes_nothing_twice() {
    let Some(gcp) = Gcp::with(FLEET) else { return };
    gcp.server
        .add(Rule::next("instances.insert", Fault::LoseAnswer).times(3));
    clouds::apply(&gcp, "");
    assert_eq!(gcp.live().len(), 3);
    gcp.server
        .add(Rule::next("instances.delete", Fault::LoseAnswer).times(2));
    clouds::ok(&gcp, "destroy --auto-approve --allow-delete all");
    assert!(gcp.live().is_empty());
}

#[test]
fn what_is_not_listed_yet_is_made_once() {
    let Some(gcp) = Gcp::with(FLEET) else { return };
    gcp.server.set_habits(Habits {
        hidden: 3,
        ..Habits::default()
    });
    gcp.server
        .add(Rule::every("instances.insert", Fault::LoseAnswer));
    let lost = gcp.run("apply --auto-approve");
    assert_ne!(lost.code, Some(0), "{lost}");
    gcp.server.clear();
    clouds::ok(&gcp, "apply --auto-approve");
    assert_eq!(gcp.live().len(), 3);
    gcp.server.set_habits(Habits::default());
    clouds::apply(&gcp, "");
}

#[test]
fn a_quota_is_said_before_it_is_hit() {
    let Some(gcp) = Gcp::with(FLEET) else { return };
    gcp.server.set_quota("europe-west1", "INSTANCES", 2.0);
    let plan = gcp.run("plan");
    assert!(
        plan.stderr
            .contains("the quota INSTANCES of europe-west1 is 2"),
        "{plan}"
    );
}

#[test]
fn doctor_names_what_is_not_allowed() {
    let Some(gcp) = Gcp::applied(FLEET) else {
        return;
    };
    clouds::ok(&gcp, "doctor");
    gcp.server.deny("compute.instances.create");
    let doctor = gcp.run("doctor");
    assert_eq!(doctor.code, Some(2), "{doctor}");
    assert!(
        doctor.to_string().contains("compute.instances.create"),
        "{doctor}"
    );
}

#[test]
fn without_a_project_it_says_what_to_set() {
    let config = FLEET.replace("\"project_id\": \"PROJECT\", ", "");
    let Some(gcp) = Gcp::with(&config) else {
        return;
    };
    let plan = gcp.run("plan");
    assert_eq!(plan.code, Some(1), "{plan}");
    assert!(plan.stderr.contains("GOOGLE_CLOUD_PROJECT"), "{plan}");
}
