//! What groups read of each other while they are planned.
//!
//! In: the actual instances of all groups, and the groups planned so far. Out: a [`LinkSet`] for each
//! consumer. Must not: plan anything.
//!
//! Names, indices, zones and fixed addresses of a provider's instances follow from its size, zones
//! and record, so that groups may link to each other. Other addresses are known only of instances
//! that exist and stay.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::actual::ActualInstance;
use super::change::Change;
use super::group::GroupPlanner;
use crate::address::GroupName;
use crate::merge::zones::Place;
use crate::render::args::Tree;
use crate::render::instance::Report;
use crate::render::links::{LinkFacts, LinkSet, Member};
use crate::render::renderer::GroupRenderer;

/// A slot of a provider that is or will be filled.
struct Slot {
    number: u32,
    place: Place,
    /// The recorded or observed addresses; `None` if nothing fills the slot yet.
    addresses: Option<[Option<Arc<str>>; 2]>,
    /// The address that its args set.
    fixed: Option<Arc<str>>,
}

/// The slots of all groups that others link to.
#[derive(Default)]
pub(super) struct Providers {
    slots: HashMap<GroupName, Vec<Slot>>,
    /// The slots whose instance is new, of the groups planned so far.
    new: HashMap<GroupName, HashSet<u32>>,
}

impl Providers {
    /// Adds a group.
    pub(super) fn add(
        &mut self,
        planner: &GroupPlanner<'_>,
        actual: &BTreeMap<u32, ActualInstance<'_>>,
    ) {
        let renderer = planner.renderer;
        let group = &renderer.group.merged;
        let Some(arranged) = planner.arranged(actual) else {
            return;
        };
        let is_fixed = renderer.group.fixes_addresses();
        let (kept, grown) = (&arranged.slots.kept, &arranged.slots.grown);
        let each = kept.iter().chain(grown).map(|(slot, place)| {
            let found = actual.get(slot);
            let id = match found {
                Some(ActualInstance::Recorded { record, .. }) => &*record.instance_id,
                _ => "",
            };
            let fixed = is_fixed
                .then(|| renderer.fixed_address_of(*slot, id, place))
                .flatten();
            Slot {
                number: *slot,
                place: place.clone(),
                addresses: found.map(addresses),
                fixed: fixed.map(Arc::from),
            }
        });
        self.slots.insert(group.name.clone(), each.collect());
    }

    /// Notes the changes of a group: its new instances have no address yet.
    pub(super) fn note(&mut self, group: &GroupName, changes: &[Change]) {
        let new = changes.iter().filter(|change| change.makes_instance());
        let new = new.map(|change| change.address.slot);
        self.new.insert(group.clone(), new.collect());
    }

    /// The links of a group.
    pub(super) fn links_of(
        &self,
        planner: &GroupPlanner<'_>,
        renderers: &HashMap<&GroupName, &GroupRenderer<'_>>,
        report: &mut Report,
    ) -> LinkSet {
        let consumer = planner.renderer.group;
        let links = consumer.links.iter().map(|link| {
            let provider = link.provider.as_ref()?;
            let renderer = renderers.get(&provider.group)?;
            let properties = planner.inputs.properties.get(&provider.key());
            let members = self.members(renderer);
            Some(LinkFacts {
                is_sensitive: consumer.sensitive_links.contains(&link.name),
                ..facts(renderer, properties, members, report)
            })
        });
        let names = consumer.links.iter().map(|link| Arc::clone(&link.name));
        names.zip(links).collect()
    }

    fn members(&self, renderer: &GroupRenderer<'_>) -> Vec<Member> {
        let group = &renderer.group.merged.name;
        let new = self.new.get(group);
        let slots = self.slots.get(group).map_or(&[][..], Vec::as_slice);
        let each = slots.iter().map(|slot| {
            let is_new = new.is_some_and(|new| new.contains(&slot.number));
            let known = slot.addresses.as_ref().filter(|_| !is_new);
            let [ip4, ip6] = known.cloned().unwrap_or_default();
            let ip4 = slot.fixed.clone().or(ip4);
            member(renderer, slot.number, &slot.place, ip4, ip6)
        });
        each.collect()
    }
}

/// The addresses of an instance; an instance with one has empty ones in place of others.
fn addresses(instance: &ActualInstance<'_>) -> [Option<Arc<str>>; 2] {
    let (ip4, ip6) = match instance {
        ActualInstance::Recorded { record, .. } => (&record.ip4, &record.ip6),
        ActualInstance::Unrecorded(seen) => (&seen.ip4, &seen.ip6),
    };
    known_addresses(ip4.as_deref(), ip6.as_deref())
}

/// The addresses of an instance that exists. One that has an address of one kind has none of the
/// other, unless that is known, too.
pub fn known_addresses(ip4: Option<&str>, ip6: Option<&str>) -> [Option<Arc<str>>; 2] {
    let exists = ip4.is_some() || ip6.is_some();
    [ip4, ip6].map(|address| match address {
        Some(address) => Some(address.into()),
        None => exists.then(|| "".into()),
    })
}

/// An instance of a link's provider.
pub fn member(
    provider: &GroupRenderer<'_>,
    slot: u32,
    place: &Place,
    ip4: Option<Arc<str>>,
    ip6: Option<Arc<str>>,
) -> Member {
    let index = provider.group.merged.index_of(slot, place);
    Member {
        slot,
        index,
        number: place.seat.number,
        zone: Arc::clone(&place.zone),
        tag: Arc::clone(&place.seat.tag),
        address: provider.dns_names().instance(index).into(),
        ip4,
        ip6,
    }
}

/// What is known of a link's provider. A property that can't be rendered is in the report.
pub fn facts(
    provider: &GroupRenderer<'_>,
    properties: Option<&Tree>,
    mut members: Vec<Member>,
    report: &mut Report,
) -> LinkFacts {
    members.sort_by_key(|member| (member.index, member.slot));
    let properties = properties.and_then(|tree| provider.render_for_group(tree, report));
    LinkFacts {
        group: provider.group.merged.name.to_string().into(),
        address: provider.dns_names().group().into(),
        properties: properties.unwrap_or_else(|| serde_json::json!({})),
        is_sensitive: false,
        members,
    }
}
