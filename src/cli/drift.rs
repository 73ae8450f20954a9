//! `nstance drift`: what changed behind our back.

use clap::{Args, ValueEnum};

use super::failure::Failure;
use super::plan::{Shape, all_findings, make};
use super::session::{self, Session};
use super::{Ending, Globals, exit, placed};
use crate::config::check::Purpose;
use crate::report::{diagnostic, json, text};

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
    target: Vec<crate::address::Selector>,
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
    let session = Session::load(globals, Purpose::Plan)?;
    let result = drift(&session, command);
    placed(session, result)
}

fn drift(session: &Session<'_>, command: &DriftCommand) -> Result<u8, Failure> {
    let shape = Shape {
        target: command.target.clone(),
        exclude: Vec::new(),
        replace: Vec::new(),
        destroy: false,
        refresh_only: false,
        refresh: true,
        refresh_images: false,
    };
    let options = shape.options(session, false)?;
    let mut store = session.open_to_read()?;
    let cloud = session.cloud()?;
    let made = make(session, store.as_mut(), Some(&*cloud), false, &options)?;
    let against_config = command.against == Against::Config;
    // Against the record, what the configuration says is no matter.
    let findings = all_findings(session, made.findings);
    let plan = made.plan;
    let as_json = session.globals.json || command.format == Some(Format::Json);
    let drifted = plan.drift.iter().any(|drift| !drift.accepted);
    let planned = against_config && plan.summary.has_changes();
    if as_json {
        let findings = diagnostic::to_json(&findings, &session.loaded.sources);
        session::print_json(&json::drift(&plan, findings));
    } else {
        session::print(&text::drift(&plan, session.style()));
        if planned {
            session::print(&text::plan(&plan, session.style()));
        }
        session.tell(&findings);
    }
    Ok(
        if against_config && (plan.errored() || findings.has_errors()) {
            exit::ERROR
        } else if drifted || planned {
            exit::CHANGES
        } else {
            exit::SUCCESS
        },
    )
}
