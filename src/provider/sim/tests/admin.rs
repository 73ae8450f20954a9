//! Drift, made by hand.

use super::*;

#[test]
fn drift_by_hand_is_seen_and_repaired() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"boot_time": "1m"}));
    let made = cloud.create(&request(0)).unwrap();
    let id = made.provider_id.as_str();
    let mut admin = lab.admin();

    admin.set_tag(id, "Name", Some("mine")).unwrap();
    admin.set_tag(id, "nstance:slot", None).unwrap();
    admin.set_type(id, "m5.large").unwrap();
    let seen = listed(&cloud).remove(0);
    assert_ne!(seen.digest, made.digest);
    assert_eq!(seen.slot, None);
    let attributes = seen.attributes().unwrap();
    assert_eq!(attributes.tags["Name"], "mine");
    assert_eq!(attributes.instance_type, "m5.large");

    let mut repair = update_of(&made, &["tags", "instance_type"]);
    repair.restart = true;
    let repaired = cloud.update(&repair).unwrap();
    assert_eq!((repaired.digest, repaired.slot), (made.digest, Some(0)));

    // Without the tags that make it ours, it is out of our listings and still there.
    admin.set_tag(id, "nstance:managed", None).unwrap();
    assert!(listed(&cloud).is_empty());
    assert!(state(&cloud, id).is_some());
}

#[test]
fn stopping_starting_and_deleting_take_no_time_by_hand() {
    use LifecycleState as S;
    let lab = Lab::new();
    let cloud = lab.aws(json!({"boot_time": "1m"}));
    let protected = args(&json!({"DisableApiTermination": true}));
    let made = cloud
        .create(&CreateRequest {
            args: protected,
            ..request(0)
        })
        .unwrap();
    let mut admin = lab.admin();
    assert_eq!(admin.stop("default/web/0").unwrap().state, S::Stopped);
    assert_eq!(state(&cloud, &made.provider_id), Some(S::Stopped));
    // What is stopped can be given another type without a restart.
    let mut update = update_of(&made, &["instance_type"]);
    update.instance_type = "t3.large".to_owned();
    assert_eq!(cloud.update(&update).unwrap().state, S::Stopped);
    assert_eq!(admin.start(&made.provider_id).unwrap().state, S::Running);
    assert_eq!(
        admin.delete(&made.provider_id).unwrap().state,
        S::Terminated
    );
    assert_eq!(state(&cloud, &made.provider_id), None);
    assert!(admin.list(false).unwrap().is_empty());
    assert_eq!(admin.list(true).unwrap().len(), 1);
    // It can still be looked at, but not changed.
    assert_eq!(
        admin.show(&made.provider_id).unwrap().row.state,
        S::Terminated
    );
    assert!(matches!(
        admin.start(&made.provider_id),
        Err(SimError::Terminated { .. })
    ));
    let available = cloud.subnets(&["subnet-a".to_owned()]).unwrap()[0].available;
    assert_eq!(available, Some(251));
}

#[test]
fn an_id_is_what_can_be_told_apart() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let made: Vec<_> = (0..3)
        .map(|slot| cloud.create(&request(slot)).unwrap())
        .collect();
    let mut admin = lab.admin();
    let wanted = made[1].provider_id.as_str();
    let ours = request(1).instance_id;
    for id in [wanted, &wanted[..10], ours.as_str(), "default/web/1"] {
        assert_eq!(admin.show(id).unwrap().row.provider_id, wanted, "{id}");
    }
    let error = admin.show("i-").unwrap_err();
    let SimError::Unclear { matches, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(matches.len(), 3);
    // One that is gone doesn't stand in the way of one that lives.
    cloud.delete(&delete_of(&made[0])).unwrap();
    cloud.delete(&delete_of(&made[2])).unwrap();
    assert_eq!(admin.show("i-").unwrap().row.provider_id, wanted);

    let mut slip = wanted.to_owned();
    slip.replace_range(5..6, "_");
    let error = admin.show(&slip).unwrap_err();
    assert_eq!(error.to_string(), format!("no instance \"{slip}\""));
    assert_eq!(error.hint(), Some(format!("there is \"{wanted}\"")));
    assert!(matches!(
        admin.show(""),
        Err(SimError::NotFound { nearest: None, .. })
    ));
}

#[test]
fn a_reset_leaves_an_empty_cloud() {
    let lab = Lab::new();
    assert_eq!(lab.admin().reset().unwrap(), 0);
    assert!(!lab.path().exists());
    let cloud = lab.aws(json!({}));
    let made = cloud.create(&request(0)).unwrap();
    lab.admin().fail(&made.provider_id).unwrap();
    assert_eq!(lab.admin().reset().unwrap(), 1);
    assert!(listed(&cloud).is_empty());
    // The token is forgotten too.
    cloud
        .create(&CreateRequest {
            instance_type: "t3.nano".to_owned(),
            ..request(0)
        })
        .unwrap();
    assert!(!lab.admin().show("default/web/0").unwrap().unhealthy);
}
