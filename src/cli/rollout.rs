//! `nstance rollout`: look at a rollout, and steer it from another terminal.
//!
//! In: the state. Out: its rollout, and requests that the running or the next apply reads. Must
//! not: take the lock, or change anything else.

use std::collections::HashSet;

use clap::{Args, Subcommand};
use nstance_state::{
    NewRequest, Rollout, RolloutGroup, RolloutRequest, RolloutStatus, StateError, Store, Write,
};
use serde_json::{Value, json};

use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::selection::{AddressArgs, AllowedGroups};
use super::session::{Session, who};
use super::{Ending, Globals, exit};
use crate::address::InShard;
use crate::apply::protocol::{GroupStage, Request};
use crate::apply::rollout_record::{self, OpenRollout, done_instances};
use crate::check::Purpose;
use crate::clock::Timestamp;
use crate::diagnostic::{Diagnostic, Severity, counted};
use crate::plan::change::{Change, Mode, Plan};

/// The subcommands of `rollout`.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Show the latest rollout
    Status(Steered),
    /// Continue after the canaries, or after a pause
    Promote(Steered),
    /// Begin no further changes until `promote`
    Pause(Steered),
    /// Stop, as after a failure
    Abort(Steered),
}

/// Which groups to show or steer.
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
        Some(self.unfinished(session.holder().is_some()))
    }

    /// The warning that another plan, which is applied, ends it.
    ///
    /// `None` if the plan leaves it alone: it only records, or it has no changes.
    pub fn superseded_by(&self, plan: &Plan) -> Option<Diagnostic> {
        let supersedes = plan.mode != Mode::RefreshOnly && plan.summary.is_applyable();
        supersedes.then(|| {
            let started = Timestamp::from(self.stored.started_at);
            let so_far = count_text(self.plan.changes.iter(), &self.done);
            Diagnostic::warning(format!(
                "this plan supersedes the rollout of {started}: {so_far}"
            ))
        })
    }

    /// The warning that it isn't finished. `is_running` says that an apply runs.
    fn unfinished(&self, is_running: bool) -> Diagnostic {
        let started = Timestamp::from(self.stored.started_at);
        let so_far = count_text(self.plan.changes.iter(), &self.done);
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
    store: &dyn Store,
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
fn count_text<'c>(changes: impl Iterator<Item = &'c Change>, done: &HashSet<String>) -> String {
    let (mut count, mut total) = (0, 0);
    for change in changes {
        let view = change.after.as_deref().or(change.before.as_deref());
        count += usize::from(view.is_some_and(|view| done.contains(&*view.instance_id)));
        total += 1;
    }
    format!("{count} of {} done", counted(total, "change"))
}

/// Runs `rollout`.
pub fn run(globals: &Globals, command: &RolloutCommand) -> Ending {
    let mut fleet = Fleet::load(globals, Purpose::Identity)?;
    let form = Form::Headed.documents_or(globals.json);
    let (request, steered) = match command {
        RolloutCommand::Status(steered) => (None, steered),
        RolloutCommand::Promote(steered) => (Some(Request::Promote), steered),
        RolloutCommand::Pause(steered) => (Some(Request::Pause), steered),
        RolloutCommand::Abort(steered) => (Some(Request::Abort), steered),
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
        match request {
            Some(request) => ask(session, request, group),
            None => status(session, group),
        }
    }))
}

fn no_rollout() -> Failure {
    Failure::new(
        Diagnostic::error("no rollout is recorded in this state")
            .hint("An apply that replaces, restarts or checks instances records one"),
    )
}

/// The latest rollout, and what `status` says about it.
struct Status {
    stored: Rollout,
    /// Its plan, unless it is done or superseded.
    plan: Option<Plan>,
    /// The ids of the instances whose changes are done.
    done: HashSet<String>,
    /// The requests that no apply has read.
    requests: Vec<RolloutRequest>,
    is_running: bool,
}

fn status(session: &Session<'_>, group: Option<&AllowedGroups>) -> Result<Reply, Failure> {
    let store = session.open_to_read()?.ok_or_else(no_rollout)?;
    let mut stored = store.rollout()?.ok_or_else(no_rollout)?;
    let mut plan: Option<Plan> = store
        .rollout_plan(stored.id)?
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut requests = store.rollout_requests()?;
    if let Some(AllowedGroups::Group(name)) = group {
        let prefix = format!("{name}/");
        stored.groups.retain(|own| own.group == name.as_str());
        stored
            .slots
            .retain(|slot| slot.address.starts_with(&prefix));
        requests.retain(|one| one.group.as_deref().is_none_or(|own| own == name.as_str()));
        if let Some(plan) = &mut plan {
            plan.groups.retain(|own| own.name == name.as_str());
            plan.changes.retain(|change| change.address.group == *name);
        }
    }
    let done = match &plan {
        Some(plan) => done_instances(&stored, plan, &store.snapshot()?),
        None => HashSet::new(),
    };
    let status = Status {
        stored,
        plan,
        done,
        requests,
        is_running: session.holder().is_some(),
    };
    Ok(if session.globals.json {
        Reply::document(status.document())
    } else {
        Reply::text(status.text(session))
    })
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

/// What a group's stage is, and since when. `None` if the count of changes says it all.
fn stage_text(group: &RolloutGroup) -> Option<String> {
    let (stage, _) = GroupStage::parse(&group.stage)?;
    let since = Timestamp::from(group.since);
    let words = match stage {
        GroupStage::Rolling if group.detail.is_empty() => return None,
        GroupStage::Rolling => return Some(format!("waiting since {since} for {}", group.detail)),
        GroupStage::Done => return None,
        GroupStage::CanaryPause => "paused after the canaries since",
        GroupStage::Promoted => "promoted at",
        GroupStage::Paused => "paused by request since",
        GroupStage::Stalled => "stopped waiting at",
        GroupStage::Failed => "stopped after a failure at",
        GroupStage::Aborted => "aborted by request at",
    };
    Some(format!("{words} {since}"))
}

impl Status {
    fn text(&self, session: &Session<'_>) -> String {
        let stored = &self.stored;
        let started = Timestamp::from(stored.started_at);
        let meaning = meaning(stored.status, self.is_running);
        let mut text = format!("Rollout of {started}: {meaning}");
        let is_back = stored.status == RolloutStatus::RolledBack;
        if let Some(plan) = self.plan.as_ref().filter(|_| !is_back) {
            text.push_str(&format!(
                ", {}",
                count_text(plan.changes.iter(), &self.done)
            ));
        }
        text.push_str("\n\n");
        for line in self.groups(session) {
            text.push_str(&format!("{line}\n"));
        }
        let open = stored.slots.iter().filter(|slot| slot.stage != "done");
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|slot| slot.since);
        for slot in open {
            let since = Timestamp::from(slot.since);
            let name = session.name(&slot.address);
            text.push_str(&format!("{name}: {} since {since}", slot.stage));
            if slot.detail.is_empty() {
                text.push('\n');
            } else {
                text.push_str(&format!(": {}\n", slot.detail));
            }
        }
        for request in &self.requests {
            let group = request.group.as_deref();
            let whom = group.map_or("all groups".to_owned(), |group| session.name(group));
            let at = Timestamp::from(request.at);
            let (kind, who) = (&request.kind, &request.who);
            text.push_str(&format!(
                "{whom}: {kind} requested by {who} at {at}, not read yet\n"
            ));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    /// A line for each group that isn't done.
    fn groups(&self, session: &Session<'_>) -> Vec<String> {
        let Some(plan) = &self.plan else {
            return Vec::new();
        };
        let done = &self.done;
        let groups = plan.groups.iter().filter_map(|group| {
            let own = |change: &&Change| change.address.group.as_str() == group.name;
            plan.changes.iter().find(own)?;
            let name = session.name(&group.name);
            if self.stored.status == RolloutStatus::RolledBack {
                return Some(format!("{name}: rolled back"));
            }
            let mut line = format!(
                "{name}: {}",
                count_text(plan.changes.iter().filter(own), done)
            );
            let stored = &self.stored.groups;
            let stored = stored.iter().find(|stored| stored.group == group.name);
            if let Some(text) = stored.and_then(stage_text) {
                line.push_str(&format!(", {text}"));
            }
            Some(line)
        });
        groups.collect()
    }

    fn document(&self) -> Value {
        let time = |at: nstance_state::Timestamp| Timestamp::from(at).to_string();
        let groups = self.stored.groups.iter().map(|group| {
            let stage = GroupStage::parse(&group.stage);
            let (stage, promoted) = stage.map_or((&*group.stage, false), |(stage, promoted)| {
                (stage.as_str(), promoted)
            });
            json!({
                "group": group.group,
                "stage": stage,
                "promoted": promoted,
                "since": time(group.since),
                "detail": group.detail,
            })
        });
        let slots = self.stored.slots.iter().map(|slot| {
            json!({
                "address": slot.address,
                "instance_id": slot.instance_id,
                "stage": slot.stage,
                "since": time(slot.since),
                "detail": slot.detail,
            })
        });
        let requests = self.requests.iter().map(|request| {
            json!({
                "group": request.group,
                "request": request.kind,
                "who": request.who,
                "at": time(request.at),
            })
        });
        json!({
            "format_version": "1.0",
            "status": self.stored.status.as_str(),
            "running": self.is_running,
            "started_at": time(self.stored.started_at),
            "changed_at": time(self.stored.changed_at),
            "changes": self.plan.as_ref().map(|plan| plan.changes.len()),
            "groups": groups.collect::<Vec<_>>(),
            "slots": slots.collect::<Vec<_>>(),
            "requests": requests.collect::<Vec<_>>(),
        })
    }
}

/// Writes a request. The handle is opened for it, so that it has today's fencing token.
fn ask(
    session: &Session<'_>,
    request: Request,
    group: Option<&AllowedGroups>,
) -> Result<Reply, Failure> {
    let mut store = session.open_as_it_is()?.ok_or_else(no_rollout)?;
    let Some(OpenRollout { plan, .. }) = OpenRollout::of(&*store)? else {
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
    let reader = if session.holder().is_some() {
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
