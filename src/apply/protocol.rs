//! Events and commands of the engine.
//!
//! In: nothing (data only). Out: [`Event`]s, [`Command`]s, [`Progress`] and the [`Outcome`].

use std::sync::Arc;
use std::time::Duration;

use nstance_state::{ApplyStatus, IntentId};
use zeroize::Zeroizing;

use super::journal::StoreOperation;
use super::nonce::NonceRequest;
use crate::address::Address;
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Action, Summary};
use crate::provider::{
    CloudError, CreateRequest, DEFAULT_WAIT_TIMEOUT, DeleteRequest, Observation, UpdateRequest,
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
    /// How long an instance may take to run.
    pub wait_timeout: Duration,
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
        result: Box<Result<Option<Observation>, CloudError>>,
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
    /// Describe an instance by its provider id.
    Observe {
        /// The provider id.
        provider_id: String,
    },
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
    /// A task ended.
    Ended {
        /// The task.
        task: TaskId,
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
    /// Wait until the instance runs: before its predecessor is deleted, before the next replacement,
    /// or before groups that depend on it.
    Await,
    /// Delete the instance.
    Delete,
    /// Change only the record.
    Record,
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
