//! The log (`NSTANCE_LOG`), the times of stages (`--verbose`), and the progress of large applies.

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Ended, Harness, TWO};

/// Runs a command with variables of the environment.
fn run(harness: &Harness, words: &str, variables: &[(&str, &str)]) -> Ended {
    let mut command = harness.command(words);
    command.envs(variables.iter().copied());
    harness.end(words, command)
}

#[track_caller]
fn assert_has(ended: &Ended, parts: &[&str]) {
    for part in parts {
        assert!(ended.stderr.contains(part), "{part} is missing: {ended}");
    }
}

/// Two groups on a cloud whose second creation fails at first, and whose third is invalid.
const FAULTY: &str = r#"{
  "cluster": {"id": "test"},
  "shard": {"id": "one", "infra": {"provider": "sim", "region": "r", "zone": "z", "options": {
    "fail": [
      {"operation": "create", "after": 1, "count": 1, "error": "throttled"},
      {"operation": "create", "after": 3, "count": 1, "error": "invalid"}
    ]
  }}},
  "groups": {"default": {"web": {"instance_type": "small", "size": 6}}}
}"#;

#[test]
fn a_text_log_has_stages_calls_commits_and_the_lock() {
    let harness = Harness::with(TWO);
    let silent = run(&harness, "plan", &[]);
    let ended = run(&harness, "plan", &[("NSTANCE_LOG", "debug")]);
    assert_eq!((ended.code, &ended.stdout), (Some(0), &silent.stdout));
    assert_has(
        &ended,
        &[
            " INFO nstance::command: command began version=",
            " INFO nstance::stage: stage ended stage=\"read configuration\" duration_ms=",
            "stage=\"check configuration\"",
            "stage=\"compile templates\"",
            "stage=\"read state\"",
            "stage=\"resolve images\"",
            "stage=\"list instances\"",
            "stage=\"render and compare\"",
            "stage=\"format plan\"",
            "DEBUG nstance::cloud: call succeeded cloud=\"sim\" operation=\"list\" \
             about=\"test/one\" found=0 duration_ms=",
            " INFO nstance::command: command ended code=0",
        ],
    );
    let ended = run(
        &harness,
        "apply --auto-approve",
        &[("NSTANCE_LOG", "debug")],
    );
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_has(
        &ended,
        &[
            " INFO nstance::lock: lock taken operation=\"apply\"",
            " INFO nstance::apply: apply began shard=\"one\" changes=",
            " INFO nstance::apply: started address=\"default/web/0\" operation=\"create\"",
            " INFO nstance::apply: completed address=\"default/web/0\" operation=\"create\" \
             provider_id=\"sim-",
            "operation=\"create\" about=\"default/web/0 ",
            "DEBUG nstance_state::store: committed writes=",
            "stage=\"apply changes\"",
        ],
    );
}

#[test]
fn a_json_log_is_an_object_a_line() {
    let harness = Harness::with(FAULTY);
    let variables = [("NSTANCE_LOG", "trace"), ("NSTANCE_LOG_FORMAT", "json")];
    let ended = run(&harness, "apply --auto-approve --json", &variables);
    assert_eq!(ended.code, Some(1), "{ended}");
    // The events of the apply are on standard output, as without a log.
    let told = ended.events();
    let types: Vec<&Value> = told.iter().map(|event| &event["type"]).collect();
    assert!(types.contains(&&Value::from("apply_errored")), "{types:?}");
    let summary = types.iter().rposition(|kind| *kind == "change_summary");
    let summary = &told[summary.unwrap()];
    assert_eq!(summary["changes"]["operation"], "apply");
    assert!(summary["elapsed_seconds"].is_u64(), "{summary}");
    let lines = ended.stderr.lines();
    let events: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let find = |target: &str, message: &str| {
        let is_it = |event: &&Value| event["target"] == target && event["message"] == message;
        let found = events.iter().find(is_it);
        found.unwrap_or_else(|| panic!("{target} has no `{message}`: {ended}"))
    };
    assert!(events.iter().all(|event| event["timestamp"].is_string()));
    let retry = find("nstance::apply", "retrying");
    assert_eq!(retry["level"], "WARN");
    assert_eq!(retry["address"], "default/web/1");
    assert!(retry["wait_ms"].is_f64(), "{retry}");
    assert!(
        retry["error"].as_str().unwrap().contains("limit exceeded"),
        "{retry}"
    );
    let failure = find("nstance::apply", "failed");
    assert_eq!(failure["level"], "ERROR");
    assert_eq!(failure["operation"], "create");
    let call = find("nstance::cloud", "call failed");
    assert_eq!(
        (&call["level"], &call["retryable"]),
        (&"DEBUG".into(), &true.into())
    );
    let commit = find("nstance_state::store", "committed");
    assert!(
        commit["serial"].is_u64() && commit["writes"].is_u64(),
        "{commit}"
    );
    assert!(find("nstance::stage", "stage ended")["duration_ms"].is_f64());
    assert_eq!(find("nstance::command", "command ended")["code"], 1);
}

#[test]
fn a_level_and_a_target_select_events() {
    let harness = Harness::with(TWO);
    for (filter, has, lacks) in [
        ("warn", "", "nstance::"),
        ("off", "", "nstance::"),
        ("", "", "nstance::"),
        ("info", "nstance::stage", "DEBUG"),
        ("nstance::cloud=debug", "nstance::cloud", "nstance::stage"),
        (
            "debug,nstance::stage=off",
            "nstance::cloud",
            "nstance::stage",
        ),
    ] {
        let ended = run(&harness, "plan", &[("NSTANCE_LOG", filter)]);
        assert_eq!(ended.code, Some(0), "{ended}");
        assert_has(&ended, &[has]);
        assert!(!ended.stderr.contains(lacks), "{filter}: {ended}");
    }
}

#[test]
fn an_invalid_log_is_an_error() {
    let harness = Harness::with(TWO);
    for (name, variable, value) in [
        ("level", "NSTANCE_LOG", "verbose"),
        ("target", "NSTANCE_LOG", "info,hyper=debug"),
        ("format", "NSTANCE_LOG_FORMAT", "logfmt"),
    ] {
        let ended = run(&harness, "plan", &[(variable, value)]);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert_eq!(ended.stdout, "", "{ended}");
        assert_snapshot!(format!("invalid_{name}"), ended.stderr);
        let ended = run(&harness, "plan --json", &[(variable, value)]);
        assert_eq!(ended.json()["diagnostics"][0]["severity"], "error");
    }
}

/// The stages that `--verbose` shows: the last lines, each with a time.
#[track_caller]
fn stages(ended: &Ended) -> Vec<&str> {
    let lines = ended.stderr.lines().rev().map_while(|line| {
        let stage = line.strip_prefix("  ")?.strip_suffix(" s")?;
        let (stage, time) = stage.rsplit_once(' ')?;
        time.parse::<f64>().ok().map(|_| stage.trim())
    });
    let mut stages: Vec<&str> = lines.collect();
    stages.reverse();
    assert_eq!(stages.last(), Some(&"total"), "{ended}");
    stages
}

#[test]
fn verbose_commands_end_with_the_time_of_each_stage() {
    let harness = Harness::with(TWO);
    let read = ["read configuration", "check configuration"];
    let compile = ["read userdata", "compile templates"];
    let plan = [
        "read state",
        "resolve images",
        "list instances",
        "render and compare",
    ];
    for (words, stages_of_it) in [
        ("validate --verbose", &["render samples"][..]),
        ("plan --verbose", &[&plan[..], &["format plan"]].concat()),
        ("plan --verbose --json", &plan),
        ("drift --verbose", &plan),
        ("render --verbose", &["read state", "render and compare"]),
        (
            "apply --auto-approve --verbose",
            &[&["lock state"], &plan[..], &["apply changes"]].concat(),
        ),
    ] {
        let ended = run(&harness, words, &[]);
        assert_eq!(ended.code, Some(0), "{ended}");
        let shown = stages(&ended);
        for stage in [&read[..], &compile, stages_of_it].concat() {
            let count = shown.iter().filter(|shown| **shown == stage).count();
            assert_eq!(count, 1, "{stage}: {ended}");
        }
    }
    let quiet = run(&harness, "plan", &[]);
    assert!(!quiet.stderr.contains("total"), "{quiet}");
}

#[test]
fn a_verbose_apply_ends_with_a_summary() {
    let harness = Harness::with(TWO);
    let ended = run(&harness, "apply --auto-approve --verbose", &[]);
    let (_, rest) = ended.stderr.split_once("\n\n").unwrap();
    let (summary, _) = rest.split_once("  read configuration").unwrap();
    assert_snapshot!("summary", summary);
}

/// More changes than get a line each: a line for each group.
#[test]
fn a_large_apply_logs_groups() {
    let harness = Harness::with(
        &TWO.replace("\"size\": 3", "\"size\": 150")
            .replace("\"size\": 2", "\"size\": 60"),
    );
    harness.give_key();
    let ended = run(&harness, "apply --auto-approve", &[]);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_snapshot!("groups", ended.stderr);
}

/// What a command writes to a terminal of this width, without control sequences, by lines.
#[cfg(unix)]
fn on_terminal(harness: &Harness, words: &str, columns: u16) -> Vec<String> {
    use std::io::Read as _;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let name = name.to_str().unwrap();
    let screen = std::fs::File::options().write(true).open(name).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&screen, size).unwrap();
    let reader = std::thread::spawn(move || {
        let mut shown = Vec::new();
        // Ends with an error once no process writes any more.
        let _ = std::fs::File::from(terminal).read_to_end(&mut shown);
        String::from_utf8(shown).unwrap()
    });
    let mut command = harness.command(words);
    let child = command.env("TERM", "xterm").stderr(screen).spawn().unwrap();
    drop(command);
    let ended = harness.wait(words, child);
    assert_eq!(ended.code, Some(0), "{ended}");
    let shown = reader.join().unwrap();
    let mut lines = Vec::new();
    for line in shown.split(['\n', '\r']) {
        let mut parts = line.split("\u{1b}[");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            text.push_str(
                part.trim_start_matches(|c: char| !c.is_alphabetic())
                    .get(1..)
                    .unwrap(),
            );
        }
        // A line of several that are drawn together ends where the terminal does.
        let text: Vec<char> = text.chars().collect();
        let rows = text.chunks(columns.into());
        lines.extend(rows.map(|row| row.iter().collect::<String>().trim_end().to_owned()));
    }
    lines
}

/// The lines of groups are cut to the width of the terminal.
#[cfg(unix)]
#[test]
fn a_terminal_shows_groups_in_its_width() {
    for columns in [40, 80] {
        let harness = Harness::with(TWO);
        let lines = on_terminal(&harness, "apply --auto-approve", columns);
        let bars: Vec<&String> = lines
            .iter()
            .filter(|line| line.starts_with("all groups  "))
            .collect();
        assert!(!bars.is_empty(), "{lines:#?}");
        for bar in bars {
            assert!(bar.contains("/5"), "{bar}");
            assert_eq!(bar.contains('░'), columns == 80, "{bar}");
            assert!(bar.chars().count() < usize::from(columns), "{bar}");
        }
    }
}
