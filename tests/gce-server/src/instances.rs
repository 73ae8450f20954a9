//! `instances`: what they may be, and what may be done with them.
//!
//! In: calls whose form is valid. Out: instances, and operations on them. Must not: end an
//! operation.

use serde_json::{Map, Value, json};

use crate::discovery::decode_base64;
use crate::error::{OperationError, Refusal};
use crate::list;
use crate::machine::MachineType;
use crate::operations::{Effect, Fingerprint};
use crate::quotas;
use crate::server::Ask;
use crate::world::{
    Instance, Key, LINK, Lingering, PROJECT_NUMBER, World, fingerprint, items, last, refresh,
    region, resource_path, zones,
};

const METADATA_VALUE: usize = 262_144;
const METADATA_TOTAL: usize = 524_288;
const LABELS: usize = 64;

const STALE_LABELS: &str = "Labels fingerprint either invalid or resource labels have changed";
const STALE_METADATA: &str = "Supplied fingerprint does not match current metadata fingerprint.";
const STALE_TAGS: &str = "Supplied fingerprint does not match current tags fingerprint.";

/// `instances.get`
pub(crate) fn get(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    let resource = world.instances[&key].resource.clone();
    world.look_at_instance(&key);
    Ok(resource)
}

/// `instances.list`
pub(crate) fn list(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let zone = zone(ask)?.to_owned();
    if world.unreachable.contains(&zone) {
        return Err(Refusal::named("backendError"));
    }
    let page = page(world, ask, &|one| one == zone)?;
    let path = world.path(&format!("zones/{zone}/instances"));
    let mut answer = list::answer("compute#instanceList", &path, page);
    answer["selfLink"] = json!(format!("{LINK}{path}"));
    Ok(answer)
}

/// `instances.aggregatedList`
pub(crate) fn aggregated_list(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let unreachable = world.unreachable.clone();
    let partial = if ask
        .document
        .has_parameter(&ask.call.method, "returnPartialSuccess")
    {
        ask.call.get("returnPartialSuccess") == Some("true")
    } else {
        world.habits.partial_success
    };
    if !partial && !unreachable.is_empty() {
        return Err(Refusal::named("backendError"));
    }
    let page = page(world, ask, &|zone| !unreachable.contains(zone))?;
    let next = page.next;
    let mut scopes = Map::new();
    for zone in zones() {
        let prefix = format!("{zone}/");
        let of_zone = page
            .entries
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix));
        let found: Vec<&Value> = of_zone.map(|(_, resource)| resource).collect();
        let scope = format!("zones/{zone}");
        let content = if unreachable.contains(&zone) {
            let message = format!("The scope '{scope}' is not reachable.");
            warning("UNREACHABLE", &scope, &message)
        } else if found.is_empty() {
            nothing(&scope)
        } else {
            json!({"instances": found})
        };
        scopes.insert(scope, content);
    }
    if ask.call.get("includeAllScopes") == Some("true") {
        for region in crate::world::regions() {
            let scope = format!("regions/{region}");
            let content = nothing(&scope);
            scopes.insert(scope, content);
        }
        scopes.insert("global".to_owned(), nothing("global"));
    }
    let path = world.path("aggregated/instances");
    let mut answer = json!({
        "kind": "compute#instanceAggregatedList",
        "id": path,
        "items": scopes,
        "selfLink": format!("{LINK}{path}"),
    });
    if let Some(next) = next {
        answer["nextPageToken"] = json!(next);
    }
    if !unreachable.is_empty() {
        let names = unreachable
            .iter()
            .map(|zone| world.path(&format!("zones/{zone}")));
        answer["unreachables"] = names.collect();
    }
    Ok(answer)
}

fn nothing(scope: &str) -> Value {
    let message = format!("There are no results for scope '{scope}' on this page.");
    warning("NO_RESULTS_ON_PAGE", scope, &message)
}

fn warning(code: &str, scope: &str, message: &str) -> Value {
    json!({"warning": {
        "code": code,
        "message": message,
        "data": [{"key": "scope", "value": scope}],
    }})
}

/// A page of the instances of some zones. Their keys are `ZONE/NAME`.
fn page(world: &mut World, ask: &Ask, is_in: &dyn Fn(&str) -> bool) -> Result<list::Page, Refusal> {
    let join = |key: &Key| format!("{}/{}", key.0, key.1);
    let filter = list::filter(ask, "Instance")?;
    // Later pages are of the list that the first began.
    let is_first = ask.call.get("pageToken").is_none_or(str::is_empty);
    let mut entries = Vec::new();
    for (key, instance) in &mut world.instances {
        if !is_in(&key.0) || !filter.fits(&instance.resource) {
            continue;
        }
        if instance.hidden > 0 {
            instance.hidden -= u32::from(is_first);
        } else {
            entries.push((join(key), instance.resource.clone()));
        }
    }
    for one in &mut world.lingering {
        if one.looks > 0 && is_in(&one.key.0) && filter.fits(&one.resource) {
            one.looks -= u32::from(is_first);
            entries.push((join(&one.key), one.resource.clone()));
        }
    }
    world.lingering.retain(|one| one.looks > 0);
    let page = world.pages.page(ask, "Instance", entries)?;
    for (key, _) in &page.entries {
        if let Some((zone, name)) = key.split_once('/') {
            world.look_at_instance(&(zone.to_owned(), name.to_owned()));
        }
    }
    Ok(page)
}

/// `instances.insert`
pub(crate) fn insert(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let zone = zone(ask)?.to_owned();
    let name = ask.call.body["name"].as_str().unwrap_or_default();
    let key = (zone, name.to_owned());
    let path = world.instance_path(&key);
    if world.instances.contains_key(&key) {
        return Err(Refusal::already_exists(&path));
    }
    let (mut resource, disks) = complete(world, &key, &ask.call.body)?;
    let mut error = exhausted(world, &key.0, &resource)?;
    for interface in interfaces(&mut resource) {
        let subnetwork = interface["subnetwork"].as_str().unwrap_or_default();
        let subnetwork = subnetwork.trim_start_matches(LINK).to_owned();
        if interface["networkIP"].is_null() {
            match world.free_address(&subnetwork) {
                Some(address) => interface["networkIP"] = json!(address),
                None => {
                    let message = format!("IP space of '{subnetwork}' is exhausted.");
                    error = Some(OperationError::new("IP_SPACE_EXHAUSTED", 400, message));
                }
            }
        }
    }
    let mut created = Vec::new();
    for (disk, content) in disks {
        created.push(disk.clone());
        world.disks.insert((key.0.clone(), disk), content);
    }
    for disk in items(&resource["disks"]) {
        let name = last(disk["source"].as_str().unwrap_or_default()).to_owned();
        if let Some(disk) = world.disks.get_mut(&(key.0.clone(), name)) {
            disk["users"] = json!([resource["selfLink"]]);
        }
    }
    let id = resource["id"].clone();
    refresh(&mut resource);
    world.lingering.retain(|one: &Lingering| one.key != key);
    let hidden = world.habits.hidden;
    world
        .instances
        .insert(key.clone(), Instance { resource, hidden });
    Ok(world.begin(
        ask,
        "insert",
        (&path, &id),
        &key,
        Effect::Insert { disks: created },
        error,
    ))
}

/// The quota that an instance would exceed: the call's error, or the operation's.
fn exhausted(
    world: &World,
    zone: &str,
    resource: &Value,
) -> Result<Option<OperationError>, Refusal> {
    let Some(message) = quotas::exceeded(world, region(zone), resource) else {
        return Ok(None);
    };
    if world.habits.quota_refuses {
        return Err(Refusal::new(403, "quotaExceeded", message));
    }
    Ok(Some(OperationError::new("QUOTA_EXCEEDED", 403, message)))
}

fn interfaces(resource: &mut Value) -> impl Iterator<Item = &mut Value> {
    let all = resource["networkInterfaces"].as_array_mut();
    all.into_iter().flatten()
}

/// An instance as Compute Engine completes what was sent, and the disks that it makes. The instance
/// has no address yet.
fn complete(
    world: &mut World,
    key: &Key,
    body: &Value,
) -> Result<(Value, Vec<(String, Value)>), Refusal> {
    let (zone, name) = key;
    let machine = machine_type(world, zone, &body["machineType"])?;
    check_labels(&body["labels"], "resource.labels")?;
    check_metadata(&body["metadata"])?;
    let mut resource = json!({
        "kind": "compute#instance",
        "id": world.id(),
        "creationTimestamp": world.clock.tick(),
        "name": name,
        "status": "PROVISIONING",
        "zone": format!("{LINK}{}", world.path(&format!("zones/{zone}"))),
        "selfLink": format!("{LINK}{}", world.instance_path(key)),
        "cpuPlatform": "Intel Broadwell",
        "canIpForward": false,
        "startRestricted": false,
        "deletionProtection": false,
        "shieldedInstanceConfig": {
            "enableSecureBoot": false,
            "enableVtpm": true,
            "enableIntegrityMonitoring": true,
        },
        "shieldedInstanceIntegrityPolicy": {"updateAutoLearnPolicy": true},
        "reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"},
    });
    for (member, value) in body.as_object().into_iter().flatten() {
        match &**member {
            "shieldedInstanceConfig" => merge(&mut resource[&**member], value),
            "canIpForward"
            | "deletionProtection"
            | "reservationAffinity"
            | "shieldedInstanceIntegrityPolicy" => resource[&**member] = value.clone(),
            // Of use for the call alone.
            "params" => {}
            _ if resource.get(member).is_none() => resource[&**member] = value.clone(),
            // Compute Engine ignores what a client can't set.
            _ => {}
        }
    }
    resource["machineType"] = json!(machine);
    resource["scheduling"] = scheduling(&body["scheduling"])?;
    resource["tags"] = json!({});
    if !items(&body["tags"]["items"]).is_empty() {
        resource["tags"]["items"] = body["tags"]["items"].clone();
    }
    resource["metadata"] = metadata(&body["metadata"]);
    if let Some(accounts) = body["serviceAccounts"].as_array() {
        resource["serviceAccounts"] = service_accounts(accounts)?;
    }
    let interfaces = network_interfaces(world, zone, &body["networkInterfaces"])?;
    resource["networkInterfaces"] = json!(interfaces);
    let (attached, made) = disks(world, key, &body["disks"])?;
    resource["disks"] = json!(attached);
    Ok((resource, made))
}

/// The link of a machine type that was named by one.
fn machine_type(world: &World, zone: &str, given: &Value) -> Result<String, Refusal> {
    let Some(text) = given.as_str().filter(|text| !text.is_empty()) else {
        let message = "Required field 'resource.machineType' not specified";
        return Err(Refusal::new(400, "required", message));
    };
    let invalid = |why: &str| Refusal::invalid("resource.machineType", text, why);
    let path =
        resource_path(text, &world.project).ok_or_else(|| invalid("The URL is malformed."))?;
    let parts: Vec<&str> = path.split('/').collect();
    let ["projects", _, "zones", in_zone, "machineTypes", name] = parts[..] else {
        return Err(invalid("The URL is malformed."));
    };
    if in_zone != zone {
        return Err(invalid(&format!(
            "Machine type must be in zone '{zone}', like the instance."
        )));
    }
    if MachineType::parse(name).is_none() {
        return Err(invalid(&format!(
            "Machine type with name '{name}' does not exist in zone '{zone}'."
        )));
    }
    Ok(format!("{LINK}{path}"))
}

fn check_labels(labels: &Value, field: &str) -> Result<(), Refusal> {
    let Some(labels) = labels.as_object() else {
        return Ok(());
    };
    if labels.len() > LABELS {
        let why = format!("A resource can have at most {LABELS} labels.");
        return Err(Refusal::invalid(field, "", &why));
    }
    // Lower case, or of a script without cases.
    let is_letter = |c: char| c.is_alphabetic() && !c.is_uppercase();
    let is_part = |c: char| is_letter(c) || c.is_numeric() || c == '_' || c == '-';
    for (key, value) in labels {
        let value = value.as_str().unwrap_or_default();
        let starts = key.chars().next().is_some_and(is_letter);
        if !starts || !key.chars().all(is_part) || key.chars().count() > 63 {
            let why = format!(
                "Label key '{key}' violates format constraints. The key must start with a \
                 lowercase character, can only contain lowercase letters, numeric characters, \
                 underscores and dashes. The key can be at most 63 characters long. International \
                 characters are allowed."
            );
            return Err(Refusal::invalid(field, "", &why));
        }
        if !value.chars().all(is_part) || value.chars().count() > 63 {
            let why = format!(
                "Label value '{value}' violates format constraints. The value can only contain \
                 lowercase letters, numeric characters, underscores and dashes. The value can be \
                 at most 63 characters long. International characters are allowed."
            );
            return Err(Refusal::invalid(field, "", &why));
        }
    }
    Ok(())
}

fn check_metadata(metadata: &Value) -> Result<(), Refusal> {
    let mut total = 0;
    let mut keys: Vec<&str> = Vec::new();
    for (number, item) in items(&metadata["items"]).iter().enumerate() {
        let key = item["key"].as_str().unwrap_or_default();
        let value = item["value"].as_str().unwrap_or_default();
        let field = format!("resource.metadata.items[{number}]");
        if keys.contains(&key) {
            let why = format!("Duplicate metadata key '{key}'.");
            return Err(Refusal::invalid("resource.metadata.items", key, &why));
        }
        if value.len() > METADATA_VALUE {
            let message = format!(
                "Value for field '{field}.value' is too large: maximum size {METADATA_VALUE} \
                 character(s); actual size {}.",
                value.len()
            );
            return Err(Refusal::new(413, "fieldSizeTooLarge", message));
        }
        keys.push(key);
        total += key.len() + value.len();
    }
    if total > METADATA_TOTAL {
        let message = format!(
            "Value for field 'resource.metadata' is too large: maximum size {METADATA_TOTAL} \
             character(s); actual size {total}."
        );
        return Err(Refusal::new(413, "fieldSizeTooLarge", message));
    }
    Ok(())
}

fn metadata(given: &Value) -> Value {
    let mut metadata = json!({"kind": "compute#metadata"});
    if !items(&given["items"]).is_empty() {
        metadata["items"] = given["items"].clone();
    }
    metadata
}

fn scheduling(given: &Value) -> Result<Value, Refusal> {
    let is_spot = given["provisioningModel"] == "SPOT" || given["preemptible"] == true;
    let mut scheduling = json!({
        "onHostMaintenance": if is_spot { "TERMINATE" } else { "MIGRATE" },
        "automaticRestart": !is_spot,
        "preemptible": is_spot,
        "provisioningModel": if given["provisioningModel"] == "SPOT" { "SPOT" } else { "STANDARD" },
    });
    if scheduling["provisioningModel"] == "SPOT" {
        scheduling["instanceTerminationAction"] = json!("STOP");
    }
    merge(&mut scheduling, given);
    check_scheduling(&scheduling)?;
    Ok(scheduling)
}

fn check_scheduling(scheduling: &Value) -> Result<(), Refusal> {
    let is_spot = scheduling["preemptible"] == true || scheduling["provisioningModel"] == "SPOT";
    let invalid = |member: &str, why: &str| {
        let value = scheduling[member].to_string();
        let value = value.trim_matches('"');
        Err(Refusal::invalid(
            &format!("resource.scheduling.{member}"),
            value,
            why,
        ))
    };
    if is_spot && scheduling["automaticRestart"] == true {
        return invalid(
            "preemptible",
            "Scheduling must have preemptible be false when AutomaticRestart is true.",
        );
    }
    if is_spot && scheduling["onHostMaintenance"] == "MIGRATE" {
        return invalid(
            "onHostMaintenance",
            "Preemptible VM instances must be terminated when the host is maintained.",
        );
    }
    let ends_by_itself = is_spot || scheduling.get("maxRunDuration").is_some();
    if !ends_by_itself && scheduling.get("instanceTerminationAction").is_some() {
        return invalid(
            "instanceTerminationAction",
            "Cannot specify termination action for a VM with the STANDARD provisioning model.",
        );
    }
    Ok(())
}

fn service_accounts(given: &[Value]) -> Result<Value, Refusal> {
    if given.len() > 1 {
        let why = "At most one service account can be specified.";
        return Err(Refusal::invalid("resource.serviceAccounts", "", why));
    }
    let account = |account: &Value| {
        let email = account["email"].as_str().unwrap_or("default");
        let email = match email {
            "default" => format!("{PROJECT_NUMBER}-compute@developer.gserviceaccount.com"),
            other => other.to_owned(),
        };
        json!({"email": email, "scopes": items(&account["scopes"])})
    };
    Ok(given.iter().map(account).collect())
}

fn network_interfaces(world: &World, zone: &str, given: &Value) -> Result<Vec<Value>, Refusal> {
    let given = items(given);
    if given.is_empty() {
        let why = "At least one network interface is required.";
        return Err(Refusal::invalid("resource.networkInterfaces", "", why));
    }
    let region = region(zone);
    let mut interfaces = Vec::new();
    for (number, one) in given.iter().enumerate() {
        let field = format!("resource.networkInterfaces[{number}]");
        let field_of = |member: &str| format!("{field}.{member}");
        let subnetwork = if let Some(link) = one["subnetwork"].as_str() {
            resource_path(link, &world.project).ok_or_else(|| {
                Refusal::invalid(&field_of("subnetwork"), link, "The URL is malformed.")
            })?
        } else {
            // An auto mode network has a subnetwork of its name in each region.
            let network = one["network"].as_str().unwrap_or("global/networks/default");
            world.path(&format!("regions/{region}/subnetworks/{}", last(network)))
        };
        let Some(known) = world.subnetworks.get(&subnetwork) else {
            let why = "The referenced subnetwork resource cannot be found.";
            return Err(Refusal::invalid(&field_of("subnetwork"), &subnetwork, why));
        };
        if !subnetwork.contains(&format!("/regions/{region}/")) {
            let why = format!("Subnetwork's region must be '{region}', like the instance's.");
            return Err(Refusal::invalid(&field_of("subnetwork"), &subnetwork, &why));
        }
        let mut interface = json!({
            "kind": "compute#networkInterface",
            "name": format!("nic{number}"),
            "network": known["network"],
            "subnetwork": known["selfLink"],
            "stackType": "IPV4_ONLY",
        });
        if let Some(address) = one["networkIP"].as_str() {
            let in_range = world
                .range(&subnetwork)
                .is_some_and(|range| range.has(address));
            if !in_range {
                let why = "Requested internal IP is outside the subnetwork's range.";
                return Err(Refusal::invalid(&field_of("networkIP"), address, why));
            }
            if world.used_addresses(&subnetwork).contains(address) {
                let message = format!("IP '{address}' is already being used by another resource.");
                return Err(Refusal::new(400, "resourceInUseByAnotherResource", message));
            }
        }
        for (member, value) in one.as_object().into_iter().flatten() {
            if interface.get(member).is_none() || member == "stackType" {
                interface[member] = value.clone();
            }
        }
        if let Some(configs) = interface["accessConfigs"].as_array_mut() {
            for config in configs {
                config["kind"] = json!("compute#accessConfig");
                if config["name"].is_null() {
                    config["name"] = json!("External NAT");
                }
                if config["type"].is_null() {
                    config["type"] = json!("ONE_TO_ONE_NAT");
                }
                if config["networkTier"].is_null() {
                    config["networkTier"] = json!("PREMIUM");
                }
            }
        }
        if interface["accessConfigs"].is_null() {
            crate::world::remove(&mut interface, "accessConfigs");
        }
        interface["fingerprint"] = json!(fingerprint(&interface));
        interfaces.push(interface);
    }
    Ok(interfaces)
}

/// Disks as the instance has them, and those that are made for it.
#[allow(
    clippy::type_complexity,
    reason = "two lists of what the one caller stores"
)]
fn disks(
    world: &mut World,
    key: &Key,
    given: &Value,
) -> Result<(Vec<Value>, Vec<(String, Value)>), Refusal> {
    let given = items(given);
    let boots = given.iter().filter(|disk| disk["boot"] == true).count();
    if boots != 1 || given[0]["boot"] != true {
        let why = "Boot disk must be the first disk attached to the instance.";
        return Err(Refusal::invalid("resource.disks[0].boot", "false", why));
    }
    let (zone, instance) = key;
    let mut attached = Vec::new();
    let mut made = Vec::new();
    for (number, one) in given.iter().enumerate() {
        let field = format!("resource.disks[{number}]");
        let is_local = one["type"] == "SCRATCH";
        let mut disk = json!({
            "kind": "compute#attachedDisk",
            "index": number,
            "type": if is_local { "SCRATCH" } else { "PERSISTENT" },
            "mode": one["mode"].as_str().unwrap_or("READ_WRITE"),
            "boot": one["boot"] == true,
            "autoDelete": is_local || one["autoDelete"] == true,
            "interface": one["interface"].as_str().unwrap_or("SCSI"),
        });
        let device = match number {
            0 => "persistent-disk-0".to_owned(),
            _ if is_local => format!("local-ssd-{}", number - 1),
            _ => format!("persistent-disk-{number}"),
        };
        disk["deviceName"] = json!(one["deviceName"].as_str().unwrap_or(&device));
        if is_local {
            disk["diskSizeGb"] = json!("375");
            attached.push(disk);
            continue;
        }
        let name = if let Some(source) = one["source"].as_str() {
            let name = last(source).to_owned();
            let Some(known) = world.disks.get_mut(&(zone.clone(), name.clone())) else {
                let path = world.path(&format!("zones/{zone}/disks/{name}"));
                return Err(Refusal::not_found(&path));
            };
            if !items(&known["users"]).is_empty() && disk["mode"] == "READ_WRITE" {
                let message = format!(
                    "The disk resource '{}' is already being used by '{}'",
                    known["selfLink"].as_str().unwrap_or_default(),
                    known["users"][0].as_str().unwrap_or_default()
                );
                return Err(Refusal::new(400, "resourceInUseByAnotherResource", message));
            }
            disk["diskSizeGb"] = known["sizeGb"].clone();
            name
        } else {
            let default = match number {
                0 => instance.clone(),
                _ => format!("{instance}-{number}"),
            };
            let parameters = &one["initializeParams"];
            let name = parameters["diskName"]
                .as_str()
                .unwrap_or(&default)
                .to_owned();
            let path = world.path(&format!("zones/{zone}/disks/{name}"));
            let is_double = made.iter().any(|(other, _)| *other == name);
            if is_double || world.disks.contains_key(&(zone.clone(), name.clone())) {
                return Err(Refusal::already_exists(&path));
            }
            let content = new_disk(world, &field, one, &path)?;
            disk["diskSizeGb"] = content["sizeGb"].clone();
            if !content["architecture"].is_null() {
                disk["architecture"] = content["architecture"].clone();
            }
            made.push((name.clone(), content));
            name
        };
        disk["source"] = json!(format!(
            "{LINK}{}",
            world.path(&format!("zones/{zone}/disks/{name}"))
        ));
        attached.push(disk);
    }
    Ok((attached, made))
}

fn new_disk(world: &mut World, field: &str, one: &Value, path: &str) -> Result<Value, Refusal> {
    let parameters = &one["initializeParams"];
    let zone = path.rsplit('/').nth(2).unwrap_or_default().to_owned();
    let mut disk = json!({
        "kind": "compute#disk",
        "id": world.id(),
        "creationTimestamp": world.clock.tick(),
        "name": last(path),
        "status": "READY",
        "zone": format!("{LINK}{}", world.path(&format!("zones/{zone}"))),
        "selfLink": format!("{LINK}{path}"),
        "physicalBlockSizeBytes": "4096",
    });
    let kind = last(parameters["diskType"].as_str().unwrap_or("pd-standard"));
    disk["type"] = json!(format!(
        "{LINK}{}",
        world.path(&format!("zones/{zone}/diskTypes/{kind}"))
    ));
    let mut smallest = 10;
    if let Some(source) = parameters["sourceImage"].as_str() {
        let field = format!("{field}.initializeParams.sourceImage");
        let image = crate::images::named(world, source).ok_or_else(|| {
            let why = "The referenced image resource cannot be found.";
            Refusal::invalid(&field, source, why)
        })?;
        smallest = number(&image["diskSizeGb"]).unwrap_or(smallest);
        disk["sourceImage"] = image["selfLink"].clone();
        disk["sourceImageId"] = image["id"].clone();
        disk["architecture"] = image["architecture"].clone();
    } else if one["boot"] == true && parameters["sourceSnapshot"].is_null() {
        let why = "You must specify an image, a snapshot or a disk for the boot disk.";
        return Err(Refusal::invalid(field, "", why));
    }
    let size = number(&parameters["diskSizeGb"]).or(number(&one["diskSizeGb"]));
    let size = size.unwrap_or(smallest);
    if size < smallest {
        let field = format!("{field}.initializeParams.diskSizeGb");
        let why =
            format!("Requested disk size cannot be smaller than the image size ({smallest} GB)");
        return Err(Refusal::invalid(&field, &size.to_string(), &why));
    }
    disk["sizeGb"] = json!(size.to_string());
    check_labels(
        &parameters["labels"],
        &format!("{field}.initializeParams.labels"),
    )?;
    if parameters["labels"].is_object() {
        disk["labels"] = parameters["labels"].clone();
    }
    disk["labelFingerprint"] = json!(fingerprint(&disk["labels"]));
    Ok(disk)
}

fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

/// `instances.delete`
pub(crate) fn delete(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    if world.instances[&key].resource["deletionProtection"] == true {
        let message = "Invalid resource usage: 'Resource cannot be deleted if it's protected \
                       against deletion.'.";
        return Err(Refusal::new(400, "invalidResourceUsage", message));
    }
    begin(world, ask, "delete", &key, Effect::Delete)
}

/// `instances.start`
pub(crate) fn start(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    let resource = &world.instances[&key].resource;
    let path = world.instance_path(&key);
    match resource["status"].as_str() {
        Some("RUNNING" | "PROVISIONING" | "STAGING") => nothing_to_do(world, ask, "start", &key),
        Some("TERMINATED" | "STOPPED") => {
            let error = exhausted(world, &key.0, &resource.clone())?;
            let id = resource["id"].clone();
            if world.is_going(&key) {
                return Err(Refusal::not_ready(&path));
            }
            Ok(world.begin(ask, "start", (&path, &id), &key, Effect::Start, error))
        }
        _ => Err(Refusal::not_ready(&path)),
    }
}

/// `instances.stop`
pub(crate) fn stop(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    match world.instances[&key].resource["status"].as_str() {
        Some("TERMINATED" | "STOPPED") => nothing_to_do(world, ask, "stop", &key),
        Some("SUSPENDED" | "SUSPENDING" | "STOPPING") => {
            Err(Refusal::not_ready(&world.instance_path(&key)))
        }
        _ => begin(world, ask, "stop", &key, Effect::Stop),
    }
}

/// `instances.setLabels`
pub(crate) fn set_labels(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    let body = &ask.call.body;
    check_labels(&body["labels"], "resource.labels")?;
    let given = &body["labelFingerprint"];
    let expected = fresh(world, &key, "/labelFingerprint", given, STALE_LABELS)?;
    let labels = body["labels"].as_object().filter(|all| !all.is_empty());
    change(
        world,
        ask,
        "setLabels",
        &key,
        ("labels", json!(labels)),
        Some(expected),
    )
}

/// `instances.setMetadata`
pub(crate) fn set_metadata(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    let body = &ask.call.body;
    check_metadata(body)?;
    let given = &body["fingerprint"];
    let expected = fresh(world, &key, "/metadata/fingerprint", given, STALE_METADATA)?;
    change(
        world,
        ask,
        "setMetadata",
        &key,
        ("metadata", metadata(body)),
        Some(expected),
    )
}

/// `instances.setTags`
pub(crate) fn set_tags(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    let body = &ask.call.body;
    let given = &body["fingerprint"];
    let expected = fresh(world, &key, "/tags/fingerprint", given, STALE_TAGS)?;
    let mut tags = json!({});
    if !items(&body["items"]).is_empty() {
        tags["items"] = body["items"].clone();
    }
    change(world, ask, "setTags", &key, ("tags", tags), Some(expected))
}

/// `instances.setScheduling`
pub(crate) fn set_scheduling(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    let before = &world.instances[&key].resource["scheduling"];
    let mut scheduling = before.clone();
    merge(&mut scheduling, &ask.call.body);
    check_scheduling(&scheduling)?;
    let while_running = ["automaticRestart", "onHostMaintenance"];
    let given = ask.call.body.as_object().into_iter().flatten();
    let mut changed = given.filter(|(member, value)| before.get(member) != Some(value));
    if changed.any(|(member, _)| !while_running.contains(&&**member)) {
        require_stopped(world, &key, "scheduling options")?;
    }
    change(
        world,
        ask,
        "setScheduling",
        &key,
        ("scheduling", scheduling),
        None,
    )
}

/// `instances.setServiceAccount`
pub(crate) fn set_service_account(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    require_stopped(world, &key, "service account")?;
    let body = &ask.call.body;
    let email = body["email"].as_str().unwrap_or_default();
    let accounts = if email.is_empty() {
        Value::Null
    } else {
        service_accounts(std::slice::from_ref(body))?
    };
    change(
        world,
        ask,
        "setServiceAccount",
        &key,
        ("serviceAccounts", accounts),
        None,
    )
}

/// `instances.setMachineType`
pub(crate) fn set_machine_type(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    let link = machine_type(world, &key.0, &ask.call.body["machineType"])?;
    require_stopped(world, &key, "machine type")?;
    change(
        world,
        ask,
        "setMachineType",
        &key,
        ("machineType", json!(link)),
        None,
    )
}

/// `instances.setMinCpuPlatform`
pub(crate) fn set_min_cpu_platform(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    require_stopped(world, &key, "minimum CPU platform")?;
    let platform = ask.call.body["minCpuPlatform"].as_str();
    let platform = platform.filter(|name| !name.is_empty() && *name != "AUTOMATIC");
    change(
        world,
        ask,
        "setMinCpuPlatform",
        &key,
        ("minCpuPlatform", json!(platform)),
        None,
    )
}

/// `instances.setDeletionProtection`
pub(crate) fn set_deletion_protection(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "resource")?;
    let protects = ask.call.get("deletionProtection") != Some("false");
    let value = json!(protects);
    change(
        world,
        ask,
        "setDeletionProtection",
        &key,
        ("deletionProtection", value),
        None,
    )
}

/// `instances.updateShieldedInstanceConfig`
pub(crate) fn update_shielded(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let key = find(world, ask, "instance")?;
    require_stopped(world, &key, "shielded instance config")?;
    let mut config = world.instances[&key].resource["shieldedInstanceConfig"].clone();
    merge(&mut config, &ask.call.body);
    if config["enableIntegrityMonitoring"] == true && config["enableVtpm"] == false {
        let why = "Integrity monitoring requires the virtual TPM.";
        let field = "resource.enableIntegrityMonitoring";
        return Err(Refusal::invalid(field, "true", why));
    }
    let kind = "updateShieldedInstanceConfig";
    change(
        world,
        ask,
        kind,
        &key,
        ("shieldedInstanceConfig", config),
        None,
    )
}

/// The zone of a call.
pub(crate) fn zone<'a>(ask: &'a Ask) -> Result<&'a str, Refusal> {
    let zone = ask.call.get("zone").unwrap_or_default();
    if World::has_zone(zone) {
        Ok(zone)
    } else {
        Err(Refusal::invalid("zone", zone, "Unknown zone."))
    }
}

fn find(world: &World, ask: &Ask, parameter: &str) -> Result<Key, Refusal> {
    let zone = zone(ask)?;
    let name = ask.call.get(parameter).unwrap_or_default();
    world
        .instance_key(zone, name)
        .ok_or_else(|| Refusal::not_found(&world.path(&format!("zones/{zone}/instances/{name}"))))
}

fn require_stopped(world: &World, key: &Key, what: &str) -> Result<(), Refusal> {
    if world.instances[key].resource["status"] == "TERMINATED" {
        return Ok(());
    }
    let message = format!("The instance must be stopped before the {what} can be changed.");
    Err(Refusal::new(400, "badRequest", message))
}

/// The fingerprint at a pointer; an error where another one was given.
fn fresh(
    world: &World,
    key: &Key,
    pointer: &'static str,
    given: &Value,
    stale: &'static str,
) -> Result<Fingerprint, Refusal> {
    let current = world.instances[key].resource.pointer(pointer);
    let current = current.and_then(Value::as_str).unwrap_or_default();
    // As bytes: clients decode a fingerprint and encode it again, in an alphabet of their choice.
    let given = given.as_str().unwrap_or_default();
    if decode_base64(given) != decode_base64(current) {
        return Err(Refusal::stale(stale));
    }
    Ok(Fingerprint {
        pointer,
        value: current.to_owned(),
        stale,
    })
}

fn change(
    world: &mut World,
    ask: &Ask,
    kind: &str,
    key: &Key,
    (member, value): (&'static str, Value),
    expected: Option<Fingerprint>,
) -> Result<Value, Refusal> {
    let effect = Effect::Change {
        member,
        value,
        expected,
    };
    begin(world, ask, kind, key, effect)
}

fn begin(
    world: &mut World,
    ask: &Ask,
    kind: &str,
    key: &Key,
    effect: Effect,
) -> Result<Value, Refusal> {
    let path = world.instance_path(key);
    if world.is_going(key) {
        return Err(Refusal::not_ready(&path));
    }
    let id = world.instances[key].resource["id"].clone();
    Ok(world.begin(ask, kind, (&path, &id), key, effect, None))
}

/// An operation that changes nothing.
fn nothing_to_do(world: &mut World, ask: &Ask, kind: &str, key: &Key) -> Result<Value, Refusal> {
    begin(world, ask, kind, key, Effect::Nothing)
}

/// Merges members, as JSON merge patch does one level deep.
fn merge(into: &mut Value, from: &Value) {
    for (member, value) in from.as_object().into_iter().flatten() {
        into[member] = value.clone();
    }
}
