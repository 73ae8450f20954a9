//! Plans one group.
//!
//! In: a group ready to render, and its actual instances. Out: changes, added to [`Planned`]. May not:
//! look at other groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use nstance_state::Record;

use super::actual::{ActualInstance, Presence};
use super::change::{
    Action, Change, DriftKind, HoldBack, InstanceView, LeftOut, Mode, Reason, RecordAttributes,
};
use super::creatable;
use super::diff::{self, Lifecycle};
use super::inputs::{Inputs, new_instance_id};
use super::places::{Slots, arrange};
use super::planned::Planned;
use super::rollout::Bounds;
use crate::address::{Address, GroupName};
use crate::config::model::{OnNewer, ProviderKind};
use crate::diagnostic::{Diagnostic, counted};
use crate::merge::zones::{Place, Seat};
use crate::provider::Observation;
use crate::render::data::InstanceFacts;
use crate::render::files::Deferred;
use crate::render::instance::Report;
use crate::render::renderer::{GroupRenderer, fixed_address};
use crate::resolve::subnets::Placer;
use crate::sensitivity::{HIDDEN, Marks};
use crate::spec::InstanceSpec;
use crate::threads::{self, cores};

/// The minimum number of slots per thread; below it, a thread costs more than it saves.
const SLOTS_A_THREAD: usize = 2_000;

/// The minimum for slots with ERB of their own: Ruby takes milliseconds for each.
const SLOTS_WITH_ERB_A_THREAD: usize = 4;

/// Plans one group.
pub struct GroupPlanner<'a> {
    /// All inputs of the plan.
    pub inputs: &'a Inputs<'a>,
    /// The group's renderer.
    pub renderer: &'a GroupRenderer<'a>,
    /// The same with other stand-ins for unknown addresses, if its links have such.
    pub other: Option<&'a GroupRenderer<'a>>,
    /// The state's lineage.
    pub lineage: &'a str,
    /// The group's former name, if its instances were recorded under it.
    pub moved_from: Option<GroupName>,
    /// The slots with a deposed instance that still exists.
    pub deposed: BTreeSet<u32>,
    /// The limits of its replacements.
    pub bounds: Bounds,
}

/// The slots of a group by what happens to them.
pub(super) struct Arranged {
    pub(super) slots: Slots,
    /// The places that filled slots have now.
    pub(super) filled: BTreeMap<u32, Place>,
}

/// A recorded instance in a configured slot.
#[derive(Clone)]
pub(super) struct MatchedSlot<'a> {
    pub(super) slot: u32,
    pub(super) record: &'a Record,
    pub(super) presence: Presence<'a>,
    /// The slot's wanted place.
    pub(super) place: Place,
    /// Whether that isn't the recorded one.
    pub(super) moves: bool,
    /// Whether `eligible_age` is enough to replace it.
    pub(super) is_due: bool,
}

/// An instance to create.
pub(super) struct NewInstance {
    /// The instance.
    pub(super) view: InstanceView,
    /// Files that are rendered after creation.
    pub(super) deferred: Option<Box<Deferred>>,
    /// Further subnets to try.
    pub(super) alternatives: Vec<Arc<str>>,
    /// The paths with addresses that aren't known yet.
    pub(super) late: Vec<String>,
}

/// The result of rendering a kept slot.
enum Verdict {
    /// No change; has the spec if the caller requested no-ops.
    Unchanged(Option<Box<InstanceSpec>>),
    /// Must be compared attribute by attribute.
    Candidate(Box<InstanceSpec>),
    /// Rendering failed.
    Failed,
}

impl GroupPlanner<'_> {
    /// Plans all slots. `actual` holds the group's instances by slot.
    pub fn plan(
        &self,
        actual: &BTreeMap<u32, ActualInstance<'_>>,
        placer: &mut Placer<'_>,
        planned: &mut Planned,
    ) {
        match self.inputs.options.mode {
            Mode::Destroy => self.destroy(actual, planned),
            Mode::RefreshOnly => self.refresh_only(actual, planned),
            Mode::Normal => self.converge(actual, placer, planned),
        }
    }

    pub(super) fn address(&self, slot: u32) -> Address {
        Address::new(self.renderer.group.merged.name.clone(), slot)
    }

    /// Whether whoever owns the size took the instance away.
    fn was_taken_away(&self, instance: &ActualInstance<'_>) -> bool {
        let missing = matches!(
            instance,
            ActualInstance::Recorded {
                presence: Presence::Missing,
                ..
            }
        );
        missing && self.renderer.group.merged.ignores_size()
    }

    /// Leaves out the instances of a group without a size: a forgotten line must not delete them.
    /// Returns whether there are any.
    fn refuse_without_size(
        &self,
        actual: &BTreeMap<u32, ActualInstance<'_>>,
        planned: &mut Planned,
    ) -> bool {
        let is_recorded = |(slot, instance): &(&u32, &ActualInstance<'_>)| {
            matches!(instance, ActualInstance::Recorded { .. })
                && self.inputs.options.selects(&self.address(**slot))
        };
        let count = actual.iter().filter(is_recorded).count();
        let group = &self.renderer.group.merged;
        if count > 0 {
            planned.findings.push(
                Diagnostic::error(format!(
                    "group `{}` has no `size`, but {}",
                    group.name,
                    counted(count, "recorded instance")
                ))
                .at(group.span, "`size` is missing here")
                .about(&group.name)
                .hint("Write its `size`; `\"size\": 0` deletes the instances"),
            );
            planned.left_out.push(LeftOut {
                address: group.name.to_string(),
                count,
                why: "the group has no `size`".to_owned(),
            });
        }
        count > 0
    }

    fn converge(
        &self,
        actual: &BTreeMap<u32, ActualInstance<'_>>,
        placer: &mut Placer<'_>,
        planned: &mut Planned,
    ) {
        let group = &self.renderer.group.merged;
        if !group.has_size && !group.ignores_size() && self.refuse_without_size(actual, planned) {
            return;
        }
        let Arranged { mut slots, filled } = self.arrange(actual);
        planned.findings.extend(self.lost_tags(&slots, &filled));
        let selects = |slot: u32| self.inputs.options.selects(&self.address(slot));
        slots.kept.retain(|(slot, _)| selects(*slot));
        slots.grown.retain(|(slot, _)| selects(*slot));
        slots.surplus.retain(|slot| selects(*slot));
        let mut report = Report::default();
        // Check one instance per group: most differ only in values rendered into the same text.
        let wanted = slots.kept.iter().chain(&slots.grown);
        let first = wanted.map(|(slot, _)| *slot).min();
        let is_sound = first.is_none_or(|slot| self.renderer.check_userdata(slot, &mut report));

        let mut kept = Vec::new();
        for (slot, place) in slots.kept {
            match actual[&slot] {
                ActualInstance::Recorded { record, presence } => kept.push(MatchedSlot {
                    slot,
                    record,
                    presence,
                    moves: filled[&slot] != place,
                    place,
                    is_due: false,
                }),
                ActualInstance::Unrecorded(observation) => {
                    self.adopt(slot, &place, observation, &mut report, planned);
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
        let oldest = self.oldest_eligible(&kept, &verdicts);
        let mut postponed = None;
        let before = (planned.changes.len(), planned.held_back.len());
        for (kept, verdict) in kept.iter().zip(verdicts) {
            match verdict {
                Verdict::Candidate(spec) if oldest == Some(kept.slot) => {
                    postponed = Some((kept.clone(), spec));
                }
                Verdict::Unchanged(spec) => {
                    planned.no_op += 1;
                    if let Some(spec) = spec {
                        self.keep_unchanged(kept, &spec, planned);
                    }
                }
                Verdict::Candidate(spec) => {
                    self.compare(kept, &spec, placer, &mut report, planned);
                }
                Verdict::Failed => {
                    failed += 1;
                    self.note_drift(kept, planned);
                }
            }
        }
        if let Some((mut kept, spec)) = postponed {
            let changes = planned.changes[before.0..].iter();
            // What `opportunistic` leaves to later doesn't come by itself.
            let held_back = planned.held_back[before.1..]
                .iter()
                .filter(|change| change.held_back_by() == HoldBack::Protect);
            let mut all = changes.chain(held_back);
            // A predecessor that still exists belongs to a replacement that isn't complete.
            kept.is_due = self.deposed.is_empty() && !all.any(|change| change.action.is_replace());
            self.compare(&kept, &spec, placer, &mut report, planned);
        }
        if is_sound {
            self.render_ahead(&slots.grown);
        }
        for (slot, place) in slots.grown {
            if !is_sound {
                failed += 1;
                continue;
            }
            let address = self.address(slot);
            match self.new_instance(slot, place, None, placer, &mut report, planned) {
                Some(new) => planned.changes.push(Change {
                    after: Some(Box::new(new.view)),
                    deferred: new.deferred,
                    alternatives: new.alternatives,
                    late: new.late,
                    ..Change::new(address, Action::Create, vec![Reason::GroupGrew])
                }),
                None => failed += 1,
            }
        }
        let gone: Vec<u32> = actual
            .keys()
            .copied()
            .filter(|slot| !filled.contains_key(slot) && selects(*slot))
            .collect();
        for slot in slots.surplus.into_iter().chain(gone) {
            let address = self.address(slot);
            match actual[&slot] {
                ActualInstance::Recorded { record, presence } => {
                    let reason = Reason::GroupShrank;
                    planned.end(self.inputs, &address, record, presence, None, reason);
                }
                ActualInstance::Unrecorded(observation) => {
                    planned.adopt_as_reported(self.inputs, &address, observation);
                }
            }
        }
        self.conclude(&report, failed, planned);
    }

    /// What happens to each slot, and the places that filled slots have now.
    fn arrange(&self, actual: &BTreeMap<u32, ActualInstance<'_>>) -> Arranged {
        let group = &self.renderer.group.merged;
        let filled: BTreeMap<u32, Place> = actual
            .iter()
            .filter(|(_, instance)| !self.was_taken_away(instance))
            .map(|(slot, instance)| (*slot, self.place_of(*slot, instance)))
            .collect();
        let size = if group.ignores_size() && !actual.is_empty() {
            filled.len() as u32
        } else {
            group.size
        };
        Arranged {
            slots: arrange(&group.zones, group.rebalances, size, &filled),
            filled,
        }
    }

    /// What happens to each slot, for groups that link to this one: a slot that isn't selected stays
    /// as it is. `None` if the group has no size.
    pub(super) fn arranged(&self, actual: &BTreeMap<u32, ActualInstance<'_>>) -> Option<Arranged> {
        let group = &self.renderer.group.merged;
        if !group.has_size && !group.ignores_size() {
            return None;
        }
        let mut arranged = self.arrange(actual);
        let options = self.inputs.options;
        let selects = |slot: u32| options.only_shown || options.selects(&self.address(slot));
        let Slots {
            kept,
            grown,
            surplus,
        } = &mut arranged.slots;
        grown.retain(|(slot, _)| selects(*slot));
        let stays = surplus.iter().filter(|slot| !selects(**slot));
        let stays = stays.filter_map(|slot| Some((*slot, arranged.filled.get(slot)?.clone())));
        kept.extend(stays);
        Some(arranged)
    }

    /// The place that a filled slot has now; a number of 0 means that it isn't known.
    fn place_of(&self, slot: u32, instance: &ActualInstance<'_>) -> Place {
        let (zone, seat) = match instance {
            ActualInstance::Recorded { record, .. } => {
                let attributes = RecordAttributes::parse(&record.attributes);
                (&record.zone, attributes.seat(slot))
            }
            ActualInstance::Unrecorded(observation) => (&observation.zone, Seat::default()),
        };
        let mut zones = self.renderer.group.merged.zones.iter();
        let listed = zones.find(|listed| *listed.name == **zone);
        let zone = listed.map_or_else(|| zone.as_str().into(), |zone| Arc::clone(&zone.name));
        Place { zone, seat }
    }

    /// The warning that instances are replaced although their tags are still listed: others come
    /// before them now. A slot that moves to another zone has another reason.
    fn lost_tags(&self, slots: &Slots, filled: &BTreeMap<u32, Place>) -> Option<Diagnostic> {
        let group = &self.renderer.group.merged;
        let mut lost = slots.kept.iter().filter_map(|(slot, place)| {
            let Place { zone, seat } = &filled[slot];
            let mut own = group.zones.iter().filter(|own| own.name == *zone);
            let is_lost = *zone == place.zone && seat.tag != place.seat.tag;
            (is_lost && own.any(|own| own.tags.contains(&seat.tag))).then_some((*slot, &seat.tag))
        });
        let (slot, tag) = lost.next()?;
        let more = match lost.count() {
            0 => String::new(),
            count => format!("; also affects {}", counted(count, "more instance")),
        };
        let finding = Diagnostic::warning(format!(
            "`{}` is replaced, because other tags come before `{tag}` now",
            self.address(slot)
        ));
        let finding = finding
            .about(&self.address(slot))
            .detail(format!("each zone uses the first tags of its list{more}"));
        Some(finding.hint("Add new tags at the end of the list"))
    }

    /// Adds the findings of rendering, and the instances that they leave out.
    fn conclude(&self, report: &Report, failed: usize, planned: &mut Planned) {
        let group = &self.renderer.group.merged;
        let names = group.vars.as_ref().and_then(|vars| vars.entries());
        let names = names.into_iter().flatten().map(|(name, _)| &**name);
        planned.findings.extend(report.findings(
            self.inputs.sources,
            &names,
            self.inputs.options.strict,
        ));
        let mut why = Vec::new();
        for (image, _, _) in report.failed_images() {
            if let Some(Err(failure)) = self.inputs.images.images.get(image) {
                planned.findings.push(
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
            let parts = group.userdata.joined();
            let parts = parts.flat_map(|(_, userdata)| &userdata.parts);
            let unfetched = parts.filter_map(|part| {
                let content = &part.text.content.value;
                self.inputs.unfetched.get(content)
            });
            for findings in unfetched {
                planned.findings.extend(findings.iter().cloned());
                why.push("its userdata can't be fetched".to_owned());
            }
            planned.left_out.push(LeftOut {
                address: group.name.to_string(),
                count: failed,
                why: if why.is_empty() {
                    "they can't be rendered, placed or created".to_owned()
                } else {
                    why.join("; ")
                },
            });
        }
    }

    /// A kept instance with its recorded identity, in its wanted place.
    pub(super) fn recorded_facts(&self, kept: &MatchedSlot<'_>) -> InstanceFacts {
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        let record = kept.record;
        InstanceFacts {
            ip4: text(&record.ip4),
            ip6: text(&record.ip6).or_else(|| record.ip4.is_some().then(|| "".into())),
            ..self
                .renderer
                .facts(kept.slot, &record.instance_id, &kept.place)
        }
    }

    /// The images that an instance keeps, even if newer ones exist (`on_newer: new_only`).
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

    /// How many of `count` slots a thread renders.
    fn slots_a_thread(&self, count: usize) -> usize {
        let least = if self.renderer.has_own_erb() {
            SLOTS_WITH_ERB_A_THREAD
        } else {
            SLOTS_A_THREAD
        };
        count.div_ceil(cores()).max(least)
    }

    /// Renders the ERB of new slots on all cores; [`Self::new_instance`] then finds the outputs.
    fn render_ahead(&self, grown: &[(u32, Place)]) {
        if !self.renderer.has_own_erb() {
            return;
        }
        threads::map(grown, SLOTS_WITH_ERB_A_THREAD, |(slot, place)| {
            let address = self.address(*slot);
            let facts = self
                .renderer
                .facts(*slot, &self.new_id(&address, None).0, place);
            let mut ignored = Report::default();
            self.renderer
                .render(&address, &facts, &BTreeMap::new(), &mut ignored);
        });
    }

    /// Renders the kept slots with their recorded identity; uses all cores if there are many.
    fn render_kept(&self, kept: &[MatchedSlot<'_>]) -> (Vec<Verdict>, Report) {
        let chunk = self.slots_a_thread(kept.len());
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
        let facts = self.recorded_facts(kept);
        let images = self.kept_images(kept.record);
        let Some(spec) = self.renderer.render(&address, &facts, &images, report) else {
            return Verdict::Failed;
        };
        let expiry = self.inputs.config.shard.expiry;
        let limit = expiry.eligible_age.or(expiry.forced_age);
        let attributes = RecordAttributes::parse(&kept.record.attributes);
        let unchanged = spec.digest() == kept.record.spec
            && matches!(kept.presence, Presence::InSync)
            && self.moved_from.is_none()
            && !self.inputs.options.replaces(&address)
            && self.older_than(kept.record, limit).is_none()
            && !kept.moves
            && attributes.index == facts.index
            && attributes.protected == self.renderer.group.merged.protect;
        if unchanged {
            Verdict::Unchanged(self.inputs.options.keep_unchanged.then(|| Box::new(spec)))
        } else {
            Verdict::Candidate(Box::new(spec))
        }
    }

    /// The age in seconds of an instance that `shard.expiry` wants replaced. `ondemand_age` is the
    /// server's business.
    pub(super) fn expired(&self, kept: &MatchedSlot<'_>) -> Option<u64> {
        let expiry = self.inputs.config.shard.expiry;
        let eligible = expiry.eligible_age.filter(|_| kept.is_due);
        self.older_than(kept.record, eligible.or(expiry.forced_age))
    }

    /// The slot of the oldest instance that is older than `eligible_age`.
    fn oldest_eligible(&self, kept: &[MatchedSlot<'_>], verdicts: &[Verdict]) -> Option<u32> {
        let eligible_age = self.inputs.config.shard.expiry.eligible_age?;
        let eligible = kept.iter().zip(verdicts).filter(|(kept, verdict)| {
            matches!(verdict, Verdict::Candidate(_))
                && !matches!(kept.presence, Presence::Missing)
                && self.older_than(kept.record, Some(eligible_age)).is_some()
        });
        let oldest = eligible.min_by_key(|(kept, _)| (kept.record.created_at, kept.slot));
        oldest.map(|(kept, _)| kept.slot)
    }

    /// The age in seconds of an instance that is older than a limit.
    fn older_than(&self, record: &Record, limit: Option<Duration>) -> Option<u64> {
        let age = self.inputs.now.since(record.created_at.into());
        (age > limit?).then_some(age.as_secs())
    }

    pub(super) fn keep_unchanged(
        &self,
        kept: &MatchedSlot<'_>,
        spec: &InstanceSpec,
        planned: &mut Planned,
    ) {
        let body = Arc::new(spec.to_body());
        let mut view = InstanceView::of_record(kept.record, body, spec.digest());
        view.marks = self.marks(kept, spec, &view);
        planned.unchanged.push(Change {
            before: Some(Box::new(view.clone())),
            after: Some(Box::new(view)),
            ..Change::new(self.address(kept.slot), Action::NoOp, Vec::new())
        });
    }

    /// The sensitive parts of a kept slot's spec: those of its record and of the configuration.
    pub(super) fn marks(
        &self,
        kept: &MatchedSlot<'_>,
        spec: &InstanceSpec,
        recorded: &InstanceView,
    ) -> Arc<Marks> {
        let address = self.address(kept.slot);
        let facts = self.recorded_facts(kept);
        let images = self.kept_images(kept.record);
        let marks = self.renderer.marks(&address, &facts, &images, spec);
        if recorded.marks.is_empty() || recorded.digest != spec.digest() || marks == recorded.marks
        {
            return marks;
        }
        Arc::new(marks.or(&recorded.marks, &recorded.spec))
    }

    /// The id and the generation of a slot's new instance.
    fn new_id(&self, address: &Address, predecessor: Option<&InstanceView>) -> (Arc<str>, u64) {
        let known = self.inputs.snapshot.map_or(0, |snapshot| {
            snapshot.generation(address.group.as_str(), address.slot)
        });
        let generation = known.max(predecessor.map_or(0, |view| view.generation)) + 1;
        let id = match &self.inputs.options.importing {
            Some((own, id)) if own == address => Arc::clone(id),
            _ => {
                let kind = &self.renderer.group.merged.kind;
                let now = self.inputs.now;
                let id = new_instance_id(kind, now, self.lineage, address, generation);
                id.as_str().into()
            }
        };
        (id, generation)
    }

    /// A new instance for a slot, with its identity, subnet and spec.
    pub(super) fn new_instance(
        &self,
        slot: u32,
        place: Place,
        predecessor: Option<&InstanceView>,
        placer: &mut Placer<'_>,
        report: &mut Report,
        planned: &mut Planned,
    ) -> Option<NewInstance> {
        let address = self.address(slot);
        let group = &self.renderer.group.merged;
        let (id, generation) = self.new_id(&address, predecessor);
        let facts = self.renderer.facts(slot, &id, &place);
        let Place { zone, seat } = place;
        let spec = self
            .renderer
            .render(&address, &facts, &BTreeMap::new(), report)?;
        if let Some(finding) = self.refusal(&spec) {
            planned.findings.push(finding);
            return None;
        }
        let change = group.overrides.get(&slot);
        let pool = change.map_or(group.subnet_pool.as_ref(), |c| c.subnet_pool.as_ref());
        let placed = match pool {
            Some(pool) => Some(placer.place(&address.group, pool, &zone, &mut planned.findings)?),
            None => None,
        };
        if !placer.fits(group, slot, &spec.args.value, &zone, &mut planned.findings) {
            return None;
        }
        let deferred = self.renderer.deferred(&spec, slot, &facts).map(Box::new);
        let (subnet, mut alternatives) = placed
            .map(|place| (place.subnet, place.alternatives))
            .unzip();
        // A fixed address belongs to one subnet.
        if fixed_address(&spec.args.value).is_some() {
            alternatives = None;
        }
        let marks = self
            .renderer
            .marks(&address, &facts, &BTreeMap::new(), &spec);
        let body = spec.to_body();
        // A sensitive address isn't shown.
        let is_shown = |_: &&str| {
            let shown = marks.cover(&body);
            fixed_address(&shown.args) != Some(HIDDEN)
        };
        let ip4 = fixed_address(&body.args).filter(is_shown).map(Arc::from);
        let view = InstanceView {
            instance_id: id,
            provider_id: None,
            generation,
            zone,
            seat,
            index: facts.index,
            links: self.renderer.link_traces().clone(),
            manifest_version: None,
            subnet,
            ip4,
            ip6: None,
            created_at: None,
            images: self.images_of(&BTreeMap::new()),
            protected: group.protect,
            marks,
            version: None,
            digest: spec.digest(),
            spec: Arc::new(body),
        };
        let late = self.late_paths(&address, &facts, &BTreeMap::new(), &view);
        Some(NewInstance {
            view,
            deferred,
            alternatives: alternatives.unwrap_or_default(),
            late,
        })
    }

    /// The paths of a spec with addresses that aren't known yet: those where another stand-in makes
    /// a difference.
    pub(super) fn late_paths(
        &self,
        address: &Address,
        facts: &InstanceFacts,
        images: &BTreeMap<Arc<str>, Arc<str>>,
        view: &InstanceView,
    ) -> Vec<String> {
        let Some(other) = self.other else {
            return Vec::new();
        };
        let mut ignored = Report::default();
        let Some(spec) = other.render(address, facts, images, &mut ignored) else {
            return Vec::new();
        };
        let with_other = InstanceView {
            spec: Arc::new(spec.to_body()),
            ..view.clone()
        };
        let differs = diff::diff(view, &with_other, self.inputs.rules, &Lifecycle::default());
        differs.into_iter().map(|change| change.path).collect()
    }

    /// Why a new instance can't be created, unless the plan is only looked at.
    fn refusal(&self, spec: &InstanceSpec) -> Option<Diagnostic> {
        let inputs = self.inputs;
        if inputs.options.only_shown || inputs.options.importing.is_some() {
            return None;
        }
        let is_real_cloud = inputs.provider_name != ProviderKind::Sim.as_str();
        creatable::refusal(inputs.config, self.renderer.group, spec, is_real_cloud)
    }

    fn adopt(
        &self,
        slot: u32,
        place: &Place,
        observation: &Observation,
        report: &mut Report,
        planned: &mut Planned,
    ) {
        let address = self.address(slot);
        planned.note_unrecorded(&address, observation, DriftKind::Unknown);
        let id = observation
            .instance_id
            .as_deref()
            .unwrap_or(&observation.provider_id);
        // It stays where it is until it is recorded.
        let place = Place {
            zone: observation.zone.as_str().into(),
            seat: place.seat.clone(),
        };
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        let facts = InstanceFacts {
            ip4: text(&observation.ip4),
            ip6: text(&observation.ip6).or_else(|| Some("".into())),
            ..self.renderer.facts(slot, id, &place)
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
        planned.adopt(self.inputs, &address, observation, Some(&wanted));
        if let Some(side) = planned
            .changes
            .last_mut()
            .and_then(|change| change.after.as_mut())
        {
            side.images = self.images_of(&BTreeMap::new());
            side.marks = Arc::new(marks.carried_to(&wanted, &side.spec));
            side.protected = self.renderer.group.merged.protect;
            side.seat = place.seat;
            side.index = facts.index;
            side.links = self.renderer.link_traces().clone();
        }
    }

    /// The group that is a target and that this one depends on, directly or not.
    fn targeted_dependency(&self) -> Option<&GroupName> {
        let dependencies = self.inputs.dependencies;
        let mut seen = BTreeSet::new();
        let mut open = vec![&self.renderer.group.merged.name];
        while let Some(name) = open.pop() {
            for group in dependencies.get(name).into_iter().flatten() {
                if self.inputs.options.targets_group(group) {
                    return Some(group);
                }
                if seen.insert(group.as_str()) {
                    open.push(group);
                }
            }
        }
        None
    }

    fn destroy(&self, actual: &BTreeMap<u32, ActualInstance<'_>>, planned: &mut Planned) {
        let targeted = self.targeted_dependency();
        for (slot, instance) in actual {
            let address = self.address(*slot);
            let reason = if self.inputs.options.selects(&address) {
                Reason::Destroy
            } else if let Some(group) = targeted.as_ref()
                && !self.inputs.options.excludes(&address)
            {
                Reason::DependencyDestroyed {
                    group: group.to_string(),
                }
            } else {
                continue;
            };
            match instance {
                ActualInstance::Recorded { record, presence } => {
                    planned.end(self.inputs, &address, record, *presence, None, reason);
                }
                ActualInstance::Unrecorded(observation) => {
                    planned.adopt_as_reported(self.inputs, &address, observation);
                }
            }
        }
    }

    /// Changes nothing but the record, so that it says what the cloud says.
    fn refresh_only(&self, actual: &BTreeMap<u32, ActualInstance<'_>>, planned: &mut Planned) {
        for (slot, instance) in actual {
            let address = self.address(*slot);
            if !self.inputs.options.selects(&address) {
                continue;
            }
            match instance {
                ActualInstance::Recorded {
                    record,
                    presence: Presence::Missing,
                } => {
                    let missing = Presence::Missing;
                    let reason = Reason::Missing;
                    planned.end(self.inputs, &address, record, missing, None, reason);
                }
                ActualInstance::Recorded {
                    record,
                    presence: Presence::Differs(observation),
                } => {
                    let lifecycle = Lifecycle::default();
                    let seen = self.inputs.recorded_view(record).and_then(|before| {
                        let seen =
                            self.drift(&address, &before, observation, &lifecycle, planned)?;
                        Some((before, seen.0))
                    });
                    match seen {
                        Some((before, after)) => planned.changes.push(Change {
                            importing: Some(record.provider_id.clone()),
                            attributes: diff::diff(&before, &after, self.inputs.rules, &lifecycle),
                            before: Some(Box::new(before)),
                            after: Some(Box::new(after)),
                            ..Change::new(address, Action::Adopt, vec![Reason::RefreshOnly])
                        }),
                        None => planned.no_op += 1,
                    }
                }
                ActualInstance::Recorded { .. } => planned.no_op += 1,
                ActualInstance::Unrecorded(observation) => {
                    planned.adopt_as_reported(self.inputs, &address, observation);
                }
            }
        }
    }
}
