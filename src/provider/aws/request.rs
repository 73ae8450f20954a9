//! Builds the input of `RunInstances`.
//!
//! In: a [`CreateRequest`]. Out: the input. Must not: add members that weren't requested, or call
//! EC2.

use serde_json::{Map, Value, json};

use crate::provider::CreateRequest;

/// An arg that isn't a member of `RunInstances`; it is set once the instance exists.
pub(super) const SOURCE_DEST_CHECK: &str = "SourceDestCheck";

/// The input of `RunInstances` for one instance.
///
/// Args are passed unchanged, except that nulls are removed. With network interfaces, the subnet
/// belongs to the first, since EC2 rejects it elsewhere.
pub(super) fn run_instances(request: &CreateRequest) -> Value {
    let mut input = without_nulls(&request.args);
    input.shift_remove(SOURCE_DEST_CHECK);
    input.insert("MinCount".into(), 1.into());
    input.insert("MaxCount".into(), 1.into());
    input.insert("ClientToken".into(), request.token.as_str().into());
    input.insert("InstanceType".into(), request.instance_type.as_str().into());
    if let Some(userdata) = &request.userdata {
        input.insert("UserData".into(), userdata.as_str().into());
    }
    place(&mut input, request);
    input.insert("TagSpecifications".into(), tag_specifications(request));
    Value::Object(input)
}

/// Sets the subnet, or the zone if there is no subnet.
fn place(input: &mut Map<String, Value>, request: &CreateRequest) {
    let first = input
        .get_mut("NetworkInterfaces")
        .and_then(Value::as_array_mut)
        .and_then(|interfaces| interfaces.iter_mut().find(|interface| is_first(interface)));
    match (&request.subnet, first) {
        // An existing interface determines the subnet and the zone.
        (_, Some(interface)) if interface.get("NetworkInterfaceId").is_some() => {}
        (Some(subnet), Some(Value::Object(interface))) => {
            interface.insert("SubnetId".into(), subnet.as_str().into());
        }
        (Some(subnet), _) => {
            input.insert("SubnetId".into(), subnet.as_str().into());
        }
        (None, _) if request.zone.is_empty() => {}
        (None, _) => {
            let placement = input
                .entry("Placement")
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(placement) = placement
                && !placement.contains_key("AvailabilityZoneId")
            {
                placement
                    .entry("AvailabilityZone")
                    .or_insert_with(|| request.zone.as_str().into());
            }
        }
    }
}

/// Whether an interface determines the instance's subnet.
fn is_first(interface: &Value) -> bool {
    let is_zero = |name: &str| {
        interface
            .get(name)
            .is_none_or(|index| index.as_u64() == Some(0))
    };
    is_zero("DeviceIndex") && is_zero("NetworkCardIndex")
}

/// All tags of the instance, and the user's tags for other resources.
fn tag_specifications(request: &CreateRequest) -> Value {
    let others = request
        .args
        .get("TagSpecifications")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|specification| {
            specification.get("ResourceType").and_then(Value::as_str) != Some("instance")
        })
        .cloned();
    let ours = json!({"ResourceType": "instance", "Tags": tag_list(&request.tags)});
    std::iter::once(ours).chain(others).collect()
}

/// Tags in the API's form.
pub(super) fn tag_list<'t>(tags: impl IntoIterator<Item = (&'t String, &'t String)>) -> Vec<Value> {
    tags.into_iter()
        .map(|(key, value)| json!({"Key": key, "Value": value}))
        .collect()
}

/// An object without nulls, recursively.
pub(super) fn without_nulls(object: &Map<String, Value>) -> Map<String, Value> {
    let cleaned = |value: &Value| match value {
        Value::Object(object) => Value::Object(without_nulls(object)),
        Value::Array(items) => items
            .iter()
            .filter(|item| !item.is_null())
            .map(|item| match item {
                Value::Object(object) => Value::Object(without_nulls(object)),
                other => other.clone(),
            })
            .collect(),
        other => other.clone(),
    };
    object
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), cleaned(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn request(args: &Value, subnet: Option<&str>) -> CreateRequest {
        CreateRequest {
            token: "nstance-1".into(),
            instance_id: "web06".into(),
            name: "web06".into(),
            arch: "amd64".into(),
            instance_type: "t3.micro".into(),
            zone: "us-west-2a".into(),
            subnet: subnet.map(str::to_owned),
            args: args.as_object().unwrap().clone(),
            userdata: Some("I2Nsb3VkLWNvbmZpZw==".into()),
            tags: BTreeMap::from([
                ("Name".into(), "web".into()),
                ("nstance:slot".into(), "0".into()),
            ]),
        }
    }

    #[test]
    fn the_input_is_the_args_and_what_is_ours() {
        let ours = json!({
            "MinCount": 1, "MaxCount": 1, "ClientToken": "nstance-1", "InstanceType": "t3.micro",
            "UserData": "I2Nsb3VkLWNvbmZpZw==",
        });
        let tags = json!({"ResourceType": "instance", "Tags": [
            {"Key": "Name", "Value": "web"}, {"Key": "nstance:slot", "Value": "0"},
        ]});
        let volume = json!({"ResourceType": "volume", "Tags": [{"Key": "a", "Value": "b"}]});
        for (what, args, subnet, expected) in [
            (
                "a subnet",
                json!({"ImageId": "ami-1"}),
                Some("subnet-1"),
                json!({"ImageId": "ami-1", "SubnetId": "subnet-1", "TagSpecifications": [tags]}),
            ),
            (
                "a zone",
                json!({}),
                None,
                json!({"Placement": {"AvailabilityZone": "us-west-2a"}, "TagSpecifications": [tags]}),
            ),
            (
                "a zone beside other placement",
                json!({"Placement": {"Tenancy": "host"}}),
                None,
                json!({"Placement": {"Tenancy": "host", "AvailabilityZone": "us-west-2a"}, "TagSpecifications": [tags]}),
            ),
            (
                "interfaces",
                json!({"NetworkInterfaces": [{"DeviceIndex": 1}, {"DeviceIndex": 0, "Groups": ["sg-1"]}]}),
                Some("subnet-1"),
                json!({"NetworkInterfaces": [{"DeviceIndex": 1}, {"DeviceIndex": 0, "Groups": ["sg-1"], "SubnetId": "subnet-1"}], "TagSpecifications": [tags]}),
            ),
            (
                "an interface that exists",
                json!({"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": "eni-1"}]}),
                Some("subnet-1"),
                json!({"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": "eni-1"}], "TagSpecifications": [tags]}),
            ),
            (
                "tags of others stay, those of instances are in ours",
                json!({"TagSpecifications": [volume, {"ResourceType": "instance", "Tags": [{"Key": "x", "Value": "y"}]}]}),
                Some("s"),
                json!({"SubnetId": "s", "TagSpecifications": [tags, volume]}),
            ),
            (
                "null asks for nothing",
                json!({"KeyName": null, "MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": null}}),
                Some("s"),
                json!({"MetadataOptions": {"HttpTokens": "required"}, "SubnetId": "s", "TagSpecifications": [tags]}),
            ),
            (
                "what isn't of RunInstances",
                json!({"SourceDestCheck": false}),
                Some("s"),
                json!({"SubnetId": "s", "TagSpecifications": [tags]}),
            ),
        ] {
            let Value::Object(mut expected) = expected else {
                unreachable!("an object is written above");
            };
            expected.extend(ours.as_object().unwrap().clone());
            assert_eq!(
                run_instances(&request(&args, subnet)),
                Value::Object(expected),
                "{what}"
            );
        }
    }
}
