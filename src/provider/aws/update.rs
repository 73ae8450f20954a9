//! Plans the calls of an update.
//!
//! In: a request, and the current instance. Out: [`Work`]: the calls in a safe order. Must not:
//! make calls.
//!
//! Attributes that already have the wanted value are skipped, so that updates are idempotent: an
//! instance with the new type isn't stopped again.

use std::collections::BTreeMap;

use nstance_ec2::Operation;
use serde_json::{Map, Value, json};

use crate::provider::{CloudError, CloudErrorKind, LifecycleState, UpdateRequest};

use super::calls::with;
use super::normalize;
use super::observe::{self, items, text};
use super::options::AwsOptions;
use super::request::{SOURCE_DEST_CHECK, without_nulls};

/// All calls of an update.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Calls that any state of the instance allows.
    pub calls: Vec<(Operation, Value)>,
    /// Names of security groups whose ids must be looked up.
    pub group_names: Option<Vec<String>>,
    /// The change of the instance profile.
    pub profile: Option<Profile>,
    /// Calls that require the instance to be stopped.
    pub stopped: Vec<(Operation, Value)>,
    /// Userdata to compare and to set, in base64; requires the instance to be stopped, too.
    pub userdata: Option<String>,
    /// Whether to start the instance at the end.
    pub start: bool,
    /// Whether its target groups change.
    pub moves: bool,
    /// Tags to set.
    pub set_tags: BTreeMap<String, String>,
    /// Tags to remove, by their keys.
    pub remove_tags: Vec<String>,
}

/// The change of an instance profile.
#[derive(Debug, PartialEq)]
pub(super) enum Profile {
    /// Attach this one.
    Give(Value),
    /// Detach it.
    Take,
}

impl Profile {
    /// The requested profile.
    pub(super) fn asked(&self) -> Option<&Value> {
        match self {
            Self::Give(profile) => Some(profile),
            Self::Take => None,
        }
    }
}

/// The work to update `instance`.
///
/// Fails if the request changes something that can't change in place.
pub(super) fn work(
    request: &UpdateRequest,
    instance: &Value,
    options: &AwsOptions,
) -> Result<Work, CloudError> {
    let mut work = Work {
        start: request.restart,
        ..Work::default()
    };
    let planner = Planner {
        request,
        instance,
        wanted: without_nulls(&request.args),
        reported: reported(instance, options),
    };
    let mut members: Vec<&str> = Vec::new();
    for path in &request.changed {
        let (root, rest) = path.split_once('.').unwrap_or((path, ""));
        match root {
            "state" => work.start = true,
            "instance_type" => planner.instance_type(&mut work),
            "tags" => planner.tags(options, &mut work),
            "userdata" if rest.is_empty() => {
                work.userdata = Some(request.userdata.clone().unwrap_or_default());
            }
            "load_balancers" => work.moves = true,
            // The instance sees no difference; only the record changes.
            "userdata" | "protect" => {}
            "args" => {
                let member = rest.split(['.', '[']).next().unwrap_or(rest);
                if !members.contains(&member) {
                    members.push(member);
                }
            }
            _ => return Err(unchangeable(path)),
        }
    }
    for member in members {
        planner.member(member, &mut work)?;
    }
    Ok(work)
}

fn unchangeable(path: &str) -> CloudError {
    CloudError::new(
        CloudErrorKind::Invalid,
        "UnsupportedOperation",
        format!("EC2 can't change `{path}` of an instance that exists"),
    )
}

/// The current args.
fn reported(instance: &Value, options: &AwsOptions) -> Map<String, Value> {
    observe::observation(instance, options, observe::Beside::default())
        .and_then(|observation| observation.attributes().ok())
        .map(|attributes| attributes.args)
        .unwrap_or_default()
}

struct Planner<'a> {
    request: &'a UpdateRequest,
    instance: &'a Value,
    wanted: Map<String, Value>,
    reported: Map<String, Value>,
}

impl Planner<'_> {
    fn id(&self) -> &str {
        &self.request.provider_id
    }

    /// Whether a member already has the wanted value.
    fn is_so(&self, member: &str) -> bool {
        let Some(wanted) = self.wanted.get(member) else {
            return false;
        };
        let asked = Map::from_iter([(member.to_owned(), wanted.clone())]);
        normalize::normalized(&asked, &self.reported).get(member) == Some(wanted)
    }

    /// A `ModifyInstanceAttribute` call, which takes one attribute.
    fn attribute(&self, name: &str, value: &Value) -> (Operation, Value) {
        let mut input = json!({"InstanceId": self.id()});
        input[name] = value.clone();
        (Operation::ModifyInstanceAttribute, input)
    }

    fn flag(&self, member: &str, default: bool) -> Value {
        let value = self.wanted.get(member).and_then(Value::as_bool);
        json!({"Value": value.unwrap_or(default)})
    }

    fn instance_type(&self, work: &mut Work) {
        let wanted = self.request.instance_type.as_str();
        if text(self.instance, "InstanceType") != Some(wanted) {
            let value = json!({"Value": wanted});
            work.stopped.push(self.attribute("InstanceType", &value));
        }
    }

    fn tags(&self, options: &AwsOptions, work: &mut Work) {
        let mut now = observe::tags(self.instance);
        for (key, value) in &self.request.tags {
            if now.remove(key).as_ref() != Some(value) {
                work.set_tags.insert(key.clone(), value.clone());
            }
        }
        // AWS's tags can't be removed, and others manage the ignored ones.
        let foreign = |key: &String| key.starts_with("aws:") || options.ignores_tag(key);
        work.remove_tags = now.into_keys().filter(|key| !foreign(key)).collect();
    }

    fn member(&self, member: &str, work: &mut Work) -> Result<(), CloudError> {
        if self.is_so(member) {
            return Ok(());
        }
        let wanted = self.wanted.get(member);
        let options = wanted.and_then(Value::as_object);
        let mine = || json!({"InstanceId": self.id()});
        match member {
            "SecurityGroupIds" => {
                // Without security groups in the request, it keeps its own.
                if let Some(groups) = wanted {
                    work.calls.push(self.groups(groups));
                }
            }
            "SecurityGroups" => {
                work.group_names = wanted.map(|names| {
                    let names = names.as_array().into_iter().flatten();
                    names.filter_map(Value::as_str).map(str::to_owned).collect()
                });
            }
            "NetworkInterfaces" => self.interfaces(work)?,
            "BlockDeviceMappings" => self.devices(work)?,
            SOURCE_DEST_CHECK => {
                work.calls
                    .push(source_dest_check(self.instance, self.flag(member, true)));
            }
            "DisableApiTermination" | "DisableApiStop" => {
                work.calls
                    .push(self.attribute(member, &self.flag(member, false)));
            }
            "InstanceInitiatedShutdownBehavior" => {
                let value = wanted.cloned().unwrap_or_else(|| "stop".into());
                work.calls
                    .push(self.attribute(member, &json!({"Value": value})));
            }
            "MetadataOptions" => {
                if let Some(options) = options {
                    let operation = Operation::ModifyInstanceMetadataOptions;
                    work.calls.push((operation, with(mine(), options)));
                }
            }
            "Monitoring" => {
                let enabled = options.and_then(|options| options.get("Enabled"));
                let operation = if enabled == Some(&Value::Bool(true)) {
                    Operation::MonitorInstances
                } else {
                    Operation::UnmonitorInstances
                };
                work.calls
                    .push((operation, json!({"InstanceIds": [self.id()]})));
            }
            "IamInstanceProfile" => {
                work.profile = Some(wanted.cloned().map_or(Profile::Take, Profile::Give));
            }
            "CreditSpecification" => {
                if let Some(credits) = options.and_then(|options| options.get("CpuCredits")) {
                    let input = json!({"InstanceCreditSpecifications": [
                        {"InstanceId": self.id(), "CpuCredits": credits},
                    ]});
                    let operation = Operation::ModifyInstanceCreditSpecification;
                    work.calls.push((operation, input));
                }
            }
            "MaintenanceOptions" => {
                let options = options.cloned().unwrap_or_else(|| {
                    Map::from_iter([("AutoRecovery".to_owned(), "default".into())])
                });
                let operation = Operation::ModifyInstanceMaintenanceOptions;
                work.calls.push((operation, with(mine(), &options)));
            }
            "PrivateDnsNameOptions" => self.names(options, work),
            "CapacityReservationSpecification" => {
                let open = || json!({"CapacityReservationPreference": "open"});
                let input = json!({
                    "InstanceId": self.id(),
                    "CapacityReservationSpecification": wanted.cloned().unwrap_or_else(open),
                });
                let operation = Operation::ModifyInstanceCapacityReservationAttributes;
                work.stopped.push((operation, input));
            }
            "EbsOptimized" => {
                let call = self.attribute(member, &self.flag(member, false));
                work.stopped.push(call);
            }
            // The request's tags include these, so they are changed as `tags`.
            "TagSpecifications" => {}
            _ => return Err(unchangeable(&format!("args.{member}"))),
        }
        Ok(())
    }

    /// Sets the security groups of an instance; with several interfaces they are set per interface.
    fn groups(&self, groups: &Value) -> (Operation, Value) {
        security_groups(self.instance, groups)
    }

    /// Updates existing interfaces.
    ///
    /// Fails if a wanted interface doesn't exist.
    fn interfaces(&self, work: &mut Work) -> Result<(), CloudError> {
        let place = |attachment: Option<&Value>| {
            let number = |name: &str| {
                attachment
                    .and_then(|it| it.get(name)?.as_u64())
                    .unwrap_or(0)
            };
            (number("NetworkCardIndex"), number("DeviceIndex"))
        };
        let wanted = self.wanted.get("NetworkInterfaces");
        for wanted in wanted.and_then(Value::as_array).into_iter().flatten() {
            let now = items(self.instance, "NetworkInterfaces")
                .find(|now| place(now.get("Attachment")) == place(Some(wanted)))
                .ok_or_else(|| unchangeable("args.NetworkInterfaces"))?;
            let id = text(now, "NetworkInterfaceId").unwrap_or_default();
            let attachment = now.get("Attachment").unwrap_or(&Value::Null);
            let mut change = |name: &str, value: Value| {
                let mut input = json!({"NetworkInterfaceId": id});
                input[name] = value;
                work.calls
                    .push((Operation::ModifyNetworkInterfaceAttribute, input));
            };
            if let Some(groups) = wanted.get("Groups").and_then(Value::as_array) {
                let mut ids: Vec<_> = items(now, "Groups")
                    .filter_map(|group| group.get("GroupId").cloned())
                    .collect();
                let mut groups_wanted = groups.clone();
                ids.sort_by_key(Value::to_string);
                groups_wanted.sort_by_key(Value::to_string);
                if ids != groups_wanted {
                    change("Groups", groups.clone().into());
                }
            }
            if let Some(description) = wanted.get("Description")
                && Some(description) != now.get("Description")
            {
                change("Description", json!({"Value": description}));
            }
            if let Some(deleted) = wanted.get("DeleteOnTermination")
                && Some(deleted) != attachment.get("DeleteOnTermination")
            {
                let value = json!({
                    "AttachmentId": attachment.get("AttachmentId"),
                    "DeleteOnTermination": deleted,
                });
                change("Attachment", value);
            }
        }
        Ok(())
    }

    /// Updates whether volumes are deleted with the instance, the only change in place.
    ///
    /// Fails if a wanted volume doesn't exist.
    fn devices(&self, work: &mut Work) -> Result<(), CloudError> {
        let wanted = self.wanted.get("BlockDeviceMappings");
        let mut changes = Vec::new();
        for wanted in wanted.and_then(Value::as_array).into_iter().flatten() {
            let Some(deleted) = wanted.pointer("/Ebs/DeleteOnTermination") else {
                continue;
            };
            let now = items(self.instance, "BlockDeviceMappings")
                .find(|now| now.get("DeviceName") == wanted.get("DeviceName"))
                .ok_or_else(|| unchangeable("args.BlockDeviceMappings"))?;
            if now.pointer("/Ebs/DeleteOnTermination") != Some(deleted) {
                changes.push(json!({
                    "DeviceName": wanted.get("DeviceName"),
                    "Ebs": {"DeleteOnTermination": deleted},
                }));
            }
        }
        if !changes.is_empty() {
            let changes = changes.into();
            work.calls
                .push(self.attribute("BlockDeviceMappings", &changes));
        }
        Ok(())
    }

    /// Updates the DNS records of an instance; its hostname type can't change in place.
    fn names(&self, options: Option<&Map<String, Value>>, work: &mut Work) {
        let operation = Operation::ModifyPrivateDnsNameOptions;
        let mut records = json!({"InstanceId": self.id()});
        let mut any = false;
        for name in [
            "EnableResourceNameDnsARecord",
            "EnableResourceNameDnsAAAARecord",
        ] {
            if let Some(value) = options.and_then(|options| options.get(name)) {
                records[name] = value.clone();
                any = true;
            }
        }
        if any {
            work.calls.push((operation, records));
        }
        let reported = self.reported.get("PrivateDnsNameOptions");
        let kind = options.and_then(|options| options.get("HostnameType"));
        if let Some(kind) = kind
            && reported.and_then(|now| now.get("HostnameType")) != Some(kind)
        {
            let input = json!({"InstanceId": self.id(), "PrivateDnsHostnameType": kind});
            work.stopped.push((operation, input));
        }
    }
}

/// The call that sets an instance's security groups, by id.
pub(super) fn security_groups(instance: &Value, groups: &Value) -> (Operation, Value) {
    let (operation, mut input) = whole_or_first(instance);
    input["Groups"] = groups.clone();
    (operation, input)
}

/// The call that sets the source/destination check of an instance.
pub(super) fn source_dest_check(instance: &Value, value: Value) -> (Operation, Value) {
    let (operation, mut input) = whole_or_first(instance);
    input[SOURCE_DEST_CHECK] = value;
    (operation, input)
}

/// The target of a call: the instance if it has one interface, else the first interface.
fn whole_or_first(instance: &Value) -> (Operation, Value) {
    let several = items(instance, "NetworkInterfaces").nth(1).is_some();
    match observe::primary_interface(instance).filter(|_| several) {
        Some(interface) => (
            Operation::ModifyNetworkInterfaceAttribute,
            json!({"NetworkInterfaceId": interface.get("NetworkInterfaceId")}),
        ),
        None => (
            Operation::ModifyInstanceAttribute,
            json!({"InstanceId": instance.get("InstanceId")}),
        ),
    }
}

impl Work {
    /// Whether the instance must be stopped, given its state and whether its userdata differs.
    pub(super) fn needs_stop(&self, userdata_differs: bool) -> bool {
        !self.stopped.is_empty() || userdata_differs
    }

    /// Whether a call requires that the instance isn't pending.
    pub(super) fn needs_settled(&self, state: LifecycleState) -> bool {
        state == LifecycleState::Pending
            && (!self.calls.is_empty()
                || !self.stopped.is_empty()
                || self.userdata.is_some()
                || self.group_names.is_some()
                || self.profile.is_some()
                || self.moves)
    }
}
