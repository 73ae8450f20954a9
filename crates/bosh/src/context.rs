//! The context in which the templates of one job are evaluated on one instance.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use crate::instances::{Instance, Profile};
use crate::links::{Link, LinkProvider};
use crate::resolve::{Resolved, ResolvedGroup, ResolvedJob};

/// The context, as BOSH's `EvaluationContext` takes it. `ip` is the address in the group's default
/// network, once it is known.
///
/// Links that are null are left out: templates find them the same way as links that don't exist.
pub fn context(
    resolved: &Resolved,
    group: &ResolvedGroup,
    job: &ResolvedJob,
    instance: &Instance,
    ip: Option<&str>,
) -> Json {
    let mut context = shared_context(resolved, group, job);
    context.append(&mut instance_context(resolved, group, job, instance, ip));
    Json::Object(context)
}

/// The members of the context that all instances of the group share.
pub fn shared_context(
    resolved: &Resolved,
    group: &ResolvedGroup,
    job: &ResolvedJob,
) -> Map<String, Json> {
    let naming = &resolved.naming;
    let name = naming.job_instance_name(&group.name, &job.name);
    let links: Map<String, Json> = job
        .links
        .iter()
        .filter_map(|(name, link)| Some((name.clone(), link_context(resolved, link.as_ref()?))))
        .collect();
    members([
        ("name", json!(name)),
        ("deployment", json!(resolved.deployment)),
        ("properties", json!(job.properties)),
        ("links", json!(links)),
        (
            "release",
            json!({"name": job.release.name, "version": job.release.version}),
        ),
        ("job", json!({"name": name})),
        ("dns_domain_name", json!(naming.domain)),
        (
            "persistent_disk",
            json!(group.definition.persistent_disk.unwrap_or(0)),
        ),
    ])
}

/// The members of the context that differ between instances.
pub fn instance_context(
    resolved: &Resolved,
    group: &ResolvedGroup,
    job: &ResolvedJob,
    instance: &Instance,
    ip: Option<&str>,
) -> Map<String, Json> {
    let id = resolved
        .naming
        .job_instance_id(&group.name, instance.index, &job.name);
    let mut context = members([
        ("index", json!(instance.index)),
        ("id", json!(id)),
        ("az", json!(instance.az)),
        ("address", json!(instance.address)),
        ("bootstrap", json!(instance.bootstrap)),
        ("networks", json!(networks(resolved, group, instance, ip))),
    ]);
    if let Some(ip) = ip {
        context.insert("ip".to_owned(), ip.into());
    }
    context
}

fn members<const N: usize>(members: [(&str, Json); N]) -> Map<String, Json> {
    let members = members.into_iter();
    members
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The tables of BOSH's DNS encoder, for `link.address`. `None` if links have their addresses.
///
/// The Director numbers zones as it meets them; here their number is their position by name.
pub fn dns_tables(resolved: &Resolved) -> Option<Json> {
    if resolved.naming.profile != Profile::Bosh {
        return None;
    }
    let groups = resolved
        .groups
        .iter()
        .flat_map(|group| &group.definition.azs);
    let linked = resolved
        .groups
        .iter()
        .flat_map(|group| &group.jobs)
        .flat_map(|job| {
            let links = job.links.values().flatten();
            links.flat_map(|link| link.instances.as_array().into_iter().flatten())
        });
    let linked = linked.filter_map(|instance| instance["az"].as_str());
    let names: BTreeSet<&str> = groups.map(String::as_str).chain(linked).collect();
    let numbers = names.iter().zip(1..);
    let azs: Map<String, Json> = numbers
        .map(|(name, number): (_, u32)| ((*name).to_owned(), number.to_string().into()))
        .collect();
    Some(json!({"azs": azs}))
}

fn link_context(resolved: &Resolved, link: &Link) -> Json {
    let mut content = json!({"instances": link.instances, "properties": link.properties});
    match &link.provider {
        LinkProvider::Job {
            deployment,
            group,
            network,
            ..
        } if resolved.naming.profile == Profile::Bosh => {
            // The encoder makes the address: templates may ask for zones and a status.
            content["instance_group"] = group.as_str().into();
            content["deployment_name"] = deployment.as_str().into();
            content["default_network"] = network.as_str().into();
            content["domain"] = resolved.naming.domain.as_str().into();
        }
        LinkProvider::Job { .. } | LinkProvider::Manual => {
            content["address"] = link.address.clone();
        }
    }
    content
}

fn networks(
    resolved: &Resolved,
    group: &ResolvedGroup,
    instance: &Instance,
    ip: Option<&str>,
) -> Map<String, Json> {
    let definition = &group.definition;
    let only = definition.networks.len() == 1;
    let networks = definition.networks.iter().map(|network| {
        let name = network.name.as_str();
        let address = resolved
            .naming
            .instance_address(&group.name, name, instance.index);
        let mut content = json!({"dns_record_name": address});
        if only {
            content["default"] = json!(["dns", "gateway"]);
        } else if !network.default.is_empty() {
            content["default"] = json!(network.default);
        }
        if definition.default_network() == Some(name)
            && let Some(ip) = ip
        {
            content["ip"] = ip.into();
        }
        (name.to_owned(), content)
    });
    networks.collect()
}
