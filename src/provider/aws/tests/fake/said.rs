//! What EC2 says of the things that it has.
//!
//! In: what was asked for. Out: JSON in EC2's words. Must not: remember anything.

use nstance_ec2::ApiError;
use serde_json::{Value, json};

use super::{list, refused, text};
use crate::clock::Timestamp;

pub(super) fn set_tag(said: &mut Value, key: &str, value: &str) {
    let tags = said["Tags"].as_array_mut().unwrap();
    tags.retain(|tag| tag["Key"] != key);
    tags.push(json!({"Key": key, "Value": value}));
}

pub(super) fn merge(said: &mut Value, name: &str, input: &Value) {
    for (member, value) in input.as_object().unwrap() {
        if !["InstanceId", "PrivateDnsHostnameType"].contains(&member.as_str()) {
            said[name][member] = value.clone();
        }
    }
}

pub(super) fn groups(ids: &Value) -> Value {
    let ids = ids.as_array().into_iter().flatten();
    // EC2 gives them in an order of its own.
    let mut ids: Vec<&str> = ids.filter_map(Value::as_str).collect();
    ids.sort_unstable();
    let name = |id: &str| if id == "sg-1" { "one" } else { "two" };
    ids.into_iter()
        .map(|id| json!({"GroupId": id, "GroupName": name(id)}))
        .collect()
}

pub(super) fn profile(asked: &Value) -> Value {
    match asked.get("Arn") {
        Some(arn) => json!({"Arn": arn, "Id": "AIPA1"}),
        None => json!({
            "Arn": format!("arn:aws:iam::123456789012:instance-profile/path/{}", text(asked, "Name")),
            "Id": "AIPA1",
        }),
    }
}

/// What EC2 says of an instance that was asked for so: with all that it chose itself.
pub(super) fn made(id: &str, number: usize, input: &Value, now: Timestamp) -> Value {
    let time = now.to_string();
    let address = match input["PrivateIpAddress"].as_str() {
        Some(address) => address.to_owned(),
        None => format!("10.0.{}.{}", number / 200, number % 200 + 10),
    };
    let asked = match input["NetworkInterfaces"].as_array() {
        Some(asked) => asked.clone(),
        None => vec![
            json!({"DeviceIndex": 0, "SubnetId": input["SubnetId"], "Groups": input["SecurityGroupIds"]}),
        ],
    };
    let subnet = asked
        .iter()
        .find_map(|interface| interface["SubnetId"].as_str())
        .unwrap_or("subnet-0");
    let mut interfaces: Vec<Value> = asked
        .iter()
        .map(|interface| {
            let index = &interface["DeviceIndex"];
            json!({
                "NetworkInterfaceId": format!("eni-{index}-{id}"), "SubnetId": subnet,
                "Groups": groups(&interface["Groups"]), "InterfaceType": "interface",
                "Attachment": {"DeviceIndex": index, "NetworkCardIndex": 0, "AttachmentId": format!("eni-attach-{index}"),
                    "AttachTime": time, "DeleteOnTermination": true},
            })
        })
        .collect();
    interfaces.sort_by_key(|interface| interface["Attachment"]["DeviceIndex"].as_u64());
    let names = list(input, "SecurityGroups");
    let group_ids = if names.is_empty() {
        input["SecurityGroupIds"].clone()
    } else {
        names
            .iter()
            .map(|name| if *name == "one" { "sg-1" } else { "sg-2" })
            .collect()
    };
    let tags = input["TagSpecifications"][0]["Tags"].clone();
    let devices: Vec<Value> = input["BlockDeviceMappings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|device| json!({"DeviceName": device["DeviceName"], "Ebs": {
            "VolumeId": "vol-1", "Status": "attached",
            "DeleteOnTermination": device["Ebs"].get("DeleteOnTermination").unwrap_or(&Value::Bool(true)),
        }}))
        .collect();
    let mut said = json!({
        "InstanceId": id, "ImageId": input["ImageId"], "InstanceType": input["InstanceType"],
        "LaunchTime": time, "PrivateIpAddress": address, "SubnetId": subnet, "VpcId": "vpc-1",
        "Placement": {"AvailabilityZone": "us-west-2a", "GroupName": "", "Tenancy": "default"},
        "EbsOptimized": false, "SourceDestCheck": true,
        "Monitoring": {"State": if input["Monitoring"]["Enabled"] == true { "pending" } else { "disabled" }},
        "MetadataOptions": {"State": "pending", "HttpTokens": "optional", "HttpEndpoint": "enabled", "HttpPutResponseHopLimit": 1},
        "MaintenanceOptions": {"AutoRecovery": "default"},
        "PrivateDnsNameOptions": {"HostnameType": "ip-name", "EnableResourceNameDnsARecord": false},
        "CpuOptions": {"CoreCount": 1, "ThreadsPerCore": 2},
        "SecurityGroups": groups(&group_ids),
        "NetworkInterfaces": interfaces,
        "BlockDeviceMappings": devices,
        "Tags": if tags.is_array() { tags } else { json!([]) },
    });
    for name in ["KeyName", "EbsOptimized"] {
        if let Some(value) = input.get(name) {
            said[name] = value.clone();
        }
    }
    if let Some(options) = input.get("MetadataOptions") {
        merge(&mut said, "MetadataOptions", options);
    }
    if let Some(asked) = input.get("IamInstanceProfile") {
        said["IamInstanceProfile"] = profile(asked);
    }
    if input["InstanceMarketOptions"]["MarketType"] == "spot" {
        said["InstanceLifecycle"] = "spot".into();
    }
    said
}

pub(super) fn images(input: &Value) -> Value {
    let image = |number: u32, deprecated: &str| {
        json!({
            "ImageId": format!("ami-{number}"), "Name": format!("debian-{number}"),
            "CreationDate": "2025-01-01T00:00:00.000Z", "DeprecationTime": deprecated,
        })
    };
    // The middle one was deprecated before the time of these tests; its owner sees it all the same.
    if input.get("NextToken").is_none() {
        let some = [
            image(1, "2030-01-01T00:00:00.000Z"),
            image(2, "2025-06-01T00:00:00.000Z"),
        ];
        json!({"Images": some, "NextToken": "2"})
    } else {
        json!({"Images": [image(3, "2030-01-01T00:00:00.000Z")]})
    }
}

pub(super) fn parameter(name: &str) -> Result<Value, ApiError> {
    let value = match name {
        "/aws/service/debian" => "ami-9",
        "/aws/service/text" => "hello",
        _ => return Err(refused("ParameterNotFound", String::new())),
    };
    Ok(
        json!({"Parameter": {"Name": name, "Value": value, "LastModifiedDate": "2025-01-01T00:00:00Z"}}),
    )
}

pub(super) fn subnets(input: &Value) -> Value {
    let asked = list(&input["Filters"][0], "Values");
    let found: Vec<Value> = asked
        .into_iter()
        .filter(|id| *id != "subnet-0")
        .map(|id| json!({"SubnetId": id, "AvailabilityZone": "us-west-2a", "AvailableIpAddressCount": 250}))
        .collect();
    json!({"Subnets": found})
}

pub(super) fn types(input: &Value) -> Value {
    let asked = list(&input["Filters"][0], "Values");
    let found: Vec<Value> = [
        ("t3.micro", "x86_64"),
        ("t3.small", "x86_64"),
        ("t4g.small", "arm64"),
    ]
    .into_iter()
    .filter(|(name, _)| {
        asked.is_empty()
            || asked.iter().any(|asked| match asked.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => asked == name,
            })
    })
    .map(|(name, architecture)| {
        json!({
            "InstanceType": name,
            "ProcessorInfo": {"SupportedArchitectures": [architecture]},
            "VCpuInfo": {"DefaultVCpus": 2},
        })
    })
    .collect();
    json!({"InstanceTypes": found})
}
