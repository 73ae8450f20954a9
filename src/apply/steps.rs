//! The steps of each change.
//!
//! In: a change and its group's policy. Out: its steps, in order. Must not: depend on the cloud.
//!
//! An instance arrives in the order created, healthy, registered, seen as healthy by its load
//! balancers. It departs in the order deregistered, connections ended, drained, deleted.

use std::collections::VecDeque;

use super::protocol::Step;
use crate::clock::Timestamp;
use crate::plan::change::{Action, Change, InstanceView, Mode};
use crate::plan::drift::STATE;
use crate::plan::rollout::{Rollout, restarts};

/// Where a change goes on after an earlier apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Nothing of it is done.
    Todo,
    /// Its steps up to this one are done.
    After {
        /// The step.
        step: Step,
        /// Its instance.
        provider_id: Option<String>,
        /// The wait in which the apply ended, and since when it waited.
        wait: Option<(Step, Timestamp)>,
    },
    /// It waits for addresses of groups that aren't applied yet; another stage of the apply does it.
    Later,
    /// All of it is done.
    Done {
        /// Its instance.
        provider_id: Option<String>,
    },
}

/// The steps of a change. `is_awaited`: groups that depend on its group wait for its instances.
pub(super) fn of(
    change: &Change,
    mode: Mode,
    rollout: Option<&Rollout>,
    is_awaited: bool,
) -> VecDeque<Step> {
    let is_limited = mode == Mode::Normal && rollout.is_some();
    let waits = is_awaited || rollout.is_some_and(|rollout| rollout.checks_new);
    let mut steps = Vec::new();
    let depart = |steps: &mut Vec<Step>| {
        if is_limited {
            steps.push(Step::Gate);
        }
        let is_stopped = change
            .attributes
            .iter()
            .any(|attribute| attribute.path == STATE);
        if is_stopped && change.action == Action::Update {
            return;
        }
        if has_targets(change.before.as_deref()) {
            steps.extend([Step::Deregister, Step::Connections]);
        }
        if rollout.is_some_and(|rollout| rollout.drain.is_some()) {
            steps.push(Step::Drain);
        }
    };
    let arrive = |steps: &mut Vec<Step>, waits: bool| {
        let registers = has_targets(change.after.as_deref());
        if waits || registers {
            steps.push(Step::Check);
        }
        if registers {
            steps.extend([Step::Register, Step::Verdict]);
        }
    };
    match change.action {
        Action::Create => {
            steps.push(Step::Create);
            arrive(&mut steps, waits);
        }
        Action::CreateThenDelete => {
            steps.push(Step::Create);
            arrive(&mut steps, true);
            depart(&mut steps);
            steps.push(Step::Delete);
        }
        Action::DeleteThenCreate => {
            depart(&mut steps);
            steps.extend([Step::Delete, Step::Create]);
            arrive(&mut steps, true);
        }
        Action::Update if restarts(change) => {
            depart(&mut steps);
            steps.push(Step::Update);
            arrive(&mut steps, is_limited || waits);
        }
        // It joins load balancers, so it must be healthy before.
        Action::Update if joins(change) => {
            steps.extend([Step::Check, Step::Update, Step::Verdict]);
        }
        Action::Update => steps.push(Step::Update),
        Action::Delete => {
            if change.deposed.is_some() && mode == Mode::Normal {
                steps.push(Step::Check);
            }
            // A predecessor that gets its slot back may have been deregistered.
            if has_targets(change.after.as_deref()) {
                steps.extend([Step::Register, Step::Verdict]);
            }
            depart(&mut steps);
            steps.push(Step::Delete);
        }
        Action::Adopt | Action::Forget => steps.push(Step::Record),
        Action::NoOp => {}
    }
    steps.into()
}

/// The operation that a step is part of, for progress: [`Step::Create`], [`Step::Update`],
/// [`Step::Delete`] or [`Step::Record`]; `None` for the wait between two operations.
pub(super) fn operation(action: Action, step: Step) -> Option<Step> {
    match (action, step) {
        (_, Step::Record) => Some(Step::Record),
        (Action::Update, _) => Some(Step::Update),
        (Action::Delete, _) => Some(Step::Delete),
        (_, Step::Gate) => None,
        (_, Step::Deregister | Step::Connections | Step::Drain | Step::Delete) => {
            Some(Step::Delete)
        }
        _ => Some(Step::Create),
    }
}

fn has_targets(view: Option<&InstanceView>) -> bool {
    view.is_some_and(|view| !view.spec.head.load_balancers.is_empty())
}

/// Whether an update registers the instance with further load balancers.
fn joins(change: &Change) -> bool {
    let targets = |view: Option<&InstanceView>| {
        view.map(|view| view.spec.head.load_balancers.clone())
            .unwrap_or_default()
    };
    let before = targets(change.before.as_deref());
    let after = targets(change.after.as_deref());
    after.iter().any(|target| !before.contains(target))
}
