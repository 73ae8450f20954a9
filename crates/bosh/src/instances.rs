//! The instances of a group: index, zone, id and address.
//!
//! Two profiles number and name them differently; see [`Profile`].

use md5::{Digest, Md5};

use crate::Error;
use crate::manifest::InstanceGroup;

/// What `instances` counts, and how instances are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// `instances` is the count in each zone; zone by zone. Names are those of the Quarks operator.
    Quarks,
    /// `instances` is the total, spread over the zones. Names are those of BOSH's DNS.
    Bosh,
}

/// An instance of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The number in the group, from 0.
    pub index: u32,
    /// The zone; `None` if the group has no zones.
    pub az: Option<String>,
    /// The position of the zone in the group's list, from 1; 1 without zones.
    pub az_index: u32,
    /// The number in the zone, from 0.
    pub ordinal: u32,
    /// Whether it is the instance with index 0.
    pub bootstrap: bool,
    /// The DNS name, in the group's default network.
    pub address: String,
}

/// The names of a deployment's instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// Which rules hold.
    pub profile: Profile,
    /// The deployment's name.
    pub deployment: String,
    /// What follows the name of a group or instance: namespace and domain, or BOSH's domain.
    pub domain: String,
}

impl Naming {
    /// The address of a whole group in one of its networks.
    pub fn group_address(&self, group: &str, network: &str) -> String {
        let Self {
            deployment, domain, ..
        } = self;
        match self.profile {
            Profile::Quarks => {
                let label = truncated_label(&format!("{deployment}-{group}"), 63);
                format!("{label}.{domain}")
            }
            // Every healthy instance in every zone.
            Profile::Bosh => {
                let [group, network, deployment] = [group, network, deployment].map(dns_label);
                format!("q-s0.{group}.{network}.{deployment}.{domain}")
            }
        }
    }

    /// The address of an instance in one of its group's networks.
    pub fn instance_address(&self, group: &str, network: &str, index: u32) -> String {
        let Self {
            deployment, domain, ..
        } = self;
        match self.profile {
            Profile::Quarks => {
                let label = truncated_label(&format!("{deployment}-{group}"), 53);
                format!("{label}-{index}.{domain}")
            }
            Profile::Bosh => {
                let id = self.uuid(group, index);
                let [group, network, deployment] = [group, network, deployment].map(dns_label);
                format!("{id}.{group}.{network}.{deployment}.{domain}")
            }
        }
    }

    /// The name of a job's instances.
    pub fn job_instance_name(&self, group: &str, job: &str) -> String {
        match self.profile {
            Profile::Quarks => format!("{group}-{job}"),
            Profile::Bosh => group.to_owned(),
        }
    }

    /// The id of a job's instance.
    pub fn job_instance_id(&self, group: &str, index: u32, job: &str) -> String {
        match self.profile {
            Profile::Quarks => format!("{group}-{index}-{job}"),
            Profile::Bosh => self.uuid(group, index),
        }
    }

    /// A UUID that stays the same as long as the names do (version 3 of RFC 9562). The Director
    /// draws a random one and stores it; a plan has nowhere to store it before it is applied.
    fn uuid(&self, group: &str, index: u32) -> String {
        let digest = Md5::digest(format!("{}/{group}/{index}", self.deployment));
        let mut bytes: [u8; 16] = digest.into();
        bytes[6] = bytes[6] & 0x0f | 0x30;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = hex(&bytes);
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        parts.join("-")
    }
}

/// The instances of a group, by ascending index.
///
/// # Errors
///
/// The group has several zones and no profile says what `instances` counts. With BOSH's profile, the
/// group has no network.
pub fn list(
    group: &InstanceGroup,
    profile: Option<Profile>,
    naming: &Naming,
) -> Result<Vec<Instance>, Error> {
    if profile.is_none() && group.azs.len() > 1 {
        let message = format!(
            "Instance group '{}' has {} availability zones, but no profile says what 'instances' \
             counts",
            group.name,
            group.azs.len()
        );
        return Err(Error::at(group.place, message).with_hint(
            "set the profile to `quarks` for instances in each zone, or to `bosh` for instances in \
             total",
        ));
    }
    if profile == Some(Profile::Bosh) && group.networks.is_empty() {
        let message = format!(
            "Instance group '{}' must specify at least one network",
            group.name
        );
        return Err(Error::at(group.place, message));
    }
    let places = match profile {
        Some(Profile::Bosh) => spread(group.instances, &group.azs),
        Some(Profile::Quarks) | None => in_each_zone(group.instances, group.azs.len()),
    };
    let network = group.default_network().unwrap_or_default();
    let instances = places
        .into_iter()
        .zip(0..)
        .map(|((zone, ordinal), index)| Instance {
            index,
            az: group.azs.get(zone).cloned(),
            az_index: zone as u32 + 1,
            ordinal,
            bootstrap: index == 0,
            address: naming.instance_address(&group.name, network, index),
        });
    Ok(instances.collect())
}

/// Zone and number in the zone of each instance, zone by zone.
fn in_each_zone(count: u32, zones: usize) -> Vec<(usize, u32)> {
    let zones = 0..zones.max(1);
    zones
        .flat_map(|zone| (0..count).map(move |ordinal| (zone, ordinal)))
        .collect()
}

/// Zone and number in the zone of each instance: always the zone with the fewest instances, among
/// these the one with the smallest name.
fn spread(count: u32, azs: &[String]) -> Vec<(usize, u32)> {
    let mut placed = vec![0_u32; azs.len().max(1)];
    let mut places = Vec::new();
    for _ in 0..count {
        let fewest = (0..placed.len()).min_by_key(|&zone| (placed[zone], azs.get(zone)));
        let zone = fewest.unwrap_or(0);
        places.push((zone, placed[zone]));
        placed[zone] += 1;
    }
    places
}

/// A name as one label of a DNS name: lower case, `-` for `_`, other characters dropped.
pub fn dns_label(name: &str) -> String {
    let lower = name.to_lowercase().replace('_', "-");
    let kept: String = lower
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || *character == '-')
        .collect();
    kept.trim_matches('-').to_owned()
}

/// A name as a label of at most `limit` characters; the end of a longer one is replaced by the MD5
/// of the whole.
pub fn truncated_label(name: &str, limit: usize) -> String {
    let label = dns_label(name);
    if label.len() <= limit {
        return label;
    }
    let digest: [u8; 16] = Md5::digest(&label).into();
    format!("{}-{}", &label[..limit - 33], hex(&digest))
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(profile: Profile) -> Naming {
        Naming {
            profile,
            deployment: "My_CF".to_owned(),
            domain: "example".to_owned(),
        }
    }

    #[test]
    fn instances_are_spread_over_zones() {
        let zones = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let spread_names = |count, names: &[&str]| {
            let azs = zones(names);
            let places = spread(count, &azs);
            let names = places.iter().map(|&(zone, ordinal)| {
                format!("{}/{ordinal}", azs.get(zone).map_or("-", |az| az))
            });
            names.collect::<Vec<_>>().join(" ")
        };
        for (count, names, expected) in [
            (5, vec!["z1", "z2"], "z1/0 z2/0 z1/1 z2/1 z1/2"),
            // The order of the list doesn't matter.
            (3, vec!["z3", "z1", "z2"], "z1/0 z2/0 z3/0"),
            (2, vec!["z10", "z9"], "z10/0 z9/0"),
            (2, vec![], "-/0 -/1"),
            (0, vec!["z1"], ""),
        ] {
            assert_eq!(spread_names(count, &names), expected, "{count} {names:?}");
        }
        let places = in_each_zone(2, 2);
        assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(in_each_zone(2, 0), [(0, 0), (0, 1)]);
    }

    #[test]
    fn names_become_labels() {
        for (name, expected) in [
            ("Diego_Cell", "diego-cell"),
            ("_a.b c!_", "abc"),
            ("--x--", "x"),
            ("é1", "1"),
        ] {
            assert_eq!(dns_label(name), expected);
        }
        let exact = "a".repeat(53);
        assert_eq!(truncated_label(&exact, 53), exact);
        let long = truncated_label(&format!("{exact}b"), 53);
        assert_eq!(long.len(), 53);
        assert!(long.starts_with("aaaaaaaaaaaaaaaaaaaa-"), "{long}");
    }

    #[test]
    fn profiles_name_instances_differently() {
        let quarks = naming(Profile::Quarks);
        assert_eq!(quarks.group_address("db", "net"), "my-cf-db.example");
        assert_eq!(
            quarks.instance_address("db", "net", 12),
            "my-cf-db-12.example"
        );
        assert_eq!(quarks.job_instance_name("db", "pg"), "db-pg");
        assert_eq!(quarks.job_instance_id("db", 1, "pg"), "db-1-pg");

        let bosh = naming(Profile::Bosh);
        assert_eq!(
            bosh.group_address("db", "Net_A"),
            "q-s0.db.net-a.my-cf.example"
        );
        assert_eq!(bosh.job_instance_name("db", "pg"), "db");
        let id = bosh.job_instance_id("db", 1, "pg");
        assert_eq!(id, bosh.job_instance_id("db", 1, "other"));
        assert_ne!(id, bosh.job_instance_id("db", 2, "pg"));
        assert_eq!(id.len(), 36);
        assert_eq!(&id[14..15], "3");
        let address = bosh.instance_address("db", "net", 1);
        assert_eq!(address, format!("{id}.db.net.my-cf.example"));
    }
}
