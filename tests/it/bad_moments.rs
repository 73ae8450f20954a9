//! Bad moments: each is explained, ends with 1, and leaves the state as it was.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use insta::assert_snapshot;

use crate::harness::{AWS, Harness, TWO, TWO_STATE};

/// Who may do nothing that isn't allowed to everyone.
pub(crate) const NOBODY: u32 = 65_534;

/// Commands that open the state in different ways, and what they say about it.
fn openings(harness: &Harness) -> String {
    ["plan", "apply --auto-approve", "state list", "show"]
        .map(|words| harness.refused(TWO_STATE, words).to_string())
        .join("\n")
}

#[test]
fn a_state_that_is_something_else() {
    let harness = Harness::with(TWO);
    harness.write(
        TWO_STATE,
        "a shopping list: milk, eggs, and a lot of bread for the week",
    );
    assert_snapshot!(openings(&harness));
}

#[test]
fn a_state_that_is_empty() {
    let harness = Harness::with(TWO);
    harness.write(TWO_STATE, "");
    assert_snapshot!(openings(&harness));
}

#[test]
fn a_state_that_is_a_folder() {
    let harness = Harness::with(TWO);
    fs::create_dir_all(harness.path(TWO_STATE)).unwrap();
    assert_snapshot!(harness.refused(TWO_STATE, "plan"));
}

#[test]
fn a_state_of_another_program() {
    let harness = Harness::with(TWO);
    fs::create_dir_all(harness.path(TWO_STATE).parent().unwrap()).unwrap();
    let database = rusqlite::Connection::open(harness.path(TWO_STATE)).unwrap();
    database
        .execute_batch("CREATE TABLE bookmarks (url TEXT)")
        .unwrap();
    drop(database);
    assert_snapshot!(openings(&harness));
}

#[test]
fn a_state_that_is_damaged() {
    let harness = Harness::applied(TWO);
    let mut bytes = harness.read(TWO_STATE);
    let start = bytes.len() / 4;
    for byte in &mut bytes[start..] {
        *byte = 0x5a;
    }
    harness.write(TWO_STATE, bytes);
    assert_snapshot!(openings(&harness));
}

#[test]
fn a_state_that_is_cut() {
    let harness = Harness::applied(TWO);
    let bytes = harness.read(TWO_STATE);
    harness.write(TWO_STATE, &bytes[..bytes.len() / 2]);
    assert_snapshot!(openings(&harness));
}

#[test]
fn a_state_of_a_newer_version() {
    let harness = Harness::applied(TWO);
    let database = rusqlite::Connection::open(harness.path(TWO_STATE)).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    assert_snapshot!(openings(&harness));
}

#[test]
fn a_state_of_another_cluster() {
    let harness = Harness::applied(TWO);
    harness.edit("\"id\": \"test\"", "\"id\": \"other\"");
    let state = format!("--state sqlite:{TWO_STATE}");
    for words in ["plan", "apply --auto-approve"] {
        let ended = harness.refused(TWO_STATE, &format!("{words} {state}"));
        assert_snapshot!(ended);
    }
}

#[test]
fn a_state_of_the_stand_in_without_sim() {
    let harness = Harness::with(AWS);
    harness.ok("apply --auto-approve --sim");
    let state = ".nstance/prod/us-west-2a.db";
    assert_snapshot!(harness.refused(state, "plan --refresh=false"));
}

#[test]
fn a_folder_that_can_only_be_read_is_planned_from() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 4");
    let files = harness.files();
    // A key file that anyone may read is refused, so the key comes from elsewhere.
    let key = String::from_utf8(harness.read(".nstance/key")).unwrap();
    let key = key.lines().last().unwrap().to_owned();
    set_modes(&harness, 0o555, 0o444);
    let (folder, executable) = executable_for_anyone();
    let run = |words: &str| {
        let mut command = Command::new(&executable);
        command
            .args(words.split(' '))
            .current_dir(harness.path(""))
            .env_clear();
        command
            .env("NSTANCE_NOW", "2026-12-01T01:00:00Z")
            .env("NSTANCE_STATE_KEY", &key);
        // Root may do everything, so it has to be somebody else.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        harness.end(words, command)
    };
    for words in [
        "validate",
        "plan --detailed-exitcode",
        "drift",
        "state list",
        "show",
        "render",
    ] {
        let ended = run(words);
        let expected = if words.starts_with("plan") { 2 } else { 0 };
        assert_eq!(ended.code, Some(expected), "{ended}");
    }
    let state = harness.bytes(TWO_STATE);
    let ended = run("apply --auto-approve");
    let out = run("plan --out saved.plan");
    assert!(harness.bytes(TWO_STATE) == state);
    assert_eq!(harness.files(), files, "nothing was left behind");
    set_modes(&harness, 0o755, 0o644);
    drop(folder);
    assert_eq!(ended.code, Some(1), "{ended}");
    assert_eq!(out.code, Some(1), "{out}");
    assert_snapshot!(format!("{ended}\n{}", out.stderr));
}

/// Gives folders and files below the harness's modes.
pub(crate) fn set_modes(harness: &Harness, folders: u32, files: u32) {
    let mut all = vec![harness.path("")];
    while let Some(path) = all.pop() {
        if path.is_dir() {
            all.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        let mode = if path.is_dir() { folders } else { files };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
}

/// A copy of the binary where anyone can reach it.
pub(crate) fn executable_for_anyone() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("nstance");
    // By another process: a copy that this one has open for writing, and a child of another test
    // inherits, can't be run for a moment.
    let mut copying = Command::new("cp");
    copying.arg(env!("CARGO_BIN_EXE_nstance")).arg(&copy);
    assert!(copying.status().unwrap().success());
    (folder, copy)
}

#[test]
fn a_plan_that_cannot_be_saved() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.refused(TWO_STATE, "plan --out no/such/folder/saved.plan"));
}

#[test]
fn no_configuration() {
    let harness = Harness::empty();
    for words in [
        "plan",
        "validate",
        "apply --auto-approve",
        "state list",
        "plan -c nowhere.jsonc",
    ] {
        assert_snapshot!(harness.run(words));
    }
    assert_eq!(harness.files(), [""; 0]);
}

#[test]
fn two_configurations() {
    let harness = Harness::applied(TWO);
    harness.write("config.jsonc", TWO);
    assert_snapshot!(harness.refused(TWO_STATE, "plan"));
    harness.ok("plan -c config.jsonc");
}

#[test]
fn a_configuration_that_cannot_be_read() {
    let harness = Harness::applied(TWO);
    fs::remove_file(harness.path("nstance.jsonc")).unwrap();
    fs::create_dir(harness.path("nstance.jsonc")).unwrap();
    assert_snapshot!(harness.refused(TWO_STATE, "plan -c nstance.jsonc"));
    fs::remove_dir(harness.path("nstance.jsonc")).unwrap();
    harness.write("nstance.jsonc", [0xff, 0xfe, b'{', 0]);
    assert_snapshot!(harness.refused(TWO_STATE, "plan"));
    harness.write("nstance.jsonc", [b'{', b'"', 0xc3, b'"', b'}']);
    assert_snapshot!(harness.refused(TWO_STATE, "plan"));
}

#[test]
fn a_configuration_that_nobody_may_read() {
    let harness = Harness::with(TWO);
    fs::set_permissions(harness.path(""), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(harness.path("nstance.jsonc"), Permissions::from_mode(0o000)).unwrap();
    let (_folder, executable) = executable_for_anyone();
    let mut command = Command::new(executable);
    command
        .arg("plan")
        .current_dir(harness.path(""))
        .env_clear();
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let ended = harness.end("plan", command);
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
}

#[test]
fn wrong_flags_end_with_one() {
    let harness = Harness::applied(TWO);
    for words in [
        "plan --no-such-flag",
        "plna",
        "plan --now nonsense",
        "plan --parallelism 0",
        "plan --lock-timeout soon",
        "plan --target",
        "plan --target default/web/x",
        "plan --destroy --refresh-only",
        "plan --refresh=maybe",
        "plan --var novalue",
        "state show",
        "",
    ] {
        assert_snapshot!(harness.refused(TWO_STATE, words));
    }
}

#[test]
fn a_wrong_flag_with_json_is_still_one_document() {
    let harness = Harness::with(TWO);
    for words in [
        "plan --json --no-such-flag",
        "--json plna",
        "plan --json --now nonsense",
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert_eq!(
            ended.json()["diagnostics"][0]["severity"],
            "error",
            "{ended}"
        );
    }
}

#[test]
fn help_and_version_are_no_errors() {
    let harness = Harness::empty();
    for words in ["--help", "plan --help", "--version", "help apply"] {
        let ended = harness.ok(words);
        assert_eq!(ended.stderr, "");
    }
    assert_snapshot!(harness.ok("--help"));
}

#[test]
fn states_that_are_not_built_in() {
    let harness = Harness::with(TWO);
    #[cfg(not(feature = "postgres"))]
    assert_snapshot!(
        "postgres_not_built_in",
        harness.run("plan --state postgres://db/nstance")
    );
    for url in ["s3://bucket/prefix", "gs://bucket/prefix", "ftp://x"] {
        let ended = harness.run(&format!("plan --state {url}"));
        assert_eq!(ended.code, Some(1));
        assert_snapshot!(ended);
    }
}

#[test]
fn a_state_elsewhere() {
    let harness = Harness::with(TWO);
    harness.ok("apply --auto-approve --state sqlite:states/{cluster}-{shard}.db");
    assert!(harness.path("states/test-one.db").is_file());
    harness.agrees("--state sqlite:states/test-one.db");
    let mut command = harness.command("plan --detailed-exitcode");
    command.env("NSTANCE_STATE", "states/{cluster}-{shard}.db");
    assert_eq!(harness.end("plan", command).code, Some(0));
}

#[cfg(not(feature = "gcp"))]
#[test]
fn a_cloud_that_this_build_cannot_ask() {
    let harness = Harness::with(crate::harness::GCP);
    for words in [
        "plan",
        "apply --auto-approve",
        "drift",
        "images",
        "import default/workers/0 i-1",
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(
            ended.stderr.contains("this build has no client for `gcp`"),
            "{ended}"
        );
        assert!(ended.stderr.contains("--sim"), "{ended}");
    }
    harness.ok("validate");
    harness.ok("graph");
    assert_eq!(harness.files(), ["nstance.jsonc"]);
}

#[test]
fn the_embedded_cloud_is_something_else() {
    let harness = Harness::applied(TWO);
    harness.write(
        ".nstance/sim.db",
        "no database at all, but long enough to be looked at as one",
    );
    assert_snapshot!(harness.refused(TWO_STATE, "plan"));
    assert_snapshot!(harness.run("sim list"));
}

#[test]
fn the_cloud_does_not_answer() {
    let harness = Harness::applied(TWO);
    harness.edit("\"options\": {}", "\"options\": { \"fail\": [{ \"operation\": \"list\", \"error\": \"denied\", \"count\": 99 }] }");
    assert_snapshot!(harness.refused(TWO_STATE, "plan"));
    let ended = harness.refused(TWO_STATE, "apply --auto-approve");
    assert!(ended.stderr.contains("UnauthorizedOperation"), "{ended}");
    harness.ok("plan --refresh=false");
}

#[test]
fn not_a_state_at_all() {
    let harness = Harness::with(TWO);
    for words in [
        "state list",
        "state history",
        "show",
        "state rm default/web/0",
        "state backup",
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains("there is no state"), "{ended}");
    }
    assert_snapshot!(harness.run("state list"));
    assert_eq!(harness.files(), ["nstance.jsonc"]);
}

#[test]
fn global_options_come_from_the_environment_too() {
    let harness = Harness::empty();
    harness.write("fleet/config.jsonc", AWS);
    let run = |name: &str, value: &str| {
        let mut command = harness.command("plan");
        command
            .env("NSTANCE_CONFIG", "fleet")
            .env("NSTANCE_SIM", "true")
            .env(name, value);
        harness.end("plan", command)
    };
    assert_eq!(run("NSTANCE_JSON", "true").json()["summary"]["create"], 7);
    let ended = run("NSTANCE_NOW", "nonsense");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("--now"), "{ended}");
    let ended = run("NSTANCE_STATE", "postgres://db/nstance");
    assert_eq!(ended.code, Some(1), "{ended}");
}
