//! Adds the groups that a document of another program describes: the one that `source` names, or the
//! configuration itself.
//!
//! In: a configuration's document. Out: the document with the groups, without `source`. Must not:
//! decode the groups.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nstance_bosh::manifest::Lifecycle;
use nstance_bosh::value::Value;

use super::{Loaded, Manifest, ManifestGroup};
use crate::address::{LONGEST_ID, is_id};
use crate::config::decode::{BoshSource, GroupsForm, Source, YandexSource, groups_form, source};
use crate::config::files;
use crate::config::node::{Entry, Node, NodeValue, Sensitivity, section};
use crate::config::source::{SourceId, Span};
use crate::config::variables::{Dialect, Given};
use crate::config::yaml;
use crate::diagnostic::{Diagnostic, Reported};
use crate::dialect::bosh::{self, Deployment, Placement, Ruby};
use crate::dialect::mapping;
use crate::dialect::yandex::{self, Specification};

/// The keys of a specification; a document without any of them is another one.
const SPECIFICATION_KEYS: [&str; 4] = [
    "instance_template",
    "scale_policy",
    "deploy_policy",
    "allocation_policy",
];

/// The tenant of the groups.
const TENANT: &str = "default";

/// The namespace and domain in DNS names of a deployment, by default.
const NAMESPACE: &str = "default";
const DOMAIN: &str = "svc.cluster.local";

/// The addresses of each network of a manifest that runs on the embedded cloud.
const LARGEST_SUBNET: u32 = 65_000;

impl Loaded {
    /// The configuration of a document that stands alone. `None` if the text isn't one.
    pub(super) fn standalone(&mut self, file: &Path, source: SourceId, text: &str) -> Option<Node> {
        self.manifest(file, source, text)
            .or_else(|| self.specification_alone(file, source, text))
    }

    /// The configuration of a deployment manifest: a `source`. The rest is known after ops files.
    fn manifest(&mut self, file: &Path, source: SourceId, text: &str) -> Option<Node> {
        if !self.is_named_file || source != SourceId(0) {
            return None;
        }
        match self.from {
            Some(Dialect::Bosh) => {}
            None if text.contains("instance_groups") => {
                let document = yaml::read(source, text).ok()?;
                Some(document.root).filter(bosh::is_manifest)?;
            }
            _ => return None,
        }
        self.is_manifest = true;
        self.is_specification = true;
        let top = Span::new(source, 0, 0);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = Node::new(top, NodeValue::String(name.into()));
        Some(object(top, [("source", object(top, [("bosh", name)]))]))
    }

    /// The configuration of a specification: its cluster is called after its folder.
    fn specification_alone(&mut self, file: &Path, source: SourceId, text: &str) -> Option<Node> {
        let is_one = |root: &Node| match self.from {
            Some(Dialect::Yandex) => true,
            Some(Dialect::Nstance | Dialect::Bosh) => false,
            None => yandex::is_specification(root),
        };
        let may_be = self.is_named_file
            && source == SourceId(0)
            && (self.from.is_some() || text.contains("instance_template"));
        // What can't be read is reported when the specification is read.
        let root = match may_be.then(|| yandex::read(source, text))? {
            Ok(root) => Some(root).filter(is_one)?,
            Err(_) if self.from == Some(Dialect::Yandex) => {
                Node::new(Span::new(source, 0, 0), NodeValue::Null)
            }
            Err(_) => return None,
        };
        self.is_specification = true;
        let top = Span::new(source, 0, 0);
        let text = |text: &str| Node::new(top, NodeValue::String(text.into()));
        let zone = zone_of(&root).unwrap_or("none");
        let region = zone.rsplit_once('-').map_or(zone, |(region, _)| region);
        let infra = object(
            top,
            [
                ("provider", text("yandex")),
                ("region", text(region)),
                ("zone", text(zone)),
            ],
        );
        let shard = object(top, [("id", text(&id_of(region))), ("infra", infra)]);
        let folder = std::path::absolute(self.directory.as_path()).ok();
        let folder = folder.as_deref().and_then(Path::file_name);
        let folder = folder
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Some(object(
            top,
            [
                ("cluster", object(top, [("id", text(&id_of(&folder)))])),
                ("shard", shard),
                ("source", object(top, [("yandex", text(&name))])),
            ],
        ))
    }

    /// Replaces `source` by the groups that it describes.
    ///
    /// Fails if the document that it names is invalid.
    pub(super) fn add_source(
        &mut self,
        root: Node,
        given: &Given,
        working_dir: &Path,
    ) -> Result<Node, Reported> {
        match source(&root, self.is_manifest, &mut self.findings)? {
            Some(Source::Yandex(source)) => self.add_specification(root, &source, working_dir),
            Some(Source::Bosh(source)) => self.add_deployment(root, &source, given, working_dir),
            None => Ok(root),
        }
    }

    fn add_specification(
        &mut self,
        mut root: Node,
        source: &YandexSource,
        working_dir: &Path,
    ) -> Result<Node, Reported> {
        // Its own name may change, and an address may not.
        let stem = Path::new(&*source.yandex.value).file_stem();
        let stem = stem.unwrap_or_default().to_string_lossy();
        let name: Arc<str> = source.group.clone().unwrap_or_else(|| id_of(&stem).into());
        let provider = root.get("shard").and_then(|shard| shard.get("infra"));
        let provider = provider.and_then(|infra| infra.get("provider")?.as_str());
        let provider: Arc<str> = provider.unwrap_or_default().into();
        let specification = self.specification(source, &provider, working_dir)?;
        let placed = mapping::place(
            specification,
            &name,
            &provider,
            source,
            &root,
            &mut self.findings,
        )?;
        let NodeValue::Object(entries) = &mut root.value else {
            return Ok(root);
        };
        entries.retain(|entry| &*entry.key != "source");
        if let Some(template) = placed.template {
            section(entries, "templates", template.span).push(Entry::placed(&name, template));
        }
        if let Some((name, balancer)) = placed.load_balancer {
            let balancers = section(entries, "load_balancers", balancer.span);
            if !balancers.iter().any(|entry| *entry.key == *name) {
                balancers.push(Entry::placed(&name, balancer));
            }
        }
        self.add_group(root, &name, placed.group)
    }

    fn add_group(&mut self, mut root: Node, name: &str, group: Node) -> Result<Node, Reported> {
        let form = groups_form(&root);
        let NodeValue::Object(entries) = &mut root.value else {
            return Ok(root);
        };
        let mut groups = section(entries, "groups", group.span);
        if form != Some(GroupsForm::Flat) || groups.is_empty() {
            groups = section(groups, TENANT, group.span);
        }
        if let Some(first) = groups.iter().find(|entry| *entry.key == *name) {
            let finding = Diagnostic::error(format!("duplicate group `{TENANT}/{name}`"));
            self.findings.push(
                finding
                    .at(first.key_span, "defined here")
                    .related(group.span, "and by `source`")
                    .hint("Give one of them another name"),
            );
            return Err(Reported);
        }
        groups.push(Entry::placed(name, group));
        Ok(root)
    }

    /// The specification in a file beside the one that names it.
    fn specification(
        &mut self,
        source: &YandexSource,
        provider: &str,
        working_dir: &Path,
    ) -> Result<Specification, Reported> {
        let file = &source.yandex;
        let names_it = PathBuf::from(&self.sources.get(file.span.source).name);
        let folder = names_it.parent().unwrap_or(Path::new(""));
        let path = files::tidy(&folder.join(&*file.value));
        self.inputs.file(&working_dir.join(&path));
        let text = match files::read_as("specification", &path, working_dir) {
            Ok(text) => text,
            Err(finding) => {
                self.findings.push(finding.at(file.span, "named here"));
                return Err(Reported);
            }
        };
        let id = if path == names_it {
            file.span.source
        } else {
            self.sources.add(path.display().to_string(), text.clone())
        };
        let mut root = self
            .findings
            .keep(yandex::read(id, &text))
            .ok_or(Reported)?;
        let has = |key: &&str| root.get(key).is_some();
        if !SPECIFICATION_KEYS.iter().any(has) {
            let start = Span::new(id, 0, 1.min(text.len()));
            self.findings.push(
                Diagnostic::error(format!(
                    "not a specification of Yandex Cloud: {}",
                    path.display()
                ))
                .at(start, "`instance_template` is missing")
                .hint("It is the YAML that `yc compute instance-group create --file` reads"),
            );
            return Err(Reported);
        }
        mapping::rename_zones(&mut root, provider, source, &mut self.findings);
        self.unless_errors(())?;
        self.without_equal.extend(yandex::without_equal(&root));
        yandex::translate(&root, &mut self.findings)
    }
}

impl Loaded {
    /// Replaces a `source` that names a manifest.
    fn add_deployment(
        &mut self,
        mut root: Node,
        source: &BoshSource,
        given: &Given,
        working_dir: &Path,
    ) -> Result<Node, Reported> {
        if given.identity_only && !self.is_manifest {
            remove(&mut root, "source");
            return Ok(root);
        }
        let inputs = self.deployment_inputs(&root, source, given, working_dir);
        if given.identity_only {
            let document = bosh::interpolated(&inputs, &mut self.sources, &mut self.findings)?;
            return self.of_manifest(&document, source.bosh.span);
        }
        let deployment = bosh::load(&inputs, &mut self.sources, &mut self.findings);
        for (_, source) in self.sources.iter() {
            self.inputs.file(&working_dir.join(&source.name));
        }
        let deployment = deployment?;
        let resolved = &deployment.resolved;
        let lasting = resolved.groups.iter();
        let lasting = lasting.filter(|group| group.lifecycle == Lifecycle::Service);
        self.manifest = Some(Manifest {
            text: nstance_bosh::yaml::write(&deployment.document),
            naming: resolved.naming.clone(),
            groups: lasting
                .map(|group| ManifestGroup {
                    name: group.name.clone(),
                    replicas: group.replicas,
                    zones: group.definition.azs.len() as u32,
                })
                .collect(),
        });
        if self.is_manifest {
            root = self.of_manifest(&deployment.document, source.bosh.span)?;
        }
        self.groups_of(root, source, &deployment, given)
    }

    /// What a deployment is read from.
    fn deployment_inputs(
        &self,
        root: &Node,
        source: &BoshSource,
        given: &Given,
        working_dir: &Path,
    ) -> bosh::Inputs {
        let names_it = PathBuf::from(&self.sources.get(source.bosh.span.source).name);
        let folder = names_it.parent().unwrap_or(Path::new(""));
        let path = |path: &Arc<str>| files::tidy(&folder.join(&**path));
        let mut inputs = given.deployment.clone();
        working_dir.clone_into(&mut inputs.working_dir);
        inputs.manifest = path(&source.bosh);
        // An instance would get the variable's name as a value.
        inputs.interpolation.var_errs = true;
        if self.is_manifest {
            inputs.environment.clone_from(&given.environment);
            return inputs;
        }
        let text = |path: &[&str]| {
            let node = path.iter().try_fold(root, |node, key| node.get(key));
            node.and_then(Node::as_str).map(str::to_owned)
        };
        inputs.ops_files = source.ops_files.iter().map(path).collect();
        inputs.vars_files = source.vars_files.iter().map(path).collect();
        inputs.others = source.linked_manifests.iter().map(path).collect();
        inputs.vars.clone_from(&source.vars);
        inputs.releases = Some(path(&source.releases));
        inputs.name = text(&["cluster", "id"]);
        inputs.resolution.profile = source.profile;
        inputs.resolution.namespace = text(&["dns", "namespace"]);
        inputs.resolution.service_domain = text(&["dns", "domain"]);
        inputs
    }

    /// The configuration of a manifest that stands alone, without groups.
    fn of_manifest(&mut self, document: &Value, top: Span) -> Result<Node, Reported> {
        let text = |text: &str| Node::new(top, NodeValue::String(text.into()));
        let name = document.get("name").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        let Some(id) = bosh::id_of(name) else {
            let finding = bosh::unusable_name("cluster", name, top);
            self.findings.push(finding);
            return Err(Reported);
        };
        let groups = document.get("instance_groups").and_then(Value::as_list);
        let groups = groups.unwrap_or_default().iter();
        let zones = groups
            .clone()
            .filter_map(|group| group.get("azs")?.as_list()?.first()?.as_str());
        let zone = zones.min().unwrap_or("z1");
        let networks = groups.filter_map(|group| group.get("networks")?.as_list());
        let networks = networks.flatten();
        let networks = networks.filter_map(|network| bosh::id_of(network.get("name")?.as_str()?));
        let pools: BTreeSet<Arc<str>> = networks.collect();
        // A manifest says nothing of the sizes of networks.
        let size = || Node::new(top, NodeValue::Number(LARGEST_SUBNET.into()));
        let subnets = pools
            .iter()
            .map(|pool| Entry::placed(pool, object(top, [("size", size())])));
        let subnets = Node::new(top, NodeValue::Object(subnets.collect()));
        let pools = pools.iter().map(|pool| {
            let subnets = Node::new(top, NodeValue::Array(vec![text(pool)]));
            Entry::placed(pool, subnets)
        });
        let pools = Node::new(top, NodeValue::Object(pools.collect()));
        let infra = object(
            top,
            [
                ("provider", text("sim")),
                ("region", text("local")),
                ("zone", text(zone)),
                ("options", object(top, [("subnets", subnets)])),
            ],
        );
        let shard = object(
            top,
            [
                ("id", text("local")),
                ("infra", infra),
                ("subnet_pools", pools),
            ],
        );
        let cluster = object(top, [("id", text(&id))]);
        Ok(object(top, [("cluster", cluster), ("shard", shard)]))
    }

    /// Adds the groups of a deployment, and what DNS names end in.
    fn groups_of(
        &mut self,
        mut root: Node,
        source: &BoshSource,
        deployment: &Deployment,
        given: &Given,
    ) -> Result<Node, Reported> {
        remove(&mut root, "source");
        let top = source.bosh.span;
        if let NodeValue::Object(entries) = &mut root.value {
            let dns = section(entries, "dns", top);
            for (key, text) in [("namespace", NAMESPACE), ("domain", DOMAIN)] {
                if !dns.iter().any(|entry| &*entry.key == key) {
                    let text = NodeValue::String(text.into());
                    dns.push(Entry::placed(key, Node::new(top, text)));
                }
            }
        }
        let ruby = Ruby::new(given.ruby.clone());
        let hides_values = !self.shows_properties;
        let processes = bosh::processes(
            deployment,
            &ruby,
            hides_values,
            &self.sources,
            &mut self.findings,
        )?;
        let provider = root.get("shard").and_then(|shard| shard.get("infra"));
        let provider = provider.and_then(|infra| infra.get("provider")?.as_str());
        let placement = Placement {
            provider: provider.unwrap_or_default(),
            map: &source.map,
            root: &root,
            errand: given.errand.as_deref(),
            sensitivity: if self.shows_properties {
                let note = "`properties`: the configuration has their values in clear text";
                self.without_equal.push((top, note.to_owned()));
                Sensitivity::Open
            } else {
                Sensitivity::Whole
            },
        };
        let groups = bosh::groups(
            deployment,
            &processes,
            &placement,
            &self.sources,
            &mut self.findings,
        )?;
        for (name, group) in groups {
            root = self.add_group(root, &name, group)?;
        }
        Ok(root)
    }
}

/// Removes a key of the document.
fn remove(root: &mut Node, key: &str) {
    if let NodeValue::Object(entries) = &mut root.value {
        entries.retain(|entry| &*entry.key != key);
    }
}

/// The first zone of a specification.
fn zone_of(root: &Node) -> Option<&str> {
    let zones = root.get("allocation_policy")?.get("zones")?;
    match &zones.value {
        NodeValue::Array(items) => items.first()?.get("zone_id")?.as_str(),
        _ => None,
    }
}

/// A text as an id: lower case, with single hyphens in place of all else.
fn id_of(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let mut id = words.join("-").to_ascii_lowercase();
    id.truncate(LONGEST_ID);
    let id = id.trim_end_matches('-');
    if is_id(id) {
        id.to_owned()
    } else {
        "fleet".to_owned()
    }
}

fn object<const N: usize>(span: Span, entries: [(&str, Node); N]) -> Node {
    let entries = entries
        .into_iter()
        .map(|(key, value)| Entry::placed(key, value));
    Node::new(span, NodeValue::Object(entries.collect()))
}
