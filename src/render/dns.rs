//! The DNS names of groups and their instances.
//!
//! In: the facts of a group. Out: names, by the formula of the BOSH operator for Kubernetes:
//! `CLUSTER-GROUP-INDEX.NAMESPACE.DOMAIN`. Must not: serve or look up names.

use nstance_bosh::instances::truncated_label;

use super::data::{GroupFacts, ShardFacts};
use super::facts::shard_facts;
use crate::config::model::Config;
use crate::merge::group::MergedGroup;

/// The domain of a cluster without one.
const DOMAIN: &str = "internal";

/// The limit of a group's label, in characters.
const LONGEST_GROUP: usize = 63;

/// The same where an index follows.
const LONGEST_INSTANCE: usize = 53;

/// The names of a group and its instances.
#[derive(Debug, Clone)]
pub struct DnsNames {
    group: String,
    /// What the names of instances begin with: `CLUSTER-GROUP-`.
    prefix: String,
    /// `.NAMESPACE.DOMAIN`
    suffix: String,
}

impl DnsNames {
    /// The names of a configured group.
    pub fn of_group(config: &Config, group: &MergedGroup<'_>) -> Self {
        Self::new(&shard_facts(config), group.name.tenant(), group.name.name())
    }

    /// The names of a group.
    pub fn of(facts: &GroupFacts) -> Self {
        Self::new(&facts.of_shard, &facts.tenant, &facts.group)
    }

    fn new(shard: &ShardFacts, tenant: &str, group: &str) -> Self {
        let domain = match &*shard.dns_domain {
            "" => DOMAIN,
            domain => domain,
        };
        let suffix = match &shard.dns_namespace {
            Some(namespace) => format!(".{namespace}.{domain}"),
            None => format!(".{tenant}.{}.{domain}", shard.shard),
        };
        let label = format!("{}-{group}", shard.cluster_id);
        Self {
            group: truncated_label(&label, LONGEST_GROUP) + &suffix,
            prefix: truncated_label(&label, LONGEST_INSTANCE) + "-",
            suffix,
        }
    }

    /// The name of the group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The name of the instance with this index.
    pub fn instance(&self, index: u32) -> String {
        format!("{}{index}{}", self.prefix, self.suffix)
    }
}
