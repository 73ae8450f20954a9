//! States that can't be used: every command says why and what to do, ends with 1, and leaves every
//! byte as it was.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use insta::assert_snapshot;

use crate::bad_moments::{NOBODY, executable_for_anyone, set_modes};
use crate::harness::{Harness, TWO, TWO_STATE};

/// Every command that reads or writes a state.
const COMMANDS: &[&str] = &[
    "plan",
    "plan --out other.plan",
    "drift",
    "show",
    "render default/web/0",
    "state list",
    "state show default/web/0",
    "state history",
    "state pull",
    "state backup copy.db",
    "state mv default/web/0 default/web/7",
    "state rm default/web/0",
    "state push document.json --force",
    "state undo --auto-approve",
    "import default/web/5 PROVIDER_ID",
    "apply --auto-approve",
    "apply saved.plan",
    "destroy --auto-approve",
];

/// A fleet with all that the commands need, and a document and a plan of it.
fn prepared() -> Harness {
    let harness = Harness::applied(TWO);
    let document = harness.ok("state pull").stdout;
    harness.write("document.json", document);
    harness.edit("\"size\": 3", "\"size\": 4");
    harness.ok("plan --out saved.plan");
    harness
}

/// Runs all commands, which all must be refused for the same reason; what they said, each text
/// once.
fn all_refused(harness: &Harness, options: &str) -> String {
    let id = harness.live().into_iter().next().unwrap()[2].clone();
    let files = harness.files();
    let mut told = BTreeSet::new();
    for words in COMMANDS {
        let words = format!("{} {options}", words.replace("PROVIDER_ID", &id));
        let ended = harness.refused(TWO_STATE, words.trim());
        assert!(ended.stderr.contains("hint: "), "{ended}");
        assert_eq!(ended.stdout, "", "{ended}");
        told.insert(ended.stderr);
    }
    let after: Vec<String> = harness.files();
    let left = after.iter().filter(|file| !files.contains(file));
    assert_eq!(left.collect::<Vec<_>>(), [""; 0], "nothing was left behind");
    told.into_iter().collect::<Vec<_>>().join("\n")
}

/// What is done to a state's bytes.
type Spoil = fn(Vec<u8>) -> Vec<u8>;

#[test]
fn a_file_that_is_no_usable_state_is_refused_by_every_command() {
    let spoiled: [(&str, Spoil); 6] = [
        ("text", |_| {
            b"a shopping list: milk, eggs, and a lot of bread for the week".into()
        }),
        ("empty", |_| Vec::new()),
        ("cut short", |bytes| bytes[..bytes.len() / 2].into()),
        ("cut within a page", |bytes| {
            bytes[..bytes.len() - 100].into()
        }),
        ("overwritten from the first page on", |mut bytes| {
            bytes[100..].fill(0x5a);
            bytes
        }),
        ("of another program", |mut bytes| {
            bytes[68..72].copy_from_slice(b"bkmk");
            bytes
        }),
    ];
    let harness = prepared();
    let good = harness.read(TWO_STATE);
    let mut told = String::new();
    for (name, spoil) in spoiled {
        harness.write(TWO_STATE, spoil(good.clone()));
        told.push_str(&format!("# {name}\n{}\n", all_refused(&harness, "")));
    }
    assert_snapshot!(told);
    harness.write(TWO_STATE, good);
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn a_state_of_a_later_version_is_refused_by_every_command() {
    let harness = prepared();
    let database = rusqlite::Connection::open(harness.path(TWO_STATE)).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let told = all_refused(&harness, "");
    assert!(told.contains("the state has schema version 99"), "{told}");
    assert_eq!(told.matches("error: ").count(), 1, "{told}");
}

#[test]
fn a_state_of_something_else_is_refused_by_every_command() {
    let harness = prepared();
    let state = format!("--state sqlite:{TWO_STATE}");
    for (from, to) in [
        ("\"id\": \"test\"", "\"id\": \"other\""),
        ("\"id\": \"one\"", "\"id\": \"two\""),
    ] {
        harness.edit(from, to);
        let told = all_refused(&harness, &state);
        assert!(
            told.contains("the state belongs to cluster \"test\""),
            "{told}"
        );
        harness.edit(to, from);
    }
    // Another provider: what stands in for a cloud isn't that cloud.
    harness.edit("\"provider\": \"sim\"", "\"provider\": \"gcp\"");
    harness.edit("ImageId", "SourceImage");
    let ended = harness.refused(TWO_STATE, &format!("state list {state} --sim"));
    assert_snapshot!(ended);
}

#[test]
fn a_state_that_can_only_be_read_is_read_and_not_changed() {
    let harness = prepared();
    let id = harness.live().into_iter().next().unwrap()[2].clone();
    harness.ok("state rm default/web/0");
    let (state, files) = (harness.bytes(TWO_STATE), harness.files());
    let keys = String::from_utf8(harness.read(".nstance/key")).unwrap();
    let key = keys.lines().last().unwrap().to_owned();
    set_modes(&harness, 0o555, 0o444);
    let (folder, executable) = executable_for_anyone();
    let mut told = String::new();
    for words in COMMANDS
        .iter()
        .chain(&["doctor", "doctor --out other.plan"])
    {
        let words = words.replace("PROVIDER_ID", &id).replace("web/0", "web/1");
        let mut command = Command::new(&executable);
        command
            .args(words.split(' '))
            .current_dir(harness.path(""))
            .env_clear();
        command.env("NSTANCE_NOW", "2026-12-01T01:00:00Z");
        // A key file that others may read is refused.
        command.env("NSTANCE_STATE_KEY", &key);
        // Root may do everything, so it has to be somebody else.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        let ended = harness.end(&words, command);
        let refusal = ended.stderr.lines().find(|line| line.starts_with("error"));
        told.push_str(&format!(
            "{words}: {}{}\n",
            ended.code.unwrap(),
            refusal.map_or_else(String::new, |line| format!(", {line}"))
        ));
    }
    set_modes(&harness, 0o755, 0o644);
    drop(folder);
    assert!(harness.bytes(TWO_STATE) == state);
    assert_eq!(harness.files(), files, "nothing was left behind");
    assert_snapshot!(told.replace(&id, "[ID]"));
}

#[test]
fn an_instance_has_one_address_and_an_address_one_instance() {
    let harness = Harness::applied(TWO);
    let live = harness.live();
    let id_of = |address: &str| {
        let found = live.iter().find(|[at, ..]| at == address);
        found.map(|[_, _, id]| id.clone()).unwrap()
    };
    let of_web = id_of("default/web/1");
    for words in [
        // Recorded elsewhere already, of the same group and of another.
        format!("import default/web/9 {of_web}"),
        format!("import default/db/9 {of_web}"),
        // Recorded there already.
        format!("import default/web/1 {of_web}"),
        // The address is another's.
        "state mv default/web/0 default/web/1".to_owned(),
        "state mv default/db/0 default/web/1".to_owned(),
        "state mv default/web/1 default/web/1".to_owned(),
        // Nothing is there.
        "state mv default/web/9 default/web/10".to_owned(),
        "state rm default/web/9".to_owned(),
        "state rm default/web/0 default/web/9".to_owned(),
    ] {
        let ended = harness.refused(TWO_STATE, &words);
        assert!(ended.stderr.contains("hint: "), "{ended}");
    }
    assert_snapshot!(harness.refused(TWO_STATE, "state mv default/db/0 default/web/1"));
    assert_snapshot!(
        "moved_to_itself",
        harness.refused(TWO_STATE, "state mv default/web/1 default/web/1")
    );
    assert_eq!(harness.agrees(""), 5);
}
