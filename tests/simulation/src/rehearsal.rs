//! An engine among answers that are made up, in a seeded order; and a log of what it did.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use nstance::apply::engine::{
    self, Call, Command, Engine, Event, Limits, Look, Outcome, Seen, Starts, TaskId,
};
use nstance::apply::journal::StoreOperation;
use nstance::clock::Timestamp;
use nstance::plan::change::Plan;
use nstance::provider::{CloudError, CloudErrorKind, LifecycleState, Observation};
use nstance_state::IntentId;

use crate::chance::Chance;

/// What happened, in the order it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happening {
    Intended(TaskId),
    Settled(TaskId),
    Called(TaskId, &'static str),
    Answered(TaskId, bool),
    Stopped,
}

pub(crate) type Answer = Result<engine::Answer, CloudError>;

/// An engine among answers that are made up.
pub(crate) struct Rehearsal<'p> {
    plan: &'p Plan,
    limits: Limits,
    /// After how many happenings it is stopped.
    pub(crate) stops_after: Option<usize>,
    pub(crate) log: Vec<(Timestamp, Happening)>,
}

impl<'p> Rehearsal<'p> {
    pub(crate) fn new(plan: &'p Plan, limits: Limits) -> Self {
        Self {
            plan,
            limits,
            stops_after: None,
            log: Vec::new(),
        }
    }

    /// Runs to the end in the order of a seed; `answer` is asked with the call and how many that
    /// task had before.
    pub(crate) fn run(
        &mut self,
        seed: u64,
        mut answer: impl FnMut(TaskId, &Call, usize) -> Answer,
    ) -> Outcome {
        let mut chance = Chance::new(seed);
        let mut engine = Engine::new(self.plan, self.limits, seed, &Starts::default());
        let mut now = Timestamp(1_000_000);
        let mut writes: Vec<(TaskId, bool)> = Vec::new();
        let mut calls: Vec<(TaskId, Call)> = Vec::new();
        let mut surveys: Vec<(usize, HashSet<String>)> = Vec::new();
        let mut counts: BTreeMap<TaskId, usize> = BTreeMap::new();
        let mut events = vec![Event::Start];
        let mut stopped = false;
        for intent in 1.. {
            if !stopped && self.stops_after.is_some_and(|at| self.log.len() >= at) {
                stopped = true;
                self.log.push((now, Happening::Stopped));
                events.insert(0, Event::Stop);
            }
            for event in events.drain(..) {
                for command in engine.step(event, now) {
                    match command {
                        Command::Store(task, operation) => {
                            let intends = matches!(operation, StoreOperation::Intend { .. });
                            writes.push((task, intends));
                        }
                        Command::Call(task, call) => {
                            self.log.push((now, Happening::Called(task, kind(&call))));
                            calls.push((task, call));
                        }
                        // All of its instances are available.
                        Command::Survey(group, request) => {
                            let subjects = request.subjects.into_iter();
                            let all = subjects.map(|(subject, _)| subject.provider_id);
                            surveys.push((group, all.collect()));
                        }
                        // Its fleets read no nonces and have no drain commands.
                        Command::Export(..)
                        | Command::Drain(..)
                        | Command::Note(_)
                        | Command::Unexport(_)
                        | Command::MakeNonce(..)
                        | Command::Tell(_) => {}
                    }
                }
            }
            assert!(
                calls.len() <= self.limits.parallelism,
                "{} calls under way, {} allowed",
                calls.len(),
                self.limits.parallelism
            );
            if let Some((group, available)) = surveys.pop() {
                let result = Ok(Seen {
                    available,
                    ..Seen::default()
                });
                events.push(Event::Surveyed { group, result });
                continue;
            }
            let pending = writes.len() + calls.len();
            if pending == 0 {
                if engine.is_over() {
                    break;
                }
                let wake = engine.next_wake(now).expect("something is waited for");
                assert!(wake > now, "what is due was done");
                now = wake;
                events.push(Event::Tick);
                continue;
            }
            let chosen = chance.below(pending);
            if chosen < writes.len() {
                let (task, intends) = writes.remove(chosen);
                let happening = if intends {
                    Happening::Intended(task)
                } else {
                    Happening::Settled(task)
                };
                self.log.push((now, happening));
                events.push(Event::Stored {
                    task,
                    intent: intends.then_some(IntentId(intent)),
                });
            } else {
                let (task, call) = calls.swap_remove(chosen - writes.len());
                now = now.after(Duration::from_millis(chance.below(300) as u64));
                let count = counts.entry(task).or_default();
                let result = answer(task, &call, *count);
                *count += 1;
                let is_good = result.is_ok();
                self.log.push((now, Happening::Answered(task, is_good)));
                let result = Box::new(result);
                events.push(Event::Called { task, result });
            }
        }
        engine.outcome()
    }

    pub(crate) fn group_of(&self, task: TaskId) -> &str {
        self.plan.changes[task].address.group.name()
    }

    /// Where in the log the calls of a group are.
    pub(crate) fn calls_of(&self, group: &str) -> Vec<usize> {
        self.places(|happening| matches!(happening, Happening::Called(task, _) if self.group_of(*task) == group))
    }

    pub(crate) fn places(&self, is_meant: impl Fn(&Happening) -> bool) -> Vec<usize> {
        let meant = |(place, (_, happening)): (usize, &(Timestamp, Happening))| {
            is_meant(happening).then_some(place)
        };
        self.log.iter().enumerate().filter_map(meant).collect()
    }
}

fn kind(call: &Call) -> &'static str {
    match call {
        Call::Create(_) => "create",
        Call::Update(_) => "update",
        Call::Delete(_) => "delete",
        Call::Find { .. } => "find",
        Call::Describe { .. } => "describe",
        Call::Look(_) => "look",
        Call::Register(_) => "register",
        Call::Deregister(_) => "deregister",
        Call::Targets(_) => "targets",
    }
}

pub(crate) fn good(call: &Call) -> Answer {
    let observation = |provider_id: &str, instance_id: &str| Observation {
        provider_id: provider_id.to_owned(),
        instance_id: Some(instance_id.to_owned()),
        group: None,
        slot: None,
        state: LifecycleState::Running,
        zone: "za".to_owned(),
        subnet: None,
        ip4: Some("10.0.0.1".to_owned()),
        ip6: None,
        created_at: Timestamp(0),
        ended_because: None,
        digest: [0; 32],
        attributes: "{}".into(),
    };
    Ok(engine::Answer::Instance(match call {
        Call::Create(request) => Some(observation(&request.token, &request.instance_id)),
        Call::Update(request) => Some(observation(&request.provider_id, "")),
        Call::Describe { provider_id } => Some(observation(provider_id, "")),
        Call::Look(request) => {
            return Ok(engine::Answer::Looked(Look {
                observation: Some(observation(&request.subject.provider_id, "")),
                healthy: Ok(()),
            }));
        }
        Call::Targets(_) => return Ok(engine::Answer::Targets(Vec::new())),
        Call::Find { .. } | Call::Delete(_) | Call::Register(_) | Call::Deregister(_) => None,
    }))
}

pub(crate) fn bad(kind: CloudErrorKind) -> Answer {
    Err(CloudError::new(kind, "Code", "words"))
}
