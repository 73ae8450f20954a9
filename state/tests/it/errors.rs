//! What errors say.

use std::io;
use std::path::PathBuf;

use nstance_state::{KeyError, KeyId, LockInfo, SpecDigest, StateError, Timestamp};

use crate::common::{digest, identity};

/// Every case, so that a new one has to be thought about here.
fn every() -> Vec<StateError> {
    let path = || PathBuf::from("/states/prod.db");
    let holder = || {
        Box::new(LockInfo {
            id: "7f3a".into(),
            holder: "ann".into(),
            host: "build-7".into(),
            pid: 4711,
            operation: "apply".into(),
            since: Timestamp(0),
        })
    };
    let address = || "default/web/3".to_owned();
    let mut found = identity();
    found.cluster = "dev".into();
    vec![
        StateError::NotFound { path: path() },
        StateError::Exists { path: path() },
        StateError::NotAState {
            path: path(),
            why: "the file is empty".into(),
        },
        StateError::Corrupt {
            path: path(),
            detail: "malformed".into(),
        },
        StateError::Newer {
            path: path(),
            found: 7,
            supported: 1,
        },
        StateError::Foreign {
            path: path(),
            expected: Box::new(identity()),
            found: Box::new(found),
        },
        StateError::NoKey {
            path: path(),
            needed: KeyId([0xab; 8]),
            reason: KeyError {
                why: "no key was given".into(),
                hint: Some("Set NSTANCE_STATE_KEY".into()),
            },
        },
        StateError::Fenced { path: path() },
        StateError::Random(getrandom::Error::UNSUPPORTED.into()),
        StateError::Locked { holder: holder() },
        StateError::NotLocked { path: path() },
        StateError::WrongLock {
            asked: "1".into(),
            holder: holder(),
        },
        StateError::ReadOnly { path: path() },
        StateError::Full { path: path() },
        StateError::Busy { path: path() },
        StateError::Changed { path: path() },
        StateError::Occupied {
            address: address(),
            instance_id: "knd1".into(),
        },
        StateError::Claimed {
            provider_id: "i-1".into(),
            address: address(),
        },
        StateError::Unsettled { address: address() },
        StateError::NoRecord { address: address() },
        StateError::MissingSpec {
            digest: digest(0xab),
        },
        StateError::NotOpen {
            what: "intent",
            id: 5,
        },
        StateError::Io {
            path: path(),
            source: io::Error::other("it fell off"),
        },
        StateError::Sqlite {
            path: path(),
            source: rusqlite::Error::InvalidQuery,
        },
    ]
}

#[test]
fn every_error_says_what_is_wrong() {
    let expected = "\
there is no state at /states/prod.db
/states/prod.db exists already
the file is empty, so it is not a state: /states/prod.db
the state is damaged (malformed): /states/prod.db
the state has schema version 7, and this version knows up to 1: /states/prod.db
the state belongs to cluster \"dev\", shard \"us-west-2a\", provider \"aws\", not to cluster \
\"prod\", shard \"us-west-2a\", provider \"aws\": /states/prod.db
the state is sealed with the key abababababababab, and no key was given: /states/prod.db
another process has taken over as the writer of the state: /states/prod.db
nothing can be sealed: the system gives no random bytes: getrandom: this target is not supported
the state is locked by ann@build-7, process 4711, for \"apply\" (id 7f3a)
the state is not locked: /states/prod.db
the lock's id is not \"1\": the state was locked by ann@build-7, process 4711, for \"apply\" \
(id 7f3a)
the state folder is not writable: /states/prod.db
the disk is full, so nothing was written to /states/prod.db
another process is writing to the state: /states/prod.db
the state was changed while it was being read: /states/prod.db
default/web/3 is occupied by knd1
i-1 is recorded already, as default/web/3
an operation on default/web/3 has not been settled yet
nothing is recorded as default/web/3
the spec ab00000000000000000000000000000000000000000000000000000000000000 is not in the state
there is no open intent 5 in the state
can't access /states/prod.db: it fell off
the database refused (Query is not read-only): /states/prod.db";
    let said: Vec<String> = every().iter().map(ToString::to_string).collect();
    assert_eq!(said.join("\n"), expected);
}

#[test]
fn hints_are_sentences_without_a_full_stop() {
    let hints: Vec<String> = every().iter().filter_map(StateError::hint).collect();
    assert!(hints.len() > 12);
    for hint in &hints {
        assert!(hint.starts_with(char::is_uppercase), "{hint}");
        assert!(!hint.ends_with('.'), "{hint}");
    }
    assert!(hints.contains(&"The right id is 7f3a".to_owned()));
}

#[test]
fn a_digest_is_written_and_read() {
    let digest = SpecDigest(std::array::from_fn(|index| index as u8 * 7));
    let text = digest.to_string();
    assert_eq!(text.len(), 64);
    assert!(text.starts_with("00070e15"));
    assert_eq!(text.parse::<SpecDigest>().unwrap(), digest);
    assert_eq!(text.to_uppercase().parse::<SpecDigest>().unwrap(), digest);
    for wrong in [
        "",
        "00",
        &text[1..],
        &format!("{text}0"),
        &text.replace("07", "0g"),
    ] {
        wrong.parse::<SpecDigest>().unwrap_err();
    }
    // As many bytes as a digest has digits.
    "ä".repeat(32).parse::<SpecDigest>().unwrap_err();
}
