//! The DNS records of a configuration's groups, and the addresses for those of a manifest.
//!
//! In: a session: its configuration, and the state if it exists. Out: a record for each group and
//! each instance, with the addresses that are recorded. Must not: ask a cloud.

use std::collections::BTreeMap;
use std::net::IpAddr;

use nstance_state::Record;

use super::failure::Failure;
use super::session::Session;
use crate::merge::group::{MergedGroup, merge_group};
use crate::merge::zones::Place;
use crate::plan::change::RecordAttributes;
use crate::render::dns::DnsNames;
use crate::report::dns::DnsRecord;

/// The records of all groups, as configured.
///
/// Fails if the state can't be read.
pub(super) fn records(session: &Session<'_>) -> Result<Vec<DnsRecord>, Failure> {
    let config = session.config();
    let store = session.open_to_read()?;
    let snapshot = store.map(|store| store.snapshot()).transpose()?;
    let mut by_group: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    let recorded = snapshot.iter().flat_map(|snapshot| &snapshot.records);
    for record in recorded.filter(|record| !record.deposed) {
        by_group.entry(&record.group).or_default().push(record);
    }
    let mut records = Vec::new();
    for group in &config.groups {
        let merged = merge_group(config, group);
        let names = DnsNames::of_group(config, &merged);
        let own = by_group.get(group.name.as_str());
        let instances = instances(&merged, own.map_or(&[][..], Vec::as_slice));
        let all = instances.values().flatten();
        let name = session.name(&group.name);
        records.push(DnsRecord {
            name: names.group().to_owned(),
            addresses: all.copied().collect(),
            group: name.clone(),
            index: None,
        });
        records.extend(instances.into_iter().map(|(index, addresses)| DnsRecord {
            name: names.instance(index),
            addresses,
            group: name.clone(),
            index: Some(index),
        }));
    }
    Ok(records)
}

/// The recorded addresses by group and index.
///
/// Fails if the state can't be read.
pub(super) fn addresses(
    session: &Session<'_>,
) -> Result<BTreeMap<(String, u32), Vec<IpAddr>>, Failure> {
    let store = session.open_to_read()?;
    let snapshot = store.map(|store| store.snapshot()).transpose()?;
    let records = snapshot.iter().flat_map(|snapshot| &snapshot.records);
    let live = records.filter(|record| !record.deposed).map(|record| {
        let attributes = RecordAttributes::parse(&record.attributes);
        let index = attributes.index.unwrap_or(record.slot);
        ((record.group.to_string(), index), addresses_of(record))
    });
    Ok(live.collect())
}

pub(super) fn addresses_of(record: &Record) -> Vec<IpAddr> {
    let addresses = [&record.ip4, &record.ip6].into_iter().flatten();
    addresses
        .filter_map(|address| address.parse().ok())
        .collect()
}

/// The addresses of a group's instances by index; none of those that don't exist yet.
fn instances(group: &MergedGroup<'_>, records: &[&Record]) -> BTreeMap<u32, Vec<IpAddr>> {
    let new = (0..group.size).map(|slot| {
        let place = group.place_of_new(slot);
        (group.index_of(slot, &place), Vec::new())
    });
    let mut instances: BTreeMap<u32, Vec<IpAddr>> = new.collect();
    for record in records {
        let attributes = RecordAttributes::parse(&record.attributes);
        let place = Place {
            zone: record.zone.as_str().into(),
            seat: attributes.seat(record.slot),
        };
        let index = group.index_of(record.slot, &place);
        instances.insert(index, addresses_of(record));
    }
    instances
}
