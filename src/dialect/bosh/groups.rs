//! Writes the instance groups of a deployment as native groups.
//!
//! In: a resolved deployment, its processes, and what its names are on the configured provider. Out:
//! the groups' objects, each value with its place, and findings about what has no equal. Must not:
//! read files.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use nstance_bosh::bpm::JobBpm;
use nstance_bosh::context::{instance_context, shared_context};
use nstance_bosh::instances::{Naming, Profile, dns_label};
use nstance_bosh::manifest::Lifecycle;
use nstance_bosh::release::Template;
use nstance_bosh::resolve::{Resolved, ResolvedGroup, ResolvedJob};
use nstance_bosh::update::Update;
use nstance_bosh::value::{Data, Place, Value};
use nstance_erb::needs_ruby;
use serde_json::{Value as Json, json};

use super::bpm::is_bpm;
use super::load::{Deployment, finding, first_line};
use super::units::{Unit, units};
use super::update::{native, predecessors};
use crate::address::{LONGEST_ID, is_id};
use crate::config::decode::BoshMap;
use crate::config::model::Named;
use crate::config::node::{Entry, Node, NodeValue, Sensitivity};
use crate::config::source::{SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, Severity};
use crate::render::erb::reads_address;

/// What the ids of instances start with; a manifest has no word for it.
const KIND: &str = "ins";

/// The architecture of all stemcells.
const ARCH: &str = "amd64";

/// The folder of all jobs on an instance.
const JOBS: &str = "/var/vcap/jobs";

/// What a deployment's names are on a provider.
pub struct Placement<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The map that `source` has.
    pub map: &'a BoshMap,
    /// The configuration.
    pub root: &'a Node,
    /// The id of the errand that runs.
    pub errand: Option<&'a str>,
    /// The sensitivity of what templates may ask for: properties may be secrets.
    pub sensitivity: Sensitivity,
}

/// The arg with the image; `None` if the provider has other args.
fn image_arg(provider: &str) -> Option<&'static str> {
    match provider {
        "google" | "gcp" => Some("SourceImage"),
        "yandex" | "proxmox" => None,
        _ => Some("ImageId"),
    }
}

/// Whether a document has the shape of a deployment manifest.
pub fn is_manifest(root: &Node) -> bool {
    let has = |key| root.get(key).is_some();
    has("instance_groups")
        && (has("releases") || has("stemcells"))
        && !["cluster", "groups", "shard"].into_iter().any(has)
}

/// The id of a group or cluster; `None` if the name can't be one.
pub fn id_of(name: &str) -> Option<Arc<str>> {
    let id = dns_label(name);
    is_id(&id).then(|| id.into())
}

/// The error for a name that can't be an id.
pub fn unusable_name(what: &str, name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(format!("`{name}` can't be the id of a {what}"))
        .at(span, "the id is part of DNS names")
        .hint(format!(
            "ids are lower-case letters, digits and single hyphens between them, at most \
             {LONGEST_ID} characters; rename it with an ops file"
        ))
}

/// The native groups of a deployment, by name. `bpm` are the processes of each group's jobs.
///
/// Fails after it reported all errors.
pub fn groups(
    deployment: &Deployment,
    bpm: &[IndexMap<String, JobBpm>],
    placement: &Placement<'_>,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) -> Result<Vec<(Arc<str>, Node)>, Reported> {
    let before = findings.errors();
    let mut writer = Writer {
        deployment,
        placement,
        sources,
        findings,
        unmapped: HashSet::new(),
    };
    writer.features();
    let updates = writer.updates();
    let ids = writer.ids();
    writer.check_errand(&ids);
    if writer.findings.errors() > before {
        return Err(Reported);
    }
    let resolved = &deployment.resolved.groups;
    // Errands aren't part of an update.
    let services: Vec<usize> = (0..resolved.len())
        .filter(|&group| resolved[group].lifecycle == Lifecycle::Service)
        .collect();
    let serial: Vec<bool> = services
        .iter()
        .map(|&group| updates[group].as_ref().is_none_or(|update| update.serial))
        .collect();
    let mut after = vec![Vec::new(); resolved.len()];
    for (&group, before) in services.iter().zip(predecessors(&serial)) {
        // Without an `update` block, the order isn't asked for.
        if updates[group].is_some() {
            after[group] = before
                .iter()
                .map(|&place| ids[services[place]].clone())
                .collect();
        }
    }
    let groups = resolved.iter().enumerate().map(|(index, group)| {
        let mut native = Draft {
            writer: &mut writer,
            group,
            index,
            entries: Vec::new(),
            unequal: Vec::new(),
        };
        let update = updates[index].as_ref();
        native.write(update, &after[index], &bpm[index]);
        (Arc::clone(&ids[index]), native.finish())
    });
    let groups: Vec<_> = groups.collect();
    if findings.errors() > before {
        return Err(Reported);
    }
    Ok(groups)
}

struct Writer<'a> {
    deployment: &'a Deployment,
    placement: &'a Placement<'a>,
    sources: &'a SourceMap,
    findings: &'a mut Diagnostics,
    /// Names that are reported.
    unmapped: HashSet<String>,
}

impl Writer<'_> {
    /// Warns of features that are on: they have no equal.
    fn features(&mut self) {
        let features = self.deployment.manifest.features.as_ref();
        let entries = features.and_then(Value::as_map).unwrap_or_default();
        for entry in entries {
            if matches!(entry.value.data, Data::Null | Data::Bool(false)) {
                continue;
            }
            let feature = entry.key.to_s();
            let span = first_line(entry.key.place, self.sources);
            self.findings.push(
                Diagnostic::warning(format!("nstance has no equal of the feature `{feature}`"))
                    .at(span, "ignored"),
            );
        }
    }

    /// The settings of each group; `None` if neither it nor the deployment has any.
    fn updates(&mut self) -> Vec<Option<Update>> {
        let resolved = &self.deployment.resolved;
        let groups = resolved.groups.iter();
        let updates: Vec<_> = groups
            .map(|group| {
                let own = group.definition.update.as_ref();
                let whole = resolved.update.as_ref();
                whole.or(own)?;
                Some(Update::resolve(whole, own, group.definition.place))
            })
            .collect();
        let mut reported: Vec<nstance_bosh::Error> = Vec::new();
        let updates = updates.into_iter().map(|update| match update? {
            Ok(update) => Some(update),
            Err(errors) => {
                // Errors of the deployment's block are those of every group.
                for error in errors {
                    if !reported.contains(&error) {
                        let error_finding = finding(Severity::Error, &error, self.sources);
                        self.findings.push(error_finding);
                        reported.push(error);
                    }
                }
                None
            }
        });
        updates.collect()
    }

    /// The id of each group.
    fn ids(&mut self) -> Vec<Arc<str>> {
        let mut known: HashMap<Arc<str>, Span> = HashMap::new();
        let groups = self.deployment.resolved.groups.iter().enumerate();
        let mut ids = Vec::new();
        for (index, group) in groups {
            let span = self.place(index, "name");
            let Some(id) = id_of(&group.name) else {
                self.findings
                    .push(unusable_name("group", &group.name, span));
                ids.push("".into());
                continue;
            };
            if let Some(first) = known.insert(Arc::clone(&id), span) {
                self.findings.push(
                    Diagnostic::error(format!("two instance groups become the group `{id}`"))
                        .at(span, "this is one of them")
                        .related(first, "this is the other one")
                        .hint("Give one of them another name"),
                );
            }
            ids.push(id);
        }
        ids
    }

    /// Reports an errand to run that isn't one.
    fn check_errand(&mut self, ids: &[Arc<str>]) {
        let Some(name) = self.placement.errand else {
            return;
        };
        let groups = self.deployment.resolved.groups.iter().zip(ids);
        let mut errands = groups.filter(|(group, _)| group.lifecycle == Lifecycle::Errand);
        let names: Vec<String> = errands.clone().map(|(_, id)| format!("`{id}`")).collect();
        match errands.find(|(_, id)| ***id == *name) {
            Some((group, _)) if group.instances.is_empty() => self.findings.push(
                Diagnostic::error(format!("errand `{name}` has no instances"))
                    .hint("Set `instances: 1` in the manifest"),
            ),
            Some(_) => {}
            None => {
                let finding = Diagnostic::error(format!("`{name}` is not an errand"));
                self.findings.push(if names.is_empty() {
                    finding.hint("The manifest has no group with `lifecycle: errand`")
                } else {
                    finding.hint(format!("errands are {}", names.join(", ")))
                });
            }
        }
    }

    /// The place of a group's value, or of the group.
    fn place(&self, group: usize, key: &str) -> Span {
        let groups = self.deployment.document.get("instance_groups");
        let groups = groups.and_then(Value::as_list).unwrap_or_default();
        let value = groups.get(group);
        let value = value.and_then(|group| group.get(key)).or(value);
        let place = value.map_or_else(Place::default, |value| value.place);
        first_line(place, self.sources)
    }

    /// What a name is on the provider. On the embedded cloud, it may be itself.
    fn mapped(
        &mut self,
        what: &str,
        name: &str,
        map: &Named<Arc<str>>,
        span: Span,
    ) -> Option<Arc<str>> {
        if let Some(found) = map.get(name) {
            return Some(Arc::clone(&found.value));
        }
        if self.placement.provider == "sim" {
            return Some(name.into());
        }
        if !self.unmapped.insert(format!("{what} {name}")) {
            return None;
        }
        self.findings.push(
            Diagnostic::error(format!("{what} `{name}` is not mapped"))
                .at(span, "the configured cloud has another name for it")
                .related(self.placement.map.span, "the map of `source`")
                .hint(format!("Add it: `map: {{{what}: {{\"{name}\": \"…\"}}}}`")),
        );
        None
    }
}

/// A native group under construction.
struct Draft<'w, 'a> {
    writer: &'w mut Writer<'a>,
    group: &'a ResolvedGroup,
    index: usize,
    entries: Vec<Entry>,
    /// What has no equal.
    unequal: Vec<String>,
}

impl Draft<'_, '_> {
    fn place(&self, key: &str) -> Span {
        self.writer.place(self.index, key)
    }

    fn add(&mut self, key: &str, span: Span, value: &Json) {
        self.entries.push(Entry::placed(key, node(value, span)));
    }

    fn write(
        &mut self,
        update: Option<&Update>,
        after: &[Arc<str>],
        bpm: &IndexMap<String, JobBpm>,
    ) {
        let top = self.place("name");
        self.add("kind", top, &json!(KIND));
        self.add("arch", top, &json!(ARCH));
        self.machine();
        self.size();
        self.labels();
        let is_service = self.group.lifecycle == Lifecycle::Service;
        if let Some(update) = update.filter(|_| is_service) {
            let size = self.group.instances.len() as u32;
            let zones = self.group.definition.azs.len();
            let span = self.place("update");
            self.add("update", span, &native(update, size, zones));
        }
        if !after.is_empty() {
            let after: Vec<&str> = after.iter().map(|id| &**id).collect();
            self.add("depends_on", top, &json!(after));
        }
        self.former_name();
        self.jobs(bpm);
        self.rest();
    }

    /// Instance type, image and subnets.
    fn machine(&mut self) {
        let definition = &self.group.definition;
        let map = self.writer.placement.map;
        if let Some(vm_type) = &definition.vm_type {
            let span = self.place("vm_type");
            let mapped = self.writer.mapped("vm_type", vm_type, &map.vm_type, span);
            if let Some(instance_type) = mapped {
                self.add("instance_type", span, &json!(&*instance_type));
            }
        }
        if let Some(network) = definition.default_network() {
            let span = self.place("networks");
            let mapped = self.writer.mapped("network", network, &map.network, span);
            if let Some(pool) = mapped {
                self.add("subnet_pool", span, &json!(&*pool));
            }
        }
        let Some(arg) = image_arg(self.writer.placement.provider) else {
            return;
        };
        if let Some(stemcell) = &self.group.stemcell {
            let span = self.place("stemcell");
            let image = match map.stemcell.get(&*stemcell.alias) {
                None if self.writer.placement.provider == "sim" => {
                    let os = stemcell.os.as_ref().or(stemcell.name.as_ref());
                    let os = os.map_or("", String::as_str);
                    Some(format!("{os}/{}", stemcell.version).into())
                }
                _ => {
                    let alias = &stemcell.alias;
                    self.writer.mapped("stemcell", alias, &map.stemcell, span)
                }
            };
            if let Some(image) = image {
                let images = self.writer.placement.root.get("images");
                let is_look_up = images.and_then(|images| images.get(&image)).is_some();
                let text = if is_look_up {
                    format!("{{{{ index .Image \"{image}\" }}}}")
                } else {
                    literal(&image)
                };
                self.add("args", span, &json!({arg: text}));
            }
        }
    }

    /// Zones and the number of instances.
    fn size(&mut self) {
        let definition = &self.group.definition;
        let map = &self.writer.placement.map.az;
        let span = self.place("azs");
        let mut azs: Vec<&String> = definition.azs.iter().collect();
        let profile = self.writer.deployment.resolved.naming.profile;
        if profile == Profile::Bosh {
            // The Director prefers the zone with the smallest name.
            azs.sort();
        }
        let mut zones: Vec<Arc<str>> = Vec::new();
        for az in azs {
            zones.extend(self.writer.mapped("az", az, map, span));
        }
        if !zones.is_empty() {
            let zones: Vec<&str> = zones.iter().map(|zone| &**zone).collect();
            self.add("zones", span, &json!(zones));
        }
        let span = self.place("instances");
        let runs = self.writer.placement.errand.map(Into::into) == id_of(&self.group.name);
        let (key, count) = match self.group.lifecycle {
            // Its instances exist only while it runs.
            Lifecycle::Errand if !runs => ("size", 0),
            _ if zones.len() > 1 && profile == Profile::Quarks => {
                ("replicas", definition.instances)
            }
            _ => ("size", definition.instances),
        };
        self.add(key, span, &json!(count));
    }

    /// The tags of the deployment and the group.
    fn labels(&mut self) {
        let definition = &self.group.definition;
        let of_env = definition.env.as_ref().and_then(|env| env.get("tags"));
        let all = [
            self.writer.deployment.resolved.tags.as_ref(),
            of_env,
            definition.tags.as_ref(),
        ];
        let mut labels = IndexMap::new();
        for entry in all
            .into_iter()
            .flatten()
            .filter_map(Value::as_map)
            .flatten()
        {
            let text = literal(&entry.value.to_s());
            let span = first_line(entry.value.place, self.writer.sources);
            labels.insert(entry.key.to_s(), node(&json!(text), span));
        }
        if !labels.is_empty() {
            let span = self.place("tags");
            let labels = labels.into_iter();
            let labels = labels.map(|(key, value)| Entry::placed(&key, value));
            let labels = Node::new(span, NodeValue::Object(labels.collect()));
            self.entries.push(Entry::placed("labels", labels));
        }
    }

    /// The group whose instances this one takes over.
    fn former_name(&mut self) {
        let former = &self.group.definition.migrated_from;
        let Some(first) = former.first() else {
            return;
        };
        let span = self.place("migrated_from");
        let name = &first.name;
        match id_of(name) {
            Some(id) => self.add("moved_from", span, &json!(format!("default/{id}"))),
            None => self
                .writer
                .findings
                .push(unusable_name("group", name, span)),
        }
        if former.len() > 1 {
            self.writer.findings.push(
                Diagnostic::warning(format!(
                    "group `{}` takes over the instances of `{name}` only",
                    self.group.name
                ))
                .at(span, "the other groups' instances are deleted")
                .hint("Keep the other groups until their instances aren't needed"),
            );
        }
    }

    /// The files of the jobs, and what starts their processes.
    fn jobs(&mut self, bpm: &IndexMap<String, JobBpm>) {
        let group = self.group;
        let mut files = Vec::new();
        let mut services = Vec::new();
        let mut errands = Vec::new();
        let mut without_processes = Vec::new();
        let mut differing = Vec::new();
        let mut exported = Vec::new();
        let span = self.place("jobs");
        for job in &group.jobs {
            let shared = self.shared_context(job, span);
            for template in job.templates.iter().filter(|template| !is_bpm(template)) {
                let Some(text) = &template.text else {
                    self.writer
                        .findings
                        .push(missing_template(job, template, span));
                    continue;
                };
                files.push(self.job_file(job, template, text, &shared));
                if reads_address(text) {
                    exported.push(format!("`{}/{}`", job.name, template.destination));
                }
            }
            let runs_once = group.lifecycle == Lifecycle::Errand && has_run(job);
            if runs_once {
                errands.push(format!("{JOBS}/{}/bin/run", job.name));
            }
            match bpm.get(&job.name).filter(|_| !runs_once) {
                Some(bpm) => {
                    let of_each = bpm.instances.iter();
                    let of_each: Vec<_> = of_each
                        .map(|processes| units(&job.name, processes))
                        .collect();
                    let of_first = of_each.first().cloned().unwrap_or_default();
                    let is_alike = of_each.iter().all(|units| is_alike(units, &of_first));
                    if !is_alike {
                        differing.push(format!("`{}`", job.name));
                    }
                    let is_open = bpm_template(job).is_none_or(|text| !needs_ruby(text));
                    for (index, unit) in of_first.into_iter().enumerate() {
                        let others = of_each.iter().filter(|_| is_alike);
                        let others = others.map(|units| units[index].text.as_str());
                        let file = self.unit_file(&unit, others, is_open, span);
                        files.push(Entry::placed(&unit.name, file));
                        self.unequal.extend(unit.ignored);
                        services.push(unit.name);
                    }
                }
                None if !runs_once && has_processes(job) => {
                    without_processes.push(format!("`{}`", job.name));
                }
                None => {}
            }
        }
        self.check_names(&files);
        if !without_processes.is_empty() {
            self.writer.findings.push(
                Diagnostic::warning(format!(
                    "nstance doesn't start the processes of {}",
                    without_processes.join(", ")
                ))
                .at(span, "nstance reads processes from `bpm.yml`")
                .detail("Files for monit are left out")
                .hint("Start them with `defaults.userdata`"),
            );
        }
        if !exported.is_empty() {
            self.writer.findings.push(
                Diagnostic::warning(format!(
                    "files of instance group `{}` are exported: {}",
                    group.name,
                    exported.join(", ")
                ))
                .at(span, "they read the instance's address")
                .detail("It is known only once the instance exists")
                .hint("Read `spec.address`, which is known when planning"),
            );
        }
        if !differing.is_empty() {
            self.writer.findings.push(
                Diagnostic::warning(format!(
                    "instances have different processes of {}",
                    differing.join(", ")
                ))
                .at(span, "all instances get those of the first one")
                .hint("Give each instance processes of the same names in `bpm.yml`"),
            );
        }
        if !files.is_empty() {
            let files = Node::new(span, NodeValue::Object(files));
            self.entries.push(Entry::placed("files", files));
        }
        if let Some(text) = cloud_config(&services, &errands) {
            let userdata = json!({"content": text, "merge": "nstance"});
            self.add("userdata", span, &userdata);
        }
    }

    fn shared_context(&self, job: &ResolvedJob, span: Span) -> SharedContext {
        let (resolved, group) = (&self.writer.deployment.resolved, self.group);
        let mut context = shared_context(resolved, group, job);
        if let Some(Json::Object(links)) = context.get_mut("links") {
            for link in links.values_mut() {
                add_address(link, resolved);
            }
        }
        let instances = group.instances.iter();
        let instances =
            instances.map(|instance| instance_context(resolved, group, job, instance, None));
        let instances: Vec<_> = instances.map(Json::Object).collect();
        let mut context = node(&Json::Object(context), span);
        context.sensitivity = self.writer.placement.sensitivity.clone();
        SharedContext {
            context,
            instances: node(&Json::Array(instances), span),
        }
    }

    /// Reports files of one name: units of two jobs, for example.
    fn check_names(&mut self, files: &[Entry]) {
        let mut known = HashSet::new();
        for file in files {
            if !known.insert(&file.key) {
                self.writer.findings.push(
                    Diagnostic::error(format!(
                        "group `{}` has two files `{}`",
                        self.group.name, file.key
                    ))
                    .at(self.writer.place(self.index, "jobs"), "of these jobs"),
                );
            }
        }
    }

    /// The file of a unit, whose text may differ between instances. Its properties may be secrets.
    fn unit_file<'t>(
        &self,
        unit: &Unit,
        texts: impl Iterator<Item = &'t str> + Clone,
        is_open: bool,
        span: Span,
    ) -> Node {
        let sensitivity = if is_open {
            Sensitivity::Open
        } else {
            self.writer.placement.sensitivity.clone()
        };
        let mut file = vec![];
        let mut add = |key: &str, value: Json| file.push(Entry::placed(key, node(&value, span)));
        if texts.clone().all(|text| text == unit.text) {
            add("kind", json!("string"));
            add("template", json!(literal(&unit.text)));
        } else {
            let texts: Vec<Json> = texts.map(|text| json!({"unit": text})).collect();
            add("kind", json!("erb"));
            add("template", json!("<%= spec.unit %>"));
            add("instances", json!(texts));
        }
        // Without the job's files, the unit fails and starts again until they are there.
        add("deliver", json!("userdata"));
        add("path", json!(format!("/etc/systemd/system/{}", unit.name)));
        add("permissions", json!("0644"));
        let is_text = |entry: &&mut Entry| matches!(&*entry.key, "template" | "instances");
        // The last of them has the text.
        if let Some(entry) = file.iter_mut().rfind(is_text) {
            entry.value.sensitivity = sensitivity;
        }
        Node::new(span, NodeValue::Object(file))
    }

    /// A file of a job.
    fn job_file(
        &self,
        job: &ResolvedJob,
        template: &Template,
        text: &str,
        shared: &SharedContext,
    ) -> Entry {
        let path = format!("{}/{}", job.name, template.destination);
        let source =
            self.writer
                .deployment
                .template(&job.release.name, &job.name, &template.source);
        let own = source.map_or_else(
            || self.place("jobs"),
            |source| Span::new(source, 0, text.len()),
        );
        let mut file = vec![
            Entry::placed("kind", node(&json!("erb"), own)),
            Entry::placed("template", node(&json!(text), own)),
        ];
        if needs_ruby(text) {
            file.push(Entry::placed("context", shared.context.clone()));
            file.push(Entry::placed("instances", shared.instances.clone()));
        }
        // An address isn't known when userdata is rendered.
        if !reads_address(text) {
            for (key, value) in [
                ("deliver", "auto"),
                ("path", &format!("{JOBS}/{path}")),
                ("permissions", &format!("{:04o}", template.mode())),
            ] {
                file.push(Entry::placed(key, node(&json!(value), own)));
            }
        }
        Entry::placed(&path, Node::new(own, NodeValue::Object(file)))
    }

    /// Reports what has no equal, in one warning.
    fn rest(&mut self) {
        let definition = &self.group.definition;
        let disk = definition.persistent_disk.is_some_and(|size| size > 0);
        let has_static_ips = |network: &nstance_bosh::manifest::Network| {
            network
                .static_ips
                .as_ref()
                .is_some_and(|ips| !ips.is_null())
        };
        let env = definition.env.as_ref().and_then(Value::as_map);
        let env = env.unwrap_or_default().iter();
        for (is_there, what) in [
            (disk, "`persistent_disk`"),
            (
                definition.persistent_disk_type.is_some(),
                "`persistent_disk_type`",
            ),
            (definition.vm_resources.is_some(), "`vm_resources`"),
            (!definition.vm_extensions.is_empty(), "`vm_extensions`"),
            (
                definition.networks.iter().any(has_static_ips),
                "`static_ips`",
            ),
            (definition.networks.len() > 1, "a second network"),
            (env.clone().any(|entry| entry.key.to_s() != "tags"), "`env`"),
        ] {
            if is_there {
                self.unequal.push(what.to_owned());
            }
        }
        if !self.unequal.is_empty() {
            let span = self.place("name");
            self.writer.findings.push(
                Diagnostic::warning(format!(
                    "nstance has no equal of {} of instance group `{}`",
                    self.unequal.join(", "),
                    self.group.name
                ))
                .at(span, "ignored")
                .hint("Write what they stand for in `defaults.args` of a native configuration"),
            );
        }
    }

    fn finish(self) -> Node {
        Node::new(
            self.writer.place(self.index, ""),
            NodeValue::Object(self.entries),
        )
    }
}

/// What the templates of a job may ask for.
struct SharedContext {
    /// What all instances share.
    context: Node,
    /// What differs, by index.
    instances: Node,
}

/// Gives a link the address of its group: files of native groups have no encoder of BOSH's DNS,
/// which makes addresses for zones and states.
fn add_address(link: &mut Json, resolved: &Resolved) {
    let text = |key: &str| Some(link.get(key)?.as_str()?.to_owned());
    let provider = (
        text("deployment_name"),
        text("instance_group"),
        text("default_network"),
    );
    if let (Some(deployment), Some(group), Some(network)) = provider
        && link.get("address").is_none()
    {
        let naming = Naming {
            deployment,
            ..resolved.naming.clone()
        };
        link["address"] = naming.group_address(&group, &network).into();
    }
}

/// Whether the units of two instances are those of the same processes.
fn is_alike(units: &[Unit], others: &[Unit]) -> bool {
    let names =
        |units: &[Unit]| -> Vec<String> { units.iter().map(|unit| unit.name.clone()).collect() };
    names(units) == names(others)
}

/// The text of a job's `bpm.yml`.
fn bpm_template(job: &ResolvedJob) -> Option<&str> {
    job.templates.iter().find(|it| is_bpm(it))?.text.as_deref()
}

/// The finding for a template that a job names and its release's folder doesn't have.
fn missing_template(job: &ResolvedJob, template: &Template, span: Span) -> Diagnostic {
    Diagnostic::error(format!(
        "job `{}` of release `{}` has no template `{}`",
        job.name, job.release.name, template.source
    ))
    .at(span, "of these jobs")
    .hint(format!(
        "add `jobs/{}/templates/{}` to the release's folder",
        job.name, template.source
    ))
}

/// Whether a job has the program of an errand.
fn has_run(job: &ResolvedJob) -> bool {
    let mut templates = job.templates.iter();
    templates.any(|template| template.destination == "bin/run")
}

/// Whether monit starts processes of a job.
fn has_processes(job: &ResolvedJob) -> bool {
    let monit = job.monit.as_deref().unwrap_or_default();
    monit
        .lines()
        .any(|line| line.trim_start().starts_with("check "))
}

/// The userdata that starts services, or runs errands and then stops the machine; `None` if there
/// are none.
fn cloud_config(services: &[String], errands: &[String]) -> Option<String> {
    if services.is_empty() && errands.is_empty() {
        return None;
    }
    let mut text = "#cloud-config\nruncmd:\n".to_owned();
    let mut command = |words: &[&str]| text.push_str(&format!("- {}\n", json!(words)));
    if !services.is_empty() {
        command(&["systemctl", "daemon-reload"]);
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        command(&[&["systemctl", "enable", "--now"], &services[..]].concat());
    }
    for errand in errands {
        command(&[errand.as_str()]);
    }
    if !errands.is_empty() {
        text.push_str("power_state:\n  mode: poweroff\n");
    }
    Some(text)
}

/// A text that templates leave as it is.
fn literal(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

/// A value whose parts all have one place.
fn node(value: &Json, span: Span) -> Node {
    let value = match value {
        Json::Null => NodeValue::Null,
        Json::Bool(flag) => NodeValue::Bool(*flag),
        Json::Number(number) => NodeValue::Number(number.clone()),
        Json::String(text) => NodeValue::String(text.as_str().into()),
        Json::Array(items) => {
            let items = items.iter();
            NodeValue::Array(items.map(|item| node(item, span)).collect())
        }
        Json::Object(members) => {
            let members = members.iter();
            let entries = members.map(|(key, value)| Entry::placed(key, node(value, span)));
            NodeValue::Object(entries.collect())
        }
    };
    Node::new(span, value)
}
