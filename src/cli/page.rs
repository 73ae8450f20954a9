//! Writes the pages of plans.
//!
//! In: a plan and its findings. Out: the page in its file, replaced as a whole. Must not: plan.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Globals;
use super::console;
use super::failure::{Failure, Failures};
use super::fleet::Fleet;
use super::output;
use super::plan_files::{self, Files};
use super::session::Session;
use crate::diagnostic::Diagnostics;
use crate::plan::change::Plan;
use crate::report::html::Page;

/// The files of a run's pages.
pub const FILES: Files = Files {
    nouns: ["page", "pages"],
    hint: "--html {cluster}-{shard}.html",
};

/// The path of each shard's page; `None` for each without the option.
///
/// Fails if several shards would use the same path.
pub fn paths(fleet: &Fleet<'_>, path: Option<&Path>) -> Result<Vec<Option<PathBuf>>, Failures> {
    let Some(path) = path else {
        return Ok(vec![None; fleet.shards.len()]);
    };
    let paths = plan_files::paths_of(fleet, path, FILES)?;
    Ok(paths.into_iter().map(Some).collect())
}

/// Renders the page of a shard's plan.
pub fn of(session: &Session<'_>, plan: &Plan, findings: &Diagnostics) -> Page {
    let findings = session.findings_json(findings);
    Page::of(plan, &findings, session.label.as_deref())
}

/// Writes the page of a saved plan.
///
/// Fails if the file can't be written.
pub fn write_saved(plan: &Plan, path: &Path) -> Result<(), Failure> {
    output::write(path, &Page::of(plan, &Value::Null, None).text(None))
}

/// The message that names the pages.
pub fn tell(globals: &Globals, paths: &[&Path]) {
    if paths.is_empty() || globals.json || globals.quiet {
        return;
    }
    let noun = if paths.len() == 1 { "page" } else { "pages" };
    let paths: Vec<String> = paths.iter().map(|path| console::shown(path)).collect();
    console::error(&format!("Wrote the {noun} to: {}\n", paths.join(" ")));
}
