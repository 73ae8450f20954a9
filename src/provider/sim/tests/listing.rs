//! Listing, and what other processes see.

use super::*;

#[test]
fn looking_makes_no_file() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"error_rate": 0.5, "throttle": 100}));
    let _ = cloud.list(&owner(), None);
    let _ = cloud.describe(&["i-0".to_owned()]);
    let _ = cloud.subnets(&["subnet-a".to_owned()]);
    assert!(lab.admin().list(true).unwrap().is_empty());
    assert_eq!(std::fs::read_dir(lab.folder.path()).unwrap().count(), 0);
}

#[test]
fn pages_hold_a_thousand_and_nothing_twice() {
    let lab = Lab::new();
    let options = json!({"subnets": {"subnet-a": {"size": 2_500}}});
    let cloud = lab.aws(options);
    for slot in 0..2_500 {
        cloud.create(&request(slot)).unwrap();
    }
    let mut slots = Vec::new();
    let mut sizes = Vec::new();
    let mut page = None;
    loop {
        let found = cloud.list(&owner(), page.as_deref()).unwrap();
        sizes.push(found.instances.len());
        slots.extend(found.instances.iter().map(|one| one.slot.unwrap()));
        page = found.next;
        if page.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [1_000, 1_000, 500]);
    assert_eq!(slots, (0..2_500).collect::<Vec<_>>());
    let wrong = refusal(cloud.list(&owner(), Some("x")));
    assert_eq!(wrong, refused(CloudErrorKind::Invalid, "InvalidNextToken"));

    // A last page that is full says that it is the last.
    for seen in listed(&cloud).iter().skip(2_000) {
        cloud.delete(&delete_of(seen)).unwrap();
    }
    let first = cloud.list(&owner(), None).unwrap();
    let second = cloud.list(&owner(), first.next.as_deref()).unwrap();
    assert_eq!((second.instances.len(), second.next), (1_000, None));
}

#[test]
fn a_listing_is_of_one_owner() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    for (slot, key, value) in [
        (0, "nstance:shard", "us-west-2a"),
        (1, "nstance:shard", "us-west-2b"),
        (2, "nstance:cluster-id", "dev"),
        (3, "nstance:managed", "false"),
    ] {
        let mut request = request(slot);
        request.tags.insert(key.to_owned(), value.to_owned());
        cloud.create(&request).unwrap();
    }
    let slots: Vec<_> = listed(&cloud).iter().map(|one| one.slot).collect();
    assert_eq!(slots, [Some(0)]);
    let other = Owner {
        shard: "us-west-2b".to_owned(),
        ..owner()
    };
    let page = cloud.list(&other, None).unwrap();
    assert_eq!(page.instances.len(), 1);
    // Whoever asks by id sees them all.
    let ids: Vec<String> = lab
        .admin()
        .list(true)
        .unwrap()
        .into_iter()
        .map(|row| row.provider_id)
        .collect();
    assert_eq!(cloud.describe(&ids).unwrap().len(), 4);
}

#[test]
fn new_instances_stay_out_of_sight_for_a_while() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"stale_listing": "30s"}));
    assert_eq!(cloud.visibility_window(), Duration::from_secs(30));
    let made = cloud.create(&request(0)).unwrap();
    lab.pass(29_999);
    assert!(listed(&cloud).is_empty());
    assert_eq!(state(&cloud, &made.provider_id), None);
    // The token is known all the same.
    assert_eq!(cloud.create(&request(0)).unwrap(), made);
    lab.pass(1);
    assert_eq!(listed(&cloud), [made]);
}

#[test]
fn it_survives_the_process_and_is_shared_by_several() {
    let lab = Lab::new();
    let early = lab.aws(json!({}));
    assert!(listed(&early).is_empty());
    let made = lab.aws(json!({})).create(&request(0)).unwrap();
    // One that looked before there was a file sees what others made since.
    assert_eq!(listed(&early), std::slice::from_ref(&made));
    let second = early.create(&request(1)).unwrap();
    assert_eq!(listed(&lab.aws(json!({}))), [made, second]);
}

#[test]
fn many_threads_and_connections_create_at_once() {
    let lab = Lab::new();
    let clouds = [lab.aws(json!({})), lab.aws(json!({})), lab.aws(json!({}))];
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let cloud = &clouds[worker % 3];
            // Every slot is created twice, by workers on different connections.
            scope.spawn(move || {
                for slot in 0..40 {
                    cloud
                        .create(&request(slot + 40 * (worker as u32 / 2)))
                        .unwrap();
                }
            });
        }
    });
    let found = listed(&clouds[0]);
    assert_eq!(found.len(), 120);
    let addresses: std::collections::BTreeSet<_> = found.iter().map(|one| &one.ip4).collect();
    assert_eq!(addresses.len(), 120);
    let available = clouds[1].subnets(&["subnet-a".to_owned()]).unwrap()[0].available;
    assert_eq!(available, Some(251 - 120));
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let lab = Lab::new();
    let open = || {
        SimCloud::open(
            &lab.path(),
            &SimOptions::default(),
            ProviderKind::Sim,
            lab.clock.clone(),
        )
    };
    std::fs::create_dir_all(lab.path().parent().unwrap()).unwrap();
    std::fs::write(
        lab.path(),
        "not a database, but long enough to be taken for one",
    )
    .unwrap();
    assert!(matches!(open().map(|_| ()), Err(SimError::Open { .. })));
    std::fs::remove_file(lab.path()).unwrap();

    let connection = rusqlite::Connection::open(lab.path()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    let error = open().map(|_| ()).unwrap_err();
    assert!(
        matches!(error, SimError::Newer { found: 99, .. }),
        "{error}"
    );
}

#[test]
fn what_can_not_be_written_to_can_be_read() {
    let lab = Lab::new();
    let made = lab.aws(json!({})).create(&request(0)).unwrap();
    let folder = lab.path().parent().unwrap().to_owned();
    let lock = |locked: bool| {
        for path in [&lab.path(), &folder] {
            let mut permissions = std::fs::metadata(path).unwrap().permissions();
            permissions.set_readonly(locked);
            std::fs::set_permissions(path, permissions).unwrap();
        }
    };
    lock(true);
    // Permissions don't hold root back; everything but the refusal is the same for root.
    let is_root = std::fs::write(folder.join("probe"), "").is_ok();
    let cloud = lab.aws(json!({"throttle": 2}));
    assert_eq!(listed(&cloud), std::slice::from_ref(&made));
    assert_eq!(listed(&cloud), std::slice::from_ref(&made));
    // The count of calls is kept aside.
    assert_eq!(
        refusal(cloud.list(&owner(), None)).0,
        CloudErrorKind::Throttled
    );
    let refused = lab.admin().stop("default/web/0");
    assert_eq!(matches!(refused, Err(SimError::ReadOnly { .. })), !is_root);
    drop(cloud);
    lock(false);
}
