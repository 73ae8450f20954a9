//! Instance groups and network endpoint groups: membership, joining, leaving, health.
//!
//! In: instances and groups: the name of an unmanaged instance group, or `networkEndpointGroups/NAME`,
//! each in the instance's zone. Out: memberships and health. Must not: change a group that isn't named.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nstance_gce::Operation;
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::provider::{CloudError, CloudErrorKind, TargetHealth, TargetState};

use super::calls::Calls;
use super::observe::{items, text};
use super::paths::{instance_id, is_same, name, of_instance};

/// How long a list of members may be reused for other instances.
const FRESH: Duration = Duration::from_secs(10);

/// The collection of network endpoint groups, which their names here begin with.
const ENDPOINT_GROUPS: &str = "networkEndpointGroups";

/// The groups of a configuration, and those that requests name.
pub(super) struct Groups {
    /// The configured groups, sorted.
    watched: Vec<String>,
    members: Mutex<HashMap<InZone, (Timestamp, BTreeSet<String>)>>,
    /// Until when connections may drain of instances that left, by group and provider id.
    draining: Mutex<HashMap<InZone, Timestamp>>,
}

/// A group and a zone, or a group and an instance of it.
type InZone = (String, String);

/// What the backend services say of each instance of a group, by name, with a reason.
type Told = HashMap<String, (TargetState, Option<String>)>;

/// A group in a zone.
struct Group<'g> {
    name: &'g str,
    zone: &'g str,
    has_endpoints: bool,
}

impl<'g> Group<'g> {
    fn of(written: &'g str, zone: &'g str) -> Self {
        Self {
            name: name(written),
            zone,
            has_endpoints: written.contains(ENDPOINT_GROUPS),
        }
    }

    fn input(&self) -> Value {
        let key = if self.has_endpoints {
            "networkEndpointGroup"
        } else {
            "instanceGroup"
        };
        json!({"zone": self.zone, key: self.name})
    }

    fn path(&self, project: &str) -> String {
        let collection = if self.has_endpoints {
            ENDPOINT_GROUPS
        } else {
            "instanceGroups"
        };
        let Self { zone, name, .. } = self;
        format!("projects/{project}/zones/{zone}/{collection}/{name}")
    }
}

impl Groups {
    pub(super) fn new(mut watched: Vec<String>) -> Self {
        watched.sort();
        watched.dedup();
        Self {
            watched,
            members: Mutex::default(),
            draining: Mutex::default(),
        }
    }

    /// Whether groups are configured.
    pub(super) fn watches_any(&self) -> bool {
        !self.watched.is_empty()
    }

    /// The configured groups; `None` if there are none.
    pub(super) fn watched(&self) -> Option<Vec<String>> {
        self.watches_any().then(|| self.watched.clone())
    }

    /// Clears the cached members, at the start of a listing.
    pub(super) fn look_anew(&self) {
        self.members
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// The configured groups that an instance is in; `None` if none are configured. One call per group
    /// and zone serves all instances.
    ///
    /// Fails if the API does.
    pub(super) fn of(
        &self,
        calls: &Calls,
        zone: &str,
        instance: &str,
    ) -> Result<Option<Vec<String>>, CloudError> {
        if self.watched.is_empty() {
            return Ok(None);
        }
        let mut found = Vec::new();
        for written in &self.watched {
            if self.members(calls, written, zone)?.contains(instance) {
                found.push(written.clone());
            }
        }
        Ok(Some(found))
    }

    /// The names of the instances in a group; none if the zone has no such group.
    fn members(
        &self,
        calls: &Calls,
        written: &str,
        zone: &str,
    ) -> Result<BTreeSet<String>, CloudError> {
        let mut known = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (written.to_owned(), zone.to_owned());
        let now = calls.clock.now();
        if let Some((at, members)) = known.get(&key)
            && now.since(*at) <= FRESH
        {
            return Ok(members.clone());
        }
        let members = read(calls, &Group::of(written, zone))?;
        known.insert(key, (now, members.clone()));
        Ok(members)
    }

    /// Adds an instance to groups. Idempotent.
    ///
    /// Fails if the API does.
    pub(super) fn join(
        &self,
        calls: &Calls,
        zone: &str,
        instance: &str,
        groups: &[String],
    ) -> Result<(), CloudError> {
        for written in groups {
            self.send(calls, &Group::of(written, zone), instance, true)?;
        }
        Ok(())
    }

    /// Removes an instance from groups, without waiting for its connections to end. Succeeds if it
    /// isn't a member.
    ///
    /// Fails if the API does.
    pub(super) fn leave(
        &self,
        calls: &Calls,
        zone: &str,
        instance: &str,
        groups: &[String],
    ) -> Result<(), CloudError> {
        for written in groups {
            let group = Group::of(written, zone);
            if !read(calls, &group)?.contains(instance) {
                continue;
            }
            self.send(calls, &group, instance, false)?;
            // It left; who may not read backend services doesn't wait for connections.
            let services = services_of(calls, &group).unwrap_or_default();
            let seconds = services
                .iter()
                .filter_map(|service| service["connectionDraining"]["drainingTimeoutSec"].as_u64());
            let time = Duration::from_secs(seconds.max().unwrap_or(0));
            let key = (written.clone(), instance_id(zone, instance));
            self.draining().insert(key, calls.clock.now().after(time));
        }
        Ok(())
    }

    fn draining(&self) -> MutexGuard<'_, HashMap<InZone, Timestamp>> {
        self.draining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(
        &self,
        calls: &Calls,
        group: &Group<'_>,
        instance: &str,
        joins: bool,
    ) -> Result<(), CloudError> {
        let path = calls.place.instance_path(group.zone, instance);
        let mut input = group.input();
        input["body"] = if group.has_endpoints {
            json!({"networkEndpoints": [{"instance": path}]})
        } else {
            json!({"instances": [{"instance": path}]})
        };
        let operation = match (group.has_endpoints, joins) {
            (false, true) => Operation::InstanceGroupsAddInstances,
            (false, false) => Operation::InstanceGroupsRemoveInstances,
            (true, true) => Operation::NetworkEndpointGroupsAttachNetworkEndpoints,
            (true, false) => Operation::NetworkEndpointGroupsDetachNetworkEndpoints,
        };
        let sent = calls.change(operation, input);
        self.look_anew();
        match sent {
            // It is in already, or out: the end is what counts.
            Err(error) if !error.kind.is_retryable() => {
                let is_in = read(calls, group)?.contains(instance);
                if is_in == joins { Ok(()) } else { Err(error) }
            }
            sent => sent,
        }
    }

    /// The state of each instance with each group.
    ///
    /// Fails if the API does.
    pub(super) fn health(
        &self,
        calls: &Calls,
        provider_ids: &[String],
        groups: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError> {
        let mut found = Vec::new();
        let parsed: Vec<(&String, &str, &str)> = provider_ids
            .iter()
            .filter_map(|id| of_instance(id).map(|(zone, name)| (id, zone, name)))
            .collect();
        let zones: BTreeSet<&str> = parsed.iter().map(|(_, zone, _)| *zone).collect();
        for zone in zones {
            for written in groups {
                let group = Group::of(written, zone);
                let members = read(calls, &group)?;
                let told = told_health(calls, &group)?;
                for (id, _, instance) in parsed.iter().filter(|(_, of, _)| *of == zone) {
                    let key = (written.clone(), (*id).clone());
                    let drains = self.draining().get(&key).copied();
                    let (state, reason) = match (members.contains(*instance), &told) {
                        (false, _) if drains.is_some_and(|end| end > calls.clock.now()) => {
                            (TargetState::Draining, None)
                        }
                        (false, _) => (TargetState::Absent, None),
                        (true, None) => (TargetState::Unused, None),
                        (true, Some(told)) => told
                            .get(*instance)
                            .cloned()
                            .unwrap_or((TargetState::Initial, None)),
                    };
                    found.push(TargetHealth {
                        provider_id: (*id).clone(),
                        load_balancer: written.clone(),
                        state,
                        reason,
                    });
                }
            }
        }
        Ok(found)
    }
}

/// The names of the instances in a group; none if the zone has no such group.
fn read(calls: &Calls, group: &Group<'_>) -> Result<BTreeSet<String>, CloudError> {
    let mut input = group.input();
    input["body"] = json!({});
    let operation = if group.has_endpoints {
        Operation::NetworkEndpointGroupsListNetworkEndpoints
    } else {
        Operation::InstanceGroupsListInstances
    };
    let members = match calls.pages(operation, input) {
        Err(error) if error.kind == CloudErrorKind::NotFound => return Ok(BTreeSet::new()),
        members => members?,
    };
    let instance = |member: &Value| {
        let member = member.get("networkEndpoint").unwrap_or(member);
        text(member, "instance").map(|path| name(path).to_owned())
    };
    Ok(members.iter().filter_map(instance).collect())
}

/// The backend services that have a group, each with its region if it has one.
fn services_of(calls: &Calls, group: &Group<'_>) -> Result<Vec<Value>, CloudError> {
    let path = group.path(&calls.place.project);
    let region = calls.place.region.as_str();
    let mut services = calls.pages(Operation::BackendServicesList, json!({}))?;
    let regional = json!({"region": region});
    services.extend(calls.pages(Operation::RegionBackendServicesList, regional)?);
    services.retain(|service| {
        let mut backends = items(service, "backends");
        backends.any(|backend| text(backend, "group").is_some_and(|group| is_same(group, &path)))
    });
    Ok(services)
}

/// What the backend services say of a group's instances, by name, the worst of them; `None` if no
/// service has the group.
fn told_health(calls: &Calls, group: &Group<'_>) -> Result<Option<Told>, CloudError> {
    let services = services_of(calls, group)?;
    if services.is_empty() {
        return Ok(None);
    }
    let path = group.path(&calls.place.project);
    let mut told = Told::new();
    for service in &services {
        let mut input = json!({
            "backendService": text(service, "name").unwrap_or_default(),
            "body": {"group": path},
        });
        let operation = match text(service, "region") {
            Some(region) => {
                input["region"] = name(region).into();
                Operation::RegionBackendServicesGetHealth
            }
            None => Operation::BackendServicesGetHealth,
        };
        let answer = calls.call(operation, input)?;
        for status in items(&answer, "healthStatus") {
            let Some(instance) = text(status, "instance") else {
                continue;
            };
            let state = match text(status, "healthState") {
                Some("HEALTHY") => TargetState::Healthy,
                Some("DRAINING") => TargetState::Draining,
                Some("UNKNOWN") => TargetState::Initial,
                _ => TargetState::Unhealthy,
            };
            let reason = (state == TargetState::Unhealthy).then(|| {
                let service = text(service, "name").unwrap_or_default();
                format!("the health check of `{service}` fails")
            });
            let known = told.entry(name(instance).to_owned());
            let known = known.or_insert((TargetState::Healthy, None));
            if state != TargetState::Healthy {
                *known = (state, reason);
            }
        }
    }
    Ok(Some(told))
}
