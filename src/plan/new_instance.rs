//! A new instance for a slot.
//!
//! In: the slot, its zone, what was there before. Out: a [`Newcomer`]: its identity, its place, its
//! spec. May not: decide that there should be one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::build::new_instance_id;
use super::change::InstanceView;
use super::group::GroupPlanner;
use crate::diagnostic::Diagnostics;
use crate::render::files::Deferred;
use crate::render::instance::Report;
use crate::render::renderer::fixed_address;
use crate::resolve::subnets::Placer;

/// An instance that is to be made.
pub(super) struct Newcomer {
    /// What it will be.
    pub(super) side: InstanceView,
    /// Files to be rendered once it exists.
    pub(super) deferred: Option<Box<Deferred>>,
    /// Where else it may be made.
    pub(super) alternatives: Vec<Arc<str>>,
}

impl GroupPlanner<'_> {
    /// A new instance for a slot: its identity, its place, its spec.
    pub(super) fn new_side(
        &self,
        slot: u32,
        zone: Arc<str>,
        predecessor: Option<&InstanceView>,
        placer: &mut Placer<'_>,
        report: &mut Report,
        findings: &mut Diagnostics,
    ) -> Option<Newcomer> {
        let address = self.address(slot);
        let group = &self.renderer.group.merged;
        let known = self.inputs.snapshot.map_or(0, |snapshot| {
            snapshot.generation(address.group.as_str(), slot)
        });
        let generation = known.max(predecessor.map_or(0, |side| side.generation)) + 1;
        let id: Arc<str> = match &self.inputs.options.importing {
            Some((own, id)) if *own == address => Arc::clone(id),
            _ => new_instance_id(
                &group.kind,
                self.inputs.now,
                self.lineage,
                &address,
                generation,
            )
            .as_str()
            .into(),
        };
        let facts = self.facts(slot, &id, &zone);
        let spec = self
            .renderer
            .render(&address, &facts, &BTreeMap::new(), report)?;
        let change = group.overrides.get(&slot);
        let pool = change.map_or(group.subnet_pool.as_ref(), |c| c.subnet_pool.as_ref());
        let placed = match pool {
            Some(pool) => Some(placer.place(&address.group, pool, &zone, findings)?),
            None => None,
        };
        if !placer.fits(group, slot, &spec.args.value, &zone, findings) {
            return None;
        }
        let deferred = self.renderer.deferred(&spec, slot, &facts).map(Box::new);
        let (subnet, mut alternatives) = placed
            .map(|place| (place.subnet, place.alternatives))
            .unzip();
        // A fixed address lies in one subnet.
        if fixed_address(&spec.args.value).is_some() {
            alternatives = None;
        }
        let side = InstanceView {
            instance_id: id,
            provider_id: None,
            generation,
            zone,
            subnet,
            ip4: None,
            ip6: None,
            created_at: None,
            images: self.images_of(&BTreeMap::new()),
            protected: group.protect,
            marks: self
                .renderer
                .marks(&address, &facts, &BTreeMap::new(), &spec),
            version: None,
            digest: spec.digest(),
            spec: Arc::new(spec.to_body()),
        };
        Some(Newcomer {
            side,
            deferred,
            alternatives: alternatives.unwrap_or_default(),
        })
    }
}
