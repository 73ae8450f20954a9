//! `nstance report`: the page of a plan.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::keys::Keyrings;
use super::plan::{self, Purposes, exit_code};
use super::plan_args::{PlanArgs, Replacements};
use super::plan_files;
use super::reports::Reports;
use super::selection::{AddressArgs, Selection};
use super::session::Session;
use super::{Ending, Globals, console, exit, output, page, unplaced};
use crate::check::Purpose;
use crate::plan::change::Summary;
use crate::plan::file;
use crate::redact;
use crate::report::json::{FORMAT_VERSION, counts};
use crate::sensitivity::cover::secrets;

/// Options of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// A saved plan; without it, report plans first
    #[arg(value_name = "PLANFILE", conflicts_with_all = ["target", "exclude", "replace", "destroy", "refresh_only", "refresh", "refresh_images", "allow_replace"])]
    plan: Option<PathBuf>,
    /// Write an HTML page to this file
    ///
    /// {cluster} and {shard} in the name are replaced.
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
    #[command(flatten)]
    replacements: Replacements,
    #[command(flatten)]
    shape: PlanArgs,
}

/// Runs `report`.
pub fn run(globals: &Globals, command: &Report) -> Ending {
    if let Some(path) = &command.plan {
        return saved_plan(globals, path, &command.html).map_err(unplaced);
    }
    let mut fleet = Fleet::load(globals, Purpose::Plan)?;
    let chosen = fleet.select(AddressArgs {
        allow_replace: &command.replacements.allow_replace,
        ..command.shape.asked()
    })?;
    let paths = plan_files::paths_of(&fleet, &command.html, page::FILES)?;
    let html = paths.iter().map(PathBuf::as_path);
    Reports::default().check_files(&fleet, [], html)?;
    let mut written: Vec<&Path> = Vec::new();
    let form = Form::Plain.documents_or(globals.json);
    let code = fleet.each(form, |index, session| {
        let path = &*paths[index];
        let reply = shard(session, command, &chosen[index], path)?;
        written.push(path);
        Ok(reply)
    });
    page::tell(globals, &written);
    Ok(code)
}

/// Plans a shard and writes its page.
fn shard(
    session: &Session<'_>,
    command: &Report,
    chosen: &Selection,
    path: &Path,
) -> Result<Reply, Failure> {
    let planned = plan::read_only(session, &command.shape, chosen, Purposes::default())?;
    let (plan, findings) = (planned.plan, planned.findings);
    output::write(path, &page::of(session, &plan, &findings).text(None))?;
    let code = exit_code(&plan, &findings, false);
    let reply = if session.globals.json {
        let document = document(path, &plan.summary, &session.findings_json(&findings));
        Reply::document(document)
    } else {
        Reply::text("").telling(findings)
    };
    Ok(reply.ending(code))
}

fn saved_plan(globals: &Globals, path: &Path, html: &Path) -> Result<u8, Failure> {
    let (plan, _) = file::read(path, &Keyrings::of(globals))
        .map_err(|error| Failure::plan_file(path, &error))?;
    redact::know(secrets(&plan));
    let html = plan_files::named(html, &plan.cluster, &plan.shard);
    output::check_report(&html)?;
    page::write_saved(&plan, &html)?;
    if globals.json {
        console::print_json(&document(&html, &plan.summary, &json!([])));
    }
    page::tell(globals, &[&html]);
    Ok(exit::SUCCESS)
}

/// The result with `--json`.
fn document(path: &Path, summary: &Summary, findings: &Value) -> Value {
    json!({
        "format_version": FORMAT_VERSION,
        "html": console::shown(path),
        "summary": counts(summary),
        "diagnostics": findings,
    })
}
