//! The whole life of a fleet: each step is a snapshot, and after each record and cloud agree.

use insta::assert_snapshot;

use super::world::{Aws, FLEET};

#[test]
fn a_fleet_lives_as_on_every_cloud() {
    let Some(aws) = Aws::with(FLEET) else { return };
    crate::clouds::a_fleet_lives(&aws);
}

#[test]
fn a_fleet_lives() {
    let Some(aws) = Aws::with(FLEET) else { return };
    assert_snapshot!("life_01_plan", aws.told("plan --detailed-exitcode"));
    assert!(aws.live().is_empty(), "a plan makes nothing");
    assert_snapshot!("life_02_apply", aws.apply(""));

    let web = aws.instance("default/web/1");
    assert_eq!(web.text("imageId"), aws.id("ami-", 1));
    assert_eq!(web.text("instanceType"), "m7g.large");
    assert_eq!(web.text("subnetId"), aws.id("subnet-", 1));
    assert_eq!(web.groups(), [aws.id("sg-", 1)].into());
    assert_eq!(web.text("metadataOptions/httpTokens"), "optional");
    for (key, value) in [
        ("team", "core"),
        ("nstance:managed", "true"),
        ("nstance:cluster-id", "test"),
        ("nstance:shard", "one"),
        ("nstance:instance-kind", "nod"),
    ] {
        assert_eq!(web.tag(key), value, "{key}");
    }
    assert!(!web.tag("Name").is_empty());

    aws.edit("\"size\": 2", "\"size\": 4");
    assert_snapshot!("life_03_grow", aws.apply(""));
    assert_eq!(aws.live().len(), 5);
    aws.edit("\"size\": 4", "\"size\": 1");
    assert_snapshot!("life_04_shrink", aws.apply("--allow-delete all"));
    assert_eq!(aws.live().len(), 2);
    assert_eq!(aws.instance("default/web/0").tag("nstance:slot"), "0");

    assert_snapshot!(
        "life_05_destroy",
        aws.told("destroy --auto-approve --allow-delete all")
    );
    assert!(aws.live().is_empty());
    assert_eq!(aws.agrees(), 0);
}

#[test]
fn a_tag_changed_by_hand_is_drift() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let id = aws.instance("default/web/0").id;
    let tags = [
        ("ResourceId.1", &*id),
        ("Tag.1.Key", "team"),
        ("Tag.1.Value", "somebody"),
        ("Tag.2.Key", "by"),
        ("Tag.2.Value", "hand"),
    ];
    aws.call("CreateTags", &tags);
    assert_snapshot!("tags_drift", aws.told("drift"));
    assert_snapshot!("tags_apply", aws.apply(""));
    let web = aws.instance("default/web/0");
    assert_eq!((web.tag("team"), web.tag("by")), ("core", ""));
    assert_eq!(web.id, id, "it is the same instance");
}

#[test]
fn what_was_terminated_outside_is_made_again() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let gone = aws.instance("default/web/0").id;
    let kept = aws.instance("default/web/1").id;
    aws.call("TerminateInstances", &[("InstanceId.1", &gone)]);
    assert_snapshot!("terminated_plan", aws.told("plan"));
    aws.apply("");
    assert_ne!(aws.instance("default/web/0").id, gone);
    assert_eq!(aws.instance("default/web/1").id, kept);
}

#[test]
fn what_was_stopped_outside_is_said() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let id = aws.instance("default/web/0").id;
    aws.call("StopInstances", &[("InstanceId.1", &id)]);
    assert_snapshot!("stopped_plan", aws.told("plan"));
}

#[test]
fn an_instance_is_imported_after_the_state_was_lost() {
    // Its user data names it, and isn't reported: it is taken to be as configured for its own id.
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let before: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    let id = aws.instance("default/web/0").id;
    aws.ok("state rm default/web/0");
    assert_snapshot!("import", aws.told(&format!("import default/web/0 {id}")));
    aws.agrees();
    aws.settled();
    std::fs::remove_file(aws.harness.path(".nstance/test/one.db")).unwrap();
    // What carries our tags is adopted, never made twice.
    assert_snapshot!("adopt", aws.apply(""));
    let after: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    assert_eq!(after, before);
}

#[test]
fn protected_instances_are_named_before_anything_is_done() {
    let config = FLEET.replace(
        "\"MetadataOptions\"",
        "\"DisableApiTermination\": true, \"MetadataOptions\"",
    );
    let Some(aws) = Aws::applied(&config) else {
        return;
    };
    aws.proxy.take_calls();
    assert_snapshot!(
        "protected",
        aws.told("destroy --auto-approve --allow-delete all")
    );
    assert_eq!(aws.proxy.count("TerminateInstances"), 0);
    assert_eq!(aws.live().len(), 3);
    aws.edit(
        "\"DisableApiTermination\": true",
        "\"DisableApiTermination\": false",
    );
    aws.apply("");
    aws.ok("destroy --auto-approve --allow-delete all");
    assert!(aws.live().is_empty());
}
