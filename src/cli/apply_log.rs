//! Logs what an apply decides and does.
//!
//! In: the engine's progress. Out: events with addresses, ids, durations and error texts. Must not:
//! log values of a spec.

use super::progress::operation;
use super::session::Session;
use crate::apply::engine::{Progress, TaskId};
use crate::plan::change::Plan;
use crate::stage::millis;

/// The target of the events.
pub(super) const TARGET: &str = "nstance::apply";

/// Logs one step.
pub(super) fn log(session: &Session<'_>, plan: &Plan, progress: &Progress) {
    if !tracing::enabled!(target: TARGET, tracing::Level::ERROR) {
        return;
    }
    let address = |task: TaskId| session.name(&plan.changes[task].address);
    let group = |index: usize| session.name(&plan.groups[index].name);
    match progress {
        Progress::Started { task, step } => {
            let operation = operation(*step, plan.changes[*task].action).name();
            let address = address(*task);
            tracing::info!(target: TARGET, address, operation, "started");
        }
        Progress::Completed {
            task,
            step,
            provider_id,
            elapsed,
        } => {
            let operation = operation(*step, plan.changes[*task].action).name();
            let (address, duration_ms) = (address(*task), millis(*elapsed));
            tracing::info!(
                target: TARGET, address, operation, provider_id, duration_ms, "completed"
            );
        }
        Progress::Retrying { task, error, wait } => {
            let (address, wait_ms) = (address(*task), millis(*wait));
            tracing::warn!(target: TARGET, address, error, wait_ms, "retrying");
        }
        Progress::Elsewhere {
            task,
            error,
            subnet,
        } => {
            let (address, subnet) = (address(*task), &**subnet);
            tracing::warn!(target: TARGET, address, error, subnet, "trying another subnet");
        }
        Progress::Failed { task, step, error } => {
            let operation = operation(*step, plan.changes[*task].action).name();
            let address = address(*task);
            tracing::error!(target: TARGET, address, operation, error, "failed");
        }
        Progress::Unrecorded { task, provider_id } => {
            let address = address(*task);
            tracing::error!(target: TARGET, address, provider_id, "created, but not recorded");
        }
        Progress::ExportFailed { address, error } => {
            let address = session.name(address);
            tracing::warn!(target: TARGET, address, error, "files not exported");
        }
        Progress::Group {
            group: index,
            stage,
            detail,
        } => {
            let (group, stage) = (group(*index), stage.as_str());
            tracing::info!(target: TARGET, group, stage, detail, "rollout entered a stage");
        }
        Progress::Rolls {
            group: index,
            status,
        } => {
            let (group, stage) = (group(*index), status.stage.as_str());
            let waits_for = status.wait.as_ref().map(|wait| &*wait.what);
            tracing::info!(
                target: TARGET, group, stage, healthy = status.healthy, waits_for, "rollout status"
            );
        }
        Progress::Unused { load_balancer } => {
            tracing::warn!(target: TARGET, load_balancer, "load balancer without a listener");
        }
        Progress::Entered { task, step } => {
            let (address, step) = (address(*task), step.as_str());
            tracing::debug!(target: TARGET, address, step, "step began");
        }
        Progress::Available { task } => {
            let address = address(*task);
            tracing::debug!(target: TARGET, address, "available");
        }
        Progress::Waits { task, why } => {
            let address = address(*task);
            tracing::debug!(target: TARGET, address, why, "still waiting");
        }
        Progress::Still { task, elapsed, .. } => {
            let (address, duration_ms) = (address(*task), millis(*elapsed));
            tracing::trace!(target: TARGET, address, duration_ms, "still in progress");
        }
        Progress::Ended { task } => {
            let address = address(*task);
            tracing::trace!(target: TARGET, address, "change ended");
        }
        Progress::Tick => {}
    }
}
