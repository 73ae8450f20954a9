//! Reads the processes of jobs from their `bpm.yml`, which is ERB.
//!
//! In: a resolved deployment, and what evaluates ERB. Out: the processes of each group's jobs, or
//! every `bpm.yml` that failed. Must not: write units.

use indexmap::IndexMap;
use nstance_bosh::bpm::{JobBpm, group_bpm};
use nstance_bosh::release::Template;
use nstance_bosh::render::Failure;
use nstance_bosh::resolve::ResolvedGroup;

use super::load::{Deployment, render_finding};
use super::ruby::Ruby;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostics, MASKED_REASON, Reported};
use crate::render::erb::has_names_only;

/// Whether a template describes the processes of its job.
pub(super) fn is_bpm(template: &Template) -> bool {
    template.destination.rsplit('/').next() == Some("bpm.yml")
}

/// The processes of each group's jobs, in the order of the groups. Jobs without a `bpm.yml` have
/// none. With `hides_values`, messages of templates are masked, since they may quote properties.
///
/// Fails after it reported every group whose processes can't be read.
pub fn processes(
    deployment: &Deployment,
    ruby: &Ruby,
    hides_values: bool,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) -> Result<Vec<IndexMap<String, JobBpm>>, Reported> {
    let groups = deployment.resolved.groups.iter().map(with_bpm_only);
    let groups: Vec<ResolvedGroup> = groups.collect();
    if let Err(finding) = ruby.check(&groups.iter().collect::<Vec<_>>()) {
        findings.push(*finding);
        return Err(Reported);
    }
    let mut all = Vec::new();
    let mut outcome = Ok(());
    for with_bpm in groups {
        match group_bpm(&deployment.resolved, &with_bpm, ruby) {
            Ok(jobs) => all.push(jobs),
            Err(mut failures) => {
                if hides_values {
                    failures.iter_mut().for_each(mask);
                }
                let finding = render_finding(deployment, &with_bpm, &failures, sources);
                findings.push(finding);
                outcome = Err(Reported);
            }
        }
    }
    outcome.map(|()| all)
}

/// A group with only the templates of `bpm.yml`; with one instance if these are the same for all.
fn with_bpm_only(group: &ResolvedGroup) -> ResolvedGroup {
    let mut group = group.clone();
    group.jobs.retain(|job| job.templates.iter().any(is_bpm));
    for job in &mut group.jobs {
        job.monit = None;
        job.templates.retain(is_bpm);
    }
    let mut templates = group.jobs.iter().flat_map(|job| &job.templates);
    if !templates.any(reads_instance) {
        group.instances.truncate(1);
    }
    group
}

/// Masks the message of a template's error, unless it has the names of properties and links only.
fn mask(failure: &mut Failure) {
    if let Failure::Template { error, .. } = failure
        && !has_names_only(&error.class)
    {
        error.message = format!("{}: {MASKED_REASON}", error.class);
    }
}

/// Whether a template may have another text on another instance: it can learn which one it is from
/// `spec` and `index` only.
fn reads_instance(template: &Template) -> bool {
    let text = template.text.as_deref().unwrap_or_default();
    text.contains("spec") || text.contains("index")
}
