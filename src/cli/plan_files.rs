//! The plan files of a run, one per shard.
//!
//! In: a name with `{cluster}` and `{shard}` in it, or the files to apply. Out: a path for each
//! shard, or the plan of each shard. Must not: apply a plan.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::failure::{Failure, Failures};
use super::fleet::Fleet;
use super::keys::Keyrings;
use super::session::Session;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::plan::change::Plan;
use crate::plan::file::{self, PlanFileError};
use crate::redact;
use crate::sensitivity::cover::secrets;

/// What a run writes for each shard.
#[derive(Debug, Clone, Copy)]
pub struct Files {
    /// One, and several.
    pub nouns: [&'static str; 2],
    /// The option with a name that tells shards apart.
    pub hint: &'static str,
}

/// The plans of a run.
const PLANS: Files = Files {
    nouns: ["plan", "plans"],
    hint: "--out {cluster}-{shard}.plan",
};

/// A path with the names of a shard in place of `{cluster}` and `{shard}`.
pub fn named(path: &Path, cluster: &str, shard: &str) -> PathBuf {
    match path.to_str() {
        Some(name) => name
            .replace("{cluster}", cluster)
            .replace("{shard}", shard)
            .into(),
        None => path.to_owned(),
    }
}

/// The path of each shard's plan.
///
/// Fails if several shards would use the same path.
pub fn paths(fleet: &Fleet<'_>, path: &Path) -> Result<Vec<PathBuf>, Failures> {
    paths_of(fleet, path, PLANS)
}

/// The path of each shard's file.
///
/// Fails if several shards would use the same path.
pub fn paths_of(fleet: &Fleet<'_>, path: &Path, files: Files) -> Result<Vec<PathBuf>, Failures> {
    let [one, several] = files.nouns;
    let mut first: HashMap<PathBuf, usize> = HashMap::new();
    let mut paths = Vec::new();
    for (index, session) in fleet.shards.iter().enumerate() {
        let identity = session.identity();
        let path: PathBuf = named(path, &identity.cluster, &identity.shard);
        if let Some(other) = first.insert(path.clone(), index) {
            let names = fleet.names();
            return Err(Failure::new(
                Diagnostic::error(format!(
                    "the {several} of {} and {} would have one file: {}",
                    names[other],
                    names[index],
                    path.display()
                ))
                .detail(format!("each shard's {one} has a file of its own"))
                .hint(format!("Let its name tell them apart: {}", files.hint)),
            )
            .into());
        }
        paths.push(path);
    }
    Ok(paths)
}

/// A saved plan.
pub struct SavedPlan {
    /// The plan.
    pub plan: Plan,
    /// Its digest.
    pub digest: String,
}

/// Reads plans; drops the shards without a plan from the run.
///
/// Fails if a file isn't a valid plan of one of the shards.
pub fn read(fleet: &mut Fleet<'_>, files: &[PathBuf]) -> Result<Vec<SavedPlan>, Failures> {
    let mut found: Vec<Option<(SavedPlan, &Path)>> = fleet.shards.iter().map(|_| None).collect();
    let mut findings = Diagnostics::default();
    // Shards may share keys.
    let keys: Vec<_> = fleet
        .shards
        .iter()
        .map(|session| Arc::clone(&session.keys))
        .collect();
    let keys = Keyrings(keys);
    for path in files {
        let (plan, digest) = match file::read(path, &keys) {
            Ok(read) => read,
            Err(error) => {
                findings.extend(match &error {
                    PlanFileError::NoKey { of, .. } if is_foreign(fleet, of) => {
                        foreign(fleet, of).into()
                    }
                    error => Failure::plan_file(path, error).findings,
                });
                continue;
            }
        };
        redact::know(secrets(&plan));
        let its = plan.identity();
        let of = |session: &Session<'_>| session.identity() == its;
        let Some(index) = fleet.shards.iter().position(of) else {
            let mut finding = foreign(fleet, &its.to_string());
            if files.len() > 1 || fleet.is_several() {
                finding = finding.detail(path.display().to_string());
            }
            findings.push(finding);
            continue;
        };
        if let Some((_, other)) = &found[index] {
            findings.push(
                Diagnostic::error(format!("two plans are for {its}"))
                    .detail(format!("{}\n{}", other.display(), path.display()))
                    .hint("Apply one of them; the other is stale afterwards"),
            );
            continue;
        }
        found[index] = Some((SavedPlan { plan, digest }, path));
    }
    if findings.has_errors() {
        return Err(Failure::from(findings).into());
    }
    fleet.retain(|index| found[index].is_some());
    Ok(found
        .into_iter()
        .flatten()
        .map(|(saved, _)| saved)
        .collect())
}

/// Whether a plan is for a shard outside of this run; empty if it doesn't say.
fn is_foreign(fleet: &Fleet<'_>, its: &str) -> bool {
    let mut identities = fleet.shards.iter().map(Session::identity);
    !its.is_empty() && !identities.any(|identity| identity.to_string() == its)
}

/// The error that a plan belongs to a shard outside of this run.
fn foreign(fleet: &Fleet<'_>, its: &str) -> Diagnostic {
    let summary = match &fleet.shards[..] {
        [only] => format!(
            "the plan is for {its}, this configuration is {}",
            only.identity()
        ),
        _ => format!("the plan is for {its}, and no configuration of this run is"),
    };
    Diagnostic::error(summary)
        .hint("Apply it with the configuration and the options that it was made with")
}
