//! Subnets, zones, shards and regions.

use insta::assert_snapshot;

use super::world::{Aws, FLEET, live};

#[test]
fn a_subnet_outside_of_the_zone_is_an_error() {
    let Some(aws) = Aws::with(FLEET) else { return };
    aws.edit("\"subnet_pool\": \"nodes\"", "\"subnet_pool\": \"far\"");
    assert_snapshot!("subnet_far", aws.told("plan"));
}

#[test]
fn a_subnet_that_is_none_is_an_error() {
    let Some(aws) = Aws::with(FLEET) else { return };
    aws.edit(
        "\"subnet-00000000000000001\", ",
        "\"subnet-0123456789abcdef0\", ",
    );
    assert_snapshot!("subnet_missing", aws.told("plan"));
}

/// Others can use it, so the pool is said to be wrong before anything is placed in it.
#[test]
fn a_subnet_that_no_group_can_use_is_an_error() {
    let Some(aws) = Aws::with(FLEET) else { return };
    aws.edit("\"far\": [\"subnet-00000000000000003\"],", "");
    aws.edit(
        "\"subnet-00000000000000002\"]",
        "\"subnet-00000000000000002\", \"subnet-00000000000000003\"]",
    );
    assert_snapshot!("subnet_outside", aws.told("apply --auto-approve"));
    assert!(aws.live().is_empty());
    // Of one pool, groups in several zones use what lies in theirs.
    aws.edit(
        "\"store\": { \"template\": \"node\", \"size\": 1 }",
        "\"store\": { \"template\": \"node\", \"size\": 1, \"zones\": [\"eu-north-1b\"] }",
    );
    aws.apply("");
    let far = aws.id("subnet-", 3);
    assert_eq!(aws.instance("default/store/0").text("subnetId"), far);
}

/// Args can name places too: of a second interface, and of the instance itself.
#[test]
fn args_that_name_another_zone_are_errors() {
    let Some(aws) = Aws::with(FLEET) else { return };
    aws.edit(
        "\"SecurityGroupIds\": [\"sg-00000000000000001\"],",
        "\"NetworkInterfaces\": [{ \"DeviceIndex\": 0 }, \
         { \"DeviceIndex\": 1, \"SubnetId\": \"subnet-00000000000000003\" }],",
    );
    aws.edit(
        "\"web\": { \"template\": \"node\", \"size\": 2 }",
        "\"web\": { \"template\": \"node\", \"size\": 2, \
         \"args\": { \"Placement\": { \"AvailabilityZone\": \"eu-north-1c\" } } }",
    );
    assert_snapshot!("args_outside", aws.told("plan"));
}

#[test]
fn slots_go_round_the_zones() {
    let Some(aws) = Aws::with(FLEET) else { return };
    aws.edit("\"far\": [\"subnet-00000000000000003\"],", "");
    aws.edit(
        "[\"subnet-00000000000000001\", \"subnet-00000000000000002\"]",
        "[\"subnet-00000000000000001\", \"subnet-00000000000000002\", \"subnet-00000000000000003\"]",
    );
    aws.edit(
        "\"size\": 2",
        "\"size\": 3, \"zones\": [\"eu-north-1a\", \"eu-north-1b\"]",
    );
    aws.apply("");
    let zones: Vec<String> = aws
        .live()
        .iter()
        .filter(|one| one.address.contains("web"))
        .map(|one| one.text("placement/availabilityZone").to_owned())
        .collect();
    assert_eq!(zones, ["eu-north-1a", "eu-north-1b", "eu-north-1a"]);
}

#[test]
fn a_full_subnet_makes_room_for_the_next() {
    let Some(aws) = Aws::with(FLEET) else { return };
    // 123 addresses are free, of which 10 are left alone.
    aws.edit("\"size\": 2", "\"size\": 115");
    aws.apply("");
    let count = |number: usize| {
        let subnet = aws.id("subnet-", number);
        let live = aws.live().into_iter();
        live.filter(|one| one.text("subnetId") == subnet).count()
    };
    assert_eq!((count(1), count(2)), (113, 3));
}

#[test]
fn shards_of_two_regions_run_together() {
    let Some(aws) = Aws::new() else { return };
    let other = "us-west-2";
    aws.furnish_more(other);
    let north = aws.filled(FLEET);
    let west = FLEET
        .replace("eu-north-1", other)
        .replace("\"id\": \"one\"", "\"id\": \"two\"")
        .replace("000000001\"", "000000011\"")
        .replace("000000002\"", "000000012\"")
        .replace("000000003\"", "000000013\"")
        .replace("000000004\"", "000000014\"");
    aws.harness.write("north/nstance.jsonc", &north);
    aws.harness.write("west/nstance.jsonc", aws.filled(&west));
    let both = "-c north -c west";
    let told = aws.told(&format!("{both} apply --auto-approve"));
    assert_snapshot!("regions_apply", told);
    let counts = || ["eu-north-1", other].map(|region| live(aws.proxy.moto(), region).len());
    assert_eq!(counts(), [3, 3]);
    let plan = aws.ok(&format!("{both} plan --detailed-exitcode"));
    assert!(
        plan.stdout.contains("No changes. 2 shards planned."),
        "{plan}"
    );
    aws.ok(&format!("{both} destroy --auto-approve --allow-delete all"));
    assert_eq!(counts(), [0, 0]);
}
