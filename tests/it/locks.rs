//! The lock: who has it, who waits for it, and who never does.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::Child;

use insta::assert_snapshot;

use crate::harness::{Ended, Harness, TWO, TWO_STATE};

/// What dies with this: a process that waits an hour for its first answer, lock in hand.
struct Holder(Child);

impl Holder {
    /// Starts an apply of one instance more, and returns when it has signed the lock.
    fn start(harness: &Harness) -> Self {
        harness.edit("\"options\": {}", "\"options\": { \"latency\": \"1h\" }");
        harness.edit("\"size\": 3", "\"size\": 4");
        let holder = Self(harness.command("apply --auto-approve").spawn().unwrap());
        let lock = harness.path(&format!("{TWO_STATE}.lock"));
        let signature = format!("\"pid\":{}", holder.0.id());
        let signed =
            harness.comes(|| fs::read_to_string(&lock).is_ok_and(|text| text.contains(&signature)));
        assert!(signed, "it has signed the lock");
        // It has read its configuration; others get answers at once.
        harness.edit("\"latency\": \"1h\"", "");
        holder
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A lock of the operating system on the side file, as a process has it that didn't sign yet.
fn unsigned(harness: &Harness) -> File {
    let lock = File::options()
        .write(true)
        .open(harness.path(&format!("{TWO_STATE}.lock")))
        .unwrap();
    lock.lock().unwrap();
    lock
}

/// The text with the age of the lock put out of it.
fn ageless(ended: &Ended) -> String {
    let text = ended.to_string();
    let age = text.split("held for ").nth(1).expect("it says how long");
    let age = age.lines().next().unwrap().to_owned();
    text.replace(&age, "[AGE]")
}

/// The lock's id, as a message shows it.
fn id_of(harness: &Harness) -> String {
    let text = String::from_utf8(harness.read(&format!("{TWO_STATE}.lock"))).unwrap();
    let info: serde_json::Value = serde_json::from_str(&text).unwrap();
    info["id"].as_str().unwrap().to_owned()
}

#[test]
fn who_holds_the_lock_is_said_with_what_to_do() {
    let harness = Harness::applied(TWO).in_real_time();
    let holder = Holder::start(&harness);
    assert_snapshot!(ageless(&harness.refused(TWO_STATE, "apply --auto-approve")));
    for words in [
        "destroy --auto-approve",
        "state rm default/web/0",
        "state mv default/web/0 default/web/7",
        "import default/web/3 sim-1",
    ] {
        let ended = harness.refused(TWO_STATE, words);
        let holds = "the state is locked by tester@testhost, process ";
        // An import looks at the instance before anything else.
        assert!(
            ended.stderr.contains(holds) || words.starts_with("import"),
            "{ended}"
        );
    }
    drop(holder);
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn what_only_reads_never_waits() {
    let harness = Harness::applied(TWO).in_real_time();
    harness.ok("plan --out saved.plan");
    let _holder = Holder::start(&harness);
    for words in READING {
        // Even with all the patience in the world: it would wait until the test is killed.
        let ended = harness.run(&format!("{words} --lock-timeout 1000h"));
        assert!(matches!(ended.code, Some(0 | 2)), "{ended}");
        assert!(!ended.stderr.contains("Waiting"), "{ended}");
    }
}

/// Every command that reads a state, or a plan.
const READING: &[&str] = &[
    "validate",
    "plan",
    "plan --out other.plan",
    "plan --destroy",
    "plan --refresh-only",
    "drift",
    "drift --against config",
    "show",
    "show default/web/0",
    "show saved.plan",
    "render",
    "render default/web/0 --explain",
    "explain --vars",
    "graph",
    "images",
    "sim list",
    "state list",
    "state show default/web/0",
    "state history",
    "state history 1",
    "state backup copy.db",
    "state pull",
    "doctor",
];

#[test]
fn a_lock_is_waited_for_as_long_as_was_asked() {
    let harness = Harness::applied(TWO).in_real_time();
    let holder = Holder::start(&harness);
    let words = "apply --auto-approve --lock-timeout 10m";
    let mut child = harness.command(words).spawn().unwrap();
    // While it waits it says whom for; that it says so is how the test knows that it waits.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(
        line.starts_with(
            "Waiting up to 10 minutes for the state, locked by tester@testhost, process "
        ),
        "{line}"
    );
    assert!(line.contains("for \"apply\" (id "), "{line}");
    assert!(line.contains("), held for "), "{line}");
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    harness.ok("state list");
    drop(holder);
    assert_eq!(harness.wait(words, child).code, Some(0));
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn the_doctor_proposes_nothing_while_someone_works() {
    let harness = Harness::applied(TWO).in_real_time();
    harness.ok("state rm default/web/1");
    let holder = Holder::start(&harness);
    let document = harness.run("doctor --json").json();
    let kinds: Vec<&str> = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"held"), "{kinds:?}");
    assert!(document["repair"].is_null(), "{document}");
    drop(holder);
    let document = harness.run("doctor --json").json();
    assert!(document["repair"].is_object(), "{document}");
}

#[test]
fn patience_has_an_end() {
    let harness = Harness::applied(TWO).in_real_time();
    let _holder = Holder::start(&harness);
    let ended = harness.refused(TWO_STATE, "state rm default/web/0 --lock-timeout 200ms");
    assert!(ended.stderr.contains("Waiting up to "), "{ended}");
    assert!(ended.stderr.contains("It was waited for "), "{ended}");
    let quiet = harness.refused(TWO_STATE, "state rm default/web/0 -q --lock-timeout 200ms");
    assert!(!quiet.stderr.contains("Waiting"), "{quiet}");
}

#[test]
fn a_holder_that_did_not_sign() {
    let harness = Harness::applied(TWO);
    let lock = unsigned(&harness);
    harness.edit("\"size\": 3", "\"size\": 4");
    assert_snapshot!(harness.refused(TWO_STATE, "apply --auto-approve"));
    harness.ok("plan");
    lock.unlock().unwrap();
    harness.ok("apply --auto-approve");
}

#[test]
fn a_living_lock_is_not_broken() {
    let harness = Harness::applied(TWO).in_real_time();
    let holder = Holder::start(&harness);
    let id = id_of(&harness);
    let ended = harness.refused(TWO_STATE, &format!("state unlock {id}"));
    assert_snapshot!(ended.to_string().replace(&id, "[ID]"));
    drop(holder);
    // It died without a word: its signature is all that is left, and means nothing.
    assert_snapshot!(
        harness
            .refused(TWO_STATE, "state unlock 123")
            .to_string()
            .replace(&id, "[ID]")
    );
    assert_snapshot!(
        harness
            .ok(&format!("state unlock {id}"))
            .to_string()
            .replace(&id, "[ID]")
    );
    harness.refused(TWO_STATE, &format!("state unlock {id}"));
}

#[test]
fn what_a_dead_process_left_is_no_lock() {
    let harness = Harness::applied(TWO);
    harness.write(
        &format!("{TWO_STATE}.lock"),
        r#"{"id":"1","holder":"ghost","host":"attic","pid":1,"operation":"apply","since":0}"#,
    );
    harness.edit("\"size\": 3", "\"size\": 4");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.read(&format!("{TWO_STATE}.lock")), b"");
}
