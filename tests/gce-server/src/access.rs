//! Changes that tests make to a project without its API.
//!
//! In: what happens outside the program under test. Out: the project's resources. Must not: count as
//! a look, or be logged.

use serde_json::{Value, json};

use crate::balancing::{EndpointGroup, InstanceGroup, Service, scope};
use crate::calls::{Call, Outcome};
use crate::instances;
use crate::operations::Effect;
use crate::server::{Ask, Server};
use crate::world::{Habits, Key, LINK, World, fingerprint, refresh, remove};

impl Server {
    /// Sets how long things take to be seen, from now on.
    pub fn set_habits(&self, habits: Habits) {
        self.world().habits = habits;
    }

    /// The instances, by zone and name, as `get` would show them.
    pub fn instances(&self) -> Vec<Value> {
        let world = self.world();
        world
            .instances
            .values()
            .map(|one| one.resource.clone())
            .collect()
    }

    /// The instance of a name.
    ///
    /// # Panics
    /// Where there isn't one, or there are several in different zones.
    #[track_caller]
    pub fn instance(&self, name: &str) -> Value {
        let world = self.world();
        world.instances[&key(&world, name)].resource.clone()
    }

    /// The disks, by zone and name.
    pub fn disks(&self) -> Vec<Value> {
        self.world().disks.values().cloned().collect()
    }

    /// The operations, by zone and age.
    pub fn operations(&self) -> Vec<Value> {
        let world = self.world();
        world
            .operations
            .values()
            .map(|one| one.resource.clone())
            .collect()
    }

    /// Creates an instance as somebody else would; it runs at once. The body is that of
    /// `instances.insert`.
    ///
    /// # Panics
    /// Where the body isn't valid.
    #[track_caller]
    pub fn insert(&self, zone: &str, body: &Value) {
        let parameter = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut world = self.world();
        let call = Call {
            method: "instances.insert".to_owned(),
            parameters: vec![
                parameter("project", &world.project),
                parameter("zone", zone),
            ],
            body: body.clone(),
            authorized: false,
            outcome: Outcome::Answered,
        };
        let ask = Ask {
            document: self.document(),
            call: &call,
            end: None,
        };
        let operation = instances::insert(&mut world, &ask);
        let operation = operation.unwrap_or_else(|refusal| panic!("{}", refusal.message));
        let name = operation["name"].as_str().unwrap_or_default();
        world.wait(&(zone.to_owned(), name.to_owned()));
    }

    /// Changes an instance as somebody else would; its fingerprints change, too.
    #[track_caller]
    pub fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut world = self.world();
        let key = key(&world, name);
        if let Some(instance) = world.instances.get_mut(&key) {
            change(&mut instance.resource);
            refresh(&mut instance.resource);
        }
    }

    /// Sets an instance's labels, all of them.
    #[track_caller]
    pub fn set_labels(&self, name: &str, labels: &[(&str, &str)]) {
        let labels: serde_json::Map<String, Value> = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        self.edit(name, |resource| {
            if labels.is_empty() {
                remove(resource, "labels");
            } else {
                resource["labels"] = json!(labels);
            }
        });
    }

    /// Sets an instance's status at once: `REPAIRING`, `SUSPENDED`, `TERMINATED`, `RUNNING`.
    #[track_caller]
    pub fn set_status(&self, name: &str, status: &str) {
        self.edit(name, |resource| resource["status"] = json!(status));
    }

    /// Stops an instance at once, as somebody else would.
    #[track_caller]
    pub fn stop(&self, name: &str) {
        let mut world = self.world();
        let key = key(&world, name);
        let now = world.clock.tick();
        if let Some(instance) = world.instances.get_mut(&key) {
            instance.terminate(&now);
        }
    }

    /// Suspends an instance at once.
    #[track_caller]
    pub fn suspend(&self, name: &str) {
        self.set_status(name, "SUSPENDED");
    }

    /// Deletes an instance at once, protected or not.
    #[track_caller]
    pub fn delete(&self, name: &str) {
        let mut world = self.world();
        let key = key(&world, name);
        world.remove(&key);
    }

    /// Preempts a spot instance: it is stopping, and, after as many looks as an operation takes,
    /// stopped or deleted, as its scheduling says.
    ///
    /// # Panics
    /// Where it isn't a spot instance.
    #[track_caller]
    pub fn preempt(&self, name: &str) {
        let mut world = self.world();
        let key = key(&world, name);
        let resource = &world.instances[&key].resource;
        assert_eq!(
            resource["scheduling"]["preemptible"], true,
            "{name} isn't a spot instance"
        );
        let id = resource["id"].clone();
        let path = world.instance_path(&key);
        let kind = "compute.instances.preempted";
        world.add_operation(kind, (&path, &id), &key, Effect::Preempt, None);
    }

    /// Adds an image, newer than all others, of a family or of none (`""`). `state` is
    /// `DEPRECATED`, `OBSOLETE`, `DELETED`, or none.
    pub fn add_image(&self, project: &str, name: &str, family: &str, state: Option<&str>) {
        self.world().add_image(project, name, family, state);
    }

    /// Adds a subnetwork to a project: the server's own, or a host project.
    pub fn add_subnetwork(
        &self,
        project: &str,
        region: &str,
        name: &str,
        network: &str,
        range: &str,
    ) {
        self.world()
            .add_subnetwork(project, region, name, network, range);
    }

    /// Adds an instance group; returns its link.
    pub fn add_instance_group(&self, zone: &str, name: &str) -> String {
        let mut world = self.world();
        let id = json!(world.id());
        let members = Vec::new();
        world.groups.insert(
            (zone.to_owned(), name.to_owned()),
            InstanceGroup { id, members },
        );
        format!(
            "{LINK}{}",
            world.path(&format!("zones/{zone}/instanceGroups/{name}"))
        )
    }

    /// Adds a network endpoint group; returns its link. `kind` is `GCE_VM_IP_PORT` or `GCE_VM_IP`;
    /// a default port of 0 stands for none.
    pub fn add_endpoint_group(
        &self,
        zone: &str,
        name: &str,
        kind: &str,
        default_port: u16,
    ) -> String {
        let mut world = self.world();
        let group = EndpointGroup {
            id: json!(world.id()),
            kind: kind.to_owned(),
            default_port: default_port.into(),
            members: Vec::new(),
        };
        world
            .endpoint_groups
            .insert((zone.to_owned(), name.to_owned()), group);
        format!(
            "{LINK}{}",
            world.path(&format!("zones/{zone}/networkEndpointGroups/{name}"))
        )
    }

    /// Adds a backend service with groups by their links; returns its link. The region is none for
    /// a global service. `port` is that of instance groups.
    pub fn add_backend_service(
        &self,
        region: Option<&str>,
        name: &str,
        port: u16,
        groups: &[&str],
    ) -> String {
        let mut world = self.world();
        let region = region.unwrap_or_default().to_owned();
        let path = world.path(&format!("{}/backendServices/{name}", scope(&region)));
        let link = format!("{LINK}{path}");
        let backend = |group: &&str| json!({"group": group, "balancingMode": "CONNECTION"});
        let mut resource = json!({
            "kind": "compute#backendService",
            "id": world.id(),
            "creationTimestamp": world.clock.tick(),
            "name": name,
            "selfLink": link,
            "protocol": "TCP",
            "backends": groups.iter().map(backend).collect::<Vec<_>>(),
            "fingerprint": fingerprint(&json!(groups)),
            "loadBalancingScheme": if region.is_empty() { "EXTERNAL" } else { "INTERNAL" },
        });
        if !region.is_empty() {
            let link = format!("{LINK}{}", world.path(&format!("regions/{region}")));
            resource["region"] = json!(link);
        }
        let port = port.into();
        world
            .services
            .insert((region, name.to_owned()), Service { resource, port });
        link
    }

    /// Sets how healthy an instance is in all groups: `HEALTHY`, `UNHEALTHY`; none lets it become
    /// healthy by itself.
    pub fn set_health(&self, instance: &str, state: Option<&str>) {
        let mut world = self.world();
        match state {
            Some(state) => world.health.insert(instance.to_owned(), state.to_owned()),
            None => world.health.remove(instance),
        };
    }

    /// The instances of an instance group or a network endpoint group.
    pub fn members(&self, zone: &str, group: &str) -> Vec<String> {
        let world = self.world();
        let key = (zone.to_owned(), group.to_owned());
        let of_group = world.groups.get(&key).map(|group| &group.members);
        let members = of_group.or(world.endpoint_groups.get(&key).map(|group| &group.members));
        let names = members
            .into_iter()
            .flatten()
            .map(|member| member.name.clone());
        names.collect()
    }

    /// Sets a region's limit of a metric, as in `CPUS`. Metrics without a limit aren't limited.
    pub fn set_quota(&self, region: &str, metric: &str, limit: f64) {
        let key = (region.to_owned(), metric.to_owned());
        self.world().quotas.insert(key, limit);
    }

    /// Makes a zone unreachable for lists, or reachable again.
    pub fn set_reachable(&self, zone: &str, reachable: bool) {
        let mut world = self.world();
        if reachable {
            world.unreachable.remove(zone);
        } else {
            world.unreachable.insert(zone.to_owned());
        }
    }

    /// Denies a permission, as in `compute.instances.create`. Only `testIamPermissions` knows;
    /// for a method that is forbidden, add a rule.
    pub fn deny(&self, permission: &str) {
        self.world().denied.insert(permission.to_owned());
    }

    /// Grants all permissions again.
    pub fn grant_all(&self) {
        self.world().denied.clear();
    }

    /// Ends all page tokens.
    pub fn expire_page_tokens(&self) {
        self.world().pages.expire();
    }
}

#[track_caller]
fn key(world: &World, name: &str) -> Key {
    let mut named = world.instances.keys().filter(|(_, one)| one == name);
    match (named.next(), named.next()) {
        (Some(key), None) => key.clone(),
        (None, _) => panic!("there is no instance {name}"),
        (Some(_), Some(_)) => panic!("there are several instances {name}"),
    }
}
