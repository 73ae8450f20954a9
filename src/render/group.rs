//! Compiles a group's templates.
//!
//! In: a [`MergedGroup`] and fetched userdata. Out: a [`CompiledGroup`] with the names of the
//! images that its templates read. Must not: render.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use nstance_gotemplate::Sensitive;
use serde_json::{Map, Value};

use super::args::{Tree, is_template};
use super::cache::{Compiled, Place, TemplateCache};
use super::data::ShardData;
use super::erb::{CompiledErb, Erb};
use super::files::CompiledFile;
use super::layers::{self, CompiledUserdata};
use super::links::{FIELDS, LinkSet};
use super::renderer::fixed_address;
use super::texts::TextKinds;
use super::userdata::Bodies;
use crate::config::model::{Config, Texts};
use crate::config::node::{Node, Sensitivity};
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, all, nearest};
use crate::merge::Layer;
use crate::merge::deep::{Merged, MergedValue};
use crate::merge::group::{MergedGroup, merge_group};
use crate::merge::links::Link;
use crate::spec::{Head, Part};

/// A group whose templates are parsed.
pub struct CompiledGroup<'a> {
    /// The merged group.
    pub merged: MergedGroup<'a>,
    pub(super) base: Variant,
    pub(super) overrides: BTreeMap<u32, Variant>,
    pub(super) userdata: Option<CompiledUserdata>,
    pub(super) files: Vec<CompiledFile>,
    /// The outputs of ERB, shared with other groups.
    pub(super) erb: Arc<Erb>,
    /// Labels that are texts with placeholders.
    pub(super) labels: Vec<(Arc<str>, Compiled)>,
    /// Template values shared with other groups.
    pub(super) shard: Arc<OnceLock<ShardData>>,
    /// The images its templates read.
    pub images: BTreeSet<Arc<str>>,
    /// Whether they can read `.Nonce`.
    pub reads_nonce: bool,
    /// Whether they can read `.Instance.ShortID`.
    pub(super) reads_short_id: bool,
    /// Whether they can read `.Cluster.CACert`.
    pub reads_ca_cert: bool,
    /// The links it consumes.
    pub links: Vec<Link<'a>>,
    /// The names of links with sensitive properties.
    pub sensitive_links: BTreeSet<Arc<str>>,
    /// The names of links whose instances' IP addresses its templates may read.
    pub reads_addresses: BTreeSet<Arc<str>>,
    /// The sensitive parts of its data.
    pub(super) sensitive: Sensitive,
    /// Whether any part of its instances is sensitive.
    pub(super) is_sensitive: bool,
}

/// A group's args and vars, or those of a slot with an override.
pub(super) struct Variant {
    pub(super) head: Part<Head>,
    pub(super) args: Tree,
    pub(super) vars: Part<Value>,
    /// The vars in specs: none for placeholder texts, since their results say what matters.
    pub(super) spec_vars: Part<Value>,
}

/// A function that calls its argument with each template.
type Visitor<'v> = dyn Fn(&mut dyn FnMut(&Compiled)) + 'v;

/// What is known of a group's links when it is compiled.
#[derive(Clone, Copy)]
pub enum Linking<'l, 'a> {
    /// The links themselves; texts that read others are reported.
    Resolved(&'l [Link<'a>]),
    /// What a plan kept of them.
    Kept(&'l LinkSet),
}

/// Parses a group's templates.
///
/// Fails if a template has an error.
pub fn compile<'a>(
    merged: MergedGroup<'a>,
    linking: Linking<'_, 'a>,
    config: &'a Config,
    bodies: &Bodies,
    cache: &mut TemplateCache<'_>,
    findings: &mut Diagnostics,
) -> Result<CompiledGroup<'a>, Reported> {
    let targets = load_balancer_targets(config, &merged);
    let sensitive_links = sensitive_links(linking, config);
    let kinds = TextKinds::of(&merged);
    let mut variant = |instance_type: &Arc<str>,
                       pool: Option<&Arc<str>>,
                       args: Option<&Merged>,
                       vars: Option<&Merged>| {
        let vars = Part::new(vars.map_or_else(|| Value::Object(Map::new()), Merged::to_json));
        let args = match args {
            Some(args) => Tree::from_merged(args, &kinds, cache, findings)?,
            None => Tree::Constant(Value::Object(Map::new())),
        };
        Ok(Variant {
            head: Part::new(Head {
                kind: Arc::clone(&merged.kind),
                arch: merged.arch.as_str().into(),
                instance_type: Arc::clone(instance_type),
                subnet_pool: pool.cloned(),
                template: merged.template.clone(),
                load_balancers: targets.clone(),
            }),
            args,
            spec_vars: match merged.texts {
                Texts::Templates => vars.clone(),
                Texts::Placeholders => Part::new(Value::Object(Map::new())),
            },
            vars,
        })
    };
    let base = variant(
        &merged.instance_type,
        merged.subnet_pool.as_ref().map(|pool| &pool.value),
        merged.args.as_ref(),
        merged.vars.as_ref(),
    );
    let overrides = all(merged.overrides.iter().map(|(slot, change)| {
        let pool = change.subnet_pool.as_ref().map(|pool| &pool.value);
        let (args, vars) = (change.args.as_ref(), change.vars.as_ref());
        Ok((*slot, variant(&change.instance_type, pool, args, vars)?))
    }));
    let userdata = layers::compile(&merged, bodies, cache, findings);
    let labels = compile_labels(&merged, cache, findings);
    let files = all(merged
        .files
        .iter()
        .map(|(name, (_, file))| CompiledFile::compile(name, &file.value, cache, findings)));
    // All parts are compiled before this returns, so that every error is found.
    let mut group = CompiledGroup {
        base: base?,
        overrides: overrides?.into_iter().collect(),
        userdata: userdata?,
        files: files?,
        labels: labels?,
        shard: cache.shard(),
        erb: cache.erb(),
        images: BTreeSet::new(),
        reads_nonce: false,
        reads_short_id: false,
        reads_ca_cert: false,
        reads_addresses: BTreeSet::new(),
        sensitive: sensitive_data(&merged, &sensitive_links),
        links: match linking {
            Linking::Resolved(links) => links.to_vec(),
            Linking::Kept(_) => Vec::new(),
        },
        sensitive_links,
        is_sensitive: false,
        merged,
    };
    group.is_sensitive = group.has_sensitive();
    group.images = group.read_images(config);
    group.reads_nonce = group.reads(".Nonce");
    group.reads_short_id = group.reads(".Instance.ShortID");
    group.reads_ca_cert = group.reads(".Cluster.CACert");
    group.reads_addresses = group.read_addresses();
    let errors = findings.errors();
    group.check_reads(config, cache, findings);
    if let Linking::Resolved(_) = linking {
        group.check_links(cache, findings);
        group.check_own_addresses(cache, findings);
    }
    if findings.errors() > errors {
        return Err(Reported);
    }
    Ok(group)
}

/// Compiles the labels that are texts with placeholders.
fn compile_labels(
    merged: &MergedGroup<'_>,
    cache: &mut TemplateCache<'_>,
    findings: &mut Diagnostics,
) -> Result<Vec<(Arc<str>, Compiled)>, Reported> {
    let none = BTreeMap::new();
    let kinds = TextKinds::of_labels(merged, &none);
    let compiled = all(merged.placeholder_labels.iter().map(|name| {
        let text = &merged.labels[name];
        let open = &Sensitivity::Open;
        let place = Place::Behind(merged.label_places[name]);
        let compiled = kinds.compile(text, Layer::Group, place, open, cache, findings)?;
        Ok(compiled.map(|compiled| (Arc::clone(name), compiled)))
    }))?;
    Ok(compiled.into_iter().flatten().collect())
}

/// The errors that a file or a certificate reads `.Nonce`.
pub fn no_nonce(compiled: &Compiled, sources: &SourceMap) -> Vec<Diagnostic> {
    let paths = compiled.template.reads().paths.iter();
    let errors = paths
        .filter(|access| access.path == ".Nonce")
        .map(|access| {
            let place = compiled.place_of(&access.template);
            Diagnostic::error("a file can't read `.Nonce`")
                .at(place.at(sources, access.offset), "there is none for files")
                .hint("Read it in userdata or args: it is made when the instance is created")
        });
    errors.collect()
}

/// Whether an address is of no particular host: `:8992`, `0.0.0.0:8992`, `[::]:8992`.
fn names_any_host(address: &str) -> bool {
    let host = address.rsplit_once(':').map(|(host, _)| host);
    host.is_some_and(|host| matches!(host, "" | "0.0.0.0" | "[::]" | "::"))
}

fn load_balancer_targets(config: &Config, group: &MergedGroup<'_>) -> Vec<String> {
    let provider = config.shard.infra.provider.value;
    let mut targets: Vec<String> = group
        .load_balancers
        .iter()
        .filter_map(|name| config.load_balancers.get(&name.value))
        .filter(|balancer| balancer.value.provider == Some(provider))
        .flat_map(|balancer| &balancer.value.targets)
        .map(ToString::to_string)
        .collect();
    targets.sort();
    targets.dedup();
    targets
}

/// The sensitive vars, labels and links that templates of a group may read.
fn sensitive_data(group: &MergedGroup<'_>, links: &BTreeSet<Arc<str>>) -> Sensitive {
    let mut sensitive = sensitive_values(group);
    for link in links {
        sensitive.add_path(format!(".Link.{link}.Properties"));
    }
    sensitive
}

/// The names of links with sensitive properties.
fn sensitive_links(linking: Linking<'_, '_>, config: &Config) -> BTreeSet<Arc<str>> {
    match linking {
        Linking::Resolved(links) => {
            let sensitive = links.iter().filter(|link| {
                let provider = link.provider.as_ref();
                provider.is_some_and(|provider| {
                    let properties = provider.properties;
                    properties
                        .is_some_and(|it| has_sensitive_properties(config, provider.index, it))
                })
            });
            sensitive.map(|link| Arc::clone(&link.name)).collect()
        }
        Linking::Kept(links) => {
            let sensitive = links.iter().filter(|(_, facts)| {
                let facts = facts.as_ref();
                facts.is_some_and(|facts| facts.is_sensitive)
            });
            sensitive.map(|(name, _)| Arc::clone(name)).collect()
        }
    }
}

/// Whether a group's values for others are sensitive, or templates over sensitive vars.
fn has_sensitive_properties(config: &Config, provider: usize, properties: &Node) -> bool {
    if properties.is_sensitive_within() {
        return true;
    }
    let group = &config.groups[provider];
    is_template(&properties.to_json().to_string())
        && !sensitive_values(&merge_group(config, group)).is_empty()
}

/// The sensitive vars and labels of a group.
fn sensitive_values(group: &MergedGroup<'_>) -> Sensitive {
    let mut sensitive = Sensitive::default();
    let slots = group.overrides.values();
    for vars in std::iter::once(&group.vars).chain(slots.map(|slot| &slot.vars)) {
        for root in [".Vars", ".Var"] {
            if let Some(vars) = vars {
                add_vars(vars, root, &mut sensitive);
            }
        }
    }
    for label in &group.sensitive_labels {
        sensitive.add_path(if label.contains('.') {
            ".Group.Labels".to_owned()
        } else {
            format!(".Group.Labels.{label}")
        });
    }
    sensitive
}

fn add_vars(value: &Merged, path: &str, sensitive: &mut Sensitive) {
    if !value.sensitivity.is_open() {
        sensitive.add_path(path);
        return;
    }
    match &value.value {
        MergedValue::Array(items) if items.iter().any(Merged::is_sensitive_within) => {
            sensitive.add_path(path);
        }
        MergedValue::Object(entries) => {
            for (key, value) in entries {
                if !key.contains('.') {
                    add_vars(value, &format!("{path}.{key}"), sensitive);
                } else if value.is_sensitive_within() {
                    sensitive.add_path(path);
                }
            }
        }
        _ => {}
    }
}

impl CompiledGroup<'_> {
    pub(super) fn templates<'s>(&'s self, visit: &mut dyn FnMut(&'s Compiled)) {
        for variant in std::iter::once(&self.base).chain(self.overrides.values()) {
            variant.args.templates(visit);
        }
        if let Some(userdata) = &self.userdata {
            userdata.templates().for_each(&mut *visit);
        }
        self.files.iter().for_each(|file| file.templates(visit));
        self.labels.iter().for_each(|(_, label)| visit(label));
    }

    /// Calls `visit` with every template, and whether it is a file's.
    pub fn visit(&self, visit: &mut dyn FnMut(bool, &Compiled)) {
        for variant in std::iter::once(&self.base).chain(self.overrides.values()) {
            variant
                .args
                .templates(&mut |compiled| visit(false, compiled));
        }
        for compiled in self.userdata.iter().flat_map(CompiledUserdata::templates) {
            visit(false, compiled);
        }
        for file in &self.files {
            file.templates(&mut |compiled| visit(true, compiled));
        }
    }

    /// Its files of kind `erb`.
    pub(super) fn erb_files(&self) -> impl Iterator<Item = &CompiledErb> {
        self.files.iter().filter_map(CompiledFile::erb)
    }

    /// Whether it has files of kind `erb`.
    pub fn has_erb(&self) -> bool {
        self.erb_files().next().is_some()
    }

    /// Whether its templates only insert values into texts that need no validation.
    pub(super) fn only_inserts(&self) -> bool {
        let is_single = |userdata: &CompiledUserdata| userdata.single().is_some();
        let mut inserts = self.userdata.as_ref().is_none_or(is_single) && !self.has_erb();
        self.templates(&mut |compiled| inserts &= compiled.template.only_inserts());
        inserts
    }

    fn read_images(&self, config: &Config) -> BTreeSet<Arc<str>> {
        let mut images = BTreeSet::new();
        let mut all = false;
        self.templates(&mut |compiled| {
            let reads = compiled.template.reads();
            all |= reads.anything;
            for access in &reads.paths {
                match access.path.strip_prefix(".Image.") {
                    Some(rest) => {
                        images.insert(Arc::from(rest.split('.').next().unwrap_or(rest)));
                    }
                    None => all |= access.path == ".Image",
                }
            }
        });
        if all {
            images.extend(config.images.keys().cloned());
        }
        images
    }

    /// The names of the files that are exported.
    pub fn exported_files(&self) -> impl Iterator<Item = &Arc<str>> {
        let exported = self.files.iter().filter(|file| !file.is_carried());
        exported.map(|file| &file.name)
    }

    /// Whether the value at a path of an instance can read a link.
    pub fn reads_link(&self, path: &str, link: &str) -> bool {
        let link = format!(".Link.{link}");
        let erb_reads = |file: &CompiledFile| file.erb().is_some_and(CompiledErb::reads_links);
        let mut found = false;
        let mut visit = |compiled: &Compiled| found |= compiled.template.reads().reads(&link);
        let (root, name) = path.split_once('.').unwrap_or((path, ""));
        match root {
            "args" => {
                for variant in std::iter::once(&self.base).chain(self.overrides.values()) {
                    variant.args.templates(&mut |compiled| visit(compiled));
                }
            }
            "userdata" => {
                let userdata = self.userdata.iter().flat_map(CompiledUserdata::templates);
                userdata.for_each(&mut visit);
                let carried = self.files.iter().filter(|file| file.is_carried());
                carried
                    .clone()
                    .for_each(|file| file.templates(&mut |compiled| visit(compiled)));
                found |= carried.clone().any(erb_reads);
            }
            "files" => {
                let mut files = self.files.iter();
                if let Some(file) = files.find(|file| *file.name == *name) {
                    file.templates(&mut |compiled| visit(compiled));
                    found |= erb_reads(file);
                }
            }
            "tags" => self.labels.iter().for_each(|(_, label)| visit(label)),
            _ => {}
        }
        found
    }

    /// The links whose instances' IP addresses templates may read: those of which they read
    /// instances in a text that has a word for addresses.
    fn read_addresses(&self) -> BTreeSet<Arc<str>> {
        let mut found = BTreeSet::new();
        for link in &self.links {
            let path = format!(".Link.{}.Instances", link.name);
            self.templates(&mut |compiled| {
                if compiled.mentions(&["IP4", "IP6"]) && compiled.template.reads().reads(&path) {
                    found.insert(Arc::clone(&link.name));
                }
            });
        }
        found
    }

    /// Reports reads of links that the group doesn't consume, and of fields that links don't have.
    fn check_links(&self, cache: &TemplateCache<'_>, findings: &mut Diagnostics) {
        let names = || self.links.iter().map(|link| &*link.name);
        self.templates(&mut |compiled| {
            for access in &compiled.template.reads().paths {
                let Some(rest) = access.path.strip_prefix(".Link.") else {
                    continue;
                };
                let mut segments = rest.split('.');
                let name = segments.next().unwrap_or_default();
                let (summary, label, near, otherwise) = if !names().any(|own| own == name) {
                    (
                        format!("link `{name}` is not consumed"),
                        "not a link of this group",
                        nearest(name, names()).map(|near| format!("there is a link `{near}`")),
                        format!("Consume it: `\"consumes\": {{\"{name}\": {{}}}}`"),
                    )
                } else if let Some(field) = segments.next()
                    && !FIELDS.contains(&field)
                {
                    let known = FIELDS.iter().copied();
                    (
                        format!("links have no field `{field}`"),
                        "not there",
                        nearest(field, known).map(|near| format!("there is `.Link.{name}.{near}`")),
                        format!("its fields are: {}", FIELDS.join(", ")),
                    )
                } else {
                    continue;
                };
                let place = compiled.place_of(&access.template);
                let finding = Diagnostic::error(summary)
                    .at(place.at(cache.sources(), access.offset), label)
                    .hint(near.unwrap_or(otherwise));
                findings.push(finding);
            }
        });
    }

    /// Reports reads of the addresses of the group's own instances in texts that an instance needs
    /// before these exist.
    fn check_own_addresses(&self, cache: &TemplateCache<'_>, findings: &mut Diagnostics) {
        if self.fixes_addresses() {
            return;
        }
        for link in &self.links {
            let provider = link.provider.as_ref();
            if provider.is_none_or(|provider| provider.group != self.merged.name) {
                continue;
            }
            let path = format!(".Link.{}.Instances", link.name);
            let mut check = |compiled: &Compiled| {
                let reads = compiled.template.reads();
                let mut paths = reads.paths.iter();
                if let Some(access) = paths.find(|access| access.path.starts_with(&path))
                    && compiled.mentions(&["IP4", "IP6"])
                {
                    let place = compiled.place_of(&access.template);
                    findings.push(
                        Diagnostic::error(format!(
                            "link `{}` leads to the group itself, whose addresses aren't known yet",
                            link.name
                        ))
                        .at(
                            place.at(cache.sources(), access.offset),
                            "needed before they exist",
                        )
                        .hint(
                            "Read `.Address`, the DNS name, or the addresses in an exported file",
                        ),
                    );
                }
            };
            for variant in std::iter::once(&self.base).chain(self.overrides.values()) {
                variant.args.templates(&mut |compiled| check(compiled));
            }
            let userdata = self.userdata.iter().flat_map(CompiledUserdata::templates);
            userdata.for_each(&mut check);
            for file in self.files.iter().filter(|file| file.is_carried()) {
                file.templates(&mut |compiled| check(compiled));
            }
        }
    }

    /// Whether all instances get a fixed private address from their args.
    pub fn fixes_addresses(&self) -> bool {
        let args = |args: Option<&Merged>| match args.map(Merged::to_json) {
            Some(Value::Object(args)) => fixed_address(&args).is_some(),
            _ => false,
        };
        args(self.merged.args.as_ref())
    }

    /// Reports reads of data that a template had better not read where it does.
    fn check_reads(&self, config: &Config, cache: &TemplateCache<'_>, findings: &mut Diagnostics) {
        let of_userdata = |visit: &mut dyn FnMut(&Compiled)| {
            let templates = self.userdata.iter().flat_map(CompiledUserdata::templates);
            templates.for_each(visit);
        };
        let of_files = |visit: &mut dyn FnMut(&Compiled)| {
            self.files
                .iter()
                .for_each(|file| file.templates(&mut |compiled| visit(compiled)));
        };
        of_files(&mut |compiled| findings.extend(no_nonce(compiled, cache.sources())));
        let mut find = |templates: &Visitor<'_>, path, finding: Diagnostic, label: &str| {
            templates(&mut |compiled| {
                let paths = compiled.template.reads().paths.iter();
                for access in paths.filter(|access| access.path == path) {
                    let place = compiled.place_of(&access.template);
                    let finding = finding.clone();
                    findings.push(finding.at(place.at(cache.sources(), access.offset), label));
                }
            });
        };
        find(
            &of_userdata,
            ".Group.Size",
            Diagnostic::warning("the userdata reads the group's size")
                .hint("Read it in a file, which is changed in place"),
            "scaling the group replaces all of its instances",
        );
        let advertise = &config.shard.advertise;
        for (path, address) in [
            (".Server.RegistrationAddr", &advertise.registration_addr),
            (".Server.AgentAddr", &advertise.agent_addr),
            (".Server.OperatorAddr", &advertise.operator_addr),
        ] {
            if names_any_host(address) {
                find(
                    &|visit| self.templates(&mut |compiled| visit(compiled)),
                    path,
                    Diagnostic::warning(format!("`{path}` is `{address}`, as written"))
                        .hint("The Nstance server puts its own address there; write it in `shard.advertise`"),
                    "it has no host",
                );
            }
        }
        if config.cluster.ca_cert.is_none() {
            find(
                &|visit| self.templates(&mut |compiled| visit(compiled)),
                ".Cluster.CACert",
                Diagnostic::warning("the cluster's CA certificate isn't known")
                    .hint("Set `cluster.ca_cert`: a text in PEM, or `file:PATH`"),
                "a text stands for it",
            );
        }
    }

    /// Whether args or userdata can read the value at a path.
    fn reads(&self, path: &str) -> bool {
        let mut found = false;
        self.templates(&mut |compiled| found |= compiled.template.reads().reads(path));
        found
    }
}
