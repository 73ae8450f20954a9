//! Compares a recorded, configured instance attribute by attribute.
//!
//! In: its record, its observation, its rendered spec. Out: its change, if any. Must not: look at
//! other slots.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::actual::Presence;
use super::change::{
    Action, AttributeChange, Change, Drift, DriftKind, DriftedAttribute, InstanceView, Reason,
    all_tags,
};
use super::diff::{self, Lifecycle};
use super::drift;
use super::exclusive;
use super::group::{GroupPlanner, MatchedSlot};
use super::planned::{Planned, protected};
use super::rollout::{are_configured, is_optional};
use crate::address::Address;
use crate::config::model::{Shard, Texts, UpdateOrder};
use crate::config::source::Span;
use crate::provider::Observation;
use crate::provider::rules::Effect;
use crate::render::instance::Report;
use crate::render::placeholders;
use crate::resolve::subnets::Placer;
use crate::sensitivity::Marks;
use crate::spec::{InstanceSpec, SpecBody};

/// The length of a text that is shown as it is written, in bytes.
const LONGEST_VIA: usize = 100;

impl GroupPlanner<'_> {
    /// Compares a slot attribute by attribute and plans its change.
    pub(super) fn compare(
        &self,
        kept: &MatchedSlot<'_>,
        spec: &InstanceSpec,
        placer: &mut Placer<'_>,
        report: &mut Report,
        planned: &mut Planned,
    ) {
        let inputs = self.inputs;
        let group = &self.renderer.group.merged;
        let address = self.address(kept.slot);
        let Some(recorded) = inputs.recorded_view(kept.record) else {
            planned.left_out(&address, "its recorded spec can't be read");
            return;
        };
        if matches!(kept.presence, Presence::Missing) {
            planned.note_missing(inputs, &address, kept.record, &recorded);
            let place = kept.place.clone();
            let made =
                self.new_instance(kept.slot, place, Some(&recorded), placer, report, planned);
            if let Some(new) = made {
                planned.changes.push(Change {
                    before: Some(Box::new(recorded)),
                    after: Some(Box::new(new.view)),
                    deferred: new.deferred,
                    alternatives: new.alternatives,
                    late: new.late,
                    ..Change::new(address, Action::Create, vec![Reason::Missing])
                });
            } else {
                planned.left_out(&address, "it can't be rendered, placed or created");
            }
            return;
        }
        let lifecycle = Lifecycle::of(group);
        let former = self.former_address(kept.slot);
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
        let mut after =
            InstanceView::of_record(kept.record, Arc::new(spec.to_body()), spec.digest());
        after.marks = self.marks(kept, spec, &recorded);
        after.images = self.images_of(&self.kept_images(kept.record));
        if !lifecycle.ignore_changes.is_empty() {
            let mut body = (*after.spec).clone();
            diff::keep_ignored(&before.spec, &mut body, &lifecycle);
            after.digest = body.clone().into_spec().digest();
            after.marks = kept_marks(&before, &after, &body);
            after.spec = Arc::new(body);
        }
        after.protected = group.protect;
        after.zone = Arc::clone(&kept.place.zone);
        after.seat = kept.place.seat.clone();
        let facts = self.recorded_facts(kept);
        after.index = facts.index;
        after.links = self.renderer.link_traces().clone();
        leave_foreign_subnet(&before, &mut after, &inputs.config.shard);
        let mut attributes = diff::diff(&before, &after, inputs.rules, &lifecycle);
        attributes.extend(
            drifted
                .into_iter()
                .filter(|change| !lifecycle.ignores(&change.path)),
        );
        attributes.sort_by(|a, b| a.path.cmp(&b.path));
        attributes.dedup_by(|a, b| a.path == b.path);
        let images = self.kept_images(kept.record);
        let late = self.late_paths(&address, &facts, &images, &after);
        for change in &mut attributes {
            if late.contains(&change.path) {
                change.unknown = true;
            }
            let place = group.place_of(kept.slot, &change.path);
            change.written_at = place.map(|span| self.written_at(span));
        }
        let mut reasons = self.reasons(kept, &address, &attributes, &before, former.as_ref());
        let follows = self.follows_a_link(&recorded, &attributes, &mut reasons);
        // The cloud already matches the spec, and only the record is outdated: an update whose
        // result wasn't recorded, or a manual change that was configured afterwards.
        let outdated = after.digest != recorded.digest && spec.digest() != recorded.digest;
        if reasons.is_empty() && outdated {
            planned.changes.push(Change {
                importing: Some(kept.record.provider_id.clone()),
                attributes: diff::diff(&recorded, &after, inputs.rules, &lifecycle),
                before: Some(Box::new(recorded)),
                after: Some(Box::new(after)),
                ..Change::new(address, Action::Adopt, vec![Reason::Drifted])
            });
            return;
        }
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
            let change = Change {
                before: Some(Box::new(before)),
                after: Some(Box::new(after)),
                attributes,
                late,
                drain_timeout_ms: group.drain_timeout.as_millis() as u64,
                ..Change::new(address, Action::Update, reasons)
            };
            if self.is_left_to_later(&change) {
                planned.held_back.push(change);
            } else {
                planned.changes.push(change);
            }
            return;
        }
        // `Plan::release` checks what is held back.
        let is_held_back =
            group.protect || follows || self.is_opportunistic() && are_configured(&reasons);
        if !is_held_back
            && let Some(finding) = protected(inputs.rules, &address, &before, "replaced")
        {
            planned.findings.push(finding);
            planned.left_out(&address, "it is protected against deletion");
            return;
        }
        // A successor uses today's images, so a kept image shows as a change.
        if self.renderer.pinned() {
            let facts = self.recorded_facts(kept);
            let fresh = self
                .renderer
                .render(&address, &facts, &BTreeMap::new(), report);
            if let Some(fresh) = fresh {
                let fresh = InstanceView {
                    spec: Arc::new(fresh.to_body()),
                    ..after.clone()
                };
                attributes.extend(diff::diff(&before, &fresh, inputs.rules, &lifecycle));
                attributes.sort_by(|a, b| a.path.cmp(&b.path));
                attributes.dedup_by(|a, b| a.path == b.path);
            }
        }
        let Some(successor) = self.new_instance(
            kept.slot,
            kept.place.clone(),
            Some(&recorded),
            placer,
            report,
            planned,
        ) else {
            planned.left_out(
                &address,
                "its successor can't be rendered, placed or created",
            );
            return;
        };
        let mut new = successor.view;
        if !lifecycle.ignore_changes.is_empty() {
            let mut body = (*new.spec).clone();
            diff::keep_ignored(&before.spec, &mut body, &lifecycle);
            new.digest = body.clone().into_spec().digest();
            new.marks = kept_marks(&before, &new, &body);
            new.spec = Arc::new(body);
        }
        // Two instances can't share a fixed address. And if an earlier predecessor still exists, it
        // serves until the successor runs, so that a slot never has three instances.
        let deletes_first = self.bounds.order == UpdateOrder::DeleteFirst
            || exclusive::shared(&before, &new)
            || self.deposed.contains(&kept.slot);
        let action = if deletes_first {
            Action::DeleteThenCreate
        } else {
            Action::CreateThenDelete
        };
        let change = Change {
            before: Some(Box::new(before)),
            after: Some(Box::new(new)),
            attributes,
            deferred: successor.deferred,
            alternatives: successor.alternatives,
            late: successor.late,
            drain_timeout_ms: group.drain_timeout.as_millis() as u64,
            ..Change::new(address, action, reasons)
        };
        if group.protect {
            self.hold_back(change, recorded, planned);
        } else if follows || self.is_left_to_later(&change) {
            planned.held_back.push(change);
        } else {
            planned.changes.push(change);
        }
    }

    /// Adds the reason that a linked group changed, if it did. Returns whether the instance would be
    /// replaced for that only.
    fn follows_a_link(
        &self,
        recorded: &InstanceView,
        attributes: &[AttributeChange],
        reasons: &mut Vec<Reason>,
    ) -> bool {
        let mut changed: Vec<(&str, Reason)> = Vec::new();
        for (name, trace) in self.renderer.link_traces() {
            let earlier = recorded.links.get(name);
            let why = earlier.and_then(|earlier| trace.since(earlier));
            let facts = self.renderer.links().get(name).and_then(Option::as_ref);
            if let Some(why) = why {
                let group = facts.map_or(name, |facts| &facts.group);
                let group = Arc::clone(group);
                changed.push((name, Reason::LinkChanged { group, why }));
            }
        }
        let group = self.renderer.group;
        let reads = |attribute: &AttributeChange, link| group.reads_link(&attribute.path, link);
        changed.retain(|(link, _)| attributes.iter().any(|attribute| reads(attribute, *link)));
        if changed.is_empty() {
            return false;
        }
        let follows = |attribute: &AttributeChange| {
            attribute.effect != Effect::Replace
                || changed.iter().any(|(link, _)| reads(attribute, *link))
        };
        let is_replaced_for_itself = |reason: &Reason| {
            matches!(
                reason,
                Reason::Requested | Reason::Expired { .. } | Reason::NewerImage { .. }
            )
        };
        let is_replaced = reasons.contains(&Reason::CannotUpdate);
        let only_follows = is_replaced
            && attributes.iter().all(follows)
            && !reasons.iter().any(is_replaced_for_itself);
        reasons.splice(0..0, changed.into_iter().map(|(_, reason)| reason));
        only_follows
    }

    /// The place of a value; with a short placeholder text, since a variable may be what changed it.
    fn written_at(&self, span: Span) -> String {
        let sources = self.inputs.sources;
        let place = sources.place(span);
        if self.renderer.group.merged.texts == Texts::Templates {
            return place;
        }
        let written = sources.text_of(span);
        let text = written.trim_matches(['"', '\'']);
        let is_short = text.len() <= LONGEST_VIA && !text.contains('\n');
        if is_short && !placeholders::names(text).is_empty() {
            format!("{place} via {text}")
        } else {
            place
        }
    }

    /// Whether the group's policy leaves the change until the instance is replaced anyway.
    fn is_left_to_later(&self, change: &Change) -> bool {
        self.is_opportunistic() && is_optional(change)
    }

    /// `update.opportunistic`
    fn is_opportunistic(&self) -> bool {
        self.renderer.group.merged.update.opportunistic == Some(true)
    }

    /// Holds a replacement back. Plans what needs no new instance: the slot's move to another
    /// group, and the record of its protection.
    fn hold_back(&self, change: Change, recorded: InstanceView, planned: &mut Planned) {
        let moved = |reason: &&Reason| matches!(reason, Reason::Moved { .. });
        let mut reasons: Vec<Reason> = change.reasons.iter().filter(moved).cloned().collect();
        if reasons.is_empty() && !recorded.protected {
            reasons.push(Reason::Changed);
        }
        if !reasons.is_empty() {
            let after = InstanceView {
                protected: true,
                ..recorded.clone()
            };
            planned.changes.push(Change {
                attributes: diff::diff(
                    &recorded,
                    &after,
                    self.inputs.rules,
                    &Lifecycle::of(&self.renderer.group.merged),
                ),
                before: Some(Box::new(recorded)),
                after: Some(Box::new(after)),
                ..Change::new(change.address.clone(), Action::Update, reasons)
            });
        }
        planned.held_back.push(change);
    }

    /// Reasons for the change, primary first; empty means no change.
    pub(super) fn reasons(
        &self,
        kept: &MatchedSlot<'_>,
        address: &Address,
        attributes: &[AttributeChange],
        before: &InstanceView,
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
        if let Some(age_seconds) = self.expired(kept) {
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

    pub(super) fn newer_image(
        &self,
        attributes: &[AttributeChange],
        before: &InstanceView,
    ) -> Option<Reason> {
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

    /// The address that a slot is recorded under, if its group was moved.
    fn former_address(&self, slot: u32) -> Option<Address> {
        let from = self.moved_from.as_ref()?;
        Some(Address::new(from.clone(), slot))
    }

    /// Notes the drift of a slot that can't be rendered: it needs only the record.
    pub(super) fn note_drift(&self, kept: &MatchedSlot<'_>, planned: &mut Planned) {
        let Some(recorded) = self.inputs.recorded_view(kept.record) else {
            return;
        };
        let former = self.former_address(kept.slot);
        let address = former.unwrap_or_else(|| self.address(kept.slot));
        match kept.presence {
            Presence::Missing => {
                planned.note_missing(self.inputs, &address, kept.record, &recorded);
            }
            Presence::Differs(observation) => {
                self.drift(
                    &address,
                    &recorded,
                    observation,
                    &Lifecycle::of(&self.renderer.group.merged),
                    planned,
                );
            }
            Presence::InSync => {}
        }
    }

    /// Compares the observation of a kept instance with its record. Returns the instance as
    /// observed, and the changes that undo drift outside the spec (managed tags, the state).
    pub(super) fn drift(
        &self,
        recorded_at: &Address,
        recorded: &InstanceView,
        observation: &Observation,
        lifecycle: &Lifecycle,
        planned: &mut Planned,
    ) -> Option<(InstanceView, Vec<AttributeChange>)> {
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
        let mut changes = drift::compare(recorded, &tags, observation, &attributes, inputs.rules);
        if changes.is_empty() {
            return None;
        }
        for change in &mut changes {
            change.ignored = lifecycle.ignores(&change.path);
        }
        let undo: Vec<_> = changes
            .iter()
            .filter(|change| {
                change.path == drift::STATE
                    || change.path.strip_prefix("tags.").is_some_and(|key| {
                        inputs.rules.is_managed_tag(key)
                            || key == inputs.rules.name_tag()
                                && !recorded.spec.tags.contains_key(key)
                    })
            })
            .map(DriftedAttribute::undo)
            .collect();
        planned.drift.push(Drift {
            address: recorded_at.to_string(),
            kind: DriftKind::Changed,
            provider_id: observation.provider_id.clone(),
            accepted: changes.iter().all(|change| change.ignored),
            accepted_because: Vec::new(),
            expired: Vec::new(),
            changes,
            before: Some(Box::new(recorded.clone())),
        });
        Some((
            drift::overlay(recorded, observation, &attributes, inputs.rules),
            undo,
        ))
    }

    pub(super) fn images_of(
        &self,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
    ) -> BTreeMap<Arc<str>, Arc<str>> {
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
}

/// The sensitive parts of a spec that keeps some earlier values.
fn kept_marks(before: &InstanceView, after: &InstanceView, body: &SpecBody) -> Arc<Marks> {
    if before.marks.is_empty() && after.marks.is_empty() {
        return Marks::none();
    }
    let old = before.marks.carried_to(&before.spec, body);
    let new = after.marks.carried_to(&after.spec, body);
    Arc::new(old.or(&new, body))
}

/// Clears the subnet in `after` if the new pool doesn't include it.
fn leave_foreign_subnet(before: &InstanceView, after: &mut InstanceView, shard: &Shard) {
    let pool = after.spec.head.subnet_pool.as_deref();
    if pool == before.spec.head.subnet_pool.as_deref() {
        return;
    }
    let stays = match (pool, before.subnet.as_deref()) {
        (Some(pool), subnet @ Some(_)) => shard.pool_has(pool, subnet),
        (None, None) => true,
        _ => false,
    };
    if !stays {
        after.subnet = None;
    }
}
