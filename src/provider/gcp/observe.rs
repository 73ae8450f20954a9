//! Converts an Instance as reported to an [`Observation`].
//!
//! In: one Instance of an answer. Out: an observation whose args are the Instance's members. Must
//! not: make calls.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::clock::Timestamp;
use crate::provider::{ArgsForm, Attributes, LifecycleState, Observation, readable_userdata};

use super::options::GcpOptions;
use super::paths::{instance_id, name, path};

/// The metadata key that cloud-init reads.
pub(super) const USER_DATA: &str = "user-data";
/// The metadata key that Google's guest agent runs.
pub(super) const STARTUP_SCRIPT: &str = "startup-script";
/// The metadata key that tells cloud-init the encoding of [`USER_DATA`].
pub(super) const ENCODING: &str = "user-data-encoding";

/// The observation of an Instance. `load_balancers` are the groups that it is in, if they were
/// queried.
///
/// Fails with `None` if the description is invalid.
pub(super) fn observation(
    instance: &Value,
    options: &GcpOptions,
    load_balancers: Option<Vec<String>>,
    watched: Option<Vec<String>>,
) -> Option<Observation> {
    let zone = name(text(instance, "zone")?);
    let state = state(instance)?;
    let labels = labels(instance);
    let label = |short: &str| labels.get(&format!("nstance-{short}")).cloned();
    let nic = instance
        .get("networkInterfaces")
        .and_then(|nics| nics.get(0));
    let of_nic = |member: &str| nic.and_then(|nic| text(nic, member));
    let mut attributes = Attributes {
        instance_type: name_of_type(instance).to_owned(),
        args: args(instance, options),
        tags: labels
            .iter()
            .filter(|(key, _)| !options.ignores_label(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        userdata: Some(userdata(instance, options)),
        load_balancers,
        watched: None,
        form: Some(ArgsForm::Gcp),
    };
    // Excluded from the digest, since configuring a further group doesn't change the instance.
    let digest = Sha256::digest(serde_json::to_vec(&attributes).ok()?).into();
    attributes.watched = watched;
    let attributes = serde_json::to_string(&attributes).ok()?;
    Some(Observation {
        provider_id: instance_id(zone, text(instance, "name")?),
        instance_id: label("instance-id"),
        group: label("tenant")
            .zip(label("group"))
            .map(|(tenant, group)| format!("{tenant}/{group}")),
        slot: label("slot").and_then(|slot| slot.parse().ok()),
        state,
        zone: zone.to_owned(),
        subnet: of_nic("subnetwork").map(|subnet| path(subnet).to_owned()),
        ip4: of_nic("networkIP").map(str::to_owned),
        ip6: of_nic("ipv6Address").map(str::to_owned),
        created_at: text(instance, "creationTimestamp")
            .and_then(|time| Timestamp::parse(time).ok())
            .unwrap_or_default(),
        ended_because: None,
        digest,
        attributes: attributes.into_boxed_str(),
    })
}

/// The state of an Instance. One that Google repairs comes back by itself, as one that starts does.
pub(super) fn state(instance: &Value) -> Option<LifecycleState> {
    Some(match text(instance, "status")? {
        "PROVISIONING" | "STAGING" | "REPAIRING" | "PENDING" => LifecycleState::Pending,
        "RUNNING" => LifecycleState::Running,
        "STOPPING" | "PENDING_STOP" | "SUSPENDING" => LifecycleState::Stopping,
        "TERMINATED" | "STOPPED" | "SUSPENDED" => LifecycleState::Stopped,
        "DEPROVISIONING" => LifecycleState::ShuttingDown,
        _ => return None,
    })
}

/// The name of an Instance's machine type.
pub(super) fn name_of_type(instance: &Value) -> &str {
    name(text(instance, "machineType").unwrap_or_default())
}

/// All labels.
pub(super) fn labels(instance: &Value) -> BTreeMap<String, String> {
    let labels = instance.get("labels").and_then(Value::as_object);
    labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The metadata item with this key.
pub(super) fn metadata<'i>(instance: &'i Value, key: &str) -> Option<&'i str> {
    let items = instance.get("metadata")?.get("items")?.as_array()?;
    let item = items.iter().find(|item| text(item, "key") == Some(key))?;
    text(item, "value")
}

/// The metadata keys that userdata may be under.
pub(super) fn userdata_keys(options: &GcpOptions) -> Vec<&str> {
    match options.userdata_key.as_deref() {
        Some(key) => vec![key],
        None => vec![USER_DATA, STARTUP_SCRIPT],
    }
}

/// The userdata as text.
fn userdata(instance: &Value, options: &GcpOptions) -> String {
    let keys = userdata_keys(options);
    let found = keys.iter().find_map(|key| metadata(instance, key));
    let text = found.unwrap_or_default();
    let bytes = match metadata(instance, ENCODING) {
        Some("base64") => BASE64.decode(text.trim()).unwrap_or_else(|_| text.into()),
        _ => text.as_bytes().to_owned(),
    };
    readable_userdata(bytes)
}

/// The members of an Instance that args can set, without what nstance manages.
fn args(instance: &Value, options: &GcpOptions) -> Map<String, Value> {
    const OURS: [&str; 7] = [
        "name",
        "machineType",
        "zone",
        "labels",
        "labelFingerprint",
        "fingerprint",
        "selfLink",
    ];
    // These change by themselves.
    const PASSING: [&str; 8] = [
        "status",
        "statusMessage",
        "lastStartTimestamp",
        "lastStopTimestamp",
        "lastSuspendedTimestamp",
        "resourceStatus",
        "cpuPlatform",
        "kind",
    ];
    let mut args = instance.as_object().cloned().unwrap_or_default();
    args.retain(|member, _| !OURS.contains(&&**member) && !PASSING.contains(&&**member));
    let keys = userdata_keys(options);
    let first = keys.iter().find(|key| metadata(instance, key).is_some());
    if let Some(Value::Object(metadata)) = args.get_mut("metadata") {
        metadata.shift_remove("fingerprint");
        if let Some(Value::Array(items)) = metadata.get_mut("items") {
            let is_ours = |key: &str| first.is_some_and(|first| *first == key) || key == ENCODING;
            items.retain(|item| !text(item, "key").is_some_and(is_ours));
        }
    }
    if let Some(Value::Object(tags)) = args.get_mut("tags") {
        tags.shift_remove("fingerprint");
    }
    args.sort_keys();
    args
}

/// A text member.
pub(super) fn text<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object.get(name)?.as_str()
}

/// The items of a list member; empty if it is missing.
pub(super) fn items<'v>(object: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    object
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}
