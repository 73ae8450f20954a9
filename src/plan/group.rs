//! The plan of one group: its slots, what fills them, what should.
//!
//! In: a group ready to render, and its occupants. Out: changes, added to [`Planned`]. May not:
//! look at other groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nstance_state::Record;

use super::actual::{Occupant, Presence};
use super::build::Inputs;
use super::change::{Action, Change, DriftKind, InstanceView, Mode, Reason};
use super::diff::{self, Lifecycle};
use super::planned::{Planned, RecordAttributes, recorded_view, view_of};
use super::slots;
use super::totals::LeftOut;
use crate::address::{Address, GroupName};
use crate::config::model::OnNewer;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::marks::Marks;
use crate::provider::Observation;
use crate::render::data::InstanceFacts;
use crate::render::instance::Report;
use crate::render::renderer::GroupRenderer;
use crate::resolve::subnets::Placer;
use crate::spec::InstanceSpec;
use crate::threads::cores;

/// Slots rendered by one thread at least: below it a thread costs more than it gives.
const SLOTS_A_THREAD: usize = 2_000;

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
pub(super) struct MatchedSlot<'a> {
    pub(super) slot: u32,
    pub(super) record: &'a Record,
    pub(super) presence: Presence<'a>,
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

    pub(super) fn address(&self, slot: u32) -> Address {
        Address::new(self.renderer.group.merged.name.clone(), slot)
    }

    /// Whether whoever owns the size took the instance away.
    fn gave_up(&self, occupant: &Occupant<'_>) -> bool {
        let missing = matches!(
            occupant,
            Occupant::Recorded {
                presence: Presence::Missing,
                ..
            }
        );
        missing && self.renderer.group.merged.ignores_size()
    }

    fn converge(
        &self,
        occupants: &BTreeMap<u32, Occupant<'_>>,
        placer: &mut Placer<'_>,
        planned: &mut Planned,
        findings: &mut Diagnostics,
    ) {
        let group = &self.renderer.group.merged;
        let filled: BTreeSet<u32> = occupants
            .iter()
            .filter(|(_, occupant)| !self.gave_up(occupant))
            .map(|(slot, _)| *slot)
            .collect();
        let size = if group.ignores_size() && !occupants.is_empty() {
            filled.len() as u32
        } else {
            group.size
        };
        let slots = slots::arrange(&filled, size);
        let selected = |slots: &[u32]| -> Vec<u32> {
            let selects = |slot: &u32| self.inputs.options.selects(&self.address(*slot));
            slots.iter().copied().filter(selects).collect()
        };
        let mut report = Report::default();
        // One stands for all: most of them differ only in what is rendered into one text.
        let wanted = [selected(&slots.kept), selected(&slots.grown)].concat();
        let first = wanted.iter().min();
        let is_sound = first.is_none_or(|slot| self.renderer.check_userdata(*slot, &mut report));

        let mut kept = Vec::new();
        for slot in selected(&slots.kept) {
            match occupants[&slot] {
                Occupant::Recorded { record, presence } => kept.push(MatchedSlot {
                    slot,
                    record,
                    presence,
                }),
                Occupant::Unrecorded(observation) => {
                    self.adopt(slot, observation, &mut report, planned, findings);
                }
            }
        }
        let verdicts = if is_sound {
            let (verdicts, rendering) = self.render_kept(&kept);
            report.merge(rendering);
            verdicts
        } else {
            kept.iter().map(|_| Verdict::Failed).collect()
        };
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
            if !is_sound {
                failed += 1;
                continue;
            }
            let address = self.address(slot);
            let zone = Arc::clone(group.zone_of(slot));
            match self.new_side(slot, zone, None, placer, &mut report, findings) {
                Some(new) => planned.changes.push(Change {
                    address,
                    deposed: None,
                    action: Action::Create,
                    reasons: vec![Reason::GroupGrew],
                    importing: None,
                    before: None,
                    after: Some(Box::new(new.side)),
                    attributes: Vec::new(),
                    deferred: new.deferred,
                    alternatives: new.alternatives,
                    drain_timeout_ms: 0,
                }),
                None => failed += 1,
            }
        }
        let gone: Vec<u32> = occupants
            .keys()
            .copied()
            .filter(|slot| !filled.contains(slot))
            .collect();
        let mut given_up = selected(&slots.given_up);
        given_up.extend(selected(&gone));
        for slot in given_up {
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

    pub(super) fn facts(&self, slot: u32, id: &str, zone: &Arc<str>) -> InstanceFacts {
        let group = &self.renderer.group.merged;
        let instance_type = &self.renderer.head(slot).instance_type;
        InstanceFacts::of_slot(group, slot, instance_type, id, zone)
    }

    pub(super) fn recorded_facts(&self, slot: u32, record: &Record) -> InstanceFacts {
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        InstanceFacts {
            ip4: text(&record.ip4),
            ip6: text(&record.ip6).or_else(|| record.ip4.is_some().then(|| "".into())),
            ..self.facts(slot, &record.instance_id, &record.zone.as_str().into())
        }
    }

    /// The images that an instance keeps, whatever they resolve to now (`on_newer: new_only`).
    pub(super) fn kept_images(&self, record: &Record) -> BTreeMap<Arc<str>, Arc<str>> {
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
    fn render_kept(&self, kept: &[MatchedSlot<'_>]) -> (Vec<Verdict>, Report) {
        let threads = cores();
        let chunk = kept.len().div_ceil(threads).max(SLOTS_A_THREAD);
        let render = |kept: &[MatchedSlot<'_>]| {
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

    fn verdict(&self, kept: &MatchedSlot<'_>, report: &mut Report) -> Verdict {
        let address = self.address(kept.slot);
        let facts = self.recorded_facts(kept.slot, kept.record);
        let images = self.kept_images(kept.record);
        let Some(spec) = self.renderer.render(&address, &facts, &images, report) else {
            return Verdict::Failed;
        };
        let unchanged = spec.digest() == kept.record.spec
            && matches!(kept.presence, Presence::InSync)
            && self.moved_from.is_none()
            && !self.inputs.options.replaces(&address)
            && self.expired(kept.record).is_none()
            && self.stays_in_zone(&kept.record.zone)
            && RecordAttributes::parse(&kept.record.attributes).protected
                == self.renderer.group.merged.protect;
        if unchanged {
            Verdict::Unchanged(self.inputs.options.keep_unchanged.then(|| Box::new(spec)))
        } else {
            Verdict::Candidate(Box::new(spec))
        }
    }

    pub(super) fn stays_in_zone(&self, zone: &str) -> bool {
        self.renderer
            .group
            .merged
            .zones
            .iter()
            .any(|listed| &**listed == zone)
    }

    pub(super) fn expired(&self, record: &Record) -> Option<u64> {
        let expiry = self.inputs.config.shard.expiry;
        let limit = [expiry.eligible_age, expiry.forced_age, expiry.ondemand_age]
            .into_iter()
            .flatten()
            .min()?;
        let age = self.inputs.now.since(record.created_at.into());
        (age > limit).then_some(age.as_secs())
    }

    pub(super) fn keep_unchanged(
        &self,
        kept: &MatchedSlot<'_>,
        spec: &InstanceSpec,
        planned: &mut Planned,
    ) {
        let mut side = view_of(kept.record, Arc::new(spec.to_body()), spec.digest());
        side.marks = self.marks(kept, spec, &side);
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
            alternatives: Vec::new(),
            drain_timeout_ms: 0,
        });
    }

    /// What of a kept slot's spec mustn't be shown, today or by its record.
    pub(super) fn marks(
        &self,
        kept: &MatchedSlot<'_>,
        spec: &InstanceSpec,
        recorded: &InstanceView,
    ) -> Arc<Marks> {
        let address = self.address(kept.slot);
        let facts = self.recorded_facts(kept.slot, kept.record);
        let images = self.kept_images(kept.record);
        let marks = self.renderer.marks(&address, &facts, &images, spec);
        if recorded.marks.is_empty() || recorded.digest != spec.digest() || marks == recorded.marks
        {
            return marks;
        }
        Arc::new(marks.or(&recorded.marks, &recorded.spec))
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
        let marks = self
            .renderer
            .marks(&address, &facts, &BTreeMap::new(), &spec);
        let wanted = spec.to_body();
        planned.adopt(self.inputs, &address, observation, Some(&wanted), findings);
        if let Some(side) = planned
            .changes
            .last_mut()
            .and_then(|change| change.after.as_mut())
        {
            side.images = self.images_of(&BTreeMap::new());
            side.marks = Arc::new(marks.carried_to(&wanted, &side.spec));
            side.protected = self.renderer.group.merged.protect;
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
        planned.end(
            self.inputs,
            address,
            record,
            presence,
            None,
            reason,
            drain,
            findings,
        );
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
                    let seen = recorded_view(self.inputs, record).and_then(|side| {
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
                            alternatives: Vec::new(),
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

pub(super) fn prevented(
    address: &Address,
    span: crate::config::source::Span,
    what: &str,
) -> Diagnostic {
    // One for all slots of the group: the same finding is kept once, and what is left out names
    // each of them.
    let group = &address.group;
    Diagnostic::error(format!(
        "instances of {group} would be {what}, which the group prevents"
    ))
    .at(span, "set here")
    .about(group)
    .hint("Remove `prevent_destroy`, or leave the instances out with `--exclude`")
}
