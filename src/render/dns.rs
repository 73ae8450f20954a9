//! The DNS names of groups and their instances.
//!
//! In: the facts of a group. Out: names, by the formula of the BOSH operator for Kubernetes:
//! `CLUSTER-GROUP-INDEX.NAMESPACE.DOMAIN`. Must not: serve or look up names.

use nstance_bosh::instances::truncated_label;

use super::data::GroupFacts;

/// The domain of a cluster without one.
const DOMAIN: &str = "internal";

/// The names of a group and its instances.
#[derive(Debug, Clone)]
pub struct DnsNames {
    /// `CLUSTER-GROUP`
    prefix: String,
    /// `.NAMESPACE.DOMAIN`
    suffix: String,
}

impl DnsNames {
    /// The names of a group.
    pub fn of(facts: &GroupFacts) -> Self {
        let shard = &facts.of_shard;
        let domain = match &*shard.dns_domain {
            "" => DOMAIN,
            domain => domain,
        };
        let suffix = match &shard.dns_namespace {
            Some(namespace) => format!(".{namespace}.{domain}"),
            None => format!(".{}.{}.{domain}", facts.tenant, shard.shard),
        };
        Self {
            prefix: format!("{}-{}", shard.cluster_id, facts.group),
            suffix,
        }
    }

    /// The name of the group.
    pub fn group(&self) -> String {
        format!("{}{}", truncated_label(&self.prefix, 63), self.suffix)
    }

    /// The name of the instance with this index.
    pub fn instance(&self, index: u32) -> String {
        format!(
            "{}-{index}{}",
            truncated_label(&self.prefix, 53),
            self.suffix
        )
    }
}
