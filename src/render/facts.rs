//! Collects the facts for templates from a configuration.
//!
//! In: a configuration, and a merged group of it. Out: facts for [`data`](super::data). Must not:
//! build the template engine's values.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::data::{GroupFacts, ShardFacts};
use crate::config::model::Config;
use crate::merge::group::MergedGroup;

/// The facts that all groups share.
pub(super) fn shard_facts(config: &Config) -> ShardFacts {
    let advertise = &config.shard.advertise;
    ShardFacts {
        cluster_id: Arc::clone(&config.cluster.id.value),
        cluster_slug: Arc::clone(&config.cluster.slug),
        cluster_fqdn: Arc::clone(&config.cluster.fqdn),
        ca_cert: config.cluster.ca_cert.as_ref().map_or_else(
            || format!("ca-cert-of-{}", config.cluster.id.value).into(),
            |text| Arc::clone(&text.value),
        ),
        shard: Arc::clone(&config.shard.id.value),
        registration_addr: Arc::clone(&advertise.registration_addr),
        agent_addr: Arc::clone(&advertise.agent_addr),
        operator_addr: Arc::clone(&advertise.operator_addr),
        provider: Arc::clone(&config.shard.infra.provider_name),
        region: Arc::clone(&config.shard.infra.region.value),
        zone: Arc::clone(&config.shard.infra.zone.value),
        dns_namespace: config.dns.namespace.clone(),
        dns_domain: Arc::clone(config.dns.domain.as_ref().unwrap_or(&config.cluster.fqdn)),
    }
}

/// The facts of a group, with the vars of the group or of a slot with an override.
pub(super) fn group_facts(
    shard: &Arc<ShardFacts>,
    group: &MergedGroup<'_>,
    vars: &Value,
    images: &BTreeMap<Arc<str>, Option<Arc<str>>>,
    id: &Arc<str>,
) -> GroupFacts {
    GroupFacts {
        of_shard: Arc::clone(shard),
        id: Arc::clone(id),
        tenant: group.name.tenant().into(),
        group: group.name.name().into(),
        size: group.size,
        labels: group.group_labels.clone(),
        instance_labels: group.labels.clone(),
        template: group.template.clone().unwrap_or_else(|| "".into()),
        vars: vars.clone(),
        images: images.clone(),
        lists_zones: group.lists_zones,
    }
}
