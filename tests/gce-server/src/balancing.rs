//! Instance groups, network endpoint groups, backend services.
//!
//! In: calls whose form is valid. Out: members and their health, and operations on them. Must not:
//! end an operation.

use serde_json::{Value, json};

use crate::error::Refusal;
use crate::images::known_region;
use crate::instances::zone;
use crate::list;
use crate::operations::{Effect, endpoints};
use crate::server::Ask;
use crate::world::{Key, LINK, World, items, resource_path};

/// A member of a group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The instance's.
    pub(crate) name: String,
    /// How many looks it will be unhealthy.
    pub(crate) looks: u32,
    /// Null in an instance group.
    pub(crate) endpoint: Value,
}

#[derive(Debug)]
pub(crate) struct InstanceGroup {
    pub(crate) id: Value,
    pub(crate) members: Vec<Member>,
}

#[derive(Debug)]
pub(crate) struct EndpointGroup {
    pub(crate) id: Value,
    /// `GCE_VM_IP_PORT` or `GCE_VM_IP`.
    pub(crate) kind: String,
    pub(crate) default_port: u64,
    pub(crate) members: Vec<Member>,
}

#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) resource: Value,
    pub(crate) port: u64,
}

impl Member {
    pub(crate) fn new(name: String, looks: u32, endpoint: Value) -> Self {
        Self {
            name,
            looks,
            endpoint,
        }
    }
}

/// `instanceGroups.addInstances`
pub(crate) fn add_instances(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let (key, path) = group(world, ask)?;
    let names = named(world, ask, &key)?;
    for name in &names {
        if world.groups[&key]
            .members
            .iter()
            .any(|member| member.name == *name)
        {
            let instance = world.instance_path(&(key.0.clone(), name.clone()));
            let message = format!("Instance '{instance}' is already a member of '{path}'");
            return Err(Refusal::new(400, "memberAlreadyExists", message));
        }
    }
    let id = world.groups[&key].id.clone();
    let kind = "compute.instanceGroups.addInstances";
    Ok(world.begin(
        ask,
        kind,
        (&path, &id),
        &key,
        Effect::AddInstances(names),
        None,
    ))
}

/// `instanceGroups.removeInstances`
pub(crate) fn remove_instances(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let (key, path) = group(world, ask)?;
    let names = named(world, ask, &key)?;
    for name in &names {
        if world.groups[&key]
            .members
            .iter()
            .all(|member| member.name != *name)
        {
            let instance = world.instance_path(&(key.0.clone(), name.clone()));
            let message = format!("Instance '{instance}' is not a member of '{path}'");
            return Err(Refusal::new(400, "memberNotFound", message));
        }
    }
    let id = world.groups[&key].id.clone();
    let kind = "compute.instanceGroups.removeInstances";
    Ok(world.begin(
        ask,
        kind,
        (&path, &id),
        &key,
        Effect::RemoveInstances(names),
        None,
    ))
}

/// `instanceGroups.listInstances`
pub(crate) fn list_instances(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let (key, path) = group(world, ask)?;
    let only_running = ask.call.body["instanceState"] == "RUNNING";
    let mut entries = Vec::new();
    for member in &world.groups[&key].members {
        let instance_key = (key.0.clone(), member.name.clone());
        let Some(instance) = world.instances.get(&instance_key) else {
            continue;
        };
        let status = &instance.resource["status"];
        if !only_running || status == "RUNNING" {
            let link = &instance.resource["selfLink"];
            let entry = json!({"instance": link, "status": status, "namedPorts": []});
            entries.push((member.name.clone(), entry));
        }
    }
    world.look_at_group(&key);
    let page = world.pages.page(ask, "InstanceWithNamedPorts", entries)?;
    Ok(list::answer(
        "compute#instanceGroupsListInstances",
        &format!("{path}/listInstances"),
        page,
    ))
}

/// `networkEndpointGroups.attachNetworkEndpoints`
pub(crate) fn attach(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let (key, path) = endpoint_group(world, ask)?;
    let endpoints = checked(world, ask, &key)?;
    let id = world.endpoint_groups[&key].id.clone();
    let effect = Effect::Attach(endpoints);
    Ok(world.begin(
        ask,
        "attachNetworkEndpoints",
        (&path, &id),
        &key,
        effect,
        None,
    ))
}

/// `networkEndpointGroups.detachNetworkEndpoints`
pub(crate) fn detach(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let (key, path) = endpoint_group(world, ask)?;
    let endpoints: Vec<Value> = endpoints(&ask.call.body).to_vec();
    let members = &world.endpoint_groups[&key].members;
    let mut found = Vec::new();
    for (number, endpoint) in endpoints.iter().enumerate() {
        let member = members
            .iter()
            .find(|member| is_same(&member.endpoint, endpoint));
        let Some(member) = member else {
            let field = format!("resource.networkEndpoints[{number}]");
            let why = "The network endpoint is not in the network endpoint group.";
            return Err(Refusal::invalid(&field, &endpoint.to_string(), why));
        };
        found.push(member.endpoint.clone());
    }
    let id = world.endpoint_groups[&key].id.clone();
    let effect = Effect::Detach(found);
    Ok(world.begin(
        ask,
        "detachNetworkEndpoints",
        (&path, &id),
        &key,
        effect,
        None,
    ))
}

/// `networkEndpointGroups.listNetworkEndpoints`
pub(crate) fn list_endpoints(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let (key, path) = endpoint_group(world, ask)?;
    let shows_health = ask.call.body["healthStatus"] == "SHOW";
    let group_link = format!("{LINK}{path}");
    let service = world
        .services
        .values()
        .find(|service| has_backend(service, &group_link));
    let service = service.map(|service| service.resource["selfLink"].clone());
    let mut entries = Vec::new();
    for member in &world.endpoint_groups[&key].members {
        let mut entry = json!({"networkEndpoint": member.endpoint});
        if let (true, Some(service)) = (shows_health, &service) {
            let state = health(world, &key.0, member);
            entry["healths"] = json!([{
                "backendService": {"backendService": service},
                "healthState": state,
            }]);
        }
        entries.push((
            format!("{} {}", member.name, member.endpoint["port"]),
            entry,
        ));
    }
    world.look_at_group(&key);
    let page = world
        .pages
        .page(ask, "NetworkEndpointWithHealthStatus", entries)?;
    let kind = "compute#networkEndpointGroupsListNetworkEndpoints";
    Ok(list::answer(
        kind,
        &format!("{path}/listNetworkEndpoints"),
        page,
    ))
}

/// `backendServices.list` and `regionBackendServices.list`
pub(crate) fn list_services(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let region = service_region(ask)?;
    let of_region = world.services.iter().filter(|((one, _), _)| *one == region);
    let entries = of_region.map(|((_, name), service)| (name.clone(), service.resource.clone()));
    let entries = entries.collect();
    let page = world.pages.page(ask, "BackendService", entries)?;
    let path = world.path(&format!("{}/backendServices", scope(&region)));
    let mut answer = list::answer("compute#backendServiceList", &path, page);
    answer["selfLink"] = json!(format!("{LINK}{path}"));
    Ok(answer)
}

/// `backendServices.getHealth` and `regionBackendServices.getHealth`
pub(crate) fn get_health(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let region = service_region(ask)?;
    let name = ask.call.get("backendService").unwrap_or_default();
    let path = world.path(&format!("{}/backendServices/{name}", scope(&region)));
    let service = world.services.get(&(region, name.to_owned()));
    let service = service.ok_or_else(|| Refusal::not_found(&path))?;
    let given = ask.call.body["group"].as_str().unwrap_or_default();
    let group = resource_path(given, &world.project).unwrap_or_default();
    if !has_backend(service, &format!("{LINK}{group}")) {
        let why = "The group is not a backend of the backend service.";
        return Err(Refusal::invalid("resource.group", given, why));
    }
    let (port, parts) = (service.port, group.split('/').collect::<Vec<_>>());
    let ["projects", _, "zones", zone, kind, name] = parts[..] else {
        return Err(Refusal::not_found(&group));
    };
    let key = (zone.to_owned(), name.to_owned());
    let members: &[Member] = match kind {
        "instanceGroups" => world.groups.get(&key).map_or(&[], |group| &group.members),
        _ => world
            .endpoint_groups
            .get(&key)
            .map_or(&[], |group| &group.members),
    };
    let mut states = Vec::new();
    for member in members {
        let instance_key = (zone.to_owned(), member.name.clone());
        let Some(instance) = world.instances.get(&instance_key) else {
            continue;
        };
        let address = &instance.resource["networkInterfaces"][0]["networkIP"];
        states.push(json!({
            "instance": instance.resource["selfLink"],
            "ipAddress": address,
            "port": member.endpoint["port"].as_u64().unwrap_or(port),
            "healthState": health(world, zone, member),
        }));
    }
    look(world, kind, &key);
    let mut answer = json!({"kind": "compute#backendServiceGroupHealth"});
    if !states.is_empty() {
        answer["healthStatus"] = json!(states);
    }
    Ok(answer)
}

/// A look at a group's health.
fn look(world: &mut World, kind: &str, key: &Key) {
    let members = match kind {
        "instanceGroups" => world.groups.get_mut(key).map(|group| &mut group.members),
        _ => world
            .endpoint_groups
            .get_mut(key)
            .map(|group| &mut group.members),
    };
    for member in members.into_iter().flatten() {
        let key = (key.0.clone(), member.name.clone());
        let instance = world.instances.get(&key);
        if instance.is_some_and(|one| one.resource["status"] == "RUNNING") {
            member.looks = member.looks.saturating_sub(1);
        }
    }
}

fn health(world: &World, zone: &str, member: &Member) -> String {
    if let Some(state) = world.health.get(&member.name) {
        return state.clone();
    }
    let key = (zone.to_owned(), member.name.clone());
    let instance = world.instances.get(&key);
    let runs = instance.is_some_and(|one| one.resource["status"] == "RUNNING");
    let state = if runs && member.looks == 0 {
        "HEALTHY"
    } else {
        "UNHEALTHY"
    };
    state.to_owned()
}

fn has_backend(service: &Service, group_link: &str) -> bool {
    let mut backends = items(&service.resource["backends"]).iter();
    backends.any(|backend| backend["group"] == *group_link)
}

/// The region of a call, empty for the global services.
fn service_region(ask: &Ask) -> Result<String, Refusal> {
    if ask.call.method.starts_with("region") {
        return known_region(ask).map(str::to_owned);
    }
    Ok(String::new())
}

/// As in a path: `global`, or the region.
pub(crate) fn scope(region: &str) -> String {
    if region.is_empty() {
        "global".to_owned()
    } else {
        format!("regions/{region}")
    }
}

fn group(world: &World, ask: &Ask) -> Result<(Key, String), Refusal> {
    let zone = zone(ask)?.to_owned();
    let name = ask.call.get("instanceGroup").unwrap_or_default().to_owned();
    let path = world.path(&format!("zones/{zone}/instanceGroups/{name}"));
    let key = (zone, name);
    if world.groups.contains_key(&key) {
        Ok((key, path))
    } else {
        Err(Refusal::not_found(&path))
    }
}

fn endpoint_group(world: &World, ask: &Ask) -> Result<(Key, String), Refusal> {
    let zone = zone(ask)?.to_owned();
    let name = ask
        .call
        .get("networkEndpointGroup")
        .unwrap_or_default()
        .to_owned();
    let path = world.path(&format!("zones/{zone}/networkEndpointGroups/{name}"));
    let key = (zone, name);
    if world.endpoint_groups.contains_key(&key) {
        Ok((key, path))
    } else {
        Err(Refusal::not_found(&path))
    }
}

/// The names of the instances in a call's body; all in the group's zone.
fn named(world: &World, ask: &Ask, group: &Key) -> Result<Vec<String>, Refusal> {
    let mut names = Vec::new();
    for (number, one) in items(&ask.call.body["instances"]).iter().enumerate() {
        let link = one["instance"].as_str().unwrap_or_default();
        let field = format!("resource.instances[{number}].instance");
        let path = resource_path(link, &world.project);
        let path = path.ok_or_else(|| Refusal::invalid(&field, link, "The URL is malformed."))?;
        let key = world
            .linked_instance(link)
            .ok_or_else(|| Refusal::not_found(&path))?;
        if key.0 != group.0 {
            let why = "The instance must be in the zone of the instance group.";
            return Err(Refusal::invalid(&field, link, why));
        }
        names.push(key.1);
    }
    Ok(names)
}

/// The endpoints of a call's body, each with its instance's name, and complete.
fn checked(world: &World, ask: &Ask, group: &Key) -> Result<Vec<(String, Value)>, Refusal> {
    let mut found = Vec::new();
    let of_group = &world.endpoint_groups[group];
    for (number, endpoint) in endpoints(&ask.call.body).iter().enumerate() {
        let field = format!("resource.networkEndpoints[{number}]");
        let given = endpoint["instance"].as_str().unwrap_or_default();
        // An instance by its name alone is one of the group's zone.
        let key = if given.contains('/') {
            world.linked_instance(given)
        } else {
            world.instance_key(&group.0, given)
        };
        let key = key.filter(|key| key.0 == group.0).ok_or_else(|| {
            let why = "The referenced instance resource cannot be found.";
            Refusal::invalid(&format!("{field}.instance"), given, why)
        })?;
        let instance = &world.instances[&key].resource;
        let address = &instance["networkInterfaces"][0]["networkIP"];
        if !endpoint["ipAddress"].is_null() && endpoint["ipAddress"] != *address {
            let value = endpoint["ipAddress"].as_str().unwrap_or_default();
            let why = "The IP address is not one of the instance's.";
            return Err(Refusal::invalid(&format!("{field}.ipAddress"), value, why));
        }
        let mut complete = json!({"instance": instance["selfLink"], "ipAddress": address});
        if of_group.kind == "GCE_VM_IP_PORT" {
            let port = endpoint["port"].as_u64().unwrap_or(of_group.default_port);
            if port == 0 {
                let why = "The network endpoint group has no default port.";
                return Err(Refusal::invalid(&format!("{field}.port"), "", why));
            }
            complete["port"] = json!(port);
        } else if !endpoint["port"].is_null() {
            let value = endpoint["port"].to_string();
            let why = "Endpoints of type GCE_VM_IP have no port.";
            return Err(Refusal::invalid(&format!("{field}.port"), &value, why));
        }
        if !endpoint["annotations"].is_null() {
            complete["annotations"] = endpoint["annotations"].clone();
        }
        found.push((key.1, complete));
    }
    Ok(found)
}

/// Whether a call means this endpoint. It may leave out the address, and name the instance by its
/// name or a partial URL.
fn is_same(member: &Value, given: &Value) -> bool {
    let name = |value: &Value| {
        let link = value["instance"].as_str().unwrap_or_default();
        crate::world::last(link).to_owned()
    };
    let agrees = |field: &str| given[field].is_null() || given[field] == member[field];
    name(member) == name(given) && agrees("ipAddress") && agrees("port")
}
