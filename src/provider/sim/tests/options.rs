//! Reading options.

use super::super::options::{FailRule, SubnetOption};
use super::*;

#[test]
fn nothing_said_is_nothing_special() {
    let mut findings = Diagnostics::default();
    assert_eq!(
        SimOptions::from_node(None, &mut findings),
        SimOptions::default()
    );
    assert!(findings.is_empty());
    assert_eq!(read_options(&json!(null)).unwrap(), SimOptions::default());
}

#[test]
fn every_option_is_read() {
    let read = read_options(&json!({
        "path": "clouds/a.db",
        "seed": 42,
        "latency": "1.5ms",
        "boot_time": "1m30s",
        "wait_timeout": "5m",
        "stale_listing": "0",
        "error_rate": 0.25,
        "lost_answer_rate": 1,
        "unhealthy": {"debian-13": 0.5, "ami-1": 1},
        "healthy_after": "20s",
        "throttle": 0.5,
        "capacity": {"t3.small": 3},
        "quota": 10,
        "subnets": {"subnet-a": {"zone": "a", "size": 5, "capacity": 2}, "subnet-b": {}},
        "images": [{"id": "ami-1", "name": "debian-13-arm64-20270101-1"}],
        "fail": [{"operation": "images", "after": 2, "count": 3, "error": "not-found"}],
        "strict_images": true,
        "strict_subnets": true,
        "profile": "of another cloud",
    }))
    .unwrap();
    let expected = SimOptions {
        path: Some("clouds/a.db".to_owned()),
        seed: 42,
        latency: Duration::from_micros(1_500),
        boot_time: Duration::from_secs(90),
        wait_timeout: Some(Duration::from_mins(5)),
        stale_listing: Duration::ZERO,
        error_rate: 0.25,
        lost_answer_rate: 1.0,
        unhealthy: [("ami-1".to_owned(), 1.0), ("debian-13".to_owned(), 0.5)].into(),
        healthy_after: Duration::from_secs(20),
        throttle: Some(0.5),
        capacity: [("t3.small".to_owned(), 3)].into(),
        quota: Some(10),
        subnets: [
            (
                "subnet-a".to_owned(),
                SubnetOption {
                    zone: Some("a".to_owned()),
                    size: 5,
                    capacity: Some(2),
                },
            ),
            (
                "subnet-b".to_owned(),
                SubnetOption {
                    zone: None,
                    size: 251,
                    capacity: None,
                },
            ),
        ]
        .into(),
        images: vec![SimImage {
            id: "ami-1".to_owned(),
            name: "debian-13-arm64-20270101-1".to_owned(),
            created: "2026-01-01T00:00:00.000Z".to_owned(),
            owner: "136693071363".to_owned(),
            arch: "arm64".to_owned(),
            ..SimImage::default()
        }],
        fail: vec![FailRule {
            operation: Operation::Images,
            after: 2,
            count: 3,
            error: CloudErrorKind::NotFound,
        }],
        strict_images: true,
        strict_subnets: true,
    };
    assert_eq!(read, expected);
}

#[test]
fn what_is_wrong_is_said_all_at_once() {
    for (options, words) in [
        (json!([]), "`options` must be an object"),
        (json!({"boot_tme": "1s"}), "`boot_tme` isn't an option"),
        (
            json!({"path": ""}),
            "`path` must be a string that isn't empty",
        ),
        (json!({"seed": -1}), "`seed` must be a whole number"),
        (json!({"seed": 1.5}), "`seed` must be a whole number"),
        (json!({"latency": 5}), "`latency` must be a duration"),
        (json!({"latency": "5"}), "`latency` isn't a duration"),
        (json!({"latency": ""}), "`latency` isn't a duration"),
        (json!({"latency": "-5s"}), "`latency` isn't a duration"),
        (json!({"latency": "5 s"}), "`latency` isn't a duration"),
        (json!({"latency": "5d"}), "`latency` isn't a duration"),
        (
            json!({"error_rate": 1.1}),
            "`error_rate` must be a number from 0 to 1",
        ),
        (
            json!({"unhealthy": {"debian-13": "half"}}),
            "`unhealthy.debian-13` must be a number from 0 to 1",
        ),
        (json!({"throttle": 0}), "`throttle` must be calls a second"),
        (
            json!({"capacity": {"t3.small": "two"}}),
            "`capacity.t3.small` must be a whole number",
        ),
        (json!({"quota": []}), "`quota` must be a whole number"),
        (
            json!({"subnets": {"subnet-a": {"size": 9_000_000}}}),
            "`size` must be a whole number",
        ),
        (
            json!({"subnets": {"subnet-a": {"zones": "a"}}}),
            "`zones` isn't an option",
        ),
        (
            json!({"images": [{"name": "golden"}]}),
            "an item of `images` lacks `id`",
        ),
        (
            json!({"images": [{"created": "today"}]}),
            "`created` must be a time",
        ),
        (json!({"fail": {}}), "`fail` must be an array"),
        (
            json!({"fail": [{"error": "transient"}]}),
            "an item of `fail` lacks `operation`",
        ),
        (
            json!({"fail": [{"operation": "list", "error": "x"}]}),
            "`error` can't be `x`",
        ),
        (
            json!({"strict_images": "yes"}),
            "`strict_images` must be true or false",
        ),
    ] {
        let findings = read_options(&options).unwrap_err();
        let found = findings
            .iter()
            .any(|finding| finding.summary.starts_with(words));
        assert!(found, "{options}: {findings:?}");
    }
    let findings = read_options(&json!({"boot_tme": "1s", "sed": 1, "quota": "x"})).unwrap_err();
    assert_eq!(findings.len(), 3);
    let hints: Vec<_> = findings
        .iter()
        .flat_map(|finding| finding.hints.clone())
        .collect();
    assert_eq!(hints, ["did you mean `boot_time`?", "did you mean `seed`?"]);
}

/// All that is wrong with an element, each thing once.
#[test]
fn what_is_wrong_with_elements_is_said_all_at_once() {
    for (options, expected) in [
        (
            json!({"subnets": {"a": 3}}),
            vec!["`subnets.a` must be an object"],
        ),
        (
            json!({"images": [4, null]}),
            vec!["an item of `images` must be an object"; 2],
        ),
        (
            json!({"fail": ["x"]}),
            vec!["an item of `fail` must be an object"],
        ),
        (
            json!({"fail": [{"operation": "crate", "after": -1, "count": "x", "error": "kapazity"}]}),
            vec![
                "`operation` can't be `crate`",
                "`after` must be a whole number from 0 to 18446744073709551615",
                "`count` must be a whole number from 0 to 18446744073709551615",
                "`error` can't be `kapazity`",
            ],
        ),
        (
            json!({"fail": [{"operatoin": "create"}]}),
            vec!["`operatoin` isn't an option of the simulated cloud"],
        ),
        (
            json!({"images": [{"created": "today", "tags": {"a": 1, "b": ""}, "arch": "x86_64"}]}),
            vec![
                "`created` must be a time such as \"2026-09-14T00:00:00.000Z\"",
                "`tags.a` must be a string that isn't empty",
                "`tags.b` must be a string that isn't empty",
                "`arch` can't be `x86_64`",
                "an item of `images` lacks `id` and `name`",
            ],
        ),
        (
            json!({"images": [{"id": "", "name": "x", "arch": 64}]}),
            vec![
                "`id` must be a string that isn't empty",
                "`arch` must be one of amd64, arm64",
            ],
        ),
    ] {
        let findings = read_options(&options).unwrap_err();
        let mut found: Vec<_> = findings.iter().map(|found| &*found.summary).collect();
        let mut expected = expected;
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{options}");
    }
    let findings = read_options(&json!({"images": [{"id": "x", "name": "y", "arch": "aarch64"}]}));
    let findings = findings.unwrap_err();
    let hints: Vec<_> = findings.iter().flat_map(|found| &found.hints).collect();
    assert_eq!(hints, ["it is called `arm64` here"]);
}
