//! The plan of one group: its slots, what fills them, what should.
//!
//! In: a group ready to render, and its occupants. Out: changes, added to [`Planned`]. May not:
//! look at other groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_state::Record;

use super::build::{Inputs, Occupant, Presence, RecordAttributes, new_instance_id, recorded_side};
use super::change::{
    Action, AttributeChange, Change, Drift, DriftKind, LeftOut, Mode, Reason, Side, all_tags,
};
use super::diff::{self, Lifecycle};
use super::drift;
use super::slots;
use crate::address::{Address, GroupName, InstanceId};
use crate::config::model::OnNewer;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::Observation;
use crate::provider::rules::Effect;
use crate::render::data::InstanceFacts;
use crate::render::instance::Report;
use crate::render::renderer::{GroupRenderer, fixed_address};
use crate::resolve::subnets::Placer;
use crate::spec::InstanceSpec;

/// Slots rendered by one thread at least: below it a thread costs more than it gives.
const SLOTS_A_THREAD: usize = 2_000;

/// What all groups' plans add up to.
#[derive(Debug, Default)]
pub struct Planned {
    /// Everything but what stays as it is.
    pub changes: Vec<Change>,
    /// What stays as it is, where the caller asked to keep it.
    pub unchanged: Vec<Change>,
    /// How many stay as they are.
    pub no_op: usize,
    /// What differs between record and cloud.
    pub drift: Vec<Drift>,
    /// What could not be planned.
    pub left_out: Vec<LeftOut>,
}

/// Plans one group.
pub struct GroupPlanner<'a> {
    /// Everything that is known.
    pub inputs: &'a Inputs<'a>,
    /// The group, ready to render.
    pub renderer: &'a GroupRenderer<'a>,
    /// The state's lineage.
    pub lineage: &'a str,
    /// The group's former name, if its occupants were recorded under it.
    pub moved_from: Option<GroupName>,
}

/// A slot that is filled, recorded and wanted.
#[derive(Clone, Copy)]
struct Kept<'a> {
    slot: u32,
    record: &'a Record,
    presence: Presence<'a>,
}

/// What rendering said of a kept slot.
enum Verdict {
    /// Nothing to do; the spec is there if the caller asked to keep it.
    Unchanged(Option<Box<InstanceSpec>>),
    /// To be looked at attribute by attribute.
    Candidate(Box<InstanceSpec>),
    /// It could not be rendered.
    Failed,
}

impl GroupPlanner<'_> {
    /// Plans all slots. `occupants` are the group's, by slot.
    pub fn plan(
        &self,
        occupants: &BTreeMap<u32, Occupant<'_>>,
        placer: &mut Placer<'_>,
        planned: &mut Planned,
        findings: &mut Diagnostics,
    ) {
        match self.inputs.options.mode {
            Mode::Destroy => self.destroy(occupants, planned, findings),
            Mode::RefreshOnly => self.refresh_only(occupants, planned, findings),
            Mode::Normal => self.converge(occupants, placer, planned, findings),
        }
    }

    fn address(&self, slot: u32) -> Address {
        Address::new(self.renderer.group.merged.name.clone(), slot)
    }

    fn converge(
        &self,
        occupants: &BTreeMap<u32, Occupant<'_>>,
        placer: &mut Placer<'_>,
        planned: &mut Planned,
        findings: &mut Diagnostics,
    ) {
        let group = &self.renderer.group.merged;
        let filled = occupants.keys().copied().collect();
        let size = if group.ignores_size() && !occupants.is_empty() {
            occupants.len() as u32
        } else {
            group.size
        };
        let slots = slots::arrange(&filled, size);
        let selected = |slots: &[u32]| -> Vec<u32> {
            let selects = |slot: &u32| self.inputs.options.selects(&self.address(*slot));
            slots.iter().copied().filter(selects).collect()
        };
        let mut report = Report::default();

        let mut kept = Vec::new();
        for slot in selected(&slots.kept) {
            match occupants[&slot] {
                Occupant::Recorded { record, presence } => kept.push(Kept {
                    slot,
                    record,
                    presence,
                }),
                Occupant::Unrecorded(observation) => {
                    self.adopt(slot, observation, &mut report, planned, findings);
                }
            }
        }
        let (verdicts, rendering) = self.render_kept(&kept);
        report.merge(rendering);
        let mut failed = 0;
        for (kept, verdict) in kept.iter().zip(verdicts) {
            match verdict {
                Verdict::Unchanged(spec) => {
                    planned.no_op += 1;
                    if let Some(spec) = spec {
                        self.keep_unchanged(kept, &spec, planned);
                    }
                }
                Verdict::Candidate(spec) => {
                    self.compare(kept, &spec, placer, &mut report, planned, findings);
                }
                Verdict::Failed => failed += 1,
            }
        }
        for slot in selected(&slots.grown) {
            let address = self.address(slot);
            let zone = Arc::clone(group.zone_of(slot));
            match self.new_side(slot, zone, None, placer, &mut report, findings) {
                Some((side, deferred)) => planned.changes.push(Change {
                    address,
                    deposed: None,
                    action: Action::Create,
                    reasons: vec![Reason::GroupGrew],
                    importing: None,
                    before: None,
                    after: Some(Box::new(side)),
                    attributes: Vec::new(),
                    deferred,
                    drain_timeout_ms: 0,
                }),
                None => failed += 1,
            }
        }
        for slot in selected(&slots.given_up) {
            let address = self.address(slot);
            match occupants[&slot] {
                Occupant::Recorded { record, presence } => {
                    self.end(
                        &address,
                        record,
                        presence,
                        Reason::GroupShrank,
                        planned,
                        findings,
                    );
                }
                Occupant::Unrecorded(observation) => {
                    planned.note_stranger(&address, observation, DriftKind::Unknown);
                    planned.adopt(self.inputs, &address, observation, None, findings);
                }
            }
        }
        self.settle(&report, failed, planned, findings);
    }

    /// Turns what rendering found into findings, and counts what is left out because of it.
    fn settle(
        &self,
        report: &Report,
        failed: usize,
        planned: &mut Planned,
        findings: &mut Diagnostics,
    ) {
        let group = &self.renderer.group.merged;
        let names = group.vars.as_ref().and_then(|vars| vars.entries());
        let names = names.into_iter().flatten().map(|(name, _)| &**name);
        findings.extend(report.findings(self.inputs.sources, &names, self.inputs.options.strict));
        let mut why = Vec::new();
        for (image, _, _) in report.failed_images() {
            if let Some(Err(failure)) = self.inputs.images.images.get(image) {
                findings.push(
                    Diagnostic::error(format!("image `{image}` can't be resolved"))
                        .at(failure.span, failure.message.clone())
                        .detail(format!(
                            "instances of {} can't be planned without it",
                            group.name
                        ))
                        .hint("Correct its filters, or give it a `fallback`"),
                );
            }
            why.push(format!("image `{image}` can't be resolved"));
        }
        if failed > 0 {
            planned.left_out.push(LeftOut {
                address: group.name.to_string(),
                count: failed,
                why: if why.is_empty() {
                    "they can't be rendered or placed".to_owned()
                } else {
                    why.join("; ")
                },
            });
        }
    }

    fn facts(&self, slot: u32, id: &str, zone: &Arc<str>) -> InstanceFacts {
        let group = &self.renderer.group.merged;
        InstanceFacts {
            id: id.into(),
            kind: Arc::clone(&group.kind),
            arch: group.arch.as_str().into(),
            instance_type: Arc::clone(&self.renderer.head(slot).instance_type),
            slot,
            index_in_zone: slot / group.zones.len() as u32,
            zone: Arc::clone(zone),
            short_id: InstanceId::from(id).short().into(),
            ip4: None,
            ip6: None,
        }
    }

    fn recorded_facts(&self, slot: u32, record: &Record) -> InstanceFacts {
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        InstanceFacts {
            ip4: text(&record.ip4),
            ip6: text(&record.ip6).or_else(|| record.ip4.is_some().then(|| "".into())),
            ..self.facts(slot, &record.instance_id, &record.zone.as_str().into())
        }
    }

    /// The images that an instance keeps, whatever they resolve to now (`on_newer: new_only`).
    fn kept_images(&self, record: &Record) -> BTreeMap<Arc<str>, Arc<str>> {
        if !self.renderer.pinned() {
            return BTreeMap::new();
        }
        let mut images = RecordAttributes::parse(&record.attributes).images;
        images.retain(|name, _| {
            let image = self.inputs.config.images.get(name);
            image.is_some_and(|image| image.value.on_newer == OnNewer::NewOnly)
        });
        images
    }

    /// Renders the kept slots with their recorded identity, on all cores where there are many.
    fn render_kept(&self, kept: &[Kept<'_>]) -> (Vec<Verdict>, Report) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let chunk = kept.len().div_ceil(threads).max(SLOTS_A_THREAD);
        let render = |kept: &[Kept<'_>]| {
            let mut report = Report::default();
            let verdicts: Vec<_> = kept
                .iter()
                .map(|kept| self.verdict(kept, &mut report))
                .collect();
            (verdicts, report)
        };
        if kept.len() <= chunk {
            return render(kept);
        }
        let mut verdicts = Vec::with_capacity(kept.len());
        let mut report = Report::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> = kept
                .chunks(chunk)
                .map(|chunk| scope.spawn(move || render(chunk)))
                .collect();
            for worker in workers {
                let (some, its_report) = worker.join().expect("rendering doesn't panic");
                verdicts.extend(some);
                report.merge(its_report);
            }
        });
        (verdicts, report)
    }

    fn verdict(&self, kept: &Kept<'_>, report: &mut Report) -> Verdict {
        let address = self.address(kept.slot);
        let facts = self.recorded_facts(kept.slot, kept.record);
        let images = self.kept_images(kept.record);
        let Some(spec) = self.renderer.render(&address, &facts, &images, report) else {
            return Verdict::Failed;
        };
        let unchanged = spec.digest == kept.record.spec
            && matches!(kept.presence, Presence::InSync)
            && self.moved_from.is_none()
            && !self.inputs.options.replaces(&address)
            && self.expired(kept.record).is_none()
            && self.stays_in_zone(&kept.record.zone);
        if unchanged {
            Verdict::Unchanged(self.inputs.options.keep_unchanged.then(|| Box::new(spec)))
        } else {
            Verdict::Candidate(Box::new(spec))
        }
    }

    fn stays_in_zone(&self, zone: &str) -> bool {
        self.renderer
            .group
            .merged
            .zones
            .iter()
            .any(|listed| &**listed == zone)
    }

    fn expired(&self, record: &Record) -> Option<u64> {
        let expiry = self.inputs.config.shard.expiry;
        let limit = [expiry.eligible_age, expiry.forced_age]
            .into_iter()
            .flatten()
            .min()?;
        let age = self.inputs.now.since(record.created_at.into());
        (age > limit).then_some(age.as_secs())
    }

    fn keep_unchanged(&self, kept: &Kept<'_>, spec: &InstanceSpec, planned: &mut Planned) {
        let side = side_of(kept.record, spec);
        planned.unchanged.push(Change {
            address: self.address(kept.slot),
            deposed: None,
            action: Action::NoOp,
            reasons: Vec::new(),
            importing: None,
            before: Some(Box::new(side.clone())),
            after: Some(Box::new(side)),
            attributes: Vec::new(),
            deferred: None,
            drain_timeout_ms: 0,
        });
    }

    /// Compares a slot attribute by attribute and plans what follows.
    fn compare(
        &self,
        kept: &Kept<'_>,
        spec: &InstanceSpec,
        placer: &mut Placer<'_>,
        report: &mut Report,
        planned: &mut Planned,
        findings: &mut Diagnostics,
    ) {
        let inputs = self.inputs;
        let group = &self.renderer.group.merged;
        let address = self.address(kept.slot);
        let Some(recorded) = recorded_side(inputs, kept.record) else {
            planned.left_out(&address, "its recorded spec can't be read");
            return;
        };
        if matches!(kept.presence, Presence::Missing) {
            planned.note_missing(&address, kept.record, &recorded);
            let zone = self.zone_for(kept);
            let made = self.new_side(kept.slot, zone, Some(&recorded), placer, report, findings);
            if let Some((side, deferred)) = made {
                planned.changes.push(Change {
                    address,
                    deposed: None,
                    action: Action::Create,
                    reasons: vec![Reason::Missing],
                    importing: None,
                    before: Some(Box::new(recorded)),
                    after: Some(Box::new(side)),
                    attributes: Vec::new(),
                    deferred,
                    drain_timeout_ms: 0,
                });
            } else {
                planned.left_out(&address, "it can't be rendered or placed");
            }
            return;
        }
        let lifecycle = Lifecycle {
            ignore_changes: group.ignore_changes.clone(),
            replace_on: group.replace_on.clone(),
        };
        let former = self
            .moved_from
            .as_ref()
            .map(|from| Address::new(from.clone(), kept.slot));
        let (before, drifted) = match kept.presence {
            Presence::Differs(observation) => {
                let recorded_at = former.as_ref().unwrap_or(&address);
                match self.drift(recorded_at, &recorded, observation, &lifecycle, planned) {
                    Some(seen) => seen,
                    None => (recorded.clone(), Vec::new()),
                }
            }
            _ => (recorded.clone(), Vec::new()),
        };
        let mut after = side_of(kept.record, spec);
        after.images = self.images_of(&self.kept_images(kept.record));
        if !lifecycle.ignore_changes.is_empty() {
            let mut body = (*after.spec).clone();
            diff::keep_ignored(&before.spec, &mut body, &lifecycle);
            after.digest = body.clone().into_spec().digest;
            after.spec = Arc::new(body);
        }
        after.zone = self.zone_for(kept);
        leave_foreign_subnet(&before, &mut after, placer);
        let mut attributes = diff::diff(&before, &after, inputs.rules, &lifecycle);
        attributes.extend(
            drifted
                .into_iter()
                .filter(|change| !lifecycle.ignores(&change.path)),
        );
        attributes.sort_by(|a, b| a.path.cmp(&b.path));
        attributes.dedup_by(|a, b| a.path == b.path);
        for change in &mut attributes {
            let place = group.place_of(kept.slot, &change.path);
            change.written_at = place.map(|span| inputs.sources.place(span));
        }
        let reasons = self.reasons(kept, &address, &attributes, &before, former.as_ref());
        if reasons.is_empty() {
            planned.no_op += 1;
            if inputs.options.keep_unchanged {
                self.keep_unchanged(kept, spec, planned);
            }
            return;
        }
        let replaced = reasons.iter().any(|reason| {
            matches!(
                reason,
                Reason::CannotUpdate | Reason::Requested | Reason::Expired { .. }
            )
        });
        if !replaced {
            planned.changes.push(Change {
                address,
                deposed: None,
                action: Action::Update,
                reasons,
                importing: None,
                before: Some(Box::new(before)),
                after: Some(Box::new(after)),
                attributes,
                deferred: None,
                drain_timeout_ms: 0,
            });
            return;
        }
        if let Some(span) = group.prevent_destroy {
            findings.push(prevented(&address, span, "replaced"));
            planned.left_out(&address, "`lifecycle.prevent_destroy` is set");
            return;
        }
        let zone = Arc::clone(&after.zone);
        let Some((mut new, deferred)) =
            self.new_side(kept.slot, zone, Some(&recorded), placer, report, findings)
        else {
            planned.left_out(&address, "its successor can't be rendered or placed");
            return;
        };
        if !lifecycle.ignore_changes.is_empty() {
            let mut body = (*new.spec).clone();
            diff::keep_ignored(&before.spec, &mut body, &lifecycle);
            new.digest = body.clone().into_spec().digest;
            new.spec = Arc::new(body);
        }
        // Two instances can't have one address: where it is fixed, the old one goes first.
        let same_address =
            fixed_address(&new.spec.args).is_some_and(|fixed| before.ip4.as_deref() == Some(fixed));
        planned.changes.push(Change {
            address,
            deposed: None,
            action: if same_address {
                Action::DeleteThenCreate
            } else {
                Action::CreateThenDelete
            },
            reasons,
            importing: None,
            before: Some(Box::new(before)),
            after: Some(Box::new(new)),
            attributes,
            deferred,
            drain_timeout_ms: group.drain_timeout.as_millis() as u64,
        });
    }

    /// The zone a slot's instance should be in: its own, as long as the group lists it.
    fn zone_for(&self, kept: &Kept<'_>) -> Arc<str> {
        if self.stays_in_zone(&kept.record.zone) {
            kept.record.zone.as_str().into()
        } else {
            Arc::clone(self.renderer.group.merged.zone_of(kept.slot))
        }
    }

    /// Why anything is done; the cause first. Nothing: nothing is.
    fn reasons(
        &self,
        kept: &Kept<'_>,
        address: &Address,
        attributes: &[AttributeChange],
        before: &Side,
        former: Option<&Address>,
    ) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if let Some(reason) = self.newer_image(attributes, before) {
            reasons.push(reason);
        }
        if attributes
            .iter()
            .any(|change| change.effect == Effect::Replace)
        {
            reasons.push(Reason::CannotUpdate);
        }
        if self.inputs.options.replaces(address) {
            reasons.push(Reason::Requested);
        }
        if let Some(age_seconds) = self.expired(kept.record) {
            reasons.push(Reason::Expired { age_seconds });
        }
        if let Some(from) = former {
            reasons.push(Reason::Moved {
                from: from.to_string(),
            });
        }
        if attributes
            .iter()
            .any(|change| change.effect != Effect::Replace)
        {
            let drifted =
                matches!(kept.presence, Presence::Differs(_)) && before.digest != kept.record.spec;
            reasons.push(if drifted {
                Reason::Drifted
            } else {
                Reason::Changed
            });
        }
        reasons
    }

    fn newer_image(&self, attributes: &[AttributeChange], before: &Side) -> Option<Reason> {
        before.images.iter().find_map(|(name, from)| {
            let to = self.inputs.images.images.get(name)?.as_ref().ok()?;
            let changed = *from != to.id
                && attributes.iter().any(|change| {
                    let text = |value: &Option<serde_json::Value>, id: &str| {
                        value.as_ref().and_then(|value| value.as_str()) == Some(id)
                    };
                    text(&change.before, from) && text(&change.after, &to.id)
                });
            changed.then(|| Reason::NewerImage {
                name: Arc::clone(name),
                from: from.to_string(),
                to: to.id.to_string(),
            })
        })
    }

    /// What the cloud reports of a kept instance against its record: the record as the cloud has
    /// it, and the changes it takes to undo what no spec shows (managed tags, its state).
    fn drift(
        &self,
        recorded_at: &Address,
        recorded: &Side,
        observation: &Observation,
        lifecycle: &Lifecycle,
        planned: &mut Planned,
    ) -> Option<(Side, Vec<AttributeChange>)> {
        let inputs = self.inputs;
        let attributes = observation.attributes().ok()?;
        let identity = inputs.identity;
        let tags = all_tags(
            inputs.rules,
            &identity.cluster,
            &identity.shard,
            recorded_at,
            recorded,
        );
        let changes = drift::compare(recorded, &tags, observation, &attributes, inputs.rules);
        if changes.is_empty() {
            return None;
        }
        let undo: Vec<_> = changes
            .iter()
            .filter(|change| {
                change.path == drift::STATE
                    || change.path.strip_prefix("tags.").is_some_and(|key| {
                        inputs.rules.is_managed_tag(key)
                            || key == "Name" && !recorded.spec.tags.contains_key("Name")
                    })
            })
            .map(|change| AttributeChange {
                path: change.path.clone(),
                before: change.observed.clone(),
                after: change.recorded.clone(),
                unknown: false,
                effect: Effect::InPlace,
                written_at: None,
            })
            .collect();
        planned.drift.push(Drift {
            address: recorded_at.to_string(),
            kind: DriftKind::Changed,
            provider_id: observation.provider_id.clone(),
            accepted: changes.iter().all(|change| lifecycle.ignores(&change.path)),
            changes,
            before: Some(Box::new(recorded.clone())),
        });
        Some((
            drift::overlay(recorded, observation, &attributes, inputs.rules),
            undo,
        ))
    }

    fn images_of(&self, kept: &BTreeMap<Arc<str>, Arc<str>>) -> BTreeMap<Arc<str>, Arc<str>> {
        self.renderer
            .group
            .images
            .iter()
            .filter_map(|name| {
                let id = kept.get(name).cloned().or_else(|| {
                    let image = self.inputs.images.images.get(name)?.as_ref().ok()?;
                    Some(Arc::clone(&image.id))
                })?;
                Some((Arc::clone(name), id))
            })
            .collect()
    }

    /// A new instance for a slot: its identity, its place, its spec.
    fn new_side(
        &self,
        slot: u32,
        zone: Arc<str>,
        predecessor: Option<&Side>,
        placer: &mut Placer<'_>,
        report: &mut Report,
        findings: &mut Diagnostics,
    ) -> Option<(Side, Option<Box<crate::render::files::Deferred>>)> {
        let address = self.address(slot);
        let group = &self.renderer.group.merged;
        let known = self.inputs.snapshot.map_or(0, |snapshot| {
            snapshot.generation(address.group.as_str(), slot)
        });
        let generation = known.max(predecessor.map_or(0, |side| side.generation)) + 1;
        let id = new_instance_id(
            &group.kind,
            self.inputs.now,
            self.lineage,
            &address,
            generation,
        );
        let facts = self.facts(slot, id.as_str(), &zone);
        let spec = self
            .renderer
            .render(&address, &facts, &BTreeMap::new(), report)?;
        let change = group.overrides.get(&slot);
        let pool = change.map_or(group.subnet_pool.as_ref(), |c| c.subnet_pool.as_ref());
        let subnet = match pool.map(|pool| placer.place(pool, &zone)).transpose() {
            Ok(subnet) => subnet,
            Err(finding) => {
                findings.push(finding.about(&address.group));
                return None;
            }
        };
        let deferred = self.renderer.deferred(&spec, slot, &facts).map(Box::new);
        let side = Side {
            instance_id: id.as_str().into(),
            provider_id: None,
            generation,
            zone,
            subnet,
            ip4: None,
            ip6: None,
            created_at: None,
            images: self.images_of(&BTreeMap::new()),
            version: None,
            digest: spec.digest,
            spec: Arc::new(spec.to_body()),
        };
        Some((side, deferred))
    }

    fn adopt(
        &self,
        slot: u32,
        observation: &Observation,
        report: &mut Report,
        planned: &mut Planned,
        findings: &mut Diagnostics,
    ) {
        let address = self.address(slot);
        planned.note_stranger(&address, observation, DriftKind::Unknown);
        let id = observation
            .instance_id
            .as_deref()
            .unwrap_or(&observation.provider_id);
        let zone: Arc<str> = observation.zone.as_str().into();
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        let facts = InstanceFacts {
            ip4: text(&observation.ip4),
            ip6: text(&observation.ip6).or_else(|| Some("".into())),
            ..self.facts(slot, id, &zone)
        };
        let Some(spec) = self
            .renderer
            .render(&address, &facts, &BTreeMap::new(), report)
        else {
            planned.left_out(&address, "it can't be rendered");
            return;
        };
        planned.adopt(
            self.inputs,
            &address,
            observation,
            Some(&spec.to_body()),
            findings,
        );
        if let Some(side) = planned
            .changes
            .last_mut()
            .and_then(|change| change.after.as_mut())
        {
            side.images = self.images_of(&BTreeMap::new());
        }
    }

    fn end(
        &self,
        address: &Address,
        record: &Record,
        presence: Presence<'_>,
        reason: Reason,
        planned: &mut Planned,
        findings: &mut Diagnostics,
    ) {
        let group = &self.renderer.group.merged;
        if let Some(span) = group.prevent_destroy
            && !matches!(presence, Presence::Missing)
        {
            findings.push(prevented(address, span, "deleted"));
            planned.left_out(address, "`lifecycle.prevent_destroy` is set");
            return;
        }
        let drain = group.drain_timeout.as_millis() as u64;
        planned.end(self.inputs, address, record, presence, None, reason, drain);
    }

    fn destroy(
        &self,
        occupants: &BTreeMap<u32, Occupant<'_>>,
        planned: &mut Planned,
        findings: &mut Diagnostics,
    ) {
        for (slot, occupant) in occupants {
            let address = self.address(*slot);
            if !self.inputs.options.selects(&address) {
                continue;
            }
            match occupant {
                Occupant::Recorded { record, presence } => {
                    self.end(
                        &address,
                        record,
                        *presence,
                        Reason::Destroy,
                        planned,
                        findings,
                    );
                }
                Occupant::Unrecorded(observation) => {
                    planned.note_stranger(&address, observation, DriftKind::Unknown);
                    planned.adopt(self.inputs, &address, observation, None, findings);
                }
            }
        }
    }

    /// Changes nothing but the record, so that it says what the cloud says.
    fn refresh_only(
        &self,
        occupants: &BTreeMap<u32, Occupant<'_>>,
        planned: &mut Planned,
        findings: &mut Diagnostics,
    ) {
        for (slot, occupant) in occupants {
            let address = self.address(*slot);
            if !self.inputs.options.selects(&address) {
                continue;
            }
            match occupant {
                Occupant::Recorded {
                    record,
                    presence: Presence::Missing,
                } => {
                    let missing = Presence::Missing;
                    self.end(
                        &address,
                        record,
                        missing,
                        Reason::Missing,
                        planned,
                        findings,
                    );
                }
                Occupant::Recorded {
                    record,
                    presence: Presence::Differs(observation),
                } => {
                    let lifecycle = Lifecycle::default();
                    let seen = recorded_side(self.inputs, record).and_then(|side| {
                        let seen = self.drift(&address, &side, observation, &lifecycle, planned)?;
                        Some((side, seen.0))
                    });
                    match seen {
                        Some((before, after)) => planned.changes.push(Change {
                            address,
                            deposed: None,
                            action: Action::Adopt,
                            reasons: vec![Reason::RefreshOnly],
                            importing: Some(record.provider_id.clone()),
                            attributes: diff::diff(&before, &after, self.inputs.rules, &lifecycle),
                            before: Some(Box::new(before)),
                            after: Some(Box::new(after)),
                            deferred: None,
                            drain_timeout_ms: 0,
                        }),
                        None => planned.no_op += 1,
                    }
                }
                Occupant::Recorded { .. } => planned.no_op += 1,
                Occupant::Unrecorded(observation) => {
                    planned.note_stranger(&address, observation, DriftKind::Unknown);
                    planned.adopt(self.inputs, &address, observation, None, findings);
                }
            }
        }
    }
}

fn prevented(address: &Address, span: crate::config::source::Span, what: &str) -> Diagnostic {
    Diagnostic::error(format!(
        "{address} would be {what}, which its group prevents"
    ))
    .at(span, "set here")
    .about(address)
    .hint("Remove `prevent_destroy`, or leave the instance out with `--exclude`")
}

/// A record's identity with a spec rendered for it.
fn side_of(record: &Record, spec: &InstanceSpec) -> Side {
    let text = |text: &Option<String>| text.as_deref().map(Arc::from);
    Side {
        instance_id: record.instance_id.as_str().into(),
        provider_id: Some(record.provider_id.clone()),
        generation: record.generation,
        zone: record.zone.as_str().into(),
        subnet: text(&record.subnet),
        ip4: text(&record.ip4),
        ip6: text(&record.ip6),
        created_at: Some(record.created_at.into()),
        images: RecordAttributes::parse(&record.attributes).images,
        version: Some(record.version),
        spec: Arc::new(spec.to_body()),
        digest: spec.digest,
    }
}

/// A subnet that is in none of the new pool's has to be left; `after` says so.
fn leave_foreign_subnet(before: &Side, after: &mut Side, placer: &Placer<'_>) {
    let pool = after.spec.head.subnet_pool.as_deref();
    if pool == before.spec.head.subnet_pool.as_deref() {
        return;
    }
    let stays = match (pool, before.subnet.as_deref()) {
        (Some(pool), Some(subnet)) => placer.pool_has(pool, subnet),
        (None, None) => true,
        _ => false,
    };
    if !stays {
        after.subnet = None;
    }
}
