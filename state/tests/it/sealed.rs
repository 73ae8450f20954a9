//! What is sealed: that nothing of it lies in clear, that it opens where it belongs and nowhere
//! else, and what works without the key.

mod tampered;

use std::fs;
use std::io::Read;
use std::sync::Arc;

use nstance_state::{
    ApplyId, Derivation, FetchedRow, HistoryIds, HistoryItem, Intent, Key, KeyError, KeyNeed, Keys,
    NewApply, NewKey, NewRequest, NewRollout, Outcome, Record, RolloutGroup, RolloutId,
    RolloutSlot, RolloutStatus, SqliteStore, StateError, Timestamp, Transaction,
};
use rusqlite::Connection;

use crate::common::{Place, content, creation, digest, identity, put, record};

/// No word that a state or a compressor has by itself.
const CANARY: &str = "canary-9f3a7c51e2";
const URL: &str = "https://user:canary-9f3a7c51e2@example.com/userdata?sig=canary-9f3a7c51e2";

fn sealed(key: &Key) -> (Place, SqliteStore) {
    let (place, store) = Place::new();
    let mut store = store.with_keys(Arc::new(key.clone()));
    rekey(&mut store, key);
    (place, store)
}

fn rekey(store: &mut SqliteStore, key: &Key) {
    let new = NewKey::from(key.clone());
    store
        .transaction(Timestamp(2), |transaction| transaction.rekey(&new))
        .unwrap();
    assert!(store.scrub().unwrap());
}

fn open(place: &Place, key: &Key) -> SqliteStore {
    let store = SqliteStore::open(&place.path, Some(&identity())).unwrap();
    store.with_keys(Arc::new(key.clone()))
}

fn secret_intent(slot: u32) -> Intent {
    Intent {
        spec: Some(digest(7)),
        request: format!("{{\"UserData\": \"{CANARY}\"}}").into_bytes(),
        ..creation("default/web", slot)
    }
}

/// The canary in every place that may hold what was rendered. Slots 5 and 6 stay open.
fn fill(transaction: &mut Transaction<'_>) -> nstance_state::Result<ApplyId> {
    let apply = transaction.start_apply(NewApply {
        who: "me".into(),
        host: "here".into(),
        pid: 1,
        operation: "apply".into(),
        plan_digest: None,
    })?;
    let spec = format!("{{\"vars\": {{\"password\": \"{CANARY}\"}}}}");
    transaction.put_spec(digest(7), spec.as_bytes())?;
    transaction.put_record(Record {
        spec: digest(7),
        observed: Some(digest(8)),
        ..record("default/web", 0)
    })?;
    let ids = transaction.open_intents(&[secret_intent(4), secret_intent(5), secret_intent(6)])?;
    let message = format!("InvalidParameterValue: \"{CANARY}\"");
    let outcome = Outcome::Failed {
        message: message.clone(),
    };
    transaction.close_intent(ids[0], outcome)?;
    for result in [message.as_str(), "done"] {
        transaction.record_history_item(
            apply,
            &HistoryItem {
                address: "default/web/4".into(),
                action: "create".into(),
                before: HistoryIds::default(),
                after: HistoryIds::default(),
                result: result.to_owned(),
                detail_json: if result == "done" {
                    "{}".to_owned()
                } else {
                    format!("{{\"why\": \"{CANARY}\"}}")
                },
                at: Timestamp(0),
            },
        )?;
    }
    transaction.put_fetched(FetchedRow {
        url: URL.to_owned(),
        digest: CANARY.to_owned(),
        body: CANARY.as_bytes().to_vec(),
        fetched_at: Timestamp(9),
    })?;
    transaction.put_observation_cache(CANARY.as_bytes())?;
    let rollout = transaction.start_rollout(&NewRollout {
        plan_digest: Some("digest".into()),
        plan: CANARY.as_bytes().to_vec(),
        status: RolloutStatus::Running,
    })?;
    for group in ["default/web", "default/db"] {
        let progress = RolloutGroup {
            group: group.into(),
            stage: "canary".into(),
            since: Timestamp(0),
            detail: format!("{group}: {CANARY}"),
        };
        transaction.put_rollout_group(rollout, progress)?;
        transaction.put_last_good(group, format!("{group}: {CANARY}").as_bytes())?;
    }
    for slot in [4, 5] {
        let progress = RolloutSlot {
            address: format!("default/web/{slot}"),
            instance_id: format!("knd-{slot}"),
            stage: "ready".into(),
            since: Timestamp(0),
            detail: format!("{slot}: {CANARY}"),
        };
        transaction.put_rollout_slot(rollout, progress)?;
    }
    let kind = "pause".to_owned();
    let who = "me".to_owned();
    let request = NewRequest {
        group: None,
        kind,
        who,
    };
    transaction.add_request(&request)?;
    Ok(apply)
}

/// Everything that [`fill`] stored of its rollout can be read as it was given.
fn assert_rollout_is_filled(store: &SqliteStore) {
    let rollout = store.rollout().unwrap().unwrap();
    let groups: Vec<_> = rollout.groups.iter().map(|group| &*group.detail).collect();
    let both = ["default/db", "default/web"];
    assert_eq!(groups, both.map(|group| format!("{group}: {CANARY}")));
    let slots: Vec<_> = rollout.slots.iter().map(|slot| &*slot.detail).collect();
    assert_eq!(slots, [4, 5].map(|slot| format!("{slot}: {CANARY}")));
    let plan = store.rollout_plan(rollout.id).unwrap();
    assert_eq!(plan.as_deref(), Some(CANARY.as_bytes()));
    let last_good = store.last_good(&both).unwrap();
    for group in both {
        assert_eq!(last_good[group], format!("{group}: {CANARY}").as_bytes());
    }
    assert_eq!(store.rollout_requests().unwrap()[0].kind, "pause");
}

/// Everything that [`fill`] stored can be read as it was given.
fn assert_filled(store: &SqliteStore, apply: ApplyId) {
    let snapshot = store.snapshot().unwrap();
    let record = snapshot.live("default/web", 0).unwrap();
    assert_eq!((record.spec, record.observed), (digest(7), Some(digest(8))));
    let specs = store.specs([digest(7)].into_iter()).unwrap();
    assert!(String::from_utf8_lossy(&specs[&digest(7)]).contains(CANARY));
    assert_eq!(snapshot.intents.len(), 2);
    for (intent, slot) in snapshot.intents.iter().zip([5, 6]) {
        let given = secret_intent(slot);
        assert_eq!((&intent.request, intent.spec), (&given.request, given.spec));
    }
    let items = store.history_items(apply).unwrap();
    assert!(items[0].result.contains(CANARY) && items[0].detail_json.contains(CANARY));
    assert_eq!((&*items[1].result, &*items[1].detail_json), ("done", "{}"));
    let fetched = store.fetched(URL).unwrap().unwrap();
    assert_eq!((&*fetched.url, &*fetched.digest), (URL, CANARY));
    assert_eq!(fetched.body, CANARY.as_bytes());
    let cache = store.observation_cache().unwrap();
    assert_eq!(cache.as_deref(), Some(CANARY.as_bytes()));
    assert_rollout_is_filled(store);
    assert_eq!(store.check().unwrap(), []);
}

/// Where the canary is, in clear, as base64 in any alignment, or compressed.
fn canaries(place: &Place) -> Vec<String> {
    let mut found = Vec::new();
    let needles = [CANARY.as_bytes().to_vec()].into_iter().chain(base64s());
    let needles: Vec<Vec<u8>> = needles.collect();
    let has = |bytes: &[u8]| {
        needles
            .iter()
            .any(|needle| bytes.windows(needle.len()).any(|window| window == needle))
    };
    for (name, bytes) in content(place) {
        if has(&bytes) {
            found.push(format!("{name}: in clear"));
        }
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == 0x78) {
            let mut unpacked = Vec::new();
            // What comes before an error counts too: the rest may lie on another page.
            let _ = flate2::read::ZlibDecoder::new(&bytes[at..])
                .take(4096)
                .read_to_end(&mut unpacked);
            if has(&unpacked) {
                found.push(format!("{name}: compressed"));
                break;
            }
        }
    }
    found
}

/// The middle of the canary's base64, for each of the three ways it can begin.
fn base64s() -> Vec<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..3)
        .map(|skipped| {
            CANARY.as_bytes()[skipped..]
                .chunks_exact(3)
                .flat_map(|three| {
                    let bits = three
                        .iter()
                        .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
                    [18, 12, 6, 0].map(|shift| DIGITS[bits >> shift & 63])
                })
                .collect()
        })
        .collect()
}

#[test]
fn nothing_that_was_rendered_lies_in_clear() {
    let key = Key::generate().unwrap();
    let (place, mut store) = sealed(&key);
    let apply = store.transaction(Timestamp(3), fill).unwrap();
    assert!(place.names().contains(&"prod.db-wal".to_owned()));
    assert_eq!(canaries(&place), [""; 0]);
    store.backup(&place.folder.path().join("copy.db")).unwrap();
    assert_filled(&store, apply);
    drop(store);
    assert_eq!(place.names(), ["copy.db", "prod.db"]);
    assert_eq!(canaries(&place), [""; 0]);
    assert_filled(&open(&place, &key), apply);
}

#[test]
fn a_state_in_clear_is_sealed_and_leaves_nothing_behind() {
    let (place, mut store) = Place::new();
    let apply = store.transaction(Timestamp(3), fill).unwrap();
    assert_filled(&store, apply);
    // The search finds what there is to be found.
    let found = canaries(&place);
    assert_eq!(found, ["prod.db-wal: in clear", "prod.db-wal: compressed"]);

    let serial = store.meta().unwrap().serial;
    rekey(&mut store, &Key::generate().unwrap());
    assert_filled(&store, apply);
    assert_eq!(canaries(&place), [""; 0]);
    assert_eq!(store.meta().unwrap().serial, serial);
    drop(store);
    assert_eq!(canaries(&place), [""; 0]);
}

#[test]
fn scrubbing_waits_for_readers_and_is_taken_up_again() {
    let (place, mut store) = Place::new();
    store.transaction(Timestamp(3), fill).unwrap();
    let reader = Connection::open(&place.path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM meta").unwrap();
    let key = Key::generate().unwrap();
    store
        .transaction(Timestamp(4), |transaction| {
            transaction.rekey(&key.clone().into())
        })
        .unwrap();
    store.set_busy_timeout(std::time::Duration::ZERO).unwrap();
    assert!(!store.scrub().unwrap());
    drop(reader);
    drop(store);
    let mut store = open(&place, &key);
    assert!(store.scrub().unwrap());
    assert_eq!(canaries(&place), [""; 0]);
}

#[test]
fn another_key_takes_the_place_of_the_first() {
    let (first, second) = (Key::generate().unwrap(), Key::generate().unwrap());
    let (place, mut store) = sealed(&first);
    let apply = store.transaction(Timestamp(3), fill).unwrap();
    let serial = store.meta().unwrap().serial;
    rekey(&mut store, &second);
    assert_filled(&store, apply);
    drop(store);
    assert_filled(&open(&place, &second), apply);
    let refused = open(&place, &first).snapshot().unwrap_err();
    assert!(matches!(refused, StateError::NoKey { needed, .. } if needed == second.id()));
    let store = open(&place, &second);
    assert_eq!(store.meta().unwrap().serial, serial);
    let need = store.meta().unwrap().key.unwrap();
    assert_eq!((need.id, need.derivation), (second.id(), None));
    // Nothing is left that the first key opens.
    let bytes = fs::read(&place.path).unwrap();
    let name = first.id().0;
    assert!(!bytes.windows(8).any(|window| window == name));
}

#[test]
fn until_it_is_committed_the_old_key_opens_and_afterwards_the_new_one() {
    let (first, second) = (Key::generate().unwrap(), Key::generate().unwrap());
    let (place, mut store) = sealed(&first);
    let apply = store.transaction(Timestamp(3), fill).unwrap();
    let crashed = |name: &str| {
        let copy = Place::empty();
        for file in ["prod.db", "prod.db-wal"] {
            fs::copy(
                place.folder.path().join(file),
                copy.folder.path().join(file),
            )
            .unwrap();
        }
        assert!(copy.path.exists(), "{name}");
        copy
    };
    let before = store
        .transaction(Timestamp(4), |transaction| {
            transaction.rekey(&second.clone().into())?;
            Ok(crashed("before"))
        })
        .unwrap();
    let after = crashed("after");
    assert_filled(&open(&before, &first), apply);
    assert!(open(&before, &second).snapshot().is_err());
    assert_filled(&open(&after, &second), apply);
    assert!(open(&after, &first).snapshot().is_err());

    // A transaction that fails gives no new key either.
    let third = Key::generate().unwrap();
    let failed: nstance_state::Result<()> = store.transaction(Timestamp(5), |transaction| {
        transaction.rekey(&third.clone().into())?;
        Err(StateError::NoRecord {
            address: "a/b/0".into(),
        })
    });
    failed.unwrap_err();
    assert_filled(&store, apply);
    drop(store);
    assert_filled(&open(&place, &second), apply);
}

#[test]
fn a_reader_learns_of_a_new_key() {
    struct Both(Vec<Key>);
    impl Keys for Both {
        fn find(&self, needed: &KeyNeed) -> Result<Key, KeyError> {
            let found = self.0.iter().find(|key| key.id() == needed.id);
            found.cloned().ok_or_else(|| KeyError {
                why: "none of the keys is it".into(),
                hint: Some("Look elsewhere".into()),
            })
        }
    }
    let keys: Vec<Key> = (0..3).map(|_| Key::generate().unwrap()).collect();
    let (place, mut store) = sealed(&keys[0]);
    let apply = store.transaction(Timestamp(3), fill).unwrap();
    let reader = SqliteStore::open_read_only(&place.path, None).unwrap();
    let reader = reader.with_keys(Arc::new(Both(keys[..2].to_vec())));
    assert_filled(&reader, apply);
    rekey(&mut store, &keys[1]);
    assert_filled(&reader, apply);
    rekey(&mut store, &keys[2]);
    let refused = reader.snapshot().unwrap_err();
    assert!(refused.to_string().contains("none of the keys is it"));
    assert_eq!(refused.hint().as_deref(), Some("Look elsewhere"));
}

#[test]
fn without_the_right_key_nothing_is_touched_and_what_needs_none_works() {
    let key = Key::generate().unwrap();
    let (place, mut store) = sealed(&key);
    let apply = store.transaction(Timestamp(3), fill).unwrap();
    let meta = store.meta().unwrap();
    drop(store);
    let before = content(&place);
    let other = Key::generate().unwrap();
    let without = || SqliteStore::open_read_only(&place.path, Some(&identity())).unwrap();
    for (store, why) in [
        (without(), "no key was given".to_owned()),
        (
            without().with_keys(Arc::new(other.clone())),
            format!("the key given is {}", other.id()),
        ),
    ] {
        let expected = format!(
            "the state is sealed with the key {}, and {why}: {}",
            key.id(),
            place.path.display()
        );
        for refused in [
            store.snapshot().map(drop),
            store.open_intents().map(drop),
            store.specs([digest(7)].into_iter()).map(drop),
            store.fetched(URL).map(drop),
            store.observation_cache().map(drop),
            store.history_items(apply).map(drop),
            store.rollout().map(drop),
            store.rollout_plan(RolloutId(1)).map(drop),
            store.last_good(&["default/web"]).map(drop),
        ] {
            assert_eq!(refused.unwrap_err().to_string(), expected);
        }
        assert_eq!(store.meta().unwrap(), meta);
        assert_eq!(meta.key.as_ref().unwrap().id, key.id());
        let outline = store.outline().unwrap();
        assert_eq!(outline[0].provider_id, "i-default/web-0");
        assert_ne!(outline[0].spec, digest(7));
        assert_eq!(store.history(10).unwrap().len(), 1);
        assert_eq!(store.rollout_requests().unwrap().len(), 1);
        assert_eq!(store.check().unwrap(), []);
        assert!(store.images().unwrap().is_empty());
    }
    assert_eq!(content(&place), before);
    let copy = place.folder.path().join("copy.db");
    without().backup(&copy).unwrap();
    fs::remove_file(copy).unwrap();

    let mut writer = open(&place, &other);
    let refused = put(&mut writer, &[record("a/b", 0)]).unwrap_err();
    assert!(matches!(refused, StateError::NoKey { .. }), "{refused}");
    let refused = writer
        .transaction(Timestamp(4), |transaction| {
            transaction.rekey(&other.clone().into())
        })
        .unwrap_err();
    assert!(matches!(refused, StateError::NoKey { .. }), "{refused}");
    drop(writer);
    assert_eq!(content(&place), before);
}

#[test]
fn digests_cant_be_compared_with_guesses() {
    let key = Key::generate().unwrap();
    let (place, mut store) = sealed(&key);
    store.transaction(Timestamp(3), fill).unwrap();
    drop(store);
    let bytes = fs::read(&place.path).unwrap();
    for guess in [digest(7), digest(8)] {
        assert!(!bytes.windows(32).any(|window| window == guess.0));
    }
}

#[test]
fn a_passphrase_is_asked_with_the_parameters_that_the_state_keeps() {
    struct Passphrase(&'static str);
    impl Keys for Passphrase {
        fn find(&self, needed: &KeyNeed) -> Result<Key, KeyError> {
            Ok(Key::from_passphrase(
                self.0,
                needed.derivation.as_ref().unwrap(),
            ))
        }
    }
    let derivation: Derivation = "argon2id:m=64,t=1,p=1:000102030405060708090a0b0c0d0e0f"
        .parse()
        .unwrap();
    let new = NewKey {
        key: Key::from_passphrase("correct horse", &derivation),
        derivation: Some(derivation.clone()),
    };
    let (place, mut store) = Place::new();
    store
        .transaction(Timestamp(2), |transaction| transaction.rekey(&new))
        .unwrap();
    let apply = store.transaction(Timestamp(3), fill).unwrap();
    assert_eq!(
        store.meta().unwrap().key.unwrap().derivation,
        Some(derivation)
    );
    drop(store);
    let with = |phrase| {
        let store = SqliteStore::open(&place.path, None).unwrap();
        store.with_keys(Arc::new(Passphrase(phrase)))
    };
    assert_filled(&with("correct horse"), apply);
    assert!(matches!(
        with("battery staple").snapshot(),
        Err(StateError::NoKey { .. })
    ));
}

#[test]
fn a_state_of_the_first_schema_is_migrated_and_can_be_sealed() {
    let place = Place::empty();
    let old = Connection::open(&place.path).unwrap();
    old.execute_batch(include_str!("../../src/schema_v1.sql"))
        .unwrap();
    old.execute_batch(
        "PRAGMA application_id = 0x6e737463; PRAGMA user_version = 1; PRAGMA journal_mode = WAL;
         INSERT INTO meta VALUES (1, 'prod', 'us-west-2a', 'aws', 'lineage', 4, 1);
         INSERT INTO groups VALUES (1, 'default/web');
         INSERT INTO applies (started_at, who, host, pid, operation, serial_before, status, summary)
             VALUES (1, 'me', 'here', 1, 'apply', 0, 'succeeded', '{}');",
    )
    .unwrap();
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, CANARY.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    old.execute(
        "INSERT INTO specs (digest, size, body) VALUES (?1, ?2, ?3)",
        (digest(7).0, CANARY.len(), &packed),
    )
    .unwrap();
    old.execute(
        "INSERT INTO fetched VALUES (?1, 'digest', ?2, ?3, 9)",
        (URL, CANARY.len(), &packed),
    )
    .unwrap();
    old.execute(
        "INSERT INTO journal (address, group_name, slot, operation, instance_id, generation,
             attempt, token, spec_id, size, request, opened_at)
         VALUES ('default/web/0', 'default/web', 0, 'create', 'knd-1', 1, 1, 'token', 1, ?1, ?2, 3)",
        (CANARY.len(), &packed),
    )
    .unwrap();
    old.execute(
        "INSERT INTO history (apply_id, address, action, result, detail, at)
         VALUES (1, 'default/web/0', 'create', ?1, '{}', 4)",
        [format!("refused: {CANARY}")],
    )
    .unwrap();
    drop(old);
    let before = content(&place);

    // Reading leaves it as it is, and needs no key.
    let reader = SqliteStore::open_read_only(&place.path, Some(&identity())).unwrap();
    assert_eq!(reader.meta().unwrap().key, None);
    assert_eq!(
        reader.snapshot().unwrap().intents[0].request,
        CANARY.as_bytes()
    );
    drop(reader);
    assert_eq!(content(&place), before);

    let mut store = SqliteStore::open(&place.path, Some(&identity())).unwrap();
    let key = Key::generate().unwrap();
    rekey(&mut store, &key);
    drop(store);
    let store = open(&place, &key);
    assert_eq!(store.meta().unwrap().serial, 4);
    let specs = store.specs([digest(7)].into_iter()).unwrap();
    assert_eq!(&*specs[&digest(7)], CANARY.as_bytes());
    let intents = store.open_intents().unwrap();
    assert_eq!(intents[0].request, CANARY.as_bytes());
    assert_eq!(intents[0].spec, Some(digest(7)));
    assert_eq!(store.fetched(URL).unwrap().unwrap().body, CANARY.as_bytes());
    let items = store.history_items(ApplyId(1)).unwrap();
    assert_eq!(items[0].result, format!("refused: {CANARY}"));
    drop(store);

    // The backup is the older state as it was, in clear; nothing else is.
    assert_eq!(place.names(), ["prod.db", "prod.db.backup-v1-1"]);
    let found = canaries(&place);
    assert!(!found.is_empty());
    assert!(
        found
            .iter()
            .all(|found| found.starts_with("prod.db.backup-v1-1: ")),
        "{found:?}"
    );
}

#[test]
fn who_lost_the_lead_cant_write() {
    let (place, mut first) = Place::new();
    first.lead().unwrap();
    put(&mut first, &[record("a/b", 0)]).unwrap();
    let mut second = SqliteStore::open(&place.path, None).unwrap();
    second.lead().unwrap();
    let before = second.snapshot().unwrap().records;
    for refused in [
        put(&mut first, &[record("a/b", 1)]),
        first.lead(),
        first.transaction(Timestamp(3), |transaction| {
            transaction.open_intents(&[creation("a/b", 1)]).map(drop)
        }),
    ] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, StateError::Fenced { .. }), "{refused}");
    }
    assert_eq!(second.snapshot().unwrap().records, before);
    assert_eq!(first.snapshot().unwrap().records, before);
    put(&mut second, &[record("a/b", 1)]).unwrap();

    // Who opens it now is none of those.
    let mut late = SqliteStore::open(&place.path, None).unwrap();
    put(&mut late, &[record("a/b", 9)]).unwrap();

    // The beginning of an apply takes the lead too, and none that failed does.
    let mut third = SqliteStore::open(&place.path, None).unwrap();
    let failed: nstance_state::Result<()> = third.transaction(Timestamp(3), |transaction| {
        fill(transaction)?;
        Err(StateError::NoRecord {
            address: "a/b/0".into(),
        })
    });
    failed.unwrap_err();
    put(&mut second, &[record("a/b", 2)]).unwrap();
    third.transaction(Timestamp(3), fill).unwrap();
    assert!(matches!(
        put(&mut second, &[record("a/b", 3)]),
        Err(StateError::Fenced { .. })
    ));
}

/// Makes a state of an older schema of one of schema 5.
fn to_schema(place: &Place, version: u32) {
    let file = Connection::open(&place.path).unwrap();
    file.execute_batch(
        "DROP TABLE rollout_groups; DROP TABLE rollout_slots; DROP TABLE rollouts;
         DROP TABLE rollout_requests; DROP TABLE last_good;
         ALTER TABLE meta DROP COLUMN moved_to",
    )
    .unwrap();
    if version == 2 {
        file.execute_batch("DROP TABLE observation_cache").unwrap();
    }
    file.pragma_update(None, "user_version", version).unwrap();
}

#[test]
fn the_cache_of_observations_leaves_what_was_fetched() {
    let key = Key::generate().unwrap();
    let row = |url: &str| FetchedRow {
        url: url.to_owned(),
        digest: "digest".into(),
        body: b"body".to_vec(),
        fetched_at: Timestamp(9),
    };
    for is_sealed in [false, true] {
        let (place, mut store) = if is_sealed {
            sealed(&key)
        } else {
            Place::new()
        };
        store
            .transaction(Timestamp(2), |transaction| {
                transaction.put_fetched(row("nstance:familiar"))?;
                transaction.put_fetched(row(URL))
            })
            .unwrap();
        drop(store);
        to_schema(&place, 2);
        let before = content(&place);
        let with_key = |store: SqliteStore| store.with_keys(Arc::new(key.clone()));

        // Reading an older schema leaves it as it is.
        let reader = with_key(SqliteStore::open_read_only(&place.path, None).unwrap());
        assert!(reader.is_outdated());
        assert_eq!(reader.observation_cache().unwrap(), None);
        assert_eq!(reader.fetched(URL).unwrap(), Some(row(URL)));
        drop(reader);
        assert_eq!(content(&place), before);

        let mut store = with_key(SqliteStore::open(&place.path, Some(&identity())).unwrap());
        store
            .transaction(Timestamp(3), |transaction| {
                transaction.put_observation_cache(b"cache")
            })
            .unwrap();
        assert_eq!(store.observation_cache().unwrap().unwrap(), b"cache");
        assert_eq!(store.fetched("nstance:familiar").unwrap(), None);
        assert_eq!(store.fetched(URL).unwrap(), Some(row(URL)));
        assert_eq!(store.check().unwrap(), []);
        drop(store);
        assert_eq!(place.names(), ["prod.db", "prod.db.backup-v2-1"]);
    }
}

#[test]
fn a_state_of_the_third_schema_learns_of_rollouts() {
    let key = Key::generate().unwrap();
    for is_sealed in [false, true] {
        let (place, mut store) = if is_sealed {
            sealed(&key)
        } else {
            Place::new()
        };
        let apply = store.transaction(Timestamp(3), fill).unwrap();
        let records = store.snapshot().unwrap().records;
        drop(store);
        to_schema(&place, 3);
        let before = content(&place);
        let with_key = |store: SqliteStore| store.with_keys(Arc::new(key.clone()));
        let assert_empty = |store: &SqliteStore| {
            assert_eq!(store.rollout().unwrap(), None);
            assert_eq!(store.rollout_requests().unwrap(), []);
            assert!(store.last_good(&["default/web"]).unwrap().is_empty());
            assert_eq!(store.snapshot().unwrap().records, records);
            assert_eq!(store.history_items(apply).unwrap().len(), 2);
            assert_eq!(store.meta().unwrap().schema_version, 5);
            assert_eq!(store.check().unwrap(), []);
        };

        // Reading an older schema leaves it as it is.
        let reader = with_key(SqliteStore::open_read_only(&place.path, None).unwrap());
        assert!(reader.is_outdated());
        assert_empty(&reader);
        drop(reader);
        assert_eq!(content(&place), before);

        let mut store = with_key(SqliteStore::open(&place.path, Some(&identity())).unwrap());
        assert_empty(&store);
        let start = NewRollout {
            plan_digest: None,
            plan: b"plan".to_vec(),
            status: RolloutStatus::Waiting,
        };
        let id = store
            .transaction(Timestamp(4), |transaction| {
                transaction.start_rollout(&start)
            })
            .unwrap();
        assert_eq!(store.rollout_plan(id).unwrap().unwrap(), b"plan");
        drop(store);
        assert_eq!(place.names(), ["prod.db", "prod.db.backup-v3-1"]);
        let backup = place.folder.path().join("prod.db.backup-v3-1");
        let version: u32 = Connection::open(backup)
            .unwrap()
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap();
        assert_eq!(version, 3);
    }
}
