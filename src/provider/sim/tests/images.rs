//! Looking images up.

use super::super::admin::NewImage;
use super::*;
use crate::config::model::{ImageFilter, ImageOrder, ImageSort};

fn query(filters: &[(&str, &[&str])]) -> ImageQuery {
    ImageQuery {
        filters: filters
            .iter()
            .map(|(name, values)| ImageFilter {
                name: (*name).into(),
                values: values.iter().map(|value| (*value).into()).collect(),
            })
            .collect(),
        owners: Vec::new(),
        family: None,
        project: None,
        ssm: None,
        include_deprecated: false,
        sort: ImageSort::CreationDate,
        order: ImageOrder::Descending,
    }
}

/// The names that match, the oldest image first.
fn names(cloud: &SimCloud, query: &ImageQuery) -> Vec<String> {
    let mut found = cloud.find_images(query).unwrap();
    found.sort_by(|a, b| (&a.created, &a.id).cmp(&(&b.created, &b.id)));
    found.into_iter().map(|image| image.name).collect()
}

#[test]
fn the_example_of_the_documentation_finds_the_newest_debian() {
    let lab = Lab::new();
    let mut query = query(&[
        ("name", &["debian-13-arm64-*"]),
        ("owner-id", &["136693071363"]),
    ]);
    query.owners = vec!["136693071363".into()];
    for provider in [ProviderKind::Aws, ProviderKind::Sim] {
        let found = names(&lab.cloud(provider, json!({})), &query);
        assert_eq!(found.len(), 4);
        assert_eq!(found[3], "debian-13-arm64-20260914-2601");
    }
    assert!(names(&lab.cloud(ProviderKind::Gcp, json!({})), &query).is_empty());
}

#[test]
fn filters_narrow_as_describe_images_does() {
    let lab = Lab::new();
    let cloud = lab.aws(json!({"images": [
        {"id": "ami-golden", "name": "golden", "owner": "123456789012", "arch": "arm64",
         "created": "2026-10-01T00:00:00.000Z", "tags": {"role": "web", "stage": "prod"}},
    ]}));
    for (filters, count) in [
        (
            &[("name", &["debian-1?-amd64-*"] as &[&str])] as &[(&str, &[&str])],
            6,
        ),
        (&[("name", &["debian-12-*", "golden"])], 5),
        (&[("image-id", &["ami-golden"])], 1),
        (&[("owner-alias", &["amazon"])], 8),
        (
            &[("owner-alias", &["amazon"]), ("architecture", &["arm64"])],
            4,
        ),
        (&[("architecture", &["x86_64"]), ("name", &["al2023*"])], 2),
        (&[("architecture", &["amd64"])], 0),
        (&[("tag:role", &["w*"])], 1),
        (&[("tag:role", &["db"])], 0),
        (&[("tag-key", &["stage"])], 1),
        (&[("is-public", &["false"])], 1),
        (&[("state", &["pending"])], 0),
        (
            &[
                ("root-device-type", &["ebs"]),
                ("virtualization-type", &["hvm"]),
            ],
            21,
        ),
        (
            &[
                ("creation-date", &["2026-*"]),
                ("name", &["debian-13-arm64-*"]),
            ],
            2,
        ),
        (&[("name", &[])], 0),
    ] {
        assert_eq!(names(&cloud, &query(filters)).len(), count, "{filters:?}");
    }
    for (owner, count) in [
        ("self", 1),
        ("amazon", 8),
        ("136693071363", 12),
        ("nobody", 0),
    ] {
        let mut query = query(&[]);
        query.owners = vec![owner.into()];
        assert_eq!(names(&cloud, &query).len(), count, "{owner}");
    }
}

#[test]
fn a_filter_that_does_not_exist_is_named() {
    let lab = Lab::new();
    let error = lab
        .aws(json!({}))
        .find_images(&query(&[("colour", &["*"])]))
        .unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Invalid);
    assert_eq!(error.code, "InvalidParameterValue");
    assert!(error.message.contains("'colour'"), "{error}");
}

#[test]
fn gcp_finds_by_family_and_project() {
    let lab = Lab::new();
    let cloud = lab.cloud(ProviderKind::Gcp, json!({}));
    let mut query = query(&[]);
    query.family = Some("debian-13-arm64".into());
    query.project = Some("debian-cloud".into());
    let found = names(&cloud, &query);
    assert_eq!(
        found,
        [
            "debian-13-trixie-arm64-v20250910",
            "debian-13-trixie-arm64-v20260909"
        ]
    );
    query.project = Some("ubuntu-os-cloud".into());
    assert!(names(&cloud, &query).is_empty());
}

#[test]
fn what_is_published_is_found_by_whoever_looks_for_its_kind() {
    let lab = Lab::new();
    let publish = |name: &str| {
        let image = NewImage {
            name: name.to_owned(),
            ..NewImage::default()
        };
        lab.admin().publish_image(image).unwrap()
    };
    let debian = publish("debian-13-arm64-20270101-9999");
    assert_eq!(
        (debian.owner.as_str(), debian.arch.as_str()),
        ("136693071363", "arm64")
    );
    assert_eq!(debian.created, "2027-01-15T08:00:00.000Z");
    assert!(debian.id.starts_with("ami-"));
    let looked_for = query(&[
        ("name", &["debian-13-arm64-*"]),
        ("owner-id", &["136693071363"]),
    ]);
    let found = names(&lab.aws(json!({})), &looked_for);
    assert_eq!(found.last(), Some(&debian.name));

    let gcp = publish("debian-13-trixie-v20270101");
    assert_eq!(
        gcp.id,
        "projects/debian-cloud/global/images/debian-13-trixie-v20270101"
    );
    assert_eq!(gcp.family.as_deref(), Some("debian-13"));
    let own = publish("golden");
    assert_eq!(own.owner, super::super::images::OWN_ACCOUNT);

    // The same id again takes its place.
    let again = NewImage {
        name: "golden-2".to_owned(),
        id: Some(own.id.clone()),
        created: Some(Timestamp(0)),
        ..NewImage::default()
    };
    lab.admin().publish_image(again).unwrap();
    let cloud = lab.aws(json!({}));
    let by_id = query(&[("image-id", &[own.id.as_str()])]);
    let found = cloud.find_images(&by_id).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "golden-2");
    assert_eq!(found[0].created, "1970-01-01T00:00:00.000Z");
}

#[test]
fn parameters_lead_to_the_newest_image() {
    let lab = Lab::new();
    let by_name = |name: &str| {
        let query = ImageQuery {
            ssm: Some(name.to_owned()),
            ..query(&[])
        };
        lab.aws(json!({})).find_images(&query).map(|found| {
            let [image] = &found[..] else {
                panic!("one image: {found:?}")
            };
            image.clone()
        })
    };
    for (name, date) in [
        ("/aws/service/debian/release/13/latest/arm64", "2026-09-14"),
        (
            "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
            "2026-08-20",
        ),
        (
            "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64",
            "2026-08-17",
        ),
    ] {
        assert!(by_name(name).unwrap().created.starts_with(date), "{name}");
    }
    assert_eq!(
        by_name("/own/golden").unwrap_err().code,
        "ParameterNotFound"
    );
    // What is published under a name of one's own is found by it.
    let golden = lab
        .admin()
        .publish_image(NewImage {
            name: "golden-1".to_owned(),
            tags: [("ssm".to_owned(), "/own/golden".to_owned())].into(),
            ..NewImage::default()
        })
        .unwrap();
    assert_eq!(by_name("/own/golden").unwrap().id, golden.id);
}
