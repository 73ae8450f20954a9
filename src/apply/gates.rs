//! The limits of a group's rollout: which changes may begin, and when an instance may go out of
//! service.
//!
//! In: the group's [`Rollout`], surveys of its instances, requests, the time. Out: begun tasks,
//! open gates, surveys to make. Must not: let a step begin that breaks a limit.
//!
//! Creations count against `max_surge`. Whatever takes an instance out of service waits at its
//! gate ([`Step::Gate`]) for a survey, which opens as many gates as the available instances allow.

use std::collections::{HashMap, HashSet, VecDeque};

use super::checks::Subject;
use super::engine::{Engine, Phase, Task};
use super::protocol::{
    Command, GroupStage, GroupStatus, NextPause, Note, Progress, Request, STILL, Seen, Step,
    SurveyRequest, TaskEnd, TaskId, Wait,
};
use crate::address::Address;
use crate::clock::Timestamp;
use crate::config::model::{CanaryPause, OnFailure};
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Action, Change, InstanceView, Mode, Plan};
use crate::plan::rollout::{Rollout, Stage, is_limited, limit};
use crate::provider::CloudError;

/// The tasks of one group.
pub(super) struct Group<'p> {
    /// The groups that must be over first.
    pub(super) after: Vec<usize>,
    /// All of its tasks.
    ids: Vec<TaskId>,
    /// The policy; without one there are no limits.
    pub(super) rollout: Option<&'p Rollout>,
    /// Tasks that wait for nothing but a call.
    pub(super) free: VecDeque<TaskId>,
    /// Tasks that wait for another one of the same slot.
    pub(super) followers: VecDeque<(TaskId, TaskId)>,
    /// Tasks that take turns.
    pub(super) stages: VecDeque<Stage>,
    /// Whether its progress is worth a line of its own.
    pub(super) rolls: bool,
    /// How many tasks of the first stage were taken.
    taken: usize,
    /// The tasks of the first stage that began and haven't ended.
    in_stage: HashSet<TaskId>,
    pub(super) active: usize,
    pub(super) stopped: bool,
    failures: u32,
    /// How many instances exist that the plan doesn't only delete.
    live: usize,
    /// How many there may be.
    room: usize,
    creating: usize,
    deleting: usize,
    /// Tasks at their gate, in order.
    gated: Vec<TaskId>,
    survey: Survey,
    pub(super) pause: Pause,
    promoted: bool,
    /// What it waits for, apart from a pause.
    waits_for: Option<Wait>,
    /// The wait in the rollout's record.
    noted: String,
    /// When to report its status next.
    next_report: Timestamp,
    /// How many of its instances are available, if that is known.
    healthy: Option<usize>,
    /// The last survey left it nothing to do.
    is_stalled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Survey {
    /// The next one may begin at this time.
    NotBefore(Timestamp),
    Asked,
}

/// Whether a group's rollout is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    No,
    /// After the canaries, until this time.
    Until(Timestamp),
    /// After the canaries, until `promote`.
    Manual,
    /// By `pause`.
    Requested,
}

/// How far an earlier apply of the same plan brought a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupStart {
    /// When the canaries' pause began.
    pub paused_since: Option<Timestamp>,
    /// Whether the canaries' pause is over.
    pub promoted: bool,
    /// Whether it was paused by request.
    pub paused: bool,
}

impl<'p> Group<'p> {
    /// The tasks of each group, not begun.
    pub(super) fn all(plan: &'p Plan, indices: &HashMap<&str, usize>) -> Vec<Self> {
        let mut own: Vec<Vec<(TaskId, &Change)>> = vec![Vec::new(); plan.groups.len()];
        for (id, change) in plan.changes.iter().enumerate() {
            if let Some(index) = indices.get(change.address.group.as_str()) {
                own[*index].push((id, change));
            }
        }
        let groups = plan.groups.iter().zip(own);
        groups
            .map(|(group, own)| {
                let rollout = group.rollout.as_ref();
                Self::new(rollout.filter(|_| plan.mode == Mode::Normal), &own)
            })
            .collect()
    }

    fn new(rollout: Option<&'p Rollout>, own: &[(TaskId, &Change)]) -> Self {
        let stages: VecDeque<Stage> = match rollout {
            Some(rollout) => rollout.stages(own.iter().copied()).into(),
            // One at a time.
            None => own
                .iter()
                .filter(|(_, change)| change.action.is_replace())
                .map(|(id, _)| Stage {
                    changes: vec![*id],
                    ..Stage::default()
                })
                .collect(),
        };
        let staged: HashSet<TaskId> = stages
            .iter()
            .flat_map(|stage| stage.changes.iter().copied())
            .collect();
        let rest = || own.iter().filter(|(id, _)| !staged.contains(id));
        let is_deposed = |change: &Change| change.deposed.is_some();
        let slots = own.iter().filter(|(_, change)| !is_deposed(change));
        let slots: HashMap<&Address, TaskId> =
            slots.map(|(id, change)| (&change.address, *id)).collect();
        let followers = rest()
            .filter(|(_, change)| is_deposed(change))
            .filter_map(|(id, change)| Some((*id, slots.get(&change.address).copied()?)));
        let followers: VecDeque<(TaskId, TaskId)> = followers.collect();
        let follows: HashSet<TaskId> = followers.iter().map(|(id, _)| *id).collect();
        let (creates, others): (Vec<_>, Vec<_>) = rest()
            .filter(|(id, _)| !follows.contains(id))
            .partition(|(_, change)| change.action == Action::Create);
        let free = others.into_iter().chain(creates);
        let is_there = |change: &Change| {
            !matches!(
                change.action,
                Action::Create | Action::Delete | Action::Forget | Action::Adopt
            )
        };
        let present = own.iter().filter(|(_, change)| is_there(change)).count();
        let adopted = own
            .iter()
            .filter(|(_, change)| change.action == Action::Adopt && change.before.is_none());
        let members = rollout.map_or(0, |rollout| rollout.members.len());
        let takes_turns = own.iter().any(|(_, change)| is_limited(change));
        let rolls = takes_turns || rollout.is_some_and(|rollout| rollout.checks_new);
        let restored = own.iter().filter(|(_, change)| restores(change)).count();
        Self {
            after: Vec::new(),
            ids: own.iter().map(|(id, _)| *id).collect(),
            rollout,
            free: free.map(|(id, _)| id).collect(),
            followers,
            rolls: rolls && rollout.is_some(),
            stages,
            taken: 0,
            in_stage: HashSet::new(),
            active: 0,
            stopped: false,
            failures: 0,
            live: present + restored + adopted.count() + members,
            room: rollout.map_or(usize::MAX, |rollout| {
                (rollout.size + rollout.max_surge) as usize
            }),
            creating: 0,
            deleting: 0,
            gated: Vec::new(),
            survey: Survey::NotBefore(Timestamp(i64::MIN)),
            pause: Pause::No,
            promoted: false,
            waits_for: None,
            noted: String::new(),
            next_report: Timestamp(i64::MAX),
            // Where nothing is surveyed, only what is new counts.
            healthy: (!takes_turns).then_some(0),
            is_stalled: false,
        }
    }

    /// Continues where an earlier apply ended.
    pub(super) fn resume(&mut self, start: GroupStart) {
        self.promoted = start.promoted;
        if start.paused {
            self.pause = Pause::Requested;
        } else if let Some(since) = start.paused_since.filter(|_| !start.promoted) {
            self.pause = match self.rollout.and_then(|rollout| rollout.canary_pause) {
                Some(CanaryPause::For(pause)) => Pause::Until(since.after(pause)),
                _ => Pause::Manual,
            };
        }
    }

    /// Leaves out what an earlier apply did.
    pub(super) fn resume_tasks(&mut self, plan: &Plan, tasks: &[Task]) {
        let is_open = |id: TaskId| !matches!(tasks[id].phase, Phase::Ended(_));
        self.free.retain(|id| is_open(*id));
        self.followers.retain(|(id, _)| is_open(*id));
        for id in &self.ids {
            let (change, task) = (&plan.changes[*id], &tasks[*id]);
            let creates = matches!(change.action, Action::Create | Action::CreateThenDelete);
            let deletes = change.action == Action::CreateThenDelete;
            if creates && !task.steps.contains(&Step::Create) {
                self.live += 1;
            }
            if deletes && task.has_deleted {
                self.live = self.live.saturating_sub(1);
            }
            if let Some(healthy) = &mut self.healthy {
                *healthy += usize::from(task.has_arrived);
            }
        }
    }

    /// Counts a task that begins.
    pub(super) fn count_active(&mut self, now: Timestamp) {
        self.next_report = self.next_report.min(now.after(STILL));
        self.active += 1;
    }

    /// Whether a change failed, or the group was stopped: groups that depend on it don't begin.
    pub(super) fn has_failed(&self) -> bool {
        self.stopped || self.failures > 0
    }

    fn remains(&self) -> bool {
        !(self.free.is_empty() && self.followers.is_empty() && self.stages.is_empty())
    }

    /// Whether nothing is under way, and nothing will begin any more.
    pub(super) fn is_over(&self) -> bool {
        self.active == 0 && (self.stopped || !self.remains())
    }

    /// The pause that lies ahead.
    fn next_pause(&self) -> Option<NextPause> {
        let is_ahead = |stage: &&Stage| stage.is_canary && self.stages.len() > 1;
        let canaries = self.stages.front().filter(is_ahead)?;
        Some(NextPause {
            canaries: canaries.changes.len(),
            pause: self.rollout?.canary_pause.filter(|_| !self.promoted)?,
        })
    }

    fn max_creating(&self) -> usize {
        limit(self.rollout.map_or(0, |rollout| rollout.max_creating)) as usize
    }

    fn max_deleting(&self) -> usize {
        limit(self.rollout.map_or(0, |rollout| rollout.max_deleting)) as usize
    }
}

impl Engine<'_> {
    /// The next task of a group that may begin, taken from its queues.
    pub(super) fn take_next(&mut self, index: usize, now: Timestamp) -> Option<TaskId> {
        if self.groups[index].pause == Pause::Requested {
            return None;
        }
        self.take_free(index)
            .or_else(|| self.take_follower(index))
            .or_else(|| self.take_staged(index, now))
    }

    fn take_free(&mut self, index: usize) -> Option<TaskId> {
        let id = self.groups[index].free.front().copied()?;
        if !self.may_begin(id) {
            return None;
        }
        self.groups[index].free.pop_front()
    }

    fn take_follower(&mut self, index: usize) -> Option<TaskId> {
        let is_free = |(_, before): &(TaskId, TaskId)| {
            matches!(self.tasks[*before].phase, Phase::Ended(TaskEnd::Done))
        };
        let place = self.groups[index].followers.iter().position(is_free)?;
        let taken = self.groups[index].followers.remove(place);
        taken.map(|(id, _)| id)
    }

    fn take_staged(&mut self, index: usize, now: Timestamp) -> Option<TaskId> {
        loop {
            let group = &self.groups[index];
            if group.pause != Pause::No {
                return None;
            }
            let stage = group.stages.front()?;
            if let Some(id) = stage.changes.get(group.taken).copied() {
                if matches!(self.tasks[id].phase, Phase::Ended(_)) {
                    // An earlier apply did it.
                    self.groups[index].taken += 1;
                    continue;
                }
                if !self.may_begin(id) || !self.may_take_turn(index) {
                    return None;
                }
                let group = &mut self.groups[index];
                group.taken += 1;
                group.in_stage.insert(id);
                return Some(id);
            }
            if !group.in_stage.is_empty() {
                return None;
            }
            let is_canary = stage.is_canary;
            let group = &mut self.groups[index];
            group.stages.pop_front();
            group.taken = 0;
            if is_canary && !group.stages.is_empty() && !group.promoted {
                self.pause_after_canaries(index, now);
            }
        }
    }

    fn pause_after_canaries(&mut self, index: usize, now: Timestamp) {
        let group = &mut self.groups[index];
        group.pause = match group.rollout.and_then(|rollout| rollout.canary_pause) {
            None => return,
            Some(CanaryPause::For(pause)) => Pause::Until(now.after(pause)),
            Some(CanaryPause::Manual) => Pause::Manual,
        };
        self.entered.push((index, GroupStage::CanaryPause));
    }

    /// Whether a creation fits into the group's limits; anything else may begin.
    fn may_begin(&self, id: TaskId) -> bool {
        let group = &self.groups[self.tasks[id].group];
        let creates = matches!(
            self.tasks[id].steps.front(),
            Some(Step::Create | Step::Nonce)
        );
        // What is deleted first leaves its room.
        let has_room =
            group.live < group.room || self.plan.changes[id].action == Action::DeleteThenCreate;
        !creates
            || self.limits.injected_fault == InjectedFault::NoLimits
            || (has_room && group.creating < group.max_creating())
    }

    /// Without a policy, changes take turns one at a time. With one, they begin, and wait at their
    /// gate.
    fn may_take_turn(&self, index: usize) -> bool {
        let group = &self.groups[index];
        group.rollout.is_some() || group.in_stage.is_empty()
    }

    /// Counts what a task brings into being.
    pub(super) fn count_begun(&mut self, id: TaskId) {
        if self.tasks[id].began == 0 {
            self.begun += 1;
            self.tasks[id].began = self.begun;
        }
        if self.tasks[id].steps.front() == Some(&Step::Create) && !self.tasks[id].is_counted {
            self.tasks[id].is_counted = true;
            let keeps_room = self.plan.changes[id].action == Action::DeleteThenCreate;
            let group = &mut self.groups[self.tasks[id].group];
            group.live += usize::from(!keeps_room);
            group.creating += 1;
        }
    }

    /// Counts what a task leaves behind.
    pub(super) fn count_ended(&mut self, id: TaskId, end: &TaskEnd) {
        let task = &mut self.tasks[id];
        let arrives = std::mem::take(&mut task.is_counted);
        let leaves = std::mem::take(&mut task.is_leaving);
        let has_deleted = task.has_deleted;
        let group = &mut self.groups[task.group];
        if arrives {
            group.creating -= 1;
            if matches!(end, TaskEnd::Failed(_) | TaskEnd::NotTried) {
                group.live -= 1;
            }
        }
        if leaves && !has_deleted && self.plan.changes[id].action != Action::Update {
            group.deleting -= 1;
        }
        group.in_stage.remove(&id);
        group.survey = match group.survey {
            Survey::NotBefore(_) => Survey::NotBefore(Timestamp(i64::MIN)),
            Survey::Asked => Survey::Asked,
        };
    }

    /// The new instance is available.
    pub(super) fn count_arrived(&mut self, id: TaskId) {
        let task = &mut self.tasks[id];
        task.has_arrived = true;
        let group = &mut self.groups[task.group];
        if std::mem::take(&mut task.is_counted) {
            group.creating -= 1;
        }
        if let Some(healthy) = &mut group.healthy {
            *healthy += 1;
        }
        if self.plan.changes[id].action == Action::Update {
            self.tasks[id].is_leaving = false;
        }
        self.survey_soon(self.tasks[id].group);
    }

    /// The instance is deleted.
    pub(super) fn count_deleted(&mut self, id: TaskId) {
        // What is deleted first keeps its room for its successor; what is only deleted had none.
        let frees_room = self.plan.changes[id].action == Action::CreateThenDelete;
        let task = &mut self.tasks[id];
        task.has_deleted = true;
        let group = &mut self.groups[task.group];
        group.live = group.live.saturating_sub(usize::from(frees_room));
        if task.is_leaving {
            group.deleting -= 1;
            task.is_leaving = false;
        }
    }

    fn survey_soon(&mut self, index: usize) {
        if let Survey::NotBefore(at) = &mut self.groups[index].survey {
            *at = Timestamp(i64::MIN);
        }
    }

    /// Begins to wait at the gate.
    pub(super) fn begin_gate(&mut self, id: TaskId) {
        self.awaiting += 1;
        self.tasks[id].phase = Phase::Gated;
        let index = self.tasks[id].group;
        self.groups[index].gated.push(id);
        self.survey_soon(index);
    }

    /// Opens the gates that need no survey, and asks for surveys.
    pub(super) fn tend_gates(&mut self, now: Timestamp, commands: &mut Vec<Command>) {
        if self.stopping {
            return;
        }
        for index in 0..self.groups.len() {
            let group = &self.groups[index];
            if group.gated.is_empty() || group.pause == Pause::Requested {
                continue;
            }
            let floor = group.rollout.map_or(0, Rollout::floor);
            if floor == 0 || self.limits.injected_fault == InjectedFault::NoLimits {
                let all = std::mem::take(&mut self.groups[index].gated);
                self.open(index, all, now, commands);
                continue;
            }
            if let Survey::NotBefore(at) = group.survey
                && at <= now
            {
                let request = self.survey_request(index);
                self.groups[index].survey = Survey::Asked;
                self.surveys += 1;
                commands.push(Command::Survey(index, request));
            }
        }
    }

    /// When the next survey, or the end of a pause, is due.
    pub(super) fn next_gate(&self) -> Option<Timestamp> {
        let due = |group: &Group<'_>| {
            // Without a floor, gates open when another task ends.
            let is_surveyed = group.rollout.is_some_and(|rollout| rollout.floor() > 0)
                && group.pause != Pause::Requested
                && !group.gated.is_empty();
            let survey = match group.survey {
                Survey::NotBefore(at) if is_surveyed => Some(at),
                _ => None,
            };
            let pause = match group.pause {
                Pause::Until(at) => Some(at),
                _ => None,
            };
            survey.into_iter().chain(pause).min()
        };
        self.groups.iter().filter_map(due).min()
    }

    /// How many tasks wait at the gates of groups that were paused by request.
    pub(super) fn paused_at_gates(&self) -> usize {
        let paused = self
            .groups
            .iter()
            .filter(|group| group.pause == Pause::Requested);
        paused.map(|group| group.gated.len()).sum()
    }

    /// Whether a pause ends by itself.
    pub(super) fn has_timed_pause(&self) -> bool {
        let is_timed = |group: &Group<'_>| matches!(group.pause, Pause::Until(_));
        self.groups
            .iter()
            .any(|group| is_timed(group) && !group.stopped)
    }

    /// Ends the pauses whose time is over.
    pub(super) fn end_pauses(&mut self, now: Timestamp) {
        for index in 0..self.groups.len() {
            if let Pause::Until(at) = self.groups[index].pause
                && at <= now
            {
                self.groups[index].pause = Pause::No;
                self.groups[index].promoted = true;
                self.entered.push((index, GroupStage::Promoted));
            }
        }
    }

    /// The instances of a group that may be in service: not those on their way in or out.
    fn survey_request(&self, index: usize) -> SurveyRequest {
        let group = &self.groups[index];
        let rollout = group.rollout.expect("only a rollout has gates");
        let mut subjects = Vec::new();
        // Where an instance isn't registered as recorded, its change has what was observed.
        let drifted = self.plan.drift.iter();
        let recorded: HashMap<&str, &InstanceView> = drifted
            .filter_map(|drift| Some((&*drift.provider_id, drift.before.as_deref()?)))
            .collect();
        for id in &group.ids {
            let (change, task) = (&self.plan.changes[*id], &self.tasks[*id]);
            for view in in_service(change, task) {
                let provider_id = match &view.provider_id {
                    Some(id) => id.clone(),
                    None => task.provider_id.clone().unwrap_or_default(),
                };
                let recorded = recorded.get(&*provider_id).copied().unwrap_or(view);
                let mut targets = recorded.spec.head.load_balancers.clone();
                // It need not be registered where it isn't wanted any more.
                if let Some(after) = change.after.as_deref() {
                    targets.retain(|target| after.spec.head.load_balancers.contains(target));
                }
                subjects.push((
                    self.subject(&change.address, &view.instance_id, provider_id),
                    targets,
                ));
            }
        }
        for member in &rollout.members {
            let id = member.provider_id.clone();
            let subject = self.subject(&member.address, &member.instance_id, id);
            subjects.push((subject, member.load_balancers.clone()));
        }
        SurveyRequest {
            subjects,
            check: rollout.health.check.clone(),
            timeout: rollout.health.timeout,
        }
    }

    /// An instance, as checks and commands see it.
    pub(super) fn subject(
        &self,
        address: &Address,
        instance_id: &str,
        provider_id: String,
    ) -> Subject {
        Subject {
            facts: vec![
                ("ADDRESS", address.to_string()),
                ("INSTANCE_ID", instance_id.to_owned()),
                ("PROVIDER_ID", provider_id.clone()),
                ("CLUSTER", self.plan.cluster.clone()),
                ("SHARD", self.plan.shard.clone()),
                ("TENANT", address.group.tenant().to_owned()),
                ("GROUP", address.group.name().to_owned()),
                ("SLOT", address.slot.to_string()),
            ],
            provider_id,
            ip4: None,
            ip6: None,
        }
    }

    /// Handles a survey: opens as many gates as the available instances allow.
    pub(super) fn surveyed(
        &mut self,
        index: usize,
        result: Result<Seen, CloudError>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        self.surveys -= 1;
        let group = &mut self.groups[index];
        let rollout = group.rollout.expect("only a rollout has gates");
        group.survey = Survey::NotBefore(now.after(rollout.health.interval));
        let seen = match result {
            Ok(seen) => seen,
            Err(error) => {
                let what = format!("an answer about its instances: {error}");
                return self.waits(index, what, now, commands);
            }
        };
        if self.stopping || self.groups[index].pause == Pause::Requested {
            return;
        }
        let floor = rollout.floor();
        let gated = self.groups[index].gated.clone();
        let available = seen.available.len();
        let mut spare = available.saturating_sub(floor);
        let (mut leaving, mut served) = (Vec::new(), 0);
        for id in gated {
            let before = self.plan.changes[id].before.as_deref();
            let serves = before.is_some_and(|before| seen.serves(before, now));
            if serves && spare == 0 {
                continue;
            }
            if serves {
                spare -= 1;
            }
            served += usize::from(serves);
            leaving.push(id);
        }
        self.groups[index].healthy = Some(available.saturating_sub(served));
        let count = leaving.len();
        let is_leaving: HashSet<TaskId> = leaving.iter().copied().collect();
        self.groups[index]
            .gated
            .retain(|id| !is_leaving.contains(id));
        self.open(index, leaving, now, commands);
        let gated = self.groups[index].gated.len();
        if gated > 0 && gated == self.groups[index].active {
            self.pull_forward(index, &seen, now);
        }
        // Where something else is under way, that is waited for.
        let is_stalled = gated > 0 && count == 0 && gated == self.groups[index].active;
        self.groups[index].is_stalled = is_stalled;
        if is_stalled {
            let why = format!(
                "more available instances: {available} of {} are, and {floor} must stay",
                rollout.size
            );
            self.waits(index, why, now, commands);
        } else {
            self.groups[index].waits_for = None;
        }
    }

    /// Moves a change that takes nothing out of service to the current stage, where all others wait
    /// for available instances: without it they would wait forever.
    fn pull_forward(&mut self, index: usize, seen: &Seen, now: Timestamp) {
        let group = &self.groups[index];
        if group.pause != Pause::No || group.stopped {
            return;
        }
        let serves = |id: TaskId| {
            let before = self.plan.changes[id].before.as_deref();
            before.is_some_and(|before| seen.serves(before, now))
        };
        let found = group.stages.iter().enumerate().find_map(|(stage, it)| {
            let taken = if stage == 0 { group.taken } else { 0 };
            let mut rest = it.changes.iter().enumerate().skip(taken);
            let (place, _) = rest.find(|(_, id)| {
                let is_open = !matches!(self.tasks[**id].phase, Phase::Ended(_));
                is_open && !serves(**id) && self.may_begin(**id)
            })?;
            Some((stage, place))
        });
        let group = &self.groups[index];
        let mut followers = group.followers.iter();
        let follower = followers.position(|(id, _)| !serves(*id));
        let group = &mut self.groups[index];
        if let Some((stage, place)) = found {
            let id = group.stages[stage].changes.remove(place);
            group.stages[0].changes.insert(group.taken, id);
        } else if let Some(place) = follower
            && let Some((id, _)) = group.followers.remove(place)
        {
            // A deposed instance that doesn't serve: the next apply needs its room.
            group.free.push_front(id);
        }
    }

    /// Opens gates, as far as `max_deleting` and `max_creating` allow.
    fn open(
        &mut self,
        index: usize,
        ids: Vec<TaskId>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        for id in ids {
            let action = self.plan.changes[id].action;
            let group = &mut self.groups[index];
            let creates = action == Action::DeleteThenCreate;
            let is_full = (action != Action::Update && group.deleting >= group.max_deleting())
                || (creates && group.creating >= group.max_creating());
            if is_full && self.limits.injected_fault != InjectedFault::NoLimits {
                group.gated.push(id);
                continue;
            }
            if action != Action::Update {
                group.deleting += 1;
            }
            self.tasks[id].is_leaving = true;
            self.awaiting -= 1;
            self.end_step(id, now, commands);
        }
        let tasks = &self.tasks;
        self.groups[index].gated.sort_by_key(|id| tasks[*id].began);
    }

    /// Reports what a group waits for, when that changes.
    fn waits(&mut self, index: usize, what: String, now: Timestamp, commands: &mut Vec<Command>) {
        let known = self.groups[index].waits_for.as_ref();
        if known.is_none_or(|wait| wait.what != what) {
            self.groups[index].waits_for = Some(Wait { what, since: now });
            self.tell_group(index, now, commands);
        }
    }

    /// Reports the status of each group whose changes have been under way for another [`STILL`].
    pub(super) fn tell_groups(&mut self, now: Timestamp, commands: &mut Vec<Command>) {
        for index in 0..self.groups.len() {
            let group = &self.groups[index];
            if group.rolls && group.active > 0 && !group.stopped && group.next_report <= now {
                self.tell_group(index, now, commands);
            }
        }
    }

    /// Reports a group's status, and notes what it waits for.
    fn tell_group(&mut self, index: usize, now: Timestamp, commands: &mut Vec<Command>) {
        let group = &self.groups[index];
        if group.stopped || self.stopping {
            return;
        }
        let pause = group.pause;
        let wait = group.waits_for.clone();
        let wait = wait.or_else(|| self.first_wait(index));
        let next_pause = group.next_pause();
        let stage = match pause {
            Pause::No => GroupStage::Rolling,
            Pause::Requested => GroupStage::Paused,
            Pause::Until(_) | Pause::Manual => GroupStage::CanaryPause,
        };
        let detail = wait.as_ref().map(|wait| wait.what.clone());
        let detail = detail.unwrap_or_default();
        let group = &mut self.groups[index];
        group.next_report = now.after(STILL);
        // The next apply needs the record of a pause.
        if pause == Pause::No && group.noted != detail {
            group.noted.clone_from(&detail);
            commands.push(self.group_note(index, stage, &detail));
        }
        let healthy = self.groups[index].healthy;
        let status = GroupStatus {
            stage,
            healthy,
            wait,
            next_pause,
        };
        commands.push(Command::Tell(Progress::Rolls {
            group: index,
            status,
        }));
    }

    /// The first of a group's changes that waits, and for what.
    fn first_wait(&self, index: usize) -> Option<Wait> {
        let waits = |id: &&TaskId| {
            let task = &self.tasks[**id];
            let step = task.steps.front();
            step.is_some_and(|step| step.is_wait() || *step == Step::Drain)
                && matches!(
                    task.phase,
                    Phase::Ready | Phase::BackingOff | Phase::Calling
                )
        };
        let waiting = self.groups[index].ids.iter().filter(waits);
        let id = *waiting.min_by_key(|id| self.tasks[**id].began)?;
        let task = &self.tasks[id];
        let address = &self.plan.changes[id].address;
        let what = match (task.steps.front(), &*task.last_reason) {
            (Some(Step::Connections), _) => format!("the connections of {address} to end"),
            (Some(Step::Drain), _) => format!("the drain command of {address}"),
            (_, "") => format!("{address} to be available"),
            (_, why) => format!("{address} to be available: {why}"),
        };
        Some(Wait {
            what,
            since: task.waits_since,
        })
    }

    /// Takes the tasks at the gate of a stopped group: those that did nothing, or all.
    pub(super) fn take_gated(&mut self, index: usize, all: bool) -> Vec<TaskId> {
        let tasks = &self.tasks;
        let leaves = |id: &TaskId| all || !tasks[*id].touched;
        let (taken, stay) = std::mem::take(&mut self.groups[index].gated)
            .into_iter()
            .partition(leaves);
        self.groups[index].gated = stay;
        taken
    }

    /// Handles a request from another process.
    pub(super) fn asked(
        &mut self,
        name: Option<&str>,
        request: Request,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        for index in 0..self.groups.len() {
            let group = &self.plan.groups[index];
            if name.is_some_and(|name| name != group.name) || self.groups[index].is_over() {
                continue;
            }
            match request {
                Request::Promote => {
                    // The end of a pause by request says nothing about the canaries.
                    let stage = if self.groups[index].pause == Pause::Requested {
                        GroupStage::Rolling
                    } else {
                        self.groups[index].promoted = true;
                        GroupStage::Promoted
                    };
                    self.groups[index].pause = Pause::No;
                    self.last_progress = now;
                    self.enter(index, stage, "", commands);
                }
                Request::Pause => {
                    self.groups[index].pause = Pause::Requested;
                    self.groups[index].waits_for = None;
                    self.enter(index, GroupStage::Paused, "", commands);
                }
                Request::Abort => {
                    self.groups[index].stopped = true;
                    self.enter(index, GroupStage::Aborted, "", commands);
                    self.give_up_waiting(index, commands);
                }
            }
        }
    }

    /// Notes and reports that a group reached a stage.
    pub(super) fn enter(
        &mut self,
        index: usize,
        stage: GroupStage,
        detail: &str,
        commands: &mut Vec<Command>,
    ) {
        self.groups[index].noted.clear();
        commands.push(self.group_note(index, stage, detail));
        commands.push(Command::Tell(Progress::Group {
            group: index,
            stage,
            detail: detail.to_owned(),
        }));
    }

    /// The note of a group's stage.
    fn group_note(&self, index: usize, stage: GroupStage, detail: &str) -> Command {
        Command::Note(Note::Group {
            group: self.plan.groups[index].name.clone(),
            stage,
            promoted: self.groups[index].promoted,
            detail: detail.to_owned(),
        })
    }

    /// Counts a failure of a group; stops it if there are too many.
    pub(super) fn count_failure(&mut self, id: TaskId, error: &str, commands: &mut Vec<Command>) {
        let index = self.tasks[id].group;
        let group = &mut self.groups[index];
        group.failures += 1;
        let allowed = group.rollout.map_or(0, |rollout| rollout.max_failures);
        let is_canary = group.in_stage.contains(&id)
            && group.stages.front().is_some_and(|stage| stage.is_canary);
        if group.stopped || (group.failures <= allowed && !is_canary) {
            return;
        }
        group.stopped = true;
        if group.rolls {
            self.enter(index, GroupStage::Failed, error, commands);
        }
    }

    /// Whether a stopped group goes back to what was last good.
    pub(super) fn rolls_back(&self, index: usize) -> bool {
        let group = &self.groups[index];
        let policy = group.rollout.map(|rollout| rollout.on_failure);
        group.stopped
            && policy == Some(OnFailure::Rollback)
            && self.limits.injected_fault != InjectedFault::NoRollback
    }

    /// Notes groups that wait in vain, and says what groups wait for whose new instances only have to
    /// become available.
    pub(super) fn name_waits(&mut self, commands: &mut Vec<Command>) {
        for index in 0..self.groups.len() {
            let group = &self.groups[index];
            if group.is_stalled && group.pause == Pause::No && !group.stopped {
                let wait = group.waits_for.clone();
                let what = wait.map(|wait| wait.what).unwrap_or_default();
                self.enter(index, GroupStage::Stalled, &what, commands);
            }
            if self.groups[index].waits_for.is_none() {
                self.groups[index].waits_for = self.first_wait(index);
            }
        }
    }

    /// The groups that wait for more than this run, and for what.
    pub(super) fn waiting_groups(&self) -> Vec<(usize, String)> {
        let groups = self.groups.iter().enumerate();
        groups
            .filter(|(_, group)| !group.stopped)
            .filter_map(|(index, group)| {
                let why = match group.pause {
                    Pause::Manual => "`nstance rollout promote` after the canaries".to_owned(),
                    Pause::Requested => "`nstance rollout promote` after a pause".to_owned(),
                    Pause::Until(at) => format!("the end of the canaries' pause at {at}"),
                    Pause::No if self.has_waited_long => group.waits_for.clone()?.what,
                    Pause::No => return None,
                };
                Some((index, why))
            })
            .collect()
    }
}

/// Whether a deletion gives the slot back to its predecessor.
fn restores(change: &Change) -> bool {
    change.action == Action::Delete && change.after.is_some()
}

/// The instances of a change that may be in service now.
fn in_service<'c>(change: &'c Change, task: &Task) -> Vec<&'c InstanceView> {
    let mut views = Vec::new();
    let is_new = matches!(
        change.action,
        Action::Create | Action::CreateThenDelete | Action::DeleteThenCreate
    );
    let stays = !task.is_leaving && !task.has_deleted;
    if let Some(before) = change.before.as_deref()
        && stays
        && !matches!(change.action, Action::Create | Action::Forget)
    {
        views.push(before);
    }
    if let Some(after) = change.after.as_deref()
        && (is_new && task.has_arrived
            || change.action == Action::Adopt && change.before.is_none()
            || restores(change))
    {
        views.push(after);
    }
    views
}
