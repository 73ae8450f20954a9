//! Sealed rows that were changed, moved, or brought from elsewhere.

use std::path::Path;
use std::sync::Arc;

use nstance_state::{ApplyId, Key, ProblemKind, RolloutId, SqliteStore, StateError, Timestamp};
use rusqlite::Connection;

use super::{URL, assert_filled, fill, open, rekey, sealed};
use crate::common::{Place, content, digest, identity, put, record};

/// Runs SQL on the file behind the store's back.
fn tamper(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(sql).unwrap();
}

type Reader = fn(&SqliteStore) -> nstance_state::Result<()>;

#[test]
fn what_was_moved_or_changed_is_damage() {
    let key = Key::generate().unwrap();
    let read_specs: Reader = |store| store.specs([digest(7), digest(1)].into_iter()).map(drop);
    let read_intents: Reader = |store| store.open_intents().map(drop);
    let read_fetched: Reader = |store| store.fetched(URL).map(drop);
    let read_history: Reader = |store| store.history_items(ApplyId(1)).map(drop);
    let read_cache: Reader = |store| store.observation_cache().map(drop);
    let read_rollout: Reader = |store| store.rollout().map(drop);
    let read_plan: Reader = |store| store.rollout_plan(RolloutId(1)).map(drop);
    let read_last_good: Reader = |store| store.last_good(&["default/web"]).map(drop);
    let cases: [(&str, &str, Reader); 19] = [
        (
            "a body under another digest",
            "CREATE TEMP TABLE old AS SELECT * FROM specs;
             UPDATE specs SET (size, body) =
                 (SELECT size, body FROM old WHERE old.id <> specs.id)",
            read_specs,
        ),
        (
            "a changed byte",
            "UPDATE specs SET body = CAST(substr(body, 1, 40) || x'00' || substr(body, 42) AS BLOB)",
            read_specs,
        ),
        (
            "a body in clear",
            "UPDATE specs SET body = x'789c030000000001', size = 0",
            read_specs,
        ),
        (
            "requests exchanged",
            "CREATE TEMP TABLE old AS SELECT id, request FROM journal WHERE closed_at IS NULL;
             UPDATE journal SET request =
                 (SELECT request FROM old WHERE old.id <> journal.id)
             WHERE closed_at IS NULL",
            read_intents,
        ),
        (
            "a request for another instance",
            "UPDATE journal SET instance_id = 'knd-other' WHERE closed_at IS NULL",
            read_intents,
        ),
        (
            "another attempt",
            "UPDATE journal SET attempt = attempt + 1 WHERE closed_at IS NULL",
            read_intents,
        ),
        (
            "another operation",
            "UPDATE journal SET operation = 'delete' WHERE closed_at IS NULL",
            read_intents,
        ),
        (
            "an old answer made to look young",
            "UPDATE fetched SET fetched_at = 99",
            read_fetched,
        ),
        (
            "an old cache made to look young",
            "UPDATE observation_cache SET updated_at = 99",
            read_cache,
        ),
        (
            "another address in the history",
            "UPDATE history SET address = 'default/db/0'",
            read_history,
        ),
        (
            "a plan with another digest",
            "UPDATE rollouts SET plan_digest = 'another'",
            read_plan,
        ),
        (
            "an old plan made to look young",
            "UPDATE rollouts SET planned_at = 99",
            read_plan,
        ),
        (
            "an unknown status",
            "UPDATE rollouts SET status = 'stopped'",
            read_rollout,
        ),
        (
            "a group at another stage",
            "UPDATE rollout_groups SET stage = 'done'",
            read_rollout,
        ),
        (
            "a detail in clear",
            "UPDATE rollout_groups SET detail = CAST('all is well' AS BLOB)",
            read_rollout,
        ),
        (
            "details of slots exchanged",
            "CREATE TEMP TABLE old AS SELECT * FROM rollout_slots;
             UPDATE rollout_slots SET detail =
                 (SELECT detail FROM old WHERE old.address <> rollout_slots.address)",
            read_rollout,
        ),
        (
            "what was good in another group",
            "CREATE TEMP TABLE old AS SELECT * FROM last_good;
             UPDATE last_good SET (size, body) =
                 (SELECT size, body FROM old WHERE old.group_name <> last_good.group_name)",
            read_last_good,
        ),
        (
            "what was good earlier made to look young",
            "UPDATE last_good SET at = 99",
            read_last_good,
        ),
        (
            "a request in another table",
            "UPDATE history SET sealed =
                 (SELECT request FROM journal WHERE closed_at IS NULL LIMIT 1)
             WHERE sealed IS NOT NULL",
            read_history,
        ),
    ];
    for (name, sql, read) in cases {
        let (place, mut store) = sealed(&key);
        let apply = store.transaction(Timestamp(3), fill).unwrap();
        put(&mut store, &[record("default/web", 1)]).unwrap();
        assert_filled(&store, apply);
        read(&store).unwrap();
        drop(store);
        tamper(&place.path, sql);
        let before = content(&place);
        let store = SqliteStore::open_read_only(&place.path, None).unwrap();
        let store = store.with_keys(Arc::new(key.clone()));
        let refused = read(&store).unwrap_err();
        assert!(
            matches!(refused, StateError::Corrupt { .. }),
            "{name}: {refused}"
        );
        let problems = store.check().unwrap();
        assert!(
            problems
                .iter()
                .any(|problem| problem.kind == ProblemKind::Content),
            "{name}: {problems:?}"
        );
        drop(store);
        assert_eq!(content(&place), before, "{name}");
    }
}

#[test]
fn what_another_state_sealed_with_the_same_key_is_damage() {
    let key = Key::generate().unwrap();
    let (place, mut store) = sealed(&key);
    store.transaction(Timestamp(3), fill).unwrap();
    drop(store);
    let other = Place::empty();
    let store =
        SqliteStore::create(&other.path, &identity(), "another lineage", Timestamp(1)).unwrap();
    let mut store = store.with_keys(Arc::new(key.clone()));
    rekey(&mut store, &key);
    store.transaction(Timestamp(3), fill).unwrap();
    drop(store);
    tamper(
        &place.path,
        &format!(
            "ATTACH '{}' AS other; UPDATE specs SET body =
             (SELECT body FROM other.specs WHERE other.specs.digest = specs.digest)",
            other.path.display()
        ),
    );
    let refused = open(&place, &key)
        .specs([digest(7)].into_iter())
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("changed or moved after it was sealed"),
        "{refused}"
    );
}

#[test]
fn a_check_without_the_key_sees_what_isnt_sealed_as_it_should_be() {
    let key = Key::generate().unwrap();
    let (place, mut store) = sealed(&key);
    store.transaction(Timestamp(3), fill).unwrap();
    drop(store);
    tamper(
        &place.path,
        "UPDATE specs SET body = x'789c030000000001';
         UPDATE fetched SET body =
             CAST(x'01' || x'1122334455667788' || substr(body, 10) AS BLOB);
         UPDATE rollout_slots SET detail = x'00' WHERE address = 'default/web/4'",
    );
    let store = SqliteStore::open_read_only(&place.path, None).unwrap();
    let told: Vec<String> = store
        .check()
        .unwrap()
        .into_iter()
        .map(|problem| problem.detail)
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(
        told[0].ends_with("can't be read: it isn't sealed"),
        "{told:?}"
    );
    assert!(
        told[1].ends_with("it is sealed with another key, 1122334455667788"),
        "{told:?}"
    );
    assert!(
        told[2].starts_with("the rollout of slot default/web/4 can't be read: "),
        "{told:?}"
    );
}
