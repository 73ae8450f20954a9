//! `nstance drift`: changes made outside nstance.

use clap::{Args, ValueEnum};

use super::console;
use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::plan::{all_findings, keep, make};
use super::plan_args::PlanArgs;
use super::selection::Selection;
use super::session::Session;
use super::{Ending, Globals, exit};
use crate::address::{InShard, Selector};
use crate::check::Purpose;
use crate::diagnostic::Severity;
use crate::plan::accept::{accept, counted};
use crate::plan::change::Mode;
use crate::report::{json, text};

/// Options of `drift`.
#[derive(Debug, Args)]
pub struct DriftCommand {
    /// What the cloud is compared with
    #[arg(long, value_enum, default_value = "record")]
    against: Against,
    /// How to print it
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Only this group or slot; may repeat
    #[arg(long, value_name = "ADDR")]
    target: Vec<InShard<Selector>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Against {
    /// What was recorded when it was last applied
    Record,
    /// The configuration too: planned changes count
    Config,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Runs `drift`.
pub fn run(globals: &Globals, command: &DriftCommand) -> Ending {
    let mut fleet = Fleet::load(globals, Purpose::Plan)?;
    let shape = PlanArgs::of(&command.target, &[], Mode::Normal);
    let chosen = fleet.select(shape.asked())?;
    let as_json = globals.json || command.format == Some(Format::Json);
    let mut found: Vec<(String, Option<bool>)> =
        fleet.names().into_iter().map(|name| (name, None)).collect();
    let code = fleet.each(Form::Headed.documents_or(as_json), |index, session| {
        let (reply, drifted) = drift(session, command, &shape, &chosen[index], as_json)?;
        found[index].1 = Some(drifted);
        Ok(reply)
    });
    if fleet.is_several() && !as_json {
        let total = text::drift_total(&found, globals.style());
        console::print(&format!("\n{total}\n"));
    }
    Ok(code)
}

/// A shard's drift as text or JSON, and whether there is any.
fn drift(
    session: &Session<'_>,
    command: &DriftCommand,
    shape: &PlanArgs,
    chosen: &Selection,
    as_json: bool,
) -> Result<(Reply, bool), Failure> {
    let options = shape.options(session, chosen, false)?;
    let mut store = session.open_to_read()?;
    let cloud = session.cloud()?;
    let made = make(
        session,
        store.as_deref_mut(),
        Some(&*cloud),
        false,
        &options,
    )?;
    keep(session, made.caches);
    let against_config = command.against == Against::Config;
    let mut findings = all_findings(session, made.findings);
    if !against_config {
        // Against the record, errors in the configuration are irrelevant.
        let all = std::mem::take(&mut findings).into_iter();
        findings.extend(all.filter(|finding| finding.severity == Severity::Warning));
    }
    let mut plan = made.plan;
    let config = session.config();
    accept(&mut plan, &config.accept, &session.loaded.sources);
    let drifted = plan.drift.iter().any(|drift| !drift.accepted);
    let counted = against_config.then(|| counted(&plan));
    let planned = counted.is_some_and(|counted| counted.has_changes());
    let code = if against_config && (plan.errored() || findings.has_errors()) {
        exit::ERROR
    } else if drifted || planned {
        exit::CHANGES
    } else {
        exit::SUCCESS
    };
    let reply = if as_json {
        let findings = session.findings_json(&findings);
        Reply::document(json::drift(&plan, counted.as_ref(), findings))
    } else {
        let text = match &counted {
            Some(counted) => text::drift_from_config(&plan, counted, session.style()),
            None => text::drift(&plan, session.style()),
        };
        Reply::text(text).telling(findings)
    };
    Ok((reply.ending(code), drifted || planned))
}
