//! The two documents that Quarks makes of an instance group: its resolved properties, and its BPM.
//!
//! Both are deployment manifests cut down to what the group needs. What isn't part of a manifest
//! stands under `properties.quarks` of each job.

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use crate::bpm::JobBpm;
use crate::links::LinkProvider;
use crate::manifest::InstanceGroup;
use crate::resolve::{Resolved, ResolvedGroup, ResolvedJob};
use crate::value::Value;

/// A document and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// `dig-resolved.<group>-v<version>` or `bpm.<group>-v<version>`.
    pub name: String,
    /// A deployment manifest. It has the jobs' secrets.
    pub content: Json,
}

/// The "Resolved Instance Group Properties": the group with its jobs, and the jobs that provide
/// links to them. `version` counts the changes of the manifest, from 1. The rendered BPM is part of
/// it once there is one.
///
/// Providers of other deployments aren't in it; their links are.
pub fn resolved_group(
    resolved: &Resolved,
    group: &ResolvedGroup,
    version: u32,
    bpm: Option<&IndexMap<String, JobBpm>>,
) -> Document {
    let jobs = group.jobs.iter().map(|job| {
        let mut quarks = Map::new();
        let links = job.links.iter().filter_map(|(name, link)| {
            let link = link.as_ref()?;
            let content = json!({
                "address": link.address,
                "instances": link.instances,
                "properties": link.properties,
            });
            Some((name.clone(), content))
        });
        quarks.insert("consumes".to_owned(), Json::Object(links.collect()));
        quarks.insert("instances".to_owned(), job.instances.clone().into());
        if let Some(bpm) = bpm.and_then(|bpm| bpm.get(&job.name)) {
            quarks.insert("bpm".to_owned(), bpm.to_json());
        }
        job_entry(job, &job.properties, quarks)
    });
    let mut groups = vec![group_entry(group, jobs.collect())];
    for other in &resolved.groups {
        let providers: Vec<Json> = other
            .jobs
            .iter()
            .filter(|job| other.name != group.name && provides_to(resolved, other, job, group))
            .map(|job| {
                let instances = job.instances.clone().into();
                let quarks = Map::from_iter([("instances".to_owned(), instances)]);
                job_entry(job, &job.properties, quarks)
            })
            .collect();
        if !providers.is_empty() {
            groups.push(group_entry(other, providers));
        }
    }
    let mut content = manifest(resolved, &groups);
    if let Some(stemcell) = &group.stemcell {
        content["stemcells"] = json!([without_null([
            ("alias", json!(stemcell.alias)),
            ("os", json!(stemcell.os)),
            ("name", json!(stemcell.name)),
            ("version", json!(stemcell.version)),
        ])]);
    }
    Document {
        name: format!("dig-resolved.{}-v{version}", group.name),
        content,
    }
}

/// The "BPM Info": the rendered BPM of each job of the group, without its properties.
pub fn bpm(
    resolved: &Resolved,
    group: &ResolvedGroup,
    version: u32,
    bpm: &IndexMap<String, JobBpm>,
) -> Document {
    let jobs = group.jobs.iter().map(|job| {
        let mut quarks = Map::new();
        if let Some(bpm) = bpm.get(&job.name) {
            quarks.insert("bpm".to_owned(), bpm.to_json());
        }
        job_entry(job, &Map::new(), quarks)
    });
    let groups = vec![group_entry(group, jobs.collect())];
    Document {
        name: format!("bpm.{}-v{version}", group.name),
        content: manifest(resolved, &groups),
    }
}

/// A manifest of groups, with the releases that their jobs use.
fn manifest(resolved: &Resolved, groups: &[Json]) -> Json {
    let uses = |release: &str| {
        let jobs = groups
            .iter()
            .filter_map(|group| group["jobs"].as_array())
            .flatten();
        jobs.into_iter().any(|job| job["release"] == release)
    };
    let releases = resolved
        .releases
        .iter()
        .filter(|release| uses(&release.name));
    let releases: Vec<Json> = releases
        .map(|release| {
            without_null([
                ("name", json!(release.name)),
                ("version", json!(release.version)),
                ("url", json!(release.url)),
                ("sha1", json!(release.sha1)),
            ])
        })
        .collect();
    json!({"name": resolved.deployment, "releases": releases, "instance_groups": groups})
}

fn group_entry(group: &ResolvedGroup, jobs: Vec<Json>) -> Json {
    let InstanceGroup {
        name,
        instances,
        azs,
        vm_type,
        vm_resources,
        vm_extensions,
        stemcell,
        persistent_disk,
        persistent_disk_type,
        networks,
        update,
        lifecycle,
        env,
        tags,
        ..
    } = &group.definition;
    let networks = networks.iter().map(|network| {
        without_null([
            ("name", json!(network.name)),
            ("static_ips", given(network.static_ips.as_ref())),
            ("default", unless_empty(&network.default)),
        ])
    });
    without_null([
        ("name", json!(name)),
        ("instances", json!(instances)),
        ("azs", unless_empty(azs)),
        ("lifecycle", json!(lifecycle.as_str())),
        ("jobs", Json::Array(jobs)),
        ("vm_type", json!(vm_type)),
        ("vm_resources", given(vm_resources.as_ref())),
        ("vm_extensions", unless_empty(vm_extensions)),
        ("stemcell", json!(stemcell)),
        ("persistent_disk", json!(persistent_disk)),
        ("persistent_disk_type", json!(persistent_disk_type)),
        ("networks", networks.collect()),
        ("update", given(update.as_ref())),
        ("env", given(env.as_ref())),
        ("tags", given(tags.as_ref())),
    ])
}

fn job_entry(job: &ResolvedJob, properties: &Map<String, Json>, quarks: Map<String, Json>) -> Json {
    let mut properties = properties.clone();
    properties.insert("quarks".to_owned(), Json::Object(quarks));
    json!({"name": job.name, "release": job.release.name, "properties": properties})
}

/// Whether a job provides a link to a job of a group.
fn provides_to(
    resolved: &Resolved,
    provider_group: &ResolvedGroup,
    provider_job: &ResolvedJob,
    group: &ResolvedGroup,
) -> bool {
    let links = group
        .jobs
        .iter()
        .flat_map(|job| job.links.values().flatten());
    let mut providers = links.map(|link| &link.provider);
    providers.any(|provider| match provider {
        LinkProvider::Manual => false,
        LinkProvider::Job {
            deployment,
            group,
            job,
            ..
        } => {
            *deployment == resolved.deployment
                && *group == provider_group.name
                && *job == provider_job.name
        }
    })
}

fn given(value: Option<&Value>) -> Json {
    value.map_or(Json::Null, Value::to_json)
}

fn unless_empty(names: &[String]) -> Json {
    if names.is_empty() {
        Json::Null
    } else {
        json!(names)
    }
}

fn without_null<const N: usize>(members: [(&str, Json); N]) -> Json {
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    let members: Map<String, Json> = members
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Json::Object(members)
}
