//! Addons: jobs that are added to every instance group that matches their rules.

use crate::Error;
use crate::manifest::{Filter, InstanceGroup, Manifest};

/// The instance groups with the jobs of all addons.
#[derive(Debug, Clone)]
pub struct WithAddons {
    /// The groups.
    pub groups: Vec<InstanceGroup>,
    /// The jobs, as positions of a group and of a job in it, in the order in which BOSH reads them:
    /// those of the groups, then those of each addon, job by job.
    pub order: Vec<(usize, usize)>,
}

/// Adds the jobs of all addons to the groups that match. Each addon sees the jobs of those before
/// it.
///
/// # Errors
///
/// An addon's job is already in a group.
pub fn apply(manifest: &Manifest) -> Result<WithAddons, Vec<Error>> {
    let mut groups = manifest.instance_groups.clone();
    let mut order = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        order.extend((0..group.jobs.len()).map(|job| (at, job)));
    }
    let mut errors = Vec::new();
    for addon in &manifest.addons {
        let chosen: Vec<usize> = (0..groups.len())
            .filter(|&at| {
                let group = &groups[at];
                let os = manifest
                    .stemcell(group)
                    .and_then(|stemcell| stemcell.os.as_deref());
                let included = matches(&addon.include, group, os).unwrap_or(true);
                let excluded = matches(&addon.exclude, group, os).unwrap_or(false);
                included && !excluded
            })
            .collect();
        for job in &addon.jobs {
            for &at in &chosen {
                let group = &mut groups[at];
                if group.jobs.iter().any(|own| own.name == job.name) {
                    let message = format!(
                        "Colocated job '{}' is already added to the instance group '{}'.",
                        job.name, group.name
                    );
                    let hint = format!("the addon '{}' adds it", addon.name);
                    errors.push(Error::at(job.place, message).with_hint(hint));
                }
                order.push((at, group.jobs.len()));
                group.jobs.push(job.clone());
            }
        }
    }
    if errors.is_empty() {
        Ok(WithAddons { groups, order })
    } else {
        Err(errors)
    }
}

/// Whether every rule holds, each through one of its items. `None` without rules.
fn matches(filter: &Filter, group: &InstanceGroup, os: Option<&str>) -> Option<bool> {
    fn rule<T>(items: &[T], holds: impl Fn(&T) -> bool) -> Option<bool> {
        (!items.is_empty()).then(|| items.iter().any(holds))
    }
    let has_job = |(name, release): &(String, String)| {
        let mut jobs = group.jobs.iter();
        jobs.any(|job| job.name == *name && job.release == *release)
    };
    let has_network = |name: &String| group.networks.iter().any(|network| network.name == *name);
    let rules = [
        rule(&filter.stemcells, |name| os == Some(name.as_str())),
        rule(&filter.jobs, has_job),
        rule(&filter.instance_groups, |name| group.name == *name),
        rule(&filter.azs, |az| group.azs.contains(az)),
        rule(&filter.networks, has_network),
        rule(filter.lifecycle.as_slice(), |name| {
            group.lifecycle.as_str() == name
        }),
    ];
    let mut stated = rules.into_iter().flatten().peekable();
    stated.peek()?;
    Some(stated.all(|holds| holds))
}
