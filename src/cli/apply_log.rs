//! Logs what an apply decides and does.
//!
//! In: the engine's progress. Out: events with addresses, ids, durations and error texts. Must not:
//! log values of a spec.

use super::progress::operation;
use super::session::Session;
use crate::apply::engine::{Progress, Step, TaskId};
use crate::plan::change::Plan;
use crate::stage::millis;

/// The target of the events.
pub(super) const TARGET: &str = "nstance::apply";

/// Logs one step.
pub(super) fn log(session: &Session<'_>, plan: &Plan, progress: &Progress) {
    // The values of fields are only made for an event that is logged.
    let address = |task: &TaskId| session.name(&plan.changes[*task].address);
    let operation = |task: &TaskId, step: &Step| {
        let action = plan.changes[*task].action;
        operation(*step, action).name()
    };
    let name = |group: &usize| session.name(&plan.groups[*group].name);
    match progress {
        Progress::Started { task, step } => tracing::info!(
            target: TARGET, address = address(task), operation = operation(task, step), "started"
        ),
        Progress::Completed {
            task,
            step,
            provider_id,
            elapsed,
        } => tracing::info!(
            target: TARGET, address = address(task), operation = operation(task, step),
            provider_id, duration_ms = millis(*elapsed), "completed"
        ),
        Progress::Retrying { task, error, wait } => tracing::warn!(
            target: TARGET, address = address(task), error, wait_ms = millis(*wait), "retrying"
        ),
        Progress::Elsewhere {
            task,
            error,
            subnet,
        } => tracing::warn!(
            target: TARGET, address = address(task), error, subnet = &**subnet,
            "trying another subnet"
        ),
        Progress::Failed { task, step, error } => tracing::error!(
            target: TARGET, address = address(task), operation = operation(task, step), error,
            "failed"
        ),
        Progress::Unrecorded { task, provider_id } => tracing::error!(
            target: TARGET, address = address(task), provider_id, "created, but not recorded"
        ),
        Progress::ExportFailed { address, error } => tracing::warn!(
            target: TARGET, address = session.name(address), error, "files not exported"
        ),
        Progress::Group {
            group,
            stage,
            detail,
        } => tracing::info!(
            target: TARGET, group = name(group), stage = stage.as_str(), detail,
            "rollout entered a stage"
        ),
        Progress::Rolls { group, status } => tracing::info!(
            target: TARGET, group = name(group), stage = status.stage.as_str(),
            healthy = status.healthy, waits_for = status.wait.as_ref().map(|wait| &*wait.what),
            "rollout status"
        ),
        Progress::Unused { load_balancer } => {
            tracing::warn!(target: TARGET, load_balancer, "load balancer without a listener");
        }
        Progress::Entered { task, step } => tracing::debug!(
            target: TARGET, address = address(task), step = step.as_str(), "step began"
        ),
        Progress::Available { task } => {
            tracing::debug!(target: TARGET, address = address(task), "available");
        }
        Progress::Waits { task, why } => {
            tracing::debug!(target: TARGET, address = address(task), why, "still waiting");
        }
        Progress::Still { task, elapsed, .. } => tracing::trace!(
            target: TARGET, address = address(task), duration_ms = millis(*elapsed),
            "still in progress"
        ),
        Progress::Ended { task } => {
            tracing::trace!(target: TARGET, address = address(task), "change ended");
        }
        Progress::Tick => {}
    }
}
