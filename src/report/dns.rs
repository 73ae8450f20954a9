//! Shows DNS records as a zone file, as a hosts file or as JSON.
//!
//! In: names with their addresses. Out: text or JSON. Must not: serve or look up names.

use std::net::IpAddr;

use nstance_bosh::resolve::Resolved;
use serde_json::{Value, json};

/// The name of a group or of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsRecord {
    /// The full name, without a dot at its end.
    pub name: String,
    /// The addresses; empty while none is known.
    pub addresses: Vec<IpAddr>,
    /// The group.
    pub group: String,
    /// The index of the instance; `None` for the whole group.
    pub index: Option<u32>,
}

/// The records of a BOSH deployment: of each group, then of its instances. `addresses` gives those
/// of an instance by group and index.
pub fn of_deployment(
    resolved: &Resolved,
    addresses: &dyn Fn(&str, u32) -> Vec<IpAddr>,
) -> Vec<DnsRecord> {
    let mut records = Vec::new();
    for group in &resolved.groups {
        let instances = group.instances.iter();
        let instances: Vec<DnsRecord> = instances
            .map(|instance| DnsRecord {
                name: instance.address.clone(),
                addresses: addresses(&group.name, instance.index),
                group: group.name.clone(),
                index: Some(instance.index),
            })
            .collect();
        let all = instances.iter();
        records.push(DnsRecord {
            name: group.address.clone(),
            addresses: all.flat_map(|record| &record.addresses).copied().collect(),
            group: group.name.clone(),
            index: None,
        });
        records.extend(instances);
    }
    records
}

/// The records as a zone file. Names without a known address are comments.
pub fn zone(records: &[DnsRecord]) -> String {
    let mut text = String::new();
    for record in records {
        let name = &record.name;
        if record.addresses.is_empty() {
            text.push_str(&format!("; {name}. {UNKNOWN}\n"));
        }
        for address in &record.addresses {
            let kind = if address.is_ipv4() { "A" } else { "AAAA" };
            text.push_str(&format!("{name}. IN {kind} {address}\n"));
        }
    }
    text
}

/// The records as a hosts file. Names without a known address are comments.
pub fn hosts(records: &[DnsRecord]) -> String {
    let mut text = String::new();
    for record in records {
        let name = &record.name;
        if record.addresses.is_empty() {
            text.push_str(&format!("# {name} {UNKNOWN}\n"));
        }
        for address in &record.addresses {
            text.push_str(&format!("{address} {name}\n"));
        }
    }
    text
}

/// The records as JSON.
pub fn json(records: &[DnsRecord]) -> Value {
    let records = records.iter().map(|record| {
        json!({
            "name": record.name,
            "addresses": record.addresses,
            "group": record.group,
            "index": record.index,
        })
    });
    records.collect()
}

const UNKNOWN: &str = "(address not known yet)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_every_name() {
        let record = |name: &str, addresses: &[&str], index| DnsRecord {
            name: name.to_owned(),
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            group: "db".to_owned(),
            index,
        };
        let records = [
            record("db.x", &["10.0.0.1", "fd00::1"], None),
            record("db-1.x", &[], Some(1)),
        ];
        assert_eq!(
            zone(&records),
            "db.x. IN A 10.0.0.1\ndb.x. IN AAAA fd00::1\n; db-1.x. (address not known yet)\n"
        );
        assert_eq!(
            hosts(&records),
            "10.0.0.1 db.x\nfd00::1 db.x\n# db-1.x (address not known yet)\n"
        );
        let expected = json!([
            {"name": "db.x", "addresses": ["10.0.0.1", "fd00::1"], "group": "db", "index": null},
            {"name": "db-1.x", "addresses": [], "group": "db", "index": 1},
        ]);
        assert_eq!(json(&records), expected);
    }
}
