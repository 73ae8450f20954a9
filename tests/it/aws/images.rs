//! Images: by filter, by SSM parameter, and what a newer one does.

use insta::assert_snapshot;

use super::world::{Aws, FLEET, REGION};

const FILTERS: &str = r#""filters": [{ "name": "name", "values": ["debian-13-arm64-*"] }],
      "owners": ["self"],"#;

#[test]
fn a_newer_image_replaces_what_is_there() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let before: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    let newer = aws.add_newer_image("debian-13-arm64-20261120");
    // Older than the newest by name alone.
    aws.add_image("ubuntu-26.04-arm64-20261121");
    aws.settled();
    assert_snapshot!("image_plan", aws.told("plan --refresh-images"));
    assert_snapshot!("image_apply", aws.apply("--refresh-images"));
    for instance in aws.live() {
        assert_eq!(instance.text("imageId"), newer);
        assert!(!before.contains(&instance.id));
    }
}

#[test]
fn a_newer_image_can_be_for_new_instances_only() {
    let config = FLEET.replace(FILTERS, &format!("{FILTERS}\n\"on_newer\": \"new_only\","));
    let Some(aws) = Aws::applied(&config) else {
        return;
    };
    let newer = aws.add_newer_image("debian-13-arm64-20261120");
    aws.edit("\"size\": 2", "\"size\": 3");
    aws.apply("--refresh-images");
    assert_eq!(
        aws.instance("default/web/1").text("imageId"),
        aws.id("ami-", 1)
    );
    assert_eq!(aws.instance("default/web/2").text("imageId"), newer);
}

#[test]
fn an_image_can_come_from_a_parameter() {
    let config = FLEET.replace(FILTERS, r#""ssm": "/images/debian","#);
    let Some(aws) = Aws::with(&config) else {
        return;
    };
    let put = |image: &str| {
        let body = format!(
            r#"{{"Name": "/images/debian", "Type": "String", "Value": "{image}", "Overwrite": true}}"#
        );
        aws.proxy
            .moto()
            .call_json("AmazonSSM.PutParameter", REGION, &body)
            .unwrap();
    };
    assert_snapshot!("parameter_missing", aws.told("plan"));
    put(&aws.id("ami-", 1));
    aws.apply("");
    let image = aws.add_image("debian-14-arm64-20270101");
    put(&image);
    aws.apply("--refresh-images");
    for instance in aws.live() {
        assert_eq!(instance.text("imageId"), image);
    }
}

#[test]
fn an_image_that_nothing_matches_is_explained() {
    let config = FLEET.replace("debian-13-arm64-*", "debian-99-arm64-*");
    let Some(aws) = Aws::with(&config) else {
        return;
    };
    assert_snapshot!("image_missing", aws.told("plan"));
}

#[test]
fn an_image_that_is_gone_is_explained() {
    let Some(aws) = Aws::with(FLEET) else { return };
    aws.edit("{{ .Image.debian }}", "ami-0123456789abcdef0");
    assert_snapshot!("image_gone", aws.told("apply --auto-approve"));
    assert!(aws.live().is_empty());
}
