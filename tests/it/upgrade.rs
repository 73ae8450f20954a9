//! States and plans that an earlier version made: they open, migrate, recover and stay masked.
//!
//! `data/upgrade` holds what version 0.1.0 of November 2026 wrote: a sealed state, the same state
//! in clear, one whose apply was killed between two calls and their records, a saved plan, and the
//! embedded clouds that belong to them.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;

use crate::bad_moments::{NOBODY, executable_for_anyone, set_modes};
use crate::harness::{CANARY, Ended, Harness};

const STATE: &str = ".nstance/prod/one.db";
const OPTIONS: &str = "--var-file secret.tfvars";

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data/upgrade");
    fs::read(folder.join(name)).unwrap()
}

fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let packed = fixture(&format!("{name}.gz"));
    GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

/// A folder as the earlier version left it.
fn left(state: &str, cloud: &str) -> Harness {
    let harness = Harness::empty();
    harness.write("nstance.hcl", fixture("nstance.hcl"));
    harness.write("secret.tfvars", format!("password = \"{CANARY}\"\n"));
    harness.write(STATE, unpacked(state));
    fs::set_permissions(harness.path(STATE), Permissions::from_mode(0o600)).unwrap();
    harness.write(".nstance/sim.db", unpacked(cloud));
    harness
}

fn sealed() -> Harness {
    let harness = left("sealed.db", "sim.db");
    harness.give_key();
    harness
}

fn scale(harness: &Harness, size: u32) {
    let config = String::from_utf8(fixture("nstance.hcl")).unwrap();
    let scaled = config.replacen("size     = 3", &format!("size     = {size}"), 1);
    assert_ne!(config, scaled);
    harness.write("nstance.hcl", scaled);
}

#[track_caller]
fn run(harness: &Harness, words: &str) -> Ended {
    let ended = harness.run(&format!("{OPTIONS} {words}"));
    assert!(matches!(ended.code, Some(0 | 2)), "{ended}");
    ended
}

#[track_caller]
fn assert_plan_is_empty(harness: &Harness) {
    let ended = run(harness, "plan --detailed-exitcode");
    assert_eq!(ended.code, Some(0), "{ended}");
}

#[track_caller]
fn assert_masked_as_before(harness: &Harness) {
    let shown = String::from_utf8(fixture("show-web-0.txt")).unwrap();
    let ended = run(harness, "show default/web/0");
    assert_eq!(ended.stdout, shown);
}

/// A plan changes nothing; the first apply migrates and changes nothing else.
#[track_caller]
fn assert_it_lives_on(harness: &Harness) {
    let before = harness.bytes(STATE);
    assert_plan_is_empty(harness);
    assert_masked_as_before(harness);
    assert!(harness.bytes(STATE) == before);
    run(harness, "apply --auto-approve");
    assert_plan_is_empty(harness);
    assert_masked_as_before(harness);
    assert_eq!(harness.agrees(OPTIONS), 4);
    scale(harness, 4);
    assert!(
        run(harness, "plan")
            .stdout
            .contains("1 to add, 0 to change, 0 to destroy")
    );
    run(harness, "apply --auto-approve");
    assert_eq!(harness.agrees(OPTIONS), 5);
    let doctor = run(harness, "doctor");
    assert_eq!(doctor.code, Some(0), "{doctor}");
}

#[test]
fn a_sealed_state_opens_and_plans_empty() {
    assert_it_lives_on(&sealed());
}

#[test]
fn a_state_in_clear_opens_and_is_sealed() {
    let harness = left("clear.db", "sim.db");
    assert_it_lives_on(&harness);
    for name in harness.files() {
        if name.contains("one.db") && !name.contains("backup") {
            let bytes = harness.read(&name);
            let mut windows = bytes.windows(CANARY.len());
            assert!(!windows.any(|window| window == CANARY.as_bytes()), "{name}");
        }
    }
}

#[test]
fn an_apply_that_was_killed_is_recovered() {
    let harness = left("interrupted.db", "interrupted-sim.db");
    harness.give_key();
    scale(&harness, 5);
    let plan = run(&harness, "plan");
    assert!(plan.stdout.contains("Plan: 2 to adopt, 0 to add"), "{plan}");
    let live = harness.live();
    run(&harness, "apply --auto-approve");
    assert_eq!(harness.live(), live, "nothing was created a second time");
    assert_eq!(harness.agrees(OPTIONS), 6);
    assert_plan_is_empty(&harness);
    assert_masked_as_before(&harness);
}

#[test]
fn a_saved_plan_is_shown_and_applied() {
    let harness = sealed();
    harness.write("saved.plan", fixture("saved.plan"));
    let shown = String::from_utf8(fixture("show-plan.txt")).unwrap();
    assert_eq!(run(&harness, "show saved.plan").stdout, shown);
    run(&harness, "apply saved.plan");
    assert_eq!(harness.agrees(OPTIONS), 5);
    scale(&harness, 4);
    let config = String::from_utf8(harness.read("nstance.hcl")).unwrap();
    harness.write("nstance.hcl", config.replace("\"payments\"", "\"infra\""));
    assert_plan_is_empty(&harness);
}

#[test]
fn a_state_in_a_read_only_folder_is_planned_from() {
    let harness = left("sealed.db", "sim.db");
    let files = harness.files();
    set_modes(&harness, 0o555, 0o444);
    let (_folder, executable) = executable_for_anyone();
    for words in ["plan --detailed-exitcode", "show default/web/0", "drift"] {
        let words = format!("{OPTIONS} {words}");
        let mut command = Command::new(&executable);
        command
            .args(words.split(' '))
            .current_dir(harness.path(""))
            .env_clear()
            .env("NSTANCE_NOW", "2026-12-01T01:00:00Z")
            .env(
                "NSTANCE_STATE_KEY",
                format!("nstance-key-1-{}", "5".repeat(64)),
            );
        // Root may write everywhere.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        let ended = harness.end(&words, command);
        assert_eq!(ended.code, Some(0), "{ended}");
    }
    assert_eq!(harness.files(), files, "nothing was left behind");
    set_modes(&harness, 0o755, 0o644);
}
