//! Reads the processes of jobs from their `bpm.yml`, which is ERB.
//!
//! In: a resolved deployment, and what evaluates ERB. Out: the processes of each group's jobs, or
//! every `bpm.yml` that failed. Must not: write units.

use indexmap::IndexMap;
use nstance_bosh::bpm::{JobBpm, group_bpm};
use nstance_bosh::release::Template;
use nstance_bosh::render::Erb;

use super::load::{Deployment, render_finding};
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostics, Reported};

/// Whether a template describes the processes of its job.
pub(super) fn is_bpm(template: &Template) -> bool {
    template.destination.rsplit('/').next() == Some("bpm.yml")
}

/// The processes of each group's jobs, in the order of the groups. Jobs without a `bpm.yml` have
/// none.
///
/// Fails after it reported every group whose processes can't be read.
pub fn processes(
    deployment: &Deployment,
    erb: &dyn Erb,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) -> Result<Vec<IndexMap<String, JobBpm>>, Reported> {
    let mut all = Vec::new();
    let mut outcome = Ok(());
    for group in &deployment.resolved.groups {
        let mut with_bpm = group.clone();
        with_bpm.jobs.retain(|job| job.templates.iter().any(is_bpm));
        let templates = with_bpm.jobs.iter().flat_map(|job| &job.templates);
        let mut texts = templates.filter(|template| is_bpm(template));
        if !texts.any(reads_instance) {
            with_bpm.instances.truncate(1);
        }
        match group_bpm(&deployment.resolved, &with_bpm, erb) {
            Ok(jobs) => all.push(jobs),
            Err(failures) => {
                let finding = render_finding(deployment, &with_bpm, &failures, sources);
                findings.push(finding);
                outcome = Err(Reported);
            }
        }
    }
    outcome.map(|()| all)
}

/// Whether a template may have another text on another instance: it can learn which one it is from
/// `spec` and `index` only.
fn reads_instance(template: &Template) -> bool {
    let text = template.text.as_deref().unwrap_or_default();
    text.contains("spec") || text.contains("index")
}
