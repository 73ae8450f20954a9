//! A project, and the image projects beside it.
//!
//! In: resources as they are made, changed and deleted. Out: the same resources as the API shows
//! them. Must not: know methods or HTTP.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::{Value, json};

use crate::balancing::{EndpointGroup, InstanceGroup, Service};
use crate::clock::Clock;
use crate::list::Pages;
use crate::operations::{Operation, Requests};

/// What the links of resources begin with, whatever the endpoint.
pub const LINK: &str = "https://www.googleapis.com/compute/v1/";

/// The number of each server's project.
pub const PROJECT_NUMBER: &str = "123456789012";

/// Zones, by region.
const ZONES: &[(&str, &[&str])] = &[
    ("europe-west1", &["b", "c", "d"]),
    ("europe-west4", &["a", "b", "c"]),
    ("us-central1", &["a", "b", "c", "f"]),
    ("us-east1", &["b", "c", "d"]),
];

/// How many looks it takes until something is seen as it is. A look is a call that shows it: a
/// `get` of an operation; a `get` of an instance, or a list with it.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Until an operation is `DONE`. A look at its instance counts, too.
    pub operation: u32,
    /// Lists lack a new instance; `get` has it.
    pub hidden: u32,
    /// Lists have a deleted instance; `get` doesn't.
    pub lingering: u32,
    /// A member of a backend is unhealthy; a look is a `getHealth`.
    pub unhealthy: u32,
    /// An exhausted quota is the call's error, a 403, not the operation's. Google does both.
    pub quota_refuses: bool,
    /// Aggregated lists lack zones that can't be reached, with a warning. Otherwise the whole call
    /// is a 503. Where the document has `returnPartialSuccess`, that parameter decides.
    pub partial_success: bool,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            operation: 2,
            hidden: 0,
            lingering: 0,
            unhealthy: 0,
            quota_refuses: false,
            partial_success: true,
        }
    }
}

/// A zone's or region's name, and a resource's.
pub(crate) type Key = (String, String);

#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) resource: Value,
    /// How many lists will lack it.
    pub(crate) hidden: u32,
}

impl Instance {
    /// Its addresses on the internet.
    fn access_configs(&mut self) -> impl Iterator<Item = &mut Value> {
        let interfaces = self.resource["networkInterfaces"].as_array_mut();
        let configs = interfaces
            .into_iter()
            .flatten()
            .filter_map(|interface| interface.get_mut("accessConfigs")?.as_array_mut());
        configs.flatten()
    }

    /// Stops it. Addresses on the internet are released; those of the subnetwork stay.
    pub(crate) fn terminate(&mut self, now: &str) {
        self.resource["status"] = json!("TERMINATED");
        self.resource["lastStopTimestamp"] = json!(now);
        for config in self.access_configs() {
            remove(config, "natIP");
        }
    }
}

/// A deleted instance that lists still have.
#[derive(Debug)]
pub(crate) struct Lingering {
    pub(crate) key: Key,
    pub(crate) resource: Value,
    pub(crate) looks: u32,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) project: String,
    pub(crate) habits: Habits,
    pub(crate) clock: Clock,
    ids: u64,
    /// How many addresses on the internet were given out.
    nat_addresses: u32,
    pub(crate) instances: BTreeMap<Key, Instance>,
    pub(crate) lingering: Vec<Lingering>,
    pub(crate) disks: BTreeMap<Key, Value>,
    /// By project.
    pub(crate) images: Vec<(String, Value)>,
    /// By `projects/P/regions/R/subnetworks/S`.
    pub(crate) subnetworks: BTreeMap<String, Value>,
    pub(crate) groups: BTreeMap<Key, InstanceGroup>,
    pub(crate) endpoint_groups: BTreeMap<Key, EndpointGroup>,
    /// The region is empty for global ones.
    pub(crate) services: BTreeMap<Key, Service>,
    /// By instance; the others become healthy by themselves.
    pub(crate) health: HashMap<String, String>,
    /// By region and metric.
    pub(crate) quotas: BTreeMap<Key, f64>,
    /// By zone and name.
    pub(crate) operations: BTreeMap<Key, Operation>,
    pub(crate) requests: Requests,
    pub(crate) pages: Pages,
    pub(crate) unreachable: BTreeSet<String>,
    pub(crate) denied: BTreeSet<String>,
}

impl World {
    /// A project with nothing in it but a subnetwork `default` in each region; and one family of
    /// Debian's images in theirs.
    pub(crate) fn new(project: &str) -> Self {
        let mut world = Self {
            project: project.to_owned(),
            habits: Habits::default(),
            clock: Clock::default(),
            ids: 1_000_000_000_000_000_000,
            nat_addresses: 0,
            instances: BTreeMap::new(),
            lingering: Vec::new(),
            disks: BTreeMap::new(),
            images: Vec::new(),
            subnetworks: BTreeMap::new(),
            groups: BTreeMap::new(),
            endpoint_groups: BTreeMap::new(),
            services: BTreeMap::new(),
            health: HashMap::new(),
            quotas: BTreeMap::new(),
            operations: BTreeMap::new(),
            requests: Requests::default(),
            pages: Pages::default(),
            unreachable: BTreeSet::new(),
            denied: BTreeSet::new(),
        };
        for (number, (region, _)) in ZONES.iter().enumerate() {
            let range = format!("10.{}.0.0/20", 128 + number);
            world.add_subnetwork(project, region, "default", "default", &range);
        }
        for (version, state) in [("v20251209", Some("DEPRECATED")), ("v20260114", None)] {
            let name = format!("debian-12-bookworm-{version}");
            world.add_image("debian-cloud", &name, "debian-12", state);
        }
        world
    }

    /// The next id, as a number in text.
    pub(crate) fn id(&mut self) -> String {
        self.ids += 1;
        self.ids.to_string()
    }

    pub(crate) fn has_zone(zone: &str) -> bool {
        zones().any(|one| one == zone)
    }

    pub(crate) fn add_image(
        &mut self,
        project: &str,
        name: &str,
        family: &str,
        state: Option<&str>,
    ) {
        let mut image = json!({
            "kind": "compute#image",
            "id": self.id(),
            "creationTimestamp": self.clock.tick(),
            "name": name,
            "description": format!("An image of {family}"),
            "sourceType": "RAW",
            "status": "READY",
            "archiveSizeBytes": "1073741824",
            "diskSizeGb": "10",
            "architecture": "X86_64",
            "selfLink": format!("{LINK}projects/{project}/global/images/{name}"),
            "labelFingerprint": fingerprint(&json!({})),
        });
        if !family.is_empty() {
            image["family"] = json!(family);
        }
        if let Some(state) = state {
            image["deprecated"] = json!({"state": state});
        }
        self.images.push((project.to_owned(), image));
    }

    pub(crate) fn add_subnetwork(
        &mut self,
        project: &str,
        region: &str,
        name: &str,
        network: &str,
        range: &str,
    ) {
        let path = format!("projects/{project}/regions/{region}/subnetworks/{name}");
        let first = Range::parse(range).map_or(0, |range| range.first);
        let subnetwork = json!({
            "kind": "compute#subnetwork",
            "id": self.id(),
            "creationTimestamp": self.clock.tick(),
            "name": name,
            "network": format!("{LINK}projects/{project}/global/networks/{network}"),
            "ipCidrRange": range,
            "gatewayAddress": address(first + 1),
            "region": format!("{LINK}projects/{project}/regions/{region}"),
            "selfLink": format!("{LINK}{path}"),
            "privateIpGoogleAccess": false,
            "fingerprint": fingerprint(&json!(path)),
            "purpose": "PRIVATE",
            "stackType": "IPV4_ONLY",
        });
        self.subnetworks.insert(path, subnetwork);
    }

    /// `projects/P/KIND/SCOPE/...` of this project.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("projects/{}/{rest}", self.project)
    }

    pub(crate) fn instance_path(&self, key: &Key) -> String {
        self.path(&format!("zones/{}/instances/{}", key.0, key.1))
    }

    /// The key of an instance by its name or id.
    pub(crate) fn instance_key(&self, zone: &str, name: &str) -> Option<Key> {
        let key = (zone.to_owned(), name.to_owned());
        if self.instances.contains_key(&key) {
            return Some(key);
        }
        let is_it = |(key, one): &(&Key, &Instance)| key.0 == zone && one.resource["id"] == *name;
        let found = self.instances.iter().find(is_it);
        found.map(|(key, _)| key.clone())
    }

    /// The key of the instance that a link names, in this project.
    pub(crate) fn linked_instance(&self, link: &str) -> Option<Key> {
        let path = resource_path(link, &self.project)?;
        let rest = path.strip_prefix(&self.path("zones/"))?;
        let (zone, name) = rest.split_once("/instances/")?;
        self.instance_key(zone, name)
    }

    /// Runs an instance, with new addresses on the internet where it has some.
    pub(crate) fn run(&mut self, key: &Key, now: &str) {
        // A range that is reserved for documentation.
        let first = u32::from(std::net::Ipv4Addr::new(203, 0, 113, 1));
        let Some(instance) = self.instances.get_mut(key) else {
            return;
        };
        instance.resource["status"] = json!("RUNNING");
        instance.resource["lastStartTimestamp"] = json!(now);
        for config in instance.access_configs() {
            if config.get("natIP").is_none() {
                config["natIP"] = json!(address(first + self.nat_addresses % 254));
                self.nat_addresses += 1;
            }
        }
    }

    /// Deletes an instance: disks that are for it alone go, it leaves its groups, and lists go on
    /// showing it for a while.
    pub(crate) fn remove(&mut self, key: &Key) {
        let Some(instance) = self.instances.remove(key) else {
            return;
        };
        let link = instance.resource["selfLink"].clone();
        for disk in items(&instance.resource["disks"]) {
            let source = disk["source"].as_str().unwrap_or_default();
            let name = last(source).to_owned();
            let disk_key = (key.0.clone(), name);
            if disk["autoDelete"] == true {
                self.disks.remove(&disk_key);
            } else if let Some(disk) = self.disks.get_mut(&disk_key) {
                let users = items(&disk["users"]).iter().filter(|user| **user != link);
                disk["users"] = users.cloned().collect();
            }
        }
        for ((zone, _), group) in &mut self.groups {
            group
                .members
                .retain(|member| *zone != key.0 || member.name != key.1);
        }
        for ((zone, _), group) in &mut self.endpoint_groups {
            let is_it = |name: &str| *zone == key.0 && name == key.1;
            group.members.retain(|member| !is_it(&member.name));
        }
        if self.habits.lingering > 0 && instance.hidden == 0 {
            self.lingering.push(Lingering {
                key: key.clone(),
                resource: instance.resource,
                looks: self.habits.lingering,
            });
        }
    }

    /// A free address of a subnetwork; none where there is none.
    pub(crate) fn free_address(&self, subnetwork: &str) -> Option<String> {
        let used = self.used_addresses(subnetwork);
        let range = self.range(subnetwork)?;
        // Google keeps the first two and the last two.
        let mut free = (range.first + 2..range.first + range.size - 2).map(address);
        free.find(|address| !used.contains(address))
    }

    pub(crate) fn used_addresses(&self, subnetwork: &str) -> BTreeSet<String> {
        let link = format!("{LINK}{subnetwork}");
        let all = self.instances.values();
        let interfaces = all.flat_map(|one| items(&one.resource["networkInterfaces"]));
        interfaces
            .filter(|interface| interface["subnetwork"] == link)
            .filter_map(|interface| interface["networkIP"].as_str().map(str::to_owned))
            .collect()
    }

    pub(crate) fn range(&self, subnetwork: &str) -> Option<Range> {
        Range::parse(self.subnetworks.get(subnetwork)?["ipCidrRange"].as_str()?)
    }
}

/// A range of IPv4 addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) first: u32,
    pub(crate) size: u32,
}

impl Range {
    /// As in `10.0.0.0/20`, from `/8` to `/29` as subnetworks have.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (first, bits) = text.split_once('/')?;
        let first: std::net::Ipv4Addr = first.parse().ok()?;
        let bits: u32 = bits.parse().ok().filter(|bits| (8..=29).contains(bits))?;
        Some(Self {
            first: first.into(),
            size: 1 << (32 - bits),
        })
    }

    pub(crate) fn has(self, text: &str) -> bool {
        let address: Result<std::net::Ipv4Addr, _> = text.parse();
        address.is_ok_and(|address| {
            let offset = u32::from(address).checked_sub(self.first);
            offset.is_some_and(|offset| offset < self.size)
        })
    }
}

pub(crate) fn address(number: u32) -> String {
    std::net::Ipv4Addr::from(number).to_string()
}

/// Computes the fingerprints of an instance anew.
pub(crate) fn refresh(resource: &mut Value) {
    resource["labelFingerprint"] = json!(fingerprint(&sorted(&resource["labels"])));
    resource["metadata"]["fingerprint"] = json!(fingerprint(&resource["metadata"]["items"]));
    resource["tags"]["fingerprint"] = json!(fingerprint(&resource["tags"]["items"]));
    let mut content = resource.clone();
    for member in [
        "fingerprint",
        "status",
        "lastStartTimestamp",
        "lastStopTimestamp",
    ] {
        remove(&mut content, member);
    }
    resource["fingerprint"] = json!(fingerprint(&content));
}

/// Eight bytes in base64 that change with the value.
pub(crate) fn fingerprint(value: &Value) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in value.to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    URL_SAFE.encode(hash.to_be_bytes())
}

fn sorted(value: &Value) -> Value {
    let members: Option<BTreeMap<_, _>> = value.as_object().map(|all| all.iter().collect());
    json!(members.unwrap_or_default())
}

/// The path of a resource that a link names: `projects/P/...`. A link may be a whole URL, or begin
/// with the project, or with what is in it; none for a bare name.
pub(crate) fn resource_path(link: &str, project: &str) -> Option<String> {
    let rest = match link.split_once("/compute/v1/") {
        Some((host, rest)) if host.starts_with("https://") || host.starts_with("http://") => rest,
        Some(_) => return None,
        None => link,
    };
    match rest.split('/').next() {
        Some("projects") => Some(rest.to_owned()),
        Some("zones" | "regions" | "global") => Some(format!("projects/{project}/{rest}")),
        _ => None,
    }
}

/// Zones by name.
pub(crate) fn zones() -> impl Iterator<Item = String> {
    let of_region = |(region, letters): &(&str, &'static [&str])| {
        let region = (*region).to_owned();
        letters
            .iter()
            .map(move |letter| format!("{region}-{letter}"))
    };
    ZONES.iter().flat_map(of_region)
}

pub(crate) fn regions() -> impl Iterator<Item = &'static str> {
    ZONES.iter().map(|(region, _)| *region)
}

/// The region of a zone.
pub(crate) fn region(zone: &str) -> &str {
    zone.rsplit_once('-').map_or(zone, |(region, _)| region)
}

/// The last part of a link.
pub(crate) fn last(link: &str) -> &str {
    link.rsplit('/').next().unwrap_or(link)
}

/// A list's items; a value that isn't a list has none.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Removes a member of an object.
pub(crate) fn remove(value: &mut Value, member: &str) {
    if let Some(members) = value.as_object_mut() {
        members.shift_remove(member);
    }
}
