//! Renders texts that wait for the addresses of linked groups.
//!
//! In: a plan with stand-ins, and the state once the linked groups are applied. Out: the plan's
//! changes with real addresses, and exported files. Must not: add a change, or do I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nstance_state::{Record, Snapshot, SpecDigest};

use super::compile::compile_alone;
use super::last_good::{self, GoodGroup, Images};
use super::renderer;
use crate::address::{Address, GroupName};
use crate::config::model::{Config, OnNewer};
use crate::config::node::Node;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::plan::change::{Action, Change, InstanceView, LateGroup, Plan, Reason};
use crate::plan::diff::{self, Lifecycle};
use crate::plan::links::known_addresses;
use crate::render::data::InstanceFacts;
use crate::render::group::CompiledGroup;
use crate::render::instance::Report;
use crate::render::links::{LinkFacts, LinkSet, Unknown};
use crate::render::renderer::GroupRenderer;
use crate::render::userdata::Bodies;
use crate::spec::SpecBody;

/// Adds to a plan what its late texts need: those of its changes, and exported files of groups whose
/// linked groups change. A group that isn't known to wait for its addresses is an error, and its late
/// changes are left out.
pub(super) fn add(
    plan: &mut Plan,
    groups: &[CompiledGroup<'_>],
    document: Option<&Node>,
    bodies: &Bodies,
    links: &BTreeMap<String, LinkSet>,
) -> Diagnostics {
    let mut findings = Diagnostics::default();
    let Some(document) = document else {
        return findings;
    };
    let changes = plan.changes.iter().chain(&plan.held_back);
    let changed: BTreeSet<&str> = changes
        .clone()
        .filter(|change| change.makes_instance())
        .map(|change| change.address.group.as_str())
        .collect();
    let late: BTreeSet<&str> = changes
        .filter(|change| !change.late.is_empty())
        .map(|change| change.address.group.as_str())
        .collect();
    let ids: BTreeMap<String, String> = plan
        .images
        .iter()
        .map(|(name, image)| (name.clone(), image.id.clone()))
        .collect();
    let mut added = BTreeMap::new();
    let mut refused = BTreeSet::new();
    for group in groups.iter().filter(|group| !group.links.is_empty()) {
        let name = &group.merged.name;
        let is_late = late.contains(name.as_str());
        if is_late && group.reads_addresses.is_empty() {
            findings.push(prints_whole_link(group));
            refused.insert(name);
            continue;
        }
        // An exported file may be written late whatever it reads.
        let has_exported = group.exported_files().next().is_some();
        let read = group
            .links
            .iter()
            .filter(|link| has_exported || group.reads_addresses.contains(&link.name));
        let mut providers = read.filter_map(|link| Some(&link.provider.as_ref()?.group));
        let waits = providers.any(|provider| changed.contains(provider.as_str()));
        if (waits || is_late)
            && let Some(text) = last_good::text_of(document, name, &ids, bodies)
            && let Some(links) = links.get(name.as_str())
        {
            let links = links.clone();
            added.insert(name.to_string(), LateGroup { text, links });
        }
    }
    plan.late = added;
    plan.leave_out_late(&refused);
    findings
}

/// The error for a text that needs an address, but doesn't say so.
fn prints_whole_link(group: &CompiledGroup<'_>) -> Diagnostic {
    let name = &group.merged.name;
    let finding = Diagnostic::error(format!(
        "a text of `{name}` prints a link as a whole, with addresses that aren't known yet"
    ))
    .hint("Print `.IP4` of each of the link's instances: such a text waits for it");
    match group.links.first() {
        Some(link) => finding.at(link.span, "consumed here"),
        None => finding,
    }
}

/// Whether a plan has texts that wait for addresses.
pub fn is_staged(plan: &Plan) -> bool {
    !plan.late.is_empty() || plan.changes.iter().any(|change| !change.late.is_empty())
}

/// Whether a plan has texts that wait for addresses of a group's instances.
pub fn awaits(plan: &Plan, group: &GroupName) -> bool {
    let links = plan.late.values().flat_map(|late| late.links.values());
    links.flatten().any(|facts| *facts.group == *group.as_str())
}

/// A change with real addresses.
pub enum Settled {
    /// To be made.
    Change(Box<Change>),
    /// Not needed: the addresses didn't change.
    Unchanged,
}

/// The late changes of a group with the addresses that the state has now, by their place in the
/// plan. `last_good` is the group's last good configuration, to which they may be rolled back.
///
/// Fails with a message if an address is missing, or if a text can't be rendered.
pub fn settle(
    plan: &Plan,
    group: &GroupName,
    snapshot: &Snapshot,
    last_good: Option<&[u8]>,
) -> Result<Vec<(usize, Settled)>, String> {
    let of_group = |change: &&Change| change.address.group == *group && !change.late.is_empty();
    let mut settled: Vec<_> = with_renderer(plan, group, snapshot, |config, renderer| {
        let changes = plan.changes.iter().enumerate();
        let late = changes.filter(|(_, change)| of_group(change));
        late.map(|(index, change)| {
            let late = Late {
                plan,
                config,
                renderer,
                change,
            };
            Ok((index, late.settle()?))
        })
        .collect::<Result<_, _>>()
    })?;
    if let (Some(stored), Some(late)) = (last_good, plan.late.get(group.as_str())) {
        let (links, _) = with_addresses(&late.links, snapshot);
        let good = GoodGroup {
            name: group,
            stored,
            links: Some(&links),
            rules: plan.rules(),
            lineage: &plan.lineage,
            now: plan.created_at,
        };
        let changes = settled.iter_mut().filter_map(|(_, settled)| match settled {
            Settled::Change(change) => Some(&mut **change),
            Settled::Unchanged => None,
        });
        last_good::add_fallbacks(&good, Arc::default(), changes);
    }
    Ok(settled)
}

/// An instance whose exported files have addresses that are known now.
pub struct Completed {
    /// Its record, with the digest of that spec.
    pub record: Record,
    /// Its address.
    pub address: Address,
    /// Its spec with the files.
    pub spec: SpecBody,
}

/// The instances of a group whose exported files differ from what is recorded. `specs` reads
/// recorded specs.
///
/// Fails with a message if an address is missing, or if a file can't be rendered.
pub fn complete(
    plan: &Plan,
    group: &GroupName,
    snapshot: &Snapshot,
    specs: &dyn Fn(SpecDigest) -> Option<SpecBody>,
) -> Result<Vec<Completed>, String> {
    with_renderer(plan, group, snapshot, |config, renderer| {
        let exported: BTreeSet<&Arc<str>> = renderer.group.exported_files().collect();
        if exported.is_empty() {
            return Ok(Vec::new());
        }
        let mut completed = Vec::new();
        let records = snapshot.records.iter();
        for record in records.filter(|it| *it.group == *group.as_str() && !it.deposed) {
            let Some(mut spec) = specs(record.spec) else {
                continue;
            };
            let before = InstanceView::of_record(record, Arc::new(spec.clone()), record.spec);
            let address = Address::new(group.clone(), record.slot);
            let facts = recorded_facts(renderer, &before, record.slot);
            let kept = kept_images(config, &before);
            let rendered = render(renderer, &address, &facts, &kept)?;
            let mut differs = false;
            for (name, file) in rendered.files {
                let is_known = file.content.is_some();
                if is_known && exported.contains(&name) && spec.files.get(&name) != Some(&file) {
                    differs = true;
                    spec.files.insert(name, file);
                }
            }
            if differs {
                let digest = spec.clone().into_spec().digest();
                completed.push(Completed {
                    record: Record {
                        spec: digest,
                        ..record.clone()
                    },
                    address,
                    spec,
                });
            }
        }
        Ok(completed)
    })
}

/// Calls `run` with a renderer of the group whose links have the addresses of the state.
fn with_renderer<T>(
    plan: &Plan,
    group: &GroupName,
    snapshot: &Snapshot,
    run: impl FnOnce(&Config, &GroupRenderer<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let late = plan
        .late
        .get(group.as_str())
        .ok_or("the plan lacks its configuration")?;
    let (config, images, bodies): (Config, Images, Bodies) =
        last_good::read(late.text.text.as_bytes()).ok_or("its configuration can't be read")?;
    let mut sources = SourceMap::default();
    sources.add("planned", "");
    let mut findings = Diagnostics::default();
    let (links, missing) = with_addresses(&late.links, snapshot);
    let erb = Arc::default();
    let compiled = compile_alone(&config, &links, &sources, &bodies, erb, &mut findings);
    let own = compiled.groups.iter().find(|own| own.merged.name == *group);
    let own = own.ok_or("its configuration can't be read")?;
    let renderer = renderer(&config, own, &images, plan.rules(), &plan.lineage)
        .with_links(&links, Unknown::Unknown);
    run(&config, &renderer).map_err(|why| missing.unwrap_or(why))
}

/// Links with the addresses that the state has, and the first instance that has none there. That
/// matters only if a text reads it.
fn with_addresses(links: &LinkSet, snapshot: &Snapshot) -> (LinkSet, Option<String>) {
    let mut links = links.clone();
    let mut missing = None;
    for facts in links.values_mut().flatten() {
        let LinkFacts { group, members, .. } = facts;
        for member in members {
            let record = snapshot.live(group, member.slot);
            let found = record.map(|it| known_addresses(it.ip4.as_deref(), it.ip6.as_deref()));
            [member.ip4, member.ip6] = found.unwrap_or_default();
            if member.ip4.is_none() {
                let why = || format!("the address of {group}/{} isn't known", member.slot);
                missing.get_or_insert_with(why);
            }
        }
    }
    (links, missing)
}

fn recorded_facts(renderer: &GroupRenderer<'_>, view: &InstanceView, slot: u32) -> InstanceFacts {
    let no_ip6 = || view.ip4.is_some().then(|| "".into());
    InstanceFacts {
        ip4: view.ip4.clone(),
        ip6: view.ip6.clone().or_else(no_ip6),
        ..renderer.facts(slot, &view.instance_id, &view.place())
    }
}

/// The images that an instance keeps, even if newer ones exist.
fn kept_images(config: &Config, view: &InstanceView) -> KeptImages {
    let mut images = view.images.clone();
    images.retain(|name, _| {
        let image = config.images.get(name);
        image.is_some_and(|image| image.value.on_newer == OnNewer::NewOnly)
    });
    images
}

fn render(
    renderer: &GroupRenderer<'_>,
    address: &Address,
    facts: &InstanceFacts,
    kept: &KeptImages,
) -> Result<SpecBody, String> {
    let mut report = Report::default();
    let spec = renderer.render(address, facts, kept, &mut report);
    let spec = spec.ok_or_else(|| {
        let none = std::iter::empty::<&str>();
        let mut sources = SourceMap::default();
        sources.add("planned", "");
        let findings = report.findings(&sources, &none, false);
        let first = findings.into_iter().next();
        let why = first.map(|finding| match finding.label {
            Some(label) => label.text,
            None => finding.summary,
        });
        format!(
            "it can't be rendered with the new addresses: {}",
            why.unwrap_or_default()
        )
    })?;
    Ok(spec.to_body())
}

type KeptImages = BTreeMap<Arc<str>, Arc<str>>;

/// One late change.
struct Late<'a> {
    plan: &'a Plan,
    config: &'a Config,
    renderer: &'a GroupRenderer<'a>,
    change: &'a Change,
}

impl Late<'_> {
    fn settle(&self) -> Result<Settled, String> {
        let change = self.change;
        let (Some(after), before) = (change.after.as_deref(), change.before.as_deref()) else {
            return Ok(Settled::Unchanged);
        };
        let lifecycle = Lifecycle::of(&self.renderer.group.merged);
        let mut settled = change.clone();
        settled.late.clear();
        if let Some(before) = before.filter(|_| change.action != Action::Create) {
            let kept = self.kept(before, after, &lifecycle)?;
            let differs = diff::diff(before, &kept, self.plan.rules(), &lifecycle);
            let only_follows = change.reasons.iter().all(|reason| {
                matches!(
                    reason,
                    Reason::LinkChanged { .. } | Reason::CannotUpdate | Reason::Changed
                )
            });
            if differs.is_empty() && only_follows {
                return Ok(Settled::Unchanged);
            }
            let is_planned = |path: &str| {
                let mut planned = change.attributes.iter();
                planned.any(|attribute| attribute.path == path)
            };
            if let Some(other) = differs.iter().find(|differs| !is_planned(&differs.path)) {
                return Err(format!("a change of {} wasn't planned", other.path));
            }
            settled.attributes = differs;
            if change.action == Action::Update {
                settled.after = Some(Box::new(kept));
                return Ok(Settled::Change(Box::new(settled)));
            }
        }
        let slot = change.address.slot;
        let facts = self
            .renderer
            .facts(slot, &after.instance_id, &after.place());
        let none = KeptImages::new();
        let mut spec = render(self.renderer, &change.address, &facts, &none)?;
        if let Some(before) = before {
            diff::keep_ignored(&before.spec, &mut spec, &lifecycle);
        }
        let view = self.with_spec(after, spec, &facts);
        let rendered = (*view.spec).clone().into_spec();
        settled.deferred = self
            .renderer
            .deferred(&rendered, slot, &facts)
            .map(Box::new);
        settled.after = Some(Box::new(view));
        Ok(Settled::Change(Box::new(settled)))
    }

    /// The existing instance with the spec that it would have.
    fn kept(
        &self,
        before: &InstanceView,
        after: &InstanceView,
        lifecycle: &Lifecycle,
    ) -> Result<InstanceView, String> {
        let address = &self.change.address;
        let facts = recorded_facts(self.renderer, before, address.slot);
        let images = kept_images(self.config, before);
        let mut spec = render(self.renderer, address, &facts, &images)?;
        diff::keep_ignored(&before.spec, &mut spec, lifecycle);
        let kept = InstanceView {
            zone: Arc::clone(&after.zone),
            seat: after.seat.clone(),
            index: after.index,
            protected: after.protected,
            images: after.images.clone(),
            ..before.clone()
        };
        Ok(self.with_spec(&kept, spec, &facts))
    }

    fn with_spec(
        &self,
        view: &InstanceView,
        body: SpecBody,
        facts: &InstanceFacts,
    ) -> InstanceView {
        let spec = body.clone().into_spec();
        InstanceView {
            marks: self
                .renderer
                .marks(&self.change.address, facts, &BTreeMap::new(), &spec),
            digest: spec.digest(),
            links: self.renderer.link_traces().clone(),
            spec: Arc::new(body),
            ..view.clone()
        }
    }
}
