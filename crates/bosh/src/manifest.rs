//! The model of a deployment manifest.
//!
//! In: a [`Value`] after ops files and variables. Out: a [`Manifest`], or every error of the text in
//! BOSH's wording.
//!
//! Cloud configuration (networks, VM types, zones) isn't part of a manifest, so names of these are
//! taken as they are, and a group may leave them out.

use std::collections::HashSet;

use crate::Error;
use crate::value::{Data, Entry, Place, Value};

/// A deployment manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The deployment's name.
    pub name: String,
    /// The releases that jobs may refer to.
    pub releases: Vec<Release>,
    /// The stemcells that groups may refer to.
    pub stemcells: Vec<Stemcell>,
    /// The instance groups, in the manifest's order.
    pub instance_groups: Vec<InstanceGroup>,
    /// The addons, in the order in which they are applied.
    pub addons: Vec<Addon>,
    /// The `update` block.
    pub update: Option<Value>,
    /// The deprecated global properties.
    pub properties: Option<Value>,
    /// The variables that a config server would generate.
    pub variables: Vec<Variable>,
    /// The `features` block.
    pub features: Option<Value>,
    /// The tags of every VM.
    pub tags: Option<Value>,
    /// What a person should look at: unknown keys, for example.
    pub warnings: Vec<Error>,
    /// Where it is written.
    pub place: Place,
}

/// An entry of `releases`.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    /// The release's name.
    pub name: String,
    /// Its version; a number is kept as it is written in Ruby.
    pub version: String,
    /// Where BOSH would download it from.
    pub url: Option<String>,
    /// The archive's digest.
    pub sha1: Option<String>,
}

impl Release {
    pub(crate) fn unversioned(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: String::new(),
            url: None,
            sha1: None,
        }
    }
}

/// An entry of `stemcells`.
#[derive(Debug, Clone, PartialEq)]
pub struct Stemcell {
    /// The name that groups use.
    pub alias: String,
    /// The operating system; empty if the stemcell is given by its name.
    pub os: Option<String>,
    /// The full name of the stemcell.
    pub name: Option<String>,
    /// Its version.
    pub version: String,
}

/// Whether the instances of a group are kept running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// Long-lived instances.
    Service,
    /// Instances that exist only while an errand runs.
    Errand,
}

impl Lifecycle {
    /// Its name in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Errand => "errand",
        }
    }
}

/// An entry of `instance_groups`.
#[derive(Debug, Clone)]
pub struct InstanceGroup {
    /// The group's name.
    pub name: String,
    /// The number of instances: by zone or in total, see [`Profile`](crate::instances::Profile).
    pub instances: u32,
    /// The zones; empty if the manifest has none.
    pub azs: Vec<String>,
    /// The jobs, those of addons last.
    pub jobs: Vec<Job>,
    /// The VM type.
    pub vm_type: Option<String>,
    /// CPU, RAM and disk in place of a VM type.
    pub vm_resources: Option<Value>,
    /// The VM extensions.
    pub vm_extensions: Vec<String>,
    /// The alias of the stemcell.
    pub stemcell: Option<String>,
    /// The size of the persistent disk in MB.
    pub persistent_disk: Option<u64>,
    /// The disk type of the persistent disk.
    pub persistent_disk_type: Option<String>,
    /// The networks.
    pub networks: Vec<Network>,
    /// The group's `update` block.
    pub update: Option<Value>,
    /// Whether the instances are kept running.
    pub lifecycle: Lifecycle,
    /// The groups whose instances this group takes over.
    pub migrated_from: Vec<MigratedFrom>,
    /// The deprecated properties of the group.
    pub properties: Option<Value>,
    /// The `env` block.
    pub env: Option<Value>,
    /// The tags of the group's VMs.
    pub tags: Option<Value>,
    /// Where it is written.
    pub place: Place,
}

impl InstanceGroup {
    /// The name of the network that addresses belong to: the one with the default `addressable`, or
    /// else `gateway`, or else the first.
    pub fn default_network(&self) -> Option<&str> {
        let default_for = |property: &str| {
            let mut networks = self.networks.iter();
            networks.find(|network| network.default.iter().any(|name| name == property))
        };
        let network = default_for("addressable")
            .or_else(|| default_for("gateway"))
            .or(self.networks.first());
        network.map(|network| network.name.as_str())
    }
}

/// A network of an instance group.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The network's name.
    pub name: String,
    /// The static addresses, as written: a list of addresses and ranges.
    pub static_ips: Option<Value>,
    /// What this network is the default for: `dns`, `gateway`, `addressable`.
    pub default: Vec<String>,
}

/// An entry of `migrated_from`.
#[derive(Debug, Clone, PartialEq)]
pub struct MigratedFrom {
    /// The name of the former group.
    pub name: String,
    /// The zone of the former group's instances.
    pub az: Option<String>,
}

/// A job of an instance group or of an addon.
#[derive(Debug, Clone)]
pub struct Job {
    /// The job's name in its release.
    pub name: String,
    /// The release's name.
    pub release: String,
    /// The job's own properties. A job that has the key doesn't see those of the group.
    pub properties: Option<Value>,
    /// A map of the consumed links.
    pub consumes: Option<Value>,
    /// A map of the provided links.
    pub provides: Option<Value>,
    /// Links that the manifest adds to those that the job provides.
    pub custom_provider_definitions: Vec<Value>,
    /// Where it is written.
    pub place: Place,
}

/// An entry of `addons`.
#[derive(Debug, Clone)]
pub struct Addon {
    /// The addon's name.
    pub name: String,
    /// The jobs that it adds. Each one has its properties.
    pub jobs: Vec<Job>,
    /// The groups that get the jobs.
    pub include: Filter,
    /// The groups that don't.
    pub exclude: Filter,
}

/// Rules that choose instance groups. A rule that is empty doesn't hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Operating systems of stemcells.
    pub stemcells: Vec<String>,
    /// Pairs of a job and its release.
    pub jobs: Vec<(String, String)>,
    /// Names of groups.
    pub instance_groups: Vec<String>,
    /// Names of zones.
    pub azs: Vec<String>,
    /// Names of networks.
    pub networks: Vec<String>,
    /// A lifecycle.
    pub lifecycle: Option<String>,
}

/// An entry of `variables`.
#[derive(Debug, Clone)]
pub struct Variable {
    /// The variable's name.
    pub name: String,
    /// What is generated: `password`, `certificate`, …
    pub kind: String,
    /// The options of the generator.
    pub options: Option<Value>,
}

const MANIFEST_KEYS: &[&str] = &[
    "name",
    "releases",
    "stemcells",
    "instance_groups",
    "addons",
    "update",
    "properties",
    "variables",
    "features",
    "tags",
    "director_uuid",
];

const GROUP_KEYS: &[&str] = &[
    "name",
    "instances",
    "azs",
    "jobs",
    "vm_type",
    "vm_resources",
    "vm_extensions",
    "stemcell",
    "persistent_disk",
    "persistent_disk_type",
    "networks",
    "update",
    "lifecycle",
    "migrated_from",
    "properties",
    "env",
    "tags",
];

const JOB_KEYS: &[&str] = &[
    "name",
    "release",
    "properties",
    "consumes",
    "provides",
    "custom_provider_definitions",
];

const ADDON_KEYS: &[&str] = &["name", "jobs", "include", "exclude", "properties"];

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    ///
    /// All errors of the text.
    pub fn read(value: &Value) -> Result<Self, Vec<Error>> {
        let mut reader = Reader::default();
        let manifest = reader.manifest(value);
        match manifest {
            Some(mut manifest) if reader.errors.is_empty() => {
                manifest.warnings = reader.warnings;
                Ok(manifest)
            }
            _ => Err(reader.errors),
        }
    }

    /// The release of a name.
    pub fn release(&self, name: &str) -> Option<&Release> {
        self.releases.iter().find(|release| release.name == name)
    }

    /// The stemcell that a group uses.
    pub fn stemcell(&self, group: &InstanceGroup) -> Option<&Stemcell> {
        let alias = group.stemcell.as_deref()?;
        self.stemcells
            .iter()
            .find(|stemcell| stemcell.alias == alias)
    }
}

/// Collects the errors of a whole text.
///
/// Methods return `None` where the value is absent or wrong; wrong ones leave an error.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) errors: Vec<Error>,
    pub(crate) warnings: Vec<Error>,
}

impl Reader {
    fn manifest(&mut self, value: &Value) -> Option<Manifest> {
        self.known_keys(value, MANIFEST_KEYS)?;
        let name = self.required_string(value, "name");
        let releases = self.items(value, "releases", Self::release);
        let stemcells = self.items(value, "stemcells", Self::stemcell);
        self.distinct(value, "releases", "name", "release name");
        self.distinct(value, "stemcells", "alias", "stemcell alias");
        let properties = self.map(value, "properties");
        let mut groups = Vec::new();
        for item in self.list(value, "instance_groups").unwrap_or_default() {
            groups.extend(self.instance_group(item, &releases, &stemcells));
        }
        self.distinct_group_names(&groups);
        let mut addons = Vec::new();
        for item in self.list(value, "addons").unwrap_or_default() {
            addons.extend(self.addon(item, &releases));
        }
        Some(Manifest {
            releases,
            stemcells,
            instance_groups: groups,
            addons,
            update: self.map(value, "update"),
            properties,
            variables: self.items(value, "variables", Self::variable),
            features: self.map(value, "features"),
            tags: self.map(value, "tags"),
            warnings: Vec::new(),
            place: value.place,
            name: name?,
        })
    }

    fn release(&mut self, value: &Value) -> Option<Release> {
        let name = self.required_string(value, "name");
        let version = self.required_string(value, "version");
        Some(Release {
            url: self.string(value, "url"),
            sha1: self.string(value, "sha1"),
            name: name?,
            version: version?,
        })
    }

    fn stemcell(&mut self, value: &Value) -> Option<Stemcell> {
        let alias = self.required_string(value, "alias");
        let version = self.required_string(value, "version");
        let stemcell = Stemcell {
            os: self.string(value, "os"),
            name: self.string(value, "name"),
            alias: alias?,
            version: version?,
        };
        match (&stemcell.os, &stemcell.name) {
            (Some(_), Some(_)) => {
                let message = format!(
                    "Properties 'os' and 'name' are both specified for stemcell, choose one. \
                     ({})",
                    value.inspect()
                );
                self.error(value.place, message);
            }
            (None, None) => self.error(value.place, missing("os' or 'name", value)),
            _ => {}
        }
        Some(stemcell)
    }

    fn variable(&mut self, value: &Value) -> Option<Variable> {
        let name = self.required_string(value, "name");
        let kind = self.required_string(value, "type");
        Some(Variable {
            options: self.map(value, "options"),
            name: name?,
            kind: kind?,
        })
    }

    fn instance_group(
        &mut self,
        value: &Value,
        releases: &[Release],
        stemcells: &[Stemcell],
    ) -> Option<InstanceGroup> {
        self.known_keys(value, GROUP_KEYS)?;
        let name = self.required_string(value, "name");
        let instances = self.instances(value);
        let name = name?;
        let lifecycle = self.lifecycle(value, &name);
        let jobs = self.jobs(value, &name, releases);
        let azs = self.azs(value, &name);
        let group = InstanceGroup {
            vm_type: self.string(value, "vm_type"),
            vm_resources: self.map(value, "vm_resources"),
            vm_extensions: self.strings(value, "vm_extensions"),
            stemcell: self.string(value, "stemcell"),
            persistent_disk: self.persistent_disk(value, &name),
            persistent_disk_type: self.string(value, "persistent_disk_type"),
            networks: self.items(value, "networks", Self::network),
            update: self.map(value, "update"),
            migrated_from: self.items(value, "migrated_from", Self::migrated_from),
            properties: self.map(value, "properties"),
            env: self.map(value, "env"),
            tags: self.map(value, "tags"),
            place: value.place,
            instances: instances.unwrap_or(0),
            name,
            lifecycle,
            jobs,
            azs,
        };
        self.check_group(value, &group, stemcells);
        Some(group)
    }

    fn instances(&mut self, value: &Value) -> Option<u32> {
        let Some(count) = value.get("instances") else {
            self.error(value.place, missing("instances", value));
            return None;
        };
        let Data::Integer(number) = count.data else {
            self.error(count.place, wrong_type("instances", count, "Integer"));
            return None;
        };
        // Far above any fleet; a list of this many instances still fits into memory.
        let Some(number) = u32::try_from(number)
            .ok()
            .filter(|number| *number <= 100_000)
        else {
            let message = format!("'instances' value ({number}) must be between 0 and 100000");
            self.error(count.place, message);
            return None;
        };
        Some(number)
    }

    fn lifecycle(&mut self, value: &Value, group: &str) -> Lifecycle {
        match self.string(value, "lifecycle").as_deref() {
            None | Some("service") => Lifecycle::Service,
            Some("errand") => Lifecycle::Errand,
            Some(other) => {
                let message = format!(
                    "Invalid lifecycle '{other}' for '{group}', \
                     valid lifecycle profiles are: service, errand"
                );
                self.error(place_of(value, "lifecycle"), message);
                Lifecycle::Service
            }
        }
    }

    fn jobs(&mut self, value: &Value, group: &str, releases: &[Release]) -> Vec<Job> {
        if value.get("jobs").is_none_or(Value::is_null) {
            let message = format!("Instance group '{group}' does not specify jobs key");
            self.error(value.place, message);
            return Vec::new();
        }
        let mut jobs: Vec<Job> = Vec::new();
        for item in self.list(value, "jobs").unwrap_or_default() {
            if self.known_keys(item, JOB_KEYS).is_none() {
                continue;
            }
            let name = self.required_string(item, "name");
            let release = self.required_string(item, "release");
            let (Some(name), Some(release)) = (name, release) else {
                continue;
            };
            self.check_release(item, &name, &release, group, releases);
            if jobs.iter().any(|job| job.name == name) {
                let message = format!(
                    "Colocated job '{name}' is already added to the instance group '{group}'"
                );
                self.error(item.place, message);
            }
            jobs.push(self.job(item, name, release));
        }
        jobs
    }

    fn check_release(
        &mut self,
        item: &Value,
        job: &str,
        release: &str,
        group: &str,
        releases: &[Release],
    ) {
        if releases.iter().any(|known| known.name == release) {
            return;
        }
        let message = format!(
            "Job '{job}' (instance group '{group}') references an unknown release '{release}'"
        );
        let names = releases.iter().map(|known| known.name.as_str());
        let mut error = Error::at(place_of(item, "release"), message);
        if let Some(near) = nearest(release, names) {
            error = error.with_hint(format!("there is a release '{near}'"));
        }
        self.errors.push(error);
    }

    fn job(&mut self, item: &Value, name: String, release: String) -> Job {
        let custom = self.list(item, "custom_provider_definitions");
        let custom = custom.unwrap_or_default().to_vec();
        for definition in &custom {
            if !definition.is_map() {
                self.error(definition.place, not_a_hash(definition));
            }
        }
        Job {
            name,
            release,
            properties: self.map(item, "properties"),
            consumes: self.map(item, "consumes"),
            provides: self.map(item, "provides"),
            custom_provider_definitions: custom,
            place: item.place,
        }
    }

    fn azs(&mut self, value: &Value, group: &str) -> Vec<String> {
        let Some(items) = self.list(value, "azs") else {
            return Vec::new();
        };
        if items.is_empty() {
            let message = format!("Instance group '{group}' has empty availability zones");
            self.error(place_of(value, "azs"), message);
        }
        let mut azs = Vec::new();
        for item in items {
            match item.as_str() {
                Some(az) => azs.push(az.to_owned()),
                None => {
                    let message = format!(
                        "Instance group '{group}' has invalid availability zone '{}', \
                         string expected",
                        item.to_s()
                    );
                    self.error(item.place, message);
                }
            }
        }
        azs
    }

    fn persistent_disk(&mut self, value: &Value, group: &str) -> Option<u64> {
        let size = value.get("persistent_disk")?;
        let Data::Integer(number) = size.data else {
            self.error(size.place, wrong_type("persistent_disk", size, "Integer"));
            return None;
        };
        let Ok(number) = u64::try_from(number) else {
            let message = format!(
                "Instance group '{group}' references an invalid persistent disk size '{number}'"
            );
            self.error(size.place, message);
            return None;
        };
        Some(number)
    }

    fn network(&mut self, value: &Value) -> Option<Network> {
        let name = self.required_string(value, "name")?;
        Some(Network {
            name,
            static_ips: value.get("static_ips").cloned(),
            default: self.strings(value, "default"),
        })
    }

    fn migrated_from(&mut self, value: &Value) -> Option<MigratedFrom> {
        let name = self.required_string(value, "name")?;
        let az = self.string(value, "az");
        Some(MigratedFrom { name, az })
    }

    /// Rules that join several keys of a group.
    fn check_group(&mut self, value: &Value, group: &InstanceGroup, stemcells: &[Stemcell]) {
        let name = &group.name;
        if group.persistent_disk.is_some() && group.persistent_disk_type.is_some() {
            let message = format!(
                "Instance group '{name}' specifies more than one of the following keys: \
                 'persistent_disk', 'persistent_disk_type', and 'persistent_disks'. Choose one."
            );
            self.error(place_of(value, "persistent_disk_type"), message);
        }
        if group.vm_type.is_some() && group.vm_resources.is_some() {
            let message = format!(
                "Instance group '{name}' can only specify 'vm_type' or 'vm_resources' keys."
            );
            self.error(place_of(value, "vm_resources"), message);
        }
        if let Some(alias) = &group.stemcell
            && !stemcells.iter().any(|stemcell| stemcell.alias == *alias)
        {
            let message =
                format!("Instance group '{name}' references an unknown stemcell '{alias}'");
            let mut error = Error::at(place_of(value, "stemcell"), message);
            let aliases = stemcells.iter().map(|stemcell| stemcell.alias.as_str());
            if let Some(near) = nearest(alias, aliases) {
                error = error.with_hint(format!("there is a stemcell '{near}'"));
            }
            self.errors.push(error);
        }
        for former in &group.migrated_from {
            let Some(az) = &former.az else { continue };
            if !group.azs.contains(az) {
                let message = format!(
                    "Instance group '{}' specified for migration to instance group '{name}' refers \
                     to availability zone '{az}'. Az '{az}' is not in the list of availability \
                     zones of instance group '{name}'.",
                    former.name
                );
                self.error(place_of(value, "migrated_from"), message);
            }
        }
    }

    fn distinct_group_names(&mut self, groups: &[InstanceGroup]) {
        let mut seen = HashSet::new();
        for group in groups {
            if !seen.insert(crate::instances::dns_label(&group.name)) {
                let message = format!(
                    "Invalid instance group name '{}', canonical name already taken",
                    group.name
                );
                self.error(group.place, message);
            }
        }
    }

    fn distinct(&mut self, value: &Value, list: &str, key: &str, what: &str) {
        let mut seen = HashSet::new();
        let items = value.get(list).and_then(Value::as_list).unwrap_or_default();
        for name in items.iter().filter_map(|item| item.get(key)) {
            if !seen.insert(name.to_s()) {
                self.error(name.place, format!("Duplicate {what} '{}'", name.to_s()));
            }
        }
    }

    fn addon(&mut self, value: &Value, releases: &[Release]) -> Option<Addon> {
        self.known_keys(value, ADDON_KEYS)?;
        let name = self.required_string(value, "name");
        let shared = self.map(value, "properties");
        if shared.is_some() {
            self.warnings.push(Error::at(
                place_of(value, "properties"),
                "Top level 'properties' in addons are deprecated. \
                 Please define 'properties' at the job level.",
            ));
        }
        let mut jobs = Vec::new();
        for item in self.list(value, "jobs").unwrap_or_default() {
            if self.known_keys(item, JOB_KEYS).is_none() {
                continue;
            }
            let name = self.required_string(item, "name");
            let release = self.required_string(item, "release");
            let (Some(name), Some(release)) = (name, release) else {
                continue;
            };
            if !releases.iter().any(|known| known.name == release) {
                let message = format!(
                    "Manifest specifies job '{name}' which is defined in '{release}', \
                     but '{release}' is not listed in the deployment releases section."
                );
                self.error(place_of(item, "release"), message);
            }
            let mut job = self.job(item, name, release);
            // Jobs of addons never see the properties of the group.
            let own = job.properties.take().or_else(|| shared.clone());
            job.properties = Some(own.unwrap_or_else(|| Value::empty_map(item.place)));
            jobs.push(job);
        }
        let include = self.filter(value, "include");
        let exclude = self.filter(value, "exclude");
        Some(Addon {
            name: name?,
            jobs,
            include,
            exclude,
        })
    }

    fn filter(&mut self, addon: &Value, section: &str) -> Filter {
        let Some(value) = self.map(addon, section) else {
            return Filter::default();
        };
        if let Some(deployments) = self.list(&value, "deployments")
            && !deployments.is_empty()
        {
            self.error(
                place_of(&value, "deployments"),
                "Deployment filter is not allowed for deployment level addons.",
            );
        }
        let mut jobs = Vec::new();
        for item in self.list(&value, "jobs").unwrap_or_default() {
            let name = self.string(item, "name").unwrap_or_default();
            let release = self.string(item, "release").unwrap_or_default();
            if name.is_empty() || release.is_empty() {
                let message = format!(
                    "Job {} in deployment config's {section} section must have both name and \
                     release.",
                    item.inspect()
                );
                self.error(item.place, message);
            }
            jobs.push((name, release));
        }
        let mut stemcells = Vec::new();
        for item in self.list(&value, "stemcell").unwrap_or_default() {
            let os = self.string(item, "os").unwrap_or_default();
            if os.is_empty() {
                let message = format!(
                    "Stemcell {} in deployment config's {section} section must have an os name.",
                    item.inspect()
                );
                self.error(item.place, message);
            }
            stemcells.push(os);
        }
        Filter {
            stemcells,
            jobs,
            instance_groups: self.strings(&value, "instance_groups"),
            azs: self.strings(&value, "azs"),
            networks: self.strings(&value, "networks"),
            lifecycle: self
                .string(&value, "lifecycle")
                .filter(|name| !name.is_empty()),
        }
    }

    /// Warns of keys that nothing reads. Returns `None` if the value isn't a map.
    fn known_keys(&mut self, value: &Value, known: &[&str]) -> Option<()> {
        let Data::Map(entries) = &value.data else {
            self.error(value.place, not_a_hash(value));
            return None;
        };
        for Entry { key, .. } in entries {
            let name = key.to_s();
            if known.contains(&name.as_str()) {
                continue;
            }
            let near = nearest(&name, known.iter().copied());
            // Manifests keep YAML anchors under top-level keys of their own.
            if near.is_none() && known == MANIFEST_KEYS {
                continue;
            }
            let mut warning = Error::at(key.place, format!("unknown key '{name}'"));
            if let Some(near) = near {
                warning = warning.with_hint(format!("there is a key '{near}'"));
            }
            self.warnings.push(warning);
        }
        Some(())
    }

    fn error(&mut self, place: Place, message: impl Into<String>) {
        self.errors.push(Error::at(place, message));
    }

    pub(crate) fn required_string(&mut self, value: &Value, key: &str) -> Option<String> {
        if !value.is_map() {
            self.error(value.place, not_a_hash(value));
            return None;
        }
        if value.get(key).is_none() {
            self.error(value.place, missing(key, value));
            return None;
        }
        self.string(value, key)
    }

    /// A string; numbers are taken for their text, as in BOSH.
    pub(crate) fn string(&mut self, value: &Value, key: &str) -> Option<String> {
        let found = value.get(key)?;
        match found.data {
            Data::String(_) | Data::Integer(_) | Data::Float(_) => Some(found.to_s()),
            _ => {
                self.error(found.place, wrong_type(key, found, "String"));
                None
            }
        }
    }

    fn strings(&mut self, value: &Value, key: &str) -> Vec<String> {
        let items = self.list(value, key).unwrap_or_default();
        items.iter().map(Value::to_s).collect()
    }

    pub(crate) fn map(&mut self, value: &Value, key: &str) -> Option<Value> {
        let found = value.get(key)?;
        if found.is_map() {
            return Some(found.clone());
        }
        self.error(found.place, wrong_type(key, found, "Hash"));
        None
    }

    pub(crate) fn list<'v>(&mut self, value: &'v Value, key: &str) -> Option<&'v [Value]> {
        let found = value.get(key)?;
        if found.as_list().is_none() {
            self.error(found.place, wrong_type(key, found, "Array"));
        }
        found.as_list()
    }

    fn items<T>(
        &mut self,
        value: &Value,
        key: &str,
        read: impl Fn(&mut Self, &Value) -> Option<T>,
    ) -> Vec<T> {
        let items = self.list(value, key).unwrap_or_default();
        items.iter().filter_map(|item| read(self, item)).collect()
    }
}

fn place_of(value: &Value, key: &str) -> Place {
    value.get(key).map_or(value.place, |found| found.place)
}

fn wrong_type(key: &str, found: &Value, class: &str) -> String {
    let inspected = found.inspect();
    format!("Property '{key}' value ({inspected}) did not match the required type '{class}'")
}

fn not_a_hash(found: &Value) -> String {
    let inspected = found.inspect();
    format!("Object ({inspected}) did not match the required type 'Hash'")
}

fn missing(key: &str, object: &Value) -> String {
    let inspected = object.inspect();
    format!("Required property '{key}' was not specified in object ({inspected})")
}

/// The name that is most like a wrong one, if it is close enough to be meant.
fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let scored = names.map(|name| (strsim::damerau_levenshtein(wrong, name), name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= wrong.chars().count() / 3).then_some(name)
}
