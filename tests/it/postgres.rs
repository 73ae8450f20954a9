//! Commands on a state that a `PostgreSQL` server keeps.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use insta::assert_snapshot;

use crate::harness::{CANARY, Ended, Harness, TWO};

const KEY: &str = "nstance-key-1-0000000000000000000000000000000000000000000000000000000000000007";

/// A folder whose state is in a database of its own.
struct Shared {
    harness: Harness,
    url: String,
}

impl Shared {
    /// `None` without a server.
    fn new() -> Option<Self> {
        Some(Self {
            harness: Harness::with(TWO),
            url: database()?,
        })
    }
    fn run(&self, words: &str) -> Ended {
        self.run_with(words, Some(KEY))
    }

    fn run_with(&self, words: &str, key: Option<&str>) -> Ended {
        let mut command = self.harness.command(words);
        command.env("NSTANCE_STATE", &self.url);
        command.envs(key.map(|key| ("NSTANCE_STATE_KEY", key)));
        self.harness.end(words, command)
    }

    fn ok(&self, words: &str) -> Ended {
        let ended = self.run(words);
        assert_eq!(ended.code, Some(0), "{ended}");
        ended
    }

    /// What a command says, without what differs from run to run.
    fn said(&self, ended: &Ended) -> String {
        let (database, rest) = self.url.split_once("?host=").unwrap();
        let database = database.rsplit('/').next().unwrap();
        let folder = rest.split('&').next().unwrap();
        ended
            .to_string()
            .replace(folder, "[SOCKET]")
            .replace(database, "[DATABASE]")
    }
}

/// The URL of a new database; `None` without a server, which is an error in CI.
pub(crate) fn database() -> Option<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let Ok(server) = std::env::var("NSTANCE_TEST_POSTGRES") else {
        assert!(
            std::env::var("CI").is_err(),
            "NSTANCE_TEST_POSTGRES names no server: cargo xtask test --all starts one"
        );
        return None;
    };
    let count = COUNT.fetch_add(1, Ordering::SeqCst);
    let name = format!("it{}_{count}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    Some(server.replacen("/postgres?", &format!("/{name}?"), 1))
}

fn psql(url: &str, statements: &str) {
    let ran = Command::new("psql")
        .args([url, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"])
        .args(["--command", statements])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn a_fleet_lives_with_its_state_on_a_server() {
    let Some(shared) = Shared::new() else { return };
    assert_snapshot!("no_tables", shared.said(&shared.run("plan")));
    assert_snapshot!("tables", shared.said(&shared.ok("state migrate")));
    assert_snapshot!("tables_again", shared.said(&shared.ok("state migrate")));
    let keyless = shared.run_with("apply --auto-approve", None);
    assert_snapshot!("no_key", keyless.stderr);
    shared.ok("apply --auto-approve");
    assert!(shared.ok("plan").stdout.contains("No changes."));
    assert_eq!(shared.ok("state list").stdout.lines().count(), 5);
    assert!(shared.ok("state history").stdout.contains("apply"));
    // The server ignores the password; what is printed must not have it.
    let url = format!("{}&password={CANARY}", shared.url);
    for words in ["plan --out saved.plan", "plan", "doctor", "state list"] {
        let mut command = shared.harness.command(&format!("{words} --state {url}"));
        command.env("NSTANCE_STATE_KEY", KEY);
        let ended = shared.harness.end("…", command);
        assert_eq!(ended.code, Some(0), "{ended}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains(CANARY), "{said}");
    }
    // Nothing of it is in the folder, and other machines can't open it without the key.
    let states: Vec<String> = shared.harness.files();
    assert!(
        !states.iter().any(|name| name.ends_with("one.db")),
        "{states:?}"
    );
    let keyless = shared.run_with("plan", None);
    assert_snapshot!("plan_without_key", shared.said(&keyless));
    shared.ok("state mv default/web/2 default/web/9");
    shared.ok("state undo --auto-approve");
    shared.ok("state rm default/web/2");
    shared.ok("state undo --auto-approve");
    let unnamed = shared.run("state rekey");
    assert_eq!(unnamed.code, Some(1), "{unnamed}");
    shared.ok("doctor");
    let unlocked = shared.run("state unlock nobody");
    assert_snapshot!("unlock", shared.said(&unlocked));
    shared.ok("destroy --auto-approve");
    assert_eq!(shared.ok("state list").stdout, "");
}

#[test]
fn a_state_moves_to_a_server_and_back() {
    let Some(shared) = Shared::new() else { return };
    let local = |words: &str| {
        let mut command = shared.harness.command(words);
        command.env("NSTANCE_STATE_KEY", KEY);
        shared.harness.end(words, command)
    };
    assert_eq!(local("apply --auto-approve").code, Some(0));
    let history = local("state history --json").stdout;
    let there = format!("state migrate --to {}", shared.url);
    let refused = local(&there);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("has no tables"), "{refused}");
    shared.ok("state migrate");
    assert_snapshot!("moved", shared.said(&local(&there)));
    assert!(shared.ok("plan").stdout.contains("No changes."));
    let kept = shared.ok("state history --json").stdout;
    let entries = |text: &str| text.matches("\"operation\"").count();
    assert_eq!(entries(&kept), entries(&history) + 1);
    // What was left behind is only read.
    assert_eq!(local("state list").code, Some(0));
    let plan = local("plan");
    assert!(plan.stdout.contains("No changes."), "{plan}");
    assert!(plan.stderr.contains("the state was moved to"), "{plan}");
    let refused = local("apply --auto-approve --replace default/web/0");
    assert_snapshot!("left_behind", shared.said(&refused));
    let again = local(&there);
    assert_eq!(again.code, Some(1), "{again}");
    // And back, to another file.
    let back = shared.ok("state migrate --to sqlite:back.db");
    assert_snapshot!("moved_back", shared.said(&back));
    let plan = local("plan --state sqlite:back.db");
    assert!(plan.stdout.contains("No changes."), "{plan}");
    let refused = shared.run("apply --auto-approve --replace default/web/0");
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("the state was moved"), "{refused}");
}

#[test]
fn a_password_is_never_shown() {
    let harness = Harness::with(TWO);
    for url in [
        format!("postgresql://me:{CANARY}@127.0.0.1:1/db?sslmode=disable"),
        format!("postgresql://127.0.0.1:1/db?sslmode=disable&user=me&password={CANARY}"),
        format!("postgresql://me:{CANARY}@127.0.0.1:1/db?sslmode=prefer"),
        format!("postgresql://me:{CANARY}@127.0.0.1:port/db"),
    ] {
        for words in [
            "plan",
            "plan --json",
            "apply --auto-approve --json",
            "doctor",
            "state list",
            "state migrate",
            "show",
        ] {
            let words = format!("{words} --state {url}");
            let mut command = harness.command(&words);
            command.env("PGCONNECT_TIMEOUT", "5");
            let ended = harness.end("…", command);
            assert_ne!(ended.code, Some(0), "{ended}");
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!said.contains(CANARY), "{said}");
        }
    }
}
