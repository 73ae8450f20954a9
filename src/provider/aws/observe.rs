//! Converts `DescribeInstances` output to an [`Observation`].
//!
//! In: one instance of an answer. Out: an observation whose args are members of `RunInstances`.
//! Must not: make calls.
//!
//! A member is present if EC2 reports it for this kind of instance; null means that EC2 reports it
//! as unset. [`super::normalize`] compares the members with the requested ones.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::clock::Timestamp;
use crate::provider::{ArgsForm, Attributes, LifecycleState, Observation};

use super::options::AwsOptions;

/// The parts of an observation from other calls.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// The target groups that it is in; `None` if they weren't queried.
    pub load_balancers: Option<Vec<String>>,
    /// The target groups that were queried.
    pub watched: Option<Vec<String>>,
    /// Its userdata as text; `None` if it wasn't queried.
    pub userdata: Option<String>,
}

/// The observation of an instance.
///
/// Fails with `None` if the description is invalid.
pub(super) fn observation(
    instance: &Value,
    options: &AwsOptions,
    beside: Beside,
) -> Option<Observation> {
    let provider_id = text(instance, "InstanceId")?.to_owned();
    let state = state(instance)?;
    let tags = tags(instance);
    let tag = |short: &str| tags.get(&format!("nstance:{short}")).cloned();
    let primary = primary_interface(instance);
    let subnet = text(instance, "SubnetId")
        .or_else(|| text(primary?, "SubnetId"))
        .map(str::to_owned);
    let ip6 = text(instance, "Ipv6Address")
        .or_else(|| text(primary?.get("Ipv6Addresses")?.get(0)?, "Ipv6Address"))
        .map(str::to_owned);
    let mut attributes = Attributes {
        instance_type: text(instance, "InstanceType")
            .unwrap_or_default()
            .to_owned(),
        args: args(instance, &tags, state),
        tags: tags
            .iter()
            .filter(|(key, _)| !key.starts_with("aws:") && !options.ignores_tag(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        userdata: beside.userdata,
        load_balancers: beside.load_balancers,
        watched: None,
        form: Some(ArgsForm::Ec2),
    };
    // Excluded from the digest, since configuring a further target group doesn't change the
    // instance.
    let digest = Sha256::digest(serde_json::to_vec(&attributes).ok()?).into();
    attributes.watched = beside.watched;
    let attributes = serde_json::to_string(&attributes).ok()?;
    Some(Observation {
        provider_id,
        instance_id: tag("instance-id"),
        group: tag("tenant")
            .zip(tag("group"))
            .map(|(tenant, group)| format!("{tenant}/{group}")),
        slot: tag("slot").and_then(|slot| slot.parse().ok()),
        state,
        zone: instance
            .get("Placement")
            .and_then(|placement| text(placement, "AvailabilityZone"))
            .unwrap_or_default()
            .to_owned(),
        subnet,
        ip4: text(instance, "PrivateIpAddress").map(str::to_owned),
        ip6,
        created_at: created_at(instance),
        ended_because: (!state.is_live())
            .then(|| ended_because(instance))
            .flatten(),
        digest,
        attributes: attributes.into_boxed_str(),
    })
}

/// The instance's state.
pub(super) fn state(instance: &Value) -> Option<LifecycleState> {
    Some(match text(instance.get("State")?, "Name")? {
        "pending" => LifecycleState::Pending,
        "running" => LifecycleState::Running,
        "stopping" => LifecycleState::Stopping,
        "stopped" => LifecycleState::Stopped,
        "shutting-down" => LifecycleState::ShuttingDown,
        "terminated" => LifecycleState::Terminated,
        _ => return None,
    })
}

/// All tags, including those of AWS.
pub(super) fn tags(instance: &Value) -> BTreeMap<String, String> {
    items(instance, "Tags")
        .filter_map(|tag| {
            let value = text(tag, "Value").unwrap_or_default();
            Some((text(tag, "Key")?.to_owned(), value.to_owned()))
        })
        .collect()
}

/// The network interface that determines the instance's subnet.
pub(super) fn primary_interface(instance: &Value) -> Option<&Value> {
    let place = |interface: &&Value| {
        let attachment = interface.get("Attachment");
        let number = |name| attachment?.get(name)?.as_u64();
        number("DeviceIndex") == Some(0) && number("NetworkCardIndex").unwrap_or(0) == 0
    };
    items(instance, "NetworkInterfaces").find(place)
}

/// When it was created. `LaunchTime` is the latest start, so use the attach time of the first
/// interface.
fn created_at(instance: &Value) -> Timestamp {
    let time = |text: &str| Timestamp::parse(text).ok();
    let launched = text(instance, "LaunchTime").and_then(time);
    let attached = primary_interface(instance)
        .and_then(|interface| text(interface.get("Attachment")?, "AttachTime"))
        .and_then(time);
    launched
        .into_iter()
        .chain(attached)
        .min()
        .unwrap_or_default()
}

/// Why an instance ended, as a text.
pub(super) fn ended_because(instance: &Value) -> Option<String> {
    let reason = instance.get("StateReason");
    let code = reason.and_then(|reason| text(reason, "Code"));
    let message = reason.and_then(|reason| text(reason, "Message"));
    let said = match code? {
        "Server.SpotInstanceTermination" => "interrupted by EC2, which took the spot capacity back",
        "Server.SpotInstanceShutdown" => "stopped by EC2, which took the spot capacity back",
        "Server.InsufficientInstanceCapacity" => "EC2 had no capacity to start it",
        "Server.ScheduledStop" => "stopped by EC2 for a scheduled retirement",
        "Server.InternalError" => "EC2 failed while it launched",
        "Client.UserInitiatedShutdown" => "terminated through the API",
        "Client.InstanceInitiatedShutdown" => "it shut itself down",
        "Client.InternalError" => "a volume or key could not be used while it launched",
        "Client.VolumeLimitExceeded" => "the limit of volumes was reached while it launched",
        "Client.InvalidSnapshot.NotFound" => "a snapshot it was made from wasn't found",
        _ => return message.map(str::to_owned).or(code.map(str::to_owned)),
    };
    Some(format!("{said} ({})", code?))
}

fn args(
    instance: &Value,
    tags: &BTreeMap<String, String>,
    state: LifecycleState,
) -> Map<String, Value> {
    let mut args = Map::new();
    for name in [
        "ImageId",
        "EbsOptimized",
        "PrivateIpAddress",
        super::request::SOURCE_DEST_CHECK,
        "CpuOptions",
        "HibernationOptions",
        "EnclaveOptions",
        "MaintenanceOptions",
        "NetworkPerformanceOptions",
    ] {
        put(&mut args, name, instance.get(name).cloned());
    }
    for name in ["KeyName", "KernelId", "RamdiskId"] {
        let value = instance.get(name).cloned();
        args.insert(name.into(), value.unwrap_or(Value::Null));
    }
    let listed = |list: &str, member: &str| -> Value {
        items(instance, list)
            .filter_map(|item| item.get(member).cloned())
            .collect()
    };
    args.insert(
        "SecurityGroupIds".into(),
        listed("SecurityGroups", "GroupId"),
    );
    args.insert(
        "SecurityGroups".into(),
        listed("SecurityGroups", "GroupName"),
    );
    args.insert("IamInstanceProfile".into(), profile(instance));
    let monitoring = instance
        .get("Monitoring")
        .and_then(|monitoring| text(monitoring, "State"))
        .map(|state| json!({"Enabled": matches!(state, "enabled" | "pending")}));
    put(&mut args, "Monitoring", monitoring);
    put(
        &mut args,
        "MetadataOptions",
        without(instance, "MetadataOptions", &["State"]),
    );
    put(
        &mut args,
        "PrivateDnsNameOptions",
        instance.get("PrivateDnsNameOptions").cloned(),
    );
    put(&mut args, "Placement", placement(instance));
    put(
        &mut args,
        "CapacityReservationSpecification",
        instance.get("CapacityReservationSpecification").cloned(),
    );
    let market = match text(instance, "InstanceLifecycle") {
        Some(kind @ ("spot" | "capacity-block")) => json!({"MarketType": kind}),
        _ => Value::Null,
    };
    args.insert("InstanceMarketOptions".into(), market);
    if let Some(primary) = primary_interface(instance) {
        let addresses: Vec<&Value> = items(primary, "Ipv6Addresses").collect();
        args.insert("Ipv6AddressCount".into(), addresses.len().into());
        args.insert(
            "Ipv6Addresses".into(),
            addresses.into_iter().cloned().collect(),
        );
    }
    if instance.get("NetworkInterfaces").is_some() {
        let interfaces = items(instance, "NetworkInterfaces").map(interface);
        args.insert("NetworkInterfaces".into(), interfaces.collect());
    }
    // Volumes appear after the instance, so their absence proves nothing yet.
    if state != LifecycleState::Pending && items(instance, "BlockDeviceMappings").next().is_some() {
        let devices = items(instance, "BlockDeviceMappings").map(device);
        args.insert("BlockDeviceMappings".into(), devices.collect());
    }
    if items(instance, "Licenses").next().is_some() {
        let licenses = items(instance, "Licenses").cloned().collect();
        args.insert("LicenseSpecifications".into(), licenses);
    }
    if let Some(id) = tags.get("aws:ec2launchtemplate:id") {
        let mut template = json!({"LaunchTemplateId": id});
        if let Some(version) = tags.get("aws:ec2launchtemplate:version") {
            template["Version"] = version.as_str().into();
        }
        args.insert("LaunchTemplate".into(), template);
    }
    args.sort_keys();
    args
}

/// The instance profile; EC2 reports its ARN, while a request may use its name.
fn profile(instance: &Value) -> Value {
    let Some(arn) = instance
        .get("IamInstanceProfile")
        .and_then(|profile| text(profile, "Arn"))
    else {
        return Value::Null;
    };
    json!({"Arn": arn, "Name": profile_name(arn)})
}

/// The name within a profile's ARN, without its path.
pub(super) fn profile_name(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}

fn placement(instance: &Value) -> Option<Value> {
    let mut placement = instance.get("Placement")?.as_object()?.clone();
    // If EC2 omits one of these, it is unset; other omitted members are unknown.
    for name in ["Affinity", "HostId", "GroupName", "PartitionNumber"] {
        placement.entry(name).or_insert(Value::Null);
    }
    if placement["GroupName"] == "" {
        placement["GroupName"] = Value::Null;
    }
    placement.sort_keys();
    Some(Value::Object(placement))
}

fn interface(interface: &Value) -> Value {
    let attachment = interface.get("Attachment").unwrap_or(&Value::Null);
    let mut member = Map::new();
    for (name, value) in [
        ("DeviceIndex", attachment.get("DeviceIndex")),
        ("NetworkCardIndex", attachment.get("NetworkCardIndex")),
        ("DeleteOnTermination", attachment.get("DeleteOnTermination")),
        ("EnaSrdSpecification", attachment.get("EnaSrdSpecification")),
        ("EnaQueueCount", attachment.get("EnaQueueCount")),
        (
            "ConnectionTrackingSpecification",
            interface.get("ConnectionTrackingConfiguration"),
        ),
        ("Description", interface.get("Description")),
        ("InterfaceType", interface.get("InterfaceType")),
        ("NetworkInterfaceId", interface.get("NetworkInterfaceId")),
        ("PrivateIpAddress", interface.get("PrivateIpAddress")),
        ("SubnetId", interface.get("SubnetId")),
    ] {
        put(&mut member, name, value.cloned());
    }
    let groups = items(interface, "Groups").filter_map(|group| group.get("GroupId").cloned());
    member.insert("Groups".into(), groups.collect());
    let secondary: Vec<&Value> = items(interface, "PrivateIpAddresses")
        .filter(|address| address.get("Primary") != Some(&Value::Bool(true)))
        .collect();
    member.insert(
        "SecondaryPrivateIpAddressCount".into(),
        secondary.len().into(),
    );
    let addresses: Vec<&Value> = items(interface, "Ipv6Addresses").collect();
    member.insert("Ipv6AddressCount".into(), addresses.len().into());
    member.insert(
        "Ipv6Addresses".into(),
        addresses.into_iter().cloned().collect(),
    );
    Value::Object(member)
}

fn device(mapping: &Value) -> Value {
    let mut device = Map::new();
    put(
        &mut device,
        "DeviceName",
        mapping.get("DeviceName").cloned(),
    );
    let deleted = mapping
        .get("Ebs")
        .and_then(|volume| volume.get("DeleteOnTermination"));
    let mut volume = Map::new();
    put(&mut volume, "DeleteOnTermination", deleted.cloned());
    device.insert("Ebs".into(), Value::Object(volume));
    Value::Object(device)
}

fn without(instance: &Value, name: &str, left_out: &[&str]) -> Option<Value> {
    let mut object = instance.get(name)?.as_object()?.clone();
    object.retain(|member, _| !left_out.contains(&member.as_str()));
    Some(Value::Object(object))
}

fn put(object: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value);
    }
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
