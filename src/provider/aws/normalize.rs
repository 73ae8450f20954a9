//! Normalizes observed args for the comparison with requested args.
//!
//! In: requested args, and those of an observation. Out: the observed args in comparable form. Must
//! not: know where either came from.
//!
//! EC2 adds values that weren't requested: hop limits, tenancy, default security groups. These
//! aren't drift, so only requested members are compared. Lists without an order are compared as
//! sets, and elements of lists are matched by their key. A member that the observation lacks is
//! assumed to be as requested; null means that it is unset.

use serde_json::{Map, Value};

/// The members of `reported` that `asked` has, normalized.
pub(crate) fn normalized(
    asked: &Map<String, Value>,
    reported: &Map<String, Value>,
) -> Map<String, Value> {
    asked
        .iter()
        .filter(|(_, asked)| !asked.is_null())
        .filter_map(|(name, asked)| {
            let compared = member(name, asked, reported.get(name)?)?;
            Some((name.clone(), compared))
        })
        .collect()
}

/// One member of `RunInstances`; `None` if it can't be compared.
fn member(name: &str, asked: &Value, reported: &Value) -> Option<Value> {
    match (name, asked) {
        // EC2 reports the resolved id, which isn't known here.
        ("ImageId", Value::String(text)) if text.starts_with("resolve:ssm:") => None,
        ("NetworkInterfaces", Value::Array(asked)) => {
            Some(elements(asked, reported, interface_key))
        }
        ("BlockDeviceMappings", Value::Array(asked)) => Some(devices(asked, reported)),
        ("LaunchTemplate", Value::Object(asked)) => Some(launch_template(asked, reported)),
        _ => Some(value(asked, reported)),
    }
}

/// Objects by requested members, lists as sets, other values unchanged.
fn value(asked: &Value, reported: &Value) -> Value {
    match (asked, reported) {
        (Value::Object(asked), Value::Object(reported)) => asked
            .iter()
            .map(|(name, asked)| {
                let compared = match reported.get(name) {
                    Some(reported) if !asked.is_null() => value(asked, reported),
                    _ => asked.clone(),
                };
                (name.clone(), compared)
            })
            .collect(),
        (Value::Array(asked_items), Value::Array(reported_items))
            if same_set(asked_items, reported_items) =>
        {
            asked.clone()
        }
        _ => reported.clone(),
    }
}

/// Whether two lists are equal as sets.
fn same_set(asked: &[Value], reported: &[Value]) -> bool {
    let mut left: Vec<&Value> = reported.iter().collect();
    let found = asked.iter().all(|asked| {
        let found = left
            .iter()
            .position(|reported| value(asked, reported) == *asked);
        found.map(|index| left.swap_remove(index)).is_some()
    });
    found && left.is_empty()
}

/// Each requested element as observed; null if it is missing.
fn elements<K: PartialEq>(asked: &[Value], reported: &Value, key: fn(&Value) -> K) -> Value {
    let reported = reported.as_array().map_or(&[][..], Vec::as_slice);
    asked
        .iter()
        .map(|asked| {
            let found = reported.iter().find(|reported| key(reported) == key(asked));
            found.map_or(Value::Null, |reported| value(asked, reported))
        })
        .collect()
}

/// The key of a network interface: its card and device index.
fn interface_key(interface: &Value) -> (u64, u64) {
    let number = |name: &str| interface.get(name).and_then(Value::as_u64).unwrap_or(0);
    (number("NetworkCardIndex"), number("DeviceIndex"))
}

/// Volumes by device name. Instance stores, and suppressed devices, are never reported.
fn devices(asked: &[Value], reported: &Value) -> Value {
    let name = |mapping: &Value| mapping.get("DeviceName").cloned();
    asked
        .iter()
        .map(|asked| {
            let volume = asked.get("Ebs").is_some_and(|ebs| !ebs.is_null());
            let reported = reported.as_array().into_iter().flatten();
            match reported
                .into_iter()
                .find(|reported| name(reported) == name(asked))
            {
                Some(reported) if volume => value(asked, reported),
                None if volume => Value::Null,
                _ => asked.clone(),
            }
        })
        .collect()
}

/// EC2 reports the template's id and version number; a name and `$Latest` may mean the same.
fn launch_template(asked: &Map<String, Value>, reported: &Value) -> Value {
    let comparable = |name: &str, asked: &Value| match name {
        "LaunchTemplateId" => true,
        "Version" => asked
            .as_str()
            .is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit())),
        _ => false,
    };
    asked
        .iter()
        .map(|(name, asked)| {
            let reported = reported.get(name).filter(|_| comparable(name, asked));
            (name.clone(), reported.unwrap_or(asked).clone())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_asked_for_is_compared() {
        for (what, asked, reported, expected) in [
            (
                "nothing asked",
                json!({}),
                json!({"EbsOptimized": true}),
                json!({}),
            ),
            (
                "nothing reported",
                json!({"KeyName": "k"}),
                json!({}),
                json!({}),
            ),
            (
                "null asks nothing",
                json!({"KeyName": null}),
                json!({"KeyName": "k"}),
                json!({}),
            ),
            (
                "missing",
                json!({"KeyName": "k"}),
                json!({"KeyName": null}),
                json!({"KeyName": null}),
            ),
            (
                "members",
                json!({"MetadataOptions": {"HttpTokens": "required", "New": 1}}),
                json!({"MetadataOptions": {"HttpTokens": "optional", "HttpEndpoint": "enabled"}}),
                json!({"MetadataOptions": {"HttpTokens": "optional", "New": 1}}),
            ),
            (
                "the order of a list",
                json!({"SecurityGroupIds": ["sg-2", "sg-1"]}),
                json!({"SecurityGroupIds": ["sg-1", "sg-2"]}),
                json!({"SecurityGroupIds": ["sg-2", "sg-1"]}),
            ),
            (
                "another list",
                json!({"SecurityGroupIds": ["sg-2", "sg-1"]}),
                json!({"SecurityGroupIds": ["sg-1", "sg-1"]}),
                json!({"SecurityGroupIds": ["sg-1", "sg-1"]}),
            ),
            (
                "addresses",
                json!({"Ipv6Addresses": [{"Ipv6Address": "::2"}]}),
                json!({"Ipv6Addresses": [{"Ipv6Address": "::2", "IsPrimaryIpv6": false}]}),
                json!({"Ipv6Addresses": [{"Ipv6Address": "::2"}]}),
            ),
            (
                "an image by parameter",
                json!({"ImageId": "resolve:ssm:/a"}),
                json!({"ImageId": "ami-1"}),
                json!({}),
            ),
            (
                "profiles by name",
                json!({"IamInstanceProfile": {"Name": "web"}}),
                json!({"IamInstanceProfile": {"Arn": "arn:x/web", "Name": "web"}}),
                json!({"IamInstanceProfile": {"Name": "web"}}),
            ),
            (
                "no profile",
                json!({"IamInstanceProfile": {"Name": "web"}}),
                json!({"IamInstanceProfile": null}),
                json!({"IamInstanceProfile": null}),
            ),
            (
                "interfaces by place",
                json!({"NetworkInterfaces": [
                    {"DeviceIndex": 1, "Groups": ["a", "b"]}, {"DeviceIndex": 0, "InterfaceType": "efa"}, {"DeviceIndex": 2},
                ]}),
                json!({"NetworkInterfaces": [
                    {"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa", "Groups": ["c"]},
                    {"DeviceIndex": 1, "NetworkCardIndex": 0, "Groups": ["b", "a"]},
                    {"DeviceIndex": 3, "NetworkCardIndex": 0},
                ]}),
                json!({"NetworkInterfaces": [
                    {"DeviceIndex": 1, "Groups": ["a", "b"]}, {"DeviceIndex": 0, "InterfaceType": "efa"}, null,
                ]}),
            ),
            (
                "volumes by device",
                json!({"BlockDeviceMappings": [
                    {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 30, "DeleteOnTermination": true}},
                    {"DeviceName": "/dev/xvdb", "Ebs": {"VolumeSize": 1}},
                    {"DeviceName": "/dev/xvdc", "VirtualName": "ephemeral0"},
                    {"DeviceName": "/dev/xvdd", "NoDevice": ""},
                ]}),
                json!({"BlockDeviceMappings": [
                    {"DeviceName": "/dev/xvda", "Ebs": {"DeleteOnTermination": false}},
                    {"DeviceName": "/dev/sdz", "Ebs": {"DeleteOnTermination": false}},
                ]}),
                json!({"BlockDeviceMappings": [
                    {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 30, "DeleteOnTermination": false}},
                    null,
                    {"DeviceName": "/dev/xvdc", "VirtualName": "ephemeral0"},
                    {"DeviceName": "/dev/xvdd", "NoDevice": ""},
                ]}),
            ),
            (
                "templates by id and number",
                json!({"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "$Latest"}}),
                json!({"LaunchTemplate": {"LaunchTemplateId": "lt-2", "Version": "3"}}),
                json!({"LaunchTemplate": {"LaunchTemplateId": "lt-2", "Version": "$Latest"}}),
            ),
            (
                "templates by name",
                json!({"LaunchTemplate": {"LaunchTemplateName": "web", "Version": "2"}}),
                json!({"LaunchTemplate": {"LaunchTemplateId": "lt-2", "Version": "3"}}),
                json!({"LaunchTemplate": {"LaunchTemplateName": "web", "Version": "3"}}),
            ),
        ] {
            let found = normalized(asked.as_object().unwrap(), reported.as_object().unwrap());
            assert_eq!(Value::Object(found), expected, "{what}");
        }
    }
}
