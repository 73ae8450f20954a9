//! `nstance validate`: everything short of asking a cloud.

use std::io::IsTerminal as _;

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::session::{self, Session};
use super::{Ending, Globals, exit};
use crate::config::check::Purpose;
use crate::pipeline::compile_all;
use crate::report::diagnostic;
use crate::resolve::fetch;

/// Options of `validate`.
#[derive(Debug, Args)]
pub struct Validate {}

/// Runs `validate`.
pub fn run(globals: &Globals, _command: &Validate) -> Ending {
    let mut loaded = Session::read(globals, Purpose::Plan);
    let mut findings = std::mem::take(&mut loaded.findings);
    let mut groups = 0;
    if let Some(config) = &loaded.config {
        groups = config.groups.len();
        let bodies = fetch::bodies(config, &loaded.directory, false, |_| None, &mut findings);
        compile_all(config, &loaded.sources, &bodies, &mut findings);
    }
    // Found by different stages; people read from the top.
    let mut sorted: Vec<_> = findings.into_iter().collect();
    sorted.sort_by_key(|finding| finding.label.as_ref().map(|label| label.span));
    let mut findings = crate::diagnostic::Diagnostics::default();
    findings.extend(sorted);
    if findings.has_errors() {
        return Err((Failure::from(findings), loaded.sources));
    }
    if globals.json {
        session::print_json(&json!({
            "format_version": "1.0",
            "valid": true,
            "diagnostics": diagnostic::to_json(&findings, &loaded.sources),
        }));
        return Ok(exit::SUCCESS);
    }
    if !findings.is_empty() && !globals.quiet {
        let color = globals.colors(std::io::stderr().is_terminal());
        session::error(&diagnostic::render(&findings, &loaded.sources, color));
    }
    session::print(&format!(
        "The configuration is valid: {groups} {}.\n",
        if groups == 1 { "group" } else { "groups" }
    ));
    Ok(exit::SUCCESS)
}
