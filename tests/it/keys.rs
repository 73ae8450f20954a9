//! Keys: where they come from, what is sealed with them, and what happens without them.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use insta::assert_snapshot;
use nstance::plan::change::{Fallback, InstanceView, LastGood};
use nstance::plan::file::{self, PlanFileError};
use nstance::sensitivity::Marks;
use nstance_state::{Backend as _, Identity, SqliteFile, Timestamp};

use crate::harness::{Ended, Harness, STARTER, STARTER_STATE, TWO, TWO_STATE};

/// A secret of the configuration, which reaches specs, requests and plans.
const CANARY: &str = "canary-4d81c0b7a6";
/// Where the key is made.
const FILE: &str = ".nstance/key";

fn key(digit: char) -> String {
    format!("nstance-key-1-{}", digit.to_string().repeat(64))
}

/// Two groups with a secret in their vars and userdata.
fn secret() -> String {
    let vars = format!(r#""vars": {{ "ROLE": "{CANARY}" }}"#);
    let config = TWO.replace(r#""vars": { "ROLE": "plain" }"#, &vars);
    assert!(config.contains(CANARY));
    config
}

/// Runs a command with something in its environment.
fn with(harness: &Harness, environment: &[(&str, &str)], words: &str) -> Ended {
    let mut command: Command = harness.command(words);
    command.envs(environment.iter().copied());
    harness.end(words, command)
}

#[track_caller]
fn ok_with(harness: &Harness, environment: &[(&str, &str)], words: &str) -> Ended {
    let ended = with(harness, environment, words);
    assert_eq!(ended.code, Some(0), "{ended}");
    ended
}

/// Asserts that a command is refused and the state left alone; what it said.
#[track_caller]
fn refused_with(harness: &Harness, environment: &[(&str, &str)], words: &str) -> Ended {
    let before = harness.bytes(TWO_STATE);
    let ended = with(harness, environment, words);
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(harness.bytes(TWO_STATE) == before, "{ended}");
    ended
}

/// The files below the folder that hold the canary in clear. The cloud and the configuration do.
fn in_clear(harness: &Harness) -> Vec<String> {
    let needle = CANARY.as_bytes();
    let has = |name: &String| {
        let bytes = harness.read(name);
        bytes.windows(needle.len()).any(|window| window == needle)
    };
    let others = |name: &String| !name.contains("sim.db") && name != "nstance.jsonc";
    harness
        .files()
        .into_iter()
        .filter(others)
        .filter(has)
        .collect()
}

fn lines(harness: &Harness, file: &str) -> Vec<String> {
    let text = String::from_utf8(harness.read(file)).unwrap();
    let keys = text.lines().filter(|line| !line.starts_with('#'));
    keys.map(str::to_owned).collect()
}

#[test]
fn the_first_apply_makes_a_key_and_a_plan_makes_none() {
    let harness = Harness::with(&secret());
    harness.ok("plan --out saved.plan");
    assert!(!harness.path(FILE).exists());
    assert_snapshot!(harness.ok("apply --auto-approve"));
    let mode = std::fs::metadata(harness.path(FILE))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(lines(&harness, FILE).len(), 1);
    assert_eq!(in_clear(&harness), [""; 0]);
    // It isn't made twice, and said once.
    let key = harness.read(FILE);
    harness.edit("\"size\": 3", "\"size\": 4");
    let again = harness.ok("apply --auto-approve");
    assert!(!again.stderr.contains("key"), "{again}");
    assert_eq!(harness.read(FILE), key);
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn without_the_key_nothing_is_touched() {
    let harness = Harness::applied(TWO);
    harness.ok("plan --out saved.plan");
    std::fs::rename(harness.path(FILE), harness.path("kept")).unwrap();
    let needs = |ended: &Ended| {
        assert!(
            ended.stderr.contains("the state is sealed with the key "),
            "{ended}"
        );
        assert!(
            ended.stderr.contains("NSTANCE_STATE_KEY, --key-file FILE"),
            "{ended}"
        );
    };
    for words in [
        "plan",
        "plan --out other.plan",
        "apply --auto-approve",
        "destroy --auto-approve",
        "drift",
        "show",
        "state show default/web/0",
        "state mv default/web/0 default/web/7",
        "state rm default/web/0",
        "state rekey",
    ] {
        needs(&refused_with(&harness, &[], words));
        let wrong = [("NSTANCE_STATE_KEY", &*key('2'))];
        needs(&refused_with(&harness, &wrong, words));
    }
    let ended = refused_with(&harness, &[], "apply saved.plan");
    assert!(
        ended
            .stderr
            .contains("the plan can't be opened: it is sealed with the key "),
        "{ended}"
    );
    assert!(!harness.path(FILE).exists() && !harness.path("other.plan").exists());
    // What needs no key.
    assert!(harness.ok("state list").stdout.contains("default/web/0"));
    assert!(harness.ok("state history").stdout.contains("apply"));
    harness.ok("state backup copy.db");
    // The key makes it all well again, under another name and from elsewhere too.
    harness.ok("--key-file kept apply saved.plan");
    let text = lines(&harness, "kept").remove(0);
    ok_with(&harness, &[("NSTANCE_STATE_KEY", &text)], "plan");
    ok_with(&harness, &[("NSTANCE_KEY_FILE", "kept")], "plan");
}

#[test]
fn wrong_keys_are_named() {
    let harness = Harness::with(TWO);
    let (one, two) = (key('1'), key('2'));
    ok_with(
        &harness,
        &[("NSTANCE_STATE_KEY", &one)],
        "apply --auto-approve",
    );
    assert!(!harness.path(FILE).exists(), "no other is made");
    harness.write("keys", format!("# mine\n\n{two}\n"));
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(harness.path("keys"), private).unwrap();
    let both = [("NSTANCE_STATE_KEY", &*two), ("NSTANCE_KEY_FILE", "keys")];
    assert_snapshot!("wrong_none", refused_with(&harness, &[], "plan"));
    assert_snapshot!("wrong_both", refused_with(&harness, &both, "plan"));
    let passphrase = [("NSTANCE_STATE_PASSPHRASE", "open sesame")];
    assert_snapshot!(
        "wrong_passphrase",
        refused_with(&harness, &passphrase, "plan")
    );
    let no_key = [("NSTANCE_STATE_KEY", "hunter2")];
    let ended = refused_with(&harness, &no_key, "plan");
    assert!(!ended.to_string().contains("hunter2"), "{ended}");
    assert_snapshot!("no_key", ended);
    assert_snapshot!(
        "no_key_json",
        refused_with(&harness, &no_key, "plan --json")
    );
}

#[test]
fn key_files_that_cant_be_used() {
    let harness = Harness::applied(TWO);
    let mode = |bits| {
        let bits = std::fs::Permissions::from_mode(bits);
        std::fs::set_permissions(harness.path(FILE), bits).unwrap();
    };
    for bits in [0o640, 0o604, 0o620] {
        mode(bits);
        let ended = refused_with(&harness, &[], "plan");
        assert!(
            ended
                .stderr
                .contains("others may read or write the key file"),
            "{ended}"
        );
    }
    assert_snapshot!("loose", refused_with(&harness, &[], "apply --auto-approve"));
    mode(0o600);
    let large = std::fs::File::create(harness.path("large")).unwrap();
    let owner = std::fs::Permissions::from_mode(0o600);
    large.set_permissions(owner).unwrap();
    large.set_len((1 << 20) + 1).unwrap();
    let ended = refused_with(&harness, &[], "plan --key-file large");
    assert!(
        ended
            .stderr
            .contains("it has more than 1 MiB, which is the most that is read"),
        "{ended}"
    );
    assert_snapshot!(
        "not_there",
        refused_with(&harness, &[], "plan --key-file nowhere")
    );
    harness.write(FILE, "# nothing else\n");
    assert_snapshot!("empty", refused_with(&harness, &[], "plan"));
    harness.write(FILE, format!("# one\n{}\nhunter2\n", key('1')));
    let ended = refused_with(&harness, &[], "plan");
    assert!(!ended.to_string().contains("hunter2"), "{ended}");
    assert_snapshot!("no_key_in_it", ended);
    // A first apply doesn't make a file that was asked for by name: it may be a slip.
    let fresh = Harness::with(TWO);
    let ended = fresh.run("apply --auto-approve --key-file nowhere");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(!fresh.path("nowhere").exists() && !fresh.path(TWO_STATE).exists());
}

#[test]
fn a_passphrase_is_a_key() {
    let harness = Harness::with(&secret());
    let phrase = [("NSTANCE_STATE_PASSPHRASE", "correct horse battery staple")];
    ok_with(&harness, &phrase, "apply --auto-approve");
    assert!(!harness.path(FILE).exists());
    harness.edit("\"size\": 3", "\"size\": 4");
    ok_with(&harness, &phrase, "plan --out saved.plan");
    assert_eq!(in_clear(&harness), [""; 0]);
    for (environment, word) in [
        (
            vec![("NSTANCE_STATE_PASSPHRASE", "wrong")],
            "the passphrase of NSTANCE_STATE_PASSPHRASE makes another",
        ),
        (
            vec![],
            "a passphrase made it, and NSTANCE_STATE_PASSPHRASE isn't set",
        ),
    ] {
        for words in ["plan", "show saved.plan", "apply saved.plan"] {
            let ended = refused_with(&harness, &environment, words);
            assert!(ended.stderr.contains(word), "{ended}");
        }
    }
    ok_with(&harness, &phrase, "apply saved.plan");
    let text = ok_with(&harness, &phrase, "state list").stdout;
    assert_eq!(text.lines().count(), 6);
}

#[test]
fn a_saved_plan_is_sealed_wherever_there_is_a_key() {
    // Before there is a state.
    let harness = Harness::with(&secret());
    let (one, two) = (key('1'), key('2'));
    let key = [("NSTANCE_STATE_KEY", &*one)];
    ok_with(&harness, &key, "plan --out sealed.plan");
    harness.ok("plan --out clear.plan");
    let first = |name: &str| {
        let bytes = harness.read(name);
        let lines = bytes.split(|byte| *byte == b'\n').take(3);
        lines
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(first("sealed.plan")[0], "nstance plan 2");
    assert!(first("sealed.plan")[2].starts_with("sealed "));
    assert_eq!(first("clear.plan")[2], "clear");
    let mode = std::fs::metadata(harness.path("sealed.plan"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_snapshot!("plan_no_key", harness.run("apply sealed.plan"));
    let wrong = [("NSTANCE_STATE_KEY", &*two)];
    assert_snapshot!("plan_wrong_key", with(&harness, &wrong, "show sealed.plan"));
    assert!(!harness.path(TWO_STATE).exists());

    // What says which state it belongs to can't be changed.
    let plan = harness.read("sealed.plan");
    let at = plan
        .windows(7)
        .position(|window| window == b"sealed ")
        .unwrap();
    let mut forged = plan[at..].to_vec();
    forged[30] ^= 1;
    let digest = nstance::digest::sha256_hex(&forged);
    let forged = [b"nstance plan 2\n", digest.as_bytes(), b"\n", &forged].concat();
    harness.write("forged.plan", forged);
    let ended = with(&harness, &key, "apply forged.plan");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.stderr.contains("cut or edited"), "{ended}");

    ok_with(&harness, &key, "apply sealed.plan");
    assert!(!ok_with(&harness, &key, "show").stdout.is_empty());
}

#[test]
fn another_key_takes_the_place_of_the_first() {
    let harness = Harness::applied(&secret());
    harness.edit("\"size\": 3", "\"size\": 4");
    harness.ok("plan --out saved.plan");
    let first = lines(&harness, FILE);
    let ended = harness.ok("state rekey");
    assert!(
        ended
            .stdout
            .contains("a new one, the first of [FOLDER]/.nstance/key"),
        "{ended}"
    );
    let second = lines(&harness, FILE);
    assert_eq!((second.len(), &second[1]), (2, &first[0]));
    let mode = std::fs::metadata(harness.path(FILE))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // The old one isn't the state's any more, but opens what was saved before.
    refused_with(
        &harness,
        &[
            ("NSTANCE_STATE_KEY", &first[0]),
            ("NSTANCE_KEY_FILE", "nowhere"),
        ],
        "plan",
    );
    harness.write("only", format!("{}\n", second[0]));
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(harness.path("only"), private).unwrap();
    harness.ok("plan --key-file only");
    harness.ok("apply saved.plan");
    assert_eq!(harness.agrees(""), 6);
    assert!(harness.ok("state history").stdout.contains("state rekey"));
    assert_eq!(in_clear(&harness), [""; 0]);

    // From the environment, from a passphrase, from a file that is there, and one that isn't.
    let one = key('1');
    let text = ok_with(&harness, &[("NSTANCE_NEW_STATE_KEY", &one)], "state rekey");
    assert!(
        text.stdout.contains("the one of NSTANCE_NEW_STATE_KEY"),
        "{text}"
    );
    refused_with(&harness, &[], "plan");
    let current = [("NSTANCE_STATE_KEY", &*one)];
    ok_with(&harness, &current, "plan");
    let phrase = [
        ("NSTANCE_STATE_KEY", &*one),
        ("NSTANCE_NEW_STATE_PASSPHRASE", "sesame"),
    ];
    ok_with(&harness, &phrase, "state rekey");
    let phrase = [("NSTANCE_STATE_PASSPHRASE", "sesame")];
    ok_with(&harness, &phrase, "plan");
    ok_with(&harness, &phrase, "state rekey --new-key-file fresh");
    assert_eq!(lines(&harness, "fresh").len(), 1);
    harness.ok("plan --key-file fresh");
    harness.ok("state rekey --key-file fresh --new-key-file only");
    harness.ok("plan --key-file only");
    assert_eq!(lines(&harness, "only"), second[..1]);
    assert_eq!(harness.agrees("--key-file only"), 6);
}

#[test]
fn a_new_key_that_is_none() {
    let harness = Harness::with(TWO);
    let (one, two) = (key('1'), key('2'));
    let old = ("NSTANCE_STATE_KEY", &*one);
    ok_with(&harness, &[old], "apply --auto-approve");
    let new = |name, value| [old, (name, value)];
    assert_snapshot!(
        "rekey_same",
        refused_with(&harness, &new("NSTANCE_NEW_STATE_KEY", &one), "state rekey")
    );
    assert_snapshot!(
        "rekey_no_key",
        refused_with(
            &harness,
            &new("NSTANCE_NEW_STATE_KEY", "hunter2"),
            "state rekey"
        )
    );
    assert_snapshot!(
        "rekey_several",
        refused_with(
            &harness,
            &new("NSTANCE_NEW_STATE_KEY", &two),
            "state rekey --new-key-file a"
        )
    );
    let ended = refused_with(&harness, &[old], "state rekey --new-key-file nstance.jsonc");
    assert!(
        ended.stderr.contains("the key file nstance.jsonc"),
        "{ended}"
    );
    ok_with(&harness, &[old], "plan");
}

#[test]
fn killed_at_any_moment_one_of_the_keys_opens() {
    let harness = Harness::applied(TWO);
    let mut killed = 0;
    // On a busy machine, some end before they are killed.
    for round in (0..12).chain(std::iter::repeat_n(0, 200)) {
        if round == 0 && killed > 0 {
            break;
        }
        let before = lines(&harness, FILE).len();
        let mut child = harness.command("state rekey").spawn().unwrap();
        // Once the new key is in the file, it is a matter of moments; a bit later each time.
        while lines(&harness, FILE).len() == before && child.try_wait().unwrap().is_none() {}
        for _ in 0..round {
            harness.run("--version");
        }
        child.kill().unwrap();
        killed += usize::from(child.wait().unwrap().code().is_none());
        let ended = harness.ok("plan --detailed-exitcode");
        assert!(ended.stdout.contains("No changes"), "{ended}");
    }
    assert!(killed > 0, "none ended before it was done");
    assert!(lines(&harness, FILE).len() > 2);
}

#[test]
fn shards_share_the_key_of_their_folder() {
    let harness = Harness::empty();
    harness.write("a.jsonc", TWO);
    harness.write("b.jsonc", TWO.replace("\"one\"", "\"two\""));
    harness.ok("-c a.jsonc -c b.jsonc apply --auto-approve");
    assert_eq!(lines(&harness, FILE).len(), 1);
    harness.ok("-c a.jsonc -c b.jsonc state rekey");
    assert_eq!(lines(&harness, FILE).len(), 2);
    // One alone leaves the other with the key that it has.
    harness.ok("-c a.jsonc state rekey");
    assert_eq!(lines(&harness, FILE).len(), 3);
    harness.ok("-c a.jsonc -c b.jsonc plan --detailed-exitcode");
    // None is touched where one can't be opened.
    let keys = lines(&harness, FILE);
    harness.write(FILE, format!("{}\n", keys[0]));
    let states = [".nstance/test/one.db", ".nstance/test/two.db"];
    let before = states.map(|state| harness.bytes(state));
    let ended = harness.run("-c a.jsonc -c b.jsonc state rekey");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(states.map(|state| harness.bytes(state)) == before);
    assert_eq!(lines(&harness, FILE), keys[..1]);
}

#[test]
fn a_state_in_clear_is_sealed_by_the_first_that_writes() {
    let harness = Harness::with(&secret());
    let identity = Identity {
        cluster: "test".into(),
        shard: "one".into(),
        provider: "sim".into(),
    };
    let file = SqliteFile::new(harness.path(TWO_STATE), None);
    drop(
        file.create(&identity, "lineage", Timestamp(1), None)
            .unwrap(),
    );
    let before = harness.bytes(TWO_STATE);
    harness.ok("plan");
    assert!(harness.bytes(TWO_STATE) == before);
    assert!(!harness.path(FILE).exists());
    let ended = harness.ok("apply --auto-approve");
    assert!(
        ended.stderr.contains("the state is sealed from now on"),
        "{ended}"
    );
    assert!(harness.path(FILE).exists());
    assert_eq!(harness.agrees(""), 5);
    assert_eq!(in_clear(&harness), [""; 0]);
    let again = harness.ok("apply --auto-approve");
    assert!(!again.stderr.contains("sealed"), "{again}");
}

#[test]
fn a_plan_keeps_answers_in_a_state_of_this_schema_and_migrates_none() {
    let harness = Harness::applied(STARTER);
    let database = || rusqlite::Connection::open(harness.path(STARTER_STATE)).unwrap();
    let forget = "DELETE FROM images; DELETE FROM observation_cache;";
    database().execute_batch(forget).unwrap();
    let before = harness.bytes(STARTER_STATE);
    harness.ok("plan");
    assert!(harness.bytes(STARTER_STATE) != before);

    let older = "DELETE FROM images; DROP TABLE observation_cache; DROP TABLE rollout_groups;
        DROP TABLE rollout_slots; DROP TABLE rollouts; DROP TABLE rollout_requests;
        DROP TABLE last_good; ALTER TABLE meta DROP COLUMN moved_to; PRAGMA user_version = 2";
    database().execute_batch(older).unwrap();
    let (before, files) = (harness.bytes(STARTER_STATE), harness.files());
    harness.ok("plan");
    assert!(harness.bytes(STARTER_STATE) == before);
    assert_eq!(harness.files(), files);
    harness.ok("apply --auto-approve");
    assert!(
        harness
            .path(&format!("{STARTER_STATE}.backup-v2-1"))
            .exists()
    );
}

#[test]
fn what_was_changed_behind_its_back_stops_a_plan() {
    let harness = Harness::applied(TWO);
    let database = rusqlite::Connection::open(harness.path(TWO_STATE)).unwrap();
    database
        .execute_batch(
            "CREATE TEMP TABLE old AS SELECT id, size, body FROM specs;
             UPDATE specs SET (size, body) =
                 (SELECT size, body FROM old WHERE old.id <> specs.id)",
        )
        .unwrap();
    drop(database);
    harness.edit("\"plain\"", "\"fancy\"");
    let ended = refused_with(&harness, &[], "plan");
    assert_snapshot!(ended);
    refused_with(&harness, &[], "show default/web/0");
}

#[test]
fn a_plan_with_secrets_is_saved_with_a_key_or_not_at_all() {
    let harness = Harness::with(TWO);
    harness.ok("plan --out saved.plan");
    let saved = harness.path("saved.plan");
    let nobody = nstance_state::Key::generate().unwrap();
    let (clear, _) = file::read(&saved, &nobody).unwrap();
    assert!(!clear.holds_secrets());
    let sensitive = |view: &InstanceView| InstanceView {
        marks: std::sync::Arc::new(Marks::whole()),
        ..view.clone()
    };
    let planned = clear.changes[0].after.as_deref().unwrap().clone();

    let mut after = clear.clone();
    after.changes[0].after = Some(Box::new(sensitive(&planned)));
    let mut fallback = clear.clone();
    fallback.changes[0].fallback = Some(Box::new(Fallback {
        view: sensitive(&planned),
        deferred: None,
    }));
    let mut last_good = clear.clone();
    let good = LastGood {
        text: CANARY.to_owned(),
        is_sensitive: true,
    };
    last_good
        .last_good
        .insert("default/web".to_owned(), good.clone());
    for plan in [after, fallback, last_good] {
        assert!(plan.holds_secrets());
        let before = harness.read("saved.plan");
        let refused = file::write(&saved, &plan, None).unwrap_err();
        assert!(matches!(refused, PlanFileError::Secret), "{refused}");
        assert_eq!(harness.read("saved.plan"), before);
        file::write(&saved, &plan, Some(&nobody.clone().into())).unwrap();
        assert_eq!(in_clear(&harness), [""; 0]);
        let (again, _) = file::read(&saved, &nobody).unwrap();
        assert!(again.holds_secrets());
    }
    // What nothing sensitive went into may be saved in clear text.
    let mut open = clear;
    let good = LastGood {
        is_sensitive: false,
        ..good
    };
    open.last_good.insert("default/web".to_owned(), good);
    assert!(!open.holds_secrets());
}

#[test]
fn a_secret_that_no_instance_has_is_part_of_what_a_group_goes_back_to() {
    let config = |on_failure: &str| {
        format!(
            r#"
variable "token" {{
  type      = string
  sensitive = true
}}
cluster {{ id = "test" }}
shard {{
  id = "one"
  infra {{
    provider = "sim"
    region   = "r"
    zone     = "z"
  }}
}}
templates_lib = {{ unused = var.token }}
group "web" {{
  instance_type = "small"
  size          = 1
  update {{ on_failure = "{on_failure}" }}
}}
"#
        )
    };
    let harness = Harness::empty();
    let secret = [("NSTANCE_VAR_token", CANARY)];
    harness.write("main.hcl", config("stop"));
    ok_with(&harness, &secret, "plan --out stop.plan");
    harness.write("main.hcl", config("rollback"));
    let refused = refused_with(&harness, &secret, "plan --out rollback.plan");
    let why = "it holds secrets, and there is no key";
    assert!(refused.stderr.contains(why), "{refused}");
    assert!(!harness.path("rollback.plan").exists());
    let keyed = [secret[0], ("NSTANCE_STATE_KEY", &*key('2'))];
    ok_with(&harness, &keyed, "plan --out rollback.plan");
    ok_with(&harness, &keyed, "apply rollback.plan");
    assert_eq!(in_clear(&harness), [""; 0]);
}
