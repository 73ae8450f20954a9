//! What goes wrong, and that it goes wrong again in the same way.

use super::*;

#[test]
fn a_rule_fails_the_calls_it_names() {
    let lab = Lab::new();
    let rules = json!({"fail": [
        {"operation": "create", "after": 1, "count": 2, "error": "capacity"},
        {"operation": "list", "error": "throttled"},
    ]});
    // Every call comes from a process of its own: the count outlives them.
    let outcomes: Vec<_> = (0..4)
        .map(|slot| {
            lab.aws(rules.clone())
                .create(&request(slot))
                .map_err(|error| error.kind)
                .err()
        })
        .collect();
    let capacity = Some(CloudErrorKind::Capacity);
    assert_eq!(outcomes, [None, capacity, capacity, None]);
    let cloud = lab.aws(rules);
    assert_eq!(
        refusal(cloud.list(&owner(), None)).0,
        CloudErrorKind::Throttled
    );
    assert_eq!(listed(&cloud).len(), 2);
    assert_eq!(
        lab.aws(json!({}))
            .list(&owner(), None)
            .unwrap()
            .instances
            .len(),
        2
    );
}

#[test]
fn what_was_counted_before_there_was_a_file_stays_counted() {
    let lab = Lab::new();
    let rules = json!({"fail": [{"operation": "list", "error": "throttled"}]});
    let cloud = lab.aws(rules.clone());
    assert_eq!(
        refusal(cloud.list(&owner(), None)).0,
        CloudErrorKind::Throttled
    );
    cloud.create(&request(0)).unwrap();
    assert_eq!(listed(&lab.aws(rules)).len(), 1);
}

#[test]
fn every_kind_of_error_can_be_asked_for_in_every_cloud() {
    for name in [
        "throttled",
        "transient",
        "ambiguous",
        "capacity",
        "quota",
        "not-found",
        "invalid",
        "denied",
        "token-mismatch",
        "unavailable",
    ] {
        for provider in [ProviderKind::Aws, ProviderKind::Gcp, ProviderKind::Sim] {
            let lab = Lab::new();
            let rule = json!({"fail": [{"operation": "create", "error": name}]});
            let cloud = lab.cloud(provider, rule);
            let error = cloud.create(&request(0)).unwrap_err();
            assert_eq!(json!(error.kind), json!(name));
            assert!(!error.code.is_empty());
            // Only an answer that was lost leaves something behind.
            let left = lab.admin().list(true).unwrap().len();
            assert_eq!(left, usize::from(name == "ambiguous"), "{name}");
        }
    }
}

#[test]
fn a_lost_answer_is_found_again_by_its_token() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"fail": [
        {"operation": "create", "error": "ambiguous"},
        {"operation": "update", "error": "ambiguous"},
        {"operation": "delete", "error": "ambiguous"},
    ]}));
    assert_eq!(
        refusal(cloud.create(&request(0))).0,
        CloudErrorKind::Ambiguous
    );
    let made = cloud.create(&request(0)).unwrap();
    assert_eq!(listed(&cloud), std::slice::from_ref(&made));

    let mut update = update_of(&made, &["tags"]);
    update.tags.insert("team".to_owned(), "blue".to_owned());
    assert_eq!(refusal(cloud.update(&update)).0, CloudErrorKind::Ambiguous);
    assert_eq!(listed(&cloud)[0].attributes().unwrap().tags["team"], "blue");

    assert_eq!(
        refusal(cloud.delete(&delete_of(&made))).0,
        CloudErrorKind::Ambiguous
    );
    assert!(listed(&cloud).is_empty());
    cloud.delete(&delete_of(&made)).unwrap();
}

/// Which of 200 creates failed, and how.
fn failures(seed: u64, reversed: bool) -> Vec<(u32, CloudErrorKind)> {
    let lab = Lab::new();
    let options = json!({"seed": seed, "error_rate": 0.2, "lost_answer_rate": 0.2});
    let cloud = lab.aws(options);
    let mut slots: Vec<u32> = (0..200).collect();
    if reversed {
        slots.reverse();
    }
    let mut failed: Vec<_> = slots
        .into_iter()
        .filter_map(|slot| Some((slot, cloud.create(&request(slot)).err()?.kind)))
        .collect();
    let lost = failed
        .iter()
        .filter(|(_, kind)| *kind == CloudErrorKind::Ambiguous)
        .count();
    let refused = failed.len() - lost;
    assert_eq!(lab.admin().list(true).unwrap().len(), 200 - refused);
    failed.sort_unstable_by_key(|(slot, _)| *slot);
    failed
}

#[test]
fn chance_is_decided_by_the_seed_and_not_by_the_order() {
    let first = failures(1, false);
    assert_eq!(first, failures(1, true));
    assert_ne!(first, failures(2, false));
    for kind in [CloudErrorKind::Transient, CloudErrorKind::Ambiguous] {
        let share = first.iter().filter(|(_, one)| *one == kind).count();
        assert!((15..70).contains(&share), "{kind:?}: {share} of 200");
    }
}

#[test]
fn a_call_that_failed_by_chance_can_succeed_the_next_time() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"seed": 7, "error_rate": 0.5}));
    for slot in 0..20 {
        let tries = (0..40).find(|_| cloud.create(&request(slot)).is_ok());
        assert!(tries.is_some(), "{slot}");
    }
    let always = lab.aws(json!({"error_rate": 1.0}));
    assert_eq!(
        refusal(always.list(&owner(), None)).0,
        CloudErrorKind::Transient
    );
}

#[test]
fn the_bucket_of_calls_fills_with_time() {
    let lab = Lab::new();
    let options = json!({"throttle": 4});
    let cloud = lab.aws(options.clone());
    let calls = |cloud: &SimCloud, count: usize| {
        (0..count)
            .filter(|_| cloud.list(&owner(), None).is_ok())
            .count()
    };
    cloud.create(&request(0)).unwrap();
    assert_eq!(calls(&cloud, 10), 3);
    // Another process draws from the same bucket.
    assert_eq!(calls(&lab.aws(options), 10), 0);
    lab.pass(250);
    assert_eq!(calls(&cloud, 10), 1);
    lab.pass(60_000);
    assert_eq!(calls(&cloud, 10), 4);
}

#[test]
fn latency_passes_on_the_clock() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"latency": "80ms"}));
    let made = cloud.create(&request(0)).unwrap();
    assert_eq!(lab.clock.now(), NOW.after(Duration::from_millis(80)));
    assert_eq!(made.created_at, NOW.after(Duration::from_millis(40)));
}
