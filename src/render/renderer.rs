//! Renders the instances of a group.
//!
//! In: a [`CompiledGroup`], resolved images, and the instances' identities. Out: [`InstanceSpec`]s.
//! Must not: parse, or decide which instances exist.
//!
//! Texts that don't depend on the instance are rendered once and shared.

mod userdata;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use nstance_gotemplate::Value as TemplateValue;
use serde_json::{Map, Value};

use super::args::Tree;
use super::cache::{Compiled, LARGEST_OUTPUT};
use super::data::{
    GroupData, GroupFacts, InstanceFacts, ShardData, images_value, is_per_instance, labels_value,
};
use super::dns::DnsNames;
use super::erb::{CompiledErb, Subject};
use super::facts::{group_facts, shard_facts};
use super::files::{CompiledFile, Deferred, FileData, render_all};
use super::group::{CompiledGroup, Variant};
use super::identity::{ShortIds, group_id};
use super::instance::{Execution, Report, Timing};
use super::layers::CompiledUserdata;
use super::links::{LinkSet, LinkTrace, Unknown, traces};
use crate::address::{Address, InstanceId};
use crate::config::model::{Config, Functions};
use crate::diagnostic::Reported;
use crate::merge::zones::Place;
use crate::provider::rules::Rules;
use crate::sensitivity::Marks;
use crate::spec::{Content, Files, Head, InstanceSpec, Part, Userdata};

/// The labels of an instance.
pub(super) type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// A function that calls its argument with each template.
type Visitor<'v> = dyn Fn(&mut dyn FnMut(&Compiled)) + 'v;

/// Renders instances of one group.
pub struct GroupRenderer<'a> {
    /// The group.
    pub group: &'a CompiledGroup<'a>,
    pub(super) rules: Rules,
    facts: Vec<Arc<GroupFacts>>,
    data: Vec<GroupData>,
    shared: Vec<Shared>,
    slots: BTreeMap<u32, usize>,
    userdata_is_own: bool,
    pinned: bool,
    /// The short ids of its slots, if a template reads them.
    short_ids: Option<Mutex<ShortIds>>,
    /// Whether userdata with a single source is checked.
    is_looked_into: bool,
    links: LinkSet,
    link_traces: BTreeMap<Arc<str>, LinkTrace>,
    /// The data of exported files, where unknown addresses stay unknown; empty if it is the same.
    exported: Vec<GroupData>,
}

/// Results that a variant's instances share, rendered for the first of them.
#[derive(Default)]
struct Shared {
    args_are_own: bool,
    files_are_own: bool,
    args: OnceLock<Option<RenderedArgs>>,
    userdata: OnceLock<Option<RenderedUserdata>>,
    files: OnceLock<Option<Part<Files>>>,
    marks: OnceLock<Arc<Marks>>,
}

/// Rendered userdata.
#[derive(Clone)]
pub(super) struct RenderedUserdata {
    /// `None` if the group has none.
    pub(super) userdata: Option<Part<Userdata>>,
    /// Whether it was too large with the files that may be exported.
    pub(super) is_without_files: bool,
}

/// The parts of an instance; `None` for a part that failed to render.
pub(super) struct Parts {
    pub(super) args: Option<RenderedArgs>,
    pub(super) userdata: Option<RenderedUserdata>,
    pub(super) files: Option<Part<Files>>,
}

pub(super) type RenderedArgs = (Part<Map<String, Value>>, Part<BTreeMap<String, String>>);

impl<'a> GroupRenderer<'a> {
    /// A renderer for a group. `images` are ids by name, `None` for unresolved images. `pinned` is
    /// whether some instances keep images of their own. `lineage` is that of the state, from which
    /// the group's id follows.
    pub fn new(
        group: &'a CompiledGroup<'a>,
        config: &Config,
        images: &BTreeMap<Arc<str>, Option<Arc<str>>>,
        pinned: bool,
        rules: Rules,
        lineage: &str,
    ) -> Self {
        let read: BTreeMap<_, _> = images
            .iter()
            .filter(|(name, _)| group.images.contains(*name))
            .map(|(name, id)| (Arc::clone(name), id.clone()))
            .collect();
        let own = |compiled: &Compiled| {
            let reads = compiled.template.reads();
            reads.anything
                || reads
                    .paths
                    .iter()
                    .any(|access| is_per_instance(&access.path))
        };
        let labels_are_own = group.labels.iter().any(|(_, label)| own(label));
        let any_own = |visit: &Visitor<'_>| {
            let mut found = pinned;
            visit(&mut |compiled| found |= own(compiled));
            found
        };
        let files_are_own = any_own(&|visit| {
            for file in &group.files {
                file.templates(&mut |compiled| visit(compiled));
            }
        }) || group.erb_files().any(CompiledErb::is_per_instance);
        let userdata_is_own = pinned
            || group
                .userdata
                .iter()
                .flat_map(CompiledUserdata::templates)
                .any(own)
            || group.files.iter().any(CompiledFile::is_carried) && files_are_own;
        let variants: Vec<_> = std::iter::once(&group.base)
            .chain(group.overrides.values())
            .collect();
        let shard = group
            .shard
            .get_or_init(|| ShardData::new(Arc::new(shard_facts(config))));
        let id: Arc<str> = group_id(lineage, &group.merged.name).into();
        let facts: Vec<_> = variants
            .iter()
            .map(|variant| {
                Arc::new(group_facts(
                    &shard.facts,
                    &group.merged,
                    &variant.vars.value,
                    &read,
                    &id,
                ))
            })
            .collect();
        let data = facts
            .iter()
            .map(|facts| GroupData::new(facts, shard))
            .collect();
        Self {
            rules,
            data,
            facts,
            shared: variants
                .iter()
                .map(|variant| Shared {
                    args_are_own: labels_are_own
                        || any_own(&|visit| {
                            variant.args.templates(&mut |compiled| visit(compiled));
                        }),
                    files_are_own,
                    ..Shared::default()
                })
                .collect(),
            slots: group
                .overrides
                .keys()
                .enumerate()
                .map(|(i, slot)| (*slot, i + 1))
                .collect(),
            userdata_is_own,
            pinned,
            short_ids: group.reads_short_id.then(|| Mutex::new(ShortIds::of(&id))),
            is_looked_into: false,
            links: LinkSet::new(),
            link_traces: BTreeMap::new(),
            exported: Vec::new(),
            group,
        }
    }

    /// Sets whether userdata with a single source is checked.
    #[must_use]
    pub fn looking_into(self, is_looked_into: bool) -> Self {
        Self {
            is_looked_into,
            ..self
        }
    }

    /// A renderer of the same group whose texts read these links.
    #[must_use]
    pub fn with_links(&self, links: &LinkSet, unknown: Unknown) -> Self {
        let fresh = |shared: &Shared| Shared {
            args_are_own: shared.args_are_own,
            files_are_own: shared.files_are_own,
            ..Shared::default()
        };
        let id = &self.facts[0].id;
        Self {
            group: self.group,
            rules: self.rules,
            facts: self.facts.clone(),
            data: self
                .data
                .iter()
                .map(|data| data.with_links(links, unknown))
                .collect(),
            exported: self
                .data
                .iter()
                .map(|data| data.with_links(links, Unknown::Unknown))
                .collect(),
            shared: self.shared.iter().map(fresh).collect(),
            slots: self.slots.clone(),
            userdata_is_own: self.userdata_is_own,
            pinned: self.pinned,
            short_ids: self
                .short_ids
                .as_ref()
                .map(|_| Mutex::new(ShortIds::of(id))),
            is_looked_into: self.is_looked_into,
            links: links.clone(),
            link_traces: traces(links),
        }
    }

    /// The links that its texts read.
    pub fn links(&self) -> &LinkSet {
        &self.links
    }

    /// What these are, for records.
    pub fn link_traces(&self) -> &BTreeMap<Arc<str>, LinkTrace> {
        &self.link_traces
    }

    /// The DNS names of the group and its instances.
    pub fn dns_names(&self) -> DnsNames {
        DnsNames::of(&self.facts[0])
    }

    /// Renders a tree that reads nothing of instances; `None` if it fails, with the error in the
    /// report.
    pub fn render_for_group(&self, tree: &Tree, report: &mut Report) -> Option<Value> {
        let address = Address::new(self.group.merged.name.clone(), 0);
        let facts = self.example(0);
        let mut execution = Execution {
            root: &self.data[0].root(&facts, None, None),
            address: &address,
            timing: Timing::BeforeCreation,
            report,
            sensitive: &self.group.sensitive,
            unknown: false,
        };
        tree.render(&mut execution)
    }

    /// The private address that the args of an instance set; `None` if they set none, or if that
    /// isn't known yet.
    pub fn fixed_address_of(&self, slot: u32, id: &str, place: &Place) -> Option<String> {
        let facts = self.facts(slot, id, place);
        let address = Address::new(self.group.merged.name.clone(), slot);
        let mut ignored = Report::of_trial();
        let root = self.root(slot, &facts, &BTreeMap::new(), None);
        let variant = self.variant(slot).1;
        let (args, _) = self.render_args(variant, &root, None, &address, &mut ignored)?;
        fixed_address(&args.value).map(str::to_owned)
    }

    /// Whether some instances keep images of their own.
    pub fn pinned(&self) -> bool {
        self.pinned
    }

    pub(super) fn variant(&self, slot: u32) -> (usize, &Variant) {
        match self.slots.get(&slot) {
            Some(index) => (*index, &self.group.overrides[&slot]),
            None => (0, &self.group.base),
        }
    }

    /// An instance in a place, whose addresses aren't known yet.
    pub fn facts(&self, slot: u32, id: &str, place: &Place) -> InstanceFacts {
        let group = &self.group.merged;
        let short_id = self.short_ids.as_ref().and_then(|ids| {
            let mut ids = ids.lock().ok()?;
            Some(ids.get(slot))
        });
        InstanceFacts {
            id: id.into(),
            kind: Arc::clone(&group.kind),
            arch: group.arch.as_str().into(),
            instance_type: Arc::clone(&self.head(slot).instance_type),
            slot,
            index: group.replicas.map(|_| group.index_of(slot, place)),
            seat: place.seat.clone(),
            zone: Arc::clone(&place.zone),
            short_id: short_id.unwrap_or_default().into(),
            ip4: None,
            ip6: None,
            trial_nonce: None,
        }
    }

    /// A new instance of a slot with a made-up id, for validation.
    pub fn example(&self, slot: u32) -> InstanceFacts {
        let group = &self.group.merged;
        let id = InstanceId::new(&group.kind, uuid::Uuid::nil());
        self.facts(slot, id.as_str(), &group.place_of_new(slot))
    }

    /// The instance type and pool of a slot.
    pub fn head(&self, slot: u32) -> &Head {
        &self.variant(slot).1.head.value
    }

    /// Renders one instance; `None` if that failed, with the error in the report. `kept` are the
    /// images that the instance keeps.
    pub fn render(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
        report: &mut Report,
    ) -> Option<InstanceSpec> {
        let variant = self.variant(address.slot).1;
        let parts = self.parts(address, instance, kept, false, report);
        let (args, tags) = parts.args?;
        Some(InstanceSpec::new(
            variant.head.clone(),
            args,
            variant.spec_vars.clone(),
            parts.userdata?.userdata,
            parts.files?,
            tags,
        ))
    }

    /// Whether every instance with the same args and vars must succeed, since this one did: its
    /// templates only insert values, and longer values still fit.
    pub fn stands_for_others(&self, spec: &InstanceSpec) -> bool {
        let limit = self.rules.userdata_limit().unwrap_or(LARGEST_OUTPUT);
        let has_room = |userdata: &Part<Userdata>| match &userdata.value.content {
            Content::Text(text) => !userdata.value.gzip && text.len() <= limit / 2,
            Content::Base64(_) => false,
        };
        self.group.only_inserts() && spec.userdata.as_ref().is_none_or(has_room)
    }

    /// Renders the parts of an instance; with `anew`, shared parts too.
    pub(super) fn parts(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
        anew: bool,
        report: &mut Report,
    ) -> Parts {
        let (index, variant) = self.variant(address.slot);
        let shared = &self.shared[index];
        let mut addressed = None;
        let Ok(labels) = self.own_labels(address, instance, report) else {
            return Parts {
                args: None,
                userdata: None,
                files: None,
            };
        };
        let root = &self.root(address.slot, instance, kept, labels.as_ref());

        let args = once(
            &shared.args,
            anew || shared.args_are_own,
            report,
            |report| self.render_args(variant, root, labels.as_ref(), address, report),
        );
        let facts = args.as_ref().and_then(|args| with_address(instance, args));
        let root = match &facts {
            Some(facts) => {
                let labels = labels.as_ref().map(labels_value);
                &*addressed.insert(self.data[index].root(facts, None, labels))
            }
            None => root,
        };
        let exported = self.exported.get(index).map(|data| {
            let facts = facts.as_ref().unwrap_or(instance);
            data.root(
                facts,
                self.images_kept(index, kept),
                labels.as_ref().map(labels_value),
            )
        });
        let files = once(
            &shared.files,
            anew || shared.files_are_own,
            report,
            |report| {
                let data = FileData {
                    carried: root,
                    exported: exported.as_ref().unwrap_or(root),
                    subject: Subject {
                        group: &self.facts[index],
                        instance: facts.as_ref().unwrap_or(instance),
                        links: &self.links,
                    },
                    erb: &self.group.erb,
                    address,
                    sensitive: &self.group.sensitive,
                };
                render_all(&self.group.files, &data, report).map(Part::new)
            },
        );
        let own = anew || self.userdata_is_own;
        let userdata = once(&shared.userdata, own, report, |report| {
            self.render_userdata(files.as_ref(), root, address, report)
        });
        let files = match &userdata {
            Some(userdata) if userdata.is_without_files => {
                files.map(|files| self.exported_too(&files))
            }
            _ => files,
        };
        Parts {
            args,
            userdata,
            files,
        }
    }

    /// The files where those that may be exported are.
    fn exported_too(&self, files: &Part<Files>) -> Part<Files> {
        let mut files = Files::clone(&files.value);
        for file in &self.group.files {
            if let Some(rendered) = files.get_mut(&file.name).filter(|_| file.may_be_exported()) {
                rendered.in_userdata = false;
            }
        }
        Part::new(files)
    }

    /// Whether instances have ERB of their own, which takes Ruby milliseconds each.
    pub fn has_own_erb(&self) -> bool {
        self.group.has_erb() && self.shared[0].files_are_own
    }

    /// Whether all instances with the slot's args and vars have the same spec.
    pub(super) fn is_shared(&self, slot: u32) -> bool {
        let shared = &self.shared[self.variant(slot).0];
        !shared.args_are_own && !shared.files_are_own && !self.userdata_is_own
    }

    /// The cached marks of a slot's spec, if the spec is shared.
    pub(super) fn shared_marks(&self, slot: u32) -> Option<&OnceLock<Arc<Marks>>> {
        let shared = &self.shared[self.variant(slot).0];
        self.is_shared(slot).then_some(&shared.marks)
    }

    /// The data of an instance, with the images that it keeps.
    pub(super) fn root(
        &self,
        slot: u32,
        instance: &InstanceFacts,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
        labels: Option<&Labels>,
    ) -> TemplateValue {
        let index = self.variant(slot).0;
        let images = self.images_kept(index, kept);
        self.data[index].root(instance, images, labels.map(labels_value))
    }

    /// The images of an instance that keeps some; `None` if it has those of the group.
    fn images_kept(
        &self,
        index: usize,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
    ) -> Option<TemplateValue> {
        (self.pinned && !kept.is_empty()).then(|| self.kept_images(index, kept))
    }

    /// The labels of an instance, if instances have their own; rendering reports what failed.
    pub(super) fn labels_of(&self, slot: u32, instance: &InstanceFacts) -> Option<Labels> {
        let address = Address::new(self.group.merged.name.clone(), slot);
        let mut ignored = Report::default();
        self.own_labels(&address, instance, &mut ignored)
            .ok()
            .flatten()
    }

    /// The labels of an instance, if instances have their own.
    ///
    /// Fails if a label can't be rendered; that is in the report.
    pub(super) fn own_labels(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        report: &mut Report,
    ) -> Result<Option<Labels>, Reported> {
        if self.group.labels.is_empty() {
            return Ok(None);
        }
        let index = self.variant(address.slot).0;
        let mut labels = self.group.merged.labels.clone();
        let mut execution = Execution {
            root: &self.data[index].root(instance, None, None),
            address,
            timing: Timing::BeforeCreation,
            report,
            sensitive: &self.group.sensitive,
            unknown: false,
        };
        for (name, compiled) in &self.group.labels {
            let label = execution.string(compiled).ok_or(Reported)?;
            labels.insert(Arc::clone(name), label.into());
        }
        Ok(Some(labels))
    }

    fn kept_images(&self, index: usize, kept: &BTreeMap<Arc<str>, Arc<str>>) -> TemplateValue {
        let mut images = self.facts[index].images.clone();
        for (name, id) in kept {
            if let Some(entry) = images.get_mut(name) {
                *entry = Some(Arc::clone(id));
            }
        }
        images_value(&images)
    }

    fn render_args(
        &self,
        variant: &Variant,
        root: &TemplateValue,
        labels: Option<&Labels>,
        address: &Address,
        report: &mut Report,
    ) -> Option<RenderedArgs> {
        let mut execution = Execution {
            root,
            address,
            timing: Timing::BeforeCreation,
            report,
            sensitive: &self.group.sensitive,
            unknown: false,
        };
        let Some(Value::Object(args)) = variant.args.render(&mut execution) else {
            return None;
        };
        let labels = labels.unwrap_or(&self.group.merged.labels);
        let mut tags: BTreeMap<_, _> = labels
            .iter()
            .map(|(name, value)| {
                (
                    self.rules.sanitise_tag(name),
                    self.rules.sanitise_tag(value),
                )
            })
            .collect();
        tags.extend(self.rules.user_tags(&args));
        Some((Part::new(args), Part::new(tags)))
    }

    /// The files of a spec that are rendered after creation, with all their data; `None` if there
    /// are none.
    pub fn deferred(
        &self,
        spec: &InstanceSpec,
        slot: u32,
        instance: &InstanceFacts,
    ) -> Option<Deferred> {
        let deferred: Vec<_> = self
            .group
            .files
            .iter()
            .filter(|file| {
                spec.files
                    .value
                    .get(&file.name)
                    .is_some_and(|file| file.content.is_none())
            })
            .collect();
        let mut snippets = Arc::default();
        let mut functions = Functions::default();
        let mut reads_links = false;
        for file in &deferred {
            reads_links |= file.erb().is_some_and(CompiledErb::reads_links);
            file.templates(&mut |compiled| {
                reads_links |= compiled.template.reads().reads(".Link");
                functions = compiled.snippets.functions();
                if compiled.calls_snippets() {
                    snippets = Arc::clone(compiled.snippets.texts());
                }
            });
        }
        let files: Vec<_> = deferred
            .iter()
            .map(|file| {
                let source = file.source_of(instance.index());
                (Arc::clone(&file.name), source)
            })
            .collect();
        (!files.is_empty()).then(|| Deferred {
            labels: self.labels_of(slot, instance),
            links: if reads_links {
                self.links.clone()
            } else {
                LinkSet::new()
            },
            snippets,
            functions,
            group: Arc::clone(&self.facts[self.variant(slot).0]),
            instance: instance.clone(),
            files,
        })
    }
}

/// Renders shared parts once, and an instance's own parts every time.
fn once<T: Clone>(
    cell: &OnceLock<Option<T>>,
    own: bool,
    report: &mut Report,
    render: impl FnOnce(&mut Report) -> Option<T>,
) -> Option<T> {
    if own {
        render(report)
    } else {
        cell.get_or_init(|| render(report)).clone()
    }
}

/// The instance with the address that its args set, so that the address is known when planning.
fn with_address(instance: &InstanceFacts, (args, _): &RenderedArgs) -> Option<InstanceFacts> {
    if instance.ip4.is_some() {
        return None;
    }
    Some(InstanceFacts {
        ip4: Some(fixed_address(&args.value)?.into()),
        ..instance.clone()
    })
}

/// The private address that args set.
pub fn fixed_address(args: &Map<String, Value>) -> Option<&str> {
    let first = |list: &str, field: &str| args.get(list)?.get(0)?.get(field)?.as_str();
    args.get("PrivateIpAddress")
        .and_then(Value::as_str)
        .or_else(|| first("NetworkInterfaces", "PrivateIpAddress"))
        .or_else(|| first("networkInterfaces", "networkIP"))
        .or_else(|| {
            let first = args.get("network_interface_specs")?.get(0)?;
            first
                .get("primary_v4_address_spec")?
                .get("address")?
                .as_str()
        })
}
