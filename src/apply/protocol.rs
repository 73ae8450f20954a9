//! The engine's events and commands.
//!
//! In: nothing (data only). Out: [`Event`]s, [`Command`]s, [`Progress`] and the [`Outcome`]. Must
//! not: decide anything.

use std::sync::Arc;
use std::time::Duration;

use nstance_state::{ApplyStatus, IntentId};

use super::journal::StoreOperation;
use crate::address::Address;
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Action, Summary};
use crate::provider::{CloudError, CreateRequest, DeleteRequest, Observation, UpdateRequest};
use crate::spec::SpecBody;

/// How much may go on at once, and how often a call is tried.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Calls under way at once.
    pub parallelism: usize,
    /// The least time between two creates.
    pub create_interval: Duration,
    /// Tries of one call.
    pub tries: u32,
    /// The first wait before another try; it doubles each time.
    pub first_wait: Duration,
    /// The longest wait before another try.
    pub longest_wait: Duration,
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
            injected_fault: InjectedFault::None,
        }
    }
}

/// The wait before an instance is asked for its addresses once more.
pub const ADDRESS_WAIT: Duration = Duration::from_secs(2);

/// Which change of the plan; its index.
pub type TaskId = usize;

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The beginning.
    Start,
    /// A store operation is on disk.
    Stored {
        /// Whose.
        task: TaskId,
        /// The intent's id, if it was one.
        intent: Option<IntentId>,
    },
    /// The cloud answered.
    Called {
        /// Whose call.
        task: TaskId,
        /// The answer.
        result: Box<Result<Option<Observation>, CloudError>>,
    },
    /// Time went by.
    Tick,
    /// Finish what is under way and start nothing more.
    Stop,
}

/// What to do.
#[derive(Debug)]
pub enum Command {
    /// Store this; all of one wave in one transaction. Answered by [`Event::Stored`].
    Store(TaskId, StoreOperation),
    /// Ask the cloud. Answered by [`Event::Called`].
    Call(TaskId, Call),
    /// Write an instance's exported files.
    Export(Address, Arc<SpecBody>),
    /// Remove an instance's exported files.
    Unexport(Address),
    /// Report progress.
    Tell(Progress),
}

/// A question to the cloud.
#[derive(Debug, Clone)]
pub enum Call {
    /// Create.
    Create(Box<CreateRequest>),
    /// Change in place.
    Update(Box<UpdateRequest>),
    /// Delete.
    Delete(DeleteRequest),
    /// Look for an instance of ours by our id, when the visibility window has passed: only then
    /// its absence counts.
    Find {
        /// Our id.
        instance_id: String,
    },
    /// Look at an instance by the cloud's id, a moment later ([`ADDRESS_WAIT`]).
    Describe {
        /// The cloud's id.
        provider_id: String,
    },
}

/// Progress of an apply.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A step of a change begins.
    Started {
        /// Which.
        task: TaskId,
        /// What.
        step: Step,
    },
    /// A call failed and will be tried again.
    Retrying {
        /// Which.
        task: TaskId,
        /// Why.
        error: String,
        /// After how long.
        wait: Duration,
    },
    /// There was no capacity; the instance will be made in another subnet of its pool.
    Elsewhere {
        /// Which.
        task: TaskId,
        /// Why.
        error: String,
        /// Where.
        subnet: Arc<str>,
    },
    /// A step of a change is done and recorded.
    Completed {
        /// Which.
        task: TaskId,
        /// What.
        step: Step,
        /// The cloud's id of what it was about.
        provider_id: Option<String>,
        /// How long it took.
        elapsed: Duration,
    },
    /// Nothing more is done about a change.
    Ended {
        /// Which.
        task: TaskId,
    },
    /// An instance's exported files could not be written or removed.
    ExportFailed {
        /// Whose.
        address: Address,
        /// Why.
        error: String,
    },
    /// A change failed.
    Failed {
        /// Which.
        task: TaskId,
        /// In which step.
        step: Step,
        /// Why.
        error: String,
    },
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    /// Done and recorded.
    Done,
    /// It failed; nothing of it is left over.
    Failed(String),
    /// Nothing of it was tried.
    NotTried,
    /// A part of it is done and recorded; running again continues.
    Unfinished(String),
    /// Whether it happened isn't known; the journal holds it open, and the next run settles it.
    Unsettled(String),
}

/// How an apply ended.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What was done.
    pub done: Summary,
    /// What wasn't, by index of the plan's changes.
    pub undone: Vec<(TaskId, TaskEnd)>,
    /// Whether it was stopped.
    pub stopped: bool,
}

impl Outcome {
    /// How far the apply came, for the history.
    pub fn status(&self) -> ApplyStatus {
        match (self.is_complete(), self.stopped) {
            (true, _) => ApplyStatus::Succeeded,
            (false, true) => ApplyStatus::Interrupted,
            (false, false) => ApplyStatus::Failed,
        }
    }

    /// Whether everything was done.
    pub fn is_complete(&self) -> bool {
        self.undone.is_empty()
    }
}

/// A part of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An instance is made.
    Create,
    /// One is changed in place.
    Update,
    /// One is deleted.
    Delete,
    /// The record alone changes.
    Record,
}

/// An action's name in history and messages.
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
