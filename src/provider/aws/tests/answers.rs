//! What is asked beside instances: images, subnets, types, quotas, permissions; and how fast.

use std::time::Duration;

use nstance_ec2::Operation;
use serde_json::json;

use super::{Lab, refused, request};
use crate::clock::Clock;
use crate::config::model::{ImageFilter, ImageOrder, ImageSort};
use crate::provider::aws::AwsOptions;
use crate::provider::limits::Rate;
use crate::provider::{
    AccessSample, Cloud, CloudErrorKind, ImageQuery, LaunchedUserdata, Verdict, WantedCapacity,
};

#[test]
fn user_data_is_read_where_it_is_asked_for_and_once_a_launch() {
    let plain = Lab::new();
    assert_eq!(plain.made(&json!({})).attributes().unwrap().userdata, None);
    let options = AwsOptions {
        userdata_drift: true,
        ..AwsOptions::default()
    };
    let lab = Lab::with(options, &[]);
    lab.made(&json!({}));
    for _ in 0..3 {
        let seen = lab.listed().remove(0);
        let attributes = seen.attributes().unwrap();
        assert_eq!(attributes.userdata.as_deref(), Some("#cloud-config\n"));
    }
    assert_eq!(lab.ec2.count(Operation::DescribeInstanceAttribute), 1);
}

/// What an earlier run read holds until the next launch, and not for what is down: that may have
/// been given other user data.
#[test]
fn user_data_that_is_known_isnt_asked_for() {
    let options = || AwsOptions {
        userdata_drift: true,
        ..AwsOptions::default()
    };
    for (what, launch, down, asked, text) in [
        ("the same launch", None, false, 0, "as known"),
        (
            "another launch",
            Some("2020-01-01T00:00:00Z"),
            false,
            1,
            "#cloud-config\n",
        ),
        ("stopped", None, true, 1, "#cloud-config\n"),
    ] {
        let lab = Lab::with(options(), &[]);
        let id = lab.made(&json!({})).provider_id;
        let launches = lab.cloud.userdata_launches();
        assert!(lab.cloud.asks_for_userdata());
        lab.cloud.recall_userdata(vec![LaunchedUserdata {
            provider_id: id.clone(),
            launch: launch.unwrap_or(&launches[&id]).to_owned(),
            text: "as known".to_owned(),
        }]);
        if down {
            lab.ec2.stop(&id);
        }
        let before = lab.ec2.count(Operation::DescribeInstanceAttribute);
        let seen = lab.listed().remove(0).attributes().unwrap();
        let count = lab.ec2.count(Operation::DescribeInstanceAttribute) - before;
        assert_eq!(
            (count, seen.userdata.as_deref()),
            (asked, Some(text)),
            "{what}"
        );
        // Of what is down nothing is known.
        assert_eq!(
            lab.cloud.userdata_launches().len(),
            usize::from(!down),
            "{what}"
        );
    }
}

#[test]
fn calls_keep_to_their_limits() {
    let options = AwsOptions {
        read_rate: Rate {
            burst: 2,
            per_second: 1.0,
        },
        run_rate: Rate {
            burst: 3,
            per_second: 0.5,
        },
        ..AwsOptions::default()
    };
    let lab = Lab::with(options, &[]);
    let begin = lab.clock.now();
    for slot in 0..5 {
        lab.cloud.create(&request(slot, &json!({}))).unwrap();
    }
    assert_eq!(lab.clock.now().since(begin), Duration::from_secs(4));
    let begin = lab.clock.now();
    for _ in 0..4 {
        lab.listed();
    }
    assert_eq!(lab.clock.now().since(begin), Duration::from_secs(2));
}

#[test]
fn images_are_found_by_filters_and_parameters() {
    let lab = Lab::new();
    let query = |ssm: Option<&str>, include_deprecated| ImageQuery {
        filters: if ssm.is_some() {
            Vec::new()
        } else {
            vec![ImageFilter {
                name: "name".into(),
                values: vec!["debian-*".into()],
            }]
        },
        owners: vec!["self".into()],
        family: None,
        project: None,
        ssm: ssm.map(str::to_owned),
        include_deprecated,
        sort: ImageSort::CreationDate,
        order: ImageOrder::Descending,
    };
    let ids = |query| -> Vec<String> {
        lab.cloud
            .find_images(&query)
            .unwrap()
            .into_iter()
            .map(|image| image.id)
            .collect()
    };
    assert_eq!(ids(query(None, false)), ["ami-1", "ami-3"]);
    let (_, asked) = lab.ec2.last(Operation::DescribeImages);
    assert_eq!(
        asked["Filters"],
        json!([{"Name": "name", "Values": ["debian-*"]}, {"Name": "state", "Values": ["available"]}])
    );
    assert_eq!(asked["Owners"], json!(["self"]));
    assert_eq!(ids(query(None, true)), ["ami-1", "ami-2", "ami-3"]);
    assert_eq!(ids(query(Some("/aws/service/debian"), false)), ["ami-9"]);
    let error = lab
        .cloud
        .find_images(&query(Some("/aws/service/text"), false))
        .unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Invalid);
    let error = lab
        .cloud
        .find_images(&query(Some("/none"), false))
        .unwrap_err();
    assert_eq!(error.code, "ParameterNotFound");
}

#[test]
fn subnets_that_dont_exist_spoil_no_others() {
    let lab = Lab::new();
    let found = lab
        .cloud
        .subnets(&["subnet-0".into(), "subnet-1".into()])
        .unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|it| (it.id.as_str(), it.zone.as_deref(), it.available))
        .collect();
    assert_eq!(found, [("subnet-1", Some("us-west-2a"), Some(250))]);
}

#[test]
fn types_are_asked_for_once_and_near_ones_are_found() {
    let lab = Lab::new();
    let names = ["t3.micro".to_owned(), "t4g.small".into(), "t3.mikro".into()];
    for _ in 0..2 {
        let types = lab.cloud.instance_types(&names).unwrap().unwrap();
        let types: Vec<_> = types
            .iter()
            .map(|it| (it.name.as_str(), &it.architectures[..]))
            .collect();
        assert_eq!(
            types,
            [
                ("t3.micro", &["amd64".to_owned()][..]),
                ("t4g.small", &["arm64".to_owned()])
            ]
        );
    }
    assert_eq!(lab.ec2.count(Operation::DescribeInstanceTypes), 1);
    assert_eq!(
        lab.cloud.near_instance_type("t3.mikro").as_deref(),
        Some("t3.micro")
    );
    assert_eq!(
        lab.cloud.near_instance_type("t33.micro").as_deref(),
        Some("t3.micro")
    );
    assert_eq!(lab.cloud.near_instance_type("large"), None);
}

#[test]
fn a_quota_is_told_before_it_is_reached() {
    let lab = Lab::new();
    lab.made(&json!({}));
    let wanted = |count| {
        vec![WantedCapacity {
            instance_type: "t3.micro".into(),
            count,
            interruptible: false,
        }]
    };
    // 2 vCPUs each; 10 are allowed, 2 are used.
    assert_eq!(lab.cloud.limits_ahead(&wanted(4)), Vec::<String>::new());
    assert_eq!(
        lab.cloud.limits_ahead(&wanted(5)),
        [
            "the account may run 10 vCPUs of on-demand standard instances (A, C, D, H, I, M, R, T, Z) in us-west-2; 2 are in use, and this plan adds 10"
        ]
    );
    lab.ec2
        .fail_next(Operation::GetServiceQuota, refused("AccessDeniedException"));
    assert_eq!(lab.cloud.limits_ahead(&wanted(50)), Vec::<String>::new());
    let calls = lab.ec2.total();
    assert_eq!(lab.cloud.limits_ahead(&[]), Vec::<String>::new());
    assert_eq!(
        lab.ec2.total(),
        calls,
        "a plan that creates nothing asks nothing"
    );
}

#[test]
fn permissions_are_asked_for_without_changing_anything() {
    let lab = Lab::new();
    let made = lab.made(&json!({}));
    lab.ec2
        .deny(&[Operation::TerminateInstances, Operation::GetServiceQuota]);
    let sample = AccessSample {
        instance: Some(made.provider_id.clone()),
        ..AccessSample::default()
    };
    let access = lab.cloud.check_access(&sample).unwrap().unwrap();
    assert_eq!(
        access.who,
        "arn:aws:iam::123456789012:user/test, account 123456789012, region us-west-2"
    );
    let missing: Vec<_> = access
        .permissions
        .iter()
        .filter(|it| it.verdict == Verdict::Missing)
        .map(|it| (it.name.as_str(), it.optional))
        .collect();
    assert_eq!(
        missing,
        [
            ("ec2:TerminateInstances", false),
            ("servicequotas:GetServiceQuota", true)
        ]
    );
    let allowed = |name: &str| {
        access
            .permissions
            .iter()
            .any(|it| it.name == name && it.verdict == Verdict::Allowed)
    };
    assert!(
        allowed("ec2:RunInstances")
            && allowed("ec2:CreateTags")
            && allowed("ec2:DescribeInstances")
    );
    assert!(lab.listed()[0].state.is_live());
    assert_eq!(lab.ec2.instances(), [made.provider_id]);
}

/// moto, for one, ignores some.
#[test]
fn an_endpoint_that_ignores_dry_runs_is_asked_for_nothing_that_changes() {
    let lab = Lab::new();
    let made = lab.made(&json!({}));
    let before = lab.listed();
    lab.ec2.ignore_dry_runs();
    let sample = AccessSample {
        instance: Some(made.provider_id.clone()),
        ..AccessSample::default()
    };
    let access = lab.cloud.check_access(&sample).unwrap().unwrap();
    let unknown = |name: &str| {
        let mut all = access.permissions.iter();
        all.any(|it| it.name == name && matches!(it.verdict, Verdict::Unknown(_)))
    };
    assert!(unknown("ec2:RunInstances") && unknown("ec2:TerminateInstances"));
    assert_eq!(lab.listed(), before);
    assert_eq!(lab.ec2.instances(), [made.provider_id]);
}
