//! Normalizes an observed Instance for the comparison with requested args.
//!
//! In: requested args, and the members of an Instance as reported. Out: the reported values under
//! the names of the requested args. Must not: know where either came from.
//!
//! Compute Engine adds values that weren't requested and writes references as URLs. These aren't
//! drift, so only requested members are compared, and references by what they name. A member that
//! isn't reported is assumed to be as requested.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::paths::is_same;
use super::request::camel_name;

/// The reported values of requested args, in the requested form.
pub(crate) fn normalized(
    asked: &Map<String, Value>,
    reported: &Map<String, Value>,
) -> Map<String, Value> {
    let asked = asked.iter().filter(|(_, asked)| !asked.is_null());
    asked
        .filter_map(|(name, asked)| Some((name.clone(), member(name, asked, reported)?)))
        .collect()
}

/// The members of `scheduling` that have short names.
pub(super) const SCHEDULING: [(&str, &str); 4] = [
    ("AutomaticRestart", "automaticRestart"),
    ("OnHostMaintenance", "onHostMaintenance"),
    ("Preemptible", "preemptible"),
    ("ProvisioningModel", "provisioningModel"),
];

/// The short names of members, but for those of `scheduling`.
pub(super) const SHORT: [(&str, &str); 6] = [
    ("ConfidentialInstanceConfig", "confidentialInstanceConfig"),
    ("GuestAccelerators", "guestAccelerators"),
    ("MinCpuPlatform", "minCpuPlatform"),
    ("ResourcePolicies", "resourcePolicies"),
    ("ServiceAccounts", "serviceAccounts"),
    ("ShieldedInstanceConfig", "shieldedInstanceConfig"),
];

/// One arg; `None` if it can't be compared.
fn member(name: &str, asked: &Value, reported: &Map<String, Value>) -> Option<Value> {
    let of = |member: &str| reported.get(member).unwrap_or(&Value::Null);
    let short = |pairs: &[(&str, &'static str)]| {
        let pair = pairs.iter().find(|(short, _)| *short == name);
        pair.map(|(_, member)| *member)
    };
    if let Some(member) = short(&SCHEDULING) {
        return Some(subset(asked, of("scheduling").get(member)?));
    }
    match name {
        // Labels are compared as such; the image isn't reported, only the disk that was made of it.
        "Labels" | "labels" | "SourceImage" => None,
        "NetworkTags" => Some(as_set(asked, &of("tags")["items"])),
        "tags" => Some(json!({"items": as_set(&asked["items"], &of("tags")["items"])})),
        "ServiceAccount" => Some(of("serviceAccounts")[0]["email"].clone()),
        "metadata" => Some(metadata(asked, of("metadata"))),
        _ => {
            let member = short(&SHORT).unwrap_or(name);
            Some(subset(asked, reported.get(member)?))
        }
    }
}

/// The reported metadata as a list in the requested order; other items follow.
fn metadata(asked: &Value, reported: &Value) -> Value {
    let items = |value: &Value| value["items"].as_array().cloned().unwrap_or_default();
    let mut there: BTreeMap<String, Value> = items(reported)
        .into_iter()
        .filter_map(|item| Some((item["key"].as_str()?.to_owned(), item)))
        .collect();
    let known = items(asked);
    let known = known.iter().filter_map(|item| item["key"].as_str());
    let mut listed: Vec<Value> = known.filter_map(|key| there.remove(key)).collect();
    listed.extend(there.into_values());
    let mut result = asked.clone();
    result["items"] = listed.into();
    result
}

/// A reported list without an order.
fn as_set(asked: &Value, reported: &Value) -> Value {
    let texts = |list: &Value| {
        let items = list.as_array().map_or(&[][..], Vec::as_slice);
        let mut texts: Vec<String> = items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect();
        texts.sort();
        texts
    };
    if texts(asked) == texts(reported) {
        asked.clone()
    } else {
        texts(reported).into()
    }
}

/// The requested parts of a reported value, in the requested form.
fn subset(asked: &Value, reported: &Value) -> Value {
    match (asked, reported) {
        (Value::Object(asked), Value::Object(reported)) => {
            let part = |(name, asked): (&String, &Value)| {
                // In values of short names, the Nstance server reads `enable_secure_boot`.
                let value = reported.get(&camel_name(name)).filter(|_| !asked.is_null());
                let value = value.map_or_else(|| asked.clone(), |value| subset(asked, value));
                (name.clone(), value)
            };
            Value::Object(asked.iter().map(part).collect())
        }
        (Value::Array(wanted), Value::Array(there)) => {
            let is_text = |list: &[Value]| list.iter().all(Value::is_string);
            if is_text(wanted) && is_text(there) && !wanted.is_empty() {
                return references(wanted, there);
            }
            let parts = there.iter().enumerate().map(|(index, there)| {
                let wanted = wanted.get(index);
                wanted.map_or_else(|| there.clone(), |wanted| subset(wanted, there))
            });
            parts.collect()
        }
        (Value::String(asked), Value::String(there)) if is_same(asked, there) => {
            asked.as_str().into()
        }
        // The API writes numbers of 64 bits as texts.
        (Value::Number(number), Value::String(there)) if *there == number.to_string() => {
            asked.clone()
        }
        (Value::String(text), Value::Number(there)) if *text == there.to_string() => asked.clone(),
        _ => reported.clone(),
    }
}

/// A list of references without an order.
fn references(wanted: &[Value], there: &[Value]) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut rest: Vec<&Value> = there.iter().collect();
    let mut found = Vec::new();
    for asked in wanted {
        let at = rest
            .iter()
            .position(|there| is_same(&text(asked), &text(there)));
        if let Some(at) = at {
            rest.remove(at);
            found.push(asked.clone());
        }
    }
    found.extend(rest.into_iter().cloned());
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_values_are_compared_in_the_requested_form() {
        let instance = json!({
            "canIpForward": false,
            "deletionProtection": true,
            "minCpuPlatform": "Intel Skylake",
            "tags": {"items": ["http", "ssh"], "fingerprint": "x"},
            "serviceAccounts": [{"email": "a@p", "scopes": ["s1", "s2"]}],
            "scheduling": {"automaticRestart": true, "onHostMaintenance": "MIGRATE", "preemptible": false},
            "disks": [{"autoDelete": true, "boot": true, "diskSizeGb": "30", "type": "PERSISTENT", "source": "https://www.googleapis.com/compute/v1/projects/p/zones/z/disks/d"}],
            "metadata": {"fingerprint": "f", "items": [{"key": "c", "value": "x"}, {"key": "b", "value": "2"}, {"key": "a", "value": "1"}]},
            "networkInterfaces": [{"subnetwork": "https://www.googleapis.com/compute/v1/projects/p/regions/r/subnetworks/s", "networkIP": "10.0.0.2"}],
            "resourcePolicies": ["https://www.googleapis.com/compute/v1/projects/p/regions/r/resourcePolicies/daily"],
        });
        for (asked, expected) in [
            (
                json!({"canIpForward": false, "hostname": "h", "labels": {"a": "b"}}),
                json!({"canIpForward": false}),
            ),
            (
                json!({"NetworkTags": ["ssh", "http"]}),
                json!({"NetworkTags": ["ssh", "http"]}),
            ),
            (
                json!({"NetworkTags": ["ssh"]}),
                json!({"NetworkTags": ["http", "ssh"]}),
            ),
            (
                json!({"tags": {"items": ["http", "ssh"]}}),
                json!({"tags": {"items": ["http", "ssh"]}}),
            ),
            (
                json!({"ServiceAccount": "b@p"}),
                json!({"ServiceAccount": "a@p"}),
            ),
            (
                json!({"ServiceAccounts": [{"email": "a@p"}]}),
                json!({"ServiceAccounts": [{"email": "a@p"}]}),
            ),
            (
                json!({"AutomaticRestart": false, "Preemptible": false}),
                json!({"AutomaticRestart": true, "Preemptible": false}),
            ),
            (
                json!({"MinCpuPlatform": "Intel Haswell"}),
                json!({"MinCpuPlatform": "Intel Skylake"}),
            ),
            (
                json!({"disks": [{"boot": true, "diskSizeGb": 30, "initializeParams": {"diskType": "pd-ssd"}}]}),
                json!({"disks": [{"boot": true, "diskSizeGb": 30, "initializeParams": {"diskType": "pd-ssd"}}]}),
            ),
            (
                json!({"networkInterfaces": [{"subnetwork": "regions/r/subnetworks/s"}]}),
                json!({"networkInterfaces": [{"subnetwork": "regions/r/subnetworks/s"}]}),
            ),
            (
                json!({"ResourcePolicies": ["daily"]}),
                json!({"ResourcePolicies": ["daily"]}),
            ),
            (
                json!({"metadata": {"items": [{"key": "a", "value": "1"}, {"key": "b", "value": "3"}]}}),
                json!({"metadata": {"items": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}, {"key": "c", "value": "x"}]}}),
            ),
        ] {
            let found = normalized(asked.as_object().unwrap(), instance.as_object().unwrap());
            assert_eq!(Value::Object(found), expected, "{asked}");
        }
    }
}
