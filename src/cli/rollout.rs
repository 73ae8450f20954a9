//! `nstance rollout`: look at a rollout, and steer it from another terminal.
//!
//! In: the state. Out: its rollout, and requests that the running or the next apply reads. Must
//! not: take the lock, or change anything else.

use clap::{Args, Subcommand};
use nstance_state::{
    Lock, NewRequest, Rollout, RolloutStatus, SqliteStore, StateError, Store as _, Write,
};
use serde_json::{Value, json};

use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::selection::{AddressArgs, AllowedGroups};
use super::session::{Session, who};
use super::{Ending, Globals, exit};
use crate::address::InShard;
use crate::apply::protocol::Request;
use crate::apply::rollout_record::{self, OpenRollout};
use crate::check::Purpose;
use crate::clock::Timestamp;
use crate::diagnostic::{Diagnostic, Severity, counted};
use crate::plan::change::{Mode, Plan};

/// The subcommands of `rollout`.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Show the latest rollout
    Status,
    /// Continue after the canaries, or after a pause
    Promote(Steered),
    /// Begin no further changes until `promote`
    Pause(Steered),
    /// Stop, as after a failure
    Abort(Steered),
}

/// Which groups to steer.
#[derive(Debug, Args)]
pub struct Steered {
    /// The group, or `all` [default: all]
    #[arg(value_name = "GROUP")]
    group: Option<InShard<AllowedGroups>>,
}

impl OpenRollout {
    /// What `plan` says about it. `continues` says whether an apply of the same configuration
    /// continues it, `is_saved` whether the plan is saved.
    pub fn note(
        &self,
        session: &Session<'_>,
        plan: &Plan,
        continues: bool,
        is_saved: bool,
    ) -> Option<Diagnostic> {
        if !continues {
            return self.superseded_by(plan);
        }
        // A saved plan continues only the rollout that it began.
        if is_saved {
            let hint = "To continue the rollout, run `nstance apply` without a saved plan";
            return Some(self.superseded_by(plan)?.hint(hint));
        }
        Some(self.unfinished(holder(session)))
    }

    /// The warning that another plan, which is applied, ends it.
    ///
    /// `None` if the plan leaves it alone: it only records, or it has no changes.
    pub fn superseded_by(&self, plan: &Plan) -> Option<Diagnostic> {
        let supersedes = plan.mode != Mode::RefreshOnly && plan.summary.is_applyable();
        supersedes.then(|| {
            let started = Timestamp::from(self.stored.started_at);
            let so_far = so_far(&self.stored, Some(&self.plan));
            Diagnostic::warning(format!(
                "this plan supersedes the rollout of {started}: {so_far}"
            ))
        })
    }

    /// The warning that it isn't finished. `is_running` says that an apply runs.
    fn unfinished(&self, is_running: bool) -> Diagnostic {
        let started = Timestamp::from(self.stored.started_at);
        let so_far = so_far(&self.stored, Some(&self.plan));
        let summary = match self.stored.status {
            RolloutStatus::Failed => format!("the rollout of {started} has failed: {so_far}"),
            RolloutStatus::RollingBack => {
                format!("the rollout of {started} is being rolled back: {so_far}")
            }
            _ => format!("a rollout of {started} is under way: {so_far}"),
        };
        Diagnostic::warning(summary)
            .detail("apply follows the plan of that rollout")
            .hint(if is_running {
                "`nstance rollout status` shows what it waits for"
            } else {
                "Run `nstance apply` to continue it"
            })
    }
}

/// The finding that the plan repeats a rollout that was rolled back: the same configuration with
/// the same images.
///
/// Fails if the state can't be read.
pub fn rolled_back(
    store: &SqliteStore,
    plan: &Plan,
    severity: Severity,
) -> Result<Option<Diagnostic>, StateError> {
    let Some(stored) = rollout_record::repeated(store, plan)? else {
        return Ok(None);
    };
    let since = Timestamp::from(stored.changed_at);
    let why = stored.slots.iter().filter(|slot| slot.stage == "failed");
    let why: Vec<String> = why
        .take(5)
        .map(|slot| format!("{}: {}", slot.address, slot.detail))
        .collect();
    let summary = format!("this configuration was rolled back at {since}");
    Ok(Some(
        Diagnostic::of(severity, summary)
            .detail(why.join("\n"))
            .hint("Change the configuration, or try it again with `nstance apply --retry`"),
    ))
}

/// `3 of 40 changes done`
fn so_far(stored: &Rollout, plan: Option<&Plan>) -> String {
    let done = stored.slots.iter().filter(|slot| slot.stage == "done");
    let done = done.count();
    match plan {
        Some(plan) => format!("{done} of {} done", counted(plan.changes.len(), "change")),
        None => format!("{} done", counted(done, "change")),
    }
}

/// Runs `rollout`.
pub fn run(globals: &Globals, command: &RolloutCommand) -> Ending {
    let mut fleet = Fleet::load(globals, Purpose::Identity)?;
    let form = Form::Headed.documents_or(globals.json);
    let (request, steered) = match command {
        RolloutCommand::Status => return Ok(fleet.each(form, |_, session| status(session))),
        RolloutCommand::Promote(steered) => (Request::Promote, steered),
        RolloutCommand::Pause(steered) => (Request::Pause, steered),
        RolloutCommand::Abort(steered) => (Request::Abort, steered),
    };
    let chosen = fleet.select(AddressArgs {
        allow_replace: steered.group.as_slice(),
        ..AddressArgs::default()
    })?;
    Ok(fleet.each(form, |index, session| {
        let group = chosen[index].allow_replace.first();
        if steered.group.is_some() && group.is_none() {
            return Ok(Reply::text(String::new()));
        }
        ask(session, request, group)
    }))
}

fn no_rollout() -> Failure {
    Failure::new(
        Diagnostic::error("no rollout is recorded in this state")
            .hint("An apply that replaces, restarts or checks instances records one"),
    )
}

fn status(session: &Session<'_>) -> Result<Reply, Failure> {
    let store = session.open_to_read()?.ok_or_else(no_rollout)?;
    let stored = store.rollout()?.ok_or_else(no_rollout)?;
    let plan: Option<Plan> = store
        .rollout_plan(stored.id)?
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let running = holder(session);
    Ok(if session.globals.json {
        Reply::document(document(&stored, plan.as_ref(), running))
    } else {
        Reply::text(text(session, &stored, plan.as_ref(), running))
    })
}

/// Whether a process holds the state's lock.
fn holder(session: &Session<'_>) -> bool {
    let path = session.state_path().ok();
    path.is_some_and(|path| Lock::peek(&path).ok().flatten().is_some())
}

/// What a status means, given whether an apply runs.
fn meaning(status: RolloutStatus, running: bool) -> &'static str {
    match (status, running) {
        (RolloutStatus::Running, true) => "running",
        (RolloutStatus::Running, false) => "interrupted",
        (RolloutStatus::Waiting, _) => "waiting",
        (RolloutStatus::Failed, _) => "failed",
        (RolloutStatus::RollingBack, true) => "rolling back",
        (RolloutStatus::RollingBack, false) => "interrupted while rolling back",
        (RolloutStatus::RolledBack, _) => "rolled back",
        (RolloutStatus::Done, _) => "done",
        (RolloutStatus::Superseded, _) => "superseded",
    }
}

fn text(session: &Session<'_>, stored: &Rollout, plan: Option<&Plan>, running: bool) -> String {
    let started = Timestamp::from(stored.started_at);
    let mut text = format!(
        "Rollout of {started}: {}, {}\n",
        meaning(stored.status, running),
        so_far(stored, plan)
    );
    for group in &stored.groups {
        let since = Timestamp::from(group.since);
        text.push_str(&format!(
            "\n{}: {} since {since}\n",
            session.name(&group.group),
            group.stage
        ));
        if !group.detail.is_empty() {
            text.push_str(&format!("  {}\n", group.detail));
        }
    }
    let open: Vec<_> = stored
        .slots
        .iter()
        .filter(|slot| slot.stage != "done")
        .collect();
    if !open.is_empty() {
        text.push('\n');
    }
    for slot in open {
        let since = Timestamp::from(slot.since);
        text.push_str(&format!(
            "  {}: {} since {since}",
            session.name(&slot.address),
            slot.stage
        ));
        if slot.detail.is_empty() {
            text.push('\n');
        } else {
            text.push_str(&format!(": {}\n", slot.detail));
        }
    }
    text
}

fn document(stored: &Rollout, plan: Option<&Plan>, running: bool) -> Value {
    let groups: Vec<Value> = stored
        .groups
        .iter()
        .map(|group| {
            json!({
                "group": group.group,
                "stage": group.stage,
                "since": Timestamp::from(group.since).to_string(),
                "detail": group.detail,
            })
        })
        .collect();
    let slots: Vec<Value> = stored
        .slots
        .iter()
        .map(|slot| {
            json!({
                "address": slot.address,
                "instance_id": slot.instance_id,
                "stage": slot.stage,
                "since": Timestamp::from(slot.since).to_string(),
                "detail": slot.detail,
            })
        })
        .collect();
    json!({
        "format_version": "1.0",
        "status": stored.status.as_str(),
        "running": running,
        "started_at": Timestamp::from(stored.started_at).to_string(),
        "changed_at": Timestamp::from(stored.changed_at).to_string(),
        "changes": plan.map(|plan| plan.changes.len()),
        "groups": groups,
        "slots": slots,
    })
}

/// Writes a request. The handle is opened for it, so that it has today's fencing token.
fn ask(
    session: &Session<'_>,
    request: Request,
    group: Option<&AllowedGroups>,
) -> Result<Reply, Failure> {
    let mut store = session.open_as_it_is()?.ok_or_else(no_rollout)?;
    let Some(OpenRollout { plan, .. }) = OpenRollout::of(&store)? else {
        return Err(Failure::new(
            Diagnostic::error("no rollout is open in this state")
                .hint("`nstance rollout status` shows the latest one"),
        ));
    };
    let group = group.and_then(|group| match group {
        AllowedGroups::All => None,
        AllowedGroups::Group(name) => Some(name.to_string()),
    });
    let known = |name: &String| plan.groups.iter().any(|group| group.name == *name);
    if let Some(name) = group.as_ref().filter(|name| !known(name)) {
        let names: Vec<&str> = plan.groups.iter().map(|group| &*group.name).collect();
        return Err(Failure::new(
            Diagnostic::error(format!("the rollout has no group `{name}`"))
                .hint(format!("Its groups are {}", names.join(", "))),
        ));
    }
    let asked = NewRequest {
        group: group.clone(),
        kind: request.as_str().to_owned(),
        who: who().user,
    };
    store.commit(session.clock.now().into(), vec![Write::AddRequest(asked)])?;
    let whom = group.unwrap_or_else(|| "all groups".to_owned());
    let reader = if holder(session) {
        "The running apply reads it within a second"
    } else {
        "The next `nstance apply` reads it"
    };
    let text = format!("Requested to {} {whom}. {reader}.\n", request.as_str());
    Ok(if session.globals.json {
        let document = json!({"format_version": "1.0", "request": request.as_str(), "group": whom});
        Reply::document(document)
    } else {
        Reply::text(text)
    }
    .ending(exit::SUCCESS))
}
