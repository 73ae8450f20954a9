//! Events and commands of the engine.
//!
//! In: nothing (data only). Out: [`Event`]s, [`Command`]s, [`Progress`] and the [`Outcome`].

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use nstance_state::{ApplyStatus, IntentId};
use zeroize::Zeroizing;

use super::checks::Subject;

use super::journal::StoreOperation;
use super::nonce::NonceRequest;
use crate::address::Address;
use crate::clock::Timestamp;
use crate::config::model::{CanaryPause, Check};
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Action, InstanceView, Summary};
use crate::provider::{
    CloudError, CreateRequest, DEFAULT_WAIT_TIMEOUT, DeleteRequest, Observation, TargetHealth,
    TargetsRequest, UpdateRequest,
};
use crate::spec::SpecBody;

/// Limits on parallel calls and retries.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of parallel calls.
    pub parallelism: usize,
    /// The minimum interval between two creates.
    pub create_interval: Duration,
    /// The maximum number of tries of one call.
    pub tries: u32,
    /// The wait before the first retry; it doubles for each further one.
    pub first_wait: Duration,
    /// The maximum wait before a retry.
    pub longest_wait: Duration,
    /// How long an instance may take to become available.
    pub wait_timeout: Duration,
    /// How long a rollout may wait without progress.
    pub max_wait: Duration,
    /// Whether nonces are made; otherwise their placeholders are sent.
    pub makes_nonces: bool,
    /// How long a nonce is of use.
    pub nonce_lifetime: Duration,
    /// A fault of our own, for the simulator.
    pub injected_fault: InjectedFault,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            parallelism: 10,
            create_interval: Duration::ZERO,
            tries: 8,
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(20),
            wait_timeout: DEFAULT_WAIT_TIMEOUT,
            max_wait: Duration::from_mins(30),
            makes_nonces: false,
            nonce_lifetime: Duration::from_mins(5),
            injected_fault: InjectedFault::None,
        }
    }
}

/// The interval of polling an instance's addresses, and the first wait for it to run.
pub const ADDRESS_WAIT: Duration = Duration::from_secs(2);

/// The maximum interval of polling whether an instance runs.
pub const LONGEST_POLL: Duration = Duration::from_secs(10);

/// The interval of [`Progress::Still`].
pub const STILL: Duration = Duration::from_secs(10);

/// The index of a change in the plan.
pub type TaskId = usize;

/// Input of the engine.
#[derive(Debug)]
pub enum Event {
    /// The start of the apply.
    Start,
    /// A store operation is durable.
    Stored {
        /// Its task.
        task: TaskId,
        /// The intent's id, if an intent was stored.
        intent: Option<IntentId>,
    },
    /// A call returned.
    Called {
        /// Its task.
        task: TaskId,
        /// The result.
        result: Box<Result<Answer, CloudError>>,
    },
    /// A survey of a group returned.
    Surveyed {
        /// The index of the group.
        group: usize,
        /// Its instances.
        result: Result<Seen, CloudError>,
    },
    /// The drain command ended.
    Drained {
        /// The task.
        task: TaskId,
        /// Why it failed. A command that takes too long is done.
        result: Result<(), String>,
    },
    /// `nstance rollout`, from another process.
    Asked {
        /// The group, or all groups.
        group: Option<String>,
        /// The request.
        request: Request,
    },
    /// The nonce command ended.
    NonceMade {
        /// The task.
        task: TaskId,
        /// The nonce, or why there is none.
        made: Result<Zeroizing<String>, String>,
    },
    /// Time passed.
    Tick,
    /// Finish operations in progress and start no more.
    Stop,
}

/// Output of the engine.
#[derive(Debug)]
pub enum Command {
    /// Store this, in one transaction with the rest of the wave. [`Event::Stored`] follows.
    Store(TaskId, StoreOperation),
    /// Call the cloud. [`Event::Called`] follows.
    Call(TaskId, Call),
    /// Run the nonce command.
    MakeNonce(TaskId, NonceRequest),
    /// Find out which instances of a group are available. [`Event::Surveyed`] follows.
    Survey(usize, SurveyRequest),
    /// Run the drain command. [`Event::Drained`] follows.
    Drain(TaskId, DrainRequest),
    /// Store this with the next transaction; nothing waits for it.
    Note(Note),
    /// Write an instance's exported files.
    Export(Address, Arc<SpecBody>),
    /// Remove an instance's exported files.
    Unexport(Address),
    /// Report progress.
    Tell(Progress),
}

/// A call to the cloud.
#[derive(Debug, Clone)]
pub enum Call {
    /// Create an instance.
    Create(Box<CreateRequest>),
    /// Update an instance in place.
    Update(Box<UpdateRequest>),
    /// Delete an instance.
    Delete(DeleteRequest),
    /// Find an instance by its instance id, after the visibility window: before, its absence proves
    /// nothing.
    Find {
        /// The instance id.
        instance_id: String,
    },
    /// Describe an instance by its provider id, after [`ADDRESS_WAIT`].
    Describe {
        /// The provider id.
        provider_id: String,
    },
    /// Describe an instance and check its health.
    Look(Box<LookRequest>),
    /// Register an instance with its load balancers.
    Register(TargetsRequest),
    /// Deregister it.
    Deregister(TargetsRequest),
    /// Ask its load balancers for their verdict.
    Targets(TargetsRequest),
}

/// The answer to a call.
#[derive(Debug)]
pub enum Answer {
    /// The instance after the call; `None` if it doesn't exist, or the call returns nothing.
    Instance(Option<Observation>),
    /// An instance and its health.
    Looked(Look),
    /// The verdicts of load balancers.
    Targets(Vec<TargetHealth>),
}

/// An instance and its health.
#[derive(Debug)]
pub struct Look {
    /// The instance; `None` if it isn't listed.
    pub observation: Option<Observation>,
    /// The result of the check of a running instance.
    pub healthy: Result<(), String>,
}

/// What to check of an instance.
#[derive(Debug, Clone)]
pub struct LookRequest {
    /// The instance.
    pub subject: Subject,
    /// The check.
    pub check: Check,
    /// How long the check may take.
    pub timeout: Duration,
}

/// The instances of a group that a survey found, by provider id. All others aren't available.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Those that are available.
    pub available: HashSet<String>,
    /// Those that the cloud doesn't show.
    pub unseen: HashSet<String>,
    /// How long a new instance may serve before it is shown.
    pub window: Duration,
}

impl Seen {
    /// Whether an instance serves, as far as is known.
    pub fn serves(&self, instance: &InstanceView, now: Timestamp) -> bool {
        let Some(id) = &instance.provider_id else {
            return false;
        };
        let is_new = || {
            instance
                .created_at
                .is_none_or(|at| now < at.after(self.window))
        };
        self.available.contains(id) || self.unseen.contains(id) && is_new()
    }
}

/// The instances of a group, to find out which are available.
#[derive(Debug, Clone)]
pub struct SurveyRequest {
    /// Each instance with its load balancers.
    pub subjects: Vec<(Subject, Vec<String>)>,
    /// The check.
    pub check: Check,
    /// How long a check may take.
    pub timeout: Duration,
}

/// A drain command.
#[derive(Debug, Clone)]
pub struct DrainRequest {
    /// The program and its arguments.
    pub words: Arc<[Arc<str>]>,
    /// The instance.
    pub subject: Subject,
    /// How long it may take.
    pub timeout: Duration,
}

/// A line of the rollout's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The stage of a slot.
    Slot {
        /// The address.
        address: Address,
        /// The instance id.
        instance_id: String,
        /// The stage.
        stage: &'static str,
        /// More about it, such as an error.
        detail: String,
    },
    /// The stage of a group.
    Group {
        /// `tenant/group`
        group: String,
        /// The stage.
        stage: GroupStage,
        /// Whether the canaries' pause is over.
        promoted: bool,
        /// More about it.
        detail: String,
    },
}

/// The status of a group whose changes are under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStatus {
    /// The stage.
    pub stage: GroupStage,
    /// How many of its instances are available; `None` before the first survey.
    pub healthy: Option<usize>,
    /// What it waits for.
    pub wait: Option<Wait>,
    /// The pause that lies ahead.
    pub next_pause: Option<NextPause>,
}

/// What a group waits for, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What it waits for.
    pub what: String,
    /// Since when.
    pub since: Timestamp,
}

/// The pause after a group's canaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextPause {
    /// How many changes precede it.
    pub canaries: usize,
    /// How long it lasts.
    pub pause: CanaryPause,
}

/// What follows the word of a stage after the canaries' pause.
const PROMOTED: &str = ", promoted";

/// The stage of a group's rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupStage {
    /// Changing.
    Rolling,
    /// The canaries are done; the pause runs, or waits for `promote`.
    CanaryPause,
    /// The canaries' pause is over.
    Promoted,
    /// Paused by request.
    Paused,
    /// Stopped, since no instances became available that it needs.
    Stalled,
    /// Stopped after a failure.
    Failed,
    /// Stopped by request.
    Aborted,
    /// Done.
    Done,
}

impl GroupStage {
    /// All stages.
    pub const ALL: [Self; 8] = [
        Self::Rolling,
        Self::CanaryPause,
        Self::Promoted,
        Self::Paused,
        Self::Stalled,
        Self::Failed,
        Self::Aborted,
        Self::Done,
    ];

    /// The word in the state, JSON and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rolling => "rolling",
            Self::CanaryPause => "canary-pause",
            Self::Promoted => "promoted",
            Self::Paused => "paused",
            Self::Stalled => "stalled",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::Done => "done",
        }
    }

    /// The text in the state: the word, and whether the canaries' pause is over.
    pub fn to_text(self, promoted: bool) -> String {
        let is_said = matches!(self, Self::Promoted | Self::Done | Self::CanaryPause);
        let rest = if promoted && !is_said { PROMOTED } else { "" };
        format!("{}{rest}", self.as_str())
    }

    /// The stage of a text, and whether the canaries' pause is over.
    pub fn parse(text: &str) -> Option<(Self, bool)> {
        let (word, promoted) = match text.strip_suffix(PROMOTED) {
            Some(word) => (word, true),
            None => (text, text == Self::Promoted.as_str()),
        };
        let stage = Self::ALL.into_iter().find(|stage| stage.as_str() == word)?;
        Some((stage, promoted))
    }
}

/// What `nstance rollout` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Continue after the canaries, or after a pause.
    Promote,
    /// Begin nothing more.
    Pause,
    /// Stop as after a failure.
    Abort,
}

impl Request {
    /// The word in the state and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Promote => "promote",
            Self::Pause => "pause",
            Self::Abort => "abort",
        }
    }

    /// The request of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Promote, Self::Pause, Self::Abort]
            .into_iter()
            .find(|request| request.as_str() == word)
    }
}

/// Progress of an apply.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A step started.
    Started {
        /// The task.
        task: TaskId,
        /// The step.
        step: Step,
    },
    /// A step is still in progress; reported every [`STILL`].
    Still {
        /// The task.
        task: TaskId,
        /// The step.
        step: Step,
        /// Its duration so far.
        elapsed: Duration,
    },
    /// A call failed and will be retried.
    Retrying {
        /// The task.
        task: TaskId,
        /// The error.
        error: String,
        /// The wait before the retry.
        wait: Duration,
    },
    /// A subnet has no capacity; the instance will be created in another subnet of its pool.
    Elsewhere {
        /// The task.
        task: TaskId,
        /// The error.
        error: String,
        /// The next subnet.
        subnet: Arc<str>,
    },
    /// A step is done and recorded.
    Completed {
        /// The task.
        task: TaskId,
        /// The step.
        step: Step,
        /// The provider id of its instance.
        provider_id: Option<String>,
        /// Its duration.
        elapsed: Duration,
    },
    /// A step of a change with several steps began.
    Entered {
        /// The task.
        task: TaskId,
        /// The step.
        step: Step,
    },
    /// The new or restarted instance of a change with several steps is available.
    Available {
        /// The task.
        task: TaskId,
    },
    /// A step is still waiting, for another reason than before.
    Waits {
        /// The task.
        task: TaskId,
        /// The reason.
        why: String,
    },
    /// A load balancer has no listener, so its verdict isn't waited for.
    Unused {
        /// The load balancer.
        load_balancer: String,
    },
    /// A group's rollout reached another stage.
    Group {
        /// The index of the group.
        group: usize,
        /// The stage.
        stage: GroupStage,
        /// Why it stopped.
        detail: String,
    },
    /// How far a group's rollout came; reported every [`STILL`], and when it waits for something
    /// else.
    Rolls {
        /// The index of the group.
        group: usize,
        /// Its status.
        status: GroupStatus,
    },
    /// Time passed. Not of the engine: the driver reports it about ten times a second.
    Tick,
    /// A task ended.
    Ended {
        /// The task.
        task: TaskId,
    },
    /// An instance was made, and the state couldn't be written: its creation is open in the journal.
    Unrecorded {
        /// The task.
        task: TaskId,
        /// The cloud's id.
        provider_id: String,
    },
    /// An instance's exported files couldn't be written or removed.
    ExportFailed {
        /// The instance's address.
        address: Address,
        /// The error.
        error: String,
    },
    /// A step failed.
    Failed {
        /// The task.
        task: TaskId,
        /// The step.
        step: Step,
        /// The error.
        error: String,
    },
}

/// The final state of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    /// Done and recorded.
    Done,
    /// Failed without a lasting effect.
    Failed(String),
    /// Never tried.
    NotTried,
    /// Some steps are done and recorded; the next apply continues.
    Unfinished(String),
    /// The result is unknown. The intent stays open, and the next run settles it.
    Unsettled(String),
}

/// The result of an apply.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The changes that were done.
    pub done: Summary,
    /// The tasks that weren't done, and why.
    pub undone: Vec<(TaskId, TaskEnd)>,
    /// Whether it was interrupted.
    pub stopped: bool,
    /// The number of changes that failed.
    pub failures: usize,
    /// The groups that wait, and for what.
    pub waiting: Vec<(usize, String)>,
    /// The groups that nothing changed because another group failed, each with that group.
    pub blocked: Vec<(usize, usize)>,
    /// The groups that stopped and are to be rolled back.
    pub rollback: Vec<usize>,
}

impl Outcome {
    /// The status for the history.
    pub fn status(&self) -> ApplyStatus {
        match (self.is_complete(), self.stopped) {
            (true, _) => ApplyStatus::Succeeded,
            (false, true) => ApplyStatus::Interrupted,
            (false, false) => ApplyStatus::Failed,
        }
    }

    /// Whether it ended because a rollout waits, and not because of a failure or a signal.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty() && self.failures == 0 && !self.stopped
    }

    /// Whether all changes were done.
    pub fn is_complete(&self) -> bool {
        self.undone.is_empty()
    }
}

/// A step of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Make the instance's nonce.
    Nonce,
    /// Create the instance.
    Create,
    /// Update the instance in place.
    Update,
    /// Wait until the instance runs and is healthy.
    Check,
    /// Register the instance with its load balancers.
    Register,
    /// Wait until its load balancers see it as healthy.
    Verdict,
    /// Wait until the group's limits let an instance out of service.
    Gate,
    /// Deregister the instance from its load balancers.
    Deregister,
    /// Wait until its connections have ended, or the drain timeout is over.
    Connections,
    /// Run the drain command.
    Drain,
    /// Delete the instance.
    Delete,
    /// Change only the record.
    Record,
}

impl Step {
    /// Whether it only waits; it holds no call slot meanwhile.
    pub fn is_wait(self) -> bool {
        matches!(
            self,
            Self::Check | Self::Verdict | Self::Gate | Self::Connections
        )
    }

    /// The word in the rollout's record and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nonce => "making-nonce",
            Self::Create => "creating",
            Self::Update => "updating",
            Self::Check | Self::Verdict => "checking",
            Self::Register => "registering",
            Self::Gate => "waiting",
            Self::Deregister => "deregistering",
            Self::Connections | Self::Drain => "draining",
            Self::Delete => "deleting",
            Self::Record => "recording",
        }
    }

    /// What follows the word in the rollout's record.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Verdict => "by its load balancers",
            _ => "",
        }
    }

    /// The wait for an instance to be available, if the rollout's record says so.
    pub fn parse_wait(stage: &str, detail: &str) -> Option<Self> {
        let waits = [Self::Check, Self::Verdict];
        let is_it = |step: &Self| (step.as_str(), step.detail()) == (stage, detail);
        waits.into_iter().find(is_it)
    }
}

/// The name of an action in history and messages.
pub fn action_name(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::CreateThenDelete | Action::DeleteThenCreate => "replace",
        Action::Delete => "delete",
        Action::Adopt => "adopt",
        Action::Forget => "forget",
        Action::NoOp => "no-op",
    }
}
