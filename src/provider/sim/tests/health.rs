//! Registrations and health.

use super::*;
use crate::provider::{TargetState, TargetsRequest};

fn targets(observed: &Observation, names: &[&str]) -> TargetsRequest {
    TargetsRequest {
        provider_id: observed.provider_id.clone(),
        load_balancers: owned(names),
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn registered(cloud: &SimCloud, id: &str) -> Vec<String> {
    let seen = cloud.describe(&[id.to_owned()]).unwrap().remove(0);
    seen.attributes().unwrap().load_balancers.unwrap()
}

fn target_state(cloud: &SimCloud, id: &str) -> TargetState {
    let found = cloud.target_health(&[id.to_owned()], &owned(&["tg-a"]));
    let found = found.unwrap().remove(0);
    assert_eq!((&*found.provider_id, &*found.load_balancer), (id, "tg-a"));
    let has_reason = matches!(found.state, TargetState::Initial | TargetState::Unhealthy);
    assert_eq!(found.reason.is_some(), has_reason, "{found:?}");
    found.state
}

const TCP: Check = Check::Tcp { port: 80 };

fn probe(cloud: &SimCloud, id: &str, check: &Check) -> Result<(), String> {
    cloud.probe(id, check).unwrap()
}

#[test]
fn registering_and_deregistering_change_only_what_they_name() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let made = cloud.create(&request(0)).unwrap();
    let id = made.provider_id.as_str();
    for (register, names, left) in [
        (true, vec!["tg-b", "tg-a"], vec!["tg-a", "tg-b"]),
        (true, vec!["tg-a", "tg-c"], vec!["tg-a", "tg-b", "tg-c"]),
        (false, vec!["tg-b", "tg-x"], vec!["tg-a", "tg-c"]),
        (false, vec!["tg-a", "tg-c"], vec![]),
        (false, vec!["tg-a"], vec![]),
    ] {
        let request = targets(&made, &names);
        // Each is idempotent.
        for _ in 0..2 {
            let changed = if register {
                cloud.register(&request)
            } else {
                cloud.deregister(&request)
            };
            changed.unwrap();
            assert_eq!(registered(&cloud, id), left, "{names:?}");
        }
    }
    assert_eq!(listed(&cloud)[0].digest, made.digest);

    cloud.delete(&delete_of(&made)).unwrap();
    let gone = targets(&made, &["tg-a"]);
    assert_eq!(
        refusal(cloud.register(&gone)),
        refused(CloudErrorKind::NotFound, "InvalidInstanceID.NotFound")
    );
    cloud.deregister(&gone).unwrap();
}

#[test]
fn a_lost_answer_of_a_registration_has_its_effect() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"fail": [
        {"operation": "register", "error": "ambiguous"},
        {"operation": "deregister", "error": "ambiguous"},
        {"operation": "target-health", "error": "throttled"},
    ]}));
    let made = cloud.create(&request(0)).unwrap();
    let request = targets(&made, &["tg-a"]);
    assert_eq!(
        refusal(cloud.register(&request)).0,
        CloudErrorKind::Ambiguous
    );
    assert_eq!(registered(&cloud, &made.provider_id), ["tg-a"]);
    assert_eq!(
        refusal(cloud.deregister(&request)).0,
        CloudErrorKind::Ambiguous
    );
    assert!(registered(&cloud, &made.provider_id).is_empty());
    assert_eq!(
        refusal(cloud.target_health(&[], &[])).0,
        CloudErrorKind::Throttled
    );
}

#[test]
fn health_is_asked_for_again_and_registrations_arent() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"fail": [
        {"operation": "target-health", "count": 2, "error": "transient"},
        {"operation": "register", "error": "transient"},
        {"operation": "deregister", "error": "transient"},
    ]}));
    let made = cloud.create(&request(0)).unwrap();
    let request = targets(&made, &["tg-a"]);
    let retrying = crate::provider::retry::RetryingReads::new(&cloud, &*lab.clock);
    let kind = |outcome| refusal::<()>(outcome).0;
    assert_eq!(kind(retrying.register(&request)), CloudErrorKind::Transient);
    assert_eq!(
        kind(retrying.deregister(&request)),
        CloudErrorKind::Transient
    );
    let ids = std::slice::from_ref(&made.provider_id);
    let found = retrying.target_health(ids, &request.load_balancers);
    assert_eq!(found.unwrap()[0].state, TargetState::Absent);
    assert_eq!(retrying.probe(&made.provider_id, &TCP), Some(Ok(())));
}

#[test]
fn health_follows_from_state_time_and_image() {
    use TargetState as T;
    for (options, seconds, expected, healthy) in [
        (json!({}), 0, T::Healthy, true),
        (json!({"boot_time": "5s"}), 4, T::Initial, false),
        (json!({"boot_time": "5s"}), 5, T::Healthy, true),
        (
            json!({"boot_time": "5s", "healthy_after": "10s"}),
            14,
            T::Initial,
            false,
        ),
        (
            json!({"boot_time": "5s", "healthy_after": "10s"}),
            15,
            T::Healthy,
            true,
        ),
        (json!({"unhealthy": {"ami-1": 1}}), 60, T::Unhealthy, false),
        (json!({"unhealthy": {"golden": 1}}), 60, T::Unhealthy, false),
        (json!({"unhealthy": {"ami-1": 0}}), 60, T::Healthy, true),
        (json!({"unhealthy": {"ami-2": 1}}), 60, T::Healthy, true),
    ] {
        let lab = Lab::new();
        let mut all = options.clone();
        all["images"] = json!([{"id": "ami-1", "name": "golden"}]);
        let cloud = lab.aws(all);
        let made = cloud.create(&request(0)).unwrap();
        let id = made.provider_id.as_str();
        assert_eq!(target_state(&cloud, id), T::Absent, "{options}");
        cloud.register(&targets(&made, &["tg-a"])).unwrap();
        lab.pass(seconds * 1_000);
        assert_eq!(target_state(&cloud, id), expected, "{options} {seconds}");
        let probed = probe(&cloud, id, &TCP).is_ok();
        assert_eq!(probed, healthy, "{options} {seconds}");
    }
}

#[test]
fn the_image_is_found_where_each_cloud_names_it() {
    let path = "projects/debian-cloud/global/images/family/debian-13";
    for (provider, image, key) in [
        (ProviderKind::Aws, json!({"ImageId": "ami-1"}), "ami-1"),
        (ProviderKind::Gcp, json!({"SourceImage": path}), path),
        (
            ProviderKind::Gcp,
            json!({"disks": [{"initializeParams": {"sourceImage": path}}]}),
            path,
        ),
        (
            ProviderKind::Gcp,
            json!({"SourceImage": path}),
            "debian-13-trixie-v20250910",
        ),
        (ProviderKind::Sim, json!({"ImageId": "x"}), "x"),
    ] {
        let lab = Lab::new();
        let cloud = lab.cloud(provider, json!({"unhealthy": {key: 1}}));
        let created = CreateRequest {
            args: args(&image),
            ..request(0)
        };
        let made = cloud.create(&created).unwrap();
        let probed = probe(&cloud, &made.provider_id, &TCP);
        assert!(probed.is_err(), "{image} {key}");
    }
}

#[test]
fn the_seed_decides_which_share_is_unhealthy() {
    let unhealthy = |seed: u64| -> Vec<u32> {
        let lab = Lab::new();
        let cloud = lab.aws(json!({"seed": seed, "unhealthy": {"ami-1": 0.3}}));
        (0..100)
            .filter(|slot| {
                let made = cloud.create(&request(*slot)).unwrap();
                probe(&cloud, &made.provider_id, &TCP).is_err()
            })
            .collect()
    };
    let first = unhealthy(1);
    assert_eq!(first, unhealthy(1));
    assert_ne!(first, unhealthy(2));
    assert!((15..45).contains(&first.len()), "{}", first.len());
}

#[test]
fn a_check_says_why_it_fails() {
    let http = |status| Check::Http {
        tls: false,
        port: 80,
        path: "/healthz".into(),
        status,
    };
    let command = Check::Command {
        words: Vec::new().into(),
    };
    let lab = Lab::new();
    let cloud = lab.aws(json!({"unhealthy": {"ami-1": 1}}));
    let made = cloud.create(&request(0)).unwrap();
    let id = made.provider_id.as_str();
    for (check, why) in [
        (&TCP, "port 80: connection refused"),
        (&http(200), "GET /healthz: status 503, expected 200"),
        (&http(503), "GET /healthz: status 500, expected 503"),
    ] {
        assert_eq!(probe(&cloud, id, check).unwrap_err(), why);
    }
    assert_eq!(probe(&cloud, id, &Check::Running), Ok(()));
    assert!(cloud.probe(id, &command).is_none());
    lab.admin().stop(id).unwrap();
    for check in [&Check::Running, &TCP, &http(200)] {
        let why = probe(&cloud, id, check).unwrap_err();
        assert_eq!(why, "the instance is stopped");
    }
    let why = probe(&cloud, "i-0", &TCP).unwrap_err();
    assert_eq!(why, "the instance doesn't exist");
}

#[test]
fn an_instance_failed_by_hand_stays_unhealthy_until_recovered() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"healthy_after": "10s"}));
    let made = cloud.create(&request(0)).unwrap();
    let id = made.provider_id.as_str();
    cloud.register(&targets(&made, &["tg-a"])).unwrap();
    lab.pass(10_000);
    let mut admin = lab.admin();
    admin.fail("default/web/0").unwrap();
    // Stopping and starting doesn't help.
    admin.stop(id).unwrap();
    assert_eq!(target_state(&cloud, id), TargetState::Unhealthy);
    admin.start(id).unwrap();
    assert_eq!(target_state(&cloud, id), TargetState::Unhealthy);
    assert_eq!(state(&cloud, id), Some(LifecycleState::Running));
    admin.recover(id).unwrap();
    assert_eq!(target_state(&cloud, id), TargetState::Healthy);
}

#[test]
fn health_after_a_restart_takes_its_time_again() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"boot_time": "5s", "healthy_after": "10s"}));
    let made = cloud.create(&request(0)).unwrap();
    lab.pass(15_000);
    let healthy = || probe(&cloud, &made.provider_id, &TCP).is_ok();
    assert!(healthy());
    let mut update = update_of(&made, &["instance_type"]);
    update.instance_type = "t3.large".to_owned();
    update.restart = true;
    cloud.update(&update).unwrap();
    for (seconds, expected) in [(10, false), (9, false), (1, true)] {
        lab.pass(seconds * 1_000);
        assert_eq!(healthy(), expected, "{seconds}");
    }
}

/// A database of an earlier version has no table of failed instances.
#[test]
fn a_database_of_an_earlier_version_still_opens() {
    let lab = Lab::new();
    let made = lab.aws(json!({})).create(&request(0)).unwrap();
    let database = rusqlite::Connection::open(lab.path()).unwrap();
    let left_out = "DROP TABLE failed";
    database.execute_batch(left_out).unwrap();
    drop(database);
    let id = made.provider_id.as_str();
    assert_eq!(probe(&lab.aws(json!({})), id, &TCP), Ok(()));
    lab.admin().fail(id).unwrap();
    assert!(probe(&lab.aws(json!({})), id, &TCP).is_err());
}
