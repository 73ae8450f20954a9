//! The services of an instance group: a DNS name per index, and the instances behind it.
//!
//! In: the group's size and the versions that still have instances. Out: a service per index. The
//! formulas are those of quarks-operator; another profile has no services.

use crate::instances::Naming;

/// What the services of a group depend on.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// How its instances are named.
    pub naming: &'a Naming,
    /// The group's name.
    pub instance_group: &'a str,
    /// Instances per zone.
    pub replicas: u32,
    /// Zones; 0 is the same as 1.
    pub az_count: u32,
    /// The versions of the manifest that have instances.
    pub versions: &'a [u64],
    /// The order of indices.
    pub layout: Layout,
}

/// The order in which indices are given to instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Zone by zone, as instances have them.
    Formula,
    /// The first of each zone, then the second of each: the table of quarks-operator's
    /// documentation, which contradicts the indices of instances.
    Table,
}

/// A service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Its full DNS name.
    pub dns: String,
    /// The number of its zone, from 0.
    pub zone: u32,
    /// The number of its instance in the zone, from 0.
    pub ordinal: u32,
    /// The instances that it selects, one per version.
    pub selects: Vec<String>,
}

/// The services of a group, by index.
pub fn services(group: &Group<'_>) -> Vec<Service> {
    let zones = group.az_count.max(1);
    (0..zones * group.replicas)
        .map(|index| {
            let (zone, ordinal) = match group.layout {
                Layout::Formula => (index / group.replicas, index % group.replicas),
                Layout::Table => (index % zones, index / zones),
            };
            let dns = group
                .naming
                .instance_address(group.instance_group, "", index);
            let selects = group.versions.iter();
            Service {
                name: dns.split('.').next().unwrap_or_default().to_owned(),
                dns,
                zone,
                ordinal,
                selects: selects
                    .map(|version| format!("z{zone}-v{version}-{ordinal}"))
                    .collect(),
            }
        })
        .collect()
}
