//! Finds args that only one instance can have at a time: fixed addresses and network interfaces.
//!
//! In: args, and recorded addresses. Out: whether instances share one of these values. Must not:
//! know a provider; the keys of all of them differ.

use std::collections::{BTreeMap, HashMap, HashSet};

use nstance_state::Record;
use serde_json::{Map, Value};

use super::change::{Action, Change, InstanceView, LeftOut};
use super::planned::Planned;
use crate::address::Address;
use crate::diagnostic::Diagnostic;

/// The keys of these values, wherever they are in args.
const KEYS: [&str; 8] = [
    "Ipv6Address",
    "NetworkInterfaceId",
    "PrivateIpAddress",
    "address",
    "disk_id",
    "ipv6Address",
    "natIP",
    "networkIP",
];

/// The exclusive values in args, with their keys.
fn values(args: &Map<String, Value>) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    gather(args, &mut found);
    found
}

fn gather<'a>(object: &'a Map<String, Value>, found: &mut BTreeMap<&'a str, &'a str>) {
    for (key, value) in object {
        match value {
            Value::String(text) if KEYS.contains(&key.as_str()) => drop(found.insert(text, key)),
            Value::Object(object) => gather(object, found),
            Value::Array(elements) => {
                let objects = elements.iter().filter_map(Value::as_object);
                objects.for_each(|object| gather(object, found));
            }
            _ => {}
        }
    }
}

/// Whether a successor needs a value that its predecessor has until it is deleted.
pub(super) fn shared(before: &InstanceView, after: &InstanceView) -> bool {
    let new = values(&after.spec.args);
    if new.is_empty() {
        return false;
    }
    let old = values(&before.spec.args);
    old.keys()
        .copied()
        .chain(before.ip4.as_deref())
        .any(|value| new.contains_key(value))
}

/// Leaves out new instances with a value that another instance has, or gets in this plan.
pub(super) fn leave_out_duplicates(records: &[Record], planned: &mut Planned) {
    let is_new = |change: &Change| change.action == Action::Create || change.action.is_replace();
    let mut news = planned.changes.iter().filter(|change| is_new(change));
    if !news.any(|change| !pins(change).is_empty()) {
        return;
    }
    // What another slot's predecessor has is free only after its replacement, which waits for its
    // turn.
    let ending: HashSet<&str> = planned
        .changes
        .iter()
        .filter(|change| change.action == Action::Delete)
        .filter_map(|change| Some(&*change.before.as_deref()?.instance_id))
        .collect();
    let mut owners: HashMap<Pin, Address> = records
        .iter()
        .filter(|record| !ending.contains(record.instance_id.as_str()))
        .filter_map(|record| {
            let subnet = record.subnet.clone().unwrap_or_default();
            let address = Address::new(record.group.clone().into(), record.slot);
            Some(((subnet, record.ip4.clone()?), address))
        })
        .collect();
    let wanted: HashSet<(&Address, Pin)> = planned
        .changes
        .iter()
        .filter(|change| is_new(change))
        .flat_map(|change| {
            pins(change)
                .into_iter()
                .map(|(pin, _)| (&change.address, pin))
        })
        .collect();
    let mut duplicates = Vec::new();
    for (index, change) in planned.changes.iter().enumerate() {
        if !is_new(change) {
            continue;
        }
        for (pin, key) in pins(change) {
            let entry = owners.entry(pin.clone());
            let owner = entry.or_insert_with(|| change.address.clone());
            if *owner != change.address {
                let is_free_later = planned
                    .changes
                    .iter()
                    .any(|other| other.action.is_replace() && other.address == *owner)
                    && !wanted.contains(&(&*owner, pin));
                duplicates.push((index, key.to_owned(), owner.clone(), is_free_later));
                break;
            }
        }
    }
    for (index, key, owner, is_free_later) in duplicates.into_iter().rev() {
        let change = planned.changes.remove(index);
        let address = &change.address;
        let finding = if is_free_later {
            let summary =
                format!("{address} needs the `{key}` that {owner} has until it is replaced");
            Diagnostic::error(summary).hint(format!(
                "Give {owner} its new `{key}` first, and apply that"
            ))
        } else {
            Diagnostic::error(format!("{owner} and {address} have the same `{key}`"))
                .hint("Set it for each slot: with `{{ .Instance.Index }}`, or in `overrides`")
        };
        planned.findings.push(finding.about(address));
        planned.left_out.push(LeftOut {
            address: change.address.to_string(),
            count: 1,
            why: format!("{owner} has its `{key}`"),
        });
    }
}

/// An exclusive value, with the subnet that it is unique in.
type Pin = (String, String);

/// The exclusive values of a new instance, each with its key.
fn pins(change: &Change) -> Vec<(Pin, &str)> {
    let Some(after) = change.after.as_deref() else {
        return Vec::new();
    };
    let subnet = after.subnet.as_deref().unwrap_or_default();
    let values = values(&after.spec.args).into_iter();
    values
        .map(|(value, key)| ((subnet.to_owned(), value.to_owned()), key))
        .collect()
}
