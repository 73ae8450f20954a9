//! A state as a document, and a document as a state.

use nstance_state::{
    Contents, Document, DocumentError, Key, NewRequest, NewRollout, OpenError, Outcome,
    RolloutStatus, SqliteStore, StateError, Timestamp,
};

use crate::common::{Place, creation, digest, identity, record};

const NOW: Timestamp = Timestamp(50);

fn key() -> Key {
    "nstance-key-1-0101010101010101010101010101010101010101010101010101010101010101"
        .parse()
        .unwrap()
}

/// A state with something of everything: live and deposed records, holes, an open intent.
fn full() -> (Place, SqliteStore) {
    let (place, mut store) = Place::new();
    let mut deposed = record("default/web", 9);
    (deposed.slot, deposed.deposed, deposed.generation) = (0, true, 1);
    let mut live = record("default/web", 0);
    (live.generation, live.spec, live.observed) = (2, digest(2), Some(digest(3)));
    live.attributes = "{\"images\":{\"base\":\"ami-1\"}}".into();
    store
        .transaction(Timestamp(10), |transaction| {
            transaction.put_spec(digest(1), b"{\"password\": \"hunter2\"}")?;
            transaction.put_spec(digest(2), b"{\"password\": \"hunter3\"}")?;
            transaction.put_record(deposed)?;
            transaction.put_record(live)?;
            transaction.put_record(record("default/web", 2))?;
            transaction.put_record(record("other/db", 0))
        })
        .unwrap();
    store
        .transaction(Timestamp(20), |transaction| {
            transaction.remove_record("knd-default/web-2")?;
            let mut intent = creation("default/web", 3);
            (intent.spec, intent.request) =
                (Some(digest(2)), b"{\"password\": \"hunter2\"}".into());
            transaction.open_intents(&[intent])
        })
        .unwrap();
    (place, store)
}

fn text(store: &SqliteStore) -> String {
    Document::new(&Contents::of(store).unwrap(), &key(), None).to_text()
}

fn opened(text: &str) -> Contents {
    Document::parse(text).unwrap().open(&key()).unwrap()
}

fn sound(contents: &Contents) -> Vec<String> {
    contents.problems(&|_, _| true)
}

#[test]
fn a_document_is_the_state_and_hides_what_may_be_secret() {
    let (_place, store) = full();
    let contents = Contents::of(&store).unwrap();
    let text = text(&store);
    assert!(opened(&text).says(&contents));
    assert_eq!(sound(&contents), [""; 0]);
    for hidden in [
        "hunter2",
        "hunter3",
        &digest(1).to_string(),
        &digest(3).to_string(),
    ] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    // What is compared is sealed alike.
    assert_eq!(text, self::text(&store));
}

#[test]
fn a_state_made_of_a_document_is_the_same_state() {
    let (_place, store) = full();
    let before = text(&store);
    let contents = opened(&before);
    let place = Place::empty();
    let mut copy = SqliteStore::create(
        &place.path,
        &identity(),
        &contents.lineage,
        contents.created_at,
    )
    .unwrap();
    copy.transaction(NOW, |transaction| transaction.restore(&contents))
        .unwrap();
    assert_eq!(text(&copy), before);
    assert!(copy.check().unwrap().is_empty());
    // Tokens of the past stay used: the next generation is the one that it was there.
    let next = |store: &mut SqliteStore| {
        store
            .transaction(NOW, |transaction| {
                transaction.next_generation("default/web", 2)
            })
            .unwrap()
    };
    assert_eq!(next(&mut copy), 2);
    // It isn't done over something else.
    let refused = copy.transaction(NOW, |transaction| transaction.restore(&contents));
    assert!(matches!(refused, Err(StateError::Occupied { .. })));
}

#[test]
fn contents_take_the_place_of_others_whatever_was_exchanged() {
    let (_place, mut store) = full();
    let now = Contents::of(&store).unwrap();
    let mut wanted = now.clone();
    // Two that change places, one that goes, one that comes.
    let (web, db) = (1, 2);
    assert_eq!(now.records[web].instance_id, "knd-default/web-9");
    assert_eq!(now.records[db].instance_id, "knd-other/db-0");
    let at = |index: usize| (now.records[index].group.clone(), now.records[index].slot);
    (wanted.records[0].group, wanted.records[0].slot) = at(db);
    (wanted.records[db].group, wanted.records[db].slot) = at(0);
    wanted.records.remove(web);
    wanted.records.push(record("other/db", 7));
    wanted.serial += 10;
    assert_eq!(now.differences(&wanted).len(), 4);
    store
        .transaction(NOW, |transaction| transaction.replace(&now, &wanted))
        .unwrap();
    let after = Contents::of(&store).unwrap();
    assert!(wanted.differences(&after).is_empty());
    assert_eq!(after.serial, wanted.serial + 1);
    let versions: Vec<u64> = after.records.iter().map(|record| record.version).collect();
    assert_eq!(versions, [after.serial; 3]);
    // What was ever given isn't given again.
    assert_eq!(store.snapshot().unwrap().generation("default/web", 0), 2);
    assert!(store.check().unwrap().is_empty());
}

#[test]
fn a_rollout_is_in_no_document_and_ends_with_the_records_that_it_is_about() {
    let (_place, mut store) = full();
    let document = text(&store);
    let rollout = NewRollout {
        plan_digest: None,
        plan: b"plan".to_vec(),
        status: RolloutStatus::Running,
    };
    let request = NewRequest {
        group: None,
        kind: "pause".into(),
        who: "ann".into(),
    };
    let id = store
        .transaction(NOW, |transaction| {
            let id = transaction.start_rollout(&rollout)?;
            transaction.add_request(&request)?;
            transaction.put_last_good("default/web", b"v1")?;
            Ok(id)
        })
        .unwrap();
    assert_eq!(text(&store), document);

    let now = Contents::of(&store).unwrap();
    let mut wanted = now.clone();
    wanted.records.remove(0);
    store
        .transaction(NOW, |transaction| transaction.replace(&now, &wanted))
        .unwrap();
    assert_eq!(store.rollout().unwrap(), None);
    assert_eq!(store.rollout_plan(id).unwrap(), None);
    assert_eq!(store.rollout_requests().unwrap(), []);
    assert!(store.last_good(&["default/web"]).unwrap().is_empty());
    // Whoever still runs it can't take the next one for its own.
    let next = store
        .transaction(NOW, |transaction| transaction.start_rollout(&rollout))
        .unwrap();
    assert!(next > id);
}

#[test]
fn what_is_open_is_not_lost() {
    let (_place, mut store) = full();
    let now = Contents::of(&store).unwrap();
    let mut wanted = now.clone();
    wanted.intents.clear();
    wanted.records.pop();
    let refused = store.transaction(NOW, |transaction| transaction.replace(&now, &wanted));
    assert!(
        matches!(&refused, Err(StateError::Unsettled { address }) if address == "default/web/3"),
        "{refused:?}"
    );
    assert!(Contents::of(&store).unwrap().says(&now));
    // What was open when the document was made is open again.
    let id = now.intents[0].id;
    store
        .transaction(NOW, |transaction| {
            transaction.close_intent(id, Outcome::Abandoned)
        })
        .unwrap();
    let closed = Contents::of(&store).unwrap();
    store
        .transaction(NOW, |transaction| transaction.replace(&closed, &now))
        .unwrap();
    let again = Contents::of(&store).unwrap();
    assert_eq!(again.intents[0].request, now.intents[0].request);
    assert_eq!(again.intents[0].opened_at, now.intents[0].opened_at);
}

#[test]
fn a_document_that_was_changed_does_not_open() {
    let (_place, store) = full();
    let good = text(&store);
    let specs: serde_json::Value = serde_json::from_str(&good).unwrap();
    let bodies: Vec<&str> = specs["specs"]
        .as_object()
        .unwrap()
        .values()
        .map(|body| body.as_str().unwrap())
        .collect();
    // Two specs that changed places.
    let swapped = good
        .replace(bodies[0], "[]")
        .replace(bodies[1], bodies[0])
        .replace("[]", bodies[1]);
    let lineage = good.replace("\"lineage\": \"lineage\"", "\"lineage\": \"other\"");
    let attempt = good.replace("\"attempt\": 1", "\"attempt\": 2");
    for (changed, error) in [
        (&swapped, OpenError::Damaged),
        (&lineage, OpenError::Damaged),
        (&attempt, OpenError::Damaged),
        (&good.replace(bodies[0], "AAAA"), OpenError::NotSealed),
        (&good.replace(bodies[0], "no base64"), OpenError::NotSealed),
    ] {
        assert_ne!(*changed, good);
        match Document::parse(changed).unwrap().open(&key()) {
            Err(DocumentError::Sealed { error: found, .. }) => assert_eq!(found, error),
            other => panic!("{other:?}"),
        }
    }
    let other: Key =
        "nstance-key-1-0202020202020202020202020202020202020202020202020202020202020202"
            .parse()
            .unwrap();
    match Document::parse(&good).unwrap().open(&other) {
        Err(DocumentError::Sealed {
            error: OpenError::WrongKey { .. },
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_document_is_said() {
    let (_place, store) = full();
    let good = text(&store);
    for (text, words) in [
        ("", "it isn't a state's document: EOF"),
        ("{}", "missing field `format_version`"),
        ("[1]", "it isn't a state's document"),
        (&good[..good.len() / 2], "it isn't a state's document: EOF"),
        (
            &good.replace("\"serial\": 2", "\"serial\": -2"),
            "invalid value",
        ),
        (
            &good.replace("\"slot\": 0", "\"slot\": 0, \"extra\": 1"),
            "unknown field `extra`",
        ),
        (
            &good.replace("\"1.0\"", "\"7.3\""),
            "it has the format \"7.3\"",
        ),
    ] {
        let error = Document::parse(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for (text, words) in [
        (
            good.replace("\"other/db\"\n", "\"other/dbs\"\n"),
            "`groups` doesn't have \"other/db\"",
        ),
        (
            good.replace("\"operation\": \"create\"", "\"operation\": \"clone\""),
            "\"clone\" is no operation",
        ),
    ] {
        assert_ne!(text, good);
        let error = Document::parse(&text).unwrap().open(&key()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Something that contents mustn't be.
type Spoil<'s> = &'s dyn Fn(&mut Contents);

#[test]
fn everything_that_is_wrong_with_contents_is_found() {
    let (_place, store) = full();
    let good = Contents::of(&store).unwrap();
    let spoiled: [(Spoil<'_>, &str); 10] = [
        (
            &|contents| contents.records[1].instance_id = contents.records[0].instance_id.clone(),
            "knd-default/web-0 is there twice",
        ),
        (
            &|contents| contents.records[1].provider_id = contents.records[0].provider_id.clone(),
            "i-default/web-0 is there twice",
        ),
        (
            &|contents| contents.records[1].deposed = false,
            "default/web/0 has two instances",
        ),
        (
            &|contents| contents.records[0].provider_id.clear(),
            "a record of default/web/0 has no id",
        ),
        (
            &|contents| contents.records[0].version = 7,
            "the record of knd-default/web-0 has version 7, and the state has serial 2",
        ),
        (
            &|contents| contents.records[0].attributes = "[]".into(),
            "the attributes of knd-default/web-0 aren't a JSON object",
        ),
        (
            &|contents| contents.specs.retain(|spec, _| *spec != digest(2)),
            "the spec of default/web/3 isn't there",
        ),
        (
            &|contents| {
                contents.specs.insert(digest(1), (*b"{}").into());
            },
            "the spec of default/web/0 isn't what its digest says",
        ),
        (
            &|contents| contents.intents[0].slot = 4,
            "the create of default/web/3 is about another slot",
        ),
        (
            &|contents| contents.intents[0].instance_id = "knd-other/db-0".into(),
            "the create of default/web/3 is open, and its instance is recorded",
        ),
    ];
    for (spoil, problem) in spoiled {
        let mut contents = good.clone();
        spoil(&mut contents);
        let problems = contents.problems(&|_, bytes| bytes != b"{}");
        assert!(
            problems.iter().any(|found| found == problem),
            "{problem}: {problems:?}"
        );
    }
}
