//! The rules of EC2: valid args, changes in place, managed tags.
//!
//! In: the args of one layer as written, paths of a spec, an instance's identity. Out: findings,
//! [`Effect`]s, tags. Must not: call EC2.

mod members;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::config::node::{Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::rules::{
    Effect, FACTS, NamedPlace, Ownership, effect_of, effective, managed_member,
};
use crate::provider::shape::{self, Members, Shape};

use super::request::SOURCE_DEST_CHECK;
use members::RUN_INSTANCES;

/// Members of `RunInstances` that nstance manages, and what to use instead.
const MANAGED: &[(&str, &str)] = &[
    (
        "InstanceType",
        "set `instance_type` of the group or template",
    ),
    ("SubnetId", "set `subnet_pool` of the group or template"),
    ("UserData", "set `userdata` of the group or template"),
    ("MinCount", "set `size` of the group"),
    ("MaxCount", "set `size` of the group"),
    ("ClientToken", "leave it out: every request gets its own"),
    (
        "DryRun",
        "leave it out: `nstance plan` shows what would happen",
    ),
];

/// Valid args that aren't members of `RunInstances`; they are set once the instance exists.
const OURS: Members = &[(SOURCE_DEST_CHECK, Shape::Flag)];

/// The arg that protects an instance from deletion.
pub const PROTECTION: &str = "DisableApiTermination";

/// The prefix of managed tags.
const OUR_TAGS: &str = "nstance:";

/// Reports invalid args of one layer.
pub fn check_args(args: &Node, findings: &mut Diagnostics) {
    for entry in args.entries() {
        if let Some((name, instead)) = managed(&entry.key) {
            findings.push(managed_member(entry, name, instead));
            continue;
        }
        let members = if OURS.iter().any(|(name, _)| *name == &*entry.key) {
            OURS
        } else {
            RUN_INSTANCES
        };
        shape::check(
            std::slice::from_ref(entry),
            members,
            "RunInstances",
            findings,
        );
        match &*entry.key {
            "TagSpecifications" => check_tags(&entry.value, findings),
            "NetworkInterfaces" => check_interfaces(&entry.value, findings),
            _ => {}
        }
    }
    check_merged_args(&[args], findings);
}

/// The managed member with this name, ignoring case.
fn managed(key: &str) -> Option<&'static (&'static str, &'static str)> {
    let known = shape::find(RUN_INSTANCES, key).is_some();
    let squeezed = key.replace('_', "");
    MANAGED
        .iter()
        .find(|(name, _)| !known && name.eq_ignore_ascii_case(&squeezed))
}

/// Reports members of merged layers that exclude each other.
pub fn check_merged_args(layers: &[&Node], findings: &mut Diagnostics) {
    let effective = |name: &str| effective(layers, name);
    let Some(interfaces) = effective("NetworkInterfaces") else {
        return;
    };
    for (name, of_interface) in [
        ("SecurityGroupIds", "Groups"),
        ("SecurityGroups", "Groups"),
        ("PrivateIpAddress", "PrivateIpAddress"),
        ("Ipv6AddressCount", "Ipv6AddressCount"),
        ("Ipv6Addresses", "Ipv6Addresses"),
    ] {
        if let Some(member) = effective(name) {
            findings.push(
                Diagnostic::error(format!("`{name}` can't stand beside `NetworkInterfaces`"))
                    .at(member.key_span, "EC2 refuses both in one request")
                    .related(interfaces.key_span, "the network interfaces")
                    .hint(format!(
                        "move it into `{of_interface}` of the network interface"
                    )),
            );
        }
    }
}

fn check_interfaces(interfaces: &Node, findings: &mut Diagnostics) {
    for interface in items(interfaces) {
        let first = interface.get("DeviceIndex").is_none_or(
            |index| matches!(&index.value, NodeValue::Number(n) if n.as_u64() == Some(0)),
        );
        let subnet = interface
            .entries()
            .iter()
            .find(|entry| &*entry.key == "SubnetId");
        if let Some(subnet) = subnet.filter(|_| first) {
            findings.push(
                Diagnostic::error("the first network interface can't set `SubnetId`")
                    .at(subnet.key_span, "nstance sets it")
                    .hint("set `subnet_pool` of the group or template"),
            );
        }
    }
}

fn check_tags(specifications: &Node, findings: &mut Diagnostics) {
    for specification in items(specifications) {
        let Some(tags) = specification.get("Tags") else {
            continue;
        };
        for tag in items(tags) {
            let Some(key) = tag.get("Key") else {
                continue;
            };
            if let Some(text) = key.as_str().filter(|text| is_managed_tag(text)) {
                findings.push(
                    Diagnostic::warning(format!("the tag `{text}` has no effect"))
                        .at(key.span, "nstance sets this tag itself")
                        .hint("remove it, or choose another name"),
                );
            }
        }
    }
}

fn items(node: &Node) -> &[Node] {
    match &node.value {
        NodeValue::Array(items) => items,
        _ => &[],
    }
}

/// The zone that args set, and the subnets of network interfaces after the first. All interfaces of
/// an instance are in its zone.
pub fn places_named(args: &Map<String, Value>) -> Vec<(String, NamedPlace<'_>)> {
    let zone = args
        .get("Placement")
        .and_then(|placement| placement.get("AvailabilityZone")?.as_str());
    let zone = zone.map(|zone| {
        let path = "args.Placement.AvailabilityZone".to_owned();
        (path, NamedPlace::Zone(zone))
    });
    let interfaces = args.get("NetworkInterfaces").and_then(Value::as_array);
    let subnets = interfaces
        .into_iter()
        .flatten()
        .enumerate()
        .filter_map(|(index, interface)| {
            let subnet = interface.get("SubnetId")?.as_str()?;
            let path = format!("args.NetworkInterfaces[{index}].SubnetId");
            Some((path, NamedPlace::Subnet(subnet)))
        });
    zone.into_iter().chain(subnets).collect()
}

/// Members that EC2 changes on a running instance (`ModifyInstanceAttribute` and its kin).
const IN_PLACE: &[&str] = &[
    "SecurityGroupIds",
    "SecurityGroups",
    "DisableApiTermination",
    "DisableApiStop",
    "InstanceInitiatedShutdownBehavior",
    "MetadataOptions",
    "Monitoring",
    "IamInstanceProfile",
    "CreditSpecification",
    "MaintenanceOptions",
    "PrivateDnsNameOptions",
    "TagSpecifications",
    SOURCE_DEST_CHECK,
];

/// Members that EC2 changes while an instance is stopped.
const RESTART: &[&str] = &["EbsOptimized", "CapacityReservationSpecification"];

/// Members of list elements that change in place, unlike the rest of the list.
const IN_ELEMENTS: &[(&str, &str)] = &[
    ("args.NetworkInterfaces[", "].Groups"),
    ("args.NetworkInterfaces[", "].Description"),
    ("args.NetworkInterfaces[", "].DeleteOnTermination"),
    ("args.BlockDeviceMappings[", "].Ebs.DeleteOnTermination"),
];

/// What a change of the attribute at `path` requires.
pub fn effect(path: &str) -> Effect {
    let in_element = |(list, member): &(&str, &str)| {
        let index = path
            .strip_prefix(list)
            .and_then(|rest| rest.strip_suffix(member));
        index.is_some_and(|index| index.bytes().all(|byte| byte.is_ascii_digit()))
    };
    // The hostname type of a running instance is fixed, but its DNS records can change.
    let names = path.strip_prefix("args.PrivateDnsNameOptions");
    if IN_ELEMENTS.iter().any(in_element) {
        Effect::InPlace
    } else if names.is_some_and(|rest| matches!(rest, "" | ".HostnameType")) {
        Effect::Restart
    } else {
        effect_of(path, IN_PLACE, RESTART)
    }
}

/// The managed tags of an instance, and its `Name`.
pub fn managed_tags(who: &Ownership<'_>) -> BTreeMap<String, String> {
    who.facts()
        .map(|(short, value)| (format!("{OUR_TAGS}{short}"), value))
        .chain([("Name".to_owned(), who.name())])
        .collect()
}

/// Whether nstance sets a tag (`Name` isn't one).
pub fn is_managed_tag(key: &str) -> bool {
    let short = key.strip_prefix(OUR_TAGS);
    short.is_some_and(|short| FACTS.contains(&short))
}

/// Gives members within args their names in the letter case of the API, since the server reads them
/// in any case. The names of args themselves are exact.
pub fn settle_args(args: &mut Node, findings: &mut Diagnostics) {
    if let NodeValue::Object(entries) = &mut args.value {
        for entry in entries {
            if let Some(shape) = shape::find(RUN_INSTANCES, &entry.key) {
                shape::settle(&mut entry.value, shape, findings);
            }
        }
    }
}

/// The tags in rendered args; the last of duplicate keys wins. Managed tags are dropped, even if a
/// template sets them.
pub fn user_tags(args: &Map<String, Value>) -> BTreeMap<String, String> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    list(args.get("TagSpecifications"))
        .iter()
        .filter(|specification| {
            specification.get("ResourceType").and_then(Value::as_str) == Some("instance")
        })
        .flat_map(|specification| list(specification.get("Tags")))
        .filter_map(|tag| {
            let key = tag.get("Key")?.as_str()?.to_owned();
            let value = tag.get("Value").and_then(Value::as_str).unwrap_or_default();
            Some((key, value.to_owned()))
        })
        .filter(|(key, _)| !is_managed_tag(key))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_effect_is_that_of_the_member() {
        for (path, effect_wanted) in [
            ("tags.Name", Effect::InPlace),
            ("vars.X", Effect::InPlace),
            ("files.a.env", Effect::InPlace),
            ("load_balancers", Effect::InPlace),
            ("args.SecurityGroupIds", Effect::InPlace),
            ("args.SecurityGroupIds[0]", Effect::InPlace),
            ("args.MetadataOptions.HttpTokens", Effect::InPlace),
            ("instance_type", Effect::Restart),
            ("args.EbsOptimized", Effect::Restart),
            ("args.SourceDestCheck", Effect::InPlace),
            ("args.CapacityReservationSpecification", Effect::Restart),
            ("args.PrivateDnsNameOptions", Effect::Restart),
            ("args.PrivateDnsNameOptions.HostnameType", Effect::Restart),
            (
                "args.PrivateDnsNameOptions.EnableResourceNameDnsARecord",
                Effect::InPlace,
            ),
            ("args.NetworkInterfaces", Effect::Replace),
            ("args.NetworkInterfaces[1].Groups", Effect::InPlace),
            ("args.NetworkInterfaces[1].SubnetId", Effect::Replace),
            ("args.BlockDeviceMappings", Effect::Replace),
            (
                "args.BlockDeviceMappings[0].Ebs.DeleteOnTermination",
                Effect::InPlace,
            ),
            (
                "args.BlockDeviceMappings[0].Ebs.VolumeSize",
                Effect::Replace,
            ),
            ("args.ImageId", Effect::Replace),
            ("args", Effect::Replace),
            ("userdata", Effect::Replace),
            ("kind", Effect::Replace),
            ("arch", Effect::Replace),
            ("subnet_pool", Effect::Replace),
            ("zone", Effect::Replace),
        ] {
            assert_eq!(effect(path), effect_wanted, "{path}");
        }
    }

    #[test]
    fn args_name_places_beside_ours() {
        let args = json!({
            "Placement": {"AvailabilityZone": "us-west-2a", "Tenancy": "default"},
            "NetworkInterfaces": [
                {"DeviceIndex": 0},
                {"DeviceIndex": 1, "SubnetId": "subnet-1"},
                {"DeviceIndex": 2, "NetworkInterfaceId": "eni-1"},
            ],
        });
        assert_eq!(
            places_named(args.as_object().unwrap()),
            [
                (
                    "args.Placement.AvailabilityZone".to_owned(),
                    NamedPlace::Zone("us-west-2a")
                ),
                (
                    "args.NetworkInterfaces[1].SubnetId".to_owned(),
                    NamedPlace::Subnet("subnet-1")
                ),
            ]
        );
        assert_eq!(places_named(&Map::new()), []);
    }

    #[test]
    fn the_table_leaves_out_what_is_ours() {
        shape::assert_sorted(RUN_INSTANCES);
        for (name, _) in MANAGED {
            assert!(shape::find(RUN_INSTANCES, name).is_none(), "{name}");
        }
    }

    #[test]
    fn the_name_is_cluster_group_and_id() {
        let tags = managed_tags(&Ownership {
            cluster: "prod",
            shard: "us-west-2a",
            tenant: "default",
            group: "web",
            template: "knd",
            kind: "knd",
            slot: 7,
            instance_id: "knd06",
            spec: "abc",
        });
        assert_eq!(tags["Name"], "prod-web-knd06");
        assert_eq!(tags["nstance:managed"], "true");
        assert_eq!(tags["nstance:slot"], "7");
        assert_eq!(tags.len(), 11);
    }

    #[test]
    fn only_the_tags_of_instances_count() {
        let args = json!({"TagSpecifications": [
            {"ResourceType": "volume", "Tags": [{"Key": "a", "Value": "volume"}]},
            {"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b"}]},
            {"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "2"}, {"Key": "nstance:slot"}]},
        ]});
        let tags = user_tags(args.as_object().unwrap());
        assert_eq!(
            tags.into_iter().collect::<Vec<_>>(),
            [("a".into(), "2".into()), ("b".into(), String::new())]
        );
    }
}
