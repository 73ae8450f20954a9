//! Cases of kind `resolve`: properties, links, instances, addons and the errors of manifests.

use indexmap::IndexMap;
use nstance_bosh::Error;
use nstance_bosh::instances::{Instance, Profile};
use nstance_bosh::links::{Link, LinkProvider};
use nstance_bosh::manifest::Manifest;
use nstance_bosh::release::{JobSource, Releases};
use nstance_bosh::resolve::{Options, Resolved, ResolvedGroup, ResolvedJob, resolve};
use nstance_bosh::yaml;
use serde_json::{Map, Value as Json, json};

pub(crate) fn check(case: &Json) -> Result<(), String> {
    let expect = &case["expect"];
    match (resolved(case), expect["ok"] == true) {
        (Ok(resolved), true) => {
            let groups = resolved.groups.iter();
            let groups: Map<String, Json> = groups
                .map(|group| (group.name.clone(), of_group(group)))
                .collect();
            let warnings = resolved.warnings.iter().map(Error::to_string);
            let ours = json!({
                "ok": true,
                "groups": groups,
                "warnings": warnings.collect::<Vec<_>>(),
            });
            super::same(&ours, expect)
        }
        (Ok(_), false) => Err(format!("no error, but {}", expect["error"])),
        (Err(errors), true) => Err(format!("error {}", joined(&errors))),
        (Err(errors), false) => super::compare_errors(&errors, expect),
    }
}

/// The resolved deployment of a case of kind `resolve`, `e2e` or `bpm`.
pub(crate) fn resolved(case: &Json) -> Result<Resolved, Vec<Error>> {
    let text = |name: &str| case["options"][name].as_str().map(str::to_owned);
    let options = Options {
        profile: Some(Profile::Quarks),
        namespace: text("namespace"),
        service_domain: text("service_domain"),
    };
    let mut others = Vec::new();
    for other in case["others"].as_array().into_iter().flatten() {
        others.push(one(other, &others, &options)?);
    }
    one(case, &others, &options)
}

fn one(input: &Json, others: &[Resolved], options: &Options) -> Result<Resolved, Vec<Error>> {
    let text = input["manifest"].as_str().unwrap();
    let manifest = yaml::read(text, 0).map_err(|error| vec![error])?;
    let manifest = Manifest::read(&manifest)?;
    resolve(&manifest, &releases(&input["releases"]), others, options)
}

/// Jobs are given by their spec, or by an object with `spec`, `templates` and `monit`.
fn releases(input: &Json) -> Releases {
    let mut releases = Releases::new();
    for (release, jobs) in input.as_object().unwrap() {
        let mut sources = IndexMap::new();
        for (job, given) in jobs.as_object().unwrap() {
            let spec = given.as_str().or(given["spec"].as_str()).unwrap();
            let templates = given["templates"].as_object().into_iter().flatten();
            let source = JobSource {
                spec: yaml::read(spec, 0).unwrap(),
                templates: templates
                    .map(|(path, text)| (path.clone(), text.as_str().unwrap().to_owned()))
                    .collect(),
                monit: given["monit"].as_str().map(str::to_owned),
            };
            sources.insert(job.clone(), source);
        }
        releases.insert(release.clone(), sources);
    }
    releases
}

pub(crate) fn joined(errors: &[Error]) -> String {
    let messages: Vec<String> = errors.iter().map(Error::to_string).collect();
    messages.join("\n")
}

fn of_group(group: &ResolvedGroup) -> Json {
    let jobs = group.jobs.iter();
    let jobs: Map<String, Json> = jobs.map(|job| (job.name.clone(), of_job(job))).collect();
    json!({
        "lifecycle": group.lifecycle.as_str(),
        "address": group.address,
        "replicas": group.replicas,
        "instances": group.instances.iter().map(of_instance).collect::<Vec<_>>(),
        "jobs": jobs,
    })
}

fn of_instance(instance: &Instance) -> Json {
    json!({
        "index": instance.index,
        "az": instance.az,
        "az_index": instance.az_index,
        "ordinal": instance.ordinal,
        "bootstrap": instance.bootstrap,
        "address": instance.address,
    })
}

fn of_job(job: &ResolvedJob) -> Json {
    let links = job.links.iter();
    let links: Map<String, Json> = links
        .map(|(name, link)| (name.clone(), link.as_ref().map_or(Json::Null, of_link)))
        .collect();
    json!({"properties": job.properties, "links": links, "instances": job.instances})
}

fn of_link(link: &Link) -> Json {
    let provider = match &link.provider {
        LinkProvider::Manual => json!({"kind": "manual"}),
        LinkProvider::Job {
            deployment,
            group,
            job,
            name,
            original_name,
            kind,
            network: _,
        } => json!({
            "kind": "job",
            "deployment": deployment,
            "group": group,
            "job": job,
            "name": name,
            "original_name": original_name,
            "type": kind,
        }),
    };
    json!({
        "provider": provider,
        "address": link.address,
        "properties": link.properties,
        "instances": link.instances,
    })
}
