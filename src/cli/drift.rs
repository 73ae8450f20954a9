//! `nstance drift`: changes made outside nstance.

use clap::{Args, ValueEnum};

use super::console;
use super::failure::Failure;
use super::fleet::{Fleet, Reply};
use super::plan::{all_findings, given, keep, make};
use super::plan_args::PlanArgs;
use super::reports::{Found, Reports};
use super::selection::Selection;
use super::session::Session;
use super::{Ending, Globals, exit};
use crate::address::{InShard, Selector};
use crate::check::Purpose;
use crate::diagnostic::Severity;
use crate::plan::accept::{accept, counted};
use crate::plan::change::Mode;
use crate::report::review::Subject;
use crate::report::{json, text};

/// Options of `drift`.
#[derive(Debug, Args)]
pub struct DriftCommand {
    /// What the cloud is compared with
    #[arg(long, value_enum, default_value = "record")]
    against: Against,
    #[command(flatten)]
    pub(super) reports: Reports,
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

/// Runs `drift`.
pub fn run(globals: &Globals, command: &DriftCommand) -> Ending {
    let subject = Subject::Drift {
        against_config: command.against == Against::Config,
    };
    let reports = &command.reports;
    reports.around(subject, || look(globals, command, subject))
}

fn look(globals: &Globals, command: &DriftCommand, subject: Subject) -> Ending {
    let mut fleet = Fleet::load(globals, Purpose::Plan)?;
    command.reports.check_files(&fleet, [], [])?;
    let shape = PlanArgs::of(&command.target, &[], Mode::Normal);
    let chosen = fleet.select(shape.asked())?;
    let mut all: Vec<Found> = fleet.shards.iter().map(|_| Found::default()).collect();
    let prints_text = command.reports.prints_text() && !globals.json;
    let code = fleet.each(command.reports.form(globals), |index, session| {
        let (reply, found) = drift(session, command, &shape, &chosen[index])?;
        all[index] = found;
        Ok(reply)
    });
    let examined = all
        .iter()
        .filter_map(|found| Some((found.plan.as_ref()?, found.planned)));
    let mend = text::mend(examined, &given(globals));
    if prints_text {
        if fleet.is_several() {
            let names = fleet.names().into_iter();
            let drifted = all.iter().map(Found::drifted);
            let total = text::drift_total(&names.zip(drifted).collect::<Vec<_>>(), globals.style());
            console::print(&format!("\n{total}\n"));
        }
        if let Some(line) = &mend {
            console::print(&format!("\n{line}\n"));
        }
    }
    Ok(command.reports.publish(&fleet, subject, all, mend, code))
}

/// A shard's drift as text or JSON, and for reports.
fn drift(
    session: &Session<'_>,
    command: &DriftCommand,
    shape: &PlanArgs,
    chosen: &Selection,
) -> Result<(Reply, Found), Failure> {
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
    let reply = if session.globals.json {
        session.note(&findings);
        let findings = session.findings_json(&findings);
        Reply::document(json::drift(&plan, counted.as_ref(), findings))
    } else if !command.reports.prints_text() {
        Reply::text("").telling(findings)
    } else {
        let text = match &counted {
            Some(counted) => text::drift_from_config(&plan, counted, session.style()),
            None => text::drift(&plan, session.style()),
        };
        Reply::text(text).telling(findings)
    };
    let found = Found {
        planned: counted.unwrap_or_default(),
        plan: Some(plan),
        applied: None,
    };
    Ok((reply.ending(code), found))
}
