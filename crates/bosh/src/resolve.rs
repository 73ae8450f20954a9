//! Resolves a manifest: addons, instances, properties and links.
//!
//! In: a manifest, the jobs of its releases, and the deployments that were resolved before it. Out:
//! everything that a template may ask for. The errors of one step are reported together; later
//! steps don't run.

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use crate::instances::{Instance, Naming, Profile};
use crate::links::{Consumer, JobOfGroup, Link, Provider};
use crate::manifest::{InstanceGroup, Lifecycle, Manifest, Release, Stemcell};
use crate::release::{JobSpec, Releases, Template};
use crate::value::Value;
use crate::{Error, addons, instances, links, properties};

/// How a manifest is resolved.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What `instances` counts, and how instances are named. Without one, the names are those of
    /// [`Profile::Quarks`], and a group with several zones is an error.
    pub profile: Option<Profile>,
    /// The namespace in addresses of [`Profile::Quarks`]; `default` if it isn't set.
    pub namespace: Option<String>,
    /// The end of all addresses; `svc.cluster.local` or BOSH's `bosh` if it isn't set.
    pub service_domain: Option<String>,
}

/// A resolved deployment.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The deployment's name.
    pub deployment: String,
    /// The releases that it names.
    pub releases: Vec<Release>,
    /// The instance groups, in the manifest's order.
    pub groups: Vec<ResolvedGroup>,
    /// Every link that its jobs provide, for other deployments.
    pub providers: Vec<Provider>,
    /// The manifest's `update` block.
    pub update: Option<Value>,
    /// The manifest's tags.
    pub tags: Option<Value>,
    /// How its instances are named.
    pub naming: Naming,
    /// What a person should look at.
    pub warnings: Vec<Error>,
}

/// A resolved instance group.
#[derive(Debug, Clone)]
pub struct ResolvedGroup {
    /// The group's name.
    pub name: String,
    /// Whether the instances are kept running.
    pub lifecycle: Lifecycle,
    /// The address of the whole group.
    pub address: String,
    /// The manifest's `instances`.
    pub replicas: u32,
    /// The instances, by ascending index.
    pub instances: Vec<Instance>,
    /// The jobs, those of addons last.
    pub jobs: Vec<ResolvedJob>,
    /// The stemcell.
    pub stemcell: Option<Stemcell>,
    /// The rest of the group: VM type, networks, disks, `env`, `update` and tags.
    pub definition: InstanceGroup,
}

/// A resolved job of an instance group.
#[derive(Debug, Clone)]
pub struct ResolvedJob {
    /// The job's name.
    pub name: String,
    /// The job's release.
    pub release: Release,
    /// The declared properties with their values.
    pub properties: Map<String, Json>,
    /// The consumed links; null where an optional one has no provider or one is set to `nil`.
    pub links: IndexMap<String, Option<Link>>,
    /// Name, index, id, zone, address and bootstrap of each instance, by ascending index.
    pub instances: Vec<Json>,
    /// The templates.
    pub templates: Vec<Template>,
    /// The text of `monit`.
    pub monit: Option<String>,
}

impl Resolved {
    /// The group of a name.
    pub fn group(&self, name: &str) -> Option<&ResolvedGroup> {
        self.groups.iter().find(|group| group.name == name)
    }
}

/// Resolves a manifest. `others` are the deployments that links may come from.
///
/// # Errors
///
/// All errors of the first step that has any: addons, jobs and instances; links as they are
/// written; properties; the choice of providers.
pub fn resolve(
    manifest: &Manifest,
    releases: &Releases,
    others: &[Resolved],
    options: &Options,
) -> Result<Resolved, Vec<Error>> {
    let naming = naming(&manifest.name, options);
    let with_addons = addons::apply(manifest)?;
    let groups = &with_addons.groups;

    let instances = all(groups.iter(), |group| {
        instances::list(group, options.profile, &naming).map_err(|error| vec![error])
    });
    // One for each entry of `order`.
    let specs = all(with_addons.order.iter(), |&(group, job)| {
        spec(&groups[group], job, releases)
    });
    let (instances, specs) = both(instances, specs)?;

    let jobs: Vec<Step> = with_addons
        .order
        .iter()
        .zip(&specs)
        .map(|(&(group, job), spec)| {
            let at = JobOfGroup {
                group: &groups[group],
                job: &groups[group].jobs[job],
                spec,
            };
            Step {
                at,
                group,
                job,
                source: properties::source(manifest, at.group, at.job),
            }
        })
        .collect();

    let mut warnings: Vec<Error> = manifest.warnings.clone();
    let known = others.iter().map(|other| other.deployment.as_str());
    let deployments: Vec<&str> = known.chain([manifest.name.as_str()]).collect();
    let defined = all(jobs.iter(), |step| {
        let here = &instances[step.group];
        let provided = links::providers(step.at, &step.source, &naming, here, &mut warnings);
        let consumed = links::consumers(step.at, &deployments, &mut warnings);
        both(provided, consumed)
    })?;
    let (provided, consumed): (Vec<Vec<Provider>>, Vec<Vec<Consumer>>) =
        defined.into_iter().unzip();
    let providers: Vec<Provider> = provided.into_iter().flatten().collect();

    let bound = all(jobs.iter(), |step| {
        properties::bind(&step.at.spec.properties, &step.source)
    })?;

    let everywhere: Vec<&Provider> = others
        .iter()
        .filter(|other| other.deployment != manifest.name)
        .flat_map(|other| &other.providers)
        .chain(&providers)
        .collect();
    let links = resolve_links(&manifest.name, &consumed, &everywhere, options.profile)?;

    let mut resolved_jobs: Vec<Vec<(usize, ResolvedJob)>> = vec![Vec::new(); groups.len()];
    for ((step, properties), links) in jobs.iter().zip(bound).zip(links) {
        let JobOfGroup { group, job, spec } = step.at;
        let release = manifest.release(&job.release).cloned();
        resolved_jobs[step.group].push((
            step.job,
            ResolvedJob {
                name: job.name.clone(),
                // The manifest was checked: every job's release is listed.
                release: release.unwrap_or_else(|| Release::unversioned(&job.release)),
                properties,
                links,
                instances: links::job_instances(
                    &naming,
                    &group.name,
                    &job.name,
                    &instances[step.group],
                ),
                templates: spec.templates.clone(),
                monit: spec.monit.clone(),
            },
        ));
    }
    let groups = groups.iter().zip(instances).zip(resolved_jobs);
    let groups = groups.map(|((group, instances), mut jobs)| {
        jobs.sort_by_key(|(position, _)| *position);
        let network = group.default_network().unwrap_or_default();
        ResolvedGroup {
            name: group.name.clone(),
            lifecycle: group.lifecycle,
            address: naming.group_address(&group.name, network),
            replicas: group.instances,
            instances,
            jobs: jobs.into_iter().map(|(_, job)| job).collect(),
            stemcell: manifest.stemcell(group).cloned(),
            definition: group.clone(),
        }
    });
    Ok(Resolved {
        deployment: manifest.name.clone(),
        releases: manifest.releases.clone(),
        groups: groups.collect(),
        providers,
        update: manifest.update.clone(),
        tags: manifest.tags.clone(),
        naming,
        warnings,
    })
}

/// A job on its way, with its position.
struct Step<'m> {
    at: JobOfGroup<'m>,
    group: usize,
    job: usize,
    /// What its properties are taken from.
    source: Value,
}

fn naming(deployment: &str, options: &Options) -> Naming {
    let profile = options.profile.unwrap_or(Profile::Quarks);
    let given = options.service_domain.as_deref();
    let domain = match profile {
        Profile::Quarks => {
            let namespace = options.namespace.as_deref().unwrap_or("default");
            format!("{namespace}.{}", given.unwrap_or("svc.cluster.local"))
        }
        Profile::Bosh => given.unwrap_or("bosh").to_owned(),
    };
    Naming {
        profile,
        deployment: deployment.to_owned(),
        domain,
    }
}

fn spec(group: &InstanceGroup, job: usize, releases: &Releases) -> Result<JobSpec, Vec<Error>> {
    let job = &group.jobs[job];
    let release = releases.get(&job.release);
    match release.and_then(|jobs| jobs.get(&job.name)) {
        Some(source) => JobSpec::read(&job.release, &job.name, source),
        None => {
            let message = format!("Job '{}' not found in release '{}'", job.name, job.release);
            Err(vec![Error::at(job.place, message)])
        }
    }
}

/// The links of each job's consumers.
///
/// # Errors
///
/// One error with the lines of every link that can't be resolved, at the first of them.
fn resolve_links(
    deployment: &str,
    consumers: &[Vec<Consumer>],
    providers: &[&Provider],
    profile: Option<Profile>,
) -> Result<Vec<IndexMap<String, Option<Link>>>, Vec<Error>> {
    let mut failures = Vec::new();
    let mut first = None;
    let mut resolved = Vec::new();
    for of_job in consumers {
        let mut of_names = IndexMap::new();
        for consumer in of_job {
            match links::resolve(consumer, deployment, providers, profile) {
                Ok(link) => {
                    of_names.insert(consumer.name.clone(), link);
                }
                Err(failure) => {
                    first = first.or(Some(consumer.place));
                    failures.push(failure);
                }
            }
        }
        resolved.push(of_names);
    }
    match first {
        None => Ok(resolved),
        Some(place) => {
            let message = format!(
                "Failed to resolve links from deployment '{deployment}'. See errors below:\n  - {}",
                failures.join("\n  - ")
            );
            Err(vec![Error::at(place, message)])
        }
    }
}

/// The results of every item, or all their errors.
fn all<I, T>(
    items: impl Iterator<Item = I>,
    mut one: impl FnMut(I) -> Result<T, Vec<Error>>,
) -> Result<Vec<T>, Vec<Error>> {
    let mut results = Vec::new();
    let mut errors = Vec::new();
    for item in items {
        match one(item) {
            Ok(result) => results.push(result),
            Err(wrong) => errors.extend(wrong),
        }
    }
    if errors.is_empty() {
        Ok(results)
    } else {
        Err(errors)
    }
}

/// Both results, or the errors of both.
fn both<T, U>(
    left: Result<T, Vec<Error>>,
    right: Result<U, Vec<Error>>,
) -> Result<(T, U), Vec<Error>> {
    match (left, right) {
        (Ok(left), Ok(right)) => Ok((left, right)),
        (left, right) => {
            let mut errors = left.err().unwrap_or_default();
            errors.extend(right.err().unwrap_or_default());
            Err(errors)
        }
    }
}
