//! Creating, changing, deleting.

use std::io::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::*;
use crate::provider::TargetsRequest;

#[test]
fn the_same_token_and_request_give_the_same_instance() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let first = cloud.create(&request(0)).unwrap();
    assert_eq!(cloud.create(&request(0)).unwrap(), first);
    assert_eq!(listed(&cloud), [first]);
}

#[test]
fn a_token_means_one_request_for_ever() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let made = cloud.create(&request(0)).unwrap();
    let mut other = request(0);
    other.instance_type = "t3.large".to_owned();
    let mismatch = refused(CloudErrorKind::TokenMismatch, "IdempotentParameterMismatch");
    assert_eq!(refusal(cloud.create(&other)), mismatch);

    cloud.delete(&delete_of(&made)).unwrap();
    let error = cloud.create(&request(0)).unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::TokenMismatch);
    assert!(error.message.contains("already terminated"), "{error}");
    assert!(listed(&cloud).is_empty());
}

#[test]
fn tokens_have_1_to_64_ascii_characters() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    for token in ["", "é", &"x".repeat(65)] {
        let wrong = CreateRequest {
            token: token.to_owned(),
            ..request(0)
        };
        assert_eq!(
            refusal(cloud.create(&wrong)).0,
            CloudErrorKind::Invalid,
            "{token}"
        );
    }
    let longest = CreateRequest {
        token: "x".repeat(64),
        ..request(0)
    };
    cloud.create(&longest).unwrap();
}

#[test]
fn ids_and_identity_are_those_of_the_cloud_it_stands_in_for() {
    let slot_7 = |separator: &str| {
        let mut request = request(7);
        request.tags = request
            .tags
            .into_iter()
            .map(|(key, value)| (key.replace(':', separator), value))
            .collect();
        request
    };
    for (provider, separator, prefix, length) in [
        (ProviderKind::Aws, ":", "i-", 19),
        (ProviderKind::Gcp, "-", "prod-web-7", 10),
        (ProviderKind::Sim, ":", "sim-", 20),
    ] {
        let lab = Lab::new();
        let cloud = lab.cloud(provider, json!({}));
        let made = cloud.create(&slot_7(separator)).unwrap();
        assert!(made.provider_id.starts_with(prefix), "{}", made.provider_id);
        assert_eq!(made.provider_id.len(), length);
        assert_eq!(made.group.as_deref(), Some("default/web"), "{provider:?}");
        assert_eq!(made.slot, Some(7));
        assert_eq!(made.instance_id, Some(request(7).instance_id));
        // Nothing but the token decides.
        let again = Lab::new().cloud(provider, json!({}));
        assert_eq!(again.create(&slot_7(separator)).unwrap(), made);
        assert_eq!(listed(&cloud), [made]);
    }
}

#[test]
fn a_name_that_lives_is_taken_on_gcp() {
    let lab = Lab::new();
    let cloud = lab.cloud(ProviderKind::Gcp, json!({}));
    let first = cloud.create(&request(0)).unwrap();
    let second = CreateRequest {
        token: "another".to_owned(),
        ..request(0)
    };
    let taken = refused(CloudErrorKind::TokenMismatch, "alreadyExists");
    assert_eq!(refusal(cloud.create(&second)), taken);
    cloud.delete(&delete_of(&first)).unwrap();
    assert_eq!(
        cloud.create(&second).unwrap().provider_id,
        first.provider_id
    );
}

#[test]
fn attributes_are_what_was_asked_for() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let mut wanted = request(0);
    wanted.userdata = Some(BASE64.encode("#cloud-config\n{}\n"));
    let attributes = cloud.create(&wanted).unwrap().attributes().unwrap();
    assert_eq!(attributes.instance_type, "t3.small");
    assert_eq!(attributes.args, wanted.args);
    assert_eq!(attributes.tags, wanted.tags);
    assert_eq!(attributes.userdata.as_deref(), Some("#cloud-config\n{}\n"));
    assert_eq!(attributes.load_balancers.unwrap(), [""; 0]);
}

#[test]
fn userdata_is_told_as_text() {
    let mut gzipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzipped.write_all(b"#!/bin/sh\n\"quoted\"\n").unwrap();
    let gzipped = gzipped.finish().unwrap();
    for (sent, told) in [
        (&b"#!/bin/sh\n"[..], "#!/bin/sh\n".to_owned()),
        (&gzipped, "#!/bin/sh\n\"quoted\"\n".to_owned()),
        (&[0xff, 0xfe], BASE64.encode([0xff, 0xfe])),
        // What only looks gzipped is bytes like any others.
        (&[0x1f, 0x8b, 0xff], BASE64.encode([0x1f, 0x8b, 0xff])),
        (b"", String::new()),
    ] {
        let cloud = Lab::new();
        let cloud = cloud.aws(json!({}));
        let wanted = CreateRequest {
            userdata: Some(BASE64.encode(sent)),
            ..request(0)
        };
        let attributes = cloud.create(&wanted).unwrap().attributes().unwrap();
        assert_eq!(attributes.userdata, Some(told));
    }
}

#[test]
fn userdata_has_the_limit_of_the_cloud_it_stands_in_for() {
    for (provider, size, fits) in [
        (ProviderKind::Aws, 16_384, true),
        (ProviderKind::Aws, 16_385, false),
        (ProviderKind::Gcp, 262_144, true),
        (ProviderKind::Gcp, 262_145, false),
        (ProviderKind::Sim, 262_145, true),
    ] {
        let lab = Lab::new();
        let userdata = Some(BASE64.encode(vec![b'x'; size]));
        let made = lab.cloud(provider, json!({})).create(&CreateRequest {
            userdata,
            ..request(0)
        });
        assert_eq!(made.is_ok(), fits, "{provider:?} {size}");
    }
    let lab = Lab::new();
    let broken = CreateRequest {
        userdata: Some("%".to_owned()),
        ..request(0)
    };
    let refusal = refusal(lab.aws(json!({})).create(&broken));
    assert_eq!(
        refusal,
        refused(CloudErrorKind::Invalid, "InvalidUserData.Malformed")
    );
}

#[test]
fn the_digest_is_news_exactly_when_the_attributes_are() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let made = cloud.create(&request(0)).unwrap();
    assert_eq!(made.digest, hash(&[made.attributes.as_bytes()]));

    let same = cloud
        .update(&update_of(&made, &["tags", "args", "load_balancers"]))
        .unwrap();
    assert_eq!(same, made);

    let mut update = update_of(&made, &["tags"]);
    update.tags.insert("team".to_owned(), "blue".to_owned());
    let changed = cloud.update(&update).unwrap();
    assert_ne!(changed.digest, made.digest);
    let back = cloud.update(&update_of(&made, &["tags"])).unwrap();
    assert_eq!(
        (back.digest, back.attributes),
        (made.digest, made.attributes)
    );
}

#[test]
fn an_update_changes_what_it_names_and_nothing_else() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let made = cloud.create(&request(0)).unwrap();
    let mut update = update_of(&made, &[]);
    update.args = args(&json!({"SecurityGroupIds": ["sg-2"], "Monitoring": {"Enabled": true}}));
    update.tags.insert("team".to_owned(), "blue".to_owned());
    update.load_balancers = vec!["tg-a".to_owned()];
    let before = made.attributes().unwrap();
    let run = |changed: &[&str]| {
        update.changed = changed.iter().map(|path| (*path).to_owned()).collect();
        cloud.update(&update).unwrap().attributes().unwrap()
    };
    let mut run = run;

    assert_eq!(run(&[]), before);
    let after = run(&["args.SecurityGroupIds[0]"]);
    let expected = json!({"ImageId": "ami-1", "SecurityGroupIds": ["sg-2"]});
    assert_eq!(Value::from(after.args), expected);
    assert_eq!(after.tags, before.tags);
    let after = run(&["args.Monitoring.Enabled"]);
    assert_eq!(after.args["Monitoring"], json!({"Enabled": true}));
    let after = run(&["tags.team", "load_balancers"]);
    assert_eq!(after.tags["team"], "blue");
    assert_eq!(after.load_balancers.unwrap(), ["tg-a"]);
    // An arg that is no longer wanted goes.
    update.args.clear();
    update.changed = vec!["args.Monitoring".to_owned()];
    let after = cloud.update(&update).unwrap().attributes().unwrap();
    assert!(!after.args.contains_key("Monitoring"));
    assert!(after.args.contains_key("ImageId"));
}

#[test]
fn what_no_cloud_changes_is_refused() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let made = cloud.create(&request(0)).unwrap();
    for (path, code) in [
        ("args.ImageId", "InvalidParameterCombination"),
        ("args.KeyName", "InvalidParameterCombination"),
        ("colour", "InvalidParameterValue"),
    ] {
        let refusal = refusal(cloud.update(&update_of(&made, &[path])));
        assert_eq!(refusal, refused(CloudErrorKind::Invalid, code), "{path}");
    }
    let mut nowhere = update_of(&made, &["tags"]);
    nowhere.provider_id = "i-0".to_owned();
    let missing = refused(CloudErrorKind::NotFound, "InvalidInstanceID.NotFound");
    assert_eq!(refusal(cloud.update(&nowhere)), missing);
    assert_eq!(listed(&cloud), [made]);
}

#[test]
fn a_type_changes_over_a_stop_and_a_start() {
    use LifecycleState as S;
    let lab = Lab::new();
    let cloud = lab.aws(json!({"boot_time": "10s"}));
    let made = cloud.create(&request(0)).unwrap();
    let id = made.provider_id.as_str();
    assert_eq!(made.state, S::Pending);
    lab.pass(9_999);
    assert_eq!(state(&cloud, id), Some(S::Pending));
    lab.pass(1);
    assert_eq!(state(&cloud, id), Some(S::Running));

    let mut update = update_of(&made, &["instance_type"]);
    update.instance_type = "t3.large".to_owned();
    let running = refused(CloudErrorKind::Invalid, "IncorrectInstanceState");
    assert_eq!(refusal(cloud.update(&update)), running);
    update.restart = true;
    let changed = cloud.update(&update).unwrap();
    assert_eq!(changed.state, S::Stopping);
    assert_eq!(changed.attributes().unwrap().instance_type, "t3.large");
    // Again, as after a lost answer: it isn't restarted twice.
    lab.pass(10_000);
    assert_eq!(cloud.update(&update).unwrap().state, S::Pending);
    lab.pass(10_000);
    assert_eq!(cloud.update(&update).unwrap().state, S::Running);
}

#[test]
fn a_deleted_instance_goes_away_in_time() {
    use LifecycleState as S;
    let lab = Lab::new();
    let cloud = lab.aws(json!({"boot_time": "10s"}));
    let made = cloud.create(&request(0)).unwrap();
    let targets = TargetsRequest {
        provider_id: made.provider_id.clone(),
        load_balancers: vec!["tg-a".to_owned()],
    };
    cloud.register(&targets).unwrap();
    cloud.delete(&delete_of(&made)).unwrap();
    let seen = &listed(&cloud)[0];
    assert_eq!(seen.state, S::ShuttingDown);
    assert_eq!(seen.attributes().unwrap().load_balancers.unwrap(), [""; 0]);
    let missing = refusal(cloud.update(&update_of(&made, &["tags"])));
    assert_eq!(missing.0, CloudErrorKind::NotFound);
    lab.pass(10_000);
    assert!(listed(&cloud).is_empty());
    assert_eq!(state(&cloud, &made.provider_id), None);
    // Gone already, and never there: both are as wanted.
    cloud.delete(&delete_of(&made)).unwrap();
    let never = DeleteRequest {
        provider_id: "i-0".to_owned(),
        ..delete_of(&made)
    };
    cloud.delete(&never).unwrap();
}

#[test]
fn protection_holds_until_it_is_lifted() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let protected = args(&json!({"ImageId": "ami-1", "DisableApiTermination": true}));
    let made = cloud
        .create(&CreateRequest {
            args: protected,
            ..request(0)
        })
        .unwrap();
    let denied = refused(CloudErrorKind::Denied, "OperationNotPermitted");
    assert_eq!(refusal(cloud.delete(&delete_of(&made))), denied);
    assert_eq!(listed(&cloud).len(), 1);
    let mut lift = update_of(&made, &["args.DisableApiTermination"]);
    lift.args
        .insert("DisableApiTermination".to_owned(), Value::Bool(false));
    cloud.update(&lift).unwrap();
    cloud.delete(&delete_of(&made)).unwrap();
    assert!(listed(&cloud).is_empty());
}

#[test]
fn subnets_fill_up_and_empty() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"subnets": {"subnet-a": {"zone": "us-west-2a", "size": 20}}}));
    let available = || cloud.subnets(&["subnet-a".to_owned()]).unwrap()[0].available;
    assert_eq!(available(), Some(20));
    let made: Vec<_> = (0..20)
        .map(|slot| cloud.create(&request(slot)).unwrap())
        .collect();
    let addresses: std::collections::BTreeSet<_> = made.iter().map(|one| &one.ip4).collect();
    assert_eq!(addresses.len(), 20);
    assert_eq!(available(), Some(0));
    let full = refused(
        CloudErrorKind::Capacity,
        "InsufficientFreeAddressesInSubnet",
    );
    assert_eq!(refusal(cloud.create(&request(20))), full);
    cloud.delete(&delete_of(&made[3])).unwrap();
    assert_eq!(available(), Some(1));
    assert_eq!(cloud.create(&request(20)).unwrap().ip4, made[3].ip4);
}

#[test]
fn an_instance_lies_in_its_subnets_zone() {
    let lab = Lab::new();
    let options = json!({
        "subnets": {"subnet-a": {"zone": "us-west-2a"}},
        "strict_subnets": true,
    });
    let cloud = lab.aws(options);
    let elsewhere = CreateRequest {
        zone: "us-west-2b".to_owned(),
        ..request(0)
    };
    let wrong = refused(CloudErrorKind::Invalid, "InvalidParameterValue");
    assert_eq!(refusal(cloud.create(&elsewhere)), wrong);
    let unknown = CreateRequest {
        subnet: Some("subnet-x".to_owned()),
        ..request(0)
    };
    let missing = refused(CloudErrorKind::Invalid, "InvalidSubnetID.NotFound");
    assert_eq!(refusal(cloud.create(&unknown)), missing);
    let subnets = cloud
        .subnets(&["subnet-x".to_owned(), "subnet-a".to_owned()])
        .unwrap();
    assert_eq!(
        subnets,
        [SubnetInfo {
            id: "subnet-a".to_owned(),
            zone: Some("us-west-2a".to_owned()),
            available: Some(251)
        }]
    );
}

#[test]
fn subnets_that_nothing_is_said_of_exist_and_span_zones() {
    for (provider, available) in [(ProviderKind::Aws, Some(251)), (ProviderKind::Gcp, None)] {
        let lab = Lab::new();
        let cloud = lab.cloud(provider, json!({}));
        for (slot, zone) in ["us-west-2a", "us-west-2b"].into_iter().enumerate() {
            let spread = CreateRequest {
                zone: zone.to_owned(),
                ..request(slot as u32)
            };
            assert_eq!(cloud.create(&spread).unwrap().zone, zone);
        }
        let subnet = &cloud.subnets(&["subnet-a".to_owned()]).unwrap()[0];
        assert_eq!(subnet.zone, None);
        assert_eq!(subnet.available, available.map(|free| free - 2));
    }
}

#[test]
fn addresses_can_be_asked_for() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({}));
    let fixed = |slot, address: &str| CreateRequest {
        args: args(&json!({"PrivateIpAddress": address, "Ipv6AddressCount": 1})),
        ..request(slot)
    };
    let made = cloud.create(&fixed(0, "10.1.2.3")).unwrap();
    assert_eq!(made.ip4.as_deref(), Some("10.1.2.3"));
    assert_eq!(made.ip6.as_deref(), Some("fd00:6e73::a01:203"));
    let in_use = refused(CloudErrorKind::Invalid, "InvalidIPAddress.InUse");
    assert_eq!(refusal(cloud.create(&fixed(1, "10.1.2.3"))), in_use);
    assert_eq!(
        refusal(cloud.create(&fixed(1, "ten"))).0,
        CloudErrorKind::Invalid
    );
    cloud.delete(&delete_of(&made)).unwrap();
    cloud.create(&fixed(1, "10.1.2.3")).unwrap();
    let anywhere = CreateRequest {
        subnet: None,
        ..request(2)
    };
    let made = cloud.create(&anywhere).unwrap();
    assert_eq!((made.subnet, made.ip6), (None, None));
    assert!(made.ip4.unwrap().starts_with("100."));
}

#[test]
fn capacity_and_quota_count_what_lives() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"capacity": {"t3.small": 2, "m5.large": 0}, "quota": 3}));
    let made: Vec<_> = (0..2)
        .map(|slot| cloud.create(&request(slot)).unwrap())
        .collect();
    let capacity = refused(CloudErrorKind::Capacity, "InsufficientInstanceCapacity");
    assert_eq!(refusal(cloud.create(&request(2))), capacity);
    let other = |slot| CreateRequest {
        instance_type: "t3.nano".to_owned(),
        ..request(slot)
    };
    cloud.create(&other(2)).unwrap();
    let quota = refused(CloudErrorKind::Quota, "InstanceLimitExceeded");
    assert_eq!(refusal(cloud.create(&other(3))), quota);

    // A change of type needs room too, and makes room.
    let mut update = update_of(&made[0], &["instance_type"]);
    update.restart = true;
    update.instance_type = "m5.large".to_owned();
    assert_eq!(refusal(cloud.update(&update)), capacity);
    update.instance_type = "t3.nano".to_owned();
    cloud.update(&update).unwrap();
    cloud.delete(&delete_of(&made[1])).unwrap();
    cloud.create(&request(4)).unwrap();
}

#[test]
fn strict_images_must_exist_and_fit() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({
        "strict_images": true,
        "images": [{"id": "ami-golden", "name": "golden", "arch": "arm64"}],
    }));
    let of = |image: Value, arch: &str| {
        let mut request = request(0);
        request.args.insert("ImageId".to_owned(), image);
        request.arch = arch.to_owned();
        cloud.create(&request)
    };
    for (image, arch, code) in [
        (json!("ami-1"), "amd64", "InvalidAMIID.NotFound"),
        (json!(null), "amd64", "MissingParameter"),
        (json!("ami-golden"), "amd64", "InvalidParameterValue"),
    ] {
        assert_eq!(
            refusal(of(image, arch)),
            refused(CloudErrorKind::Invalid, code)
        );
    }
    of(json!("ami-golden"), "arm64").unwrap();

    let gcp = Lab::new();
    let gcp = gcp.cloud(ProviderKind::Gcp, json!({"strict_images": true}));
    let family = "projects/debian-cloud/global/images/family/debian-13";
    let wanted = CreateRequest {
        args: args(&json!({"SourceImage": family})),
        ..request(0)
    };
    gcp.create(&wanted).unwrap();
}
